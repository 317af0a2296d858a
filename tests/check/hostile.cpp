// hostile.cpp - unusual callers and machines: wrong sizes of structs, workspaces that overlap, the caller's
// floating-point mode, no more threads, forks while other threads call.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <atomic>
#include <bit>
#include <cfenv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "check.hpp"
#include "context_of.hpp"

namespace lockstep::check {
namespace {
using namespace cases;

// ---- sizes of structs ------------------------------------------------------------

// Every size from 0 to a bit beyond: only one that the struct has had is taken. call returns a status. older: a size
// that the struct had in an earlier library.
template <class T>
void only_known_sizes(const char* name, const T& good, const std::function<lockstep_status(T*)>& call,
                      size_t older = 0) {
  for (size_t size = 0; size <= sizeof(T) + 16; ++size) {
    alignas(16) unsigned char room[sizeof(T) + 16] = {};
    auto* given = reinterpret_cast<T*>(room);
    std::memcpy(room, &good, sizeof good);
    given->size = size;
    const lockstep_status status = call(given);
    // At the first that is taken: what a call makes of a struct of no known size may be anything.
    const bool known = size == sizeof(T) || (older != 0 && size == older);
    ASSERT_EQ(status, known ? LOCKSTEP_OK : LOCKSTEP_INVALID_ARGUMENT) << name << ", size " << size;
    if (status == LOCKSTEP_INVALID_ARGUMENT) {
      EXPECT_NE(std::string(lockstep_last_error()).find("size is " + std::to_string(size)), std::string::npos)
          << lockstep_last_error();
    }
  }
}

TEST(Hostile, StructsOfSizesThatNeverWere) {
  const context_of c("cpu");
  const float src[64] = {1, 2, 3};
  float dst[64];
  double sum = 0;
  const auto transpose = lockstep_transpose_packed(4, 4, 8);
  only_known_sizes<lockstep_context_options>("context", lockstep_context_defaults(), [](auto* o) {
    lockstep_context* made = nullptr;
    const lockstep_status status = lockstep_context_create(o, &made);
    lockstep_context_destroy(made);
    return status;
  });
  only_known_sizes<lockstep_options>("options", lockstep_options_defaults(),
                                     [&](auto* o) { return lockstep_transpose(c.self, &transpose, src, dst, o); });
  only_known_sizes<lockstep_transpose_desc>("transpose", transpose,
                                            [&](auto* d) { return lockstep_transpose(c.self, d, src, dst, nullptr); });
  const int64_t shape[] = {4, 8};
  const int32_t perm[] = {1, 0};
  only_known_sizes<lockstep_permute_desc>("permute", lockstep_permute_packed(4, 2, shape, perm),
                                          [&](auto* d) { return lockstep_permute(c.self, d, src, dst, nullptr); });
  only_known_sizes<lockstep_reduce_desc>("reduce", lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, 64, 1),
                                         [&](auto* d) { return lockstep_reduce(c.self, d, src, &sum, nullptr); });
  const int64_t n[] = {64};
  const double taps[] = {1, 2, 1};
  only_known_sizes<lockstep_stencil_desc>(
      "stencil", lockstep_stencil_packed(LOCKSTEP_F32, 1, n, 1, taps, LOCKSTEP_BOUNDARY_NEAREST),
      [&](auto* d) { return lockstep_stencil(c.self, d, src, dst, nullptr); });
  only_known_sizes<lockstep_shuffle_desc>("shuffle", lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_UP, 4, 64, 32, 1),
                                          [&](auto* d) { return lockstep_shuffle(c.self, d, src, dst, nullptr); });
  only_known_sizes<lockstep_normalize_desc>(
      "normalize", lockstep_normalize_rows(LOCKSTEP_NORMALIZE_LAYER, LOCKSTEP_F32, 4, 16, 1e-5),
      [&](auto* d) { return lockstep_normalize(c.self, d, src, dst, nullptr); },
      offsetof(lockstep_normalize_desc, offsets));
  only_known_sizes<lockstep_scan_desc>(
      "scan", lockstep_scan_full(LOCKSTEP_MAX, LOCKSTEP_F32, 64),
      [&](auto* d) { return lockstep_scan(c.self, d, src, dst, nullptr); }, offsetof(lockstep_scan_desc, first));
  only_known_sizes<lockstep_sums_desc>("sums", lockstep_sums_full(LOCKSTEP_SUMS_DOT, LOCKSTEP_F32, 64, src),
                                       [&](auto* d) { return lockstep_sums(c.self, d, src, &sum, nullptr); });
  const int32_t axes[] = {0};
  only_known_sizes<lockstep_reduce_axes_desc>(
      "reduce_axes", lockstep_reduce_axes_packed(LOCKSTEP_SUM, LOCKSTEP_F32, 1, n, 1, axes),
      [&](auto* d) { return lockstep_reduce_axes(c.self, d, src, &sum, nullptr); });
  only_known_sizes<lockstep_convert_desc>("convert",
                                          lockstep_convert_packed(LOCKSTEP_F32, LOCKSTEP_F32, 2, 1, n, nullptr),
                                          [&](auto* d) { return lockstep_convert(c.self, d, src, dst, nullptr); });
  only_known_sizes<lockstep_map_desc>(
      "map", lockstep_map_packed(LOCKSTEP_MAP_EXP, LOCKSTEP_F32, LOCKSTEP_F32, 1, n, nullptr),
      [&](auto* d) { return lockstep_map(c.self, d, src, dst, nullptr); }, offsetof(lockstep_map_desc, times));
  only_known_sizes<lockstep_run_info>("run", {}, [](auto* i) { return lockstep_last_run(i); });
  only_known_sizes<lockstep_backend_info>("backend", {}, [](auto* i) { return lockstep_backend_get(0, i); });
  only_known_sizes<lockstep_device_info>("device", {}, [](auto* i) { return lockstep_device_get("cpu", 0, i); });
  only_known_sizes<lockstep_variant_info>("variant", {},
                                          [](auto* i) { return lockstep_variant_get("cpu", LOCKSTEP_REDUCE, 0, i); });
  only_known_sizes<lockstep_model_info>("model", {}, [&](auto* i) { return lockstep_model_get(c.self, i); });
  only_known_sizes<lockstep_tuning_info>("tuning", {}, [&](auto* i) { return lockstep_tuning_get(c.self, i); });
}

