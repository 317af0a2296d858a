// join.hpp - joins the partial results of the members that share sequences, in ceil(log2 members) steps and always in
// the order of the members: first neighbours, then pairs, then fours. In each step two partners exchange halves of
// their values, so that each joins half as many sequences as before. If there are few sequences, both join all of them.
#pragma once

#include "plan.hpp"

namespace lockstep::ranks {

// Sequences [low, high) of a box, numbered row-major.
struct share {
  int64_t low = 0, high = 0;
  int64_t size() const { return high - low; }
  bool operator==(const share&) const = default;
};

// How members form pairs. If their number is not a power of 2, some of the first hand their part to the one before.
struct pairing {
  int32_t members = 1, pairs = 0, places = 1, levels = 0;
  explicit pairing(int32_t members);
  int32_t place_of(int32_t member) const;  // -1: the member has handed its part over
  int32_t member_at(int32_t place) const { return place < pairs ? 2 * place : place + pairs; }
  // The members whose parts a place has joined after that many levels: [first, second).
  std::pair<int32_t, int32_t> joined(int32_t place, int level) const;
  // The sequences that it joins.
  static share of(int64_t sequences, int32_t place, int level);
};

// The kind of values that are joined. A range of members has a number of arrays, with one value for each sequence.
struct joinable {
  size_t bytes = 0;  // of a value
  std::function<size_t(int32_t first, int32_t last)> values;
  // Input arrays start `pitch` bytes apart; those of out are packed.
  struct part {
    const char* data;
    size_t pitch;
    int32_t first, last;
  };
  std::function<void(const part& low, const part& high, int64_t sequences, char* out)> join;
};

class ordered_join {
 public:
  struct seat {
    int32_t rank, member;
    int64_t sequences;                        // 0: it has no part in this
    std::function<int32_t(int32_t)> rank_of;  // a member's
  };
  void build(lockstep_comm& comm, workspace& memory, int32_t members, const joinable& what,
             const std::vector<seat>& seats);
  // own(i): the values that seat i starts with. Afterwards data(i) has the joined values.
  task run(execution& x, uint64_t first_step, const joinable& what, std::function<const char*(size_t)> own);
  char* data(size_t i) const { return const_cast<char*>(states_[i].now); }
  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const;

 private:
  struct state {
    seat s{};
    int32_t place = -1;
    buffer room[2];
    int used = 0;  // the room that the next step writes to
    const char* now = nullptr;
  };
  pairing pairs_{1};
  std::vector<state> states_;
  std::vector<exchange> steps_;  // the handing over, if there is one, and the levels
};

// Distributes shares that some places have to all places, in ceil(log2 places) steps. Each place sends the shares that
// it has to the place 1 after it, then 2, then 4, without those that are already there. Each share arrives once.
struct spread_share {
  size_t offset, bytes;
  std::vector<int32_t> holders;  // ascending
};
class spread {
 public:
  // index: identifies the memory of this place for room().
  void add(lockstep_comm& comm, int32_t me, int32_t places, const std::function<int32_t(int32_t)>& rank_of,
           const std::vector<spread_share>& shares, size_t index);
  void finish(lockstep_comm& comm, workspace& memory);
  task run(execution& x, uint64_t first_step, std::function<char*(size_t)> room, int64_t* note = nullptr);
  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const;

 private:
  struct piece {
    size_t index, offset;
  };
  std::vector<piece> pieces_;
  std::vector<exchange> steps_;
};

}  // namespace lockstep::ranks
