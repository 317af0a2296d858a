// verdict.hpp - ours beside a peer: what the rounds say in which the two took turns.
//
// Memory's speed on a shared machine changes by a third from one second to the next, so two medians taken one after
// the other say little about who is faster. In a round both are timed within tens of milliseconds of one another, and
// only their ratio counts.
#pragma once

#include <string>
#include <vector>

namespace lockstep::tool::bench {

struct pairing {
  int rounds = 0;            // 0: no turns were taken
  double ratio = 0;          // median of the peer's time over ours: above 1 we are faster
  double low = 0, high = 0;  // the true median lies between, with 95 % confidence (sign test)
  std::string against;       // variant of ours that took the turns

  // "ahead": all of [low, high] above 1; "behind": all below; "level": 1 lies within. "" without rounds.
  std::string verdict() const;
};
pairing pair_up(std::vector<double> ratios);

constexpr int fewest_rounds = 6, most_rounds = 21;
// Every one of six rounds or more beyond a quarter on the same side, or of three beyond a factor of two: more of them
// change nothing.
bool settled(const std::vector<double>& ratios);

}  // namespace lockstep::tool::bench
