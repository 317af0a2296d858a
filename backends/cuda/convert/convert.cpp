// convert.cpp - dst = src * scale, or a function of src, as another type, axes in any order: the table, and what
// kernels are told.
//
// Idea    Axes that merge on both sides are merged. Runs where both sides run along one axis, tiles where they run
//         along two, whole shares where one of these is short, else an element at a time in dst's order; see
//         kernels.cuh.
// Moves   every element once in, once out
// Limit   DRAM
// Watch   kernels count in 32 bits, so larger arrays go in parts
// Source  lockstep.h
#include "convert.hpp"

#include <algorithm>

#include "../dtypes.hpp"
#include "../moves/axes.hpp"
#include "../ops.hpp"

namespace lockstep::cuda {
namespace {

// Runs and sides of a matrix of fewer elements are left to the kernel that takes single ones.
constexpr int64_t least_run = 8, least_side = 8, least_long = 64;
constexpr int tile_rows_of_a_band = 32;

// The fused axes, and what is done to each element on the way.
struct conversion : axes {
  const void* times;  // nullptr: none
  void* workspace;
  double scale;
  int function;
  lockstep_dtype dtype, result;
  int64_t from, to;  // bytes of an element

  explicit conversion(const lockstep_call& call)
      : axes(fused(axes_of(call))),
        times(call.op == LOCKSTEP_MAP ? call.map.times : nullptr),
        workspace(call.workspace),
        scale(call.convert.scale),
        function(call.op == LOCKSTEP_MAP ? int{call.map.function} : -1),
        dtype(call.convert.dtype),
        result(call.convert.result),
        from(element_bytes),
        to(dtype_bytes(result)) {}
  // The axes along which dst and src run, if they are any.
  const axis& along_dst() const { return at[fastest_dst()]; }
  const axis& along_src() const { return at[fastest_src()]; }
  bool runs() const { return rank == 0 || (along_dst().src == 1 && along_dst().dst == 1); }
  void skip(int k, int64_t n) {
    src += n * at[k].src * from, dst += n * at[k].dst * to;
    if (times != nullptr) times = static_cast<const char*>(times) + n * at[k].src * from;
  }
};

any_type_plan types_of(const conversion& c) {
  const bool plain = c.scale == 1, integers = !is_float(c.dtype) && !is_float(c.result);
  convert_form form = convert_form::doubles;
  if (plain && integers)
    form = c.dtype == c.result && c.dtype != LOCKSTEP_BOOL ? convert_form::same : convert_form::integers;
  else if (plain && (c.from <= 2 || c.dtype == LOCKSTEP_F32))
    form = convert_form::floats;
  return {c.scale, static_cast<uint8_t>(c.dtype), static_cast<uint8_t>(c.result), form};
}

convert_walk walk_of(const conversion& c, int without = -1, int and_without = -1) {
  convert_walk w{};
  w.src = c.src, w.dst = c.dst, w.scale = c.scale, w.types = types_of(c), w.function = c.function;
  w.gated = c.times != nullptr;
  if (w.gated)
    w.times = static_cast<int64_t>(reinterpret_cast<uintptr_t>(c.times) - reinterpret_cast<uintptr_t>(c.src)) / c.from;
  for (int k = c.rank - 1; k >= 0; --k)
    if (k != without && k != and_without)
      w.axis[w.axes++] = {divider(c.at[k].count), static_cast<uint32_t>(c.at[k].src),
                          static_cast<uint32_t>(c.at[k].dst)};
  return w;
}
bool aligned(const void* at, int64_t bytes, int elements = convert_quad) {
  return reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(std::min<int64_t>(elements * bytes, 16)) == 0;
}
bool sources_aligned(const conversion& c, int elements = convert_quad) {
  return aligned(c.src, c.from, elements) && (c.times == nullptr || aligned(c.times, c.from, elements));
}

lockstep_status give(lockstep_queue& queue, const conversion& c, const convert_job& job) {
  if (!is_float(c.dtype) || !is_float(c.result)) return convert_integers(queue, job, c.from, c.to);
  switch (c.dtype) {
    case LOCKSTEP_F16: return convert_from_f16(queue, job, c.result);
    case LOCKSTEP_BF16: return convert_from_bf16(queue, job, c.result);
    case LOCKSTEP_F32: return convert_from_f32(queue, job, c.result);
    default: return convert_from_f64(queue, job, c.result);
  }
}

lockstep_status run_elements(lockstep_queue& queue, const conversion& c) {
  constexpr int64_t block = int64_t{element_threads} * element_steps;
  const int64_t elements = c.elements();
  const convert_elements plan{walk_of(c), static_cast<uint32_t>(elements),
                              static_cast<uint32_t>((elements - 1) / block + 1)};
  convert_job job;
  job.elements = &plan;
  return give(queue, c, job);
}

lockstep_status run_runs(lockstep_queue& queue, const conversion& c) {
  const int64_t length = c.rank > 0 ? c.along_dst().count : 1;
  convert_runs plan{};
  plan.walk = walk_of(c, c.fastest_dst());
  plan.length = static_cast<uint32_t>(length);
  const int piece = run_piece(c.from, c.to);
  plan.whole = sources_aligned(c, piece) && aligned(c.dst, c.to, piece);
  for (int k = 0; k < c.fastest_dst(); ++k)
    plan.whole = plan.whole && c.at[k].src % piece == 0 && c.at[k].dst % piece == 0;
  const int64_t of_run = plan.whole ? (length - 1) / piece + 1 : length, items = c.elements() / length * of_run;
  const int64_t block = int64_t{run_threads} * run_pieces * (plan.whole ? 1 : piece);
  plan.by_run = divider(of_run);
  plan.items = static_cast<uint32_t>(items), plan.grid = static_cast<uint32_t>((items - 1) / block + 1);
  convert_job job;
  job.runs = &plan;
  return give(queue, c, job);
}

lockstep_status run_tiles(lockstep_queue& queue, const conversion& c) {
  const int i = c.fastest_dst(), j = c.fastest_src();
  const axis &rows = c.at[i], &cols = c.at[j];
  convert_tiles plan{};
  plan.whole_src = sources_aligned(c) && cols.count % 4 == 0;
  plan.whole_dst = aligned(c.dst, c.to) && rows.count % 4 == 0;
  for (int k = 0; k < c.rank; ++k) {
    plan.whole_src = plan.whole_src && (k == j || c.at[k].src % 4 == 0);
    plan.whole_dst = plan.whole_dst && (k == i || c.at[k].dst % 4 == 0);
  }
  // Tiles that begin with a piece of dst overlap by one less an element.
  const int64_t spare = plan.whole_dst ? 0 : convert_piece(c.to) / c.to, tall = convert_row(c.to) / c.to - spare;
  const int64_t tiles_i = (rows.count + std::max<int64_t>(spare, 1) - 2) / tall + 1;
  const int64_t tiles_j = (cols.count - 1) / (convert_row(c.from) / c.from) + 1;
  const int64_t matrices = c.elements() / rows.count / cols.count;
  const int64_t group = std::min<int64_t>(tiles_i, tile_rows_of_a_band);
  plan.walk = walk_of(c, i, j);
  plan.rows = static_cast<uint32_t>(rows.count), plan.cols = static_cast<uint32_t>(cols.count);
  plan.src_ld = static_cast<uint32_t>(rows.src), plan.dst_ld = static_cast<uint32_t>(cols.dst);
  plan.tall = static_cast<uint32_t>(tall);
  plan.tiles_i = static_cast<uint32_t>(tiles_i), plan.group = static_cast<uint32_t>(group);
  plan.by_matrix = divider(tiles_i * tiles_j), plan.by_band = divider(group * tiles_j);
  plan.by_group = divider(group);
  plan.by_last_group = divider(tiles_i % group != 0 ? tiles_i % group : group);
  plan.grid = static_cast<uint32_t>(matrices * tiles_i * tiles_j);
  convert_job job;
  job.tiles = &plan;
  return give(queue, c, job);
}

// The side of few elements without gaps, 0 where there is none: src's rows (apart), or dst's.
int64_t few_of(const conversion& c, bool& apart) {
  if (!c.is_matrix()) return 0;
  const axis &rows = c.along_dst(), &cols = c.along_src();
  apart = cols.count <= most_few && rows.src == cols.count;
  if (apart) return cols.count;
  return rows.count <= most_few && cols.dst == rows.count ? rows.count : 0;
}

lockstep_status run_narrow(lockstep_queue& queue, const conversion& c) {
  convert_narrow plan{};
  const int64_t few = few_of(c, plan.apart);
  if (few == 0) return run_tiles(queue, c);  // a part of a large array
  const int i = c.fastest_dst(), j = c.fastest_src();
  const axis &rows = c.at[i], &cols = c.at[j];
  const int64_t length = plan.apart ? rows.count : cols.count;
  // Few elements are dealt out to as many SMs as there are, but each thread of a block gets a quad.
  const int64_t most = std::clamp<int64_t>(c.elements() / queue.facts->processors, narrow_least, narrow_block);
  const int64_t share = most / few / convert_quad * convert_quad;
  const int64_t blocks = (length - 1) / share + 1, matrices = c.elements() / few / length;
  plan.walk = walk_of(c, i, j);
  plan.few = static_cast<uint32_t>(few), plan.length = static_cast<uint32_t>(length);
  plan.share = static_cast<uint32_t>(share);
  plan.long_ld = static_cast<uint32_t>(plan.apart ? cols.dst : rows.src);
  plan.by_few = divider(few), plan.by_share = divider(share / convert_quad), plan.by_matrix = divider(blocks);
  plan.whole_src = sources_aligned(c), plan.whole_dst = aligned(c.dst, c.to);
  // Of the dense side only matrices may begin anywhere.
  for (int k = 0; k < c.rank; ++k) {
    const bool inside = k == i || k == j;
    plan.whole_src = plan.whole_src && (k == j || (inside && plan.apart) || c.at[k].src % 4 == 0);
    plan.whole_dst = plan.whole_dst && (k == i || (inside && !plan.apart) || c.at[k].dst % 4 == 0);
  }
  plan.grid = static_cast<uint32_t>(matrices * blocks);
  convert_job job;
  job.narrow = &plan;
  return give(queue, c, job);
}

bool one_run(const conversion& c) { return c.rank == 0 || (c.rank == 1 && c.runs()); }

bool at_chunks(const void* at) { return reinterpret_cast<uintptr_t>(at) % 16 == 0; }

lockstep_status run_one_function(lockstep_queue& queue, const conversion& c) {
  if (!at_chunks(c.src) || !at_chunks(c.dst)) return run_runs(queue, c);
  return map_by_its_kernel(queue, c.function, c.src, c.dst, static_cast<uint32_t>(c.elements()));
}

lockstep_status run_gated_units(lockstep_queue& queue, const conversion& c) {
  const int64_t elements = c.elements(), whole = elements / 8 * 8;
  if (whole == 0 || !at_chunks(c.src) || !at_chunks(c.dst) || !at_chunks(c.times)) return run_runs(queue, c);
  if (const lockstep_status status =
          gated_by_table(queue, walk_of(c), c.times, c.result, c.workspace, static_cast<uint32_t>(whole / 8));
      status != LOCKSTEP_OK || whole == elements)
    return status;
  conversion rest = c;
  rest.skip(0, whole);
  rest.at[0].count = elements - whole;
  return run_runs(queue, rest);
}

lockstep_status run_looked_up(lockstep_queue& queue, const conversion& c) {
  if (!at_chunks(c.src) || !at_chunks(c.dst)) return run_runs(queue, c);
  return convert_by_table(queue, walk_of(c), c.dtype, c.result, c.workspace, static_cast<uint32_t>(c.elements()));
}

// ---- the table -------------------------------------------------------------------------
const char* not_one_function(const lockstep_queue*, const lockstep_call* call) {
  const conversion c(*call);
  if (c.function < 0 || c.times != nullptr || c.scale != 1 || c.dtype != LOCKSTEP_F32 || c.result != LOCKSTEP_F32)
    return "computes functions of F32 as F32, without scale and times";
  return one_run(c) ? nullptr : "needs src and dst without gaps, their axes in the same order";
}
const char* not_gated_units(const lockstep_queue*, const lockstep_call* call) {
  const conversion c(*call);
  if (c.function < 0 || c.times == nullptr || c.dtype != LOCKSTEP_BF16)
    return "computes functions of BF16 times a second array";
  return one_run(c) ? nullptr : "needs src and dst without gaps, their axes in the same order";
}
int gated_units_yield(const lockstep_queue*, const lockstep_call* call) {
  return static_cast<int>(conversion(*call).elements() < least_units);
}
size_t workspace_of_gated_units(const lockstep_queue*, const lockstep_call*) { return unit_table_bytes; }
const char* not_looked_up(const lockstep_queue* queue, const lockstep_call* call) {
  const conversion c(*call);
  if (c.function < 0 || c.times != nullptr || c.from != 2 || c.to != 2)
    return "computes functions of 16-bit floats as 16-bit floats, without times";
  if (!one_run(c)) return "needs src and dst without gaps, their axes in the same order";
  return queue->facts->shared_bytes >= table_bytes ? nullptr : "needs 128 KiB of shared memory a block";
}
int looked_up_yields(const lockstep_queue*, const lockstep_call* call) {
  return static_cast<int>(conversion(*call).elements() < least_looked_up);
}
size_t workspace_of_looked_up(const lockstep_queue*, const lockstep_call*) { return table_bytes; }
const char* not_runs(const lockstep_queue*, const lockstep_call* call) {
  return conversion(*call).runs() ? nullptr : "needs an axis that is contiguous in src and in dst";
}
int runs_yield(const lockstep_queue*, const lockstep_call* call) {
  const conversion c(*call);
  return static_cast<int>(c.rank > 1 && c.along_dst().count < least_run);
}
const char* not_narrow(const lockstep_queue*, const lockstep_call* call) {
  bool apart = false;
  return few_of(conversion(*call), apart) > 0 ? nullptr : "needs rows of src or of dst of at most 32 elements, no gaps";
}
int narrow_yields(const lockstep_queue*, const lockstep_call* call) {
  const conversion c(*call);
  return static_cast<int>(std::max(c.along_dst().count, c.along_src().count) < least_long);
}
const char* not_tiles(const lockstep_queue*, const lockstep_call* call) {
  return conversion(*call).is_matrix() ? nullptr : "needs an axis that is contiguous in src and another that is in dst";
}
int tiles_yield(const lockstep_queue*, const lockstep_call* call) {
  const conversion c(*call);
  return static_cast<int>(c.along_dst().count < least_side || c.along_src().count < least_side);
}

template <lockstep_status (*run)(lockstep_queue&, const conversion&)>
lockstep_status in_parts_of(lockstep_queue& queue, const lockstep_call& call) {
  return in_parts(conversion(call), [&](const conversion& part) { return run(queue, part); });
}

const lockstep_variant rows[] = {
    {"one_function", "F32 as F32 in one run: a kernel for each function, its exceptions apart", 0, not_one_function,
     nullptr, nullptr, on_device<in_parts_of<run_one_function>>},
    {"gated_units", "BF16 times a second array: values of usual arguments looked up in shared memory", 0,
     not_gated_units, gated_units_yield, workspace_of_gated_units, on_device<in_parts_of<run_gated_units>>},
    {"looked_up", "16-bit floats: all 65,536 values computed, then looked up in shared memory", 0, not_looked_up,
     looked_up_yields, workspace_of_looked_up, on_device<in_parts_of<run_looked_up>>},
    {"runs", "axes fused, then runs that are contiguous on both sides, four elements a load", 0, not_runs, runs_yield,
     nullptr, on_device<in_parts_of<run_runs>>},
    {"narrow", "axes fused, then few rows or columns without gaps, taken apart or put together in shared memory", 0,
     not_narrow, narrow_yields, nullptr, on_device<in_parts_of<run_narrow>>},
    {"tiled", "axes fused, then tiles through shared memory, 256 bytes of a row on both sides", 0, not_tiles,
     tiles_yield, nullptr, on_device<in_parts_of<run_tiles>>},
    {"elements", "axes fused, then an element at a time in dst's order, with any strides", 0, nullptr, nullptr, nullptr,
     on_device<in_parts_of<run_elements>>},
};

}  // namespace

const lockstep_table convert_table = {rows + 3, sizeof rows / sizeof *rows - 3};
const lockstep_table map_table = {rows, sizeof rows / sizeof *rows};

}  // namespace lockstep::cuda
