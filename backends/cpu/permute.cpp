// permute.cpp - dst[i_perm[0], ...] = src[i_0, ...], any strides.
// Idea    Simplify first: drop axes of one element, merge axes that are adjacent on
//         both sides, and turn a small innermost axis that both sides keep into a
//         wider element. The rest is a copy of runs (both sides fastest along one
//         axis) or a 2-D transpose over the axis that is fastest in src and the one
//         that is fastest in dst, repeated over the other axes, by the methods of tiles.hpp.
// Moves   each byte in and out once.
// Limit   that of tiles.cpp.
// Watch   if a fastest axis has a stride above 1 there are no vectors to load; such calls
//         copy element by element, in the order of dst.
// Source  this file; fusing and the choice of the two axes as in P. Springer,
//         T. Su, P. Bientinesi, "HPTT: A High-Performance Tensor Transposition
//         C++ Library", ARRAY 2017.
#include <cstring>
#include <optional>

#include "axes.hpp"
#include "fused_runs.hpp"
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

// ---- the table ------------------------------------------------------------------------
bool same(const lockstep_permute_desc& a, const lockstep_permute_desc& b) {
  bool all = a.element_bytes == b.element_bytes && a.rank == b.rank;
  for (int k = 0; all && k < a.rank; ++k)
    all = a.shape[k] == b.shape[k] && a.perm[k] == b.perm[k] && a.src_strides[k] == b.src_strides[k] &&
          a.dst_strides[k] == b.dst_strides[k];
  return all;
}

// A call as each row sees it. The thread keeps its last one, because all rows are asked about the same call.
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

template <int number>
const char* refuses_method(const lockstep_queue* queue, const lockstep_call* call) {
  const known_call& now = known(call);
  if (!now.matrices) return "needs an axis that is contiguous in src and one that is in dst";
  return tiles_methods[number].refuses(*queue, *now.matrices, static_cast<const char*>(call->dst));
}
template <int number>
int method_yields(const lockstep_queue* queue, const lockstep_call* call) {
  return static_cast<int>(
      !tiles_methods[number].pays(*queue, *known(call).matrices, static_cast<const char*>(call->dst)));
}
template <int number>
lockstep_status launch_method(lockstep_queue* queue, const lockstep_call* call) {
  tiles_methods[number].run(*queue, *known(call).matrices, static_cast<const char*>(call->src),
                            static_cast<char*>(call->dst));
  return LOCKSTEP_OK;
}
template <int number>
constexpr lockstep_variant row_of_method = {tiles_methods[number].name, tiles_methods[number].idea, 0,
                                            refuses_method<number>,     method_yields<number>,      nullptr,
                                            launch_method<number>};

lockstep_status launch_strided(lockstep_queue* queue, const lockstep_call* call) {
  run_elements(*queue, known(call).axes, static_cast<const char*>(call->src), static_cast<char*>(call->dst));
  return LOCKSTEP_OK;
}

static_assert(sizeof tiles_methods / sizeof *tiles_methods == 6);
const lockstep_variant rows[] = {
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

}  // namespace
const lockstep_table permute_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
