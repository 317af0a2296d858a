// cpp_test.cpp - ranks.hpp: the same results as the C calls, exceptions with the library's words.
#include <gtest/gtest.h>

#include <cmath>
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

// A solver's step: its ghosts stay as they are while the blocks within them are transposed, here and there or in place.
TEST(Cpp, PermutesWithinGhostsAndInPlace) {
  context c("cpu");
  ranks::comm world(c, 3);
  const ranks::grid<float> square({9, 9}, {3, 1});
  const std::int64_t width[] = {1, 2};
  std::vector<std::vector<float>> from, to;
  std::vector<lockstep_part> src, dst;
  for (std::int32_t r = 0; r < 3; ++r) {
    const auto n = static_cast<std::size_t>(square.elements_with_ghosts(r, width));
    from.emplace_back(n, -1.0f), to.emplace_back(n, -2.0f);
  }
  for (std::int32_t r = 0; r < 3; ++r) {
    const auto i = static_cast<std::size_t>(r);
    src.push_back(square.with_ghosts(r, width, from[i].data()));
    dst.push_back(square.with_ghosts(r, width, to[i].data()));
    for (std::size_t k = 0; k < 27; ++k)
      static_cast<float*>(src.back().data)[k / 9 * 13 + k % 9] = static_cast<float>(27 * i + k);
  }
  ranks::plan turn = ranks::permute(world, square, {1, 0}, square);
  turn.execute(src.data(), dst.data());
  turn.execute(src.data(), src.data());
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t row = 0; row < 5; ++row)
      for (std::size_t column = 0; column < 13; ++column) {
        const bool inside = row >= 1 && row < 4 && column >= 2 && column < 11;
        const float want = inside ? static_cast<float>((column - 2) * 9 + 3 * r + row - 1) : -1.0f;
        EXPECT_EQ(from[r][row * 13 + column], want) << r << " " << row << " " << column;
        EXPECT_EQ(to[r][row * 13 + column], inside ? want : -2.0f) << r << " " << row << " " << column;
      }
}

