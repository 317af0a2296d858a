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
  int32_t boundary;
  bool folds, src_aligned, dst_aligned;
  at::cut_cube cut;

  int64_t element(int64_t z, int64_t y, int64_t x) const { return (z * n[1] + y) * n[2] + x; }
  int64_t result(int64_t z, int64_t y, int64_t x) const {
    return ((z - origin) * out[1] + y - origin) * out[2] + x - origin;
  }
  // What is copied for a place outside the cube: the element at the other end, or the nearest one, which nobody uses.
  int64_t inside(int64_t i, int axis) const {
    if (boundary == LOCKSTEP_BOUNDARY_WRAP) return (i % n[axis] + n[axis]) % n[axis];
    return std::clamp<int64_t>(i, 0, n[axis] - 1);
  }
  // Where a lane's 16 bytes of a row lie: a tile and a row of the value beyond the cube's ends are a plane; the ring is
  // of the first sweep, two planes are of each later one.
  int64_t place(int sweep, int step, int row, int lane) const {
    const int plane = sweep == 0 ? step % stages : stages + 2 * (sweep - 1) + step % 2;
    return (int64_t{plane} * (tile_y + 1) + row) * tile_x + lane * vector;
  }
  int64_t held() const { return int64_t{stages + 2 * (depth - 1)} * (tile_y + 1) * tile_x; }
};

// A block's walk along z over a tile of xy, as one of its threads goes it.
void walk(trace& t, const cube& c, int64_t number, int warp, int lane) {
  const int D = c.depth, V = c.vector, my_y = warp * rows, my_x = lane * V;
  const int64_t begin_x = at::tile_begin(c.cut, 2, number % c.cut.tiles[1], c.tile_x);
  const int64_t begin_y = at::tile_begin(c.cut, 1, number / c.cut.tiles[1], c.tile_y);
  const at::chunk_walk z = at::chunk_of(c.cut, 0, c.n[0], c.folds);
  const int planes = static_cast<int>(z.last - z.first), steps = static_cast<int>(z.to - z.first) + 2 * D - 1;
  const bool by_vectors = c.src_aligned && ((begin_x >= 0 && begin_x + c.tile_x <= c.n[2]) ||
                                            (begin_x % V == 0 && (c.folds || c.n[2] % V == 0)));
  int round = 0;
  const auto fetch = [&](int plane) {  // the copies of the next plane begin
    if (plane >= planes) return;
    const int64_t from = c.inside(z.first + plane, 0);
    const int width = by_vectors ? V : 1;
    for (int v = 0; v < V; v += width)
      for (int r = 0; r < rows; ++r) {
        const int64_t last = c.n[2] - (c.n[2] % V == 0 ? V : c.n[2] % V);
        int64_t x = c.inside(begin_x + my_x + v, 2);
        if (by_vectors && c.folds) x = std::min(x, last);
        t.access(site::read_src, round, c.element(from, c.inside(begin_y + my_y + r, 1), x),
                 static_cast<int>(std::min<int64_t>(width, c.n[2] - x)));
        t.access(site::write_tile, round++, c.place(0, plane, my_y + r, lane) + v, width);
      }
  };
  // The rows above and below a warp's own: at an end of the cube those that the rows beyond it equal.
  const auto beyond = [&](int end, int inner) {
    return c.boundary == LOCKSTEP_BOUNDARY_CONSTANT ? c.tile_y : c.boundary == LOCKSTEP_BOUNDARY_MIRROR ? inner : end;
  };
  int above = std::max(my_y - 1, 0), below = std::min(my_y + rows, c.tile_y - 1);
  if (c.folds && begin_y + my_y == 0) above = beyond(my_y, my_y + 1);
  if (c.folds && begin_y + my_y + rows == c.n[1]) below = beyond(my_y + rows - 1, my_y + rows - 2);
  for (int plane = 0; plane < stages - 1; ++plane) fetch(plane);
  const int64_t last_x = std::min<int64_t>(c.cut.to[2] - begin_x, c.tile_x - c.cut.halo[2]);
  const int64_t last_y = std::min<int64_t>(c.cut.to[1] - begin_y, c.tile_y - c.cut.halo[1]);
  for (int step = 0; step < steps; ++step) {
    t.barrier();
    round = 0;
    if (step < planes)
      for (int r = 0; r < rows; ++r) t.access(site::read_tile, round++, c.place(0, step, my_y + r, lane), V);
    for (int sweep = D - 1; sweep >= 0; --sweep) {
      t.access(site::read_other, round++, c.place(sweep, step, above, lane), V);
      t.access(site::read_other, round++, c.place(sweep, step, below, lane), V);
      for (int r = 0; r < rows; ++r, ++round) {
        t.access(site::exchange, round, std::max(lane - 1, 0));
        t.access(site::exchange, round, std::min(lane + 1, c.lanes - 1));
      }
      const int64_t ended = z.first + step - 2 * sweep - 1;
      if (sweep < D - 1 || ended < z.from) continue;
      for (int r = 0; r < rows; ++r, ++round) {
        const int y = my_y + r;
        if (y < c.cut.halo[1] || y >= last_y || my_x < c.cut.halo[2] || my_x >= last_x) continue;
        const int64_t to = c.result(ended, begin_y + y, begin_x + my_x);
        const int width = c.dst_aligned && my_x + V <= last_x ? V : 1;
        for (int v = 0; v < V && my_x + v < last_x; v += width) t.access(site::write_dst, round, to + v, width);
      }
    }
    fetch(step + stages - 1);
    for (int sweep = 1; sweep < D; ++sweep)
      for (int r = 0; r < rows; ++r) t.access(site::put_value, round++, c.place(sweep, step + 1, my_y + r, lane), V);
  }
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
               ways, "sweeps' planes"},
              {site::put_value, 2, true, "a warp's rows of the next sweep, for the warps beside it: no conflict", ways,
               "sweeps' planes"}});
  return all;
}

