// ranks.hpp - header-only C++20 over ranks.h: communicators, grids that own their cuts, plans. As in lockstep.hpp the
// plain form throws lockstep::exception, and the form that starts with try_ returns a lockstep::failure.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/lockstep.hpp"
#include "lockstep/ranks.h"

namespace lockstep::ranks {

class comm {
 public:
  // Over a transport, or only of seats of this process. Over MPI use comm(lockstep_comm*) with the result of
  // lockstep_comm_from_mpi. The context must outlive it.
  comm(context& c, const lockstep_engine& engine, const lockstep_comm_options& options = lockstep_comm_defaults()) {
    lockstep_comm* raw = nullptr;
    failure(lockstep_comm_create(c.get(), &engine, &options, &raw)).raise();
    handle_.reset(raw);
  }
  comm(context& c, std::int32_t seats) {
    lockstep_comm_options options = lockstep_comm_defaults();
    options.seats = seats;
    lockstep_comm* raw = nullptr;
    failure(lockstep_comm_local(c.get(), &options, &raw)).raise();
    handle_.reset(raw);
  }
  // Ranks on the backends that options name, "cuda:0" and "cpu" in any mix.
  comm(context& c, const lockstep_comm_options& options) {
    lockstep_comm* raw = nullptr;
    failure(lockstep_comm_local(c.get(), &options, &raw)).raise();
    handle_.reset(raw);
  }
  explicit comm(lockstep_comm* made) noexcept : handle_(made) {}  // takes ownership

  [[nodiscard]] lockstep_comm_info info() const {
    lockstep_comm_info i{};
    i.size = sizeof i;
    failure(lockstep_comm_get(get(), &i)).raise();
    return i;
  }
  [[nodiscard]] std::int32_t size() const { return info().ranks; }
  [[nodiscard]] std::int32_t rank() const { return info().rank; }
  failure try_synchronize() noexcept { return failure(lockstep_ranks_synchronize(get())); }
  void synchronize() { try_synchronize().raise(); }
  [[nodiscard]] lockstep_comm* get() const noexcept { return handle_.get(); }

 private:
  struct destroy {
    void operator()(lockstep_comm* c) const noexcept { lockstep_comm_destroy(c); }
  };
  std::unique_ptr<lockstep_comm, destroy> handle_;
};

// A grid of T; even cuts unless cut() gives others.
template <element T>
class grid {
 public:
  grid(std::span<const std::int64_t> shape, std::span<const std::int32_t> parts) {
    grid_.size = sizeof grid_;
    grid_.element_bytes = sizeof(T);
    if (shape.size() != parts.size() || shape.empty() || shape.size() > LOCKSTEP_MAX_RANK)
      throw exception(LOCKSTEP_INVALID_ARGUMENT, "shape and parts must have the same length, 1 to 8");
    grid_.rank = static_cast<std::int32_t>(shape.size());
    for (std::size_t k = 0; k < shape.size(); ++k) grid_.shape[k] = shape[k], grid_.parts[k] = parts[k];
  }
  grid(std::initializer_list<std::int64_t> shape, std::initializer_list<std::int32_t> parts)
      : grid(std::span(shape.begin(), shape.size()), std::span(parts.begin(), parts.size())) {}
  // parts + 1 ascending numbers, from 0 to the axis's length.
  grid& cut(std::size_t axis, std::vector<std::int64_t> cuts) {
    if (axis >= static_cast<std::size_t>(grid_.rank) || cuts.size() != static_cast<std::size_t>(grid_.parts[axis]) + 1)
      throw exception(LOCKSTEP_INVALID_ARGUMENT, "cut: no such axis, or not one more cut than it has parts");
    cuts_[axis] = std::move(cuts);
    return *this;
  }
  // The rank of each block.
  grid& order(std::vector<std::int32_t> ranks) {
    std::int64_t blocks = 1;
    for (std::int32_t k = 0; k < grid_.rank; ++k) blocks *= grid_.parts[k];
    if (blocks != static_cast<std::int64_t>(ranks.size()))
      throw exception(LOCKSTEP_INVALID_ARGUMENT, "order: give one rank for each block");
    order_ = std::move(ranks);
    return *this;
  }
  struct box {
    std::array<std::int64_t, LOCKSTEP_MAX_RANK> low{}, length{};
    std::int64_t elements = 1;
  };
  [[nodiscard]] box of(std::int32_t rank) const {
    box b;
    const lockstep_grid g = get();
    failure(lockstep_grid_box(&g, rank, b.low.data(), b.length.data())).raise();
    for (std::int32_t k = 0; k < g.rank; ++k) b.elements *= b.length[static_cast<std::size_t>(k)];
    return b;
  }
  // A packed block of a rank, in memory that holds of(rank).elements.
  [[nodiscard]] lockstep_part packed(std::int32_t rank, const T* data) const {
    return lockstep_part_packed(const_cast<T*>(data), grid_.rank, of(rank).length.data());
  }
  // A block of a rank with width[k] ghosts on both sides of axis k, in memory that holds elements_with_ghosts of them.
  [[nodiscard]] lockstep_part with_ghosts(std::int32_t rank, std::span<const std::int64_t> width, T* memory) const {
    require_width(width);
    return lockstep_part_with_ghosts(memory, sizeof(T), grid_.rank, of(rank).length.data(), width.data());
  }
  [[nodiscard]] std::int64_t elements_with_ghosts(std::int32_t rank, std::span<const std::int64_t> width) const {
    require_width(width);
    const box b = of(rank);
    std::int64_t n = 1;
    for (std::size_t k = 0; k < width.size(); ++k) n *= b.length[k] + 2 * width[k];
    return n;
  }
  void require_width(std::span<const std::int64_t> width) const {
    if (width.size() != static_cast<std::size_t>(grid_.rank))
      throw exception(LOCKSTEP_INVALID_ARGUMENT, "width must have one number for each axis");
  }
  // Valid while this grid exists and is not changed.
  [[nodiscard]] lockstep_grid get() const noexcept {
    lockstep_grid g = grid_;
    for (std::size_t k = 0; k < LOCKSTEP_MAX_RANK; ++k) g.cuts[k] = cuts_[k].empty() ? nullptr : cuts_[k].data();
    g.order = order_.empty() ? nullptr : order_.data();
    return g;
  }

