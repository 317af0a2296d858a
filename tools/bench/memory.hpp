// memory.hpp - memory of a backend, released with the object.
#pragma once

#include "../cli.hpp"

namespace lockstep::tool::bench {

class block {
 public:
  block(lockstep_context* c, std::string backend, lockstep_memory kind, size_t bytes)
      : context_(c), backend_(std::move(backend)), kind_(kind), bytes_(bytes) {
    check(lockstep_alloc(context_, backend_.c_str(), kind_, bytes_, &data_));
  }
  ~block() { (void)lockstep_free(context_, backend_.c_str(), kind_, bytes_, data_); }
  block(const block&) = delete;
  block& operator=(const block&) = delete;
  unsigned char* data() const { return static_cast<unsigned char*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  lockstep_context* context_;
  std::string backend_;
  lockstep_memory kind_;
  size_t bytes_;
  void* data_ = nullptr;
};

}  // namespace lockstep::tool::bench
