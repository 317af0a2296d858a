// stencil.cpp (isa) - rows and blocks of rows of a star stencil, nothing folded.
// Idea    a tap's coefficient is read once for all registers of results in flight;
//         a block of Z x Y rows loads a neighbour row once for all the rows it serves;
//         taps of the innermost axis slide out of neighbouring registers.
// Moves   per register of results in a 2 x 2 block of radius 4: 9 cache lines, 25 fma.
// Limit   rank 1: loads and shuffles in L2, memory beyond; stars: fma and loads in L2,
//         then memory.
// Watch   the order of taps within each result is fixed; registers at the ends of a
//         row must not read beyond the taps (masked loads).
// Source  order.hpp; Zen 5, g++ 12.
#include "../stencil_kernels.hpp"
#include "stencil_registers.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// ---- U registers of results ---------------------------------------------------
// Every tap's coefficient is read once for U registers of results, whose fma
// chains are independent. R = 0: the radius is a run-time number.
template <class T, class P, int U, int R>
[[gnu::always_inline]] inline void tap_block(const stencil_row<T>& a, int64_t i, bool stream) {
  P sum[U];
  const T* c = a.coefficients;
  const int outer = a.outer, r = R != 0 ? R : a.radius;
  const auto first = [&](const T* x) __attribute__((always_inline)) {
    const P weight = P::splat(*c++);
#pragma GCC unroll 16
    for (int u = 0; u < U; ++u) {
      const P tap = P::load(x + u * P::width);
      sum[u] = P::mul(weight, tap);
    }
  };
  const auto next = [&](const T* x) __attribute__((always_inline)) {
    const P weight = P::splat(*c++);
#pragma GCC unroll 16
    for (int u = 0; u < U; ++u) sum[u] = P::fma(weight, P::load(x + u * P::width), sum[u]);
  };
  const T* centre = a.centre + i - r;
  if (outer == 0) {
    first(centre);
  } else {
    first(a.rows[0] + i);
    for (int k = 1; k < outer; ++k) next(a.rows[k] + i);
    next(centre);
  }
#pragma GCC unroll 16
  for (int k = 1; k <= 2 * r; ++k) next(centre + k);
  for (int k = outer; k < 2 * outer; ++k) next(a.rows[k] + i);
#pragma GCC unroll 16
  for (int u = 0; u < U; ++u) {
    const P result = sum[u].canonical();
    if (stream)
      result.stream(a.dst + i + u * P::width);
    else
      result.store(a.dst + i + u * P::width);
  }
}

// c_k * (x[-k] + x[+k]): half the multiplications, other bits.
template <class T, class P, int U>
[[gnu::always_inline]] inline void folded_block(const stencil_row<T>& a, int64_t i, bool stream) {
  P sum[U];
  const int outer = a.outer, r = a.radius;
  const T* centre = a.centre + i;
  const P middle = P::splat(a.coefficients[outer + r]);
#pragma GCC unroll 16
  for (int u = 0; u < U; ++u) sum[u] = P::mul(middle, P::load(centre + u * P::width));
  const auto pair = [&](T c, const T* below, const T* above) __attribute__((always_inline)) {
    const P weight = P::splat(c);
#pragma GCC unroll 16
    for (int u = 0; u < U; ++u)
      sum[u] = P::fma(weight, P::add(P::load(below + u * P::width), P::load(above + u * P::width)), sum[u]);
  };
  for (int k = 1; k <= r; ++k) pair(a.coefficients[outer + r + k], centre - k, centre + k);
  for (int k = 0; k < outer; ++k) pair(a.coefficients[k], a.rows[k] + i, a.rows[2 * outer - 1 - k] + i);
#pragma GCC unroll 16
  for (int u = 0; u < U; ++u) {
    const P result = sum[u].canonical();
    if (stream)
      result.stream(a.dst + i + u * P::width);
    else
      result.store(a.dst + i + u * P::width);
  }
}

// ---- the inner taps of U registers ------------------------------------------------
// x[-R .. R] of each result. An unaligned load of a whole cache line takes both load ports, so most taps come from
// neighbouring registers by a shuffle, and one in taps_by_load from memory.
constexpr bool tap_by_load(int k, int radius) { return tuned.taps_by_load == 2 ? k % 2 != 0 : (k + radius) % 3 == 2; }
template <class T, class P, int R, int U, int K>
[[gnu::always_inline]] inline P inner_tap(const T* x, const P (&lines)[U + 2], int u) {
  if constexpr (K == 0)
    return lines[u + 1];
  else if constexpr (tap_by_load(K, R))
    return P::load(x + u * P::width + K);
  else if constexpr (K < 0)
    return P::template slide<(P::width + K) % P::width>(lines[u], lines[u + 1]);
  else
    return P::template slide<K % P::width>(lines[u + 1], lines[u + 2]);
}

