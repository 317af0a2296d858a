// drawing.cpp - one cell for each element with the lane's number in it, and thick frames
// around the segments that are moved.
#include "drawing.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "pages/svg.hpp"

namespace lockstep::tool::explain {
namespace {

using pages::escaped;

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
  return format_text("#{:02x}{:02x}{:02x}", static_cast<int>(c.r), static_cast<int>(c.g), static_cast<int>(c.b));
}
bool dark(const rgb& c) { return 0.299 * c.r + 0.587 * c.g + 0.114 * c.b < 130; }

std::string say(double x, double y, const char* style, const std::string& text, const char* anchor = "start") {
  return format_text("<text x='{:.1f}' y='{:.1f}' class='{}' text-anchor='{}'>{}</text>\n", x, y, style, anchor,
                     escaped(text));
}
// Room for text of 13 px; bold is a tenth wider.
double room_for(const std::string& text, bool bold = false) { return pages::text_width(text, bold ? 14.3 : 13); }

// A box of one lane (-1: nobody, -2: several) over elements that it touches at once.
std::string cell(double x, double y, double width, double height, int lane, int warp, const std::string& tip) {
  std::string out = format_text("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' class='x-cell{}'", x, y,
                                width, height, lane == -1 ? " x-empty" : "");
  const rgb c = lane >= 0 ? color_of(lane, warp) : rgb{0x99, 0x99, 0x99};
  if (lane != -1) out += format_text(" style='fill:{}'", hex(c));
  out += tip.empty() ? "/>" : "><title>" + escaped(tip) + "</title></rect>";
  if (lane != -1)
    out += format_text(
        "<text x='{:.1f}' y='{:.1f}' text-anchor='middle' class='x-lane' style='font-size:{:.1f}px;"
        "fill:{}'>{}</text>",
        x + width / 2, y + height * 0.72, std::min(height, 1.1 * width) * (lane > 9 ? 0.6 : 0.66),
        dark(c) ? "#fff" : "#111", lane == -2 ? "*" : format_text("{}", lane));
  return out + "\n";
}

// The exchange of a shuffle: lanes above give, lanes below receive.
drawing lanes_panel(const view& v, const request& r) {
  const int warp = v.t.chip.warp;
  const double size = warp > 16 ? 22 : 28, gap = 54, left = 60, top = 26;
  std::string out = say(0, 14, "x-caption", caption(v, r));
  out += say(0, top + size * 0.7, "x-label", "lane") + say(0, top + size * 1.7 + gap, "x-label", "receives");
  for (const touch& t : r.lanes) {
    const double from = left + size * (static_cast<double>(t.first) + 0.5), to = left + size * (t.lane + 0.5);
    out += format_text("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' class='{}'/>\n", from, top + size, to,
                       top + size + gap - 3, t.first == t.lane ? "x-own" : "x-moves");
  }
  for (int lane = 0; lane < warp; ++lane) out += cell(left + size * lane, top, size, size, lane, warp, "");
  if (v.how.op == "shuffle")  // segments of the shuffle's width
    for (int lane = v.how.width; lane < warp; lane += v.how.width)
      out += format_text("<line x1='{0:.1f}' y1='{1:.1f}' x2='{0:.1f}' y2='{2:.1f}' class='x-apart'/>\n",
                         left + size * lane, top - 5, top + 2 * size + gap + 5);
  for (const touch& t : r.lanes)
    out += cell(left + size * t.lane, top + size + gap, size, size, static_cast<int>(t.first), warp,
                format_text("lane {} receives the value of lane {}", t.lane, t.first));
  const double height = top + 2 * size + gap + 22;
  out += say(0, height - 4, "x-good", cost(v, r));
  return {std::max({left + size * warp, room_for(caption(v, r)), room_for(cost(v, r))}), height, out};
}

std::string tip_of(const array& a, int64_t e, int64_t many, int lane) {
  if (lane == -1) return "";
  const std::string which =
      many > 1 ? format_text("{}[{}..{}]", a.name, e, e + many - 1) : format_text("{}[{}]", a.name, e);
  return lane == -2 ? which + ", several lanes" : format_text("{}, lane {}", which, lane);
}

drawing panel_drawing(const view& v, const request& r) {
  const array& a = array_of(v, r);
  if (a.where == space::lanes) return lanes_panel(v, r);
  const window w = window_of(v, r, 40, 64);
  const double size = w.columns <= 8 ? (w.rows.size() > 8 ? 18 : 28) : w.columns <= 36 ? 15 : 12, label = 46;
  const double tall = std::max(size, 15.0);
  const bool global = a.where == space::global;
  const int64_t segment = v.t.chip.segment_bytes;
  std::set<int64_t> moved;
  for (const touch& t : r.lanes)
    for (int64_t k = t.first * a.bytes / segment; k * segment < (t.first + t.width) * a.bytes; ++k) moved.insert(k);
  std::string out = say(0, 14, "x-caption", caption(v, r)), frames, moved_frames;
  double y = 26;
  if (a.where == space::shared) {  // over each column its (first) bank
    out += say(label - 6, y + 5, "x-label", "bank", "end");
    for (int64_t c = 0; c < w.columns; ++c)
      out += format_text(
          "<text x='{:.1f}' y='{:.1f}' class='x-label' text-anchor='middle' style='font-size:{}px'>{}"
          "</text>\n",
          label + size * (static_cast<double>(c) + 0.5), y + 5, size < 18 ? 8.5 : 11,
          (w.first_column + c) * std::max(4, a.bytes) / 4);
    y += 11;
  } else if (w.first_column > 0) {
    out += say(label, y + 6, "x-label", format_text("column {} ...", w.first_column)), y += 12;
  }
  for (const int64_t row : w.rows) {
    if (row < 0) {
      out += say(label, y + 7, "x-label", "...");
      y += 12;
      continue;
    }
    const int64_t number = v.how.op == "transpose" && global ? row : row * a.columns;
    out += say(label - 6, y + tall / 2 + 4, "x-label", format_text("{}", number), "end");
    const auto element = [&](int64_t c) { return row * a.columns + w.first_column + c; };
    for (int64_t c = 0, run = 1; c < w.columns && element(c) < a.elements; c += run) {
      const int64_t e = element(c);
      const int lane = lane_at(r, e);
      // What a lane touches at once is one box.
      run = 1;
      while (lane >= 0 && c + run < w.columns && lane_at(r, e + run) == lane) ++run;
      out += cell(label + size * static_cast<double>(c), y, size * static_cast<double>(run), tall, lane, v.t.chip.warp,
                  tip_of(a, e, run, lane));
    }
    // A frame from here to where the segment, or the row, ends.
    const int64_t per = std::max<int64_t>(1, segment / a.bytes);
    for (int64_t c = 0, many = 1; global && c < w.columns && element(c) < a.elements; c += many) {
      const int64_t e = element(c);
      many = std::min({w.columns - c, per - e % per, a.elements - e});
      const bool moves = moved.count(e * a.bytes / segment) != 0;
      (moves ? moved_frames : frames) += format_text(
          "<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' class='x-segment{}'/>\n",
          label + size * static_cast<double>(c), y, size * static_cast<double>(many), tall, moves ? " x-moved" : "");
    }
    y += tall;
  }
  if (w.rows_left_out > 0) out += say(label + 20, y - 6, "x-label", format_text("{} rows more", w.rows_left_out));
  y += 18;
  const bool bad = wasteful(v, r);
  const std::string price = (bad ? "\u2717 " : "\u2713 ") + cost(v, r);
  out += frames + moved_frames + say(0, y, bad ? "x-bad" : "x-good", price);
  return {std::max({label + size * static_cast<double>(w.columns), room_for(caption(v, r)), room_for(price, bad)}),
          y + 6, out};
}

}  // namespace

