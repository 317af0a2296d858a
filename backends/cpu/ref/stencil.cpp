// stencil.cpp (ref) - the definition: a correlation over a star, the first tap a
// rounded product, each further tap one fma, taps in increasing memory address.
#include <bit>
#include <cmath>
#include <cstring>

#include "../ops.hpp"
#include "../parallel.hpp"

namespace lockstep::cpu {
namespace {

// The element that index i stands for on an axis of n, one fold at a time.
int64_t fold_naively(int64_t i, int64_t n, lockstep_boundary boundary) {
  while (i < 0 || i >= n) {
    if (n == 1) return 0;
    switch (boundary) {
      case LOCKSTEP_BOUNDARY_NEAREST: i = i < 0 ? 0 : n - 1; break;
      case LOCKSTEP_BOUNDARY_MIRROR: i = i < 0 ? -i : 2 * (n - 1) - i; break;
      case LOCKSTEP_BOUNDARY_REFLECT: i = i < 0 ? -1 - i : 2 * n - 1 - i; break;
      case LOCKSTEP_BOUNDARY_WRAP: i = i < 0 ? i + n : i - n; break;
      case LOCKSTEP_BOUNDARY_CONSTANT:
      case LOCKSTEP_BOUNDARY_VALID: return -1;  // does not happen
    }
  }
  return i;
}

template <class T>
T quiet_nan() {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(uint32_t{0x7FC00000u});
  else
    return std::bit_cast<T>(uint64_t{0x7FF8000000000000u});
}

// One array of up to three axes; a missing outer axis has length 1 and no taps.
template <class T>
struct array {
  T* data;
  int64_t shape[3], strides[3];
};

template <class T>
void sweep_once(const lockstep_stencil_desc& d, const array<const T>& src, const array<T>& dst) {
  const int r = d.radius, first_axis = 3 - d.rank;
  const int64_t shift = d.boundary == LOCKSTEP_BOUNDARY_VALID ? r : 0;
  for (int64_t i = 0; i < dst.shape[0]; ++i)
    for (int64_t j = 0; j < dst.shape[1]; ++j)
      for (int64_t k = 0; k < dst.shape[2]; ++k) {
        const int64_t centre[3] = {i + (first_axis == 0 ? shift : 0), j + (first_axis <= 1 ? shift : 0), k + shift};
        T sum = 0;
        int taken = 0;
        const auto tap = [&](int axis, int offset) {
          int64_t at[3] = {centre[0], centre[1], centre[2]};
          at[axis] += offset;
          const bool outside = at[axis] < 0 || at[axis] >= src.shape[axis];
          T x = static_cast<T>(d.value);
          if (!outside || d.boundary != LOCKSTEP_BOUNDARY_CONSTANT) {
            at[axis] = fold_naively(at[axis], src.shape[axis], d.boundary);
            x = src.data[at[0] * src.strides[0] + at[1] * src.strides[1] + at[2] * src.strides[2]];
          }
          const T c = static_cast<T>(d.coefficients[taken]);
          sum = taken == 0 ? c * x : std::fma(c, x, sum);
          ++taken;
        };
        for (int axis = first_axis; axis < 3; ++axis)
          for (int offset = -r; offset <= -1; ++offset) tap(axis, offset);
        tap(2, 0);
        for (int axis = 2; axis >= first_axis; --axis)
          for (int offset = 1; offset <= r; ++offset) tap(axis, offset);
        T& out = dst.data[i * dst.strides[0] + j * dst.strides[1] + k * dst.strides[2]];
        out = std::isnan(sum) ? quiet_nan<T>() : sum;  // any NaN, from the input or from the arithmetic
      }
}

template <class T>
void run_all(const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  const int64_t shrink = d.boundary == LOCKSTEP_BOUNDARY_VALID ? 2 * d.radius : 0;
  int64_t shape[3] = {1, 1, 1}, src_strides[3] = {0, 0, 1}, dst_strides[3] = {0, 0, 1}, elements = 1;
  for (int k = 0; k < d.rank; ++k) {
    shape[3 - d.rank + k] = d.shape[k];
    src_strides[3 - d.rank + k] = d.src_strides[k];
    dst_strides[3 - d.rank + k] = d.dst_strides[k];
    elements *= d.shape[k];
  }
  for (int64_t b = 0; b < d.batch; ++b) {
    array<const T> from{static_cast<const T*>(call->src) + b * d.src_batch_stride,
                        {shape[0], shape[1], shape[2]},
                        {src_strides[0], src_strides[1], src_strides[2]}};
    for (int sweep = 0; sweep < d.sweeps; ++sweep) {
      // Results between sweeps are packed, in two alternating buffers.
      array<T> to{static_cast<T*>(call->workspace) + sweep % 2 * elements, {}, {}};
      for (int k = 0; k < 3; ++k) to.shape[k] = from.shape[k] - (k >= 3 - d.rank ? shrink : 0);
      to.strides[0] = to.shape[1] * to.shape[2];
      to.strides[1] = to.shape[2];
      to.strides[2] = 1;
      if (sweep == d.sweeps - 1) {
        to.data = static_cast<T*>(call->dst) + b * d.dst_batch_stride;
        std::memcpy(to.strides, dst_strides, sizeof to.strides);
      }
      sweep_once(d, from, to);
      from.data = to.data;
      std::memcpy(from.shape, to.shape, sizeof from.shape);
      std::memcpy(from.strides, to.strides, sizeof from.strides);
    }
  }
}

}  // namespace

size_t ref_stencil_workspace(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  size_t elements = 1;
  for (int k = 0; k < d.rank; ++k) elements *= static_cast<size_t>(d.shape[k]);
  const size_t buffers = d.sweeps > 2 ? 2 : static_cast<size_t>(d.sweeps - 1);
  return buffers * elements * lockstep_dtype_bytes(d.dtype);
}

lockstep_status ref_stencil(lockstep_queue*, const lockstep_call* call) {
  if (call->stencil.dtype == LOCKSTEP_F32)
    run_all<float>(call);
  else
    run_all<double>(call);
  return LOCKSTEP_OK;
}

}  // namespace lockstep::cpu
