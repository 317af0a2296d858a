// estimate.cpp - see estimate.hpp.
#include "estimate.hpp"

#include <algorithm>

#include "reductions.hpp"

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

cost::work work_of(const lockstep_transpose_desc& d, bool same_memory) {
  if (same_memory) return d.rows == d.cols ? cost::of_elements(cost::swap, d.element_bytes) : cost::in_place;
  return turned(d.rows, d.cols, d.dst_ld, d.element_bytes);
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

cost::work work_of(const lockstep_reduce_desc& d, double elements) {
  if (d.element_stride > 1) return cost::columns;
  if (elements < short_sequence * static_cast<double>(d.count))
    return d.offsets != nullptr ? cost::segments : cost::short_rows;
  const reduction_kind& kind = kind_of(d.reduction);
  if (kind.of == term::square) return cost::square_sum;
  return kind.to == finish::index ? cost::arg_reduce : cost::reduce;
}

}  // namespace

cost::call cost_call(const prepared_call& prepared) {
  const lockstep_call& call = prepared.call;
  cost::call seen;
  seen.bytes = static_cast<double>(prepared.moved_bytes);
  switch (call.op) {
    case LOCKSTEP_TRANSPOSE: seen.what = work_of(call.transpose, call.src == call.dst); break;
    case LOCKSTEP_PERMUTE: seen.what = work_of(call.permute); break;
    case LOCKSTEP_SQUARE_SUM:
    case LOCKSTEP_REDUCE:
      seen.what = work_of(call.reduce, seen.bytes / static_cast<double>(prepared.element_bytes));
      break;
    case LOCKSTEP_STENCIL:
      seen.what = call.stencil.rank == 1 ? cost::line_stencil : cost::star_stencil;
      seen.sweeps = call.stencil.sweeps;
      seen.taps = static_cast<double>(prepared.coefficients.size());
      // backends/cuda/stencil: sweeps_registers and sweeps_streamed.
      seen.together = call.stencil.radius <= (call.stencil.rank == 1 ? 4 : call.stencil.rank == 2 ? 2 : 0);
      break;
    case LOCKSTEP_NORMALIZE:
    case LOCKSTEP_SCAN:
    case LOCKSTEP_SUMS:
    case LOCKSTEP_REDUCE_AXES:
    case LOCKSTEP_CONVERT:
    case LOCKSTEP_MAP: seen.what = cost::rows; break;
    case LOCKSTEP_SHUFFLE:
    case LOCKSTEP_OP_COUNT: break;
  }
  return seen;
}

comparison compare(const calibration& figures, const prepared_call& prepared, const backend_entry& device,
                   cost::place where, int threads) {
  const cost::call call = cost_call(prepared);
  const bool device_data = where == cost::on_device;
  if (threads <= 0) threads = figures.threads;
  return {&device, &figures, cost::device_us(figures.model, call, device.name(), where, threads),
          cost::cpu_us(figures.model, call, threads) +
              (device_data ? cost::trips_us(figures.model, call, device.name()) : 0),
          device_data};
}

std::string in_words(const comparison& compared, std::string_view basis) {
  const std::string& name = compared.device->name();
  const std::string figures = format_text("{:.3g} us against {:.3g}{}", compared.there_us, compared.here_us, basis);
  if (compared.device_data)
    return format_text(
        "{}: the data is its memory, and yet the CPU needs less time, the trips over the link counted ({})", name,
        figures);
  if (compared.pays())
    return format_text("cpu: {} needs less time, its trips over the link counted ({})", name, figures);
  return format_text("{}: the data is in host memory, and one trip over the link costs more than the CPU needs ({})",
                     name, figures);
}

}  // namespace lockstep::lib