sketch planes_of(const cube& c) {
  const int D = c.depth;
  const at::chunk_walk z = at::chunk_of(c.cut, 0, c.n[0], c.folds);
  const int planes = static_cast<int>(z.last - z.first), steps = static_cast<int>(z.to - z.first) + 2 * D - 1;
  sketch drawn{
      "Which plane each sweep ends at a step, as planes arrive along z: two behind the sweep before, or . where it "
      "lacks planes",
      {}};
  std::string head = "  step  arrives";
  for (int sweep = 1; sweep <= D; ++sweep) head += format_text("  sweep {}", sweep);
  drawn.lines.push_back(head + "  written");
  const auto cell = [](bool is, int64_t plane) { return is ? format_text("{:>9}", plane) : "        ."; };
  for (int step = 0; step < steps; ++step) {
    std::string line = format_text("  {:>4}", step) + cell(step < planes, c.inside(z.first + step, 0));
    for (int sweep = 1; sweep <= D; ++sweep) {
      const int ends = step - (2 * sweep - 1);  // good where the sweep before had the planes on either side
      line += cell(ends >= (z.at_first ? 0 : sweep) && ends < planes - (z.at_last ? 0 : sweep),
                   c.inside(z.first + ends, 0));
    }
    const int64_t written = z.first + step - (2 * D - 1);
    drawn.lines.push_back(line + cell(written >= z.from, written - c.origin));
  }
  return drawn;
}

