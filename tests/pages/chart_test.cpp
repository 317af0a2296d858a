// chart_test.cpp - the parts of a chart that need no browser: text of values, places of
// ticks, escaping.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "pages/draw.hpp"
#include "pages/ruler.hpp"
#include "pages/svg.hpp"

namespace lockstep::tool::pages {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Values, AreWrittenAsAReaderWould) {
  EXPECT_EQ(text_of(0, unit::number), "0");
  EXPECT_EQ(text_of(4123.4, unit::number), "4123");
  EXPECT_EQ(text_of(99.96, unit::number), "100");
  EXPECT_EQ(text_of(12.345, unit::number), "12.3");
  EXPECT_EQ(text_of(0.5, unit::number), "0.5");
  EXPECT_EQ(text_of(-2.5, unit::number), "-2.5");
  EXPECT_EQ(text_of(100, unit::number), "100");
  EXPECT_EQ(text_of(65536, unit::bytes), "64 KiB");
  EXPECT_EQ(text_of(1024.0 * 1024 * 1.5, unit::bytes), "1.5 MiB");
  EXPECT_EQ(text_of(1.5e-6, unit::seconds), "1.5 µs");
  EXPECT_EQ(text_of(0.99996e-6, unit::seconds), "1 µs");
  EXPECT_EQ(text_of(0.25, unit::seconds), "250 ms");
  EXPECT_EQ(text_of(0.973, unit::percent), "97.3 %");
  EXPECT_EQ(text_of(NAN, unit::number), "–");
}

TEST(Ruler, TicksLieInsideAndRise) {
  for (const scale s : {scale::linear, scale::log10, scale::log2})
    for (const double low : {1e-9, 0.3, 1.0, 700.0})
      for (const double span : {1.0, 1.7, 40.0, 1e6})
        for (const double pixels : {90.0, 300.0, 700.0})
          for (const bool across : {false, true}) {
            const ruler r({.label = "x", .scale = s}, {low, low * span}, pixels, across);
            ASSERT_GE(r.ticks().size(), 2u) << low << ' ' << span;
            double before = -1, end = -1e9;
            for (const tick& t : r.ticks()) {
              const double at = r.place(t.at);
              EXPECT_GE(at, -1e-6);
              EXPECT_LE(at, 1 + 1e-6);
              EXPECT_GT(at, before);
              before = at;
              if (t.label.empty() || !across) continue;
              const double half = text_width(t.label) / 2;
              EXPECT_GE(at * pixels - half, end) << "labels overlap at " << t.label;
              end = at * pixels + half;
            }
            EXPECT_LE(r.low(), low);
            EXPECT_GE(r.high(), low * span);
          }
}

TEST(Ruler, LogarithmsShowNoZeros) {
  const ruler r({.label = "x", .scale = scale::log10}, {0, -1, 3, NAN, INFINITY}, 300, true);
  EXPECT_FALSE(r.shows(0));
  EXPECT_FALSE(r.shows(-1));
  EXPECT_FALSE(r.shows(NAN));
  EXPECT_TRUE(r.shows(3));
  EXPECT_NEAR(r.place(std::sqrt(r.low() * r.high())), 0.5, 1e-9);
}

TEST(Ruler, NumbersWithoutPowersBesideThemAreLeftOut) {
  for (const scale s : {scale::linear, scale::log2, scale::log10})
    for (const std::vector<double>& values :
         {std::vector<double>{5e-324, 3}, {3, 1.7e308}, {-1.7e308, 1.7e308}, {5e-324, 1.7e308}}) {
      const ruler r({.label = "x", .scale = s}, values, 300, true);
      EXPECT_LT(r.ticks().size(), 30u);
      EXPECT_TRUE(std::isfinite(r.low()) && std::isfinite(r.high()));
    }
}