// ---- workspaces ------------------------------------------------------------------

TEST(Hostile, WorkspacesThatOverlapOrAreMisaligned) {
  for (const std::string& backend : usable_backends()) {
    const context_of c(backend);
    const int64_t n[] = {4096};
    const double taps[] = {1, 2, 1};
    lockstep_stencil_desc d = lockstep_stencil_packed(LOCKSTEP_F32, 1, n, 1, taps, LOCKSTEP_BOUNDARY_WRAP);
    d.sweeps = 4;
    lockstep_plan* plan = nullptr;
    lockstep_options brought = lockstep_options_defaults();
    ASSERT_EQ(lockstep_plan_stencil(c.self, &d, &brought, &plan), LOCKSTEP_OK);
    size_t bytes = 0;
    ASSERT_EQ(lockstep_plan_workspace(plan, &bytes), LOCKSTEP_OK);
    bytes = std::max<size_t>(bytes, 16384);
    alignas(256) static unsigned char memory[1 << 18];
    auto* src = reinterpret_cast<float*>(memory);
    auto* dst = reinterpret_cast<float*>(memory + (1 << 16));
    unsigned char* apart = memory + (1 << 17);
    const auto run = [&](void* workspace, bool planned) {
      for (int i = 0; i < 4096; ++i) src[i] = static_cast<float>(i % 7), dst[i] = -1;
      lockstep_options o = lockstep_options_defaults();
      o.workspace = workspace;
      o.workspace_bytes = bytes;
      return planned ? lockstep_plan_execute(plan, src, dst, &o) : lockstep_stencil(c.self, &d, src, dst, &o);
    };
    const auto refused = [&](void* workspace, const char* part) {
      for (const bool planned : {false, true}) {
        EXPECT_EQ(run(workspace, planned), LOCKSTEP_INVALID_ARGUMENT) << backend << " " << part;
        // Of a device's backend the host's memory is refused first.
        const std::string text = lockstep_last_error();
        const bool unreachable = backend != "cpu" && text.find("cannot reach") != std::string::npos;
        EXPECT_TRUE(unreachable || text.find(part) != std::string::npos) << text;
        EXPECT_TRUE(src[5] == 5 && dst[5] == -1) << "a refused call wrote";
      }
    };
    refused(src, "overlaps src");
    refused(memory + 16384 - 256, backend == "cpu" ? "overlaps" : "workspace");  // src's last bytes, or dst's first
    refused(reinterpret_cast<unsigned char*>(dst) - 256, "overlaps dst");
    refused(reinterpret_cast<unsigned char*>(dst) + 256, "overlaps dst");
    const size_t said = std::exchange(bytes, SIZE_MAX);  // however large they say it is
    refused(src, "overlaps src");
    refused(reinterpret_cast<unsigned char*>(dst) - 256, "overlaps");
    bytes = said;
    refused(apart + 1, "align it to 256 bytes");
    refused(reinterpret_cast<void*>(257), "options.workspace is 0x101; align");
    if (backend == "cpu") {
      EXPECT_EQ(run(apart, false), LOCKSTEP_OK) << lockstep_last_error();
      EXPECT_EQ(run(apart, true), LOCKSTEP_OK) << lockstep_last_error();
    }
    lockstep_plan_destroy(plan);
  }
}

