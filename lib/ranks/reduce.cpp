// reduce.cpp - see reduce.hpp: what goes where. A rank holds a stretch [first, last) of each of its sequences; the
// ranks that hold the other stretches are its fellow members.
//   1  elements of a leaf that a cut goes through go to the member with most of them   (float sums)
//   2  every member computes its partial results
//   3  they go to the members, of whom each joins those of its share of the sequences
//   4  results go to whoever wants them
#include "reduce.hpp"

#include <cmath>

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
    if (here > most || (here == most && here > 0 && LOCKSTEP_MUTANT("ranks_leaf_to_the_last_on_a_tie")))
      most = here, owner = m;
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
  home = src;
  for (const int k : reduced_axes) {
    const auto i = static_cast<size_t>(k);
    if (home.parts[i] == 1) continue;
    bool first = cut_axis < 0;
    for (const int before : reduced_axes)
      first = first && (before >= k || home.shape[static_cast<size_t>(before)] == 1);
    if (!first) fail(LOCKSTEP_UNSUPPORTED, "src cuts the reduced axis {} behind another", k);
    cut_axis = k;
  }
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
      s.own.reserve(tiling(s.first_leaf, s.last_leaf).size() + 2);
      s.joined.reserve(tiling(0, order::leaves(length)).size() + 62);
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

namespace {

// The block as sequences; false where the reduced axes do not have one stride together.
bool view_of(const reduce_plan& p, reduce_seat& s, const placed& at) {
  s.view.data = at.data;
  s.view.axes = 0;
  for (const int k : p.kept_axes) {
    const auto i = static_cast<size_t>(k), v = static_cast<size_t>(s.view.axes++);
    s.view.length[v] = s.block.length[i];
    s.view.stride[v] = at.strides[i];
  }
  int64_t reach = 0;  // elements that the axes behind make up
  s.view.element_stride = 1;
  for (auto k = p.reduced_axes.size(); k-- > 0;) {
    const auto i = static_cast<size_t>(p.reduced_axes[k]);
    if (s.block.length[i] == 1) continue;
    if (reach == 0)
      s.view.element_stride = at.strides[i], reach = at.strides[i] * s.block.length[i];
    else if (at.strides[i] != reach)
      return false;
    else
      reach *= s.block.length[i];
  }
  return true;
}

// Copies the part of a share (of sequences, as boxes) that lies in `inner`, for `values` arrays one behind the other.
void copy_share(const char* from, const box& outer, char* to, const box& inner, size_t values, size_t bytes,
                bool into_outer) {
  const auto strides = packed_strides(outer), inner_strides = packed_strides(inner);
  const size_t all = static_cast<size_t>(outer.elements()) * bytes,
               some = static_cast<size_t>(inner.elements()) * bytes;
  const auto last = static_cast<size_t>(inner.rank) - 1;
  const size_t run = static_cast<size_t>(inner.length[last]) * bytes;
  const int64_t runs = inner.elements() / std::max<int64_t>(inner.length[last], 1);
  for (size_t v = 0; v < values; ++v)
    for (int64_t r = 0; r < runs; ++r) {
      int64_t left = r, at = offset_of(inner, outer, strides.data()), there = 0;
      for (size_t k = last; k-- > 0;) {
        const int64_t x = left % inner.length[k];
        left /= inner.length[k];
        at += x * strides[k];
        there += x * inner_strides[k];
      }
      const char* a = from + v * (into_outer ? some : all);
      char* b = to + v * (into_outer ? all : some);
      if (into_outer)
        std::memcpy(b + static_cast<size_t>(at) * bytes, a + static_cast<size_t>(there) * bytes, run);
      else
        std::memcpy(b + static_cast<size_t>(there) * bytes, a + static_cast<size_t>(at) * bytes, run);
    }
}

}  // namespace

