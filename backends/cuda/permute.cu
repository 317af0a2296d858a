// permute.cu - dst[i_perm[0], ...] = src[i_0, ...], up to eight axes.
//
// Idea    The host fuses axes that stay together and widens elements whose
//         neighbours stay neighbours. What is left is one of five: runs that stay
//         contiguous (`runs`), a batch of transposes of the two fastest axes (`wide`,
//         transpose's engine), axes too short for that (`blocks`; `registers` where a thread
//         holds src's whole and finds the next beside its own), or either of the two
//         with rows that 16 bytes do not divide, and elements of 1 and 2 bytes (`aligned`).
//         The table's first two leave to the others what their yields_ functions name.
// Moves   every element once in, once out; no arithmetic but the index's.
// Limit   DRAM; the ceiling is a device-to-device copy of the same bytes.
// Watch   Index arithmetic: eight hardware divisions an element would be the limit;
//         each is a multiplication and a shift here (divide.hpp), valid below 2^31,
//         so larger arrays go in parts.
// Source  Lyakh, "An efficient tensor transpose algorithm", 2015, for the idea of
//         fusing first; figures in tests/results.
#include <algorithm>

#include "cache.cuh"
#include "divide.hpp"
#include "element.cuh"
#include "mutant.cuh"
#include "ops.hpp"
#include "permute/aligned.hpp"
#include "permute/axes.hpp"
#include "permute/blocks.hpp"
#include "transpose/wide.hpp"

