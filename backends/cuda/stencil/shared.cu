// shared.cu - rows C2 and C3: a tile with halos in shared memory, coefficients from
// __constant__ memory, through the read-only cache, or from the kernel's parameters; all
// 2r + 1 of them, or folded as published: r + 1, for pairs of elements.
// Idea    a block reads block + 2r elements once; every tap then comes from shared
//         memory, every coefficient from the memory whose price the row shows
// Moves   bytes read (block + 2r) / block times, written once; 2r + 1 shared loads an output
// Limit   shared-memory loads and issue slots, then one wave of small blocks: at 32
//         threads an SM holds 32 blocks, half of its threads
// Watch   __constant__ is one array for the whole module: see slot below. Folded sums
//         have other bits
// Source  ladder rows C2 and C3; published on a K40 with 32 threads: the read-only cache takes
//         1.067 of the time of constant memory (an H200 in that form, folded_*_32: 1.003)
#include <mutex>

#include "rows.hpp"
#include "sweep.cuh"

namespace lockstep::cuda::stencil {
namespace {

// Calls of any number of streams share the module's __constant__ array: 32 slots,
// handed out in turn. The stream that gets a slot first waits, on the device, for
// the event behind the slot's last reader, so a slot is never written while a kernel
// reads it and no host thread waits. A captured graph would be replayed without
// these waits; such a call is refused.
constexpr int slots = 32, most_devices = 64;
__constant__ double constant_slots[slots][most_taps_1d];

struct slot_turns {
  std::mutex mutex;
  int next[most_devices] = {};
  cudaEvent_t last_reader[most_devices][slots] = {};  // live as long as the process: their device does
};
slot_turns& turns() {
  static auto* const all = new slot_turns;
  return *all;
}

template <class T, coefficients WHERE>
__device__ __forceinline__ T coefficient(int k, const taps<T, most_taps_1d>& t, const T* __restrict__ global,
                                         int slot) {
  const T* all = t.c;
  if constexpr (WHERE == coefficients::constant) all = reinterpret_cast<const T*>(constant_slots[slot]);
  if constexpr (WHERE == coefficients::ldg || WHERE == coefficients::restricted) all = global;
  LOCKSTEP_SEEN(read_coefficient, all, all + k);
  if constexpr (WHERE == coefficients::ldg)
    return __ldg(all + k);
  else
    return all[k];
}

// One output a thread. RADIUS 0: known at run time only, loop not unrolled. FOLD: coefficient k
// weighs x[+k] + mirror * x[-k], which is one rounded sum or difference.
template <class T, coefficients WHERE, int BLOCK, int RADIUS, bool FOLD>
__global__ void __launch_bounds__(BLOCK)
    stencil_shared(const __grid_constant__ sweep<T> s, const __grid_constant__ taps<T, most_taps_1d> t,
                   const T* __restrict__ global, int slot, int64_t blocks_a_row, T mirror) {
  const int radius = RADIUS != 0 ? RADIUS : s.radius;
  __shared__ T tile[BLOCK + 2 * (RADIUS != 0 ? RADIUS : 16)];
  const int64_t all = blocks_a_row * s.batch;
  for (int64_t id = blockIdx.x; id < all; id += gridDim.x) {
    int64_t chunk = id;
    const int64_t row = blocks_a_row == all ? 0 : divide(id, blocks_a_row, chunk);
    const T* from = s.src + row * s.src_batch;
    const int64_t begin = chunk_begin(chunk, BLOCK), left = halo_left(begin, s.origin, radius);
    const int64_t last = halo_last(s.out[2], begin, radius);
    walk_halo(BLOCK, BLOCK + 2 * radius, last, threadIdx.x, [&](int e) {
      LOCKSTEP_SEEN(write_tile, tile, &tile[e]);
      tile[e] = tap(from, 1, left + e, s.n[2], s.boundary, s.value);
    });
    __syncthreads();  // the whole tile is written before any thread reads its neighbours' part
    const int64_t i = begin + threadIdx.x;
    if (i < s.out[2]) {
      T acc = T(-0.0);  // fma(c, x, -0.0) is the rounded product
      if constexpr (FOLD) {
        acc = mul_rn(coefficient<T, WHERE>(0, t, global, slot), tile[threadIdx.x + radius]);
        walk_tile_pairs<RADIUS != 0>(radius, threadIdx.x, [&](int k, unsigned low, unsigned high) {
          acc = fma_rn(coefficient<T, WHERE>(k, t, global, slot), fma_rn(mirror, tile[low], tile[high]), acc);
        });
      } else {
        walk_tile_taps<RADIUS != 0>(radius, threadIdx.x, [&](int k, unsigned place) {
          LOCKSTEP_SEEN(read_tile, tile, &tile[place]);
          acc = fma_rn(coefficient<T, WHERE>(k, t, global, slot), tile[place], acc);
        });
      }
      LOCKSTEP_SEEN(write_dst, s.dst, &s.dst[row * s.dst_batch + i]);
      s.dst[row * s.dst_batch + i] = canonical(acc);
    }
    __syncthreads();  // every read of this tile is done before the next one overwrites it
  }
}

// Puts the coefficients into device memory in stream order, without a host buffer
// that would have to outlive the call.
template <class T>
__global__ void keep_taps(const __grid_constant__ taps<T, most_taps_1d> t, T* to) {
  if (threadIdx.x < most_taps_1d) to[threadIdx.x] = t.c[threadIdx.x];
}

constexpr size_t taps_bytes = 512;

// 1: coefficients are alike on both sides; -1: but for their sign; 0: neither.
int mirror_of(const lockstep_stencil_desc& d) {
  bool alike = true, opposite = true;
  for (int k = 1; k <= d.radius; ++k) {
    const double low = d.coefficients[d.radius - k], high = d.coefficients[d.radius + k];
    alike = alike && low == high, opposite = opposite && low == -high;
  }
  return alike ? 1 : opposite ? -1 : 0;
}

template <class T, coefficients WHERE, int BLOCK, bool FOLD>
lockstep_status sweeps(lockstep_queue& queue, const lockstep_call& call, const taps<T, most_taps_1d>& t,
                       const T* global, int slot) {
  const auto kernel =
      call.stencil.radius == 4 ? stencil_shared<T, WHERE, BLOCK, 4, FOLD> : stencil_shared<T, WHERE, BLOCK, 0, FOLD>;
  const T mirror = FOLD ? static_cast<T>(mirror_of(call.stencil)) : T(0);
  return for_each_sweep<T>(call, [&](const sweep<T>& s) {
    const int64_t blocks_a_row = ceil_div(s.out[2], BLOCK);
    return launch(queue, "stencil_shared", kernel, grid_of(blocks_a_row * s.batch), BLOCK, 0, s, t, global, slot,
                  blocks_a_row, mirror);
  });
}

template <class T, coefficients WHERE, int BLOCK, bool FOLD>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
  auto t = rounded<T, most_taps_1d>(call.stencil);
  if (FOLD) std::copy_n(t.c + call.stencil.radius, call.stencil.radius + 1, t.c);
  if constexpr (WHERE == coefficients::constant) {
    slot_turns& all = turns();
    const std::lock_guard lock(all.mutex);  // wait, write, launches and event of a slot stay together
    const int slot = all.next[queue.device];
    all.next[queue.device] = (slot + 1) % slots;
    cudaEvent_t& last = all.last_reader[queue.device][slot];
    if (last == nullptr) LOCKSTEP_CUDA(cudaEventCreateWithFlags(&last, cudaEventDisableTiming));
    LOCKSTEP_CUDA(cudaStreamWaitEvent(queue.stream, last, 0));
    // From pageable memory: the call returns once t has been taken.
    LOCKSTEP_CUDA(cudaMemcpyToSymbolAsync(constant_slots, &t, sizeof t, slot * sizeof(double) * most_taps_1d,
                                          cudaMemcpyHostToDevice, queue.stream));
    const lockstep_status status = sweeps<T, WHERE, BLOCK, FOLD>(queue, call, t, nullptr, slot);
    const cudaError_t recorded = cudaEventRecord(last, queue.stream);
    if (recorded == cudaSuccess) return status;
    // The slot's next owner would wait for the reader before this one.
    (void)cudaStreamSynchronize(queue.stream);
    return failed(recorded, "cudaEventRecord(last, queue.stream)");
  } else if constexpr (WHERE == coefficients::parameter) {
    return sweeps<T, WHERE, BLOCK, FOLD>(queue, call, t, nullptr, 0);
  } else {
    T* global = reinterpret_cast<T*>(static_cast<char*>(call.workspace) + call.workspace_bytes - taps_bytes);
    const lockstep_status status = launch(queue, "keep_taps", keep_taps<T>, 1, 64, 0, t, global);
    return status != LOCKSTEP_OK ? status : sweeps<T, WHERE, BLOCK, FOLD>(queue, call, t, global, 0);
  }
}

}  // namespace

