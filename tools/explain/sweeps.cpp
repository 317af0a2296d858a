// sweeps.cpp - replays of the rows that take several sweeps a pass: stencil/registers.cu (C5) and
// stencil/sweeps_streamed.cu (C6); sweeps_cube.cpp has C7. Their shuffles and their ways through memory are drawn as
// requests; which lane holds which point of which sweep is a sketch.
#include "sweeps.hpp"

#include <algorithm>

#include "index/stencil.hpp"
#include "index/sweeps.hpp"
#include "rules.hpp"
#include "text.hpp"

namespace lockstep::tool::explain {
namespace sweeping {

void begin(settings& s, const kernel_limits& limits) {
  if (s.element_bytes == 0) s.element_bytes = 4;
  if (s.element_bytes != 4 && s.element_bytes != 8)
    refuse_value("--element-bytes", s.element_bytes, "stencils take 4 or 8");
  if (s.block != 0)
    refuse_value("--block", s.block,
                 format_text("this kernel has blocks of {} warps; leave it out", limits.warps).c_str());
  s.block = limits.warps * s.warp;
  if (s.sweeps == 0) s.sweeps = limits.default_sweeps;
  if (s.radius == 0) s.radius = s.classic ? 1 : limits.default_radius;
  require_range("--radius", s.radius, 1, limits.most_radius);
  require_range("--sweeps", s.sweeps, 2, limits.most_sweeps);
  require_range("--n", s.n, 1, limits.most_n);
}

namespace {

std::function<double(const request&)> neighbours(const settings& s, const machine& chip) {
  return [warp = s.warp, bytes = s.element_bytes, segment = s.segment, chip](const request& r) {
    const int width = r.lanes.front().width;
    if (static_cast<int>(r.lanes.size()) < warp) return -1.0;
    for (size_t k = 1; k < r.lanes.size(); ++k)
      if (r.lanes[k].first != r.lanes[k - 1].first + width) return -1.0;
    return coalesced(warp, width * bytes, chip) + (r.lanes.front().first % segment != 0);
  };
}

char lane_character(int lane) { return static_cast<char>(lane < 10 ? '0' + lane : 'a' + lane - 10); }

}  // namespace

trace memory_of(const settings& s, int64_t src, int64_t columns, int64_t dst, int64_t held) {
  trace t;
  t.chip = {s.warp, s.segment * s.element_bytes, s.banks};
  const bool whole = s.warp == 32 && s.banks == 32;
  const auto none = [](const request&) { return 1.0; };
  t.arrays = {{"src", space::global, s.element_bytes, src, columns},
              {"dst", space::global, s.element_bytes, dst, columns},
              {"held", space::shared, s.element_bytes, held, std::max(1, s.banks * 4 / s.element_bytes)},
              {"lane", space::lanes, s.element_bytes, s.warp, s.warp}};
  const std::function<double(const request&)> rule =
      whole ? std::function<double(const request&)>(none) : std::function<double(const request&)>();
  t.places = {
      {site::read_src, 0, false, "lanes on neighbours, on their way to shared memory", neighbours(s, t.chip)},
      {site::write_tile, 2, true, "places that are padded or swizzled: no conflict", rule},
      {site::read_tile, 2, false, "points of a lane, 16 bytes at a time: no conflict", rule},
      {site::exchange, 3, false, "a point of the lane before or behind; at the warp's end none comes", none},
      {site::write_dst, 1, true, "lanes on neighbours: results alone, not what is stale", neighbours(s, t.chip)}};
  return t;
}

sketch overlap_of(const settings& s, const overlapping& o) {
  constexpr int most = 72;
  const int overlap = 2 * o.stale, beside = std::clamp((most - overlap) / 2, 0, std::min(8, o.all - overlap));
  const int from = o.all - overlap - beside, shown = std::min(overlap + 2 * beside, most);
  sketch drawn;
  drawn.title = format_text(
      "Two neighbouring {}s{} where they overlap, {} {}s of {}: the {} that holds a {} after each sweep, or . "
      "where it is stale",
      o.who, o.along, overlap, o.what, o.all, o.holder, o.what);
  const auto line = [&](const std::string& name, int number, int first, int end) {
    std::string text = format_text("  {:<8} {} {} ", name, o.who, number);
    for (int k = 0; k < shown; ++k) {
      const int place = from + k - number * (o.all - overlap);  // in this one
      text += place >= first && place < end ? lane_character(place / o.each) : '.';
    }
    drawn.lines.push_back(text);
  };
  for (int sweep = 0; sweep <= s.sweeps; ++sweep) {
    const int stale = s.radius * sweep;
    for (const int number : {0, 1})
      line(number == 0 ? (sweep == 0 ? "loaded" : format_text("sweep {}", sweep)) : "", number, stale, o.all - stale);
  }
  for (const int number : {0, 1}) line(number == 0 ? "written" : "", number, o.stale, o.all - o.stale);
  return drawn;
}

}  // namespace sweeping

namespace {

namespace at = cuda::stencil;
using namespace sweeping;

constexpr int warps = 4;  // of a block
// Rounds of a warp's program, in its order: what comes in, shuffles, what goes out.
constexpr int turning = 1 << 10, shuffling = 1 << 11, turning_back = 1 << 15, leaving = 1 << 16;

void shuffles(trace& t, const settings& s, int lane, int round) {
  for (int k = 0; k < s.radius; ++k) {
    t.access(site::exchange, round + 2 * k, std::max(lane - 1, 0));
    t.access(site::exchange, round + 2 * k + 1, std::min(lane + 1, s.warp - 1));
  }
}

std::string twice_text(int stretch, int halo, int sweeps, const char* what) {
  return format_text(
      "A warp computes {} {} a sweep and writes {} of them: {:.3g} % of the points are computed twice, for one pass "
      "over "
      "memory instead of {}.",
      stretch, what, stretch - 2 * halo, 200.0 * halo / (stretch - 2 * halo), sweeps);
}

}  // namespace

trace swept_line(settings& s) {
  const int bytes = s.element_bytes == 8 ? 8 : 4, vector = 16 / bytes;
  const int points = s.classic ? 64 / bytes : 128 / bytes, stretch = s.warp * points, pitch = points + vector;
  const int line = s.classic ? 32 / bytes : 128 / bytes;
  if (s.n == 0) s.n = int64_t{3} * stretch;
  begin(s, {warps, 4, 4, 1 << 14, 32, 4});
  const int halo = static_cast<int>(at::round_up(int64_t{s.radius} * s.sweeps, line / 2));
  if (4 * halo > stretch)
    refuse_value("--sweeps", s.sweeps,
                 "half of a warp's points would be stale; the kernel makes passes of fewer sweeps");
  const int32_t boundary = boundary_number(s);
  const int64_t n = s.n, origin = s.boundary == "valid" ? int64_t{s.radius} * s.sweeps : 0;
  if (n <= 2 * origin) refuse_value("--n", n, "boundary valid needs more than twice the radius times the sweeps");
  const at::cut_line cut = at::cut_sweeps(n, boundary, s.radius, s.sweeps, halo, stretch, line);
  trace t = memory_of(s, n, 4 * s.segment, n - 2 * origin, int64_t{warps} * s.warp * pitch);
  const int64_t blocks = cut.ends + (cut.stretches + warps - 1) / warps;
  t.start({"stencil_registers", static_cast<int>(blocks), s.block, 1});
  t.best_block = static_cast<int>(cut.stretches > 0 ? cut.ends : 0);
  t.best_warp = cut.stretches > 1 ? 1 : 0;
  for (int64_t block = 0; block < blocks; ++block)
    for (int thread = 0; thread < s.block; ++thread) {
      t.thread(static_cast<int>(block), thread);
      const int lane = thread % s.warp, warp = thread / s.warp;
      if (block < cut.ends) {  // its sweeps, in shared memory, are left out
        const int64_t reach = int64_t{s.radius} * s.sweeps, first = block == 0 ? 0 : n - cut.tail;
        const int64_t last = block == 0 ? cut.head : n;
        const int64_t low = std::max<int64_t>(first - reach, 0), high = std::min(last + reach, n);
        int round = 0;
        for (int64_t i = low + thread; i < high; i += s.block) t.access(site::read_src, round++, i);
        for (int64_t i = first + thread; i < last; i += s.block) t.access(site::write_dst, leaving + round++, i);
        continue;
      }
      const int64_t number = (block - cut.ends) * warps + warp;
      if (number >= cut.stretches) continue;
      const int64_t first = at::stretch_begin(cut, number, stretch);
      const int64_t last = at::stretch_last(cut, first, stretch), own = int64_t{warp} * s.warp * pitch;
      const auto place = [&](int e) { return own + e / points * pitch + e % points; };
      for (int k = 0; k < points; ++k) {
        const int e = k * s.warp + lane;
        if (const int64_t i = boundary == LOCKSTEP_BOUNDARY_WRAP ? ((first + e) % n + n) % n : first + e;
            i >= 0 && i < n)
          t.access(site::read_src, k, i);
        t.access(site::write_tile, k, place(e));
      }
      for (int k = 0; k < points; k += vector) t.access(site::read_tile, turning + k, own + lane * pitch + k, vector);
      for (int sweep = 0; sweep < s.sweeps; ++sweep) shuffles(t, s, lane, shuffling + sweep * 2 * s.radius);
      for (int k = 0; k < points; k += vector)
        t.access(site::write_tile, turning_back + k, own + lane * pitch + k, vector);
      for (int k = 0; k < points; ++k) {
        const int e = k * s.warp + lane;
        if (e < cut.halo || e >= last) continue;
        t.access(site::read_tile, leaving + k, place(e));
        t.access(site::write_dst, leaving + k, first + e - origin);
      }
    }
  t.sketches = {overlap_of(s, {"warp", "point", "lane", points, stretch, halo})};
  t.notes = {twice_text(stretch, halo, s.sweeps, "points"),
             format_text("A sweep takes {} shuffles for {} points of a lane; memory is not touched between sweeps.",
                         2 * s.radius, points)};
  if (cut.ends > 0)
    t.notes.push_back(
        "Near the line's ends every sweep folds anew, so blocks of their own take those results, in shared memory; "
        "their sweeps are not drawn.");
  t.notes.push_back(beyond(s));
  return t;
}

trace swept_plane(settings& s) {
  const int bytes = s.element_bytes == 8 ? 8 : 4, vector = 16 / bytes;
  const int points = 32 / bytes, columns = s.warp * points, row_vectors = 2 * s.warp;
  if (s.n == 0) s.n = s.classic ? 48 : 600;
  begin(s, {warps, 2, 1, 1 << 12, 32, 4});
  require_range("--sweeps", s.sweeps, 2, s.radius == 1 ? 8 : 4);
  const int halo = static_cast<int>(at::round_up(int64_t{s.radius} * s.sweeps, vector));
  if (2 * halo >= columns) refuse_value("--sweeps", s.sweeps, "all of a warp's columns would be stale");
  const int32_t boundary = boundary_number(s);
  // Few rows of results, so that the whole grid can be counted.
  const int64_t reach = int64_t{s.radius} * s.sweeps, rows = 2 * reach + 8, nx = s.n;
  const int64_t origin = s.boundary == "valid" ? reach : 0;
  if (nx <= 2 * origin) refuse_value("--n", nx, "boundary valid needs more than twice the radius times the sweeps");
  constexpr int64_t room = 4608;  // elements of a tile in shared memory
  at::cut_plane cut = at::cut_sweeps(rows, nx, boundary, s.radius, s.sweeps, halo, columns, vector, room);
  cut.chunk = cut.y1 - cut.y0, cut.chunks = cut.strips > 0 ? 1 : 0;
  require_size((rows + 2 * reach) * (nx + 2 * columns) * 2, "--n");
  constexpr int stages = 8;
  const int row_elements = row_vectors * vector, warp_elements = (stages + 1) * row_elements;
  trace t = memory_of(s, rows * nx, nx, (rows - 2 * origin) * (nx - 2 * origin), int64_t{warps} * warp_elements);
  t.arrays[1].columns = nx - 2 * origin;
  const int64_t blocks = cut.side_tiles + (cut.strips + warps - 1) / warps;
  t.start({"stencil_sweeps_streamed", static_cast<int>(blocks), s.block, 1});
  t.best_block = static_cast<int>(cut.strips > 0 ? cut.side_tiles : 0);
  t.best_warp = cut.strips > 1 ? 1 : 0;
  const auto to_dst = [&](int64_t y, int64_t x) { return (y - origin) * (nx - 2 * origin) + x - origin; };
  for (int64_t block = 0; block < blocks; ++block)
    for (int thread = 0; thread < s.block; ++thread) {
      t.thread(static_cast<int>(block), thread);
      const int lane = thread % s.warp, warp = thread / s.warp;
      if (block < cut.side_tiles) {  // its sweeps, in shared memory, are left out
        const at::edge_tile tile = at::edge_tile_of(cut, block, rows, nx);
        const bool down = tile.high_y - tile.low_y > tile.high_x - tile.low_x;
        int round = 0;
        const auto each = [&](int64_t ya, int64_t yb, int64_t xa, int64_t xb, const auto& body) {
          for (int64_t a = (down ? xa : ya) + warp; a < (down ? xb : yb); a += warps)
            for (int64_t b = (down ? ya : xa) + lane; b < (down ? yb : xb); b += s.warp) down ? body(b, a) : body(a, b);
        };
        each(tile.low_y, tile.high_y, tile.low_x, tile.high_x,
             [&](int64_t y, int64_t x) { t.access(site::read_src, round++, y * nx + x); });
        each(tile.y0, tile.y1, tile.x0, tile.x1,
             [&](int64_t y, int64_t x) { t.access(site::write_dst, leaving + round++, to_dst(y, x)); });
        continue;
      }
      const int64_t strip = (block - cut.side_tiles) * warps + warp;
      if (strip >= cut.strips) continue;
      const at::strip_walk walk = at::strip_of(cut, strip, 0, columns);
      const int64_t own = int64_t{warp} * warp_elements;
      const auto placed = [&](int64_t row, int v) {
        return own + row * row_elements + at::vector_place(v, 2) * vector;
      };
      for (int step = 0; step < walk.count + 2 * reach; ++step) {
        const int round = step * (8 + 4 * s.radius * s.sweeps);
        const int64_t y = ((walk.y0 - reach + step) % rows + rows) % rows;
        for (int k = 0; k < 2; ++k) {
          const int v = k * s.warp + lane;
          bool inside = true;
          for (int e = 0; e < vector; ++e)
            inside &= walk.begin + v * vector + e >= 0 && walk.begin + v * vector + e < nx;
          if (inside)
            t.access(site::read_src, round + k, y * nx + walk.begin + v * vector, vector);
          else
            for (int e = 0; e < vector; ++e) {
              const int64_t x = walk.begin + v * vector + e;
              const int64_t i = boundary == LOCKSTEP_BOUNDARY_WRAP ? (x % nx + nx) % nx : x;
              if (i >= 0 && i < nx) t.access(site::read_src, round + k, y * nx + i);
            }
          t.access(site::write_tile, round + k, placed(step % stages, v), vector);
        }
        for (int k = 0; k < 2; ++k)
          t.access(site::read_tile, round + 2 + k, placed(step % stages, 2 * lane + k), vector);
        for (int sweep = 0; sweep < s.sweeps; ++sweep) shuffles(t, s, lane, round + 4 + sweep * 2 * s.radius);
        if (step < 2 * reach) continue;
        const int out = round + 4 + 2 * s.radius * s.sweeps;
        for (int k = 0; k < 2; ++k) t.access(site::write_tile, out + k, placed(stages, 2 * lane + k), vector);
        for (int k = 0; k < 2; ++k) {
          const int v = k * s.warp + lane, e = v * vector;
          if (e < cut.halo || e >= walk.last) continue;
          t.access(site::read_tile, out + 2 + k, placed(stages, v), vector);
          const int64_t to = to_dst(walk.y0 + step - 2 * reach, walk.begin + e);
          if (e + vector <= walk.last)
            t.access(site::write_dst, out + 2 + k, to, vector);
          else
            for (int i = 0; e + i < walk.last; ++i) t.access(site::write_dst, out + 2 + k, to + i);
        }
      }
    }
  sketch queue{"The rows of a warp: a row that arrives ends a row of each sweep, a radius further up each", {}};
  std::string head = "  arrives ";
  for (int sweep = 1; sweep <= s.sweeps; ++sweep) head += format_text("  sweep {}", sweep);
  queue.lines.push_back(head + "  written");
  for (int64_t step = 0; step < 2 * reach + 2; ++step) {
    std::string line = format_text("  {:>7} ", step);
    for (int sweep = 1; sweep <= s.sweeps; ++sweep) {
      const int64_t row = step - int64_t{sweep} * s.radius;  // good where the sweeps before had all its rows
      line += row >= int64_t{sweep} * s.radius ? format_text("{:>9}", row) : "        .";
    }
    queue.lines.push_back(line + (step >= 2 * reach ? format_text("{:>9}", step - reach) : "        ."));
  }
  t.sketches = {overlap_of(s, {"warp", "point", "lane", points, columns, halo}), std::move(queue)};
  t.notes = {
      twice_text(columns, halo, s.sweeps, "columns"),
      format_text("Each sweep keeps {} partial sums of each of a lane's {} columns in registers: {} of 4 bytes in "
                  "all.",
                  2 * s.radius, points, 2 * s.radius * points * s.sweeps * bytes / 4),
      format_text("A chunk of rows begins {} rows early, for the rows above that its sweeps need.", reach)};
  if (cut.side_tiles > 0)
    t.notes.push_back(
        "Near the plane's edges every sweep folds anew, so blocks of their own take those results, tile by tile in "
        "shared memory; their sweeps are not drawn.");
  t.notes.push_back(beyond(s));
  return t;
}

}  // namespace lockstep::tool::explain
