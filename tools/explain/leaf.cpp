// leaf.cpp - replay of square_sum's `shuffle` (B10): reduce_tree of backends/cuda/reduce/lanes.cuh,
// in the fixed order. Its own are the loops that index/leaf.hpp names, and the step from one
// walk_rows to the next (take_leaf in leaf.cuh).
#include "index/leaf.hpp"

#include <algorithm>

#include "bits/order.hpp"
#include "lessons.hpp"
#include "rules.hpp"
#include "text.hpp"

namespace lockstep::tool::explain {
namespace {

constexpr int most_leaves = 256, most_threads = 256;  // of a task, of a block

// The sizes of a leaf; those of the textbook's machine shrink with its warp.
struct leaf_shape {
  int lanes, rows;
  int64_t elements() const { return int64_t{lanes} * rows; }
};
leaf_shape shape_of(const settings& s) { return {4 * s.warp, s.classic ? 2 : order::rows}; }

// One thread of reduce_tree. Rounds count its accesses: threads of a warp stay in step.
template <int V, int warp>
struct worker {
  trace& t;
  const settings& s;
  int thread, warps;
  int round = 0;

  int lane() const { return thread % warp; }
  bool first_lane() const { return lane() == 0; }
  void touch(site where, int64_t first, int width = 1) { t.access(where, round++, first, width); }
  void meet(int mask) { touch(site::exchange, lane() ^ mask); }

  // take_leaf and join_rows: the lanes of a leaf of n elements or fewer.
  void leaf(int64_t first, int64_t n) {
    const leaf_shape shape = shape_of(s);
    const int ahead = std::min(32 / s.element_bytes, shape.rows);
    if (n >= shape.elements()) {
      for (int row = 0; row < shape.rows; row += ahead)
        cuda::walk_rows<V, warp>(ahead, row, lane(), [&](int, int, int i) { touch(site::read_src, first + i, V); });
    } else {  // for elements that are missing the last ones are read
      const bool whole = V > 1 && s.element_bytes > 2 && n % V == 0;
      const int few = whole ? ahead : 4;
      for (int row = 0; row * shape.lanes < n; row += few)
        if (whole)
          cuda::walk_rows<V, warp>(few, row, lane(), [&](int, int, int i) {
            touch(site::read_src, first + std::min<int64_t>(i, n - V), V);
          });
        else
          cuda::walk_rows<V, warp, 1>(
              few, row, lane(), [&](int, int, int i) { touch(site::read_src, first + std::min<int64_t>(i, n - 1)); });
    }
    const auto split = [&](int values, int mask) {
      for (int k = 0; k < values; ++k) meet(mask);
    };
    cuda::walk_joins<V>(warp, split, [&](int mask) { meet(mask); });
  }

  // join_warp: subtrees, one a lane, become one.
  void subtrees() {
    for (int mask = 1; mask < warp; mask *= 2) meet(mask);
  }
  // join_values: the tree over `count` values, by one warp.
  void values(int count, site where, int64_t begin) {
    for (int k = 0; k * warp < count; ++k) {
      if (k * warp + lane() < count)
        touch(where, begin + k * warp + lane());
      else
        ++round;
      subtrees();
    }
    if (count > warp) subtrees();
  }

  void put(int place) {
    if (first_lane())
      touch(site::put_value, place);
    else
      ++round;
  }
  void barrier() { t.barrier(), round = 0; }

  // fold_subtree, and what becomes of its value.
  void task(int64_t number, int64_t tasks, int leaves_a_task) {
    const int64_t leaf_elements = shape_of(s).elements(), leaves = (s.n + leaf_elements - 1) / leaf_elements;
    const int64_t first = cuda::first_leaf(number, leaves_a_task);
    const int here = cuda::leaves_here(leaves, first, leaves_a_task);
    for (int k = thread / warp; k < here; k = cuda::next_turn(k, warps)) {
      const int64_t i = (first + k) * leaf_elements;
      leaf(i, s.n - i);
      put(k);
    }
    barrier();
    if (thread < warp) values(here, site::read_own, 0);
    if (thread == 0 && tasks == 1)
      touch(site::write_dst, 0);
    else if (thread == 0)
      touch(site::write_partial, number);
  }