 private:
  lockstep_grid grid_{};
  std::array<std::vector<std::int64_t>, LOCKSTEP_MAX_RANK> cuts_;
  std::vector<std::int32_t> order_;
};

// Where a reduction that keeps no axis puts its result.
template <number R>
[[nodiscard]] lockstep_part scalar(R& result) noexcept {
  return lockstep_part_scalar(&result);
}

class plan {
 public:
  explicit plan(lockstep_ranks_plan* made) noexcept : handle_(made) {}

  // One part for each seat of this process. With LOCKSTEP_ASYNC it only starts; comm::synchronize waits.
  failure try_execute(const lockstep_part* src, const lockstep_part* dst,
                      const lockstep_options& options = lockstep_options_defaults()) noexcept {
    return failure(lockstep_ranks_execute(handle_.get(), src, dst, &options));
  }
  void execute(const lockstep_part* src, const lockstep_part* dst,
               const lockstep_options& options = lockstep_options_defaults()) {
    try_execute(src, dst, options).raise();
  }
  void execute(const lockstep_part& src, const lockstep_part& dst,
               const lockstep_options& options = lockstep_options_defaults()) {
    execute(&src, &dst, options);
  }
  // Of asynchronous executions: whether they are finished here, and waiting for them.
  [[nodiscard]] bool test() {
    std::int32_t done = 0;
    failure(lockstep_ranks_test(handle_.get(), &done)).raise();
    return done != 0;
  }
  void wait() { failure(lockstep_ranks_wait(handle_.get())).raise(); }
  // For programs that keep plans, in place of making this one again: collective (lockstep_ranks_agree).
  void agree() { failure(lockstep_ranks_agree(handle_.get())).raise(); }
  [[nodiscard]] std::size_t workspace() const {
    std::size_t bytes = 0;
    failure(lockstep_ranks_workspace(handle_.get(), &bytes)).raise();
    return bytes;
  }
  [[nodiscard]] lockstep_ranks_cost estimate(double latency_us = 0, double gigabytes_per_s = 0) const {
    const lockstep_ranks_link link = {sizeof link, latency_us, gigabytes_per_s};
    lockstep_ranks_cost cost{};
    cost.size = sizeof cost;
    failure(lockstep_ranks_estimate(handle_.get(), &link, &cost)).raise();
    return cost;
  }
  [[nodiscard]] lockstep_ranks_plan* get() const noexcept { return handle_.get(); }

