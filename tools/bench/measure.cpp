// measure.cpp - verifies the cases, times them, and measures the limits in the same run.
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "../pattern.hpp"
#include "../peers/samples.hpp"
#include "../progress.hpp"
#include "bench.hpp"
#include "cases.hpp"
#include "commit.hpp"
#include "data.hpp"
#include "limits.hpp"
#include "machine.hpp"
#include "memory.hpp"
#include "peers.hpp"
#include "sample.hpp"

namespace lockstep::tool::bench {
namespace {

using cases::test_case;
using nlohmann::ordered_json;

struct plan_deleter {
  void operator()(lockstep_plan* p) const { lockstep_plan_destroy(p); }
};
using plan_handle = std::unique_ptr<lockstep_plan, plan_deleter>;

int sweeps_of(const test_case& t) { return t.op == LOCKSTEP_STENCIL ? t.stencil.sweeps : 1; }
// Each input byte read once and each output byte written once, a sweep.
double compulsory_bytes(const test_case& t) {
  double all = 0;
  for (const test_case& one : t.members) all += compulsory_bytes(one);
  if (!t.members.empty()) return all;
  const double once =
      static_cast<double>(t.src.elements()) * static_cast<double>(t.src.element_bytes) +
      static_cast<double>(t.dst.elements()) * static_cast<double>(t.dst.element_bytes) +
      static_cast<double>(t.offsets.size() * 8 + t.weight.size() + t.bias.size() + t.residual.size() + t.other.size() +
                          t.gradient.size() + t.weight_gradient.size() + t.bias_gradient.size());
  return once * sweeps_of(t);
}
bool reads_only(const test_case& t) {
  return t.op == LOCKSTEP_SQUARE_SUM || t.op == LOCKSTEP_REDUCE || t.op == LOCKSTEP_SUMS ||
         t.op == LOCKSTEP_REDUCE_AXES;
}

// Takes samples until the middle half lies within 1 % or the time is up; at least 5.
template <class Take>
timing until_quiet(double seconds, const Take& take) {
  std::vector<double> ms;
  const double begin = now_ms();
  for (;;) {
    const std::vector<double> batch = take(ms.empty() ? size_t{5} : size_t{10});
    ms.insert(ms.end(), batch.begin(), batch.end());
    const timing so_far = summarise(ms, "noise");
    if (ms.size() >= 15 && so_far.noise < 0.01) return so_far;
    if (now_ms() - begin > seconds * 1e3 || ms.size() >= 400) return summarise(std::move(ms), "time");
  }
}

class bench_run {
 public:
  bench_run(const options& asked, report& out)
      : asked_(asked), out_(out), context_(asked.where), limits_(context_, asked, out), shown_("bench", count()) {}

  void on(const std::string& backend) {
    describe(backend);
    if (!asked_.peers.empty()) crew_ = std::make_unique<peer_crew>(asked_, backend, out_);
    for (const line& one : lines_of(asked_, backend)) {
      shown_.now(format_text("{} on {}", one.name, backend), done_++);
      try {
        one_case(backend, one);
        if (asked_.progress) asked_.progress(out_);
      } catch (const failure& error) {
        out_.skipped.push_back(format_text("{} on {}: {}", one.name, backend, error.what()));
      } catch (const std::invalid_argument& error) {
        refuse("{}", error.what());
      }
    }
    // The limit of a case is the best of the limit kernels and of all rows that ran. For many sweeps it is the copy
    // that each sweep needs at least if it goes through memory.
    for (result& r : out_.results) {
      if (r.op == "stencil" && sweeps_of(cases::parse(r.name)) > 1) continue;
      for (const result& other : out_.results)
        if (other.name == r.name && other.backend == r.backend) r.limit_gb_s = std::max(r.limit_gb_s, other.gb_s());
    }
    crew_.reset();
  }

 private:
  size_t count() const {
    size_t n = 0;
    for (const std::string& backend : asked_.backends) n += lines_of(asked_, backend).size();
    return n;
  }

