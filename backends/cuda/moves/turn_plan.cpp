// turn_plan.cpp - see turn.hpp: which axes make up the runs, and which tiles of them.
#include <algorithm>

#include "turn.hpp"

namespace lockstep::cuda {
namespace {

constexpr int64_t sector = 32, run_bytes = 128;  // what runs should reach

int64_t stride(const axes& a, int k, bool in_dst) { return in_dst ? a.at[k].dst : a.at[k].src; }

void order_of(const axes& a, bool in_dst, int* order) {
  for (int k = 0; k < a.rank; ++k) {
    order[k] = k;
    for (int m = k; m > 0 && stride(a, order[m - 1], in_dst) > stride(a, order[m], in_dst); --m)
      std::swap(order[m - 1], order[m]);
  }
}

}  // namespace

bool shape_turn(const axes& a, pointers which, turn_shape& shape) {
  if (a.rank == 0) return false;
  const int64_t bytes = a.element_bytes;
  int order[2][LOCKSTEP_MAX_RANK];
  order_of(a, false, order[0]), order_of(a, true, order[1]);
  if (a.at[order[0][0]].src != 1 || a.at[order[1][0]].dst != 1) return false;
  const auto grow = [&](int inners) {  // false: the block is not contiguous on both sides
    shape = turn_shape{};
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
      if (k < 0 || taken[k] || (axes_now > 0 && run[side] * bytes >= run_bytes) || axes_now == turn_levels ||
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
    return shape.outs <= turn_outer && shape.inners <= turn_levels;
  };
  // Blocks: what is together on both sides, where runs would be short without them.
  const int shared = order[0][0] == order[1][0] ? 1 : 0;
  if (!grow(shared)) return false;
  const auto shortest = [&] { return std::min(shape.block * shape.count_i, shape.block * shape.count_j) * bytes; };
  if (shortest() < sector) {
    for (int n = shared + 1; n <= std::min(a.rank, turn_levels); ++n) {
      bool same = true;
      for (int k = 0; k < n; ++k) same = same && std::find(order[0], order[0] + n, order[1][k]) != order[0] + n;
      if (!same) continue;
      int64_t block = 1;
      for (int k = 0; k < n; ++k) block *= a.at[order[0][k]].count;
      if (block * bytes > 2048 || block > turn_threads || !grow(n)) grow(shared);
      break;
    }
  }
  if (shape.block > turn_threads) return false;
  // Words of narrow elements: where every row begins with one.
  shape.word_i = shape.word_j = 1;
  if (bytes < 4) {
    const int64_t each = 4 / bytes;
    const auto fits = [&](bool in_dst) {
      const auto base = reinterpret_cast<uintptr_t>(in_dst ? static_cast<const void*>(a.dst) : a.src);
      if (which == pointers::as_given && base % 4 != 0) return false;
      const int first = order[in_dst][0];
      if (a.at[first].count % each != 0) return false;
      for (int k = 0; k < a.rank; ++k)
        if (k != first && stride(a, k, in_dst) % each != 0) return false;
      return true;
    };
    if (fits(false)) shape.word_i = static_cast<int>(each);
    if (fits(true)) shape.word_j = static_cast<int>(each);
  }
  return true;
}

bool plan_turn(const axes& a, const turn_shape& shape, const turn_choice& choice, turn_plan& plan) {
  const int64_t bytes = a.element_bytes, block = shape.block;
  plan = turn_plan{};
  plan.src = a.src, plan.dst = a.dst;
  plan.count_i = static_cast<uint32_t>(shape.count_i), plan.count_j = static_cast<uint32_t>(shape.count_j);
  plan.tile_i = choice.tile_i, plan.tile_j = choice.tile_j;
  const auto up = [](int64_t x, int64_t y) { return (x + y - 1) / y; };
  const int64_t tiles_i = up(shape.count_i, choice.tile_i), tiles_j = up(shape.count_j, choice.tile_j);
  plan.tiles_i = quick_divider(tiles_i), plan.tiles_j = quick_divider(tiles_j);
  const int64_t lanes_i = up(choice.tile_i * block, choice.word_i), lanes_j = up(choice.tile_j * block, choice.word_j);
  if (lanes_i > turn_threads || lanes_j > turn_threads) return false;
  if (choice.tile_i * block % choice.word_i != 0 || choice.tile_j * block % choice.word_j != 0) return false;
  plan.lanes_i = quick_divider(lanes_i), plan.lanes_j = quick_divider(lanes_j);
  plan.groups_i = static_cast<uint32_t>(turn_threads / lanes_i);
  plan.groups_j = static_cast<uint32_t>(turn_threads / lanes_j);
  if (up(choice.tile_j, plan.groups_i) > choice.rounds || up(choice.tile_i, plan.groups_j) > choice.rounds)
    return false;
  plan.inner = quick_divider(block);
  const auto run = [&](const int* which, int count, bool in_dst) {
    turn_run r{};
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
  int64_t blocks = tiles_i * tiles_j;
  for (int n = 0; n < shape.outs; ++n) {
    const axis& x = a.at[shape.out[n]];
    plan.out[plan.outer++] = {quick_divider(x.count), static_cast<uint32_t>(x.src), static_cast<uint32_t>(x.dst)};
    blocks *= x.count;
  }
  if (blocks >= int64_t{1} << 31) return false;
  plan.blocks = static_cast<uint32_t>(blocks);
  // The pitch with the fewest bank conflicts among lanes that read along j.
  const int64_t unit = bytes < 4 ? 4 / bytes : 1, bank = std::max<int64_t>(bytes, 4);
  const auto row = up(choice.tile_i * block, unit) * unit;
  plan.skew = static_cast<uint32_t>(choice.word_j > 1 ? unit : 0);
  int fewest = INT32_MAX;
  for (int64_t more = 0; more < 8; ++more) {
    const int64_t pitch = row + more * unit, lanes = std::min<int64_t>(lanes_j, 128 / bank);
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
uint32_t turn_share(const turn_shape& shape, bool along_j, int64_t want, int word) {
  const int64_t count = along_j ? shape.count_j : shape.count_i;
  const auto up = [](int64_t x, int64_t y) { return (x + y - 1) / y; };
  if (want + want / 4 >= count) return static_cast<uint32_t>(count);
  const int64_t first = (along_j ? shape.first_j : shape.first_i);  // the axis that the other side may go on with
  const int64_t pieces = up(count, want);
  const int64_t unit = first < count && first <= want && first % word == 0 ? first
                       : want >= 16                                        ? std::max(word, 4)
                                                                           : word;
  return static_cast<uint32_t>(std::min(up(up(count, pieces), unit) * unit, count));
}

bool plan_gather(const axes& a, uint32_t threads, gather_plan& plan) {
  if (a.rank > gather_levels || a.elements() >= int64_t{1} << 31) return false;
  plan = gather_plan{};
  plan.src = a.src, plan.dst = a.dst, plan.levels = a.rank, plan.threads = threads;
  plan.elements = static_cast<uint32_t>(a.elements());
  int order[LOCKSTEP_MAX_RANK];
  order_of(a, true, order);
  for (int n = 0; n < gather_levels; ++n) {
    // Beyond the axes nothing is left: any count gives index 0.
    plan.axis[n].count = quick_divider(int64_t{1} << 30);
    if (n >= a.rank) continue;
    const axis& x = a.at[order[n]];
    plan.axis[n] = {quick_divider(x.count), static_cast<uint32_t>(x.src), static_cast<uint32_t>(x.dst)};
  }
  const uint32_t each = threads * gather_rounds;
  plan.blocks = (plan.elements - 1) / each + 1;
  return true;
}

}  // namespace lockstep::cuda
