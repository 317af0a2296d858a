// columns_launch.cuh - which kernels take columns of which length; one .cu file a type of elements calls it.
#pragma once

#include "bits/normalizations.hpp"
#include "columns.cuh"

namespace lockstep::cuda {

template <class E, class P>
lockstep_status launch_held_columns(lockstep_queue& queue, const column_rows& d, int64_t groups) {
  const auto kernel = columns_held<E, P, column_width>;
  const size_t bytes = held_columns_bytes(d.length, sizeof(E));
  // What threads exchange comes on top.
  if (const lockstep_status status = allow_shared(queue, kernel, bytes + 4096); status != LOCKSTEP_OK) return status;
  return launch_soon(queue, "columns_held", kernel, dim3(static_cast<unsigned>(groups)), column_block, bytes, d);
}

template <class E>
lockstep_status apply_columns(lockstep_queue& queue, const column_rows& d, int64_t groups, const spread* found) {
  constexpr int64_t each = int64_t{apply_elements} * column_shape<column_width>::Y;
  const dim3 blocks(static_cast<unsigned>(groups * ((d.length - 1) / each + 1)));
  return launch(queue, "columns_apply", columns_apply<E>, blocks, column_block, 0, d, found);
}

template <class E>
lockstep_status launch_given_columns(lockstep_queue& queue, const column_rows& d, int64_t groups, dim3 column_blocks,
                                     const double* given, spread* found) {
  if (!d.exponential) return apply_columns<E>(queue, d, groups, reinterpret_cast<const spread*>(given));
  const lockstep_status status =
      launch(queue, "columns_given", columns_given<E>, column_blocks, column_block, 0, d, given, found);
  if (status != LOCKSTEP_OK || lib::kind_of(d.kind).one_result) return status;
  return apply_columns<E>(queue, d, groups, found);
}

template <class E, class P>
lockstep_status launch_long_columns(lockstep_queue& queue, const lockstep_call& call, const column_rows& d,
                                    int64_t groups) {
  const column_values room(call.normalize, call.workspace);
  auto* const values = static_cast<P*>(room.values);
  auto* const found = static_cast<spread*>(room.found);
  const dim3 leaf_blocks(static_cast<unsigned>(groups * order::leaves(d.length)));
  const dim3 column_blocks(static_cast<unsigned>((d.count - 1) / column_block + 1));
  if (call.normalize.given != nullptr)
    return launch_given_columns<E>(queue, d, groups, column_blocks, call.normalize.given, found);
  lockstep_status status = LOCKSTEP_OK;
  if constexpr (std::is_same_v<P, exponential_sum>) {
    auto* const extremes = static_cast<double*>(room.values);
    status = launch(queue, "columns_extremes", columns_extremes<E>, leaf_blocks, column_block, 0, d, extremes);
    if (status == LOCKSTEP_OK)
      status = launch(queue, "columns_centre", columns_centre, column_blocks, column_block, 0, d,
                      static_cast<const double*>(extremes), found);
  }
  if (status == LOCKSTEP_OK)
    status = launch(queue, "columns_leaves", columns_leaves<E, P>, leaf_blocks, column_block, 0, d,
                    static_cast<const spread*>(found), values);
  if (status == LOCKSTEP_OK)
    status = launch(queue, "columns_join", columns_join<E, P>, column_blocks, column_block, 0, d,
                    static_cast<const P*>(values), found);
  if (status != LOCKSTEP_OK || lib::kind_of(d.kind).one_result) return status;
  return apply_columns<E>(queue, d, groups, found);
}

template <class E>
lockstep_status launch_columns(lockstep_queue& queue, const lockstep_call& call, bool held) {
  const lockstep_normalize_desc& n = call.normalize;
  const bool exponential = lib::kind_of(n.kind).exponential;
  const column_rows d{{rows_of<E>(call), n.scale, n.labels, queue.report}, n.inner, exponential};
  const int64_t groups = column_groups(n);
  const auto launch_with = [&](auto value) {
    using P = decltype(value);
    return held ? launch_held_columns<E, P>(queue, d, groups) : launch_long_columns<E, P>(queue, call, d, groups);
  };
  if (exponential) return launch_with(exponential_sum{});
  return n.kind == LOCKSTEP_NORMALIZE_LAYER ? launch_with(order::moments{}) : launch_with(double{});
}

}  // namespace lockstep::cuda
