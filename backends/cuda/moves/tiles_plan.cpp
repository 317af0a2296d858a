// tiles_plan.cpp - see tiles.hpp: which box, and where its elements lie in the image.
#include <algorithm>

#include "tiles.hpp"

namespace lockstep::cuda {
namespace {

int64_t up(int64_t a, int64_t to) { return (a + to - 1) / to * to; }
int64_t stride(const axes& a, int k, bool in_dst) { return in_dst ? a.at[k].dst : a.at[k].src; }

// Axes by their strides on one side, the smallest first.
struct axis_order {
  int at[LOCKSTEP_MAX_RANK];
};
axis_order order_of(const axes& a, bool in_dst) {
  axis_order o{};
  for (int k = 0; k < a.rank; ++k) {
    o.at[k] = k;
    for (int m = k; m > 0 && stride(a, o.at[m - 1], in_dst) > stride(a, o.at[m], in_dst); --m)
      std::swap(o.at[m - 1], o.at[m]);
  }
  return o;
}

// How many of the side's fastest axes make up its rows, and a row's elements.
int run_of(const axes& a, const axis_order& order, bool in_dst, const int64_t* box, int64_t& run) {
  int n = 0;
  run = 1;
  while (n < a.rank && stride(a, order.at[n], in_dst) == run) {
    const int k = order.at[n++];
    run *= box[k];
    if (box[k] != a.at[k].count) break;
  }
  return n;
}

// Threads that share a row, so that all rows take the fewest rounds.
void share_rows(tile_side& side, uint32_t words, uint32_t threads) {
  uint32_t best = UINT32_MAX;
  for (uint32_t passes = (words + threads - 1) / threads; passes <= 64; ++passes) {
    const uint32_t lanes = (words + passes - 1) / passes, groups = threads / lanes;
    const uint32_t rounds = passes * ((side.rows + groups - 1) / groups);
    if (rounds < best) best = rounds, side.lanes = divider(lanes), side.groups = groups;
    if (lanes <= 8) break;
  }
}

// Wavefronts in which the first warps read a row of dst from the image.
int conflicts(const tiles_plan& plan, int bytes) {
  const uint32_t word = bytes >= 4 ? 1 : 4 / bytes, words = std::max(bytes, 4) / 4, lanes = 32 / words;
  const uint32_t all = std::min(plan.to.run / word, plan.to.lanes.d);
  int sum = 0;
  for (uint32_t first = 0; first < all && first < 64; first += lanes) {
    int hits[32] = {}, most = 0;
    for (uint32_t lane = first; lane < std::min(first + lanes, all); ++lane) {
      const tile_row r = word == 1   ? row_of<0>(plan.run, plan.run_levels, lane, 0)
                         : word == 2 ? row_of<1>(plan.run, plan.run_levels, lane * 2, 0)
                                     : row_of<2>(plan.run, plan.run_levels, lane * 4, 0);
      most = std::max(most, ++hits[r.place / 4 % 32 / words]);
    }
    sum += most;
  }
  return sum;
}

}  // namespace

size_t tiles_shared(const tiles_plan& plan, int element_bytes) {
  const auto word = static_cast<size_t>(element_bytes >= 4 ? 1 : 4 / element_bytes);
  return up(plan.image, 16) + (plan.to.rows + (plan.from.levels > 1 ? plan.from.rows : 0)) * sizeof(tile_row) +
         (plan.to.run + 2 * word) * sizeof(uint16_t);
}

bool plan_tiles(const axes& a, const tile_choice& choice, tiles_plan& plan) {
  const int64_t bytes = a.element_bytes;
  const bool narrow = bytes < 4;
  const axis_order by_src = order_of(a, false), by_dst = order_of(a, true);
  plan = tiles_plan{};
  plan.src = a.src, plan.dst = a.dst, plan.overlap = -1, plan.from.at[0].cut = -1, plan.threads = choice.threads;
  int64_t span = 1;
  for (int k = 0; k < a.rank; ++k) span += (a.at[k].count - 1) * a.at[k].src;
  plan.src_end = a.src + span * bytes;

  // Boxes are numbered along the axis with the smallest stride on either side first, dst's where both are the same.
  int walk[LOCKSTEP_MAX_RANK], grid_of[LOCKSTEP_MAX_RANK];
  const auto before = [&](int x, int y) {
    const int64_t sx = std::min(a.at[x].src, a.at[x].dst), sy = std::min(a.at[y].src, a.at[y].dst);
    return sx != sy ? sx < sy : a.at[x].dst < a.at[y].dst;
  };
  for (int k = 0; k < a.rank; ++k) {
    walk[k] = k;
    for (int m = k; m > 0 && before(walk[m], walk[m - 1]); --m) std::swap(walk[m - 1], walk[m]);
  }
  int64_t boxes = 1, last[LOCKSTEP_MAX_RANK];
  for (int n = 0; n < a.rank; ++n) {
    const int k = walk[n];
    const int64_t more = k == choice.overlap ? choice.more : 0, step = choice.box[k] - more;
    const int64_t count = std::max<int64_t>((a.at[k].count - more + step - 1) / step, 1);
    last[k] = a.at[k].count - (count - 1) * step;
    grid_of[k] = -1;
    if (count == 1) continue;
    if (k == choice.overlap) plan.overlap = plan.axes;
    grid_of[k] = plan.axes;
    plan.axis[plan.axes++] = {divider(count), step * a.at[k].src * bytes, step * a.at[k].dst * bytes};
    boxes *= count;
    if (boxes >= int64_t{1} << 31) return false;
  }
  plan.boxes = static_cast<uint32_t>(boxes);
  const auto cut_of = [&](int k) { return grid_of[k] >= 0 && last[k] != choice.box[k] ? grid_of[k] : -1; };

  int64_t src_run = 0, dst_run = 0;
  const int src_axes = run_of(a, by_src, false, choice.box, src_run);
  const int dst_axes = run_of(a, by_dst, true, choice.box, dst_run);
  bool in_src_run[LOCKSTEP_MAX_RANK] = {}, in_dst_run[LOCKSTEP_MAX_RANK] = {};
  int64_t place[LOCKSTEP_MAX_RANK] = {}, pad[LOCKSTEP_MAX_RANK] = {}, inner = bytes;
  for (int n = 0; n < src_axes; ++n) {
    const int k = by_src.at[n];
    in_src_run[k] = true, place[k] = inner, inner *= choice.box[k];
  }
  for (int n = 0; n < dst_axes; ++n) in_dst_run[by_dst.at[n]] = true;
  const auto level = [&](int k, bool in_dst) {
    return tile_level{divider(choice.box[k]),
                      (in_dst ? a.at[k].dst : a.at[k].src) * bytes,
                      static_cast<uint32_t>(place[k]),
                      static_cast<uint16_t>(pad[k]),
                      static_cast<int16_t>(cut_of(k)),
                      static_cast<uint32_t>(last[k])};
  };
  const auto side = [&](tile_side& s, int64_t run, int run_axes, const axis_order& own) {
    s.run = static_cast<uint32_t>(run), s.cut = -1, s.rows = 1, s.levels = 0;
    if (run_axes == 0) return;
    const int k = own.at[run_axes - 1];
    s.cut = cut_of(k), s.cut_run = static_cast<uint32_t>(run / choice.box[k] * last[k]);
  };
  side(plan.from, src_run, src_axes, by_src);
  side(plan.to, dst_run, dst_axes, by_dst);
  // Rows of the image follow each other as dst lies. Every pitch agrees with src's stride within a word, so
  // that a word of src is one of the image wherever rows begin.
  const auto lay_out = [&](int64_t more, int64_t more_a_word) {
    int64_t next = inner + (narrow ? 3 : 0) + more;
    bool first = true;
    plan.from.levels = 0, plan.from.rows = 1;
    for (int n = 0; n < a.rank; ++n) {
      const int k = by_dst.at[n];
      if (in_src_run[k] || choice.box[k] == 1) continue;
      const int64_t src_step = a.at[k].src * bytes;
      if (narrow) next += ((src_step - next) % 4 + 4) % 4;
      place[k] = next, pad[k] = first ? more_a_word : 0;
      next = next * choice.box[k] + (narrow ? choice.box[k] * bytes / 4 * pad[k] : 0);
      first = false;
      plan.from.at[plan.from.levels++] = level(k, false);
      plan.from.rows *= static_cast<uint32_t>(choice.box[k]);
    }
    plan.image = static_cast<uint32_t>(next + (narrow ? 8 : 0));
    plan.to.levels = 0, plan.to.rows = 1, plan.run_levels = 0;
    for (int n = 0; n < a.rank; ++n) {
      const int k = by_dst.at[n];
      if (in_dst_run[k] && choice.box[k] > 1) plan.run[plan.run_levels++] = level(k, true);
    }
    for (int n = 0; n < a.rank; ++n) {
      const int k = by_src.at[n];
      if (in_dst_run[k] || choice.box[k] == 1) continue;
      plan.to.at[plan.to.levels++] = level(k, true);
      plan.to.rows *= static_cast<uint32_t>(choice.box[k]);
    }
  };
  lay_out(0, 0);
  const auto words_of = [&](int64_t run) { return narrow ? (run * bytes + 3 + 3) / 4 : run; };
  share_rows(plan.from, static_cast<uint32_t>(words_of(src_run)), choice.threads);
  share_rows(plan.to, static_cast<uint32_t>(words_of(dst_run)), choice.threads);
  // The pad with the fewest bank conflicts.
  int fewest = INT32_MAX;
  int64_t best[2] = {0, 0};
  const int64_t bank = narrow ? 4 : bytes;
  for (int64_t more = 0; more < (narrow ? 8 : 4) * bank; more += bank) {
    lay_out(narrow ? 0 : more, narrow ? more : 0);
    if (const int now = conflicts(plan, static_cast<int>(bytes)); now < fewest)
      fewest = now, best[0] = narrow ? 0 : more, best[1] = narrow ? more : 0;
  }
  lay_out(best[0], best[1]);
  if (plan.overlap >= 0)
    plan.overlap_step = static_cast<uint32_t>(dst_run / choice.box[choice.overlap] * (choice.box[choice.overlap] - choice.more));
  return plan.image <= 40000 && tiles_shared(plan, a.element_bytes) <= 48 * 1024;
}

// About want of count elements, in shares of nearly one size.
static int64_t share_of(int64_t count, int64_t want, int64_t unit) {
  want = up(std::max<int64_t>(want, 1), unit);
  if (want + want / 2 > count) return count;
  const int64_t pieces = (count + want - 1) / want;
  return std::min(up((count + pieces - 1) / pieces, unit), count);
}

tile_choice choose_tiles(const axes& a, int64_t src_bytes, int64_t dst_bytes, int64_t most_bytes, bool overlap,
                         uint32_t threads) {
  const int64_t bytes = a.element_bytes, most = std::max<int64_t>(most_bytes / bytes, 1);
  const axis_order order[2] = {order_of(a, false), order_of(a, true)};
  tile_choice c{};
  c.overlap = -1, c.more = 0, c.threads = threads;
  for (int k = 0; k < a.rank; ++k) c.box[k] = 1;
  const auto elements = [&] {
    int64_t n = 1;
    for (int k = 0; k < a.rank; ++k) n *= c.box[k];
    return n;
  };
  for (const bool in_dst : {false, true}) {
    int64_t run = 1;
    const int64_t want = (in_dst ? dst_bytes : src_bytes) / bytes;
    for (int n = 0; n < a.rank && run < want; ++n) {
      const int k = order[in_dst].at[n];
      if (stride(a, k, in_dst) != run) break;
      const int64_t room = std::max<int64_t>(most * 5 / 4 / (elements() / c.box[k]), 1);
      const int64_t need = (want + run - 1) / run;
      const int64_t unit = run == 1 && need * bytes >= 2 * tile_sector ? tile_sector / bytes : 1;
      int64_t share = share_of(a.at[k].count, need, unit);
      if (share > room) share = need <= room ? std::min(need, a.at[k].count) : room;
      c.box[k] = std::max(c.box[k], share);
      run *= c.box[k];
      if (c.box[k] != a.at[k].count) break;
    }
  }
  // What room is left goes to the axes next in dst.
  for (int n = 0; n < a.rank; ++n) {
    const int k = order[1].at[n];
    if (c.box[k] == a.at[k].count) continue;
    const int64_t room = most / (elements() / c.box[k]);
    if (room < 2 * c.box[k]) continue;
    const int64_t pieces = (a.at[k].count + room - 1) / room;
    c.box[k] = (a.at[k].count + pieces - 1) / pieces;
  }
  if (overlap) {
    int64_t run = 0;
    const int n = run_of(a, order[1], true, c.box, run);
    bool whole = reinterpret_cast<uintptr_t>(a.dst) % tile_sector == 0;
    for (int k = 0; k < a.rank; ++k)
      if (k != order[1].at[0]) whole = whole && a.at[k].dst * bytes % tile_sector == 0;
    if (n > 0) {
      const int k = order[1].at[n - 1];
      const int64_t each = run / c.box[k] * bytes;
      const int64_t more = (tile_sector - bytes + each - 1) / each;
      if (!whole && c.box[k] + more < a.at[k].count) c.overlap = k, c.more = more, c.box[k] += more;
    }
  }
  return c;
}

}  // namespace lockstep::cuda
