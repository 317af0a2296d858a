// plan.cpp - a call prepared once: backend, device, variant, queue and workspace
// are fixed, so that executing it allocates nothing.
#include <memory>

#include "ops/ops.hpp"
#include "trace.hpp"

struct lockstep_plan {
  lockstep_context* context = nullptr;
  lockstep::lib::prepared_call prepared;
  lockstep::lib::choice chosen;                      // its lease is held during an execution only
  lockstep::lib::pooled_queue* reserved = nullptr;   // the plan's own queue
};

namespace lockstep::lib {

void make_plan(lockstep_context* context, prepared_call prepared, const lockstep_options* given, lockstep_plan** out) {
  if (out == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; pass the address of a lockstep_plan*");
  *out = nullptr;
  require_context(context);
  lockstep_options options = sized(given, lockstep_options_defaults(), "options");
  options.stream = nullptr;
  auto plan = std::make_unique<lockstep_plan>();
  plan->context = context;
  plan->prepared = std::move(prepared);
  if (!plan->prepared.empty) {
    plan->chosen = select(context, plan->prepared, options, whereabouts{}, nullptr);
    lockstep_call& call = plan->prepared.call;
    const lockstep_variant& variant = *plan->chosen.variant;
    call.workspace_bytes = variant.workspace != nullptr ? variant.workspace(plan->chosen.queue.get(), &call) : 0;
    plan->reserved = context->reserve(std::move(plan->chosen.queue));
  }
  *out = plan.release();
}

namespace {
void execute(lockstep_plan& plan, const void* src, void* dst, const lockstep_options& options) {
  check_pointers(plan.prepared, src, dst);
  remember_run(nullptr, 0, 0);
  if (plan.prepared.empty) return;
  choice& chosen = plan.chosen;
  lockstep_call& call = plan.prepared.call;
  call.src = src;
  call.dst = dst;
  resolve_offsets(plan.prepared);
  const bool own = options.stream == nullptr || chosen.entry->name() == "cpu";
  chosen.queue = own ? plan.context->lock(plan.reserved)
                     : plan.context->acquire(chosen.entry, chosen.device, options.stream, (options.flags & LOCKSTEP_ASYNC) != 0);
  lockstep_status status = LOCKSTEP_OK;
  launch_story launched;
  try {
    status = give_workspace(plan.prepared, chosen, options);
    if (status == LOCKSTEP_OK) status = launch_staged(plan.context, chosen, plan.prepared, options, launched);
    if (status != LOCKSTEP_OK && status != LOCKSTEP_OVERFLOW && status != LOCKSTEP_EMPTY)
      fail_backend(status, chosen.entry->name().c_str());
  } catch (const error& e) {
    chosen.queue = {};
    if (e.status == LOCKSTEP_BACKEND_LOST) chosen.entry->mark_lost(e.text);
    throw;
  }
  chosen.queue = {};
  remember_run(&chosen, call.workspace_bytes, launched.staged_bytes);
  trace(plan.prepared, chosen, launched.staged_bytes, status);
  if (status != LOCKSTEP_OK) throw error{status, last_error()};
}
}  // namespace
}  // namespace lockstep::lib

using namespace lockstep::lib;
extern "C" {
lockstep_status lockstep_plan_workspace(const lockstep_plan* plan, size_t* bytes) {
  return guarded([&] {
    if (plan == nullptr || bytes == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "{} is NULL", plan == nullptr ? "plan" : "bytes");
    *bytes = plan->prepared.call.workspace_bytes;
  });
}
lockstep_status lockstep_plan_execute(lockstep_plan* plan, const void* src, void* dst, const lockstep_options* options) {
  return guarded([&] {
    if (plan == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; create one with lockstep_plan_*");
    execute(*plan, src, dst, sized(options, lockstep_options_defaults(), "options"));
  });
}
void lockstep_plan_destroy(lockstep_plan* plan) {
  if (plan != nullptr && plan->reserved != nullptr) plan->context->unreserve(plan->reserved);
  delete plan;
}
}
