// stencil.cpp - correlation over a star: threads take tiles, tiles are cut into rows, rows
// go to the micro-kernels of isa/stencil.cpp.
// Idea    The kernels never fold at a boundary. A result row needs its own row and 2r
//         rows of each outer axis. Folding an outer axis only changes which row a
//         pointer names (CONSTANT: a row of the value). Folding the inner axis affects
//         only the ends of a row, which are computed from a small folded copy. Tiles
//         keep the 2r + 1 planes (rank 3) or rows (rank 2) that a result needs in L2.
// Moves   each element in once, out once; 2 * r * rank + 1 fma for each element.
// Limit   DRAM for rank 1; loads per cycle and L2 for stars (see isa/stencil.cpp).
// Watch   order id 1 is a chain of fma: independent results must fill its latency.
// Source  order.hpp.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "bits/order.hpp"
#include "ops.hpp"
#include "parallel.hpp"
#include "stencil_kernels.hpp"
#include "stencil_sweeps.hpp"

namespace lockstep::cpu {
namespace {

// ---- tiles --------------------------------------------------------------------
template <class T>
extent choose_tile(const stencil_tuning& tuned, const sweep<T>& s, int threads) {
  const int64_t nz = s.dst_shape[0], ny = s.dst_shape[1], nx = s.dst_shape[2];
  const auto at_least_one = [](int64_t n) { return std::max<int64_t>(n, 1); };
  extent t{1, 1, 1, nx};
  if (s.rank == 1) {
    t.x = std::min(nx, tuned.line_tile);
  } else if (s.rank == 2) {
    t.x = std::min({nx, tuned.row_tile, stencil_longest_tile});
    t.y = std::min(ny, std::max(tuned.task_elements / t.x, tuned.rows_of_a_tile));
  } else {
    t.x = std::min({nx, tuned.row_tile, stencil_longest_tile});
    t.y = std::min(ny, at_least_one(tuned.star_bytes / static_cast<int64_t>(sizeof(T)) / ((2 * s.radius + 1) * t.x)));
    t.z = nz;
    // Fewer columns than threads: cut along axis 0 too.
    const int64_t columns = ((ny + t.y - 1) / t.y) * ((nx + t.x - 1) / t.x) * s.batch;
    if (columns < 2 * threads)
      t.z = std::max((nz * columns + 2 * threads - 1) / (2 * threads), std::min<int64_t>(nz, 4 * s.radius));
  }
  if (t.z == nz && t.y == ny && t.x == nx) t.b = std::min(s.batch, at_least_one(tuned.task_elements / (nz * ny * nx)));
  return t;
}

// In the order of memory: whole rows, one after the other (CONSTANT's row of the value limits their length).
template <class T>
extent no_tile(const stencil_tuning& tuned, const sweep<T>& s) {
  const int64_t nx = s.dst_shape[2];
  return {1, 1, s.rank == 3 ? s.dst_shape[1] : std::min(s.dst_shape[1], tuned.rows_of_a_tile),
          s.rank == 1                                ? std::min(nx, tuned.line_tile)
          : s.boundary == LOCKSTEP_BOUNDARY_CONSTANT ? std::min(nx, stencil_longest_tile)
                                                     : nx};
}

template <class T>
void run_sweep(const lockstep_queue& queue, const sweep<T>& s, const extent& tile) {
  const auto tiles = [](int64_t n, int64_t t) { return (n + t - 1) / t; };
  const extent count{tiles(s.batch, tile.b), tiles(s.dst_shape[0], tile.z), tiles(s.dst_shape[1], tile.y),
                     tiles(s.dst_shape[2], tile.x)};
  const auto run_task = [&](int64_t task) {
    extent first, last;
    first.x = task % count.x * tile.x, task /= count.x;
    first.y = task % count.y * tile.y, task /= count.y;
    first.z = task % count.z * tile.z, task /= count.z;
    first.b = task * tile.b;
    last.x = std::min(first.x + tile.x, s.dst_shape[2]);
    last.y = std::min(first.y + tile.y, s.dst_shape[1]);
    last.z = std::min(first.z + tile.z, s.dst_shape[0]);
    last.b = std::min(first.b + tile.b, s.batch);
    T value_row[stencil_longest_tile];
    if (s.boundary == LOCKSTEP_BOUNDARY_CONSTANT && s.rank > 1) std::fill_n(value_row, last.x - first.x, s.value);
    run_tile(s, first, last, value_row);
    if (s.stream) std::atomic_thread_fence(std::memory_order_seq_cst);  // orders non-temporal stores
  };
  // Data that fits the caches is divided in the same way in every call, so that each core finds its part cached. Larger
  // data is handed out tile by tile, but rank 1 as one range for each thread, because each thread then reads a single
  // stream.
  const int64_t tasks = count.b * count.z * count.y * count.x;
  if (s.stream && s.rank > 1)
    over_tasks(queue, tasks, run_task);
  else
    over_ranges(queue, tasks, 1, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) run_task(task);
    });
}

