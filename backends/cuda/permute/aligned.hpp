// aligned.hpp - boxes by aligned chunks of 16 bytes: what a launch of aligned.cu is told,
// made on the host by aligned_plan.cpp.
#pragma once

#include "../kernel/divide.hpp"
#include "../tuning.hpp"
#include "axes.hpp"

struct lockstep_queue;

namespace lockstep::cuda {

// An axis of the whole, cut into boxes; they overlap where a box takes over the elements
// that fill up its last sectors of dst.
struct aligned_axis {
  divider tiles;
  uint32_t box, last;          // elements of a full box, overlap included, and of the last
  int64_t src_step, dst_step;  // bytes from one box to the next
};
// An axis along which a box has several runs on one side.
struct run_axis {
  divider count;
  int64_t memory;  // bytes from a run to the next, there
  uint32_t place;  // and in the image
  int tile;        // aligned_plan::tile[] that may cut it
};
// One side of a box: runs of contiguous bytes, and their image in shared memory, in which
// every byte lies where its address lies, modulo 16.
struct run_side {
  int axes;
  run_axis at[LOCKSTEP_MAX_RANK];
  uint32_t runs, bytes;  // of a full run
  int cut;               // the tile[] whose last box has shorter runs, or -1
  uint32_t cut_bytes;    // how long those are
  divider lanes;         // threads that share a run
  uint32_t groups;       // runs at a time
  uint32_t image;        // bytes
};
// Between the images: a thread's element of a step, in mixed radix.
struct lane_axis {
  divider count;
  uint32_t get, put;  // bytes in src's and in dst's image
};
struct move_step {
  uint32_t get, put;
};
struct aligned_plan {
  const unsigned char* src;
  unsigned char* dst;
  const unsigned char* src_end;  // chunks at src's ends hold bytes that are not ours to read
  int rank;
  uint32_t tiles;
  aligned_axis tile[LOCKSTEP_MAX_RANK];  // in the order in which boxes are numbered
  run_side from, to;
  int lane_axes;
  lane_axis lane[2 + LOCKSTEP_MAX_RANK];
  uint32_t movers, threads;   // threads that move elements, and the block's
  uint32_t steps;             // a multiple of 8; the last may be there several times
  move_step step[box_steps];  // where a step begins
  int overlap;                // the tile[] along which boxes overlap, or -1
  uint32_t overlap_step;      // bytes from one to the next in dst
  int64_t overlap_bytes;      // of all of that axis there
};

// Whether both sides have a contiguous axis.
bool aligned_fits(const axes& a);
// False where no box of a can be shared out among threads.
bool plan_aligned(const axes& a, const move_tuning& tuned, aligned_plan& plan);
// The same, at the cost of a copy where the thread's last plan was of the same shape, for a plan takes longer than a
// small transpose. Of the pointers only the bytes within a sector count.
bool plan_aligned_again(const axes& a, const move_tuning& tuned, aligned_plan& plan);

lockstep_status launch_aligned(lockstep_queue& queue, const axes& a);

}  // namespace lockstep::cuda
