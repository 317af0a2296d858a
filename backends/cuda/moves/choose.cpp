// choose.cpp - by what a permutation is estimated to move fastest.
#include <algorithm>
#include <limits>

#include "../device/queue.hpp"
#include "../transpose/thin.hpp"
#include "moves.hpp"

namespace lockstep::cuda {
namespace {

bool in_chunks(const wide_job& job) {
  const auto whole = [&](int64_t stride) { return stride * static_cast<int64_t>(job.element_bytes) % 16 == 0; };
  bool all = whole(job.rows) && whole(job.cols) && whole(job.src_ld) && whole(job.dst_ld);
  for (int k = 0; k < job.outer_axes; ++k)
    all = all && whole(job.outer[k].src_stride) && whole(job.outer[k].dst_stride);
  return all;
}

// Tiles of 16-byte accesses. Where DRAM is the limit they are the fastest there is, if little of them is padding; in
// the L2 where there are enough of them, by the bytes.
bool wide_pays(const lockstep_queue& queue, const axes& a, const wide_job& job, double others) {
  const int64_t bytes = a.elements() * a.element_bytes;
  if (bytes > queue.facts->l2_bytes && is_thin(job)) return true;
  const move_tuning& tuned = queue.facts->tuned.moves;
  const double padding = wide_padding(job);
  if (2 * bytes > queue.facts->l2_bytes)
    return padding <= tuned.wide_padding && (a.element_bytes >= 4 || in_chunks(job));
  return padding <= tuned.wide_padding_in_l2 && in_chunks(job) && wide_tiles(job) >= tuned.has.processors &&
         tuned.wide_launch + static_cast<double>(bytes) * tuned.wide_byte * padding * measured_processors /
                                 static_cast<double>(tuned.has.processors) <
             others;
}

move_by choose(const lockstep_queue& queue, const axes& a, const wide_job* job) {
  if (a.rank == 0) return move_by::gather;
  const bool parts = span_of(a) >= int64_t{1} << 31;
  if (parts && job != nullptr) return move_by::wide;
  if (parts && tiles_fit(a)) return move_by::tiles;
  const move_tuning& tuned = queue.facts->tuned.moves;
  tiles_shape shape;
  tiles_choice choice;
  const double gather = gather_cost(a, tuned), tiles = shape_tiles(a, pointers::assumed_aligned, shape)
                                                           ? choose_tiles(a, shape, tuned, choice)
                                                           : std::numeric_limits<double>::infinity();
  if (job != nullptr && wide_pays(queue, a, *job, std::min(gather, tiles))) return move_by::wide;
  return tiles < gather ? move_by::tiles : move_by::gather;
}

}  // namespace

move_by fastest_move(const lockstep_queue& queue, const axes& a, const wide_job* job) {
  thread_local recent<move_by> lately;
  const int processors = queue.facts->processors;
  const move_by* known = lately.find(a, processors);
  return *(known != nullptr ? known : lately.add(a, processors, choose(queue, a, job)));
}

bool tiles_fit(const axes& a) {
  tiles_shape shape;
  return shape_tiles(a, pointers::assumed_aligned, shape);
}

}  // namespace lockstep::cuda
