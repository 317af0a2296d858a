// loops.cpp - terms that are too rare for kernels of their own: products, counts of what is not 0, and reductions that
// leave out NaNs.
// Idea    one loop for each shape; floats by the terms of float_terms.hpp, the others by loops that the compiler makes
//         vectors of
// Moves   every element read once
// Limit   the read limit for floats; instructions for products of integers until they pass 2^64
// Watch   a product that has passed 2^64 still becomes 0 at a 0, and needs its sign
// Source  lib/bits/order.hpp, lib/bits/reductions.hpp
#include "../reduce_kernels.hpp"
#include "bits/order.hpp"
#include "exact_rows.hpp"
#include "float_columns.hpp"
#include "float_terms.hpp"
#include "narrow_sums.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// ---- floats in the fixed order ----------------------------------------------------
// S: the sum of the same elements.
template <class S>
struct number : S {
  static vd enter(vd acc, vd x) { return acc + (x == x ? x : vd{}); }
};
template <class S, typename S::element One>
struct bits_factor : S {
  static constexpr bool multiplies = true;
  static constexpr typename S::element pad = One;
  static vd enter(vd acc, vd x) { return acc * x; }
};
typedef bits_factor<f16_sum, 0x3C00> f16_factor;
typedef bits_factor<bf16_sum, 0x3F80> bf16_factor;
typedef bits_factor<f32_sum, 1.0f> f32_factor;
typedef bits_factor<f64_sum, 1.0> f64_factor;

template <class K>
double leaf_of(const typename K::element* p, int64_t n) {
  constexpr int vectors = lanes / W;
  vd lane[vectors];
  for (vd& l : lane) l = splat(none<K>);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int b = 0; b < lanes * static_cast<int>(sizeof(*p)); b += 64)
      fetch(reinterpret_cast<const char*>(p + i) + tuned.read_ahead + b);
    for (int k = 0; k < vectors; ++k) lane[k] = K::enter(lane[k], K::load(p + i + k * W));
  }
  int k = 0;
  for (; i + W <= n; i += W, ++k) lane[k] = K::enter(lane[k], K::load(p + i));
  if (i < n) lane[k] = K::enter(lane[k], load_part<K>(p + i, n - i));
  for (int d = vectors / 2; d >= 1; d /= 2)
    for (k = 0; k < d; ++k) lane[k] = joined<K>(lane[k], lane[k + d]);
  double x[W];
  memcpy(x, lane, sizeof x);
  for (int d = W / 2; d >= 1; d /= 2)
    for (k = 0; k < d; ++k) x[k] = joined<K>(x[k], x[k + d]);
  return x[0];
}
template <class K>
void float_rows(const packed_rows& r, int64_t count, double* out) {
  const auto* p = static_cast<const typename K::element*>(r.src);
  for (int64_t s = 0; s < count; ++s) {
    const double x = r.offsets != nullptr ? leaf_of<K>(p + r.offsets[s], r.offsets[s + 1] - r.offsets[s])
                                          : leaf_of<K>(p + s * r.stride, r.n);
    out[s] = x == x ? x : __builtin_nan("");  // it may go straight to the caller
  }
}
template <class K>
void float_two(const void* a, const void* b, int64_t count, double* out_a, double* out_b) {
  float_rows<K>({a, order::leaf, order::leaf, nullptr}, count, out_a);
  float_rows<K>({b, order::leaf, order::leaf, nullptr}, count, out_b);
}
template <class K>
constexpr float_kernels floats = {
    float_rows<K>, float_two<K>,
    [](const void* src, int64_t n, int64_t ld, int64_t width, double* out) {
      leaf_of_columns<K>(static_cast<const typename K::element*>(src), n, spaced{ld}, width, out);
    },
    [](const void* src, int64_t n, const int64_t* at, int64_t width, double* out) {
      leaf_of_columns<K>(static_cast<const typename K::element*>(src), n, listed{at}, width, out);
    }};

