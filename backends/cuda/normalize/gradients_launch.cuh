// gradients_launch.cuh - which kernels of gradients.cuh a call takes; one .cu file a type of elements calls it.
#pragma once

#include "gradients.cuh"
#include "normalized_rows.cuh"

namespace lockstep::cuda {

template <class E, bool layer>
lockstep_status launch_gradient_rows(lockstep_queue& queue, const gradient_rows& d, bool held,
                                     const gradient_room& room) {
  using P = std::conditional_t<layer, order::moments, double>;
  const int64_t lanes = gradient_lanes_of(d.count), leaves = order::leaves(d.length);
  if (held && d.length <= gradient_short_length) {
    const bool one = d.length <= order::lanes;
    int threads = one ? 4 : 32;
    while (threads * 4 < d.length && threads < 32) threads *= 2;
    const auto kernel = one ? gradient_short<E, layer, 1, 4> : gradient_short<E, layer, 4, 1>;
    const int64_t lanes_a_block = gradient_threads / threads;
    return launch_soon(queue, "gradient_short", kernel, dim3(static_cast<unsigned>((lanes - 1) / lanes_a_block + 1)),
                       dim3(gradient_threads), 0, d, threads, lanes);
  }
  if (held) {
    const auto kernel = d.length <= few_gradient_rows * order::lanes ? gradient_lanes<E, layer, few_gradient_rows>
                                                                     : gradient_lanes<E, layer, order::rows>;
    const auto fit = static_cast<size_t>(queue.facts->shared_bytes);
    const int stages = held_gradient_bytes(d.length, sizeof(E), 2) <= fit ? 2 : 1;
    const size_t bytes = held_gradient_bytes(d.length, sizeof(E), stages) - told_bytes;
    // What threads tell one another comes on top.
    if (const lockstep_status status = allow_shared(queue, kernel, std::min(bytes + told_bytes, fit - told_bytes));
        status != LOCKSTEP_OK)
      return status;
    return launch_soon(queue, "gradient_lanes", kernel, dim3(static_cast<unsigned>(lanes)),
                       dim3(static_cast<unsigned>(leaves * order::lanes)), bytes, d, stages);
  }
  auto* const values = static_cast<gradient_terms<P>*>(room.values);
  auto* const found = static_cast<gradient_row*>(room.found);
  const int64_t blocks = (d.length - 1) / gradient_threads + 1;
  lockstep_status status =
      launch(queue, "gradient_leaves", gradient_leaves<E, layer, P>,
             dim3(static_cast<unsigned>((d.count * leaves - 1) / (gradient_long_threads / 32) + 1)),
             gradient_long_threads, 0, d, values);
  if (status == LOCKSTEP_OK)
    status = launch(queue, "gradient_join", gradient_join<E, layer, P>,
                    dim3(static_cast<unsigned>(std::min<int64_t>(d.count, 65535))), gradient_long_threads, 0, d,
                    static_cast<const gradient_terms<P>*>(values), found);
  if (status != LOCKSTEP_OK) return status;
  return launch(queue, "gradient_columns", gradient_columns<E>, dim3(static_cast<unsigned>(blocks * lanes)),
                dim3(gradient_threads), 0, d, blocks, static_cast<const gradient_row*>(found));
}

template <class E>
lockstep_status launch_gradients(lockstep_queue& queue, const lockstep_call& call, bool held) {
  const lockstep_normalize_desc& n = call.normalize;
  const gradient_room room(n, held, call.workspace);
  gradient_rows d;
  static_cast<normalized_rows&>(d) = rows_of<E>(call);
  d.gradient = n.gradient, d.gradient_stride = n.gradient_stride;
  d.whole_gradient = n.length % 4 == 0 && aligned_quads<E>(n.gradient, n.gradient_stride);
  d.of_weight = room.of_weight, d.of_bias = room.of_bias;
  const lockstep_status status = n.kind == LOCKSTEP_NORMALIZE_LAYER_BACKWARD
                                     ? launch_gradient_rows<E, true>(queue, d, held, room)
                                     : launch_gradient_rows<E, false>(queue, d, held, room);
  return status == LOCKSTEP_OK ? sum_gradients(queue, n, room) : status;
}

}  // namespace lockstep::cuda
