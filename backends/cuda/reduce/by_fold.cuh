// by_fold.cuh - the fold that a call of reduce asks for.
#pragma once

#include "extreme.cuh"
#include "way.cuh"

namespace lockstep::cuda {

// A float_sum whose result may have 16 bits.
template <class T>
struct rounded_sum : float_sum<T, false> {
  lockstep_dtype result;
  __device__ void store(double value, int64_t s) const {
    store_float(this->dst, result, s, this->root ? __dsqrt_rn(value) : value);
  }
  __device__ void store_empty(int64_t s) const { store(0.0, s); }
};

// go(an element) of a type of floats.
template <class Go>
lockstep_status by_float(lockstep_dtype dtype, const Go& go) {
  switch (dtype) {
    case LOCKSTEP_F16: return go(half16{});
    case LOCKSTEP_BF16: return go(bfloat16{});
    case LOCKSTEP_F32: return go(float{});
    default: return go(double{});
  }
}

// go(fold) for sums of integers and extremes.
template <class Go>
lockstep_status by_exact_fold(lockstep_queue& queue, const lockstep_call& call, const Go& go) {
  const lockstep_reduce_desc& d = call.reduce;
  const lib::reduction_kind& kind = lib::kind_of(d.reduction);
  const auto extreme_of = [&]<class T>(T) {
    const typename key_of<T>::type turn = kind.by == lib::join::smallest ? -1 : 0;
    if constexpr (sizeof(T) > 2)
      if (kind.to == lib::finish::index) return go(arg_extreme<T>{static_cast<int64_t*>(call.dst), turn, queue.report});
    return go(extreme<T>{static_cast<T*>(call.dst), turn, queue.report});
  };
  const auto integer = [&]<class T>(T x) {
    return kind.extreme() ? extreme_of(x) : go(integer_sum<T>{static_cast<int64_t*>(call.dst), queue.report});
  };
  if (d.dtype == LOCKSTEP_I32) return integer(int32_t{});
  if (d.dtype == LOCKSTEP_I64) return integer(int64_t{});
  return by_float(d.dtype, extreme_of);
}

}  // namespace lockstep::cuda
