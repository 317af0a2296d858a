// groups.cpp - groups of calls (group.h): the bits of the single calls on every backend, in one call and by plans;
// errors name the description.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>

#include "../cases/describe.hpp"
#include "check.hpp"
#include "context_of.hpp"
#include "lockstep/group.hpp"

namespace lockstep::check {
namespace {
using namespace cases;

// Memory of a backend's own kind; the host's for the CPU and for modules that compute there.
class memory {
 public:
  memory(lockstep_context* context, const std::string& backend, size_t bytes) : context_(context), backend_(backend) {
    bytes_ = bytes;
    if (backend != "cpu" && lockstep_alloc(context, backend.c_str(), LOCKSTEP_DEVICE, bytes, &device_) != LOCKSTEP_OK)
      device_ = nullptr;
    if (device_ == nullptr) host_.resize(bytes + 64);
  }
  ~memory() {
    if (device_ != nullptr) (void)lockstep_free(context_, backend_.c_str(), LOCKSTEP_DEVICE, bytes_, device_);
  }
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  unsigned char* data() {
    if (device_ != nullptr) return static_cast<unsigned char*>(device_);
    return host_.data() + (64 - reinterpret_cast<uintptr_t>(host_.data()) % 64) % 64;
  }
  void put(const unsigned char* from) { copy(from, data()); }
  std::vector<unsigned char> get() {
    std::vector<unsigned char> all(bytes_);
    copy(data(), all.data());
    return all;
  }

 private:
  void copy(const void* from, void* to) {
    if (bytes_ != 0) {
      ASSERT_EQ(lockstep_copy(context_, backend_.c_str(), from, to, bytes_), LOCKSTEP_OK) << lockstep_last_error();
    }
  }
  lockstep_context* context_;
  std::string backend_;
  size_t bytes_ = 0;
  void* device_ = nullptr;
  std::vector<unsigned char> host_;
};

// Given: in a workspace of the caller's, as large as a plan says.
enum class making { at_once, queued, planned, at_once_given, planned_given };

// A group of cases: their arrays side by side.
struct group_of_cases {
  std::deque<subject> all;  // stays in place: descriptions point into it
  std::vector<std::vector<unsigned char>> descs;
  std::vector<size_t> src_at, dst_at;
  std::vector<unsigned char> src, before;

