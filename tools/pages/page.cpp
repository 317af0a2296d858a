// page.cpp - see page.hpp.
#include "page.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "draw.hpp"
#include "svg.hpp"

namespace lockstep::tool::pages {
namespace {

std::string paragraph(const std::string& text) { return text.empty() ? "" : "<p>" + escaped(text) + "</p>\n"; }

std::string cell_html(const cell& c, const column& col, bool head) {
  const char* const names[] = {"", "good", "bad", "dim"};
  std::string style = col.number ? "n" : col.prose ? "prose" : "";
  if (c.tone != tone::plain) style += (style.empty() ? "" : " ") + std::string(names[static_cast<int>(c.tone)]);
  const char* const sign = c.tone == tone::good ? "✓ " : c.tone == tone::bad ? "✗ " : "";
  const std::string tag = head ? "th scope=\"row\"" : "td";
  // On a narrow screen a row is a list, and each cell is preceded by its column's title (style.cpp).
  const std::string named = head || c.text.empty() ? "" : " data-of=\"" + escaped(col.title) + "\"";
  return format_text("<{}{}{}>{}{}</{}>", tag, style.empty() ? "" : " class=\"" + style + "\"", named, sign,
                     escaped(c.text), head ? "th" : "td");
}

std::string table_html(const table& t) {
  std::string out = "<div class=\"scroll\" tabindex=\"0\"><table>";
  if (!t.title.empty() && !t.folded) out += "<caption>" + escaped(t.title) + "</caption>";
  out += "<thead><tr>";
  for (const column& c : t.columns)
    out += format_text("<th scope=\"col\"{}>{}</th>", c.number ? " class=\"n\"" : "", escaped(c.title));
  out += "</tr></thead><tbody>\n";
  for (const auto& row : t.rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size() && i < t.columns.size(); ++i) out += cell_html(row[i], t.columns[i], i == 0);
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

// A wide drawing and a narrow one; the style sheet shows the one that fits the column.
template <class Chart>
std::string chart_html(const Chart& c, int number) {
  const table t = numbers(c);
  return legend(c) + draw(c, 720, format_text("f{}w", number)).insert(11, "wide ") +
         draw(c, 360, format_text("f{}n", number)).insert(11, "narrow ") + "<details><summary>The numbers</summary>" +
         table_html(t) + paragraph(t.caption) + "</details>";
}

}  // namespace

page::page(std::string title, std::string lead) : title_(std::move(title)), lead_(std::move(lead)) {}

void page::verdict(const std::string& text) { verdicts_ += "<p>" + escaped(text) + "</p>\n"; }
void page::fact(const std::string& name, const std::string& value) {
  facts_ += format_text("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value));
}

void page::close_figures() {
  if (in_figures_) body_ += "</div>\n";
  in_figures_ = false;
}

void page::close_section() {
  close_figures();
  if (in_section_) body_ += "</section>\n";
  in_section_ = false;
}

void page::section(const std::string& title, const std::string& text) {
  close_section();
  ++sections_;
  contents_ += format_text("<li><a href=\"#s{}\">{}</a></li>\n", sections_, escaped(title));
  body_ += format_text("<section id=\"s{}\"><h2>{}</h2>\n", sections_, escaped(title)) + paragraph(text);
  in_section_ = true;
}

void page::heading(const std::string& title, const std::string& text) {
  close_figures();
  body_ += "<h3>" + escaped(title) + "</h3>\n" + paragraph(text);
}

void page::text(const std::string& text) {
  close_figures();
  body_ += paragraph(text);
}

void page::list(const std::vector<std::string>& items) {
  close_figures();
  body_ += "<ul>";
  for (const std::string& item : items) body_ += "<li>" + escaped(item) + "</li>\n";
  body_ += "</ul>\n";
}

void page::figure(const std::string& title, const std::string& caption, const std::string& inside, bool folded) {
  if (!in_figures_) body_ += "<div class=\"figures\">\n";
  in_figures_ = true;
  body_ += "<figure class=\"column\">";
  if (folded)
    body_ += "<details><summary>" + escaped(title) + "</summary>";
  else if (!title.empty())
    body_ += "<h4>" + escaped(title) + "</h4>";
  if (!caption.empty()) body_ += "<p class=\"caption\">" + escaped(caption) + "</p>";
  body_ += inside + (folded ? "</details></figure>\n" : "</figure>\n");
  ++figures_;
}

void page::add(const line_chart& c) { figure(c.title, c.caption, chart_html(c, figures_)); }
void page::add(const bar_chart& c) { figure(c.title, c.caption, chart_html(c, figures_)); }
void page::picture(const std::string& title, const std::string& caption, const std::string& svg, bool folded) {
  figure(title, caption, "<div class=\"scroll\" tabindex=\"0\">" + svg + "</div>", folded);
}
void page::style(const std::string& rules) { style_ += rules; }

void page::add(const table& t) {
  close_figures();
  if (t.folded) body_ += "<details><summary>" + escaped(t.title) + "</summary>";
  body_ += table_html(t);
  if (!t.caption.empty()) body_ += "<p class=\"caption\">" + escaped(t.caption) + "</p>\n";
  if (t.folded) body_ += "</details>\n";
}

std::string page::html() const {
  std::string out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n";
  // Nothing may be fetched, and no script may run.
  out +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src "
      "data:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
      "content=\"light dark\">\n";
  out +=
      "<title>" + escaped(title_) + "</title>\n<style>\n" + style_sheet + style_ + "</style></head>\n<body>\n" + fills;
  out += "<header><h1>" + escaped(title_) + "</h1>\n";
  if (!lead_.empty()) out += "<p class=\"lead\">" + escaped(lead_) + "</p>\n";
  if (!verdicts_.empty()) out += "<div class=\"verdict\">" + verdicts_ + "</div>\n";
  if (!facts_.empty()) out += "<dl>" + facts_ + "</dl>\n";
  out += "</header>\n";
  if (sections_ > 1) out += "<nav aria-label=\"Contents\"><ol>" + contents_ + "</ol></nav>\n";
  out += "<main>\n" + body_;
  if (in_figures_) out += "</div>\n";
  if (in_section_) out += "</section>\n";
  return out + "</main>\n</body></html>\n";
}

void page::write(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  file << html();
  file.flush();
  if (!file) throw std::runtime_error(format_text("{}: {}; the page was not written", path, std::strerror(errno)));
}

}  // namespace lockstep::tool::pages
