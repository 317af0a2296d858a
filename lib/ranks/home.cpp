// home.cpp - where the elements of a reduction are when they are summed. If a rank's part of a sequence is contiguous,
// or no order shows in the result, where they were. Else the array is redistributed first: each sequence becomes one
// axis, behind the kept axes, and is cut at leaves, so that all ranks have work and none holds much more than its
// share.
#include <algorithm>
#include <numeric>

#include "reduce.hpp"

namespace lockstep::ranks {

constexpr int64_t leaf = order::leaf;

namespace {
int64_t up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// How many parts each kept axis is cut into, and then the sequence, so that the largest block is small.
struct division {
  std::vector<int32_t> kept;
  int32_t members = 1;
  int64_t largest = INT64_MAX;  // elements
};

division divided(const std::vector<int64_t>& kept, int64_t length, int32_t ranks) {
  division best;
  // About `wanted` parts of the kept axes, taken from one axis after the other.
  const auto attempt = [&](int64_t wanted, bool longest_first) {
    division d;
    d.kept.assign(kept.size(), 1);
    std::vector<size_t> order(kept.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (longest_first)
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return kept[a] > kept[b]; });
    int64_t left = std::min<int64_t>(wanted, ranks), parts = 1, elements = 1;
    for (const size_t k : order) {
      d.kept[k] = static_cast<int32_t>(std::clamp<int64_t>(kept[k], 1, left));
      left /= d.kept[k], parts *= d.kept[k];
    }
    for (size_t k = 0; k < kept.size(); ++k) elements *= up(kept[k], d.kept[k]);
    const int64_t leaves = std::max<int64_t>(order::leaves(length), 1);
    d.members = static_cast<int32_t>(std::clamp<int64_t>(leaves, 1, ranks / parts));
    d.largest = elements * std::min(length, up(leaves, d.members) * leaf);
    if (d.largest < best.largest) best = std::move(d);
  };
  int64_t sequences = 1;
  for (const int64_t n : kept) sequences *= std::max<int64_t>(n, 1);
  for (const bool longest_first : {true, false}) {
    attempt(std::min<int64_t>(sequences, ranks), longest_first);
    for (int64_t wanted = 1; wanted <= ranks; wanted *= 2) attempt(wanted, longest_first);
    for (int64_t members = 1; members <= 64; ++members) attempt(std::max<int64_t>(ranks / members, 1), longest_first);
  }
  return best;
}
}  // namespace

grid reduce_plan::flat_home(const lockstep_comm& comm) const {
  grid made;
  made.element_bytes = element_bytes;
  made.rank = static_cast<int>(kept_axes.size()) + 1;
  std::vector<int64_t> shape;
  for (const int k : kept_axes) shape.push_back(src.shape[static_cast<size_t>(k)]);
  int64_t sequence = 1;
  for (const int k : reduced_axes) sequence *= src.shape[static_cast<size_t>(k)];
  const division d = divided(shape, sequence, comm.ranks());
  int32_t blocks = d.members;
  for (size_t k = 0; k < shape.size(); ++k) {
    made.shape[k] = shape[k];
    made.parts[k] = d.kept[k];
    made.cuts[k] = even_cuts(shape[k], d.kept[k]);
    blocks *= d.kept[k];
  }
  made.shape[shape.size()] = sequence;
  made.parts[shape.size()] = d.members;
  made.cuts[shape.size()] = even_cuts(sequence, d.members, leaf);
  made.block_of.assign(static_cast<size_t>(comm.ranks()), -1);
  for (int32_t b = 0; b < blocks; ++b) made.rank_of.push_back(b), made.block_of[static_cast<size_t>(b)] = b;
  return made;
}

// Whether a leaf of each of many sequences is cut between ranks, and the rank that would be sent all of it would hold
// more than twice what it holds after a redistribution. Vectors that are added element by element are such sequences:
// each rank has one element of every sequence.
bool reduce_plan::crowded(const lockstep_comm& comm) const {
  if (!by_leaves() || cut_axis < 0) return false;
  int64_t sequence = 1;
  double most = 1;  // sequences of a block; not whole numbers, which absurd sizes would overflow
  for (const int k : reduced_axes) sequence *= src.shape[static_cast<size_t>(k)];
  if (src.parts[static_cast<size_t>(cut_axis)] <= order::leaves(sequence)) return false;
  for (const int k : kept_axes) {
    const auto& cuts = src.cuts[static_cast<size_t>(k)];
    int64_t longest = 0;
    for (size_t j = 1; j < cuts.size(); ++j) longest = std::max(longest, cuts[j] - cuts[j - 1]);
    most *= static_cast<double>(longest);
  }
  const grid even = flat_home(comm);
  return most * static_cast<double>(std::min(sequence, leaf)) >
         2 * static_cast<double>(even.of(even.rank_of[0]).elements());
}

