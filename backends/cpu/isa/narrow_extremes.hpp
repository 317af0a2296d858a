// narrow_extremes.hpp - the largest or smallest of elements of 1 and 2 bytes, and where it first occurs.
// Idea    elements become signed keys of their size that grow with them (a NaN's key is beyond all others), so that one
//         comparison for each register serves all types. The index is searched for afterwards, while the chunk is still
//         in L1. Columns of 1 byte use keys of 2, which also hold the index of a row of the chunk.
// Moves   every element read once (twice in L1 for an index)
// Limit   1 to 8 operations for each register; DRAM: the read limit
// Watch   a NaN of either sign is the minimum and the maximum
#pragma once

#include "../reduce_kernels.hpp"
#include "extreme_kinds.hpp"
#include "vectors.hpp"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// Element: how an element is stored. value: the integer for a key; for floats the key itself.
template <class Element, class Key, int Shift>
struct narrow_integer {
  typedef Element element;
  typedef Key key;
  static constexpr bool floats = false;
  template <bool Largest, class V>
  static V keys(V x) {
    return x ^ static_cast<Key>(Shift);
  }
  static int64_t value(int64_t k) { return k - Shift; }
};
typedef narrow_integer<int8_t, int8_t, 0> n_i8;
typedef narrow_integer<uint8_t, int8_t, -128> n_u8;
typedef narrow_integer<int16_t, int16_t, 0> n_i16;
typedef narrow_integer<uint16_t, int16_t, -32768> n_u16;
struct n_bool : n_i8 {
  typedef uint8_t element;
  template <bool Largest, class V>
  static V keys(V x) {
    return V{} - (x != 0);
  }
};
template <int Infinity>
struct narrow_float {
  typedef uint16_t element;
  typedef int16_t key;
  static constexpr bool floats = true;
  static constexpr uint16_t quiet = Infinity | (Infinity & -Infinity) >> 1;
  template <bool Largest, class V>
  static V keys(V x) {
    const V number = x ^ ((x < 0) & int16_t{0x7FFF});
    const V beyond = V{} + static_cast<key>(Largest ? 0x7FFF : -0x8000);
    const V nan = (x & int16_t{0x7FFF}) > static_cast<key>(Infinity);
    return nan ? beyond : number;
  }
  static int64_t value(int64_t k) { return k; }
};
typedef narrow_float<0x7C00> n_f16;
typedef narrow_float<0x7F80> n_bf16;

template <class T, int Bytes>
struct lanes_of {
  typedef T vector __attribute__((vector_size(Bytes)));
};
template <class T, int Bytes>
using lanes_t = typename lanes_of<T, Bytes>::vector;

template <class K>
using narrow_keys = lanes_t<typename K::key, bytes>;
template <class K>
constexpr int narrow_width = bytes / static_cast<int>(sizeof(typename K::element));

template <class K, bool Largest>
constexpr typename K::key worst_key() {
  constexpr int bits = sizeof(typename K::key) * 8;
  return static_cast<typename K::key>(Largest ? -(1 << (bits - 1)) : (1 << (bits - 1)) - 1);
}
template <bool Largest, class V>
inline V winner_of(V a, V b) {
  return Largest ? greater(a, b) : lesser(a, b);
}

template <class K, bool Largest>
inline narrow_keys<K> load_keys(const void* p) {
  narrow_keys<K> x;
  memcpy(&x, p, sizeof x);
  return K::template keys<Largest>(x);
}
// The last n % width elements, or the last register; a short row's first element fills it up.
template <class K, bool Largest>
inline narrow_keys<K> last_keys(const typename K::element* p, int64_t n) {
  constexpr int width = narrow_width<K>;
  if (n >= width) return load_keys<K, Largest>(p + n - width);
  typename K::element part[width];
  for (auto& e : part) e = p[0];
  memcpy(part, p, static_cast<size_t>(n) * sizeof(*p));
  return load_keys<K, Largest>(part);
}

template <bool Largest, class T, int Bytes>
inline T across_lanes(lanes_t<T, Bytes> v) {
  if constexpr (Bytes > 8) {
    lanes_t<T, Bytes / 2> a, b;
    memcpy(&a, &v, Bytes / 2);
    memcpy(&b, reinterpret_cast<const char*>(&v) + Bytes / 2, Bytes / 2);
    return across_lanes<Largest, T, Bytes / 2>(winner_of<Largest>(a, b));
  } else {
    T best = v[0];
    for (size_t i = 1; i < Bytes / sizeof(T); ++i) best = winner_of<Largest>(best, v[i]);
    return best;
  }
}

