// permute.cu - dst[i_perm[0], ...] = src[i_0, ...], up to eight axes.
//
// Idea    The host fuses axes that stay together and widens elements whose neighbours stay
//         neighbours. What is left goes by tiles or by a gather (moves/), whichever is
//         estimated to be faster; large aligned matrices are a batch of transposes (`wide`,
//         transpose's engine), short rows that a thread can hold by registers, planes of 2 to 4
//         channels as pixels.
// Moves   every element once in, once out; no arithmetic but the index's.
// Limit   DRAM; the ceiling is a device-to-device copy of the same bytes.
// Watch   Index arithmetic: eight hardware divisions an element would be the limit;
//         each is a multiplication and a shift here (divide.hpp), valid below 2^31,
//         so larger arrays go in parts.
// Source  Lyakh, "An efficient tensor transpose algorithm", 2015, for the idea of
//         fusing first; figures in tests/results.
#include "../kernel/divide.hpp"
#include "../kernel/element.cuh"
#include "../moves/moves.hpp"
#include "../ops.hpp"
#include "../transpose/wide.hpp"
#include "axes.hpp"
#include "pixels.hpp"
#include "registers.hpp"

namespace lockstep::cuda {
namespace {

constexpr int threads = 256;

struct element_axis {
  divider count;
  int64_t src, dst;
};
struct element_plan {
  const void* src;
  void* dst;
  int rank;
  uint32_t elements;
  element_axis axis[LOCKSTEP_MAX_RANK];  // fastest first, in the order in which lanes walk
};

// One element a thread; lanes walk the axes in plan's order.
template <class T>
__global__ void __launch_bounds__(threads) permute_elements(const __grid_constant__ element_plan plan) {
  const uint64_t number = static_cast<uint64_t>(blockIdx.x) * threads + threadIdx.x;
  if (number >= plan.elements) return;
  auto rest = static_cast<uint32_t>(number);
  int64_t from = 0, to = 0;
#pragma unroll
  for (int k = 0; k < LOCKSTEP_MAX_RANK; ++k) {
    if (k >= plan.rank) break;
    uint32_t index = rest;
    rest = plan.axis[k].count.split(index);
    from += index * plan.axis[k].src;
    to += index * plan.axis[k].dst;
  }
  static_cast<T*>(plan.dst)[to] = static_cast<const T*>(plan.src)[from];
}

// by_src: lanes walk src's memory, else dst's.
lockstep_status launch_elements(lockstep_queue& queue, const axes& all, bool by_src) {
  return in_parts(
      all, [](const axes& a) { return a.elements(); },
      [&](const axes& a) {
        element_plan plan{};
        plan.src = a.src, plan.dst = a.dst, plan.rank = a.rank;
        plan.elements = static_cast<uint32_t>(a.elements());
        axes left = a;
        for (int k = 0; k < a.rank; ++k) {
          const int next = by_src ? left.fastest_src() : left.fastest_dst();
          plan.axis[k] = {divider(left.at[next].count), left.at[next].src, left.at[next].dst};
          for (int m = next; m + 1 < left.rank; ++m) left.at[m] = left.at[m + 1];
          --left.rank;
        }
        const auto blocks = (static_cast<uint64_t>(plan.elements) + threads - 1) / threads;
        return by_element(static_cast<size_t>(a.element_bytes), [&](auto element) {
          return launch(queue, "permute_elements", permute_elements<decltype(element)>,
                        dim3(static_cast<unsigned>(blocks)), dim3(threads), 0, plan);
        });
      });
}

lockstep_status launch_naive_read(lockstep_queue& queue, const lockstep_call& call) {
  return launch_elements(queue, axes_of(call), true);
}
lockstep_status launch_naive_write(lockstep_queue& queue, const lockstep_call& call) {
  return launch_elements(queue, axes_of(call), false);
}
lockstep_status launch_all_tiles(lockstep_queue& queue, const lockstep_call& call) {
  return launch_tiles(queue, simplified(call, pointers::as_given));
}
lockstep_status launch_all_gather(lockstep_queue& queue, const lockstep_call& call) {
  return launch_gather(queue, simplified(call, pointers::as_given));
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
  // Elements that pointers of odd alignment keep narrow may have no matrix left: tiles do.
  return is_matrix(a) ? launch_wide(queue, matrix_of(a)) : launch_tiles(queue, a);
}

const char* refuses_wide(const lockstep_queue*, const lockstep_call* call) {
  return is_matrix(simplified(*call, pointers::assumed_aligned))
             ? nullptr
             : "needs two axes, one contiguous in src, the other in dst";
}

const char* refuses_tiles(const lockstep_queue*, const lockstep_call* call) {
  return tiles_fit(simplified(*call, pointers::assumed_aligned))
             ? nullptr
             : "needs an axis contiguous in src and one in dst, and blocks that stay together of at most 256 elements";
}

template <move_by how>
int yields_unless(const lockstep_queue* queue, const lockstep_call* call) {
  const axes a = simplified(*call, pointers::assumed_aligned);
  const bool matrix = is_matrix(a);
  const wide_job job = matrix ? matrix_of(a) : wide_job{};
  return fastest_move(*queue, a, matrix ? &job : nullptr) != how;
}

lockstep_status launch_register_rows(lockstep_queue& queue, const lockstep_call& call) {
  const axes a = simplified(call, pointers::as_given);
  return in_chunks(call) && registers_fit(a) ? launch_registers(queue, a) : launch_tiles(queue, a);
}
const char* refuses_registers(const lockstep_queue*, const lockstep_call* call) {
  return registers_fit(simplified(*call, pointers::assumed_aligned))
             ? nullptr
             : "needs rows of src of 16, 32, 48 or 64 bytes and 16 elements at most, and rows of dst of whole 16 bytes";
}
int yields_registers(const lockstep_queue* queue, const lockstep_call* call) {
  const move_tuning& tuned = queue->facts->tuned.moves;
  const axes a = simplified(*call, pointers::assumed_aligned);
  if (a.elements() * a.element_bytes <= tuned.registers_from || !in_chunks(*call) || !registers_pay(a)) return 1;
  return wide_padding(matrix_of(a)) <= tuned.registers_padding;
}

lockstep_status launch_images(lockstep_queue& queue, const lockstep_call& call) {
  const axes a = simplified(call, pointers::as_given);
  return in_chunks(call) && pixels_fit(a) ? launch_pixels(queue, a) : launch_tiles(queue, a);
}
const char* refuses_pixels(const lockstep_queue*, const lockstep_call* call) {
  return pixels_fit(simplified(*call, pointers::assumed_aligned)) ? nullptr : not_pixels;
}
int yields_pixels(const lockstep_queue* queue, const lockstep_call* call) {
  return !pixels_pay(*queue, simplified(*call, pointers::assumed_aligned)) || !in_chunks(*call);
}

const lockstep_variant rows[] = {
    {"pixels", "2 to 4 channels: 16 bytes of each plane a thread, elements change places in registers", 0,
     refuses_pixels, yields_pixels, nullptr, on_device<launch_images>},
    {"registers", "a short row of src and its neighbours along dst in a thread's registers; no shared memory", 0,
     refuses_registers, yields_registers, nullptr, on_device<launch_register_rows>},
    {"tiles", "small tiles through shared memory, runs along src in, along dst out; shaped for the array's size", 0,
     refuses_tiles, yields_unless<move_by::tiles>, nullptr, on_device<launch_all_tiles>},
    {"wide", "the two fastest axes as a batch of transposes, 16-byte accesses on both sides", 0, refuses_wide,
     yields_unless<move_by::wide>, nullptr, on_device<launch_wide_tiles>},
    {"gather", "lanes along dst, each element from where src has it; the caches keep a line's others", 0, nullptr,
     nullptr, nullptr, on_device<launch_all_gather>},
    {"naive_coalesced_write", "one thread an element, lanes along dst's fastest axis", LOCKSTEP_LESSON, nullptr,
     nullptr, nullptr, on_device<launch_naive_write>},
    {"naive_coalesced_read", "one thread an element, lanes along src's fastest axis", LOCKSTEP_LESSON, nullptr, nullptr,
     nullptr, on_device<launch_naive_read>},
};

}  // namespace

const lockstep_table permute_table = {rows, sizeof rows / sizeof *rows};

}  // namespace lockstep::cuda