void reduce_plan::choose_home(lockstep_comm& comm, lockstep_ranks_plan& plan) {
  home = src;
  cut_axis = run_axis(src);
  if (cut_axis >= -1 && !crowded(comm)) return;
  if (!by_leaves()) return take_blocks_as_they_are();
  home = flat_home(comm);
  const std::vector<int> kept_of_src = kept_axes, reduced_of_src = reduced_axes;
  kept_inside = !kept_axes.empty() && kept_axes.front() > reduced_axes.back();
  box sequence;  // the index space of the reduced axes
  sequence.rank = static_cast<int>(reduced_axes.size());
  for (size_t k = 0; k < reduced_axes.size(); ++k) sequence.length[k] = src.shape[static_cast<size_t>(reduced_axes[k])];
  const auto steps = packed_strides(sequence);
  const size_t last = kept_axes.size();

  redistribute = std::make_unique<permute_plan>();
  permute_plan& r = *redistribute;
  r.src = src;
  r.dst.element_bytes = element_bytes;
  r.dst.rank = src.rank;
  for (int k = 0; k < src.rank; ++k) r.perm[static_cast<size_t>(k)] = k;
  // A box of home with some of the sequence's indices, as a box of src.
  const auto of_src = [=, rank = src.rank](const box& of_home, const box& part) {
    box b;
    b.rank = rank;
    for (size_t k = 0; k < kept_of_src.size(); ++k) {
      const auto i = static_cast<size_t>(kept_of_src[k]);
      b.low[i] = of_home.low[k], b.length[i] = of_home.length[k];
    }
    for (size_t k = 0; k < reduced_of_src.size(); ++k) {
      const auto i = static_cast<size_t>(reduced_of_src[k]);
      b.low[i] = part.low[k], b.length[i] = part.length[k];
    }
    return b;
  };
  r.boxes = [=, this](int32_t rank) {
    std::vector<box> parts, all;
    const box b = home.of(rank);
    if (!b.empty()) boxes_of(sequence, b.low[last], b.low[last] + b.length[last], parts);
    all.reserve(parts.size());
    for (const box& part : parts) all.push_back(of_src(b, part));
    return all;
  };
  r.origin = [=, this](int32_t rank) {
    const box b = home.of(rank);
    box part;  // the index of the first element
    part.rank = sequence.rank;
    int64_t left = b.low[last];
    for (size_t k = 0; k < reduced_of_src.size(); ++k) part.low[k] = left / steps[k], left %= steps[k];
    return of_src(b, part);
  };
  r.takers = [=, this](const box& b) {
    box wide;  // as a box of home: from its first element of a sequence to its last
    wide.rank = home.rank;
    for (size_t k = 0; k < kept_of_src.size(); ++k) {
      const auto i = static_cast<size_t>(kept_of_src[k]);
      wide.low[k] = b.low[i], wide.length[k] = b.length[i];
    }
    int64_t low = 0, high = 0;
    for (size_t k = 0; k < reduced_of_src.size(); ++k) {
      const auto i = static_cast<size_t>(reduced_of_src[k]);
      low += b.low[i] * steps[k], high += (b.low[i] + b.length[i] - 1) * steps[k];
    }
    wide.low[last] = low, wide.length[last] = high - low + 1;
    std::vector<int32_t> ranks;
    home.overlapping(wide, [&](int32_t rank, const box&) { ranks.push_back(rank); });
    return ranks;
  };
  r.build(comm, plan.memory);
  for (int32_t s = 0; s < comm.seats; ++s) {
    const box b = home.of(comm.first() + s);
    moved.push_back(buffer(plan.memory_of(s), static_cast<size_t>(b.elements()) * copied_bytes()));
    // In its memory the elements of a sequence are in the order that they have in the whole array.
    const auto in_home = home_strides(b);
    auto& strides = moved_strides.emplace_back();
    for (size_t k = 0; k < kept_of_src.size(); ++k) strides[static_cast<size_t>(kept_of_src[k])] = in_home[k];
    for (size_t k = 0; k < reduced_of_src.size(); ++k)
      strides[static_cast<size_t>(reduced_of_src[k])] = steps[k] * in_home[last];
  }
  kept_axes.resize(last);
  std::iota(kept_axes.begin(), kept_axes.end(), 0);
  block_kept_axes = kept_axes;
  reduced_axes = block_axes = {static_cast<int>(last)};
  cut_axis = run_axis(home);
}