// ---- sweeps -------------------------------------------------------------------
// Results between sweeps are packed. Small arrays of a batch go through all their sweeps
// in groups, so that a group stays in cache. dst is one of the two alternating buffers,
// except under VALID, where intermediate results are larger than dst.

int64_t array_elements(const lockstep_stencil_desc& d) {
  int64_t elements = 1;
  for (int k = 0; k < d.rank; ++k) elements *= d.shape[k];
  return elements;
}
int64_t group_of(const stencil_tuning& tuned, const lockstep_stencil_desc& d) {
  const int64_t bytes = array_elements(d) * static_cast<int64_t>(lockstep_dtype_bytes(d.dtype));
  return std::clamp<int64_t>(tuned.group_bytes / bytes, 1, d.batch);
}
int buffers_of(const lockstep_stencil_desc& d, int passes) {
  return std::min(passes - 1, d.boundary == LOCKSTEP_BOUNDARY_VALID ? 2 : 1);
}
size_t between_bytes(const stencil_tuning& tuned, const lockstep_stencil_desc& d, int passes) {
  const auto bytes = static_cast<size_t>(buffers_of(d, passes) * group_of(tuned, d) * array_elements(d)) *
                     lockstep_dtype_bytes(d.dtype);
  return (bytes + 63) / 64 * 64;  // the threads' scratch comes after this
}
size_t stencil_workspace(const lockstep_queue* queue, const lockstep_call* call) {
  return between_bytes(queue->tuned->stencils, call->stencil, call->stencil.sweeps);
}
int passes_of(const lockstep_stencil_desc& d, const sweeps_plan& plan) {
  return (d.sweeps + plan.depth - 1) / plan.depth;
}
size_t passes_workspace(const lockstep_queue* queue, const lockstep_call* call) {
  return sweeps_bytes(*queue, call->stencil, plan_sweeps(*queue, call->stencil));
}

enum class how { blocks, lines, rows, direct, folded, passes, lanes };

// The kernels that take several rows of results at once; NULL: there are none for this call.
template <class T>
const stencil_block_kernels<T>* block_kernels(const lockstep_stencil_desc& d, const stencil_kernels_for<T>& kernels) {
  const stencil_block_kernels<T>& blocks = d.rank == 3 ? kernels.star : kernels.plane;
  return d.rank > 1 && blocks.least != 0 && d.radius <= 4 ? &blocks : nullptr;
}

constexpr int most_line_radius = 8;  // of stencil_kernels_for::line

// The kernel that takes one row of results.
template <class T>
stencil_kernel<T> row_kernel(how way, const lockstep_stencil_desc& d, const stencil_kernels_for<T>& kernels) {
  const bool line = d.rank == 1 && d.radius <= most_line_radius && kernels.line != nullptr;
  switch (way) {
    case how::lines: return kernels.line;
    case how::direct: return kernels.direct;
    case how::folded: return kernels.folded;
    case how::passes:
    case how::lanes: return line ? kernels.line : kernels.rows;
    default: return kernels.rows;
  }
}

