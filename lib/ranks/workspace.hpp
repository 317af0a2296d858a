// workspace.hpp - host memory: memory for one use, and a plan's workspace, which is laid out while the plan is made and
// then allocated, or given by the caller, in one piece.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/lockstep.h"

struct lockstep_comm;

namespace lockstep::ranks {

// Page-locked memory that a communicator keeps when a plan gives it back: the driver takes long to lock pages, and
// stops every device meanwhile.
class kept_memory {
 public:
  static constexpr size_t most = size_t{256} << 20;  // bytes kept, beyond which the oldest are released
  explicit kept_memory(const lockstep_comm& comm) : comm_(comm) {}
  ~kept_memory() { release(0); }
  kept_memory(const kept_memory&) = delete;
  kept_memory& operator=(const kept_memory&) = delete;
  // Memory of at least that many bytes, which then says how many; NULL: the backend has none.
  void* take(const char* backend, size_t& bytes);
  void give(void* data, size_t bytes);
  void abandon() { pieces_.clear(), bytes_ = 0; }  // a device may still write to some

 private:
  struct piece {
    void* data;
    size_t bytes;
  };
  void release(size_t down_to);
  const lockstep_comm& comm_;
  std::string backend_;        // of all pieces
  std::vector<piece> pieces_;  // the oldest first
  size_t bytes_ = 0;
};

// Memory from the context's allocator, page-locked if seats are on devices; or of a seat's device. If the communicator
// closes while a transport or a device may still write into it, it is not freed.
class host_memory {
 public:
  host_memory() = default;
  host_memory(lockstep_comm& comm, size_t bytes);
  host_memory(lockstep_comm& comm, size_t bytes, int32_t seat);    // of the seat's device; of none for other seats
  static host_memory pageable(lockstep_comm& comm, size_t bytes);  // what no device touches
  host_memory(host_memory&& other) noexcept { *this = std::move(other); }
  host_memory& operator=(host_memory&& other) noexcept {
    std::swap(comm_, other.comm_), std::swap(bytes_, other.bytes_), std::swap(data_, other.data_);
    std::swap(kind_, other.kind_), std::swap(backend_, other.backend_);
    return *this;
  }
  ~host_memory();
  char* data() const { return static_cast<char*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  void allocate();
  lockstep_comm* comm_ = nullptr;
  size_t bytes_ = 0;
  void* data_ = nullptr;
  lockstep_memory kind_ = LOCKSTEP_HOST;
  const char* backend_ = "cpu";
};

// The layout of a plan's buffers. Steps that never run at the same time share memory: rewind to an earlier mark.
class workspace {
 public:
  static constexpr size_t alignment = 256;
  size_t take(size_t bytes) {
    const size_t at = used_;
    if (bytes > SIZE_MAX - used_ - alignment) throw std::bad_alloc{};  // no machine has as much
    used_ += (bytes + alignment - 1) / alignment * alignment;
    most_ = std::max(most_, used_);
    return at;
  }
  size_t mark() const { return used_; }
  void rewind(size_t mark) { used_ = mark; }
  void skip() { used_ = most_; }  // buffers from here on share nothing with earlier ones
  size_t bytes() const { return most_; }
  char* base = nullptr;  // while an execution runs

 private:
  size_t used_ = 0, most_ = 0;
};

// A buffer in a workspace.
class buffer {
 public:
  buffer() = default;
  buffer(workspace& in, size_t bytes) : in_(&in), bytes_(bytes), offset_(in.take(bytes)) {}
  char* data() const { return in_ == nullptr ? nullptr : in_->base + offset_; }
  size_t bytes() const { return bytes_; }

 private:
  workspace* in_ = nullptr;
  size_t bytes_ = 0, offset_ = 0;
};

}  // namespace lockstep::ranks