template <class T, class P, int R, int U, int K, bool First>
[[gnu::always_inline]] inline void inner_taps(const T* x, const P (&lines)[U + 2], const T* c, P (&sum)[U]) {
  const P weight = P::splat(c[K + R]);
#pragma GCC unroll 16
  for (int u = 0; u < U; ++u) {
    P tap;
    if constexpr (P::slides && (K > -P::width && K < P::width))
      tap = inner_tap<T, P, R, U, K>(x, lines, u);
    else
      tap = P::load(x + u * P::width + K);
    if constexpr (First && K == -R)
      sum[u] = P::mul(weight, tap);
    else
      sum[u] = P::fma(weight, tap, sum[u]);
  }
  if constexpr (K < R) inner_taps<T, P, R, U, K + 1, First>(x, lines, c, sum);
}

// First: the sum is still empty.
template <class T, class P, int R, int U, bool First>
[[gnu::always_inline]] inline void inner(const T* x, const T* c, P (&sum)[U]) {
  P lines[U + 2];
  if constexpr (P::slides) {
#pragma GCC unroll 16
    for (int u = 0; u < U; ++u) lines[u + 1] = P::load(x + u * P::width);
    lines[0] = P::before(x, R);
    lines[U + 1] = P::after(x + U * P::width, R);
  }
  inner_taps<T, P, R, U, -R, First>(x, lines, c, sum);
}

// ---- a row ----------------------------------------------------------------------
// Only whole registers: the last one overlaps the one before it and writes the same bits
// again; so does the first if non-temporal stores need an aligned dst.
// block(i, U, stream)
template <class T, int U, class Wide, class One, class Element>
[[gnu::always_inline]] inline void cover(const stencil_row<T>& a, const Wide& wide, const One& one,
                                         const Element& element) {
  constexpr int64_t width = pack<T>::width;
  const int64_t n = a.n;
  if (n < width) {
    for (int64_t i = 0; i < n; ++i) element(i);
    return;
  }
  int64_t i = 0;
  const auto misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(a.dst) / sizeof(T) % width);
  if (a.stream && width > 1) {
    if (misaligned != 0) {
      one(0);
      i = width - misaligned;
    }
    for (; i + U * width <= n; i += U * width) wide(i, true);
  } else {
    for (; i + U * width <= n; i += U * width) wide(i, false);
  }
  for (; i + width <= n; i += width) one(i);
  if (i < n) one(n - width);
}

template <class T, class P, int U>
[[gnu::always_inline]] inline void finish(P (&sum)[U], T* dst, bool stream) {
  if constexpr (tuned.halves && U % 2 == 0) {
    bool any = false;
#pragma GCC unroll 16
    for (int u = 0; u < U; u += 2) any |= P::any_nan(sum[u], sum[u + 1]);
    if (!any) [[likely]] {
#pragma GCC unroll 16
      for (int u = 0; u < U; ++u) {
        if (stream)
          sum[u].stream(dst + u * P::width);
        else
          sum[u].store(dst + u * P::width);
      }
      return;
    }
  }
#pragma GCC unroll 16
  for (int u = 0; u < U; ++u) {
    const P result = sum[u].canonical();
    if (stream)
      result.stream(dst + u * P::width);
    else
      result.store(dst + u * P::width);
  }
}

// ---- rank 1 ------------------------------------------------------------------------
template <class T, int R>
void line_row(const stencil_row<T>& a) {
  constexpr int U = tuned.line_registers;
  cover<T, U>(
      a,
      [&](int64_t i, bool stream) __attribute__((always_inline)) {
        pack<T> sum[U];
        if (tuned.line_ahead > 0 && stream)
#pragma GCC unroll 8
          for (int u = 0; u < U; ++u)
            __builtin_prefetch(reinterpret_cast<const char*>(a.centre + i + u * pack<T>::width) + tuned.line_ahead);
        inner<T, pack<T>, R, U, true>(a.centre + i, a.coefficients, sum);
        finish<T, pack<T>, U>(sum, a.dst + i, stream);
      },
      [&](int64_t i) { tap_block<T, pack<T>, 1, 0>(a, i, false); },
      [&](int64_t i) { tap_block<T, single<T>, 1, 0>(a, i, false); });
}