// ---- what is not 0 ------------------------------------------------------------------
// mask: the bits that a zero lacks; of floats all but the sign.
template <class T, T mask>
struct truth : small_sum<T> {
  static vu load(const T* p) { return reinterpret_cast<vu>((load_widened(p) & mask) != 0) & 1; }
};
template <uint16_t mask>
struct packed_truth : u16_packed {
  static void enter(vu* part, vu x) {
    const vw16 truths = reinterpret_cast<vw16>((reinterpret_cast<vw16>(x) & mask) != 0) & 1;
    u16_packed::enter(part, reinterpret_cast<vu>(truths));
  }
};
template <class T, T mask>
constexpr exact_kernels truths = {rows<truth<T, mask>>, two<truth<T, mask>>, columns<truth<T, mask>>};
template <uint16_t mask>
constexpr exact_kernels truths_of_16 = {narrow_rows<packed_truth<mask>>, narrow_two<packed_truth<mask>>,
                                        columns<truth<uint16_t, mask>>};

// ---- products of integers -------------------------------------------------------------
// size is 0 once an element was, and 1 once the product has passed 2^64.
template <class T>
inline void enter(exact_factor& f, T x) {
  const bool negative = T(-1) < T(0) && x < 0;
  const uint64_t size = negative ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  f.negative ^= negative;
  if (size == 0)
    f.size = 0;
  else if (__builtin_mul_overflow(f.size, f.beyond ? 1 : size, &f.size))
    f.size = 1, f.beyond = true;
}
// truths: bytes that count as 0 or 1.
template <class T, bool truths>
void product_rows(const packed_rows& r, int64_t count, exact_factor* out) {
  const auto* src = static_cast<const T*>(r.src);
  for (int64_t s = 0; s < count; ++s) {
    const T* p = src + (r.offsets != nullptr ? r.offsets[s] : s * r.stride);
    const int64_t n = r.offsets != nullptr ? r.offsets[s + 1] - r.offsets[s] : r.n;
    exact_factor f = {1, false, false};
    int64_t i = 0;
    for (; i < n && f.size != 0 && !f.beyond; ++i) enter(f, truths ? static_cast<T>(p[i] != 0) : p[i]);
    // From here on only signs and zeros matter.
    T zeros = 0, signs = 0;
    if (f.size != 0)
      for (; i < n; ++i) zeros |= static_cast<T>(p[i] == 0), signs ^= p[i];
    if (zeros != 0) f.size = 0;
    f.negative ^= T(-1) < T(0) && signs < 0;
    out[s] = f;
  }
}
template <class T, bool truths>
void product_columns(const void* src, int64_t n, int64_t ld, int64_t width, exact_factor* out) {
  const auto* p = static_cast<const T*>(src);
  for (int64_t c = 0; c < width; ++c) out[c] = {1, false, false};
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < width; ++c) enter(out[c], truths ? static_cast<T>(p[r * ld + c] != 0) : p[r * ld + c]);
}
template <class T, bool truths = false>
constexpr product_kernels products = {product_rows<T, truths>, product_columns<T, truths>};

