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

// Ranks of the 95 % interval of a median, as tables of the sign test give them (Conover, table A3 at 0.025).
TEST(Verdict, IntervalsAreThoseOfTheSignTest) {
  const struct {
    int n, low, high;
  } known[] = {{6, 1, 6},   {8, 1, 8},   {9, 2, 8},   {12, 3, 10}, {15, 4, 12},
               {17, 5, 13}, {20, 6, 15}, {21, 6, 16}, {30, 10, 21}};
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
  std::vector<double> ratios = counting(15);
  std::reverse(ratios.begin(), ratios.end());
  EXPECT_EQ(pair_up(ratios).low, 4);
}

TEST(Verdict, OneWithinTheIntervalIsLevel) {
  EXPECT_EQ(pair_up({0.98, 0.99, 1.01, 1.02, 0.97, 1.03, 1.0, 1.0, 1.0}).verdict(), "level");
  EXPECT_EQ(pair_up(std::vector<double>(9, 1.0)).verdict(), "level") << "equal times are neither ahead nor behind";
  EXPECT_EQ(pair_up({1.2, 1.2, 1.2, 0.9, 0.9, 1.2, 1.2}).verdict(), "level") << "two of seven may be chance";
}

TEST(Verdict, SmallButSteadyIsNotHiddenAsLevel) {
  EXPECT_EQ(pair_up({0.991, 0.993, 0.990, 0.994, 0.992, 0.996, 0.989, 0.995, 0.993}).verdict(), "behind");
  EXPECT_EQ(pair_up({1.006, 1.004, 1.008, 1.005, 1.003, 1.007, 1.009, 1.004, 1.006}).verdict(), "ahead");
}

TEST(Verdict, OneWildRoundChangesNothing) {
  std::vector<double> ratios(15, 0.95);
  ratios[7] = 40;
  EXPECT_EQ(pair_up(ratios).verdict(), "behind");
  EXPECT_NEAR(pair_up(ratios).ratio, 0.95, 1e-12);
}

TEST(Verdict, BesideItselfMostlyLevel) {
  // Two equal peers under noise of 5 %: a false verdict in at most about one of twenty.
  std::mt19937 random(1);
  std::lognormal_distribution<double> noise(0, 0.05);
  int wrong = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> ratios(21);
    for (double& r : ratios) r = noise(random) / noise(random);
    wrong += pair_up(ratios).verdict() != "level";
  }
  EXPECT_LT(wrong, 130);
  EXPECT_GT(wrong, 10) << "an interval that never misses is too wide";
}

TEST(Verdict, SettledOnlyWhenFarOffAndUnanimous) {
  EXPECT_FALSE(settled({2, 2, 2, 2, 2})) << "too few";
  EXPECT_FALSE(settled({3, 3})) << "too few";
  EXPECT_TRUE(settled({3, 3, 2.1}));
  EXPECT_TRUE(settled({0.3, 0.3, 0.4}));
  EXPECT_FALSE(settled({0.3, 0.3, 3}));
  EXPECT_TRUE(settled({2, 2, 2, 2, 2, 1.3}));
  EXPECT_FALSE(settled({2, 2, 2, 2, 2, 1.2}));
  EXPECT_TRUE(settled({0.5, 0.6, 0.7, 0.79, 0.5, 0.5}));
  EXPECT_FALSE(settled({0.5, 0.6, 0.7, 0.79, 0.5, 1.3}));
}
}  // namespace