drawing step_drawing(const view& v, size_t step, double width) {
  drawing all{0, 0, ""};
  double x = 0, y = 0, tallest = 0;
  for (const request* r : v.steps[step]) {
    const drawing d = panel_drawing(v, *r);
    if (x > 0 && x + d.width > width) x = 0, y += tallest + 16, tallest = 0;
    all.content += format_text("<g transform='translate({:.1f},{:.1f})'>\n{}</g>\n", x, y, d.content);
    tallest = std::max(tallest, d.height);
    all.width = std::max(all.width, x + d.width);
    x += d.width + 32;
  }
  all.height = y + tallest;
  return all;
}

drawing work_drawing(const view& v) {
  const launch& grid = v.t.launches.front();
  const int threads = grid.block_x * grid.block_y, warp = v.t.chip.warp, warps = (threads + warp - 1) / warp;
  const double gap = warps > 1 ? 4 : 0, size = std::clamp((560 - gap * warps) / threads, 1.0, 14.0), left = 110;
  const auto x_of = [&](int thread) { return left + size * thread + gap * (thread / warp); };
  drawing d{0, 0, ""};
  double y = 0;
  for (const level& now : v.levels) {
    d.content += say(left - 10, y + 11, "x-label", name_of(now), "end");
    for (int t = 0, end; t < threads; t = end) {  // a box for neighbours of a warp that do alike
      end = t + 1;
      while (end < threads && end % warp != 0 &&
             now.works[static_cast<size_t>(end)] == now.works[static_cast<size_t>(t)])
        ++end;
      d.content += format_text("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='13' class='{}'/>\n", x_of(t), y,
                               size * (end - t), now.works[static_cast<size_t>(t)] ? "x-work" : "x-empty");
    }
    const std::string text = text_of(v, now);
    d.content += say(x_of(threads - 1) + size + 14, y + 11, "x-text", text);
    d.width = std::max(d.width, x_of(threads - 1) + size + 14 + room_for(text));
    y += 19;
  }
  d.height = y;
  return d;
}

