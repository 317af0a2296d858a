// transpose.cpp - replays of the lesson kernels of backends/cuda/transpose/transpose.cu (A1 to A4).
#include "index/transpose.hpp"

#include "index/wide.hpp"
#include "lessons.hpp"
#include "rules.hpp"
#include "text.hpp"

namespace lockstep::tool::explain {
namespace {

using cuda::layout;
using cuda::square_extent;
using cuda::square_tile;

struct shape {
  int side, block_rows;
};

// Everything but the walk itself: defaults, extent, arrays, launch.
struct picture {
  shape block;
  square_extent all;
  trace t;
};

picture begin(settings& s, const char* kernel, int pitch_pad, bool has_tile) {
  if (s.element_bytes == 0) s.element_bytes = 4;
  if (s.tile == 0) s.tile = s.classic ? 4 : 32;
  if (s.rows == 0) s.rows = s.classic ? 4 : 32;
  if (s.columns == 0) s.columns = s.classic ? 4 : 32;
  require_range("--tile", s.tile, 2, 64);
  require_power_of_two("--tile", s.tile);
  require_range("--rows", s.rows, 1, 4096);
  require_range("--columns", s.columns, 1, 4096);
  require_size(s.rows * s.columns, "--rows and --columns");
  picture p{{s.tile, std::max(1, s.tile / 4)}, {}, {}};
  const int64_t tiles_i = (s.rows - 1) / s.tile + 1, tiles_j = (s.columns - 1) / s.tile + 1;
  p.all = {s.rows,  s.columns,         s.columns,        s.rows, s.rows * s.columns, s.rows * s.columns,
           tiles_j, tiles_i * tiles_j, tiles_i * tiles_j};
  p.t.chip = {s.warp, s.segment * s.element_bytes, s.banks};
  p.t.arrays = {{"src", space::global, s.element_bytes, s.rows * s.columns, s.columns},
                {"dst", space::global, s.element_bytes, s.rows * s.columns, s.rows}};
  if (has_tile)
    p.t.arrays.push_back({"tile", space::shared, s.element_bytes, int64_t{s.tile} * (s.tile + pitch_pad),
                          std::max(1, s.banks * 4 / s.element_bytes)});
  p.t.start({kernel, static_cast<int>(p.all.tiles), p.block.side, p.block.block_rows});
  return p;
}

template <class Walk>
void every_thread(picture& p, const Walk& walk) {
  for (int64_t number = 0; number < p.all.tiles; ++number) {
    const square_tile at(p.block, p.all, number);
    for (int y = 0; y < p.block.block_rows; ++y)
      for (int x = 0; x < p.block.side; ++x) {
        p.t.thread(static_cast<int>(number), x, y);
        walk(at, x, y);
      }
  }
}

// A warp of `warp` lanes over blocks `side` wide: so many lanes along x, so many rows of the block.
int lanes_across(const settings& s) { return std::min(s.warp, s.tile); }
int lanes_down(const settings& s) { return std::max(1, s.warp / s.tile); }

// Rules speak of full warps; `along` is the row length of the array in question.
place along_rows(const settings& s, site where, int array, bool writes) {
  const int across = lanes_across(s), down = lanes_down(s), warp = s.warp, bytes = s.element_bytes;
  const machine chip{s.warp, s.segment * bytes, s.banks};
  return {where, array, writes,
          format_text("lanes on neighbours: {} x {} bytes fill {:.0f} x {} bytes", across, bytes,
                      coalesced(across, bytes, chip), chip.segment_bytes),
          [=](const request& r) {
            return static_cast<int>(r.lanes.size()) < warp ? -1 : down * coalesced(across, bytes, chip);
          }};
}
place down_columns(const settings& s, site where, int array, bool writes, int64_t row_elements) {
  const int across = lanes_across(s), down = lanes_down(s), warp = s.warp, bytes = s.element_bytes;
  const machine chip{s.warp, s.segment * bytes, s.banks};
  return {where, array, writes,
          format_text("lanes a whole row apart ({} bytes): a segment for each of {}", row_elements * bytes, across),
          [=](const request& r) {
            if (static_cast<int>(r.lanes.size()) < warp) return -1.0;
            return strided(across, row_elements * bytes, chip) * coalesced(down, bytes, chip);
          }};
}

trace naive_read(settings& s) {
  picture p = begin(s, "transpose_naive_read", 0, false);
  p.t.places = {along_rows(s, site::read_src, 0, false), down_columns(s, site::write_dst, 1, true, s.rows)};
  every_thread(p, [&](const square_tile& at, int x, int y) {
    walk_naive_read(p.block, p.all, at, x, y, [&](int step, int64_t from, int64_t to) {
      p.t.access(site::read_src, (step - y) / p.block.block_rows, from);
      p.t.access(site::write_dst, (step - y) / p.block.block_rows, to);
    });
  });
  return p.t;
}

trace naive_write(settings& s) {
  picture p = begin(s, "transpose_naive_write", 0, false);
  p.t.places = {down_columns(s, site::read_src, 0, false, s.columns), along_rows(s, site::write_dst, 1, true)};
  every_thread(p, [&](const square_tile& at, int x, int y) {
    walk_naive_write(p.block, p.all, at, x, y, [&](int step, int64_t from, int64_t to) {
      p.t.access(site::read_src, (step - y) / p.block.block_rows, from);
      p.t.access(site::write_dst, (step - y) / p.block.block_rows, to);
    });
  });
  return p.t;
}

template <layout how>
trace tiled(settings& s) {
  picture p = begin(s, "transpose_tiled", how == layout::padded ? 1 : 0, true);
  const int pitch = cuda::tile_pitch<how>(p.block), warp = s.warp, bytes = s.element_bytes;
  const int across = lanes_across(s), down = lanes_down(s);
  const machine chip = p.t.chip;
  const int slots = std::max(1, chip.banks * 4 / bytes);
  place in{site::write_tile, 2, true, "a row of the tile lies across the banks: no conflict",
           [=](const request& r) { return static_cast<int>(r.lanes.size()) < warp || bytes < 4 ? -1.0 : 1.0; }};
  place out{site::read_tile, 2, false, "", nullptr};
  const double ways = how == layout::swizzled ? 1 : conflict_ways(across, pitch, bytes, chip);
  out.taught = [=](const request& r) {
    return static_cast<int>(r.lanes.size()) < warp || bytes < 4 || down > 1 ? -1.0 : ways;
  };
  if constexpr (how == layout::swizzled)
    out.rule = "element (i, j) lies at column i ^ j: a column of the tile meets every bank once";
  else
    out.rule =
        format_text("down a column lanes step by {} elements, and a row of banks holds {}: gcd({}, {}) = {}, {}", pitch,
                    slots, pitch, slots, std::gcd(pitch, slots),
                    ways > 1 ? format_text("so {:.0f} lanes meet in a bank", ways) : "so no two lanes meet in a bank");
  p.t.places = {along_rows(s, site::read_src, 0, false), in, out, along_rows(s, site::write_dst, 1, true)};
  every_thread(p, [&](const square_tile& at, int x, int y) {
    cuda::walk_tile_in<how>(p.block, p.all, at, x, y, [&](int step, int64_t from, int place) {
      p.t.access(site::read_src, (step - y) / p.block.block_rows, from);
      p.t.access(site::write_tile, (step - y) / p.block.block_rows, place);
    });
    p.t.barrier();
    cuda::walk_tile_out<how>(p.block, p.all, at, x, y, [&](int step, int place, int64_t to) {
      p.t.access(site::read_tile, (step - y) / p.block.block_rows, place);
      p.t.access(site::write_dst, (step - y) / p.block.block_rows, to);
    });
  });
  return p.t;
}

// A5: units of V x V elements, 16 bytes a lane on both sides (the textbook's machine: a segment).
// Full tiles and aligned rows only: the kernel stages others as they lie.
trace wide(settings& s) {
  if (s.element_bytes == 0) s.element_bytes = 4;
  const int bytes = s.element_bytes, at_once = s.classic ? s.segment * bytes : 16, V = at_once / bytes;
  cuda::wide_shape shape = cuda::first_wide_shape(bytes);
  if (s.tile == 0 && s.classic) s.tile = 2 * V;
  if (s.tile != 0) {
    require_power_of_two("--tile", s.tile);
    require_range("--tile", s.tile, s.classic ? V : std::max(V, 8 / V * V), 256);
    shape.tall = shape.broad = s.tile * bytes;
  }
  const int tile_rows = shape.tall / bytes, tile_columns = shape.broad / bytes, chunks = shape.tall / at_once,
            unit_columns = shape.broad / at_once;
  shape.threads = std::min(shape.threads, chunks * unit_columns);
  if (s.rows == 0) s.rows = tile_rows;
  if (s.columns == 0) s.columns = tile_columns;
  require_range("--rows", s.rows, 1, 4096);
  require_range("--columns", s.columns, 1, 4096);
  require_size(s.rows * s.columns, "--rows and --columns");
  if (s.rows % tile_rows != 0)
    refuse_value("--rows", s.rows,
                 format_text("the picture of wide has full tiles only; give a multiple of {}", tile_rows).c_str());
  if (s.columns % tile_columns != 0)
    refuse_value("--columns", s.columns,
                 format_text("the picture of wide has full tiles only; give a multiple of {}", tile_columns).c_str());
  const int64_t tiles_i = s.rows / tile_rows, tiles_j = s.columns / tile_columns;
  const int per_thread = chunks * unit_columns / shape.threads;

  trace t;
  t.chip = {s.warp, s.segment * bytes, s.banks};
  const machine chip = t.chip;
  const int bank_row = std::max(1, s.banks * 4 / at_once);  // chunks of a row of banks
  const int spread = cuda::wide_spread(unit_columns, bank_row);
  t.arrays = {{"src", space::global, bytes, s.rows * s.columns, s.columns},
              {"dst", space::global, bytes, s.rows * s.columns, s.rows},
              {"tile", space::shared, at_once, int64_t{tile_columns} * chunks, bank_row}};
  const auto rows_of = [=, warp = s.warp](int across) {  // runs of neighbours that a warp covers
    const double runs = std::max(1, warp / across);
    return [=](const request& r) {
      return static_cast<int>(r.lanes.size()) < warp ? -1 : runs * coalesced(std::min(warp, across), at_once, chip);
    };
  };
  const auto free = [](const request&) { return 1.0; };
  t.places = {
      {site::read_src, 0, false,
       format_text("{} bytes a lane: runs of {} neighbours fill whole segments", at_once,
                   std::min(s.warp, unit_columns)),
       rows_of(unit_columns)},
      {site::write_tile, 2, true, "chunks XORed with the unit's column: the lanes of a wavefront meet all banks once",
       free},
      {site::read_tile, 2, false, "rows of dst lie in rows of banks: no conflict", free},
      {site::write_dst, 1, true,
       format_text("{} bytes a lane: runs of {} neighbours fill whole segments", at_once, std::min(s.warp, chunks)),
       rows_of(chunks)}};
  t.start({"transpose_wide", static_cast<int>(tiles_i * tiles_j), shape.threads, 1});
  for (int64_t number = 0; number < tiles_i * tiles_j; ++number) {
    const int64_t i0 = number % tiles_i * tile_rows, j0 = number / tiles_i * tile_columns;  // tiles are walked down
    for (int thread = 0; thread < shape.threads; ++thread) {
      t.thread(static_cast<int>(number), thread);
      const auto u = static_cast<unsigned>(thread);
      cuda::walk_items(per_thread, u, shape.threads, unit_columns, [&](int p, int ui, int uj) {
        cuda::walk_unit(V, ui, uj, [&](int v, int i, int) {
          t.access(site::read_src, p * V + v, (i0 + i) * s.columns + j0 + uj * V, V);
        });
      });
      cuda::walk_items(per_thread, u, shape.threads, unit_columns, [&](int p, int ui, int uj) {
        cuda::walk_unit(V, ui, uj, [&](int v, int, int j) {
          t.access(site::write_tile, p * V + v, cuda::wide_place(j, ui, chunks, V, spread, bank_row));
        });
      });
      t.barrier();
      cuda::walk_items(per_thread * V, u, shape.threads, chunks, [&](int p, int j, int c) {
        t.access(site::read_tile, p, cuda::wide_place(j, c, chunks, V, spread, bank_row));
        t.access(site::write_dst, p, (j0 + j) * s.rows + i0 + c * V, V);
      });
    }
  }
  t.notes = {
      format_text("Between reading and writing the tile a lane turns {} x {} elements in its registers: renaming for 4 "
                  "bytes and up, byte permutes below.",
                  V, V)};
  if (s.classic)
    t.notes.push_back(format_text(
        "On this small machine a lane moves a segment at once ({} bytes); the kernel's moves 16 bytes.", at_once));
  return t;
}

}  // namespace

const std::vector<lesson>& transpose_lessons() {
  static const std::vector<lesson> all = {
      {"transpose", "naive_coalesced_read", "A1",
       "One thread an element, lanes along a row of src. The reads coalesce; the writes go down a column of dst, "
       "each lane into a segment of its own, most of which is moved for nothing.",
       naive_read},
      {"transpose", "naive_coalesced_write", "A2",
       "The mirror of A1: lanes along a row of dst. Now the writes coalesce and every lane of a read needs a segment "
       "of its own.",
       naive_write},
      {"transpose", "tiled", "A3",
       "A block reads a tile by rows of src, waits, and writes it by rows of dst: global memory sees rows on both "
       "sides. The turn happens in shared memory, where a column of the tile lies in one bank.",
       tiled<layout::plain>},
      {"transpose", "tiled_padded", "A4",
       "A3 with rows of the tile one element longer: the elements of a column move on by a bank a row, so a column "
       "meets all banks and the conflict is gone.",
       tiled<layout::padded>},
      {"transpose", "tiled_swizzled", "A4",
       "A3 with column j of row i kept at j ^ i: rows and columns of the tile both meet every bank once, without the "
       "pad's memory.",
       tiled<layout::swizzled>},
      {"transpose", "wide", "A5",
       "16 bytes a lane on both sides: a lane reads a square of elements, turns it in registers and leaves its rows in "
       "a swizzled tile, which is written by rows of dst.",
       wide},
  };
  return all;
}

}  // namespace lockstep::tool::explain
