// trace_test.cpp - the counts that the literature gives for its kernels, and the rule for all
// replays: every element is read once and written once, for any shape.
#include "call/trace.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lessons.hpp"

namespace lockstep::tool::explain {
namespace {

struct replayed {
  trace t;
  std::vector<request> all;
  std::map<site, summary> sums;
  const summary& operator[](site where) const { return sums.at(where); }
};

replayed replay(settings s) {
  const lesson& what = find_lesson(s);
  if (s.classic) s.warp = 2, s.segment = 2;
  if (s.banks == 0) s.banks = s.warp;
  replayed r{what.replay(s), {}, {}};
  r.all = r.t.requests();
  for (const summary& sum : summarize(r.t, r.all)) r.sums[sum.where->where] = sum;
  return r;
}
settings of(const char* op, const char* variant) {
  settings s;
  s.op = op, s.variant = variant;
  return s;
}

// Every element of an array touched once, and none beyond it.
void expect_each_once(const replayed& r, site where) {
  const array& a = r.t.arrays[static_cast<size_t>(r.t.at(where).array)];
  std::map<int64_t, int> touched;
  for (const request& one : r.all)
    if (one.where == where)
      for (const touch& t : one.lanes)
        for (int64_t e = t.first; e < t.first + t.width; ++e) ++touched[e];
  EXPECT_EQ(touched.size(), static_cast<size_t>(a.elements)) << a.name;
  for (const auto& [e, times] : touched) {
    EXPECT_EQ(times, 1) << a.name << " " << e;
    EXPECT_TRUE(e >= 0 && e < a.elements) << a.name << " " << e;
  }
}

// What is wrong with the agreement between rule and count; empty: nothing.
std::string disagreements(const replayed& r) {
  std::string text;
  for (const auto& [where, sum] : r.sums)
    if (sum.agreed != sum.judged) text += sum.where->rule + "; ";
  return text;
}

constexpr const char* boundaries[] = {"nearest", "mirror", "reflect", "wrap", "constant", "valid"};

// Stretches, strips and tiles overlap where they read, and never where they write; ends, edges and faces leave no gap.
TEST(explain_sweeps, every_result_is_written_once) {
  for (const char* variant : {"sweeps_registers", "sweeps_streamed", "sweeps_planes"})
    for (const char* boundary : boundaries)
      for (const int bytes : {4, 8})
        for (const int64_t n : {1, 17, 140, 257, 600, 1500})
          for (const int radius : {1, 2})
            for (const int sweeps : {2, 3, 8}) {
              if (radius * sweeps > 8 || (std::string(boundary) == "valid" && n <= 2 * radius * sweeps)) continue;
              const bool cube = std::string(variant) == "sweeps_planes";
              if (cube ? radius > 1 || sweeps > 3 || n > 140 : n == 140) continue;  // a cube's tiles are many
              if (cube && n == 1 && std::string(boundary) == "mirror") continue;    // the kernel refuses it
              settings s = of("stencil", variant);
              s.boundary = boundary, s.element_bytes = bytes, s.n = n, s.radius = radius, s.sweeps = sweeps;
              SCOPED_TRACE(testing::Message() << variant << " " << boundary << " of " << bytes << " bytes, n " << n
                                              << " r " << radius << " sweeps " << sweeps);
              const replayed r = replay(s);
              expect_each_once(r, site::write_dst);
              ASSERT_EQ(disagreements(r), "");
              ASSERT_FALSE(HasFailure());
            }
}

// A result of D sweeps depends on elements as far as D along each axis: its block has read them.
TEST(explain_sweeps, a_block_reads_all_that_its_results_need) {
  for (const char* boundary : boundaries)
    for (const auto& [bytes, n] : {std::pair{4, int64_t{33}}, {8, 112}}) {
      constexpr int64_t depth = 3;
      settings s = of("stencil", "sweeps_planes");
      s.boundary = boundary, s.element_bytes = bytes, s.n = n, s.sweeps = depth;
      SCOPED_TRACE(testing::Message() << boundary << " of " << bytes << " bytes, n " << n);
      const replayed r = replay(s);
      const bool wrap = s.boundary == "wrap";
      const int64_t origin = s.boundary == "valid" ? depth : 0, nx = n, nz = 2 * depth + 3;
      const int64_t ny = r.t.arrays[0].elements / nz / nx, columns = nx - 2 * origin, rows = ny - 2 * origin;
      std::map<int, std::set<int64_t>> read;  // of a block
      for (const request& one : r.all)
        if (one.where == site::read_src)
          for (const touch& t : one.lanes)
            for (int64_t e = t.first; e < t.first + t.width; ++e) read[one.block].insert(e);
      int64_t missing = 0;
      for (const request& one : r.all)
        if (one.where == site::write_dst)
          for (const touch& t : one.lanes)
            for (int64_t e = t.first; e < t.first + t.width; ++e) {
              const int64_t at[] = {e / columns / rows + origin, e / columns % rows + origin, e % columns + origin};
              const int64_t size[] = {nz, ny, nx};
              for (int axis = 0; axis < 3; ++axis)
                for (int64_t by = -depth; by <= depth; ++by) {
                  int64_t from[] = {at[0], at[1], at[2]};
                  from[axis] += by;
                  if (wrap) from[axis] = (from[axis] + size[axis]) % size[axis];
                  if (from[axis] < 0 || from[axis] >= size[axis]) continue;
                  missing += read[one.block].count((from[0] * ny + from[1]) * nx + from[2]) == 0;
                }
            }
      EXPECT_EQ(missing, 0);
    }
}

// One barrier a step: an edge row is read in the phase after it was written, and in that phase nobody writes it. A
// thread reads from the ring what it copied there last.
TEST(explain_sweeps, edge_rows_wait_for_one_barrier) {
  for (const int sweeps : {2, 3}) {
    settings s = of("stencil", "sweeps_planes");
    s.sweeps = sweeps;
    const replayed r = replay(s);
    const launch& grid = r.t.launches.front();
    const int block = r.t.best_block;
    std::map<int, std::set<int64_t>> written, read;  // of a phase
    const int64_t ring = int64_t{4} * 33 * 128;      // planes of src; those of later sweeps lie behind them
    int reads_of_ring = 0, early = 0, stale = 0, overwritten = 0;
    for (int thread = 0; thread < grid.block_x; ++thread) {
      std::map<int64_t, int> copied, taken;  // places of the ring: how often written, and read
      for (const event& e : r.t.of_thread(block, thread)) {
        if (e.where == site::put_value) written[e.phase].insert(e.first);
        if (e.where == site::read_other && e.first >= ring) read[e.phase].insert(e.first);
        if (e.where == site::write_tile) ++copied[e.first];
        if (e.where != site::read_tile) continue;
        ++reads_of_ring;
        stale += ++taken[e.first] != copied[e.first];
      }
    }
    EXPECT_EQ(reads_of_ring, (3 + 2 * sweeps) * 4 * grid.block_x);  // each plane once
    EXPECT_EQ(read.size(), static_cast<size_t>(3 + 2 * sweeps + 2 * sweeps - 1));
    read.erase(read.begin());  // what the first step reads is not used
    for (const auto& [phase, places] : read)
      for (const int64_t place : places) {
        early += written[phase - 1].count(place) == 0;
        overwritten += written[phase].count(place) != 0;
      }
    EXPECT_EQ(stale, 0) << "reads of the ring that are not of the plane copied last";
    EXPECT_EQ(early, 0) << "reads of edge rows that the step before has not written";
    EXPECT_EQ(overwritten, 0) << "reads of edge rows that the same step writes";
  }
}

TEST(explain_transpose, naive_rows_pay_a_segment_a_lane) {
  const replayed a1 = replay(of("transpose", "naive_coalesced_read")),
                 a2 = replay(of("transpose", "naive_coalesced_write"));
  EXPECT_EQ(a1[site::read_src].most_met, 4);
  EXPECT_EQ(a1[site::write_dst].least_met, 32);
  EXPECT_EQ(a1[site::write_dst].most_met, 32);
  EXPECT_EQ(a1[site::write_dst].met, 32 * 32);
  EXPECT_EQ(a2[site::read_src].most_met, 32);
  EXPECT_EQ(a2[site::write_dst].most_met, 4);
  EXPECT_EQ(disagreements(a1) + disagreements(a2), "");
}

TEST(explain_transpose, classic_picture) {  // 4 x 4, warps of 2, segments of 2: half of each write is waste
  settings s = of("transpose", "naive_coalesced_read");
  s.classic = true;
  const replayed a1 = replay(s);
  EXPECT_EQ(a1[site::read_src].requests, 8);
  EXPECT_EQ(a1[site::read_src].met, 8);
  EXPECT_EQ(a1[site::write_dst].met, 16);
  s.variant = "tiled";
  const replayed a3 = replay(s);
  EXPECT_EQ(a3[site::read_src].met, 8);
  EXPECT_EQ(a3[site::write_dst].met, 8);
  EXPECT_EQ(a3[site::read_tile].most_ways, 2);
  EXPECT_EQ(disagreements(a1) + disagreements(a3), "");
}

TEST(explain_transpose, classic_picture_of_wide) {  // a lane moves a segment: no waste, no conflict
  settings s = of("transpose", "wide");
  s.classic = true;
  const replayed a5 = replay(s);
  EXPECT_EQ(a5.t.arrays[0].elements, 16);
  EXPECT_EQ(a5[site::read_src].met, 8);
  EXPECT_EQ(a5[site::write_dst].met, 8);
  EXPECT_EQ(a5[site::write_tile].most_ways, 1);
  EXPECT_EQ(a5[site::read_tile].most_ways, 1);
  EXPECT_EQ(disagreements(a5), "");
}

TEST(explain_transpose, tile_conflicts_32_ways_until_padded_or_swizzled) {
  const replayed a3 = replay(of("transpose", "tiled"));
  EXPECT_EQ(a3[site::read_tile].most_ways, 32);
  EXPECT_EQ(a3[site::write_tile].most_ways, 1);
  EXPECT_EQ(a3[site::read_src].met, a3[site::read_src].needed);
  EXPECT_EQ(a3[site::write_dst].met, a3[site::write_dst].needed);
  for (const char* variant : {"tiled_padded", "tiled_swizzled"}) {
    const replayed a4 = replay(of("transpose", variant));
    EXPECT_EQ(a4[site::read_tile].most_ways, 1) << variant;
    EXPECT_EQ(a4[site::write_tile].most_ways, 1) << variant;
    EXPECT_EQ(disagreements(a4), "") << variant;
  }
}

TEST(explain_transpose, wide_coalesces_without_conflict) {
  for (const int bytes : {1, 2, 4, 8, 16}) {
    settings s = of("transpose", "wide");
    s.element_bytes = bytes;
    const replayed a5 = replay(s);
    EXPECT_EQ(disagreements(a5), "") << bytes;
    EXPECT_EQ(a5[site::read_src].met, a5[site::read_src].needed) << bytes;
    EXPECT_EQ(a5[site::write_dst].met, a5[site::write_dst].needed) << bytes;
    EXPECT_EQ(a5[site::write_tile].most_ways, 1) << bytes;
    EXPECT_EQ(a5[site::read_tile].most_ways, 1) << bytes;
    expect_each_once(a5, site::read_src);
    expect_each_once(a5, site::write_tile);
    expect_each_once(a5, site::read_tile);
    expect_each_once(a5, site::write_dst);
  }
}

TEST(explain_transpose, any_shape_moves_each_element_once) {
  for (const lesson& l : transpose_lessons())
    if (l.row != std::string("A5"))
      for (const auto& [rows, columns] : {std::pair{1, 1}, {33, 65}, {70, 40}, {5, 129}}) {
        settings s = of(l.op, l.variant);
        s.rows = rows, s.columns = columns;
        const replayed r = replay(s);
        expect_each_once(r, site::read_src);
        expect_each_once(r, site::write_dst);
      }
}

TEST(explain_transpose, an_element_lands_where_the_transpose_says) {
  for (const lesson& l : transpose_lessons()) {
    if (l.row == std::string("A5")) continue;  // turns in registers
    settings s = of(l.op, l.variant);
    s.rows = 45, s.columns = 37;
    const replayed r = replay(s);
    std::map<std::pair<int, int64_t>, int64_t> tile;  // block, place -> element of src
    int wrong = 0;
    for (int pass = 0; pass < 2; ++pass)
      for (int block = 0; block < r.t.launches[0].blocks; ++block)
        for (int t = 0; t < r.t.launches[0].block_x * r.t.launches[0].block_y; ++t) {
          int64_t held = -1;  // what the thread has just read
          for (const event& e : r.t.of_thread(block, t)) {
            if (e.where == site::read_src) held = e.first;
            if (e.where == site::write_tile) tile[{block, e.first}] = held;
            if (e.where == site::read_tile) held = pass == 1 ? tile.at({block, e.first}) : 0;
            if (e.where == site::write_dst && pass == 1)
              wrong += held != e.first % s.rows * s.columns + e.first / s.rows;
          }
        }
    EXPECT_EQ(wrong, 0) << l.variant;
  }
}

// ---- square_sum -----------------------------------------------------------------------
TEST(explain_square_sum, reads) {
  EXPECT_EQ(replay(of("square_sum", "one_block_slices"))[site::read_src].most_met,
            32);  // slices of 8 floats: a segment a lane
  for (const char* variant : {"one_block_interleaved", "grid_stride", "shared_tree_masked", "conflicting"}) {
    const replayed r = replay(of("square_sum", variant));
    EXPECT_EQ(r[site::read_src].met, r[site::read_src].needed) << variant;
    EXPECT_EQ(r[site::read_src].most_met, 4) << variant;
  }
  const replayed b1 = replay(of("square_sum", "serial"));
  EXPECT_EQ(b1[site::read_src].requests, 16);
  EXPECT_EQ(b1[site::read_src].lanes, 16);
}

TEST(explain_square_sum, every_element_and_partial_once) {
  for (const lesson& l : square_sum_lessons())
    for (const int64_t n : {1, 255, 257, 5000}) {
      if (l.row == std::string("B10")) continue;  // below
      settings s = of(l.op, l.variant);
      s.n = n, s.blocks = 3;
      const replayed r = replay(s);
      expect_each_once(r, site::read_src);
      if (r.sums.count(site::write_partial) == 0) continue;
      expect_each_once(r, site::write_partial);
      if (r.sums.count(site::read_partial) != 0) expect_each_once(r, site::read_partial);
    }
}

// The block's tree adds every value once: replayed with numbers, value 0 is their sum.
TEST(explain_square_sum, trees_add_every_value_once) {
  for (const lesson& l : square_sum_lessons()) {
    if (l.row == std::string("B10")) continue;  // below
    const replayed r = replay(of(l.op, l.variant));
    if (r.sums.count(site::put_value) == 0) continue;
    const size_t kernel = r.t.launches.size() == 1 || l.row == std::string("B5") || l.row >= std::string("B6") ? 0 : 1;
    const int threads = r.t.launches[kernel].block_x;
    std::map<int64_t, int64_t> value;
    std::vector<int64_t> own(static_cast<size_t>(threads));
    for (int t = 0; t < threads; ++t) own[static_cast<size_t>(t)] = int64_t{1} << (t % 50);
    int64_t all = 0;
    for (const int64_t x : own) all += x;
    // By phase and round, all threads' reads before their writes.
    std::map<std::pair<int, int>, std::vector<std::pair<int, event>>> steps;
    for (int t = 0; t < threads; ++t)
      for (const event& e : r.t.of_thread(0, t))
        if (e.kernel == static_cast<int>(kernel) &&
            r.t.arrays[static_cast<size_t>(r.t.at(e.where).array)].where == space::shared)
          steps[{e.phase, e.round}].push_back({t, e});
    for (const auto& [when, events] : steps) {
      std::map<int, int64_t> held;
      bool own_read = false;
      for (const auto& [t, e] : events) {
        if (e.where == site::read_own) held[t] = value.at(e.first), own_read = true;
        if (e.where == site::read_other)
          held[t] = (own_read ? held[t] : own[static_cast<size_t>(t)]) + value.at(e.first);
      }
      bool joined = false;
      for (const auto& [t, e] : events) joined |= e.where == site::write_joined;
      for (const auto& [t, e] : events) {
        if (e.where == site::write_joined) value[e.first] = held[t];
        if (e.where == site::put_value) value[e.first] = own[static_cast<size_t>(t)];
        if (e.where == site::read_other && !joined) own[static_cast<size_t>(t)] = held[t];
      }
    }
    EXPECT_EQ(value.at(0), all) << l.variant;
  }
}

// B10: each element is read by the lane that order id 1 says, and after its exchanges every lane
// of a warp has met all others.
TEST(explain_square_sum, shuffles_in_the_fixed_order) {
  for (const int bytes : {4, 8})
    for (const int64_t n : {2049, 4096, 20011, 70001}) {
      settings s = of("square_sum", "shuffle");
      s.n = n, s.element_bytes = bytes;
      const replayed r = replay(s);
      EXPECT_EQ(disagreements(r), "") << n;
      std::vector<int> times(static_cast<size_t>(n));
      const int V = 16 / bytes;
      std::vector<uint32_t> met(32);  // by lane: the lanes whose values it has; of one warp at a time
      int of_block = -1, of_warp = -1;
      for (const request& one : r.all) {
        if (one.kernel == 0 && one.where == site::read_src) {
          if (one.block != of_block || one.warp != of_warp || met[0] == 0xffffffffu)
            for (int lane = 0; lane < 32; ++lane) met[static_cast<size_t>(lane)] = 1u << lane;
          of_block = one.block, of_warp = one.warp;
          for (const touch& t : one.lanes)
            for (int64_t e = t.first; e < t.first + t.width; ++e) {
              ++times[static_cast<size_t>(e)];
              const int64_t lane = e % 2048 % 128;  // of 128: V neighbours a thread, four in all
              EXPECT_TRUE(t.width != V || lane % (32 * V) / V == t.lane) << n << " " << e;
            }
        } else if (one.kernel == 0 && one.phase == 0 && one.where == site::exchange) {
          ASSERT_EQ(one.lanes.size(), 32u);
          const std::vector<uint32_t> before = met;
          for (const touch& t : one.lanes) met[static_cast<size_t>(t.lane)] |= before[static_cast<size_t>(t.first)];
        } else if (one.where == site::put_value && one.kernel == 0) {
          EXPECT_EQ(met[0], 0xffffffffu) << "block " << one.block << " warp " << one.warp;
        }
      }
      const int64_t whole = n / 2048 * 2048;  // in the short leaf, the last stands for those that are missing
      for (int64_t e = 0; e < n - 1; ++e) ASSERT_EQ(times[static_cast<size_t>(e)], 1) << n << " " << e;
      EXPECT_GE(times[static_cast<size_t>(n - 1)], 1);
      EXPECT_TRUE(whole < n || times[static_cast<size_t>(n - 1)] == 1);
      if (r.sums.count(site::write_partial) != 0) {
        expect_each_once(r, site::write_partial);
        expect_each_once(r, site::read_partial);
      }
      expect_each_once(r, site::write_dst);
    }
}

TEST(explain_square_sum, shuffles_have_leaves_of_the_order) {
  const replayed r = replay(of("square_sum", "shuffle"));
  EXPECT_EQ(r[site::put_value].lanes, 16 + 1);     // leaves of 2,048 elements, and what the last block keeps
  EXPECT_EQ(r[site::write_partial].lanes, 4);      // of four leaves each
  EXPECT_EQ(r[site::read_src].requests, 16 * 16);  // a leaf: 16 rows
  EXPECT_EQ(r[site::read_src].least_met, 16);
  EXPECT_EQ(r[site::exchange].requests, 16 * 8 + 4 * 5 + 2 * 5);  // d = 64 and 32: three; then five; trees of 32
}

TEST(explain_square_sum, conflicts) {
  const auto ways = [](const char* variant, int partial_bytes) {
    settings s = of("square_sum", variant);
    s.partial_bytes = partial_bytes;
    const replayed r = replay(s);
    EXPECT_EQ(disagreements(r), "") << variant;
    return r[site::read_own].most_ways;
  };
  EXPECT_EQ(ways("shared_tree_masked", 8), 1);  // diverges, but does not conflict
  EXPECT_EQ(ways("shared_tree_masked", 4), 1);
  EXPECT_EQ(ways("shared_tree_unrolled", 8), 1);
  EXPECT_EQ(ways("conflicting", 4), 8);   // d = 4: 32 lanes on every 8th bank; d = 16: 8 lanes, one bank
  EXPECT_EQ(ways("conflicting", 8), 16);  // d = 8: 16 lanes at once, 32 words apart
  EXPECT_EQ(ways("conflict_free", 8), 1);
  EXPECT_EQ(ways("conflict_free", 4), 1);
  const replayed masked = replay(of("square_sum", "shared_tree_masked"));
  EXPECT_LT(masked[site::read_own].lanes, masked[site::read_own].requests * 8) << "the mask leaves lanes idle";
}

// ---- stencil --------------------------------------------------------------------------
TEST(explain_stencil, every_output_once_in_any_size) {
  for (const lesson& l : stencil_lessons()) {
    if (std::string(l.variant).starts_with("sweeps_")) continue;  // explain_sweeps
    for (const char* boundary : {"nearest", "mirror", "reflect", "wrap", "constant", "valid"})
      for (const int64_t n : {9, 33, 300, 9000}) {
        settings s = of(l.op, l.variant);
        s.n = n, s.boundary = boundary;
        if (n == 9 && s.boundary == "valid") s.n = 10;
        expect_each_once(replay(s), site::write_dst);
      }
  }
}

TEST(explain_stencil, taps_shift_off_the_segments) {
  const replayed c1 = replay(of("stencil", "global"));
  EXPECT_EQ(c1[site::read_src].requests, 16 * 9);
  EXPECT_EQ(c1[site::read_src].most_met, 5);
  EXPECT_EQ(disagreements(c1), "");
}

TEST(explain_stencil, halo) {  // block + 2 r elements, from memory once
  for (const auto& [variant, block] : {std::pair{"shared_constant", 256}, {"shared_constant_32", 32}}) {
    settings s = of("stencil", variant);
    s.n = 3 * block;
    const replayed c2 = replay(s);
    EXPECT_EQ(c2[site::write_tile].lanes, 3 * (block + 8)) << variant;
    EXPECT_EQ(c2[site::read_src].lanes, 3 * (block + 8)) << variant;
    EXPECT_EQ(c2[site::read_tile].lanes, 3 * block * 9) << variant;
    EXPECT_EQ(c2[site::read_tile].most_ways, 1) << variant;
    EXPECT_EQ(disagreements(c2), "") << variant;
  }
}

TEST(explain_stencil, coefficients_are_one_word_for_all_lanes) {
  for (const char* variant : {"shared_constant", "shared_param", "shared_ldg", "shared_restrict_32"}) {
    const replayed r = replay(of("stencil", variant));
    EXPECT_EQ(r[site::read_coefficient].most_met, 1) << variant;
    EXPECT_EQ(r[site::read_coefficient].requests, r[site::read_tile].requests) << variant;
  }
}

TEST(explain_stencil, wide_loads_whole_vectors) {
  const replayed c4 = replay(of("stencil", "wide"));
  EXPECT_EQ(c4.t.launches[0].name, "stencil_wide_aligned");
  EXPECT_EQ(disagreements(c4), "");
  int inner = 0;
  for (const request& r : c4.all)
    if (r.where == site::read_src && r.lanes.front().width == 4) inner += r.met <= 17;
  EXPECT_GT(inner, 100);
  settings s = of("stencil", "wide");
  s.n = 1000;
  EXPECT_EQ(replay(s).t.launches[0].name, "stencil_wide");
}

// ---- shuffle --------------------------------------------------------------------------
TEST(explain_shuffle, lanes_by_the_guide) {
  const auto sources = [](const char* kind, int width, int operand) {
    settings s = of("shuffle", "shfl");
    s.kind = kind, s.width = width, s.operand = operand;
    const replayed r = replay(s);
    EXPECT_EQ(disagreements(r), "") << kind << " " << width << " " << operand;
    std::vector<int64_t> from;
    for (const request& one : r.all)
      if (one.where == site::exchange && from.empty())
        for (const touch& t : one.lanes) from.push_back(t.first);
    return from;
  };
  const auto idx = sources("idx", 16, 3);  // lanes 0-15 read lane 3, lanes 16-31 lane 19
  for (size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(idx[lane], lane < 16 ? 3 : 19);
  const auto up = sources("up", 32, 5), down = sources("down", 8, 2), butterfly = sources("xor", 32, 16);
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(up[static_cast<size_t>(lane)], lane < 5 ? lane : lane - 5);
    EXPECT_EQ(down[static_cast<size_t>(lane)], lane % 8 < 6 ? lane + 2 : lane);
    EXPECT_EQ(butterfly[static_cast<size_t>(lane)], lane ^ 16);
  }
  (void)sources("up", 8, 31);
}

TEST(explain_shuffle, every_element_once) {
  for (const lesson& l : shuffle_lessons())
    for (const int64_t n : {32, 96, 512, 1056}) {
      settings s = of(l.op, l.variant);
      s.n = n;
      const replayed r = replay(s);
      expect_each_once(r, site::read_src);
      expect_each_once(r, site::write_dst);
    }
}

}  // namespace
}  // namespace lockstep::tool::explain
