// join.cpp - see join.hpp.
#include "join.hpp"

#include <bit>
#include <cstring>

namespace lockstep::ranks {

constexpr int64_t fewest_to_split = 128;

pairing::pairing(int32_t m) : members(m) {
  levels = std::bit_width(static_cast<uint32_t>(m)) - 1;
  places = 1 << levels;
  pairs = members - places;
}

int32_t pairing::place_of(int32_t member) const {
  if (member >= 2 * pairs) return member - pairs;
  return member % 2 == 0 ? member / 2 : -1;
}

std::pair<int32_t, int32_t> pairing::joined(int32_t place, int level) const {
  const int32_t first = place >> level << level, last = first + (1 << level);
  return {member_at(first), last == places ? members : member_at(last)};
}

share pairing::of(int64_t sequences, int32_t place, int level) {
  share s{0, sequences};
  for (int k = 0; k < level; ++k) {
    if (s.size() < fewest_to_split) continue;
    const int64_t middle = s.low + s.size() / 2;
    ((place >> k & 1) != 0 ? s.low : s.high) = middle;
  }
  return s;
}

void ordered_join::build(lockstep_comm& comm, workspace& memory, int32_t members, const joinable& what,
                         const std::vector<seat>& seats) {
  pairs_ = pairing(members);
  const size_t first = pairs_.pairs != 0 ? 1 : 0;  // the number of the first level's step
  steps_.resize(first + static_cast<size_t>(pairs_.levels));
  for (size_t i = 0; i < seats.size(); ++i) {
    const seat& s = seats[i];
    state& now = states_.emplace_back();
    now.s = s;
    if (s.sequences == 0) continue;
    const auto bytes = [&](std::pair<int32_t, int32_t> range, int64_t n) {
      return what.values(range.first, range.second) * static_cast<size_t>(n) * what.bytes;
    };
    now.place = pairs_.place_of(s.member);
    const int32_t me = s.member;
    if (now.place < 0) {
      steps_[0].sends(comm, {s.rank, s.rank_of(me - 1), 0, bytes({me, me + 1}, s.sequences), i});
      continue;
    }
    size_t room = 0;
    if (now.place < pairs_.pairs) {
      const size_t more = bytes({me + 1, me + 2}, s.sequences);
      steps_[0].receives(comm, {s.rank_of(me + 1), s.rank, 0, more, i});
      room = bytes({me, me + 1}, s.sequences) + more;
    }
    for (int k = 0; k < pairs_.levels; ++k) {
      const int32_t partner = now.place ^ 1 << k, there = s.rank_of(pairs_.member_at(partner));
      const int64_t kept = pairing::of(s.sequences, now.place, k + 1).size(),
                    given = pairing::of(s.sequences, partner, k + 1).size();
      const auto mine = pairs_.joined(now.place, k), theirs = pairs_.joined(partner, k);
      exchange& step = steps_[first + static_cast<size_t>(k)];
      step.sends(comm, {s.rank, there, 0, bytes(mine, given), i});
      step.receives(comm, {there, s.rank, 0, bytes(theirs, kept), i});
      room = std::max(room, bytes(mine, kept) + bytes(theirs, kept));
    }
    for (buffer& b : now.room) b = buffer(memory, room);
  }
  const size_t mark = memory.mark();
  for (exchange& step : steps_) {
    step.finish(comm, memory);
    memory.rewind(mark);
  }
}

task ordered_join::run(execution& x, uint64_t first_step, const joinable& what,
                       std::function<const char*(size_t)> own) {
  lockstep_comm& comm = *x.plan.comm;
  const int first = pairs_.pairs != 0;
  for (size_t i = 0; i < states_.size(); ++i) states_[i].now = own(i), states_[i].used = 0;
  for (int step = 0; step < first + pairs_.levels; ++step) {
    const int k = step - first;  // -1: the first step, in which extra members hand over their part
    // A seat's sequences before this step.
    const auto held = [&](const state& s) { return pairing::of(s.s.sequences, std::max(s.place, 0), std::max(k, 0)); };
    const auto members_of = [&](const state& s) {
      return k < 0 ? std::pair{s.s.member, s.s.member + 1} : pairs_.joined(s.place, k);
    };
    step_work work;
    work.pack = [&](const item& i, char* to) {
      const state& s = states_[i.index];
      const share all = held(s), given = k < 0 ? all : pairing::of(s.s.sequences, s.place ^ 1 << k, k + 1);
      const auto [a, b] = members_of(s);
      const auto bytes = static_cast<size_t>(given.size()) * what.bytes;
      for (size_t v = 0; v < what.values(a, b); ++v)
        std::memcpy(
            to + v * bytes,
            s.now + (v * static_cast<size_t>(all.size()) + static_cast<size_t>(given.low - all.low)) * what.bytes,
            bytes);
    };
    work.unpack = [&](const item& i, const char* from) {
      state& s = states_[i.index];
      const share all = held(s), kept = k < 0 ? all : pairing::of(s.s.sequences, s.place, k + 1);
      const auto [a, b] = members_of(s);
      const auto [c, d] = k < 0 ? std::pair{s.s.member + 1, s.s.member + 2} : pairs_.joined(s.place ^ 1 << k, k);
      const joinable::part mine{s.now + static_cast<size_t>(kept.low - all.low) * what.bytes,
                                static_cast<size_t>(all.size()) * what.bytes, a, b},
          theirs{from, static_cast<size_t>(kept.size()) * what.bytes, c, d};
      const bool before = a < c;
      what.join(before ? mine : theirs, before ? theirs : mine, kept.size(), s.room[s.used].data());
    };
    task one =
        steps_[static_cast<size_t>(step)].run(comm, x.step(first_step + static_cast<uint64_t>(step)), x.so_far, work);
    co_await one;
    // The old values are not read any more. If the partner had nothing to send, this side joins both parts.
    for (state& s : states_) {
      if (s.s.sequences == 0 || s.place < 0 || (k < 0 && s.place >= pairs_.pairs)) continue;
      const auto [c, d] = k < 0 ? std::pair{s.s.member + 1, s.s.member + 2} : pairs_.joined(s.place ^ 1 << k, k);
      if (what.values(c, d) == 0)
        x.attempt(s.s.rank, [&] {
          work.unpack({s.s.rank, s.s.rank, 0, 0, static_cast<size_t>(&s - states_.data())}, nullptr);
        });
      s.now = s.room[s.used].data();
      s.used ^= 1;
    }
  }
}

void ordered_join::tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const {
  for (const exchange& e : steps_) e.tell(link, cost);
}

void spread::add(lockstep_comm& comm, int32_t me, int32_t places, const std::function<int32_t(int32_t)>& rank_of,
                 const std::vector<spread_share>& shares, size_t index) {
  // The distance from a place back to the next holder: after the steps 1, 2, ... 2^(k-1) a place has every share that
  // is nearer than 2^k.
  const auto distance = [&](const spread_share& s, int32_t place) {
    const auto after = std::upper_bound(s.holders.begin(), s.holders.end(), place);
    return after != s.holders.begin() ? place - *std::prev(after) : place + places - s.holders.back();
  };
  size_t round = 0;
  for (int32_t step = 1; step < places; step *= 2, ++round) {
    if (steps_.size() <= round) steps_.emplace_back();
    const int32_t to = (me + step) % places, from = (me - step + places) % places;
    for (size_t k = 0; k < shares.size(); ++k) {
      const spread_share& s = shares[k];
      const bool here = distance(s, me) < step;
      const auto add_item = [&](bool out) {
        const item i{rank_of(out ? me : from), rank_of(out ? to : me), static_cast<int64_t>(k), s.bytes,
                     pieces_.size()};
        pieces_.push_back({index, s.offset});
        out ? steps_[round].sends(comm, i) : steps_[round].receives(comm, i);
      };
      if (here && distance(s, to) >= step) add_item(true);
      if (!here && distance(s, from) < step) add_item(false);
    }
  }
}

void spread::finish(lockstep_comm& comm, workspace& memory) {
  const size_t mark = memory.mark();
  for (exchange& step : steps_) {
    step.finish(comm, memory);
    memory.rewind(mark);
  }
}

task spread::run(execution& x, uint64_t first_step, std::function<char*(size_t)> room, int64_t* note) {
  const auto at = [&](const item& i) { return room(pieces_[i.index].index) + pieces_[i.index].offset; };
  step_work work;
  work.pack = [&](const item& i, char* to) { std::memcpy(to, at(i), i.bytes); };
  work.unpack = [&](const item& i, const char* from) { std::memcpy(at(i), from, i.bytes); };
  work.local = [&](const item& from, const item& to) { std::memcpy(at(to), at(from), from.bytes); };
  for (size_t k = 0; k < steps_.size(); ++k) {
    task one = steps_[k].run(*x.plan.comm, x.step(first_step + k), x.so_far, work, note);
    co_await one;
  }
}

void spread::tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const {
  for (const exchange& e : steps_) e.tell(link, cost);
}

}  // namespace lockstep::ranks
