// float_results.cuh - 16-bit results of normalize computed in float, where its error leaves no doubt about them.
//
// Idea    Results are defined in double, and conversions to and from double are slow. In float a result has at most
//         six roundings, so the one in double lies near; where no border between two 16-bit results lies that near,
//         both round to the same one. Else the caller computes in double
// Moves   nothing
// Limit   instructions: five an element beside its own arithmetic where there is no bias
// Watch   errors are relative to numbers that are no denormals: scales and results near zero are left to double
// Source  this repository
#pragma once

#include "rows.cuh"

namespace lockstep::cuda {

// Of a row. An element is (x - mean) * scale * weight + bias.
struct float_scales {
  float mean, rest, scale;  // mean + rest: 48 bits of the mean
  float apart;              // an element that is nearer to the mean has a difference with too few good bits
  bool usable;
};

// Of a row that one block holds: by its sums no |x - mean| * scale is more than the root of its length.
__device__ __forceinline__ float_scales scales_in_float(double mean, double scale) {
  float_scales d;
  d.mean = __double2float_rn(mean);
  d.rest = __double2float_rn(__dsub_rn(mean, d.mean));
  d.scale = __double2float_rn(scale);
  d.apart = fmaxf(fabsf(d.mean) * 0x1p-20f, 0x1p-100f);
  d.usable = d.scale >= 0x1p-60f && d.scale <= 0x1p60f && (d.mean == 0.0f || fabsf(d.mean) >= 0x1p-100f);
  return d;
}

// Two results to 16 bits.
template <class E>
__device__ __forceinline__ uint32_t rounded_pair(float low, float high) {
  uint32_t both;
  if constexpr (std::is_same_v<E, half16>) {
    const __half2 two = __floats2half2_rn(low, high);
    memcpy(&both, &two, 4);
  } else {
    const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
    memcpy(&both, &two, 4);
  }
  return both;
}

// Of a result's magnitude, its bits doubled: the least beyond those with fewer bits, and the most that a float that
// has not overflowed rounds to. In both halves of a word.
template <class E>
constexpr uint32_t least_sure = (std::is_same_v<E, half16> ? 0x0802u : 0x4E00u) * 0x00010001u;
template <class E>
constexpr uint32_t most_sure = (std::is_same_v<E, half16> ? 0xF800u : 0xFE00u) * 0x00010001u;

// Whether several results are those of double, each asked in both halves of a word.
template <class E>
struct float_doubt {
  static constexpr bool half = std::is_same_v<E, half16>;
  static constexpr uint32_t window = half ? 0x00800080u : 0x00100010u, all = most_sure<E> - least_sure<E>;
  uint32_t differ = 0;        // bits in which the least and the largest that a result may be differ
  uint32_t nearest = window;  // how far above the border less 8 units, of which 16 are in doubt, at most
  uint32_t range = all;       // how far above the least magnitude, at least
  bool near_mean = false;

  __device__ __forceinline__ bool of_rounding() const { return (differ != 0 || nearest != window) | near_mean; }
  __device__ __forceinline__ bool of_magnitude() const { return range != all; }
};

// Two results, and what is to be doubted of them: an element (less the mean) times its factor, and its bias.
template <class E, bool layer, bool biased>
__device__ __forceinline__ uint32_t two_by_float(const float_scales& d, const float (&x)[2], const float (&factor)[2],
                                                 const float (&bias)[2], float_doubt<E>& doubt) {
  constexpr bool half = std::is_same_v<E, half16>;
  const float unit = 0x1.8p-22f;
  float y[2], c[2];
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    float a = x[j];
    if constexpr (layer) {
      a = __fsub_rn(__fsub_rn(a, d.mean), d.rest);
      doubt.near_mean = doubt.near_mean || !(fabsf(a) >= d.apart);
    }
    c[j] = __fmul_rn(a, factor[j]);
    y[j] = biased ? __fadd_rn(c[j], bias[j]) : c[j];
  }
  uint32_t out;
  if constexpr (biased) {
    // What a term loses may be more than what is left of their sum.
    const float size[2] = {__fadd_rn(fabsf(c[0]), fabsf(y[0])), __fadd_rn(fabsf(c[1]), fabsf(y[1]))};
    out = rounded_pair<E>(__fmaf_rn(size[0], unit, y[0]), __fmaf_rn(size[1], unit, y[1]));
    doubt.differ |= out ^ rounded_pair<E>(__fmaf_rn(size[0], -unit, y[0]), __fmaf_rn(size[1], -unit, y[1]));
  } else {
    out = rounded_pair<E>(y[0], y[1]);
    // The bits of a float that a result has not.
    uint32_t rest = __byte_perm(__float_as_uint(y[0]), __float_as_uint(y[1]), 0x5410);
    if (half) rest <<= 3;
    doubt.nearest = __viaddmin_u16x2(rest, half ? 0x80408040u : 0x80088008u, doubt.nearest);
  }
  // What the lower half's sign does to the upper one is less than the least magnitude's last bit.
  doubt.range = __viaddmax_u16x2(out << 1, least_sure<E> ^ 0xFFFFFFFFu, doubt.range);
  return out;
}

