// oracle.cpp - a second, independent implementation of every op, written from the rules. It
// uses no helper of the library and other loops than `ref` (whole arrays of lanes and leaves
// instead of running partials, 192-bit integers, PTX's definition of shfl, folding step by
// step). Slow and simple on purpose.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>

#include "cases.hpp"

namespace lockstep::cases {
namespace {

__extension__ using wide = unsigned __int128;

template <class T>
T load(const unsigned char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <class T>
void store(unsigned char* p, T value) {
  std::memcpy(p, &value, sizeof value);
}
double small_float(uint32_t bits, int mantissa, int bias) {  // f16 and bf16, by value
  const uint32_t width = 16 - 1 - static_cast<uint32_t>(mantissa);
  const uint32_t exponent = bits >> mantissa & ((1u << width) - 1), fraction = bits & ((1u << mantissa) - 1);
  const double sign = bits >> 15 ? -1.0 : 1.0;
  if (exponent == (1u << width) - 1) return fraction != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa);
  return sign * std::ldexp(fraction + (1u << mantissa), static_cast<int>(exponent) - bias - mantissa);
}
// Of the 16-bit floats the one that lies nearest: the last that is not above, or the next, by the middle between them.
uint16_t nearest(double x, int mantissa, int bias) {
  const auto infinity = static_cast<uint32_t>(2 * bias + 1) << mantissa;
  const auto value = [&](uint32_t bits) {  // beyond the largest as if exponents went on
    return bits == infinity ? std::ldexp(1.0, bias + 1) : small_float(bits, mantissa, bias);
  };
  const double magnitude = std::fabs(x);
  uint32_t low = 0, high = infinity;  // value(low) <= magnitude
  while (high - low > 1) (value((low + high) / 2) <= magnitude ? low : high) = (low + high) / 2;
  const double middle = (value(low) + value(high)) / 2;
  const uint32_t best = magnitude > middle || (magnitude == middle && low % 2 == 1) ? high : low;
  return static_cast<uint16_t>(best | (std::signbit(x) ? 0x8000u : 0u));
}
void store_float(unsigned char* p, double value, int dtype) {  // one rounding, canonical NaN
  const bool nan = value != value;
  switch (dtype) {
    case LOCKSTEP_F16: return store(p, nan ? uint16_t{0x7E00} : nearest(value, 10, 15));
    case LOCKSTEP_BF16: return store(p, nan ? uint16_t{0x7FC0} : nearest(value, 7, 127));
    case LOCKSTEP_F32: return nan ? store(p, uint32_t{0x7FC00000}) : store(p, static_cast<float>(value));
    default: return nan ? store(p, uint64_t{0x7FF8000000000000}) : store(p, value);
  }
}

double as_double(const unsigned char* p, int dtype) {
  switch (dtype) {
    case LOCKSTEP_F16: return small_float(load<uint16_t>(p), 10, 15);
    case LOCKSTEP_BF16: return small_float(load<uint16_t>(p), 7, 127);
    case LOCKSTEP_F32: return load<float>(p);
    default: return load<double>(p);
  }
}

// ---- rule 3: the tree -------------------------------------------------------
// All leaves as full arrays, missing elements as -0.0, then whole levels at once.
double tree_product(const std::vector<double>& x) {
  std::vector<double> level;
  for (size_t begin = 0; begin < x.size(); begin += 2048) {
    std::vector<double> lane(128, 1.0);
    for (size_t i = begin; i < std::min(x.size(), begin + 2048); ++i) lane[(i - begin) % 128] *= x[i];
    for (; lane.size() > 1; lane.resize(lane.size() / 2))
      for (size_t l = 0; l < lane.size() / 2; ++l) lane[l] *= lane[l + lane.size() / 2];
    level.push_back(lane[0]);
  }
  while (level.size() > 1) {
    std::vector<double> above;
    for (size_t i = 0; i < level.size(); i += 2)
      above.push_back(i + 1 < level.size() ? level[i] * level[i + 1] : level[i]);
    level = above;
  }
  return level.empty() ? 1.0 : level[0];
}

double tree_sum(const std::vector<double>& x, bool squares, int scale) {
  if (x.empty()) return 0.0;
  std::vector<double> level;
  for (size_t begin = 0; begin < x.size(); begin += 2048) {
    std::array<double, 128> lane;
    lane.fill(-0.0);
    for (size_t row = 0; row < 16; ++row)
      for (size_t l = 0; l < 128; ++l) {
        const size_t i = begin + row * 128 + l;
        if (i >= x.size()) continue;
        const double v = scale == 0 ? x[i] : std::ldexp(x[i], -scale);
        lane[l] = squares ? std::fma(v, v, lane[l]) : lane[l] + v;
      }
    for (size_t half = 64; half > 0; half /= 2)
      for (size_t l = 0; l < half; ++l) lane[l] = lane[l] + lane[l + half];
    level.push_back(lane[0]);
  }
  while (level.size() > 1) {
    std::vector<double> above;
    for (size_t i = 0; i + 1 < level.size(); i += 2) above.push_back(level[i] + level[i + 1]);
    if (level.size() % 2 == 1) above.push_back(level.back());
    level = above;
  }
  return level[0];
}

double norm(const std::vector<double>& x) {
  double most = 0;
  bool finite = true;
  for (const double v : x) {
    finite = finite && std::isfinite(v);
    most = std::max(most, std::fabs(v));
  }
  const double plain = tree_sum(x, true, 0);
  // f16, bf16, f32 never come here: their squares stay within 2^-298 to 2^257.
  const bool lost = std::isinf(plain) || plain < std::ldexp(1.0, -900);
  if (!finite || most == 0 || !lost) return std::sqrt(plain);
  const int e = std::max(std::ilogb(most), -1022);
  return std::ldexp(std::sqrt(tree_sum(x, true, e)), e);
}

// ---- exact integers ---------------------------------------------------------
struct big {  // an exact sum of squares: up to 2^126 * 2^63
  wide low = 0;
  uint64_t high = 0;
  void add(wide v) {
    low += v;
    high += low < v;
  }
};

// The root of an exact integer, rounded to nearest even once.
double root(big s) {
  if (s.high == 0 && s.low == 0) return 0.0;
  int halves = 0;  // s = window * 4^halves, window in [2^126, 2^128), what fell off is in sticky
  bool sticky = false;
  while (s.high != 0) {
    sticky = sticky || (s.low & 3) != 0;
    s.low = s.low >> 2 | static_cast<wide>(s.high & 3) << 126;
    s.high >>= 2;
    ++halves;
  }
  while (s.low < static_cast<wide>(1) << 126) {
    s.low <<= 2;
    --halves;
  }
  uint64_t r = 0;  // floor of the root, bit by bit: 64 bits
  for (int bit = 63; bit >= 0; --bit) {
    const uint64_t next = r | uint64_t{1} << bit;
    if (static_cast<wide>(next) * next <= s.low) r = next;
  }
  sticky = sticky || static_cast<wide>(r) * r != s.low;
  // 64 bits to 53: eleven go.
  const uint64_t kept = r >> 11, rest = r & 0x7FF;
  const bool up = rest > 0x400 || (rest == 0x400 && (sticky || (kept & 1) != 0));
  return std::ldexp(static_cast<double>(kept + (up ? 1 : 0)), 11 + halves);
}

}  // namespace
signed_wide as_integer(const unsigned char* p, int dtype) {
  switch (dtype) {
    case LOCKSTEP_I8: return load<int8_t>(p);
    case LOCKSTEP_I16: return load<int16_t>(p);
    case LOCKSTEP_I32: return load<int32_t>(p);
    case LOCKSTEP_U8: return load<uint8_t>(p);
    case LOCKSTEP_U16: return load<uint16_t>(p);
    case LOCKSTEP_U32: return load<uint32_t>(p);
    case LOCKSTEP_U64: return load<uint64_t>(p);
    case LOCKSTEP_BOOL: return *p != 0;
    default: return load<int64_t>(p);
  }
}
namespace {
// What fits of an exact sum: U64's goes to U64, all others to I64.
expectation store_sum(const test_case& c, signed_wide sum, bool beyond, unsigned char* out) {
  const bool u64 = c.dtype == LOCKSTEP_U64;
  const signed_wide most = u64 ? static_cast<signed_wide>(UINT64_MAX) : INT64_MAX, least = u64 ? 0 : INT64_MIN;
  const bool above = beyond || sum > most, fits = !above && sum >= least;
  store(out, static_cast<uint64_t>(above ? most : fits ? sum : least));
  return {fits ? LOCKSTEP_OK : LOCKSTEP_OVERFLOW, -1};
}

// COUNT_NONZERO, ANY and ALL; false: it is none of them.
template <class T>
bool truths(const test_case& c, const std::vector<T>& x, unsigned char* out) {
  const auto zeros = static_cast<size_t>(std::count(x.begin(), x.end(), T{0}));
  switch (c.reduce.reduction) {
    case LOCKSTEP_COUNT_NONZERO: store(out, static_cast<int64_t>(x.size() - zeros)); return true;
    case LOCKSTEP_ANY: *out = zeros < x.size() ? 1 : 0; return true;
    case LOCKSTEP_ALL: *out = zeros == 0 ? 1 : 0; return true;
    default: return false;
  }
}

// Past 2^64 only the sign counts.
expectation product(const test_case& c, const std::vector<signed_wide>& x, unsigned char* out) {
  wide size = 1;
  bool negative = false;
  for (const signed_wide v : x) {
    size = std::min(size * static_cast<wide>(v < 0 ? -v : v), wide{1} << 64);
    negative = negative != (v < 0);
  }
  if (std::find(x.begin(), x.end(), 0) != x.end()) size = 0;
  const auto value = static_cast<signed_wide>(size);
  return store_sum(c, negative ? -value : value, false, out);
}

expectation integers(const test_case& c, const std::vector<signed_wide>& x, unsigned char* out) {
  const lockstep_reduction what = c.reduce.reduction;
  if (truths(c, x, out)) return {};
  if (what == LOCKSTEP_PROD) return product(c, x, out);
  if (what == LOCKSTEP_NORM2 || what == LOCKSTEP_SUM_OF_SQUARES) {
    big sum;
    for (const signed_wide v : x) {
      const auto magnitude = static_cast<wide>(v < 0 ? -v : v);
      sum.add(magnitude * magnitude);
    }
    if (what == LOCKSTEP_NORM2) {
      store_float(out, root(sum), c.reduce.result);
      return {};
    }
    return store_sum(c, static_cast<signed_wide>(sum.low), sum.high != 0 || sum.low >> 127 != 0, out);
  }
  if (what == LOCKSTEP_SUM || what == LOCKSTEP_NAN_SUM) {
    signed_wide sum = 0;
    for (const signed_wide v : x) sum += v;
    return store_sum(c, sum, false, out);
  }
  const bool least = what == LOCKSTEP_MIN || what == LOCKSTEP_ARGMIN || what == LOCKSTEP_NAN_MIN;
  const auto found = least ? std::min_element(x.begin(), x.end()) : std::max_element(x.begin(), x.end());
  if (what == LOCKSTEP_ARGMIN || what == LOCKSTEP_ARGMAX)
    store(out, static_cast<int64_t>(found - x.begin()));
  else
    std::memcpy(out, &*found, c.dst.element_bytes);  // the low bytes come first
  return {};
}

expectation floats(const test_case& c, const std::vector<double>& x, unsigned char* out) {
  const lockstep_reduction what = c.reduce.reduction;
  const int result = c.reduce.result;
  if (truths(c, x, out)) return {};
  if (what == LOCKSTEP_PROD) return store_float(out, tree_product(x), result), expectation{};
  if (what == LOCKSTEP_NAN_SUM) {
    std::vector<double> numbers = x;
    for (double& v : numbers) v = std::isnan(v) ? 0.0 : v;
    return store_float(out, tree_sum(numbers, false, 0), result), expectation{};
  }
  if (what == LOCKSTEP_SUM || what == LOCKSTEP_SUM_OF_SQUARES)
    return store_float(out, tree_sum(x, what != LOCKSTEP_SUM, 0), result), expectation{};
  if (what == LOCKSTEP_NORM2) return store_float(out, norm(x), result), expectation{};
  const bool least = what == LOCKSTEP_MIN || what == LOCKSTEP_ARGMIN || what == LOCKSTEP_NAN_MIN;
  const auto beats = [&](double a, double b) {  // strictly: the first of equals stays
    const bool skipped = what == LOCKSTEP_NAN_MIN || what == LOCKSTEP_NAN_MAX;
    if (std::isnan(b)) return skipped && !std::isnan(a);
    if (std::isnan(a)) return !skipped;
    if (a == b) return least ? std::signbit(a) && !std::signbit(b) : !std::signbit(a) && std::signbit(b);
    return least ? a < b : a > b;
  };
  size_t best = 0;
  for (size_t i = 1; i < x.size(); ++i)
    if (beats(x[i], x[best])) best = i;
  if (what == LOCKSTEP_ARGMIN || what == LOCKSTEP_ARGMAX)
    store(out, static_cast<int64_t>(best));
  else
    store_float(out, x[best], c.dtype);
  return {};
}

expectation reductions(const test_case& c, const unsigned char* src, unsigned char* dst) {
  expectation all;
  const size_t bytes = c.src.element_bytes;
  for (int64_t s = 0; s < c.reduce.count; ++s) {
    const auto u = static_cast<size_t>(s);
    const int64_t begin = c.offsets.empty() ? s * c.reduce.sequence_stride : c.offsets[u] * c.reduce.element_stride;
    const int64_t length = c.offsets.empty() ? c.reduce.length : c.offsets[u + 1] - c.offsets[u];
    unsigned char* out = dst + u * c.dst.element_bytes;
    const lockstep_reduction what = c.reduce.reduction;
    const bool compares =
        (what >= LOCKSTEP_MIN && what <= LOCKSTEP_ARGMAX) || what == LOCKSTEP_NAN_MIN || what == LOCKSTEP_NAN_MAX;
    expectation one;
    if (length == 0 && compares)
      one.status = LOCKSTEP_EMPTY;
    else if (lockstep_dtype_kind(static_cast<lockstep_dtype>(c.dtype)) != 'f') {
      std::vector<signed_wide> x;
      for (int64_t i = 0; i < length; ++i) {
        const unsigned char* p = src + static_cast<size_t>(begin + i * c.reduce.element_stride) * bytes;
        x.push_back(as_integer(p, c.dtype));
      }
      one = integers(c, x, out);
    } else {
      std::vector<double> x;
      for (int64_t i = 0; i < length; ++i)
        x.push_back(as_double(src + static_cast<size_t>(begin + i * c.reduce.element_stride) * bytes, c.dtype));
      one = floats(c, x, out);
    }
    if (one.status != LOCKSTEP_OK && all.status == LOCKSTEP_OK) all = {one.status, s};
  }
  return all;
}

// Each element goes, in the order of the axes, to the end of its result's row.
expectation reductions_of_axes(const test_case& c, const unsigned char* src, unsigned char* dst) {
  const lockstep_reduce_axes_desc& d = c.reduce_axes;
  const auto rank = static_cast<size_t>(d.rank);
  std::vector<int64_t> index(rank, 0);
  std::vector<std::vector<unsigned char>> rows(static_cast<size_t>(c.dst.elements()));
  const size_t bytes = c.src.element_bytes;
  const auto goes = [&](size_t k) { return std::find(d.axes, d.axes + d.axis_count, k) != d.axes + d.axis_count; };
  for (int64_t left = c.src.elements(); left > 0; --left) {
    int64_t result = 0, at = 0;
    for (size_t k = 0; k < rank; ++k) {
      if (!goes(k)) result = result * d.shape[k] + index[k];
      at += index[k] * d.src_strides[k];
    }
    auto& row = rows[static_cast<size_t>(result)];
    row.insert(row.end(), src + static_cast<size_t>(at) * bytes, src + static_cast<size_t>(at + 1) * bytes);
    for (size_t k = rank; k-- > 0;) {
      if (++index[k] < d.shape[k]) break;
      index[k] = 0;
    }
  }
  test_case packed = c;
  std::vector<unsigned char> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t length = count == 0 ? 0 : static_cast<int64_t>(rows[0].size() / bytes);
  packed.reduce = lockstep_reduce_rows(d.reduction, d.dtype, count, length, length);
  packed.reduce.result = d.result;
  return reductions(packed, all.data(), dst);
}

// ---- stencils ---------------------------------------------------------------
// Walks an index home, a reflection or a turn at a time; -1: outside, constant.
int64_t home(int64_t i, int64_t n, lockstep_boundary boundary) {
  while (i < 0 || i >= n) {
    switch (boundary) {
      case LOCKSTEP_BOUNDARY_NEAREST: return i < 0 ? 0 : n - 1;
      case LOCKSTEP_BOUNDARY_MIRROR:
        if (n == 1) return 0;
        i = i < 0 ? -i : 2 * (n - 1) - i;
        break;
      case LOCKSTEP_BOUNDARY_REFLECT: i = i < 0 ? -1 - i : 2 * n - 1 - i; break;
      case LOCKSTEP_BOUNDARY_WRAP: i += i < 0 ? n : -n; break;
      default: return -1;
    }
  }
  return i;
}

template <class T>
void stencils(const test_case& c, const unsigned char* src, unsigned char* dst) {
  const lockstep_stencil_desc& d = c.stencil;
  const auto rank = static_cast<size_t>(d.rank);
  // Taps sorted by where they lie; offsets of an axis inside weigh less.
  using offset = std::array<int64_t, 3>;
  std::map<offset, T> taps;
  if (d.form == LOCKSTEP_GENERAL) {
    std::vector<offset> places = {offset{}};
    for (size_t axis = 0; axis < rank; ++axis)
      for (int64_t k = -d.radius; k <= d.radius; ++k)
        if (k != 0) {
          offset o{};
          o[axis] = k;
          places.push_back(o);
        }
    std::sort(places.begin(), places.end());
    for (size_t k = 0; k < places.size(); ++k) taps[places[k]] = static_cast<T>(c.coefficients[k]);
  } else {
    taps[offset{}] = static_cast<T>(c.coefficients[0]);
    size_t next = 1;
    for (size_t axis = 0; axis < rank; ++axis)
      for (int64_t k = 1; k <= d.radius; ++k, ++next)
        for (const int64_t sign : {-1, 1}) {
          offset o{};
          o[axis] = sign * k;
          const auto weight = static_cast<T>(c.coefficients[next]);
          taps[o] = d.form == LOCKSTEP_ANTISYMMETRIC && sign < 0 ? -weight : weight;
        }
  }
  const auto value = static_cast<T>(d.value);
  for (int64_t b = 0; b < d.batch; ++b) {
    offset shape = {1, 1, 1};
    for (size_t k = 0; k < rank; ++k) shape[k] = d.shape[k];
    std::vector<T> now;  // packed
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t j = 0; j < shape[1]; ++j)
        for (int64_t k = 0; k < shape[2]; ++k) {
          const int64_t at = b * d.src_batch_stride + i * d.src_strides[0] + (rank > 1 ? j * d.src_strides[1] : 0) +
                             (rank > 2 ? k * d.src_strides[2] : 0);
          now.push_back(load<T>(src + static_cast<size_t>(at) * sizeof(T)));
        }
    for (int sweep = 0; sweep < d.sweeps; ++sweep) {
      offset next_shape = shape, shift{};
      if (d.boundary == LOCKSTEP_BOUNDARY_VALID)
        for (size_t k = 0; k < rank; ++k) {
          next_shape[k] -= 2 * d.radius;
          shift[k] = d.radius;
        }
      std::vector<T> next;
      for (int64_t i = 0; i < next_shape[0]; ++i)
        for (int64_t j = 0; j < next_shape[1]; ++j)
          for (int64_t k = 0; k < next_shape[2]; ++k) {
            T sum = 0;
            bool first = true;
            for (const auto& [o, weight] : taps) {
              const int64_t x = home(i + shift[0] + o[0], shape[0], d.boundary),
                            y = home(j + shift[1] + o[1], shape[1], d.boundary),
                            z = home(k + shift[2] + o[2], shape[2], d.boundary);
              const bool outside = x < 0 || y < 0 || z < 0;
              const T element = outside ? value : now[static_cast<size_t>((x * shape[1] + y) * shape[2] + z)];
              sum = first ? weight * element : std::fma(weight, element, sum);
              first = false;
            }
            next.push_back(sum);
          }
      now = std::move(next);
      shape = next_shape;
    }
    size_t n = 0;
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t j = 0; j < shape[1]; ++j)
        for (int64_t k = 0; k < shape[2]; ++k, ++n) {
          const int64_t at = b * d.dst_batch_stride + i * d.dst_strides[0] + (rank > 1 ? j * d.dst_strides[1] : 0) +
                             (rank > 2 ? k * d.dst_strides[2] : 0);
          store_float(dst + static_cast<size_t>(at) * sizeof(T), now[n], c.dtype);
        }
  }
}

