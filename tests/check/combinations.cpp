// combinations.cpp - what validation accepts, every backend runs: all combinations of op, types, kinds and layout
// (tests/cases/combinations.hpp), alone, planned and as a group, from each kind of memory, with the bits of the
// reference.
#include "combinations.hpp"

#include <cstddef>
#include <cstring>
#include <memory>

#include "check.hpp"
#include "lockstep/group.h"

namespace lockstep::check {
namespace {
using namespace cases;

using bytes = std::vector<unsigned char>;

bool ran(lockstep_status s) { return s == LOCKSTEP_OK || s == LOCKSTEP_OVERFLOW || s == LOCKSTEP_EMPTY; }

// The arrays of all combinations, in one kind of a backend's memory.
class arrays {
 public:
  enum { src, other, bias, residual, sum, dst, offsets, count };
  arrays(lockstep_context* context, std::string backend, bool device)
      : context_(context), backend_(std::move(backend)), device_(device) {
    for (void*& at : at_) {
      if (device_) {
        EXPECT_EQ(lockstep_alloc(context, backend_.c_str(), LOCKSTEP_DEVICE, combination_bytes, &at), LOCKSTEP_OK);
        continue;
      }
      host_.emplace_back(combination_bytes + 64);
      at = host_.back().data() + (64 - reinterpret_cast<uintptr_t>(host_.back().data()) % 64) % 64;
    }
  }
  ~arrays() {
    for (void* at : at_)
      if (device_) (void)lockstep_free(context_, backend_.c_str(), LOCKSTEP_DEVICE, combination_bytes, at);
  }
  arrays(const arrays&) = delete;
  arrays& operator=(const arrays&) = delete;
  void* operator[](int k) const { return at_[k]; }
  void put(int k, const bytes& from) const { copy(from.data(), at_[k], from.size()); }
  void get(int k, bytes& to) const { copy(at_[k], to.data(), to.size()); }

 private:
  void copy(const void* from, void* to, size_t n) const {
    if (!device_)
      std::memcpy(to, from, n);
    else
      EXPECT_EQ(lockstep_copy(context_, backend_.c_str(), from, to, n), LOCKSTEP_OK) << lockstep_last_error();
  }
  lockstep_context* context_;
  std::string backend_;
  bool device_;
  std::vector<bytes> host_;
  void* at_[count] = {};
};

// A description whose arrays are those of `to`.
bytes described(const combination& c, size_t size, const arrays& to, bool device_offsets) {
  bytes desc(size);
  std::memcpy(desc.data(), c.desc, size);
  const auto move = [&](size_t member, void* at) {
    void* now = nullptr;
    std::memcpy(&now, desc.data() + member, sizeof now);
    if (now != nullptr) std::memcpy(desc.data() + member, &at, sizeof at);
  };
  if (c.op == LOCKSTEP_SUMS) move(offsetof(lockstep_sums_desc, other), to[arrays::other]);
  if (c.op == LOCKSTEP_NORMALIZE) {
    move(offsetof(lockstep_normalize_desc, weight), to[arrays::other]);
    move(offsetof(lockstep_normalize_desc, bias), to[arrays::bias]);
    move(offsetof(lockstep_normalize_desc, residual), to[arrays::residual]);
    move(offsetof(lockstep_normalize_desc, sum), to[arrays::sum]);
    move(offsetof(lockstep_normalize_desc, gradient), to[arrays::residual]);
    move(offsetof(lockstep_normalize_desc, weight_gradient), to[arrays::sum]);
    move(offsetof(lockstep_normalize_desc, bias_gradient), to[arrays::sum]);
  }
  const bool segments =
      c.op == LOCKSTEP_REDUCE || c.op == LOCKSTEP_SQUARE_SUM || c.op == LOCKSTEP_SCAN || c.op == LOCKSTEP_SUMS;
  if (segments && device_offsets) move(offsetof(lockstep_reduce_desc, offsets), to[arrays::offsets]);
  return desc;
}

class walker {
 public:
  explicit walker(lockstep_op op) : op_(op) {
    EXPECT_EQ(lockstep_context_create(nullptr, &context_), LOCKSTEP_OK);
    uint64_t state = seed;
    for (bytes& all : given_) {
      all.resize(combination_bytes);
      for (unsigned char& byte : all) byte = static_cast<unsigned char>(mix(++state));
    }
    const std::vector<int64_t>& offsets = combination_offsets();
    std::memcpy(given_[arrays::offsets].data(), offsets.data(), offsets.size() * sizeof offsets[0]);
  }
  ~walker() { lockstep_context_destroy(context_); }
  walker(const walker&) = delete;
  walker& operator=(const walker&) = delete;

