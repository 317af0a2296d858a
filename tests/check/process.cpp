// process.cpp - one context used by many threads, backends switched during calls, calls
// after fork, golden digests.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <thread>

#include "check.hpp"

namespace lockstep::check {
namespace {
using namespace cases;

const char* const mixed_names[] = {"transpose/b4/300x257",
                                   "transpose/b8/64x64/inplace",
                                   "square_sum/ssq/f32/full/100000",
                                   "square_sum/norm2/f64/rows/20x300/tiny",
                                   "reduce/sum/f32/columns/5000x33",
                                   "reduce/argmin/f32/full/30000/ties",
                                   "reduce/sum/i64/rows/30x40/cross",
                                   "stencil/f32/general/mirror/r4/10007/sweeps3",
                                   "stencil/f64/symmetric/constant/r2/40x41",
                                   "shuffle/b4/idx/w16/op3/n96",
                                   "normalize/layer/f32/20x3000/weight/bias",
                                   "scan/sum/f32/full/100000",
                                   "sums/dot/f32/full/100000",
                                   "reduce_axes/sum/f32/31x3x700/axes0,2",
                                   "convert/f32/f16/300x131/perm1,0/by_tenth"};

// Runs s on a context; "" or what is wrong.
std::string check_once(lockstep_context* context, const subject& s) {
  std::vector<unsigned char> dst = s.before;
  const lockstep_status status =
      call(context, s.c, s.c.in_place ? dst.data() : s.src.data(), dst.data(), s.c.offsets.data(), nullptr);
  if (status != s.want.status) return s.c.name + ": " + lockstep_status_name(status) + " " + lockstep_last_error();
  return dst == s.after ? "" : s.c.name + " differs";
}

TEST(Process, OneContextManyThreadsWhileTheBackendIsSwitched) {
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
  std::vector<subject> subjects;
  for (const char* name : mixed_names) subjects.emplace_back(parse(name));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, done{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = t; !stop; ++i, ++done)
        if (const std::string text = check_once(context, subjects[i % subjects.size()]); !text.empty() && ++wrong <= 5)
          std::fprintf(stderr, "%s\n", text.c_str());
    });
  std::vector<std::string> names = usable_backends();
  names.emplace_back("auto");
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(lockstep_context_set_backend(context, names[static_cast<size_t>(i) % names.size()].c_str()), LOCKSTEP_OK);
    ASSERT_EQ(lockstep_context_set_variant(context, LOCKSTEP_TRANSPOSE, i % 2 == 0 ? "ref" : "auto"), LOCKSTEP_OK);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0) << "of " << done;
  EXPECT_GT(done, 100);
  lockstep_context_destroy(context);
}

