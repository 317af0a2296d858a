// plan.cpp - see moves.hpp: which axes make up the runs, and which tiles of them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "moves.hpp"

namespace lockstep::cuda {
namespace {

constexpr int sector = 32, line = 128;  // bytes; runs should be a line or more

int64_t stride(const axes& a, int k, bool in_dst) { return in_dst ? a.at[k].dst : a.at[k].src; }

void order_of(const axes& a, bool in_dst, int* order) {
  for (int k = 0; k < a.rank; ++k) {
    order[k] = k;
    for (int m = k; m > 0 && stride(a, order[m - 1], in_dst) > stride(a, order[m], in_dst); --m)
      std::swap(order[m - 1], order[m]);
  }
}

}  // namespace

bool shape_tiles(const axes& a, pointers which, tiles_shape& shape) {
  if (a.rank == 0) return false;
  const int64_t bytes = a.element_bytes;
  int order[2][LOCKSTEP_MAX_RANK];
  order_of(a, false, order[0]), order_of(a, true, order[1]);
  if (a.at[order[0][0]].src != 1 || a.at[order[1][0]].dst != 1) return false;
  const auto grow = [&](int inners) {  // false: the block is not contiguous on both sides
    shape = tiles_shape{};
    bool taken[LOCKSTEP_MAX_RANK] = {};
    shape.block = shape.count_i = shape.count_j = 1;
    int64_t in_dst = 1;
    for (int n = 0; n < inners; ++n) {
      const int k = order[1][n], m = order[0][n];
      if (a.at[k].dst != in_dst || a.at[m].src != shape.block) return false;
      in_dst *= a.at[k].count, shape.block *= a.at[m].count;
      shape.inner[shape.inners++] = k;
      taken[k] = true;
    }
    int next[2] = {inners, inners};
    bool open[2] = {true, true};
    while (open[0] || open[1]) {
      const int64_t run[2] = {shape.block * shape.count_i, shape.block * shape.count_j};
      // dst's rows first: where both want an axis, they get it.
      const int side = !open[0] ? 1 : !open[1] ? 0 : run[0] < run[1] ? 0 : 1;
      const int k = next[side] < a.rank ? order[side][next[side]] : -1;
      int& axes_now = side == 0 ? shape.is : shape.js;
      if (k < 0 || taken[k] || (axes_now > 0 && run[side] * bytes >= line) || axes_now == tile_levels ||
          stride(a, k, side == 1) != run[side]) {
        open[side] = false;
        continue;
      }
      taken[k] = true, ++next[side];
      (side == 0 ? shape.i : shape.j)[axes_now++] = k;
      (side == 0 ? shape.count_i : shape.count_j) *= a.at[k].count;
    }
    shape.first_i = shape.is > 0 ? a.at[shape.i[0]].count : 1;
    shape.first_j = shape.js > 0 ? a.at[shape.j[0]].count : 1;
    for (int n = 0; n < a.rank; ++n)  // what the runs leave, in the order of the smaller stride
      if (const int k = order[1][n]; !taken[k]) shape.out[shape.outs++] = k;
    return shape.outs <= tiles_outer && shape.inners <= tile_levels;
  };
  // Blocks: what is together on both sides, where runs would be short without them.
  const int shared = order[0][0] == order[1][0] ? 1 : 0;
  if (!grow(shared)) return false;
  const auto shortest = [&] { return std::min(shape.block * shape.count_i, shape.block * shape.count_j) * bytes; };
  if (shortest() < sector) {
    for (int n = shared + 1; n <= std::min(a.rank, tile_levels); ++n) {
      bool same = true;
      for (int k = 0; k < n; ++k) same = same && std::find(order[0], order[0] + n, order[1][k]) != order[0] + n;
      if (!same) continue;
      int64_t block = 1;
      for (int k = 0; k < n; ++k) block *= a.at[order[0][k]].count;
      if (block * bytes > together_bytes || block > move_threads || !grow(n)) grow(shared);
      break;
    }
  }
  if (shape.block > move_threads) return false;
  // Words of narrow elements: where every row begins with one.
  const auto rows_begin_with = [&](bool in_dst, int64_t unit) {  // bytes
    const auto base = reinterpret_cast<uintptr_t>(in_dst ? static_cast<const void*>(a.dst) : a.src);
    if (which == pointers::as_given && base % static_cast<uintptr_t>(unit) != 0) return false;
    for (int k = 0; k < a.rank; ++k)
      if (stride(a, k, in_dst) >= shape.block && stride(a, k, in_dst) > 1 && stride(a, k, in_dst) * bytes % unit != 0)
        return false;
    return true;
  };
  const int each = bytes < 4 ? static_cast<int>(4 / bytes) : 1;
  const auto word = [&](bool in_dst) {
    return a.at[order[in_dst][0]].count % each == 0 && rows_begin_with(in_dst, 4) ? each : 1;
  };
  shape.word_i = word(false), shape.word_j = word(true);
  shape.sectors_i = rows_begin_with(false, sector), shape.sectors_j = rows_begin_with(true, sector);
  return true;
}

namespace {

int64_t up(int64_t x, int64_t y) { return (x + y - 1) / y; }

// How a block's threads share a tile; rounds 0: they cannot.
struct tile_work {
  int64_t lanes_i, lanes_j, groups_i, groups_j, loads, stores, tiles_i, tiles_j, grid;
  int rounds;
};
tile_work work_of(const axes& a, const tiles_shape& shape, const tiles_choice& c) {
  tile_work w{};
  const int64_t in = c.tile_i * shape.block, out = c.tile_j * shape.block;
  if (in % c.word_i != 0 || out % c.word_j != 0) return w;
  w.lanes_i = in / c.word_i, w.lanes_j = out / c.word_j;
  if (w.lanes_i > move_threads || w.lanes_j > move_threads) return w;
  w.groups_i = move_threads / w.lanes_i, w.groups_j = move_threads / w.lanes_j;
  w.loads = up(c.tile_j, w.groups_i), w.stores = up(c.tile_i, w.groups_j);
  w.tiles_i = up(shape.count_i, c.tile_i), w.tiles_j = up(shape.count_j, c.tile_j);
  w.grid = w.tiles_i * w.tiles_j;
  for (int n = 0; n < shape.outs; ++n) w.grid *= a.at[shape.out[n]].count;
  const int64_t most = std::max(w.loads, w.stores);
  if (most <= 16 && w.grid < int64_t{1} << 31) w.rounds = most <= 4 ? 4 : most <= 8 ? 8 : 16;
  return w;
}

}  // namespace

bool plan_tiles(const axes& a, const tiles_shape& shape, const tiles_choice& choice, tiles_plan& plan) {
  const int64_t bytes = a.element_bytes, block = shape.block;
  const tile_work work = work_of(a, shape, choice);
  if (work.rounds == 0 || work.rounds > choice.rounds) return false;
  plan = tiles_plan{};
  plan.src = a.src, plan.dst = a.dst;
  plan.count_i = static_cast<uint32_t>(shape.count_i), plan.count_j = static_cast<uint32_t>(shape.count_j);
  plan.tile_i = choice.tile_i, plan.tile_j = choice.tile_j;
  plan.tiles_i = quick_divider(work.tiles_i), plan.tiles_j = quick_divider(work.tiles_j);
  plan.lanes_i = quick_divider(work.lanes_i), plan.lanes_j = quick_divider(work.lanes_j);
  plan.groups_i = static_cast<uint32_t>(work.groups_i), plan.groups_j = static_cast<uint32_t>(work.groups_j);
  plan.grid = static_cast<uint32_t>(work.grid);
  plan.inner = quick_divider(block);
  const auto run = [&](const int* which, int count, bool in_dst) {
    tile_run r{};
    if (count > 0) r.first = static_cast<uint32_t>(stride(a, which[0], in_dst));
    if (count < 2) return r;
    const divider by(a.at[which[0]].count);
    r.count = by.d, r.multiplier = by.multiplier, r.shift = by.shift;
    r.second = static_cast<uint32_t>(stride(a, which[1], in_dst));
    return r;
  };
  plan.i = run(shape.i, shape.is, true);
  plan.j = run(shape.j, shape.js, false);
  plan.within = run(shape.inner, shape.inners, false);
  for (int n = 0; n < shape.outs; ++n) {
    const axis& x = a.at[shape.out[n]];
    plan.out[plan.outer++] = {quick_divider(x.count), static_cast<uint32_t>(x.src), static_cast<uint32_t>(x.dst)};
  }
  // The pitch with the fewest bank conflicts among lanes that read along j.
  const int64_t unit = bytes < 4 ? 4 / bytes : 1, bank = std::max<int64_t>(bytes, 4);
  const auto row = up(choice.tile_i * block, unit) * unit;
  plan.skew = static_cast<uint32_t>(choice.word_j > 1 ? unit : 0);
  int fewest = INT32_MAX;
  for (int64_t more = 0; more < 8; ++more) {
    const int64_t pitch = row + more * unit, lanes = std::min<int64_t>(work.lanes_j, 128 / bank);
    int hits[32] = {}, most = 0;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      auto within = static_cast<uint32_t>(lane * choice.word_j);
      const uint32_t j = plan.inner.split(within);
      const int64_t place = j * pitch + j / choice.word_j * plan.skew + plan.within.offset(within);
      most = std::max(most, ++hits[place * bytes / bank % (128 / bank)]);
    }
    if (most < fewest) fewest = most, plan.pitch = static_cast<uint32_t>(pitch);
  }
  plan.image = static_cast<uint32_t>((plan.pitch * choice.tile_j + choice.tile_j / choice.word_j * plan.skew) * bytes);
  return plan.image <= 48 * 1024;
}

