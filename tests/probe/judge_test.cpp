// judge_test.cpp - verdicts on invented readings, and that a probe without its loads is called
// WRONG: this program builds the CPU's probes with their planted bugs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "probe.hpp"

namespace {
using namespace lockstep::tool::probe;

reading one(const char* row, const char* name, double x, double value, uint64_t got = 1, uint64_t expected = 1) {
  return {row, name, "kernel", "unit", x, value, value, value, got, expected};
}
const kind& kind_of(const std::vector<kind>& all, const std::string& id) {
  for (const kind& k : all)
    if (id == k.id) return k;
  ADD_FAILURE() << "no row " << id;
  return all.front();
}

TEST(Verdict, TaughtAndToday) {
  readings all;
  all.add(one("X", "a", NAN, 5));
  all.add(one("X", "bad", NAN, 5, 1, 2));
  row out{};
  out.judge(all.find("X", "a"), about(5, 0.1));
  out.judge(all.find("X", "a"), about(5, 0.1), about(10, 0.1));
  out.judge(all.find("X", "a"), about(10, 0.1), about(5, 0.1));
  EXPECT_EQ(out.lines[0].said, verdict::agrees);
  EXPECT_EQ(out.lines[1].said, verdict::moved_on);
  EXPECT_EQ(out.lines[2].said, verdict::differs);  // what is said to hold today must hold
  EXPECT_EQ(out.said(), verdict::differs);
  out.judge(all.find("X", "bad"), about(5, 0.1));
  EXPECT_EQ(out.lines[3].said, verdict::wrong);
  EXPECT_EQ(out.said(), verdict::wrong);
  out.judge(all.find("X", "none"), about(5, 0.1));
  EXPECT_EQ(out.lines.size(), 4u);
}

// An interval that was set after measuring is no rule: what it catches is neither
// agreement nor progress, and where the rule itself holds it is not asked.
TEST(Verdict, FittedIsNoAgreement) {
  readings all;
  all.add(one("X", "a", NAN, 5));
  all.add(one("X", "bad", NAN, 5, 1, 2));
  const fit seen = {between(4, 6), "since"};
  row out{};
  out.judge(all.find("X", "a"), about(10, 0.1), {}, seen);
  out.judge(all.find("X", "a"), about(10, 0.1), about(5, 0.1), seen);  // that the taught rule holds does not help
  out.judge("a", "unit", 5, about(10, 0.1), {}, seen);
  for (const line& l : out.lines) {
    EXPECT_EQ(l.said, verdict::fitted);
    EXPECT_STREQ(l.witness(), "fitted");
    EXPECT_EQ(l.now.text, "10 +-10%");  // what the rule said stays to be seen
  }
  EXPECT_EQ(out.said(), verdict::fitted);
  ASSERT_EQ(out.fitted().size(), 1u);  // one reason, said once
  EXPECT_EQ(out.fitted()[0].what, "since");
  EXPECT_EQ(out.fitted()[0].lines, "a; a and a");
  EXPECT_EQ(tally({out}).find("3 predictions: the rule of today holds in 0"), 0u) << tally({out});
  EXPECT_NE(tally({out}).find("3 fitted"), std::string::npos) << tally({out});

  row wide{};  // what is easily met is no prediction that came true
  for (const range& r : {at_least(4), at_most(8), between(2, 6), between(0, 9)}) wide.judge("w", "unit", 5, r);
  for (const range& r : {exactly(5), about(5, 0.4), between(3, 8)}) wide.judge("n", "unit", 5, r);
  wide.judge("w", "unit", 5, at_least(6));
  EXPECT_EQ(tally({wide}).find("3 predictions: the rule of today holds in 3,"), 0u) << tally({wide});
  EXPECT_NE(tally({wide}).find("5 bounds"), std::string::npos) << tally({wide});
  EXPECT_NE(tally({wide}).find("held by 4, in 0 of them where the taught one fails; 0 fitted"), std::string::npos);
  EXPECT_NE(tally({wide}).find("1 differ"), std::string::npos) << tally({wide});

  row kept{};
  kept.judge(all.find("X", "a"), about(5, 0.1), {}, seen);
  EXPECT_EQ(kept.lines[0].said, verdict::agrees);
  EXPECT_STREQ(kept.lines[0].witness(), "rule");
  EXPECT_TRUE(kept.fitted().empty());
  kept.judge(all.find("X", "a"), about(5, 0.1), about(10, 0.1), seen);
  EXPECT_EQ(kept.lines[1].said, verdict::moved_on);
  kept.judge(all.find("X", "a"), about(10, 0.1), {}, fit{about(20, 0.1), "since"});
  EXPECT_EQ(kept.lines[2].said, verdict::differs);
  kept.judge(all.find("X", "bad"), about(10, 0.1), {}, seen);
  EXPECT_EQ(kept.lines[3].said, verdict::wrong);
}

TEST(Verdict, RulesAreSaidOnceForAllTheirLines) {
  row out{};
  for (const char* name : {"a", "b", "c"}) out.judge(name, "unit", 1, exactly(1).by(*name == 'b' ? "two" : "one"));
  out.judge("d", "unit", 1, exactly(1));
  const auto rules = out.rules();
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].what + ": " + rules[0].lines, "one: a and c");
  EXPECT_EQ(rules[1].what + ": " + rules[1].lines, "two: b");
}