template <coefficients where, int block, bool fold>
lockstep_status launch_shared(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.dtype == LOCKSTEP_F32 ? run<float, where, block, fold>(queue, call)
                                            : run<double, where, block, fold>(queue, call);
}
template lockstep_status launch_shared<coefficients::constant, 32>(lockstep_queue&, const lockstep_call&);
template lockstep_status launch_shared<coefficients::constant, 256>(lockstep_queue&, const lockstep_call&);
template lockstep_status launch_shared<coefficients::ldg, 32>(lockstep_queue&, const lockstep_call&);
template lockstep_status launch_shared<coefficients::ldg, 256>(lockstep_queue&, const lockstep_call&);
template lockstep_status launch_shared<coefficients::restricted, 32>(lockstep_queue&, const lockstep_call&);
template lockstep_status launch_shared<coefficients::restricted, 256>(lockstep_queue&, const lockstep_call&);
template lockstep_status launch_shared<coefficients::parameter, 256>(lockstep_queue&, const lockstep_call&);
template lockstep_status launch_shared<coefficients::constant, 32, true>(lockstep_queue&, const lockstep_call&);
template lockstep_status launch_shared<coefficients::ldg, 32, true>(lockstep_queue&, const lockstep_call&);
template lockstep_status launch_shared<coefficients::restricted, 32, true>(lockstep_queue&, const lockstep_call&);

const char* folded_refuses(const lockstep_queue*, const lockstep_call* call) {
  if (call->stencil.rank != 1) return "is for rank 1";
  return mirror_of(call->stencil) != 0 ? nullptr : "needs symmetric or antisymmetric coefficients";
}
const char* constant_refuses(const lockstep_queue* queue, const lockstep_call* call) {
  if (call->stencil.rank != 1) return "is for rank 1";
  if (queue->device >= most_devices) return "keeps slots of __constant__ memory for devices 0 to 63; use shared_param";
  return capturing(*queue)
             ? "cannot be captured in a graph: replays would race for __constant__ memory; use shared_param"
             : nullptr;
}

const char* folded_constant_refuses(const lockstep_queue* queue, const lockstep_call* call) {
  const char* why = folded_refuses(queue, call);
  return why != nullptr ? why : constant_refuses(queue, call);
}

size_t shared_workspace(const lockstep_queue* queue, const lockstep_call* call) {
  return (sweeps_workspace(queue, call) + 255) / 256 * 256 + taps_bytes;
}

}  // namespace lockstep::cuda::stencil
