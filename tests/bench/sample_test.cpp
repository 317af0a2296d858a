// sample_test.cpp - the draw of bench --sample: the same everywhere, in parts as in one run, within its bounds and with
// the shares that tools/bench/sample.hpp states.
#include "sample.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "cases.hpp"

namespace {
using namespace lockstep;
using tool::bench::drawn_case;
using tool::bench::drawn_cases;
using tool::bench::most_on_cpu;
using tool::bench::most_on_device;
using tool::bench::sampled_ops;

constexpr int many = 20000;

// A share of n draws lies within five standard deviations of its probability: by chance once in millions.
void expect_share(size_t found, size_t n, double p, const std::string& what) {
  const auto draws = static_cast<double>(n);
  EXPECT_NEAR(static_cast<double>(found) / draws, p, 5 * std::sqrt(p * (1 - p) / draws)) << what;
}

const std::vector<std::string>& draws_of_one_seed() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (uint64_t draw = 0; draw < many; ++draw) names.push_back(drawn_case(1, draw, most_on_device));
    return names;
  }();
  return all;
}

bool power_of_two(int64_t n) { return std::has_single_bit(static_cast<uint64_t>(n)); }

TEST(Sample, IsTheSameEverywhere) {
  const std::vector<std::string> known = {"permute/b2/1x577x40x96/perm0,2,1,3",
                                          "permute/b2/16x128x16x80/perm0,3,1,2",
                                          "reduce/argmax/f32/rows/7583x12215",
                                          "transpose/b2/2048x8192",
                                          "permute/b4/16x256x8x80/perm0,2,1,3",
                                          "stencil/f32/symmetric/nearest/r8/80x512x40",
                                          "transpose/b2/26778x8/batch68",
                                          "permute/b2/8x16x56x56/perm0,2,3,1",
                                          "stencil/f32/symmetric/nearest/r8/211x256x432",
                                          "permute/b2/16x197x8x40/perm2,0,1,3",
                                          "permute/b2/16x16x5x8x16x18/perm0,5,1,3,2,4",
                                          "permute/b4/32x512x12x80/perm2,0,1,3",
                                          "square_sum/ssq/f16/full/1048576",
                                          "permute/b8/24x37x53x8x16/perm2,1,3,0,4",
                                          "transpose/b4/15x5986/batch16",
                                          "stencil/f32/symmetric/nearest/r4/67108864"};
  EXPECT_EQ(drawn_cases(20261123, 0, 16, most_on_device), known);
}

// The second distribution: kinds by their cases' first word, the same everywhere, in bounds, with its shares.
TEST(SampleOfNewOps, IsTheSameEverywhere) {
  const std::vector<std::string> known = {"normalize/rms/bf16/8x12776/weight",
                                          "normalize/layer/bf16/2048x1528/weight/bias",
                                          "reduce_axes/norm2/bf16/5x64x136x24/axes0,2",
                                          "normalize/rms/f16/4972x112/weight",
                                          "normalize/rms/f16/3744x296/weight",
                                          "convert/bf16/f32/48x8192/perm1,0",
                                          "normalize/layer/f32/2896x9641/weight/bias",
                                          "scan/sum/f32/columns/27x177267",
                                          "convert/f16/f32/2963949/perm0",
                                          "scan/sum/f32/rows/8x1890",
                                          "sums/abs/bf16/rows/4280x140",
                                          "scan/max/f32/full/19584",
                                          "reduce_axes/sum/f32/88x95x226x4/axes1",
                                          "sums/meanvar/f64/rows/3011x8",
                                          "normalize/l2/bf16/85x1024",
                                          "convert/f32/bf16/16777216/perm0"};
  EXPECT_EQ(drawn_cases(20261123, 0, 16, most_on_cpu, sampled_ops::new_ones), known);
}

// Of small arrays, because a case makes the arrays beside src.
TEST(SampleOfNewOps, EveryDrawIsACaseWithinItsBounds) {
  for (const int64_t most : {int64_t{1} << 17, int64_t{1} << 19})
    for (uint64_t draw = 0; draw < 1000; ++draw) {
      const std::string name = drawn_case(2, draw, most, sampled_ops::new_ones);
      const cases::test_case c = cases::parse_timed(name);
      EXPECT_EQ(c.members.empty(), !name.starts_with("group/")) << name;
      int64_t elements = c.members.empty() ? c.src.elements() : 0;
      for (const cases::test_case& one : c.members) elements += one.src.elements();
      EXPECT_LE(elements, most) << name;
      EXPECT_GE(elements, c.members.empty() ? 8192 : 10) << name;
      if (!c.members.empty()) {
        EXPECT_GE(c.members.size(), 8u) << name;
        EXPECT_LE(c.members.size(), 2048u) << name;
      }
    }
}

