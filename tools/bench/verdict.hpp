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
  double low = 0, high = 0;  // the true median lies between, with 99.9 % confidence (sign test)
  std::string against;       // variant of ours that took the turns

  // "ahead": all of [low, high] above 1; "behind": all below; "level": 1 lies within. "" without rounds.
  std::string verdict() const;
};
pairing pair_up(std::vector<double> ratios);

// A run makes 150 to 210 comparisons, and in some 30 of them the two differ by less than 5 %: at 95 % confidence one of
// these would be called behind by chance in nearly every run. Who is that near takes three times the rounds instead.
constexpr size_t fewest_rounds = 6, many_rounds = 21, most_rounds = 63;

// What more rounds could still change.
enum class pace {
  settled,  // nothing: three rounds beyond a factor of two on one side, six beyond a quarter, 21 of an interval beyond
            // 5 %, or 63
  open,     // the verdict
  near,     // the verdict, by little: of six rounds or more the interval reaches within 5 % of level
};
pace pace_of(const std::vector<double>& ratios);

}  // namespace lockstep::tool::bench
