// stencil_sweeps.hpp - several sweeps of a stencil in one pass over the arrays.
#pragma once

#include "stencil_tile.hpp"

namespace lockstep::cpu {

// How a call is cut: the work of a thread at a time.
struct sweeps_plan {
  int depth = 1;             // most sweeps of a pass
  extent tile{};             // results
  int64_t ring = 0;          // rows (rank 2) or planes (rank 3) of a sweep that are kept for the next
  int64_t pitch = 0;         // elements of a row of a ring
  int64_t ends = 0;          // of them, before its first result
  int64_t plane = 0;         // elements of a row or plane
  int64_t columns = 0;       // by lanes: registers of a tile
  int64_t own_elements = 0;  // scratch of a thread
};

// The depth and the tile of least cost on this machine; and the scratch that any others need.
sweeps_plan plan_sweeps(const lockstep_queue& queue, const lockstep_stencil_desc& d);
sweeps_plan plan_of(const lockstep_stencil_desc& d, int depth, const extent& tile);
// The same for a line whose parts are in the lanes of registers.
sweeps_plan plan_lanes(const lockstep_queue& queue, const lockstep_stencil_desc& d, int lanes);
sweeps_plan with_columns(const lockstep_stencil_desc& d, sweeps_plan plan, int64_t columns, int lanes);

// Whether choosing a plan takes longer than it saves.
bool too_little_to_plan(const lockstep_queue& queue, const lockstep_stencil_desc& d);

// A whole call by a plan (stencil.cpp): its workspace, and its launch.
size_t sweeps_bytes(const lockstep_queue& queue, const lockstep_stencil_desc& d, const sweeps_plan& plan);
void run_sweeps(const lockstep_queue& queue, const lockstep_call& call, const sweeps_plan& plan);

// depth applications to s.batch arrays: s.src_shape is the first one's, s.dst_shape the last one's.
// own: scratch of queue.threads threads.
template <class T>
void run_pass(const lockstep_queue& queue, const sweep<T>& s, const sweeps_plan& plan, int depth, T* own);

}  // namespace lockstep::cpu
