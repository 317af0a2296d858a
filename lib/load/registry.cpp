// registry.cpp - see registry.hpp.
#include "registry.hpp"

#include <cstring>
#include <deque>

#include "../status.hpp"
#include "module.hpp"

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
      path_text += shown(folder.path);
      if (!folder.refused.empty()) path_text += shown(format_text(" (not used: {})", folder.refused));
    }
  }
};
const registry& instance() {
  static const registry* const one = new registry;  // never destroyed: threads may outlive main
  return *one;
}
const lockstep_host built_in_host = {LOCKSTEP_BACKEND_ABI, sizeof(lockstep_host), &set_error};
}  // namespace

// One thread loads the module, and others wait for it. The module's code may do anything: fork, start threads that do,
// or ask this library about backends. It then sees itself as one that cannot be used yet.
backend_entry::state backend_entry::load() {
  {
    std::unique_lock lock(mutex_);
    if (loading_ && loader_ == std::this_thread::get_id()) return state::unusable;
    loaded_.wait(lock, [&] { return !loading_; });
    if (const state known = state_.load(); known != state::untried) return known;
    reason_ = "it is being loaded";  // may throw: nothing is marked yet
    loading_ = true;
    loader_ = std::this_thread::get_id();
  }
  std::string reason;
  state found = state::untried;  // where memory ran out: that fails only this call, and the next one tries again
  const auto end = [&] {
    const std::lock_guard lock(mutex_);
    reason_ = std::move(reason);
    loading_ = false;
    state_.store(found, std::memory_order_release);
    loaded_.notify_all();
  };
  try {
    found = try_to_load(reason);
  } catch (...) {
    backend_ = nullptr;
    groups_ = nullptr;
    peers_ = nullptr;
    devices_ = 0;
    end();
    throw;
  }
  clear_error();
  end();
  return found;
}

backend_entry::state backend_entry::try_to_load(std::string& reason) {
  try {
    backend_ = is_cpu() ? lockstep_cpu_backend(&built_in_host) : load_module(path_, &groups_, &peers_);
    if (is_cpu()) groups_ = lockstep_cpu_groups();
    clear_error();
    if (backend_->devices(&devices_) != LOCKSTEP_OK || devices_ == 0)
      fail(LOCKSTEP_NO_BACKEND, "{}", *last_error() ? last_error() : "it found no device");
    return state::usable;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const error& e) {
    reason = e.text;
  } catch (const std::exception& e) {
    reason = e.what();
  }
  devices_ = 0;
  return state::unusable;
}

void backend_entry::after_fork_in_child() {
  new (&mutex_) std::mutex;
  new (&loaded_) std::condition_variable;
  if (loader_ != std::this_thread::get_id()) loading_ = false;
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
    return shown(format_text("{}; {}", std::string(info.name, strnlen(info.name, sizeof info.name)),
                             std::string(info.detail, strnlen(info.detail, sizeof info.detail))));
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
