// stencil.cpp - correlation over a star: validation, and the expansion of every
// form to general coefficients.
#include <cmath>
#include <limits>

#include "checked.hpp"
#include "ops.hpp"

namespace lockstep::lib {
namespace {

// General coefficients in increasing memory address: axis 0's -r..-1, axis 1's,
// ..., the last axis's -r..-1, the centre, the last axis's 1..r, ..., axis 0's.
std::vector<double> expand(const lockstep_stencil_desc& d) {
  const int r = d.radius, rank = d.rank, taps = 2 * r * rank + 1;
  if (d.form == LOCKSTEP_GENERAL) return {d.coefficients, d.coefficients + taps};
  const double sign = d.form == LOCKSTEP_ANTISYMMETRIC ? -1.0 : 1.0;
  std::vector<double> general(static_cast<size_t>(taps));
  const auto at = [&](int i) -> double& { return general[static_cast<size_t>(i)]; };
  at(r * rank) = d.coefficients[0];
  for (int axis = 0; axis < rank; ++axis)
    for (int k = 1; k <= r; ++k) {
      const double c = d.coefficients[1 + axis * r + k - 1];
      at(axis * r + (r - k)) = sign * c;
      at(taps - 1 - axis * r - (r - k)) = c;
    }
  return general;
}

}  // namespace

void prepare_stencil(prepared_call& prepared) {
  lockstep_stencil_desc& d = prepared.call.stencil;
  if (d.dtype != LOCKSTEP_F32 && d.dtype != LOCKSTEP_F64)
    fail(LOCKSTEP_INVALID_ARGUMENT, "dtype is {}; stencils take F32 and F64", dtype_text(d.dtype));
  if (d.rank < 1 || d.rank > 3) fail(LOCKSTEP_INVALID_ARGUMENT, "rank is {}; use 1, 2 or 3", d.rank);
  const int most = d.rank == 1 ? 16 : 8;
  if (d.radius < 1 || d.radius > most)
    fail(LOCKSTEP_INVALID_ARGUMENT, "radius is {}; rank {} takes 1 to {}", d.radius, d.rank, most);
  if (d.form < LOCKSTEP_GENERAL || d.form > LOCKSTEP_ANTISYMMETRIC)
    fail(LOCKSTEP_INVALID_ARGUMENT, "form is {}; use GENERAL, SYMMETRIC or ANTISYMMETRIC", static_cast<int>(d.form));
  if (d.boundary < LOCKSTEP_BOUNDARY_NEAREST || d.boundary > LOCKSTEP_BOUNDARY_VALID)
    fail(LOCKSTEP_INVALID_ARGUMENT, "boundary is {}; use one of LOCKSTEP_BOUNDARY_*", static_cast<int>(d.boundary));
  const int count = d.form == LOCKSTEP_GENERAL ? 2 * d.radius * d.rank + 1 : d.radius * d.rank + 1;
  if (d.coefficient_count != count)
    fail(LOCKSTEP_INVALID_ARGUMENT, "coefficient_count is {}; this form, rank {} and radius {} take {}",
         d.coefficient_count, d.rank, d.radius, count);
  if (d.coefficients == nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "coefficients is NULL; give {} doubles in host memory", count);
  if (d.form == LOCKSTEP_ANTISYMMETRIC && d.coefficients[0] != 0.0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "coefficients[0] is {}; the centre of an antisymmetric stencil must be 0",
         d.coefficients[0]);
  if (d.sweeps < 1) fail(LOCKSTEP_INVALID_ARGUMENT, "sweeps is {}; give 1 or more", d.sweeps);
  require_nonnegative("batch", d.batch);
  prepared.element_bytes = prepared.dst_element_bytes = lockstep_dtype_bytes(d.dtype);
  prepared.empty = d.batch == 0;
  int64_t src_counts[4] = {d.batch, 1, 1, 1}, src_strides[4] = {0, 0, 0, 1};
  int64_t dst_counts[4] = {d.batch, 1, 1, 1}, dst_strides[4] = {0, 0, 0, 1};
  const int64_t shrink = d.boundary == LOCKSTEP_BOUNDARY_VALID ? 2 * int64_t{d.radius} * d.sweeps : 0;
  for (int k = 0; k < d.rank; ++k) {
    if (d.shape[k] < 0) fail(LOCKSTEP_INVALID_ARGUMENT, "shape[{}] is {}; give 0 or more", k, d.shape[k]);
    if (d.shape[k] == 0) prepared.empty = true;
    src_counts[4 - d.rank + k] = d.shape[k];
  }
  if (prepared.empty) return;
  for (int k = 0; k < d.rank; ++k) {
    if (shrink > 0 && d.shape[k] <= shrink)
      fail(LOCKSTEP_INVALID_ARGUMENT,
           "shape[{}] is {}, but VALID takes away {} (2 * radius {} * sweeps {}); give more elements or another "
           "boundary",
           k, d.shape[k], shrink, d.radius, d.sweeps);
    const int axis = 4 - d.rank + k;
    dst_counts[axis] = src_counts[axis] - shrink;
    src_strides[axis] = d.src_strides[k];
    dst_strides[axis] = d.dst_strides[k];
  }
  if (src_counts[3] == 1) src_strides[3] = d.src_strides[d.rank - 1] = 1;  // of one element, any number does
  if (dst_counts[3] == 1) dst_strides[3] = d.dst_strides[d.rank - 1] = 1;
  if (src_strides[3] != 1 || dst_strides[3] != 1)
    fail(LOCKSTEP_INVALID_ARGUMENT, "src_strides[{}] is {} and dst_strides[{}] is {}; the innermost must be 1",
         d.rank - 1, src_strides[3], d.rank - 1, dst_strides[3]);
  if (d.batch == 1) d.src_batch_stride = d.dst_batch_stride = 0;
  src_strides[0] = d.src_batch_stride;
  dst_strides[0] = d.dst_batch_stride;
  const auto check_strides = [&](const char* name, const int64_t* counts, const int64_t* strides, int64_t* given) {
    int64_t inner = counts[3];  // elements spanned so far; span_bytes has shown that all this fits
    for (int axis = 2; axis >= 0; --axis) {
      if (counts[axis] == 1) {
        // The stride of an axis of one element is never read and may be any number: here it is a packed array's.
        if (const int k = axis - (4 - d.rank); k >= 0) given[k] = inner;
        continue;
      }
      if (strides[axis] < inner)
        fail(
            LOCKSTEP_INVALID_ARGUMENT, "{} is {}, but the axes within it span {} elements; give that or more",
            axis == 0 ? format_text("{}_batch_stride", name) : format_text("{}_strides[{}]", name, axis - (4 - d.rank)),
            strides[axis], inner);
      int64_t more = 0;
      if (__builtin_mul_overflow(counts[axis] - 1, strides[axis], &more) || __builtin_add_overflow(inner, more, &inner))
        inner = std::numeric_limits<int64_t>::max();  // what spans more than that is refused below
    }
  };
  prepared.src_span = span_bytes("src", 4, src_counts, src_strides, prepared.element_bytes);
  prepared.dst_span = span_bytes("dst", 4, dst_counts, dst_strides, prepared.element_bytes);
  check_strides("src", src_counts, src_strides, d.src_strides);
  check_strides("dst", dst_counts, dst_strides, d.dst_strides);
  const int64_t total = product("the product of shape and batch", 4, src_counts);
  const int64_t written = product("the product of dst's shape and batch", 4, dst_counts);
  prepared.dst_dense = prepared.dst_span == static_cast<size_t>(written) * prepared.element_bytes;
  prepared.moved_bytes = static_cast<size_t>(total + written) * prepared.element_bytes;
  prepared.coefficients = expand(d);
  d.form = LOCKSTEP_GENERAL;
  d.coefficient_count = static_cast<int32_t>(prepared.coefficients.size());
  d.coefficients = prepared.coefficients.data();
}

}  // namespace lockstep::lib
