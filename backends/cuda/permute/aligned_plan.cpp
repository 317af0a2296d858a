// aligned_plan.cpp - see aligned.hpp: which box, where its bytes lie in the two images, and
// which thread moves which element.
#include <algorithm>

#include "aligned.hpp"
#include "mutant.hpp"

namespace lockstep::cuda {
namespace {

constexpr int chunk = 16;
constexpr int64_t most_bytes = 16384, least_bytes = 1024;  // of a box

struct box_shape {
  int64_t box[LOCKSTEP_MAX_RANK];  // elements, as axes::at
  int own[2][LOCKSTEP_MAX_RANK];   // axes, fastest first: [0] in src, [1] in dst
  int64_t elements;
};

int64_t up(int64_t a, int64_t to) { return (a + to - 1) / to * to; }
int64_t stride(const axes& a, int k, int side) { return side == 0 ? a.at[k].src : a.at[k].dst; }

// Whether elements go on along `next` where `inner` ends, on that side.
bool runs_on(const axes& a, int inner, int next, int side) {
  return stride(a, next, side) == stride(a, inner, side) * a.at[inner].count;
}

// About `want` elements of an axis, in shares of nearly one size: multiples of 4 that fill
// sectors of 32 bytes where runs are short, if `unit` allows.
int64_t share_of(int64_t count, int64_t want, int64_t run_bytes, int64_t most_unit) {
  int64_t unit = want >= 8 ? std::min<int64_t>(most_unit, 4) : 1;
  while (unit < most_unit && unit * run_bytes % 32 != 0 && unit * run_bytes < 512) unit *= 2;
  want = up(want, unit);
  if (want + want / 2 > count) return count;
  const int64_t pieces = (count + want - 1) / want;
  return std::min(up((count + pieces - 1) / pieces, unit), count);
}

void count_elements(const axes& a, box_shape& s) {
  s.elements = 1;
  for (int k = 0; k < a.rank; ++k) s.elements *= s.box[k];
}

// Runs of want bytes or more on both sides, where there are such.
void grow(const axes& a, int64_t want, int64_t most_unit, box_shape& s) {
  for (int k = 0; k < a.rank; ++k) s.box[k] = 1;
  for (const int side : {0, 1}) {
    int64_t run = a.element_bytes;
    for (int n = 0; n < a.rank && run < want; ++n) {
      const int k = s.own[side][n];
      if (n > 0 && !runs_on(a, s.own[side][n - 1], k, side)) break;
      s.box[k] = std::max(s.box[k], share_of(a.at[k].count, (want + run - 1) / run, run, most_unit));
      run *= s.box[k];
      if (s.box[k] < a.at[k].count) break;
    }
  }
  count_elements(a, s);
}

// The longest runs whose box has at most so many bytes; what room is left goes to the axes
// that have none yet.
box_shape shape_of(const axes& a, int64_t bytes) {
  box_shape s{};
  for (int k = 0; k < a.rank; ++k) {
    s.own[1][k] = a.rank - 1 - k, s.own[0][k] = k;
    for (int m = k; m > 0 && a.at[s.own[0][m - 1]].src > a.at[s.own[0][m]].src; --m)
      std::swap(s.own[0][m - 1], s.own[0][m]);
  }
  grow(a, 1, 1, s);
  const int64_t most = bytes / a.element_bytes;
  for (int64_t want = 32; want <= most_bytes; want += want / 2) {
    box_shape next = s;
    for (const int64_t unit : {32, 4, 1})
      if (grow(a, want, unit, next); next.elements <= most) break;
    if (next.elements > most) break;
    s = next;
  }
  for (int n = 0; n < a.rank && s.elements * 2 <= most; ++n)
    if (const int k = s.own[0][n]; s.box[k] == 1) {
      const int64_t pieces = (a.at[k].count * s.elements + most - 1) / most;
      s.box[k] = std::min((a.at[k].count + pieces - 1) / pieces, most / s.elements);
      count_elements(a, s);
    }
  return s;
}

int64_t tiles_of(const axes& a, const box_shape& s) {
  int64_t tiles = 1;
  for (int k = 0; k < a.rank; ++k) tiles *= (a.at[k].count - 1) / s.box[k] + 1;
  return tiles;
}

// Small arrays are cut so that every processor gets some of them.
int64_t box_bytes(const axes& a, int processors) {
  return std::clamp(a.elements() * a.element_bytes / processors, least_bytes, most_bytes);
}

// Threads that share a run so that all runs take the fewest rounds; 8 at least, for the sake of sectors.
void share_runs(run_side& side, uint32_t chunks, uint32_t threads) {
  uint32_t best = UINT32_MAX;
  for (uint32_t rounds = 1; rounds <= 16; ++rounds) {
    const uint32_t lanes = std::min((chunks + rounds - 1) / rounds, threads), groups = threads / lanes;
    if (rounds > 1 && lanes < 8) break;
    const uint32_t all = (side.runs + groups - 1) / groups * ((chunks + lanes - 1) / lanes);
    if (all < best) best = all, side.lanes = divider(lanes), side.groups = groups;
  }
}

// The runs of one side, and where their image has the box's axes.
void place_runs(const axes& a, const box_shape& s, const int* number_of, int which, const aligned_plan& plan,
                run_side& side, int64_t (&place)[LOCKSTEP_MAX_RANK]) {
  const int* own = s.own[which];
  const int* other = s.own[1 - which];
  const auto bytes_between = [&](int k) { return stride(a, k, which) * a.element_bytes; };
  bool inside[LOCKSTEP_MAX_RANK] = {};
  int64_t length = a.element_bytes;
  side.cut = -1;
  for (int n = 0; n < a.rank; ++n) {
    const int k = own[n];
    if (n > 0 && !runs_on(a, own[n - 1], k, which)) break;
    // Rows of whole sectors stay apart: with a pitch of their own they meet in fewer banks.
    if (n > 0 && length >= 64 && length % 32 == 0) break;
    inside[k] = true, place[k] = bytes_between(k);
    const aligned_axis& tile = plan.tile[number_of[k]];
    if (s.box[k] < a.at[k].count) {
      if (tile.last != tile.box && !LOCKSTEP_MUTANT("aligned_runs_uncut")) side.cut = number_of[k], side.cut_bytes = static_cast<uint32_t>(length * tile.last);
      length *= s.box[k];
      break;
    }
    length *= s.box[k];
  }
  side.bytes = static_cast<uint32_t>(length), side.runs = 1, side.axes = 0;
  int64_t extent = length + chunk - 1;  // so that no chunk holds bytes of two runs
  bool first = true;
  for (int n = 0; n < a.rank; ++n) {
    const int k = other[n];
    if (inside[k]) continue;
    place[k] = 0;
    if (s.box[k] == 1) continue;
    const int64_t memory = bytes_between(k);
    place[k] = extent + (((memory - extent) % chunk) + chunk) % chunk;
    // An odd number of chunks apart, 8 neighbours fall into all the banks.
    if (first && place[k] / chunk % 2 == 0) place[k] += chunk;
    first = false;
    extent += place[k] * (s.box[k] - 1);
  }
  for (int n = 0; n < a.rank; ++n) {
    const int k = own[n];
    if (inside[k] || s.box[k] == 1) continue;
    side.at[side.axes++] = {divider(s.box[k]), bytes_between(k), static_cast<uint32_t>(place[k]), number_of[k]};
    side.runs *= static_cast<uint32_t>(s.box[k]);
  }
  side.image = static_cast<uint32_t>(up(extent + chunk - 1, chunk));
}

int64_t largest_divisor(int64_t of, int64_t most) {
  for (int64_t d = std::min(of, most); d > 1; --d)
    if (of % d == 0) return d;
  return 1;
}

// Wavefronts in which a warp's elements at these places are read or written.
int wavefronts(const uint32_t (&places)[32], int bytes) {
  const uint32_t unit = bytes < 4 ? 4 : static_cast<uint32_t>(bytes), slots = 128 / unit;
  int all = 0;
  for (uint32_t first = 0; first < 32; first += slots) {
    int hits[32] = {}, most = 0;
    uint32_t held[32];
    for (uint32_t lane = first; lane < first + slots; ++lane) {
      const uint32_t at = places[lane] / unit, slot = at % slots;
      if (hits[slot] == 0 || held[slot] != at) most = std::max(most, ++hits[slot]);
      held[slot] = at;
    }
    all += most;
  }
  return all;
}

// The threads' part of a box: a product of parts of its axes.
struct lane_part {
  int axes;
  lane_axis at[2 + LOCKSTEP_MAX_RANK];
  int64_t part[LOCKSTEP_MAX_RANK];  // of each axis
  int64_t movers;
};

// The first d elements of dst's fastest axis, then src's fastest, then whatever divides.
lane_part lanes_of(const axes& a, const box_shape& s, int64_t d, const int64_t (&get)[LOCKSTEP_MAX_RANK],
                   const int64_t (&put)[LOCKSTEP_MAX_RANK]) {
  lane_part p{0, {}, {}, 1};
  for (int k = 0; k < a.rank; ++k) p.part[k] = 1;
  const auto take = [&](int k, int64_t most) {
    const int64_t n = largest_divisor(s.box[k] / p.part[k], std::min(most, aligned_threads / p.movers));
    if (n == 1) return;
    p.at[p.axes++] = {divider(n), static_cast<uint32_t>(get[k] * p.part[k]), static_cast<uint32_t>(put[k] * p.part[k])};
    p.part[k] *= n, p.movers *= n;
  };
  take(s.own[1][0], d);
  for (int n = 0; n < a.rank; ++n) take(s.own[0][n], aligned_threads);
  return p;
}

double cost_of(const lane_part& p, int bytes) {
  uint32_t get[32], put[32];
  for (uint32_t lane = 0; lane < 32; ++lane) {
    get[lane] = put[lane] = 0;
    uint32_t rest = lane % static_cast<uint32_t>(p.movers);
    for (int n = 0; n < p.axes; ++n) {
      uint32_t index = rest;
      rest = p.at[n].count.split(index);
      get[lane] += index * p.at[n].get, put[lane] += index * p.at[n].put;
    }
  }
  const double used = static_cast<double>(p.movers) / static_cast<double>(up(p.movers, 32));
  const double few = p.movers < 96 ? 1.5 : 1;
  return (wavefronts(get, bytes) + wavefronts(put, bytes) + 1) * few / used;
}

bool try_plan(const axes& a, const box_shape& s, aligned_plan& plan) {
  const int64_t bytes = a.element_bytes;
  plan = {};
  plan.src = a.src, plan.dst = a.dst, plan.rank = a.rank;
  plan.tiles = static_cast<uint32_t>(tiles_of(a, s));
  // Boxes are numbered along the axis with the smallest stride on either side first: those
  // under way at the same time are neighbours in src and in dst.
  int walk[LOCKSTEP_MAX_RANK], number_of[LOCKSTEP_MAX_RANK];
  const auto least = [&](int k) { return std::min(a.at[k].src, a.at[k].dst); };
  for (int k = 0; k < a.rank; ++k) {
    walk[k] = k;
    for (int m = k; m > 0 && least(walk[m - 1]) > least(walk[m]); --m) std::swap(walk[m - 1], walk[m]);
  }
  int64_t span = bytes;
  for (int n = 0; n < a.rank; ++n) {
    const int k = walk[n];
    const axis& x = a.at[k];
    const int64_t count = (x.count - 1) / s.box[k] + 1;
    plan.tile[n] = {divider(count), static_cast<uint32_t>(s.box[k]),
                    static_cast<uint32_t>(x.count - (count - 1) * s.box[k]), s.box[k] * x.src * bytes,
                    s.box[k] * x.dst * bytes};
    number_of[k] = n, span += (x.count - 1) * x.src * bytes;
  }
  plan.src_end = a.src + span;
  int64_t get[LOCKSTEP_MAX_RANK], put[LOCKSTEP_MAX_RANK];
  place_runs(a, s, number_of, 0, plan, plan.from, get);
  place_runs(a, s, number_of, 1, plan, plan.to, put);
  const int64_t runs = int64_t{plan.from.runs} + plan.to.runs;
  if (plan.from.image > UINT16_MAX || plan.to.image > UINT16_MAX || runs > 2048) return false;

  lane_part best{};
  double cost = 0;
  for (int64_t d = std::min<int64_t>(s.box[a.rank - 1], 33); d >= 1; --d) {
    if (s.box[a.rank - 1] % d != 0 || (d > 1 && s.own[0][0] == s.own[1][0])) continue;
    const lane_part p = lanes_of(a, s, d, get, put);
    if (const double now = cost_of(p, a.element_bytes); best.movers == 0 || now < cost) best = p, cost = now;
  }
  const int64_t steps = s.elements / best.movers;
  if (steps > aligned_steps) return false;
  plan.movers = static_cast<uint32_t>(best.movers), plan.threads = static_cast<uint32_t>(up(best.movers, 32));
  plan.lane_axes = best.axes;
  std::copy(best.at, best.at + best.axes, plan.lane);
  plan.steps = static_cast<uint32_t>(up(steps, 8));
  for (int64_t n = 0; n < plan.steps; ++n) {
    int64_t rest = std::min(n, steps - 1), from = 0, to = 0;
    for (int m = 0; m < a.rank; ++m) {
      const int k = s.own[1][m];
      const int64_t count = s.box[k] / best.part[k], index = rest % count * best.part[k];
      rest /= count;
      from += index * get[k], to += index * put[k];
    }
    plan.step[n] = static_cast<uint32_t>(from << 16 | to);
  }
  // A run of whole chunks that begins anywhere touches one more.
  const auto chunks_of = [&](const run_side& side, const void* base, int which) {
    bool whole = reinterpret_cast<uintptr_t>(base) % chunk == 0 && side.bytes % chunk == 0;
    for (int k = 0; k < side.axes; ++k) whole = whole && side.at[k].memory % chunk == 0;
    for (int n = 0; n < a.rank; ++n) {
      const aligned_axis& t = plan.tile[n];
      whole = whole && (t.tiles.d == 1 || (which == 0 ? t.src_step : t.dst_step) % chunk == 0);
    }
    return whole ? side.bytes / chunk : (side.bytes + 2 * chunk - 2) / chunk;
  };
  share_runs(plan.from, chunks_of(plan.from, a.src, 0), plan.threads);
  share_runs(plan.to, chunks_of(plan.to, a.dst, 1), plan.threads);
  return true;
}

}  // namespace

bool aligned_fits(const axes& a) {
  return a.rank >= 1 && a.at[a.fastest_src()].src == 1 && a.at[a.fastest_dst()].dst == 1;
}

int64_t aligned_tiles(const axes& a, int processors) { return tiles_of(a, shape_of(a, box_bytes(a, processors))); }

bool plan_aligned(const axes& a, int processors, aligned_plan& plan) {
  for (int64_t bytes = box_bytes(a, processors); bytes >= least_bytes / 4; bytes /= 2)
    if (try_plan(a, shape_of(a, bytes), plan)) return true;
  return false;
}

}  // namespace lockstep::cuda
