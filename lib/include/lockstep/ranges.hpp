// ranges.hpp - part of lockstep.hpp, which says how it is used: the typed calls on any contiguous range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

#include "lockstep/calls.hpp"

namespace lockstep {

// ---- without naming types ----------------------------------------------------
// The same calls on any contiguous range (vector, array, span), from which T is deduced.

template <class Range>
concept elements = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    element<std::ranges::range_value_t<Range> >;

namespace detail {
template <class Range>
using value_of = std::ranges::range_value_t<Range>;
template <class Range>
using source = std::span<const value_of<Range> >;  // what a call reads
template <class Range>
using target = std::span<value_of<Range> >;  // what it writes
}  // namespace detail

template <elements Src>
[[nodiscard]] auto square_sum(context& c, const Src& src, const lockstep_options* o = nullptr) {
  return square_sum(c, detail::source<Src>(src), o);
}
template <elements Src>
[[nodiscard]] double norm2(context& c, const Src& src, const lockstep_options* o = nullptr) {
  return norm2(c, detail::source<Src>(src), o);
}
template <elements Src>
[[nodiscard]] auto sum(context& c, const Src& src, const lockstep_options* o = nullptr) {
  return sum(c, detail::source<Src>(src), o);
}
template <elements Src>
[[nodiscard]] auto min(context& c, const Src& src, const lockstep_options* o = nullptr) {
  return min(c, detail::source<Src>(src), o);
}
template <elements Src>
[[nodiscard]] auto max(context& c, const Src& src, const lockstep_options* o = nullptr) {
  return max(c, detail::source<Src>(src), o);
}
template <elements Src>
[[nodiscard]] std::int64_t argmin(context& c, const Src& src, const lockstep_options* o = nullptr) {
  return argmin(c, detail::source<Src>(src), o);
}
template <elements Src>
[[nodiscard]] std::int64_t argmax(context& c, const Src& src, const lockstep_options* o = nullptr) {
  return argmax(c, detail::source<Src>(src), o);
}
template <elements Src, elements Dst>
void transpose(context& c, const Src& src, Dst&& dst, std::int64_t rows, std::int64_t cols,
               const lockstep_options* o = nullptr) {
  transpose(c, detail::source<Src>(src), detail::target<Dst>(dst), rows, cols, o);
}
template <elements Src, elements Dst>
void permute(context& c, const Src& src, Dst&& dst, std::span<const std::int64_t> shape,
             std::span<const std::int32_t> perm, const lockstep_options* o = nullptr) {
  permute(c, detail::source<Src>(src), detail::target<Dst>(dst), shape, perm, o);
}
template <elements Src, elements Dst>
void convert(context& c, const Src& src, Dst&& dst, std::span<const std::int64_t> shape,
             std::span<const std::int32_t> perm, double scale = 1, const lockstep_options* o = nullptr) {
  convert(c, detail::source<Src>(src), detail::target<Dst>(dst), shape, perm, scale, o);
}
template <elements Src, elements Dst>
void convert(context& c, const Src& src, Dst&& dst, double scale = 1, const lockstep_options* o = nullptr) {
  convert(c, detail::source<Src>(src), detail::target<Dst>(dst), scale, o);
}
template <elements Src, elements Dst>
void map(context& c, lockstep_function function, const Src& src, Dst&& dst, std::span<const std::int64_t> shape,
         std::span<const std::int32_t> perm, const lockstep_options* o = nullptr) {
  map(c, function, detail::source<Src>(src), detail::target<Dst>(dst), shape, perm, o);
}
template <elements Src, elements Dst>
void map(context& c, lockstep_function function, const Src& src, Dst&& dst, const lockstep_options* o = nullptr) {
  map(c, function, detail::source<Src>(src), detail::target<Dst>(dst), o);
}
template <elements Src, elements Dst>
void reduce_matrix(context& c, lockstep_reduction reduction, along direction, const Src& src, Dst&& dst,
                   std::int64_t rows, std::int64_t cols, const lockstep_options* o = nullptr) {
  reduce_matrix(c, reduction, direction, detail::source<Src>(src), detail::target<Dst>(dst), rows, cols, o);
}
template <elements Src, elements Dst>
void reduce_segments(context& c, lockstep_reduction reduction, const Src& src, std::span<const std::int64_t> offsets,
                     Dst&& dst, const lockstep_options* o = nullptr) {
  reduce_segments(c, reduction, detail::source<Src>(src), offsets, detail::target<Dst>(dst), o);
}
template <elements Src, elements Dst>
void reduce_axes(context& c, lockstep_reduction reduction, const Src& src, Dst&& dst,
                 std::span<const std::int64_t> shape, std::span<const std::int32_t> axes,
                 const lockstep_options* o = nullptr) {
  reduce_axes(c, reduction, detail::source<Src>(src), detail::target<Dst>(dst), shape, axes, o);
}
template <elements Src, elements Other>
[[nodiscard]] auto dot(context& c, const Src& x, const Other& y, const lockstep_options* o = nullptr) {
  return dot(c, detail::source<Src>(x), detail::source<Other>(y), o);
}
template <elements Src>
[[nodiscard]] mean_and_variance mean_variance(context& c, const Src& x, std::int64_t correction = 0,
                                              const lockstep_options* o = nullptr) {
  return mean_variance(c, detail::source<Src>(x), correction, o);
}
template <elements Src, elements Dst>
void stencil(context& c, const Src& src, Dst&& dst, std::span<const std::int64_t> shape, std::int32_t radius,
             weights taps, lockstep_boundary boundary, std::int32_t sweeps = 1, double value = 0.0,
             const lockstep_options* o = nullptr) {
  stencil(c, detail::source<Src>(src), detail::target<Dst>(dst), shape, radius, taps, boundary, sweeps, value, o);
}
template <elements Src, elements Dst>
void shuffle(context& c, lockstep_shuffle_kind kind, const Src& src, Dst&& dst, std::int32_t width,
             std::int32_t operand, const lockstep_options* o = nullptr) {
  shuffle(c, kind, detail::source<Src>(src), detail::target<Dst>(dst), width, operand, o);
}

// ---- plans --------------------------------------------------------------------

// A call prepared once; the context must outlive it.
class plan {
 public:
  template <description Desc>
  plan(context& c, const Desc& d, const lockstep_options* o = nullptr) {
    open(c, d, o).raise();
  }
  // The no-throw form: leaves out empty when it fails.
  template <description Desc>
  static failure try_create(context& c, const Desc& d, plan& out, const lockstep_options* o = nullptr) noexcept {
    return out.open(c, d, o);
  }
  // An empty plan, for try_create.
  explicit plan(std::nullptr_t) noexcept {}

