// crossover.cpp - bench --preset crossover: whole calls, small to large, on data in
// ordinary, page-locked and device memory, on the CPU, on a device, and as auto chooses.
// The goal is that auto takes at most 1.1 times the better of the two.
#include <algorithm>
#include <cmath>
#include <memory>

#include "../pattern.hpp"
#include "bench.hpp"
#include "calls.hpp"

namespace lockstep::tool::bench {
namespace {

constexpr double allowed = 1.1;

// Cases of about so many bytes moved. None is a case that calibrate times.
std::vector<std::string> cases_of(double bytes) {
  const auto n = static_cast<int64_t>(bytes / 8);  // 4-byte elements in and out
  const auto side = [](int64_t elements, double power) {
    return std::max<int64_t>(2, static_cast<int64_t>(std::pow(static_cast<double>(elements), 1 / power)));
  };
  const int64_t square = side(n, 2), cube = side(n, 3), wide = side(4 * n, 2), pixels = std::max<int64_t>(n * 4 / 3, 8);
  return {format_text("shuffle/b8/down/w16/op3/n{}", std::max<int64_t>(n / 64, 1) * 32),
          format_text("transpose/b4/{}x{}", wide / 2, std::max<int64_t>(n / wide * 2, 1)),
          format_text("transpose/b2/{}x{}", square, 2 * n / square),
          format_text("transpose/b1/{}x3", pixels),
          format_text("transpose/b4/8x{}", std::max<int64_t>(n / 8, 1)),
          format_text("transpose/b8/{0}x{0}/inplace", side(n / 2, 2)),
          format_text("transpose/b4/{}x{}/inplace", side(n / 3, 2), n / side(n / 3, 2)),
          format_text("permute/b4/2x16x{0}x{1}/perm0,2,3,1", side(n / 32, 2),
                      std::max<int64_t>(n / 32 / side(n / 32, 2), 1)),
          format_text("permute/b4/{0}x{0}x{1}/perm1,0,2", cube, std::max<int64_t>(n / cube / cube, 1)),
          format_text("square_sum/ssq/f32/full/{}", 2 * n),
          format_text("square_sum/norm2/f64/full/{}", n),
          format_text("square_sum/ssq/f16/full/{}", 4 * n),
          format_text("reduce/sum/f32/full/{}", 2 * n),
          format_text("reduce/max/i32/full/{}", 2 * n),
          format_text("reduce/argmin/f64/full/{}", n),
          format_text("reduce/sum/f32/rows/{}x20", std::max<int64_t>(n / 11, 1)),
          format_text("reduce/max/f32/rows/{}x1000", std::max<int64_t>(n / 500, 1)),
          format_text("reduce/sum/f32/columns/{}x{}", wide, std::max<int64_t>(2 * n / wide, 1)),
          format_text("reduce/sum/f32/nonempty/{}x40", std::max<int64_t>(2 * n / 42, 1)),
          format_text("stencil/f32/symmetric/mirror/r2/{}", n),
          format_text("stencil/f64/general/wrap/r8/{}", n / 2),
          format_text("stencil/f32/symmetric/nearest/r4/{}/sweeps10", std::max<int64_t>(n, 100)),
          format_text("stencil/f32/symmetric/nearest/r1/{}x{}", square, n / square),
          format_text("stencil/f32/symmetric/nearest/r4/{0}x{0}x{1}", cube, std::max<int64_t>(n / cube / cube, 1))};
}

constexpr struct {
  const char* name;
  lockstep_memory kind;
} memories[] = {{"pageable", LOCKSTEP_HOST}, {"pinned", LOCKSTEP_PINNED}, {"device", LOCKSTEP_DEVICE}};

struct contender {
  std::string backend;
  std::vector<double> ms;
  std::string ran;
  std::vector<double> round_ms;  // each round's median
};

constexpr size_t rounds = 8;

class crossover {
 public:
  crossover(const options& asked, report& out)
      : asked_(asked), out_(out), seconds_(asked.seconds > 0 ? asked.seconds : 0.03) {
    place where = asked.where;
    where.backend = "auto";
    context_ = std::make_unique<context>(where);
    lockstep_model_info model{};
    model.size = sizeof model;
    check(lockstep_model_get(*context_, &model));
    out_.machine.erase("memory");  // each row has its own
    out_.machine["model"] = {{"source", model.source}, {"reason", model.reason}};
  }

