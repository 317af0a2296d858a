// extremes.cpp - the largest or smallest element, and where it first occurs.
// Idea    floats compare as integers. Three extremes of their bits decide both ends: the largest as signed, the
//         smallest and the largest as unsigned; no per-element work for signs, -0.0 or NaN. Whole chunks of a long
//         sequence take half of that (extreme_kinds.hpp, chunk_fold), and are read again if it does not decide. For the
//         index, the row is then searched for the bits of the extreme; it is still in L1.
// Moves   every element read once (twice in L1 for an index); 16 bytes written for each row
// Limit   in cache the comparisons, of which floats need more than integers; in DRAM the read limit
// Watch   a NaN of either sign is the minimum and the maximum; the payloads of NaNs do not count
// Source  lib/bits/order.hpp (keys)
#include "../reduce_kernels.hpp"
#include "bits/order.hpp"
#include "extreme_kinds.hpp"
#include "narrow_extremes.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// Runs body(k, vector) over a row; k alternates between two chains.
template <class K, class Body>
inline void over_row(const typename K::element* p, int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + 2 * K::width <= n; i += 2 * K::width) {
    for (int b = 0; b < 2 * bytes; b += 64) fetch(reinterpret_cast<const char*>(p + i) + tuned.read_ahead + b);
    body(0, K::load(p + i));
    body(1, K::load(p + i + K::width));
  }
  if (i + K::width <= n) {
    body(0, K::load(p + i));
    i += K::width;
  }
  if (i < n) body(1, last_vector<K>(p, n));
}

// The extremes of up to K::width rows, one row in each lane: one extreme of integers; of floats
// the largest as signed (top), the smallest and the largest as unsigned.
template <class K, bool Largest>
struct group {
  typedef typename K::vector V;
  typedef typename K::word_vector VU;
  V top[K::width];
  VU low[K::width], high[K::width];

  void row(int i, const typename K::element* p, int64_t n) {
    if constexpr (!K::float_bits) {
      V best[2] = {V{} + (Largest ? K::lowest : K::highest), V{} + (Largest ? K::lowest : K::highest)};
      over_row<K>(p, n, [&](int k, V x) { best[k] = Largest ? greater(best[k], x) : lesser(best[k], x); });
      top[i] = Largest ? greater(best[0], best[1]) : lesser(best[0], best[1]);
    } else {
      V t[2] = {V{} + K::lowest, V{} + K::lowest};
      VU l[2] = {~VU{}, ~VU{}}, h[2] = {VU{}, VU{}};
      over_row<K>(p, n, [&](int k, V x) {
        const VU u = reinterpret_cast<VU>(x);
        t[k] = greater(t[k], x);
        l[k] = lesser(l[k], u);
        h[k] = greater(h[k], u);
      });
      top[i] = greater(t[0], t[1]);
      low[i] = lesser(l[0], l[1]);
      high[i] = greater(h[0], h[1]);
    }
  }
  // The bits of the extremes, and the rows that have a NaN.
  void join(typename K::element* bits, bool* nan) {
    V winner;
    V nans = {};
    if constexpr (!K::float_bits) {
      winner = Largest ? across<take_greater>(top) : across<take_lesser>(top);
    } else {
      const V t = across<take_greater>(top);
      const VU l = across<take_lesser>(low), h = across<take_greater>(high);
      nans = (t > static_cast<typename K::element>(K::infinity)) | reinterpret_cast<V>(h > (K::infinity | K::sign));
      if (Largest)
        winner = t >= 0 ? t : reinterpret_cast<V>(l);
      else
        winner = reinterpret_cast<V>(h) < 0 ? reinterpret_cast<V>(h) : reinterpret_cast<V>(l);
    }
    memcpy(bits, &winner, sizeof winner);
    for (int i = 0; i < K::width; ++i) nan[i] = nans[i] != 0;
  }
};

template <class K, bool Largest>
inline int64_t key_of(typename K::element x, bool nan) {
  if constexpr (!K::float_bits) return K::key(x);
  if (nan) return Largest ? INT64_MAX : INT64_MIN;
  return x >= 0 ? x : static_cast<typename K::element>(~x ^ static_cast<typename K::element>(K::sign));
}
template <class K>
inline bool is_nan(typename K::element x) {
  return K::float_bits && (static_cast<typename K::word>(x) & ~K::sign) > K::infinity;
}

