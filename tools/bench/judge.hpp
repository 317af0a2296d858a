// judge.hpp - computes the verdicts of a results file. Page, table, CSV and tools/performance only read them.
#pragma once

#include "../json.hpp"
#include "verdict.hpp"

namespace lockstep::tool::bench {

// Compares a row of ours with a peer's row: by their alternating rounds if there are any, else by the two medians.
comparison beside(const nlohmann::ordered_json& ours, const nlohmann::ordered_json& peer);

// Writes into each peer's row "ratio", "verdict" and "against" (the variant of ours that it stands beside), and into
// each row of ours that has peers
//   "best_peer", "over_best_peer", "verdict"               the peer that adds as we do
//   "float_peer", "over_float_peer", "float_verdict"       the one that adds in float, where it is faster than that
// as choose (verdict.hpp) picks them. Of a sample (run's meta has "sample"), into each row of ours that has a peer
// whose name matches the sample's "against" (all, where it is empty; they may add in float)
//   "sample_peer", "sample_ratio", "behind"                the one that is furthest ahead of us, or least behind
//   "sample_ms"                                            our median in the rounds beside it
// A sample's rounds are too few for a verdict, which stays level.
void judge(nlohmann::ordered_json& run);

}  // namespace lockstep::tool::bench
