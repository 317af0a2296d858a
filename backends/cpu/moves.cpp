// moves.cpp - the tables of transpose, dst[b][j][i] = src[b][i][j], and permute, dst[i_perm[0], ...] = src[i_0, ...],
// any strides.
// Idea    Simplify first: drop axes of one element, merge axes that are adjacent on both sides, and turn a small
//         innermost axis that both sides keep into a wider element. The rest is a copy of runs (both sides fastest
//         along one axis) or a 2-D transpose over the axis that is fastest in src and the one that is fastest in dst,
//         repeated over the other axes, by the methods of tiles.hpp. A transpose needs none of that. In place,
//         blocks are swapped, or the matrix goes through a copy or through permutations of rows and columns
//         (in_place.cpp).
// Moves   each byte in and out once.
// Limit   DRAM; see tiles.cpp for the effects of pages and of the caches' sets.
// Watch   if a fastest axis has a stride above 1 there are no vectors to load; such calls
//         copy element by element, in the order of dst. src == dst needs rows of its own.
// Source  this file; fusing and the choice of the two axes as in P. Springer,
//         T. Su, P. Bientinesi, "HPTT: A High-Performance Tensor Transposition
//         C++ Library", ARRAY 2017.
#include <algorithm>
#include <cstring>
#include <optional>

#include "axes.hpp"
#include "fused_runs.hpp"
#include "in_place.hpp"
#include "ops.hpp"
#include "parallel.hpp"
#include "tiles.hpp"

namespace lockstep::cpu {
namespace {

move_axes simplify(const lockstep_permute_desc& d) {
  move_axes p;
  p.from = p.to = static_cast<int64_t>(d.element_bytes);
  for (int k = 0; k < d.rank; ++k) {
    const int axis = d.perm[k];
    p.add(d.shape[axis], d.src_strides[axis] * p.from, d.dst_strides[k] * p.to);
  }
  p.fuse();
  // A kept innermost axis of 2, 4, 8 or 16 bytes in all becomes one element. Other strides
  // need not be multiples of it, because the kernels take any address.
  if (p.axes > 0) {
    const tiles::axis& last = p.axis[p.axes - 1];
    const int64_t wide = last.count * p.to;
    if (last.src == p.from && last.dst == p.to && wide <= 16 && (wide & (wide - 1)) == 0) {
      p.from = p.to = wide;
      p.remove(p.axes - 1);
    }
  }
  return p;
}

// One element at a time along dst's fastest axis.
template <size_t bytes>
void walk_elements(const lockstep_queue& queue, const move_axes& p, const char* src, char* dst) {
  const tiles::axis inner = p.axes > 0 ? p.axis[p.axes - 1] : tiles::axis{1, 0, 0};
  int64_t rows = 1;
  for (int k = 0; k < p.axes - 1; ++k) rows *= p.axis[k].count;
  over_ranges(queue, rows, 1, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const char* from = src;
      char* to = dst;
      for (int64_t k = p.axes - 2, rest = row; k >= 0; --k) {
        const int64_t at = rest % p.axis[k].count;
        rest /= p.axis[k].count;
        from += at * p.axis[k].src;
        to += at * p.axis[k].dst;
      }
      for (int64_t i = 0; i < inner.count; ++i) std::memcpy(to + i * inner.dst, from + i * inner.src, bytes);
    }
  });
}

void run_elements(const lockstep_queue& queue, const move_axes& p, const char* src, char* dst) {
  switch (p.to) {
    case 1: return walk_elements<1>(queue, p, src, dst);
    case 2: return walk_elements<2>(queue, p, src, dst);
    case 4: return walk_elements<4>(queue, p, src, dst);
    case 8: return walk_elements<8>(queue, p, src, dst);
    default: return walk_elements<16>(queue, p, src, dst);
  }
}

// Two axes are swapped over a kept innermost axis of up to 64 bytes, which is an element of any size: HxWx3 to WxHx3.
std::optional<tiles> pixels_of(const move_axes& p, int64_t& bytes) {
  if (p.axes < 3) return {};
  const tiles::axis& last = p.axis[p.axes - 1];
  bytes = last.count * p.to;
  if (last.src != p.from || last.dst != p.to || bytes > 64) return {};
  move_axes whole = p;
  whole.from = whole.to = bytes;
  whole.remove(p.axes - 1);
  std::optional<tiles> t = whole.matrices();
  return t && t->src_ld >= bytes ? t : std::nullopt;
}

// ---- calls as rows see them -----------------------------------------------------------
bool same(const lockstep_permute_desc& a, const lockstep_permute_desc& b) {
  bool all = a.element_bytes == b.element_bytes && a.rank == b.rank;
  for (int k = 0; all && k < a.rank; ++k)
    all = a.shape[k] == b.shape[k] && a.perm[k] == b.perm[k] && a.src_strides[k] == b.src_strides[k] &&
          a.dst_strides[k] == b.dst_strides[k];
  return all;
}

