// units.cu - boxes over several short axes (blocks.cu), by chunks of 8 or 16 bytes.
//
// Idea    Where src's and dst's fastest axes both hold whole chunks, a tile comes in by
//         cp.async, chunks in src's order, into a ring of stages: no register waits for
//         memory, and two or three large tiles are on their way. A thread takes a square
//         unit of V x V elements (V chunks), transposes it in registers and stores V
//         chunks of dst.
// Moves   every element once in, once out.
// Limit   DRAM; the ceiling is a device-to-device copy.
// Watch   Runs that end within 64 bytes share them with another block. Lanes that read
//         units walk along dst's fastest axis: the stride between units in shared memory
//         gets the pad with the fewest bank conflicts, counted on the host.
// Source  this repository; figures in tests/results/tries.md.
#include <cuda_pipeline.h>

#include <algorithm>

#include "../divide.hpp"
#include "../element.cuh"
#include "../unit.cuh"
#include "blocks.hpp"

namespace lockstep::cuda {
namespace {

// (24,20,28,32,36,12) -> 513042 on an H200, chunks a stage and stages: 512 and 6 0.79, 1024
// and 4 0.82, 2048 and 3 0.83, 3072 and 2 0.83, 3072 and 3 0.86, 3072 and 4 the same; 512
// threads the same. With tiles numbered as dst lies, 1024 and 4 had 0.81.
constexpr int threads = 256, stages = 3;
constexpr int most_chunks = 3072;  // of a stage: 48 KiB of 16 bytes

struct tile_axis {
  divider tiles;               // along this axis
  uint32_t box, last;          // elements of a full and of the last tile
  int64_t src_step, dst_step;  // from one tile to the next, bytes
};
// The axes of a box in steps: src's fastest by chunks; dst's fastest by elements while
// chunks are read, by V elements while units are written.
struct step_axis {
  divider box;
  uint32_t memory, place;  // strides of one step: bytes in src or dst, chunks of shared memory
  uint32_t tiles_below;    // tile number / this % tiles along the axis: where the tile is on it
  uint32_t unit;           // elements a step
  int axis;
};
struct units_plan {
  const unsigned char* src;
  unsigned char* dst;
  int rank, across;                   // in[across] is dst's fastest axis
  uint32_t tiles, chunks, units;      // of the whole, of a full tile
  uint32_t row_place, group_place;    // of an element, of V elements of that axis
  uint32_t stage_chunks, dst_row;     // dst_row: bytes between the chunks of dst of a unit
  tile_axis tile[LOCKSTEP_MAX_RANK];  // as they are numbered
  step_axis in[LOCKSTEP_MAX_RANK];    // in src's order
  step_axis out[LOCKSTEP_MAX_RANK];   // in dst's
};

struct offsets {
  uint32_t memory, place;
};

template <int V, bool to_dst>
LOCKSTEP_BOTH inline offsets offsets_of(const units_plan& plan, uint32_t position) {
  offsets o{0, 0};
  for (int k = 0; k < plan.rank; ++k) {
    const step_axis& a = to_dst ? plan.out[k] : plan.in[k];
    uint32_t index = position;
    position = a.box.split(index);
    o.memory += index * a.memory;
    o.place +=
        !to_dst && k == plan.across ? index % V * plan.row_place + index / V * plan.group_place : index * a.place;
  }
  return o;
}

// Whether that chunk or unit exists in tile number.
template <bool to_dst>
__device__ bool inside(const units_plan& plan, uint32_t position, uint32_t number) {
  for (int k = 0; k < plan.rank; ++k) {
    const step_axis& a = to_dst ? plan.out[k] : plan.in[k];
    uint32_t index = position;
    position = a.box.split(index);
    const tile_axis& along = plan.tile[a.axis];
    if (number / a.tiles_below % along.tiles.d == along.tiles.d - 1 && index * a.unit >= along.last) return false;
  }
  return true;
}

template <int bytes, int chunk>
__global__ void __launch_bounds__(threads) permute_units(const __grid_constant__ units_plan plan) {
  constexpr int V = chunk / bytes;
  constexpr int chunks = most_chunks / threads, units = (chunks + V - 1) / V;  // a thread's
  using words = typename element_of<chunk>::type;
  extern __shared__ __align__(16) unsigned char shared[];
  words* ring = reinterpret_cast<words*>(shared);
  uint32_t from[chunks], put[chunks], to[units], get[units];
#pragma unroll
  for (int p = 0; p < chunks; ++p) {
    const offsets o = offsets_of<V, false>(plan, threadIdx.x + p * threads);
    from[p] = o.memory, put[p] = o.place;
  }
#pragma unroll
  for (int p = 0; p < units; ++p) {
    const offsets o = offsets_of<V, true>(plan, threadIdx.x + p * threads);
    to[p] = o.memory, get[p] = o.place;
  }
  struct tile_at {
    const unsigned char* src;
    unsigned char* dst;
    bool full;
  };
  const auto locate = [&](uint32_t number) {
    tile_at at{plan.src, plan.dst, true};
#pragma unroll
    for (int k = 0; k < LOCKSTEP_MAX_RANK; ++k) {
      if (k >= plan.rank) break;
      const tile_axis& a = plan.tile[k];
      uint32_t index = number;
      number = a.tiles.split(index);
      at.src += index * a.src_step;
      at.dst += index * a.dst_step;
      at.full = at.full && (index != a.tiles.d - 1 || a.last == a.box);
    }
    return at;
  };
  const auto load = [&](uint32_t number, int stage) {
    if (number < plan.tiles) {
      const tile_at at = locate(number);
      words* box = ring + stage * plan.stage_chunks;
#pragma unroll
      for (int p = 0; p < chunks; ++p)
        if (const uint32_t position = threadIdx.x + p * threads;
            position < plan.chunks && (at.full || inside<false>(plan, position, number)))
          __pipeline_memcpy_async(box + put[p], at.src + from[p], chunk);
    }
    __pipeline_commit();
  };

  uint32_t number = blockIdx.x;
  for (int k = 0; k < stages - 1; ++k) load(number + k * gridDim.x, k);
  for (int stage = 0; number < plan.tiles; number += gridDim.x) {
    __pipeline_wait_prior(stages - 2);
    __syncthreads();  // every thread's chunks have landed, and the stage before has been read
    load(number + (stages - 1) * gridDim.x, stage == 0 ? stages - 1 : stage - 1);
    const tile_at at = locate(number);
    const words* box = ring + stage * plan.stage_chunks;
#pragma unroll
    for (int p = 0; p < units; ++p)
      if (const uint32_t position = threadIdx.x + p * threads;
          position < plan.units && (at.full || inside<true>(plan, position, number))) {
        uint32_t w[V][chunk / 4];
#pragma unroll
        for (int v = 0; v < V; ++v) {
          const words x = box[get[p] + v * plan.row_place];
          memcpy(w[v], &x, chunk);
        }
        transpose_unit<bytes, chunk>(w);
#pragma unroll
        for (int v = 0; v < V; ++v) {
          words x;
          memcpy(&x, w[v], chunk);
          *reinterpret_cast<words*>(at.dst + to[p] + static_cast<uint64_t>(v) * plan.dst_row) = x;
        }
      }
    stage = stage + 1 == stages ? 0 : stage + 1;
  }
}

// A share of count from want to twice that: one that divides it, and whose run of
// share * step bytes fills whole bursts, where there is one.
int64_t even_share(int64_t count, int64_t want, int64_t step) {
  if (want >= count) return count;
  int64_t best = want;
  int most = -1;
  for (int64_t share = want; share <= std::min(count, 2 * want); ++share) {
    const int64_t run = share * step;
    const int score = (count % share == 0 ? 2 : 0) + (run % 64 == 0 ? 2 : run % 32 == 0 ? 1 : 0);
    if (score > most) most = score, best = share;
  }
  return best;
}

struct box_shape {
  int64_t box[LOCKSTEP_MAX_RANK];  // elements, as axes::at
  int by_src[LOCKSTEP_MAX_RANK];   // axes, fastest in src first
  int64_t chunks;
};

// Runs of want_bytes or more on both sides.
box_shape shape_for(const axes& a, int chunk, int64_t want_bytes) {
  box_shape s{};
  const int64_t V = chunk / a.element_bytes, want = want_bytes / a.element_bytes;
  for (int k = 0; k < a.rank; ++k) {
    s.box[k] = 1, s.by_src[k] = k;
    for (int m = k; m > 0 && a.at[s.by_src[m - 1]].src > a.at[s.by_src[m]].src; --m)
      std::swap(s.by_src[m - 1], s.by_src[m]);
  }
  const int fastest[2] = {s.by_src[0], a.rank - 1};
  s.box[fastest[0]] = s.box[fastest[1]] = V;
  for (const bool along_src : {true, false}) {
    int64_t run = 1;
    for (int step = 0; step < a.rank && run < want; ++step) {
      const int k = along_src ? s.by_src[step] : a.rank - 1 - step;
      const int64_t unit = k == fastest[0] || k == fastest[1] ? V : 1;
      const int64_t least = std::max<int64_t>((want + run - 1) / run / unit, 1);
      s.box[k] = std::max(s.box[k], even_share(a.at[k].count / unit, least, run * unit * a.element_bytes) * unit);
      run *= s.box[k];
      if (s.box[k] < a.at[k].count) break;  // the run ends here
    }
  }
  s.chunks = 1;
  for (int k = 0; k < a.rank; ++k) s.chunks *= s.box[k];
  s.chunks /= V;
  return s;
}

// The longest runs whose box fits a stage.
box_shape shape_of(const axes& a, int chunk) {
  box_shape best = shape_for(a, chunk, chunk);
  for (int64_t want = 2 * chunk; want <= 16384; want += want / 2) {
    const box_shape s = shape_for(a, chunk, want);
    if (s.chunks > most_chunks) break;
    best = s;
  }
  return best;
}

int64_t tiles_of(const axes& a, const box_shape& s) {
  int64_t tiles = 1;
  for (int k = 0; k < a.rank; ++k) tiles *= (a.at[k].count - 1) / s.box[k] + 1;
  return tiles;
}

// Wavefronts of the first warps' reads of units: 128 bytes at once.
template <int V, int chunk>
int conflicts(const units_plan& plan) {
  constexpr uint32_t lanes = 128 / chunk;
  int all = 0;
  for (uint32_t first = 0; first < std::min<uint32_t>(plan.units, 64); first += lanes) {
    int hits[lanes] = {}, most = 0;
    for (uint32_t lane = first; lane < std::min(first + lanes, plan.units); ++lane)
      most = std::max(most, ++hits[offsets_of<V, true>(plan, lane).place % lanes]);
    all += most;
  }
  return all;
}

template <int V, int chunk>
units_plan plan_of(const axes& a) {
  const box_shape s = shape_of(a, chunk);
  const int64_t bytes = a.element_bytes;
  const int along = s.by_src[0], across = a.rank - 1;
  units_plan plan{};
  plan.src = a.src, plan.dst = a.dst, plan.rank = a.rank;
  plan.tiles = static_cast<uint32_t>(tiles_of(a, s)), plan.chunks = static_cast<uint32_t>(s.chunks);
  plan.units = plan.chunks / V;
  plan.dst_row = static_cast<uint32_t>(a.at[along].dst * bytes);
  // Shared memory holds src's order, dst's fastest axis outermost.
  int64_t places[LOCKSTEP_MAX_RANK] = {}, place = 1;
  for (int step = 0; step < a.rank; ++step)
    if (const int k = s.by_src[step]; k != across) {
      places[k] = place;
      place *= k == along ? s.box[k] / V : s.box[k];
    }
  // Tiles are numbered along the axis with the smallest stride on either side first: those
  // under way at the same time are neighbours in src and in dst.
  int walk[LOCKSTEP_MAX_RANK], number_of[LOCKSTEP_MAX_RANK];
  const auto least = [&](int k) { return std::min(a.at[k].src, a.at[k].dst); };
  for (int k = 0; k < a.rank; ++k) {
    walk[k] = k;
    for (int m = k; m > 0 && least(walk[m - 1]) > least(walk[m]); --m) std::swap(walk[m - 1], walk[m]);
  }
  uint32_t below[LOCKSTEP_MAX_RANK], product = 1;
  for (int n = 0; n < a.rank; ++n) {
    const int k = walk[n];
    const axis& x = a.at[k];
    const int64_t count = (x.count - 1) / s.box[k] + 1;
    plan.tile[n] = {divider(count), static_cast<uint32_t>(s.box[k]),
                    static_cast<uint32_t>(x.count - (count - 1) * s.box[k]), s.box[k] * x.src * bytes,
                    s.box[k] * x.dst * bytes};
    number_of[k] = n, below[k] = product;
    product *= plan.tile[n].tiles.d;
  }
  const auto steps = [&](int k, int64_t unit, int64_t stride) {
    const bool one = s.box[k] == unit;  // a stride that is never used may not fit
    return step_axis{divider(s.box[k] / unit),         one ? 0 : static_cast<uint32_t>(unit * stride * bytes),
                     static_cast<uint32_t>(places[k]), below[k],
                     static_cast<uint32_t>(unit),      number_of[k]};
  };
  for (int step = 0; step < a.rank; ++step) {
    const int in = s.by_src[step], out = a.rank - 1 - step;
    plan.in[step] = steps(in, in == along ? V : 1, a.at[in].src);
    plan.out[step] = steps(out, out == along || out == across ? V : 1, a.at[out].dst);
    if (in == across) plan.across = step;
  }
  plan.row_place = static_cast<uint32_t>(place);
  int fewest = INT32_MAX;
  uint32_t best = 0;
  for (uint32_t pad = 0; pad < 128 / chunk; ++pad) {
    plan.out[0].place = V * plan.row_place + pad;
    if (const int now = conflicts<V, chunk>(plan); now < fewest) fewest = now, best = pad;
  }
  plan.group_place = plan.out[0].place = V * plan.row_place + best;
  plan.stage_chunks = static_cast<uint32_t>(s.box[across] / V) * plan.group_place;
  return plan;
}

template <int bytes, int chunk>
lockstep_status launch_chunks(lockstep_queue& queue, const axes& a) {
  const units_plan plan = plan_of<chunk / bytes, chunk>(a);
  const size_t shared = size_t{plan.stage_chunks} * chunk * stages;
  const auto kernel = permute_units<bytes, chunk>;
  if (const lockstep_status status = allow_shared(kernel, shared); status != LOCKSTEP_OK) return status;
  int resident = 1;
  LOCKSTEP_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, shared));
  const auto grid = std::min(plan.tiles, static_cast<uint32_t>(queue.facts->processors * std::max(resident, 1)));
  return launch(queue, "permute_units", kernel, dim3(grid), dim3(threads), shared, plan);
}