// Shares of nearly one size, of about `want` blocks and whole words.
uint32_t tile_share(const tiles_shape& shape, bool along_j, int64_t want, int word) {
  const int64_t count = along_j ? shape.count_j : shape.count_i;
  if (want + want / 4 >= count) return static_cast<uint32_t>(count);
  const int64_t first = (along_j ? shape.first_j : shape.first_i);  // the axis that the other side may go on with
  const int64_t pieces = up(count, want);
  const int64_t unit = first < count && first <= want && first % word == 0 ? first
                       : want >= 16                                        ? std::max(word, 4)
                                                                           : word;
  return static_cast<uint32_t>(std::min(up(up(count, pieces), unit) * unit, count));
}

namespace {

// The busiest SM's blocks, each with its rounds; the sectors of both sides; DRAM where the L2 does not hold
// them, to which parts of sectors cost several.
double cost_of(const axes& a, const tiles_shape& shape, const tiles_choice& choice, const tile_work& work,
               const move_tuning& tuned) {
  const tile_tuning& t = tuned.tiles;
  const auto bytes = static_cast<double>(a.element_bytes), all = static_cast<double>(a.elements()) * bytes;
  const auto loads = static_cast<double>(work.loads), stores = static_cast<double>(work.stores);
  const double in = choice.tile_i * static_cast<double>(shape.block) * bytes;
  const double out = choice.tile_j * static_cast<double>(shape.block) * bytes;
  const bool whole_i = choice.tile_i == shape.count_i, whole_j = choice.tile_j == shape.count_j;
  const auto sectors = [](double run, bool begin, bool whole) {
    return whole || (begin && std::fmod(run, sector) == 0) ? run : run + sector;
  };
  const double read = sectors(in, shape.sectors_i, whole_i), written = sectors(out, shape.sectors_j, whole_j);
  const auto processors = static_cast<double>(tuned.has.processors);
  const auto busiest = static_cast<double>(up(work.grid, tuned.has.processors));
  const double uneven = busiest * processors / static_cast<double>(work.grid) / 1e6;
  const double words = choice.word_j == 1 ? 1 : choice.word_j == 2 ? t.pairs : t.quads;
  double us = t.launch + busiest * (t.block + t.load * loads + t.store * words * stores) +
              all * uneven * (t.read * read / in + t.written * written / out) +
              std::max(2 * all - t.l2_bytes, 0.0) * t.dram_byte * (t.dram_part * written / out - (t.dram_part - 1));
  const auto part = [](double run, bool whole) { return whole || run >= line ? 0 : 1 - run / line; };
  us *= 1 + t.short_runs * (part(in, whole_i) + part(out, whole_j));
  if (bytes < 4 && ((choice.word_i == 1 && in < sector) || (choice.word_j == 1 && out < sector))) us *= t.narrow;
  return work.rounds == 16 ? t.most_rounds * us : us;
}

}  // namespace