  void describe(const std::string& backend) {
    lockstep_device_info device{};
    device.size = sizeof device;
    check(lockstep_device_get(backend.substr(0, backend.find(':')).c_str(), 0, &device));
    device_ = device.name;
    out_.machine["devices"][backend] = {{"name", device.name}, {"detail", device.detail}};
    limits_.of_backend(backend);
  }

  // The expected bits: what the CPU's own row gives; the CPU's are compared with its ref row, whose plain loops take
  // seconds for the largest cases.
  void expect(const std::string& backend, const test_case& t, const unsigned char* src) {
    std::memset(grow(want_, t.dst.span_bytes()).data(), gap, t.dst.span_bytes());
    lockstep_options o = lockstep_options_defaults();
    o.backend = "cpu";
    if (backend == "cpu") o.variant = "ref";
    const auto once = [&](const test_case& c, size_t src_at, size_t dst_at) {
      check(cases::call(context_, c, src + src_at, want_.data() + dst_at,
                        c.offsets.empty() ? nullptr : c.offsets.data(), &o));
    };
    if (t.members.empty()) once(t, 0, 0);
    for (size_t k = 0; k < t.members.size(); ++k) once(t.members[k], t.src_at[k], t.dst_at[k]);
  }

  static std::string compare_bits(const test_case& t, const unsigned char* want, const unsigned char* got,
                                  bool own_order) {
    const size_t bytes = t.dst.span_bytes();
    if (std::memcmp(want, got, bytes) == 0) return "bits equal";
    if (!own_order)
      return format_text("WRONG: bits differ from the oracle's; run lockstep verify --case {}",
                         t.members.empty() ? t.name : t.members.front().name);
    if (t.dst.element_bytes != 8 && t.dst.element_bytes != 4) return "own order, not checked";
    // Relative to the largest result, because single results may suffer from cancellation.
    double worst = 0, largest = 0;
    const auto at = [&](const unsigned char* p) {
      if (t.dst.element_bytes == 8) {
        double v = 0;
        std::memcpy(&v, p, 8);
        return v;
      }
      float v = 0;
      std::memcpy(&v, p, 4);
      return static_cast<double>(v);
    };
    for (size_t i = 0; i + t.dst.element_bytes <= bytes; i += t.dst.element_bytes) {
      largest = std::max(largest, std::abs(at(want + i)));
      worst = std::max(worst, std::abs(at(want + i) - at(got + i)));
    }
    worst /= std::max(largest, 1e-300);
    if (!(worst < 1e-3)) return format_text("WRONG: own order, a result is off by {:.2g} of the largest", worst);
    return format_text("own order, within {:.0e}", worst);
  }

