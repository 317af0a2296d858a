// convert.cpp (ref) - the definition: dst[i_0, i_1, ...] = src[i_0, i_1, ...] * scale, the product rounded to double,
// then to dst's type. Integers without a scale are rounded once; as integers, numbers lose their fraction, and what
// does not fit becomes the type's end. map: of a function of src, the exact product with `times` rounded once.
#include "../ops.hpp"
#include "bits/functions.hpp"
#include "fixed_order.hpp"

namespace lockstep::cpu {
namespace {

bool is_integer(lockstep_dtype dtype) { return lockstep_dtype_kind(dtype) != 'f'; }

// A whole number as a double that rounds to every shorter float as the number itself does: a last bit that is set
// stands for all that was cut.
double cut(ref::int128 x) {
  ref::int128 size = x < 0 ? -x : x;
  int dropped = 0;
  bool rest = false;
  for (; size >> 53 != 0; size >>= 1, ++dropped) rest = rest || (size & 1) != 0;
  if (rest) size |= 1;
  return std::ldexp(static_cast<double>(x < 0 ? -size : size), dropped);
}

// Stores a whole number as the nearest value of the type.
void store_nearest(lockstep_dtype dtype, void* dst, int64_t at, ref::int128 x) {
  const int bits = 8 * static_cast<int>(lockstep_dtype_bytes(dtype));
  const bool with_sign = lockstep_dtype_kind(dtype) == 'i';
  const ref::int128 most = (ref::int128{1} << (bits - (with_sign ? 1 : 0))) - 1, least = with_sign ? -most - 1 : 0;
  ref::store_integer(dtype, dst, at, dtype == LOCKSTEP_BOOL ? x != 0 : x > most ? most : x < least ? least : x);
}

// A double without its fraction; a boolean is whether it is not 0.
ref::int128 whole(double x, lockstep_dtype dtype) {
  if (dtype == LOCKSTEP_BOOL) return x == 0 ? 0 : 1;
  if (std::isnan(x)) return 0;
  return static_cast<ref::int128>(std::fmin(std::fmax(x, -0x1p65), 0x1p65));
}

void convert_one(const lockstep_convert_desc& d, const void* src, int64_t from, void* dst, int64_t to) {
  if (is_integer(d.dtype)) {
    const ref::int128 x = ref::integer(src, d.dtype, from);
    if (d.scale == 1 && is_integer(d.result)) return store_nearest(d.result, dst, to, x);
    if (d.scale == 1 && d.result != LOCKSTEP_F64) return ref::store(d.result, dst, to, cut(x));
    const double value = static_cast<double>(x) * d.scale;
    if (!is_integer(d.result)) return ref::store(d.result, dst, to, value);
    return store_nearest(d.result, dst, to, whole(value, d.result));
  }
  store_nearest(d.result, dst, to, whole(ref::widened(src, d.dtype, from) * d.scale, d.result));
}

}  // namespace

lockstep_status ref_convert(lockstep_queue*, const lockstep_call* call) {
  const lockstep_convert_desc& d = call->convert;
  int64_t index[LOCKSTEP_MAX_RANK] = {};
  for (;;) {
    int64_t from = 0, to = 0;
    for (int k = 0; k < d.rank; ++k) {
      from += index[k] * d.src_strides[k];
      to += index[k] * d.dst_strides[k];
    }
    if (is_integer(d.dtype) || is_integer(d.result)) {
      convert_one(d, call->src, from, call->dst, to);
    } else {
      const double x = ref::widened(call->src, d.dtype, from);
      const double value = call->op == LOCKSTEP_MAP ? functions::apply(call->map.function, x) : x;
      if (call->op == LOCKSTEP_MAP && call->map.times != nullptr)
        ref::store(d.result, call->dst, to,
                   functions::programs<functions::scalar>::product_to_odd(
                       value * d.scale, ref::widened(call->map.times, d.dtype, from)));
      else
        ref::store(d.result, call->dst, to, value * d.scale);
    }
    int k = d.rank - 1;
    while (k >= 0 && ++index[k] == d.shape[k]) index[k--] = 0;
    if (k < 0) return LOCKSTEP_OK;
  }
}

}  // namespace lockstep::cpu
