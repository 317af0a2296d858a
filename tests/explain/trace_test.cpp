// trace_test.cpp - the counts that the literature gives for its kernels, and what the
// replays must keep: every element once in and once out, whatever the shape.
#include <gtest/gtest.h>

#include <map>

#include "lessons.hpp"
#include "trace.hpp"

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

TEST(explain_transpose, naive_rows_pay_a_segment_a_lane) {
  const replayed a1 = replay(of("transpose", "naive_coalesced_read")), a2 = replay(of("transpose", "naive_coalesced_write"));
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

TEST(explain_transpose, any_shape_moves_each_element_once) {
  for (const lesson& l : transpose_lessons())
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
            if (e.where == site::write_dst && pass == 1) wrong += held != e.first % s.rows * s.columns + e.first / s.rows;
          }
        }
    EXPECT_EQ(wrong, 0) << l.variant;
  }
}

}  // namespace
}  // namespace lockstep::tool::explain
