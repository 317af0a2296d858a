// reduce.cpp - see reduce.hpp: what goes where. A rank holds a stretch [first, last) of each of its sequences; the
// ranks that hold the other stretches are its fellow members.
//   1  elements of a leaf that a cut goes through go to the member with most of them   (float sums)
//   2  every member computes its partial results
//   3  they go to the members, of whom each joins those of its share of the sequences
//   4  results go to whoever wants them
#include "reduce.hpp"

#include <cmath>
#include <numeric>

#include "permute.hpp"

namespace lockstep::ranks {

constexpr int64_t leaf = order::leaf;
constexpr int64_t scratch_elements = 64 * leaf;

std::pair<int64_t, int64_t> reduce_plan::range_of(int32_t member) const {
  if (cut_axis < 0) return {0, length};
  const auto& cuts = home.cuts[static_cast<size_t>(cut_axis)];
  return {cuts[static_cast<size_t>(member)] * inner, cuts[static_cast<size_t>(member) + 1] * inner};
}

// The member with most of the leaf's elements, the first of those with equally many. All know it from the cuts.
int32_t reduce_plan::owner_of(int64_t l) const {
  if (cut_axis < 0) return 0;
  const auto& cuts = home.cuts[static_cast<size_t>(cut_axis)];
  const int64_t low = l * leaf, high = std::min(length, low + leaf);
  auto m = static_cast<int32_t>(std::upper_bound(cuts.begin(), cuts.end(), low / inner) - cuts.begin()) - 1;
  int32_t owner = -1;
  int64_t most = 0;
  for (; m < members && cuts[static_cast<size_t>(m)] * inner < high; ++m) {
    const auto [a, b] = range_of(m);
    const int64_t here = std::min(b, high) - std::max(a, low);
    if (here > most) most = here, owner = m;
  }
  return owner;
}

std::pair<int64_t, int64_t> reduce_plan::leaves_of(int32_t member) const {
  const auto [a, b] = range_of(member);
  if (a >= b) return {0, 0};
  const int64_t low = a / leaf, high = (b - 1) / leaf;
  const int64_t first = owner_of(low) == member ? low : low + 1, last = owner_of(high) == member ? high + 1 : high;
  return {first, std::max(first, last)};
}

// The results that a member joins: even shares of the longest kept axis.
box reduce_plan::chunk_of(const box& kept_box, int32_t member) const {
  box c = kept_box;
  size_t longest = 0;
  for (size_t k = 1; k < static_cast<size_t>(c.rank); ++k)
    if (c.length[k] > c.length[longest]) longest = k;
  const std::vector<int64_t> cuts = even_cuts(kept_box.length[longest], members);
  c.low[longest] += cuts[static_cast<size_t>(member)];
  c.length[longest] = cuts[static_cast<size_t>(member) + 1] - cuts[static_cast<size_t>(member)];
  return c;
}

int32_t reduce_plan::rank_of(int32_t kept_block, int32_t member) const {
  std::array<int32_t, LOCKSTEP_MAX_RANK> at{};
  for (auto k = kept_axes.size(); k-- > 0;) {
    const auto i = static_cast<size_t>(kept_axes[k]);
    at[i] = kept_block % home.parts[i];
    kept_block /= home.parts[i];
  }
  if (cut_axis >= 0) at[static_cast<size_t>(cut_axis)] = member;
  int32_t block = 0;
  for (size_t i = 0; i < static_cast<size_t>(home.rank); ++i) block = block * home.parts[i] + at[i];
  return home.rank_of[static_cast<size_t>(block)];
}

namespace {
void check_types(const reduce_plan& p) {
  const bool squares = p.reduction == LOCKSTEP_SUM_OF_SQUARES || p.reduction == LOCKSTEP_NORM2;
  // An empty call checks what belongs together.
  lockstep_reduce_desc d = lockstep_reduce_full(p.reduction, p.dtype, 0, 1);
  d.count = 0;
  d.result = p.result;
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = "cpu";
  lockstep_context* context = nullptr;
  require_ok(lockstep_context_create(&o, &context));
  const lockstep_status status = squares ? lockstep_square_sum(context, &d, nullptr, nullptr, nullptr)
                                         : lockstep_reduce(context, &d, nullptr, nullptr, nullptr);
  const std::string text = status != LOCKSTEP_OK ? lockstep_last_error() : "";
  lockstep_context_destroy(context);
  if (status != LOCKSTEP_OK) throw error{status, text};
}
}  // namespace

// The one reduced axis that a grid cuts: -1 where it cuts none, -2 where a rank's part of a sequence is not one run.
int reduce_plan::run_axis(const grid& g) const {
  int cut = -1;
  for (const int k : reduced_axes) {
    if (g.parts[static_cast<size_t>(k)] == 1) continue;
    bool first = cut < 0;
    for (const int before : reduced_axes) first = first && (before >= k || g.shape[static_cast<size_t>(before)] == 1);
    if (!first) return -2;
    cut = k;
  }
  return cut;
}

// Where a rank's part of a sequence is not one run of it, the array is cut anew, along the longest of the axes that
// keep runs whole; a reduced one at leaves, so that no element travels twice.
void reduce_plan::choose_home(lockstep_comm& comm) {
  home = src;
  cut_axis = run_axis(src);
  if (cut_axis >= -1) return;
  int first_reduced = reduced_axes.back();
  for (auto k = reduced_axes.size(); k-- > 0;)
    if (src.shape[static_cast<size_t>(reduced_axes[k])] != 1) first_reduced = reduced_axes[k];
  int64_t behind = 1;
  for (const int k : reduced_axes)
    if (k > first_reduced) behind *= src.shape[static_cast<size_t>(k)];
  // What an axis can be cut into: sequences, or leaves.
  int longest = first_reduced;
  int64_t most = order::leaves(src.shape[static_cast<size_t>(first_reduced)] * behind);
  for (const int k : kept_axes)
    if (src.shape[static_cast<size_t>(k)] > most) longest = k, most = src.shape[static_cast<size_t>(k)];
  const auto i = static_cast<size_t>(longest);
  const auto parts = static_cast<int32_t>(std::clamp<int64_t>(src.shape[i], 1, comm.ranks()));
  const int64_t align = longest == first_reduced ? leaf / std::gcd(leaf, std::max<int64_t>(behind, 1)) : 1;
  for (size_t k = 0; k < static_cast<size_t>(home.rank); ++k) {
    home.parts[k] = k == i ? parts : 1;
    home.cuts[k] = even_cuts(home.shape[k], home.parts[k], k == i ? align : 1);
  }
  home.rank_of.clear();
  home.block_of.assign(static_cast<size_t>(comm.ranks()), -1);
  for (int32_t b = 0; b < parts; ++b) home.rank_of.push_back(b), home.block_of[static_cast<size_t>(b)] = b;
  cut_axis = run_axis(home);
  redistribute = std::make_unique<permute_plan>();
  redistribute->src = src;
  redistribute->dst = home;
  for (size_t k = 0; k < static_cast<size_t>(home.rank); ++k) redistribute->perm[k] = static_cast<int32_t>(k);
  redistribute->build(comm);
  for (int32_t s = 0; s < comm.seats; ++s)
    moved.push_back(host_buffer(comm, static_cast<size_t>(home.of(comm.first() + s).elements()) * element_bytes));
}

void reduce_plan::build(lockstep_comm& comm, const lockstep_grid* given, uint32_t axes, const lockstep_grid* to,
                        described& d) {
  d.add("reduction", reduction);
  d.add("dtype", dtype);
  d.add("result", result);
  d.add("axes", axes);
  d.add("dst (0: NULL)", to != nullptr);
  check_types(*this);
  src = read_grid(given, "src", comm.ranks());
  src.describe(d, "src");
  element_bytes = lockstep_dtype_bytes(dtype);
  result_bytes = lockstep_dtype_bytes(result);
  if (src.element_bytes != element_bytes)
    fail(LOCKSTEP_INVALID_ARGUMENT, "src->element_bytes is {}, but elements of this dtype have {}", src.element_bytes,
         element_bytes);
  if (axes == 0 || axes >> src.rank != 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "axes is {:#x}; set one or more of the bits 0 to {}, the axes to reduce", axes,
         src.rank - 1);
  for (int k = 0; k < src.rank; ++k) (axes >> k & 1 ? reduced_axes : kept_axes).push_back(k);
  choose_home(comm);
  for (const int k : reduced_axes) {
    const auto i = static_cast<size_t>(k);
    length *= home.shape[i];
    if (k > cut_axis) inner *= home.shape[i];
  }
  members = cut_axis >= 0 ? home.parts[static_cast<size_t>(cut_axis)] : 1;
  how = reduction == LOCKSTEP_SUM || reduction == LOCKSTEP_SUM_OF_SQUARES || reduction == LOCKSTEP_NORM2
            ? (dtype == LOCKSTEP_I32 || dtype == LOCKSTEP_I64 ? family::exact : family::tree)
            : family::extreme;
  partial_bytes = how == family::tree ? sizeof(double) : how == family::exact ? sizeof(wide_sum) : sizeof(winner);

  // The results' index space: the kept axes, or one of length 1.
  kept.element_bytes = result_bytes;
  kept.rank = std::max<int>(static_cast<int>(kept_axes.size()), 1);
  kept.shape[0] = kept.parts[0] = 1;
  kept.cuts[0] = {0, 1};
  int32_t blocks = 1;
  for (size_t k = 0; k < kept_axes.size(); ++k) {
    const auto i = static_cast<size_t>(kept_axes[k]);
    kept.shape[k] = home.shape[i];
    kept.parts[k] = home.parts[i];
    kept.cuts[k] = home.cuts[i];
    blocks *= home.parts[i];
  }
  for (int32_t b = 0; b < blocks; ++b) kept.rank_of.push_back(b);
  everywhere = to == nullptr;
  if (!everywhere) {
    dst = read_grid(to, "dst", comm.ranks());
    dst.describe(d, "dst");
    if (dst.element_bytes != result_bytes)
      fail(LOCKSTEP_INVALID_ARGUMENT, "dst->element_bytes is {}, but results have {}", dst.element_bytes, result_bytes);
    if (dst.rank != kept.rank)
      fail(LOCKSTEP_INVALID_ARGUMENT, "dst->rank is {}, but the results have rank {}", dst.rank, kept.rank);
    for (int k = 0; k < kept.rank; ++k)
      if (dst.shape[static_cast<size_t>(k)] != kept.shape[static_cast<size_t>(k)])
        fail(LOCKSTEP_INVALID_ARGUMENT, "dst->shape[{}] is {}, but the results have {} there", k,
             dst.shape[static_cast<size_t>(k)], kept.shape[static_cast<size_t>(k)]);
  }

  for (int32_t i = 0; i < comm.seats; ++i) {
    reduce_seat& s = seats.emplace_back();
    s.seat = i;
    s.rank = comm.first() + i;
    s.holds = home.block_of[static_cast<size_t>(s.rank)] >= 0;
    s.block = home.of(s.rank);
    s.kept.rank = s.chunk.rank = kept.rank;
    if (!s.holds) continue;
    int32_t block = home.block_of[static_cast<size_t>(s.rank)];
    std::array<int32_t, LOCKSTEP_MAX_RANK> at{};
    for (auto k = static_cast<size_t>(home.rank); k-- > 0;) {
      at[k] = block % home.parts[k];
      block /= home.parts[k];
    }
    for (const int k : kept_axes)
      s.kept_block = s.kept_block * home.parts[static_cast<size_t>(k)] + at[static_cast<size_t>(k)];
    s.member = cut_axis >= 0 ? at[static_cast<size_t>(cut_axis)] : 0;
    s.kept = kept.of_block(s.kept_block);
    s.sequences = s.kept.elements();
    std::tie(s.first, s.last) = range_of(s.member);
    s.chunk = chunk_of(s.kept, s.member);
    if (s.sequences == 0) continue;
    s.results = host_buffer(comm, static_cast<size_t>(s.chunk.elements()) * result_bytes);
    s.scratch = host_buffer(comm, std::max<size_t>(scratch_elements * 8, static_cast<size_t>(s.sequences) * 8));
    if (members == 1 && how != family::exact) continue;
    if (how == family::tree) {
      std::tie(s.first_leaf, s.last_leaf) = leaves_of(s.member);
      // Its leaves at either end may have elements elsewhere.
      int slot = 0;
      for (int64_t l = s.first_leaf; l < s.last_leaf; l = std::max(l + 1, s.last_leaf - 1)) {
        if (l * leaf >= s.first && std::min(length, (l + 1) * leaf) <= s.last) continue;
        s.shared[slot] = l;
        const int64_t n = std::min(length, (l + 1) * leaf) - l * leaf;
        s.assembled[slot++] = host_buffer(comm, static_cast<size_t>(s.sequences * n) * element_bytes);
      }
      s.own = forest(s.sequences);
      s.joined = forest(s.chunk.elements());
      if (!comm.dry) s.own.reserve(tiling(s.first_leaf, s.last_leaf).size() + 2);
      if (!comm.dry) s.joined.reserve(tiling(0, order::leaves(length)).size() + 62);
    } else {
      s.partials = host_buffer(comm, static_cast<size_t>(s.sequences) * partial_bytes);
    }
    size_t bytes = 0;
    for (int32_t m = 0; m < members; ++m) {
      s.gathered_at.push_back(bytes);
      const auto [a, b] = how == family::tree ? leaves_of(m) : range_of(m);
      const size_t values = how == family::tree ? tiling(a, b).size() : a < b;
      bytes += values * static_cast<size_t>(s.chunk.elements()) * partial_bytes;
    }
    s.gathered_at.push_back(bytes);
    s.gathered = host_buffer(comm, bytes);
    if (second_pass()) {
      const auto mine = static_cast<size_t>(s.sequences), joined = static_cast<size_t>(s.chunk.elements());
      s.magnitudes = host_buffer(comm, mine * sizeof(double));
      s.gathered_magnitudes = host_buffer(comm, joined * sizeof(double));
      s.own_exponents = host_buffer(comm, mine * sizeof(int32_t));
      s.exponents = host_buffer(comm, joined * sizeof(int32_t));
      s.plain = host_buffer(comm, joined * sizeof(double));
    }
  }
  add_exchanges(comm);
}

// All sides find what they exchange from the cuts alone.
void reduce_plan::add_exchanges(lockstep_comm& comm) {
  for (size_t i = 0; i < seats.size(); ++i) {
    const reduce_seat& s = seats[i];
    if (members > 1 && s.sequences > 0) {
      const auto fellow = [&](int32_t m) { return rank_of(s.kept_block, m); };
      const auto mine = static_cast<size_t>(s.sequences), joined = static_cast<size_t>(s.chunk.elements());
      if (how == family::tree && s.first < s.last) {
        // Elements of leaves that another sums, and of own ones that others hold.
        for (int64_t l = s.first / leaf; l <= (s.last - 1) / leaf; l = std::max(l + 1, (s.last - 1) / leaf)) {
          const int32_t owner = owner_of(l);
          if (owner == s.member) continue;
          const int64_t n = std::min({s.last, (l + 1) * leaf}) - std::max(s.first, l * leaf);
          fragments.sends(comm, {s.rank, fellow(owner), l, mine * static_cast<size_t>(n) * element_bytes, i});
        }
        for (const int64_t l : s.shared) {
          if (l < 0) continue;
          for (int32_t m = 0; m < members; ++m) {
            const auto [a, b] = range_of(m);
            const int64_t n = std::min({b, (l + 1) * leaf}) - std::max(a, l * leaf);
            if (m != s.member && n > 0)
              fragments.receives(comm, {fellow(m), s.rank, l, mine * static_cast<size_t>(n) * element_bytes, i});
          }
        }
      }
      for (int32_t m = 0; m < members; ++m) {
        const auto chunk = static_cast<size_t>(chunk_of(s.kept, m).elements());
        const auto [a, b] = how == family::tree ? leaves_of(s.member) : range_of(s.member);
        const size_t values = how == family::tree ? tiling(a, b).size() : a < b;
        partials.sends(comm, {s.rank, fellow(m), 0, values * chunk * partial_bytes, i});
        const auto [c, e] = how == family::tree ? leaves_of(m) : range_of(m);
        const size_t theirs = how == family::tree ? tiling(c, e).size() : c < e;
        partials.receives(comm, {fellow(m), s.rank, 0, theirs * joined * partial_bytes, i});
        if (!second_pass()) continue;
        asks.sends(comm, {s.rank, fellow(m), 0, sizeof(int64_t), i});
        asks.receives(comm, {fellow(m), s.rank, 0, sizeof(int64_t), i});
        magnitudes.sends(comm, {s.rank, fellow(m), 0, chunk * sizeof(double), i});
        magnitudes.receives(comm, {fellow(m), s.rank, 0, joined * sizeof(double), i});
        exponents.sends(comm, {s.rank, fellow(m), 0, joined * sizeof(int32_t), i});
        exponents.receives(comm, {fellow(m), s.rank, 0, chunk * sizeof(int32_t), i});
        again.sends(comm, {s.rank, fellow(m), 0, values * chunk * partial_bytes, i});
        again.receives(comm, {fellow(m), s.rank, 0, theirs * joined * partial_bytes, i});
      }
    }
    // Results: every share of every block of sequences, as far as it is wanted.
    const auto wanted = [&](int32_t rank) { return everywhere ? kept.whole() : dst.of(rank); };
    if (s.chunk.elements() > 0) {
      const auto send = [&](int32_t rank, const box& b) {
        results.sends(comm, {s.rank, rank, 0, static_cast<size_t>(b.elements()) * result_bytes, i});
      };
      if (everywhere)
        for (int32_t r = 0; r < comm.ranks(); ++r) send(r, s.chunk);
      else
        dst.overlapping(s.chunk, send);
    }
    kept.overlapping(wanted(s.rank), [&](int32_t kept_block, const box&) {
      const box whole = kept.of_block(kept_block);
      for (int32_t m = 0; m < members; ++m) {
        const box b = intersection(chunk_of(whole, m), wanted(s.rank));
        results.receives(comm,
                         {rank_of(kept_block, m), s.rank, 0, static_cast<size_t>(b.elements()) * result_bytes, i});
      }
    });
  }
  for (exchange* e : {&fragments, &partials, &asks, &magnitudes, &exponents, &again, &results}) e->finish(comm);
}

void reduce_plan::tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const {
  if (redistribute != nullptr)
    for (const exchange& e : redistribute->rounds) e.tell(link, cost);
  for (const host_buffer& b : moved) cost.workspace_bytes += static_cast<int64_t>(b.bytes());
  for (const exchange* e : {&fragments, &partials, &asks, &results}) e->tell(link, cost);
  lockstep_ranks_cost rare{};
  for (const exchange* e : {&magnitudes, &exponents, &again}) e->tell(link, rare);
  cost.workspace_bytes += rare.workspace_bytes;
  for (const reduce_seat& s : seats)
    for (const host_buffer* b : {&s.assembled[0], &s.assembled[1], &s.partials, &s.gathered, &s.results, &s.scratch,
                                 &s.magnitudes, &s.gathered_magnitudes, &s.exponents, &s.own_exponents, &s.plain})
      cost.workspace_bytes += static_cast<int64_t>(b->bytes());
}

}  // namespace lockstep::ranks
