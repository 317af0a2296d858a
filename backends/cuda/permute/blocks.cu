// blocks.cu - permutations whose fastest axes are short.
//
// Idea    A tile is a small box over several axes at once, chosen so that its
//         elements form runs of 256 bytes and more in src and in dst alike. It is
//         read in src's order into shared memory and written in dst's order. Which
//         element of a tile a thread handles never changes, so a block computes its
//         offsets once and keeps them in registers while it goes from tile to tile; the
//         next tile is read while this one is written (0.69 for 0.61 of a copy).
// Moves   every element once in, once out.
// Limit   DRAM; the ceiling is a device-to-device copy.
// Watch   The axis that is fastest in dst gets an odd stride in shared memory, or 32
//         lanes meet in few banks. In tiles that an axis cuts short each element is
//         asked whether it exists.
// Source  this repository; figures in tests/results.
#include <algorithm>

#include "../divide.hpp"
#include "../element.cuh"
#include "blocks.hpp"

namespace lockstep::cuda {
namespace {

constexpr int threads = 256;
constexpr int64_t run_bytes = 256;  // what src's and dst's runs should reach
// Elements whose offsets a thread keeps in registers. 16 took 128 registers and left
// two blocks a multiprocessor: 0.30 of a copy on (24,20,28,32,36,12) -> 513042.
constexpr int per_thread_of(int bytes) { return bytes == 16 ? 4 : 8; }

struct tile_axis {
  divider tiles;               // along this axis
  uint32_t box, last;          // elements of a full and of the last tile
  int64_t src_step, dst_step;  // from one tile to the next
};
struct box_axis {
  divider box;
  uint32_t src, dst, place;  // strides of one element: in src, dst, shared memory
  uint32_t tiles_below;      // tile number / this % tiles along the axis: where the tile is on it
  int axis;
};
struct blocks_plan {
  const unsigned char* src;
  unsigned char* dst;
  int rank;
  uint32_t tiles, elements;  // of the whole, of a full tile
  tile_axis tile[LOCKSTEP_MAX_RANK];
  box_axis in[LOCKSTEP_MAX_RANK];   // the box in src's order, fastest first
  box_axis out[LOCKSTEP_MAX_RANK];  // in dst's
};

struct offsets {
  uint32_t memory, place;
};

// Of the box's element at this position in src's or dst's order.
template <bool to_dst>
__device__ offsets offsets_of(const blocks_plan& plan, uint32_t position) {
  offsets o{0, 0};
#pragma unroll
  for (int k = 0; k < LOCKSTEP_MAX_RANK; ++k) {
    if (k >= plan.rank) break;
    const box_axis& a = to_dst ? plan.out[k] : plan.in[k];
    uint32_t index = position;
    position = a.box.split(index);
    o.memory += index * (to_dst ? a.dst : a.src);
    o.place += index * a.place;
  }
  return o;
}

// Whether that element exists in tile number.
template <bool to_dst>
__device__ bool inside(const blocks_plan& plan, uint32_t position, uint32_t number) {
  for (int k = 0; k < plan.rank; ++k) {
    const box_axis& a = to_dst ? plan.out[k] : plan.in[k];
    uint32_t index = position;
    position = a.box.split(index);
    uint32_t tile = number / a.tiles_below % plan.tile[a.axis].tiles.d;
    if (tile == plan.tile[a.axis].tiles.d - 1 && index >= plan.tile[a.axis].last) return false;
  }
  return true;
}

template <class T>
__global__ void __launch_bounds__(threads, 4) permute_blocks(const __grid_constant__ blocks_plan plan) {
  constexpr int per_thread = per_thread_of(sizeof(T));
  extern __shared__ __align__(16) unsigned char shared[];
  T* box = reinterpret_cast<T*>(shared);
  uint32_t from[per_thread], to[per_thread], places[per_thread];  // places: put, and get << 16
#pragma unroll
  for (int p = 0; p < per_thread; ++p) {
    const uint32_t position = threadIdx.x + p * threads;
    const offsets in = offsets_of<false>(plan, position), out = offsets_of<true>(plan, position);
    from[p] = in.memory, to[p] = out.memory, places[p] = in.place | out.place << 16;
  }
  struct tile_at {
    const T* src;
    T* dst;
    bool full;
  };
  const auto locate = [&](uint32_t number) {
    tile_at at{reinterpret_cast<const T*>(plan.src), reinterpret_cast<T*>(plan.dst), true};
#pragma unroll
    for (int k = LOCKSTEP_MAX_RANK - 1; k >= 0; --k) {
      if (k >= plan.rank) continue;
      const tile_axis& a = plan.tile[k];
      uint32_t index = number;
      number = a.tiles.split(index);
      at.src += index * a.src_step;
      at.dst += index * a.dst_step;
      at.full = at.full && (index != a.tiles.d - 1 || a.last == a.box);
    }
    return at;
  };
  T held[per_thread];
  const auto load = [&](const tile_at& at, uint32_t number) {
#pragma unroll
    for (int p = 0; p < per_thread; ++p)
      if (const uint32_t position = threadIdx.x + p * threads;
          position < plan.elements && (at.full || inside<false>(plan, position, number)))
        held[p] = at.src[from[p]];
  };

  uint32_t number = blockIdx.x;
  tile_at at = locate(number);
  load(at, number);
  for (;;) {
#pragma unroll
    for (int p = 0; p < per_thread; ++p)
      if (threadIdx.x + p * threads < plan.elements) box[places[p] & 0xffff] = held[p];
    __syncthreads();  // the whole box is in place before any thread reads it in dst's order
    // The next tile is on its way while this one is written.
    const uint32_t next = number + gridDim.x;
    tile_at then = at;
    if (next < plan.tiles) {
      then = locate(next);
      load(then, next);
    }
#pragma unroll
    for (int p = 0; p < per_thread; ++p)
      if (const uint32_t position = threadIdx.x + p * threads;
          position < plan.elements && (at.full || inside<true>(plan, position, number)))
        at.dst[to[p]] = box[places[p] >> 16];
    if (next >= plan.tiles) break;
    number = next, at = then;
    __syncthreads();  // the box has been read before the next tile overwrites it
  }
}

// A count near want that divides all of it when there is one within a factor of two.
int64_t even_share(int64_t count, int64_t want) {
  if (want >= count) return count;
  for (int64_t share = want; share <= std::min(count, 2 * want); ++share)
    if (count % share == 0) return share;
  return want;
}

struct box_shape {
  int64_t box[LOCKSTEP_MAX_RANK];  // as axes::at
  int by_src[LOCKSTEP_MAX_RANK];   // axes, fastest in src first
};

box_shape shape_of(const axes& a) {
  box_shape s{};
  for (int k = 0; k < a.rank; ++k) {
    s.box[k] = 1, s.by_src[k] = k;
    for (int m = k; m > 0 && a.at[s.by_src[m - 1]].src > a.at[s.by_src[m]].src; --m)
      std::swap(s.by_src[m - 1], s.by_src[m]);
  }
  const int64_t want = std::max<int64_t>(run_bytes / a.element_bytes, 1);
  const int64_t most = threads * per_thread_of(a.element_bytes);
  int64_t total = 1;
  // One side at a time: along its fastest axes until a run is long enough.
  const auto grow = [&](bool along_src) {
    int64_t run = 1;
    for (int step = 0; step < a.rank && run < want; ++step) {
      const int k = along_src ? s.by_src[step] : a.rank - 1 - step;
      const int64_t room = most / (total / s.box[k]);
      const int64_t share = std::min(even_share(a.at[k].count, (want + run - 1) / run), std::max<int64_t>(room, 1));
      if (share > s.box[k]) total = total / s.box[k] * share, s.box[k] = share;
      run *= s.box[k];
      if (s.box[k] < a.at[k].count) break;  // the run ends here
    }
  };
  grow(true);
  grow(false);
  // What room is left goes to the fastest axes of dst.
  for (int k = a.rank - 1; k >= 0; --k) {
    const int64_t room = most / (total / s.box[k]);
    const int64_t share = room >= a.at[k].count ? a.at[k].count : std::max(room / 2 * 2, s.box[k]);
    if (share > s.box[k]) total = total / s.box[k] * share, s.box[k] = share;
  }
  return s;
}

blocks_plan plan_of(const axes& a, int64_t& shared_elements) {
  const box_shape s = shape_of(a);
  blocks_plan plan{};
  plan.src = a.src, plan.dst = a.dst, plan.rank = a.rank;
  int64_t tiles = 1, elements = 1, place = 1;
  int64_t places[LOCKSTEP_MAX_RANK];
  for (int step = 0; step < a.rank; ++step) {
    const int k = s.by_src[step];
    if (k == a.fastest_dst() && step > 0) place |= 1;  // odd: the lanes of a dst run fall into different banks
    places[k] = place;
    place *= s.box[k];
  }
  for (int k = 0; k < a.rank; ++k) {
    const axis& x = a.at[k];
    const int64_t count = (x.count - 1) / s.box[k] + 1;
    plan.tile[k] = {divider(count), static_cast<uint32_t>(s.box[k]),
                    static_cast<uint32_t>(x.count - (count - 1) * s.box[k]), s.box[k] * x.src, s.box[k] * x.dst};
    tiles *= count;
    elements *= s.box[k];
  }
  int64_t below[LOCKSTEP_MAX_RANK] = {};
  for (int64_t k = a.rank - 1, product = 1; k >= 0; product *= plan.tile[k].tiles.d, --k) below[k] = product;
  const auto box_of = [&](int k) {
    // Offsets of a box of one are never used; they may not fit.
    const bool one = s.box[k] == 1;
    return box_axis{divider(s.box[k]),
                    one ? 0 : static_cast<uint32_t>(a.at[k].src),
                    one ? 0 : static_cast<uint32_t>(a.at[k].dst),
                    static_cast<uint32_t>(places[k]),
                    static_cast<uint32_t>(below[k]),
                    k};
  };
  for (int step = 0; step < a.rank; ++step) {
    plan.in[step] = box_of(s.by_src[step]);
    plan.out[step] = box_of(a.rank - 1 - step);
  }
  plan.tiles = static_cast<uint32_t>(tiles), plan.elements = static_cast<uint32_t>(elements);
  shared_elements = place;
  return plan;
}

int64_t tiles_of(const axes& a) {
  const box_shape s = shape_of(a);
  int64_t tiles = 1;
  for (int k = 0; k < a.rank; ++k) tiles *= (a.at[k].count - 1) / s.box[k] + 1;
  return tiles;
}

}  // namespace

bool blocks_fit(const axes& a) {
  const box_shape s = shape_of(a);
  int64_t src = 0, dst = 0;
  for (int k = 0; k < a.rank; ++k) {
    if (s.box[k] == 1) continue;
    if (a.at[k].src > UINT32_MAX || a.at[k].dst > UINT32_MAX) return false;
    src += (s.box[k] - 1) * a.at[k].src, dst += (s.box[k] - 1) * a.at[k].dst;
  }
  return src <= UINT32_MAX && dst <= UINT32_MAX;
}

lockstep_status launch_blocks(lockstep_queue& queue, const axes& all) {
  return in_parts(all, tiles_of, [&](const axes& part) {
    int64_t shared_elements = 0;
    const blocks_plan plan = plan_of(part, shared_elements);
    const size_t shared = static_cast<size_t>(shared_elements * part.element_bytes);
    return by_element(static_cast<size_t>(part.element_bytes), [&](auto element) {
      const auto kernel = permute_blocks<decltype(element)>;
      if (const lockstep_status status = allow_shared(kernel, shared); status != LOCKSTEP_OK) return status;
      int resident = 1;
      LOCKSTEP_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, shared));
      const auto grid = std::min(plan.tiles, static_cast<uint32_t>(queue.facts->processors * std::max(resident, 1)));
      return launch(queue, "permute_blocks", kernel, dim3(grid), dim3(threads), shared, plan);
    });
  });
}

}  // namespace lockstep::cuda