  void one_case(const std::string& backend, const line& one) {
    const test_case t = cases::parse_timed(one.name);
    const bool on_cpu = backend == "cpu";
    const double bytes = compulsory_bytes(t);
    const size_t src_bytes = t.src.span_bytes(), dst_bytes = t.dst.span_bytes();
    const size_t src_at = static_cast<size_t>(t.src_shift) * t.src.element_bytes,
                 dst_at = static_cast<size_t>(t.dst_shift) * t.dst.element_bytes;
    unsigned char* src_host = grow(src_host_, src_bytes + src_at).data() + src_at;
    bench_data::fill(t, src_host);
    std::optional<block> src_device, dst_device, beside_device[8];
    cases::arrays_beside beside = t.offsets.empty() ? nullptr : t.offsets.data();
    unsigned char* got = grow(got_, dst_bytes + dst_at).data() + dst_at;
    if (t.in_place)
      std::memcpy(got, src_host, src_bytes);
    else
      std::memset(got, gap, dst_bytes);
    const void* src = src_host;
    void* dst = got;
    if (!on_cpu) {
      const bool pageable = asked_.memory == "pageable";
      const lockstep_memory kind = pageable                    ? LOCKSTEP_HOST
                                   : asked_.memory == "pinned" ? LOCKSTEP_PINNED
                                                               : LOCKSTEP_DEVICE;
      src_device.emplace(context_, pageable ? "cpu" : backend, kind, std::max<size_t>(src_bytes + src_at, 1));
      dst_device.emplace(context_, pageable ? "cpu" : backend, kind, std::max<size_t>(dst_bytes + dst_at, 1));
      src = src_device->data() + src_at;
      dst = dst_device->data() + dst_at;
      check(lockstep_copy(context_, backend.c_str(), src_host, src_device->data() + src_at, src_bytes));
      check(lockstep_copy(context_, backend.c_str(), got, dst, dst_bytes));
      const auto on_device = [&](std::optional<block>& there, const auto& values) -> void* {
        if (values.empty() || kind != LOCKSTEP_DEVICE) return nullptr;
        const size_t size = values.size() * sizeof values[0];
        there.emplace(context_, backend, LOCKSTEP_DEVICE, size);
        check(lockstep_copy(context_, backend.c_str(), values.data(), there->data(), size));
        return there->data();
      };
      if (const void* offsets = on_device(beside_device[0], t.offsets); offsets != nullptr)
        beside.offsets = static_cast<const int64_t*>(offsets);
      beside.weight = on_device(beside_device[1], t.weight);
      beside.bias = on_device(beside_device[2], t.bias);
      beside.residual = on_device(beside_device[3], t.residual);
      beside.other = on_device(beside_device[4], t.other);
      beside.gradient = on_device(beside_device[5], t.gradient);
      beside.weight_gradient = on_device(beside_device[6], t.weight_gradient);
      beside.bias_gradient = on_device(beside_device[7], t.bias_gradient);
    }
    if (t.in_place) src = dst;
    // A group's plan keeps its pointers.
    const bool grouped = !t.members.empty();
    const void* const plan_src = grouped ? nullptr : src;
    void* const plan_dst = grouped ? nullptr : dst;
    const bool can_check = asked_.verify;
    if (can_check) expect(backend, t, src_host);
    // What a call writes besides dst: as the oracle wrote it, then as each variant does.
    const auto columns_of = [](const test_case& c) { return std::pair(c.weight_gradient, c.bias_gradient); };
    const auto want_columns = columns_of(t);
    for (auto* columns : {&t.weight_gradient, &t.bias_gradient}) std::fill(columns->begin(), columns->end(), gap);

    const double limit = limits_.of_case(backend, reads_only(t), bytes / sweeps_of(t));
    const size_t before = out_.results.size();
    plan_handle first;  // of the row that peers stand beside
    for (const std::string& variant : variants(backend, t, one)) {
      const auto skip = [&](const failure& error) {  // the others are measured all the same
        out_.skipped.push_back(format_text("{} on {} variant {}: {}", t.name, backend, variant, error.what()));
      };
      lockstep_options o = lockstep_options_defaults();
      o.backend = backend.c_str();
      if (variant != "auto") o.variant = variant.c_str();
      o.flags = LOCKSTEP_DEVICE_DATA;
      // Not as the variant before left it.
      if (t.in_place) check(lockstep_copy(context_, backend.c_str(), src_host, dst, src_bytes));
      plan_handle plan;
      try {
        lockstep_plan* made = nullptr;
        check(grouped ? cases::plan_group(context_, t, src, dst, &o, &made)
                      : cases::plan(context_, t, beside, &o, &made));
        plan.reset(made);
        check(lockstep_plan_execute(plan.get(), plan_src, plan_dst, nullptr));
      } catch (const failure& error) {
        skip(error);
        continue;
      }
      lockstep_run_info ran{};
      ran.size = sizeof ran;
      check(lockstep_last_run(&ran));
      result r;
      r.name = one.name, r.op = lockstep_op_name(t.op), r.backend = backend, r.variant = ran.variant,
      r.device = device_;
      r.source = "lockstep";
      r.cold = asked_.cold, r.by_auto = variant == "auto";
      r.bytes = bytes;
      r.limit = !on_cpu && asked_.memory != "device" ? "link" : reads_only(t) ? "read" : "copy";
      r.limit_gb_s = limit;
      r.checked = "not checked: --no-verify";
      if (can_check) {
        if (!on_cpu) check(lockstep_copy(context_, backend.c_str(), dst, got, dst_bytes));
        if (beside.weight_gradient != nullptr)
          check(lockstep_copy(context_, backend.c_str(), beside.weight_gradient, t.weight_gradient.data(),
                              t.weight_gradient.size()));
        if (beside.bias_gradient != nullptr)
          check(lockstep_copy(context_, backend.c_str(), beside.bias_gradient, t.bias_gradient.data(),
                              t.bias_gradient.size()));
        r.checked = columns_of(t) == want_columns
                        ? compare_bits(t, want_.data(), got, ran.order == 0)
                        : format_text(
                              "WRONG: gradients of weight or bias differ from the oracle's; run lockstep verify "
                              "--case {}",
                              t.name);
        if (r.checked.starts_with("WRONG")) {  // not timed, so that it cannot be mistaken for a result
          out_.wrong.push_back(format_text("{} on {} variant {}: {}", t.name, backend, r.variant, r.checked));
          continue;
        }
      }
      try {
        r.time = until_quiet(seconds(), [&](size_t n) { return timed(*plan, on_cpu, plan_src, plan_dst, n); });
      } catch (const failure& error) {
        skip(error);
        continue;
      }
      out_.results.push_back(std::move(r));
      if (first == nullptr) first = std::move(plan);
    }
    if (crew_ == nullptr || out_.results.size() == before) return;
    if (!can_check && !on_cpu) check(lockstep_copy(context_, backend.c_str(), dst, got, dst_bytes));
    const result ours = out_.results[before];
    // What a name does not tell: a stencil's coefficients, or how many elements each array of a group has.
    std::vector<double> numbers = t.coefficients;
    for (const test_case& member : t.members) numbers.push_back(static_cast<double>(member.src.elements()));
    std::vector<unsigned char> sides;
    for (const auto* side : {&t.weight, &t.bias, &t.residual, &t.other, &t.gradient})
      sides.insert(sides.end(), side->begin(), side->end());
    crew_->measure(ours, numbers, {src_host, src_bytes}, {can_check ? want_.data() : got, dst_bytes}, sides,
                   [&](int32_t n, const void* shared) {
                     const void* from = on_cpu && !t.in_place && !grouped ? shared : plan_src;
                     return timed(*first, on_cpu, from, plan_dst, static_cast<size_t>(n));
                   });
  }