// The first element with these bits (or, nan, the first NaN); there is one. Rows of
// up to 64 take no branch that depends on where it is.
template <class K>
inline int64_t first_index(const typename K::element* p, int64_t n, typename K::element bits, bool nan) {
  int64_t i = 0;
  if (nan) {
    while (!is_nan<K>(p[i])) ++i;
    return i;
  }
  if (n <= 64) {
    uint64_t found = 0;
    for (; i + K::width <= n; i += K::width) found |= static_cast<uint64_t>(hits<K>(K::load(p + i), bits)) << i;
    if (i < n) found |= static_cast<uint64_t>(hits<K>(last_vector<K>(p, n), bits)) << (n > K::width ? n - K::width : 0);
    return __builtin_ctzll(found);
  }
  for (; i + K::width <= n; i += K::width)
    if (const uint32_t found = hits<K>(K::load(p + i), bits); found != 0) return i + __builtin_ctz(found);
  while (i < n - 1 && p[i] != bits) ++i;
  return i;
}

template <class K, bool Largest>
int64_t find(const void* src, int64_t n, int64_t key) {
  typedef typename K::element I;
  const auto* p = static_cast<const I*>(src);
  if constexpr (!K::float_bits) return first_index<K>(p, n, K::element_of(key), false);
  if (key == (Largest ? INT64_MAX : INT64_MIN)) return first_index<K>(p, n, 0, true);
  const auto narrow = static_cast<I>(key);  // key_of is its own inverse
  return first_index<K>(p, n, narrow >= 0 ? narrow : static_cast<I>(~narrow ^ static_cast<I>(K::sign)), false);
}

// ---- many short rows of one length ------------------------------------------------
// Floats are compared by key (order::key_f32), so that only one vector is joined across lanes, where group joins three.
// The opposite extreme over all rows shows whether there is a NaN of the sign that these keys miss; only then group is
// needed to find its row.
template <class K, bool Largest>
__attribute__((noinline)) void whose_nan(const typename K::element* p, int64_t n, int64_t stride, int together,
                                         typename K::vector& winner, typename K::vector& nan) {
  group<K, Largest> g;
  if (together < K::width) memset(static_cast<void*>(&g), 0, sizeof g);
  for (int i = 0; i < together; ++i) g.row(i, p + i * stride, n);
  typename K::element bits[K::width];
  bool is[K::width];
  g.join(bits, is);
  winner = K::load(bits);
  for (int i = 0; i < K::width; ++i) nan[i] = is[i] ? -1 : 0;
}

// The bits of the extremes of the `together` rows from p on, one row in each lane; nan: all ones in lanes of rows that
// have a NaN. Returns whether any has. V: vectors of a row, 0 for any number.
template <class K, bool Largest, int V>
bool short_rows(const typename K::element* p, int64_t n, int64_t stride, int together, typename K::vector& winner,
                typename K::vector& nan) {
  typedef typename K::vector vector;
  typedef typename K::element I;
  constexpr I infinity = static_cast<I>(K::infinity);  // the key of +inf; that of -inf is the complement
  vector best[K::width];
  vector other = vector{};
  if (together < K::width) memset(best, 0, sizeof best);
  const auto take = [&](vector x, vector& b) {
    const vector key = ordered<K>(x);
    b = Largest ? greater(b, key) : lesser(b, key);
    if constexpr (K::float_bits) other = Largest ? lesser(other, key) : greater(other, key);
  };
  for (int i = 0; i < together; ++i) {
    const I* row = p + i * stride;
    vector b[2] = {vector{} + (Largest ? K::lowest : K::highest), vector{} + (Largest ? K::lowest : K::highest)};
    if constexpr (V == 0) {
      over_row<K>(row, n, [&](int k, vector x) { take(x, b[k]); });
    } else {
#pragma GCC unroll 4
      for (int k = 0; k < V - 1; ++k) {
        fetch(reinterpret_cast<const char*>(row + k * K::width) + tuned.read_ahead);
        take(K::load(row + k * K::width), b[k & 1]);
      }
      fetch(reinterpret_cast<const char*>(row + (V - 1) * K::width) + tuned.read_ahead);
      take(V > 1 ? K::load(row + n - K::width) : last_vector<K>(row, n), b[1]);
    }
    best[i] = Largest ? greater(b[0], b[1]) : lesser(b[0], b[1]);
  }
  if constexpr (Largest)
    winner = across<take_greater>(best);
  else
    winner = across<take_lesser>(best);
  nan = vector{};
  if constexpr (K::float_bits) {
    nan = Largest ? winner > infinity : winner < static_cast<I>(~infinity);
    winner = ordered<K>(winner);
    if (any_lane<K>(Largest ? other < static_cast<I>(~infinity) : other > infinity)) {
      vector bits, is;  // so that winner and nan stay in registers
      whose_nan<K, Largest>(p, n, stride, together, bits, is);
      winner = bits;
      nan = is;
    }
    return any_lane<K>(nan);
  }
  return false;
}

