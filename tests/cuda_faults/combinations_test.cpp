// combinations_test.cpp - the CUDA module has a row for every call that validation accepts, whatever its op, types,
// kinds and layout (tests/cases/combinations.hpp), alone and in a group; what only the CPU does it refuses. Rows are
// asked on the scripted runtime; nothing runs.
#include "combinations.hpp"

#include <gtest/gtest.h>
#include <lockstep/group.h>

#include <cstring>

#include "child.hpp"
#include "fake_cudart.hpp"

namespace faults {
namespace {

constexpr size_t room = lockstep::cases::combination_bytes;

// What has no row, a few of them.
void ask(report& r, lockstep_op op) {
  lockstep_context* context = nullptr;
  lockstep_context_options of_context = lockstep_context_defaults();
  of_context.threads = 1;
  r.expect(lockstep_context_create(&of_context, &context) == LOCKSTEP_OK, "no context");
  void* device[6] = {};
  for (void*& at : device) r.expect(cudaMalloc(&at, room) == cudaSuccess, "no memory");
  const lockstep::cases::combination_memory memory = {lockstep::cases::combination_offsets().data(), device[0],
                                                      device[1], device[2], device[3]};
  int asked = 0, failures = 0;
  each_combination(op, memory, [&](const lockstep::cases::combination& c) {
    lockstep_options o = lockstep_options_defaults();
    lockstep_plan* plan = nullptr;
    o.backend = "cpu", o.variant = "ref";
    const lockstep_status valid = lockstep_plan_create(context, op, c.desc, &o, &plan);
    lockstep_plan_destroy(plan);
    if (valid != LOCKSTEP_OK || failures == 5) return;
    ++asked;
    o.backend = "cuda", o.variant = nullptr;
    const lockstep_status alone = lockstep_plan_create(context, op, c.desc, &o, &plan);
    const std::string text = lockstep_last_error();
    lockstep_plan_destroy(plan);
    size_t size = 0;
    std::memcpy(&size, c.desc, sizeof size);
    const void* const src = device[4];
    void* const dst = device[5];
    const lockstep_status grouped = lockstep_plan_group(context, op, c.desc, size, 1, &src, &dst, &o, &plan);
    const std::string of_group = lockstep_last_error();
    lockstep_plan_destroy(plan);
    const lockstep_status expected = c.cpu_only ? LOCKSTEP_UNSUPPORTED : LOCKSTEP_OK;
    failures += alone != expected || grouped != expected;
    r.expect(alone == expected, std::string(lockstep_op_name(op)) + " " + c.name + ": " + text);
    r.expect(grouped == expected, std::string(lockstep_op_name(op)) + " " + c.name + " in a group: " + of_group);
  });
  r.expect(asked > 100, std::string(lockstep_op_name(op)) + ": only " + std::to_string(asked) + " calls");
  lockstep_context_destroy(context);
}

class combinations : public testing::TestWithParam<int> {};
TEST_P(combinations, have_a_row) {
  EXPECT_EQ(in_child([](report& r) {
              fake::use({});
              ask(r, static_cast<lockstep_op>(GetParam()));
            }),
            "");
}
INSTANTIATE_TEST_SUITE_P(every_op, combinations, testing::Range(0, static_cast<int>(LOCKSTEP_OP_COUNT)),
                         [](const auto& op) { return lockstep_op_name(static_cast<lockstep_op>(op.param)); });

}  // namespace
}  // namespace faults