std::string drawing_key(const view& v, const std::vector<size_t>& steps) {
  return "A number is the lane that touches the element, a star several lanes. " + key_of(v, steps, "Thick frames");
}

const char* svg_style() {
  return ".x-picture{max-width:100%;height:auto}.x-title,.x-step,.x-caption,.x-text,.x-label,.x-good,.x-bad,.x-lane{"
         "font-family:system-ui,'DejaVu Sans',"
         "Arial,sans-serif;font-size:13px;fill:#1a1a1a}"
         ".x-title{font-size:20px;font-weight:bold}.x-step{font-size:15px;font-weight:bold}.x-caption{font-weight:bold}"
         ".x-label{font-size:11px;fill:#555}.x-good{fill:#00664a}.x-bad{fill:#a33a00;font-weight:bold}"
         ".x-back{fill:#fff}.x-cell{stroke:#fff;stroke-width:.5}.x-empty{fill:#e4e4e8}.x-work{fill:#0072b2}"
         ".x-segment{fill:none;stroke:#9a9aa2;stroke-width:.6}.x-moved{stroke:#111;stroke-width:2.2}"
         ".x-apart{stroke:#a33a00;stroke-width:1.6}.x-moves{stroke:#333;stroke-width:1.2}.x-own{stroke:#888;stroke-"
         "width:1;stroke-dasharray:3 3}"
         "@media (prefers-color-scheme:dark){.x-title,.x-step,.x-caption,.x-text{fill:#e8e8ea}.x-label{fill:#aaa}"
         ".x-good{fill:#5fd0a5}.x-bad{fill:#ff9b66}.x-back{fill:#16171a}.x-cell{stroke:#16171a}.x-empty{fill:#2c2e33}"
         ".x-work{fill:#5ab4f0}.x-segment{stroke:#6a6c73}.x-moved{stroke:#fff}.x-moves{stroke:#ccc}.x-own{stroke:#888}"
         ".x-apart{stroke:#ff9b66}"
         "}";
}

}  // namespace lockstep::tool::explain