// ---- the caller's floating-point mode ----------------------------------------------

struct mode {
  int rounding;
  bool flush, zero;  // FTZ and DAZ
};
class under {
 public:
  explicit under(const mode& m) {
    std::fegetenv(&before_);
    std::fesetround(m.rounding);
#if defined(__x86_64__)
    _mm_setcsr((_mm_getcsr() & ~0x8040u) | (m.flush ? 0x8000u : 0) | (m.zero ? 0x40u : 0));
#endif
    wanted_ = state();
  }
  ~under() {
    EXPECT_EQ(state(), wanted_) << "a call changed the caller's mode";
    std::fesetenv(&before_);
  }
  under(const under&) = delete;
  under& operator=(const under&) = delete;

 private:
  static unsigned state() {
#if defined(__x86_64__)
    return _mm_getcsr() & ~0x3Fu;  // but for the flags that the test's own arithmetic raises
#else
    return static_cast<unsigned>(std::fegetround());
#endif
  }
  std::fenv_t before_;
  unsigned wanted_;
};

// Coefficients and data where a rounding, or a denormal that is lost, shows.
struct float_call {
  const char* name;
  std::function<lockstep_status(lockstep_context*, const lockstep_options*, void* dst, bool planned)> run;
};

void under_every_mode(const std::vector<std::string>& backends) {
  static double f64[300];
  static float f32[300];
  for (int i = 0; i < 300; ++i)
    f64[i] = (i % 3 == 0 ? 1e300 : 1e-300) / (i + 1), f32[i] = 1.0f / static_cast<float>(i + 3);
  static const int64_t n[] = {300};
  const auto stencil = [](lockstep_dtype dtype, lockstep_form form, std::vector<double> taps,
                          lockstep_boundary boundary, double value) {
    auto d = lockstep_stencil_packed(dtype, 1, n, 1, nullptr, boundary);
    d.form = form;
    d.value = value;
    d.coefficient_count = static_cast<int32_t>(taps.size());
    return [d, taps](lockstep_context* c, const lockstep_options* o, void* dst, bool planned) mutable {
      d.coefficients = taps.data();
      const void* src = d.dtype == LOCKSTEP_F64 ? static_cast<const void*>(f64) : f32;
      if (!planned) return lockstep_stencil(c, &d, src, dst, o);
      lockstep_plan* plan = nullptr;
      lockstep_status status = lockstep_plan_stencil(c, &d, nullptr, &plan);
      if (status == LOCKSTEP_OK) status = lockstep_plan_execute(plan, src, dst, o);
      if (status == LOCKSTEP_OK && o != nullptr) status = lockstep_synchronize(c);
      lockstep_plan_destroy(plan);
      return status;
    };
  };
  const auto reduce = [](lockstep_reduction reduction, lockstep_dtype dtype, lockstep_dtype result) {
    auto d = lockstep_reduce_full(reduction, dtype, 300, 1);
    d.result = result;
    return [d](lockstep_context* c, const lockstep_options* o, void* dst, bool planned) {
      const void* src = d.dtype == LOCKSTEP_F64 ? static_cast<const void*>(f64) : f32;
      const bool squares = d.reduction >= LOCKSTEP_SUM_OF_SQUARES;
      if (!planned) return squares ? lockstep_square_sum(c, &d, src, dst, o) : lockstep_reduce(c, &d, src, dst, o);
      lockstep_plan* plan = nullptr;
      lockstep_status status =
          squares ? lockstep_plan_square_sum(c, &d, nullptr, &plan) : lockstep_plan_reduce(c, &d, nullptr, &plan);
      if (status == LOCKSTEP_OK) status = lockstep_plan_execute(plan, src, dst, o);
      if (status == LOCKSTEP_OK && o != nullptr) status = lockstep_synchronize(c);
      lockstep_plan_destroy(plan);
      return status;
    };
  };
  const float_call calls[] = {
      {"tiny symmetric", stencil(LOCKSTEP_F64, LOCKSTEP_SYMMETRIC, {0, 5e-310}, LOCKSTEP_BOUNDARY_NEAREST, 0)},
      {"tiny antisymmetric", stencil(LOCKSTEP_F64, LOCKSTEP_ANTISYMMETRIC, {0, 5e-310}, LOCKSTEP_BOUNDARY_WRAP, 0)},
      {"rounded to f32", stencil(LOCKSTEP_F32, LOCKSTEP_GENERAL, {0.1, 1.0 / 3, 0.7}, LOCKSTEP_BOUNDARY_MIRROR, 0)},
      {"rounded value", stencil(LOCKSTEP_F32, LOCKSTEP_SYMMETRIC, {0.1, 0.3}, LOCKSTEP_BOUNDARY_CONSTANT, 1.0 / 3)},
      {"denormal value", stencil(LOCKSTEP_F64, LOCKSTEP_SYMMETRIC, {1, 1}, LOCKSTEP_BOUNDARY_CONSTANT, 5e-310)},
      {"sum", reduce(LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F64)},
      {"sum to f32", reduce(LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F32)},
      {"squares", reduce(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, LOCKSTEP_F64)},
      {"norm", reduce(LOCKSTEP_NORM2, LOCKSTEP_F64, LOCKSTEP_F32)},
      {"max", reduce(LOCKSTEP_MAX, LOCKSTEP_F64, LOCKSTEP_F64)},
  };
  lockstep_options queued = lockstep_options_defaults();
  queued.flags = LOCKSTEP_ASYNC;
  const context_of oracle("cpu");
  for (const float_call& one : calls) {
    alignas(64) unsigned char want[300 * 8] = {};
    ASSERT_EQ(one.run(oracle.self, nullptr, want, false), LOCKSTEP_OK) << one.name << lockstep_last_error();
    for (const std::string& backend : backends) {
      const context_of c(backend);
      for (const int rounding : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO})
        for (const int bits : {0, 1, 2, 3})
          for (const int way : {0, 1, 2}) {  // a call, a plan, a queued plan
            alignas(64) unsigned char got[sizeof want] = {};
            lockstep_status status = LOCKSTEP_OK;
            {
              const under caller({rounding, (bits & 1) != 0, (bits & 2) != 0});
              status = one.run(c.self, way == 2 ? &queued : nullptr, got, way > 0);
            }
            EXPECT_EQ(status, LOCKSTEP_OK) << one.name << " " << lockstep_last_error();
            EXPECT_EQ(std::memcmp(got, want, sizeof want), 0)
                << one.name << " on " << backend << ", rounding " << rounding << ", FTZ and DAZ " << bits << ", way "
                << way;
          }
    }
  }
}

