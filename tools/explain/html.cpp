// html.cpp - explain as one page (tools/pages): every step of the warp; steps that look the
// same are folded.
#include <algorithm>
#include <numeric>

#include "drawing.hpp"
#include "pages/page.hpp"
#include "pages/svg.hpp"

namespace lockstep::tool::explain {
namespace {

constexpr double column = 580, page_width = 1180;  // half of a wide page, and the whole

// With its name, and what it shows in words, for those who do not see it.
std::string svg_element(const drawing& d, const std::string& id, const std::string& title, const std::string& words) {
  const double legible = d.width > column ? 900 : 520;  // narrower columns scroll
  const double width = d.width + 6, height = d.height + 4;
  return format_text(
      "<svg class=\"x-picture{7}\" style=\"min-width:{6:.0f}px\" viewBox=\"-2 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\" aria-labelledby=\"{2}t {2}d\"><title id=\"{2}t\">{3}</title><desc "
      "id=\"{2}d\">{4}</desc>{5}</svg>",
      width, height, id, pages::escaped(title), pages::escaped(words), d.content, std::min(width, legible),
      d.width > column ? " x-broad" : "");
}

void add_step(pages::page& p, const view& v, size_t step, bool folded) {
  const std::string title = step_title(v, step);
  std::string words;
  drawing d = step_drawing(v, step, column);
  if (d.width > column) d = step_drawing(v, step, page_width);
  for (const request* r : v.steps[step]) words += (words.empty() ? "" : "; ") + caption(v, *r) + ": " + cost(v, *r);
  p.picture(title, "", svg_element(d, format_text("p{}", step), title, words), folded);
}

pages::table counts_of(const view& v) {
  pages::table t;
  t.columns = {{"access"},    {"requests", true},      {"counted"}, {"rule", false, true},
               {"predicted"}, {"verdict", false, true}};
  for (const summary& s : v.sums) {
    const verdict_text text = verdict_of(v, s);
    const auto tone = text.verdict.empty() || text.taught.empty() ? pages::tone::plain
                      : text.agrees                               ? pages::tone::good
                                                                  : pages::tone::bad;
    t.rows.push_back({name_of(v, s), format_text("{}", s.requests), text.counted, s.where->rule, text.taught,
                      pages::cell(text.verdict, tone)});
  }
  return t;
}

}  // namespace

std::string html_of(const view& v) {
  constexpr size_t most_folded = 64;  // of a page; the JSON has all
  pages::page p(format_text("{} / {}", v.what->op, v.what->variant), v.what->teaches);
  p.style(svg_style());
  p.style(".figures figure:has(.x-broad){grid-column:1/-1}");
  p.fact("Row of the ladder", v.what->row);
  for (const auto& [name, value] : facts(v)) p.fact(name, value);
  p.section("The whole grid, counted, beside the rule");
  p.add(counts_of(v));
  for (const std::string& note : v.t.notes) p.text(note);
  std::vector<size_t> all(v.steps.size());  // folded ones too
  std::iota(all.begin(), all.end(), size_t{0});
  p.section("Step by step", format_text("Block {}, warp {}. ", v.block, v.warp) + drawing_key(v, all));
  for (const size_t step : v.shown) add_step(p, v, step, false);
  if (!v.levels.empty()) {
    p.section("Threads at work", work_title(v) + ".");
    std::string words;
    for (const level& l : v.levels) words += name_of(l) + ": " + text_of(v, l) + "; ";
    p.picture("", "", svg_element(work_drawing(v), "pw", work_title(v), words));
  }
  for (const sketch& drawn : v.t.sketches) {
    std::string lines;
    for (const std::string& line : drawn.lines) lines += line + "\n";
    p.picture(drawn.title, "", format_text("<pre class=\"x-broad\">{}</pre>", pages::escaped(lines)));
  }
  if (v.shown.size() == v.steps.size()) return p.html();
  p.section("The other steps", not_drawn(v, "those above"));
  size_t drawn = 0;
  for (size_t step = 0; step < v.steps.size() && drawn < most_folded; ++step) {
    if (std::find(v.shown.begin(), v.shown.end(), step) != v.shown.end()) continue;
    add_step(p, v, step, true);
    ++drawn;
  }
  if (const size_t left = v.steps.size() - v.shown.size() - drawn; left > 0)
    p.text(format_text("{} further steps: lockstep explain --step N.", left));
  return p.html();
}

}  // namespace lockstep::tool::explain
