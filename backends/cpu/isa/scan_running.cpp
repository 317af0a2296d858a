// scan_running.cpp - scans whose next value is made of the one before: minima, maxima, and sums of integers in 64 bits.
// Idea    a vector's running values by doubling: moved by 1, 2, 4 ... lanes and combined; then combined with what
//         stands before the vector, which is the only chain. Floats run as keys, integers that grow with them.
// Moves   elements and results once
// Limit   the moves of lanes in L2; the copy limit in DRAM
// Watch   in place a result may stand where a later element is: shifted leaves are copied first (../scan.cpp)
// Source  lockstep.h
#include "../scan_kernels.hpp"
#include "bits/order.hpp"
#include "vectors.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

constexpr int register_bytes = W * 8;

template <int... i>
struct lane_list {};
template <int n, int... i>
struct lanes_to : lanes_to<n - 1, n - 1, i...> {};
template <int... i>
struct lanes_to<0, i...> {
  typedef lane_list<i...> type;
};

// A register of numbers. Each kind below also has its elements and results as they lie in memory (in, out), and
// of(in), to(out), combine(a, b), nothing.
template <class T>
struct numbers_of {
  typedef T number;
  static constexpr int lanes = register_bytes / static_cast<int>(sizeof(T));
  typedef T vector __attribute__((vector_size(register_bytes)));
  static constexpr T most = static_cast<T>((uint64_t{1} << (8 * sizeof(T) - 1)) - 1), least = static_cast<T>(~most);
  static T narrowed(int64_t x) { return static_cast<T>(x < least ? least : x > most ? most : x); }
};

// The integer elements themselves.
template <class T, bool largest>
struct integer_extreme : numbers_of<T> {
  typedef T element;
  typedef T result;
  typedef typename numbers_of<T>::vector vector;
  typedef vector in;
  typedef vector out;
  static constexpr T nothing = largest ? numbers_of<T>::least : numbers_of<T>::most;
  static vector of(in x) { return x; }
  static out to(vector x) { return x; }
  static vector combine(vector a, vector b) { return largest ? (a > b ? a : b) : (a < b ? a : b); }
};

// Keys of floats, whose bits T holds; a NaN is the best of all.
template <class T, T infinity, T nan, bool largest>
struct float_extreme : integer_extreme<T, largest> {
  typedef numbers_of<T> numbers;
  typedef typename numbers::vector vector;
  static constexpr T nothing = largest ? static_cast<T>(~infinity) : infinity;
  static constexpr T of_nan = largest ? numbers::most : numbers::least;
  static vector turned(vector x) { return x ^ ((x >> (8 * static_cast<int>(sizeof(T)) - 1)) & numbers::most); }
  static vector of(vector x) { return (x & numbers::most) > infinity ? vector{} + of_nan : turned(x); }
  static vector to(vector key) { return key == of_nan ? vector{} + nan : turned(key); }
};

template <class T>
struct integer_sum : numbers_of<int64_t> {
  typedef T element;
  typedef int64_t result;
  typedef T in __attribute__((vector_size(lanes * static_cast<int>(sizeof(T)))));
  typedef vector out;
  static constexpr int64_t nothing = 0;
  static vector of(in x) { return __builtin_convertvector(x, vector); }
  static out to(vector x) { return x; }
  static vector combine(vector a, vector b) { return a + b; }
};

// The first m of a register's elements, zeros where there are fewer; and of results.
template <class V, class T>
inline V load_first(const T* p, int64_t m) {
  constexpr int lanes = static_cast<int>(sizeof(V) / sizeof(T));
  V x;
  if (m >= lanes) {
    memcpy(&x, p, sizeof x);
    return x;
  }
#if defined(LOCKSTEP_ISA_AVX512)
  const uint32_t first = (uint32_t{1} << m) - 1;
  if constexpr (sizeof(V) == 32)
    return reinterpret_cast<V>(_mm256_maskz_loadu_epi32(static_cast<__mmask8>(first), p));
  else if constexpr (sizeof(T) == 2)
    return reinterpret_cast<V>(_mm512_maskz_loadu_epi16(first, p));
  else if constexpr (sizeof(T) == 4)
    return reinterpret_cast<V>(_mm512_maskz_loadu_epi32(static_cast<__mmask16>(first), p));
  else
    return reinterpret_cast<V>(_mm512_maskz_loadu_epi64(static_cast<__mmask8>(first), p));
#else
  T some[lanes] = {};
  for (int64_t k = 0; k < m; ++k) some[k] = p[k];
  memcpy(&x, some, sizeof x);
  return x;
#endif
}
template <class V, class T>
inline void store_first(T* to, V x, int64_t m) {
  constexpr int lanes = static_cast<int>(sizeof(V) / sizeof(T));
  if (m >= lanes) {
    memcpy(to, &x, sizeof x);
    return;
  }
#if defined(LOCKSTEP_ISA_AVX512)
  const uint32_t first = (uint32_t{1} << m) - 1;
  const auto bits = reinterpret_cast<__m512i>(x);
  if constexpr (sizeof(T) == 2)
    _mm512_mask_storeu_epi16(to, first, bits);
  else if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(first), bits);
  else
    _mm512_mask_storeu_epi64(to, static_cast<__mmask8>(first), bits);
#else
  T some[lanes];
  memcpy(some, &x, sizeof x);
  for (int64_t k = 0; k < m; ++k) to[k] = some[k];
