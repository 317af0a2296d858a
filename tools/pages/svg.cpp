// svg.cpp - see svg.hpp.
#include "svg.hpp"

#include <algorithm>

namespace lockstep::tool::pages {

std::string escaped(const std::string& text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') safe += c;
    }
  return safe;
}

namespace {
bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }  // UTF-8
}  // namespace

double text_width(const std::string& text, double size) {
  double n = 0;
  for (const char c : text) n += begins_character(c) ? 1 : 0;
  return n * 0.6 * size;
}

std::vector<std::string> wrapped(const std::string& text, double width, double size) {
  const auto most = static_cast<size_t>(std::max(1.0, width / (0.6 * size)));
  std::vector<std::string> lines(1);
  size_t characters = 0, broken = 0;  // of the last line; where it may be broken
  for (size_t i = 0; i < text.size(); ++i) {
    if (begins_character(text[i]) && characters == most) {
      std::string& full = lines.back();
      std::string rest = broken > 0 ? full.substr(broken) : "";
      if (broken > 0) full.resize(broken);
      characters = static_cast<size_t>(text_width(rest, size) / (0.6 * size) + 0.5);
      broken = 0;
      lines.push_back(std::move(rest));
    }
    lines.back() += text[i];
    characters += begins_character(text[i]) ? 1 : 0;
    if (text[i] == ' ' || text[i] == '/') broken = lines.back().size();
  }
  return lines;
}

std::string svg_lines(double x, double y, const char* anchor, const std::string& style,
                      const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) {
    out += svg_text(x, y, anchor, style, line);
    y += line_height;
  }
  return out;
}

std::string svg_text(double x, double y, const char* anchor, const std::string& style, const std::string& text) {
  return format_text("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>", x, y, anchor, style,
                     escaped(text));
}

std::string svg_line(double x1, double y1, double x2, double y2, const std::string& style) {
  return format_text("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>", x1, y1, x2, y2,
                     style);
}

std::string svg_bracket(double from, double to, double at, double half, bool across) {
  const char* const shape = across ? "M{0:.1f} {2:.1f}V{3:.1f}M{0:.1f} {4:.1f}H{1:.1f}M{1:.1f} {2:.1f}V{3:.1f}"
                                   : "M{2:.1f} {0:.1f}H{3:.1f}M{4:.1f} {0:.1f}V{1:.1f}M{2:.1f} {1:.1f}H{3:.1f}";
  const double low = at - half, high = at + half;
  return "<path class=\"iv\" d=\"" + vformat_text(shape, fmt::make_format_args(from, to, low, high, at)) + "\"/>";
}

std::string svg_marker(int n, double x, double y, double r) {
  const auto path = [&](const char* d) {
    return format_text("<path d=\"{}\" transform=\"translate({:.1f} {:.1f}) scale({:.2f})\"/>", d, x, y, r);
  };
  switch (n % 8) {
    case 0: return format_text("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/>", x, y, r);
    case 1: return path("M-.9-.9H.9V.9H-.9Z");                                  // square
    case 2: return path("M0-1.2 1.1.8H-1.1Z");                                  // triangle
    case 3: return path("M0-1.3 1.1 0 0 1.3-1.1 0Z");                           // diamond
    case 4: return path("M0 1.2 1.1-.8H-1.1Z");                                 // triangle, point down
    case 5: return path("M-.4-1.2H.4V-.4H1.2V.4H.4V1.2H-.4V.4H-1.2V-.4H-.4Z");  // plus
    case 6: return path("M-.6-1.1 0-.5 .6-1.1 1.1-.6 .5 0 1.1.6 .6 1.1 0 .5-.6 1.1-1.1.6-.5 0-1.1-.6Z");  // cross
    default: return path("M-1.3 0-.65-1.1H.65L1.3 0 .65 1.1H-.65Z");                                      // hexagon
  }
}

std::string svg_open(double width, double height, const std::string& style, const std::string& id,
                     const std::string& title, const std::string& description) {
  return format_text(
      "<svg class=\"{}\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-labelledby=\"{}t {}d\"><title "
      "id=\"{}t\">{}</title>"
      "<desc id=\"{}d\">{}</desc>",
      style, width, height, id, id, id, escaped(title), id, escaped(description));
}

}  // namespace lockstep::tool::pages
