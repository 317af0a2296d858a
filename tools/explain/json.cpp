// json.cpp - every request of the replay, for other programs.

#include "../json.hpp"

#include "cli.hpp"
#include "view.hpp"

namespace lockstep::tool::explain {

std::string json_of(const view& v) {
  using nlohmann::ordered_json;
  ordered_json all = {
      {"op", v.what->op},
      {"variant", v.what->variant},
      {"row", v.what->row},
      {"teaches", v.what->teaches},
      {"machine", {{"warp", v.t.chip.warp}, {"segment_bytes", v.t.chip.segment_bytes}, {"banks", v.t.chip.banks}}}};
  const char* const spaces[] = {"global", "shared", "constant", "lanes"};
  for (const launch& l : v.t.launches)
    all["launches"].push_back({{"kernel", l.name}, {"blocks", l.blocks}, {"block", {l.block_x, l.block_y}}});
  for (const array& a : v.t.arrays)
    all["arrays"].push_back({{"name", a.name},
                             {"space", spaces[static_cast<int>(a.where)]},
                             {"element_bytes", a.bytes},
                             {"elements", a.elements}});
  for (const summary& s : v.sums) {
    const verdict_text text = verdict_of(v, s);
    const array& a = v.t.arrays[static_cast<size_t>(s.where->array)];
    ordered_json entry = {{"place", static_cast<int>(s.where->where)},
                          {"name", name_of(v, s)},
                          {"array", a.name},
                          {"action", s.where->writes ? "write" : "read"},
                          {"requests", s.requests},
                          {"lanes", s.lanes},
                          {"met", s.met},
                          {"needed", s.needed},
                          {"most_met", s.most_met},
                          {"most_ways", s.most_ways},
                          {"efficiency", s.efficiency(v.t.chip, a)},
                          {"rule", s.where->rule}};
    if (s.judged > 0)
      entry.update({{"predicted", {s.taught_least, s.taught_most}}, {"judged", s.judged}, {"agreed", s.agreed}});
    entry["verdict"] = text.verdict;
    all["places"].push_back(std::move(entry));
  }
  for (const sketch& drawn : v.t.sketches) all["sketches"].push_back({{"title", drawn.title}, {"lines", drawn.lines}});
  all["notes"] = v.t.notes;
  for (const request& r : v.all) {
    ordered_json lanes = ordered_json::array();
    for (const touch& t : r.lanes) lanes.push_back({t.lane, t.first, t.width});
    all["requests"].push_back({{"kernel", r.kernel},
                               {"block", r.block},
                               {"warp", r.warp},
                               {"phase", r.phase},
                               {"round", r.round},
                               {"place", static_cast<int>(r.where)},
                               {"met", r.met},
                               {"needed", r.needed},
                               {"ways", r.ways},
                               {"lanes", lanes}});
  }
  return all.dump(1) + "\n";
}

}  // namespace lockstep::tool::explain