void reduce_plan::execute(lockstep_ranks_plan& plan, const lockstep_part* src_parts, const lockstep_part* dst_parts,
                          failure& so_far) {
  lockstep_comm& comm = *plan.comm;
  const partial_work work{comm, *this};
  std::vector<placed> out(seats.size());
  std::vector<host_buffer> packed;
  const auto attempt = [&](reduce_seat& s, const auto& body) {
    if (so_far.any()) return;
    try {
      body();
    } catch (const error& e) {
      so_far.note(e.status, s.rank, e.text);
    } catch (const std::bad_alloc&) {
      so_far.note(LOCKSTEP_OUT_OF_MEMORY, s.rank, "out of host memory; free some or use more ranks");
    }
  };
  const bool nothing_to_choose = how == family::extreme && length == 0 && kept.whole().elements() > 0;
  for (reduce_seat& s : seats)
    attempt(s, [&] {
      const placed in = read_part(src_parts, s.seat, "src", src.of(s.rank));
      out[static_cast<size_t>(s.seat)] =
          read_part(dst_parts, s.seat, "dst", everywhere ? kept.whole() : dst.of(s.rank));
      if (s.block.empty()) return;
      if (view_of(*this, s, in)) return;
      // No one stride along the sequences: a packed copy has one.
      const auto strides = packed_strides(s.block);
      host_buffer& copy =
          packed.emplace_back(host_buffer(comm, static_cast<size_t>(s.block.elements()) * element_bytes));
      copy_box(comm, s.seat, element_bytes, s.block, in.data, in.strides.data(), copy.data(), strides.data());
      view_of(*this, s, {copy.data(), strides});
    });
  const auto seat_of = [&](const item& i) -> reduce_seat& { return seats[i.index]; };

  // 1: leaves that a cut goes through.
  const auto put_fragment = [&](const item& i, const char* from) {
    reduce_seat& s = seat_of(i);
    const int slot = s.shared[0] == i.key ? 0 : 1;
    const int64_t low = i.key * leaf, n = std::min(length, low + leaf) - low;
    const auto count = static_cast<int64_t>(i.bytes / element_bytes) / s.sequences;
    // A rank's part of a leaf begins where its elements do, or with the leaf.
    int64_t begin = 0;
    for (int32_t m = 0; m < members; ++m)
      if (rank_of(s.kept_block, m) == i.from) begin = std::max(range_of(m).first, low);
    for (int64_t q = 0; q < s.sequences; ++q)
      std::memcpy(s.assembled[slot].data() + static_cast<size_t>(q * n + begin - low) * element_bytes,
                  from + static_cast<size_t>(q * count) * element_bytes, static_cast<size_t>(count) * element_bytes);
  };
  const auto get_fragment = [&](const item& i, char* to) {
    reduce_seat& s = seat_of(i);
    const int64_t begin = std::max(s.first, i.key * leaf), end = std::min(s.last, (i.key + 1) * leaf);
    work.gather(s, begin, end - begin, to, end - begin);
  };
  step_work fragment_work{get_fragment, put_fragment, [&](const item& from, const item& to) {
                            std::vector<char> between(from.bytes);
                            get_fragment(from, between.data());
                            put_fragment(to, between.data());
                          }};
  fragments.run(comm, plan.step(1), so_far, fragment_work);

  // 2 and 3: partial results, joined in shares.
  const auto partials_of = [&](bool scaled) {
    for (reduce_seat& s : seats) {
      if (s.sequences == 0 || (scaled && !s.again)) continue;
      attempt(s, [&] {
        if (members == 1 && how != family::exact)
          work.direct(s);
        else if (scaled)
          work.compute_scaled(s);
        else
          work.compute(s);
      });
    }
    const auto values_of = [&](const reduce_seat& s) {
      return how == family::tree ? std::pair{reinterpret_cast<const char*>(s.own.values()), s.own.tiles().size()}
                                 : std::pair{static_cast<const char*>(s.partials.data()), size_t{1}};
    };
    const auto get = [&](const item& i, char* to) {
      const reduce_seat& s = seat_of(i);
      int32_t m = 0;
      while (rank_of(s.kept_block, m) != i.to) ++m;
      const auto [values, count] = values_of(s);
      copy_share(values, s.kept, to, chunk_of(s.kept, m), count, partial_bytes, false);
    };
    const auto put = [&](const item& i, const char* from) {
      const reduce_seat& s = seat_of(i);
      int32_t m = 0;
      while (rank_of(s.kept_block, m) != i.from) ++m;
      std::memcpy(s.gathered.data() + s.gathered_at[static_cast<size_t>(m)], from, i.bytes);
    };
    step_work w{get, put, [&](const item& from, const item& to) {
                  std::vector<char> between(from.bytes);
                  get(from, between.data());
                  put(to, between.data());
                }};
    if (scaled) w.active = [&](const item& i) { return seat_of(i).again; };
    (scaled ? again : partials).run(comm, plan.step(scaled ? 6 : 2), so_far, w);
  };
  partials_of(false);
  if (members == 1 && how == family::exact)
    for (reduce_seat& s : seats)
      if (s.sequences > 0 && s.first < s.last && !so_far.any())
        std::memcpy(s.gathered.data(), s.partials.data(), s.partials.bytes());

  int64_t overflow = -1;
  for (reduce_seat& s : seats) {
    if (s.chunk.elements() == 0 || (members == 1 && how != family::exact) || nothing_to_choose) continue;
    attempt(s, [&] {
      const int64_t first = work.finish(s);
      if (first < 0) return;
      // The result's index in the whole array of results.
      const auto strides = packed_strides(s.chunk), all = packed_strides(kept.whole());
      int64_t at = 0, left = first;
      for (size_t k = 0; k < static_cast<size_t>(kept.rank); ++k) {
        at += (s.chunk.low[k] + left / strides[k]) * all[k];
        left %= strides[k];
      }
      if (overflow < 0 || at < overflow) overflow = at;
    });
  }

  // NORM2 of f64 whose plain sum is out of range: largest magnitudes, then the sum of scaled squares.
  if (second_pass() && members > 1) {
    // Fellow members must decide alike, whatever has failed where: a step happens where somebody asks for it and none
    // of them was poisoned when it said so.
    for (reduce_seat& s : seats) s.again = false, s.spoilt = so_far.any();
    const auto get_ask = [&](const item& i, char* to) {
      const int64_t ask = seat_of(i).chunk.elements() > 0 && work.asks_again(seat_of(i));
      std::memcpy(to, &ask, sizeof ask);
    };
    const auto put_ask = [&](const item& i, const char* from) {
      int64_t ask = 0;
      if (from != nullptr) std::memcpy(&ask, from, sizeof ask);
      if (from == nullptr) seat_of(i).spoilt = true;
      if (ask != 0) seat_of(i).again = true;
    };
    step_work ask_work{get_ask, put_ask, [&](const item& from, const item& to) {
                         char ask[8];
                         get_ask(from, ask);
                         put_ask(to, ask);
                       }};
    ask_work.always = true;
    asks.run(comm, plan.step(3), so_far, ask_work);
    for (reduce_seat& s : seats) s.again = s.again && !s.spoilt;
    const auto active = [&](const item& i) { return seat_of(i).again; };
    for (reduce_seat& s : seats)
      if (s.again) attempt(s, [&] { work.magnitudes(s); });
    for (reduce_seat& s : seats)
      for (int64_t q = 0; s.again && q < s.chunk.elements(); ++q)
        reinterpret_cast<double*>(s.gathered_magnitudes.data())[q] = 0;
    const auto get_magnitudes = [&](const item& i, char* to) {
      const reduce_seat& s = seat_of(i);
      int32_t m = 0;
      while (rank_of(s.kept_block, m) != i.to) ++m;
      copy_share(s.magnitudes.data(), s.kept, to, chunk_of(s.kept, m), 1, sizeof(double), false);
    };
    const auto put_magnitudes = [&](const item& i, const char* from) {
      const reduce_seat& s = seat_of(i);
      auto* into = reinterpret_cast<double*>(s.gathered_magnitudes.data());
      for (size_t q = 0; q < i.bytes / sizeof(double); ++q) {
        double x;
        std::memcpy(&x, from + q * sizeof x, sizeof x);
        into[q] = std::fmax(into[q], x);
      }
    };
    magnitudes.run(comm, plan.step(4), so_far,
                   {get_magnitudes, put_magnitudes,
                    [&](const item& from, const item& to) {
                      std::vector<char> between(from.bytes);
                      get_magnitudes(from, between.data());
                      put_magnitudes(to, between.data());
                    },
                    active});
    for (reduce_seat& s : seats)
      if (s.again && s.chunk.elements() > 0) work.choose_exponents(s);
    const auto get_exponents = [&](const item& i, char* to) { std::memcpy(to, seat_of(i).exponents.data(), i.bytes); };
    const auto put_exponents = [&](const item& i, const char* from) {
      const reduce_seat& s = seat_of(i);
      int32_t m = 0;
      while (rank_of(s.kept_block, m) != i.from) ++m;
      copy_share(from, s.kept, s.own_exponents.data(), chunk_of(s.kept, m), 1, sizeof(int32_t), true);
    };
    exponents.run(
        comm, plan.step(5), so_far,
        {get_exponents, put_exponents,
         [&](const item& from, const item& to) { put_exponents(to, seat_of(from).exponents.data()); }, active});
    bool any = false;
    for (const reduce_seat& s : seats) any = any || s.again;
    if (any) partials_of(true);
    for (reduce_seat& s : seats)
      if (s.again && s.chunk.elements() > 0) attempt(s, [&] { work.finish_scaled(s); });
  }

  // 4: results.
  const auto chunk_of_rank = [&](const reduce_seat& s, int32_t from) {
    // A share's box, from its owner's place among the blocks.
    int32_t block = home.block_of[static_cast<size_t>(from)], kept_block = 0;
    std::array<int32_t, LOCKSTEP_MAX_RANK> at{};
    for (auto k = static_cast<size_t>(home.rank); k-- > 0;) {
      at[k] = block % home.parts[k];
      block /= home.parts[k];
    }
    for (const int k : kept_axes)
      kept_block = kept_block * home.parts[static_cast<size_t>(k)] + at[static_cast<size_t>(k)];
    const box chunk = chunk_of(kept.of_block(kept_block), cut_axis >= 0 ? at[static_cast<size_t>(cut_axis)] : 0);
    return everywhere ? chunk : intersection(chunk, dst.of(s.rank));
  };
  const auto get_results = [&](const item& i, char* to) {
    const reduce_seat& s = seat_of(i);
    const box b = everywhere ? s.chunk : intersection(s.chunk, dst.of(i.to));
    copy_share(s.results.data(), s.chunk, to, b, 1, result_bytes, false);
  };
  const auto put_results = [&](const item& i, const char* from) {
    const reduce_seat& s = seat_of(i);
    const placed& to = out[static_cast<size_t>(s.seat)];
    const box b = chunk_of_rank(s, i.from), whole = everywhere ? kept.whole() : dst.of(s.rank);
    const auto strides = packed_strides(b);
    copy_box(comm, s.seat, result_bytes, b, from, strides.data(),
             to.data + offset_of(b, whole, to.strides.data()) * static_cast<int64_t>(result_bytes), to.strides.data());
  };
  if (!nothing_to_choose)
    results.run(comm, plan.step(7), so_far,
                {get_results, put_results,
                 [&](const item& from, const item& to) {
                   std::vector<char> between(from.bytes);
                   get_results(from, between.data());
                   put_results(to, between.data());
                 }},
                &overflow);
  if (how == family::exact && reduction != LOCKSTEP_NORM2 && !everywhere) {
    // Not everybody got a result from where a sum overflowed, and all are told.
    failure own = so_far;
    if (overflow >= 0) own.note(LOCKSTEP_OVERFLOW, INT32_MAX, "");
    uint64_t low[2] = {overflow >= 0 ? static_cast<uint64_t>(overflow) : UINT64_MAX, 0}, high[2] = {0, 0};
    const failure all = comm.worst(own, low, high);
    if (all.any() && all.status == LOCKSTEP_OVERFLOW)
      overflow = static_cast<int64_t>(low[0]);
    else if (all.any())
      so_far.note(all.status, all.rank, all.text);
  }
  if (so_far.any()) return;
  if (nothing_to_choose)
    fail(LOCKSTEP_EMPTY,
         "every sequence is empty and has no minimum or maximum, dst is left as it was; give every sequence an "
         "element");
  if (overflow >= 0)
    fail(LOCKSTEP_OVERFLOW,
         "the exact result of sequence {} (row-major over the kept axes) does not fit I64, dst holds the nearest value "
         "there; sum shorter sequences or floats",
         overflow);
}

}  // namespace lockstep::ranks
