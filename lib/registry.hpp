// registry.hpp - the backends of this process: the built-in CPU one and the
// modules found on the search path. Found once, loaded on first use, never
// unloaded (RTLD_NODELETE), so pointers to entries stay valid.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "lockstep/backend.h"

namespace lockstep::lib {

class backend_entry {
 public:
  backend_entry(std::string name, std::string path) : name_(std::move(name)), path_(std::move(path)) {}

  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  // The backend when it can run here, else nullptr and reason() says why. Loads
  // the module once.
  const lockstep_backend* get();
  // The backend even where it found no device, so that its tables can be listed.
  const lockstep_backend* loaded();
  int32_t devices();
  std::string reason();
  // The backend whose memory a pointer may be: a usable one, or one that was and is
  // lost, whose memory the host still must not touch.
  const lockstep_backend* owner();
  // After a sticky device error: unusable for the rest of the process.
  void mark_lost(const std::string& why);

 private:
  void load_locked();
  const std::string name_, path_;
  std::mutex mutex_;
  bool tried_ = false, usable_ = false, lost_ = false;
  const lockstep_backend* backend_ = nullptr;
  int32_t devices_ = 0;
  std::string reason_;
};

// In the order auto considers them: modules first, "cpu" last.
const std::vector<backend_entry*>& backends();
backend_entry* find_backend(const std::string& name);  // nullptr: unknown
const std::string& search_path_text();

// A backend's failed call: its own text, with the backend's name before it. A lost
// backend is marked so.
[[noreturn]] void fail_backend(lockstep_status status, backend_entry& entry);

}  // namespace lockstep::lib