// A permutation as each row sees it. The thread keeps its last one, because all rows are asked about the same call.
struct known_call {
  lockstep_permute_desc of{};
  move_axes axes{};
  std::optional<tiles> copies, matrices, pixels;
  std::optional<fused_runs> runs;
  int64_t pixel_bytes = 0;
};
const known_call& known(const lockstep_call* call) {
  static thread_local known_call last;
  if (!same(call->permute, last.of)) {
    last.of = call->permute;
    last.axes = simplify(call->permute);
    last.copies = copies_of(last.axes);
    last.matrices = last.axes.matrices();
    if (!last.matrices) last.matrices = last.axes.runs();  // of one row
    last.runs = fuse_runs(last.axes, last.axes.to);
    last.pixels = pixels_of(last.axes, last.pixel_bytes);
  }
  return last;
}

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

// nullptr: the call is no matrices.
const tiles* matrices_of(const lockstep_call* call) {
  if (call->op == LOCKSTEP_PERMUTE) {
    const known_call& now = known(call);
    return now.matrices ? &*now.matrices : nullptr;
  }
  static thread_local tiles last;
  last = tiles_of(call->transpose);
  return &last;
}

// ---- from src to dst ------------------------------------------------------------------
const char* not_pixels(const lockstep_queue*, const lockstep_call* call) {
  return known(call).pixels ? nullptr
                            : "needs two axes that are swapped over a contiguous innermost axis of up to 64 bytes";
}
lockstep_status launch_pixels(lockstep_queue* queue, const lockstep_call* call) {
  const known_call& now = known(call);
  run_pixels(*queue, *now.pixels, now.pixel_bytes, static_cast<const char*>(call->src), static_cast<char*>(call->dst));
  return LOCKSTEP_OK;
}

const char* not_copies(const lockstep_queue*, const lockstep_call* call) {
  return known(call).copies ? nullptr : "needs an axis that is contiguous in src and in dst";
}
lockstep_status launch_copies(lockstep_queue* queue, const lockstep_call* call) {
  run_copies(*queue, *known(call).copies, static_cast<const char*>(call->src), static_cast<char*>(call->dst));
  return LOCKSTEP_OK;
}

const char* not_runs(const lockstep_queue*, const lockstep_call* call) {
  const known_call& now = known(call);
  return now.runs ? not_fused(*now.runs) : "needs one axis that is contiguous in src and another in dst";
}
int runs_yield(const lockstep_queue* queue, const lockstep_call* call) {
  return static_cast<int>(!fused_pays(*queue, *known(call).runs));
}
lockstep_status launch_runs(lockstep_queue* queue, const lockstep_call* call) {
  run_fused(*queue, *known(call).runs, static_cast<const char*>(call->src), static_cast<char*>(call->dst));
  return LOCKSTEP_OK;
}

const char* refuses_in_place(const lockstep_queue*, const lockstep_call* call) {
  return call->op == LOCKSTEP_TRANSPOSE && call->src == call->dst ? "does not transpose in place" : nullptr;
}
template <int number>
constexpr lockstep_variant row_of_method = {
    tiles_methods[number].name,
    tiles_methods[number].idea,
    0,
    [](const lockstep_queue* queue, const lockstep_call* call) {
      if (const char* why = refuses_in_place(queue, call); why != nullptr) return why;
      const tiles* const t = matrices_of(call);
      if (t == nullptr) return "needs an axis that is contiguous in src and one that is in dst";
      return tiles_methods[number].refuses(*queue, *t, static_cast<const char*>(call->dst));
    },
    [](const lockstep_queue* queue, const lockstep_call* call) {
      return static_cast<int>(
          !tiles_methods[number].pays(*queue, *matrices_of(call), static_cast<const char*>(call->dst)));
    },
    nullptr,
    [](lockstep_queue* queue, const lockstep_call* call) {
      tiles_methods[number].run(*queue, *matrices_of(call), static_cast<const char*>(call->src),
                                static_cast<char*>(call->dst));
      return LOCKSTEP_OK;
    }};

lockstep_status launch_strided(lockstep_queue* queue, const lockstep_call* call) {
  run_elements(*queue, known(call).axes, static_cast<const char*>(call->src), static_cast<char*>(call->dst));
  return LOCKSTEP_OK;
}

// ---- transposes in place, and a lesson -------------------------------------------------
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

// ---- the tables -----------------------------------------------------------------------
static_assert(sizeof tiles_methods / sizeof *tiles_methods == 6);
const lockstep_variant permutes[] = {
    {"pixels", "axes fused, then two axes swapped over elements of any size up to 64 bytes, such as pixels", 0,
     not_pixels, nullptr, nullptr, launch_pixels},
    {"copies", "axes fused, then runs that are contiguous on both sides, copied in the order of src", 0, not_copies,
     nullptr, nullptr, launch_copies},
    {"fused_runs", "short axes that follow each other in src or in dst are one run, and runs are transposed", 0,
     not_runs, runs_yield, nullptr, launch_runs},
    row_of_method<0>,
    row_of_method<1>,
    row_of_method<2>,
    row_of_method<3>,
    row_of_method<4>,
    row_of_method<5>,
    {"strided", "axes fused, then one element at a time in dst's order, with any strides", 0, nullptr, nullptr, nullptr,
     launch_strided},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_permute},
};
const lockstep_variant transposes[] = {
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
const lockstep_table transpose_table = {transposes, sizeof transposes / sizeof *transposes};
const lockstep_table permute_table = {permutes, sizeof permutes / sizeof *permutes};
}  // namespace lockstep::cpu
