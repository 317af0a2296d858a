// relay.hpp - short boxes of a permute between many processes, in two steps. Processes stand in groups of about
// sqrt(p) neighbours. Each gives what it has for member k of any group to member k of its own, which sends it on: about
// 2 sqrt(p) messages in place of p, for twice the bytes.
#pragma once

#include "exchange.hpp"
#include "grid.hpp"

namespace lockstep::ranks {

struct permute_plan;
struct placed;

class relay {
 public:
  // Whether that is faster: every process decides alike.
  static bool pays(const lockstep_comm& comm, const permute_plan& of);
  void build(lockstep_comm& comm, workspace& memory, const permute_plan& of);
  bool used() const { return !cuts_.empty(); }
  // direct: what moves within this process.
  task run(lockstep_comm& comm, uint64_t first, uint64_t second, failure& so_far, const step_work& direct);
  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const;

 private:
  static constexpr size_t none = SIZE_MAX;
  struct entry {
    size_t piece;  // of the permute; none: it only passes through here
    size_t at;     // in passing_, where it waits; none: it does not
    size_t bytes;
  };
  int32_t group_of(int32_t process) const;
  // The process by which what goes between these two is sent.
  int32_t by(int32_t from, int32_t to) const;
  std::vector<int64_t> cuts_;  // of processes into groups
  std::vector<entry> entries_;
  exchange gather_, scatter_;
  buffer passing_;
};

}  // namespace lockstep::ranks
