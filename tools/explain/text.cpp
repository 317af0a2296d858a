// text.cpp - explain on a terminal: one character a lane, [ ] around the segments moved.
#include <algorithm>

#include "cli.hpp"
#include "view.hpp"

namespace lockstep::tool::explain {
namespace {

using lines = std::vector<std::string>;

// One array and the lanes that touch it. Brackets enclose segments that are moved.
lines panel(const view& v, const request& r) {
  const array& a = array_of(v, r);
  if (a.where == space::lanes) {
    std::string lanes, from(static_cast<size_t>(v.t.chip.warp), ' ');
    for (int lane = 0; lane < v.t.chip.warp; ++lane) lanes += lane_text(lane);
    for (const touch& t : r.lanes) from[static_cast<size_t>(t.lane)] = lane_text(static_cast<int>(t.first))[0];
    return {caption(v, r), " lane " + lanes, " from " + from, "  " + cost(v, r)};
  }
  const window w = window_of(v, r, 36, 72);
  const int64_t segment = v.t.chip.segment_bytes;
  const bool global = a.where == space::global;
  const auto moved = [&](int64_t number) {
    return std::any_of(r.lanes.begin(), r.lanes.end(), [&](const touch& t) {
      return t.first * a.bytes / segment <= number && ((t.first + t.width) * a.bytes - 1) / segment >= number;
    });
  };
  lines out = {caption(v, r)};
  if (w.first_column > 0) out.push_back(format_text("      from column {}", w.first_column));
  for (const int64_t row : w.rows) {
    if (row < 0) {
      out.push_back("      ...");
      continue;
    }
    std::string line = format_text("{:>5} ", row * (v.how.op == "transpose" && global ? 1 : a.columns));
    int64_t before = -1;  // the segment of the cell before, if it is moved
    for (int64_t c = 0; c <= w.columns; ++c) {
      const int64_t e = row * a.columns + w.first_column + c;
      const bool inside = c < w.columns && e < a.elements;
      if (global) {
        const int64_t here = inside ? e * a.bytes / segment : -1;
        const int64_t now = here >= 0 && moved(here) ? here : -1;
        const bool border = c == 0 || !inside || e % std::max<int64_t>(1, segment / a.bytes) == 0 || now != before;
        if (border) line += now >= 0 && before >= 0 && now != before ? "|" : now >= 0 ? "[" : before >= 0 ? "]" : " ";
        before = now;
      }
      if (!inside) break;
      line += lane_text(lane_at(r, e));
    }
    out.push_back(line);
  }
  if (w.rows_left_out > 0) out.back() += format_text("  {} rows more", w.rows_left_out);
  out.push_back("  " + cost(v, r));
  return out;
}

// Threads from left to right, several a character: # all of them at work, + some, . none.
std::string bar(const level& l) {
  const size_t many = (l.works.size() + 31) / 32;
  std::string out;
  for (size_t first = 0; first < l.works.size(); first += many) {
    const size_t end = std::min(first + many, l.works.size());
    const auto at = static_cast<size_t>(std::count(l.works.begin() + first, l.works.begin() + end, true));
    out += at == end - first ? '#' : at > 0 ? '+' : '.';
  }
  return out;
}

size_t width_of(const lines& block) {
  size_t width = 0;
  for (const std::string& line : block) width = std::max(width, line.size());
  return width;
}

std::string wrapped(const std::string& text, size_t width, const std::string& indent) {
  std::string out, line = indent, word;
  const auto flush_word = [&] {
    if (word.empty()) return;
    if (line.size() > indent.size() && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + word;
    word.clear();
  };
  for (const char c : text)
    if (c == ' ')
      flush_word();
    else
      word += c;
  flush_word();
  return out + line + "\n";
}

}  // namespace

std::string text_of(const view& v, int columns) {
  const style s = stdout_style();
  const auto width = static_cast<size_t>(columns);
  std::string out = format_text("{}{} / {}{}  ({})\n", s.bold, v.what->op, v.what->variant, s.off, v.what->row);
  out += wrapped(v.what->teaches, width, "");
  out += wrapped(headline(v), width, "") + "\n";
  for (const sketch& drawn : v.t.sketches) {
    out += format_text("{}{}{}", s.bold, wrapped(drawn.title, width, ""), s.off);
    for (const std::string& line : drawn.lines) out += line + "\n";
    out += "\n";
  }
  out += wrapped(
      format_text(
          "Block {}, warp {}. A character is the lane that touches an element: 0-9, a-v; * several lanes; . none. ",
          v.block, v.warp) +
          key_of(v, v.shown, "[ ]"),
      width, "");
  for (const size_t step : v.shown) {
    out += format_text("\n{}{}{}\n", s.bold, step_title(v, step), s.off);
    std::vector<lines> side_by_side;
    std::vector<bool> bad;
    size_t used = 0;
    const auto emit = [&] {
      size_t height = 0;
      for (const lines& block : side_by_side) height = std::max(height, block.size());
      for (size_t k = 0; k < height; ++k) {
        std::string line;
        size_t at = 0, visible = 0;
        for (size_t b = 0; b < side_by_side.size(); ++b) {
          const lines& block = side_by_side[b];
          line += std::string(at - visible, ' ');
          visible = at;
          // The last line is the cost: below the taller panels too, so that costs stand in one line.
          const bool last = k + 1 == height;
          const std::string& text = last ? block.back() : k + 1 < block.size() ? block[k] : std::string();
          line += last ? (bad[b] ? s.bad : s.good) + text + s.off : text;
          visible += text.size();
          at += width_of(block) + 3;
        }
        out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      }
      side_by_side.clear(), bad.clear(), used = 0;
    };
    for (const request* r : v.steps[step]) {
      lines block = panel(v, *r);
      if (used > 0 && used + width_of(block) > width) emit();
      used += width_of(block) + 3;
      bad.push_back(wasteful(v, *r));
      side_by_side.push_back(std::move(block));
    }
    emit();
  }
  if (const std::string rest = other_steps(v); !rest.empty())
    out += format_text("\n{}{}{}", s.dim, wrapped(rest, width, ""), s.off);
  if (!v.levels.empty()) {
    out += format_text("\n{}{}{}\n", s.bold, work_title(v), s.off);
    for (const level& l : v.levels) out += format_text("  {:<16} {}  {}\n", name_of(l), bar(l), text_of(v, l));
  }
  out += format_text("\n{}The whole grid, counted, beside the rule{}\n", s.bold, s.off);
  const std::string indent(21, ' ');
  for (const summary& sum : v.sums) {
    const verdict_text text = verdict_of(v, sum);
    out += format_text("  {:<18} {} request{}, {:.3g} lane{} each: {}\n", name_of(v, sum), sum.requests,
                       sum.requests == 1 ? "" : "s", static_cast<double>(sum.lanes) / static_cast<double>(sum.requests),
                       sum.lanes == sum.requests ? "" : "s", text.counted);
    if (!sum.where->rule.empty()) out += wrapped("rule: " + sum.where->rule, width, indent);
    if (!text.verdict.empty())
      out += format_text(
          "{}{}{}", text.agrees ? s.good : s.bad,
          wrapped((text.taught.empty() ? "" : "predicted " + text.taught + ": ") + text.verdict, width, indent), s.off);
  }
  for (const std::string& note : v.t.notes) out += "\n" + wrapped(note, width, "");
  return out;
}

}  // namespace lockstep::tool::explain