template <class T>
void run_all(const lockstep_queue& queue, const lockstep_call& call, const stencil_kernels_for<T>& kernels, how way,
             const sweeps_plan& plan) {
  const stencil_tuning& tuned = queue.tuned->stencils;
  const lockstep_stencil_desc& d = call.stencil;
  sweep<T> s{};
  const bool many = way == how::passes || way == how::lanes;  // sweeps of a tile, by the best kernels for it
  s.kernel = row_kernel(way, d, kernels);
  if (way == how::blocks || many) s.blocks = block_kernels(d, kernels);
  if (way == how::lanes) s.lanes = &kernels.lanes;
  s.boundary = d.boundary;
  s.rank = d.rank;
  s.radius = d.radius;
  s.value = static_cast<T>(d.value);
  T coefficients[max_taps];
  for (int k = 0; k < d.coefficient_count; ++k) coefficients[k] = static_cast<T>(d.coefficients[k]);
  s.coefficients = coefficients;
  const bool valid = d.boundary == LOCKSTEP_BOUNDARY_VALID;
  const int64_t elements = array_elements(d);
  s.stream = way != how::direct && 2 * d.batch * elements * static_cast<int64_t>(sizeof(T)) >= tuned.stream_bytes;
  const int passes = passes_of(d, plan);
  const int64_t group = passes > 1 ? group_of(tuned, d) : d.batch;
  T* const buffers[2] = {static_cast<T*>(call.workspace), static_cast<T*>(call.workspace) + group * elements};
  T* const own = static_cast<T*>(call.workspace) + between_bytes(tuned, d, passes) / sizeof(T);
  for (int64_t b = 0; b < d.batch; b += group) {
    s.batch = std::min(group, d.batch - b);
    int64_t shape[3] = {1, 1, 1};
    s.src = {static_cast<const T*>(call.src) + b * d.src_batch_stride};
    s.src.batch_stride = d.src_batch_stride;
    for (int k = 0; k < d.rank; ++k) {
      shape[3 - d.rank + k] = d.shape[k];
      s.src.strides[3 - d.rank + k] = d.src_strides[k];
    }
    for (int pass = 0; pass < passes; ++pass) {
      const auto depth = static_cast<int>(part_begin(d.sweeps, pass + 1, passes) - part_begin(d.sweeps, pass, passes));
      std::copy_n(shape, 3, s.src_shape);
      if (valid)
        for (int k = 3 - d.rank; k < 3; ++k) shape[k] -= int64_t{2} * d.radius * depth;
      std::copy_n(shape, 3, s.dst_shape);
      const int left = passes - 1 - pass;
      if (left == 0 || (!valid && left % 2 == 0)) {
        s.dst = {static_cast<T*>(call.dst) + b * d.dst_batch_stride};
        s.dst.batch_stride = d.dst_batch_stride;
        for (int k = 0; k < d.rank; ++k) s.dst.strides[3 - d.rank + k] = d.dst_strides[k];
      } else {
        s.dst = {buffers[valid ? (left - 1) % 2 : 0]};
        s.dst.batch_stride = shape[0] * shape[1] * shape[2];
        s.dst.strides[0] = shape[1] * shape[2], s.dst.strides[1] = shape[2];
      }
      if (many)
        run_pass(queue, s, plan, depth, own);
      else
        run_sweep(queue, s, way == how::direct ? no_tile(tuned, s) : choose_tile(tuned, s, queue.threads));
      s.src = {s.dst.data};
      s.src.batch_stride = s.dst.batch_stride;
      std::copy_n(s.dst.strides, 3, s.src.strides);
    }
  }
}

void run(const lockstep_queue& queue, const lockstep_call& call, how way, const sweeps_plan& plan) {
  const stencil_kernels& k = stencil_kernels_of(queue.kernels);
  if (call.stencil.dtype == LOCKSTEP_F32)
    run_all<float>(queue, call, k.f32, way, plan);
  else
    run_all<double>(queue, call, k.f64, way, plan);
}

int lanes_of(const lockstep_queue& queue, const lockstep_call& call) {
  const stencil_kernels& k = stencil_kernels_of(queue.kernels);
  return call.stencil.dtype == LOCKSTEP_F32 ? k.f32.lanes.lanes : k.f64.lanes.lanes;
}
sweeps_plan plan_by_lanes(const lockstep_queue& queue, const lockstep_call& call) {
  return plan_lanes(queue, call.stencil, lanes_of(queue, call));
}

template <how Way>
lockstep_status launch(lockstep_queue* queue, const lockstep_call* call) {
  run(*queue, *call, Way,
      Way == how::lanes    ? plan_by_lanes(*queue, *call)
      : Way == how::passes ? plan_sweeps(*queue, call->stencil)
                           : sweeps_plan{});
  return LOCKSTEP_OK;
}

