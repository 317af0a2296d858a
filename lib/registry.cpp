// registry.cpp - see registry.hpp.
#include "registry.hpp"

#include <deque>

#include "module.hpp"
#include "status.hpp"

// The CPU backend's entry, built into this library (backends/cpu/backend.cpp).
extern "C" const lockstep_backend* lockstep_cpu_backend(const lockstep_host* host);
extern "C" const lockstep_group_table* lockstep_cpu_groups();  // group.cpp beside it

namespace lockstep::lib {
namespace {
struct registry {
  std::deque<backend_entry> owned;
  std::vector<backend_entry*> entries;
  std::string path_text;
  registry() {
    for (const module_file& module : find_modules()) owned.emplace_back(module.name, module.path);
    owned.emplace_back("cpu", "");
    for (backend_entry& entry : owned) entries.push_back(&entry);
    for (const search_folder& folder : search_folders()) {
      if (!path_text.empty()) path_text += ':';
      path_text += printable(folder.path);
      if (!folder.refused.empty()) path_text += printable(format_text(" (not used: {})", folder.refused));
    }
  }
};
const registry& instance() {
  static const registry* const one = new registry;  // never destroyed: threads may outlive main
  return *one;
}
const lockstep_host built_in_host = {LOCKSTEP_BACKEND_ABI, sizeof(lockstep_host), &set_error};
}  // namespace

backend_entry::state backend_entry::load() {
  const std::lock_guard lock(mutex_);
  if (const state known = state_.load(); known != state::untried) return known;
  state found = state::unusable;
  try {
    backend_ = is_cpu() ? lockstep_cpu_backend(&built_in_host) : load_module(path_, &groups_, &peers_);
    if (is_cpu()) groups_ = lockstep_cpu_groups();
    clear_error();
    if (backend_->devices(&devices_) != LOCKSTEP_OK || devices_ == 0)
      fail(LOCKSTEP_NO_BACKEND, "{}", *last_error() ? last_error() : "it found no device");
    found = state::usable;
  } catch (const std::bad_alloc&) {  // fails only this call: the next one tries again
    backend_ = nullptr;
    groups_ = nullptr;
    peers_ = nullptr;
    devices_ = 0;
    throw;
  } catch (const error& e) {
    devices_ = 0;
    reason_ = e.text;
  } catch (const std::exception& e) {
    devices_ = 0;
    reason_ = e.what();
  }
  clear_error();
  state_.store(found, std::memory_order_release);
  return found;
}

std::string backend_entry::reason() {
  now();
  const std::lock_guard lock(mutex_);
  return reason_;
}
void backend_entry::mark_lost(const std::string& why) {
  const std::lock_guard lock(mutex_);
  state_.store(state::lost, std::memory_order_release);
  reason_ = "lost: " + why;
}

void fail_backend(lockstep_status status, backend_entry& entry) {
  const std::string text = *last_error() ? last_error() : lockstep_status_name(status);
  if (status == LOCKSTEP_BACKEND_LOST) entry.mark_lost(text);
  throw error{status, format_text("{}: {}", entry.name(), text)};
}

std::string device_text(backend_entry& entry, int32_t device) {
  const lockstep_backend* backend = entry.get();
  lockstep_device_info info{};
  info.size = sizeof info;
  if (backend != nullptr && backend->device_info(device, &info) == LOCKSTEP_OK)
    return printable(format_text("{}; {}", info.name, info.detail));
  clear_error();
  return "";
}

const std::vector<backend_entry*>& backends() { return instance().entries; }
const std::string& search_path_text() { return instance().path_text; }
backend_entry* find_backend(const std::string& name) {
  for (backend_entry* entry : backends())
    if (entry->name() == name) return entry;
  return nullptr;
}
}  // namespace lockstep::lib
