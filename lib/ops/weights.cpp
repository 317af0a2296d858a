// weights.cpp - what the ops tell the cost model of a call besides its bytes.
#include <algorithm>

#include "../bits/reductions.hpp"
#include "ops.hpp"

namespace lockstep::lib {
namespace {

// Shorter rows do not fill a vector or a sector.
constexpr int64_t narrow_row = 8;
// Joining the lanes of a shorter sequence costs more than its elements.
constexpr double short_sequence = 256;

// A transpose with a side shorter than this streams through memory in place of working in tiles. Few rows (flat) and
// few columns (thin) have times of their own, because they differ by up to a factor of 3.
constexpr int64_t thin_side = 128;

// ld: dst's leading dimension.
cost::work turned(int64_t rows, int64_t cols, int64_t ld, size_t element_bytes) {
  const int64_t least = std::min(rows, cols);
  if (least < thin_side)
    return cost::of_elements(least < narrow_row ? cost::narrow : rows < cols ? cost::flat : cost::thin, element_bytes);
  constexpr size_t line_bytes = 64;
  return static_cast<size_t>(ld) * element_bytes % line_bytes != 0 ? cost::ragged
                                                                   : cost::of_elements(cost::transpose, element_bytes);
}

// Axes of one element are dropped, axes that stay adjacent are merged, and outermost axes
// that stay outermost are a batch.
cost::work work_of(const lockstep_permute_desc& d) {
  int rank = 0, last = -2;
  int64_t extent[LOCKSTEP_MAX_RANK];
  int from[LOCKSTEP_MAX_RANK];  // src axis of each
  const auto next_long = [&](int axis) {
    do ++axis;
    while (axis < d.rank && d.shape[axis] == 1);
    return axis;
  };
  int innermost = -1;  // src's
  for (int k = 0; k < d.rank; ++k) {
    const int axis = d.perm[k];
    if (d.shape[axis] == 1) continue;
    innermost = std::max(innermost, axis);
    if (last >= 0 && next_long(last) == axis) {
      extent[rank - 1] *= d.shape[axis];
    } else {
      from[rank] = axis;
      extent[rank++] = d.shape[axis];
    }
    last = axis;
  }
  const auto of_elements = [&](cost::work of_four) { return cost::of_elements(of_four, d.element_bytes); };
  if (rank <= 1 || last == innermost)
    return rank <= 1 || extent[rank - 1] >= narrow_row ? cost::rows : of_elements(cost::narrow);
  const bool batch = from[0] == next_long(-1);
  if (rank - (batch ? 1 : 0) == 2) return turned(extent[rank - 1], extent[rank - 2], extent[rank - 1], d.element_bytes);
  const auto src_row = extent[std::max_element(from, from + rank) - from];
  return of_elements(std::min(src_row, extent[rank - 1]) < narrow_row ? cost::narrow : cost::permute);
}

}  // namespace

void weigh_transpose(const prepared_call& prepared, cost::call& seen) {
  const lockstep_transpose_desc& d = prepared.call.transpose;
  seen.what = prepared.call.src != prepared.call.dst ? turned(d.rows, d.cols, d.dst_ld, d.element_bytes)
              : d.rows == d.cols                     ? cost::of_elements(cost::swap, d.element_bytes)
                                                     : cost::in_place;
}

void weigh_permute(const prepared_call& prepared, cost::call& seen) { seen.what = work_of(prepared.call.permute); }

void weigh_reduce(const prepared_call& prepared, cost::call& seen) {
  const lockstep_reduce_desc& d = prepared.call.reduce;
  const reduction_kind& kind = kind_of(d.reduction);
  const double elements = seen.bytes / static_cast<double>(prepared.element_bytes);
  if (d.element_stride > 1)
    seen.what = cost::columns;
  else if (elements < short_sequence * static_cast<double>(d.count))
    seen.what = d.offsets != nullptr ? cost::segments : cost::short_rows;
  else
    seen.what = kind.of == term::square ? cost::square_sum : kind.to == finish::index ? cost::arg_reduce : cost::reduce;
}

void weigh_stencil(const prepared_call& prepared, cost::call& seen) {
  const lockstep_stencil_desc& d = prepared.call.stencil;
  seen.what = d.rank == 1 ? cost::line_stencil : cost::star_stencil;
  seen.sweeps = d.sweeps;
  seen.taps = static_cast<double>(prepared.coefficients.size());
  // backends/cuda/stencil: sweeps_registers and sweeps_streamed.
  seen.together = d.radius <= (d.rank == 1 ? 4 : d.rank == 2 ? 2 : 0);
}

void weigh_shuffle(const prepared_call&, cost::call& seen) { seen.what = cost::shuffle; }

}  // namespace lockstep::lib