  void on(const std::string& device) {
    for (const std::string& backend : {std::string("cpu"), device}) {
      if (backend.empty()) continue;
      lockstep_device_info info{};
      info.size = sizeof info;
      check(lockstep_device_get(backend.substr(0, backend.find(':')).c_str(), 0, &info));
      names_[backend] = info.name;
      out_.machine["devices"][backend] = {{"name", info.name}, {"detail", info.detail}};
    }
    for (const auto& memory : memories) {
      if (device.empty() && memory.kind != LOCKSTEP_HOST) continue;
      call_memory data(*context_, memory.kind == LOCKSTEP_HOST ? "cpu" : device, memory.kind);
      for (double bytes = 6e3; bytes < 6e8; bytes *= 5)
        for (const std::string& name : cases_of(bytes)) {
          if (!asked_.filter.empty() && !pattern("--filter", asked_.filter).is_in(name)) continue;
          try {
            one_case(device, memory.name, data, name);
          } catch (const failure& error) {
            out_.skipped.push_back(format_text("{} in {} memory: {}", name, memory.name, error.what()));
          }
        }
      if (asked_.progress) asked_.progress(out_);
    }
  }

 private:
  void one_case(const std::string& device, const char* memory, call_memory& data, const std::string& name) {
    const cases::test_case t = cases::parse(name);
    data.prepare(t);
    std::vector<contender> all = {{"cpu", {}, "", {}}, {"auto", {}, "", {}}};
    if (!device.empty()) all.insert(all.begin() + 1, {device, {}, "", {}});
    if (!verify(t, data, all, memory)) return;
    // In alternation, so that a busy moment of the machine affects all, and in reverse every other round, so that none
    // always follows the same one. The number of rounds is fixed in advance; nothing is measured again.
    for (size_t round = 0; round < rounds; round += 2) {
      for (contender& one : all) run_round(t, data, one);
      for (auto one = all.rbegin(); one != all.rend(); ++one) run_round(t, data, *one);
    }
    double better = INFINITY;
    for (const contender& one : all)
      if (one.backend != "auto") better = std::min(better, summarise(one.ms).median);
    for (contender& one : all) {
      result r;
      r.name = name, r.op = lockstep_op_name(t.op), r.backend = one.backend, r.memory = memory, r.source = "lockstep";
      r.device = names_[r.backend == "auto" ? one.ran.substr(0, one.ran.find(':')) : r.backend];
      r.variant = r.backend == "auto" ? one.ran : one.ran.substr(one.ran.find(':') + 1);
      r.bytes = (static_cast<double>(t.src.elements()) * static_cast<double>(t.src.element_bytes) +
                 static_cast<double>(t.dst.elements()) * static_cast<double>(t.dst.element_bytes)) *
                (t.op == LOCKSTEP_STENCIL ? t.stencil.sweeps : 1);
      r.checked = asked_.verify ? "bits equal" : "not checked: --no-verify";
      r.round_ms = std::move(one.round_ms);
      r.time = summarise(std::move(one.ms), "time");
      if (r.backend == "auto") r.over_better = r.time.median / better;
      out_.results.push_back(std::move(r));
    }
  }

