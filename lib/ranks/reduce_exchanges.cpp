// reduce_exchanges.cpp - lists the messages of a reduction. Every rank computes the same list from the cuts alone.
#include <algorithm>
#include <map>

#include "reduce.hpp"

namespace lockstep::ranks {

constexpr int64_t leaf = order::leaf;

// The elements to send, of leaves that another member sums, and to receive, for leaves that this one sums.
void reduce_plan::add_fragments(lockstep_comm& comm, reduce_pass& pass) const {
  if (members == 1 || !by_leaves()) return;
  const auto elements_of = [&](int32_t member, int64_t l) {
    const auto [a, b] = range_of(member);
    return std::min(b, (l + 1) * leaf) - std::max(a, l * leaf);
  };
  for (size_t i = 0; i < pass.seats.size(); ++i) {
    const reduce_seat& s = pass.seats[i];
    const auto bytes = [&](int64_t n) { return static_cast<size_t>(s.sequences * n) * copied_bytes(); };
    if (s.sequences == 0 || s.first >= s.last) continue;
    for (int64_t l = s.first / leaf; l <= (s.last - 1) / leaf; l = std::max(l + 1, (s.last - 1) / leaf)) {
      const int32_t owner = owner_of(l);
      const int64_t n = elements_of(s.member, l);
      if (owner == s.member) continue;
      pass.fragments.sends(comm, {s.rank, rank_of(s.kept_block, owner), l, bytes(n), i});
    }
    for (const int64_t l : s.shared) {
      if (l < 0) continue;
      const auto& cuts = home.cuts[static_cast<size_t>(cut_axis)];
      const auto at = std::upper_bound(cuts.begin(), cuts.end(), l * leaf / inner) - cuts.begin() - 1;
      for (auto m = static_cast<int32_t>(at); m < members && range_of(m).first < (l + 1) * leaf; ++m) {
        const int64_t n = elements_of(m, l);
        if (m != s.member && n > 0) pass.fragments.receives(comm, {rank_of(s.kept_block, m), s.rank, l, bytes(n), i});
      }
    }
  }
}

// The results to exchange: every share of every block of sequences that another rank needs; and exponents, among
// members.
void reduce_plan::add_results(lockstep_comm& comm, reduce_pass& pass) const {
  const pairing pairs(members);
  // The distinct shares of a block of sequences, and the members that have each.
  const auto shares_of = [&](int64_t sequences) {
    std::vector<std::pair<share, std::vector<int32_t>>> all;
    std::map<int64_t, size_t> at;
    for (int32_t place = 0; sequences > 0 && place < pairs.places; ++place) {
      const share s = pairing::of(sequences, place, pairs.levels);
      const auto [it, is_new] = at.try_emplace(s.low, all.size());
      if (is_new) all.push_back({s, {}});
      all[it->second].second.push_back(pairs.member_at(place));
    }
    return all;
  };
  const auto to_all_members = [&](spread& to, size_t bytes) {
    for (size_t i = 0; i < pass.seats.size(); ++i) {
      const reduce_seat& s = pass.seats[i];
      std::vector<spread_share> shares;
      for (const auto& [part, holders] : shares_of(s.sequences))
        shares.push_back({static_cast<size_t>(part.low) * bytes, static_cast<size_t>(part.size()) * bytes, holders});
      to.add(
          comm, s.member, members, [&](int32_t m) { return rank_of(s.kept_block, m); }, shares, i);
    }
  };
  if (second_pass()) to_all_members(pass.exponents, sizeof(int32_t));
  if (to_members) return to_all_members(pass.results, result_bytes);
  std::vector<spread_share> shares;
  int64_t key = 0;
  for (size_t b = 0; b < pass.slices.size(); ++b)
    for (const auto& one_share : shares_of(pass.slices[b].elements())) {
      const auto& part = one_share.first;  // no structured binding: clang 14 cannot capture one in a lambda
      const auto& holders = one_share.second;
      const auto block = static_cast<int32_t>(b);
      if (everywhere) {
        spread_share s{pass.at[b] + static_cast<size_t>(part.low) * result_bytes,
                       static_cast<size_t>(part.size()) * result_bytes,
                       {}};
        for (const int32_t m : holders) s.holders.push_back(comm.process_of(rank_of(block, m)));
        std::sort(s.holders.begin(), s.holders.end());
        shares.push_back(std::move(s));
        continue;
      }
      // If several members have it, the number of the receiving rank decides which one sends it.
      std::vector<box> boxes;
      boxes_of(pass.slices[b], part.low, part.high, boxes);
      for (const box& whole : boxes)
        dst.overlapping(whole, [&](int32_t to, const box& wanted) {
          const int32_t from = rank_of(block, holders[static_cast<size_t>(to) % holders.size()]);
          if (!comm.mine(from) && !comm.mine(to)) return;
          std::vector<box> parts;
          cut_box(wanted, std::max<int64_t>(comm.message_bytes / static_cast<int64_t>(result_bytes), 1), parts);
          for (const box& one : parts) {
            const auto add = [&](bool out) {
              const auto seat = static_cast<size_t>((out ? from : to) - comm.first());
              const item i{from, to, key, static_cast<size_t>(one.elements()) * result_bytes, pass.pieces.size()};
              pass.pieces.push_back({seat, one});
              out ? pass.to_grid.sends(comm, i) : pass.to_grid.receives(comm, i);
            };
            if (comm.mine(from)) add(true);
            if (comm.mine(to)) add(false);
            ++key;  // in the same order on both ranks
          }
        });
    }
  if (everywhere)
    pass.results.add(
        comm, comm.engine.process, comm.engine.processes,
        [&](int32_t process) { return comm.first_rank[static_cast<size_t>(process)]; }, shares, 0);
}

}  // namespace lockstep::ranks
