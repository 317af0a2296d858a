// registry.hpp - the backends of this process: the built-in CPU one and the
// modules found on the search path. Found once, loaded on first use, never
// unloaded (RTLD_NODELETE), so pointers to entries stay valid.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/backend_group.h"
#include "lockstep/backend_peer.h"

namespace lockstep::lib {

class backend_entry {
 public:
  backend_entry(std::string name, std::string path) : name_(std::move(name)), path_(std::move(path)) {}

  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  bool is_cpu() const { return path_.empty(); }  // only the CPU backend is built in
  // The backend if it can run here, else nullptr, and reason() says why. Loads the
  // module once.
  const lockstep_backend* get() { return now() == state::usable ? backend_ : nullptr; }
  // The backend even where it found no device, so that its tables can be listed.
  const lockstep_backend* loaded() { return now(), backend_; }
  int32_t devices() { return now(), devices_; }
  // How it runs groups of an op's calls; nullptr: one after the other.
  const lockstep_group_row* group_row(lockstep_op op) {
    now();
    const bool has = groups_ != nullptr && static_cast<size_t>(op) < groups_->count;
    return has && groups_->rows[op].name != nullptr ? &groups_->rows[op] : nullptr;
  }
  const lockstep_group_table* groups() { return now(), groups_; }
  // How its devices exchange data; nullptr: through the host.
  const lockstep_peer_table* peers() { return now(), peers_; }
  std::string reason();
  // The backend if a pointer may be its memory: a usable one, or a lost one, because the
  // host must still not touch its memory.
  const lockstep_backend* owner() { return now() == state::usable || now() == state::lost ? backend_ : nullptr; }
  // After a sticky device error: unusable for the rest of the process.
  void mark_lost(const std::string& why);
  // In a forked child the thread that was loading the module does not exist, unless it is the one that forked.
  void after_fork_in_child();

 private:
  // Read without a lock, several times per call: backend_, groups_, peers_ and devices_ are written once, before state_
  // is set.
  enum class state { untried, usable, unusable, lost };
  state now() {
    const state known = state_.load(std::memory_order_acquire);
    return known != state::untried ? known : load();
  }
  state load();
  state try_to_load(std::string& reason);
  const std::string name_, path_;
  std::mutex mutex_;  // of loading_, loader_ and reason_; not held while the module's code runs
  std::condition_variable loaded_;
  bool loading_ = false;
  std::thread::id loader_;
  std::atomic<state> state_ = state::untried;
  const lockstep_backend* backend_ = nullptr;
  const lockstep_group_table* groups_ = nullptr;
  const lockstep_peer_table* peers_ = nullptr;
  int32_t devices_ = 0;
  std::string reason_;
};

// In the order auto considers them: modules first, "cpu" last.
const std::vector<backend_entry*>& backends();
backend_entry* find_backend(const std::string& name);  // nullptr: unknown
const std::string& search_path_text();

// The rows of an op; none if the backend does not have it.
inline lockstep_table table_of(const lockstep_backend& backend, lockstep_op op) {
  return static_cast<size_t>(op) < backend.table_count ? backend.tables[op] : lockstep_table{nullptr, 0};
}

// The description of a usable backend's device, "NVIDIA H200; sm_90, driver ..."; "" if it gives none.
std::string device_text(backend_entry& entry, int32_t device);

// Throws for a backend's failed call: its text with the backend's name in front. Marks a
// lost backend as lost.
[[noreturn]] void fail_backend(lockstep_status status, backend_entry& entry);

}  // namespace lockstep::lib