// Eight threads that call, plan, queue and give streams back, on every backend here, while the context's settings
// change: LOCKSTEP_STRESS_CALLS calls (two million by hand), else those of a moment.
TEST(Process, StressOfMixedCalls) {
  const char* const asked = getenv("LOCKSTEP_STRESS_CALLS");
  const int64_t wanted = asked != nullptr ? std::atoll(asked) : 20000;
  lockstep_context_options small = lockstep_context_defaults();
  small.threads = 2;
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(&small, &context), LOCKSTEP_OK);
  std::vector<subject> subjects;
  for (const char* name :
       {"transpose/b4/17x33", "transpose/b2/64x64/inplace", "permute/b8/5x7x3/perm2,0,1",
        "square_sum/ssq/f16/rows/7x61", "square_sum/norm2/f32/full/5001", "reduce/sum/f64/columns/40x21",
        "reduce/argmax/i32/full/3000", "stencil/f32/general/mirror/r2/701", "stencil/f64/symmetric/wrap/r1/12x30",
        "shuffle/b4/xor/w8/op3/n96", "normalize/l2/f16/3x5000"})
    subjects.emplace_back(parse(name));
  std::vector<std::string> names = usable_backends();
  const bool ref_everywhere = std::all_of(names.begin(), names.end(), [](const std::string& backend) {
    const std::vector<row> all = rows_of(backend, LOCKSTEP_SHUFFLE);
    return std::any_of(all.begin(), all.end(), [](const row& r) { return r.name == "ref"; });
  });
  std::atomic<int64_t> done{0};
  std::atomic<int> wrong{0};
  const auto told = [&](const char* what, const subject& s) {
    if (++wrong <= 5) std::fprintf(stderr, "%s of %s: %s\n", what, s.c.name.c_str(), lockstep_last_error());
  };
  const auto work = [&](uint64_t state) {
    while (done.fetch_add(1) < wanted && wrong == 0) {
      const uint64_t draw = mix(state++);
      const subject& s = subjects[draw % subjects.size()];
      std::vector<unsigned char> dst = s.before;
      const void* const src = s.c.in_place ? dst.data() : s.src.data();
      lockstep_options o = lockstep_options_defaults();
      const std::string& backend = names[draw / 16 % names.size()];
      if (draw / 64 % 3 == 0) o.backend = backend.c_str();
      if (draw / 256 % 4 == 0) o.stream = LOCKSTEP_STREAM_LEGACY;
      const bool planned = draw / 1024 % 4 == 0, queued = draw / 4096 % 4 == 0;
      if (queued) o.flags = LOCKSTEP_ASYNC;
      if (!planned) {
        if (call(context, s.c, src, dst.data(), nullptr, &o) != LOCKSTEP_OK) told("a call", s);
      } else {
        lockstep_plan* made = nullptr;
        lockstep_options of_plan = o;
        of_plan.stream = nullptr;
        if (plan(context, s.c, nullptr, &of_plan, &made) != LOCKSTEP_OK)
          told("a plan", s);
        else if (lockstep_plan_execute(made, src, dst.data(), &o) != LOCKSTEP_OK)
          told("an execution", s);
        lockstep_plan_destroy(made);
      }
      if (queued && lockstep_synchronize(context) != LOCKSTEP_OK) told("synchronize", s);
      if (dst != s.after) told("other bits", s);
      if (draw / 65536 % 64 == 0 &&
          lockstep_release_stream(context, backend.c_str(), LOCKSTEP_STREAM_LEGACY) != LOCKSTEP_OK)
        told("giving a stream back", s);
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t) threads.emplace_back(work, seed + (t << 40));
  for (int i = 0; done < wanted && wrong == 0; ++i) {
    const char* const variant = i % 3 == 0 && ref_everywhere ? "ref" : "auto";
    EXPECT_EQ(lockstep_context_set_backend(context, names[static_cast<size_t>(i) % names.size()].c_str()), LOCKSTEP_OK);
    EXPECT_EQ(lockstep_context_set_variant(context, static_cast<lockstep_op>(i % LOCKSTEP_OP_COUNT), variant),
              LOCKSTEP_OK);
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0) << "of " << done;
  lockstep_context_destroy(context);
}

// Settings that two threads change at once are both there afterwards.
TEST(Process, SettingsOfTwoThreads) {
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
  const auto ran = [&](lockstep_op op) {
    const float src[32] = {1, 2, 3, 4};
    double dst[32];
    const auto t = lockstep_transpose_packed(4, 2, 2);
    const auto s = lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_UP, 4, 32, 32, 1);
    lockstep_options o = lockstep_options_defaults();
    o.backend = "cpu";
    EXPECT_EQ(op == LOCKSTEP_TRANSPOSE ? lockstep_transpose(context, &t, src, dst, &o)
                                       : lockstep_shuffle(context, &s, src, dst, &o),
              LOCKSTEP_OK);
    lockstep_run_info info{};
    info.size = sizeof info;
    EXPECT_EQ(lockstep_last_run(&info), LOCKSTEP_OK);
    return std::string(info.variant);
  };
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    std::atomic<int> ready{0};
    const auto changes = [&](lockstep_op op) {
      for (++ready; ready < 2;) std::this_thread::yield();
      for (int i = 0; i < 2000; ++i)
        if (lockstep_context_set_variant(context, op, i % 2 == 0 ? "auto" : "ref") != LOCKSTEP_OK) std::abort();
    };
    std::thread other(changes, LOCKSTEP_TRANSPOSE);
    changes(LOCKSTEP_SHUFFLE);
    other.join();
    EXPECT_EQ(ran(LOCKSTEP_TRANSPOSE), "ref");
    EXPECT_EQ(ran(LOCKSTEP_SHUFFLE), "ref");
  }
  lockstep_context_destroy(context);
}

TEST(Process, ErrorTextsBelongToTheirThread) {
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
  const auto mine = lockstep_transpose_packed(3, 1, 1);
  ASSERT_EQ(lockstep_transpose(context, &mine, nullptr, nullptr, nullptr), LOCKSTEP_INVALID_ARGUMENT);
  std::thread([&] {
    EXPECT_STREQ(lockstep_last_error(), "");
    const auto other = lockstep_transpose_packed(5, 1, 1);
    EXPECT_EQ(lockstep_transpose(context, &other, nullptr, nullptr, nullptr), LOCKSTEP_INVALID_ARGUMENT);
  }).join();
  EXPECT_NE(std::string(lockstep_last_error()).find("element_bytes is 3"), std::string::npos);
  lockstep_context_destroy(context);
}

