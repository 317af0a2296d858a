// verdict.hpp - compares ours with a peer by rounds in which the two alternate.
//
// On a shared machine the speed of memory changes by a third from one second to the next, so two medians taken one
// after the other say little about which is faster. In a round both are timed within tens of milliseconds, and only
// their ratio counts.
#pragma once

#include <string>
#include <vector>

namespace lockstep::tool::bench {

// The rule, fixed before any run:
//   1. There is a look after looks[0] rounds; if the verdict is open, another after looks[1],
//      and the last after looks[2].
//   2. At a look the verdict is "ahead" if the whole interval is above 1, "behind" if it is below 1,
//      and else open. Open
//      at the last look is "level".
//   3. The interval is that of the sign test for the median ratio. Its error is 0.1 % for all three looks together, a
//      third at each, so that three looks do not make a false verdict more likely.
// Neither the duration of a comparison nor its current result changes the number of rounds.
struct pairing {
  int rounds = 0;            // 0: the two did not alternate
  double ratio = 0;          // median of the peer's time over ours: above 1 we are faster
  double low = 0, high = 0;  // the true median lies between, with 99.9 % confidence
  std::string against;       // the variant of ours that was compared

  // "ahead", "behind" or "level"; "" without rounds.
  std::string verdict() const;
};
// With fewer rounds than looks[0] the interval covers everything, and the verdict is level.
pairing pair_up(std::vector<double> ratios);

constexpr size_t looks[] = {18, 36, 63};
constexpr size_t most_rounds = looks[2];
// Whether more rounds are due by the rule.
bool more_rounds_due(const std::vector<double>& ratios);

// A sample (sample.hpp) has many shapes and little time for each: this many rounds with every peer. A shape is behind
// if the median of the best peer's time over ours is below this. Runs of one draw on one machine agree within 3.4 %.
// Over several runs a shape counts as behind only if it is behind in each.
constexpr size_t sample_rounds = 9;
constexpr double behind_below = 0.97;

// A result for a verdict: milliseconds, the samples' median and the ends of their middle half.
struct timed {
  std::string source;
  double median = 0, low = 0, high = 0;
};
struct comparison {
  double ratio = 0;     // the peer's time over ours
  std::string verdict;  // "ahead", "behind" or "level"
};
// For two that did not alternate (on the GPU): level if the middle halves of their samples overlap.
comparison beside(const timed& ours, const timed& peer);

// A peer that adds in float does less than we, who add in double; its name says so.
bool adds_in_float(const std::string& source);
// The peers that a case is compared with, as indices of the lists; -1 for none. `best` adds in double: the one furthest
// ahead of us by its verdict, else the fastest. `best_float` is the fastest of those that add in float.
struct chosen {
  int best = -1, best_float = -1;
};
chosen choose(const std::vector<std::string>& sources, const std::vector<comparison>& all);

}  // namespace lockstep::tool::bench
