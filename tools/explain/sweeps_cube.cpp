// sweeps_cube.cpp - replay of the row that takes several sweeps of a cube a pass: stencil/sweeps_planes.cu (C7).
#include "index/sweeps_cube.hpp"

#include <algorithm>

#include "rules.hpp"
#include "sweeps.hpp"
#include "text.hpp"

namespace lockstep::tool::explain {
namespace {

namespace at = cuda::stencil;

constexpr int rows = 4, stages = 4;  // of a thread; planes in shared memory

// The kernel's constants, and one call. Axes z, y, x are 0, 1, 2.
struct cube {
  int depth, warps, lanes, vector, tile_y, tile_x;
  int64_t n[3], out[3], origin;
  bool wraps, src_aligned, dst_aligned;
  at::cut_cube cut;

  int64_t element(int64_t z, int64_t y, int64_t x) const { return (z * n[1] + y) * n[2] + x; }
  int64_t result(int64_t z, int64_t y, int64_t x) const {
    return ((z - origin) * out[1] + y - origin) * out[2] + x - origin;
  }
  int64_t folded(int64_t i, int axis) const { return wraps ? (i % n[axis] + n[axis]) % n[axis] : i; }
  bool inside(int64_t i, int axis) const { return i >= 0 && i < n[axis]; }
  // Where a lane's 16 bytes lie in shared memory: row r of a warp in the ring; its first or last row of a sweep.
  int64_t ring(int plane, int r, int warp, int lane) const {
    return ((int64_t{plane} % stages * rows + r) * warps + warp) * tile_x + lane * vector;
  }
  int64_t edge(int turn, int sweep, int warp, int last, int lane) const {
    return ring_elements() + (((int64_t{turn} * depth + sweep) * warps + warp) * 2 + last) * tile_x + lane * vector;
  }
  int64_t ring_elements() const { return int64_t{stages} * tile_y * tile_x; }
  int64_t held() const { return ring_elements() + int64_t{2} * depth * warps * 2 * tile_x; }
};

// A block's walk along z over a tile of xy, as one of its threads goes it.
void walk(trace& t, const cube& c, int64_t number, int warp, int lane) {
  const int D = c.depth, V = c.vector, my_y = warp * rows, my_x = lane * V;
  const at::box& in = c.cut.inner;
  const int64_t begin_x = in.from[2] + number % c.cut.tiles[1] * (c.tile_x - 2 * c.cut.halo[2]) - c.cut.halo[2];
  const int64_t begin_y = in.from[1] + number / c.cut.tiles[1] * (c.tile_y - 2 * c.cut.halo[1]) - c.cut.halo[1];
  const int64_t z0 = in.from[0];
  const int planes = static_cast<int>(in.to[0] - z0) + 2 * D, steps = planes + D - 1;
  const bool by_vectors = c.src_aligned && ((begin_x >= 0 && begin_x + c.tile_x <= c.n[2]) ||
                                            (begin_x % V == 0 && (!c.wraps || c.n[2] % V == 0)));
  int round = 0;
  const auto fetch = [&](int plane) {  // the copies of the next plane begin
    if (plane >= planes) return;
    const int64_t z = c.folded(z0 - D + plane, 0);
    const int width = by_vectors ? V : 1;
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < V; v += width) {
        const int64_t y = c.folded(begin_y + my_y + r, 1), x = c.folded(begin_x + my_x + v, 2);
        if (c.inside(y, 1) && c.inside(x, 2))
          t.access(site::read_src, round, c.element(z, y, x), static_cast<int>(std::min<int64_t>(width, c.n[2] - x)));
        t.access(site::write_tile, round++, c.ring(plane, r, warp, lane) + v, width);
      }
  };
  const auto arrived = [&](int plane) {
    for (int r = 0; r < rows; ++r) t.access(site::read_tile, round++, c.ring(plane, r, warp, lane), V);
  };
  const auto show = [&](int turn) {
    for (int sweep = 0; sweep < D; ++sweep, ++round)
      for (const int last : {0, 1}) t.access(site::put_value, round, c.edge(turn, sweep, warp, last, lane), V);
  };
  for (int plane = 0; plane < stages - 1; ++plane) fetch(plane);
  arrived(0);
  fetch(stages - 1);
  show(0);
  const int64_t last_x = std::min<int64_t>(in.to[2] - begin_x, c.tile_x - c.cut.halo[2]);
  const int64_t last_y = std::min<int64_t>(in.to[1] - begin_y, c.tile_y - c.cut.halo[1]);
  const int above = std::max(warp - 1, 0), below = std::min(warp + 1, c.warps - 1);
  for (int step = 0; step < steps; ++step) {
    t.barrier();
    round = 0;
    for (int sweep = D - 1; sweep >= 0; --sweep) {
      t.access(site::read_other, round, c.edge(step % 2, sweep, above, 1, lane), V);
      t.access(site::read_other, round++, c.edge(step % 2, sweep, below, 0, lane), V);
      for (int r = 0; r < rows; ++r, ++round) {
        t.access(site::exchange, round, std::max(lane - 1, 0));
        t.access(site::exchange, round, std::min(lane + 1, c.lanes - 1));
      }
      if (sweep < D - 1 || step < 3 * D - 1) continue;
      for (int r = 0; r < rows; ++r, ++round) {
        const int y = my_y + r;
        if (y < c.cut.halo[1] || y >= last_y || my_x < c.cut.halo[2] || my_x >= last_x) continue;
        const int64_t to = c.result(z0 + step - (3 * D - 1), begin_y + y, begin_x + my_x);
        const int width = c.dst_aligned && my_x + V <= last_x ? V : 1;
        for (int v = 0; v < V && my_x + v < last_x; v += width) t.access(site::write_dst, round, to + v, width);
      }
    }
    if (step + 1 < planes) {
      arrived(step + 1);
      fetch(step + stages);
    }
    show(1 - step % 2);
  }
}

// A box near the faces: what comes in and goes out; its sweeps, in shared memory, are left out.
void box(trace& t, const cube& c, int64_t number, int warp, int lane) {
  const at::face_box b = at::face_box_of(c.cut, number, c.n);
  int round = 0;
  const auto each = [&](const at::box& part, const auto& body) {
    const int64_t wide = part.to[2] - part.from[2], points = (part.to[1] - part.from[1]) * wide;
    const int64_t groups = (points + c.lanes - 1) / c.lanes;
    for (int64_t g = warp; g < (part.to[0] - part.from[0]) * groups; g += c.warps, ++round) {
      const int64_t i = g % groups * c.lanes + lane;
      if (i < points) body(part.from[0] + g / groups, part.from[1] + i / wide, part.from[2] + i % wide);
    }
  };
  each(b.elements, [&](int64_t z, int64_t y, int64_t x) { t.access(site::read_src, round, c.element(z, y, x)); });
  each(b.results, [&](int64_t z, int64_t y, int64_t x) { t.access(site::write_dst, round, c.result(z, y, x)); });
}

// Lanes that lie evenly apart touch every segment from the first lane's to the last one's, or one each.
double segments_of(const request& r, int64_t segment) {
  const int64_t width = r.lanes.front().width, first = r.lanes.front().first;
  const auto lanes = static_cast<int64_t>(r.lanes.size());
  const int64_t apart = lanes > 1 ? r.lanes[1].first - first : width;
  if (apart < width) return -1;
  for (size_t k = 1; k < r.lanes.size(); ++k)
    if (r.lanes[k].first != r.lanes[k - 1].first + apart) return -1;
  if (width == 1 && apart > segment) return static_cast<double>(lanes);
  return static_cast<double>((first % segment + (lanes - 1) * apart + width + segment - 1) / segment);
}

// The places of all lessons as they are here, and the rows that warps show one another.
std::vector<place> places_of(const settings& s, const machine& chip, std::vector<place> all) {
  const bool whole = s.warp == 32 && s.banks == 32;
  const int vector = 16 / s.element_bytes;
  const auto conflicts = [=](const request& r) {
    if (static_cast<int>(r.lanes.size()) < s.warp) return -1.0;
    return r.lanes.front().width == vector ? 1.0 : conflict_ways(s.warp, vector, s.element_bytes, chip);
  };
  const std::function<double(const request&)> none, ways = whole ? conflicts : none;
  const auto segments = [segment = s.segment](const request& r) { return segments_of(r, segment); };
  for (place& p : all) {
    if (p.where == site::read_src)
      p.rule = "lanes on neighbours, 16 bytes each: the segments from the first lane's to the last one's",
      p.taught = segments;
    if (p.where == site::write_dst)
      p.rule = "the same of the lanes that hold results, not of those that are stale", p.taught = segments;
    if (p.where == site::write_tile)
      p.rule = "16 bytes a lane: no conflict; element by element, lanes are 16 bytes apart", p.part = "ring",
      p.taught = ways;
    if (p.where == site::read_tile)
      p.rule = "what the thread itself has copied, 16 bytes a lane: no conflict", p.part = "ring", p.taught = ways;
  }
  all.insert(all.begin() + 3,
             {{site::read_other, 2, false, "the last row of the warp above, the first of the one below: no conflict",
               ways, "edge rows"},
              {site::put_value, 2, true, "a warp's first and last row, for the warps beside it: no conflict", ways,
               "edge rows"}});
  return all;
}

sketch planes_of(const cube& c) {
  const int D = c.depth;
  const int64_t z0 = c.cut.inner.from[0];
  const int planes = static_cast<int>(c.cut.inner.to[0] - z0) + 2 * D;
  sketch drawn{
      "Which plane each sweep ends at a step, as planes arrive along z: two behind the sweep before, or . where it "
      "lacks planes",
      {}};
  std::string head = "  step  arrives";
  for (int sweep = 1; sweep <= D; ++sweep) head += format_text("  sweep {}", sweep);
  drawn.lines.push_back(head + "  written");
  const auto cell = [](bool is, int64_t z) { return is ? format_text("{:>9}", z) : "        ."; };
  for (int step = 0; step < planes + D - 1; ++step) {
    const auto plane = [&](int k) { return c.folded(z0 - D + k, 0); };
    std::string line = format_text("  {:>4}", step) + cell(step < planes, plane(step));
    for (int sweep = 1; sweep <= D; ++sweep) {
      const int ends = step - (2 * sweep - 1);  // good where the sweep before had the planes on either side
      line += cell(ends >= sweep && ends < planes - sweep, plane(ends));
    }
    drawn.lines.push_back(line + cell(step >= 3 * D - 1, z0 + step - (3 * D - 1) - c.origin));
  }
  return drawn;
}

void describe(trace& t, const settings& s, const cube& c) {
  if (c.cut.tiles[0] == 0) {
    t.notes = {
        format_text("The cube has {} x {} x {} elements: every result is near a face, where every sweep folds anew. "
                    "Blocks take them box by box in shared memory; their sweeps are not drawn.",
                    c.n[0], c.n[1], c.n[2]),
        beyond(s)};
    return;
  }
  const int y = c.cut.halo[1], x = c.cut.halo[2];
  t.sketches = {planes_of(c), sweeping::overlap_of(s, {"tile", "point", "lane", c.vector, c.tile_x, x, " along x"}),
                sweeping::overlap_of(s, {"tile", "row", "warp", rows, c.tile_y, y, " along y"})};
  const int64_t loaded = int64_t{c.tile_x} * c.tile_y, results = int64_t{c.tile_x - 2 * x} * (c.tile_y - 2 * y);
  const int64_t deep = c.cut.inner.to[0] - c.cut.inner.from[0];
  t.notes = {
      format_text("The cube has {} x {} x {} elements; few planes, so that the whole grid can be counted.", c.n[0],
                  c.n[1], c.n[2]),
      format_text(
          "A block computes {} x {} points of a plane a sweep and writes {} x {} of them: {:.3g} % more than it "
          "writes, for one pass over memory instead of {}.",
          c.tile_y, c.tile_x, c.tile_y - 2 * y, c.tile_x - 2 * x,
          100.0 * static_cast<double>(loaded - results) / static_cast<double>(results), c.depth),
      format_text(
          "A chunk of planes begins {0} planes early and ends {0} late, for the planes that its sweeps need: here "
          "{1} planes come in for {2} of results.",
          c.depth, deep + 2 * c.depth, deep),
      format_text(
          "A thread keeps {} elements of {} bytes in registers: of each sweep, 4 rows of 16 bytes of a plane and "
          "of two planes' partial sums.",
          3 * c.depth * rows * c.vector, s.element_bytes),
      "All sweeps share one barrier a step: edge rows lie twice in shared memory, and one half is written while the "
      "other is read."};
  if (!c.src_aligned)
    t.notes.push_back("Rows of tiles do not start on 16 bytes here, so each element is copied by itself.");
  if (c.cut.face_boxes > 0)
    t.notes.push_back(
        "Near the cube's faces every sweep folds anew, so blocks of their own take those results, box by box in shared "
        "memory; their sweeps are not drawn.");
  t.notes.push_back(beyond(s));
}

}  // namespace

