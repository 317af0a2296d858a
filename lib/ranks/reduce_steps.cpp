// reduce_steps.cpp - a reduction's steps, as reduce.cpp planned them.
#include <cmath>
#include <cstring>

#include "permute.hpp"
#include "reduce.hpp"

namespace lockstep::ranks {

constexpr int64_t leaf = order::leaf;

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
  std::vector<placed> here = read_parts(comm, src_parts, "src", src, so_far);
  if (redistribute != nullptr) {
    std::vector<placed> there;
    for (const reduce_seat& s : seats)
      there.push_back({moved[static_cast<size_t>(s.seat)].data(), packed_strides(s.block)});
    redistribute->run(plan, 16, here, there, so_far);
    here = std::move(there);
  }
  for (reduce_seat& s : seats)
    attempt(s, [&] {
      const placed& in = here[static_cast<size_t>(s.seat)];
      out[static_cast<size_t>(s.seat)] =
          read_part(dst_parts, s.seat, "dst", everywhere ? kept.whole() : dst.of(s.rank));
      if (s.block.empty()) return;
      if (view_of(*this, s, in)) return;
      // No one stride along the sequences: a copy with the reduced axes innermost has one.
      std::array<int64_t, LOCKSTEP_MAX_RANK> strides{};
      int64_t stride = 1;
      for (const std::vector<int>* axes : {&reduced_axes, &kept_axes})
        for (auto k = axes->size(); k-- > 0;) {
          const auto i = static_cast<size_t>((*axes)[k]);
          strides[i] = stride;
          stride *= s.block.length[i];
        }
      const host_buffer& copy = packed.emplace_back(comm, static_cast<size_t>(s.block.elements()) * element_bytes);
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
    if (LOCKSTEP_MUTANT("ranks_fragment_at_the_start_of_its_leaf")) begin = low;
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