// A value beside a bound is written with the digits that show on which side it lies.
TEST(Verdict, FiguresShowTheSide) {
  row out{};
  for (const double v : {2.9987, 3.0001, 4.12345, 12345.6, 123.456}) out.judge("a", "unit", v, at_least(3));
  std::string text;
  for (const line& l : out.lines) text += l.figure() + " ";
  EXPECT_EQ(text, "2.999 3 4.12 12346 123.5 ");
}

// E8, E11 and H8 on a device that does what the rules say, and with the figures of an
// H200 and of two processors of one core, where the rules fail.
TEST(Verdict, FittedRowsOnADeviceOfTheRulesAgree) {
  const auto verdicts = [](const char* id, const readings& all) {
    row out{};
    kind_of(kinds(), id).judge(out, all);
    EXPECT_FALSE(out.lines.empty()) << id;
    return out.said();
  };
  const auto exchange = [](double latency, double throughput) {
    readings all;
    all.add(one("E10", "latency, shared", NAN, 24));
    all.add(one("E11", "latency, shuffle", NAN, 26));
    all.add(one("E11", "latency, shared", NAN, latency));
    all.add(one("E11", "throughput, shared", NAN, throughput));
    return all;
  };
  EXPECT_EQ(verdicts("E11", exchange(48, 2)), verdict::agrees);
  EXPECT_EQ(verdicts("E11", exchange(28, 2)), verdict::fitted);
  EXPECT_EQ(verdicts("E11", exchange(80, 2)), verdict::differs);
  const auto coalescing = [](double scattered, double offset, double stride) {
    readings all;
    all.add(one("E8", "aligned, no L1", NAN, 1000));
    all.add(one("E8", "scattered, no L1", NAN, scattered));
    all.add(one("E8", "offset", 0, 1000));
    all.add(one("E8", "offset", 1, offset));
    all.add(one("E8", "stride", 1, 1000));
    all.add(one("E8", "stride", 32, stride));
    return all;
  };
  EXPECT_EQ(verdicts("E8", coalescing(125, 1000, 125)), verdict::moved_on);  // sectors in place of lines
  EXPECT_EQ(verdicts("E8", coalescing(75, 1000, 125)), verdict::fitted);
  EXPECT_EQ(verdicts("E8", coalescing(125, 900, 125)), verdict::fitted);
  EXPECT_EQ(verdicts("E8", coalescing(125, 1000, 60)), verdict::fitted);
  EXPECT_EQ(verdicts("E8", coalescing(20, 1000, 125)), verdict::differs);
  const auto threads = [](double two) {
    readings all;
    all.add(one("host", "threads", NAN, 2));
    all.add(one("H8", "L1", 1, 100));
    all.add(one("H8", "L1", 2, two));
    return all;
  };
  EXPECT_EQ(verdicts("H8", threads(200)), verdict::agrees);
  EXPECT_EQ(verdicts("H8", threads(100)), verdict::fitted);
  EXPECT_EQ(verdicts("H8", threads(70)), verdict::differs);
}