void describe(trace& t, const settings& s, const cube& c) {
  const int y = c.cut.halo[1], x = c.cut.halo[2];
  t.sketches = {planes_of(c), sweeping::overlap_of(s, {"tile", "point", "lane", c.vector, c.tile_x, x, " along x"}),
                sweeping::overlap_of(s, {"tile", "row", "warp", rows, c.tile_y, y, " along y"})};
  const int64_t loaded = int64_t{c.tile_x} * c.tile_y, results = int64_t{c.tile_x - 2 * x} * (c.tile_y - 2 * y);
  const at::chunk_walk z = at::chunk_of(c.cut, 0, c.n[0], c.folds);
  t.notes = {
      format_text("The cube has {} x {} x {} elements; few planes, so that the whole grid can be counted.", c.n[0],
                  c.n[1], c.n[2]),
      format_text(
          "A block computes {} x {} points of a plane a sweep and writes {} x {} of them: {:.3g} % more than it "
          "writes, for one pass over memory instead of {}.",
          c.tile_y, c.tile_x, c.tile_y - 2 * y, c.tile_x - 2 * x,
          100.0 * static_cast<double>(loaded - results) / static_cast<double>(results), c.depth),
      format_text(
          "A chunk of planes begins up to {0} planes early and ends as late, for the planes that its sweeps need: here "
          "{1} planes come in for {2} of results.",
          c.depth, z.last - z.first, z.to - z.from),
      format_text(
          "A thread keeps {} elements of {} bytes in registers: of each sweep, 4 rows of 16 bytes of a plane and "
          "of two planes' partial sums.",
          3 * c.depth * rows * c.vector, s.element_bytes),
      "All sweeps share one barrier a step: their planes lie twice in shared memory, and one half is written while the "
      "other is read."};
  if (!c.src_aligned)
    t.notes.push_back("Rows of tiles do not start on 16 bytes here, so each element is copied by itself.");
  if (c.folds)
    t.notes.push_back(
        "Every sweep folds at the cube's ends anew: along y by reading the row that the one beyond equals, along x in "
        "registers, along z by the plane that the one beyond equals. Rows that lie beyond an end within a thread, and "
        "what MIRROR reads again at the first plane, are not drawn.");
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
  c.boundary = boundary;
  c.folds = !valid && boundary != LOCKSTEP_BOUNDARY_WRAP;
  c.origin = valid ? c.depth : 0;
  if (s.n <= 2 * c.origin) refuse_value("--n", s.n, "boundary valid needs more than twice the sweeps");
  if (s.n < 2 && boundary == LOCKSTEP_BOUNDARY_MIRROR) refuse_value("--n", s.n, "boundary mirror needs two or more");
  c.n[0] = 2 * c.depth + 3, c.n[1] = c.tile_y + 4, c.n[2] = s.n;  // two tiles along y
  for (int a = 0; a < 3; ++a) c.out[a] = c.n[a] - 2 * c.origin;
  const int32_t halo[3] = {c.depth, c.depth, across}, tile[2] = {c.tile_y, c.tile_x};
  c.cut = at::cut_sweeps(c.n, boundary, c.depth, halo, tile);
  c.cut.chunk = c.cut.to[0] - c.cut.from[0], c.cut.chunks = 1;
  const int64_t first = c.cut.from[2] - across;
  c.src_aligned = first % c.vector == 0 && c.n[2] % c.vector == 0;
  c.dst_aligned = (first - c.origin) % c.vector == 0 && c.out[2] % c.vector == 0;
  trace t = sweeping::memory_of(s, c.n[0] * c.n[1] * c.n[2], c.n[2], c.out[0] * c.out[1] * c.out[2], c.held());
  t.arrays[1].columns = c.out[2];
  t.places = places_of(s, t.chip, std::move(t.places));
  const int64_t blocks = c.cut.tiles[0] * c.cut.tiles[1];
  t.start({"stencil_sweeps_planes", static_cast<int>(blocks), s.block, 1});
  t.best_block = 0;
  t.best_warp = c.warps / 2;
  for (int64_t block = 0; block < blocks; ++block)
    for (int thread = 0; thread < s.block; ++thread) {
      t.thread(static_cast<int>(block), thread);
      walk(t, c, block, thread / s.warp, thread % s.warp);
    }
  describe(t, s, c);
  return t;
}

}  // namespace lockstep::tool::explain
