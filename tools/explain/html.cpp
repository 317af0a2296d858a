// html.cpp - explain as one page: every step of the warp, no network, light and dark.
#include <algorithm>

#include "drawing.hpp"

namespace lockstep::tool::explain {

std::string html_of(const view& v) {
  constexpr size_t most_steps = 64;  // of a page; the JSON has all
  const std::string name = fmt::format("{} / {}", v.what->op, v.what->variant);
  std::string out = fmt::format(
      "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
      "content='width=device-width'>\n"
      "<title>lockstep explain: {}</title>\n<style>\n"
      ":root{{color-scheme:light dark}}body{{margin:2rem auto;max-width:78rem;padding:0 1rem;font:16px/1.5 "
      "system-ui,'DejaVu Sans',sans-serif;"
      "background:#fff;color:#1a1a1a}}table{{border-collapse:collapse;width:100%}}th,td{{text-align:left;vertical-"
      "align:top;padding:.4rem .7rem;"
      "border-bottom:1px solid "
      "#8884}}.sizes{{color:#666}}.yes{{color:#00664a}}.no{{color:#a33a00;font-weight:bold}}figure{{margin:1rem "
      "0;overflow-x:auto}}"
      "summary{{cursor:pointer;font-weight:bold}}@media "
      "(prefers-color-scheme:dark){{body{{background:#16171a;color:#e8e8ea}}.sizes{{color:#aaa}}"
      ".yes{{color:#5fd0a5}}.no{{color:#ff9b66}}}}{}\n</style></head><body>\n<h1>{} "
      "<small>({})</small></h1>\n<p>{}</p>\n<p class='sizes'>{}. Block {}, warp {}.</p>\n",
      name, svg_style(), name, v.what->row, escaped(v.what->teaches), escaped(headline(v)), v.block, v.warp);
  out +=
      "<p>A number is the lane that touches the element, a star several lanes. Thick frames are segments that are "
      "moved. "
      "Shared memory is drawn with a column a bank: lanes of one column wait for each other.</p>\n";
  out +=
      "<h2>The whole grid, counted, beside the "
      "rule</h2>\n<table><tr><th>access</th><th>requests</th><th>counted</th><th>rule</th><th>predicted</"
      "th><th>verdict</th></tr>\n";
  for (const summary& s : v.sums) {
    const verdict_text text = verdict_of(v, s);
    out += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class='{}'>{} {}</td></tr>\n",
                       name_of(v, s), s.requests, text.counted, escaped(s.where->rule), text.taught,
                       text.agrees ? "yes" : "no",
                       text.verdict.empty() ? ""
                       : text.agrees        ? "\u2713"
                                            : "\u2717",
                       escaped(text.verdict));
  }
  out += "</table>\n";
  for (const std::string& note : v.t.notes) out += fmt::format("<p>{}</p>\n", escaped(note));
  out += "<h2>Step by step</h2>\n";
  for (size_t step = 0; step < v.steps.size() && step < most_steps; ++step) {
    const bool open = std::find(v.shown.begin(), v.shown.end(), step) != v.shown.end();
    const drawing d = step_drawing(v, step, 1180);
    out += fmt::format(
        "<details{}><summary>{}</summary><figure><svg viewBox='-2 0 {:.0f} {:.0f}' width='{:.0f}' height='{:.0f}' "
        "role='img'>{}</svg></figure></details>\n",
        open ? " open" : "", escaped(step_title(v, step)), d.width + 6, d.height + 4, d.width + 6, d.height + 4,
        d.content);
  }
  if (v.steps.size() > most_steps)
    out += fmt::format("<p>{} further steps: lockstep explain --step N.</p>\n", v.steps.size() - most_steps);
  return out + "</body></html>\n";
}

}  // namespace lockstep::tool::explain