std::vector<std::string> other_backends() {
  std::vector<std::string> others = usable_backends();
  std::erase(others, "cpu");
  return others;
}
TEST(Hostile, WhateverTheCallersArithmetic) { under_every_mode({"cpu"}); }
TEST(Hostile, WhateverTheCallersArithmeticElsewhere) {
  if (other_backends().empty()) GTEST_SKIP() << "no backend but cpu runs here";
  under_every_mode(other_backends());
}

// The cases where a rounding or a lost denormal shows, and those where none may: of every op, by every way.
void every_op_under_every_arithmetic(const std::vector<std::string>& backends) {
  runner run;
  for (const char* name : {"transpose/b2/37x53",
                           "permute/b8/12x7x9/perm2,0,1",
                           "shuffle/b4/xor/w8/op3/n96",
                           "square_sum/ssq/f16/full/1003",
                           "square_sum/norm2/bf16/rows/9x131",
                           "square_sum/norm2/f64/full/900/special",
                           "square_sum/ssq/i32/full/700",
                           "reduce/sum/f32/columns/90x33",
                           "reduce/argmax/f64/full/501/special",
                           "reduce/sum/i64/rows/7x90",
                           "stencil/f32/general/nearest/r3/1001",
                           "stencil/f64/symmetric/mirror/r1/20x31/special",
                           "normalize/l2/f16/7x131",
                           "normalize/layer/bf16/3x2200/weight",
                           "normalize/rms/f32/9x70/to_f16/wide",
                           "normalize/l2/f64/3x300/tiny/eps300",
                           "normalize/layer/f32/5x90/residual/bias/special",
                           "scan/sum/f32/full/5003/special",
                           "scan/sum/f16/columns/90x33",
                           "scan/sum/f64/rows/7x300/wide/to_f32/exclusive",
                           "scan/min/bf16/mixed/20x30/special",
                           "sums/dot/f32/full/5003/special",
                           "sums/sqdiff/f64/rows/7x300/wide/to_f32",
                           "sums/meanvar/f16/full/5003",
                           "reduce_axes/sum/f32/31x3x70/axes0,2/special",
                           "convert/f32/f16/70x33/perm1,0/special",
                           "convert/f64/bf16/501/perm0/special/by_tenth",
                           "convert/f16/f32/501/perm0/special",
                           "convert/f64/f32/9x5x7/perm2,0,1/wide/by_2m140",
                           "map/exp/f32/f32/501/perm0/special",
                           "map/log/f32/f16/70x33/perm1,0/special",
                           "map/gelu/bf16/f32/501/perm0/special",
                           "map/tanh/f16/bf16/9x5x7/perm2,0,1"}) {
    const auto s = std::make_unique<subject>(parse(name));
    for (const std::string& backend : backends) {
      if (rows_of(backend, s->c.op).empty()) continue;  // a module may have fewer ops
      for (const arithmetic caller : {arithmetic::usual, arithmetic::flush_denormals, arithmetic::upward,
                                      arithmetic::downward, arithmetic::towards_zero})
        for (const way how : {way::direct, way::planned, way::queued}) {
          target t;
          t.backend = backend;
          t.caller = caller;
          t.how = how;
          const outcome o = run.run(*s, t);
          EXPECT_EQ(o.what, verdict::equal) << name << t.text() << ": " << o.text;
        }
    }
  }
}
TEST(Hostile, EveryOpUnderEveryArithmetic) { every_op_under_every_arithmetic({"cpu"}); }
TEST(Hostile, EveryOpUnderEveryArithmeticElsewhere) {
  if (other_backends().empty()) GTEST_SKIP() << "no backend but cpu runs here";
  every_op_under_every_arithmetic(other_backends());
}