  failure try_workspace_bytes(std::size_t& bytes) const noexcept {
    return failure(lockstep_plan_workspace(handle_.get(), &bytes));
  }
  [[nodiscard]] std::size_t workspace_bytes() const {
    std::size_t bytes = 0;
    try_workspace_bytes(bytes).raise();
    return bytes;
  }
  // What the plan has chosen, in the form of last_run().
  failure try_info(lockstep_run_info& info) const noexcept {
    info.size = sizeof info;
    return failure(lockstep_plan_get(handle_.get(), &info));
  }
  [[nodiscard]] lockstep_run_info info() const {
    lockstep_run_info told{};
    try_info(told).raise();
    return told;
  }
  failure try_execute(const void* src, void* dst, const lockstep_options* o = nullptr) noexcept {
    return failure(lockstep_plan_execute(handle_.get(), src, dst, o));
  }
  void execute(const void* src, void* dst, const lockstep_options* o = nullptr) { try_execute(src, dst, o).raise(); }
  [[nodiscard]] lockstep_plan* get() const noexcept { return handle_.get(); }

 private:
  template <class Desc>
  failure open(context& c, const Desc& d, const lockstep_options* o) noexcept {
    lockstep_plan* raw = nullptr;
    failure failed(lockstep_plan_create(c.get(), detail::op_of(d), &d, o, &raw));
    handle_.reset(raw);
    return failed;
  }
  struct destroy {
    void operator()(lockstep_plan* p) const noexcept { lockstep_plan_destroy(p); }
  };
  std::unique_ptr<lockstep_plan, destroy> handle_;
};

// What this thread's last call did (texts valid until its next lockstep call).
inline failure try_last_run(lockstep_run_info& info) noexcept {
  info.size = sizeof info;
  return failure(lockstep_last_run(&info));
}
[[nodiscard]] inline lockstep_run_info last_run() {
  lockstep_run_info info{};
  try_last_run(info).raise();
  return info;
}

}  // namespace lockstep
