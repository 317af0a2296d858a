// allocations.cpp - counts and denies allocations by operator new. Executing a plan allocates nothing. When any of the
// library's allocations fails, the call returns OUT_OF_MEMORY, nothing leaks, and the next call works. (faults.cpp
// tests the caller's allocator.)
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <new>
#include <thread>

#include "check.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1  // the sanitizer's malloc stays
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__GLIBC__) && !defined(SANITIZED)
#define COUNTS_MALLOC 1
#endif

namespace {
std::atomic<bool> counting{false};
std::atomic<long> news{0}, mallocs{0}, live{0}, fail_at{-1};

void* taken(size_t bytes, size_t alignment) {
  if (counting && ++news == fail_at) return nullptr;
  void* const p = alignment <= alignof(std::max_align_t)
                      ? std::malloc(bytes)
                      : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (p != nullptr) ++live;
  return p;
}
void* given(size_t bytes, size_t alignment) {
  if (void* const p = taken(bytes, alignment)) return p;
  throw std::bad_alloc();
}
void freed(void* p) {
  if (p != nullptr) --live;
  std::free(p);
}
constexpr size_t usual = alignof(std::max_align_t);
}  // namespace

void* operator new(size_t n) { return given(n, usual); }
void* operator new[](size_t n) { return given(n, usual); }
void* operator new(size_t n, std::align_val_t a) { return given(n, static_cast<size_t>(a)); }
void* operator new[](size_t n, std::align_val_t a) { return given(n, static_cast<size_t>(a)); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return taken(n, usual); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return taken(n, usual); }
void operator delete(void* p) noexcept { freed(p); }
void operator delete[](void* p) noexcept { freed(p); }
void operator delete(void* p, size_t) noexcept { freed(p); }
void operator delete[](void* p, size_t) noexcept { freed(p); }
void operator delete(void* p, std::align_val_t) noexcept { freed(p); }
void operator delete[](void* p, std::align_val_t) noexcept { freed(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { freed(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { freed(p); }

#if defined(COUNTS_MALLOC)
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void* malloc(size_t n) { return counting ? ++mallocs : 0, __libc_malloc(n); }
void* calloc(size_t n, size_t size) { return counting ? ++mallocs : 0, __libc_calloc(n, size); }
void* realloc(void* p, size_t n) { return counting ? ++mallocs : 0, __libc_realloc(p, n); }
void* memalign(size_t alignment, size_t n) { return counting ? ++mallocs : 0, __libc_memalign(alignment, n); }
void* aligned_alloc(size_t alignment, size_t n) { return memalign(alignment, n); }
int posix_memalign(void** p, size_t alignment, size_t n) {
  *p = memalign(alignment, n);
  return *p != nullptr ? 0 : ENOMEM;
}
}
#endif

namespace lockstep::check {
namespace {
using namespace cases;

const char* const names[] = {"transpose/b4/70x50",
                             "transpose/b4/700x500",
                             "transpose/b4/67x67/inplace",
                             "permute/b4/6x5x4x3/perm3,2,1,0",
                             "square_sum/norm2/f64/full/5000/huge",
                             "square_sum/ssq/f32/full/1048576",
                             "square_sum/ssq/f32/columns/300x70",
                             "reduce/sum/f32/full/1048576",
                             "reduce/sum/i64/columns/100x40/small",
                             "reduce/argmax/f32/nonempty/20x30",
                             "reduce/max/f32/columns/300x20",
                             "stencil/f32/general/mirror/r4/1000/sweeps3",
                             "stencil/f64/general/wrap/r2/9x10x35",
                             "stencil/f32/general/valid/r2/60x61/sweeps4",
                             "shuffle/b4/idx/w16/op3/n96",
                             "normalize/layer/bf16/20x3000/weight/bias",
                             "scan/sum/f32/full/100000",
                             "sums/dot/bf16/mixed/40x3000",
                             "reduce_axes/sum/f32/31x3x700/axes0,2",
                             "convert/f32/f16/300x131/perm1,0/by_tenth"};

// One case with buffers of its own, so that a call allocates nothing but what the library does.
struct prepared {
  subject s;
  std::vector<unsigned char> src, dst;
  explicit prepared(const char* name) : s(parse(name)), src(s.src), dst(s.before) {}
  const void* from() { return s.c.in_place ? dst.data() : src.data(); }
  void again() { std::copy(s.before.begin(), s.before.end(), dst.begin()); }
  bool right() const { return dst == s.after; }
};

lockstep_context* context_of(int threads) {
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = "cpu";
  o.threads = threads;
  lockstep_context* context = nullptr;
  EXPECT_EQ(lockstep_context_create(&o, &context), LOCKSTEP_OK) << lockstep_last_error();
  return context;
}

// Every op by a plan, counted from the thread's first execution on.
void expect_plans_take_nothing(int threads) {
  lockstep_context* const context = context_of(threads);
  std::vector<prepared> all;
  std::vector<lockstep_plan*> plans;
  for (const char* name : names) {
    all.emplace_back(name);
    plans.push_back(nullptr);
    prepared& p = all.back();
    ASSERT_EQ(plan(context, p.s.c, p.s.c.offsets.data(), nullptr, &plans.back()), LOCKSTEP_OK) << lockstep_last_error();
  }
  std::thread([&] {
    // OpenMP makes this thread's team, and the C library takes memory once a thread to tell where its stack is.
    prepared& first = all[1];
    EXPECT_EQ(call(context, first.s.c, first.from(), first.dst.data(), nullptr, nullptr), LOCKSTEP_OK)
        << lockstep_last_error();
    for (int round = 0; round < 2; ++round)
      for (size_t i = 0; i < all.size(); ++i) {
        prepared& p = all[i];
        p.again();
        news = mallocs = 0;
        counting = true;
        const lockstep_status status = lockstep_plan_execute(plans[i], p.from(), p.dst.data(), nullptr);
        counting = false;
        EXPECT_EQ(status, p.s.want.status) << names[i] << " " << lockstep_last_error();
        EXPECT_EQ(news, 0) << names[i] << ", execution " << round << ", " << threads << " thread(s)";
        EXPECT_EQ(mallocs, 0) << names[i] << ", execution " << round << ", " << threads << " thread(s)";
        EXPECT_TRUE(p.right()) << names[i];
        lockstep_run_info info{};
        info.size = sizeof info;
        EXPECT_EQ(lockstep_last_run(&info), LOCKSTEP_OK);
        EXPECT_STREQ(info.backend, "cpu");
        EXPECT_STRNE(info.variant, "");
      }
  }).join();
  for (lockstep_plan* p : plans) lockstep_plan_destroy(p);
  lockstep_context_destroy(context);
}

// Calls in a row until one fails; only they are counted.
class caller {
 public:
  // body() of one call whose status is good, or OUT_OF_MEMORY; false once that has come.
  bool operator()(const char* what, const std::function<lockstep_status()>& body, lockstep_status good = LOCKSTEP_OK) {
    if (out_of_memory || wrong[0] != '\0') return false;
    counting = true;
    const lockstep_status status = body();
    counting = false;
    if (status == good) return true;
    out_of_memory = status == LOCKSTEP_OUT_OF_MEMORY;
    if (!out_of_memory || lockstep_last_error()[0] == '\0')
      std::snprintf(wrong, sizeof wrong, "%s: %s \"%s\"", what, lockstep_status_name(status), lockstep_last_error());
    return false;
  }
  bool out_of_memory = false;
  char wrong[512] = {};
};
// A function that answers otherwise than by a status.
lockstep_status told(bool well) {
  return well                                                                  ? LOCKSTEP_OK
         : std::strstr(lockstep_last_error(), "out of host memory") != nullptr ? LOCKSTEP_OUT_OF_MEMORY
                                                                               : LOCKSTEP_INTERNAL;
}

// Every function of the ABI, a bad argument too (its text takes memory).
void everything(std::vector<prepared>& all, caller& in) {
  const lockstep_transpose_desc bad = lockstep_transpose_packed(3, 4, 4);
  lockstep_context* context = nullptr;
  lockstep_context_options o = lockstep_context_defaults();
  o.variants = "transpose=ref,shuffle=auto";
  o.cpu_isa = "baseline";
  o.threads = 2;
  in("context_create", [&] { return lockstep_context_create(&o, &context); });
  in("set_backend", [&] { return lockstep_context_set_backend(context, "cpu"); });
  in("set_backend auto", [&] { return lockstep_context_set_backend(context, "auto"); });
  in("set_variant", [&] { return lockstep_context_set_variant(context, LOCKSTEP_TRANSPOSE, "tiled"); });
  in("set_variant auto", [&] { return lockstep_context_set_variant(context, LOCKSTEP_TRANSPOSE, nullptr); });
  in(
      "unknown variant", [&] { return lockstep_context_set_variant(context, LOCKSTEP_REDUCE, "magic"); },
      LOCKSTEP_NO_VARIANT);
  in(
      "bad transpose", [&] { return lockstep_transpose(context, &bad, nullptr, nullptr, nullptr); },
      LOCKSTEP_INVALID_ARGUMENT);
  lockstep_model_info model{};
  model.size = sizeof model;
  in("model_get", [&] { return lockstep_model_get(context, &model); });
  in("backend_count", [&] { return told(lockstep_backend_count() > 0); });
  in("backend_path", [&] { return told(lockstep_backend_path()[0] != '\0'); });
  lockstep_backend_info backend{};
  backend.size = sizeof backend;
  in("backend_get", [&] { return lockstep_backend_get(0, &backend); });
  lockstep_device_info device{};
  device.size = sizeof device;
  in("device_get", [&] { return lockstep_device_get("cpu", 0, &device); });
  in("variant_count", [&] { return told(lockstep_variant_count("cpu", LOCKSTEP_STENCIL) > 0); });
  lockstep_variant_info variant{};
  variant.size = sizeof variant;
  in("variant_get", [&] { return lockstep_variant_get("cpu", LOCKSTEP_STENCIL, 0, &variant); });
  void* memory = nullptr;
  in("alloc", [&] { return lockstep_alloc(context, "cpu", LOCKSTEP_HOST, 4096, &memory); });
  in("copy", [&] { return lockstep_copy(context, "cpu", all[0].src.data(), memory, 4096); });
  in("pin", [&] { return told(lockstep_pin(context, "cpu", memory, 4096) != LOCKSTEP_OK); });
  in("unpin", [&] { return told(lockstep_unpin(context, "cpu", memory) != LOCKSTEP_OK); });
  lockstep_options queued = lockstep_options_defaults();
  queued.flags = LOCKSTEP_ASYNC;
  lockstep_run_info ran{};
  ran.size = sizeof ran;
  double ms = 0;
  for (prepared& p : all) {
    const char* name = p.s.c.name.c_str();
    p.again();
    if (in(name, [&] { return call(context, p.s.c, p.from(), p.dst.data(), nullptr, nullptr); }) && !p.right())
      std::snprintf(in.wrong, sizeof in.wrong, "%s differs", name);
    in("last_run", [&] { return lockstep_last_run(&ran); });
    p.again();
    in("queued", [&] { return call(context, p.s.c, p.from(), p.dst.data(), nullptr, &queued); });
    in("synchronize", [&] { return lockstep_synchronize(context); });
    lockstep_plan* made = nullptr;
    size_t bytes = 0;
    in("plan", [&] { return plan(context, p.s.c, nullptr, nullptr, &made); });
    in("plan_workspace", [&] { return lockstep_plan_workspace(made, &bytes); });
    for (int twice = 0; twice < 2; ++twice) {
      p.again();
      if (in("plan_execute", [&] { return lockstep_plan_execute(made, p.from(), p.dst.data(), nullptr); }) &&
          !p.right())
        std::snprintf(in.wrong, sizeof in.wrong, "%s by a plan differs", name);
    }
    in("plan_measure", [&] { return lockstep_plan_measure(made, p.from(), p.dst.data(), 0, 1, &ms); });
    counting = true;
    lockstep_plan_destroy(made);
    counting = false;
  }
  in("measure_limit", [&] { return lockstep_measure_limit(context, "cpu", LOCKSTEP_LIMIT_COPY, 4096, 0, 1, &ms); });
  if (memory != nullptr) {  // given back whatever has failed before
    caller last;
    if (!last("free", [&] { return lockstep_free(context, "cpu", LOCKSTEP_HOST, 4096, memory); })) {
      EXPECT_EQ(lockstep_free(context, "cpu", LOCKSTEP_HOST, 4096, memory), LOCKSTEP_OK);
    }
  }
  counting = true;
  lockstep_context_destroy(context);
  counting = false;
}

struct story {
  bool reached = false, out_of_memory = false;
  long live = 0;
  char wrong[512] = {};
};
// With the n-th `operator new` failing (-1: none), and once more with none.
story fails_at(std::vector<prepared>& all, long n) {
  story told;
  const long before = live;
  caller first;
  news = 0, fail_at = n;
  everything(all, first);
  told.reached = n > 0 && news >= n;
  told.out_of_memory = first.out_of_memory;
  fail_at = -1;
  caller second;
  everything(all, second);
  told.live = live - before;
  if (second.out_of_memory) std::snprintf(second.wrong, sizeof second.wrong, "out of memory for good");
  std::memcpy(told.wrong, first.wrong[0] != '\0' ? first.wrong : second.wrong, sizeof told.wrong);
  return told;
}
// The same in a process of its own, where the library does everything for the first time.
story fails_in_a_child(std::vector<prepared>& all, long n) {
  int ends[2] = {};
  story told;
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    told = fails_at(all, n);
    _exit(write(ends[1], &told, sizeof told) == sizeof told ? 0 : 1);
  }
  close(ends[1]);
  const bool came = read(ends[0], &told, sizeof told) == sizeof told;
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (!came)
    std::snprintf(told.wrong, sizeof told.wrong, "the process ended, %s %d", WIFSIGNALED(status) ? "signal" : "exit",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  return told;
}

std::vector<prepared> some() {
  std::vector<prepared> all;
  for (const char* name :
       {"transpose/b4/70x50", "permute/b4/6x5x4x3/perm3,2,1,0", "square_sum/norm2/f64/full/5000/huge",
        "reduce/sum/f32/full/100000", "stencil/f32/general/mirror/r4/1000/sweeps3", "shuffle/b4/idx/w16/op3/n96",
        "normalize/rms/f16/40x5000/weight"})
    all.emplace_back(name);
  return all;
}

// One allocation in `stride` is tried a day, from the `first` on; LOCKSTEP_DAY=all tries each.
constexpr long stride = 3;
long first() {
  const char* const day = std::getenv("LOCKSTEP_DAY");
  const long today = day != nullptr ? std::atol(day) : static_cast<long>(std::time(nullptr) / 86400);
  return 1 + today % stride;
}
bool every() {
  const char* const day = std::getenv("LOCKSTEP_DAY");
  return day != nullptr && std::strcmp(day, "all") == 0;
}

template <class Fails>
void each_fails_once(const Fails& fails, std::vector<prepared>& all) {
  const story none = fails(all, -1);
  ASSERT_STREQ(none.wrong, "");
  ASSERT_FALSE(none.out_of_memory);
  int told = 0;
  const long step = every() ? 1 : stride;
  long n = every() ? 1 : first();
  for (; n < 100000; n += step) {
    const story one = fails(all, n);
    EXPECT_STREQ(one.wrong, "") << "allocation " << n;
    EXPECT_EQ(one.live, none.live) << "leak after allocation " << n;
    told += one.out_of_memory;
    if (!one.reached && one.wrong[0] == '\0') break;
    if (testing::Test::HasFailure()) break;
  }
  std::printf("  %ld allocations, one in %ld failed once; %d calls said so\n", n - 1, step, told);
  EXPECT_GT(told, 50 / step);
}

// A device's driver takes memory of its own, and seconds to start: asked in a process of its own.
bool a_device_is_there() {
  const pid_t child = fork();
  if (child == 0) {
    lockstep_backend_info info{};
    info.size = sizeof info;
    for (int32_t i = 0; i < lockstep_backend_count(); ++i)
      if (lockstep_backend_get(i, &info) == LOCKSTEP_OK && info.usable != 0 && std::strncmp(info.name, "cpu", 3) != 0)
        _exit(1);
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status != 0;
}

// The first test of the program: nothing in it has called the library yet.
TEST(Allocations, EachFailsOnceInAFreshProcess) {
  if (a_device_is_there()) GTEST_SKIP() << "its driver takes memory too";
  setenv("LOCKSTEP_TRACE", "/dev/null", 1);
  std::vector<prepared> all = some();
  each_fails_once(fails_in_a_child, all);
  unsetenv("LOCKSTEP_TRACE");
}

TEST(Allocations, EachFailsOnceWithThreads) {
  if (a_device_is_there()) GTEST_SKIP() << "its driver takes memory too";
  std::vector<prepared> all = some();
  EXPECT_STREQ(fails_at(all, -1).wrong, "");  // what the process keeps
  each_fails_once(fails_at, all);
}

TEST(Allocations, APlanTakesNoneWhenExecuted) {
#if !defined(COUNTS_MALLOC)
  std::printf("  malloc is the sanitizer's or not glibc's: operator new alone is counted\n");
#endif
  expect_plans_take_nothing(1);
  expect_plans_take_nothing(2);
}

// What an op that goes in place by another way needs for that is taken once.
TEST(Allocations, APlanTakesTheOtherWaysWorkspaceOnce) {
  lockstep_context* const context = context_of(1);
  prepared p("transpose/b4/170x331/inplace");
  lockstep_plan* made = nullptr;
  ASSERT_EQ(plan(context, p.s.c, nullptr, nullptr, &made), LOCKSTEP_OK) << lockstep_last_error();
  for (int round = 0; round < 3; ++round) {
    p.again();
    news = mallocs = 0;
    counting = true;
    const lockstep_status status = lockstep_plan_execute(made, p.from(), p.dst.data(), nullptr);
    counting = false;
    EXPECT_EQ(status, LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_TRUE(p.right());
    EXPECT_EQ(news, 0);
    EXPECT_LE(mallocs, round == 0 ? 1 : 0);
  }
  lockstep_plan_destroy(made);
  lockstep_context_destroy(context);
}

}  // namespace
}  // namespace lockstep::check

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
