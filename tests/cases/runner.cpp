// runner.cpp - see runner.hpp.
#include "runner.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <csignal>
#include <cstring>
#include <map>
#include <stdexcept>

#include "text.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lockstep::cases {
namespace {

constexpr size_t margin = 4096;  // bytes around a buffer that are looked at afterwards: a page
const char* volatile running_now = "";

}  // namespace

// Memory between two unmapped pages. Grows; is never given back.
class arena {
 public:
  unsigned char* take(size_t span, size_t shift, bool at_end) {
    const size_t page = 4096, need = (span + shift + margin + page - 1) / page * page;
    if (need > bytes_) {
      if (bytes_ != 0) munmap(base_ - page, bytes_ + 2 * page);
      void* all = mmap(nullptr, need + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (all == MAP_FAILED) throw std::runtime_error("no memory for a test buffer");
      base_ = static_cast<unsigned char*>(all) + page;
      bytes_ = need;
      if (mprotect(base_, bytes_, PROT_READ | PROT_WRITE) != 0) throw std::runtime_error("mprotect failed");
    }
    return at_end ? base_ + bytes_ - span - shift : base_ + shift;
  }
  size_t before(const unsigned char* p) const { return std::min(margin, static_cast<size_t>(p - base_)); }
  size_t behind(const unsigned char* p, size_t span) const {
    return std::min(margin, static_cast<size_t>(base_ + bytes_ - p) - span);
  }

 private:
  unsigned char* base_ = nullptr;
  size_t bytes_ = 0;
};

namespace {

const unsigned char* canary() {
  static const auto* const block = [] {
    auto* b = new unsigned char[margin];
    poison(b, margin, 8, 42);
    return b;
  }();
  return block;
}

// A buffer of one call: contents in the middle, canaries around it.
struct placed {
  unsigned char *host = nullptr, *call = nullptr;  // the bytes here, and the pointer to call with
  size_t span = 0, before = 0, behind = 0;

  void fill(const unsigned char* contents) const {
    std::memcpy(host - before, canary(), before);
    if (span != 0) std::memcpy(host, contents, span);
    std::memcpy(host + span, canary(), behind);
  }
  std::string damage(const char* name) const {
    for (size_t i = 0; i < before; ++i)
      if (host[i - before] != canary()[i])
        return format_text("{}: byte {} before its start was written; ", name, before - i);
    for (size_t i = 0; i < behind; ++i)
      if (host[span + i] != canary()[i]) return format_text("{}: byte {} behind its end was written; ", name, i);
    return "";
  }
};

class caller_state {  // sets the thread's arithmetic, and says whether a call changed it
 public:
  explicit caller_state(arithmetic wanted) {
    std::fegetenv(&saved_);
    constexpr int modes[] = {FE_TONEAREST, FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    std::fesetround(modes[static_cast<int>(wanted)]);
#if defined(__x86_64__)
    if (wanted == arithmetic::flush_denormals) _mm_setcsr(_mm_getcsr() | 0x8040);  // FTZ, DAZ
#endif
    set_ = now();
  }
  ~caller_state() { std::fesetenv(&saved_); }
  bool changed() const { return now() != set_; }

 private:
  static unsigned now() {
#if defined(__x86_64__)
    return _mm_getcsr() & ~0x3Fu;  // without the sticky exception flags
#else
    return static_cast<unsigned>(std::fegetround());
#endif
  }
  std::fenv_t saved_;
  unsigned set_ = 0;
};

std::string hex(const unsigned char* p, size_t bytes) {
  std::string text;
  for (size_t i = bytes; i-- > 0;) text += format_text("{:02x}", p[i]);
  return text;
}

std::string difference(const subject& s, const unsigned char* got) {
  if (s.after.empty() || std::memcmp(got, s.after.data(), s.after.size()) == 0) return "";
  const size_t bytes = s.c.dst.element_bytes;
  size_t count = 0, first = 0;
  for (size_t i = s.after.size() / bytes; i-- > 0;)
    if (std::memcmp(got + i * bytes, s.after.data() + i * bytes, bytes) != 0) ++count, first = i;
  return format_text("{} of {} elements of dst differ (gaps counted), the first at {}: 0x{}, not 0x{}; ", count,
                     s.after.size() / bytes, first, hex(got + first * bytes, bytes),
                     hex(s.after.data() + first * bytes, bytes));
}

}  // namespace

struct runner::buffers {
  arena src, dst;
  struct device {
    unsigned char* base = nullptr;
    size_t bytes = 0;
  };
  std::map<std::string, device> devices;  // by backend and use

