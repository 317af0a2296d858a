// predict_test.cpp - the rules by which lockstep probe predicts, compared with cases computed
// by hand and with a second method of counting.
#include "predict.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "patterns.hpp"

namespace {
using namespace lockstep::probe;

addresses lanes_of(pattern kind, uint32_t value, uint64_t bytes) {
  addresses lanes;
  for (uint32_t lane = 0; lane < 32; ++lane) lanes.push_back(lane_word(kind, value, lane) * bytes);
  return lanes;
}

TEST(Coalescing, WorkedExamples) {
  const addresses aligned = lanes_of(pattern::stride, 1, 4), permuted = lanes_of(pattern::permuted, 0, 4);
  EXPECT_EQ(granules(aligned, 4, 32), 4);
  EXPECT_EQ(granules(aligned, 4, 128), 1);
  EXPECT_EQ(efficiency(aligned, 4, 32), 1);
  EXPECT_EQ(granules(permuted, 4, 32), 4);
  EXPECT_EQ(granules(lanes_of(pattern::offset, 1, 4), 4, 32), 5);
  EXPECT_EQ(granules(lanes_of(pattern::offset, 1, 4), 4, 128), 2);
  EXPECT_EQ(efficiency(lanes_of(pattern::offset, 1, 4), 4, 32), 0.8);
  EXPECT_EQ(efficiency(lanes_of(pattern::offset, 1, 4), 4, 128), 0.5);
  EXPECT_EQ(granules(lanes_of(pattern::offset, 8, 4), 4, 32), 4);
  EXPECT_EQ(granules(lanes_of(pattern::stride, 2, 4), 4, 32), 8);
  EXPECT_EQ(granules(lanes_of(pattern::stride, 32, 4), 4, 32), 32);
  EXPECT_EQ(efficiency(lanes_of(pattern::stride, 32, 4), 4, 32), 0.125);
  EXPECT_EQ(efficiency(lanes_of(pattern::stride, 32, 4), 4, 128), 0.03125);
  EXPECT_EQ(granules(lanes_of(pattern::broadcast, 0, 4), 4, 32), 1);
  EXPECT_EQ(granules({30}, 4, 32), 2);  // an access across a border
}

TEST(Coalescing, AgreesWithByteByByte) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    addresses lanes;
    for (int lane = 0; lane < 32; ++lane) lanes.push_back(random() % 3000);
    for (const int bytes : {1, 2, 4, 8, 16})
      for (const int granule : {32, 64, 128}) {
        std::set<uint64_t> touched;
        for (const uint64_t at : lanes)
          for (int b = 0; b < bytes; ++b)
            touched.insert((at + static_cast<uint64_t>(b)) / static_cast<uint64_t>(granule));
        EXPECT_EQ(granules(lanes, bytes, granule), static_cast<int>(touched.size()));
      }
  }
}

TEST(Scattered, GroupsShareALineAndEachLaneHasASector) {
  for (const uint32_t group : {2u, 4u})
    for (uint32_t request = 0; request < 64; ++request) {
      addresses lanes;
      for (uint32_t lane = 0; lane < 32; ++lane) lanes.push_back(4ull * scattered_word(request, lane, 1u << 17, group));
      EXPECT_GE(granules(lanes, 4, 32), 31) << request;
      EXPECT_LE(granules(lanes, 4, 128), static_cast<int>(32 / group)) << request;
    }
}

TEST(Scattered, EveryLaneALineOfItsOwn) {
  for (const uint32_t lines : {1u << 12, 1u << 17})
    for (uint32_t request = 0; request < 64; ++request) {
      addresses lanes;
      for (uint32_t lane = 0; lane < 32; ++lane) lanes.push_back(4ull * scattered_word(request, lane, lines));
      EXPECT_GE(granules(lanes, 4, 32), 31) << request;
      EXPECT_LT(*std::max_element(lanes.begin(), lanes.end()), 128ull * lines);
    }
}

TEST(Banks, WorkedExamples) {
  for (uint32_t stride = 1; stride <= 64; ++stride) {
    uint32_t divisor = 32;
    while (stride % divisor != 0) divisor /= 2;  // greatest common divisor with 32
    EXPECT_EQ(bank_cycles(lanes_of(pattern::stride, stride, 4), 4), static_cast<int>(divisor)) << stride;
  }
  EXPECT_EQ(bank_cycles(lanes_of(pattern::permuted, 0, 4), 4), 1);
  EXPECT_EQ(bank_cycles(lanes_of(pattern::broadcast, 0, 4), 4), 1);
  EXPECT_EQ(bank_cycles(lanes_of(pattern::multicast, 4, 4), 4), 1);
  EXPECT_EQ(bank_cycles(lanes_of(pattern::stride, 1, 1), 1), 1);
  EXPECT_EQ(bank_cycles(lanes_of(pattern::stride, 1, 2), 2), 1);
  EXPECT_EQ(bank_cycles(lanes_of(pattern::stride, 1, 8), 8), 2);
  EXPECT_EQ(bank_cycles(lanes_of(pattern::stride, 1, 16), 16), 4);
  EXPECT_EQ(bank_cycles(lanes_of(pattern::stride, 2, 8), 8), 4);
}

