// normalized_rows.cuh - a call of normalize as its kernels take it.
#pragma once

#include "rows.cuh"

namespace lockstep::cuda {

template <class E>
normalized_rows rows_of(const lockstep_call& call) {
  const lockstep_normalize_desc& d = call.normalize;
  const bool quads = d.length % 4 == 0;
  const auto whole = [&](const void* at, int64_t stride) { return quads && aligned_quads<E>(at, stride); };
  const auto whole_of_result = [&] {
    switch (d.result) {
      case LOCKSTEP_F16:
      case LOCKSTEP_BF16: return quads && aligned_quads<half16>(call.dst, d.dst_stride);
      case LOCKSTEP_F32: return quads && aligned_quads<float>(call.dst, d.dst_stride);
      default: return quads && aligned_quads<double>(call.dst, d.dst_stride);
    }
  };
  const bool f32_weight = d.weight_dtype != d.dtype;
  const auto whole_column = [&](const void* at) {
    return f32_weight ? quads && aligned_quads<float>(at, 0) : whole(at, 0);
  };
  return {call.src,
          d.residual,
          call.dst,
          d.sum,
          d.weight,
          d.bias,
          d.count,
          d.length,
          d.src_stride,
          d.residual_stride,
          d.dst_stride,
          d.sum_stride,
          d.eps,
          d.kind,
          d.result,
          f32_weight,
          whole(call.src, d.src_stride),
          whole(d.residual, d.residual_stride),
          whole_of_result(),
          whole(d.sum, d.sum_stride),
          whole_column(d.weight) && whole_column(d.bias)};
}

}  // namespace lockstep::cuda
