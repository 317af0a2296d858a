// ahead.hpp - the row `ahead` of sums: which calls it takes (ahead.cuh has its kernels).
#pragma once

#include "sums.hpp"

namespace lockstep::cuda {

constexpr int ahead_threads = 512;
constexpr int ahead_chunks = 4;  // 16 bytes each, of a row of a block's columns
constexpr int step_rows = 4;     // rows of lanes that a thread takes at once

inline bool lie_in_chunks(const void* at, int64_t stride, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(at) % 16 == 0 && stride * bytes % 16 == 0;
}
inline const char* why_not_ahead(const lockstep_queue& queue, const term_sums& d) {
  const auto bytes = static_cast<int64_t>(dtype_bytes(d.dtype));
  const bool moments = d.kind == term::moments, columns = lie_side_by_side(d);
  if (!queue.facts->tuned.reductions.copy_engine) return "needs shared memory as chips have it from sm_90 on";
  if (!is_float(d.dtype)) return "needs floats";
  if (d.offsets != nullptr || d.length <= 2 * order::lanes)
    return "needs sequences of one length, more than 256 elements";
  if (order::leaves(d.length) > INT32_MAX) return "needs shorter sequences";
  if (!columns && !(moments && d.element_stride == 1))
    return "needs columns, or means and variances of rows without gaps";
  if (bytes == 8 && !(columns && moments)) return "needs elements of up to 4 bytes, or means and variances of columns";
  if (columns && d.count * bytes < 16 * ahead_chunks) return "needs 64 bytes of each row";
  if (columns && d.other != nullptr && d.other_sequence_stride != 1) return "needs columns of both arrays";
  return lie_in_chunks(d.src, columns ? d.element_stride : d.sequence_stride, bytes) &&
                 (d.other == nullptr || lie_in_chunks(d.other, d.other_element_stride, bytes))
             ? nullptr
             : "needs rows that begin at multiples of 16 bytes";
}

// Whether `leaves` is faster, as measured: of what the L2 keeps, of two arrays or of F32 far beyond it, where pieces of
// 64 bytes are slower than longer ones; of rows that leave many of their steps empty.
inline bool ahead_yields(const lockstep_queue& queue, const term_sums& d) {
  const double bytes = static_cast<double>(d.count) * static_cast<double>(d.length) *
                       static_cast<double>(dtype_bytes(d.dtype)) * (d.other == nullptr ? 1 : 2);
  const auto l2 = static_cast<double>(queue.facts->tuned.has.l2);
  if (!lie_side_by_side(d)) {
    constexpr int64_t step = step_rows * order::lanes;
    const int64_t steps = std::min<int64_t>((d.length + step - 1) / step, order::leaf / step);
    return bytes < l2 || order::leaves(d.length) * steps * step - d.length > d.length / 4;
  }
  if (bytes <= static_cast<double>(queue.facts->tuned.reductions.stream_bytes)) return true;
  const bool narrow = dtype_bytes(d.dtype) == 2 && d.other == nullptr;
  return d.kind != term::moments && !narrow && bytes > 2.5 * l2;
}

// Bytes of the partial results of leaves, and of chunks of them.
inline size_t workspace_ahead(const term_sums& d) {
  const int64_t leaves = order::leaves(d.length);
  if (leaves <= 1) return 0;
  return d.kind == term::moments
             ? static_cast<size_t>(d.count * (leaves + chunks_of_moments(leaves))) * sizeof(order::moments)
             : static_cast<size_t>(d.count * leaves) * sizeof(double);
}

lockstep_status sum_floats_ahead(lockstep_queue& queue, const term_sums& d, void* workspace);
lockstep_status sum_moments_ahead(lockstep_queue& queue, const term_sums& d, void* workspace);

}  // namespace lockstep::cuda
