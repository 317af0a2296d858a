// marched.cu - `marched`: 3-D stencils of any shape, taps from the L1, without shared memory.
//
// Idea    A thread keeps its place in the plane, two rows of it for radius 1 to 4, and walks along the outermost axis.
//         Of each plane it loads its own elements, which add a tap to the 2r + 1 outputs whose partial sums wait in
//         registers, and the taps within the plane, which the L1 has for its neighbours too. Where a tap lies is worked
//         out once per walk: an edge that folds is an offset like any other, no row needs an alignment, and lanes go on
//         from one row to the next.
// Moves   bytes written once, read once and (walk + 2r) / walk times from the L2; 3r + 1 loads per output of two rows,
//         4r + 1 of one
// Limit   the L1: a load of 32 lanes that begins anywhere in a line takes two of its cycles. Large arrays whose planes
//         fill the tiles of `streamed` are faster there.
// Watch   partial sums need compile-time indices; a walk's first and last r planes have no taps in the plane, and all
//         their loads are under way at once
// Source  this repository; figures in tests/results/tries.md.
#include <algorithm>
#include <limits>

#include "../kernel/divide.hpp"
#include "rows.hpp"
#include "sweep.cuh"

namespace lockstep::cuda::stencil {
namespace {

constexpr int block = 128;

struct marched_job {
  divider x, groups, walks;  // of a row; groups of rows of a plane; of the outermost axis
  uint32_t total, walk;      // threads that have work; planes of a walk
};

// Rows of a thread, which share the taps between them.
template <int R>
constexpr int rows_of = R <= 4 ? 2 : 1;
// Blocks per SM, as registers allow.
template <class T, int R>
constexpr int resident = sizeof(T) == 4 ? (R <= 2   ? 8
                                           : R <= 4 ? 5
                                                    : 4)
                                        : (R <= 1   ? 8
                                           : R == 2 ? 6
                                           : R == 3 ? 4
                                           : R <= 6 ? 3
                                                    : 2);

template <class T, int R>
__global__ void __launch_bounds__(block, resident<T, R>)
    stencil_marched(const __grid_constant__ sweep<T> s, const __grid_constant__ taps<T, 6 * R + 1> t,
                    const __grid_constant__ marched_job job) {
  constexpr int rows = rows_of<R>;
  const uint32_t number = blockIdx.x * block + threadIdx.x;
  if (number >= job.total) return;
  uint32_t at_x = number;
  uint32_t at_y = job.x.split(at_x);
  uint32_t at_z = job.groups.split(at_y);
  const uint32_t b = job.walks.split(at_z);
  const auto along_z = [&](int k) { return t.c[k < R ? k : k + 4 * R]; };
  const auto along_y = [&](int k) { return t.c[k < R ? R + k : 3 * R + k]; };
  const auto along_x = [&](int k) { return t.c[2 * R + k]; };

  // Where taps lie in a plane, counted from its first element; bits of those that CONSTANT puts a value in place of.
  int32_t in_row[2 * R], row[rows + 2 * R];
  uint32_t beyond_x = 0, beyond_y = 0;
  const auto place = [&](int64_t i, int64_t n, uint32_t bit, uint32_t& beyond) {
    const int64_t j = source_index(i, n, s.boundary);
    if (j < 0) beyond |= bit;
    return static_cast<int32_t>(j < 0 ? 0 : j);
  };
  const auto x = static_cast<int32_t>(at_x) + s.origin;
#pragma unroll
  for (int k = 0; k < 2 * R; ++k) in_row[k] = place(x + (k < R ? k - R : k - R + 1), s.n[2], 1u << k, beyond_x) - x;
  const int64_t y = int64_t{at_y} * rows + s.origin;
#pragma unroll
  for (int k = 0; k < rows + 2 * R; ++k)
    row[k] =
        x + place(min(y + k - R, s.n[1] - 1 + R), s.n[1], 1u << k, beyond_y) * static_cast<int32_t>(s.src_stride[1]);
  const bool constant = s.boundary == LOCKSTEP_BOUNDARY_CONSTANT;
  const int64_t begin = int64_t{at_z} * job.walk;
  const int count = static_cast<int>(min(int64_t{job.walk}, s.out[0] - begin));
  const bool both = rows == 2 && y - s.origin + 1 < s.out[1];
  const T* const src = s.src + b * s.src_batch;
  T* to = s.dst + b * s.dst_batch + begin * s.dst_stride[0] + (y - s.origin) * s.dst_stride[1] + at_x;

  // The plane of a step, or nullptr beyond the array under CONSTANT.
  const auto plane_of = [&](int step) -> const T* {
    const int64_t z = source_index(begin + s.origin - R + step, s.n[0], s.boundary);
    return z < 0 ? nullptr : src + z * s.src_stride[0];
  };
  const auto own_of = [&](const T* plane, int r) { return plane == nullptr ? s.value : __ldg(plane + row[R + r]); };

  T part[2 * R][rows];  // part[k]: the sum over taps 0 ... k of the output k + 1 planes ahead of its end
  const auto finish = [&](const T(&own)[rows]) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const T out = canonical(fma_rn(along_z(2 * R), own[r], part[2 * R - 1][r]));
      if (r == 0 || both) to[r * s.dst_stride[1]] = out;
    }
    to += s.dst_stride[0];
  };
  const auto after = [&](const T(&own)[rows]) {  // taps behind an output's own plane
#pragma unroll
    for (int k = 2 * R - 1; k > R; --k)
#pragma unroll
      for (int r = 0; r < rows; ++r) part[k][r] = fma_rn(along_z(k), own[r], part[k - 1][r]);
  };
  const auto before = [&](const T(&own)[rows]) {  // and before it; fma(c, x, -0.0) is the rounded product
#pragma unroll
    for (int k = R - 1; k >= 0; --k)
#pragma unroll
      for (int r = 0; r < rows; ++r)
        part[k][r] = fma_rn(along_z(k), own[r], k == 0 ? T(-0.0) : part[k == 0 ? 0 : k - 1][r]);
  };

