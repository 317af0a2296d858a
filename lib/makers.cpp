// makers.cpp - descriptions of packed data and default options: exported functions, so that bindings can call them
// without reading the header.
#include <cstring>

#include "bits/normalizations.hpp"
#include "bits/reductions.hpp"
#include "lockstep/lockstep.h"

namespace {

// Sizes are not checked yet: a product that is too large wraps here, and the call refuses it.
int64_t next_stride(int64_t stride, int64_t count) {
  return static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(count));
}

lockstep_reduce_desc sequences(lockstep_reduction reduction, lockstep_dtype dtype, int64_t count, int64_t length,
                               int64_t element_stride, int64_t sequence_stride, const int64_t* offsets = nullptr) {
  return {sizeof(lockstep_reduce_desc),
          reduction,
          dtype,
          lockstep_default_result(reduction, dtype),
          count,
          length,
          element_stride,
          sequence_stride,
          offsets};
}

// Results have the layout of the elements.
lockstep_scan_desc scanned(lockstep_reduction reduction, lockstep_dtype dtype, int64_t count, int64_t length,
                           int64_t element_stride, int64_t sequence_stride, const int64_t* offsets = nullptr) {
  const bool integer = lockstep_dtype_kind(dtype) == 'i' && reduction == LOCKSTEP_SUM;
  return {sizeof(lockstep_scan_desc),
          reduction,
          dtype,
          integer ? LOCKSTEP_I64 : dtype,
          count,
          length,
          element_stride,
          sequence_stride,
          offsets,
          element_stride,
          sequence_stride,
          0,
          0,
          nullptr};
}

lockstep_sums_desc summed(lockstep_sums_kind kind, lockstep_dtype dtype, int64_t count, int64_t length, int64_t stride,
                          const int64_t* offsets, const void* other, int64_t other_stride) {
  return {sizeof(lockstep_sums_desc),
          kind,
          dtype,
          kind == LOCKSTEP_SUMS_DIGEST ? LOCKSTEP_U64 : lockstep_default_result(LOCKSTEP_SUM, dtype),
          count,
          length,
          1,
          stride,
          offsets,
          other,
          1,
          other_stride,
          0};
}

}  // namespace