  // On these backends, if any; counts what there is to walk in any case.
  void walk(const std::vector<std::string>& backends) {
    const auto host = std::make_unique<arrays>(context_, "cpu", false);
    struct target {
      std::string backend;
      std::unique_ptr<arrays> at;
      bool device;
    };
    std::vector<target> targets;
    for (const std::string& backend : backends)
      for (const bool device : {false, true}) {
        void* probe = nullptr;
        if (device && lockstep_alloc(context_, backend.c_str(), LOCKSTEP_DEVICE, 256, &probe) != LOCKSTEP_OK) continue;
        if (device) (void)lockstep_free(context_, backend.c_str(), LOCKSTEP_DEVICE, 256, probe);
        targets.push_back({backend, std::make_unique<arrays>(context_, backend, device), device});
        for (int k = 0; k < arrays::count; ++k) targets.back().at->put(k, given_[k]);
      }
    const combination_memory at = {static_cast<const int64_t*>((*host)[arrays::offsets]), (*host)[arrays::other],
                                   (*host)[arrays::bias], (*host)[arrays::residual], (*host)[arrays::sum]};
    for (int k = 0; k < arrays::count; ++k) host->put(k, given_[k]);
    each_combination(op_, at, [&](const combination& c) {
      ++tried;
      if (failures >= 10) return;
      size_t size = 0;
      std::memcpy(&size, c.desc, sizeof size);
      result want;
      const bytes desc = described(c, size, *host, false);
      if (!run(c, desc, "cpu", "ref", *host, want)) return;
      ++accepted;
      for (const target& t : targets) {
        const bytes there = described(c, size, *t.at, t.device);
        result got;
        const bool runs = run(c, there, t.backend.c_str(), nullptr, *t.at, got);
        const std::string text = lockstep_last_error();
        if (c.cpu_only && t.backend == "cuda") {
          EXPECT_EQ(got.status, LOCKSTEP_UNSUPPORTED) << lockstep_op_name(op_) << " " << c.name << ": " << text;
          continue;
        }
        const char* const wrong = !runs                                            ? "is refused"
                                  : got.status != want.status                      ? "has another status"
                                  : got.dst != want.dst || got.sum != want.sum     ? "differs"
                                  : !groups(there, t.backend.c_str(), *t.at, size) ? "is refused in a group"
                                                                                   : nullptr;
        if (wrong == nullptr) continue;
        ++failures;
        ADD_FAILURE() << lockstep_op_name(op_) << " " << c.name << " on " << t.backend
                      << (t.device ? ", device memory, " : ", host memory, ") << wrong << ": " << text << " | "
                      << lockstep_last_error();
      }
    });
    std::printf("  %s: %d combinations, %d of them calls\n", lockstep_op_name(op_), tried, accepted);
    EXPECT_GT(accepted, 0);
  }
  int tried = 0, accepted = 0, failures = 0;

 private:
  struct result {
    lockstep_status status = LOCKSTEP_OK;
    bytes dst = bytes(combination_bytes), sum = bytes(combination_bytes);
  };
  // False where the call is refused: by validation, or for lack of a row.
  bool run(const combination& c, const bytes& desc, const char* backend, const char* variant, const arrays& at,
           result& to) {
    lockstep_options o = lockstep_options_defaults();
    o.backend = backend, o.variant = variant;
    lockstep_plan* plan = nullptr;
    lockstep_status planned = lockstep_plan_create(context_, op_, desc.data(), &o, &plan);
    lockstep_plan_destroy(plan);
    at.put(arrays::dst, c.in_place ? given_[arrays::src] : given_[arrays::dst]);
    at.put(arrays::sum, given_[arrays::sum]);
    to.status = lockstep_execute(context_, op_, desc.data(), c.in_place ? at[arrays::dst] : at[arrays::src],
                                 at[arrays::dst], &o);
    EXPECT_TRUE(planned == LOCKSTEP_OK || !ran(to.status)) << c.name << " runs but cannot be planned on " << backend;
    at.get(arrays::dst, to.dst);
    if (op_ == LOCKSTEP_NORMALIZE) at.get(arrays::sum, to.sum);
    return ran(to.status);
  }
  bool groups(const bytes& desc, const char* backend, const arrays& at, size_t size) {
    lockstep_options o = lockstep_options_defaults();
    o.backend = backend;
    const void* const srcs[] = {at[arrays::src]};
    void* const dsts[] = {at[arrays::dst]};
    lockstep_plan* plan = nullptr;
    const lockstep_status status = lockstep_plan_group(context_, op_, desc.data(), size, 1, srcs, dsts, &o, &plan);
    lockstep_plan_destroy(plan);
    return status == LOCKSTEP_OK;
  }

  lockstep_op op_;
  lockstep_context* context_ = nullptr;
  bytes given_[arrays::count];
};

class Combinations : public testing::TestWithParam<lockstep_op> {};

TEST_P(Combinations, RunOnTheCpu) { walker(GetParam()).walk({"cpu"}); }

TEST_P(Combinations, RunElsewhere) {
  std::vector<std::string> others;
  for (const std::string& backend : usable_backends())
    if (required.empty() ? backend != "cpu" : backend == required) others.push_back(backend);
  walker(GetParam()).walk(others);
  if (others.empty()) GTEST_SKIP() << "no usable backend besides the CPU to run these";
}
INSTANTIATE_TEST_SUITE_P(Ops, Combinations, every_op(), op_name);

}  // namespace
}  // namespace lockstep::check