  static size_t beyond(size_t at) { return (at + 255) / 256 * 256; }
  void add(const test_case& c) {
    const subject& s = all.emplace_back(c);
    descs.push_back(description_of(s.c, arrays_beside(s.c.offsets.data())));
    const size_t up = static_cast<size_t>(c.src_shift) * c.src.element_bytes,
                 down = static_cast<size_t>(c.dst_shift) * c.dst.element_bytes;
    src_at.push_back(beyond(src.size()) + up);
    src.resize(src_at.back() + s.src.size() + 16);
    std::copy(s.src.begin(), s.src.end(), src.begin() + static_cast<int64_t>(src_at.back()));
    dst_at.push_back(beyond(before.size()) + (c.in_place ? up : down));
    before.resize(dst_at.back() + s.before.size() + 16);
    std::copy(s.before.begin(), s.before.end(), before.begin() + static_cast<int64_t>(dst_at.back()));
  }
};

// Runs the group and compares status, text and every byte of dst; "" or what is wrong.
std::string check_group(lockstep_context* context, const std::string& backend, lockstep_op op, const group_of_cases& g,
                        making how) {
  memory src(context, backend, g.src.size()), dst(context, backend, g.before.size());
  src.put(g.src.data());
  dst.put(g.before.data());
  std::vector<unsigned char> descs;
  std::vector<const void*> srcs;
  std::vector<void*> dsts;
  std::vector<unsigned char> want = g.before;
  lockstep_status status = LOCKSTEP_OK;
  size_t first = 0;
  for (size_t i = 0; i < g.all.size(); ++i) {
    const subject& s = g.all[i];
    descs.insert(descs.end(), g.descs[i].begin(), g.descs[i].end());
    dsts.push_back(dst.data() + g.dst_at[i]);
    srcs.push_back(s.c.in_place ? dsts.back() : src.data() + g.src_at[i]);
    std::copy(s.after.begin(), s.after.end(), want.begin() + static_cast<int64_t>(g.dst_at[i]));
    if (status == LOCKSTEP_OK && s.want.status != LOCKSTEP_OK) status = s.want.status, first = i;
  }
  const auto count = static_cast<int64_t>(g.all.size());
  lockstep_options o = lockstep_options_defaults();
  if (how == making::queued) o.flags |= LOCKSTEP_ASYNC;
  lockstep_status got = LOCKSTEP_OK;
  const bool planned = how == making::planned || how == making::planned_given;
  const bool given = how == making::at_once_given || how == making::planned_given;
  const auto call = [&](lockstep_plan** plan) {
    return plan != nullptr ? lockstep_plan_group(context, op, descs.data(), g.descs[0].size(), count, srcs.data(),
                                                 dsts.data(), &o, plan)
                           : lockstep_execute_group(context, op, descs.data(), g.descs[0].size(), count, srcs.data(),
                                                    dsts.data(), &o);
  };
  lockstep_plan* plan = nullptr;
  size_t bytes = 0;
  if (planned || given) got = call(&plan);
  if (got != LOCKSTEP_OK || (given && lockstep_plan_workspace(plan, &bytes) != LOCKSTEP_OK))
    return std::string("no plan: ") + lockstep_last_error();
  memory workspace(context, backend, bytes + 256);
  const auto run = [&](size_t of) {
    if (given) o.workspace = workspace.data() + (256 - reinterpret_cast<uintptr_t>(workspace.data()) % 256) % 256;
    if (given) o.workspace_bytes = of;
    return planned ? lockstep_plan_execute(plan, nullptr, nullptr, &o) : call(nullptr);
  };
  // A byte less is refused, with the plan's number, before anything has run.
  if (given && bytes != 0) {
    const std::string needs = "this group needs " + std::to_string(bytes);
    const bool refused = run(bytes - 1) == LOCKSTEP_INVALID_ARGUMENT;
    if (!refused || std::string(lockstep_last_error()).find(needs) == std::string::npos)
      return "a workspace of " + std::to_string(bytes - 1) + " bytes: " + lockstep_last_error();
    if (dst.get() != g.before) return "something ran in a workspace that is too small";
  }
  got = run(bytes);
  lockstep_plan_destroy(plan);
  const std::string text = lockstep_last_error();
  const lockstep_status waited = how == making::queued ? lockstep_synchronize(context) : LOCKSTEP_OK;
  const std::string late = lockstep_last_error();
  // A queued call tells its failure itself, or leaves it to lockstep_synchronize, but not both.
  const bool told_late = how == making::queued && got == LOCKSTEP_OK;
  if (!told_late && waited != LOCKSTEP_OK) return "told twice: " + text + " | " + late;
  if (told_late) got = waited;
  if (got != status) return std::string(lockstep_status_name(got)) + ": " + text + " | " + lockstep_last_error();
  const std::string names = "descs[" + std::to_string(first) + "]";
  const std::string told = told_late ? late : text;
  if (status != LOCKSTEP_OK && told.find(names) == std::string::npos) return "no " + names + " in: " + told;
  const std::vector<unsigned char> now = dst.get();
  for (size_t i = 0; i < g.all.size(); ++i) {
    const size_t end = i + 1 < g.all.size() ? g.dst_at[i + 1] : now.size();
    const auto from = static_cast<int64_t>(g.dst_at[i]), to = static_cast<int64_t>(end);
    if (!std::equal(now.begin() + from, now.begin() + to, want.begin() + from))
      return g.all[i].c.name + " (descs[" + std::to_string(i) + "]) differs";
  }
  return "";
}

// Whether the context's backend has a row for the case.
bool taken_alone(lockstep_context* context, const test_case& c) {
  lockstep_plan* plan = nullptr;
  const lockstep_status status = cases::plan(context, c, arrays_beside(c.offsets.data()), nullptr, &plan);
  lockstep_plan_destroy(plan);
  return status != LOCKSTEP_UNSUPPORTED;
}

class Groups : public testing::TestWithParam<lockstep_op> {};

// The cases of an op, in groups that mix everything.
TEST_P(Groups, HaveTheBitsOfTheCases) {
  const lockstep_op op = GetParam();
  const std::vector<std::string> names = list(op, level::quick, seed);
  constexpr size_t most = 96;
  const size_t step = std::max<size_t>(names.size() / most, 1);
  for (const std::string& backend : usable_backends()) {
    if (!required.empty() && backend != required) continue;
    for (size_t start = 0; start < 3; ++start) {
      for (const int threads : {1, 3}) {
        const context_of c(backend, threads);
        group_of_cases g;
        for (size_t i = start; i < names.size() && g.all.size() < most; i += step) {
          const test_case one = parse(names[i]);
          if (one.src.span_bytes() + one.dst.span_bytes() < (1u << 21) && taken_alone(c.self, one)) g.add(one);
        }
        for (const making how :
             {making::at_once, making::queued, making::planned, making::at_once_given, making::planned_given})
          ASSERT_EQ(check_group(c.self, backend, op, g, how), "")
              << lockstep_op_name(op) << " on " << backend << ", " << threads << " threads, start " << start;
        if (backend != "cpu") break;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Ops, Groups, every_op(), op_name);

// Random sums of squares and norms of 0 to 300,000 elements, all dtypes, beside single calls.
TEST(Groups, SquareSumsOfAllSizes) {
  uint64_t state = seed;
  const auto draw = [&](uint64_t below) { return mix(++state) % below; };
  constexpr size_t elements = 300000, count = 200;
  std::vector<double> numbers(elements + 64);
  for (double& x : numbers) x = std::ldexp(static_cast<double>(draw(1 << 20)) - (1 << 19), -16);
  std::vector<float> floats(numbers.begin(), numbers.end());
  for (const std::string& backend : usable_backends()) {
    if (!required.empty() && backend != required) continue;
    const context_of c(backend, 3);
    memory f32(c.self, backend, floats.size() * 4), f64(c.self, backend, numbers.size() * 8);
    f32.put(reinterpret_cast<const unsigned char*>(floats.data()));
    f64.put(reinterpret_cast<const unsigned char*>(numbers.data()));
    memory together(c.self, backend, count * 64), alone(c.self, backend, count * 64);
    const std::vector<unsigned char> nothing(count * 64, 0x5A);
    together.put(nothing.data());
    alone.put(nothing.data());
    std::vector<lockstep_reduce_desc> descs;
    std::vector<const void*> srcs;
    std::vector<void*> dsts;
    for (size_t i = 0; i < count; ++i) {
      const bool wide = draw(3) == 0;
      const lockstep_dtype dtype = wide ? LOCKSTEP_F64 : draw(4) == 0 ? LOCKSTEP_BF16 : LOCKSTEP_F32;
      const auto n = static_cast<int64_t>(draw(5) == 0 ? draw(40) : draw(2) == 0 ? draw(6000) : draw(elements + 1));
      lockstep_reduce_desc d =
          lockstep_reduce_full(draw(2) == 0 ? LOCKSTEP_NORM2 : LOCKSTEP_SUM_OF_SQUARES, dtype, n, 1);
      if (n > 0 && n < 1000 && draw(2) == 0) d = lockstep_reduce_rows(d.reduction, dtype, 5, n, n);
      if (draw(2) == 0) d.result = LOCKSTEP_F32;
      descs.push_back(d);
      const size_t shift = draw(3) == 0 ? draw(17) : 4 * draw(4);
      srcs.push_back((wide ? f64.data() : f32.data()) + shift * lockstep_dtype_bytes(dtype));
      dsts.push_back(together.data() + i * 64);
      ASSERT_EQ(lockstep_square_sum(c.self, &d, srcs[i], alone.data() + i * 64, nullptr), LOCKSTEP_OK)
          << lockstep_last_error();
    }
    ASSERT_EQ(lockstep_execute_group(c.self, LOCKSTEP_SQUARE_SUM, descs.data(), sizeof descs[0], count, srcs.data(),
                                     dsts.data(), nullptr),
              LOCKSTEP_OK)
        << lockstep_last_error();
    lockstep_run_info info{};
    info.size = sizeof info;
    ASSERT_EQ(lockstep_last_run(&info), LOCKSTEP_OK);
    if (backend == "cpu" || backend == "cuda") {
      EXPECT_STREQ(info.variant, "grouped");
    }
    const auto want = alone.get();
    EXPECT_EQ(together.get(), want) << backend;
    together.put(nothing.data());
    lockstep_plan* plan = nullptr;
    ASSERT_EQ(lockstep_plan_group(c.self, LOCKSTEP_SQUARE_SUM, descs.data(), sizeof descs[0], count, srcs.data(),
                                  dsts.data(), nullptr, &plan),
              LOCKSTEP_OK)
        << lockstep_last_error();
    for (int twice = 0; twice < 2; ++twice)
      EXPECT_EQ(lockstep_plan_execute(plan, nullptr, nullptr, nullptr), LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_EQ(together.get(), want) << backend << ", planned";
    double ms[2] = {-1, -1};
    EXPECT_EQ(lockstep_plan_measure(plan, nullptr, nullptr, 0, 2, ms), LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_GT(ms[1], 0);
    lockstep_plan_destroy(plan);
  }
}

// ---- errors -------------------------------------------------------------------------
class GroupErrors : public testing::Test {
 protected:
  GroupErrors() : c("cpu", 2) {
    for (size_t i = 0; i < count; ++i) {
      descs.push_back(lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, 10, 1));
      srcs.push_back(src + 16 * i);
      dsts.push_back(dst + i);
    }
  }
  lockstep_status run(const lockstep_options* o = nullptr) {
    return lockstep_execute_group(c.self, LOCKSTEP_SQUARE_SUM, descs.data(), sizeof descs[0], count, srcs.data(),
                                  dsts.data(), o);
  }
  lockstep_status make(lockstep_plan** plan, const lockstep_options* o = nullptr) {
    return lockstep_plan_group(c.self, LOCKSTEP_SQUARE_SUM, descs.data(), sizeof descs[0], count, srcs.data(),
                               dsts.data(), o, plan);
  }
  void expect(const char* text) {
    EXPECT_EQ(run(), LOCKSTEP_INVALID_ARGUMENT) << text;
    EXPECT_NE(std::string(lockstep_last_error()).find(text), std::string::npos) << lockstep_last_error();
    for (const double d : dst) EXPECT_EQ(d, -1.0) << "something ran before all was validated";
  }
  static constexpr size_t count = 5;
  context_of c;
  float src[16 * count] = {};
  double dst[count] = {-1, -1, -1, -1, -1};
  std::vector<lockstep_reduce_desc> descs;
  std::vector<const void*> srcs;
  std::vector<void*> dsts;
};

TEST_F(GroupErrors, NameTheDescription) {
  descs[3].length = -1;
  expect("descs[3]: length is -1");
}
TEST_F(GroupErrors, NameThePointer) {
  dsts[4] = nullptr;
  expect("descs[4]: dst is NULL");
}
TEST_F(GroupErrors, TwoResultsAtOnePlace) {
  dsts[1] = dsts[4];
  expect("dst of descs[1]");
}
TEST_F(GroupErrors, AResultInAnothersSource) {
  dsts[2] = src + 16;
  expect("descs[2]: dst");
  EXPECT_NE(std::string(lockstep_last_error()).find("src of descs[1]"), std::string::npos) << lockstep_last_error();
}
// The array before a result that reaches furthest is the source of the same call, which goes in place.
TEST_F(GroupErrors, AResultInASourceThatIsNotTheFurthest) {
  std::vector<unsigned char> memory(600, 1), elsewhere(150);
  const lockstep_transpose_desc some[] = {lockstep_transpose_packed(1, 1, 150), lockstep_transpose_packed(1, 14, 14)};
  const void* from[] = {memory.data(), memory.data() + 10};
  void* to[] = {elsewhere.data(), memory.data() + 10};
  EXPECT_EQ(lockstep_execute_group(c.self, LOCKSTEP_TRANSPOSE, some, sizeof some[0], 2, from, to, nullptr),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(lockstep_last_error()).find("descs[1]: dst"), std::string::npos) << lockstep_last_error();
  from[1] = memory.data() + 150, to[1] = memory.data() + 150;
  EXPECT_EQ(lockstep_execute_group(c.self, LOCKSTEP_TRANSPOSE, some, sizeof some[0], 2, from, to, nullptr), LOCKSTEP_OK)
      << lockstep_last_error();
}
// What lies before the first offset is not the call's.
TEST_F(GroupErrors, AResultBeforeAnothersFirstOffset) {
  const int64_t first[] = {20, 30}, second[] = {40, 50};
  alignas(8) float memory[64] = {};
  const lockstep_reduce_desc some[] = {lockstep_reduce_segments(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, 1, first),
                                       lockstep_reduce_segments(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, 1, second)};
  const void* from[] = {memory, memory};
  void* to[] = {memory, memory + 34};
  EXPECT_EQ(lockstep_execute_group(c.self, LOCKSTEP_SQUARE_SUM, some, sizeof some[0], 2, from, to, nullptr),
            LOCKSTEP_OK)
      << lockstep_last_error();
  to[1] = memory + 22;
  EXPECT_EQ(lockstep_execute_group(c.self, LOCKSTEP_SQUARE_SUM, some, sizeof some[0], 2, from, to, nullptr),
            LOCKSTEP_INVALID_ARGUMENT);
}
TEST_F(GroupErrors, OffsetsThatChangedSinceThePlan) {
  const int64_t before[] = {0, 3, 10};
  int64_t offsets[] = {0, 3, 10};
  double of[2] = {-1, -1};
  const lockstep_reduce_desc d = lockstep_reduce_segments(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, 2, offsets);
  const void* from = src;
  void* to = of;
  lockstep_plan* plan = nullptr;
  ASSERT_EQ(lockstep_plan_group(c.self, LOCKSTEP_SQUARE_SUM, &d, sizeof d, 1, &from, &to, nullptr, &plan), LOCKSTEP_OK)
      << lockstep_last_error();
  offsets[2] = 7;
  EXPECT_EQ(lockstep_plan_execute(plan, nullptr, nullptr, nullptr), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(lockstep_last_error()).find("offsets name other elements"), std::string::npos)
      << lockstep_last_error();
  EXPECT_EQ(of[0], -1) << "it ran all the same";
  std::copy(std::begin(before), std::end(before), offsets);
  EXPECT_EQ(lockstep_plan_execute(plan, nullptr, nullptr, nullptr), LOCKSTEP_OK) << lockstep_last_error();
  lockstep_plan_destroy(plan);
}
TEST_F(GroupErrors, AResultBeforeAnothersSource) {
  dsts[0] = src + 16 * 2;  // its last 4 bytes are descs[2]'s first element
  srcs[2] = src + 16 * 2 + 1;
  expect("src of descs[2]");
}
TEST_F(GroupErrors, AWorkspaceInTheSourceOfACallThatRunsByItself) {
  std::vector<float> big(100'000 + 64);  // too much for the group's row
  const size_t past = reinterpret_cast<uintptr_t>(big.data()) % 256;
  descs[4].length = 100'000;
  srcs[4] = big.data();
  lockstep_options o = lockstep_options_defaults();
  o.workspace = reinterpret_cast<char*>(big.data()) + (past == 0 ? 0 : 256 - past);
  o.workspace_bytes = 256;
  lockstep_plan* plan = nullptr;
  ASSERT_EQ(make(&plan), LOCKSTEP_OK) << lockstep_last_error();
  for (const bool planned : {false, true}) {
    EXPECT_EQ(planned ? lockstep_plan_execute(plan, nullptr, nullptr, &o) : run(&o), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(lockstep_last_error()).find("options.workspace ("), 0u) << lockstep_last_error();
    EXPECT_NE(std::string(lockstep_last_error()).find(" overlaps src of descs[4] ("), std::string::npos)
        << lockstep_last_error();
    for (const double d : dst) EXPECT_EQ(d, -1.0) << "something ran before all was validated";
  }
  lockstep_plan_destroy(plan);
}
// A size that no description has is refused before one is read.
TEST_F(GroupErrors, SizesOfADescription) {
  constexpr size_t right = sizeof(lockstep_reduce_desc);
  for (const size_t bytes :
       {size_t{0}, size_t{8}, right - 8, right + 1, right + 8, size_t{128}, size_t{1} << 40, SIZE_MAX, SIZE_MAX - 7}) {
    lockstep_plan* plan = nullptr;
    const std::string text = "desc_bytes is " + std::to_string(bytes) + "; give sizeof(lockstep_reduce_desc), " +
                             std::to_string(right) + " in this library";
    EXPECT_EQ(
        lockstep_execute_group(c.self, LOCKSTEP_SQUARE_SUM, descs.data(), bytes, 2, srcs.data(), dsts.data(), nullptr),
        LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_EQ(lockstep_last_error(), text);
    EXPECT_EQ(lockstep_plan_group(c.self, LOCKSTEP_SQUARE_SUM, descs.data(), bytes, 2, srcs.data(), dsts.data(),
                                  nullptr, &plan),
              LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_EQ(lockstep_last_error(), text);
  }
  descs[2].size = right - 8;
  expect("descs[2]: its size is ");
}
// What is wrong with the options is no description's fault.
TEST_F(GroupErrors, OptionsAreNoDescriptions) {
  const auto expect_option = [&](const lockstep_options& o, const char* text, bool of_plans = true) {
    lockstep_plan* plan = nullptr;
    EXPECT_NE(run(&o), LOCKSTEP_OK);
    EXPECT_EQ(std::string(lockstep_last_error()).find(text), 0u) << lockstep_last_error();
    if (of_plans) {
      EXPECT_NE(make(&plan, &o), LOCKSTEP_OK);
      EXPECT_EQ(std::string(lockstep_last_error()).find(text), 0u) << lockstep_last_error();
      EXPECT_EQ(plan, nullptr);
    }
    for (const double d : dst) EXPECT_EQ(d, -1.0) << "something ran before all was validated";
  };
  lockstep_options o = lockstep_options_defaults();
  o.backend = "nonsense";
  expect_option(o, "options.backend is \"nonsense\"");
  o = lockstep_options_defaults();
  o.variant = "nonsense";
  expect_option(o, "options.variant: ");
  o = lockstep_options_defaults();
  o.flags = 1u << 30;
  expect_option(o, "options.flags is ");
  o = lockstep_options_defaults();
  alignas(256) static unsigned char elsewhere[1024];
  o.workspace = elsewhere + 1;
  o.workspace_bytes = 512;
  expect_option(o, "options.workspace is ");
}
TEST_F(GroupErrors, AWorkspaceOverAResult) {
  alignas(256) double results[256 / sizeof(double) * 2] = {};
  dsts[3] = results + 5;
  lockstep_options o = lockstep_options_defaults();
  o.workspace = results;
  o.workspace_bytes = sizeof results;
  lockstep_plan* plan = nullptr;
  EXPECT_EQ(make(&plan, &o), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(plan, nullptr);
  EXPECT_NE(std::string(lockstep_last_error()).find(" overlaps dst of descs[3] ("), std::string::npos)
      << lockstep_last_error();
}
TEST_F(GroupErrors, ArraysAndCounts) {
  const auto call = [&](const void* d, int64_t n, const void* const* s, void* const* t) {
    return lockstep_execute_group(c.self, LOCKSTEP_SQUARE_SUM, d, sizeof descs[0], n, s, t, nullptr);
  };
  EXPECT_EQ(call(descs.data(), -1, srcs.data(), dsts.data()), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(call(nullptr, 1, srcs.data(), dsts.data()), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(call(descs.data(), 1, nullptr, dsts.data()), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(call(descs.data(), 1, srcs.data(), nullptr), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(call(nullptr, 0, nullptr, nullptr), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_EQ(
      lockstep_execute_group(c.self, LOCKSTEP_OP_COUNT, descs.data(), sizeof descs[0], 0, nullptr, nullptr, nullptr),
      LOCKSTEP_INVALID_ARGUMENT);
}
TEST_F(GroupErrors, SharedSourcesAndEmptyCallsAreFine) {
  for (auto& s : srcs) s = src;
  descs[1] = lockstep_reduce_rows(LOCKSTEP_NORM2, LOCKSTEP_F32, 0, 7, 7);
  dsts[1] = dsts[0];
  src[0] = 3;
  ASSERT_EQ(run(), LOCKSTEP_OK) << lockstep_last_error();
  for (const size_t i : {0, 2, 3, 4}) EXPECT_EQ(dst[i], 9.0);
}
TEST_F(GroupErrors, PlansHaveTheirPointers) {
  lockstep_plan* plan = nullptr;
  ASSERT_EQ(make(&plan), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_EQ(lockstep_plan_execute(plan, src, dst, nullptr), LOCKSTEP_INVALID_ARGUMENT);
  src[0] = 2;
  EXPECT_EQ(lockstep_plan_execute(plan, nullptr, nullptr, nullptr), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_EQ(dst[0], 4.0);
  lockstep_run_info info{};
  info.size = sizeof info;
  EXPECT_EQ(lockstep_plan_get(plan, &info), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_STREQ(info.backend, "cpu");
  EXPECT_STREQ(info.variant, "grouped");
  lockstep_plan_destroy(plan);
}
TEST_F(GroupErrors, AForcedVariantRunsEach) {
  lockstep_options o = lockstep_options_defaults();
  o.variant = "ref";
  src[0] = 2;
  ASSERT_EQ(lockstep_execute_group(c.self, LOCKSTEP_SQUARE_SUM, descs.data(), sizeof descs[0], count, srcs.data(),
                                   dsts.data(), &o),
            LOCKSTEP_OK)
      << lockstep_last_error();
  EXPECT_EQ(dst[0], 4.0);
  lockstep_run_info info{};
  info.size = sizeof info;
  ASSERT_EQ(lockstep_last_run(&info), LOCKSTEP_OK);
  EXPECT_STREQ(info.variant, "ref");
}
// The first of several sums that do not fit is told, whichever thread finds one first; all calls have run.
TEST_F(GroupErrors, TheFirstOverflowIsTold) {
  std::vector<int64_t> big(4000, INT64_MAX);
  for (size_t i = 0; i < count; ++i) {
    descs[i] = lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_I64, i == 0 ? 0 : i == 1 ? 4000 : 1, 1);
    srcs[i] = big.data();
  }
  for (int again = 0; again < 50; ++again) {
    ASSERT_EQ(run(), LOCKSTEP_OVERFLOW) << lockstep_last_error();
    ASSERT_EQ(std::string(lockstep_last_error()).rfind("descs[1]: ", 0), 0u) << lockstep_last_error();
  }
  int64_t last = 0;
  std::memcpy(&last, &dst[4], sizeof last);
  EXPECT_EQ(last, INT64_MAX);
}

// The lowest description's is told where some do not fit and others are empty, and after LOCKSTEP_ASYNC too.
TEST(Groups, TellTheFirstOfEmptyAndOverflow) {
  const std::vector<int64_t> numbers(2 * 4000, INT64_MAX);
  for (const std::string& backend : usable_backends()) {
    if (!required.empty() && backend != required) continue;
    const context_of c(backend, 2);
    memory src(c.self, backend, numbers.size() * 8), dst(c.self, backend, 64 * 32);
    src.put(reinterpret_cast<const unsigned char*>(numbers.data()));
    // ' ': fits; e: empty; o: does not fit. Sequence 0 of each is the first that shows it.
    for (const std::string calls : {"  eo", "  oe", "e   ", "   o", "ooee", " eoeoeoeo", "oooooooooooooooe"})
      for (const bool async : {false, true}) {
        std::vector<lockstep_reduce_desc> descs;
        std::vector<const void*> srcs;
        std::vector<void*> dsts;
        for (size_t i = 0; i < calls.size(); ++i) {
          const bool empty = calls[i] == 'e';
          descs.push_back(lockstep_reduce_rows(empty ? LOCKSTEP_MAX : LOCKSTEP_SUM, LOCKSTEP_I64, 3,
                                               empty             ? 0
                                               : calls[i] == 'o' ? 2
                                                                 : 1,
                                               calls[i] == 'o' ? 2 : 1));
          srcs.push_back(src.data());
          dsts.push_back(dst.data() + 32 * i);
        }
        lockstep_options o = lockstep_options_defaults();
        o.flags = async ? LOCKSTEP_ASYNC : 0;
        lockstep_status status =
            lockstep_execute_group(c.self, LOCKSTEP_REDUCE, descs.data(), sizeof descs[0],
                                   static_cast<int64_t>(descs.size()), srcs.data(), dsts.data(), &o);
        std::string text = lockstep_last_error();
        if (async && status == LOCKSTEP_OK) {
          status = lockstep_synchronize(c.self);
          text = lockstep_last_error();
        } else if (async) {
          EXPECT_EQ(lockstep_synchronize(c.self), LOCKSTEP_OK) << lockstep_last_error();
        }
        const size_t first = calls.find_first_of("eo");
        EXPECT_EQ(status, calls[first] == 'e' ? LOCKSTEP_EMPTY : LOCKSTEP_OVERFLOW) << backend << " " << calls << text;
        EXPECT_NE(text.find("descs[" + std::to_string(first) + "]: "), std::string::npos) << backend << " " << text;
        EXPECT_NE(text.find("sequence 0"), std::string::npos) << backend << " " << text;
      }
  }
}

// ---- C++ ----------------------------------------------------------------------------
TEST(GroupsInCpp, SpansOfDescriptions) {
  context c("cpu");
  const float src[6] = {1, 2, 3, 4, 5, 6};
  float a[6], b[2];
  const std::vector<lockstep_transpose_desc> descs = {lockstep_transpose_packed(4, 2, 3),
                                                      lockstep_transpose_packed(4, 1, 2)};
  const void* srcs[] = {src, src};
  void* dsts[] = {a, b};
  execute_group(c, descs, srcs, dsts);
  EXPECT_EQ(a[1], 4.0F);
  EXPECT_EQ(b[1], 2.0F);
  EXPECT_TRUE(try_execute_group(c, descs, srcs, std::span<void* const>(dsts, 1)));
  a[1] = 0;
  group_plan plan(c, descs, srcs, dsts);
  plan.execute();
  EXPECT_EQ(a[1], 4.0F);
}

}  // namespace
}  // namespace lockstep::check
