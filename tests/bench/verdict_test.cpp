// verdict_test.cpp - ahead, level or behind: known intervals, and what noise may and may not do to the verdict.
#include "verdict.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace {
using namespace lockstep::tool::bench;

std::vector<double> counting(int n) {
  std::vector<double> all;
  for (int i = 1; i <= n; ++i) all.push_back(i);
  return all;
}

// Ranks of the interval of a median: the largest k with P(fewer than k of n fair coins) <= 0.0005 / 3, by exact
// arithmetic (Python: sum(math.comb(n, i) for i in range(k)) / 2**n).
TEST(Verdict, IntervalsAreThoseOfTheSignTest) {
  const struct { int n, low, high; } known[] = {{13, 1, 13}, {18, 2, 17}, {21, 3, 19}, {36, 8, 29}, {63, 17, 47}};
  for (const auto& one : known) {
    const pairing p = pair_up(counting(one.n));
    EXPECT_EQ(p.low, one.low) << one.n;
    EXPECT_EQ(p.high, one.high) << one.n;
    EXPECT_EQ(p.ratio, (one.n + 1) / 2.0) << one.n;
    EXPECT_EQ(p.rounds, one.n);
  }
}

TEST(Verdict, FewRoundsTakeTheirEnds) {
  for (const int n : {1, 2, 5}) {
    const pairing p = pair_up(counting(n));
    EXPECT_EQ(p.low, 1) << n;
    EXPECT_EQ(p.high, n) << n;
  }
}

TEST(Verdict, NoRoundsNoVerdict) {
  EXPECT_EQ(pair_up({}).verdict(), "");
  EXPECT_EQ(pairing{}.verdict(), "");
}

TEST(Verdict, OrderOfRoundsDoesNotCount) {
  std::vector<double> ratios = counting(18);
  std::reverse(ratios.begin(), ratios.end());
  EXPECT_EQ(pair_up(ratios).low, pair_up(counting(18)).low);
}

TEST(Verdict, OneWithinTheIntervalIsLevel) {
  EXPECT_EQ(pair_up(std::vector<double>(18, 1.0)).verdict(), "level") << "equal times are neither ahead nor behind";
  std::vector<double> ratios(18, 0.98);
  ratios[3] = 1.01;
  EXPECT_EQ(pair_up(ratios).verdict(), "behind");
  ratios[8] = ratios[9] = 1.01;
  EXPECT_EQ(pair_up(ratios).verdict(), "level") << "three of 18 may be chance";
}

TEST(Verdict, BeforeTheFirstLookThereIsNone) {
  EXPECT_EQ(pair_up(std::vector<double>(17, 3.0)).verdict(), "level");
  EXPECT_EQ(pair_up(std::vector<double>(18, 3.0)).verdict(), "ahead");
}

TEST(Verdict, OneWildRoundChangesNothing) {
  std::vector<double> ratios(18, 0.95);
  ratios[7] = 40;
  EXPECT_EQ(pair_up(ratios).verdict(), "behind");
  EXPECT_NEAR(pair_up(ratios).ratio, 0.95, 1e-12);
}

// As peers take turns: rounds until the rule needs no more.
template <class Round>
pairing compared(const Round& round) {
  std::vector<double> ratios;
  while (more_rounds_due(ratios)) ratios.push_back(round());
  return pair_up(ratios);
}

TEST(Verdict, BesideItselfMostlyLevel) {
  // Equal peers under noise of 5 %: a false verdict in at most one of a thousand, all three looks together.
  std::mt19937 random(1);
  std::lognormal_distribution<double> noise(0, 0.05);
  int wrong = 0;
  for (int trial = 0; trial < 20000; ++trial)
    wrong += compared([&] { return noise(random) / noise(random); }).verdict() != "level";
  EXPECT_LT(wrong, 35);
  EXPECT_GT(wrong, 3) << "an interval that never misses is too wide";
}

TEST(Verdict, ThreePercentBehindAreSeen) {
  std::mt19937 random(1);
  std::lognormal_distribution<double> noise(0, 0.02);
  int seen = 0;
  for (int trial = 0; trial < 1000; ++trial)
    seen += compared([&] { return 0.97 * noise(random) / noise(random); }).verdict() == "behind";
  EXPECT_GT(seen, 990);
}

// The number of rounds is the same whether we are ahead or behind.
TEST(Verdict, RoundsDoNotDependOnTheSide) {
  const auto rounds = [](double ratio) { return compared([&] { return ratio; }).rounds; };
  for (const double factor : {1.001, 1.04, 1.3, 100.0}) {
    EXPECT_EQ(rounds(factor), static_cast<int>(looks[0])) << factor;
    EXPECT_EQ(rounds(1 / factor), static_cast<int>(looks[0])) << factor;
  }
  EXPECT_EQ(rounds(1), static_cast<int>(most_rounds));
  for (const double factor : {2.0, 1 / 2.0}) {  // three of 18 on the other side: on to 36
    int n = 0;
    EXPECT_EQ(compared([&] { return n++ < 3 ? 1 / factor : factor; }).rounds, static_cast<int>(looks[1]));
  }
}

TEST(Verdict, WithoutTurnsTheMiddleHalvesDecide) {
  const timed ours{"lockstep", 10, 9.9, 10.1};
  EXPECT_EQ(beside(ours, {"p", 10.3, 10.2, 10.4}).verdict, "ahead");
  EXPECT_EQ(beside(ours, {"p", 9.7, 9.6, 9.8}).verdict, "behind");
  EXPECT_EQ(beside(ours, {"p", 10.2, 10.1, 10.4}).verdict, "level");
  EXPECT_DOUBLE_EQ(beside(ours, {"p", 12, 11, 13}).ratio, 1.2);
}

TEST(Verdict, ThePeerThatCounts) {
  const std::vector<std::string> sources = {"A", "B", "C dot, float", "D, float32", "E, double"};
  std::vector<comparison> all = {{1.02, "level"}, {0.99, "level"}, {0.95, "behind"}, {0.97, "behind"}, {1.5, "ahead"}};
  chosen c = choose(sources, all);
  EXPECT_EQ(c.best, 1) << "the fastest that adds as we do";
  EXPECT_EQ(c.best_float, 2);
  all[4] = {0.995, "behind"};
  EXPECT_EQ(choose(sources, all).best, 4) << "one that is surely ahead before one that may be";
  c = choose({"x, float"}, {{0.9, "behind"}});
  EXPECT_EQ(c.best, -1);
  EXPECT_EQ(c.best_float, 0);
}
}  // namespace