namespace lockstep::cuda {
namespace {

constexpr int threads = 256;
// Independent elements a thread loads before it stores; (64,128,96,160) -> 0213 on an
// H200: 1 0.895, 2 0.977, 4 0.966, 8 0.969 of a copy.
constexpr int per_thread = 2;

struct element_axis {
  divider count;
  int64_t src, dst;
};
struct element_plan {
  const void* src;
  void* dst;
  int rank;
  uint32_t elements, last_elements;      // of all; of those whose lines the L2 may still keep at the end
  bool kept;                             // large enough for kept_reads (cache.cuh)
  element_axis axis[LOCKSTEP_MAX_RANK];  // fastest first, in the order in which lanes walk
};

// One element a thread and step; lanes walk the axes in plan's order.
template <class T, int steps>
__global__ void __launch_bounds__(threads) permute_elements(const __grid_constant__ element_plan plan) {
  const uint64_t first = static_cast<uint64_t>(blockIdx.x) * (threads * steps) + threadIdx.x;
  T held[steps];
  const T* at[steps];
  int64_t to[steps];
  const kept_reads kept;
  constexpr bool may_keep = steps > 1 && sizeof(T) >= 4;
#pragma unroll
  for (int s = 0; s < steps; ++s) {
    const uint64_t number = first + s * threads;
    if (number >= plan.elements) continue;
    auto rest = static_cast<uint32_t>(number);
    int64_t from = 0;
    to[s] = 0;
#pragma unroll
    for (int k = 0; k < LOCKSTEP_MAX_RANK; ++k) {
      if (k >= plan.rank) break;
      uint32_t index = rest;
      rest = plan.axis[k].count.split(index);
      from += index * plan.axis[k].src;
      to[s] +=
          index * (LOCKSTEP_DEVICE_MUTANT("permute_stride_of_src") && k == 2 ? plan.axis[k].src : plan.axis[k].dst);
    }
    at[s] = static_cast<const T*>(plan.src) + from;
    if constexpr (may_keep)
      held[s] = plan.kept ? kept.load(at[s]) : *at[s];
    else
      held[s] = *at[s];
  }
#pragma unroll
  for (int s = 0; s < steps; ++s)
    if (first + s * threads < plan.elements) {
      static_cast<T*>(plan.dst)[to[s]] = held[s];
      if constexpr (may_keep)
        if (plan.kept && first + s * threads >= plan.elements - plan.last_elements &&
            reinterpret_cast<uintptr_t>(at[s]) % 128 == 0)
          kept.release(at[s]);
    }
}

// by_src: lanes walk src's memory, else dst's.
template <int steps>
lockstep_status launch_elements(lockstep_queue& queue, const axes& all, bool by_src) {
  return in_parts(
      all, [](const axes& a) { return a.elements(); },
      [&](const axes& a) {
        element_plan plan{};
        plan.src = a.src, plan.dst = a.dst, plan.rank = a.rank;
        plan.elements = static_cast<uint32_t>(a.elements());
        plan.last_elements = std::min(plan.elements, static_cast<uint32_t>(kept_at_end(queue) / a.element_bytes));
        plan.kept = keeps_reads(queue, static_cast<double>(a.elements() * a.element_bytes));
        axes left = a;
        for (int k = 0; k < a.rank; ++k) {
          const int next = by_src ? left.fastest_src() : left.fastest_dst();
          plan.axis[k] = {divider(left.at[next].count), left.at[next].src, left.at[next].dst};
          for (int m = next; m + 1 < left.rank; ++m) left.at[m] = left.at[m + 1];
          --left.rank;
        }
        const auto blocks = (static_cast<uint64_t>(plan.elements) + threads * steps - 1) / (threads * steps);
        return by_element(static_cast<size_t>(a.element_bytes), [&](auto element) {
          return launch(queue, "permute_elements", permute_elements<decltype(element), steps>,
                        dim3(static_cast<unsigned>(blocks)), dim3(threads), 0, plan);
        });
      });
}

lockstep_status launch_naive_read(lockstep_queue& queue, const lockstep_call& call) {
  return launch_elements<1>(queue, axes_of(call), true);
}
lockstep_status launch_naive_write(lockstep_queue& queue, const lockstep_call& call) {
  return launch_elements<1>(queue, axes_of(call), false);
}
lockstep_status launch_runs(lockstep_queue& queue, const lockstep_call& call) {
  return launch_elements<per_thread>(queue, simplified(call, pointers::as_given), false);
}
// For any axes: what pointers of odd alignment leave to do was not known when the variant was chosen.
lockstep_status launch_boxes(lockstep_queue& queue, const axes& a) {
  if (const int chunk = units_chunk(a); chunk != 0) return launch_units(queue, a, chunk);
  return blocks_fit(a) ? launch_blocks(queue, a) : launch_elements<per_thread>(queue, a, false);
}
lockstep_status launch_all_blocks(lockstep_queue& queue, const lockstep_call& call) {
  return launch_boxes(queue, simplified(call, pointers::as_given));
}

// The two fastest axes as a matrix, the others around it.
wide_job matrix_of(const axes& a) {
  wide_job job;
  const int i = a.fastest_dst(), j = a.fastest_src();
  job.src = a.src, job.dst = a.dst, job.element_bytes = static_cast<size_t>(a.element_bytes);
  job.rows = a.at[i].count, job.src_ld = a.at[i].src;
  job.cols = a.at[j].count, job.dst_ld = a.at[j].dst;
  for (int k = 0; k < a.rank; ++k)
    if (k != i && k != j) job.outer[job.outer_axes++] = {a.at[k].count, a.at[k].src, a.at[k].dst};
  return job;
}
bool is_matrix(const axes& a) {
  const int i = a.fastest_dst(), j = a.fastest_src();
  return a.rank >= 2 && i != j && a.at[i].dst == 1 && a.at[j].src == 1;
}
lockstep_status launch_wide_tiles(lockstep_queue& queue, const lockstep_call& call) {
  const axes a = simplified(call, pointers::as_given);
  // Elements that pointers of odd alignment keep narrow may have no matrix left: boxes do.
  return is_matrix(a) ? launch_wide(queue, matrix_of(a)) : launch_boxes(queue, a);
}

const char* refuses_wide(const lockstep_queue*, const lockstep_call* call) {
  return is_matrix(simplified(*call, pointers::assumed_aligned))
             ? nullptr
             : "needs two axes, one contiguous in src, the other in dst";
}
const char* refuses_blocks(const lockstep_queue*, const lockstep_call* call) {
  return blocks_fit(simplified(*call, pointers::assumed_aligned)) && blocks_fit(axes_of(*call))
             ? nullptr
             : "an offset within a tile needs more than 32 bits";
}
// Beyond this much padding around short axes the boxes are faster.
constexpr double wide_waste = 1.5;
int yields_wide(const lockstep_queue*, const lockstep_call* call) {
  return wide_padding(matrix_of(simplified(*call, pointers::assumed_aligned))) > wide_waste;
}
// Runs shorter than a sector write parts of sectors.
constexpr int64_t run_bytes = 32;
// Where a launch is most of it: 1 byte (6,7,8,9) -> 3210 takes 2.5 us by runs, 5.4 by tiles, 21 by
// boxes; 4 bytes (15,17,31) -> 210 2.5, 4.2, 15.9, aligned 4.8; further on 4 bytes (2,16,24,24) ->
// 0231 2.7, 3.7, 8.9, (50,60,70) -> 210, 840 kB, 4.1, 4.1, 16, but 11 MB 21, 12, 46.
constexpr int64_t small_bytes = 65536, small_words_bytes = 1 << 20;
int yields_runs(const lockstep_queue*, const lockstep_call* call) {
  const axes a = simplified(*call, pointers::assumed_aligned);
  if (a.rank == 0 || a.elements() * a.element_bytes <= (a.element_bytes >= 4 ? small_words_bytes : small_bytes))
    return 0;
  const axis& fastest = a.at[a.fastest_dst()];
  return fastest.src != 1 || fastest.dst != 1 || fastest.count * a.element_bytes < run_bytes;
}

lockstep_status launch_aligned_boxes(lockstep_queue& queue, const lockstep_call& call) {
  const axes a = simplified(call, pointers::as_given);
  return aligned_fits(a) ? launch_aligned(queue, a) : launch_boxes(queue, a);
}
const char* refuses_aligned(const lockstep_queue*, const lockstep_call* call) {
  return aligned_fits(simplified(*call, pointers::assumed_aligned)) ? nullptr
                                                                    : "needs an axis contiguous in src and one in dst";
}
// us of 64 MiB on an H200, by runs and by aligned boxes: (15,17,31,n) -> 0213 of 1 byte 246, 70,
// 2 bytes 126, 49, 4 bytes 66, 57, 8 bytes 39, 41. By chunks of 8 or 16 bytes, of one element:
// (n,61,7,3) -> 1032 of 8 bytes 217, 44; of 16 elements (16,16,32,n) -> 0231 85, 51; between,
// chunks are faster (24,20,28,32,36,12 of 4 bytes).
int yields_aligned(const lockstep_queue* queue, const lockstep_call* call) {
  const axes a = simplified(*call, pointers::assumed_aligned);
  if (a.rank == 0 || a.elements() * a.element_bytes <= small_bytes) return 1;
  if (!yields_runs(queue, call)) return a.element_bytes > 4;
  if (a.element_bytes > 1 && units_chunk(a) > a.element_bytes) return 1;
  if (!is_matrix(a)) return 0;
  const wide_job job = matrix_of(a);
  return wide_padding(job) <= wide_limit(job);
}

bool in_chunks(const lockstep_call& call) {  // a plan's pointers, NULL, are
  return (reinterpret_cast<uintptr_t>(call.src) | reinterpret_cast<uintptr_t>(call.dst)) % 16 == 0;
}
lockstep_status launch_register_rows(lockstep_queue& queue, const lockstep_call& call) {
  const axes a = simplified(call, pointers::as_given);
  return in_chunks(call) && registers_fit(a) ? launch_registers(queue, a) : launch_aligned_boxes(queue, call);
}
const char* refuses_registers(const lockstep_queue*, const lockstep_call* call) {
  return registers_fit(simplified(*call, pointers::assumed_aligned))
             ? nullptr
             : "needs rows of src of 16, 32, 48 or 64 bytes and 16 elements at most, and rows of dst of whole 16 bytes";
}
int yields_registers(const lockstep_queue*, const lockstep_call* call) {
  const axes a = simplified(*call, pointers::assumed_aligned);
  if (a.elements() * a.element_bytes <= small_words_bytes || !in_chunks(*call) || !registers_pay(a)) return 1;
  return wide_padding(matrix_of(a)) <= wide_waste;
}

const lockstep_variant rows[] = {
    {"registers", "a short row of src and its neighbours along dst in a thread's registers; no shared memory", 0,
     refuses_registers, yields_registers, nullptr, on_device<launch_register_rows>},
    {"aligned", "boxes in and out by aligned 16 bytes wherever rows begin; elements change places in shared memory", 0,
     refuses_aligned, yields_aligned, nullptr, on_device<launch_aligned_boxes>},
    {"runs", "runs that stay contiguous: 16 bytes a lane along dst, two of them in flight", 0, nullptr, yields_runs,
     nullptr, on_device<launch_runs>},
    {"wide", "the two fastest axes as a batch of transposes, 16-byte accesses on both sides", 0, refuses_wide,
     yields_wide, nullptr, on_device<launch_wide_tiles>},
    {"blocks",
     "boxes over several short axes: chunks in src's order to shared memory, in dst's order from there; two boxes "
     "ahead",
     0, refuses_blocks, nullptr, nullptr, on_device<launch_all_blocks>},
    {"naive_coalesced_write", "one thread an element, lanes along dst's fastest axis", LOCKSTEP_LESSON, nullptr,
     nullptr, nullptr, on_device<launch_naive_write>},
    {"naive_coalesced_read", "one thread an element, lanes along src's fastest axis", LOCKSTEP_LESSON, nullptr, nullptr,
     nullptr, on_device<launch_naive_read>},
};

}  // namespace

const lockstep_table permute_table = {rows, sizeof rows / sizeof *rows};

}  // namespace lockstep::cuda
