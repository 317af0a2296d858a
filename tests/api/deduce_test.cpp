// deduce_test.cpp - lockstep.hpp without naming types: vectors, arrays and spans, const or not, give what spans give.
#include <gtest/gtest.h>

#include <array>
#include <lockstep/lockstep.hpp>
#include <type_traits>
#include <vector>

namespace {

class Deduce : public testing::Test {
 protected:
  lockstep::context c{"cpu"};
  std::vector<float> x{3, -1, 4, 1, -5, 9};
};

TEST_F(Deduce, Reductions) {
  const std::array<std::int32_t, 4> n{7, -2, 7, 1};
  const std::span<float> changeable(x);
  const std::span<const float> fixed(x);
  EXPECT_EQ(lockstep::sum(c, x), 11.0);
  EXPECT_EQ(lockstep::sum(c, changeable), 11.0);
  EXPECT_EQ(lockstep::sum(c, fixed), 11.0);
  EXPECT_EQ(lockstep::sum(c, n), 13);
  EXPECT_EQ(lockstep::sum(c, std::vector<double>{0.5, 0.25}), 0.75);
  EXPECT_EQ(lockstep::square_sum(c, x), 133.0);
  EXPECT_EQ(lockstep::norm2(c, std::array{3.0, 4.0}), 5.0);
  EXPECT_EQ(lockstep::min(c, x), -5.0f);
  EXPECT_EQ(lockstep::max(c, n), 7);
  EXPECT_EQ(lockstep::argmin(c, x), 4);
  EXPECT_EQ(lockstep::argmax(c, n), 0);
  // The result's type is that of the elements, as it is where T is named.
  static_assert(std::is_same_v<decltype(lockstep::sum(c, n)), std::int64_t>);
  static_assert(std::is_same_v<decltype(lockstep::max(c, x)), float>);
  // Naming T still works, for what is no range too.
  EXPECT_EQ(lockstep::sum<float>(c, x), 11.0);
  EXPECT_EQ(lockstep::sum<float>(c, {x.data(), 3}), 6.0);
}

TEST_F(Deduce, Arrays) {
  std::vector<float> y(6);
  lockstep::transpose(c, x, y, 2, 3);
  EXPECT_EQ(y, (std::vector<float>{3, 1, -1, -5, 4, 9}));
  lockstep::transpose(c, y, std::span(x), 3, 2);
  EXPECT_EQ(x, (std::vector<float>{3, -1, 4, 1, -5, 9}));
  lockstep::permute(c, x, y, std::array<std::int64_t, 2>{2, 3}, std::array<std::int32_t, 2>{1, 0});
  EXPECT_EQ(y, (std::vector<float>{3, 1, -1, -5, 4, 9}));
  std::vector<double> z(6);
  lockstep::convert(c, x, z, std::array<std::int64_t, 2>{2, 3}, std::array<std::int32_t, 2>{1, 0}, 2);
  EXPECT_EQ(z, (std::vector<double>{6, 2, -2, -10, 8, 18}));
  lockstep::convert(c, x, z);
  EXPECT_EQ(z, (std::vector<double>{3, -1, 4, 1, -5, 9}));
  std::vector<float> halves = {2, 4, 8, 0.5, 1, 16};
  lockstep::map(c, LOCKSTEP_MAP_RECIPROCAL, halves, y);
  EXPECT_EQ(y, (std::vector<float>{0.5, 0.25, 0.125, 2, 1, 0.0625}));
  lockstep::map(c, LOCKSTEP_MAP_RECIPROCAL, halves, y, std::array<std::int64_t, 2>{2, 3},
                std::array<std::int32_t, 2>{1, 0});
  EXPECT_EQ(y, (std::vector<float>{0.5, 2, 0.25, 1, 0.125, 0.0625}));
  std::array<double, 2> rows{};
  lockstep::reduce_matrix(c, LOCKSTEP_SUM, lockstep::along::rows, x, rows, 2, 3);
  EXPECT_EQ(rows, (std::array<double, 2>{6, 5}));
  lockstep::reduce_segments(c, LOCKSTEP_SUM, x, std::array<std::int64_t, 3>{0, 1, 6}, rows);
  EXPECT_EQ(rows, (std::array<double, 2>{3, 8}));
  lockstep::reduce_axes(c, LOCKSTEP_SUM, x, rows, std::array<std::int64_t, 3>{3, 2, 1},
                        std::array<std::int32_t, 2>{0, 2});
  EXPECT_EQ(rows, (std::array<double, 2>{2, 9}));
  EXPECT_EQ(lockstep::dot(c, x, std::vector<float>{1, 0, 0, 1, 0, 2}), 22.0);
  EXPECT_EQ(lockstep::dot(c, std::array<std::int32_t, 2>{3, 4}, std::array<std::int32_t, 2>{5, 6}), 39);
  EXPECT_EQ(lockstep::mean_variance(c, std::array{1.0, 3.0}, 1).variance, 2.0);
  lockstep::stencil(c, x, y, std::array<std::int64_t, 1>{6}, 1, std::array{0.0, 1.0}, LOCKSTEP_BOUNDARY_NEAREST);
  EXPECT_EQ(y, (std::vector<float>{2, 7, 0, -1, 10, 4}));
  std::vector<std::int32_t> lanes(32), swapped(32);
  for (int i = 0; i < 32; ++i) lanes[static_cast<size_t>(i)] = i;
  lockstep::shuffle(c, LOCKSTEP_SHUFFLE_XOR, lanes, swapped, 32, 1);
  EXPECT_EQ(swapped[0], 1);
  EXPECT_EQ(swapped[31], 30);
  // What does not fit is refused as it is for spans.
  std::vector<float> small(5);
  EXPECT_THROW(lockstep::transpose(c, x, small, 2, 3), lockstep::exception);
}

}  // namespace