// The strides of a block of home in its memory. Kept axes that are the inner ones of src stay so, because runs of them
// travel faster than single elements.
std::array<int64_t, LOCKSTEP_MAX_RANK> reduce_plan::home_strides(const box& b) const {
  box ordered = b;
  const auto last = static_cast<size_t>(b.rank) - 1;
  if (kept_inside) {
    ordered.length[0] = b.length[last];
    for (size_t k = 0; k < last; ++k) ordered.length[k + 1] = b.length[k];
  }
  auto strides = packed_strides(ordered);
  if (kept_inside) std::rotate(strides.begin(), strides.begin() + 1, strides.begin() + last + 1);
  for (int64_t& stride : strides) stride *= arrays();
  return strides;
}

// Exact sums and extremes: each rank's own partial results are joined. A sequence has the elements of one block after
// those of another, which matters to the index of an extreme alone (place_of).
void reduce_plan::take_blocks_as_they_are() {
  const size_t last = kept_axes.size();
  home = {};
  home.element_bytes = element_bytes;
  home.rank = static_cast<int>(last) + 1;
  for (size_t k = 0; k < last; ++k) {
    const auto i = static_cast<size_t>(kept_axes[k]);
    home.shape[k] = src.shape[i], home.parts[k] = src.parts[i], home.cuts[k] = src.cuts[i];
  }
  std::vector<int64_t>& cuts = home.cuts[last];
  cuts = {0};
  home.rank_of.resize(src.rank_of.size());
  home.block_of.assign(src.block_of.size(), -1);
  int32_t blocks = 1;  // that share their sequences
  for (const int k : reduced_axes) blocks *= src.parts[static_cast<size_t>(k)];
  for (int32_t b = 0; b < static_cast<int32_t>(src.rank_of.size()); ++b) {
    std::array<int32_t, LOCKSTEP_MAX_RANK> at{};
    for (int32_t k = src.rank - 1, left = b; k >= 0; --k) {
      at[static_cast<size_t>(k)] = left % src.parts[static_cast<size_t>(k)];
      left /= src.parts[static_cast<size_t>(k)];
    }
    int32_t of_kept = 0, member = 0;
    int64_t elements = 1;
    for (const int k : kept_axes) of_kept = of_kept * src.parts[static_cast<size_t>(k)] + at[static_cast<size_t>(k)];
    for (const int k : reduced_axes) {
      const auto i = static_cast<size_t>(k), j = static_cast<size_t>(at[i]);
      member = member * src.parts[i] + at[i];
      elements *= src.cuts[i][j + 1] - src.cuts[i][j];
    }
    if (of_kept == 0) cuts.push_back(cuts.back() + elements);  // members come in order
    const int32_t block = of_kept * blocks + member, rank = src.rank_of[static_cast<size_t>(b)];
    home.rank_of[static_cast<size_t>(block)] = rank;
    home.block_of[static_cast<size_t>(rank)] = block;
  }
  home.shape[last] = cuts.back();
  home.parts[last] = blocks;
  blocks_stay = true;
  cut_axis = static_cast<int>(last);
  kept_axes.resize(last);
  std::iota(kept_axes.begin(), kept_axes.end(), 0);
  reduced_axes = {cut_axis};
}

int64_t reduce_plan::place_of(const reduce_seat& s, int64_t i) const {
  if (!blocks_stay) return s.first + i;
  const box b = src.of(s.rank);
  int64_t place = 0, step = 1;
  for (auto k = block_axes.size(); k-- > 0;) {
    const auto axis = static_cast<size_t>(block_axes[k]);
    place += (b.low[axis] + i % b.length[axis]) * step;
    i /= b.length[axis];
    step *= src.shape[axis];
  }
  return place;
}

// The order of the grid: each block stands for a leaf, whose sum is that of the block, in the order of the blocks.
void reduce_plan::take_blocks_as_leaves() {
  const auto blocks = static_cast<int32_t>(src.rank_of.size());
  home.element_bytes = element_bytes;
  home.rank = 1;
  home.shape[0] = blocks * leaf;
  home.parts[0] = blocks;
  home.cuts[0] = even_cuts(home.shape[0], blocks, leaf);
  home.rank_of = src.rank_of;
  home.block_of = src.block_of;
  kept_axes = block_kept_axes = {};
  reduced_axes = {0};
  cut_axis = 0;
  blocks_stay = true;
  if (several.empty()) return;
  // Each sum is a sequence.
  const auto sums = static_cast<int64_t>(several.size());
  home.rank = 2;
  home.shape = {sums, home.shape[0]};
  home.parts = {1, blocks};
  home.cuts[1] = std::exchange(home.cuts[0], {0, sums});
  kept_axes = {0};
  reduced_axes = {1};
  cut_axis = 1;
}

}  // namespace lockstep::ranks
