// svg.cpp - explain as one picture: steps in reading order, as many beside each other as
// fit, then what the whole grid does beside the rule.
#include "pages/svg.hpp"

#include <algorithm>

#include "drawing.hpp"

namespace lockstep::tool::explain {
namespace {

constexpr double margin = 24, most = 1340, least = 760;

// Into lines of a width, for text of so many pixels' height.
std::vector<std::string> broken(const std::string& text, double pixels, double size) {
  const auto width = static_cast<size_t>(pixels / (0.54 * size));
  std::vector<std::string> out;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = std::min(text.size(), at + width);
    if (end < text.size())
      if (const size_t space = text.rfind(' ', end); space != std::string::npos && space > at) end = space;
    out.push_back(text.substr(at, end - at));
    at = end + (end < text.size() && text[end] == ' ');
  }
  return out;
}

const char* const label = "x-label";

// Text and drawings, from above to below.
struct sheet {
  double width, y = margin + 16;
  std::string body = {};

  void say(const std::string& text, const char* style, double step = 17) {
    for (const std::string& line : broken(text, width, style == label ? 11 : 13)) {
      body += format_text("<text x='{:.1f}' y='{:.1f}' class='{}'>{}</text>\n", margin, y, style, pages::escaped(line));
      y += step;
    }
  }
  void draw(double x, const drawing& d) {
    body += format_text("<g transform='translate({:.1f},{:.1f})'>\n{}</g>\n", margin + x, y, d.content);
  }
};

// A step under its title.
drawing titled(const view& v, size_t step) {
  drawing d = step_drawing(v, step, most);
  const std::string title = step_title(v, step);
  d.content = format_text("<text x='0' y='14' class='x-step'>{}</text>\n<g transform='translate(0,24)'>\n{}</g>\n",
                          pages::escaped(title), d.content);
  d.width = std::max(d.width, pages::text_width(title, 15));
  d.height += 24;
  return d;
}

}  // namespace

std::string svg_of(const view& v) {
  std::vector<std::vector<drawing>> lines(1);
  double used = 0, widest = least;
  for (const size_t step : v.shown) {
    drawing d = titled(v, step);
    if (used > 0 && used + d.width > most) lines.emplace_back(), used = 0;
    used += d.width + 48;
    widest = std::max(widest, used - 48);
    lines.back().push_back(std::move(d));
  }
  const drawing work = work_drawing(v);
  if (!v.levels.empty()) widest = std::max(widest, work.width);

  sheet all{widest};
  all.say(format_text("{} / {}  ({})", v.what->op, v.what->variant, v.what->row), "x-title", 24);
  all.say(v.what->teaches, "x-text", 18);
  all.say(headline(v) + format_text(". Block {}, warp {}. ", v.block, v.warp) + drawing_key(v, v.shown), label, 15);
  all.y += 2;
  for (const auto& line : lines) {
    double x = 0, tallest = 0;
    for (const drawing& d : line) {
      all.draw(x, d);
      x += d.width + 48;
      tallest = std::max(tallest, d.height);
    }
    all.y += tallest + 22;
  }
  all.y += 12;
  if (const std::string rest = other_steps(v); !rest.empty()) {
    all.say(rest, label, 15);
    all.y += 14;
  }
  if (!v.levels.empty()) {
    all.say(work_title(v), "x-step", 12);
    all.draw(0, work);
    all.y += work.height + 28;
  }
  all.say("The whole grid, counted, beside the rule", "x-step", 20);
  for (const summary& s : v.sums) {
    const verdict_text text = verdict_of(v, s);
    all.say(format_text("{}: {} request{}; {}", name_of(v, s), s.requests, s.requests == 1 ? "" : "s", text.counted),
            "x-caption");
    if (!s.where->rule.empty()) all.say("rule: " + s.where->rule, "x-text");
    if (!text.taught.empty())
      all.say((text.agrees ? "\u2713 " : "\u2717 ") + ("predicted " + text.taught + ": ") + text.verdict,
              text.agrees ? "x-good" : "x-bad");
    else if (!text.verdict.empty())
      all.say(text.verdict, label);
    all.y += 6;
  }
  for (const std::string& note : v.t.notes) all.say(note, "x-text");
  const double width = widest + 2 * margin, height = all.y + margin - 12;
  return format_text(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {:.0f} {:.0f}' width='{:.0f}' height='{:.0f}' role='img' "
      "aria-labelledby='t'>\n"
      "<title id='t'>lockstep explain {} {}</title>\n<style>{}</style>\n<rect class='x-back' width='100%' "
      "height='100%'/>\n{}</svg>\n",
      width, height, width, height, v.what->op, v.what->variant, svg_style(), all.body);
}

}  // namespace lockstep::tool::explain
