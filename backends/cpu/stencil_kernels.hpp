// stencil_kernels.hpp - the micro-kernels of stencil, for each level.
#pragma once

#include "isa.hpp"

namespace lockstep::cpu {

// One row of results: n neighbours along the innermost axis. The taps on the
// other axes are whole rows, already folded: rows[k][i] is the k-th tap of
// result i, first the outer ones below the centre, then the outer ones above.
// The taps of the innermost axis are centre[i - radius .. i + radius], all in
// memory. coefficients are in the order of the taps.
template <class T>
struct stencil_row {
  const T* const* rows;
  const T* centre;
  const T* coefficients;
  T* dst;
  int64_t n;
  int outer;  // rows below the centre, and as many above: radius * (rank - 1)
  int radius;
  bool stream;  // non-temporal stores
};

// A block of deep x high rows of results (deep = 1 in rank 2), first <= x < last;
// the kernel fixes the radius. Every pointer is that of x = 0.
template <class T>
struct stencil_block {
  static constexpr int most = 4;              // deep and high
  static constexpr int reach = most + 2 * 4;  // with the taps on both sides
  const T* column[reach][most];               // [plane + radius][y]: rows for the taps of axis 0
  const T* side[most][reach];                 // [z][row + radius]: rows for the taps of axis 1
  const T* centre[most * most];               // [z * high + y]: rows for the taps of the innermost axis
  const T* ahead[most * most];                // rows that the next block is the first to need
  T* dst[most * most];                        // [z * high + y]
  const T* coefficients;
  int64_t first, last;
  bool stream;
};

template <class T>
struct stencil_block_kernels {
  int deep, high;
  int64_t least;                             // the shortest row for which blocks work
  void (*rows[4])(const stencil_block<T>&);  // by radius - 1
};

template <class T>
using stencil_kernel = void (*)(const stencil_row<T>&);

// Many sweeps of a line that is divided into `lanes` equal parts, one in each lane: the
// neighbour of an element is then in the same lane of the next register. NULL: this level
// has none.
template <class T>
struct stencil_lanes {
  int lanes;
  int most[4];  // sweeps at a time, by radius - 1: as many as the registers hold
  // registers: `count` of the line, and sweeps * radius more on each side; results replace
  // them. canonical: NaNs become the canonical one, as the last sweep must do. ahead:
  // memory that is prefetched into L2 meanwhile, with a number of bytes for each register.
  void (*sweep[4])(T* registers, int64_t count, int sweeps, const T* coefficients, bool canonical, const char* ahead,
                   int64_t ahead_bytes);
};

template <class T>
struct stencil_kernels_for {
  stencil_kernel<T> rows, direct, folded;
  stencil_kernel<T> line;                // rank 1; NULL: this level has none
  stencil_block_kernels<T> star, plane;  // rank 3 and 2
  stencil_lanes<T> lanes;                // rank 1
};

struct stencil_kernels {
  stencil_kernels_for<float> f32;
  stencil_kernels_for<double> f64;
};

}  // namespace lockstep::cpu

LOCKSTEP_HALVES_TABLES(lockstep::cpu::stencil_kernels, stencil_kernels_of)
