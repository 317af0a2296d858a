// ranks_memory.hpp - for `lockstep ranks`: memory of a seat on a device.
#pragma once

#include <lockstep/lockstep.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli.hpp"

namespace lockstep::tool {

// A copy of host memory in the memory of a seat's device; the host memory itself where the seat is on the CPU.
class seat_memory {
 public:
  seat_memory(lockstep_context* context, std::string backend, void* host, size_t bytes)
      : context_(context), backend_(std::move(backend)), host_(static_cast<char*>(host)), bytes_(bytes) {
    if (backend_.empty() || backend_ == "cpu" || bytes == 0) return;
    check(lockstep_alloc(context_, backend_.c_str(), LOCKSTEP_DEVICE, bytes, &copy_));
    check(lockstep_copy(context_, backend_.c_str(), host, copy_, bytes));
    before_.assign(host_, host_ + bytes);
  }
  ~seat_memory() {
    if (copy_ != nullptr) static_cast<void>(lockstep_free(context_, backend_.c_str(), LOCKSTEP_DEVICE, bytes_, copy_));
  }
  seat_memory(const seat_memory&) = delete;
  seat_memory& operator=(const seat_memory&) = delete;

  void* at(void* in_host) const {
    return copy_ == nullptr || in_host == nullptr ? in_host
                                                  : static_cast<char*>(copy_) + (static_cast<char*>(in_host) - host_);
  }
  // Brings back the bytes that have changed; other seats may have changed others.
  void merge() const {
    if (copy_ == nullptr) return;
    std::vector<char> now(bytes_);
    check(lockstep_copy(context_, backend_.c_str(), copy_, now.data(), bytes_));
    for (size_t i = 0; i < bytes_; ++i)
      if (now[i] != before_[i]) host_[i] = now[i];
  }

 private:
  lockstep_context* context_;
  std::string backend_;
  char* host_;
  size_t bytes_;
  void* copy_ = nullptr;
  std::vector<char> before_;
};

// Memory for a seat's block, on its device or in host memory, with small whole numbers in it.
class block_memory {
 public:
  block_memory(lockstep_context* context, std::string backend, int64_t floats)
      : context_(context), backend_(std::move(backend)), bytes_(static_cast<size_t>(floats) * sizeof(float)) {
    if (backend_.empty()) backend_ = "cpu";
    kind_ = backend_ == "cpu" ? LOCKSTEP_HOST : LOCKSTEP_DEVICE;
    check(lockstep_alloc(context_, backend_.c_str(), kind_, bytes_, &data_));
    std::vector<float> some(std::min<size_t>(bytes_ / sizeof(float), size_t{1} << 22));
    for (size_t i = 0; i < some.size(); ++i) some[i] = static_cast<float>(i % 251);
    for (size_t at = 0, n = 0; at < bytes_; at += n) {
      n = std::min(some.size() * sizeof(float), bytes_ - at);
      check(lockstep_copy(context_, backend_.c_str(), some.data(), static_cast<char*>(data_) + at, n));
    }
  }
  ~block_memory() { static_cast<void>(lockstep_free(context_, backend_.c_str(), kind_, bytes_, data_)); }
  block_memory(const block_memory&) = delete;
  block_memory& operator=(const block_memory&) = delete;
  void* data() const { return data_; }

 private:
  lockstep_context* context_;
  std::string backend_;
  size_t bytes_;
  lockstep_memory kind_;
  void* data_ = nullptr;
};

}  // namespace lockstep::tool
