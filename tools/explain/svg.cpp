// svg.cpp - explain as a picture: a cell an element, the lane's number in it; thick frames
// around segments that are moved, and around banks' words that collide.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "drawing.hpp"

namespace lockstep::tool::explain {
namespace {

struct rgb {
  double r, g, b;
};
constexpr rgb few[] = {{0x56, 0xb4, 0xe9}, {0xe6, 0x9f, 0x00}, {0x00, 0x9e, 0x73},
                       {0xcc, 0x79, 0xa7}, {0xf0, 0xe4, 0x42}, {0x00, 0x72, 0xb2},
                       {0xd5, 0x5e, 0x00}, {0xbb, 0xbb, 0xbb}};  // Okabe and Ito
constexpr rgb ramp[] = {{0xff, 0xf3, 0xb0}, {0xf6, 0xc8, 0x5f}, {0x9f, 0xc9, 0xa5},
                        {0x4f, 0xa8, 0xb8}, {0x2a, 0x6f, 0xa8}, {0x1f, 0x3f, 0x7a}};

rgb color_of(int lane, int warp) {
  if (warp <= 8) return few[lane % 8];
  const double x = static_cast<double>(lane) / std::max(1, warp - 1) * (std::size(ramp) - 1);
  const auto k = std::min(static_cast<size_t>(x), std::size(ramp) - 2);
  const double f = x - static_cast<double>(k);
  const auto mix = [&](double a, double b) { return std::round(a + (b - a) * f); };
  return {mix(ramp[k].r, ramp[k + 1].r), mix(ramp[k].g, ramp[k + 1].g), mix(ramp[k].b, ramp[k + 1].b)};
}
std::string hex(const rgb& c) {
  return fmt::format("#{:02x}{:02x}{:02x}", static_cast<int>(c.r), static_cast<int>(c.g), static_cast<int>(c.b));
}
bool dark(const rgb& c) { return 0.299 * c.r + 0.587 * c.g + 0.114 * c.b < 130; }

std::string cell(double x, double y, double size, int lane, int warp, const std::string& tip) {
  std::string out;
  const bool several = lane == -2;
  const rgb c = lane >= 0 ? color_of(lane, warp) : rgb{0x99, 0x99, 0x99};
  out = fmt::format("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' class='{}'", x, y, size, size,
                    lane == -1 ? "cell empty" : "cell");
  if (lane != -1) out += fmt::format(" style='fill:{}'", hex(c));
  out += tip.empty() ? "/>" : "><title>" + tip + "</title></rect>";
  if (lane != -1)
    out += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='middle' style='font-size:{:.1f}px;fill:{}'>{}</text>",
                       x + size / 2, y + size * 0.72, size * (lane > 9 ? 0.6 : 0.66), dark(c) ? "#fff" : "#111",
                       several ? "*" : fmt::format("{}", lane));
  return out + "\n";
}

// The exchange of a shuffle: lanes above give, lanes below receive.
drawing lanes_panel(const view& v, const request& r) {
  const int warp = v.t.chip.warp;
  const double size = warp > 16 ? 22 : 28, gap = 54, left = 60;
  std::string out = fmt::format("<text x='0' y='14' class='caption'>{}</text>\n", caption(v, r));
  const double top = 26;
  out += fmt::format(
      "<text x='0' y='{:.1f}' class='label'>lane</text><text x='0' y='{:.1f}' class='label'>receives</text>\n",
      top + size * 0.7, top + size + gap + size * 0.7);
  for (const touch& t : r.lanes) {
    const double from = left + size * (static_cast<double>(t.first) + 0.5), to = left + size * (t.lane + 0.5);
    out += fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' class='{}'/>\n", from, top + size, to,
                       top + size + gap - 3, t.first == t.lane ? "own" : "moves");
  }
  for (int lane = 0; lane < warp; ++lane) out += cell(left + size * lane, top, size, lane, warp, "");
  for (const touch& t : r.lanes)
    out += cell(left + size * t.lane, top + size + gap, size, static_cast<int>(t.first), warp,
                fmt::format("lane {} receives the value of lane {}", t.lane, t.first));
  const double height = top + 2 * size + gap + 22;
  out += fmt::format("<text x='0' y='{:.1f}' class='good'>{}</text>\n", height - 4, cost(v, r));
  return {left + size * warp, height, out};
}