  // join_handed_over, by the last task's block.
  void finish(int64_t tasks) {
    int chunk = warp;
    while (chunk < 1024 && chunk * warps < tasks) chunk *= 2;
    const auto chunks = static_cast<int>((tasks + chunk - 1) / chunk);
    for (int c = thread / warp; c < chunks; c = cuda::next_turn(c, warps)) {
      const int64_t begin = int64_t{c} * chunk;
      values(static_cast<int>(std::min<int64_t>(chunk, tasks - begin)), site::read_partial, begin);
      put(c);
    }
    barrier();
    if (thread < warp) values(chunks, site::read_own, 0);
    if (thread == 0) touch(site::write_dst, 0);
  }
};

void describe(settings& s, trace& t, int V, int64_t tasks, int leaves_a_task) {
  t.chip = {s.warp, s.segment * s.element_bytes, s.banks};
  const machine chip = t.chip;
  const int warp = s.warp, bytes = s.element_bytes, row = std::max(1, s.banks * 4 / 8);
  t.arrays = {{"src", space::global, bytes, s.n, std::max(s.warp, 2 * s.segment)},
              {"dst", space::global, 8, 1, 1},
              {"value", space::shared, 8, std::max(leaves_a_task, s.warp), row},
              {"partials", space::global, 16, tasks, std::max(1, 4 * chip.segment_bytes / 16)},
              {"lane", space::lanes, 8, s.warp, s.warp}};
  const auto one = [](const request&) { return 1.0; };
  t.places = {
      {site::read_src, 0, false,
       format_text("{} lanes x {} bytes on neighbours fill {:.0f} segments; in the last, short leaf it says nothing",
                   warp, V * bytes, coalesced(warp, V * bytes, chip)),
       [=](const request& r) {
         const bool full = static_cast<int>(r.lanes.size()) == warp && r.lanes.front().width == V;
         return full && (V > 1 || r.lanes.back().first - r.lanes.front().first == warp - 1)
                    ? coalesced(warp, V * bytes, chip)
                    : -1;
       }},
      {site::read_partial, 3, false, "the last block reads neighbours",
       [=](const request& r) { return static_cast<int>(r.lanes.size()) == warp ? coalesced(warp, 16, chip) : -1; }},
      {site::exchange, 4, false, "lane i meets lane i ^ mask: every lane receives another's value",
       [](const request&) { return 0.0; }},
      {site::put_value, 2, true, "one value a leaf, by one lane", one},
      {site::read_own, 2, false, "neighbours: no conflict", one},
      {site::write_partial, 3, true, "one partial sum a block, by one lane: 16 bytes",
       [=](const request&) { return coalesced(1, 16, chip); }},
      {site::write_dst, 1, true, "one lane of the last block", one}};
}

template <int V, int warp>
trace replay_as(settings& s) {
  const leaf_shape shape = shape_of(s);
  const int64_t leaves = (s.n + shape.elements() - 1) / shape.elements();
  const auto leaves_a_task = static_cast<int>(cuda::leaves_a_task(leaves, 1, most_leaves));
  const int64_t tasks = (leaves + leaves_a_task - 1) / leaves_a_task;
  s.block = std::min(most_threads / 32, leaves_a_task) * warp;
  if (tasks == 1 && s.n % shape.elements() != 0) {  // as many warps as share the leaves evenly
    const int64_t rounds = (leaves * warp + s.block - 1) / s.block;
    s.block = static_cast<int>((leaves + rounds - 1) / rounds) * warp;
  }
  s.blocks = static_cast<int>(tasks);
  const int warps = s.block / warp;

  trace t;
  describe(s, t, V, tasks, leaves_a_task);
  t.start({"reduce_tree", s.blocks, s.block, 1});
  for (int block = 0; block < s.blocks; ++block)
    for (int thread = 0; thread < s.block; ++thread) {
      t.thread(block, thread);
      worker<V, warp>{t, s, thread, warps}.task(block, tasks, leaves_a_task);
    }
  if (tasks > 1) {
    t.start({"reduce_tree's last block", 1, s.block, 1, true});
    for (int thread = 0; thread < s.block; ++thread) {
      t.thread(0, thread);
      worker<V, warp>{t, s, thread, warps}.finish(tasks);
    }
  }
  t.notes = {format_text("A leaf is {} rows of {} lanes; a lane here holds four of them, so that a warp's loads are "
                         "neighbours and its joins are shuffles: shared memory carries one value a leaf.",
                         shape.rows, shape.lanes),
             "A partial sum travels with a word that says that it is there, 16 bytes by one store: no block waits for "
             "another, but the last task's, which asks until all have come and joins them in the order of the tree.",
             "Not drawn: that it asks more than once, and leaves 0 for the next call."};
  return t;
}

}  // namespace

trace shuffled_square_sum(settings& s) {
  if (s.element_bytes == 0) s.element_bytes = 4;
  if (s.element_bytes != 4 && s.element_bytes != 8)
    refuse_value("--element-bytes", s.element_bytes, "the picture of shuffle takes 4 or 8");
  if (s.block != 0) refuse_value("--block", s.block, "shuffle's block follows from --n; leave it out");
  if (s.blocks != 0) refuse_value("--blocks", s.blocks, "shuffle's grid follows from --n; leave it out");
  if (s.partial_bytes != 0 && s.partial_bytes != 8)
    refuse_value("--partial-bytes", s.partial_bytes, "shuffle's partial sums are doubles; leave it out");
  const int64_t leaf = shape_of(s).elements();
  if (s.n == 0) s.n = (s.classic ? 8 : 16) * leaf;
  require_range("--n", s.n, leaf + 1, 1 << 20);  // sums of a leaf or less are another kernel's
  const bool wide = s.element_bytes == 4;        // 16 bytes a lane; small warps have no room for four lanes a thread
  switch (s.warp) {
    case 32: return wide ? replay_as<4, 32>(s) : replay_as<2, 32>(s);
    case 16: return wide ? replay_as<4, 16>(s) : replay_as<2, 16>(s);
    case 8: return wide ? replay_as<4, 8>(s) : replay_as<2, 8>(s);
    case 4: return wide ? replay_as<4, 4>(s) : replay_as<2, 4>(s);
    case 2: return replay_as<2, 2>(s);
    default: return replay_as<1, 1>(s);
  }
}

}  // namespace lockstep::tool::explain