double choose_tiles(const axes& a, const tiles_shape& shape, const move_tuning& tuned, tiles_choice& choice) {
  double least = std::numeric_limits<double>::infinity();
  tiles_choice last{};
  for (const int64_t i : tuned.tiles.along_src)
    for (const int64_t j : tuned.tiles.along_dst) {
      tiles_choice c{tile_share(shape, false, std::max<int64_t>(i / shape.block, 1), shape.word_i),
                     tile_share(shape, true, std::max<int64_t>(j / shape.block, 1), shape.word_j), 16, shape.word_i,
                     shape.word_j};
      if (c.tile_i == last.tile_i && c.tile_j == last.tile_j) continue;
      last = c;
      if (shape.block * c.tile_i * c.tile_j * a.element_bytes > tuned.tiles.tile) continue;
      const tile_work work = work_of(a, shape, c);
      if (work.rounds == 0) continue;
      if (const double cost = cost_of(a, shape, c, work, tuned); cost < least)
        c.rounds = work.rounds, least = cost, choice = c;
    }
  return least;
}

gather_plan plan_gather(const axes& a, const move_tuning& tuned) {
  gather_plan plan{};
  plan.src = a.src, plan.dst = a.dst, plan.levels = a.rank;
  plan.elements = static_cast<uint32_t>(a.elements());
  int order[LOCKSTEP_MAX_RANK];
  order_of(a, true, order);
  for (int n = 0; n < LOCKSTEP_MAX_RANK; ++n) {
    plan.axis[n].count = quick_divider(int64_t{1} << 30);  // beyond the axes nothing is left: index 0
    if (n >= a.rank) continue;
    const axis& x = a.at[order[n]];
    plan.axis[n] = {quick_divider(x.count), static_cast<uint32_t>(x.src), static_cast<uint32_t>(x.dst)};
  }
  plan.threads = move_threads;
  while (plan.threads > tuned.gathers.least_threads &&
         plan.elements / (plan.threads * gather_rounds) < static_cast<uint32_t>(tuned.has.processors))
    plan.threads /= 2;
  plan.grid = (plan.elements - 1) / (plan.threads * gather_rounds) + 1;
  return plan;
}