  unsigned char* on_device(lockstep_context* context, const std::string& backend, const char* use, size_t bytes) {
    device& d = devices[backend + use];
    if (bytes > d.bytes) {
      void* fresh = nullptr;
      if (d.base != nullptr && lockstep_free(context, backend.c_str(), LOCKSTEP_DEVICE, d.bytes, d.base) != LOCKSTEP_OK)
        throw std::runtime_error(lockstep_last_error());
      d = {};
      if (lockstep_alloc(context, backend.c_str(), LOCKSTEP_DEVICE, bytes, &fresh) != LOCKSTEP_OK)
        throw std::runtime_error(lockstep_last_error());
      d = {static_cast<unsigned char*>(fresh), bytes};
    }
    return d.base;
  }
};

runner::runner() : buffers_(std::make_unique<buffers>()) {}
runner::~runner() {
  for (const auto& [key, d] : buffers_->devices)
    for (const auto& [name, context] : contexts_)
      if (const std::string backend = name.substr(0, name.find(' ')); key.compare(0, backend.size(), backend) == 0) {
        (void)lockstep_free(context, backend.c_str(), LOCKSTEP_DEVICE, d.bytes, d.base);
        break;
      }
  for (const auto& [name, context] : contexts_) lockstep_context_destroy(context);
}

std::string target::text() const {
  std::string t = " --backend " + backend;
  if (!variant.empty()) t += " --variant " + variant;
  if (!isa.empty()) t += " --isa " + isa;
  if (threads != 0) t += format_text(" --threads {}", threads);
  if (where == place::device) t += " --memory device";
  if (where == place::mixed) t += " --memory mixed";
  if (where == place::host_front) t += " --memory front";
  if (how == way::planned) t += " --way planned";
  if (how == way::queued) t += " --way queued";
  if (caller != arithmetic::usual) t += format_text(" --arithmetic {}", static_cast<int>(caller));
  return t;
}

subject::subject(test_case of) : c(std::move(of)), src(c.src.span_bytes()), before(c.dst.span_bytes()) {
  fill_src(c, src.data());
  if (c.in_place)
    before = src;
  else
    poison(before.data(), before.size(), c.dst.element_bytes, c.seed + 1);
  after = before;
  want = oracle(c, src.data(), after.data());
  weight_gradient = c.weight_gradient, bias_gradient = c.bias_gradient;
}

lockstep_context* runner::context_of(const target& t) {
  lockstep_context*& context = contexts_[format_text("{} {} {}", t.backend, t.isa, t.threads)];
  if (context == nullptr) {
    lockstep_context_options o = lockstep_context_defaults();
    o.backend = t.backend.c_str();
    o.cpu_isa = t.isa.empty() ? nullptr : t.isa.c_str();
    o.threads = t.threads;
    if (lockstep_context_create(&o, &context) != LOCKSTEP_OK) throw std::runtime_error(lockstep_last_error());
  }
  return context;
}

outcome runner::run(const subject& s, const target& t) {
  const test_case& c = s.c;
  running_now = c.name.c_str();
  lockstep_context* context = context_of(t);
  const bool at_end = t.where != place::host_front;
  placed src, dst;
  src.span = c.in_place ? 0 : s.src.size();
  dst.span = s.before.size();
  const auto settle = [&](placed& p, arena& from, int64_t shift, size_t bytes) {
    p.host = from.take(p.span, static_cast<size_t>(shift) * bytes, at_end);
    p.before = from.before(p.host) / bytes * bytes;
    p.behind = from.behind(p.host, p.span) / bytes * bytes;
    p.call = p.host;
  };
  settle(src, buffers_->src, c.src_shift, c.src.element_bytes);
  settle(dst, buffers_->dst, c.dst_shift, c.dst.element_bytes);
  src.fill(s.src.data());
  dst.fill(s.before.data());
  const auto copy = [&](const unsigned char* from, unsigned char* to, size_t bytes) {
    if (bytes != 0 && lockstep_copy(context, t.backend.c_str(), from, to, bytes) != LOCKSTEP_OK)
      throw std::runtime_error(lockstep_last_error());
  };
  // A device copy keeps the shift and both margins.
  const auto upload = [&](placed& p, const char* use, int64_t shift, size_t bytes) {
    const size_t offset = margin + static_cast<size_t>(shift) * bytes;
    p.call = buffers_->on_device(context, t.backend, use, offset + p.span + margin) + offset;
    copy(p.host - p.before, p.call - p.before, p.before + p.span + p.behind);
  };
  arrays_beside beside = c.offsets.data();
  for (auto* written : {&c.weight_gradient, &c.bias_gradient}) poison(written->data(), written->size(), 1, c.seed);
  if (t.where == place::device || t.where == place::mixed) upload(src, "src", c.src_shift, c.src.element_bytes);
  if (t.where == place::device) {
    upload(dst, "dst", c.dst_shift, c.dst.element_bytes);
    const auto beside_on_device = [&](const auto& values, const char* use) -> void* {
      if (values.empty()) return nullptr;
      const size_t bytes = values.size() * sizeof values[0];
      unsigned char* there = buffers_->on_device(context, t.backend, use, bytes);
      copy(reinterpret_cast<const unsigned char*>(values.data()), there, bytes);
      return there;
    };
    beside.offsets = static_cast<const int64_t*>(beside_on_device(c.offsets, "offsets"));
    beside.weight = beside_on_device(c.weight, "weight");
    beside.bias = beside_on_device(c.bias, "bias");
    beside.residual = beside_on_device(c.residual, "residual");
    beside.other = beside_on_device(c.other, "other");
    beside.given = beside_on_device(c.given, "given");
    beside.before = beside_on_device(c.before, "before");
    beside.gradient = beside_on_device(c.gradient, "gradient");
    beside.weight_gradient = beside_on_device(c.weight_gradient, "weight_gradient");
    beside.bias_gradient = beside_on_device(c.bias_gradient, "bias_gradient");
  }
  if (c.in_place) src.call = dst.call;
  // Nothing is touched: a pointer need not be there.
  if (!c.in_place && s.src.empty() && c.seed % 2 == 1) src.call = nullptr;
  if (s.before.empty() && c.seed % 2 == 1) dst.call = nullptr;
  if (c.in_place && s.before.empty()) src.call = dst.call;

  lockstep_options options = lockstep_options_defaults();
  options.variant = t.variant.empty() ? nullptr : t.variant.c_str();
  lockstep_status status = LOCKSTEP_OK;
  bool changed = false;
  std::string error;
  {
    const caller_state state(t.caller);
    if (t.how == way::planned) {
      lockstep_plan* planned = nullptr;
      if (t.where == place::device) options.flags |= LOCKSTEP_DEVICE_DATA;
      status = plan(context, c, beside, &options, &planned);
      if (status == LOCKSTEP_OK) status = lockstep_plan_execute(planned, src.call, dst.call, nullptr);
      error = lockstep_last_error();
      lockstep_plan_destroy(planned);
    } else {
      if (t.how == way::queued) options.flags |= LOCKSTEP_ASYNC;
      status = call(context, c, src.call, dst.call, beside, &options);
      error = lockstep_last_error();
    }
    changed = state.changed();
  }
  outcome o;
  if (status == LOCKSTEP_UNSUPPORTED) return {verdict::refused, error, t.variant};
  lockstep_run_info info{};
  info.size = sizeof info;
  if (lockstep_last_run(&info) == LOCKSTEP_OK) {
    o.variant = info.variant;
    if (!t.variant.empty() && !o.variant.empty() && o.variant != t.variant) o.text += "ran " + o.variant + "; ";
    if (!o.variant.empty() && info.order != (t.own_order ? 0 : LOCKSTEP_ORDER_1))
      o.text += format_text("order {}; ", info.order);
  }
  if (t.how == way::queued) {
    const lockstep_status later = lockstep_synchronize(context);
    if (status == LOCKSTEP_OK) {
      status = later;
      error = lockstep_last_error();
    } else if (later != LOCKSTEP_OK && later != status) {
      o.text += format_text("{} at the call but {} at synchronisation; ", lockstep_status_name(status),
                            lockstep_status_name(later));
    }
  }
  if (status != s.want.status)
    o.text += format_text("status {} ({}), not {}; ", lockstep_status_name(status), error,
                          lockstep_status_name(s.want.status));
  else if (status != LOCKSTEP_OK && error.find(std::to_string(s.want.first)) == std::string::npos)
    o.text += format_text("the error \"{}\" does not name sequence {}; ", error, s.want.first);
  if (changed) o.text += "the caller's floating-point state was changed; ";
  if (t.where == place::device && dst.call != nullptr)
    copy(dst.call - dst.before, dst.host - dst.before, dst.before + dst.span + dst.behind);
  if ((t.where == place::device || t.where == place::mixed) && !c.in_place && src.call != nullptr)
    copy(src.call - src.before, src.host - src.before, src.before + src.span + src.behind);
  const auto compare = [&](std::vector<unsigned char>& got, const void* there, const std::vector<unsigned char>& want,
                           const char* name) {
    if (there != nullptr) copy(static_cast<const unsigned char*>(there), got.data(), got.size());
    if (status == LOCKSTEP_OK && got != want) o.text += format_text("{} differs; ", name);
  };
  compare(c.weight_gradient, beside.weight_gradient, s.weight_gradient, "weight_gradient");
  compare(c.bias_gradient, beside.bias_gradient, s.bias_gradient, "bias_gradient");
  o.text += src.damage("src") + dst.damage("dst");
  if (src.span != 0 && std::memcmp(src.host, s.src.data(), src.span) != 0) o.text += "src was changed; ";
  o.text += t.own_order ? outside_bound(s, dst.host) : difference(s, dst.host);
  o.what = o.text.empty() ? verdict::equal : verdict::differs;
  running_now = "";
  return o;
}

std::vector<row> rows_of(const std::string& backend, lockstep_op op) {
  std::vector<row> rows;
  const int32_t count = lockstep_variant_count(backend.c_str(), op);
  for (int32_t i = 0; i < count; ++i) {
    lockstep_variant_info info{};
    info.size = sizeof info;
    if (lockstep_variant_get(backend.c_str(), op, i, &info) == LOCKSTEP_OK)
      rows.push_back({backend, op, info.name, info.flags});
  }
  return rows;
}

std::vector<std::string> usable_backends() {
  std::vector<std::string> names;
  for (int32_t i = 0; i < lockstep_backend_count(); ++i) {
    lockstep_backend_info info{};
    info.size = sizeof info;
    if (lockstep_backend_get(i, &info) == LOCKSTEP_OK && info.usable != 0) names.emplace_back(info.name);
  }
  return names;
}

std::vector<std::string> isa_levels() {
  std::vector<std::string> levels;
  // Every set of kernels that this processor runs, and every row of backends/cpu/tuning.hpp on every processor.
  for (const char* level : {"baseline:zen4", "avx2:default", "avx512:default", "avx512:zen4"}) {
    lockstep_context_options o = lockstep_context_defaults();
    o.backend = "cpu";
    o.cpu_isa = level;
    lockstep_context* context = nullptr;
    if (lockstep_context_create(&o, &context) == LOCKSTEP_OK) levels.emplace_back(level);
    lockstep_context_destroy(context);
  }
  return levels;
}

void report_crashes() {
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    const char *name = running_now, *before = "\nkilled while running case ";
    if (write(2, before, std::strlen(before)) < 0 || write(2, name, std::strlen(name)) < 0 || write(2, "\n", 1) < 0)
      _exit(1);
    raise(signal);
  };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
}

}  // namespace lockstep::cases