trace swept_cube(settings& s) {
  if (s.radius > 1) refuse_value("--radius", s.radius, "this kernel is for radius 1; leave it out");
  // Of the small machine's two lanes both would be stale: it gets warps of 4 and blocks of 2 warps here.
  if (s.classic) s.warp = 4;
  cube c{};
  c.warps = s.classic ? 2 : 8;
  const int bytes = s.element_bytes == 8 ? 8 : 4;
  c.lanes = s.warp, c.vector = 16 / bytes, c.tile_y = c.warps * rows, c.tile_x = c.lanes * c.vector;
  c.depth = s.sweeps == 0 ? (s.classic ? 2 : 3) : s.sweeps;
  const auto across = static_cast<int32_t>(at::round_up(c.depth, c.vector));
  if (s.n == 0) s.n = s.classic ? 24 : std::max(2 * (c.tile_x - 2 * across), 1);
  sweeping::begin(s, {c.warps, 1, 1, 1024, 3, c.depth});
  if (2 * across >= c.tile_x)
    refuse_value("--sweeps", c.depth, "all of a tile's columns would be stale; give fewer, or wider warps");
  const int32_t boundary = boundary_number(s);
  const bool valid = boundary == LOCKSTEP_BOUNDARY_VALID;
  c.wraps = boundary == LOCKSTEP_BOUNDARY_WRAP;
  c.origin = valid ? c.depth : 0;
  if (s.n <= 2 * c.origin) refuse_value("--n", s.n, "boundary valid needs more than twice the sweeps");
  c.n[0] = 2 * c.depth + 3, c.n[1] = c.tile_y + 4, c.n[2] = s.n;  // two tiles along y
  for (int a = 0; a < 3; ++a) c.out[a] = c.n[a] - 2 * c.origin;
  const int32_t halo[3] = {c.depth, c.depth, across}, tile[2] = {c.tile_y, c.tile_x};
  // Of a box, in half of the kernel's shared memory; as the kernel has it, on any machine.
  const int64_t room = (stages * 32 + 2 * c.depth * 8 * 2) * 512 / 2 / bytes;
  c.cut = at::cut_sweeps(c.n, boundary, 1, c.depth, halo, tile, c.vector, room);
  const int64_t first = c.cut.inner.from[2] - across;
  c.src_aligned = first % c.vector == 0 && c.n[2] % c.vector == 0;
  c.dst_aligned = (first - c.origin) % c.vector == 0 && c.out[2] % c.vector == 0;
  trace t = sweeping::memory_of(s, c.n[0] * c.n[1] * c.n[2], c.n[2], c.out[0] * c.out[1] * c.out[2], c.held());
  t.arrays[1].columns = c.out[2];
  t.places = places_of(s, t.chip, std::move(t.places));
  const int64_t tiles = c.cut.tiles[0] * c.cut.tiles[1], blocks = c.cut.face_boxes + tiles;
  t.start({"stencil_sweeps_planes", static_cast<int>(blocks), s.block, 1});
  t.best_block = static_cast<int>(tiles > 0 ? c.cut.face_boxes : 0);
  t.best_warp = tiles > 0 ? c.warps / 2 : 0;
  for (int64_t block = 0; block < blocks; ++block)
    for (int thread = 0; thread < s.block; ++thread) {
      t.thread(static_cast<int>(block), thread);
      const int lane = thread % s.warp, warp = thread / s.warp;
      if (block < c.cut.face_boxes)
        box(t, c, block, warp, lane);
      else
        walk(t, c, block - c.cut.face_boxes, warp, lane);
    }
  describe(t, s, c);
  return t;
}

}  // namespace lockstep::tool::explain
