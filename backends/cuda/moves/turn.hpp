// turn.hpp - permutations as turns of small tiles: what a launch of turn.cu is told, made on the host by turn_plan.cpp.
#pragma once

#include "../divide.hpp"
#include "../permute/axes.hpp"

struct lockstep_queue;

namespace lockstep::cuda {

constexpr int turn_threads = 256;
constexpr int turn_levels = 4, turn_outer = 6;

struct turn_level {
  divider count;
  uint32_t stride;  // elements, on the side where the axes of the run do not follow each other
};
struct turn_outer_axis {
  divider count;
  uint32_t src, dst;  // elements
};
// Elements of a run along i lie side by side in src, along j in dst; both runs are axes joined on that side, cut into
// tiles at any place. Blocks of `inner` elements stay together on both sides, in an order of their own.
struct turn_plan {
  const unsigned char* src;
  unsigned char* dst;
  uint32_t count_i, count_j;  // blocks along i and j
  uint32_t tile_i, tile_j;
  divider tiles_i, tiles_j;
  divider lanes_i, lanes_j;    // threads that share a row: of src, of dst
  uint32_t groups_i, groups_j; // rows at a time
  uint32_t pitch, skew;        // elements of the image from j to the next; more after each word's worth of them
  divider inner;
  int levels_i, levels_j, levels_inner, outer;
  turn_level i[turn_levels], j[turn_levels], within[turn_levels];
  turn_outer_axis out[turn_outer];
  uint32_t blocks, image;  // bytes of the image
};

LOCKSTEP_BOTH inline uint32_t offset_of(const turn_level* levels, int count, uint32_t number) {
  if (count == 1) return number * levels[0].stride;
  uint32_t offset = 0;
  for (int k = 0; k < count; ++k) {
    uint32_t index = number;
    number = levels[k].count.split(index);
    offset += index * levels[k].stride;
  }
  return offset;
}

// The axes of a permutation as a turn sees them.
struct turn_shape {
  int inner[LOCKSTEP_MAX_RANK], i[LOCKSTEP_MAX_RANK], j[LOCKSTEP_MAX_RANK], out[LOCKSTEP_MAX_RANK];  // axes::at, fastest first
  int inners, is, js, outs;
  int64_t block, count_i, count_j;  // elements; blocks
  int word_i, word_j;               // elements of a word that src and dst can be read and written by
};
struct turn_choice {
  uint32_t tile_i, tile_j;
  int rounds;  // of loads and stores, at most
  int word_i, word_j;
};

bool shape_turn(const axes& a, pointers which, turn_shape& shape);
bool plan_turn(const axes& a, const turn_shape& shape, const turn_choice& choice, turn_plan& plan);
uint32_t turn_share(const turn_shape& shape, bool along_j, int64_t want, int word);
lockstep_status launch_turn_plan(lockstep_queue& queue, int element_bytes, const turn_choice& choice,
                                 const turn_plan& plan, bool early);

}  // namespace lockstep::cuda