// ---- moves ------------------------------------------------------------------
// shfl as the PTX manual defines it, with clamp and segment mask in one operand;
// a delta beyond the warp, which PTX would cut to five bits, keeps the own value.
int ptx_source(lockstep_shuffle_kind kind, int lane, int width, int32_t operand) {
  const int segment_mask = 32 - width, clamp = kind == LOCKSTEP_SHUFFLE_UP ? 0 : 31;
  const int most = (lane & segment_mask) | (clamp & ~segment_mask & 31), least = lane & segment_mask;
  if ((kind == LOCKSTEP_SHUFFLE_UP || kind == LOCKSTEP_SHUFFLE_DOWN) && operand > 31) return lane;
  const int b = operand & 31;
  int j = lane;
  bool inside = false;
  switch (kind) {
    case LOCKSTEP_SHUFFLE_UP: j = lane - b, inside = j >= most; break;
    case LOCKSTEP_SHUFFLE_DOWN: j = lane + b, inside = j <= most; break;
    case LOCKSTEP_SHUFFLE_XOR: j = lane ^ b, inside = j <= most; break;
    case LOCKSTEP_SHUFFLE_IDX: j = least | (b & ~segment_mask), inside = j <= most; break;
  }
  return inside ? j : lane;
}

void moves(const test_case& c, const unsigned char* src, unsigned char* dst) {
  const size_t bytes = c.src.element_bytes;
  const int64_t total = c.dst.elements();
  if (total == 0) return;
  // Where each axis of dst comes from in src.
  int from[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  if (c.op == LOCKSTEP_TRANSPOSE) std::swap(from[1], from[2]);
  if (c.op == LOCKSTEP_PERMUTE) std::copy(c.permute.perm, c.permute.perm + c.permute.rank, from);
  for (int64_t n = 0; n < total; ++n) {
    int64_t rest = n, to = 0, at = 0;
    for (int k = c.dst.rank - 1; k >= 0; --k) {
      const int64_t index = rest % c.dst.counts[k];
      rest /= c.dst.counts[k];
      to += index * c.dst.strides[k];
      at += index * c.src.strides[from[k]];
    }
    if (c.op == LOCKSTEP_SHUFFLE)
      at = to / 32 * 32 + ptx_source(c.shuffle.kind, static_cast<int>(to % 32), c.shuffle.width, c.shuffle.operand);
    std::memcpy(dst + static_cast<size_t>(to) * bytes, src + static_cast<size_t>(at) * bytes, bytes);
  }
}

}  // namespace

expectation oracle(const test_case& c, const unsigned char* src, unsigned char* dst) {
  switch (c.op) {
    case LOCKSTEP_SQUARE_SUM:
    case LOCKSTEP_REDUCE: return reductions(c, src, dst);
    case LOCKSTEP_STENCIL:
      if (c.src.elements() == 0) return {};
      if (c.dtype == LOCKSTEP_F32)
        stencils<float>(c, src, dst);
      else
        stencils<double>(c, src, dst);
      return {};
    case LOCKSTEP_NORMALIZE: oracle_normalize(c, src, dst); return {};
    case LOCKSTEP_SCAN: return oracle_scan(c, src, dst);
    case LOCKSTEP_SUMS: return oracle_sums(c, src, dst);
    case LOCKSTEP_REDUCE_AXES: return reductions_of_axes(c, src, dst);
    case LOCKSTEP_CONVERT: oracle_convert(c, src, dst); return {};
    case LOCKSTEP_MAP: oracle_map(c, src, dst); return {};
    default: moves(c, src, dst); return {};
  }
}

}  // namespace lockstep::cases