// Rules of the host follow what the machine tells of itself.
TEST(Rows, OfTheHostFollowItsVendorAndWidths) {
  const auto said = [](const char* id, std::initializer_list<lockstep::probe::reading> read) {
    readings all;
    for (const lockstep::probe::reading& m : read) all.add(m);
    row out{};
    kind_of(kinds(), id).judge(out, all);
    std::vector<verdict> verdicts;
    for (const line& l : out.lines) verdicts.push_back(l.said);
    return verdicts;
  };
  const auto fact = [](const char* name, double value) { return one("host", name, NAN, value); };
  // Vectors of 64 bytes at offsets 32 and 4, on a path of 32 bytes and of 64: the pieces that cross a line count.
  const auto vectors = [&](double path, double offset, double times) {
    return said("H3", {fact("vector_bytes", 64), fact("path_bytes", path), fact("line_bytes", 64),
                       one("H3", "vectors, offset", 0, 300), one("H3", "vectors, offset", offset, 300 / times)})
        .back();
  };
  EXPECT_EQ(vectors(32, 32, 1), verdict::agrees);
  EXPECT_EQ(vectors(32, 4, 1.5), verdict::agrees);
  EXPECT_EQ(vectors(32, 32, 2), verdict::differs);
  EXPECT_EQ(vectors(64, 32, 2), verdict::agrees);
  EXPECT_EQ(vectors(64, 4, 1.5), verdict::differs);
  // Across a page, in cycles, where a load across a line takes one.
  const auto page = [&](double vendor, double cycles) {
    return said("H3", {fact("clock_ghz", 1), fact("vendor", vendor), one("H3", "8 bytes, aligned", NAN, 0.5),
                       one("H3", "8 bytes, across a line", NAN, 1), one("H3", "8 bytes, across a page", NAN, cycles)})
        .back();
  };
  EXPECT_EQ(page(amd, 9), verdict::fitted);
  EXPECT_EQ(page(amd, 1.8), verdict::moved_on);
  EXPECT_EQ(page(intel, 9), verdict::differs);
  EXPECT_EQ(page(intel, 6), verdict::moved_on);
  EXPECT_EQ(page(0, 6), verdict::differs);
  // Lines that are fetched in pairs.
  const auto stride = [&](double far) {
    return said("H2", {fact("line_bytes", 64), one("H2", "stride", 8, 10), one("H2", "stride", 128, far)}).back();
  };
  EXPECT_EQ(stride(1.25), verdict::agrees);
  EXPECT_EQ(stride(0.625), verdict::moved_on);
  EXPECT_EQ(stride(0.3), verdict::differs);
  const auto streaming = [&](double vendor, double times) {
    return said("H5", {fact("vendor", vendor), one("H5", "plain stores, memory", NAN, 10),
                       one("H5", "streaming stores, memory", NAN, 10 * times)})
        .front();
  };
  EXPECT_EQ(streaming(intel, 0.8), verdict::moved_on);
  EXPECT_EQ(streaming(amd, 0.8), verdict::differs);
  EXPECT_EQ(streaming(amd, 2), verdict::agrees);
  EXPECT_EQ(streaming(intel, 3), verdict::differs);
  // The latency of L3 is that of a set twice as large as L2, whatever a virtual machine is told of its host's L3.
  const auto l3 = [&](double ns) {
    return said("H1", {fact("vendor", intel), fact("clock_ghz", 1), fact("l1_bytes", 49152), fact("l2_bytes", 2 << 20),
                       fact("l3_bytes", 300 << 20), one("H1", "latency", 16384, 5), one("H1", "latency", 1 << 20, 16),
                       one("H1", "latency", 4 << 20, ns), one("H1", "latency", 16 << 20, 350)})
        .at(2);
  };
  EXPECT_EQ(l3(105), verdict::moved_on);
  EXPECT_EQ(l3(350), verdict::differs);
}

TEST(Rows, OfTheLadderAreAllThere) {
  std::string ids;
  for (const kind& k : kinds()) ids += std::string(k.id) + " ";
  EXPECT_EQ(ids, "E1 E2 E3 E4 E5 E6 E7 E8 E9 E10 E11 E12 E13 E14 E15 H1 H2 H3 H4 H5 H6 H7 H8 ");
}

TEST(Rows, NoReadingsNoLines) {
  for (const kind& k : kinds()) {
    row out{};
    k.judge(out, readings());
    EXPECT_TRUE(out.columns.empty()) << k.id;
    EXPECT_TRUE(out.lines.empty()) << k.id << ": " << (out.lines.empty() ? "" : out.lines.front().name);
    EXPECT_FALSE(out.taught.empty()) << k.id;
    EXPECT_FALSE(out.lesson.empty()) << k.id;
  }
}

TEST(Rows, BankConflictsOfAPerfectDevice) {
  readings all;
  for (int s = 1; s <= 34; ++s) {
    int ways = 32;
    while (s % ways != 0) ways /= 2;
    all.add(one("E3", "stride", s, ways));
  }
  row out{};
  kind_of(kinds(), "E3").judge(out, all);
  EXPECT_EQ(out.said(), verdict::agrees);
  EXPECT_EQ(out.plots.at(0).points.size(), 34u);
  readings broken;
  for (int s = 1; s <= 34; ++s) broken.add(one("E3", "stride", s, 1));  // a device without conflicts
  row other{};
  kind_of(kinds(), "E3").judge(other, broken);
  EXPECT_EQ(other.said(), verdict::differs);
}

// ---- the CPU's probes ----------------------------------------------------------

const host_limits quick = {0.001, 2};

TEST(Host, ProbesReadWhatTheyMust) {
  for (const char* id : {"host", "H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8"}) {
    readings all;
    std::string why;
    if (!measure_on_cpu(id, quick, all, why)) {
      EXPECT_STREQ(id, "H5") << why;  // streaming stores are x86-64's
      EXPECT_NE(why.find("streaming stores"), std::string::npos) << why;
      continue;
    }
    EXPECT_FALSE(all.all().empty()) << id;
    for (const measured& m : all.all())
      EXPECT_TRUE(m.right()) << id << " " << m.name << ": " << m.got << " for " << m.expected;
  }
}

}  // namespace