template <int bytes>
lockstep_status launch_bytes(lockstep_queue& queue, const axes& a, int chunk) {
  if constexpr (bytes <= 8)
    if (chunk == 8) return launch_chunks<bytes, 8>(queue, a);
  return launch_chunks<bytes, 16>(queue, a);
}

// Whether both fastest axes, and every address, hold whole chunks, and a box's offsets fit 32 bits.
bool fits(const axes& a, int chunk) {
  if (!whole_chunks(a, chunk / a.element_bytes)) return false;
  if (reinterpret_cast<uintptr_t>(a.src) % chunk != 0 || reinterpret_cast<uintptr_t>(a.dst) % chunk != 0) return false;
  const box_shape s = shape_of(a, chunk);
  if (s.chunks > most_chunks || tiles_of(a, s) >= int64_t{1} << 30) return false;
  int64_t src = 0, dst = 0;
  for (int k = 0; k < a.rank; ++k) {
    if (s.box[k] == 1) continue;
    src += (s.box[k] - 1) * a.at[k].src * a.element_bytes, dst += (s.box[k] - 1) * a.at[k].dst * a.element_bytes;
  }
  return src <= UINT32_MAX && dst <= UINT32_MAX;
}

}  // namespace

// Chunks of 4 bytes are slower than blocks.cu (1-byte elements: 0.12 to 0.20 of a copy).
int units_chunk(const axes& a) {
  for (const int chunk : {16, 8})
    if (fits(a, chunk)) return chunk;
  return 0;
}

lockstep_status launch_units(lockstep_queue& queue, const axes& a, int chunk) {
  switch (a.element_bytes) {
    case 1: return launch_bytes<1>(queue, a, chunk);
    case 2: return launch_bytes<2>(queue, a, chunk);
    case 4: return launch_bytes<4>(queue, a, chunk);
    case 8: return launch_bytes<8>(queue, a, chunk);
    default: return launch_bytes<16>(queue, a, chunk);
  }
}

}  // namespace lockstep::cuda
