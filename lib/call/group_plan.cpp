// group_plan.cpp - plans of groups: the backend's table of the calls is made once.
#include <algorithm>

#include "plan.hpp"

namespace lockstep::lib {

namespace {
// Ends the plan's lease, also by an exception: before the plan's destructor, which takes its queue too.
struct lease_end {
  call_group& of;
  ~lease_end() { of.chosen().queue = {}; }
};
}  // namespace

void make_group_plan(lockstep_context* context, const group_arguments& arguments, const lockstep_options* given,
                     lockstep_plan** out) {
  if (out == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; pass the address of a lockstep_plan*");
  *out = nullptr;
  require_context(context);
  lockstep_options options = call_options(given);
  const bool brought = options.workspace != nullptr || options.stream != nullptr;
  options.stream = nullptr;
  auto plan = std::make_unique<lockstep_plan>();
  plan->context = context;
  plan->group = std::make_unique<call_group>(context, arguments);
  call_group& group = *plan->group;
  if (!group.empty()) {
    if (options.workspace != nullptr) {
      require_workspace_aligned(options);
      group.require_apart(options);
    }
    group.choose(context, *context->current(), options, nullptr);
    group.chosen().plan = next_plan_number();
    plan->reserved = context->reserve(std::move(group.chosen().queue));
    group.chosen().queue = context->lock(plan->reserved);
    const lease_end ends{group};
    group.make_table();
    plan->group_workspace_bytes = group.workspace_bytes();
    const size_t bytes = group.scratch_bytes();
    void* workspace = nullptr;
    lockstep_status s = LOCKSTEP_OK;
    if (bytes != 0 && !brought) s = group.chosen().backend->scratch(group.chosen().queue.get(), bytes, &workspace);
    if (s != LOCKSTEP_OK) fail_backend(s, *group.chosen().entry);
  }
  *out = plan.release();
}

void execute_group_plan(lockstep_plan& plan, const lockstep_options& options) {
  call_group& group = *plan.group;
  lockstep_status status = LOCKSTEP_OK;
  forget_run_if_thrown([&] {
    if (group.empty()) return remember_run(nullptr, 0, 0);
    group.require_same_offsets(plan.context);
    choice& chosen = group.chosen();
    const bool own = options.stream == nullptr || chosen.entry->is_cpu();
    chosen.queue =
        own ? plan.context->lock(plan.reserved)
            : plan.context->acquire(chosen.entry, chosen.device, options.stream, (options.flags & LOCKSTEP_ASYNC) != 0);
    const lease_end ends{group};
    call_group::result done;
    status = group.launch(plan.context, options, done);
    group.remember(done, status);
  });
  if (status != LOCKSTEP_OK) throw error{status, last_error()};
}

void measure_group_plan(lockstep_plan& plan, uint32_t flags, int32_t samples, double* ms) {
  call_group& group = *plan.group;
  if (group.empty()) {
    std::fill(ms, ms + samples, 0.0);
    return remember_run(nullptr, 0, 0);
  }
  {
    group.chosen().queue = plan.context->lock(plan.reserved);
    const lease_end ends{group};
    if (group.measure(plan.context, flags, samples, ms)) return;
  }
  time_executions(samples, ms, [&] { execute_group_plan(plan, lockstep_options_defaults()); });
}

}  // namespace lockstep::lib