TEST(SampleOfNewOps, KindsHaveTheirShares) {
  std::map<std::string, size_t> found;
  for (uint64_t draw = 0; draw < many; ++draw) {
    const std::string name = drawn_case(1, draw, most_on_device, sampled_ops::new_ones);
    ++found[name.substr(0, name.find('/'))];
  }
  const std::map<std::string, double> shares = {{"normalize", 0.24},   {"scan", 0.20},    {"sums", 0.18},
                                                {"reduce_axes", 0.14}, {"convert", 0.14}, {"group", 0.10}};
  for (const auto& [kind, p] : shares) expect_share(found[kind], many, p, kind);
  EXPECT_EQ(found.size(), shares.size());
}

TEST(GroupCases, HaveArraysOfTheirOwn) {
  const cases::test_case c = cases::parse_timed("group/300/varied/square_sum/norm2/bf16/full/5000");
  ASSERT_EQ(c.members.size(), 300u);
  size_t src_end = 0, dst_end = 0;
  int64_t longest = 0, shortest = 5000;
  for (size_t k = 0; k < 300; ++k) {
    EXPECT_GE(c.src_at[k], src_end);
    EXPECT_GE(c.dst_at[k], dst_end);
    EXPECT_EQ(c.src_at[k] % 64 + c.dst_at[k] % 64, 0u);
    src_end = c.src_at[k] + c.members[k].src.span_bytes(), dst_end = c.dst_at[k] + c.members[k].dst.span_bytes();
    longest = std::max(longest, c.members[k].reduce.length), shortest = std::min(shortest, c.members[k].reduce.length);
  }
  EXPECT_LE(src_end, c.src.span_bytes());
  EXPECT_LE(dst_end, c.dst.span_bytes());
  EXPECT_GT(longest, 2500);
  EXPECT_LT(shortest, 100);
  EXPECT_EQ(cases::parse_timed("group/7/transpose/b2/5x6").members[6].name, "transpose/b2/5x6");
  EXPECT_TRUE(cases::parse_timed("transpose/b2/5x6").members.empty());
  for (const char* name :
       {"group", "group/3", "group/0/transpose/b2/5x6", "group/x/transpose/b2/5x6", "group/3/varied/transpose/b2/5x6",
        "group/3/transpose/b2/5x5/inplace", "group/3/group/3/transpose/b2/5x5", "group/3/normalize/rms/f32/4x5/weight",
        "group/3/sums/dot/f32/full/5", "group/3/sums/abs/f32/even/5x6", "group/99999999/transpose/b2/5x6",
        "group/3/transpose/b2/5x6/off1,1"})
    EXPECT_THROW((void)cases::parse_timed(name), std::invalid_argument) << name;
  EXPECT_THROW((void)cases::parse("group/7/transpose/b2/5x6"), std::invalid_argument) << "of benches only";
}

TEST(Sample, PartsAreTheWhole) {
  const auto whole = drawn_cases(5, 0, 40, most_on_cpu);
  auto parts = drawn_cases(5, 0, 13, most_on_cpu);
  for (const std::string& name : drawn_cases(5, 13, 40, most_on_cpu)) parts.push_back(name);
  EXPECT_EQ(parts, whole);
}

TEST(Sample, SeedsDiffer) {
  std::set<std::string> all;
  for (uint64_t seed = 0; seed < 100; ++seed) all.insert(drawn_case(seed, 0, most_on_cpu));
  EXPECT_GT(all.size(), 95u);
  EXPECT_NE(drawn_cases(0, 0, 10, most_on_cpu), drawn_cases(1, 0, 10, most_on_cpu));
}

TEST(Sample, AShapeThatComesTwiceStandsOnce) {
  const auto all = drawn_cases(3, 0, many, most_on_cpu);
  EXPECT_LT(all.size(), static_cast<size_t>(many)) << "images repeat";
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
}

TEST(Sample, EveryDrawIsACaseWithinItsBounds) {
  for (const int64_t most : {most_on_cpu, most_on_device})
    for (uint64_t draw = 0; draw < 3000; ++draw) {
      const std::string name = drawn_case(2, draw, most);
      const cases::test_case c = cases::parse(name);
      const bool reduces = c.op == LOCKSTEP_REDUCE || c.op == LOCKSTEP_SQUARE_SUM;
      EXPECT_LE(c.src.elements(), most) << name;
      // Attention has no least size but what its sizes multiply to.
      const bool attention = c.op == LOCKSTEP_PERMUTE && c.permute.rank == 4;
      EXPECT_GE(c.src.elements(), reduces ? 8192 : attention ? 77 * 6 * 40 : 65536) << name;
      EXPECT_TRUE(c.op != LOCKSTEP_STENCIL || c.stencil.radius <= 8) << name;
    }
}