  // What a step loads of an output's own plane: there is one. For radius 1 and F32 a step's loads are under way while
  // the one before adds; more registers would leave fewer threads.
  struct plane_taps {
    T own[rows], far[2 * R], line[rows][2 * R];
  };
  const auto taps_of = [&](int step) {
    const T* const plane = plane_of(step);
    plane_taps p;
#pragma unroll
    for (int r = 0; r < rows; ++r) p.own[r] = __ldg(plane + row[R + r]);
#pragma unroll
    for (int k = 0; k < 2 * R; ++k) p.far[k] = __ldg(plane + row[k < R ? k : k + rows]);
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int k = 0; k < 2 * R; ++k) p.line[r][k] = __ldg(plane + row[R + r] + in_row[k]);
    return p;
  };
  constexpr bool early = R == 1 && sizeof(T) == 4;
  plane_taps next;

  follow_on();
  if (early) next = taps_of(R);
  T ends[R][rows];
#pragma unroll
  for (int step = 0; step < R; ++step) {
    const T* const plane = plane_of(step);
#pragma unroll
    for (int r = 0; r < rows; ++r) ends[step][r] = own_of(plane, r);
  }
#pragma unroll
  for (int step = 0; step < R; ++step) before(ends[step]);

#pragma unroll 1
  for (int step = R; step < R + count; ++step) {
    plane_taps now;
    if constexpr (early) {
      now = next;
      next = taps_of(min(step + 1, R + count - 1));
    } else {
      now = taps_of(step);
    }
    auto& own = now.own;
    auto& far = now.far;
    auto& line = now.line;
    if (constant) {
#pragma unroll
      for (int k = 0; k < 2 * R; ++k)
        if ((beyond_y >> (k < R ? k : k + rows) & 1) != 0) far[k] = s.value;
#pragma unroll
      for (int k = 0; k < 2 * R; ++k)
        if ((beyond_x >> k & 1) != 0)
#pragma unroll
          for (int r = 0; r < rows; ++r) line[r][k] = s.value;
      // The row beyond a plane's last is a tap of the last.
      if (rows == 2 && (beyond_y >> (R + 1) & 1) != 0) own[rows - 1] = s.value;
    }
    if (step >= 2 * R) finish(own);
    after(own);
    T acc[rows];
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      acc[r] = part[R - 1][r];
      const auto in_column = [&](int k) { return k < R ? far[k] : k < R + rows ? own[k - R] : far[k - rows]; };
#pragma unroll
      for (int k = 0; k < R; ++k) acc[r] = fma_rn(along_y(k), in_column(r + k), acc[r]);
#pragma unroll
      for (int k = 0; k < R; ++k) acc[r] = fma_rn(along_x(k), line[r][k], acc[r]);
      acc[r] = fma_rn(along_x(R), own[r], acc[r]);
#pragma unroll
      for (int k = R; k < 2 * R; ++k) acc[r] = fma_rn(along_x(k + 1), line[r][k], acc[r]);
#pragma unroll
      for (int k = R + 1; k <= 2 * R; ++k) acc[r] = fma_rn(along_y(k), in_column(r + k), acc[r]);
    }
