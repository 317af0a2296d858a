// order.cpp - lib/bits/order.hpp is the order that runs: sums, stencils and shuffles computed only with its functions
// have the bits of `ref` and of the row that auto picks. (The oracle of tests/cases uses none of its functions.)
#include "../../lib/bits/order.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "../../lib/bits/functions.hpp"
#include "check.hpp"
#include "context_of.hpp"

namespace lockstep::check {
namespace {
using namespace cases;

constexpr double joined_of_ones() {
  double lane[order::lanes];
  for (double& value : lane) value = 1.0;
  return order::join_lanes(lane);
}
static_assert(joined_of_ones() == 128.0);
static_assert(order::tap_of(0, 2, 3).axis == 0 && order::tap_of(0, 2, 3).offset == -2);
static_assert(order::tap_of(6, 2, 3).axis == 2 && order::tap_of(6, 2, 3).offset == 0);
static_assert(order::tap_of(12, 2, 3).axis == 0 && order::tap_of(12, 2, 3).offset == 2);

// Floats of both signs from 2^-20 to 2^20: their sum depends on the order in its last bits.
std::vector<float> numbers(int64_t n) {
  std::vector<float> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) {
    const uint64_t bits = mix(i + 1);
    x[i] = std::ldexp(static_cast<float>(bits >> 40) - 8388607.5f, static_cast<int>(bits % 41) - 20);
  }
  return x;
}

class Order : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { options.variant = GetParam(); }
  const context_of own{"cpu"};
  lockstep_context* const context = own.self;
  lockstep_options options = lockstep_options_defaults();
};

double sum_of(const std::vector<float>& x, bool squares) {
  const auto n = static_cast<int64_t>(x.size());
  order::tree<double> tree;
  for (int64_t leaf = 0; leaf < order::leaves(n); ++leaf) {
    double lane[order::lanes];
    std::fill(lane, lane + order::lanes, -0.0);
    for (int64_t i = leaf * order::leaf; i < std::min(n, (leaf + 1) * order::leaf); ++i) {
      const double v = x[static_cast<size_t>(i)];
      double& acc = lane[i % order::leaf % order::lanes];
      acc = squares ? std::fma(v, v, acc) : acc + v;
    }
    tree.push(order::join_lanes(lane));
  }
  return tree.total();
}

TEST_P(Order, Sums) {
  for (const int64_t n : {0, 1, 2, 127, 128, 129, 2047, 2048, 2049, 5 * 2048 + 77, 7 * 2048, 100003}) {
    const std::vector<float> x = numbers(n);
    for (const lockstep_reduction what : {LOCKSTEP_SUM, LOCKSTEP_SUM_OF_SQUARES}) {
      const lockstep_reduce_desc d = lockstep_reduce_full(what, LOCKSTEP_F32, n, 1);
      double got = NAN;
      const auto run = what == LOCKSTEP_SUM ? lockstep_reduce : lockstep_square_sum;
      ASSERT_EQ(run(context, &d, x.data(), &got, &options), LOCKSTEP_OK) << lockstep_last_error();
      const double want = sum_of(x, what == LOCKSTEP_SUM_OF_SQUARES);
      EXPECT_EQ(std::bit_cast<uint64_t>(got), std::bit_cast<uint64_t>(want)) << n << " elements";
    }
  }
}