// What an element is multiplied by. The scale first: where that is a denormal, so small are results that they are left
// to double.
template <bool weighed, class W, int N>
__device__ __forceinline__ float factor_of(const float_scales& d, const few<W, N>& weight, int j) {
  return weighed ? __fmul_rn(d.scale, narrow_value(weight, j)) : d.scale;
}

// Four results, and what is to be doubted of them.
template <class E, class W, bool layer, bool weighed, bool biased>
__device__ __forceinline__ void results_by_float(const float_scales& d, const quad<E>& x, const quad<W>& weight,
                                                 const quad<W>& bias, quad<E>& out, float_doubt<E>& doubt) {
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const int i = 2 * k, j = 2 * k + 1;
    out.word[k] = two_by_float<E, layer, biased>(
        d, {narrow_value(x, i), narrow_value(x, j)},
        {factor_of<weighed>(d, weight, i), factor_of<weighed>(d, weight, j)},
        {biased ? narrow_value(bias, i) : 0.0f, biased ? narrow_value(bias, j) : 0.0f}, doubt);
  }
}

// Where magnitudes are in doubt: whether zeros are, which are exact and may be many.
template <class E, class W, bool weighed, int N>
__device__ __forceinline__ bool only_zeros(const few<E, N>& x, const few<W, N>& weight, const few<E, N>& out) {
  bool sure = true;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const bool zero = narrow_value(x, j) == 0.0f || (weighed && narrow_value(weight, j) == 0.0f);
    const uint32_t twice = (out.word[j / 2] >> (j % 2 * 16) & 0x7FFFu) * 2;
    sure = sure && twice <= (most_sure<E> & 0xFFFFu) && (zero || twice >= (least_sure<E> & 0xFFFFu));
  }
  return sure;
}

// Four results before they are rounded. Of a layer with an element that is not finite the scale is NaN.
template <class E, class W, bool layer, bool weighed, bool biased>
__device__ __forceinline__ void results_by_double(const quad<E>& x, const quad<W>& weight, const quad<W>& bias,
                                                  double mean, double scale, double (&y)[4]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    y[j] = layer ? plus_finite(-mean, x, j) : value(x, j);
    y[j] = sizeof(E) == 8 ? __ddiv_rn(y[j], scale) : __dmul_rn(y[j], scale);
    if constexpr (biased)
      y[j] = __fma_rn(y[j], weighed ? value(weight, j) : 1.0, value(bias, j));
    else if constexpr (weighed)
      y[j] = __dmul_rn(y[j], value(weight, j));
  }
}

// Quads of 16-bit results in float; whether all are those of double.
template <class E, class W, bool layer, bool weighed, bool biased, int N>
__device__ __forceinline__ bool quads_by_float(const float_scales& in_float, const quad<E> (&x)[N],
                                               const quad<W> (&weight)[N], const quad<W> (&bias)[N],
                                               quad<E> (&out)[N]) {
  float_doubt<E> doubt;
#pragma unroll
  for (int r = 0; r < N; ++r)
    results_by_float<E, W, layer, weighed, biased>(in_float, x[r], weight[r], bias[r], out[r], doubt);
  return in_float.usable & !doubt.of_rounding() & !doubt.of_magnitude();
}
// Quads of 16-bit results: in float, and those that are in doubt in double.
template <class E, class W, bool layer, bool weighed, bool biased, int N>
__device__ __forceinline__ void quads_of_results(const float_scales& in_float, const quad<E> (&x)[N],
                                                 const quad<W> (&weight)[N], const quad<W> (&bias)[N], double mean,
                                                 double scale, quad<E> (&out)[N]) {
  const auto by_float = [&](int r, float_doubt<E>& doubt) {
    results_by_float<E, W, layer, weighed, biased>(in_float, x[r], weight[r], bias[r], out[r], doubt);
  };
  if (quads_by_float<E, W, layer, weighed, biased>(in_float, x, weight, bias, out)) return;
#pragma unroll
  for (int r = 0; r < N; ++r) {
    float_doubt<E> own;
    by_float(r, own);
    const bool sure = in_float.usable && !own.of_rounding() &&
                      (!own.of_magnitude() || (!layer && only_zeros<E, W, weighed>(x[r], weight[r], out[r])));
    if (sure) continue;
    double y[4];
    results_by_double<E, W, layer, weighed, biased>(x[r], weight[r], bias[r], mean, scale, y);
    out[r] = rounded_quad<E>(y);
  }
}

}  // namespace lockstep::cuda
