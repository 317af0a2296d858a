// convert.cpp (ref) - the definition: dst[i_0, i_1, ...] = src[i_0, i_1, ...] * scale, the product rounded to double,
// then to dst's type. map: of a function of src.
#include "../ops.hpp"
#include "bits/functions.hpp"
#include "fixed_order.hpp"

namespace lockstep::cpu {

lockstep_status ref_convert(lockstep_queue*, const lockstep_call* call) {
  const lockstep_convert_desc& d = call->convert;
  int64_t index[LOCKSTEP_MAX_RANK] = {};
  for (;;) {
    int64_t from = 0, to = 0;
    for (int k = 0; k < d.rank; ++k) {
      from += index[k] * d.src_strides[k];
      to += index[k] * d.dst_strides[k];
    }
    const double x = ref::widened(call->src, d.dtype, from);
    const double value = call->op == LOCKSTEP_MAP ? functions::apply(call->map.function, x) : x;
    ref::store(d.result, call->dst, to, value * d.scale);
    int k = d.rank - 1;
    while (k >= 0 && ++index[k] == d.shape[k]) index[k--] = 0;
    if (k < 0) return LOCKSTEP_OK;
  }
}

}  // namespace lockstep::cpu
