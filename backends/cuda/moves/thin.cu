// thin.cu - matrices whose rows of 32 bytes follow each other in src: eight columns of f32.
//
// Idea    Such a matrix is one stretch of memory: a warp loads some KiB of it, 512 bytes an instruction (units of
//         wide.cuh touch 16 lines by as many), spreads the elements over a tile of its own in shared memory, which
//         lies as dst does, and writes 256 bytes of each row of dst, 16 per lane. No warp waits for another.
// Moves   every element once in, once out; no arithmetic.
// Limit   DRAM; the ceiling is a device-to-device copy of the same bytes.
// Watch   A row of the tile is 16 bytes longer than it holds: of 4 bytes the even lanes store 16 neighbours in one row
//         and the odd ones four rows on, without it in the same banks. Of 2 bytes two lanes meet in a bank as it is.
// Source  this repository; figures in tests/results/tries.md.
#include "../kernel/cache.cuh"
#include "../kernel/element.cuh"
#include "share.hpp"
#include "thin.hpp"

namespace lockstep::cuda {
namespace {

constexpr int row_bytes = 32;  // of src
constexpr int run_bytes = thin_run, warps = thin_warps;

struct thin_plan {
  const uint4* src;
  unsigned char* dst;
  int64_t rows, dst_ld, kept_from;  // rows from here on may still be kept at the end
};

template <int bytes>
constexpr int tile_rows = run_bytes / bytes;
constexpr int pitch = run_bytes + 16;
template <int bytes>
constexpr int tile_bytes = row_bytes / bytes* pitch;

template <int bytes, bool kept>
__global__ void __launch_bounds__(warps * 32) transpose_thin(const __grid_constant__ thin_plan plan) {
  constexpr int V = 16 / bytes, columns = row_bytes / bytes;
  using element = typename element_of<bytes>::type;
  extern __shared__ uint4 tiles[];
  const int t = threadIdx.x % 32;
  unsigned char* const tile = reinterpret_cast<unsigned char*>(tiles) + threadIdx.x / 32 * tile_bytes<bytes>;
  const int64_t first = (int64_t{blockIdx.x} * warps + threadIdx.x / 32) * tile_rows<bytes>;
  if (first >= plan.rows) return;
  const int here = static_cast<int>(min(plan.rows - first, int64_t{tile_rows<bytes>}));
  const uint4* const src = plan.src + first * 2;

  const kept_reads keeping;
  follow_on();
  constexpr int loads = tile_rows<bytes> * 2 / 32;
  uint4 x[loads];
#pragma unroll
  for (int k = 0; k < loads; ++k)
    if (k * 32 + t < here * 2) x[k] = kept ? keeping.load(src + k * 32 + t) : __ldg(src + k * 32 + t);
#pragma unroll
  for (int k = 0; k < loads; ++k) {
    element part[V];
    memcpy(part, &x[k], 16);
    const int row = (k * 32 + t) / 2, column = t % 2 * V;
#pragma unroll
    for (int v = 0; v < V; ++v) reinterpret_cast<element*>(tile + (column + v) * pitch)[row] = part[v];
  }
  __syncwarp();  // all lanes have stored what others read
  unsigned char* const dst = plan.dst + first * bytes;
#pragma unroll
  for (int k = 0; k < columns / 2; ++k) {  // 16 lanes per row of dst
    const int j = k * 2 + t / 16, i = t % 16 * V;
    const uint4* const from = reinterpret_cast<const uint4*>(tile + j * pitch) + t % 16;
    auto* const to = reinterpret_cast<element*>(dst + j * plan.dst_ld * bytes) + i;
    if (i + V <= here) {
      if constexpr (kept)
        *reinterpret_cast<uint4*>(to) = *from;
      else
        __stcs(reinterpret_cast<uint4*>(to), *from);
    } else {
      for (int v = 0; i + v < here; ++v) to[v] = reinterpret_cast<const element*>(from)[v];
    }
  }
  if constexpr (kept) {
    if (first + here <= plan.kept_from) return;
    const auto before = static_cast<int>(-reinterpret_cast<uintptr_t>(src) & 127);
    for (int at = before + t * 128; at < here * row_bytes; at += 32 * 128)
      keeping.release(reinterpret_cast<const unsigned char*>(src) + at);
  }
}

template <int bytes, bool kept>
lockstep_status launch_kernel(lockstep_queue& queue, const thin_plan& plan) {
  size_t shared = size_t{warps} * tile_bytes<bytes>;
  const auto kernel = transpose_thin<bytes, kept>;
  constexpr int64_t a_block = int64_t{warps} * tile_rows<bytes>;
  if (const lockstep_status status = share_memory(queue, kernel, true, a_block * row_bytes, &shared);
      status != LOCKSTEP_OK)
    return status;
  return launch_early(queue, "transpose_thin", kernel, dim3(static_cast<unsigned>((plan.rows - 1) / a_block + 1)),
                      dim3(warps * 32), shared, plan);
}

template <int bytes>
lockstep_status launch_bytes(lockstep_queue& queue, const wide_job& job) {
  const thin_plan plan{reinterpret_cast<const uint4*>(job.src), job.dst, job.rows, job.dst_ld,
                       job.rows - kept_at_end(queue) / row_bytes};
  return keeps_reads(queue, static_cast<double>(job.rows) * row_bytes) ? launch_kernel<bytes, true>(queue, plan)
                                                                       : launch_kernel<bytes, false>(queue, plan);
}

}  // namespace

bool is_thin(const wide_job& job) {
  const auto bytes = static_cast<int64_t>(job.element_bytes);
  const auto aligned = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; };
  return (bytes == 2 || bytes == 4 || bytes == 8) && job.outer_axes == 0 && job.cols * bytes == row_bytes &&
         job.src_ld == job.cols && job.dst_ld * bytes % 16 == 0 && aligned(job.src) && aligned(job.dst) &&
         job.rows < int64_t{1} << 36;  // blocks of 256 rows or more
}

lockstep_status launch_thin(lockstep_queue& queue, const wide_job& job) {
  switch (job.element_bytes) {
    case 2: return launch_bytes<2>(queue, job);
    case 4: return launch_bytes<4>(queue, job);
    default: return launch_bytes<8>(queue, job);
  }
}

}  // namespace lockstep::cuda
