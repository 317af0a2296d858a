// plan.hpp - what a plan holds: a call or a group of calls, and the queue that its executions run on.
#pragma once

#include <chrono>
#include <memory>

#include "group.hpp"

struct lockstep_plan {
  struct row {
    const lockstep_variant* variant = nullptr;  // nullptr where the call takes no such pointers
    size_t workspace_bytes = 0;                 // enough for auto's own row too, if this one refuses the pointers
    bool tuned = false;                         // chosen by measuring
  };
  lockstep_plan() = default;
  lockstep_plan(const lockstep_plan&) = delete;
  lockstep_plan& operator=(const lockstep_plan&) = delete;
  ~lockstep_plan() {
    if (reserved == nullptr) return;
    try {
      if (group != nullptr) group->release_table(context, reserved);
      context->unreserve(reserved);
    } catch (...) {  // no memory for the text of a failure: the context keeps the queue
    }
  }

  // That an execution needs at most; a group's is known once it has been made.
  size_t workspace_bytes() const {
    return group != nullptr                                   ? group_workspace_bytes
           : apart.workspace_bytes > in_place.workspace_bytes ? apart.workspace_bytes
                                                              : in_place.workspace_bytes;
  }

  lockstep_context* context = nullptr;
  lockstep::lib::prepared_call prepared;
  lockstep::lib::choice chosen;                      // its lease is held during an execution only
  row apart, in_place;                               // for two arrays, and for src == dst
  lockstep::lib::pooled_queue* reserved = nullptr;   // the plan's own queue
  std::unique_ptr<lockstep::lib::call_group> group;  // instead of the call and its rows
  size_t group_workspace_bytes = 0;
};

namespace lockstep::lib {
uint64_t next_plan_number();

// The plan of a group, by the functions of lockstep_plan_*.
void execute_group_plan(lockstep_plan& plan, const lockstep_options& options);
void measure_group_plan(lockstep_plan& plan, uint32_t flags, int32_t samples, double* ms);

// After a failed call lockstep_last_run must not describe an earlier one.
template <class Body>
void forget_run_if_thrown(const Body& body) {
  try {
    body();
  } catch (...) {
    remember_run(nullptr, 0, 0);
    throw;
  }
}

// The host's times of executions, after one that warms up.
template <class Body>
void time_executions(int32_t samples, double* ms, const Body& execute) {
  execute();
  for (int32_t i = 0; i < samples; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    execute();
    ms[i] = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  }
}
}  // namespace lockstep::lib
