// estimate.cpp - see estimate.hpp.
#include "estimate.hpp"

#include <algorithm>

namespace lockstep::lib {
namespace {

// Rows shorter than this many elements fill no vector and no sector.
constexpr int64_t narrow_row = 8;
// Sequences shorter than this cost more for their joins than for their elements.
constexpr double short_sequence = 256;

cost::work work_of(const lockstep_transpose_desc& d, bool same_memory) {
  if (same_memory) return d.rows == d.cols ? cost::swap : cost::in_place;
  return std::min(d.rows, d.cols) < narrow_row ? cost::narrow : cost::transpose;
}

cost::work work_of(const lockstep_permute_desc& d) {
  int64_t src_row = 1, dst_row = 1;  // innermost axes that have a length
  for (int k = 0; k < d.rank; ++k) {
    if (d.shape[k] > 1) src_row = d.shape[k];
    if (d.shape[d.perm[k]] > 1) dst_row = d.shape[d.perm[k]];
  }
  return std::min(src_row, dst_row) < narrow_row ? cost::narrow : cost::permute;
}

cost::work work_of(const lockstep_reduce_desc& d, double elements) {
  if (d.element_stride > 1) return cost::columns;
  if (elements < short_sequence * static_cast<double>(d.count)) return d.offsets != nullptr ? cost::segments : cost::short_rows;
  switch (d.reduction) {
    case LOCKSTEP_SUM_OF_SQUARES:
    case LOCKSTEP_NORM2: return cost::square_sum;
    case LOCKSTEP_ARGMIN:
    case LOCKSTEP_ARGMAX: return cost::arg_reduce;
    default: return cost::reduce;
  }
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
    case LOCKSTEP_REDUCE: seen.what = work_of(call.reduce, seen.bytes / static_cast<double>(prepared.element_bytes)); break;
    case LOCKSTEP_STENCIL:
      seen.what = call.stencil.rank == 1 ? cost::line_stencil : cost::star_stencil;
      seen.sweeps = call.stencil.sweeps;
      seen.taps = static_cast<double>(prepared.coefficients.size());
      break;
    case LOCKSTEP_SHUFFLE:
    case LOCKSTEP_OP_COUNT: break;
  }
  return seen;
}

comparison compare_with_cpu(const calibration& figures, const prepared_call& prepared, const backend_entry& device,
                            bool pinned, int threads) {
  const cost::call call = cost_call(prepared);
  return {&device, &figures, cost::device_us(figures.model, call, device.name(), pinned ? cost::pinned : cost::pageable),
          cost::cpu_us(figures.model, call, threads > 0 ? threads : figures.threads)};
}

std::string in_words(const comparison& compared, const std::string& basis) {
  const std::string& name = compared.device->name();
  const std::string figures = fmt::format("{:.3g} us against {:.3g}{}", compared.there_us, compared.here_us, basis);
  return compared.pays() ? fmt::format("cpu: {} needs less time, its trips over the link counted ({})", name, figures)
                         : fmt::format("{}: the data is in host memory, and one trip over the link costs more than the CPU needs ({})", name, figures);
}

}  // namespace lockstep::lib