#endif
}
template <class K>
inline typename K::vector load_few(const typename K::element* p, int64_t m) {
  return K::of(load_first<typename K::in>(p, m));
}
template <class K>
inline void store_few(typename K::result* to, typename K::vector x, int64_t m) {
  store_first(to, K::to(x), m);
}

template <int by, class V, int... i>
inline V moved(V before, V x, lane_list<i...>) {
  constexpr int lanes = sizeof...(i);
  return __builtin_shufflevector(before, x, (i < by ? i : lanes + i - by)...);
}
template <class K, int by = 1>
inline typename K::vector doubled(typename K::vector x) {
  if constexpr (by >= K::lanes) {
    return x;
  } else {
    const typename K::vector none = typename K::vector{} + K::nothing;
    return doubled<K, 2 * by>(K::combine(x, moved<by>(none, x, typename lanes_to<K::lanes>::type{})));
  }
}

template <class K>
int64_t of_leaf(const void* src, int64_t n) {
  const auto* p = static_cast<const typename K::element*>(src);
  typename K::vector best = typename K::vector{} + K::nothing;
  int64_t i = 0;
  for (; i + K::lanes <= n; i += K::lanes) best = K::combine(best, load_few<K>(p + i, K::lanes));
  typename K::vector all = doubled<K>(best);
  if (i < n) {
    const typename K::vector few = doubled<K>(load_few<K>(p + i, n - i));
    const typename K::vector last = typename K::vector{} + few[n - i - 1];
    all = K::combine(all, last);
  }
  return all[K::lanes - 1];
}

template <class K>
int64_t scan(const scanned_leaf& leaf, int64_t before) {
  typedef typename K::vector vector;
  vector behind{};  // of the vector before, in every lane
  for (int64_t s = 0; s < leaf.count; ++s) {
    const auto* p = static_cast<const typename K::element*>(leaf.src) + s * leaf.src_stride;
    auto* to = static_cast<typename K::result*>(leaf.dst) + s * leaf.dst_stride + leaf.shifted;
    behind = vector{} + K::narrowed(before);
    int64_t i = 0;
    for (; i + K::lanes <= leaf.n - leaf.shifted; i += K::lanes) {
      const vector own = doubled<K>(load_few<K>(p + i, K::lanes));
      store_few<K>(to + i, K::combine(behind, own), K::lanes);
      behind = K::combine(behind, vector{} + own[K::lanes - 1]);  // not through what was stored: a shorter chain
    }
    if (const int64_t m = leaf.n - i; m > 0) {
      const vector x = K::combine(behind, doubled<K>(load_few<K>(p + i, m)));
      store_few<K>(to + i, x, m - leaf.shifted);
      behind = vector{} + x[m - 1];
    }
  }
  return behind[0];
}

// A few rows of all columns, then the next ones: memory is read and written in its own order.
template <class K>
void columns(const scanned_columns& c, int64_t* state) {
  typedef typename K::vector vector;
  const int64_t rows = c.count <= 4 * K::lanes ? 32 : 4;
  typename K::number best[running_most_columns + K::lanes];
  for (int64_t k = 0; k < c.count; ++k) best[k] = K::narrowed(state[k]);
  for (int64_t first = 0; first < c.n; first += rows) {
    const int64_t some = c.n - first < rows ? c.n - first : rows;
    for (int64_t v = 0; v < c.count; v += K::lanes) {
      const int64_t m = c.count - v;
      const auto* p = static_cast<const typename K::element*>(c.src) + first * c.stride + v;
      auto* to = static_cast<typename K::result*>(c.dst) + first * c.dst_stride + v;
      vector x;
      memcpy(&x, best + v, sizeof x);
      for (int64_t i = 0; i < some; ++i, p += c.stride, to += c.dst_stride) {
        const vector before = x;
        x = K::combine(x, load_few<K>(p, m));
        store_few<K>(to, c.shifted ? before : x, m);
      }
      memcpy(best + v, &x, sizeof x);
    }
  }
  for (int64_t k = 0; k < c.count; ++k) state[k] = best[k];
}

template <class K>
void put(void* dst, int64_t number) {
  store_few<K>(static_cast<typename K::result*>(dst), typename K::vector{} + K::narrowed(number), 1);
}

template <class K>
constexpr running_kernels kernels_of = {K::nothing, of_leaf<K>, scan<K>, columns<K>, put<K>};

template <bool largest>
using f16 = float_extreme<int16_t, 0x7C00, 0x7E00, largest>;
template <bool largest>
using bf16 = float_extreme<int16_t, 0x7F80, 0x7FC0, largest>;
template <bool largest>
using f32 = float_extreme<int32_t, 0x7F800000, 0x7FC00000, largest>;
template <bool largest>
using f64 = float_extreme<int64_t, 0x7FF0000000000000, 0x7FF8000000000000, largest>;
}  // namespace

extern const running_scan_kernels running_scanners_table;
const running_scan_kernels running_scanners_table = {
    {{kernels_of<f16<false>>, kernels_of<f16<true>>},
     {kernels_of<bf16<false>>, kernels_of<bf16<true>>},
     {kernels_of<f32<false>>, kernels_of<f32<true>>},
     {kernels_of<f64<false>>, kernels_of<f64<true>>},
     {kernels_of<integer_extreme<int32_t, false>>, kernels_of<integer_extreme<int32_t, true>>},
     {kernels_of<integer_extreme<int64_t, false>>, kernels_of<integer_extreme<int64_t, true>>}},
    {kernels_of<integer_sum<int32_t>>, kernels_of<integer_sum<int64_t>>}};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