 private:
  struct destroy {
    void operator()(lockstep_ranks_plan* p) const noexcept { lockstep_ranks_plan_destroy(p); }
  };
  std::unique_ptr<lockstep_ranks_plan, destroy> handle_;
};

namespace detail {
// By a function of ranks.h, which gives the plan behind its other arguments.
template <class Make, class... Arguments>
plan made(Make make, const Arguments&... arguments) {
  lockstep_ranks_plan* raw = nullptr;
  failure(make(arguments..., &raw)).raise();
  return plan(raw);
}
}  // namespace detail

template <class R, number T>
[[nodiscard]] lockstep_dtype result_of(lockstep_reduction reduction) noexcept {
  if constexpr (std::is_void_v<R>)
    return lockstep_default_result(reduction, dtype_of<T>);
  else
    return dtype_of<R>;
}

// ---- plans: collective --------------------------------------------------------
// options: a workspace here promises one at each execution (ranks.h).

template <element T>
plan permute(comm& c, const grid<T>& src, std::span<const std::int32_t> perm, const grid<T>& dst,
             const lockstep_options& options = lockstep_options_defaults()) {
  const lockstep_grid from = src.get(), to = dst.get();
  if (perm.size() != static_cast<std::size_t>(from.rank))
    throw exception(LOCKSTEP_INVALID_ARGUMENT, "perm must have one number for each axis");
  return detail::made(lockstep_ranks_permute, c.get(), &from, perm.data(), &to, &options);
}
template <element T>
plan permute(comm& c, const grid<T>& src, std::initializer_list<std::int32_t> perm, const grid<T>& dst,
             const lockstep_options& options = lockstep_options_defaults()) {
  return permute(c, src, std::span(perm.begin(), perm.size()), dst, options);
}
template <element T>
plan redistribute(comm& c, const grid<T>& src, const grid<T>& dst,
                  const lockstep_options& options = lockstep_options_defaults()) {
  std::array<std::int32_t, LOCKSTEP_MAX_RANK> same{};
  for (std::size_t k = 0; k < same.size(); ++k) same[k] = static_cast<std::int32_t>(k);
  return permute(c, src, std::span<const std::int32_t>(same.data(), static_cast<std::size_t>(src.get().rank)), dst,
                 options);
}

// Every rank gets all results, of type R where it is named: reduce<float>(c, src, LOCKSTEP_SUM, 1).
template <class R = void, number T>
plan reduce(comm& c, const grid<T>& src, lockstep_reduction reduction, std::uint32_t axes,
            const lockstep_options& options = lockstep_options_defaults()) {
  const lockstep_grid from = src.get();
  return detail::made(lockstep_ranks_reduce, c.get(), &from, reduction, dtype_of<T>, result_of<R, T>(reduction), axes,
                      nullptr, &options);
}
// A float sum, product, sum of squares or norm in the order of the grid: 8 bytes a block are moved
// (lockstep_ranks_reduce_blocks).
template <class R = void, number T>
plan reduce_blocks(comm& c, const grid<T>& src, lockstep_reduction reduction,
                   const lockstep_options& options = lockstep_options_defaults()) {
  const lockstep_grid from = src.get();
  return detail::made(lockstep_ranks_reduce_blocks, c.get(), &from, reduction, dtype_of<T>, result_of<R, T>(reduction),
                      &options);
}
// Several of them, of arrays that are divided alike, in one reduction: an array of results on every rank
// (lockstep_ranks_reduce_several).
inline constexpr lockstep_ranks_term sum_of_squares{LOCKSTEP_SQUARE_SUM, LOCKSTEP_SUM_OF_SQUARES},
    dot{LOCKSTEP_SUMS, LOCKSTEP_SUMS_DOT}, sum{LOCKSTEP_REDUCE, LOCKSTEP_SUM};
template <class R = void, number T>
plan reduce_several(comm& c, const grid<T>& src, std::span<const lockstep_ranks_term> terms,
                    const lockstep_options& options = lockstep_options_defaults()) {
  const lockstep_grid from = src.get();
  return detail::made(lockstep_ranks_reduce_several, c.get(), &from, terms.data(),
                      static_cast<std::int32_t>(terms.size()), dtype_of<T>, result_of<R, T>(LOCKSTEP_SUM), &options);
}
template <class R = void, number T>
plan reduce_several(comm& c, const grid<T>& src, std::initializer_list<lockstep_ranks_term> terms,
                    const lockstep_options& options = lockstep_options_defaults()) {
  return reduce_several<R>(c, src, std::span(terms.begin(), terms.size()), options);
}
// Results of type R by blocks of a grid.
template <number T, number R>
plan reduce(comm& c, const grid<T>& src, lockstep_reduction reduction, std::uint32_t axes, const grid<R>& dst,
            const lockstep_options& options = lockstep_options_defaults()) {
  const lockstep_grid from = src.get(), to = dst.get();
  return detail::made(lockstep_ranks_reduce, c.get(), &from, reduction, dtype_of<T>, dtype_of<R>, axes, &to, &options);
}

// A sum of lockstep_ranks_sums; a digest as sums<std::uint64_t>(c, src, LOCKSTEP_SUMS_DIGEST, axes). Of two arrays
// execute(src, dst) takes the parts of both, one array's behind the other's.
template <class R = void, number T>
plan sums(comm& c, const grid<T>& src, lockstep_sums_kind kind, std::uint32_t axes,
          const lockstep_options& options = lockstep_options_defaults()) {
  const lockstep_grid from = src.get();
  return detail::made(lockstep_ranks_sums, c.get(), &from, kind, dtype_of<T>, result_of<R, T>(LOCKSTEP_SUM), axes,
                      nullptr, &options);
}

// Mean and variance of each sequence, or of the whole array (lockstep_ranks_mean_variance): results have one more axis,
// of 2.
template <class R = void, number T>
plan mean_variance(comm& c, const grid<T>& src, std::uint32_t axes, std::int64_t correction = 0,
                   const lockstep_options& options = lockstep_options_defaults()) {
  const lockstep_grid from = src.get();
  return detail::made(lockstep_ranks_mean_variance, c.get(), &from, dtype_of<T>, result_of<R, T>(LOCKSTEP_SUM), axes,
                      correction, nullptr, &options);
}

// Rows normalized, as desc's kind, result, weight_dtype and eps or scale say (lockstep_ranks_normalize). arrays:
// LOCKSTEP_RANKS_WEIGHT, _BIAS and _RESIDUAL, whose parts execute() takes behind those of src.
template <number T>
plan normalize(comm& c, const grid<T>& src, const lockstep_normalize_desc& desc, std::uint32_t arrays = 0,
               const lockstep_options& options = lockstep_options_defaults()) {
  const lockstep_grid from = src.get();
  return detail::made(lockstep_ranks_normalize, c.get(), &from, &desc, arrays, &options);
}

// Running sums or extremes along an axis, of type R where it is named.
template <class R = void, number T>
plan scan(comm& c, const grid<T>& src, lockstep_reduction reduction, std::int32_t axis, bool exclusive = false,
          const lockstep_options& options = lockstep_options_defaults()) {
  const lockstep_grid from = src.get();
  lockstep_dtype result = dtype_of<T>;
  if constexpr (!std::is_void_v<R>)
    result = dtype_of<R>;
  else if (reduction == LOCKSTEP_SUM && lockstep_dtype_kind(result) != 'f')
    result = LOCKSTEP_I64;
  return detail::made(lockstep_ranks_scan, c.get(), &from, reduction, dtype_of<T>, result, axis, exclusive ? 1 : 0,
                      &options);
}

template <number T>
plan stencil(comm& c, const grid<T>& g, const lockstep_stencil_desc& desc,
             const lockstep_options& options = lockstep_options_defaults()) {
  const lockstep_grid from = g.get();
  return detail::made(lockstep_ranks_stencil, c.get(), &from, &desc, &options);
}

// Fills ghosts around blocks; use execute(nullptr, parts).
template <element T>
plan halo(comm& c, const grid<T>& g, std::span<const std::int64_t> width, lockstep_boundary boundary, double value = 0,
          const lockstep_options& options = lockstep_options_defaults()) {
  g.require_width(width);
  const lockstep_grid from = g.get();
  return detail::made(lockstep_ranks_halo, c.get(), &from, width.data(), boundary, value, &options);
}

// The same for several fields: parts of the first for each seat, behind them those of the next.
template <element T>
plan halo_fields(comm& c, const grid<T>& g, std::span<const std::int64_t> width, lockstep_boundary boundary,
                 std::int32_t fields, double value = 0, const lockstep_options& options = lockstep_options_defaults()) {
  g.require_width(width);
  const lockstep_grid from = g.get();
  return detail::made(lockstep_ranks_halo_fields, c.get(), &from, width.data(), boundary, value, fields, &options);
}

}  // namespace lockstep::ranks