TEST(Constant, OneWordACycle) {
  for (const uint64_t distinct : {1u, 2u, 4u, 8u, 16u, 32u}) {
    addresses lanes;
    for (uint64_t lane = 0; lane < 32; ++lane) lanes.push_back(lane % distinct * 4);
    EXPECT_EQ(constant_cycles(lanes), static_cast<int>(distinct));
  }
}

// Corners that an H200 filtered alone (2-D: 85, 52 ... 256ths of the way).
TEST(Filter, WeightsOfAnH200) {
  const auto of = [](int x, int y, int z) { return filter_weights(x / 256.0, y / 256.0, z / 256.0); };
  using weights = std::array<int, 8>;
  EXPECT_EQ(of(176, 216, 0), (weights{13, 27, 67, 149}));  // 148.5 goes up
  EXPECT_EQ(of(128, 113, 0), (weights{72, 71, 56, 57}));
  EXPECT_EQ(of(32, 20, 0), (weights{207, 29, 17, 3}));
  const weights near = of(85, 52, 113);  // the slice of weight 143
  EXPECT_EQ((weights{near[0], near[1], near[2], near[3]}), (weights{77, 37, 19, 10}));
  EXPECT_EQ(of(0, 0, 0)[0], 256);
  EXPECT_EQ(filter_weights(0.5 / 256, 0, 0), (weights{255, 1}));  // a fraction's half goes up
}

TEST(Filter, WeightsAddUpAndStayNearTheirProducts) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    const int f[3] = {static_cast<int>(random() % 257), static_cast<int>(random() % 257),
                      static_cast<int>(random() % 257)};
    const auto w = filter_weights(f[0] / 256.0, f[1] / 256.0, f[2] / 256.0);
    int sum = 0;
    for (int c = 0; c < 8; ++c) {
      double product = 256;
      for (int d = 0; d < 3; ++d) product *= ((c >> d & 1) != 0 ? f[d] : 256 - f[d]) / 256.0;
      EXPECT_LE(std::abs(w[static_cast<size_t>(c)] - product), 1) << c;
      EXPECT_GE(w[static_cast<size_t>(c)], 0);
      sum += w[static_cast<size_t>(c)];
    }
    EXPECT_EQ(sum, 256);
  }
}

TEST(Occupancy, WorkedExamples) {
  const processor_limits hopper = {65536, 228 * 1024, 2048, 32, 1024};
  EXPECT_EQ(resident_blocks(hopper, 32, 256, 0), 8);
  EXPECT_EQ(resident_blocks(hopper, 33, 256, 0), 6);  // 40 registers: 12 warps a partition
  EXPECT_EQ(resident_blocks(hopper, 64, 256, 0), 4);
  EXPECT_EQ(resident_blocks(hopper, 128, 256, 0), 2);
  EXPECT_EQ(resident_blocks(hopper, 255, 256, 0), 1);
  EXPECT_EQ(resident_blocks(hopper, 16, 32, 0), 32);
  EXPECT_EQ(resident_blocks(hopper, 16, 1024, 0), 2);
  EXPECT_EQ(resident_blocks(hopper, 16, 256, 48 * 1024), 4);
  EXPECT_EQ(resident_blocks(hopper, 16, 256, 227 * 1024), 1);
}

TEST(Chain, VisitsEveryLineOnce) {
  for (const uint32_t n : {32u, 1024u, 1u << 16}) {
    std::vector<bool> seen(n);
    uint32_t at = 0;
    for (uint32_t s = 0; s < n; ++s) {
      ASSERT_FALSE(seen[at]);
      seen[at] = true;
      at = next_line(at, n);
    }
    EXPECT_EQ(at, 0u);
  }
}

TEST(Cpu, Splits) {
  EXPECT_EQ(split_fraction(0, 64, 64), 0);
  EXPECT_EQ(split_fraction(4, 64, 64), 1);
  EXPECT_EQ(split_fraction(4, 32, 64), 0.5);
  EXPECT_EQ(split_fraction(32, 32, 64), 0);
  EXPECT_EQ(split_fraction(4, 16, 64), 0.25);
  EXPECT_EQ(line_efficiency(8, 8, 64), 1);
  EXPECT_EQ(line_efficiency(32, 8, 64), 0.25);
  EXPECT_EQ(line_efficiency(64, 8, 64), 0.125);
  EXPECT_EQ(line_efficiency(4096, 8, 64), 0.125);
}

}  // namespace
