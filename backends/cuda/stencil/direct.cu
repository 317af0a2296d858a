// direct.cu - `direct`: stencils of arrays that sit in the L2, every tap from memory, without a loop; any rank.
//
// Idea    An output a thread at a time, and all loads of its taps independent of one another: an array that the L2
// holds costs
//         a launch and one latency, where tiles and streamed planes wait several times in a row. Threads whose taps
//         all lie in the array add constants to an address; the others fold, by two multiplications a tap in place of
//         a branch for each boundary.
// Moves   bytes read + written once through the L2; every tap once through the L1
// Limit   a launch, then the L1: a load a tap. So large arrays are for the other rows.
// Watch   offsets are 32 bits wide; an axis must be longer than the radius, so that a tap folds once at most.
// Source  this repository; figures in tests/results/tries.md.
#include "../kernel/divide.hpp"
#include "rows.hpp"
#include "sweep.cuh"

namespace lockstep::cuda::stencil {
namespace {

constexpr int block = 256, most_radius = 8;

// Where index i of an axis is beyond it: low + low_times * i, high + high_times * i.
struct folding {
  int32_t n, low, low_times, high, high_times;
};
struct direct_job {
  divider x, y, z;  // outputs of an axis
  folding fold[3];
  uint32_t total, each;  // outputs, and of a thread
  bool constant;         // elements beyond the array are `value`
};

template <class T, int RANK, int R>
__global__ void __launch_bounds__(block)
    stencil_direct(const __grid_constant__ sweep<T> s, const __grid_constant__ taps<T, 2 * R * RANK + 1> t,
                   const __grid_constant__ direct_job job) {
  const uint32_t begin = blockIdx.x * job.each * block + threadIdx.x;
  const uint32_t end = min(begin + job.each * block, job.total);
#pragma unroll 1
  for (uint32_t number = begin; number < end; number += block) {
    uint32_t rest = number;  // becomes x
    uint32_t b = job.x.split(rest), at[3] = {0, 0, rest};
    if (RANK > 1) {
      at[1] = b;
      b = job.y.split(at[1]);
    }
    if (RANK > 2) {
      at[0] = b;
      b = job.z.split(at[0]);
    }
    T* const to = s.dst + b * s.dst_batch + at[0] * s.dst_stride[0] + at[1] * s.dst_stride[1] + at[2];
    const T* const src = s.src + b * s.src_batch;
    const int stride[3] = {static_cast<int>(s.src_stride[0]), static_cast<int>(s.src_stride[1]), 1};
    int i[3], centre = 0;
    bool inside = true;
#pragma unroll
    for (int a = 3 - RANK; a < 3; ++a) {
      i[a] = static_cast<int>(at[a]) + s.origin;
      centre += i[a] * stride[a];
      inside = inside && i[a] >= R && i[a] + R < job.fold[a].n;
    }
    const T* const middle = src + centre;
    // Before and after the centre, in the order of memory: z-, y-, x- and x+, y+, z+.
    constexpr int arms = R * RANK;
    T before[arms], after[arms], own;
    follow_on();
    own = __ldg(middle);
    if (inside) {
#pragma unroll
      for (int a = 3 - RANK; a < 3; ++a)
#pragma unroll
        for (int j = 1; j <= R; ++j) {
          before[(a - (3 - RANK)) * R + R - j] = __ldg(middle - j * stride[a]);
          after[(2 - a) * R + j - 1] = __ldg(middle + j * stride[a]);
        }
    } else {
#pragma unroll
      for (int a = 3 - RANK; a < 3; ++a) {
        const folding f = job.fold[a];
        const T* const line = middle - i[a] * stride[a];
#pragma unroll
        for (int j = 1; j <= R; ++j) {
          const int low = i[a] - j, high = i[a] + j;
          const bool first = low < 0, last = high >= f.n;
          const int beyond = f.high + f.high_times * high;
          const T x = __ldg(line + (first ? f.low + f.low_times * low : low) * stride[a]);
          const T y = __ldg(line + (last ? beyond : high) * stride[a]);
          before[(a - (3 - RANK)) * R + R - j] = first && job.constant ? s.value : x;
          after[(2 - a) * R + j - 1] = last && job.constant ? s.value : y;
        }
      }
    }
    T acc = T(-0.0);  // fma(c, x, -0.0) is the rounded product
#pragma unroll
    for (int k = 0; k < arms; ++k) acc = fma_rn(t.c[k], before[k], acc);
    acc = fma_rn(t.c[arms], own, acc);
#pragma unroll
    for (int k = 0; k < arms; ++k) acc = fma_rn(t.c[arms + 1 + k], after[k], acc);
    *to = canonical(acc);
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

template <class T, int RANK, int R>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
  const auto t = rounded<T, 2 * R * RANK + 1>(call.stencil);
  return for_each_sweep<T>(call, [&](const sweep<T>& s) {
    direct_job job{divider(s.out[2]), divider(s.out[1]), divider(s.out[0]), {}, 0, 1, false};
    for (int a = 3 - RANK; a < 3; ++a) job.fold[a] = folding_of(s.n[a], s.boundary);
    job.total = static_cast<uint32_t>(s.batch * s.out[0] * s.out[1] * s.out[2]);
    // As many blocks as the chip holds at once, as a rule: starting one takes about as long as an output of each
    // thread.
    const int64_t blocks = (int64_t{job.total} - 1) / block + 1;
    const int64_t held = queue.facts->processors * int64_t{queue.facts->resident_threads / block};
    job.each = static_cast<uint32_t>(ceil_div(blocks, held));
    job.constant = s.boundary == LOCKSTEP_BOUNDARY_CONSTANT;
    return launch_early(queue, "stencil_direct", stencil_direct<T, RANK, R>, grid_of(ceil_div(blocks, job.each)),
                        dim3(block), 0, s, t, job);
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

// Larger arrays wait for one output after another, and for the L1.
int direct_yields(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  const stencil_tuning& tuned = queue->facts->tuned.stencils;
  double work = static_cast<double>(outputs(d)) / queue->facts->processors;
  if (d.rank == 1) return work > tuned.direct_line;
  if (d.rank == 3) return work > tuned.direct_cube;
  work *= 4 * d.radius + 1 + tuned.direct_output;
  return work > tuned.direct_plane * (ragged_rows(d) ? tuned.direct_ragged : 1);
}

}  // namespace lockstep::cuda::stencil
