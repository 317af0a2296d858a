// direct.cu - `direct`: stencils of arrays that sit in the L2, every tap from memory, without a loop; any rank.
//
// Idea    A few neighbouring outputs of a row a thread at a time (pack), 16 bytes of them where addresses allow it,
//         and all loads of their taps independent of one another: an array that the L2 holds costs a launch and one
//         latency, where tiles and streamed planes wait several times in a row. Taps within the array are constants
//         added to an address. Others fold by two multiplications: the rows of a pack apart from the ends of its own
//         row, so that a warp at the end of a row loads little twice.
// Moves   bytes read + written once through the L2; every tap of a pack once through the L1
// Limit   a launch, then the L1 and instructions: a load a tap of a pack. So large arrays are for the other rows.
// Watch   offsets are 32 bits wide; an axis must be longer than the radius, so that a tap folds once at most.
// Source  this repository; figures in tests/results/tries.md.
#include <algorithm>

#include "../kernel/divide.hpp"
#include "../kernel/element.cuh"
#include "rows.hpp"
#include "sweep.cuh"

namespace lockstep::cuda::stencil {
namespace {

constexpr int block = 256, warp = 32, most_radius = 8;

// Where index i of an axis is beyond it: low + low_times * i, high + high_times * i.
struct folding {
  int32_t n, low, low_times, high, high_times;
};
// The element that stands for index i of an axis, which may be before its first one, or after its last one.
__device__ __forceinline__ int lower(const folding& f, int i) { return i < 0 ? f.low + f.low_times * i : i; }
__device__ __forceinline__ int upper(const folding& f, int i) { return i >= f.n ? f.high + f.high_times * i : i; }
struct direct_job {
  divider x, y, z;  // packs of a row, outputs of an axis
  folding fold[3];
  uint32_t total, share;  // packs, and of a block
  bool constant;          // elements beyond the array are `value`
};

// Neighbouring elements, loaded and stored at once.
template <class T, int V>
struct pack {
  using words = typename element_of<V* static_cast<int>(sizeof(T))>::type;
  T at[V];

