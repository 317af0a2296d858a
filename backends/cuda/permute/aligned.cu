// aligned.cu - boxes over any axes, whatever the alignment of their rows.
//
// Idea    A box comes in and leaves by aligned chunks of 16 bytes, although its rows begin
//         anywhere: shared memory holds an image of its rows of src and one of its rows of
//         dst in which every byte lies where its address lies, modulo 16 (the pitches are
//         congruent to the strides). Between the images the elements move one by one; which
//         ones a thread moves is one offset of its own plus one a step, the same for all
//         threads, so that nothing is divided and nothing asked within a box. The next box
//         is on its way while this one leaves.
// Moves   every element once in, once out, and twice through shared memory.
// Limit   DRAM from 4 bytes up; below, the 2 accesses of shared memory an element.
// Watch   A sector of dst that two blocks write costs each of them several writes, by halves:
//         boxes overlap so that each writes whole sectors, where that is cheaper. In boxes that
//         an axis cuts short, elements beyond it are moved between the images like the others
//         (they are there, of any value), but runs of dst end before them. Where no box can be
//         shared out (1 of 189,148 random shapes) a gather moves it all.
// Source  this repository; figures in tests/results/tries.md.
#include "../device/queue.hpp"
#include "../kernel/chunk.cuh"
#include "../kernel/element.cuh"
#include "../kernel/mutant.cuh"
#include "../moves/moves.hpp"
#include "aligned.hpp"