template <class K, bool Largest>
inline typename K::key narrow_winner(const typename K::element* p, int64_t n) {
  constexpr int width = narrow_width<K>;
  typedef narrow_keys<K> V;
  V best[2] = {V{} + worst_key<K, Largest>(), V{} + worst_key<K, Largest>()};
  const auto take = [&](int k, V x) { best[k] = winner_of<Largest>(best[k], x); };
  int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    for (int b = 0; b < 4 * bytes; b += 64) fetch(reinterpret_cast<const char*>(p + i) + tuned.read_ahead + b);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) take(k & 1, load_keys<K, Largest>(p + i + k * width));
  }
  for (; i + width <= n; i += width) take(0, load_keys<K, Largest>(p + i));
  if (i < n) take(1, last_keys<K, Largest>(p, n));
  return across_lanes<Largest, typename K::key, bytes>(winner_of<Largest>(best[0], best[1]));
}

// One bit a byte of the lanes that are all ones.
template <class V>
inline uint64_t byte_bits(V mask) {
#if defined(LOCKSTEP_ISA_AVX512)
  return _mm512_movepi8_mask(reinterpret_cast<__m512i>(mask));
#elif defined(LOCKSTEP_ISA_AVX2)
  return static_cast<uint32_t>(_mm256_movemask_epi8(reinterpret_cast<__m256i>(mask)));
#elif defined(__SSE2__)
  return static_cast<uint32_t>(_mm_movemask_epi8(reinterpret_cast<__m128i>(mask)));
#else
  unsigned char byte[sizeof mask];
  memcpy(byte, &mask, sizeof mask);
  uint64_t bits = 0;
  for (size_t i = 0; i < sizeof mask; ++i) bits |= static_cast<uint64_t>(byte[i] >> 7) << i;
  return bits;
#endif
}

// The first element with this key; there is one.
template <class K, bool Largest>
inline int64_t first_of_key(const typename K::element* p, int64_t n, typename K::key key) {
  constexpr int width = narrow_width<K>, size = sizeof(*p);
  const auto found = [&](narrow_keys<K> x) { return byte_bits(x == (narrow_keys<K>{} + key)); };
  int64_t i = 0;
  for (; i + width <= n; i += width)
    if (const uint64_t bits = found(load_keys<K, Largest>(p + i)); bits != 0) return i + __builtin_ctzll(bits) / size;
  const int64_t first = n >= width ? n - width : 0;
  return first + __builtin_ctzll(found(last_keys<K, Largest>(p, n))) / size;
}

template <class K, bool Largest>
inline int64_t wide_key(int64_t key) {
  if (K::floats && key == worst_key<K, !Largest>()) return Largest ? INT64_MAX : INT64_MIN;
  return K::value(key);
}

// The element of a key, a NaN as the canonical one.
template <class K, bool Largest>
inline typename K::element element_of(typename K::key key) {
  if constexpr (K::floats)
    return key == worst_key<K, !Largest>() ? K::quiet : static_cast<uint16_t>(key ^ (key < 0 ? 0x7FFF : 0));
  else
    return static_cast<typename K::element>(K::value(key));
}

template <class K, bool Largest>
void narrow_rows(const packed_rows& r, int64_t count, bool index, extreme* out) {
  const auto* src = static_cast<const typename K::element*>(r.src);
  for (int64_t s = 0; s < count; ++s) {
    const auto* p = src + (r.offsets != nullptr ? r.offsets[s] : s * r.stride);
    const int64_t n = r.offsets != nullptr ? r.offsets[s + 1] - r.offsets[s] : r.n;
    if (n == 0) continue;
    const typename K::key key = narrow_winner<K, Largest>(p, n);
    out[s] = {wide_key<K, Largest>(key), index ? first_of_key<K, Largest>(p, n, key) : 0};
  }
}
template <class K, bool Largest>
void narrow_two(const void* a, const void* b, int64_t count, extreme* out_a, extreme* out_b) {
  narrow_rows<K, Largest>({a, exact_chunk, exact_chunk, nullptr}, count, false, out_a);
  narrow_rows<K, Largest>({b, exact_chunk, exact_chunk, nullptr}, count, false, out_b);
}
template <class K, bool Largest>
void narrow_winners(const packed_rows& r, int64_t count, bool index, void* out) {
  const auto* src = static_cast<const typename K::element*>(r.src);
  for (int64_t s = 0; s < count; ++s) {
    const auto* p = src + s * r.stride;
    const typename K::key key = narrow_winner<K, Largest>(p, r.n);
    if (index) {
      static_cast<int64_t*>(out)[s] = first_of_key<K, Largest>(p, r.n, key);
      continue;
    }
    static_cast<typename K::element*>(out)[s] = element_of<K, Largest>(key);
  }
}