  static __device__ __forceinline__ pack load(const T* from) {
    const words w = __ldg(reinterpret_cast<const words*>(from));
    pack p;
    memcpy(&p, &w, sizeof p);
    return p;
  }
  __device__ __forceinline__ void store(T* to) const {
    words w;
    memcpy(&w, this, sizeof w);
    *reinterpret_cast<words*>(to) = w;
  }
};

template <class T, int RANK, int R, int V>
__global__ void __launch_bounds__(block)
    stencil_direct(const __grid_constant__ sweep<T> s, const __grid_constant__ taps<T, 2 * R * RANK + 1> t,
                   const __grid_constant__ direct_job job) {
  using packed = pack<T, V>;
  constexpr int first_axis = 3 - RANK, rows = R * (RANK - 1);
  // A single tap on each side of a row is loaded alone, more by packs.
  constexpr int side = R > 1 ? (R + V - 1) / V * V : R;
  const uint32_t begin = blockIdx.x * job.share;
  const uint32_t end = min(begin + job.share, job.total);
#pragma unroll 1
  for (uint32_t number = begin + threadIdx.x; number < end; number += block) {
    uint32_t rest = number;  // becomes the pack of a row
    uint32_t b = job.x.split(rest), at[3] = {0, 0, rest * V};
    if (RANK > 1) {
      at[1] = b;
      b = job.y.split(at[1]);
    }
    if (RANK > 2) {
      at[0] = b;
      b = job.z.split(at[0]);
    }
    T* const to = s.dst + b * s.dst_batch + at[0] * s.dst_stride[0] + at[1] * s.dst_stride[1] + at[2];
    const int stride[2] = {static_cast<int>(s.src_stride[0]), static_cast<int>(s.src_stride[1])};
    int i[3], row = 0;
    bool inside = true;  // all rows are
#pragma unroll
    for (int a = first_axis; a < 3; ++a) i[a] = static_cast<int>(at[a]) + s.origin;
#pragma unroll
    for (int a = first_axis; a < 2; ++a) {
      row += i[a] * stride[a];
      inside = inside && i[a] >= R && i[a] + R < job.fold[a].n;
    }
    const T* const line = s.src + b * s.src_batch + row;
    const T* const middle = line + i[2];
    // Rows before and after the pack's own, in the order of memory: z-, y- and y+, z+; its own row's elements.
    packed before[rows + 1], after[rows + 1];
    T own[R + V + R];
    follow_on();
    const packed centre = packed::load(middle);
    if (inside) {
#pragma unroll
      for (int a = first_axis; a < 2; ++a)
#pragma unroll
        for (int j = 1; j <= R; ++j) {
          before[(a - first_axis) * R + R - j] = packed::load(middle - j * stride[a]);
          after[(1 - a) * R + j - 1] = packed::load(middle + j * stride[a]);
        }
    } else {
#pragma unroll
      for (int a = first_axis; a < 2; ++a)
#pragma unroll
        for (int j = 1; j <= R; ++j) {
          packed& x = before[(a - first_axis) * R + R - j];
          packed& y = after[(1 - a) * R + j - 1];
          const int low = i[a] - j, high = i[a] + j;
          x = packed::load(middle + (lower(job.fold[a], low) - i[a]) * stride[a]);
          y = packed::load(middle + (upper(job.fold[a], high) - i[a]) * stride[a]);
#pragma unroll
          for (int v = 0; v < V; ++v) {
            if (job.constant && low < 0) x.at[v] = s.value;
            if (job.constant && high >= job.fold[a].n) y.at[v] = s.value;
          }
        }
    }
    const int n = job.fold[2].n;
    if (i[2] >= side && i[2] + V + side <= n) {
      if constexpr (R > 1) {
#pragma unroll
        for (int k = 0; k < side; k += V) {
          const packed x = packed::load(middle - side + k), y = packed::load(middle + V + k);
#pragma unroll
          for (int v = 0; v < V; ++v) {
            if (k + v >= side - R) own[k + v - (side - R)] = x.at[v];
            if (k + v < R) own[R + V + k + v] = y.at[v];
          }
        }
      } else {
#pragma unroll
        for (int k = 0; k < R; ++k) own[k] = __ldg(middle - R + k), own[R + V + k] = __ldg(middle + V + k);
      }
    } else {
#pragma unroll
      for (int k = 0; k < R; ++k) {
        const int low = i[2] - R + k, high = i[2] + V + k;
        const T x = __ldg(line + lower(job.fold[2], low)), y = __ldg(line + upper(job.fold[2], high));
        own[k] = low < 0 && job.constant ? s.value : x;
        own[R + V + k] = high >= n && job.constant ? s.value : y;
      }
    }
    packed out;
#pragma unroll
    for (int v = 0; v < V; ++v) own[R + v] = centre.at[v];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      T acc = T(-0.0);  // fma(c, x, -0.0) is the rounded product
#pragma unroll
      for (int k = 0; k < rows; ++k) acc = fma_rn(t.c[k], before[k].at[v], acc);
#pragma unroll
      for (int k = 0; k <= 2 * R; ++k) acc = fma_rn(t.c[rows + k], own[v + k], acc);
#pragma unroll
      for (int k = 0; k < rows; ++k) acc = fma_rn(t.c[rows + 2 * R + 1 + k], after[k].at[v], acc);
      out.at[v] = canonical(acc);
    }
    out.store(to);
  }
}

folding folding_of(int64_t n, int32_t boundary) {
  const auto all = static_cast<int32_t>(n);
  switch (boundary) {
    case LOCKSTEP_BOUNDARY_MIRROR: return {all, 0, -1, 2 * (all - 1), -1};
    case LOCKSTEP_BOUNDARY_REFLECT: return {all, -1, -1, 2 * all - 1, -1};
    case LOCKSTEP_BOUNDARY_WRAP: return {all, all, 1, -all, 1};
    default: return {all, 0, 0, all - 1, 0};  // NEAREST; CONSTANT, whose element is read and not used
  }
}

template <class T, int RANK, int R, int V>
lockstep_status launch_packs(lockstep_queue& queue, const sweep<T>& s, const taps<T, 2 * R * RANK + 1>& t,
                             int64_t outputs) {
  const auto kernel = stencil_direct<T, RANK, R, V>;
  direct_job job{divider(s.out[2] / V), divider(s.out[1]), divider(s.out[0]), {}, 0, block, false};
  for (int a = 3 - RANK; a < 3; ++a) job.fold[a] = folding_of(s.n[a], s.boundary);
  job.total = static_cast<uint32_t>(outputs / V);
  // No more blocks than the chip holds at once, because starting one takes about as long as a pack of each thread.
  int held = 1;
  if (const lockstep_status status = resident_blocks(queue, kernel, block, 0, &held); status != LOCKSTEP_OK)
    return status;
  const int64_t share = ceil_div(job.total, int64_t{queue.facts->processors} * std::max(held, 1));
  job.share = static_cast<uint32_t>(std::max<int64_t>(ceil_div(share, warp) * warp, block));
  job.constant = s.boundary == LOCKSTEP_BOUNDARY_CONSTANT;
  return launch_early(queue, "stencil_direct", kernel, grid_of(ceil_div(job.total, job.share)), dim3(block), 0, s, t,
                      job);
}

// Whether every row of src and of dst can be cut into packs of V elements.
template <class T>
bool fits_packs(const sweep<T>& s, int V) {
  const auto whole = [&](const T* data, int64_t batch, const int64_t(&stride)[2]) {
    return reinterpret_cast<uintptr_t>(data) % (V * sizeof(T)) == 0 && (s.batch == 1 || batch % V == 0) &&
           stride[0] % V == 0 && stride[1] % V == 0;
  };
  return s.out[2] % V == 0 && s.origin % V == 0 && whole(s.src, s.src_batch, s.src_stride) &&
         whole(s.dst, s.dst_batch, s.dst_stride);
}

template <class T, int RANK, int R>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
  const auto t = rounded<T, 2 * R * RANK + 1>(call.stencil);
  return for_each_sweep<T>(call, [&](const sweep<T>& s) {
    const int64_t outputs = s.batch * s.out[0] * s.out[1] * s.out[2];
    if constexpr (RANK < 3) {
      constexpr int most = 16 / static_cast<int>(sizeof(T));
      if (fits_packs(s, most)) return launch_packs<T, RANK, R, most>(queue, s, t, outputs);
      if constexpr (most > 2)
        if (fits_packs(s, 2)) return launch_packs<T, RANK, R, 2>(queue, s, t, outputs);
    }
    return launch_packs<T, RANK, R, 1>(queue, s, t, outputs);
  });
}