  // On the CPU whole calls, as the peers' are: plan_measure leaves out what comes before the kernel, 0.1 us.
  std::vector<double> timed(lockstep_plan& plan, bool on_cpu, const void* src, void* dst, size_t n) const {
    if (on_cpu && !asked_.cold)
      return peers::samples(n, [&] { check(lockstep_plan_execute(&plan, src, dst, nullptr)); });
    std::vector<double> ms(n);
    const uint32_t flags = asked_.cold ? static_cast<uint32_t>(LOCKSTEP_COLD) : 0u;
    check(lockstep_plan_measure(&plan, src, dst, flags, static_cast<int32_t>(n), ms.data()));
    return ms;
  }
  double seconds() const {
    return asked_.seconds > 0          ? asked_.seconds
           : asked_.sample >= 0        ? 0.05  // the rounds beside the peers decide
           : asked_.preset == "quick"  ? 0.15
           : asked_.preset == "cliffs" ? 0.02
                                       : 0.6;
  }
  static constexpr int gap = 0xA5;  // fills dst before the call; must stay between its rows

  std::vector<std::string> variants(const std::string& backend, const test_case& t, const line& one) const {
    const std::string wanted = !asked_.variants.empty() ? asked_.variants : one.variants;
    if (wanted == "auto") return {"auto"};
    std::vector<std::string> names;
    const std::string name = backend.substr(0, backend.find(':'));
    const pattern chosen("--variants", wanted == "all" ? "" : wanted);
    for (int32_t i = 0; i < lockstep_variant_count(name.c_str(), t.op); ++i) {
      lockstep_variant_info row{};
      row.size = sizeof row;
      check(lockstep_variant_get(name.c_str(), t.op, i, &row));
      if (wanted == "all" ? true : chosen.is_in(row.name)) names.push_back(row.name);
    }
    return names;
  }