// libgomp's pool does not survive fork; the child must neither hang nor differ.
TEST(Process, CallsAfterForkInTheChild) {
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = "cpu";
  o.threads = 3;
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(&o, &context), LOCKSTEP_OK);
  std::vector<subject> subjects;
  for (const char* name : {"transpose/b4/700x900", "square_sum/ssq/f32/full/1000003", "reduce/sum/f32/columns/20000x33",
                           "stencil/f32/general/mirror/r4/300001"})
    subjects.emplace_back(parse(name));
  for (const subject& s : subjects) ASSERT_EQ(check_once(context, s), "");  // the pool is running
  for (int repeat = 0; repeat < 3; ++repeat) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);  // a hang ends here
      int bad = 0;
      lockstep_context* fresh = nullptr;
      if (lockstep_context_create(&o, &fresh) != LOCKSTEP_OK) _exit(99);
      for (const subject& s : subjects)
        bad += check_once(context, s).empty() ? 0 : 1, bad += check_once(fresh, s).empty() ? 0 : 1;
      std::thread([&] { bad += check_once(fresh, subjects[0]).empty() ? 0 : 1; }).join();
      lockstep_context_destroy(fresh);
      _exit(bad);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "the child was killed by signal " << WTERMSIG(status) << " (14: it hung)";
    EXPECT_EQ(WEXITSTATUS(status), 0) << "results differ in the child";
    for (const subject& s : subjects) ASSERT_EQ(check_once(context, s), "");  // and the parent goes on
  }
  lockstep_context_destroy(context);
}

// Threads are those that the process may run on, not those that the machine has.
TEST(Process, AsManyThreadsAsTheAffinityMaskAllows) {
  cpu_set_t may{};
  ASSERT_EQ(sched_getaffinity(0, sizeof may, &may), 0);
  const auto processors = [] {
    lockstep_device_info info{};
    info.size = sizeof info;
    return lockstep_device_get("cpu", 0, &info) == LOCKSTEP_OK ? info.processors : -1;
  };
  EXPECT_GE(processors(), 1);
  EXPECT_LE(processors(), CPU_COUNT(&may));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    cpu_set_t one{};
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &may)) CPU_SET(cpu, &one);
    _exit(sched_setaffinity(0, sizeof one, &one) != 0 ? 99 : processors());
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(Golden, DigestOfEveryBackendIsTheOneOfThisOrder) {
  std::ifstream file(GOLDEN_FILE);
  std::string golden;
  ASSERT_TRUE(std::getline(file, golden)) << GOLDEN_FILE;
  EXPECT_EQ(digest("oracle"), golden);
  for (const std::string& backend : usable_backends()) EXPECT_EQ(digest(backend), golden) << backend;
}
TEST(Golden, DigestsOfWhatCameLater) {
  const std::pair<cases_of, const char*> lists[] = {{cases_of::more_types, GOLDEN_FOLDER "/more_types.txt"},
                                                    {cases_of::normalize, GOLDEN_FOLDER "/normalize.txt"},
                                                    {cases_of::softmax, GOLDEN_FOLDER "/softmax.txt"},
                                                    {cases_of::gradients, GOLDEN_FOLDER "/gradients.txt"},
                                                    {cases_of::digest, GOLDEN_FOLDER "/digest.txt"},
                                                    {cases_of::scan, GOLDEN_FOLDER "/scan.txt"},
                                                    {cases_of::sums, GOLDEN_FOLDER "/sums.txt"},
                                                    {cases_of::reduce_axes, GOLDEN_FOLDER "/reduce_axes.txt"},
                                                    {cases_of::convert, GOLDEN_FOLDER "/convert.txt"},
                                                    {cases_of::more_reductions, GOLDEN_FOLDER "/more_reductions.txt"},
                                                    {cases_of::times, GOLDEN_FOLDER "/times.txt"},
                                                    {cases_of::map, GOLDEN_FOLDER "/map.txt"}};
  for (const auto& [list, path] : lists) {
    std::ifstream file(path);
    std::string golden;
    ASSERT_TRUE(std::getline(file, golden)) << path;
    EXPECT_EQ(digest("oracle", "", 0, list), golden) << path;
    for (const std::string& isa : isa_levels())
      for (const int threads : {1, 3}) EXPECT_EQ(digest("cpu", isa, threads, list), golden) << path << " " << isa;
  }
}

}  // namespace
}  // namespace lockstep::check