namespace lockstep::cuda {
namespace {

// A run of a box, relative to where the box begins.
struct run_at {
  int64_t memory;
  uint32_t place;
};

__device__ inline run_at run_of(const run_side& side, uint32_t number) {
  run_at r{0, 0};
  for (int k = 0; k < side.axes; ++k) {
    uint32_t index = number;
    number = side.at[k].count.split(index);
    r.memory += index * side.at[k].memory;
    r.place += index * side.at[k].place;
  }
  return r;
}

// cut: the axes, as bits, along which the box is shorter. Whether it has that run.
__device__ inline bool exists(const aligned_plan& plan, const run_side& side, uint32_t number, unsigned cut) {
  for (int k = 0; k < side.axes; ++k) {
    uint32_t index = number;
    number = side.at[k].count.split(index);
    if ((cut >> side.at[k].tile & 1) != 0 && index >= plan.tile[side.at[k].tile].last) return false;
  }
  return true;
}

// Bytes [first, last) of a chunk, in pieces as large as their alignment.
template <int bytes>
__device__ inline void store_part(unsigned char* to, const unsigned char* image, int first, int last) {
  const auto piece = [&](auto value) {
    using P = decltype(value);
    *reinterpret_cast<P*>(to + first) = *reinterpret_cast<const P*>(image + first);
    first += static_cast<int>(sizeof(P));
  };
  if constexpr (bytes <= 1)
    if ((first & 1) != 0 && first + 1 <= last) piece(uint8_t{});
  if constexpr (bytes <= 2)
    if ((first & 2) != 0 && first + 2 <= last) piece(uint16_t{});
  if constexpr (bytes <= 4)
    if ((first & 4) != 0 && first + 4 <= last) piece(uint32_t{});
  if (first + 8 <= last) piece(uint2{});
  if constexpr (bytes <= 4)
    if (first + 4 <= last) piece(uint32_t{});
  if constexpr (bytes <= 2)
    if (first + 2 <= last) piece(uint16_t{});
  if constexpr (bytes <= 1)
    if (first + 1 <= last) piece(uint8_t{});
}

// body(run, this thread's first chunk of it in bytes, bytes from one to the next)
template <class Body>
__device__ inline void walk_runs(const aligned_plan& plan, const run_side& side, const run_at* runs, unsigned cut,
                                 const Body& body) {
  uint32_t lane = threadIdx.x;
  const uint32_t group = side.lanes.split(lane);
  if (group >= side.groups) return;
  for (uint32_t run = group; run < side.runs; run += side.groups)
    if (cut == 0 || exists(plan, side, run, cut)) body(runs[run], lane * 16, side.lanes.d * 16);
}
__device__ inline uint32_t bytes_of(const run_side& side, unsigned cut) {
  return side.cut >= 0 && (cut >> side.cut & 1) != 0 ? side.cut_bytes : side.bytes;
}

template <class T>
__global__ void __launch_bounds__(box_threads) permute_aligned(const __grid_constant__ aligned_plan plan) {
  extern __shared__ uint4 shared[];
  auto* src_image = reinterpret_cast<unsigned char*>(shared);
  unsigned char* dst_image = src_image + plan.from.image;
  auto* src_runs = reinterpret_cast<run_at*>(dst_image + plan.to.image);
  run_at* dst_runs = src_runs + plan.from.runs;
  for (uint32_t run = threadIdx.x; run < plan.from.runs; run += blockDim.x) src_runs[run] = run_of(plan.from, run);
  for (uint32_t run = threadIdx.x; run < plan.to.runs; run += blockDim.x) dst_runs[run] = run_of(plan.to, run);
  uint32_t get = 0, put = 0, rest = threadIdx.x;
  for (int k = 0; k < plan.lane_axes; ++k) {
    uint32_t index = rest;
    rest = plan.lane[k].count.split(index);
    get += index * plan.lane[k].get, put += index * plan.lane[k].put;
  }
  __syncthreads();  // the tables of runs are complete before any thread looks a run up

  struct tile_at {
    const unsigned char* src;
    unsigned char* dst;
    unsigned cut;
    bool first;     // where boxes overlap: the first of them,
    uint32_t left;  // and bytes to where a run of dst ends for good
  };
  const auto locate = [&](uint32_t number) {
    tile_at at{plan.src, plan.dst, 0, true, UINT32_MAX};
    for (int k = 0; k < plan.rank; ++k) {
      const aligned_axis& a = plan.tile[k];
      uint32_t index = number;
      number = a.tiles.split(index);
      at.src += index * a.src_step;
      at.dst += index * a.dst_step;
      if (index == a.tiles.d - 1 && a.last != a.box) at.cut |= 1u << k;
      if (k == plan.overlap) {
        at.first = index == 0;
        at.left = static_cast<uint32_t>(min(plan.overlap_bytes - index * a.dst_step, int64_t{UINT32_MAX}));
      }
    }
    return at;
  };
  const auto low = [](const void* p) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p)) & 15; };
  const auto load = [&](const tile_at& at) {
    const uint32_t bytes = bytes_of(plan.from, at.cut);
    walk_runs(plan, plan.from, src_runs, at.cut, [&](run_at run, uint32_t first, uint32_t step) {
      const uint32_t place = low(at.src) + run.place, skew = place & 15;
      const unsigned char* from = at.src + run.memory - skew;
      unsigned char* image = src_image + (place - skew);
      for (uint32_t c = first; c < skew + bytes; c += step)
        stage_chunk(reinterpret_cast<uint4*>(image + c), from + c, plan.src, plan.src_end);
    });
    __pipeline_commit();
  };
  const auto store = [&](const tile_at& at) {
    const uint32_t bytes = bytes_of(plan.to, at.cut);
    walk_runs(plan, plan.to, dst_runs, at.cut, [&](run_at run, uint32_t first, uint32_t step) {
      const uint32_t place = low(at.dst) + run.place, skew = place & 15;
      unsigned char* to = at.dst + run.memory - skew;
      const unsigned char* image = dst_image + (place - skew);
      uint32_t begin = skew, end = skew + bytes;  // in bytes from `to`
      if (plan.overlap >= 0) {
        // From a sector's beginning to another's: what lies before is the box before's.
        const auto base = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(to));
        end = min(((base + skew + plan.overlap_step + 31) & ~31u) - base, skew + at.left);
        if (!at.first) begin = ((base + skew + 31) & ~31u) - base;
      }
      for (uint32_t c = (begin & ~15u) + first; c < end; c += step) {
        const uint32_t own = begin > c ? begin - c : 0, own_end = min(end - c, 16u);
        if (own == 0 && own_end == 16)
          *reinterpret_cast<uint4*>(to + c) = *reinterpret_cast<const uint4*>(image + c);
        else
          store_part<sizeof(T)>(to + c, image + c, static_cast<int>(own), static_cast<int>(own_end));
      }
    });
  };

  uint32_t number = blockIdx.x;
  tile_at at = locate(number);
  load(at);
  for (;;) {
    __pipeline_wait_prior(0);
    __syncthreads();  // all chunks of src have landed, and the box before has left dst's image
    const unsigned char* from = src_image + low(at.src) + get;
    unsigned char* to = dst_image + low(at.dst) + put;
    if (threadIdx.x < plan.movers) {
      // Unrolled, so that offsets are operands from constant memory.
#pragma unroll
      for (uint32_t s = 0; s < box_steps; s += 8) {
        if (s >= plan.steps) break;
        T held[8];
#pragma unroll
        for (int k = 0; k < 8; ++k) held[k] = *reinterpret_cast<const T*>(from + plan.step[s + k].get);
#pragma unroll
        for (int k = 0; k < 8; ++k) *reinterpret_cast<T*>(to + plan.step[s + k].put) = held[k];
      }
    }
    if (!LOCKSTEP_DEVICE_MUTANT("aligned_barrier_dropped"))
      __syncthreads();  // dst's image is complete before chunks of it leave, src's has been read
    const uint32_t next = number + gridDim.x;
    tile_at then = at;
    if (next < plan.tiles) {
      then = locate(next);
      load(then);
    }
    store(at);
    if (next >= plan.tiles) break;
    number = next, at = then;
  }
}

}  // namespace

lockstep_status launch_aligned(lockstep_queue& queue, const axes& all) {
  const int processors = queue.facts->processors;
  aligned_plan plan;
  if (!plan_aligned_again(all, queue.facts->tuned.moves, plan)) return launch_gather(queue, all);
  const size_t shared = size_t{plan.from.image} + plan.to.image + (plan.from.runs + plan.to.runs) * sizeof(run_at);
  return by_element(static_cast<size_t>(all.element_bytes), [&](auto element) {
    const auto kernel = permute_aligned<decltype(element)>;
    if (const lockstep_status status = allow_shared(queue, kernel, shared); status != LOCKSTEP_OK) return status;
    int resident = 1;
    if (const lockstep_status status =
            resident_blocks(queue, kernel, static_cast<int>(plan.threads), shared, &resident);
        status != LOCKSTEP_OK)
      return status;
    const auto grid = std::min(plan.tiles, static_cast<uint32_t>(processors * std::max(resident, 1)));
    return launch(queue, "permute_aligned", kernel, dim3(grid), dim3(plan.threads), shared, plan);
  });
}

}  // namespace lockstep::cuda
