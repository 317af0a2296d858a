// ladder.cpp - every variant of a case, the simplest first, each step as a factor.
#include <algorithm>
#include <map>

#include "../../cli.hpp"
#include "rows.hpp"

namespace lockstep::tool::bench {
namespace {

bool full(const row& r) { return r.variant.ends_with("_full"); }

// What a rung is compared with. A name in _full is its twin's kernel on a grid that fills
// the chip, where the twin keeps the blocks and threads that the lesson is taught with: each
// goes with the rung below of its own kind. The first _full is compared with its twin.
const row* rung_below(const std::vector<const row*>& rungs, size_t i) {
  const auto taught = [&](const row& r) {
    return std::any_of(rungs.begin(), rungs.end(),
                       [&](const row* other) { return other->variant == r.variant + "_full"; });
  };
  const bool wide = !taught(*rungs[i]),
             first = full(*rungs[i]) && std::none_of(rungs.begin(), rungs.begin() + static_cast<ptrdiff_t>(i),
                                                     [](const row*r) { return full(*r); });
  for (size_t k = i; k-- > 0;) {
    const row& r = *rungs[k];
    if (r.library) continue;
    if (first ? rungs[i]->variant == r.variant + "_full" : wide ? !taught(r) : !full(r)) return &r;
  }
  return nullptr;
}

void one_ladder(pages::page& p, const std::vector<const row*>& rungs) {
  const row& any = *rungs.front();
  double least = any.gb_s, most = 0;
  for (const row* r : rungs) least = std::min(least, r->gb_s), most = std::max(most, r->gb_s);
  pages::bar_chart c;
  c.title = format_text("{} on {}", any.name, any.place);
  c.groups = {"keeps the fixed order", "own order", "library"};
  // Bars would hide the lower rungs where the ladder spans decades.
  const bool decades = most > 30 * least;
  c.values = {.label = "GB/s", .scale = decades ? pages::scale::log10 : pages::scale::linear};
  c.reference = pages::mark{any.limit_gb_s, format_text("{} limit, {}", any.limit, gb_s_text(any.limit_gb_s))};
  pages::table t;
  t.columns = {{"rung"},
               {"time", true},
               {"GB/s", true},
               {"of limit", true},
               {"× the rung below", true},
               {"what it does", false, true}};
  for (size_t i = 0; i < rungs.size(); ++i) {
    const row& r = *rungs[i];
    const row* below = r.library ? nullptr : rung_below(rungs, i);
    const std::string factor = below == nullptr ? "" : factor_text(r.gb_s / below->gb_s);
    c.bars.push_back({r.variant, r.gb_s, gb_s_text(r.gb_s) + (factor.empty() ? "" : ", " + factor),
                      below == nullptr ? r.idea : format_text("{} {}; {}", factor, below->variant, r.idea),
                      r.library     ? 2
                      : r.own_order ? 1
                                    : 0});
    t.rows.push_back({r.variant, pages::cell(r.ms * 1e-3, pages::unit::seconds), pages::cell(r.gb_s),
                      percent(r.fraction), below == nullptr ? "" : format_text("{} ({})", factor, below->variant),
                      r.idea.empty() ? r.checked : r.idea});
  }
  p.add(c);
  p.add(t);
}

}  // namespace

void add_ladder(pages::page& p, const material& all) {
  std::vector<std::vector<const row*>> ladders;
  std::map<std::tuple<size_t, std::string, std::string>, size_t> at;  // by run, place and case
  for (const row& r : all.rows) {
    if (!r.ours()) continue;
    const auto [known, fresh] = at.emplace(std::tuple(r.run, r.place, r.name), ladders.size());
    if (fresh) ladders.emplace_back();
    std::vector<const row*>& rungs = ladders[known->second];
    const bool again =
        std::any_of(rungs.begin(), rungs.end(), [&](const row* other) { return other->variant == r.variant; });
    if (!again) rungs.push_back(&r);
  }
  std::erase_if(ladders, [](const auto& rungs) { return rungs.size() < 3; });
  if (ladders.empty()) return;
  p.section("The ladder",
            "Each rung beside the next, the simplest first: the factor behind a bar is its speed over that of the rung "
            "below in the same geometry, "
            "and that is what the lesson is worth on this machine. Names in _full fill the chip; their twins keep the "
            "launch shape that the "
            "step is taught with.");
  for (auto& rungs : ladders) {
    std::reverse(rungs.begin(), rungs.end());  // tables list the best first
    one_ladder(p, rungs);
  }
}

}  // namespace lockstep::tool::bench