// ---- a trace that cannot be written ---------------------------------------------------

// In a process of its own (below): a file of traces is opened once.
TEST(Untraced, IsToldOnce) {
  const char *why = getenv("UNTRACED_WHY"), *call = getenv("UNTRACED_CALL");
  if (why == nullptr) GTEST_SKIP() << "Hostile.TraceThatCannotBeWritten runs this";
  const context_of c("cpu");
  const float src[4] = {1, 2, 3, 4};
  float dst[4];
  const auto d = lockstep_transpose_packed(4, 2, 2);
  for (int number = 0; number < 8; ++number) {
    ASSERT_EQ(lockstep_transpose(c.self, &d, src, dst, nullptr), LOCKSTEP_OK);
    lockstep_run_info told{};
    told.size = sizeof told;
    ASSERT_EQ(lockstep_last_run(&told), LOCKSTEP_OK);
    EXPECT_EQ(std::strstr(told.why, why) != nullptr, number == std::atoi(call)) << number << " " << told.why;
  }
}

// ---- texts ----------------------------------------------------------------------------

TEST(Hostile, TextsAreWholeAndPrintable) {
  const auto told = [](const std::string& text) {
    lockstep_set_error(text.c_str());
    return std::string(lockstep_last_error());
  };
  const std::string euro = "\xE2\x82\xAC", clef = "\xF0\x9D\x84\x9E";
  EXPECT_EQ(told("caf\xC3\xA9 " + euro + clef), "caf\xC3\xA9 " + euro + clef);
  EXPECT_EQ(told("\x1B[31mred\x7F\n\xC2\x9B"), "?[31mred???");
  // Latin-1, a lone C1 byte, halves of characters, longer than need be, a surrogate, beyond the last character.
  EXPECT_EQ(told("caf\xE9"), "caf\\xe9");
  EXPECT_EQ(told("\x9B"
                 "31m\xE2\x82 \xF0\x9D"),
            "\\x9b31m\\xe2\\x82 \\xf0\\x9d");
  EXPECT_EQ(told("\xC0\xAF \xED\xA0\x80 \xF4\x90\x80\x80"), "\\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80");
  for (size_t length = 1015; length < 1030; ++length)
    for (const std::string& last : {euro, clef, std::string("\xC3\xA9"), std::string("\xFF")}) {
      const std::string text = told(std::string(length, 'x') + last + last);
      const std::string shown = last == "\xFF" ? "\\xff" : last;
      const size_t rest = text.size() - std::min(text.size(), length);
      EXPECT_LE(text.size(), 1023u);
      EXPECT_EQ(rest % shown.size(), 0u) << "cut within a character, at " << length;
      EXPECT_EQ(rest / shown.size(), length >= 1023 ? 0 : std::min<size_t>(2, (1023 - length) / shown.size()));
    }
  lockstep_set_error(lockstep_last_error());
  lockstep_set_error(nullptr);
  EXPECT_STREQ(lockstep_last_error(), "");
}

