// dtypes.hpp - bytes and kinds of dtypes: a module has none of the library's functions.
#pragma once

#include <cstdint>

#include "../../lib/bits/order.hpp"
#include "lockstep/lockstep.h"

namespace lockstep::cuda {

inline int64_t dtype_bytes(lockstep_dtype dtype) {
#define LOCKSTEP_ROW(name, bytes, kind, sum, numpy, type) \
  case LOCKSTEP_##name: return bytes;
  switch (dtype) { LOCKSTEP_DTYPES(LOCKSTEP_ROW) }
#undef LOCKSTEP_ROW
  return 0;
}
LOCKSTEP_HD bool is_float(lockstep_dtype dtype) { return dtype >= LOCKSTEP_F16 && dtype <= LOCKSTEP_F64; }

}  // namespace lockstep::cuda
