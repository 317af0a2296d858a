// calls.hpp - times whole calls by the host's clock, as a caller sees them. auto's choice
// depends on these times; calibrate and the crossover measure them.
#pragma once

#include <vector>

#include "../cli.hpp"
#include "cases.hpp"

namespace lockstep::tool::bench {

// src, dst and offsets in one kind of a backend's memory, kept for smaller cases.
// "cpu" stands for ordinary host memory.
class call_memory {
 public:
  call_memory(lockstep_context* context, std::string backend, lockstep_memory kind)
      : context_(context), backend_(std::move(backend)), kind_(kind) {}
  ~call_memory();
  call_memory(const call_memory&) = delete;
  call_memory& operator=(const call_memory&) = delete;

  // Room for a case and its data. Throws failure when there is none.
  void prepare(const cases::test_case& c);
  const void* src(const cases::test_case& c) const { return c.in_place ? dst_.data : src_.data; }
  void* dst() const { return dst_.data; }
  // dst, in place src too, to and from the host. Throws failure.
  void read_dst(void* to, size_t bytes) const {
    check(lockstep_copy(context_, backend_.c_str(), dst_.data, to, bytes));
  }
  void write_dst(const void* from, size_t bytes) const {
    check(lockstep_copy(context_, backend_.c_str(), from, dst_.data, bytes));
  }
  const int64_t* offsets() const { return static_cast<const int64_t*>(offsets_.data); }

 private:
  struct block {
    void* data = nullptr;
    size_t bytes = 0;
  };
  void grow(block& b, size_t bytes);
  void drop(block& b);
  void fill(const cases::test_case& c, size_t bytes);
  lockstep_context* context_;
  std::string backend_;
  lockstep_memory kind_;
  block src_, dst_, offsets_;
  int filled_dtype_ = -1;  // what src holds, and how far: data of one kind begin alike
  size_t filled_bytes_ = 0;
};

// Milliseconds of a call: at least three samples (one for a long call), then more until the time is over; a sample
// of a short call is the mean of as many as fill 50 us. Appends to ms; variant becomes the one
// that ran ("cuda:wide").
void time_calls(lockstep_context* context, const cases::test_case& c, const call_memory& memory,
                const lockstep_options& options, double seconds, std::vector<double>& ms, std::string& ran);

}  // namespace lockstep::tool::bench