// ---- columns: key and index of each column in L1, eight rows at a time -----------
typedef lanes_t<int16_t, bytes> column_keys;
constexpr int column_lanes = bytes / 2;

// Elements of 1 byte become their values, of 2 their keys.
template <class K, bool Largest>
inline column_keys load_column_keys(const typename K::element* p) {
  if constexpr (sizeof(*p) == 2) {
    return load_keys<K, Largest>(p);
  } else {
    lanes_t<typename K::element, bytes / 2> x;
    memcpy(&x, p, sizeof x);
    const column_keys values = __builtin_convertvector(x, column_keys);
    return __is_same(K, n_bool) ? column_keys{} - (values != 0) : values;
  }
}
template <class K, bool Largest, bool Index>
void narrow_extremes_of_columns(const typename K::element* p, int64_t n, int64_t ld, int64_t width, extreme* out,
                                void* winners) {
  typedef column_keys V;
  constexpr int together = 8;
  constexpr auto worst = static_cast<int16_t>(Largest ? -0x8000 : 0x7FFF);
  static_assert(exact_chunk <= 0x7FFF && column_block % column_lanes == 0);
  V best[column_block / column_lanes], where[column_block / column_lanes];
  for (auto& v : best) v = V{} + worst;
  for (auto& v : where) v = V{};
  for (int64_t r = 0; r < n; r += together) {
    const int64_t last = n - r < together ? n : r + together;
    for (int64_t c = 0; c < width; c += column_lanes) {
      V b = best[c / column_lanes], w = where[c / column_lanes];
      const auto* q = p + r * ld + c;
      for (int64_t i = r; i < last; ++i, q += ld) {
        V k;
        if (width - c >= column_lanes) {
          __builtin_prefetch(q + together * ld);
          k = load_column_keys<K, Largest>(q);
        } else {
          typename K::element part[column_lanes] = {};
          memcpy(part, q, static_cast<size_t>(width - c) * sizeof(*q));
          k = load_column_keys<K, Largest>(part);
        }
        if constexpr (Index) {
          const V wins = Largest ? k > b : k < b;
          w = wins ? V{} + static_cast<int16_t>(i) : w;
        }
        b = winner_of<Largest>(b, k);
      }
      best[c / column_lanes] = b;
      where[c / column_lanes] = w;
    }
  }
  int16_t key[column_block], row[column_block];
  memcpy(key, best, sizeof key);
  memcpy(row, where, sizeof row);
  if (Index && winners != nullptr) {
    for (int64_t c = 0; c < width; ++c) static_cast<int64_t*>(winners)[c] = row[c];
  } else if (winners != nullptr) {
    for (int64_t c = 0; c < width; ++c)
      static_cast<typename K::element*>(winners)[c] =
          sizeof(*p) == 1 ? static_cast<typename K::element>(key[c]) : element_of<K, Largest>(key[c]);
  } else {
    for (int64_t c = 0; c < width; ++c) out[c] = {sizeof(*p) == 1 ? key[c] : wide_key<K, Largest>(key[c]), row[c]};
  }
}
template <class K, bool Largest>
void narrow_columns(const void* src, int64_t n, int64_t ld, int64_t width, bool index, extreme* out, void* winners) {
  const auto* p = static_cast<const typename K::element*>(src);
  if (index) return narrow_extremes_of_columns<K, Largest, true>(p, n, ld, width, out, winners);
  narrow_extremes_of_columns<K, Largest, false>(p, n, ld, width, out, winners);
}

#define LOCKSTEP_NARROW_ROW(K, largest)                                                                      \
  {                                                                                                          \
    narrow_rows<K, largest>, narrow_two<K, largest>, narrow_winners<K, largest>, narrow_columns<K, largest>, \
        find_by_rows<narrow_rows<K, largest>>                                                                \
  }

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
