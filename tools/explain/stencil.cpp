// stencil.cpp - replays of backends/cuda/stencil (C1 to C4), one axis.
#include "index/stencil.hpp"

#include <map>

#include "lessons.hpp"
#include "rules.hpp"
#include "text.hpp"

namespace lockstep::tool::explain {
namespace {

namespace at = cuda::stencil;

constexpr int after_reads = 1 << 20;

// Shared by all rows: the axis, its boundary, the arrays.
struct axis {
  int64_t n, outputs, origin;
  int32_t boundary;
  int radius;
  trace t;
};

axis begin(settings& s, int block, int64_t n) {
  if (s.sweeps > 1)
    refuse_value("--sweeps", s.sweeps, "of sweeps_registers, sweeps_streamed and sweeps_planes; leave it out");
  if (s.element_bytes == 0) s.element_bytes = 4;
  if (s.element_bytes != 4 && s.element_bytes != 8)
    refuse_value("--element-bytes", s.element_bytes, "stencils take 4 or 8");
  if (s.block == 0) s.block = s.classic ? 4 : block;
  if (s.n == 0) s.n = s.classic ? 16 : n;
  if (s.radius == 0) s.radius = s.classic ? 1 : 4;
  require_range("--block", s.block, s.warp, 1024);
  require_range("--radius", s.radius, 1, 16);
  require_range("--n", s.n, 1, 1 << 17);
  axis a{s.n, s.n, 0, boundary_number(s), s.radius, {}};
  if (a.boundary == LOCKSTEP_BOUNDARY_VALID) a.origin = s.radius, a.outputs = s.n - 2 * s.radius;
  if (a.outputs < 1) refuse_value("--n", s.n, "boundary valid needs more than twice the radius");
  a.t.chip = {s.warp, s.segment * s.element_bytes, s.banks};
  a.t.arrays = {{"src", space::global, s.element_bytes, s.n, 4 * s.segment},
                {"dst", space::global, s.element_bytes, a.outputs, 4 * s.segment}};
  return a;
}

// Full warps on neighbours: as few segments as the bytes fill, and one more where they do
// not start on a segment. Says nothing where the boundary folds.
place neighbours(const settings& s, const axis& a, site where, int array, bool writes, int width) {
  const int warp = s.warp, bytes = s.element_bytes, segment = s.segment;
  const machine chip = a.t.chip;
  return {
      where, array, writes,
      format_text(
          "lanes on neighbours: {} x {} bytes fill {:.0f} segment{}, one more where they start off a segment's edge",
          warp, width * bytes, coalesced(warp, width * bytes, chip),
          coalesced(warp, width * bytes, chip) == 1 ? "" : "s"),
      [=](const request& r) {
        if (static_cast<int>(r.lanes.size()) < warp || r.lanes.front().width != width) return -1.0;
        for (size_t k = 1; k < r.lanes.size(); ++k)
          if (r.lanes[k].first != r.lanes[k - 1].first + width) return -1.0;
        return coalesced(warp, width * bytes, chip) + (r.lanes.front().first % segment != 0);
      }};
}

void read_tap(axis& a, int round, int64_t i) {
  if (const int64_t j = at::source_index(i, a.n, a.boundary); j >= 0) a.t.access(site::read_src, round, j);
}

// C1.
trace global(settings& s) {
  axis a = begin(s, 256, 512);
  a.t.places = {neighbours(s, a, site::read_src, 0, false, 1), neighbours(s, a, site::write_dst, 1, true, 1)};
  const int64_t blocks = (a.outputs + s.block - 1) / s.block;
  a.t.start({"stencil_global", static_cast<int>(blocks), s.block, 1});
  a.t.best_warp = std::min<int64_t>(s.block, a.outputs) > s.warp ? 1 : 0;
  for (int64_t block = 0; block < blocks; ++block)
    for (int thread = 0; thread < s.block; ++thread) {
      a.t.thread(static_cast<int>(block), thread);
      const int64_t i = at::output_of(block, s.block, static_cast<unsigned>(thread));
      if (i >= a.outputs) continue;
      at::walk_taps<1>(
          a.radius, [&](int, int j, int k) { read_tap(a, k, i + a.origin + j); },
          [&](int k) { a.t.access(site::read_src, k, i + a.origin); });
      a.t.access(site::write_dst, after_reads, i);
    }
  a.t.notes = {format_text(
      "Every element is asked for {} times, once a tap: neighbouring warps and taps meet in the L1 cache, not in DRAM.",
      2 * a.radius + 1)};
  a.t.notes.push_back(beyond(s));
  return a.t;
}

// C2 and C3. in: where the coefficients lie, constant memory (kernel parameters do too) or global.
template <int threads, space in>
trace shared(settings& s) {
  axis a = begin(s, threads, 2 * threads);
  const int tile = s.block + 2 * a.radius, taps = 2 * a.radius + 1;
  a.t.arrays.push_back({"tile", space::shared, s.element_bytes, tile, std::max(1, s.banks * 4 / s.element_bytes)});
  a.t.arrays.push_back({"coefficients", in, s.element_bytes, taps, taps});
  const auto one = [](const request&) { return 1.0; };
  const char* const word = in == space::constant
                               ? "all lanes want one word, and constant memory gives one at a time"
                               : "all lanes want one word: a segment, which the read-only cache keeps";
  a.t.places = {neighbours(s, a, site::read_src, 0, false, 1),
                {site::write_tile, 2, true, "neighbours: no conflict", one},
                {site::read_coefficient, 3, false, word, one},
                {site::read_tile, 2, false, "tap k: all lanes move on by k words, still neighbours: no conflict", one},
                neighbours(s, a, site::write_dst, 1, true, 1)};
  const int64_t blocks = (a.outputs + s.block - 1) / s.block;
  a.t.start({"stencil_shared", static_cast<int>(blocks), s.block, 1});
  a.t.best_block = blocks > 1 ? 1 : 0;
  for (int64_t block = 0; block < blocks; ++block)
    for (int thread = 0; thread < s.block; ++thread) {
      a.t.thread(static_cast<int>(block), thread);
      const auto u = static_cast<unsigned>(thread);
      const int64_t first = at::chunk_begin(block, s.block), left = at::halo_left(first, a.origin, a.radius);
      int round = 0;
      at::walk_halo(s.block, tile, at::halo_last(a.outputs, first, a.radius), u, [&](int e) {
        a.t.access(site::write_tile, round, e);
        read_tap(a, round, left + e);
        ++round;
      });
      a.t.barrier();
      const int64_t i = first + thread;
      if (i >= a.outputs) continue;
      at::walk_tile_taps<true>(a.radius, u, [&](int k, unsigned place) {
        a.t.access(site::read_tile, k, place);
        a.t.access(site::read_coefficient, k, k);
      });
      a.t.access(site::write_dst, after_reads, i);
    }
  a.t.notes = {
      format_text("A block of {} outputs reads {} elements, {} of them its halo: {:.3g} times its share. All {} taps "
                  "then come from "
                  "shared memory.",
                  s.block, tile, 2 * a.radius, static_cast<double>(tile) / s.block, taps)};
  a.t.notes.push_back(beyond(s));
  return a.t;
}

// C4, rows that are long and aligned alike.
void wide_aligned(const settings& s, axis& a, int V) {
  const int halo = at::aligned_halo(a.radius, V), outputs = s.block * V;
  const int64_t blocks = (a.outputs + outputs - 1) / outputs;
  a.t.start({"stencil_wide_aligned", static_cast<int>(blocks), s.block, 1});
  a.t.best_block = static_cast<int>(std::min<int64_t>(blocks - 1, 2));
  for (int64_t block = 0; block < blocks; ++block)
    for (int thread = 0; thread < s.block; ++thread) {
      a.t.thread(static_cast<int>(block), thread);
      const int64_t first = at::aligned_chunk(block, blocks) * outputs;
      int round = 0;
      if (at::chunk_is_inside(first, a.origin, a.n, outputs, halo)) {
        const int64_t i = at::aligned_output(first, static_cast<unsigned>(thread), V);
        at::walk_window(V, halo, i,
                        [&](int, int64_t element) { a.t.access(site::read_src, round++, element + a.origin, V); });
        a.t.access(site::write_dst, after_reads, i, V);
      } else {
        at::walk_end(first, std::min(first + outputs, a.outputs), s.block, static_cast<unsigned>(thread),
                     [&](int64_t i) {
                       for (int k = -a.radius; k <= a.radius; ++k) read_tap(a, round++, i + a.origin + k);
                       a.t.access(site::write_dst, round++, i);
                     });
      }
    }
}

// C4, any row: items of V outputs. The kernel's radius is exact up to 4, then a bound of 8 or 16.
void wide_items(const settings& s, axis& a, int V) {
  const int R = at::radius_bound(a.radius);
  const at::items cut = at::cut_rows(V, a.outputs, 1, 0, 0, 0, 0);
  const int64_t blocks = (cut.total + s.block - 1) / s.block;
  a.t.start({"stencil_wide", static_cast<int>(blocks), s.block, 1});
  a.t.best_warp = std::min<int64_t>(s.block, cut.total) > s.warp ? 1 : 0;
  for (int64_t block = 0; block < blocks; ++block)
    for (int thread = 0; thread < s.block; ++thread) {
      a.t.thread(static_cast<int>(block), thread);
      const int64_t item = at::output_of(block, s.block, static_cast<unsigned>(thread));
      if (item >= cut.total) continue;
      const at::item_at here = at::locate_item(cut, V, R, 0, item, a.outputs, a.n, a.origin);
      if (here.inside) {
        for (int k = 0; k < at::window_vectors(V, R); ++k)
          if (at::vector_is_needed(V, R, k, here.off)) a.t.access(site::read_src, k, at::vector_at(here, V, k), V);
      } else {
        for (int e = 0; e < V + 2 * R; ++e)
          if (R == a.radius || (e >= R - a.radius && e < V + R + a.radius)) read_tap(a, e, here.left + e);
      }
      if (here.begin == 0 && here.end == V)
        a.t.access(site::write_dst, after_reads, here.i, V);
      else
        for (int v = here.begin; v < here.end; ++v) a.t.access(site::write_dst, after_reads + v, here.i + v);
    }
}

trace wide(settings& s) {
  const int64_t least = at::least_aligned_outputs;
  axis a = begin(s, s.n > 0 && s.n < least + (s.boundary == "valid" ? 2 * s.radius : 0) ? 256 : 128, least + 2 * 16);
  const int V = s.classic ? s.segment : 16 / s.element_bytes;
  a.t.places = {neighbours(s, a, site::read_src, 0, false, V), neighbours(s, a, site::write_dst, 1, true, V)};
  // As the launcher chooses (aligned_rows in stencil/wide.cu), for arrays that start on 16 bytes.
  if (a.outputs >= least && a.origin % V == 0)
    wide_aligned(s, a, V);
  else
    wide_items(s, a, V);
  a.t.notes = {
      format_text("A lane moves {} bytes at a time and computes {} outputs from registers; the windows of neighbouring "
                  "lanes overlap and L1 serves the overlap: no shared memory, no barrier.",
                  V * s.element_bytes, V)};
  a.t.notes.push_back(beyond(s));
  return a.t;
}

}  // namespace

int32_t boundary_number(const settings& s) {
  static const std::map<std::string, int32_t> boundaries = {
      {"nearest", LOCKSTEP_BOUNDARY_NEAREST},   {"mirror", LOCKSTEP_BOUNDARY_MIRROR},
      {"reflect", LOCKSTEP_BOUNDARY_REFLECT},   {"wrap", LOCKSTEP_BOUNDARY_WRAP},
      {"constant", LOCKSTEP_BOUNDARY_CONSTANT}, {"valid", LOCKSTEP_BOUNDARY_VALID}};
  return boundaries.at(s.boundary);
}

std::string beyond(const settings& s) {
  static const std::map<std::string, const char*> becomes = {
      {"nearest", "the end's own element, for several lanes where there is a star"},
      {"mirror", "the elements before the end, which is not repeated"},
      {"reflect", "the elements before the end, which is repeated"},
      {"wrap", "the elements at the other end"},
      {"constant", "the constant, and no read"},
      {"valid", "no read: there are fewer outputs instead"}};
  return format_text("Beyond the array's ends, boundary {}: {}.", s.boundary, becomes.at(s.boundary));
}

const std::vector<lesson>& stencil_lessons() {
  static const char* const same =
      "C2 with the coefficients through the read-only cache instead of constant memory; all else is the same.";
  static const std::vector<lesson> all = {
      {"stencil", "global", "C1",
       "One thread an output, every tap from global memory: one request a tap, each a little further along.", global},
      {"stencil", "shared_constant", "C2",
       "A block brings its outputs' elements and a halo of radius on both sides to shared memory once; every tap is "
       "read there.",
       shared<256, space::constant>},
      {"stencil", "shared_constant_32", "C2",
       "C2 as it was published: blocks of 32 threads. Its halo makes a block read a quarter more than its share.",
       shared<32, space::constant>},
      {"stencil", "shared_param", "C2",
       "C2 with the coefficients as kernel parameters, which lie in constant memory too.",
       shared<256, space::constant>},
      {"stencil", "shared_ldg", "C3", same, shared<256, space::global>},
      {"stencil", "shared_restrict", "C3", same, shared<256, space::global>},
      {"stencil", "shared_ldg_32", "C3", same, shared<32, space::global>},
      {"stencil", "shared_restrict_32", "C3", same, shared<32, space::global>},
      {"stencil", "wide", "C4", "Several outputs a thread from registers, 16-byte loads and stores, no shared memory.",
       wide},
      {"stencil", "sweeps_registers", "C5",
       "Several sweeps of a line in one pass over memory: a warp holds a stretch of it in registers, so many "
       "neighbouring points a lane, and gets what lies beyond a lane's points by shuffles.",
       swept_line},
      {"stencil", "sweeps_streamed", "C6",
       "Several sweeps of a plane in one pass: a warp streams down a strip of columns, and a row that one sweep ends "
       "arrives at the next at once.",
       swept_plane},
      {"stencil", "sweeps_planes", "C7",
       "Several sweeps of a cube in one pass: a block streams along z over a tile of xy, and a plane that one sweep "
       "ends "
       "arrives at the next a step later.",
       swept_cube},
  };
  return all;
}

}  // namespace lockstep::tool::explain
