// way.cuh - what the ways through a call's sequences share. A way is a row of reduce's and square_sum's tables
// (table.cuh); it stands beside its kernels, in the file that it is named after, and has
//   refuses(queue, call)     why its kernels cannot take the call; nullptr: they can
//   yields(queue, call)      whether another way is faster
//   partials(queue, call)    bytes of partial results in the workspace
//   shares(call)             whether several blocks may share a sequence, so that a norm of f64 takes the passes that
//                            follow (norm.cuh)
//   takes<Fold>              whether there are kernels for this fold
//   run(queue, call, fold)   the launches
#pragma once

#include <algorithm>

#include "../../../lib/bits/reductions.hpp"
#include "sequences.cuh"

namespace lockstep::cuda {

inline size_t element_bytes(lockstep_dtype dtype) {
  return dtype == LOCKSTEP_F16 || dtype == LOCKSTEP_BF16 ? 2 : dtype == LOCKSTEP_F32 || dtype == LOCKSTEP_I32 ? 4 : 8;
}
inline int64_t element_bytes(const lockstep_reduce_desc& d) { return static_cast<int64_t>(element_bytes(d.dtype)); }
inline bool sums_floats(const lockstep_reduce_desc& d) {
  return d.dtype != LOCKSTEP_I32 && d.dtype != LOCKSTEP_I64 && !lib::kind_of(d.reduction).extreme();
}
inline bool finds_extremes(const lockstep_reduce_desc& d) { return lib::kind_of(d.reduction).extreme(); }
inline bool rescales(const lockstep_reduce_desc& d) {
  return lib::kind_of(d.reduction).to == lib::finish::root && d.dtype == LOCKSTEP_F64;
}
inline sequences sequences_of(const lockstep_call& call) {
  const lockstep_reduce_desc& d = call.reduce;
  return {call.src, d.count, d.length, d.element_stride, d.sequence_stride, d.offsets};
}
inline double bytes_of(const lockstep_reduce_desc& d) {
  return static_cast<double>(d.count) * static_cast<double>(d.length) * static_cast<double>(element_bytes(d));
}

// Sequences of one length, each with elements.
inline const char* not_of_one_length(const lockstep_reduce_desc& d) {
  if (d.offsets != nullptr) return "needs sequences of one length";
  return d.length == 0 ? "needs sequences that have elements" : nullptr;
}
inline const char* not_rows(const lockstep_reduce_desc& d) {
  if (const char* why = not_of_one_length(d); why != nullptr) return why;
  return d.element_stride != 1 ? "needs rows without gaps between their elements" : nullptr;
}

// Whether every row may be read by loads of 16 bytes, or of 8 where elements have 2.
inline bool loads_neighbours(const lockstep_call& call) {
  const lockstep_reduce_desc& d = call.reduce;
  const int64_t bytes = element_bytes(d), load = bytes == 2 ? 8 : 16;
  return d.element_stride == 1 && reinterpret_cast<uintptr_t>(call.src) % static_cast<uintptr_t>(load) == 0 &&
         d.sequence_stride * bytes % load == 0;
}
template <class Fold>
constexpr int neighbours_of = sizeof(typename Fold::element) == 8 ? 2 : 4;  // of such a load

// How blocks share a sequence.
struct sequence_tasks {
  int leaves;  // of a task
  int64_t count;
};
inline sequence_tasks tasks_of(const lockstep_reduce_desc& d) {
  const int64_t leaves = order::leaves(d.length), task = leaves_a_task(leaves, d.count, most_leaves);
  return {static_cast<int>(task), (leaves + task - 1) / task};
}

// Columns and rows of at most one leaf have kernels for extremes of 16-bit floats.
template <class Fold>
constexpr bool narrow_extreme = !Fold::ordered && sizeof(typename Fold::element) == 2;
// Whether the fold is an arg_extreme.
template <class Fold>
constexpr bool finds_index = requires(typename Fold::partial value) {
  value.index;
};

constexpr size_t partial_bytes = 24;  // the largest fold's

// What a way has unless it says otherwise.
struct way {
  static const char* refuses(const lockstep_queue&, const lockstep_call&) { return nullptr; }
  static bool yields(const lockstep_queue&, const lockstep_call&) { return false; }
  static size_t partials(const lockstep_call&) { return 0; }
  static bool shares(const lockstep_call&) { return false; }
  template <class Fold>
  static constexpr bool takes = !follows<Fold> && !narrow_extreme<Fold>;  // one warp or thread finishes a sequence
};

}  // namespace lockstep::cuda