template <class K>
constexpr auto quiet_nan = static_cast<typename K::element>(K::infinity | (K::infinity & (0 - K::infinity)) >> 1);

template <class K, bool Largest>
void winners(const packed_rows& r, int64_t count, bool index, void* out) {
  typedef typename K::vector V;
  typedef typename K::element I;
  const auto* src = static_cast<const I*>(r.src);
  static constexpr decltype(&short_rows<K, Largest, 0>) of_vectors[] = {
      short_rows<K, Largest, 1>, short_rows<K, Largest, 2>, short_rows<K, Largest, 3>, short_rows<K, Largest, 4>};
  const auto take = r.n <= 4 * K::width ? of_vectors[(r.n - 1) / K::width] : short_rows<K, Largest, 0>;
  for (int64_t first = 0; first < count; first += K::width) {
    const int together = count - first < K::width ? static_cast<int>(count - first) : K::width;
    const I* p = src + first * r.stride;
    V winner, nan;
    const bool any_nan = take(p, r.n, r.stride, together, winner, nan);
    if (!index) {
      if (K::float_bits) winner = nan != 0 ? V{} + quiet_nan<K> : winner;
      memcpy(static_cast<I*>(out) + first, &winner, static_cast<size_t>(together) * sizeof(I));
      continue;
    }
    I bits[K::width];
    memcpy(bits, &winner, sizeof bits);
    auto* at = static_cast<int64_t*>(out) + first;
    if (any_nan) {
      for (int i = 0; i < together; ++i) at[i] = first_index<K>(p + i * r.stride, r.n, bits[i], nan[i] != 0);
    } else {
      for (int i = 0; i < together; ++i) at[i] = first_index<K>(p + i * r.stride, r.n, bits[i], false);
    }
  }
}