  // Compares each contender's bits with the CPU's ref row before timing. A contender that cannot run the case is left
  // out (the CPU cannot read offsets on a device); auto must run all cases.
  bool verify(const cases::test_case& t, const call_memory& data, std::vector<contender>& all, const char* memory) {
    const size_t bytes = t.dst.span_bytes();
    std::vector<unsigned char> before(bytes), want(bytes), got(bytes);
    data.read_dst(before.data(), bytes);
    const auto run = [&](const std::string& backend, const char* variant) {
      lockstep_options o = lockstep_options_defaults();
      o.backend = backend.c_str();
      o.variant = variant;
      data.write_dst(before.data(), bytes);  // in place, the last call's result is no input
      check(cases::call(*context_, t, data.src(t), data.dst(), data.offsets(), &o));
      data.read_dst(got.data(), bytes);
    };
    std::string first;  // whose bits the others must have
    const auto same = [&](const std::string& who) {
      if (first.empty()) first = who, want = got;
      return !asked_.verify || got == want;
    };
    try {
      if (asked_.verify) run("cpu", "ref"), same("ref");
    } catch (const failure&) {  // then the others are compared with the first contender
    }
    std::vector<contender> able;
    for (contender& one : all) {
      try {
        run(one.backend, nullptr);
      } catch (const failure&) {
        if (one.backend == "auto") throw;
        continue;
      }
      if (!same(one.backend)) {  // not timed, so that it cannot be mistaken for a result
        out_.wrong.push_back(
            format_text("{} in {} memory on {}: WRONG: bits differ from {}'s", t.name, memory, one.backend, first));
        return false;
      }
      able.push_back(std::move(one));
    }
    all = std::move(able);
    return true;
  }

  void run_round(const cases::test_case& t, const call_memory& data, contender& one) {
    const size_t had = one.ms.size();
    lockstep_options o = lockstep_options_defaults();
    o.backend = one.backend.c_str();
    time_calls(*context_, t, data, o, seconds_ / 4, one.ms, one.ran);
    one.round_ms.push_back(summarise({one.ms.begin() + static_cast<ptrdiff_t>(had), one.ms.end()}).median);
  }

  const options& asked_;
  report& out_;
  double seconds_;
  std::map<std::string, std::string> names_;  // by backend
  std::unique_ptr<context> context_;
};

}  // namespace

void measure_crossover(const options& asked, report& out) {
  crossover run(asked, out);
  std::string device;
  for (const std::string& backend : asked.backends)
    if (backend != "cpu" && device.empty()) device = backend;
  run.on(device);
}

void print_crossover(const report& all) {
  const style s = stdout_style();
  std::map<std::string, std::pair<size_t, size_t>> tally;  // by memory: within, all
  std::map<std::string, double> worst;
  print("{}{:<56} {:<9} {:>10} {:>10} {:>10}  {:<22} {}{}\n", s.bold, "case", "memory", "cpu", "device", "auto",
        "auto ran", "auto over the better", s.off);
  double cpu = 0, device = 0;
  for (const result& r : all.results) {
    if (r.backend == "cpu")
      cpu = r.time.median, device = 0;
    else if (r.backend != "auto")
      device = r.time.median;
    if (r.backend != "auto") continue;
    ++tally[r.memory].second;
    tally[r.memory].first += r.over_better <= allowed;
    worst[r.memory] = std::max(worst[r.memory], r.over_better);
    print("{:<56} {:<9} {:>10.2f} {:>10.2f} {:>10.2f}  {:<22} {}{:.2f}{}\n", r.name, r.memory, cpu * 1e3, device * 1e3,
          r.time.median * 1e3, r.variant, r.over_better <= allowed ? s.good : s.bad, r.over_better, s.off);
  }
  print("{}Microseconds of a call, medians; the better of cpu and device is what auto is compared with.{}\n", s.dim,
        s.off);
  for (const auto& [memory, count] : tally)
    print("{}: {} of {} cases within {} times the better; the worst {:.2f}\n", memory, count.first, count.second,
          allowed, worst[memory]);
}

}  // namespace lockstep::tool::bench