// Warps, and the lines of src that one reads.
double gather_cost(const axes& a, const move_tuning& tuned) {
  constexpr int lanes = 32, samples = 4;
  int order[LOCKSTEP_MAX_RANK];
  order_of(a, true, order);
  const int64_t elements = a.elements();
  int lines = 0;
  for (int sample = 0; sample < samples; ++sample) {
    int64_t seen[lanes];
    int found = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      int64_t rest = (elements / (samples + 1) * sample / lanes * lanes + lane) % elements, offset = 0;
      for (int n = 0; n < a.rank; ++n)
        offset += rest % a.at[order[n]].count * a.at[order[n]].src, rest /= a.at[order[n]].count;
      const int64_t at = offset * a.element_bytes / line;
      if (std::find(seen, seen + found, at) == seen + found) seen[found++] = at;
    }
    lines += found;
  }
  const auto bytes = static_cast<double>(elements) * a.element_bytes;
  const auto processors = static_cast<double>(tuned.has.processors);
  const double warps = static_cast<double>(elements) / lanes / processors, met = static_cast<double>(lines) / samples;
  const gather_tuning& g = tuned.gathers;
  return g.launch + g.line * met + warps * (g.warp + (a.rank > 3 ? g.axes : 0) + g.warp_line * met) + bytes * g.byte +
         std::max(2 * bytes - g.l2_bytes, 0.0) * g.dram_byte;
}

}  // namespace lockstep::cuda
