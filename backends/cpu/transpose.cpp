// transpose.cpp - dst[b][j][i] = src[b][i][j]: the table of the CPU's variants.
// Idea    From src to dst the methods of tiles.hpp: SIMD register tiles (isa/transpose.cpp) along strips of src, small
//         and narrow matrices by kernels of their own. In place by swapped blocks, through a copy or without
//         (in_place.cpp).
// Moves   each byte in and out once.
// Limit   DRAM; see tiles.cpp for the effects of pages and of the caches' sets.
// Watch   src == dst needs rows of its own.
// Source  the files named above.
#include <algorithm>
#include <cstring>

#include "in_place.hpp"
#include "ops.hpp"
#include "parallel.hpp"
#include "tiles.hpp"

namespace lockstep::cpu {
namespace {

tiles tiles_of(const lockstep_transpose_desc& d) {
  const auto bytes = static_cast<int64_t>(d.element_bytes);
  tiles t;
  t.log2_bytes = log2_of(d.element_bytes);
  t.rows = d.rows;
  t.cols = d.cols;
  t.src_ld = d.src_ld * bytes;
  t.dst_ld = d.dst_ld * bytes;
  t.axes = 1;
  t.outer[0] = {d.batch, d.src_batch_stride * bytes, d.dst_batch_stride * bytes};
  return t;
}

// ---- in place -----------------------------------------------------------------------
const char* not_a_square(const lockstep_queue*, const lockstep_call* call) {
  return call->src == call->dst && call->transpose.rows == call->transpose.cols ? nullptr : "takes squares in place";
}
const char* not_a_rectangle(const lockstep_queue*, const lockstep_call* call) {
  return in_place_rectangle(*call) ? nullptr : "takes matrices in place whose rows and cols differ";
}

template <void Move(const lockstep_queue&, const lockstep_call&)>
lockstep_status launch_in_place(lockstep_queue* queue, const lockstep_call* call) {
  Move(*queue, *call);
  return LOCKSTEP_OK;
}

// ---- from src to dst ------------------------------------------------------------------
const char* refuses_in_place(const lockstep_queue*, const lockstep_call* call) {
  return call->src == call->dst ? "does not transpose in place" : nullptr;
}

template <int number>
constexpr lockstep_variant row_of_method = {
    tiles_methods[number].name,
    tiles_methods[number].idea,
    0,
    [](const lockstep_queue* queue, const lockstep_call* call) {
      const char* why = refuses_in_place(queue, call);
      if (why != nullptr) return why;
      return tiles_methods[number].refuses(*queue, tiles_of(call->transpose), static_cast<const char*>(call->dst));
    },
    [](const lockstep_queue* queue, const lockstep_call* call) {
      return static_cast<int>(
          !tiles_methods[number].pays(*queue, tiles_of(call->transpose), static_cast<const char*>(call->dst)));
    },
    nullptr,
    [](lockstep_queue* queue, const lockstep_call* call) {
      tiles_methods[number].run(*queue, tiles_of(call->transpose), static_cast<const char*>(call->src),
                                static_cast<char*>(call->dst));
      return LOCKSTEP_OK;
    }};

// 64 x 64 elements at a time: a block of src and of dst stay in L1 until they are done.
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

static_assert(sizeof tiles_methods / sizeof *tiles_methods == 6);
const lockstep_variant rows[] = {
    {"in_place_swapped", "squares in place: blocks are swapped and transposed on the way", 0, not_a_square, nullptr,
     nullptr, launch_in_place<transpose_swapped>},
    {"in_place_copied", "rectangles in place: into a copy as from src to dst, and back", 0, not_a_rectangle, nullptr,
     copied_workspace, launch_in_place<transpose_copied>},
    {"permuted", "rectangles in place by permutations within rows and columns: no copy of the matrix", 0,
     not_a_rectangle, nullptr, permuted_workspace, launch_in_place<transpose_permuted>},
    row_of_method<0>,
    row_of_method<1>,
    row_of_method<2>,
    row_of_method<3>,
    row_of_method<4>,
    row_of_method<5>,
    {"blocked", "plain loops over blocks of 64 x 64: shows the gain by cache blocking alone", LOCKSTEP_LESSON,
     refuses_in_place, nullptr, nullptr, launch_blocked},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_transpose},
};

}  // namespace
const lockstep_table transpose_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