  // Host memory is reused for all cases, because fresh pages cost more than most cases.
  struct host_block {
    std::unique_ptr<unsigned char, void (*)(void*)> memory{nullptr, std::free};
    size_t bytes = 0;
    unsigned char* data() const { return memory.get(); }
  };
  static host_block& grow(host_block& b, size_t bytes) {
    if (bytes <= b.bytes && b.bytes != 0) return b;
    b.bytes = std::max<size_t>(bytes, 1);
    b.memory.reset();
    b.memory.reset(static_cast<unsigned char*>(std::aligned_alloc(4096, (b.bytes + 4095) / 4096 * 4096)));
    if (b.memory == nullptr) fail("no memory for {} bytes; choose smaller cases", bytes);
    return b;
  }

  const options& asked_;
  report& out_;
  host_block src_host_, want_, got_;
  context context_;
  std::unique_ptr<peer_crew> crew_;
  std::string device_;
  limits limits_;
  progress shown_;
  size_t done_ = 0;
};

std::string utc_date() {
  const std::time_t t = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&t, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

}  // namespace

std::vector<line> lines_of(const options& asked, const std::string& backend) {
  std::vector<line> all;
  if (asked.sample >= 0) {
    const int64_t most = backend == "cpu" ? most_on_cpu : most_on_device;
    const auto seed = static_cast<uint64_t>(asked.sample);
    const sampled_ops of = asked.sample_ops == "new" ? sampled_ops::new_ones : sampled_ops::old_ones;
    for (std::string& name : drawn_cases(seed, asked.first, asked.count, most, of)) all.push_back({std::move(name)});
  } else if (asked.cases.empty()) {
    all = preset(asked.preset, backend);
  }
  for (const std::string& name : asked.cases) all.push_back({name});
  const pattern filter("--filter", asked.filter);
  std::erase_if(all, [&](const line& one) { return !filter.is_in(one.name); });
  return all;
}

report measure_all(const options& asked) {
  report out;
  utsname system{};
  uname(&system);
  out.machine["date"] = utc_date();
  out.machine["lockstep"] = lockstep_version();
  out.machine["commit"] = LOCKSTEP_COMMIT;
  out.machine["kernel"] = format_text("{} {} {}", system.sysname, system.release, system.machine);
  out.machine["cpu"] = processor();
  out.machine["threads"] = asked.where.threads;
  out.machine["memory"] = asked.memory;
  if (!asked.note.empty()) out.machine["note"] = asked.note;
  out.machine["cache"] = asked.cold ? "cold: caches overwritten before each sample" : "hot: back to back";
  if (asked.sample >= 0)
    out.machine["sample"] = {{"seed", asked.sample},    {"count", asked.count},     {"first", asked.first},
                             {"rounds", sample_rounds}, {"against", asked.against}, {"behind_below", behind_below}};
  if (asked.sample >= 0 && asked.sample_ops == "new") out.machine["sample"]["ops"] = "new";
  if (asked.preset == "crossover" && asked.cases.empty() && asked.sample < 0) {
    measure_crossover(asked, out);
    return out;
  }
  bench_run run(asked, out);
  for (const std::string& backend : asked.backends) run.on(backend);
  return out;
}

}  // namespace lockstep::tool::bench