TEST(Sample, KindsHaveTheirShares) {
  // Attention and images that do not fit are drawn anew: how many fit, by going through all of them.
  double attention = 0, image = 0;
  for (const int64_t b : {1, 2, 4, 8, 16, 32})
    for (const int64_t s : {77, 128, 197, 256, 512, 577, 1024, 1500, 2048, 4096})
      for (const int64_t h : {6, 8, 12, 16, 32, 40})
        for (const int64_t d : {40, 64, 80, 96, 128}) attention += b * s * h * d <= most_on_device;
  attention /= 6 * 10 * 6 * 5;
  for (const int64_t b : {1, 8, 16, 32, 64, 128})
    for (const int64_t c : {3, 4, 16, 24, 48, 64, 96, 255, 256, 512})
      for (const int64_t side : {7, 14, 28, 56, 112, 160, 224, 384}) {
        const int64_t n = b * c * side * side;
        image += n >= 65536 && n <= most_on_device;
      }
  image /= 6 * 10 * 8;
  const double kept = 0.78 + 0.12 * attention + 0.10 * image;
  std::map<lockstep_op, size_t> found;
  size_t rows = 0, columns = 0, argmax = 0, sweeps = 0, ranks[4] = {};
  for (const std::string& name : draws_of_one_seed()) {
    const cases::test_case c = cases::parse(name);
    ++found[c.op];
    rows += name.find("/rows/") != std::string::npos;
    columns += name.find("/columns/") != std::string::npos;
    argmax += name.find("/argmax/") != std::string::npos;
    if (c.op == LOCKSTEP_STENCIL) sweeps += c.stencil.sweeps == 4, ++ranks[c.stencil.rank];
  }
  const size_t reductions = found[LOCKSTEP_REDUCE] + found[LOCKSTEP_SQUARE_SUM], stencils = found[LOCKSTEP_STENCIL];
  expect_share(found[LOCKSTEP_TRANSPOSE], many, 0.22 / kept, "transposes");
  expect_share(found[LOCKSTEP_PERMUTE], many, (0.12 * attention + 0.10 * image + 0.11) / kept, "permutes");
  expect_share(reductions, many, 0.30 / kept, "reductions");
  expect_share(stencils, many, 0.15 / kept, "stencils");
  expect_share(found[LOCKSTEP_SQUARE_SUM], reductions, 3.0 / 7, "squares and norms");
  expect_share(argmax, reductions, 1.0 / 7, "argmax");
  // Six in seven have columns in three of ten where there are rows.
  expect_share(columns, rows + columns, 6.0 / 7 * 0.3, "columns");
  expect_share(sweeps, stencils, 0.25, "four sweeps");
  for (int rank = 1; rank <= 3; ++rank) expect_share(ranks[rank], stencils, 1.0 / 3, "stencils of a rank");
}

TEST(Sample, TypesHaveTheirShares) {
  std::map<size_t, size_t> bytes;
  std::map<int, size_t> squares;
  size_t transposes = 0, square_sums = 0;
  for (const std::string& name : draws_of_one_seed()) {
    const cases::test_case c = cases::parse(name);
    if (c.op == LOCKSTEP_TRANSPOSE) ++bytes[c.src.element_bytes], ++transposes;
    if (c.op == LOCKSTEP_SQUARE_SUM) ++squares[c.dtype], ++square_sums;
  }
  expect_share(bytes[4], transposes, 4.0 / 12, "f32");
  expect_share(bytes[2], transposes, 5.0 / 12, "bf16 and f16");
  expect_share(bytes[8], transposes, 2.0 / 12, "f64");
  expect_share(bytes[1], transposes, 1.0 / 12, "u8");
  expect_share(squares[LOCKSTEP_F32], square_sums, 4.0 / 7, "squares of f32");
  for (const int dtype : {LOCKSTEP_F16, LOCKSTEP_BF16, LOCKSTEP_F64})
    expect_share(squares[dtype], square_sums, 1.0 / 7, "squares of another type");
}

// Of whole sequences, whose one size no other bound touches: from 8 Ki, the least, to 128 Mi.
TEST(Sample, SizesAreLogUniformAndRoundedAsStated) {
  std::vector<double> logs;
  size_t powers = 0, eights = 0;
  for (const std::string& name : draws_of_one_seed()) {
    std::smatch found;
    if (!std::regex_search(name, found, std::regex("/full/([0-9]+)"))) continue;
    const int64_t n = std::stoll(found[1]);
    logs.push_back(std::log2(static_cast<double>(n)));
    powers += power_of_two(n);
    eights += !power_of_two(n) && n % 8 == 0;
  }
  ASSERT_GT(logs.size(), 500u);
  std::sort(logs.begin(), logs.end());
  for (const double q : {0.1, 0.25, 0.5, 0.75, 0.9}) {
    // The error of a quantile of a uniform sample, five times.
    const double off = 5 * 14 * std::sqrt(q * (1 - q) / static_cast<double>(logs.size())) + 0.2;
    EXPECT_NEAR(logs[static_cast<size_t>(q * static_cast<double>(logs.size()))], 13 + 14 * q, off) << q;
  }
  expect_share(powers, logs.size(), 0.30, "powers of two");
  expect_share(eights, logs.size(), 0.30 + 0.40 / 8, "multiples of 8");
}
}  // namespace
