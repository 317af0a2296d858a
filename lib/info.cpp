// info.cpp - lists backends, devices and variants.
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "ops/ops.hpp"

namespace lockstep::lib {
namespace {

backend_entry& entry_named(const char* backend) {
  if (backend == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "backend is NULL; write \"cpu\" or \"cuda\"");
  const backend_name named = named_backend(backend, "backend");  // a device of it has the same rows
  if (named.is_auto())
    fail(LOCKSTEP_INVALID_ARGUMENT, "backend is \"auto\"; name the one you ask about, as lockstep_backend_get does");
  return *named.entry;
}

// A reason changes when a backend is lost, but texts already returned must stay valid. No lock: a child of fork would
// inherit it as another thread held it.
const char* kept(std::string text) {
  struct node {
    const std::string text;
    const node* next;
  };
  static std::atomic<const node*> texts{nullptr};
  const node* first = texts.load(std::memory_order_acquire);
  for (const node* known = first; known != nullptr; known = known->next)
    if (known->text == text) return known->text.c_str();
  auto* const added = new node{std::move(text), first};
  while (!texts.compare_exchange_weak(added->next, added, std::memory_order_acq_rel)) {
  }
  return added->text.c_str();
}

}  // namespace
}  // namespace lockstep::lib

using namespace lockstep::lib;
extern "C" {
int32_t lockstep_backend_count(void) {
  int32_t count = 0;
  (void)guarded([&] { count = static_cast<int32_t>(backends().size()); });
  return count;
}

lockstep_status lockstep_backend_get(int32_t index, lockstep_backend_info* info) {
  return guarded([&] {
    if (index < 0 || index >= static_cast<int32_t>(backends().size()))
      fail(LOCKSTEP_INVALID_ARGUMENT, "index is {}; there are {} backends, numbered from 0", index, backends().size());
    backend_entry& entry = *backends()[static_cast<size_t>(index)];
    const lockstep_backend* loaded = entry.loaded();
    const bool usable = entry.get() != nullptr;
    give(lockstep_backend_info{sizeof(lockstep_backend_info), entry.name().c_str(),
                               loaded != nullptr ? loaded->description : "", entry.path().c_str(), kept(entry.reason()),
                               usable ? 1 : 0, entry.devices()},
         info, "info");
  });
}

const char* lockstep_backend_path(void) {
  const char* text = "";
  (void)guarded([&] { text = search_path_text().c_str(); });
  return text;
}

lockstep_status lockstep_device_get(const char* backend, int32_t device, lockstep_device_info* info) {
  return guarded([&] {
    backend_entry& entry = entry_named(backend);
    const lockstep_backend* usable = entry.get();
    if (usable == nullptr) fail(LOCKSTEP_NO_BACKEND, "{} cannot run here: {}", entry.name(), entry.reason());
    if (device < 0 || device >= entry.devices())
      fail(LOCKSTEP_INVALID_ARGUMENT, "device is {}; {} has {}, numbered from 0", device, entry.name(),
           entry.devices());
    lockstep_device_info filled{};
    filled.size = sizeof filled;
    if (const lockstep_status s = usable->device_info(device, &filled); s != LOCKSTEP_OK) fail_backend(s, entry);
    for (const auto& [text, size] : {std::pair{filled.name, sizeof filled.name}, {filled.detail, sizeof filled.detail}})
      lockstep::copy_shown(text, size, std::string(text, strnlen(text, size)));
    give(filled, info, "info");
  });
}

int32_t lockstep_variant_count(const char* backend, lockstep_op op) {
  int32_t count = 0;
  (void)guarded([&] {
    row_of(op);
    if (const lockstep_backend* loaded = entry_named(backend).loaded())
      count = static_cast<int32_t>(table_of(*loaded, op).count);
  });
  return count;
}

lockstep_status lockstep_variant_get(const char* backend, lockstep_op op, int32_t index, lockstep_variant_info* info) {
  return guarded([&] {
    const op_row& of = row_of(op);
    const lockstep_backend* loaded = entry_named(backend).loaded();
    const size_t count = loaded != nullptr ? table_of(*loaded, op).count : 0;
    if (index < 0 || static_cast<size_t>(index) >= count)
      fail(LOCKSTEP_INVALID_ARGUMENT, "index is {}; {} of {} has {} variants, numbered from 0", index, of.name, backend,
           count);
    const lockstep_variant& row = table_of(*loaded, op).rows[index];
    give(lockstep_variant_info{sizeof(lockstep_variant_info), row.name, row.idea, row.flags}, info, "info");
  });
}
}