drawing panel(const view& v, const request& r) {
  const array& a = array_of(v, r);
  if (a.where == space::lanes) return lanes_panel(v, r);
  const window w = window_of(v, r, 40, 64);
  const double size = w.columns <= 8 ? 28 : w.columns <= 36 ? 15 : 12, label = 46;
  const bool global = a.where == space::global;
  const int64_t segment = v.t.chip.segment_bytes;
  std::set<int64_t> moved;
  for (const touch& t : r.lanes)
    for (int64_t k = t.first * a.bytes / segment; k * segment < (t.first + t.width) * a.bytes; ++k) moved.insert(k);
  std::string out = fmt::format("<text x='0' y='14' class='caption'>{}</text>\n", caption(v, r)), frames;
  double y = 26;
  const std::string head = !global              ? fmt::format("bank 0 ... {}", v.t.chip.banks - 1)
                           : w.first_column > 0 ? fmt::format("column {} ...", w.first_column)
                                                : "";
  if (!head.empty())
    out += fmt::format("<text x='{:.1f}' y='{:.1f}' class='label'>{}</text>\n", label, y + 6, head), y += 12;
  for (const int64_t row : w.rows) {
    if (row < 0) {
      out += fmt::format("<text x='{:.1f}' y='{:.1f}' class='label'>...</text>\n", label, y + 9);
      y += 15;
      continue;
    }
    const int64_t number = v.how.op == "transpose" && global ? row : row * a.columns;
    out += fmt::format("<text x='{:.1f}' y='{:.1f}' class='label' text-anchor='end'>{}</text>\n", label - 6,
                       y + size * 0.75, number);
    for (int64_t c = 0; c < w.columns; ++c) {
      const int64_t e = row * a.columns + w.first_column + c;
      if (e >= a.elements) break;
      const int lane = lane_at(r, e);
      out += cell(label + size * static_cast<double>(c), y, size, lane, v.t.chip.warp,
                  lane >= 0    ? fmt::format("{}[{}], lane {}", a.name, e, lane)
                  : lane == -2 ? fmt::format("{}[{}], several lanes", a.name, e)
                               : "");
      // A frame from here to where the segment, or the row, ends.
      const int64_t per = std::max<int64_t>(1, segment / a.bytes);
      if (!global || (c > 0 && e % per != 0)) continue;
      const int64_t end = std::min({w.columns - c, per - e % per, a.elements - e});
      const bool is_moved = moved.count(e * a.bytes / segment) != 0;
      frames += fmt::format("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' class='{}'/>\n",
                            label + size * static_cast<double>(c), y, size * static_cast<double>(end), size,
                            is_moved ? "segment moved" : "segment");
    }
    y += size;
  }
  if (w.rows_left_out > 0)
    out += fmt::format("<text x='{:.1f}' y='{:.1f}' class='label'>{} rows more</text>\n", label + 20, y - 6,
                       w.rows_left_out);
  y += 18;
  out += frames + fmt::format("<text x='0' y='{:.1f}' class='{}'>{}{}</text>\n", y, wasteful(v, r) ? "bad" : "good",
                              wasteful(v, r) ? "\u2717 " : "\u2713 ", cost(v, r));
  const double words = 7.2 * static_cast<double>(std::max(caption(v, r).size(), cost(v, r).size() + 2));
  return {std::max(label + size * static_cast<double>(w.columns), words), y + 6, out};
}

}  // namespace

drawing step_drawing(const view& v, size_t step, double width) {
  drawing all{0, 0, ""};
  double x = 0, y = 0, tallest = 0;
  for (const request* r : v.steps[step]) {
    const drawing d = panel(v, *r);
    if (x > 0 && x + d.width > width) x = 0, y += tallest + 16, tallest = 0;
    all.content += fmt::format("<g transform='translate({:.1f},{:.1f})'>\n{}</g>\n", x, y, d.content);
    tallest = std::max(tallest, d.height);
    all.width = std::max(all.width, x + d.width);
    x += d.width + 32;
  }
  all.height = y + tallest;
  return all;
}

