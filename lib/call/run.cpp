// run.cpp - see run.hpp.
#include "run.hpp"

#include "../ops/ops.hpp"
#include "enough_stack.hpp"
#include "trace.hpp"

namespace lockstep::lib {

lockstep_status run(lockstep_context* context, lockstep_op op, const void* desc, const void* src, void* dst,
                    const lockstep_options* given) noexcept {
  return guarded([&] {
    prepared_call prepared = prepare(op, desc);
    require_context(context);
    lockstep_options options = call_options(given, LOCKSTEP_BOUNDED);
    bound_offsets(prepared, options);
    check_pointers(prepared, src, dst);
    remember_run(nullptr, 0, 0);
    if (prepared.empty) return;
    prepared.call.src = src;
    prepared.call.dst = dst;
    resolve_offsets(context, prepared);

    const array_places data = locate(prepared, src, dst);
    const auto now = context->current();
    const bool named = options.backend != nullptr ? std::string(options.backend) != "auto" : !now->backend.is_auto();
    const backend_entry* skip = nullptr;
    std::string failure;
    for (;;) {
      choice chosen = select(context, *now, prepared, options, data, skip);
      if (!failure.empty()) chosen.why = chosen.why.empty() ? failure : failure + "; " + chosen.why;
      const bool may_fall_back =
          !named && !chosen.entry->is_cpu() && ((options.flags | now->flags) & LOCKSTEP_NO_FALLBACK) == 0;
      launch_result launched;
      lockstep_status status = LOCKSTEP_OK;
      try {
        prepared.call.workspace_bytes = 0;
        if (chosen.variant->workspace != nullptr)
          with_enough_stack(*chosen.entry, [&] {
            prepared.call.workspace_bytes = chosen.variant->workspace(chosen.queue.get(), &prepared.call);
          });
        status = give_workspace(prepared, chosen, options);
        if (status == LOCKSTEP_OK) status = launch_staged(context, chosen, prepared, options, data, launched);
        if (is_bad(status)) fail_backend(status, *chosen.entry);
      } catch (const error& e) {
        // No other backend can repeat the call if src or residual may be overwritten, or lost with the device.
        const bool src_gone = (prepared.in_place() && launched.started) ||
                              (e.status == LOCKSTEP_BACKEND_LOST && data.on_device().owner != nullptr);
        if (!may_fall_back || !recoverable(e.status) || src_gone) throw;
        failure = e.text;
        skip = chosen.entry;
        options.workspace = nullptr;  // it was for the backend that failed
        continue;
      }
      remember_run(&chosen, prepared.call.workspace_bytes, launched.staged_bytes);
      trace(prepared, chosen, launched.staged_bytes, status);
      if (status != LOCKSTEP_OK) throw error{status, last_error()};
      return;
    }
  });
}

}  // namespace lockstep::lib
