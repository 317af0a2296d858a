// select.cpp - chooses the backend and variant of a call. A named one runs or is an error;
// only auto chooses, and it records why it passed over the others.
#include <algorithm>
#include <cstddef>

#include "../call/enough_stack.hpp"
#include "estimate.hpp"

namespace lockstep::lib {
namespace {

struct pick {
  const lockstep_variant* variant = nullptr;
  std::string why;
};

// An older backend must not get calls with dtypes or members that it does not know: it would misread them.
uint32_t reads_of(const lockstep_backend& backend) {
  const bool says = backend.size >= offsetof(lockstep_backend, reads) + sizeof backend.reads;
  return says && backend.reads != 0 ? backend.reads : 1;
}

pick pick_named(const lockstep_backend& backend, const lockstep_queue* queue, const lockstep_call& call,
                const std::string& name) {
  const lockstep_table table = table_of(backend, call.op);
  for (size_t i = 0; i < table.count; ++i) {
    const lockstep_variant& row = table.rows[i];
    if (name != row.name) continue;
    const char* refusal = row.refuses != nullptr ? row.refuses(queue, &call) : nullptr;
    if (refusal == nullptr) return {&row, ""};
    return {nullptr, format_text("variant \"{}\" refuses this call: {}", name, refusal)};
  }
  return {nullptr, format_text("has no variant \"{}\"", name)};
}

// The reasons why every row refuses the call.
std::string refusals(const lockstep_table& table, const lockstep_queue* queue, const lockstep_call& call) {
  std::string why;
  for (size_t i = 0; i < table.count; ++i) {
    const lockstep_variant& row = table.rows[i];
    const char* refusal = only_by_name(row) || row.refuses == nullptr ? nullptr : row.refuses(queue, &call);
    if (refusal != nullptr) why += format_text("{}{}: {}", why.empty() ? "" : "; ", row.name, refusal);
  }
  return why;
}

pick pick_best(const lockstep_backend& backend, const lockstep_queue* queue, const lockstep_call& call) {
  const lockstep_table table = table_of(backend, call.op);
  const lockstep_variant* yielded = nullptr;
  for (size_t i = 0; i < table.count; ++i) {
    const lockstep_variant& row = table.rows[i];
    if (only_by_name(row) || (row.refuses != nullptr && row.refuses(queue, &call) != nullptr)) continue;
    if (row.yields == nullptr || row.yields(queue, &call) == 0) return {&row, ""};
    if (yielded == nullptr) yielded = &row;
  }
  if (yielded != nullptr) return {yielded, ""};
  // A backend with only a reference row (a module of plain loops) may use that.
  for (size_t i = 0; i < table.count; ++i) {
    const lockstep_variant& row = table.rows[i];
    if ((row.flags & LOCKSTEP_REFERENCE) != 0 && (row.refuses == nullptr || row.refuses(queue, &call) == nullptr))
      return {&row, ""};
  }
  return {nullptr, table.count == 0 ? "does not have this op" : refusals(table, queue, call)};
}

}  // namespace

bool only_by_name(const lockstep_variant& row) {
  return (row.flags & (LOCKSTEP_OWN_ORDER | LOCKSTEP_LIBRARY | LOCKSTEP_LESSON | LOCKSTEP_REFERENCE)) != 0;
}

array_place place_of(const void* pointer) {
  array_place found;
  if (pointer == nullptr) return found;
  for (backend_entry* entry : backends()) {
    const lockstep_backend* backend = entry->is_cpu() ? nullptr : entry->owner();
    if (backend == nullptr) continue;
    lockstep_memory kind = LOCKSTEP_HOST;
    int32_t device = -1;
    backend->locate(pointer, &kind, &device);
    if (kind == LOCKSTEP_DEVICE || kind == LOCKSTEP_MANAGED) return {kind, entry, std::max(device, 0)};
    if (kind == LOCKSTEP_PINNED) found.kind = kind;
  }
  return found;
}

// Where no module has memory of its own, nothing is asked of pointers.
static bool all_is_host_memory() {
  for (backend_entry* entry : backends())
    if (!entry->is_cpu() && entry->owner() != nullptr) return false;
  return true;
}

array_places locate(const prepared_call& prepared, const void* src, const void* dst) {
  array_places found;
  if (all_is_host_memory()) return found;
  found.src = place_of(src), found.dst = place_of(dst);
  if (prepared.offsets_bytes != 0) found.offsets = place_of(offsets_of(prepared.call));
  for (int i = 0; i < prepared.side_count; ++i) found.sides[i] = place_of(prepared.sides[i].pointer);
  // A small dst in pageable memory does not slow down the copies.
  const bool sized = prepared.dst_span >= prepared.src_span / 8;
  found.pinned = found.on_device().owner == nullptr && found.src.kind == LOCKSTEP_PINNED &&
                 (found.dst.kind == LOCKSTEP_PINNED || !sized);
  return found;
}

bool can_reach(const choice& chosen, const array_place& place, const void* pointer) {
  // The CPU backend cannot recognize device memory, but its owner can.
  if (chosen.entry->is_cpu()) return place.kind != LOCKSTEP_DEVICE;
  if (place.owner == chosen.entry && place.kind == LOCKSTEP_DEVICE && place.device == chosen.device) return true;
  return chosen.backend->reachable(chosen.queue.get(), pointer) != 0;
}

choice select(lockstep_context* context, const settings& now, const prepared_call& prepared,
              const lockstep_options& options, const array_places& data, const backend_entry* skip) {
  const backend_name named =
      options.backend != nullptr ? parse_backend(options.backend, "options.backend") : now.backend;
  const std::string forced = options.variant != nullptr && std::string(options.variant) != "auto"
                                 ? options.variant
                                 : (options.variant == nullptr ? now.variants[prepared.call.op] : "");
  if (options.variant != nullptr && !forced.empty()) check_variant_known(prepared.call.op, forced, "options.variant");

  const array_place& device_data = data.on_device();
  backend_entry* const owner = device_data.owner;
  if (owner != nullptr && owner->get() == nullptr)
    fail(LOCKSTEP_BACKEND_LOST, "the data is in memory of {}, which was lost with it ({})", owner->name(),
         owner->reason());
  choice chosen;
  for (backend_entry* entry : backends()) {
    const auto passed_over = [&](const std::string& reason) {
      chosen.why += format_text("{}{}: {}", chosen.why.empty() ? "" : "; ", entry->name(), reason);
    };
    if (!named.is_auto() && entry != named.entry) continue;
    const lockstep_backend* backend = entry->get();
    if (backend != nullptr && reads_of(*backend) < prepared.reads) {
      passed_over("has no kernels for " + prepared.needs);
      continue;
    }
    if (named.is_auto()) {
      if (entry == skip) continue;  // its failure is already part of why
      if (backend == nullptr) {
        passed_over(entry->reason());
        continue;
      }
      const bool last_resort = entry->is_cpu();
      if (!last_resort && forced.empty() && owner != nullptr && owner != entry) {
        passed_over("the data is in memory of " + owner->name());
        continue;
      }
      // Asynchronous calls and calls on a stream stay on the device that owns the data.
      const bool stays = (options.flags & LOCKSTEP_DEVICE_DATA) != 0 ||
                         (owner != nullptr && ((options.flags & LOCKSTEP_ASYNC) != 0 || options.stream != nullptr ||
                                               !prepared.src_span_known));
      if (!last_resort && skip == nullptr && forced.empty() && !stays) {
        if (chosen.compared.device != nullptr) chosen.why = why_not_others(chosen);  // for the previous module
        const cost::place where = owner != nullptr ? cost::on_device : data.pinned ? cost::pinned : cost::pageable;
        chosen.compared = compare(context->calibrated(), prepared, *entry, where, now.threads);
        if (!chosen.compared.pays()) continue;
        if (owner != nullptr) chosen.compared = {};  // a device running on its own data needs no reason
      }
    } else if (backend == nullptr) {
      fail(LOCKSTEP_NO_BACKEND, "{} cannot run any more: {}", entry->name(), entry->reason());
    }
    // Its rows look at the offsets when one of them is chosen.
    if (entry->is_cpu() && prepared.offsets_bytes != 0 && place_of(offsets_of(prepared.call)).kind == LOCKSTEP_DEVICE) {
      passed_over("offsets are device memory, which it cannot read; call the backend that owns them");
      continue;
    }
    chosen.device = owner == entry && named.is_auto() ? device_data.device : named.device;
    try {
      chosen.queue = context->acquire(entry, chosen.device, entry->is_cpu() ? nullptr : options.stream,
                                      (options.flags & LOCKSTEP_ASYNC) != 0);
    } catch (const error& e) {
      const bool may_fall_back =
          named.is_auto() && !entry->is_cpu() && ((options.flags | now.flags) & LOCKSTEP_NO_FALLBACK) == 0;
      if (!may_fall_back || !recoverable(e.status)) throw;
      chosen.why += (chosen.why.empty() ? "" : "; ") + e.text;  // the text names the backend
      chosen.compared = {};
      continue;
    }
    pick picked;
    with_enough_stack(*entry, [&] {
      picked = forced.empty() ? pick_best(*backend, chosen.queue.get(), prepared.call)
                              : pick_named(*backend, chosen.queue.get(), prepared.call, forced);
    });
    if (picked.variant != nullptr) {
      chosen.entry = entry;
      chosen.backend = backend;
      chosen.variant = picked.variant;
      chosen.forced = !forced.empty();
      return chosen;
    }
    chosen.queue = {};
    if (chosen.compared.device == entry) chosen.compared = {};  // its time does not matter, it cannot run the call
    passed_over(picked.why);
  }
  fail(LOCKSTEP_UNSUPPORTED, "{}: no backend takes this call ({}); lift the forced backend or variant",
       lockstep_op_name(prepared.call.op), why_not_others(chosen));
}

const lockstep_variant* pick_variant(const choice& chosen, const lockstep_call& call) {
  const lockstep_queue* queue = chosen.queue.get();
  const lockstep_variant* picked = nullptr;
  with_enough_stack(*chosen.entry, [&] {
    picked = (chosen.forced ? pick_named(*chosen.backend, queue, call, chosen.variant->name)
                            : pick_best(*chosen.backend, queue, call))
                 .variant;
  });
  return picked;
}

}  // namespace lockstep::lib