TEST_P(Order, Stencils) {
  for (int rank = 1; rank <= 3; ++rank)
    for (const int radius : {1, 3}) {
      const int64_t shape[3] = {rank == 1 ? 211 : 7, rank == 2 ? 41 : 9, 37};
      int64_t strides[3], n = 1;
      for (int k = rank - 1; k >= 0; --k) strides[k] = n, n *= shape[k];
      const std::vector<float> x = numbers(n);
      std::vector<double> coefficients;
      for (int k = 0; k < 2 * radius * rank + 1; ++k) coefficients.push_back(0.1 + 0.37 * k);
      std::vector<float> got(x.size());
      const lockstep_stencil_desc d =
          lockstep_stencil_packed(LOCKSTEP_F32, rank, shape, radius, coefficients.data(), LOCKSTEP_BOUNDARY_MIRROR);
      ASSERT_EQ(lockstep_stencil(context, &d, x.data(), got.data(), &options), LOCKSTEP_OK) << lockstep_last_error();
      for (int64_t i = 0; i < n; ++i) {
        float sum = 0;
        for (int k = 0; k < 2 * radius * rank + 1; ++k) {
          const order::tap t = order::tap_of(k, radius, rank);
          const int64_t at = i / strides[t.axis] % shape[t.axis];
          const int64_t from = order::folded(at + t.offset, shape[t.axis], order::fold::mirror);
          const float v = x[static_cast<size_t>(i + (from - at) * strides[t.axis])];
          const auto c = static_cast<float>(coefficients[static_cast<size_t>(k)]);
          sum = k == 0 ? c * v : std::fma(c, v, sum);
        }
        ASSERT_EQ(std::bit_cast<uint32_t>(got[static_cast<size_t>(i)]), std::bit_cast<uint32_t>(sum))
            << "rank " << rank << ", radius " << radius << ", element " << i;
      }
    }
}

TEST_P(Order, Shuffles) {
  std::vector<int32_t> x(64), got(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int32_t>(1000 + i);
  for (int kind = 0; kind < 4; ++kind)
    for (int width = 1; width <= 32; width *= 2)
      for (int32_t operand = kind == LOCKSTEP_SHUFFLE_IDX ? -40 : 0;
           operand <= (kind == LOCKSTEP_SHUFFLE_XOR ? 31 : 40); ++operand) {
        const auto d = lockstep_shuffle_warps(static_cast<lockstep_shuffle_kind>(kind), 4, 64, width, operand);
        ASSERT_EQ(lockstep_shuffle(context, &d, x.data(), got.data(), &options), LOCKSTEP_OK) << lockstep_last_error();
        for (int i = 0; i < 64; ++i)
          ASSERT_EQ(got[static_cast<size_t>(i)],
                    1000 + i / 32 * 32 + order::source_lane(static_cast<order::shuffle>(kind), i % 32, width, operand))
              << "kind " << kind << ", width " << width << ", operand " << operand << ", element " << i;
      }
}

// For usual arguments a program leaves out what it chooses for others. That changes no bit of theirs: floats of all
// sizes, and those around the ends of what is usual.
template <functions::function f>
void expect_the_same_program() {
  using all = functions::programs<functions::scalar>;
  using usual = functions::programs<functions::usual_scalar>;
  int wrong = 0;
  const auto expect = [&](uint32_t bits) {
    const auto x = std::bit_cast<float>(bits);
    if (!functions::is_usual<f>(x)) return;
    const double want = all::apply<f>(x), got = usual::apply<f>(x);
    const bool same = std::bit_cast<uint64_t>(want) == std::bit_cast<uint64_t>(got);
    if (!same && ++wrong <= 3) ADD_FAILURE() << functions::names[f] << " of " << x << " is " << got << ", not " << want;
  };
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 131071) expect(static_cast<uint32_t>(bits));
  for (const float end : {88.0F, 60.0F, 38.0F, 30.0F, 22.0F, 20.0F, 7.5F, 7.0F, 6.5F, 1.0F, 0x1p-10F, 0x1p-12F,
                          0x1p-16F, 0x1p-20F, 0x1p-40F, 0.0F})
    for (uint32_t k = 0; k < 2000; ++k)
      for (const uint32_t sign : {0U, 0x80000000U}) expect((std::bit_cast<uint32_t>(end) + k - 1000) ^ sign);
}
TEST(Runner, ProgramsOfUsualArgumentsHaveTheBitsOfAll) {
  [&]<size_t... f>(std::index_sequence<f...>) { (expect_the_same_program<static_cast<functions::function>(f)>(), ...); }
  (std::make_index_sequence<functions::count>{});
}

INSTANTIATE_TEST_SUITE_P(Rows, Order, testing::Values("ref", "auto"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lockstep::check
