// reduce.cpp - see reduce.hpp: plans which elements and results are sent where. A rank holds a stretch [first, last) of
// each of its sequences; the ranks that hold the other stretches are the other members.
//   1  if a cut divides a leaf, its elements are sent to the member that has most of them   (float sums)
//   2  every member computes its partial results
//   3  they are joined (join.hpp), until each member has the results of its share of the sequences
//   4  results are sent to the ranks that need them
// This is done for a part of the sequences at a time.
#include "reduce.hpp"

#include <bit>
#include <numeric>
#include <tuple>

#include "devices.hpp"

namespace lockstep::ranks {

constexpr int64_t leaf = order::leaf;

std::pair<int64_t, int64_t> reduce_plan::range_of(int32_t member) const {
  if (cut_axis < 0) return {0, length};
  const auto& cuts = home.cuts[static_cast<size_t>(cut_axis)];
  return {cuts[static_cast<size_t>(member)] * inner, cuts[static_cast<size_t>(member) + 1] * inner};
}

// The member with most of the leaf's elements, the first in a tie. Every rank can compute it from the cuts.
int32_t reduce_plan::owner_of(int64_t l) const {
  if (cut_axis < 0) return 0;
  const auto& cuts = home.cuts[static_cast<size_t>(cut_axis)];
  const int64_t low = l * leaf, high = std::min(length, low + leaf);
  auto m = static_cast<int32_t>(std::upper_bound(cuts.begin(), cuts.end(), low / inner) - cuts.begin()) - 1;
  int32_t owner = -1;
  int64_t most = 0;
  while (m < members && cuts[static_cast<size_t>(m)] * inner < high) {
    const auto [a, b] = range_of(m);
    const int64_t here = std::min(b, high) - std::max(a, low);
    if (here > most) most = here, owner = m;
    // The next that has elements.
    const auto end = cuts[static_cast<size_t>(m) + 1];
    m = static_cast<int32_t>(std::upper_bound(cuts.begin() + m + 1, cuts.end(), end) - cuts.begin()) - 1;
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

std::vector<subtree> reduce_plan::tiles_of(int32_t first, int32_t last) const {
  if (first >= last) return {};
  const int64_t a = range_of(first).first, b = range_of(last - 1).second;
  if (a >= b) return {};
  if (behind >= 0) return tiling(leaves_that_end_before(a), leaves_that_end_before(b));
  const auto owned = [&](int64_t l) {
    const int32_t owner = owner_of(l);
    return owner >= first && owner < last;
  };
  const int64_t low = a / leaf, high = (b - 1) / leaf;
  return tiling(owned(low) ? low : low + 1, owned(high) ? high + 1 : high);
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

int32_t reduce_plan::member_of(int32_t rank) const {
  int32_t block = home.block_of[static_cast<size_t>(rank)];
  for (int k = home.rank - 1; k > cut_axis; --k) block /= home.parts[static_cast<size_t>(k)];
  return block % home.parts[static_cast<size_t>(cut_axis)];
}

namespace {
void check_types(const reduce_plan& p) {
  // An empty call checks that dtype, reduction and result fit together.
  lockstep_sums_desc sums = lockstep_sums_full(p.terms.value_or(LOCKSTEP_SUMS_DOT), p.dtype, 0, nullptr);
  sums.count = 0;
  sums.correction = p.correction;
  sums.result = p.result;
  const bool squares = lib::is_reduction(p.reduction) && p.kind().op == LOCKSTEP_SQUARE_SUM;
  lockstep_reduce_desc d = lockstep_reduce_full(p.reduction, p.dtype, 0, 1);
  d.count = 0;
  d.result = p.result;
  require_taken([&](lockstep_context* cpu) {
    return p.terms   ? lockstep_sums(cpu, &sums, nullptr, nullptr, nullptr)
           : squares ? lockstep_square_sum(cpu, &d, nullptr, nullptr, nullptr)
                     : lockstep_reduce(cpu, &d, nullptr, nullptr, nullptr);
  });
}

void check_term(size_t i, const lockstep_ranks_term& t, described& d) {
  d.add(format_text("terms[{}].op", i), t.op);
  d.add(format_text("terms[{}].of", i), t.of);
  const bool of_one_array = (t.op == LOCKSTEP_REDUCE && (t.of == LOCKSTEP_SUM || t.of == LOCKSTEP_NAN_SUM)) ||
                            (t.op == LOCKSTEP_SQUARE_SUM && t.of == LOCKSTEP_SUM_OF_SQUARES);
  if (!of_one_array && !(t.op == LOCKSTEP_SUMS && t.of >= LOCKSTEP_SUMS_DOT && t.of <= LOCKSTEP_SUMS_ABSOLUTE))
    fail(LOCKSTEP_INVALID_ARGUMENT,
         "terms[{}] is op {} of {}; give LOCKSTEP_REDUCE of SUM or NAN_SUM, LOCKSTEP_SQUARE_SUM of SUM_OF_SQUARES, or "
         "LOCKSTEP_SUMS of DOT, SQUARED_DIFFERENCES, ABSOLUTE_DIFFERENCES or ABSOLUTE",
         i, static_cast<int>(t.op), t.of);
}
}  // namespace

int64_t reduce_plan::inputs() const {
  if (several.empty()) return arrays();
  const auto pairs = std::count_if(several.begin(), several.end(), is_pair);
  return static_cast<int64_t>(several.size()) + pairs;
}

// The one reduced axis that a grid cuts; -1 if it cuts none, -2 if a rank's part of a sequence is not contiguous.
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

void reduce_plan::build(lockstep_comm& comm, lockstep_ranks_plan& plan, const lockstep_grid* given, uint32_t axes,
                        const lockstep_grid* to, described& d) {
  d.add(terms ? "kind" : "reduction", terms ? static_cast<int64_t>(*terms) : static_cast<int64_t>(reduction));
  d.add("dtype", dtype);
  d.add("result", result);
  d.add("axes", axes);
  d.add("dst (0: NULL)", to != nullptr);
  d.add("correction", correction);
  for (size_t i = 0; i < several.size(); ++i) check_term(i, several[i], d);
  check_types(*this);
  if (lockstep_dtype_kind(dtype) != 'f') reduction = lib::of_numbers(reduction);
  if (by_blocks && !kind().ordered(dtype))
    fail(LOCKSTEP_UNSUPPORTED,
         "reduction is {} and dtype {}; only sums, products, squares and norms of floats have an order: call "
         "lockstep_ranks_reduce",
         kind().name, static_cast<int>(dtype));
  src = read_grid(given, "src", comm.ranks(), d, dtype);
  if (by_blocks) axes = (1u << src.rank) - 1;
  if (axes == 0 || axes >> src.rank != 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "axes is {:#x}; set one or more of the bits 0 to {}, the axes to reduce", axes,
         src.rank - 1);
  build_of_src(comm, plan, axes, to, d);
}

bool reduce_plan::lay_out(lockstep_comm& comm, lockstep_ranks_plan& plan, uint32_t axes) {
  how = terms == LOCKSTEP_SUMS_MEAN_VARIANCE ? family::moments
        : terms == LOCKSTEP_SUMS_DIGEST      ? family::digest
        : kind().extreme()                   ? family::extreme
        : kind().ordered(dtype)              ? family::tree
        : kind().by == lib::join::product    ? family::product
                                             : family::sum;
  element_bytes = lockstep_dtype_bytes(dtype);
  result_bytes = gives_keys() ? sizeof(winner) : lockstep_dtype_bytes(result) * (two_results() ? 2 : 1);
  for (int k = 0; k < src.rank; ++k) (axes >> k & 1 ? reduced_axes : kept_axes).push_back(k);
  block_axes = reduced_axes;
  block_kept_axes = kept_axes;
  src.limit_pieces(comm, "src", "a smaller shape or another number of ranks");
  if (behind >= 0) {
    home = src;
    cut_axis = run_axis(src);
    if (crowded(comm)) return false;
  } else if (by_blocks && (src.rank_of.size() > 1 || !several.empty()))
    take_blocks_as_leaves();
  else
    choose_home(comm, plan), by_blocks = false;  // the order of a grid of one block is that of the array
  for (const int k : reduced_axes) {
    const auto i = static_cast<size_t>(k);
    length *= home.shape[i];
    if (k > cut_axis) inner *= home.shape[i];
  }
  members = cut_axis >= 0 ? home.parts[static_cast<size_t>(cut_axis)] : 1;
  switch (how) {
    case family::tree: partial_bytes = sizeof(double); break;
    case family::sum: partial_bytes = sizeof(order::wide); break;
    case family::product: partial_bytes = sizeof(order::exact_factor); break;
    case family::extreme: partial_bytes = sizeof(winner); break;
    case family::moments: partial_bytes = sizeof(order::moments); break;
    case family::digest: partial_bytes = sizeof(digest_sums); break;
  }

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
  return true;
}

void reduce_plan::build_of_src(lockstep_comm& comm, lockstep_ranks_plan& plan, uint32_t axes, const lockstep_grid* to,
                               described& d) {
  lay_out(comm, plan, axes);
  const auto blocks = static_cast<int32_t>(kept.rank_of.size());
  everywhere = to == nullptr && !to_members;
  if (to != nullptr) read_dst(comm, to, d);

  // Pairs of ranks send every element once; few results take fewer messages by doubling (spread).
  constexpr int64_t many_bytes = 64 << 10;
  const bool many = comm.engine.processes == 1 ||  // there are no messages
                    kept.whole().elements() * static_cast<int64_t>(result_bytes) / blocks >= many_bytes;
  if (everywhere && alone() && !two_results() && many && !nothing_to_choose()) return build_delivery(comm, plan);
  std::vector<std::vector<box>> slices;
  size_t count = 1;
  const int64_t most = sequences_of_a_pass(comm);
  for (int32_t k = 0; k < blocks; ++k) {
    const box block = kept.of_block(k);
    comm.pieces.require(block.elements() / most);
    cut_box(block, most, slices.emplace_back());
    comm.pieces.take(static_cast<int64_t>(slices.back().size()));
    count = std::max(count, slices.back().size());
  }
  constexpr int64_t steps = 32;  // about those of a pass, each with lists of its own
  for (size_t p = 1; p < count; ++p) comm.pieces.take(blocks + steps);
  passes.resize(count);
  workspace& memory = plan.memory;
  const size_t mark = memory.mark();
  for (size_t p = 0; p < count; ++p) {
    for (const std::vector<box>& of_block : slices) {
      box none;
      none.rank = kept.rank;
      passes[p].slices.push_back(p < of_block.size() ? of_block[p] : none);
    }
    memory.rewind(mark);
    build_pass(comm, memory, passes[p]);
  }
  for (int32_t i = 0; scale != 0 && i < comm.seats; ++i)
    exponentials_there.emplace_back(plan.memory_of(i), comm.devices->has(i) ? (2 * leaf * 8) << level_there : 0);
  if (!to_members) return;
  memory.skip();
  for (const reduce_seat& s : passes[0].seats)
    rows.emplace_back(memory, s.sequences == 0 ? 0 : static_cast<size_t>(kept_of(s).elements()) * result_bytes);
}

box reduce_plan::as_given(const box& results) const {
  box b = results;
  if (!two_results()) return b;
  const int64_t pair = b.empty() ? 0 : 2;
  if (kept_axes.empty()) b.rank = 0;
  const auto last = static_cast<size_t>(b.rank++);
  b.low[last] = 0, b.length[last] = pair;
  return b;
}

// The caller's grid of results; what is kept of it has no axis of two results.
void reduce_plan::read_dst(lockstep_comm& comm, const lockstep_grid* to, described& d) {
  dst = read_grid(to, "dst", comm.ranks(), d);
  const box whole = as_given(kept.whole());
  if (dst.element_bytes != one_result_bytes())
    fail(LOCKSTEP_INVALID_ARGUMENT, "dst->element_bytes is {}, but results have {}", dst.element_bytes,
         one_result_bytes());
  if (dst.rank != whole.rank)
    fail(LOCKSTEP_INVALID_ARGUMENT, "dst->rank is {}, but the results have rank {}", dst.rank, whole.rank);
  const auto last = static_cast<size_t>(dst.rank) - 1;
  for (size_t k = 0; k <= last; ++k) {
    const int64_t n = two_results() && k == last ? 2 : whole.length[k];
    if (dst.shape[k] != n)
      fail(LOCKSTEP_INVALID_ARGUMENT, "dst->shape[{}] is {}, but the results have {} there", k, dst.shape[k], n);
  }
  if (!two_results()) return;
  if (dst.parts[last] != 1)
    fail(LOCKSTEP_INVALID_ARGUMENT, "dst->parts[{}] is {}; the two results of a sequence stay together, give 1", last,
         dst.parts[last]);
  dst.element_bytes = result_bytes;
  dst.rank = kept.rank;
  if (kept_axes.empty()) dst.shape[0] = 1, dst.cuts[0] = {0, 1};
}

// One pass with all sequences, whose results are moved as an array is that every rank gets whole.
void reduce_plan::build_delivery(lockstep_comm& comm, lockstep_ranks_plan& plan) {
  reduce_pass& pass = passes.emplace_back();
  for (int32_t k = 0; k < static_cast<int32_t>(kept.rank_of.size()); ++k) pass.slices.push_back(kept.of_block(k));
  deliver = std::make_unique<permute_plan>();
  permute_plan& d = *deliver;
  d.src = kept;
  d.src.rank_of = home.rank_of;
  d.src.block_of = home.block_of;
  d.dst.element_bytes = result_bytes;
  d.dst.rank = kept.rank;
  for (int k = 0; k < kept.rank; ++k) d.perm[static_cast<size_t>(k)] = k;
  d.boxes = [this](int32_t) { return std::vector<box>{kept.whole()}; };
  d.origin = [this](int32_t) { return kept.whole(); };
  d.takers = [ranks = comm.ranks()](const box&) {
    std::vector<int32_t> all(static_cast<size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    return all;
  };
  d.build(comm, plan.memory);
  for (int32_t i = 0; i < comm.seats; ++i) {
    reduce_seat& s = pass.seats.emplace_back(seat_of(comm, i, pass.slices));
    s.results = buffer(plan.memory_of(i), static_cast<size_t>(s.sequences) * result_bytes);
  }
}

// As many sequences as fit a message on every rank.
int64_t reduce_plan::sequences_of_a_pass(const lockstep_comm& comm) const {
  const auto tiles = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(order::leaves(length)))) + 1;
  int64_t bytes = 16;
  if (members > 1) bytes += 3 * static_cast<int64_t>(partial_bytes) * (by_tree() ? 2 * tiles : 1);
  for (int32_t m = 1; by_leaves() && m < members; ++m)
    if (range_of(m).first % leaf != 0) {
      bytes += 2 * std::min(leaf, length) * static_cast<int64_t>(copied_bytes());
      break;
    }
  if (everywhere) bytes += static_cast<int64_t>(kept.rank_of.size() * result_bytes);
  return std::max<int64_t>(comm.message_bytes / bytes, 1);
}

reduce_seat reduce_plan::seat_of(const lockstep_comm& comm, int32_t seat, const std::vector<box>& slices) const {
  reduce_seat s;
  s.seat = seat;
  s.rank = comm.first() + seat;
  s.block = home.of(s.rank);
  s.kept.rank = kept.rank;
  int32_t block = home.block_of[static_cast<size_t>(s.rank)];
  if (block < 0) return s;
  std::array<int32_t, LOCKSTEP_MAX_RANK> at{};
  for (auto k = static_cast<size_t>(home.rank); k-- > 0;) {
    at[k] = block % home.parts[k];
    block /= home.parts[k];
  }
  for (const int k : kept_axes)
    s.kept_block = s.kept_block * home.parts[static_cast<size_t>(k)] + at[static_cast<size_t>(k)];
  s.member = cut_axis >= 0 ? at[static_cast<size_t>(cut_axis)] : 0;
  s.kept = slices[static_cast<size_t>(s.kept_block)];
  s.sequences = s.kept.elements();
  std::tie(s.first, s.last) = range_of(s.member);
  if (s.sequences == 0) return s;
  const pairing pairs(members);
  const int32_t place = pairs.place_of(s.member);
  if (place >= 0) s.joined = pairing::of(s.sequences, place, pairs.levels);
  if (alone() || !by_leaves()) return s;
  std::tie(s.first_leaf, s.last_leaf) = leaves_of(s.member);
  // The first and the last leaf may have elements on other ranks.
  int slot = 0;
  for (int64_t l = s.first_leaf; l < s.last_leaf; l = std::max(l + 1, s.last_leaf - 1))
    if (l * leaf < s.first || std::min(length, (l + 1) * leaf) > s.last) s.shared[slot++] = l;
  return s;
}

void reduce_plan::take_memory(workspace& memory, reduce_seat& s) const {
  if (s.sequences == 0) return;
  const auto n = static_cast<size_t>(s.sequences);
  // Moments are a sum and a pair, a digest is a pair.
  const size_t of_a_sequence = two_results() ? 24 : 8;
  // Exponentials lie behind their elements.
  const size_t copies = static_cast<size_t>(scale != 0 ? 2 : arrays());
  s.scratch = buffer(memory, std::max(scratch_elements * 8 * copies, n * of_a_sequence));
  if (!everywhere)
    s.results = buffer(memory, static_cast<size_t>(to_members ? s.sequences : s.joined.size()) * result_bytes);
  if (alone()) return;
  size_t arrays = 1;
  if (by_leaves()) {
    std::vector<subtree> pushed;
    int64_t first = s.first_leaf, last = s.last_leaf;
    for (int slot = 0; slot < 2; ++slot) {
      const int64_t l = s.shared[slot];
      if (l < 0) continue;
      const int64_t elements = std::min(length, (l + 1) * leaf) - l * leaf;
      s.assembled[slot] = buffer(memory, n * static_cast<size_t>(elements) * copied_bytes());
      if (l == first) pushed.push_back({0, first++});
    }
    const bool at_the_end = first < last && (s.shared[0] == last - 1 || s.shared[1] == last - 1);
    for (const subtree& t : tiling(first, at_the_end ? last - 1 : last)) pushed.push_back(t);
    if (at_the_end) pushed.push_back({0, last - 1});
    if (by_tree()) arrays = forest::rooms(pushed);
  }
  s.partials = buffer(memory, arrays * n * partial_bytes);
  if (!second_pass()) return;
  s.magnitudes = buffer(memory, n * sizeof(double));
  s.exponents = buffer(memory, n * sizeof(int32_t));
  s.plain = buffer(memory, n * sizeof(double));
}

void reduce_plan::build_pass(lockstep_comm& comm, workspace& memory, reduce_pass& pass) {
  std::vector<ordered_join::seat> joins;
  for (int32_t i = 0; i < comm.seats; ++i) {
    reduce_seat& s = pass.seats.emplace_back(seat_of(comm, i, pass.slices));
    take_memory(memory, s);
    const auto fellow = [this, block = s.kept_block](int32_t m) { return rank_of(block, m); };
    joins.push_back({s.rank, s.member, members > 1 ? s.sequences : 0, fellow});
  }
  size_t bytes = 0;
  for (const box& b : pass.slices) {
    pass.at.push_back(bytes);
    bytes += static_cast<size_t>(b.elements()) * result_bytes;
  }
  if (everywhere) pass.everything = buffer(memory, bytes);
  const auto messages = [&](const auto& build) {  // these steps never run at the same time, so they share memory
    const size_t mark = memory.mark();
    build();
    memory.rewind(mark);
  };
  messages([&] {
    add_fragments(comm, pass);
    pass.fragments.finish(comm, memory);
  });
  pass.partials.build(comm, memory, members, partial_values(), joins);
  if (second_pass()) pass.magnitudes.build(comm, memory, members, magnitude_values(), joins);
  add_results(comm, pass);
  messages([&] { pass.exponents.finish(comm, memory); });
  messages([&] { pass.results.finish(comm, memory); });
  messages([&] { pass.to_grid.finish(comm, memory); });
}

void reduce_plan::place(execution& x, const lockstep_part* src_parts, const lockstep_part* dst_parts) {
  x.from = x.read_several(src_parts, "src", several.empty() ? "other" : nullptr, inputs(), src);
  x.to = x.read(dst_parts, "dst", x.plan.comm->first(), x.plan.comm->seats,
                [&](int32_t rank) { return as_given(everywhere ? kept.whole() : dst.of(rank)); });
}

void reduce_plan::tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const {
  for (int64_t k = 0; redistribute != nullptr && k < arrays(); ++k) redistribute->tell(link, cost);
  if (deliver != nullptr) return deliver->tell(link, cost);
  for (const reduce_pass& p : passes) {
    p.fragments.tell(link, cost);
    p.partials.tell(link, cost);
    p.results.tell(link, cost);
    p.to_grid.tell(link, cost);
  }
}

}  // namespace lockstep::ranks

using namespace lockstep;
using namespace lockstep::ranks;

namespace {
lockstep_status make_reduction(lockstep_comm* comm, kind k, const lockstep_grid* src, lockstep_reduction reduction,
                               std::optional<lockstep_sums_kind> terms, lockstep_dtype dtype, lockstep_dtype result,
                               uint32_t axes, int64_t correction, const lockstep_grid* dst,
                               const lockstep_options* options, lockstep_ranks_plan** plan) {
  return make_plan<reduce_plan>(comm, k, options, plan, [&](reduce_plan& p, auto& out, auto& d) {
    p.reduction = reduction;
    p.terms = terms;
    p.dtype = dtype;
    p.result = result;
    p.correction = correction;
    p.by_blocks = k == kind::reduce_blocks;
    p.build(*comm, out, src, axes, dst, d);
  });
}
}  // namespace

extern "C" {
lockstep_status lockstep_ranks_sums(lockstep_comm* comm, const lockstep_grid* src, lockstep_sums_kind of,
                                    lockstep_dtype dtype, lockstep_dtype result, uint32_t axes,
                                    const lockstep_grid* dst, const lockstep_options* options,
                                    lockstep_ranks_plan** plan) {
  return make_reduction(comm, kind::sums, src, LOCKSTEP_SUM, of, dtype, result, axes, 0, dst, options, plan);
}

lockstep_status lockstep_ranks_mean_variance(lockstep_comm* comm, const lockstep_grid* src, lockstep_dtype dtype,
                                             lockstep_dtype result, uint32_t axes, int64_t correction,
                                             const lockstep_grid* dst, const lockstep_options* options,
                                             lockstep_ranks_plan** plan) {
  return make_reduction(comm, kind::mean_variance, src, LOCKSTEP_SUM, LOCKSTEP_SUMS_MEAN_VARIANCE, dtype, result, axes,
                        correction, dst, options, plan);
}

lockstep_status lockstep_ranks_reduce(lockstep_comm* comm, const lockstep_grid* src, lockstep_reduction reduction,
                                      lockstep_dtype dtype, lockstep_dtype result, uint32_t axes,
                                      const lockstep_grid* dst, const lockstep_options* options,
                                      lockstep_ranks_plan** plan) {
  return make_reduction(comm, kind::reduce, src, reduction, {}, dtype, result, axes, 0, dst, options, plan);
}

lockstep_status lockstep_ranks_reduce_several(lockstep_comm* comm, const lockstep_grid* src,
                                              const lockstep_ranks_term* terms, int32_t count, lockstep_dtype dtype,
                                              lockstep_dtype result, const lockstep_options* options,
                                              lockstep_ranks_plan** plan) {
  return make_plan<reduce_plan>(comm, kind::reduce_several, options, plan, [&](reduce_plan& p, auto& out, auto& d) {
    if (count < 1 || count > most_arrays)
      fail(LOCKSTEP_INVALID_ARGUMENT, "count is {}; give 1 to {}", count, most_arrays);
    if (terms == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "terms is NULL; pass count of them");
    p.several.assign(terms, terms + count);
    p.reduction = LOCKSTEP_SUM;
    p.dtype = dtype;
    p.result = result;
    p.by_blocks = true;
    p.build(*comm, out, src, 0, nullptr, d);
  });
}

lockstep_status lockstep_ranks_reduce_blocks(lockstep_comm* comm, const lockstep_grid* src,
                                             lockstep_reduction reduction, lockstep_dtype dtype, lockstep_dtype result,
                                             const lockstep_options* options, lockstep_ranks_plan** plan) {
  return make_reduction(comm, kind::reduce_blocks, src, reduction, {}, dtype, result, 0, 0, nullptr, options, plan);
}
}
