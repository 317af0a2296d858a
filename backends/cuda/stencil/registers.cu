// registers.cu - row sweeps_registers: many sweeps of a line in one pass over memory; rank 1, radius 1 to 4.
// Idea    a warp holds a stretch of the line, 16 or 32 consecutive points per lane, in registers and applies one sweep
//         after the other; a sweep needs r points from either neighbour, by shuffles. What lies near the stretch's
//         ends goes stale by r points per sweep, so neighbouring stretches overlap by 2 r times the sweeps.
// Moves   each element in once and out once per pass, and the overlap once more; 2r + 1 fma per point and sweep
// Limit   fused multiply-adds, and device memory where there are few sweeps
// Watch   a boundary folds in every sweep, not once before the first: blocks at a line's ends sweep in shared memory,
//         where they can. WRAP continues the line with the same chain of operations and VALID ends it.
// Source  order.hpp; Zhang et al., EBISU, ICS 2023: deep temporal blocking with the state in registers
#include "../index/sweeps.hpp"
#include "rows.hpp"
#include "sweep.cuh"

namespace lockstep::cuda::stencil {
namespace {

constexpr int warps = 4, block = 32 * warps;

template <class T>
constexpr int points = 128 / static_cast<int>(sizeof(T));  // of a lane: 128 bytes
template <class T>
constexpr int stretch = 32 * points<T>;
// A lane's points in shared memory, so that 8 lanes' vectors of 16 bytes lie in different banks.
template <class T>
constexpr int pitch = points<T> + 16 / static_cast<int>(sizeof(T));

__device__ __forceinline__ void load_points(const float* p, float (&x)[32]) {
#pragma unroll
  for (int k = 0; k < 32; k += 4) {
    const float4 v = *reinterpret_cast<const float4*>(p + k);
    x[k] = v.x, x[k + 1] = v.y, x[k + 2] = v.z, x[k + 3] = v.w;
  }
}
__device__ __forceinline__ void load_points(const double* p, double (&x)[16]) {
#pragma unroll
  for (int k = 0; k < 16; k += 2) {
    const double2 v = *reinterpret_cast<const double2*>(p + k);
    x[k] = v.x, x[k + 1] = v.y;
  }
}
__device__ __forceinline__ void store_points(float* p, const float (&x)[32]) {
#pragma unroll
  for (int k = 0; k < 32; k += 4) *reinterpret_cast<float4*>(p + k) = make_float4(x[k], x[k + 1], x[k + 2], x[k + 3]);
}
__device__ __forceinline__ void store_points(double* p, const double (&x)[16]) {
#pragma unroll
  for (int k = 0; k < 16; k += 2) *reinterpret_cast<double2*>(p + k) = make_double2(x[k], x[k + 1]);
}

// One sweep of a lane's points.
template <int R, class T, int P>
__device__ __forceinline__ void sweep_points(T (&x)[P], const taps<T, 2 * R + 1>& t) {
  T w[P + 2 * R];
#pragma unroll
  for (int k = 0; k < R; ++k) {
    w[k] = __shfl_up_sync(~0u, x[P - R + k], 1);
    w[R + P + k] = __shfl_down_sync(~0u, x[k], 1);
  }
#pragma unroll
  for (int i = 0; i < P; ++i) w[R + i] = x[i];
#pragma unroll
  for (int i = 0; i < P; ++i) {
    T acc = mul_rn(t.c[0], w[i]);
#pragma unroll
    for (int k = 1; k < 2 * R + 1; ++k) acc = fma_rn(t.c[k], w[i + k], acc);
    x[i] = acc;
  }
}

// A stretch: [begin, begin + stretch) of the line in registers, results from begin + halo on.
template <class T, int R>
__device__ __forceinline__ void sweep_stretch(const sweep<T>& s, const taps<T, 2 * R + 1>& t, const cut_line& cut,
                                              int64_t row, int64_t number, T* shared) {
  constexpr int P = points<T>, N = stretch<T>, pad = pitch<T>;
  const int lane = threadIdx.x % 32;
  const int64_t n = s.n[2], begin = stretch_begin(cut, number, N);
  const T* const from = s.src + row * s.src_batch;
  T x[P];
  if (begin >= 0 && begin + N <= n) {
#pragma unroll
    for (int k = 0; k < P; ++k) x[k] = __ldg(from + begin + k * 32 + lane);
  } else {
#pragma unroll
    for (int k = 0; k < P; ++k) {
      int64_t at = begin + k * 32 + lane;
      if (s.boundary == LOCKSTEP_BOUNDARY_WRAP) {
        at %= n;
        if (at < 0) at += n;
      }
      x[k] = at >= 0 && at < n ? __ldg(from + at) : T(0);
    }
  }
  // From one element per lane to one stretch of points per lane.
#pragma unroll
  for (int k = 0; k < P; ++k) {
    const int e = k * 32 + lane;
    shared[e / P * pad + e % P] = x[k];
  }
  __syncwarp();  // a lane reads what the others have written
  load_points(shared + lane * pad, x);
#pragma unroll 1
  for (int k = 0; k < cut.depth; ++k) sweep_points<R>(x, t);
#pragma unroll
  for (int k = 0; k < P; ++k) x[k] = canonical(x[k]);
  // A lane writes to where it alone has read: no barrier before.
  store_points(shared + lane * pad, x);
  __syncwarp();  // and back
  const int64_t last = stretch_last(cut, begin, N);
  T* const to = s.dst + row * s.dst_batch + (begin - s.origin);
#pragma unroll
  for (int k = 0; k < P; ++k) {
    const int e = k * 32 + lane;
    if (e >= cut.halo && e < last) to[e] = shared[e / P * pad + e % P];
  }
  __syncwarp();  // the next stretch overwrites what is read here
}

// Results [first, last) of a line, at one of its ends or all of it, in shared memory. Beyond an end of the line lie R
// elements that are filled anew for each sweep, as the boundary says.
template <class T, int R>
__device__ void sweep_end(const sweep<T>& s, const taps<T, 2 * R + 1>& t, const cut_line& cut, int64_t row,
                          int64_t first, int64_t last, T* shared, int room) {
  const int64_t n = s.n[2], reach = int64_t{R} * cut.depth;
  const int64_t low = first > reach ? first - reach : 0, high = last + reach < n ? last + reach : n;
  const int size = static_cast<int>(high - low), results = static_cast<int>(first - low);
  const T* const from = s.src + row * s.src_batch + low;
  T *now = shared + R, *next = now + room;  // element i of the line is now[i - low]
  for (int i = threadIdx.x; i < size; i += block) now[i] = __ldg(from + i);
  // A thread fills the same place for every sweep.
  const int before = static_cast<int>(threadIdx.x) - R;  // -R ... -1: before the line; 0 ... R - 1: behind it
  const bool fills = before < R && (before < 0 ? low == 0 : high == n);
  const int place = before < 0 ? before : size + before;
  const auto filled_from = [&](int32_t boundary) {
    const int64_t at = source_index(low + place, n, boundary);
    return at < 0 ? -R - 1 : static_cast<int>(at - low);
  };
  int source = fills ? filled_from(s.boundary) : 0;
  for (int k = 1; k <= cut.depth; ++k) {
    __syncthreads();  // all of a sweep is there before it is folded
    if (fills) now[place] = source < -R ? s.value : now[source];
    __syncthreads();  // and folded before the next one reads it
    const int left = R * (cut.depth - k);
    const int a = low == 0 ? (results > left ? results - left : 0) : R * k;
    const int b = high == n ? size : size - R * k;
    for (int i = a + static_cast<int>(threadIdx.x); i < b; i += block) {
      T acc = mul_rn(t.c[0], now[i - R]);
#pragma unroll
      for (int j = 1; j < 2 * R + 1; ++j) acc = fma_rn(t.c[j], now[i - R + j], acc);
      next[i] = acc;
    }
    T* const swap = now;
    now = next;
    next = swap;
  }
  __syncthreads();  // the last sweep's results, by whichever thread
  T* const to = s.dst + row * s.dst_batch + low;
  for (int i = results + static_cast<int>(threadIdx.x); i < results + static_cast<int>(last - first); i += block)
    to[i] = canonical(now[i]);
  __syncthreads();  // the next block of work overwrites them
}

template <class T, int R>
__global__ void __launch_bounds__(block)
    stencil_registers(const __grid_constant__ sweep<T> s, const __grid_constant__ taps<T, 2 * R + 1> t,
                      const __grid_constant__ cut_line cut) {
  constexpr int room = 32 * pitch<T>;  // elements of a warp's stretch
  __shared__ alignas(16) T shared[warps * room];
  // The ends take longest and come first.
  const int64_t ends = cut.ends * s.batch, all = cut.stretches * s.batch;
  const int64_t total = ends + (all + warps - 1) / warps;
  follow_on();
  for (int64_t id = blockIdx.x; id < total; id += gridDim.x) {
    if (id < ends) {
      int64_t which = 0;
      const int64_t row = cut.ends == 1 ? id : divide(id, cut.ends, which);
      const int64_t n = s.n[2];
      sweep_end<T, R>(s, t, cut, row, which == 0 ? 0 : n - cut.tail, which == 0 ? cut.head : n, shared,
                      warps * room / 2);
    } else {
      const int64_t number = (id - ends) * warps + threadIdx.x / 32;
      if (number < all) {
        int64_t within = number;
        const int64_t row = s.batch == 1 ? 0 : divide(number, cut.stretches, within);
        sweep_stretch<T, R>(s, t, cut, row, within, shared + threadIdx.x / 32 * room);
      }
    }
    // A block goes on to another kind of work only from ends to stretches, after sweep_end's last barrier.
  }
}

// Results of a line start on whole sectors where its stretches do.
template <class T>
int32_t halo_of(int radius, int32_t depth) {
  return static_cast<int32_t>(round_up(int64_t{radius} * depth, 64 / sizeof(T)));
}

// The depth of least cost: passes over memory, and the points that are computed twice.
template <class T>
int32_t depth_for(const lockstep_queue& queue, const lockstep_stencil_desc& d) {
  const stencil_tuning& tuned = queue.facts->tuned.stencils;
  int32_t best = 1;
  double least = 0;
  for (int32_t passes = 1; passes <= d.sweeps; ++passes) {
    const int32_t depth = (d.sweeps - 1) / passes + 1;
    if (depth > tuned.registers_depth || 4 * halo_of<T>(d.radius, depth) > stretch<T>) continue;
    if (passes > 1 && (d.sweeps - 1) / (passes - 1) + 1 == depth) continue;
    const double twice = static_cast<double>(stretch<T>) / (stretch<T> - 2 * halo_of<T>(d.radius, depth));
    const double cost =
        passes * tuned.registers_copy + d.sweeps * (2 * d.radius + 1 + tuned.registers_shuffles) * twice;
    if (least == 0 || cost < least) least = cost, best = depth;
    if (depth == 1) break;
  }
  return best;
}
int32_t depth_of(const lockstep_queue& queue, const lockstep_stencil_desc& d) {
  return d.dtype == LOCKSTEP_F32 ? depth_for<float>(queue, d) : depth_for<double>(queue, d);
}

template <class T, int R>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
  taps<T, 2 * R + 1> t;
  for (int k = 0; k < 2 * R + 1; ++k) t.c[k] = static_cast<T>(call.stencil.coefficients[k]);
  return for_each_pass<T>(call, depth_for<T>(queue, call.stencil), [&](const sweep<T>& s, int32_t depth) {
    const cut_line c =
        cut_sweeps(s.n[2], s.boundary, s.radius, depth, halo_of<T>(s.radius, depth), stretch<T>, 128 / sizeof(T));
    const int64_t blocks = c.ends * s.batch + ceil_div(c.stretches * s.batch, warps);
    return launch_soon(queue, "stencil_registers", stencil_registers<T, R>, grid_of(blocks), block, 0, s, t, c);
  });
}
template <class T>
lockstep_status by_radius(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.stencil.radius) {
    case 1: return run<T, 1>(queue, call);
    case 2: return run<T, 2>(queue, call);
    case 3: return run<T, 3>(queue, call);
    default: return run<T, 4>(queue, call);
  }
}

}  // namespace

const char* registers_refuses(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  return d.rank == 1 && d.radius >= 1 && d.radius <= 4 && d.sweeps > 1
             ? nullptr
             : "is for two or more sweeps of rank 1 and radius 1 to 4";
}

int registers_yields(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  const stencil_tuning& tuned = queue->facts->tuned.stencils;
  if (d.boundary == LOCKSTEP_BOUNDARY_VALID || d.boundary == LOCKSTEP_BOUNDARY_WRAP)
    return d.batch > 1 && d.shape[0] < tuned.registers_line;
  const int64_t reach = int64_t{d.radius} * depth_of(*queue, d);
  return d.batch > tuned.registers_lines && d.shape[0] < tuned.registers_reaches * reach;
}

size_t registers_workspace(const lockstep_queue* queue, const lockstep_call* call) {
  const buffers b = needed(call->stencil, depth_of(*queue, call->stencil));
  return b.bytes[0] + b.bytes[1];
}

lockstep_status launch_registers(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.dtype == LOCKSTEP_F32 ? by_radius<float>(queue, call) : by_radius<double>(queue, call);
}

}  // namespace lockstep::cuda::stencil