// ---- rank 2 and 3: a block of Z x Y rows at once ---------------------------------------
template <class T, class P, int R, int Z, int Y, int U, bool Deep>
[[gnu::always_inline]] inline void block(const stencil_block<T>& a, int64_t i, bool stream) {
  constexpr int outer = Deep ? 2 * R : R;  // taps below the centre's row
  P sum[Z][Y][U];
  const T* c = a.coefficients;
  // The hardware's prefetchers stop at the end of each short row, so prefetch the next rows.
#pragma GCC unroll 16
  for (int k = 0; k < Z * Y; ++k)
#pragma GCC unroll 16
    for (int bytes = 0; bytes < U * P::width * static_cast<int>(sizeof(T)); bytes += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(a.ahead[k] + i) + bytes, 0, 3);
  const auto row_taps = [&](int z) __attribute__((always_inline)) {
#pragma GCC unroll 32
    for (int yp = 0; yp < Y + 2 * R; ++yp) {
      P x[U];
      const T* from = a.side[z][yp] + i;
#pragma GCC unroll 16
      for (int u = 0; u < U; ++u) x[u] = P::load(from + u * P::width);
#pragma GCC unroll 16
      for (int y = 0; y < Y; ++y) {
        const int k = yp - y;
        if (k < 0 || k > 2 * R) continue;
        if (k == R) {
          inner<T, P, R, U, false>(a.centre[z * Y + y] + i, c + outer, sum[z][y]);
          continue;
        }
        const P weight = P::splat(c[k < R ? (Deep ? R : 0) + k : outer + 2 * R + (k - R)]);
#pragma GCC unroll 16
        for (int u = 0; u < U; ++u)
          sum[z][y][u] = !Deep && k == 0 ? P::mul(weight, x[u]) : P::fma(weight, x[u], sum[z][y][u]);
      }
    }
  };
  if constexpr (!Deep) {
    row_taps(0);
  } else {
#pragma GCC unroll 32
    for (int zp = 0; zp < Z + 2 * R; ++zp) {
#pragma GCC unroll 16
      for (int y = 0; y < Y; ++y) {
        P x[U];
        const T* from = a.column[zp][y] + i;
#pragma GCC unroll 16
        for (int u = 0; u < U; ++u) x[u] = P::load(from + u * P::width);
#pragma GCC unroll 16
        for (int z = 0; z < Z; ++z) {
          const int k = zp - z;
          if (k < 0 || k > 2 * R || k == R) continue;
          const P weight = P::splat(c[k < R ? k : outer + 3 * R + (k - R)]);
#pragma GCC unroll 16
          for (int u = 0; u < U; ++u) sum[z][y][u] = k == 0 ? P::mul(weight, x[u]) : P::fma(weight, x[u], sum[z][y][u]);
        }
      }
      if (zp >= R && zp < R + Z) row_taps(zp - R);
    }
  }
#pragma GCC unroll 16
  for (int z = 0; z < Z; ++z)
#pragma GCC unroll 16
    for (int y = 0; y < Y; ++y) finish<T, P, U>(sum[z][y], a.dst[z * Y + y] + i, stream);
}

template <class T, int R, int Z, int Y, int U, bool Deep>
void block_rows(const stencil_block<T>& a) {
  using P = pack<T>;
  constexpr int64_t step = U * P::width;
  int64_t i = a.first;
  if (a.stream) {
    const auto misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(a.dst[0] + i) / sizeof(T) % P::width);
    if (misaligned != 0) {
      block<T, P, R, Z, Y, U, Deep>(a, i, false);
      i += P::width - misaligned;
    }
  }
  for (; i + step <= a.last; i += step) block<T, P, R, Z, Y, U, Deep>(a, i, a.stream);
  if (i < a.last) block<T, P, R, Z, Y, U, Deep>(a, a.last - step, false);
}

template <class T>
void rows(const stencil_row<T>& a) {
  cover<T, 8>(
      a, [&](int64_t i, bool stream) __attribute__((always_inline)) { tap_block<T, pack<T>, 8, 0>(a, i, stream); },
      [&](int64_t i) { tap_block<T, pack<T>, 1, 0>(a, i, false); },
      [&](int64_t i) { tap_block<T, single<T>, 1, 0>(a, i, false); });
}

#if defined(LOCKSTEP_ISA_AVX512)
template <class T>
void line(const stencil_row<T>& a) {
  switch (a.radius) {
    case 1: return line_row<T, 1>(a);
    case 2: return line_row<T, 2>(a);
    case 3: return line_row<T, 3>(a);
    case 4: return line_row<T, 4>(a);
    case 5: return line_row<T, 5>(a);
    case 6: return line_row<T, 6>(a);
    case 7: return line_row<T, 7>(a);
    default: return line_row<T, 8>(a);
  }
}
#else
template <class T>
constexpr stencil_kernel<T> line = nullptr;
#endif

template <class T>
void direct(const stencil_row<T>& a) {
  cover<T, 1>(
      a, [&](int64_t i, bool) { tap_block<T, pack<T>, 1, 0>(a, i, false); },
      [&](int64_t i) { tap_block<T, pack<T>, 1, 0>(a, i, false); },
      [&](int64_t i) { tap_block<T, single<T>, 1, 0>(a, i, false); });
}

