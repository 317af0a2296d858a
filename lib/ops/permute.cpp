// permute.cpp - dst[i_perm[0], ...] = src[i_0, ...]: validation.
#include <algorithm>
#include <numeric>

#include "checked.hpp"
#include "ops.hpp"

namespace lockstep::lib {

// Refuses an array whose elements overlap: each stride, in increasing order, is at least what the axes below it span.
// span_bytes must have taken it.
static void require_apart(const char* name, int axes, const int64_t* counts, const int64_t* strides) {
  std::vector<int> order(static_cast<size_t>(axes));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return strides[a] < strides[b]; });
  int64_t span = 1;
  for (const int k : order) {
    if (counts[k] == 1) continue;
    if (strides[k] < span)
      fail(LOCKSTEP_INVALID_ARGUMENT, "{}[{}] is {}, but the axes within it span {} elements; give that or more", name,
           k, strides[k], span);
    span += (counts[k] - 1) * strides[k];  // span_bytes has shown that this fits
  }
}

void prepare_move(prepared_call& prepared, int rank, const int64_t* shape, int64_t* src_strides,
                  const int64_t* dst_shape, int64_t* dst_strides) {
  for (int k = 0; k < rank; ++k) {
    if (shape[k] > 1 && src_strides[k] < 1)
      fail(LOCKSTEP_INVALID_ARGUMENT, "src_strides[{}] is {}; give 1 or more", k, src_strides[k]);
    if (dst_shape[k] > 1 && dst_strides[k] < 1)
      fail(LOCKSTEP_INVALID_ARGUMENT, "dst_strides[{}] is {}; give 1 or more", k, dst_strides[k]);
    // The stride of an axis of one element is never read; 0 keeps it harmless.
    if (shape[k] == 1) src_strides[k] = 0;
    if (dst_shape[k] == 1) dst_strides[k] = 0;
  }
  const auto total = static_cast<size_t>(product("the product of shape", rank, shape));
  prepared.src_span = span_bytes("src", rank, shape, src_strides, prepared.element_bytes);
  prepared.dst_span = span_bytes("dst", rank, dst_shape, dst_strides, prepared.dst_element_bytes);
  require_apart("dst_strides", rank, dst_shape, dst_strides);
  prepared.dst_dense = prepared.dst_span == total * prepared.dst_element_bytes;
  prepared.moved_bytes = total * (prepared.element_bytes + prepared.dst_element_bytes);
}

void prepare_permute(prepared_call& prepared) {
  lockstep_permute_desc& d = prepared.call.permute;
  require_element_bytes(d.element_bytes);
  if (d.rank < 1 || d.rank > LOCKSTEP_MAX_RANK)
    fail(LOCKSTEP_INVALID_ARGUMENT, "rank is {}; use 1 to {}", d.rank, LOCKSTEP_MAX_RANK);
  bool seen[LOCKSTEP_MAX_RANK] = {};
  for (int k = 0; k < d.rank; ++k) {
    const int32_t axis = d.perm[k];
    if (axis < 0 || axis >= d.rank || seen[axis])
      fail(LOCKSTEP_INVALID_ARGUMENT, "perm[{}] is {}; perm must name each of 0 to {} once", k, axis, d.rank - 1);
    seen[axis] = true;
    if (d.shape[k] < 0) fail(LOCKSTEP_INVALID_ARGUMENT, "shape[{}] is {}; give 0 or more", k, d.shape[k]);
    prepared.empty = prepared.empty || d.shape[k] == 0;
  }
  prepared.element_bytes = prepared.dst_element_bytes = d.element_bytes;
  if (prepared.empty) return;

  int64_t dst_shape[LOCKSTEP_MAX_RANK];
  for (int k = 0; k < d.rank; ++k) dst_shape[k] = d.shape[d.perm[k]];
  prepare_move(prepared, d.rank, d.shape, d.src_strides, dst_shape, d.dst_strides);
}

}  // namespace lockstep::lib