extern "C" {
lockstep_context_options lockstep_context_defaults(void) {
  lockstep_context_options o{};
  o.size = sizeof o;
  return o;
}

lockstep_options lockstep_options_defaults(void) {
  lockstep_options o{};
  o.size = sizeof o;
  return o;
}

lockstep_transpose_desc lockstep_transpose_packed(size_t element_bytes, int64_t rows, int64_t cols) {
  return {sizeof(lockstep_transpose_desc), element_bytes, rows, cols, cols, rows, 1, 0, 0};
}

lockstep_permute_desc lockstep_permute_packed(size_t element_bytes, int32_t rank, const int64_t* shape,
                                              const int32_t* perm) {
  lockstep_permute_desc d{};
  d.size = sizeof d;
  d.element_bytes = element_bytes;
  d.rank = rank;
  if (rank < 1 || rank > LOCKSTEP_MAX_RANK) return d;
  int64_t src_stride = 1, dst_stride = 1;
  for (int32_t k = rank - 1; k >= 0; --k) {
    d.perm[k] = perm != nullptr ? perm[k] : -1;
    d.shape[k] = shape != nullptr ? shape[k] : -1;
    d.src_strides[k] = src_stride;
    d.dst_strides[k] = dst_stride;
    src_stride = next_stride(src_stride, d.shape[k]);
    if (shape != nullptr && d.perm[k] >= 0 && d.perm[k] < rank) dst_stride = next_stride(dst_stride, shape[d.perm[k]]);
  }
  return d;
}

lockstep_dtype lockstep_default_result(lockstep_reduction reduction, lockstep_dtype dtype) {
  if (lockstep::lib::is_reduction(reduction)) {
    const lockstep::lib::reduction_kind& kind = lockstep::lib::kind_of(reduction);
    switch (kind.to) {
      case lockstep::lib::finish::index: return LOCKSTEP_I64;
      case lockstep::lib::finish::root: return LOCKSTEP_F64;
      case lockstep::lib::finish::any:
      case lockstep::lib::finish::all: return LOCKSTEP_BOOL;
      case lockstep::lib::finish::value: break;
    }
    if (kind.extreme()) return dtype;
    if (kind.of == lockstep::lib::term::truth) return LOCKSTEP_I64;
  }
  switch (dtype) {
#define LOCKSTEP_ROW(name, bytes, kind, sum, numpy, type) \
  case LOCKSTEP_##name: return LOCKSTEP_##sum;
    LOCKSTEP_DTYPES(LOCKSTEP_ROW)
#undef LOCKSTEP_ROW
  }
  return LOCKSTEP_F64;
}
lockstep_reduce_desc lockstep_reduce_full(lockstep_reduction reduction, lockstep_dtype dtype, int64_t n,
                                          int64_t stride) {
  return sequences(reduction, dtype, 1, n, stride, 0);
}
lockstep_reduce_desc lockstep_reduce_rows(lockstep_reduction reduction, lockstep_dtype dtype, int64_t rows,
                                          int64_t cols, int64_t ld) {
  return sequences(reduction, dtype, rows, cols, 1, ld);
}
lockstep_reduce_desc lockstep_reduce_columns(lockstep_reduction reduction, lockstep_dtype dtype, int64_t rows,
                                             int64_t cols, int64_t ld) {
  return sequences(reduction, dtype, cols, rows, ld, 1);
}
lockstep_reduce_desc lockstep_reduce_segments(lockstep_reduction reduction, lockstep_dtype dtype, int64_t segments,
                                              const int64_t* offsets) {
  return sequences(reduction, dtype, segments, 0, 1, 0, offsets);
}

lockstep_stencil_desc lockstep_stencil_packed(lockstep_dtype dtype, int32_t rank, const int64_t* shape, int32_t radius,
                                              const double* coefficients, lockstep_boundary boundary) {
  lockstep_stencil_desc d{};
  d.size = sizeof d;
  d.dtype = dtype;
  d.boundary = boundary;
  d.rank = rank;
  d.radius = radius;
  d.coefficient_count = static_cast<int32_t>(2u * static_cast<uint32_t>(radius) * static_cast<uint32_t>(rank) + 1u);
  d.sweeps = 1;
  d.coefficients = coefficients;
  d.batch = 1;
  if (rank < 1 || rank > 3) return d;
  int64_t src_stride = 1, dst_stride = 1;
  for (int32_t k = rank - 1; k >= 0; --k) {
    d.shape[k] = shape != nullptr ? shape[k] : -1;
    d.src_strides[k] = src_stride;
    d.dst_strides[k] = dst_stride;
    src_stride = next_stride(src_stride, d.shape[k]);
    const bool shorter = boundary == LOCKSTEP_BOUNDARY_VALID;
    const uint64_t shrink = shorter ? 2 * static_cast<uint64_t>(radius) : 0;
    dst_stride = next_stride(dst_stride, static_cast<int64_t>(static_cast<uint64_t>(d.shape[k]) - shrink));
  }
  return d;
}

lockstep_shuffle_desc lockstep_shuffle_warps(lockstep_shuffle_kind kind, size_t element_bytes, int64_t count,
                                             int32_t width, int32_t operand) {
  return {sizeof(lockstep_shuffle_desc), kind, element_bytes, count, width, operand};
}

lockstep_normalize_desc lockstep_normalize_rows(lockstep_normalization kind, lockstep_dtype dtype, int64_t rows,
                                                int64_t cols, double eps) {
  lockstep_normalize_desc d{};
  d.size = sizeof d;
  d.kind = kind;
  d.dtype = d.result = d.weight_dtype = dtype;
  d.count = rows;
  d.length = d.src_stride = d.dst_stride = d.residual_stride = d.sum_stride = d.gradient_stride = cols;
  if (lockstep::lib::is_normalization(kind) && lockstep::lib::kind_of(kind).one_result) d.dst_stride = 1;
  d.eps = eps;
  return d;
}
lockstep_normalize_desc lockstep_normalize_axis(lockstep_normalization kind, lockstep_dtype dtype, int64_t outer,
                                                int64_t length, int64_t inner, double eps) {
  // What is beyond 2^63 is refused by the call.
  const auto times = [](int64_t a, int64_t b) {
    int64_t n = 0;
    return __builtin_mul_overflow(a, b, &n) ? INT64_MAX : n;
  };
  lockstep_normalize_desc d = lockstep_normalize_rows(kind, dtype, times(outer, inner), length, eps);
  d.src_stride = d.residual_stride = d.sum_stride = times(length, inner);
  const bool one_result = lockstep::lib::is_normalization(kind) && lockstep::lib::kind_of(kind).one_result;
  d.dst_stride = one_result ? 1 : d.src_stride;
  d.inner = inner;
  return d;
}
lockstep_normalize_desc lockstep_normalize_segments(lockstep_normalization kind, lockstep_dtype dtype, int64_t segments,
                                                    const int64_t* offsets, double scale) {
  lockstep_normalize_desc d = lockstep_normalize_rows(kind, dtype, segments, 0, scale);
  d.offsets = offsets;
  return d;
}

lockstep_scan_desc lockstep_scan_full(lockstep_reduction reduction, lockstep_dtype dtype, int64_t n) {
  return lockstep_scan_rows(reduction, dtype, 1, n, n);
}
lockstep_scan_desc lockstep_scan_rows(lockstep_reduction reduction, lockstep_dtype dtype, int64_t rows, int64_t cols,
                                      int64_t ld) {
  return scanned(reduction, dtype, rows, cols, 1, ld);
}
lockstep_scan_desc lockstep_scan_columns(lockstep_reduction reduction, lockstep_dtype dtype, int64_t rows, int64_t cols,
                                         int64_t ld) {
  return scanned(reduction, dtype, cols, rows, ld, 1);
}
lockstep_scan_desc lockstep_scan_segments(lockstep_reduction reduction, lockstep_dtype dtype, int64_t segments,
                                          const int64_t* offsets) {
  return scanned(reduction, dtype, segments, 0, 1, 0, offsets);
}

lockstep_sums_desc lockstep_sums_full(lockstep_sums_kind kind, lockstep_dtype dtype, int64_t n, const void* other) {
  return summed(kind, dtype, 1, n, 0, nullptr, other, 0);
}
lockstep_sums_desc lockstep_sums_rows(lockstep_sums_kind kind, lockstep_dtype dtype, int64_t rows, int64_t cols,
                                      int64_t ld, const void* other, int64_t other_ld) {
  return summed(kind, dtype, rows, cols, ld, nullptr, other, other_ld);
}
lockstep_sums_desc lockstep_sums_segments(lockstep_sums_kind kind, lockstep_dtype dtype, int64_t segments,
                                          const int64_t* offsets, const void* other) {
  return summed(kind, dtype, segments, 0, 0, offsets, other, 0);
}

lockstep_convert_desc lockstep_convert_packed(lockstep_dtype dtype, lockstep_dtype result, double scale, int32_t rank,
                                              const int64_t* shape, const int32_t* perm) {
  lockstep_convert_desc d{};
  d.size = sizeof d;
  d.dtype = dtype;
  d.result = result;
  d.scale = scale;
  d.rank = rank;
  if (rank < 1 || rank > LOCKSTEP_MAX_RANK) return d;
  int64_t src_strides[LOCKSTEP_MAX_RANK], stride = 1;
  for (int32_t k = rank - 1; k >= 0; --k) {
    src_strides[k] = stride;
    stride = next_stride(stride, shape != nullptr ? shape[k] : -1);
  }
  // An axis named twice leaves another without a place, and one out of range has none: -1, which no call takes.
  bool seen[LOCKSTEP_MAX_RANK] = {};
  stride = 1;
  for (int32_t k = rank - 1; k >= 0; --k) {
    const int32_t axis = perm != nullptr ? perm[k] : k;
    const bool sound = shape != nullptr && axis >= 0 && axis < rank && !seen[axis];
    if (sound) seen[axis] = true;
    d.shape[k] = sound ? shape[axis] : -1;
    d.src_strides[k] = sound ? src_strides[axis] : 0;
    d.dst_strides[k] = stride;
    stride = next_stride(stride, d.shape[k]);
  }
  return d;
}

lockstep_map_desc lockstep_map_packed(lockstep_function function, lockstep_dtype dtype, lockstep_dtype result,
                                      int32_t rank, const int64_t* shape, const int32_t* perm) {
  const lockstep_convert_desc as = lockstep_convert_packed(dtype, result, 1, rank, shape, perm);
  lockstep_map_desc d{};
  std::memcpy(&d, &as, sizeof as);  // it begins as that does
  d.size = sizeof d;
  d.function = function;
  return d;
}

lockstep_reduce_axes_desc lockstep_reduce_axes_packed(lockstep_reduction reduction, lockstep_dtype dtype, int32_t rank,
                                                      const int64_t* shape, int32_t axis_count, const int32_t* axes) {
  lockstep_reduce_axes_desc d{};
  d.size = sizeof d;
  d.reduction = reduction;
  d.dtype = dtype;
  d.result = lockstep_default_result(reduction, dtype);
  d.rank = rank;
  d.axis_count = axis_count;
  if (rank < 1 || rank > LOCKSTEP_MAX_RANK || axis_count < 1 || axis_count > LOCKSTEP_MAX_RANK) return d;
  for (int32_t k = 0; k < axis_count; ++k) d.axes[k] = axes != nullptr ? axes[k] : -1;
  int64_t stride = 1;
  for (int32_t k = rank - 1; k >= 0; --k) {
    d.shape[k] = shape != nullptr ? shape[k] : -1;
    d.src_strides[k] = stride;
    stride = next_stride(stride, d.shape[k]);
  }
  return d;
}
}
