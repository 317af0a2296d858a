// picture.cpp - the picture of the memory hierarchy: each memory in the box of the unit that
// holds it, those nearer to the lanes above, with the measured values.

#include "../pages/svg.hpp"
#include "probe.hpp"
#include "text.hpp"

namespace lockstep::tool::probe {
namespace {

struct box {
  double x, y, width, height;
};

std::string frame(const box& b, const char* style) {
  return format_text("<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"6\" class=\"{}\"/>", b.x,
                     b.y, b.width, b.height, style);
}
std::string say(double x, double y, const char* style, const std::string& text) {
  return pages::svg_text(x, y, "start", style, text);
}

std::string rounded(double v) { return v >= 100 ? format_text("{:.0f}", v) : format_text("{:.3g}", v); }

// A memory in its box; `holds`: the text in place of its name.
std::string memory_in(const box& b, const memory& m, const std::string& holds) {
  std::string out = frame(b, "x-memory"), speed;
  if (!std::isnan(m.latency_cycles)) speed = rounded(m.latency_cycles) + " cycles";
  if (!std::isnan(m.gb_s)) speed += (speed.empty() ? "" : ", ") + rounded(m.gb_s) + " GB/s";
  double y = b.y + 20;
  out += say(b.x + 12, y, "x-name", holds);
  out += say(b.x + 12, y += 18, "x-said", "seen by: " + m.seen_by);
  out += say(b.x + 12, y += 17, "x-said", "lives: " + m.lives);
  if (!m.size.empty()) out += say(b.x + 12, y += 17, "x-said", m.size);
  if (!speed.empty()) out += say(b.x + 12, y + 18, "x-speed", speed);
  return out;
}

}  // namespace

const char* picture_style() {
  return ".x-place{fill:none;stroke:var(--soft);stroke-dasharray:5 4}.x-memory{fill:var(--ground);stroke:var(--ink)}"
         ".x-where{fill:var(--soft);font-size:13px}.x-name{fill:var(--ink);font-size:15px;font-weight:bold}"
         ".x-said{fill:var(--soft);font-size:12.5px}.x-speed{fill:var(--ink);font-size:13.5px}"
         ".x-way{stroke:var(--soft);stroke-width:2}";
}

std::string picture_svg(const std::vector<memory>& all) {
  const auto find = [&](const char* name) -> const memory& {
    for (const memory& m : all)
      if (m.name == name) return m;
    static const memory none{"", "", "", "", "", "", NAN, NAN};
    return none;
  };
  constexpr double width = 860;
  std::string out;
  out += frame({4, 4, width - 8, 322}, "x-place") + say(16, 24, "x-where", "on the chip");
  out += frame({20, 34, width - 40, 164}, "x-place") + say(32, 54, "x-where", "in each multiprocessor");
  out += memory_in({36, 64, 250, 122}, find("register"), "Registers");
  out += memory_in({302, 64, 250, 122}, find("shared"), "Shared memory");
  out += memory_in({568, 64, 256, 122}, find("global, in L1"), "L1: global, local, texture");
  out +=
      say(314, 178, "x-said", "the array that L1 lies in too") + say(580, 178, "x-said", "what shared memory leaves");
  out += memory_in({36, 210, 788, 104}, find("global, in L2"), "L2: all that lies in DRAM");
  out += frame({4, 350, width - 8, 146}, "x-place") + say(16, 370, "x-where", "beside the chip: DRAM");
  out += memory_in({20, 380, 236, 104}, find("global"), "Global");
  out += memory_in({270, 380, 166, 104}, find("local"), "Local");
  out += memory_in({450, 380, 186, 104}, find("constant"), "Constant");
  out += memory_in({650, 380, 190, 104}, find("texture"), "Texture");
  out += frame({4, 520, width - 8, 128}, "x-place") + say(16, 540, "x-where", "across the link");
  out += memory_in({20, 550, 820, 86}, find("host"), "Host memory");
  for (const auto& [from, to] : {std::pair(186, 210), {314, 350}, {484, 520}})
    out += pages::svg_line(width / 2, from, width / 2, to, "x-way");
  return format_text(
      "<svg viewBox=\"0 0 {0:.0f} 652\" width=\"{0:.0f}\" height=\"652\" role=\"img\" style=\"max-width:100%;"
      "height:auto;min-width:640px\" aria-labelledby=\"x-pt x-pd\"><title id=\"x-pt\">The memories of this device"
      "</title><desc id=\"x-pd\">The table under it has the same words and numbers.</desc>{1}</svg>",
      width, out);
}

}  // namespace lockstep::tool::probe