// ---- whole chunks: at one place of a sequence, or at two --------------------------------
// Up to K::width chunks starting at each of p; false if chunk_fold does not decide. With AVX-512 a single stream
// prefetches only the first two lines of the next page, because the loop is so short that the hardware does the rest.
// AVX2 has twice the operations for a line and prefetches every line. Two streams need no prefetches. The loop has few
// loads, because Zen 4's prefetcher tells streams apart by the load instruction.
constexpr bool light = bytes == 64;
template <class K, bool Largest, int Streams>
bool whole_chunks(const typename K::element* const* p, int64_t first, int some, extreme* const* out) {
  constexpr int size = sizeof(**p), step = tuned.extreme_step / size, piece = tuned.stream_piece / size;
  constexpr int page = 4096 / size;
  typename K::vector keys[Streams][K::width];
  if (some < K::width) memset(static_cast<void*>(keys), 0, sizeof keys);
  const auto line = [](const typename K::element* from) {
    if constexpr (Streams == 2)
      return held(load_of_stream<typename K::vector>(from));
    else
      return held(load_line<typename K::vector>(from));
  };
  bool undecided = false;
  for (int i = 0; i < some; ++i) {
    chunk_fold<K, Largest, 4 / Streams> chunk[Streams];
    for (int64_t at = (first + i) * exact_chunk, end = at + exact_chunk; at < end; at += page) {
      if constexpr (Streams == 1 && light) {
        const auto next = ((reinterpret_cast<uintptr_t>(p[0] + at) + 4095) | 4095) + 1;
        fetch(reinterpret_cast<const char*>(next));
        fetch(reinterpret_cast<const char*>(next) + 64);
      }
      for (int64_t k = at; k < at + page; k += piece)
#pragma GCC unroll 2
        for (int c = 0; c < Streams; ++c)
#pragma GCC unroll 1
          for (int64_t m = k; m < k + piece; m += step)
#pragma GCC unroll 16
            for (int j = 0; j < step; j += 2 * K::width) {
              const typename K::element* const q = p[c] + m + j;
              if constexpr (Streams == 1 && !light) fetch(reinterpret_cast<const char*>(q) + tuned.read_ahead);
              const auto x = line(q), y = line(q + K::width);
              chunk[c].enter(j / (2 * K::width), x, y);
            }
    }
    for (int c = 0; c < Streams; ++c) keys[c][i] = chunk[c].keys(), undecided |= chunk[c].undecided();
  }
  if (undecided) return false;
  for (int c = 0; c < Streams; ++c) {
    const typename K::vector winners = Largest ? across<take_greater>(keys[c]) : across<take_lesser>(keys[c]);
    for (int i = 0; i < some; ++i) out[c][first + i] = {K::key(winners[i]), 0};
  }
  return true;
}

template <class K, bool Largest>
void rows(const packed_rows& r, int64_t count, bool index, extreme* out) {
  const auto* src = static_cast<const typename K::element*>(r.src);
  const auto begin = [&](int64_t s) { return src + (r.offsets != nullptr ? r.offsets[s] : s * r.stride); };
  const auto length = [&](int64_t s) { return r.offsets != nullptr ? r.offsets[s + 1] - r.offsets[s] : r.n; };
  // Who asks for the index may do so under the caller's float environment.
  const bool whole = r.offsets == nullptr && r.n == exact_chunk && r.stride == exact_chunk && !index;
  bool decided = whole;  // the last ones were, or could have been
  for (int64_t first = 0; first < count; first += K::width) {
    const int together = count - first < K::width ? static_cast<int>(count - first) : K::width;
    if (decided && whole_chunks<K, Largest, 1>(&src, first, together, &out)) continue;
    group<K, Largest> g;
    if (together < K::width) memset(static_cast<void*>(&g), 0, sizeof g);
    for (int i = 0; i < together; ++i) g.row(i, begin(first + i), length(first + i));
    typename K::element bits[K::width];
    bool nan[K::width];
    g.join(bits, nan);
    decided = whole;
    for (int i = 0; i < together; ++i) {
      const int64_t s = first + i;
      out[s].key = key_of<K, Largest>(bits[i], nan[i]);
      out[s].index = index && length(s) > 0 ? first_index<K>(begin(s), length(s), bits[i], nan[i]) : 0;
      decided &= !nan[i] && (chunk_fold<K, Largest, 4>::any_sign || (bits[i] < 0) != Largest);
    }
  }
}

template <class K, bool Largest>
void two(const void* a, const void* b, int64_t count, extreme* out_a, extreme* out_b) {
  typedef typename K::element I;
  const I* const p[2] = {static_cast<const I*>(a), static_cast<const I*>(b)};
  extreme* const out[2] = {out_a, out_b};
  bool decided = true;
  for (int64_t first = 0; first < count; first += K::width) {
    const int some = count - first < K::width ? static_cast<int>(count - first) : K::width;
    if (decided) decided = whole_chunks<K, Largest, 2>(p, first, some, out);
    for (int c = 0; c < 2 && !decided; ++c)
      rows<K, Largest>({p[c] + first * exact_chunk, exact_chunk, exact_chunk, nullptr}, some, false, out[c] + first);
  }
}

// ---- columns: key and index of each column in L1, eight rows at a time -----------
template <class K, bool Largest>
inline typename K::vector keys(typename K::vector x) {
  typedef typename K::vector V;
  if constexpr (!K::float_bits) {
    return x;
  } else {
    const V magnitude = x & K::highest;
    const V key = x ^ ((x < 0) & K::highest);
    return magnitude > static_cast<typename K::element>(K::infinity) ? V{} + (Largest ? K::highest : K::lowest) : key;
  }
}