// The least results along z, y and x of a call with a whole block; x 0: there are no blocks for it.
extent least_block(const lockstep_queue& queue, const lockstep_stencil_desc& d) {
  const stencil_kernels& k = stencil_kernels_of(queue.kernels);
  const auto of = [&](const auto* blocks) {
    return blocks == nullptr ? extent{} : extent{1, blocks->deep, blocks->high, blocks->least};
  };
  return d.dtype == LOCKSTEP_F32 ? of(block_kernels(d, k.f32)) : of(block_kernels(d, k.f64));
}
const char* not_by_blocks(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  if (d.rank == 1) return "needs rank 2 or 3";
  if (d.radius > 4) return "needs radius 1 to 4";
  const extent least = least_block(*queue, d);
  if (least.x == 0) return "needs AVX2";
  const int64_t lost = d.boundary == LOCKSTEP_BOUNDARY_VALID ? 2 * int64_t{d.radius} : 0;
  const bool whole = d.shape[d.rank - 1] - lost >= least.x && d.shape[d.rank - 2] - lost >= least.y &&
                     (d.rank == 2 || d.shape[0] - lost >= least.z);
  return whole ? nullptr : "needs results for a whole block of rows";
}
const char* not_by_lines(const lockstep_queue* queue, const lockstep_call* call) {
  if (call->stencil.rank != 1) return "needs rank 1";
  if (call->stencil.radius > most_line_radius) return "needs radius 1 to 8";
  return stencil_kernels_of(queue->kernels).f32.line == nullptr ? "needs AVX-512" : nullptr;
}
const char* not_by_lanes(const lockstep_queue* queue, const lockstep_call* call) {
  if (call->stencil.rank != 1) return "needs rank 1";
  if (call->stencil.radius > 4) return "needs radius 1 to 4";
  return lanes_of(*queue, *call) == 0 ? "needs AVX2" : nullptr;
}
// Short lines consist only of ends, which tiles handle.
int short_lines(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  const int64_t halo = int64_t{d.radius} * plan_by_lanes(*queue, *call).depth;
  return too_little_to_plan(*queue, d) ||
         d.shape[0] < std::max(queue->tuned->stencils.least_line, queue->tuned->stencils.line_halos * halo) *
                          lanes_of(*queue, *call);
}

const char* not_symmetric(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  for (int k = 0; k < d.coefficient_count / 2; ++k)
    if (!(d.coefficients[k] == d.coefficients[d.coefficient_count - 1 - k]))
      return "its coefficients are not symmetric";
  return nullptr;
}

int alone(const lockstep_queue* queue, const lockstep_call* call) {
  return too_little_to_plan(*queue, call->stencil) || plan_sweeps(*queue, call->stencil).depth == 1;
}

size_t lanes_workspace(const lockstep_queue* queue, const lockstep_call* call) {
  return sweeps_bytes(*queue, call->stencil, plan_by_lanes(*queue, *call));
}

const lockstep_variant rows[] = {
    {"sweeps_registers", "2 to 4 sweeps while a line's elements are in registers, one part of the line in each lane", 0,
     not_by_lanes, short_lines, lanes_workspace, launch<how::lanes>},
    {"sweeps_tiles", "many sweeps of a tile while it is in cache, with a halo that is computed twice", 0, nullptr,
     alone, passes_workspace, launch<how::passes>},
    {"row_blocks", "several rows of results at once, so that a row of taps is loaded once for all of them", 0,
     not_by_blocks, nullptr, stencil_workspace, launch<how::blocks>},
    {"lines", "taps slide out of neighbouring registers, because loads that cross cache lines cost two", 0,
     not_by_lines, nullptr, stencil_workspace, launch<how::lines>},
    {"tiled", "2r+1 planes stay in L2, folded ends apart, eight registers of results a tap", 0, nullptr, nullptr,
     stencil_workspace, launch<how::rows>},
    {"folded", "c_k * (x[-k] + x[+k]): half the multiplications, other bits", LOCKSTEP_OWN_ORDER, not_symmetric,
     nullptr, stencil_workspace, launch<how::folded>},
    {"direct", "every tap from memory, one register of results at a time, no tiles: shows the gain by blocking",
     LOCKSTEP_LESSON, nullptr, nullptr, stencil_workspace, launch<how::direct>},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, ref_stencil_workspace,
     ref_stencil},
};
}  // namespace

size_t sweeps_bytes(const lockstep_queue& queue, const lockstep_stencil_desc& d, const sweeps_plan& plan) {
  return between_bytes(queue.tuned->stencils, d, passes_of(d, plan)) +
         static_cast<size_t>(queue.threads * plan.own_elements) * lockstep_dtype_bytes(d.dtype);
}
void run_sweeps(const lockstep_queue& queue, const lockstep_call& call, const sweeps_plan& plan) {
  run(queue, call, plan.columns > 0 ? how::lanes : how::passes, plan);
}

const lockstep_table stencil_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