const char* svg_style() {
  return "text{font-family:system-ui,'DejaVu Sans',Arial,sans-serif;font-size:13px;fill:#1a1a1a}"
         ".title{font-size:20px;font-weight:bold}.step{font-size:15px;font-weight:bold}.caption{font-weight:bold}"
         ".label{font-size:11px;fill:#555}.good{fill:#00664a}.bad{fill:#a33a00;font-weight:bold}"
         ".back{fill:#fff}.cell{stroke:#fff;stroke-width:.5}.empty{fill:#e9e9ec}"
         ".segment{fill:none;stroke:#9a9aa2;stroke-width:.6}.moved{stroke:#111;stroke-width:2.2}"
         ".moves{stroke:#333;stroke-width:1.2}.own{stroke:#999;stroke-width:1;stroke-dasharray:3 3}"
         "@media (prefers-color-scheme:dark){text{fill:#e8e8ea}.label{fill:#aaa}.good{fill:#5fd0a5}.bad{fill:#ff9b66}"
         ".back{fill:#16171a}.cell{stroke:#16171a}.empty{fill:#2c2e33}.segment{stroke:#5a5c63}.moved{stroke:#fff}"
         ".moves{stroke:#ccc}.own{stroke:#777}}";
}

std::vector<std::string> broken(const std::string& text, size_t width) {
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

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '\'' ? "&#39;" : std::string(1, c);
  return out;
}

std::string svg_of(const view& v) {
  constexpr double margin = 24, most = 1200;
  std::string body;
  double y = margin + 16, width = 760;
  const auto say = [&](const std::string& text, const char* kind, double step) {
    body += fmt::format("<text x='{:.1f}' y='{:.1f}' class='{}'>{}</text>\n", margin, y, kind, escaped(text));
    y += step;
  };
  say(fmt::format("{} / {}  ({})", v.what->op, v.what->variant, v.what->row), "title", 24);
  for (const std::string& line : broken(v.what->teaches, 110)) say(line, "text", 18);
  for (const std::string& line : broken(headline(v) + fmt::format(". Block {}, warp {}.", v.block, v.warp), 110))
    say(line, "label", 15);
  y += 12;
  for (const size_t step : v.shown) {
    say(step_title(v, step), "step", 12);
    const drawing d = step_drawing(v, step, most);
    body += fmt::format("<g transform='translate({:.1f},{:.1f})'>\n{}</g>\n", margin, y, d.content);
    width = std::max(width, d.width);
    y += d.height + 34;
  }
  say("The whole grid, counted, beside the rule", "step", 20);
  for (const summary& s : v.sums) {
    const verdict_text text = verdict_of(v, s);
    say(fmt::format("{}: {} request{}; {}", name_of(v, s), s.requests, s.requests == 1 ? "" : "s", text.counted),
        "caption", 17);
    if (!s.where->rule.empty()) say("rule: " + s.where->rule, "text", 17);
    if (!text.verdict.empty())
      for (const std::string& line :
           broken((text.taught.empty() ? "" : "predicted " + text.taught + ": ") + text.verdict, 110))
        say(line, text.agrees ? "good" : "bad", 17);
    y += 6;
  }
  for (const std::string& note : v.t.notes)
    for (const std::string& line : broken(note, 110)) say(line, "text", 17);
  width += 2 * margin;
  y += margin - 12;
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {:.0f} {:.0f}' width='{:.0f}' height='{:.0f}' role='img'>\n"
      "<title>lockstep explain {} {}</title>\n<style>{}</style>\n<rect class='back' width='100%' "
      "height='100%'/>\n{}</svg>\n",
      width, y, width, y, v.what->op, v.what->variant, svg_style(), body);
}

}  // namespace lockstep::tool::explain
