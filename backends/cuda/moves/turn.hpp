// turn.hpp - permutations as turns of small tiles: what a launch of turn.cu is told, made on the host by turn_plan.cpp.
#pragma once

#include "../divide.hpp"
#include "../permute/axes.hpp"

struct lockstep_queue;

namespace lockstep::cuda {

constexpr int turn_threads = 256;
constexpr int turn_levels = 2, turn_outer = 6;

// As divider, but that 1 is no case of its own: code that many blocks run for the first time must be short.
struct quick_divider {
  uint32_t d = 1, multiplier = 0, shift = 0, whole = ~0u;

  quick_divider() = default;
  explicit quick_divider(int64_t by) : d(static_cast<uint32_t>(by)) {
    if (d == 1) return;
    const divider same(by);
    multiplier = same.multiplier, shift = same.shift, whole = 0;
  }
  LOCKSTEP_BOTH uint32_t quotient(uint32_t n) const {
#if defined(__CUDA_ARCH__)
    return (__umulhi(n, multiplier) + (n & whole)) >> shift;
#else
    return (static_cast<uint32_t>((uint64_t{n} * multiplier) >> 32) + (n & whole)) >> shift;
#endif
  }
  LOCKSTEP_BOTH uint32_t split(uint32_t& n) const {
    const uint32_t q = quotient(n);
    n -= q * d;
    return q;
  }
};
// The offset of an element of two axes that follow each other on one side, on the other side.
struct turn_run {
  uint32_t count, multiplier = 0, shift = 0;  // of the first axis; multiplier 0: of all
  uint32_t first = 0, second = 0;             // elements from one to the next

  LOCKSTEP_BOTH uint32_t offset(uint32_t n) const {
#if defined(__CUDA_ARCH__)
    const uint32_t q = __umulhi(n, multiplier) >> shift;
#else
    const uint32_t q = static_cast<uint32_t>((uint64_t{n} * multiplier) >> 32) >> shift;
#endif
    return (n - q * count) * first + q * second;
  }
};
struct turn_outer_axis {
  quick_divider count;
  uint32_t src, dst;  // elements
};
// Elements of a run along i lie side by side in src, along j in dst; both runs are one axis or two joined on that side,
// cut into tiles at any place. Blocks of `inner` elements stay together on both sides, in an order of their own.
struct turn_plan {
  quick_divider tiles_j, tiles_i;
  uint32_t tile_i, tile_j, count_i, count_j;  // blocks along i and j
  int outer;
  uint32_t groups_i;             // rows of src at a time
  quick_divider inner, lanes_i;  // lanes_i: threads that share a row of src
  turn_run j;
  uint32_t pitch, skew;  // elements of the image from j to the next; more after each word's worth of them
  const unsigned char* src;
  unsigned char* dst;
  quick_divider lanes_j;
  uint32_t groups_j;
  turn_run within, i;
  turn_outer_axis out[turn_outer];
  uint32_t blocks, image;  // bytes of the image
};

// The axes of a permutation as a turn sees them.
struct turn_shape {
  int inner[LOCKSTEP_MAX_RANK], i[LOCKSTEP_MAX_RANK], j[LOCKSTEP_MAX_RANK],
      out[LOCKSTEP_MAX_RANK];  // axes::at, fastest first
  int inners, is, js, outs;
  int64_t block, count_i, count_j;  // elements; blocks
  int64_t first_i, first_j;         // of them the first axis of the run
  int word_i, word_j;               // elements of a word that src and dst can be read and written by
};
struct turn_choice {
  uint32_t tile_i, tile_j;
  int rounds;  // of loads and stores, at most
  int word_i, word_j;
};

constexpr int gather_levels = 6, gather_rounds = 2;
struct gather_plan {
  const unsigned char* src;
  unsigned char* dst;
  uint32_t elements;
  turn_outer_axis axis[gather_levels];  // dst's fastest first; the last has what is left
  int levels;
  uint32_t blocks, threads;
};
bool plan_gather(const axes& a, uint32_t threads, gather_plan& plan);
lockstep_status launch_gather_plan(lockstep_queue& queue, int element_bytes, const gather_plan& plan, bool early);

bool shape_turn(const axes& a, pointers which, turn_shape& shape);
bool plan_turn(const axes& a, const turn_shape& shape, const turn_choice& choice, turn_plan& plan);
uint32_t turn_share(const turn_shape& shape, bool along_j, int64_t want, int word);
lockstep_status launch_turn_plan(lockstep_queue& queue, int element_bytes, const turn_choice& choice,
                                 const turn_plan& plan, bool early);

}  // namespace lockstep::cuda