// ---- threads ---------------------------------------------------------------------

// Runs body in a child and returns its exit code; a hang ends by a signal, which fails.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "the child was killed by signal " << WTERMSIG(status) << " (14: it hung)";
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool equal_on(lockstep_context* context, const subject& s) {
  std::vector<unsigned char> dst = s.before;
  return call(context, s.c, s.src.data(), dst.data(), s.c.offsets.data(), nullptr) == LOCKSTEP_OK && dst == s.after;
}

TEST(Hostile, NoMemoryForThreads) {
  const auto s = std::make_unique<subject>(parse("transpose/b4/700x900"));
  EXPECT_EQ(in_child([&] {
              std::ifstream statm("/proc/self/statm");
              rlim_t pages = 0;
              statm >> pages;
              const rlim_t now = pages * static_cast<rlim_t>(sysconf(_SC_PAGE_SIZE));
              const rlimit limit = {now + (1u << 20), now + (1u << 20)};  // no room for a stack
              lockstep_context_options o = lockstep_context_defaults();
              o.backend = "cpu";
              o.threads = 64;
              lockstep_context* context = nullptr;
              if (lockstep_context_create(&o, &context) != LOCKSTEP_OK) return 1;
              std::vector<unsigned char> dst = s->before;  // (taken before there is no more memory)
              if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
              if (call(context, s->c, s->src.data(), dst.data(), nullptr, nullptr) != LOCKSTEP_OK || dst != s->after)
                return 3;
              lockstep_run_info told{};
              told.size = sizeof told;
              if (lockstep_last_run(&told) != LOCKSTEP_OK) return 4;
              return std::strstr(told.why, "of 64 threads could not be made") != nullptr ? 0 : 5;
            }),
            0);
}

