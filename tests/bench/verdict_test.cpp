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

// Ranks of the 99.9 % interval of a median: the largest k with P(fewer than k of n fair coins) <= 0.0005, by exact
// arithmetic (Python: sum(math.comb(n, i) for i in range(k)) / 2**n).
TEST(Verdict, IntervalsAreThoseOfTheSignTest) {
  const struct {
    int n, low, high;
  } known[] = {{11, 1, 11}, {12, 1, 12}, {15, 2, 14},  {17, 2, 16}, {20, 3, 18},
               {21, 3, 19}, {30, 6, 25}, {40, 10, 31}, {63, 19, 45}};
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
  EXPECT_EQ(pair_up(ratios).low, 2);
}

TEST(Verdict, OneWithinTheIntervalIsLevel) {
  EXPECT_EQ(pair_up({0.98, 0.99, 1.01, 1.02, 0.97, 1.03, 1.0, 1.0, 1.0}).verdict(), "level");
  EXPECT_EQ(pair_up(std::vector<double>(9, 1.0)).verdict(), "level") << "equal times are neither ahead nor behind";
  EXPECT_EQ(pair_up({1.2, 1.2, 1.2, 0.9, 0.9, 1.2, 1.2}).verdict(), "level") << "two of seven may be chance";
  std::vector<double> ratios(21, 0.98);
  ratios[3] = ratios[8] = 1.01;
  EXPECT_EQ(pair_up(ratios).verdict(), "behind");
  ratios[9] = 1.01;
  EXPECT_EQ(pair_up(ratios).verdict(), "level") << "three of 21 may be chance";
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
  // Equal peers under noise of 5 %: a false verdict in about one of a thousand.
  std::mt19937 random(1);
  std::lognormal_distribution<double> noise(0, 0.05);
  int wrong = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::vector<double> ratios(most_rounds);
    for (double& r : ratios) r = noise(random) / noise(random);
    wrong += pair_up(ratios).verdict() != "level";
  }
  EXPECT_LT(wrong, 35);
  EXPECT_GT(wrong, 3) << "an interval that never misses is too wide";
}

TEST(Verdict, ThreePercentBehindAreSeen) {
  std::mt19937 random(1);
  std::lognormal_distribution<double> noise(0, 0.02);
  int seen = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<double> ratios(most_rounds);
    for (double& r : ratios) r = 0.97 * noise(random) / noise(random);
    seen += pair_up(ratios).verdict() == "behind";
  }
  EXPECT_GT(seen, 990);
}

std::vector<double> alike(int n, double value) { return std::vector<double>(static_cast<size_t>(n), value); }

TEST(Verdict, SettledOnlyWhenFarOffAndUnanimous) {
  EXPECT_EQ(pace_of({2, 2, 2, 2, 2}), pace::open) << "too few";
  EXPECT_EQ(pace_of({3, 3}), pace::open) << "too few";
  EXPECT_EQ(pace_of({3, 3, 2.1}), pace::settled);
  EXPECT_EQ(pace_of({0.3, 0.3, 0.4}), pace::settled);
  EXPECT_EQ(pace_of({0.3, 0.3, 3}), pace::open);
  EXPECT_EQ(pace_of({2, 2, 2, 2, 2, 1.3}), pace::settled);
  EXPECT_EQ(pace_of({2, 2, 2, 2, 2, 1.2}), pace::open);
  EXPECT_EQ(pace_of({0.5, 0.6, 0.7, 0.79, 0.5, 0.5}), pace::settled);
  EXPECT_EQ(pace_of({0.5, 0.6, 0.7, 0.79, 0.5, 1.3}), pace::near) << "its interval is from end to end";
}

TEST(Verdict, WhoIsNearTakesMoreRounds) {
  EXPECT_EQ(pace_of(alike(20, 1.1)), pace::open);
  EXPECT_EQ(pace_of(alike(21, 1.1)), pace::settled);
  EXPECT_EQ(pace_of(alike(5, 0.97)), pace::open) << "too few to tell";
  EXPECT_EQ(pace_of(alike(6, 0.97)), pace::near);
  EXPECT_EQ(pace_of(alike(62, 1.02)), pace::near);
  EXPECT_EQ(pace_of(alike(63, 1.02)), pace::settled);
}
}  // namespace
