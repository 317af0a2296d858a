// plan.cpp - a call prepared once: backend, device, variant, queue and workspace
// are fixed, so that executing it allocates nothing.
#include "plan.hpp"

#include <algorithm>
#include <atomic>
#include <memory>

#include "../ops/ops.hpp"
#include "enough_stack.hpp"
#include "trace.hpp"

namespace lockstep::lib {
namespace {

// src and dst are not known yet. So a row is chosen for two aligned arrays and, if the op
// allows it, another one for src == dst. Each has its own workspace size.
void choose(lockstep_plan& plan, const lockstep_options& options) {
  alignas(256) static char array[1];
  lockstep_call& call = plan.prepared.call;
  const auto bytes_of = [&](const lockstep_variant* v) {
    return v != nullptr && v->workspace != nullptr ? v->workspace(plan.chosen.queue.get(), &call) : 0;
  };
  place_of(array);  // loads the modules now, because loading allocates and an execution must not
  const auto now = plan.context->current();
  const auto selected = [&] {
    plan.chosen = select(plan.context, *now, plan.prepared, options, array_places{}, nullptr);
    return plan.chosen.variant;
  };
  const auto row_of = [&](const lockstep_variant* best) {
    lockstep_plan::row found;
    if (best == nullptr) return found;
    with_enough_stack(*plan.chosen.entry, [&] {
      const lockstep_variant* row = tuned_variant(*plan.context, *now, plan.chosen, plan.prepared, options, best);
      found = {row, std::max(bytes_of(row), row != best ? bytes_of(best) : 0), row != best};
    });
    return found;
  };
  call.dst = array;
  try {
    plan.apart = row_of(selected());
  } catch (const error& e) {  // a forced row may take only src == dst
    if (!plan.prepared.may_alias || e.status != LOCKSTEP_UNSUPPORTED) throw;
  }
  if (!plan.prepared.may_alias) return;
  call.src = array;
  plan.in_place = row_of(plan.apart.variant != nullptr ? pick_variant(plan.chosen, call) : selected());
  call.src = nullptr;
}

// Allocates the workspace for two arrays (or for in place, if there is only that row). The workspace for in place is
// allocated by the first such execution, because it can be as large as the matrix and is rarely needed.
void take_scratch(lockstep_plan& plan) {
  const size_t bytes = (plan.apart.variant != nullptr ? plan.apart : plan.in_place).workspace_bytes;
  if (bytes == 0) return;
  const queue_lease lease = plan.context->lock(plan.reserved);
  void* workspace = nullptr;
  if (const lockstep_status s = lease->backend->scratch(lease.get(), bytes, &workspace); s != LOCKSTEP_OK)
    fail_backend(s, *lease->entry);
}

}  // namespace

uint64_t next_plan_number() {
  static std::atomic<uint64_t> plans{0};
  return ++plans;
}

void make_plan(lockstep_context* context, prepared_call prepared, const lockstep_options* given, lockstep_plan** out) {
  if (out == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; pass the address of a lockstep_plan*");
  *out = nullptr;
  require_context(context);
  lockstep_options options = call_options(given, flags_of_plans | LOCKSTEP_BOUNDED);
  bound_offsets(prepared, options);
  if ((options.flags & (LOCKSTEP_TUNE | LOCKSTEP_RETUNE)) != 0 && options.stream != nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT,
         "options.stream is {} with LOCKSTEP_TUNE, which cannot measure on a caller's stream because that may be "
         "capturing; make the plan without a stream and name the stream when you execute",
         options.stream);
  const bool brought = options.workspace != nullptr || options.stream != nullptr;
  options.stream = nullptr;
  auto plan = std::make_unique<lockstep_plan>();
  plan->context = context;
  plan->prepared = std::move(prepared);
  if (!plan->prepared.empty) {
    choose(*plan, options);
    plan->chosen.plan = next_plan_number();
    plan->reserved = context->reserve(std::move(plan->chosen.queue));
    if (!brought) take_scratch(*plan);
  }
  *out = plan.release();
}

namespace {
// Ends the plan's lease when an execution ends, also by an exception.
struct lease_release {
  choice& of;
  ~lease_release() { of.queue = {}; }
};

// Completes the plan's call with src and dst; false when there is nothing to do.
bool bind(lockstep_plan& plan, const void* src, void* dst) {
  check_pointers(plan.prepared, src, dst);
  if (plan.prepared.empty) {
    remember_run(nullptr, 0, 0);
    return false;
  }
  plan.prepared.call.src = src;
  plan.prepared.call.dst = dst;
  const bool in_place = src == dst && plan.prepared.may_alias;
  const lockstep_plan::row& row = in_place ? plan.in_place : plan.apart;
  if (row.variant == nullptr)
    fail(LOCKSTEP_UNSUPPORTED, "the plan's variant {} of {} does not take {}; force another variant for the plan",
         (in_place ? plan.apart : plan.in_place).variant->name, plan.chosen.entry->name(),
         in_place ? "src == dst" : "two arrays");
  plan.chosen.variant = row.variant;
  plan.prepared.call.workspace_bytes = row.workspace_bytes;
  resolve_offsets(plan.context, plan.prepared);
  return true;
}

// A plan's row was chosen for aligned arrays. For another src auto may choose another row. A row chosen by measuring is
// replaced only if it refuses the pointers, a row that the caller named never.
void require_taken(lockstep_plan& plan) {
  lockstep_call& call = plan.prepared.call;
  choice& chosen = plan.chosen;
  const lockstep_queue* queue = chosen.queue.get();
  const char* why = chosen.variant->refuses != nullptr ? chosen.variant->refuses(queue, &call) : nullptr;
  const bool in_place = call.src == call.dst && plan.prepared.may_alias;
  const bool aligned = reinterpret_cast<uintptr_t>(call.src) % 16 == 0;
  const bool stays = aligned || (in_place ? plan.in_place : plan.apart).tuned;
  if (why == nullptr && (chosen.forced || stays)) return;
  const lockstep_variant* other = chosen.forced ? nullptr : pick_variant(chosen, call);
  // lockstep_plan_workspace has promised that an execution needs no more workspace.
  const bool fits =
      other != nullptr && (other->workspace == nullptr || other->workspace(queue, &call) <= call.workspace_bytes);
  if (fits)
    chosen.variant = other;
  else if (why != nullptr)
    fail(LOCKSTEP_UNSUPPORTED,
         "the plan's variant {} of {} refuses this src and dst: {}; force another variant for the plan",
         chosen.variant->name, chosen.entry->name(), why);
}

// Where the arrays lie; the caller's word for src and dst saves two look-ups of the driver.
array_places places_of(const lockstep_plan& plan, const lockstep_options& options) {
  const prepared_call& p = plan.prepared;
  const bool told = (options.flags & LOCKSTEP_PLACED) != 0 && !plan.chosen.entry->is_cpu();
  if (!told || p.offsets_bytes != 0 || p.side_count != 0) return locate(p, p.call.src, p.call.dst);
  array_places found;
  found.src = found.dst = {LOCKSTEP_DEVICE, plan.chosen.entry, plan.chosen.device};
  return found;
}

lockstep_status run_bound(lockstep_plan& plan, const lockstep_options& options) {
  choice& chosen = plan.chosen;
  const bool own = options.stream == nullptr || chosen.entry->is_cpu();
  chosen.queue =
      own ? plan.context->lock(plan.reserved)
          : plan.context->acquire(chosen.entry, chosen.device, options.stream, (options.flags & LOCKSTEP_ASYNC) != 0);
  const lease_release ends{chosen};
  lockstep_status status = LOCKSTEP_OK;
  launch_result launched;
  const array_places data = places_of(plan, options);
  with_enough_stack(*chosen.entry, [&] { require_taken(plan); });
  status = give_workspace(plan.prepared, chosen, options);
  if (status == LOCKSTEP_OK) status = launch_staged(plan.context, chosen, plan.prepared, options, data, launched);
  if (is_bad(status)) fail_backend(status, *chosen.entry);
  remember_run(&chosen, plan.prepared.call.workspace_bytes, launched.staged_bytes);
  trace(plan.prepared, chosen, launched.staged_bytes, status);
  return status;
}

void execute(lockstep_plan& plan, const void* src, void* dst, const lockstep_options& options) {
  lockstep_status status = LOCKSTEP_OK;
  forget_run_if_thrown([&] {
    if (bind(plan, src, dst)) status = run_bound(plan, options);
  });
  if (status != LOCKSTEP_OK) throw error{status, last_error()};
}

void measure(lockstep_plan& plan, const void* src, void* dst, uint32_t flags, int32_t samples, double* ms) {
  if (!bind(plan, src, dst)) {
    for (int32_t i = 0; i < samples; ++i) ms[i] = 0.0;
    return;
  }
  choice& chosen = plan.chosen;
  chosen.queue = plan.context->lock(plan.reserved);
  const lease_release ends{chosen};
  const array_places data = locate(plan.prepared, src, dst);
  bool on_device =
      chosen.backend->measure != nullptr && can_reach(chosen, data.src, src) && can_reach(chosen, data.dst, dst) &&
      (plan.prepared.offsets_bytes == 0 || can_reach(chosen, data.offsets, offsets_of(plan.prepared.call)));
  for (int i = 0; i < plan.prepared.side_count; ++i)
    on_device = on_device && can_reach(chosen, data.sides[i], plan.prepared.sides[i].pointer);
  if (on_device) {
    with_enough_stack(*chosen.entry, [&] { require_taken(plan); });
    plan.context->settle(chosen.queue);
    lockstep_status status = give_workspace(plan.prepared, chosen, lockstep_options_defaults());
    if (status == LOCKSTEP_OK)
      status = on_enough_stack(*chosen.entry, [&] {
        return chosen.backend->measure(chosen.queue.get(), chosen.variant, &plan.prepared.call, flags, samples, ms);
      });
    if (status != LOCKSTEP_OK) fail_backend(status, *chosen.entry);
    remember_run(&chosen, plan.prepared.call.workspace_bytes, 0);
    return;
  }
  chosen.queue = {};
  const lockstep_options options = lockstep_options_defaults();
  time_executions(samples, ms, [&] { execute(plan, src, dst, options); });
}
}  // namespace
}  // namespace lockstep::lib

using namespace lockstep::lib;
namespace {
void require_no_pointers(const void* src, const void* dst) {
  if (src != nullptr || dst != nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "{} is {}, but the plan of a group has its pointers already; pass NULL",
         src != nullptr ? "src" : "dst", src != nullptr ? src : dst);
}
}  // namespace
extern "C" {
lockstep_status lockstep_plan_get(const lockstep_plan* plan, lockstep_run_info* info) {
  return guarded([&] {
    if (plan == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; create one with lockstep_plan_*");
    const choice& chosen = plan->group != nullptr ? plan->group->chosen() : plan->chosen;
    const lockstep_plan::row& row = plan->apart.variant != nullptr ? plan->apart : plan->in_place;
    lockstep_run_info told{sizeof told, "", "", "", 0, 0, row.workspace_bytes, 0};
    thread_local std::string why;
    why = lockstep::shown(why_not_others(chosen));
    if (row.variant != nullptr)
      told = {sizeof told,   chosen.entry->name().c_str(), row.variant->name,   why.c_str(),
              chosen.device, order_of(*row.variant),       row.workspace_bytes, 0};
    if (plan->group != nullptr && !plan->group->empty())
      told = {sizeof told,   chosen.entry->name().c_str(), plan->group->name(),     why.c_str(),
              chosen.device, plan->group->order(),         plan->workspace_bytes(), 0};
    give(told, info, "info");
  });
}
lockstep_status lockstep_plan_workspace(const lockstep_plan* plan, size_t* bytes) {
  return guarded([&] {
    if (plan == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; create one with lockstep_plan_*");
    if (bytes == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "bytes is NULL; pass the address of a size_t");
    *bytes = plan->workspace_bytes();
  });
}
lockstep_status lockstep_plan_execute(lockstep_plan* plan, const void* src, void* dst,
                                      const lockstep_options* options) {
  return guarded([&] {
    if (plan == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; create one with lockstep_plan_*");
    if (plan->group == nullptr) return execute(*plan, src, dst, call_options(options, flags_of_executions));
    require_no_pointers(src, dst);
    execute_group_plan(*plan, call_options(options, flags_of_executions));
  });
}
lockstep_status lockstep_plan_measure(lockstep_plan* plan, const void* src, void* dst, uint32_t flags, int32_t samples,
                                      double* ms) {
  return guarded([&] {
    if (plan == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; create one with lockstep_plan_*");
    require_measure_flags(flags);
    if (samples < 1) fail(LOCKSTEP_INVALID_ARGUMENT, "samples is {}; give 1 or more", samples);
    if (ms == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "ms is NULL; give room for {} doubles", samples);
    if (plan->group != nullptr) require_no_pointers(src, dst);
    forget_run_if_thrown([&] {
      if (plan->group != nullptr)
        measure_group_plan(*plan, flags, samples, ms);
      else
        measure(*plan, src, dst, flags, samples, ms);
    });
  });
}
// Not guarded(), so that the error text of an earlier call stays.
void lockstep_plan_destroy(lockstep_plan* plan) { delete plan; }
}
