// permute.cpp (ref) - the definition: dst[i_perm[0], i_perm[1], ...] = src[i_0, i_1, ...].
#include <cstring>

#include "../ops.hpp"

namespace lockstep::cpu {

lockstep_status ref_permute(lockstep_queue*, const lockstep_call* call) {
  const lockstep_permute_desc& d = call->permute;
  const auto* src = static_cast<const unsigned char*>(call->src);
  auto* dst = static_cast<unsigned char*>(call->dst);
  const auto bytes = static_cast<int64_t>(d.element_bytes);
  int64_t index[LOCKSTEP_MAX_RANK] = {};
  for (;;) {
    int64_t from = 0, to = 0;
    for (int k = 0; k < d.rank; ++k) {
      from += index[k] * d.src_strides[k];
      to += index[d.perm[k]] * d.dst_strides[k];
    }
    std::memcpy(dst + to * bytes, src + from * bytes, d.element_bytes);
    int k = d.rank - 1;
    while (k >= 0 && ++index[k] == d.shape[k]) index[k--] = 0;
    if (k < 0) return LOCKSTEP_OK;
  }
}

}  // namespace lockstep::cpu
