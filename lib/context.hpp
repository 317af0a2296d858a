// context.hpp - a context: its settings (an immutable snapshot that running calls
// keep) and its queues (one for each call that runs at the same time, reused).
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "choose/calibration.hpp"
#include "choose/remembered.hpp"
#include "load/registry.hpp"

namespace lockstep::lib {

// "auto", "cpu", "cuda", "cuda:1"
struct backend_name {
  backend_entry* entry = nullptr;  // nullptr: auto
  int32_t device = 0;
  bool is_auto() const { return entry == nullptr; }
};
// Throws INVALID_ARGUMENT for a malformed name, NO_BACKEND for an unknown one
// or one that cannot run here.
backend_name parse_backend(const std::string& text, const char* argument);
// The same of a backend that is only asked about: it, or the device, need not run here.
backend_name named_backend(const std::string& text, const char* argument);

using variant_names = std::array<std::string, LOCKSTEP_OP_COUNT>;  // "" when none is forced
// "transpose=tiled,reduce=ref"; throws NO_VARIANT when no backend has the name.
variant_names parse_variants(const std::string& text, const char* argument);
void check_variant_known(lockstep_op op, const std::string& name, const char* argument);

struct settings {
  backend_name backend;
  variant_names variants;
  std::string cpu_isa;
  int32_t threads = 0;
  uint32_t flags = 0;
};

struct pooled_queue {
  backend_entry* entry = nullptr;
  const lockstep_backend* backend = nullptr;
  int32_t device = 0;
  void* stream = nullptr;           // the caller's, or nullptr
  std::thread::id thread;           // that made it, and owns a per-thread default stream
  lockstep_queue* queue = nullptr;  // nullptr while it is being made, and once it was released
  std::mutex in_use;
  bool shared = false;                // the context's asynchronous queue: calls take turns on it
  std::atomic<bool> pending = false;  // has work that was not waited for yet
  bool reserved = false;              // belongs to a plan
  // The first failure of finished work that lockstep_synchronize has not returned yet.
  // Guarded by the context's mutex, as are reserved and setting pending.
  lockstep_status failed = LOCKSTEP_OK;
  std::string failed_text;
};

// A queue in use by one call. Goes back to its context when destroyed.
class queue_lease {
 public:
  queue_lease() = default;
  explicit queue_lease(pooled_queue* pooled) : pooled_(pooled) {}
  queue_lease(queue_lease&& other) noexcept : pooled_(std::exchange(other.pooled_, nullptr)) {}
  queue_lease& operator=(queue_lease&& other) noexcept {
    release();
    pooled_ = std::exchange(other.pooled_, nullptr);
    return *this;
  }
  ~queue_lease() { release(); }
  explicit operator bool() const { return pooled_ != nullptr; }
  lockstep_queue* get() const { return pooled_->queue; }
  pooled_queue* pooled() const { return pooled_; }
  pooled_queue* operator->() const { return pooled_; }

 private:
  void release() {
    if (pooled_ != nullptr) pooled_->in_use.unlock();
    pooled_ = nullptr;
  }
  pooled_queue* pooled_ = nullptr;
};

}  // namespace lockstep::lib

struct lockstep_context {
  explicit lockstep_context(const lockstep_context_options& options);
  ~lockstep_context();

  std::shared_ptr<const lockstep::lib::settings> current() const;
  // Replaces the settings by a changed copy.
  template <class Alter>
  void change(const Alter& alter) {
    const std::lock_guard lock(mutex_);
    auto next = std::make_shared<lockstep::lib::settings>(*settings_);
    alter(*next);
    settings_ = std::move(next);
  }

  // A queue for one call. Synchronous calls get one of their own, unless
  // asynchronous work is pending: then they wait behind it, as in a stream.
  lockstep::lib::queue_lease acquire(lockstep::lib::backend_entry* entry, int32_t device, void* stream, bool async);
  // Reserves the leased queue for a plan (another one if asynchronous calls use it), and
  // returns it to the pool once its work is done.
  lockstep::lib::pooled_queue* reserve(lockstep::lib::queue_lease lease);
  lockstep::lib::queue_lease lock(lockstep::lib::pooled_queue* reserved);
  void unreserve(lockstep::lib::pooled_queue* reserved);
  void mark_pending(const lockstep::lib::queue_lease& lease);
  // Before a blocking call: waits for asynchronous work ahead of it and keeps its
  // failure for lockstep_synchronize, so that the call reports only its own.
  void settle(const lockstep::lib::queue_lease& lease);
  lockstep_status synchronize(std::string& text);
  void release_stream(lockstep::lib::backend_entry* entry, void* stream);
  const lockstep_allocator& allocator() const { return allocator_; }
  // Called around a fork, so that the child sees a context with no call running.
  void before_fork() { mutex_.lock(), remembered_.before_fork(); }
  void after_fork(bool in_child);
  lockstep_context* next_living = nullptr;  // in the list of all contexts
  // auto's cost model, read on first use.
  const lockstep::lib::calibration& calibrated();
  // Rows chosen by measuring.
  lockstep::lib::remembered_choices& remembered() { return remembered_; }

 private:
  std::shared_ptr<lockstep::lib::pooled_queue> add(lockstep::lib::backend_entry* entry, int32_t device, void* stream,
                                                   bool shared);
  lockstep::lib::queue_lease make(const std::shared_ptr<lockstep::lib::pooled_queue>& fresh);

  lockstep_allocator allocator_;
  mutable std::mutex mutex_;
  std::shared_ptr<const lockstep::lib::settings> settings_;
  std::optional<lockstep::lib::calibration> calibrated_;
  lockstep::lib::remembered_choices remembered_;
  // The failure of work on a released stream, for synchronize to return.
  lockstep_status failed_ = LOCKSTEP_OK;
  std::string failed_text_;
  // Shared with calls that wait for one, which another thread may release meanwhile.
  std::vector<std::shared_ptr<lockstep::lib::pooled_queue>> queues_;
};
