// any_type.hpp - the row of reduce and square_sum for the types that the others have no kernels for.
#pragma once

#include "../../../lib/bits/reductions.hpp"
#include "../device/queue.hpp"

namespace lockstep::cuda {

// Whether a call is for that row: small and unsigned integers, extremes of 16-bit floats, results of 16 bits other than
// sums of such elements, products, counts, and what leaves out NaNs. Norms of F64, which may have to be scaled, are the
// other rows', whatever their results.
inline bool is_half(lockstep_dtype dtype) { return dtype == LOCKSTEP_F16 || dtype == LOCKSTEP_BF16; }
inline bool is_for_any_type(const lockstep_call& call) {
  const lockstep_reduce_desc& d = call.reduce;
  const lib::reduction_kind& kind = lib::kind_of(d.reduction);
  if (kind.to == lib::finish::root && d.dtype == LOCKSTEP_F64) return false;
  return d.dtype > LOCKSTEP_I64 || d.result > LOCKSTEP_I64 || (is_half(d.dtype) && kind.extreme()) ||
         (is_half(d.result) && (!is_half(d.dtype) || kind.of == lib::term::square)) || kind.by == lib::join::product ||
         kind.of == lib::term::truth || kind.of == lib::term::number;
}
// The smallest or largest of 16-bit floats: columns and rows of at most one leaf have kernels for them.
inline bool is_narrow_extreme(const lockstep_call& call) {
  const lockstep_reduce_desc& d = call.reduce;
  const lib::reduction_kind& kind = lib::kind_of(d.reduction);
  return is_half(d.dtype) && kind.extreme() && kind.of == lib::term::plain && kind.to == lib::finish::value;
}
const char* refuses_any_type(const lockstep_queue*, const lockstep_call* call);
size_t workspace_any_type(const lockstep_queue*, const lockstep_call* call);
lockstep_status launch_any_type(lockstep_queue* queue, const lockstep_call* call);

inline constexpr lockstep_variant any_type_row = {
    "any_type",
    "small, unsigned and 16-bit types: a warp a leaf; many sequences a warp each, few are shared by blocks",
    0,
    refuses_any_type,
    nullptr,
    workspace_any_type,
    launch_any_type};

}  // namespace lockstep::cuda
