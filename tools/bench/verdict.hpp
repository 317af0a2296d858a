// verdict.hpp - ours beside a peer: what the rounds say in which the two took turns.
//
// Memory's speed on a shared machine changes by a third from one second to the next, so two medians taken one after
// the other say little about who is faster. In a round both are timed within tens of milliseconds of one another, and
// only their ratio counts.
#pragma once

#include <string>
#include <vector>

namespace lockstep::tool::bench {

// The rule, fixed before any run:
//   1. Rounds are counted at looks[0]; at looks[1] where the verdict is still open, and at looks[2], the last.
//   2. At a look the verdict is "ahead" where the whole interval lies above 1, "behind" where it lies below, and open
//      else; open at the last look is "level".
//   3. The interval is the sign test's for the median ratio. Its error is 0.1 % for all three looks together, a third
//      at each, so looking three times does not make a false verdict likelier.
// Neither the time that a comparison takes nor on which side it stands changes the number of rounds.
struct pairing {
  int rounds = 0;            // 0: no turns were taken
  double ratio = 0;          // median of the peer's time over ours: above 1 we are faster
  double low = 0, high = 0;  // the true median lies between, with 99.9 % confidence
  std::string against;       // variant of ours that took the turns

  // "ahead", "behind" or "level"; "" without rounds.
  std::string verdict() const;
};
// Fewer rounds than looks[0] say nothing: the interval reaches from end to end and the verdict is level.
pairing pair_up(std::vector<double> ratios);

constexpr size_t looks[] = {18, 36, 63};
constexpr size_t most_rounds = looks[2];
// Whether more rounds are due by the rule.
bool more_rounds_due(const std::vector<double>& ratios);

// A sample (sample.hpp) has many shapes and little time for each: so many rounds beside every peer, and a shape is
// behind where the median of the best peer's time over ours lies below. Runs of one draw on one machine agree within
// 3.4 %; who judges by more than one run counts what is behind in each of them.
constexpr size_t sample_rounds = 9;
constexpr double behind_below = 0.97;

// A result as a verdict sees it: milliseconds, the samples' median and the ends of their middle half.
struct timed {
  std::string source;
  double median = 0, low = 0, high = 0;
};
struct comparison {
  double ratio = 0;     // the peer's time over ours
  std::string verdict;  // "ahead", "behind" or "level"
};
// Of two that took no turns (the GPU's): level where the middle halves of their samples overlap.
comparison beside(const timed& ours, const timed& peer);

// A peer that adds in float does less than we, who add in double; its name says so.
bool adds_in_float(const std::string& source);
// Which peers a case is compared with, as places in the lists; -1 for none. `best` adds as we do: the one furthest
// ahead of us by its verdict, else the fastest. `best_float` is the fastest of those that add in float.
struct chosen {
  int best = -1, best_float = -1;
};
chosen choose(const std::vector<std::string>& sources, const std::vector<comparison>& all);

}  // namespace lockstep::tool::bench
