// shuffle.cu - CUDA's warp shuffles over an array: elements 32 g ... 32 g + 31 are warp g.
// Idea    each warp keeps four groups in flight: four coalesced loads, four shuffles,
//         four stores; the exchange itself never leaves the registers
// Moves   bytes read + written once; no arithmetic
// Limit   device memory; the ceiling is the copy
// Watch   the hardware looks at five bits of a delta only, so a delta >= width is the
//         identity by our own test; src may be dst, so a group is read by its own warp alone
// Source  CUDA C++ Programming Guide, "Warp Shuffle Functions"; ladder rows D1-D5 and E11
#include <algorithm>
#include <cstdint>

#include "../index/shuffle.hpp"
#include "../kernel/record.cuh"
#include "../ops.hpp"
#include "bits/order.hpp"

namespace lockstep::cuda {
namespace {

using order::shuffle;
constexpr int block = shuffle_threads, warps = block / 32;
constexpr unsigned all_lanes = 0xffffffffu;

struct exchange {
  int64_t groups;
  int32_t width, operand;
};

// Up and down with delta >= width were turned into XOR 0 by the launcher.
template <class T, shuffle KIND>
__device__ __forceinline__ T shuffled(T x, const exchange& how) {
  if constexpr (KIND == shuffle::idx)
    return __shfl_sync(all_lanes, x, how.operand, how.width);
  else if constexpr (KIND == shuffle::up)
    return __shfl_up_sync(all_lanes, x, how.operand, how.width);
  else if constexpr (KIND == shuffle::down)
    return __shfl_down_sync(all_lanes, x, how.operand, how.width);
  else
    return __shfl_xor_sync(all_lanes, x, how.operand, how.width);
}

// GROUPS in flight a warp.
template <class T, shuffle KIND, int GROUPS>
__global__ void __launch_bounds__(block) shuffle_shfl(const T* src, T* dst, exchange how) {
  const int lane = threadIdx.x % 32;
  const int64_t step = group_step(gridDim.x, warps, GROUPS);
  for (int64_t first = first_group(blockIdx.x, warps, GROUPS, threadIdx.x, 32); first < how.groups; first += step) {
    const T* from = src + group_element(first, lane, 32);
    T* to = dst + group_element(first, lane, 32);
    T x[GROUPS];
    if (has_all(first, GROUPS, how.groups)) {
      walk_groups(GROUPS, 32, [&](int g, int offset) {
        LOCKSTEP_SEEN(read_src, src, &from[offset]);
        x[g] = from[offset];
      });
      walk_groups(GROUPS, 32, [&](int g, int offset) {
        LOCKSTEP_SEEN(exchange, int{sizeof(T)}, int64_t{shuffled<unsigned, KIND>(lane, how)});
        LOCKSTEP_SEEN(write_dst, dst, &to[offset]);
        to[offset] = shuffled<T, KIND>(x[g], how);
      });
    } else {
      walk_last_groups(first, how.groups, 32, [&](int64_t offset) {
        LOCKSTEP_SEEN(read_src, src, &from[offset]);
        LOCKSTEP_SEEN(exchange, int{sizeof(T)}, int64_t{shuffled<unsigned, KIND>(lane, how)});
        LOCKSTEP_SEEN(write_dst, dst, &to[offset]);
        to[offset] = shuffled<T, KIND>(from[offset], how);
      });
    }
  }
}

// The same exchange through shared memory: a store, a fence, a load.
template <class T>
__global__ void __launch_bounds__(block) shuffle_shared(const T* src, T* dst, exchange how, shuffle kind) {
  __shared__ T held[block];
  const int lane = threadIdx.x % 32;
  T* own = held + (threadIdx.x - lane);
  const int source = order::source_lane(kind, lane, how.width, how.operand);
  const int64_t step = group_step(gridDim.x, warps, 1);
  for (int64_t g = first_group(blockIdx.x, warps, 1, threadIdx.x, 32); g < how.groups; g += step) {
    const int64_t e = group_element(g, lane, 32);
    LOCKSTEP_SEEN(read_src, src, &src[e]);
    LOCKSTEP_SEEN(write_tile, held, &own[lane]);
    own[lane] = src[e];
    __syncwarp();  // all lanes' values are in place before any is read; a warp is nobody else's business
    LOCKSTEP_SEEN(read_tile, held, &own[source]);
    LOCKSTEP_SEEN(write_dst, dst, &dst[e]);
    dst[e] = own[source];
    __syncwarp();  // all are read before the next round overwrites them
  }
}

template <class T, shuffle KIND>
lockstep_status shfl(lockstep_queue& queue, const lockstep_call& call, const exchange& how) {
  constexpr int groups = shuffle_groups;
  const int64_t blocks = (how.groups + warps * groups - 1) / (warps * groups);
  return launch(queue, "shuffle_shfl", shuffle_shfl<T, KIND, groups>,
                static_cast<unsigned>(std::min<int64_t>(blocks, 2147483647)), block, 0, static_cast<const T*>(call.src),
                static_cast<T*>(call.dst), how);
}

template <class T>
lockstep_status launch_shfl(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_shuffle_desc& d = call.shuffle;
  exchange how{d.count / 32, d.width, d.operand};
  const bool shifts = d.kind == LOCKSTEP_SHUFFLE_UP || d.kind == LOCKSTEP_SHUFFLE_DOWN;
  if (shifts && d.operand >= d.width) {
    how.operand = 0;
    return shfl<T, shuffle::exclusive_or>(queue, call, how);
  }
  switch (d.kind) {
    case LOCKSTEP_SHUFFLE_IDX: return shfl<T, shuffle::idx>(queue, call, how);
    case LOCKSTEP_SHUFFLE_UP: return shfl<T, shuffle::up>(queue, call, how);
    case LOCKSTEP_SHUFFLE_DOWN: return shfl<T, shuffle::down>(queue, call, how);
    case LOCKSTEP_SHUFFLE_XOR: break;
  }
  return shfl<T, shuffle::exclusive_or>(queue, call, how);
}
lockstep_status launch_shfl(lockstep_queue& queue, const lockstep_call& call) {
  return call.shuffle.element_bytes == 4 ? launch_shfl<uint32_t>(queue, call)
                                         : launch_shfl<unsigned long long>(queue, call);
}

template <class T>
lockstep_status launch_shared(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_shuffle_desc& d = call.shuffle;
  const exchange how{d.count / 32, d.width, d.operand};
  const int64_t blocks = (how.groups + warps - 1) / warps;
  return launch(queue, "shuffle_shared", shuffle_shared<T>,
                static_cast<unsigned>(std::min<int64_t>(blocks, 2147483647)), block, 0, static_cast<const T*>(call.src),
                static_cast<T*>(call.dst), how, static_cast<shuffle>(d.kind));
}
lockstep_status launch_shared(lockstep_queue& queue, const lockstep_call& call) {
  return call.shuffle.element_bytes == 4 ? launch_shared<uint32_t>(queue, call)
                                         : launch_shared<unsigned long long>(queue, call);
}

const lockstep_variant rows[] = {
    {"shfl", "D1 to D5: __shfl_*_sync on registers, four groups of 32 in flight a warp", 0, nullptr, nullptr, nullptr,
     on_device<launch_shfl>},
    {"shared", "D1 to D5 through shared memory: what a shuffle saves", LOCKSTEP_LESSON, nullptr, nullptr, nullptr,
     on_device<launch_shared>},
};

}  // namespace

const lockstep_table shuffle_table = {rows, sizeof rows / sizeof *rows};

}  // namespace lockstep::cuda
