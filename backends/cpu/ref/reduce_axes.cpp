// reduce_axes.cpp (ref) - the definition: a packed copy, the reduced axes last, and the
// reduction of its rows.
#include <cstring>
#include <vector>

#include "../ops.hpp"
#include "axis_list.hpp"
#include "bits/reductions.hpp"

namespace lockstep::cpu {

lockstep_status ref_reduce_axes(lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_reduce_axes_desc& d = call->reduce_axes;
  bool goes[LOCKSTEP_MAX_RANK] = {};
  for (int k = 0; k < d.axis_count; ++k) goes[d.axes[k]] = true;
  int order[LOCKSTEP_MAX_RANK], at = 0;
  int64_t count = 1, length = 1;
  for (const bool last : {false, true})
    for (int k = 0; k < d.rank; ++k) {
      if (goes[k] != last) continue;
      order[at++] = k;
      int64_t& elements = last ? length : count;
      elements = saturated_product(elements, d.shape[k]);
    }
  const size_t bytes = lockstep_dtype_bytes(d.dtype);
  std::vector<char> packed(static_cast<size_t>(count * length) * bytes);
  for (int64_t i = 0; i < count * length; ++i) {
    int64_t rest = i, place = 0;
    for (int k = d.rank - 1; k >= 0; --k) {
      place += rest % d.shape[order[k]] * d.src_strides[order[k]];
      rest /= d.shape[order[k]];
    }
    std::memcpy(packed.data() + static_cast<size_t>(i) * bytes,
                static_cast<const char*>(call->src) + static_cast<size_t>(place) * bytes, bytes);
  }
  lockstep_call rows = *call;
  rows.op = lib::kind_of(d.reduction).op;
  rows.src = packed.data();
  rows.reduce = {sizeof(lockstep_reduce_desc), d.reduction, d.dtype, d.result, count, length, 1, length, nullptr};
  return rows.op == LOCKSTEP_SQUARE_SUM ? ref_square_sum(queue, &rows) : ref_reduce(queue, &rows);
}

}  // namespace lockstep::cpu
