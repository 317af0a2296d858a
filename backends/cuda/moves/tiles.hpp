// tiles.hpp - permutations by small boxes: what a launch of tiles.cu is told, made on the host by tiles_plan.cpp.
#pragma once

#include "../divide.hpp"
#include "../permute/axes.hpp"


namespace lockstep::cuda {

constexpr uint32_t tile_sector = 32;

// An axis along which there is more than one box.
struct grid_axis {
  divider boxes;
  int64_t src_step, dst_step;  // bytes from a box to the next
};
// A factor of a position within a box.
struct tile_level {
  divider count;
  int64_t memory;       // bytes from one to the next, in src or dst
  uint32_t place;       // and in the image
  uint16_t pad;         // more bytes of the image after each word's worth of elements
  int16_t cut;          // the grid_axis whose last box is short, or -1
  uint32_t last;        // how many that box has
};
// One side of a box: rows of contiguous elements.
struct tile_side {
  int levels;  // of its rows' numbers
  tile_level at[LOCKSTEP_MAX_RANK];
  uint32_t rows, run;  // run: elements of a row
  int cut;             // the grid_axis whose last box has shorter rows, or -1
  uint32_t cut_run;    // how long those are
  divider lanes;       // threads that share a row
  uint32_t groups;     // rows at a time
};
struct tiles_plan {
  const unsigned char* src;
  unsigned char* dst;
  const unsigned char* src_end;
  uint32_t boxes;
  int axes;
  grid_axis axis[LOCKSTEP_MAX_RANK];  // in the order in which boxes are numbered
  tile_side from, to;
  int run_levels;
  tile_level run[LOCKSTEP_MAX_RANK];  // of a row of dst
  int overlap;                        // the grid_axis along which boxes overlap, or -1
  uint32_t overlap_step;              // elements from one to the next in dst
  uint32_t image, threads;            // bytes of the image
};

// What a row or an element of a box is, relative to where the box begins.
struct tile_row {
  int64_t memory;
  uint32_t place;
  uint32_t there;  // 0 where the box is too short for it
};

// cut: the grid axes, as bits, along which the box is short. word: elements of a word, as a power of two.
template <int word>
LOCKSTEP_BOTH inline tile_row row_of(const tile_level* levels, int count, uint32_t number, unsigned cut) {
  tile_row r{0, 0, 1};
  for (int k = 0; k < count; ++k) {
    const tile_level& level = levels[k];
    uint32_t index = number;
    number = level.count.split(index);
    r.memory += index * level.memory;
    r.place += index * level.place + (index >> word) * level.pad;
    if (level.cut >= 0 && (cut >> level.cut & 1) != 0 && index >= level.last) r.there = 0;
  }
  return r;
}

// A box to make a plan of.
struct tile_choice {
  int64_t box[LOCKSTEP_MAX_RANK];  // elements, as axes::at
  int overlap;                     // the axis along which boxes overlap, or -1
  int64_t more;                    // elements by which they do
  uint32_t threads;
};

// Whether a box of that choice fits shared memory and a launch.
bool plan_tiles(const axes& a, const tile_choice& choice, tiles_plan& plan);
size_t tiles_shared(const tiles_plan& plan, int element_bytes);
tile_choice choose_tiles(const axes& a, int64_t src_bytes, int64_t dst_bytes, int64_t most_bytes, bool overlap,
                         uint32_t threads);

lockstep_status launch_tiles(lockstep_queue& queue, const axes& a);
lockstep_status launch_tiles_plan(lockstep_queue& queue, int element_bytes, const tiles_plan& plan, int hold, bool early);

}  // namespace lockstep::cuda
