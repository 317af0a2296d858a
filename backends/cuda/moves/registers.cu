// registers.cu - permutations with a short row of src in each thread's registers.
//
// Idea    A thread takes V neighbours along dst's fastest axis, V elements being 16 bytes, and of each
//         the whole of src's fastest axis, up to 64 bytes: squares of V x V elements change places in
//         registers, and every row of dst gets 16 bytes from each of a block's threads, side by side.
//         No shared memory: what a line has beyond a thread's row the L1 keeps for its neighbours.
// Moves   every element once in, once out.
// Limit   DRAM; the ceiling is a device-to-device copy, of which a permute of six axes reaches 0.93 (H200).
// Watch   Rows that follow each other in src must be read by one block, or each of their lines is
//         read from the L2 more than once, and `tiles` are faster.
//         Shared memory for the block would narrow the L1 and cost a third of the speed.
// Source  this repository; figures in tests/results/tries.md.
#include <algorithm>

#include "../kernel/cache.cuh"
#include "../kernel/element.cuh"
#include "../kernel/unit.cuh"
#include "registers.hpp"
#include "walk.cuh"

namespace lockstep::cuda {
namespace {

constexpr int threads = register_threads;

struct registers_plan : move_walk {  // all axes but src's fastest
  uint32_t last_units;               // whose lines the L2 may still keep at the end
  int64_t src_row, dst_row;          // bytes between a thread's rows on either side
};

// chunks: 16 bytes each, of a row of src.
template <int bytes, int chunks, bool kept>
__global__ void __launch_bounds__(threads) permute_registers(const __grid_constant__ registers_plan plan) {
  constexpr int V = 16 / bytes;
  const uint32_t unit = blockIdx.x * threads + threadIdx.x;
  if (unit >= plan.units) return;
  const auto [from, to] = place_of(plan, unit);
  const kept_reads keeping;
  follow_on();
  uint32_t w[chunks][V][4];
#pragma unroll
  for (int v = 0; v < V; ++v)
#pragma unroll
    for (int c = 0; c < chunks; ++c) {
      const uint4* at = reinterpret_cast<const uint4*>(plan.src + from + v * plan.src_row) + c;
      const uint4 x = kept ? keeping.load(at) : __ldg(at);
      memcpy(w[c][v], &x, 16);
    }
#pragma unroll
  for (int c = 0; c < chunks; ++c) {
    transpose_unit<bytes, 16>(w[c]);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      uint4 x;
      memcpy(&x, w[c][v], 16);
      const int row = c * V + v;
      *reinterpret_cast<uint4*>(plan.dst + to + row * plan.dst_row) = x;
    }
  }
  if constexpr (kept) {
    if (unit < plan.units - plan.last_units) return;
    for (int v = 0; v < V; ++v) {
      const unsigned char* row = plan.src + from + v * plan.src_row;
      const auto before = static_cast<int>(-reinterpret_cast<uintptr_t>(row) & 127);
      if (before < chunks * 16) keeping.release(row + before);
    }
  }
}

int chunks_of(const axes& a) { return static_cast<int>(a.at[a.fastest_src()].count * a.element_bytes / 16); }
int64_t units_of(const axes& a) { return a.elements() / (a.at[a.fastest_src()].count * (16 / a.element_bytes)); }

template <int bytes, int chunks>
lockstep_status launch_chunks(lockstep_queue& queue, const axes& a) {
  constexpr int V = 16 / bytes;
  if constexpr (V * chunks * 4 > register_words) {
    return failed(LOCKSTEP_INTERNAL, "%d rows of %d bytes do not fit a thread", V, chunks * 16);
  } else {
    const int along = a.fastest_src(), across = a.fastest_dst();
    registers_plan plan{};
    plan.src = a.src, plan.dst = a.dst;
    plan.units = static_cast<uint32_t>(units_of(a));
    plan.src_row = a.at[across].src * bytes, plan.dst_row = a.at[along].dst * bytes;
    for (int k = a.rank - 1; k >= 0; --k) {
      if (k == along) continue;
      const int64_t unit = k == across ? V : 1;
      plan.axis[plan.rank++] = {divider(a.at[k].count / unit), a.at[k].src * unit * bytes, a.at[k].dst * unit * bytes};
    }
    plan.last_units = std::min(plan.units, static_cast<uint32_t>(kept_at_end(queue) / (V * chunks * 16) + 1));
    const bool kept = keeps_reads(queue, static_cast<double>(a.elements() * bytes));
    const auto kernel = kept ? permute_registers<bytes, chunks, true> : permute_registers<bytes, chunks, false>;
    return launch_early(queue, "permute_registers", kernel, dim3((plan.units + threads - 1) / threads), dim3(threads),
                        0, plan);
  }
}

template <int bytes>
lockstep_status launch_bytes(lockstep_queue& queue, const axes& a) {
  constexpr int least = bytes < 16 ? 1 : 2;  // an axis of one element is none
  switch (chunks_of(a)) {
    case 1: return launch_chunks<bytes, least>(queue, a);
    case 2: return launch_chunks<bytes, 2>(queue, a);
    case 3: return launch_chunks<bytes, 3>(queue, a);
    default: return launch_chunks<bytes, 4>(queue, a);
  }
}

}  // namespace

bool registers_fit(const axes& a) {
  return whole_chunks(a, 16 / a.element_bytes) && chunks_of(a) <= register_chunks &&
         a.at[a.fastest_src()].count * 4 <= register_words &&  // of V rows of count elements
         units_of(a) < int64_t{1} << 31;
}

// Rows of 64 bytes need too many registers. Rows of 16 bytes and of 48 gain where a block finds the next row beside its
// own; so do rows of 32 bytes, and elsewhere too. The thread's own next row pays only for 16 bytes: of longer ones
// lanes meet in one bank of the L1.
bool registers_pay(const axes& a) {
  const int along = a.fastest_src(), chunks = chunks_of(a);
  const int64_t row = a.at[along].count;
  if (a.at[a.fastest_dst()].src == row) return chunks == 1;
  if (chunks == 4) return false;
  if (chunks == 2) return true;
  int64_t before = 1;  // places in dst from one of these rows to the next
  for (int k = a.rank - 1; k >= 0; --k) {
    if (k == along) continue;
    if (a.at[k].src == row) {
      const int64_t together = std::min(a.at[k].count, threads * (16 / a.element_bytes) / before);
      return together * row * a.element_bytes >= register_near;
    }
    before *= a.at[k].count;
  }
  return false;
}

lockstep_status launch_registers(lockstep_queue& queue, const axes& a) {
  switch (a.element_bytes) {
    case 1: return launch_bytes<1>(queue, a);
    case 2: return launch_bytes<2>(queue, a);
    case 4: return launch_bytes<4>(queue, a);
    case 8: return launch_bytes<8>(queue, a);
    default: return launch_bytes<16>(queue, a);
  }
}

}  // namespace lockstep::cuda
