// stacks.cpp - callers with little stack: every op, alone, planned, measured and in groups, on threads of 64 KiB, on
// those with a little more than the kernels need, and on a stack that is not the thread's own.
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstring>
#include <functional>
#include <memory>

#include "../../lib/call/stack_left.hpp"
#include "../cases/describe.hpp"
#include "check.hpp"
#include "lockstep/group.h"

namespace lockstep::check {
namespace {
using namespace cases;

constexpr size_t little = size_t{64} << 10;
// As little as is enough: the kernels then run on the caller's stack.
constexpr size_t barely_enough = enough_stack_bytes + little;

void on_stack(size_t bytes, const std::function<void()>& body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread{};
  const auto start = [](void* of) -> void* { return (*static_cast<const std::function<void()>*>(of))(), nullptr; };
  ASSERT_EQ(pthread_create(&thread, &attributes, start, const_cast<std::function<void()>*>(&body)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// The cases of an op, and large ones, whose rows and buffers differ.
std::vector<std::unique_ptr<subject>> subjects_of(lockstep_op op) {
  std::vector<std::string> names = list(op, level::quick, seed);
  constexpr size_t most = 40;
  std::vector<std::string> taken;
  for (size_t i = 0; i < names.size(); i += std::max<size_t>(names.size() / most, 1)) taken.push_back(names[i]);
  for (const char* name : {"transpose/b1/2048x4096",
                           "transpose/b2/2048x2048",
                           "transpose/b4/1024x2048",
                           "transpose/b8/1024x1024",
                           "transpose/b16/512x1024",
                           "permute/b4/16x64x64x40/perm3,2,1,0",
                           "permute/b2/300x500/perm1,0",
                           "square_sum/ssq/f32/full/1000003",
                           "square_sum/norm2/f64/columns/5000x33",
                           "reduce/sum/f32/full/1000003",
                           "reduce/sum/f32/columns/5000x33",
                           "reduce/min/i16/columns/5000x33",
                           "reduce/sum/i32/strided/9001/stride7/off1",
                           "stencil/f32/symmetric/nearest/r4/64x64x64",
                           "stencil/f64/general/wrap/r2/300x301/sweeps3",
                           "normalize/layer/f32/20x30000/weight/bias",
                           "scan/sum/f32/full/1000000",
                           "scan/sum/i64/columns/3000x20",
                           "sums/dot/f32/full/1000000",
                           "reduce_axes/sum/f32/31x30x700/axes0,2",
                           "convert/f32/f16/1000x1300/perm1,0/by_tenth",
                           "convert/f64/bf16/700x900/perm1,0"})
    if (parse(name).op == op) taken.push_back(name);
  std::vector<std::unique_ptr<subject>> all;
  for (const std::string& name : taken) all.push_back(std::make_unique<subject>(parse(name)));
  return all;
}

// What one call, or an execution of its plan, leaves; "" or what is wrong.
std::string check_once(lockstep_context* context, const subject& s, bool planned) {
  std::vector<unsigned char> dst = s.before;
  const void* const src = s.c.in_place ? dst.data() : s.src.data();
  lockstep_status status = LOCKSTEP_OK;
  if (planned) {
    lockstep_plan* made = nullptr;
    status = cases::plan(context, s.c, arrays_beside(s.c.offsets.data()), nullptr, &made);
    if (status == LOCKSTEP_OK) status = lockstep_plan_execute(made, src, dst.data(), nullptr);
    const std::string text = lockstep_last_error();
    lockstep_plan_destroy(made);
    if (status != s.want.status) return s.c.name + " planned: " + lockstep_status_name(status) + " " + text;
  } else {
    status = call(context, s.c, src, dst.data(), s.c.offsets.data(), nullptr);
    if (status != s.want.status) return s.c.name + ": " + lockstep_status_name(status) + " " + lockstep_last_error();
    if (status != LOCKSTEP_OK && *lockstep_last_error() == '\0') return s.c.name + " fails without a text";
  }
  return dst == s.after ? "" : s.c.name + " differs";
}

// The calls of an op as one group.
std::string check_group(lockstep_context* context, lockstep_op op, const std::vector<std::unique_ptr<subject>>& all) {
  std::vector<unsigned char> descs;
  std::vector<std::vector<unsigned char>> results;
  std::vector<const void*> srcs;
  std::vector<void*> dsts;
  size_t bytes = 0;
  for (const auto& s : all) {
    if (!s->c.weight.empty() || !s->c.bias.empty() || !s->c.residual.empty() || !s->c.other.empty()) continue;
    const auto one = description_of(s->c, arrays_beside(s->c.offsets.data()));
    bytes = one.size();
    descs.insert(descs.end(), one.begin(), one.end());
    results.push_back(s->before);
    dsts.push_back(results.back().data());
    srcs.push_back(s->c.in_place ? dsts.back() : s->src.data());
  }
  if (srcs.empty()) return "";
  lockstep_plan* plan = nullptr;
  const lockstep_status made = lockstep_plan_group(context, op, descs.data(), bytes, static_cast<int64_t>(srcs.size()),
                                                   srcs.data(), dsts.data(), nullptr, &plan);
  if (made != LOCKSTEP_OK) return std::string("no plan: ") + lockstep_last_error();
  const lockstep_status status = lockstep_plan_execute(plan, nullptr, nullptr, nullptr);
  const std::string text = lockstep_last_error();
  lockstep_plan_destroy(plan);
  if (status != LOCKSTEP_OK && status != LOCKSTEP_OVERFLOW && status != LOCKSTEP_EMPTY) return text;
  size_t k = 0;
  for (const auto& s : all) {
    if (!s->c.weight.empty() || !s->c.bias.empty() || !s->c.residual.empty() || !s->c.other.empty()) continue;
    if (results[k++] != s->after) return s->c.name + " differs in a group";
  }
  return "";
}

class Stacks : public testing::TestWithParam<lockstep_op> {};

TEST_P(Stacks, AreEnough) {
  const auto all = subjects_of(GetParam());
  for (const size_t bytes : {little, barely_enough})
    for (const std::string& isa : isa_levels()) {
      if (isa.find(':') != std::string::npos) continue;  // the same kernels with other numbers
      for (const int threads : {1, 3}) {
        std::string wrong;
        on_stack(bytes, [&] {
          lockstep_context_options o = lockstep_context_defaults();
          o.backend = "cpu";
          o.cpu_isa = isa.c_str();
          o.threads = threads;
          lockstep_context* context = nullptr;
          if (lockstep_context_create(&o, &context) != LOCKSTEP_OK) wrong = lockstep_last_error();
          for (size_t i = 0; i < all.size() && wrong.empty(); ++i) wrong = check_once(context, *all[i], i % 3 == 2);
          if (wrong.empty()) wrong = check_group(context, GetParam(), all);
          lockstep_context_destroy(context);
        });
        EXPECT_EQ(wrong, "") << bytes << " bytes, " << isa << ", " << threads << " threads";
      }
    }
}
INSTANTIATE_TEST_SUITE_P(Ops, Stacks, every_op(), op_name);

// Tuning, measuring and limits run kernels too.
TEST(StacksOf, OtherEntries) {
  std::string wrong;
  on_stack(little, [&] {
    lockstep_context* context = nullptr;
    if (lockstep_context_create(nullptr, &context) != LOCKSTEP_OK) wrong = "no context";
    if (!wrong.empty()) return;
    const lockstep_transpose_desc d = lockstep_transpose_packed(2, 1024, 1024);
    lockstep_options tune = lockstep_options_defaults();
    tune.backend = "cpu";
    tune.flags = LOCKSTEP_RETUNE | LOCKSTEP_TUNE;
    lockstep_plan* plan = nullptr;
    double ms[2] = {};
    std::vector<unsigned char> src(2 << 20), dst(2 << 20);
    if (lockstep_plan_transpose(context, &d, &tune, &plan) != LOCKSTEP_OK ||
        lockstep_plan_measure(plan, src.data(), dst.data(), 0, 2, ms) != LOCKSTEP_OK ||
        lockstep_measure_limit(context, "cpu", LOCKSTEP_LIMIT_COPY, 1 << 20, 0, 2, ms) != LOCKSTEP_OK)
      wrong = lockstep_last_error();
    lockstep_plan_destroy(plan);
    lockstep_context_destroy(context);
  });
  EXPECT_EQ(wrong, "");
}

// A coroutine's stack: the thread's own is large, but this one has 64 KiB, and below it memory that must not be
// touched.
TEST(StacksOf, ACoroutine) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not follow a change of stacks";
#endif
  static std::unique_ptr<subject> s;
  static lockstep_context* context = nullptr;
  static std::string wrong;
  s = std::make_unique<subject>(parse("convert/f32/f16/1000x1300/perm1,0/by_tenth"));
  ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
  ASSERT_EQ(check_once(context, *s, false), "");  // the thread's own stack is known by now
  constexpr size_t below = size_t{1} << 20;
  void* const memory = mmap(nullptr, below + little, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory, below, PROT_NONE), 0);
  static ucontext_t outside, inside;
  ASSERT_EQ(getcontext(&inside), 0);
  inside.uc_stack.ss_sp = static_cast<char*>(memory) + below;
  inside.uc_stack.ss_size = little;
  inside.uc_link = &outside;
  makecontext(
      &inside, [] { wrong = check_once(context, *s, false); }, 0);
  ASSERT_EQ(swapcontext(&outside, &inside), 0);
  EXPECT_EQ(wrong, "");
  EXPECT_EQ(check_once(context, *s, false), "");
  munmap(memory, below + little);
  lockstep_context_destroy(context);
  s.reset();
}

}  // namespace
}  // namespace lockstep::check
