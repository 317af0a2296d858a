// select.cpp - which backend and variant take a call. A named one runs or is an
// error; only auto chooses, and it writes down why it passed over the others.
#include <algorithm>

#include "mutant.hpp"
#include "run.hpp"

namespace lockstep::lib {
namespace {

// auto's cost model for data in host memory: one pass over host memory is faster
// on the CPU than any trip over the link, so a device pays only when enough
// sweeps follow. Defaults: 20 GB/s a pass on the CPU, 10 GB/s over the link.
constexpr double cpu_bytes_per_s = 20e9, link_bytes_per_s = 10e9, device_bytes_per_s = 1000e9;

bool device_pays(const prepared_call& prepared) {
  const double sweeps = prepared.call.op == LOCKSTEP_STENCIL ? prepared.call.stencil.sweeps : 1;
  const double moved = static_cast<double>(prepared.moved_bytes);
  return moved / link_bytes_per_s + moved * sweeps / device_bytes_per_s < moved * sweeps / cpu_bytes_per_s;
}

struct pick {
  const lockstep_variant* variant = nullptr;
  std::string why;
};

pick pick_named(const lockstep_backend& backend, const lockstep_queue* queue, const lockstep_call& call,
                const std::string& name) {
  const lockstep_table& table = backend.tables[call.op];
  for (size_t i = 0; i < table.count; ++i) {
    const lockstep_variant& row = table.rows[i];
    if (name != row.name && !LOCKSTEP_MUTANT("named_variant_ignored")) continue;
    const char* refusal = row.refuses != nullptr ? row.refuses(queue, &call) : nullptr;
    if (refusal == nullptr) return {&row, ""};
    return {nullptr, fmt::format("variant \"{}\" refuses this call: {}", name, refusal)};
  }
  return {nullptr, fmt::format("has no variant \"{}\"", name)};
}

pick pick_best(const lockstep_backend& backend, const lockstep_queue* queue, const lockstep_call& call) {
  const lockstep_table& table = backend.tables[call.op];
  const lockstep_variant* yielded = nullptr;
  std::string why;
  constexpr uint32_t never = LOCKSTEP_OWN_ORDER | LOCKSTEP_LIBRARY | LOCKSTEP_LESSON | LOCKSTEP_REFERENCE;
  for (size_t i = 0; i < table.count; ++i) {
    const lockstep_variant& row = table.rows[i];
    if ((row.flags & never) != 0) continue;
    if (const char* refusal = row.refuses != nullptr ? row.refuses(queue, &call) : nullptr; refusal != nullptr) {
      why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", row.name, refusal);
    } else if (row.yields != nullptr && row.yields(queue, &call) != 0) {
      if (yielded == nullptr) yielded = &row;
    } else {
      return {&row, why};
    }
  }
  if (yielded != nullptr) return {yielded, why};
  // A backend of references only (a plug-in of plain loops) still serves.
  for (size_t i = 0; i < table.count; ++i) {
    const lockstep_variant& row = table.rows[i];
    if ((row.flags & LOCKSTEP_REFERENCE) != 0 && (row.refuses == nullptr || row.refuses(queue, &call) == nullptr))
      return {&row, why};
  }
  return {nullptr, table.count == 0 ? "does not have this op" : why};
}

}  // namespace

whereabouts locate(const prepared_call& prepared, const void* src, const void* dst) {
  whereabouts found;
  for (backend_entry* entry : backends()) {
    if (entry->name() == "cpu") continue;
    const lockstep_backend* backend = entry->owner();
    if (backend == nullptr) continue;
    for (const void* pointer : {src, const_cast<const void*>(dst), static_cast<const void*>(
             prepared.offsets_bytes != 0 ? prepared.call.reduce.offsets : nullptr)}) {
      if (pointer == nullptr) continue;
      lockstep_memory kind = LOCKSTEP_HOST;
      int32_t device = -1;
      backend->locate(pointer, &kind, &device);
      if (kind == LOCKSTEP_DEVICE || kind == LOCKSTEP_MANAGED) return {true, entry->name(), std::max(device, 0)};
    }
  }
  return found;
}

choice select(lockstep_context* context, const settings& now, const prepared_call& prepared,
              const lockstep_options& options, const whereabouts& data, const backend_entry* skip) {
  const backend_name named = options.backend != nullptr ? parse_backend(options.backend, "options.backend") : now.backend;
  const std::string forced = options.variant != nullptr && std::string(options.variant) != "auto"
                                 ? options.variant
                                 : (options.variant == nullptr ? now.variants[prepared.call.op] : "");
  if (options.variant != nullptr && !forced.empty()) check_variant_known(prepared.call.op, forced, "options.variant");

  if (backend_entry* owner = data.on_device ? find_backend(data.backend) : nullptr; owner != nullptr && owner->get() == nullptr)
    fail(LOCKSTEP_BACKEND_LOST, "the data is memory of {}, which is gone with it ({})", owner->name(), owner->reason());
  choice chosen;
  for (backend_entry* entry : backends()) {
    const auto passed_over = [&](const std::string& reason) {
      chosen.why += fmt::format("{}{}: {}", chosen.why.empty() ? "" : "; ", entry->name(), reason);
    };
    if (!named.is_auto() && entry->name() != named.name) continue;
    const lockstep_backend* backend = entry->get();
    if (named.is_auto()) {
      if (entry == skip) continue;  // its failure is already in the story
      if (backend == nullptr) {
        passed_over(entry->reason());
        continue;
      }
      const bool owns_data = data.on_device && data.backend == entry->name();
      const bool last_resort = entry->name() == "cpu";
      if (!last_resort && skip == nullptr && forced.empty() && !owns_data &&
          !((options.flags & LOCKSTEP_DEVICE_DATA) != 0) && !device_pays(prepared)) {
        passed_over("the data is in host memory, and one trip over the link costs more than the CPU needs");
        continue;
      }
    } else if (backend == nullptr) {
      fail(LOCKSTEP_NO_BACKEND, "{} cannot run any more: {}", entry->name(), entry->reason());
    }
    const bool own_device = data.on_device && data.backend == entry->name() && named.is_auto();
    chosen.device = own_device ? data.device : named.device;
    try {
      chosen.queue = context->acquire(entry, chosen.device, entry->name() == "cpu" ? nullptr : options.stream,
                                      (options.flags & LOCKSTEP_ASYNC) != 0);
    } catch (const error& e) {
      const bool may_fall_back = named.is_auto() && entry->name() != "cpu" && ((options.flags | now.flags) & LOCKSTEP_NO_FALLBACK) == 0;
      if (!may_fall_back || !recoverable(e.status)) throw;
      chosen.why += (chosen.why.empty() ? "" : "; ") + e.text;  // which names the backend
      continue;
    }
    const pick picked = forced.empty() ? pick_best(*backend, chosen.queue.get(), prepared.call)
                                       : pick_named(*backend, chosen.queue.get(), prepared.call, forced);
    if (picked.variant != nullptr) {
      chosen.entry = entry;
      chosen.backend = backend;
      chosen.variant = picked.variant;
      chosen.forced = !forced.empty();
      return chosen;
    }
    chosen.queue = {};
    passed_over(picked.why);
  }
  fail(LOCKSTEP_UNSUPPORTED, "{}: no backend takes this call ({}); lift the forced backend or variant",
       lockstep_op_name(prepared.call.op), chosen.why);
}

const lockstep_variant* pick_variant(const choice& chosen, const lockstep_call& call) {
  const lockstep_queue* queue = chosen.queue.get();
  return (chosen.forced ? pick_named(*chosen.backend, queue, call, chosen.variant->name) : pick_best(*chosen.backend, queue, call)).variant;
}

}  // namespace lockstep::lib