#pragma unroll
    for (int r = 0; r < rows; ++r) part[R][r] = acc[r];
    before(own);
  }

#pragma unroll
  for (int step = 0; step < R; ++step) {
    const T* const plane = plane_of(R + count + step);
#pragma unroll
    for (int r = 0; r < rows; ++r) ends[step][r] = own_of(plane, r);
  }
#pragma unroll
  for (int step = 0; step < R; ++step) {
    if (R + count + step >= 2 * R) finish(ends[step]);
    after(ends[step]);
  }
}

// Planes of a walk: few where threads are wanted, many where its ends would be most of it.
int64_t best_walk(int64_t planes, int64_t blocks, int64_t slots, double ends) {
  int64_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t walk = 1; walk <= planes; walk += std::max<int64_t>(walk / 4, 1)) {
    const int64_t walks = ceil_div(planes, walk);
    const double cost = static_cast<double>(ceil_div(blocks * walks, slots)) * (static_cast<double>(walk) + ends);
    if (cost < least) least = cost, best = ceil_div(planes, walks);
  }
  return best;
}

template <class T, int R>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
  constexpr int rows = rows_of<R>;
  const auto t = rounded<T, 6 * R + 1>(call.stencil);
  const auto kernel = stencil_marched<T, R>;
  int held = 1;
  if (const lockstep_status status = resident_blocks(queue, kernel, block, 0, &held); status != LOCKSTEP_OK)
    return status;
  return for_each_sweep<T>(call, [&](const sweep<T>& s) {
    const int64_t groups = ceil_div(s.out[1], rows), places = s.batch * groups * s.out[2];
    const int64_t slots = int64_t{queue.facts->processors} * std::max(held, 1);
    const int64_t walk =
        best_walk(s.out[0], ceil_div(places, block), slots, queue.facts->tuned.stencils.marched_ends * 2 * R);
    const int64_t walks = ceil_div(s.out[0], walk);
    const marched_job job{divider(s.out[2]), divider(groups), divider(walks), static_cast<uint32_t>(places * walks),
                          static_cast<uint32_t>(walk)};
    return launch_soon(queue, "stencil_marched", kernel, grid_of(ceil_div(places * walks, block)), dim3(block), 0, s, t,
                       job);
  });
}

template <class T>
lockstep_status by_radius(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.stencil.radius) {
    case 1: return run<T, 1>(queue, call);
    case 2: return run<T, 2>(queue, call);
    case 3: return run<T, 3>(queue, call);
    case 4: return run<T, 4>(queue, call);
    case 5: return run<T, 5>(queue, call);
    case 6: return run<T, 6>(queue, call);
    case 7: return run<T, 7>(queue, call);
    default: return run<T, 8>(queue, call);
  }
}

}  // namespace

lockstep_status launch_marched(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.dtype == LOCKSTEP_F32 ? by_radius<float>(queue, call) : by_radius<double>(queue, call);
}

const char* marched_refuses(const lockstep_queue* queue, const lockstep_call* call) {
  return call->stencil.rank == 3 ? small_refuses(queue, call) : "is for rank 3";
}

int marched_yields(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  const stencil_tuning& tuned = queue->facts->tuned.stencils;
  double outputs = static_cast<double>(d.batch);
  for (int a = 0; a < d.rank; ++a) outputs *= static_cast<double>(d.shape[a]);
  return tuned.marched_start + outputs / 1e6 * (tuned.marched_million + tuned.marched_radius * d.radius) *
                                   (d.dtype == LOCKSTEP_F64 ? tuned.marched_of_8 : 1) * measured_processors /
                                   queue->facts->processors >
         streamed_cost(*queue, d);
}

}  // namespace lockstep::cuda::stencil
