// transpose.cpp - dst[b][j][i] = src[b][i][j]: the table of the CPU's variants.
// Idea    tiled: SIMD register tiles (isa/transpose.cpp) along strips of src
//         (tiles.cpp); in place by swapped blocks or through a copy; permuted
//         does without the copy (in_place.cpp).
// Moves   each byte in and out once.
// Limit   DRAM; see tiles.cpp for what its pages and the caches' sets ask for.
// Watch   src == dst is a call of its own: one matrix is both sides.
// Source  the files named above.
#include <algorithm>
#include <cstring>

#include "in_place.hpp"
#include "ops.hpp"
#include "parallel.hpp"
#include "tiles.hpp"

namespace lockstep::cpu {
namespace {

lockstep_status launch_tiled(lockstep_queue* queue, const lockstep_call* call) {
  if (call->src == call->dst) {
    transpose_in_place(*queue, *call);
    return LOCKSTEP_OK;
  }
  const lockstep_transpose_desc& d = call->transpose;
  const auto bytes = static_cast<int64_t>(d.element_bytes);
  tiles t;
  t.log2_bytes = log2_of(d.element_bytes);
  t.rows = d.rows;
  t.cols = d.cols;
  t.src_ld = d.src_ld * bytes;
  t.dst_ld = d.dst_ld * bytes;
  t.axes = 1;
  t.outer[0] = {d.batch, d.src_batch_stride * bytes, d.dst_batch_stride * bytes};
  run_tiles(*queue, t, static_cast<const char*>(call->src), static_cast<char*>(call->dst));
  return LOCKSTEP_OK;
}

const char* refuses_all_but_rectangles(const lockstep_queue*, const lockstep_call* call) {
  return in_place_rectangle(*call) ? nullptr
                                   : "takes matrices in place whose rows and cols differ; tiled and ref take all";
}

lockstep_status launch_permuted(lockstep_queue* queue, const lockstep_call* call) {
  transpose_permuted(*queue, *call);
  return LOCKSTEP_OK;
}

const char* refuses_in_place(const lockstep_queue*, const lockstep_call* call) {
  return call->src == call->dst ? "does not transpose in place; tiled and ref do" : nullptr;
}

// 64 x 64 elements at a time: both sides of a block stay in L1 until used up.
template <size_t bytes>
void transpose_blocked(const lockstep_queue& queue, const lockstep_transpose_desc& d, const char* src, char* dst) {
  constexpr int64_t block = 64;
  const int64_t strips = (d.rows - 1) / block + 1;
  over_ranges(queue, d.batch * strips, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t k = task / strips, top = task % strips * block, bottom = std::min(top + block, d.rows);
      const char* from = src + k * d.src_batch_stride * static_cast<int64_t>(bytes);
      char* to = dst + k * d.dst_batch_stride * static_cast<int64_t>(bytes);
      for (int64_t left = 0; left < d.cols; left += block)
        for (int64_t j = left; j < std::min(left + block, d.cols); ++j)
          for (int64_t i = top; i < bottom; ++i)
            std::memcpy(to + (j * d.dst_ld + i) * static_cast<int64_t>(bytes),
                        from + (i * d.src_ld + j) * static_cast<int64_t>(bytes), bytes);
    }
  });
}

lockstep_status launch_blocked(lockstep_queue* queue, const lockstep_call* call) {
  const auto* src = static_cast<const char*>(call->src);
  auto* dst = static_cast<char*>(call->dst);
  switch (call->transpose.element_bytes) {
    case 1: transpose_blocked<1>(*queue, call->transpose, src, dst); break;
    case 2: transpose_blocked<2>(*queue, call->transpose, src, dst); break;
    case 4: transpose_blocked<4>(*queue, call->transpose, src, dst); break;
    case 8: transpose_blocked<8>(*queue, call->transpose, src, dst); break;
    default: transpose_blocked<16>(*queue, call->transpose, src, dst); break;
  }
  return LOCKSTEP_OK;
}

const lockstep_variant rows[] = {
    {"tiled", "SIMD register tiles along strips of rows, stores around the cache where it pays", 0, nullptr, nullptr,
     in_place_workspace, launch_tiled},
    {"permuted", "rectangles in place by permutations within rows and columns: no copy of the matrix", 0,
     refuses_all_but_rectangles, nullptr, permuted_workspace, launch_permuted},
    {"blocked", "plain loops over blocks of 64 x 64: what cache blocking alone gives", LOCKSTEP_LESSON,
     refuses_in_place, nullptr, nullptr, launch_blocked},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_transpose},
};

}  // namespace
const lockstep_table transpose_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