// The file, why it cannot be written, the call from whose story that is known, and the most bytes of a file.
struct untraced {
  const char *path, *why, *call;
  rlim_t most_bytes = RLIM_INFINITY;
};
int calls_untraced(const untraced& u) {
  setenv("LOCKSTEP_TRACE", u.path, 1);
  setenv("UNTRACED_WHY", u.why, 1);
  setenv("UNTRACED_CALL", u.call, 1);
  const rlimit most = {u.most_bytes, RLIM_INFINITY};
  if (u.most_bytes != RLIM_INFINITY) {
    if (freopen("/dev/null", "w", stdout) == nullptr || setrlimit(RLIMIT_FSIZE, &most) != 0) return 2;
  }
  signal(SIGXFSZ, SIG_DFL), signal(SIGPIPE, SIG_DFL);
  execl("/proc/self/exe", "lockstep_check", "--gtest_filter=Untraced.*", nullptr);
  return 3;
}

TEST(Hostile, TraceThatCannotBeWritten) {
  char folder[] = "/tmp/lockstep-trace-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string pipe = std::string(folder) + "/pipe", file = std::string(folder) + "/file";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto expect = [](const untraced& u) { EXPECT_EQ(in_child([&] { return calls_untraced(u); }), 0) << u.path; };
  expect({"/nowhere/at\nall", "/nowhere/at?all, which cannot be written (No such file or directory); nothing is traced",
          "0"});
  expect({"/dev/full", "/dev/full, which cannot be written (No space left on device); calls are missing from it", "1"});
  // A line has about 90 bytes.
  expect({file.c_str(), "which cannot be written (File too large); calls are missing from it", "3", 250});
  const char* no_file = "which cannot be written (it is neither a regular file nor a terminal); nothing is traced";
  expect({pipe.c_str(), no_file, "0"});
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  expect({pipe.c_str(), no_file, "0"});
  close(reader);
  unlink(pipe.c_str());
  unlink(file.c_str());
  // As where /dev/stderr is a pipe.
  int both[2];
  ASSERT_EQ(::pipe(both), 0);
  expect({("/proc/self/fd/" + std::to_string(both[1])).c_str(), no_file, "0"});
  close(both[0]), close(both[1]);
  rmdir(folder);
}

TEST(Hostile, TeamThatThereIsNot) {
  EXPECT_EQ(in_child([] {
              lockstep_context* context = nullptr;
              setenv("LOCKSTEP_TEAM", "opnemp", 1);
              if (lockstep_context_create(nullptr, &context) != LOCKSTEP_INVALID_ARGUMENT) return 1;
              if (std::strstr(lockstep_last_error(), "LOCKSTEP_TEAM is \"opnemp\"") == nullptr) return 2;
              for (const char* team : {"own", "openmp", ""}) {
                setenv("LOCKSTEP_TEAM", team, 1);
                if (lockstep_context_create(nullptr, &context) != LOCKSTEP_OK) return 3;
                lockstep_context_destroy(context);
              }
              return 0;
            }),
            0);
}