// ---- extremes of the numbers --------------------------------------------------------
// I: a float's bits as an integer.
template <class I, I infinity, bool Largest>
struct number_key {
  static constexpr I magnitude = static_cast<I>(~(I{1} << (sizeof(I) * 8 - 1)));
  static constexpr I worst = Largest ? static_cast<I>(~magnitude) : magnitude;
  static I of(I x) {
    const I key = static_cast<I>(x ^ (x < 0 ? magnitude : 0));
    return (x & magnitude) > infinity ? worst : key;
  }
  static I better(I a, I b) { return (Largest ? a > b : a < b) ? a : b; }
  static int64_t wide(I key) { return key != worst ? key : Largest ? INT64_MIN : INT64_MAX; }
  static I element(I key) {
    constexpr auto quiet = static_cast<I>(infinity | (infinity & -infinity) >> 1);
    return key == worst ? quiet : static_cast<I>(key ^ (key < 0 ? magnitude : 0));
  }
};
template <class I, class Key>
inline I best_of(const I* p, int64_t n) {
  I best = Key::worst;
  for (int64_t i = 0; i < n; ++i) best = Key::better(best, Key::of(p[i]));
  return best;
}
template <class I, class Key>
void number_rows(const packed_rows& r, int64_t count, bool, extreme* out) {
  const auto* p = static_cast<const I*>(r.src);
  for (int64_t s = 0; s < count; ++s) {
    const I best = r.offsets != nullptr ? best_of<I, Key>(p + r.offsets[s], r.offsets[s + 1] - r.offsets[s])
                                        : best_of<I, Key>(p + s * r.stride, r.n);
    out[s] = {Key::wide(best), 0};
  }
}
template <class I, class Key>
void number_two(const void* a, const void* b, int64_t count, extreme* out_a, extreme* out_b) {
  number_rows<I, Key>({a, exact_chunk, exact_chunk, nullptr}, count, false, out_a);
  number_rows<I, Key>({b, exact_chunk, exact_chunk, nullptr}, count, false, out_b);
}
template <class I, class Key>
void number_winners(const packed_rows& r, int64_t count, bool, void* out) {
  const auto* p = static_cast<const I*>(r.src);
  for (int64_t s = 0; s < count; ++s) static_cast<I*>(out)[s] = Key::element(best_of<I, Key>(p + s * r.stride, r.n));
}
template <class I, class Key>
void number_columns(const void* src, int64_t n, int64_t ld, int64_t width, bool, extreme* out, void* winners) {
  const auto* p = static_cast<const I*>(src);
  I best[column_block];
  for (int64_t c = 0; c < width; ++c) best[c] = Key::worst;
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < width; ++c) best[c] = Key::better(best[c], Key::of(p[r * ld + c]));
  for (int64_t c = 0; c < width; ++c) {
    if (winners != nullptr)
      static_cast<I*>(winners)[c] = Key::element(best[c]);
    else
      out[c] = {Key::wide(best[c]), 0};
  }
}
template <class I, I infinity, bool Largest, class Key = number_key<I, infinity, Largest>>
constexpr extreme_kernels numbers = {number_rows<I, Key>, number_two<I, Key>, number_winners<I, Key>,
                                     number_columns<I, Key>, nullptr};  // numbers have no index
constexpr int64_t infinity_f64 = 0x7FF0000000000000;

}  // namespace

extern const loop_kernels loops_table;
const loop_kernels loops_table = {
    {floats<number<f16_sum>>, floats<number<bf16_sum>>, floats<number<f32_sum>>, floats<number<f64_sum>>,
     floats<f16_factor>, floats<bf16_factor>, floats<f32_factor>, floats<f64_factor>},
    {truths_of_16<0x7FFF>, truths<uint32_t, 0x7FFFFFFF>, truths<uint64_t, 0x7FFFFFFFFFFFFFFF>, truths_of_16<0xFFFF>,
     truths<uint32_t, 0xFFFFFFFF>, truths<uint64_t, 0xFFFFFFFFFFFFFFFF>},
    {numbers<int16_t, 0x7C00, true>, numbers<int16_t, 0x7F80, true>, numbers<int32_t, 0x7F800000, true>,
     numbers<int64_t, infinity_f64, true>, numbers<int16_t, 0x7C00, false>, numbers<int16_t, 0x7F80, false>,
     numbers<int32_t, 0x7F800000, false>, numbers<int64_t, infinity_f64, false>},
    {products<int32_t>, products<int64_t>, products<int8_t>, products<int16_t>, products<uint8_t>, products<uint16_t>,
     products<uint32_t>, products<uint64_t>, products<uint8_t, true>}};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