template <class T>
void folded(const stencil_row<T>& a) {
  cover<T, 4>(
      a, [&](int64_t i, bool stream) __attribute__((always_inline)) { folded_block<T, pack<T>, 4>(a, i, stream); },
      [&](int64_t i) { folded_block<T, pack<T>, 1>(a, i, false); },
      [&](int64_t i) { folded_block<T, single<T>, 1>(a, i, false); });
}

// ---- many sweeps of a line whose parts are in the lanes --------------------------------
// Each register is a tap of 2R + 1 results, each of which has a partial sum. It is the last
// tap of the oldest result, which is then complete and is a tap for the next sweep.
#if !defined(LOCKSTEP_ISA_BASELINE)
template <class T, int R, int S>
void lane_sweeps(T* at, int64_t count, const T* c, bool canonical, const char* ahead, int64_t ahead_bytes) {
  using P = pack<T>;
  P weight[2 * R + 1], sum[S][2 * R] = {};
  for (int k = 0; k <= 2 * R; ++k) weight[k] = P::splat(c[k]);
  const auto step = [&](int64_t i) __attribute__((always_inline)) {
    P x = P::load(at + i * P::width);
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s) {
      const P result = P::fma(weight[2 * R], x, sum[s][2 * R - 1]);
#pragma GCC unroll 8
      for (int k = 2 * R - 1; k > 0; --k) sum[s][k] = P::fma(weight[k], x, sum[s][k - 1]);
      sum[s][0] = P::mul(weight[0], x);
      x = result;
    }
    return x;
  };
  int64_t i = -S * R;
  for (; i < S * R; ++i) (void)step(i);
  const auto put = [&](P x, int64_t to) __attribute__((always_inline)) {
    if (canonical) x = x.canonical();
    x.store(at + to * P::width);
    __builtin_prefetch(ahead + to * ahead_bytes, 0, 2);
  };
  // After every 2R steps each partial sum is again in the register where it started.
  for (; i + 2 * R <= count + S * R; i += 2 * R)
#pragma GCC unroll 8
    for (int k = 0; k < 2 * R; ++k) put(step(i + k), i + k - S * R);
  for (; i < count + S * R; ++i) put(step(i), i - S * R);
}

template <class T, int R, int S>
void lane_sweeps_of(T* at, int64_t count, int sweeps, const T* c, bool canonical, const char* ahead,
                    int64_t ahead_bytes) {
  if (sweeps == S) return lane_sweeps<T, R, S>(at, count, c, canonical, ahead, ahead_bytes);
  if constexpr (S > 1) lane_sweeps_of<T, R, S - 1>(at, count, sweeps, c, canonical, ahead, ahead_bytes);
}
#endif

}  // namespace

#if defined(LOCKSTEP_ISA_BASELINE)
#define BLOCKS(T) \
  {}, {}, {}
#else
constexpr int star_z = tuned.star_z, star_y = tuned.star_y, star_u = tuned.star_u, plane_y = tuned.plane_y,
              plane_u = tuned.plane_u;
constexpr const int (&lane_most)[4] = tuned.lane_sweeps;
// Pieces of a row, ends and middle, are at least half a piece long (over_pieces).
static_assert(star_u * pack<float>::width <= stencil_piece / 2 && plane_u * pack<float>::width <= stencil_piece / 2);
#define BLOCKS(T)                                                                                                 \
  {star_z,                                                                                                        \
   star_y,                                                                                                        \
   star_u * pack<T>::width,                                                                                       \
   {block_rows<T, 1, star_z, star_y, star_u, true>, block_rows<T, 2, star_z, star_y, star_u, true>,               \
    block_rows<T, 3, star_z, star_y, star_u, true>, block_rows<T, 4, star_z, star_y, star_u, true>}},             \
      {1,                                                                                                         \
       plane_y,                                                                                                   \
       plane_u * pack<T>::width,                                                                                  \
       {block_rows<T, 1, 1, plane_y, plane_u, false>, block_rows<T, 2, 1, plane_y, plane_u, false>,               \
        block_rows<T, 3, 1, plane_y, plane_u, false>, block_rows<T, 4, 1, plane_y, plane_u, false>}},             \
  {                                                                                                               \
    pack<T>::width, {lane_most[0], lane_most[1], lane_most[2], lane_most[3]}, {                                   \
      lane_sweeps_of<T, 1, lane_most[0]>, lane_sweeps_of<T, 2, lane_most[1]>, lane_sweeps_of<T, 3, lane_most[2]>, \
          lane_sweeps_of<T, 4, lane_most[3]>                                                                      \
    }                                                                                                             \
  }
#endif

extern const stencil_kernels stencil_kernels_of_table;
const stencil_kernels stencil_kernels_of_table = {
    {rows<float>, direct<float>, folded<float>, line<float>, BLOCKS(float)},
    {rows<double>, direct<double>, folded<double>, line<double>, BLOCKS(double)}};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