template <class K, bool Largest, bool Index>
void extremes_of_columns(const typename K::element* p, int64_t n, int64_t ld, int64_t width, extreme* out,
                         void* winners) {
  typedef typename K::vector V;
  typedef typename K::element I;
  constexpr int together = 8;
  V best[column_block / K::width], where[column_block / K::width];
  for (auto& v : best) v = V{} + (Largest ? K::lowest : K::highest);
  for (auto& v : where) v = V{};
  for (int64_t r = 0; r < n; r += together) {
    const int64_t last = n - r < together ? n : r + together;
    for (int64_t c = 0; c < width; c += K::width) {
      V b = best[c / K::width], w = where[c / K::width];
      const I* q = p + r * ld + c;
      for (int64_t i = r; i < last; ++i, q += ld) {
        V x;
        if (width - c >= K::width) {
          __builtin_prefetch(q + together * ld);
          x = K::load(q);
        } else {
          x = last_vector<K>(q, width - c);
        }
        const V k = keys<K, Largest>(x);
        if constexpr (Index) {
          const V wins = Largest ? k > b : k < b;
          w = wins ? V{} + static_cast<I>(i) : w;
        }
        b = Largest ? greater(b, k) : lesser(b, k);
      }
      best[c / K::width] = b;
      where[c / K::width] = w;
    }
  }
  I key[column_block], row[column_block];
  memcpy(key, best, sizeof key);
  memcpy(row, where, sizeof row);
  const auto nan = [](I k) { return K::float_bits && k == (Largest ? K::highest : K::lowest); };
  if (Index && winners != nullptr) {
    for (int64_t c = 0; c < width; ++c) static_cast<int64_t*>(winners)[c] = static_cast<int64_t>(row[c]);
  } else if (winners != nullptr) {
    for (int64_t c = 0; c < width; ++c)
      static_cast<I*>(winners)[c] = nan(key[c])                     ? quiet_nan<K>
                                    : K::float_bits && key[c] < I{} ? static_cast<I>(key[c] ^ K::highest)
                                                                    : key[c];
  } else {
    for (int64_t c = 0; c < width; ++c)
      out[c] = {nan(key[c]) ? (Largest ? INT64_MAX : INT64_MIN) : K::key(key[c]), static_cast<int64_t>(row[c])};
  }
}
template <class K, bool Largest>
void columns(const void* src, int64_t n, int64_t ld, int64_t width, bool index, extreme* out, void* winners) {
  const auto* p = static_cast<const typename K::element*>(src);
  if (index) return extremes_of_columns<K, Largest, true>(p, n, ld, width, out, winners);
  extremes_of_columns<K, Largest, false>(p, n, ld, width, out, winners);
}

}  // namespace

#define LOCKSTEP_WIDE_ROW(K, largest) \
  { rows<K, largest>, two<K, largest>, winners<K, largest>, columns<K, largest>, find<K, largest> }
#define LOCKSTEP_ROWS(largest)                                                                                     \
  LOCKSTEP_NARROW_ROW(n_f16, largest), LOCKSTEP_NARROW_ROW(n_bf16, largest), LOCKSTEP_WIDE_ROW(f32, largest),      \
      LOCKSTEP_WIDE_ROW(f64, largest), LOCKSTEP_WIDE_ROW(i32, largest), LOCKSTEP_WIDE_ROW(i64, largest),           \
      LOCKSTEP_NARROW_ROW(n_i8, largest), LOCKSTEP_NARROW_ROW(n_i16, largest), LOCKSTEP_NARROW_ROW(n_u8, largest), \
      LOCKSTEP_NARROW_ROW(n_u16, largest), LOCKSTEP_WIDE_ROW(u32, largest), LOCKSTEP_WIDE_ROW(u64, largest),       \
      LOCKSTEP_NARROW_ROW(n_bool, largest)
extern const all_extreme_kernels extremes_table;
const all_extreme_kernels extremes_table = {{LOCKSTEP_ROWS(true), LOCKSTEP_ROWS(false)}};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
