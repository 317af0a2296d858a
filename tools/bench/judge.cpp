// judge.cpp - see judge.hpp.
#include "judge.hpp"

#include <map>

#include "../pattern.hpp"
#include "timing.hpp"

namespace lockstep::tool::bench {
namespace {
using nlohmann::ordered_json;

timed timed_of(const ordered_json& row) {
  const double median = row.at("median_ms");
  return {row.at("source"), median, row.value("low_ms", median), row.value("high_ms", median)};
}

bool took_turns(const ordered_json& ours, const ordered_json& peer) {
  return peer.value("rounds", 0) > 0 && peer.value("against", "") == ours.at("variant").get<std::string>();
}

void judge_case(ordered_json& ours, const std::vector<ordered_json*>& peers, bool first) {
  std::vector<std::string> sources;
  std::vector<comparison> all;
  for (ordered_json* peer : peers) {
    sources.push_back(peer->at("source"));
    all.push_back(beside(ours, *peer));
    if (!first || peer->value("rounds", 0) > 0) continue;
    (*peer)["against"] = ours.at("variant");
    (*peer)["ratio"] = all.back().ratio;
    (*peer)["verdict"] = all.back().verdict;
  }
  const chosen c = choose(sources, all);
  for (const char* key : {"best_peer", "over_best_peer", "verdict", "float_peer", "over_float_peer", "float_verdict"})
    ours.erase(key);
  const auto at = [&](int k) { return static_cast<size_t>(k); };
  if (c.best >= 0) {
    ours["best_peer"] = sources[at(c.best)];
    ours["over_best_peer"] = all[at(c.best)].ratio;
    ours["verdict"] = all[at(c.best)].verdict;
  }
  if (c.best_float >= 0 && (c.best < 0 || all[at(c.best_float)].ratio < all[at(c.best)].ratio)) {
    ours["float_peer"] = sources[at(c.best_float)];
    ours["over_float_peer"] = all[at(c.best_float)].ratio;
    ours["float_verdict"] = all[at(c.best_float)].verdict;
  }
}
}  // namespace

comparison beside(const ordered_json& ours, const ordered_json& peer) {
  if (took_turns(ours, peer)) return {peer.at("ratio"), peer.at("verdict")};
  return beside(timed_of(ours), timed_of(peer));
}

namespace {
void judge_sampled(ordered_json& ours, const std::vector<ordered_json*>& peers, const pattern& against) {
  for (const char* key : {"sample_peer", "sample_ratio", "behind", "sample_ms"}) ours.erase(key);
  for (const ordered_json* peer : peers) {
    const double ratio = beside(ours, *peer).ratio;
    if (!against.is_in(peer->at("source").get<std::string>())) continue;
    if (ours.contains("sample_ratio") && ours.at("sample_ratio") <= ratio) continue;
    ours["sample_peer"] = peer->at("source");
    ours["sample_ratio"] = ratio;
    ours["behind"] = ratio < behind_below;
    std::vector<double> ms;
    if (took_turns(ours, *peer) && peer->contains("rounds_ms"))
      for (const ordered_json& round : peer->at("rounds_ms")) ms.push_back(round.at(0));
    ours["sample_ms"] = ms.empty() ? ours.at("median_ms").get<double>() : summarise(std::move(ms)).median;
  }
}
}  // namespace

void judge(ordered_json& run) {
  struct rows {
    std::vector<ordered_json*> ours, peers;
  };
  std::map<std::pair<std::string, std::string>, rows> cases;  // by name and backend
  for (ordered_json& row : run.at("benchmarks")) {
    rows& of = cases[{row.at("name"), row.at("backend")}];
    (row.at("source") == "lockstep" ? of.ours : of.peers).push_back(&row);
  }
  for (auto& [key, of] : cases)
    for (size_t k = 0; k < of.ours.size() && !of.peers.empty(); ++k) judge_case(*of.ours[k], of.peers, k == 0);
  if (!run.contains("meta") || !run.at("meta").contains("sample")) return;
  const pattern against("--against", run.at("meta").at("sample").value("against", ""));
  for (auto& [key, of] : cases)
    for (ordered_json* ours : of.ours) judge_sampled(*ours, of.peers, against);
}

}  // namespace lockstep::tool::bench
