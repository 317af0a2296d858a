// calls.cpp - see calls.hpp.
#include "calls.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "data.hpp"
#include "timing.hpp"

namespace lockstep::tool::bench {
namespace {
constexpr double long_ms = 20;  // such a call needs no warming up twice, and few samples
}  // namespace

call_memory::~call_memory() {
  for (block* b : {&src_, &dst_, &offsets_}) drop(*b);
}

void call_memory::drop(block& b) {
  if (b.data != nullptr) (void)lockstep_free(context_, backend_.c_str(), kind_, b.bytes, b.data);
  b = {};
}

void call_memory::grow(block& b, size_t bytes) {
  if (bytes <= b.bytes) return;
  drop(b);
  bytes = std::max<size_t>(bytes, 4096);
  check(lockstep_alloc(context_, backend_.c_str(), kind_, bytes, &b.data));
  b.bytes = bytes;
}

void call_memory::prepare(const cases::test_case& c) {
  const size_t src_bytes = c.src.span_bytes(), dst_bytes = c.dst.span_bytes();
  const size_t had = dst_.bytes;
  grow(dst_, dst_bytes);
  if (dst_.bytes != had && kind_ != LOCKSTEP_DEVICE) std::memset(dst_.data, 0, dst_.bytes);  // its pages exist
  if (!c.in_place && (c.dtype != filled_dtype_ || src_bytes > filled_bytes_)) {
    grow(src_, src_bytes);
    fill(c, src_bytes);
    filled_dtype_ = c.dtype, filled_bytes_ = src_bytes;
  }
  if (c.offsets.empty()) return drop(offsets_);
  grow(offsets_, c.offsets.size() * sizeof(int64_t));
  check(lockstep_copy(context_, backend_.c_str(), c.offsets.data(), offsets_.data, c.offsets.size() * sizeof(int64_t)));
}

void call_memory::fill(const cases::test_case& c, size_t bytes) {
  if (kind_ != LOCKSTEP_DEVICE) return bench_data::fill(c, static_cast<unsigned char*>(src_.data));
  const std::unique_ptr<unsigned char, void (*)(void*)> host(
      static_cast<unsigned char*>(std::malloc(std::max<size_t>(bytes, 1))), std::free);
  if (host == nullptr) fail("no memory for {} bytes; choose smaller cases", bytes);
  bench_data::fill(c, host.get());
  check(lockstep_copy(context_, backend_.c_str(), host.get(), src_.data, bytes));
}

void time_calls(lockstep_context* context, const cases::test_case& c, const call_memory& memory,
                const lockstep_options& options, double seconds, std::vector<double>& ms, std::string& ran) {
  const void* src = memory.src(c);
  const auto once = [&] {
    const double start = now_ms();
    check(cases::call(context, c, src, memory.dst(), memory.offsets(), &options));
    return now_ms() - start;
  };
  double one = once();
  lockstep_run_info info{};
  info.size = sizeof info;
  check(lockstep_last_run(&info));
  ran = format_text("{}:{}", info.backend, info.variant);
  if (one < long_ms) one = once();
  const double end = now_ms() + seconds * 1e3;
  const size_t least = one < long_ms ? 3 : 1;
  const int runs = one > 0.05 ? 1 : static_cast<int>(0.05 / std::max(one, 1e-4)) + 1;
  for (size_t taken = 0; taken < least || (now_ms() < end && taken < 400); ++taken) {
    const double start = now_ms();
    for (int run = 0; run < runs; ++run) check(cases::call(context, c, src, memory.dst(), memory.offsets(), &options));
    ms.push_back((now_ms() - start) / runs);
  }
}

}  // namespace lockstep::tool::bench