TEST(Text, IsEscapedEverywhere) {
  const std::string hostile = "<script>\"&'\x01</script>";
  line_chart c{.title = hostile, .caption = hostile};
  c.x.label = c.y.label = hostile;
  c.series = {{.name = hostile, .points = {{1, 2, hostile}, {2, 3}}}};
  c.levels = {{1, hostile}};
  c.borders = {{1.5, hostile}};
  bar_chart b;
  b.title = b.values.label = hostile;
  b.groups = {hostile};
  b.bars = {{.label = hostile, .value = 1, .text = hostile, .note = hostile}};
  b.reference = mark{1, hostile};
  roofline r{.title = hostile};
  r.roofs = {{.name = hostile, .gb_s = 3}};
  r.series = {{.name = hostile, .points = {{1, 2, hostile}}}};
  page p(hostile, hostile);
  p.fact(hostile, hostile);
  p.section(hostile, hostile);
  p.add(c);
  p.add(b);
  p.add(r);
  p.add(table{.title = hostile, .caption = hostile, .columns = {{hostile}}, .rows = {{hostile}}});
  p.list({hostile});
  const std::string html = p.html();
  EXPECT_EQ(count(html, "<script"), 0u);
  EXPECT_EQ(html.find('\x01'), std::string::npos);
  EXPECT_GT(count(html, "&lt;script&gt;&quot;&amp;&#39;&lt;/script&gt;"), 30u);
}

TEST(Page, ClosesWhatItOpens) {
  page p("t");
  p.section("a");
  p.add(bar_chart{});
  p.add(line_chart{});
  p.section("b");
  p.heading("c");
  p.add(line_chart{.title = "one", .series = {{.name = "s", .points = {{1, 1}}}}});
  const std::string html = p.html();
  for (const char* tag :
       {"section", "div", "figure", "svg", "table", "details", "ul", "ol", "g", "text", "main", "header"})
    EXPECT_EQ(count(html, std::string("<") + tag + ">") + count(html, std::string("<") + tag + " "),
              count(html, std::string("</") + tag + ">"))
        << tag;
}

TEST(Bars, ALogarithmHasDotsAndNoBars) {
  bar_chart c;
  c.values = {.label = "GB/s", .scale = scale::log10};
  c.bars = {{"a", 1}, {"b", 1000}, {"nothing", 0}};
  const std::string svg = draw(c, 720, "id");
  EXPECT_EQ(count(svg, " f0\""), 0u);
  EXPECT_EQ(count(svg, "<circle"), 2u);
  c.values.scale = scale::linear;
  EXPECT_EQ(count(draw(c, 720, "id"), " f0\""), 3u);
}

// All of a text's lines, joined again.
std::string texts_of(const std::string& svg, const std::string& style) {
  std::string all;
  const std::string open = "class=\"" + style + "\">";
  for (size_t at = svg.find(open); at != std::string::npos; at = svg.find(open, at + 1)) {
    const size_t begin = at + open.size();
    all += svg.substr(begin, svg.find('<', begin) - begin);
  }
  return all;
}

TEST(Bars, NoLabelIsCut) {
  const std::string name = "square_sum/norm2/f32/segments/lopsided/1048576x1024/to_f32 on one of two GPUs",
                    value = "1234.5 GB/s, 0.97 of the limit, twice the speed of the best of all peers";
  bar_chart c;
  c.values = {.label = "GB/s"};
  c.bars = {{.label = name, .value = 3, .text = value}, {.label = std::string(200, 'x'), .value = 2}};
  for (const double width : {340.0, 720.0, 1100.0}) {
    const std::string svg = draw(c, width, "id");
    EXPECT_EQ(texts_of(svg, "bl"), name + std::string(200, 'x')) << width;
    EXPECT_NE(texts_of(svg, "v").find(value), std::string::npos) << width;
  }
  EXPECT_EQ(wrapped("ab/cd ef", 3 * 7.2), (std::vector<std::string>{"ab/", "cd ", "ef"}));
  EXPECT_EQ(wrapped("ÄÖÜßäöü", 3 * 7.2), (std::vector<std::string>{"ÄÖÜ", "ßäö", "ü"}));
}

}  // namespace
}  // namespace lockstep::tool::pages