TEST(Hostile, OmpNumThreadsBoundsTheDefault) {
  EXPECT_EQ(in_child([] {
              setenv("OMP_NUM_THREADS", "1,8", 1);
              lockstep_device_info info{};
              info.size = sizeof info;
              return lockstep_device_get("cpu", 0, &info) == LOCKSTEP_OK ? info.processors : -1;
            }),
            1);
}

TEST(Hostile, ForksWhileOtherThreadsCall) {
  const context_of shared("cpu", 3);
  const auto s = std::make_unique<subject>(parse("square_sum/ssq/f32/full/200003"));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&, t] {
      while (!stop) {
        if (t == 0) {  // contexts come and go
          const context_of own("cpu", 2);
          wrong += equal_on(own.self, *s) ? 0 : 1;
        } else {
          wrong += equal_on(shared.self, *s) ? 0 : 1;
        }
      }
    });
  for (int i = 0; i < 60 && !HasFailure(); ++i)
    EXPECT_EQ(in_child([&] {
                const context_of own("cpu", 2);
                if (!equal_on(shared.self, *s) || !equal_on(own.self, *s)) return 1;
                if (i % 3 != 0) return 0;
                execl("/bin/true", "true", nullptr);
                return 2;
              }),
              0)
        << "fork " << i;
  stop = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// A call that waits for its turn on a stream finds it given back, and goes on with a new queue.
TEST(Hostile, StreamsGivenBackUnderLoadElsewhere) {
  if (other_backends().empty()) GTEST_SKIP() << "no backend but cpu runs here";
  for (const std::string& backend : other_backends()) {
    const context_of c(backend);
    const auto s = std::make_unique<subject>(parse("square_sum/ssq/f32/full/203"));
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    for (int t = 0; t < 8; ++t)
      callers.emplace_back([&, t] {
        std::vector<unsigned char> dst = s->before;
        lockstep_options o = lockstep_options_defaults();
        o.stream = LOCKSTEP_STREAM_LEGACY;
        for (int i = 0; i < 4000; ++i) {
          if (t == 0 || t == 2) wrong += lockstep_release_stream(c.self, backend.c_str(), o.stream) != LOCKSTEP_OK;
          if (t == 1) wrong += lockstep_synchronize(c.self) != LOCKSTEP_OK;
          if (t < 3) continue;
          o.flags = i % 2 == 0 ? uint32_t{LOCKSTEP_ASYNC} : 0;
          wrong += call(c.self, s->c, s->src.data(), dst.data(), nullptr, &o) != LOCKSTEP_OK;
          if (i % 2 != 0) wrong += dst != s->after;
        }
      });
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong, 0) << backend;
  }
}

TEST(Hostile, StreamsThatAreGivenBack) {
  const context_of c("cpu");
  void* stream = LOCKSTEP_STREAM_LEGACY;
  EXPECT_EQ(lockstep_release_stream(c.self, "cpu", stream), LOCKSTEP_OK) << "never used";
  const float src[4] = {1, 2, 3, 4};
  float dst[4];
  const auto d = lockstep_transpose_packed(4, 2, 2);
  lockstep_options o = lockstep_options_defaults();
  o.stream = stream;
  ASSERT_EQ(lockstep_transpose(c.self, &d, src, dst, &o), LOCKSTEP_OK);
  EXPECT_EQ(lockstep_release_stream(c.self, "cpu", stream), LOCKSTEP_OK);
  ASSERT_EQ(lockstep_transpose(c.self, &d, src, dst, &o), LOCKSTEP_OK);
  EXPECT_EQ(lockstep_release_stream(nullptr, "cpu", stream), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_release_stream(c.self, nullptr, stream), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_release_stream(c.self, "cpu", nullptr), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_release_stream(c.self, "auto", stream), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_release_stream(c.self, "abacus", stream), LOCKSTEP_NO_BACKEND);
}

}  // namespace
}  // namespace lockstep::check