TEST(Cpp, OptionsScalarsAndGhosts) {
  context c("cpu");
  ranks::comm world(c, 2);
  const ranks::grid<double> line({6}, {2});
  const std::int64_t width[] = {1};
  std::vector<std::vector<double>> memory;
  std::vector<lockstep_part> parts, totals;
  float results[2] = {};
  for (std::int32_t r = 0; r < 2; ++r) {
    const auto i = static_cast<std::size_t>(r);
    memory.emplace_back(static_cast<std::size_t>(line.elements_with_ghosts(r, width)), -1.0);
    for (std::size_t k = 0; k < 3; ++k) memory[i][1 + k] = static_cast<double>(3 * i + k);
    parts.push_back(line.with_ghosts(r, width, memory[i].data()));
    totals.push_back(ranks::scalar(results[i]));
  }
  ranks::halo(world, line, width, LOCKSTEP_BOUNDARY_WRAP).execute(nullptr, parts.data());
  EXPECT_EQ(memory[0], (std::vector<double>{5, 0, 1, 2, 3}));
  EXPECT_EQ(memory[1], (std::vector<double>{2, 3, 4, 5, 0}));
  std::vector<double> other[2] = {{9, 10, 11, 12, 9}, {9, 13, 14, 15, 9}};
  std::vector<lockstep_part> fields = parts;
  for (std::int32_t r = 0; r < 2; ++r) {
    memory[static_cast<std::size_t>(r)].front() = memory[static_cast<std::size_t>(r)].back() = -1;
    fields.push_back(line.with_ghosts(r, width, other[r].data()));
  }
  ranks::halo_fields(world, line, width, LOCKSTEP_BOUNDARY_WRAP, 2).execute(nullptr, fields.data());
  EXPECT_EQ(memory[0], (std::vector<double>{5, 0, 1, 2, 3}));
  EXPECT_EQ(other[0], (std::vector<double>{15, 10, 11, 12, 13}));
  EXPECT_EQ(other[1], (std::vector<double>{12, 13, 14, 15, 10}));

  // A workspace named with the plan is asked for at each execution.
  lockstep_options own = lockstep_options_defaults();
  own.workspace = results;  // any: its size is not yet known
  ranks::plan sum = ranks::reduce<float>(world, line, LOCKSTEP_SUM, 1, own);
  std::vector<char> room(sum.workspace() + 256);
  own.workspace = room.data() + (256 - reinterpret_cast<std::uintptr_t>(room.data()) % 256);
  own.workspace_bytes = 1;
  EXPECT_EQ(sum.try_execute(parts.data(), totals.data(), own).status(), LOCKSTEP_INVALID_ARGUMENT);
  own.workspace_bytes = sum.workspace();
  sum.execute(parts.data(), totals.data(), own);
  for (const float result : results) EXPECT_EQ(result, 15.0f);

  std::vector<lockstep_part> both = parts;
  both.insert(both.end(), parts.begin(), parts.end());
  ranks::sums<float>(world, line, LOCKSTEP_SUMS_DOT, 1).execute(both.data(), totals.data());
  for (const float result : results) EXPECT_EQ(result, 55.0f);
  std::vector<lockstep_part> three = parts;
  for (int k = 0; k < 2; ++k) three.insert(three.end(), parts.begin(), parts.end());
  float many[2][2];
  const std::int64_t two_results = 2;
  const std::array<lockstep_part, 2> into = {lockstep_part_packed(many[0], 1, &two_results),
                                             lockstep_part_packed(many[1], 1, &two_results)};
  ranks::reduce_several<float>(world, line, {ranks::sum, ranks::dot}).execute(three.data(), into.data());
  for (const auto& results_of : many)
    EXPECT_EQ((std::vector<float>{results_of[0], results_of[1]}), (std::vector<float>{15, 55}));
  double pairs[2][2];
  const std::int64_t two = 2;
  const std::array<lockstep_part, 2> to = {lockstep_part_packed(pairs[0], 1, &two),
                                           lockstep_part_packed(pairs[1], 1, &two)};
  ranks::mean_variance(world, line, 1, 1).execute(parts.data(), to.data());
  for (const auto& pair : pairs) EXPECT_EQ((std::vector<double>{pair[0], pair[1]}), (std::vector<double>{2.5, 3.5}));

  // One row, 0 to 5, whose norm is the root of 55; the square of each element over it, times the weight of its column.
  const std::int64_t halves[] = {3};
  double scaled[6], weights[6] = {0, 1, 2, 3, 4, 5};
  std::vector<lockstep_part> in = parts, out;
  for (int s = 0; s < 2; ++s) {
    in.push_back(lockstep_part_packed(weights + 3 * s, 1, halves));
    out.push_back(lockstep_part_packed(scaled + 3 * s, 1, halves));
  }
  const lockstep_normalize_desc rows = lockstep_normalize_rows(LOCKSTEP_NORMALIZE_L2, LOCKSTEP_F64, 0, 0, 1e-9);
  ranks::normalize(world, line, rows, LOCKSTEP_RANKS_WEIGHT).execute(in.data(), out.data());
  for (int i = 0; i < 6; ++i) EXPECT_EQ(scaled[i], i / std::sqrt(55.0) * i);
  ranks::scan(world, line, LOCKSTEP_SUM, 0, true).execute(parts.data(), out.data());
  EXPECT_EQ(std::vector<double>(scaled, scaled + 6), (std::vector<double>{0, 0, 1, 3, 6, 10}));
}

TEST(Cpp, PartsWithGhosts) {
  double memory[5 * 8];
  const std::int64_t length[] = {3, 4}, width[] = {1, 2}, negative[] = {1, -2}, huge[] = {std::int64_t{1} << 62, 0};
  const lockstep_part p = lockstep_part_with_ghosts(memory, sizeof *memory, 2, length, width);
  EXPECT_EQ(p.data, memory + 8 + 2);
  EXPECT_EQ(p.strides[0], 8);
  EXPECT_EQ(p.strides[1], 1);
  EXPECT_EQ(lockstep_part_with_ghosts(memory, 8, 2, length, negative).data, nullptr);
  EXPECT_EQ(lockstep_part_with_ghosts(memory, 8, 2, length, huge).data, nullptr);
  EXPECT_EQ(lockstep_part_with_ghosts(memory, 8, 9, length, width).data, nullptr);
  EXPECT_EQ(lockstep_part_with_ghosts(memory, 8, 2, nullptr, width).data, nullptr);
  EXPECT_EQ(lockstep_part_with_ghosts(memory, 8, 2, length, nullptr).data, nullptr);
  const lockstep_part one = lockstep_part_scalar(memory);
  EXPECT_EQ(one.data, memory);
  EXPECT_EQ(one.strides[0], 1);
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
  p.agree();
  EXPECT_EQ(p.estimate(1, 1).messages, 0);
  EXPECT_EQ(p.try_execute(nullptr, nullptr).status(), LOCKSTEP_INVALID_ARGUMENT);
}
}  // namespace