template <class T, int RANK>
lockstep_status by_radius(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.stencil.radius) {
    case 1: return run<T, RANK, 1>(queue, call);
    case 2: return run<T, RANK, 2>(queue, call);
    case 3: return run<T, RANK, 3>(queue, call);
    case 4: return run<T, RANK, 4>(queue, call);
    case 5: return run<T, RANK, 5>(queue, call);
    case 6: return run<T, RANK, 6>(queue, call);
    case 7: return run<T, RANK, 7>(queue, call);
    default: return run<T, RANK, 8>(queue, call);
  }
}
template <class T>
lockstep_status by_rank(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.rank == 1   ? by_radius<T, 1>(queue, call)
         : call.stencil.rank == 2 ? by_radius<T, 2>(queue, call)
                                  : by_radius<T, 3>(queue, call);
}

// Elements from the first to the last of a matrix of a batch.
int64_t span(const lockstep_stencil_desc& d, const int64_t* strides) {
  int64_t all = 1;
  for (int a = 0; a < d.rank; ++a) all += (d.shape[a] - 1) * (a + 1 < d.rank ? strides[a] : 1);
  return all;
}

int64_t outputs(const lockstep_stencil_desc& d) {
  int64_t all = d.batch;
  for (int a = 0; a < d.rank; ++a) all *= d.shape[a];
  return all;
}

}  // namespace

lockstep_status launch_direct(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.dtype == LOCKSTEP_F32 ? by_rank<float>(queue, call) : by_rank<double>(queue, call);
}

const char* small_refuses(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  constexpr int64_t most = int64_t{1} << 30;
  if (d.radius > most_radius) return "is for radius 1 to 8";
  // Between sweeps rows are padded, and grow by less than a line.
  int64_t padded = d.batch;
  for (int a = 0; a < d.rank; ++a)
    if (__builtin_mul_overflow(padded, d.shape[a] + (a + 1 == d.rank ? 32 : 0), &padded) || padded > most)
      return "needs at most 2^30 elements";
  return span(d, d.src_strides) > most || span(d, d.dst_strides) > most ? "needs arrays that span at most 2^30 elements"
                                                                        : nullptr;
}

const char* direct_refuses(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  for (int a = 0; a < d.rank; ++a) {
    const int64_t left =
        d.boundary == LOCKSTEP_BOUNDARY_VALID ? d.shape[a] - 2 * int64_t{d.radius} * (d.sweeps - 1) : d.shape[a];
    if (left <= d.radius) return "needs axes that are longer than the radius";
  }
  return small_refuses(queue, call);
}

// The other rows read such rows an element at a time.
bool ragged_rows(const lockstep_stencil_desc& d) {
  return d.rank > 1 && d.src_strides[d.rank - 2] % (d.dtype == LOCKSTEP_F32 ? 4 : 2) != 0;
}

// Packs of four, if addresses are multiples of 16 bytes.
bool rows_of_packs(const lockstep_stencil_desc& d) {
  const auto whole = [&](const int64_t* strides) { return d.rank == 1 || strides[0] % 4 == 0; };
  return d.dtype == LOCKSTEP_F32 && d.rank < 3 && d.boundary != LOCKSTEP_BOUNDARY_VALID &&
         d.shape[d.rank - 1] % 4 == 0 && whole(d.src_strides) && whole(d.dst_strides);
}

// Larger arrays wait for one pack after another, and for the L1.
int direct_yields(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  const stencil_tuning& tuned = queue->facts->tuned.stencils;
  double work = static_cast<double>(outputs(d)) / queue->facts->processors;
  if (d.rank == 3) return work > tuned.direct_cube;
  if (rows_of_packs(d) || ragged_rows(d)) work /= tuned.direct_further;
  if (d.rank == 1) return work > tuned.direct_line;
  return work * (4 * d.radius + 1 + tuned.direct_output) > tuned.direct_plane;
}

}  // namespace lockstep::cuda::stencil
