// cpp_test.cpp - ranks.hpp: the same results as the C calls, exceptions with the library's words.
#include <gtest/gtest.h>

#include <numeric>

#include "lockstep/ranks.hpp"

namespace {
using namespace lockstep;

TEST(Cpp, SeatsOfOneProcess) {
  context c("cpu");
  ranks::comm world(c, 3);
  EXPECT_EQ(world.size(), 3);
  EXPECT_EQ(world.rank(), 0);
  const char* const backends[] = {"cpu", "cpu"};
  lockstep_comm_options named = lockstep_comm_defaults();
  named.seats = 2;
  named.backends = backends;
  EXPECT_STREQ(ranks::comm(c, named).info().data, "staged");
  constexpr std::int64_t rows = 3000, cols = 7;
  std::vector<float> whole(rows * cols);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = 1.0f / static_cast<float>(i + 1);
  ranks::grid<float> slabs({rows, cols}, {3, 1});
  slabs.cut(0, {0, 1000, 1000, rows}).order({2, 0, 1});
  std::vector<std::vector<float>> blocks, turned;
  std::vector<lockstep_part> parts, turned_parts, sum_parts, total_parts;
  ranks::grid<float> columns({cols, rows}, {3, 1});
  std::vector<std::vector<double>> sums(3, std::vector<double>(cols)), totals(3, std::vector<double>(1));
  for (std::int32_t r = 0; r < 3; ++r) {
    const auto box = slabs.of(r);
    blocks.emplace_back(whole.begin() + box.low[0] * cols, whole.begin() + box.low[0] * cols + box.elements);
    turned.emplace_back(static_cast<std::size_t>(columns.of(r).elements));
  }
  const std::int64_t wide[] = {cols}, one[] = {1};
  for (std::int32_t r = 0; r < 3; ++r) {
    const auto i = static_cast<std::size_t>(r);
    parts.push_back(slabs.packed(r, blocks[i].data()));
    turned_parts.push_back(columns.packed(r, turned[i].data()));
    sum_parts.push_back(lockstep_part_packed(sums[i].data(), 1, wide));
    total_parts.push_back(lockstep_part_packed(totals[i].data(), 1, one));
  }
  ranks::permute(world, slabs, {1, 0}, columns).execute(parts.data(), turned_parts.data());
  ranks::plan by_columns = ranks::reduce(world, slabs, LOCKSTEP_SUM, 1);
  EXPECT_GT(by_columns.workspace(), 0u);
  lockstep_options begun = lockstep_options_defaults();
  begun.flags = LOCKSTEP_ASYNC;
  by_columns.execute(parts.data(), sum_parts.data(), begun);
  ranks::reduce(world, slabs, LOCKSTEP_SUM, 3).execute(parts.data(), total_parts.data());
  world.synchronize();

  std::vector<double> want(cols);
  run(c, lockstep_reduce_columns(LOCKSTEP_SUM, LOCKSTEP_F32, rows, cols, cols), whole.data(), want.data());
  double total = 0;
  run(c, lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, rows * cols, 1), whole.data(), &total);
  for (std::size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(sums[r], want);
    EXPECT_EQ(totals[r][0], total);
    const auto box = columns.of(static_cast<std::int32_t>(r));
    for (std::int64_t i = 0; i < box.elements; ++i)
      EXPECT_EQ(turned[r][static_cast<std::size_t>(i)],
                whole[static_cast<std::size_t>(i % rows * cols + box.low[0] + i / rows)]);
  }
}

TEST(Cpp, SaysWhatIsWrong) {
  context c("cpu");
  ranks::comm world(c, 2);
  const ranks::grid<float> three({8, 8}, {3, 1});
  try {
    ranks::redistribute(world, three, three);
    FAIL() << "no exception";
  } catch (const exception& e) {
    EXPECT_EQ(e.status(), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(e.what()).find("2 ranks"), std::string::npos) << e.what();
  }
  const ranks::grid<float> two({8, 8}, {2, 1});
  ranks::plan p = ranks::redistribute(world, two, two);
  EXPECT_EQ(p.estimate(1, 1).messages, 0);
  EXPECT_EQ(p.try_execute(nullptr, nullptr).status(), LOCKSTEP_INVALID_ARGUMENT);
}
}  // namespace
