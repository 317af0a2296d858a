// tuning_test.cpp - the rows of backends/cpu/tuning.hpp, and the choice of a row by name.
#include <gtest/gtest.h>

#include "queue.hpp"

namespace lockstep::cpu {
namespace {

TEST(Tuning, CachesAreThoseOfOneCore) {
  const caches has = machine_caches();
  EXPECT_GE(has.l1, 4 << 10);
  EXPECT_LE(has.l1, has.l2);
  EXPECT_LE(has.l2, has.l3);
  EXPECT_TRUE(has.l3 <= 32 << 20 || has.l3 == has.l2) << "a virtual machine shows the host's whole cache: " << has.l3;
}

// What the tables of tests/results were measured with: cores of 1 MiB of L2 that share 32 MiB of L3.
TEST(Tuning, TheMeasuredMachinesKeepTheirNumbers) {
  const tuning t{"measured", caches{}};
  constexpr int64_t kib = 1 << 10, mib = 1 << 20;
  EXPECT_EQ(t.reductions.two_streams_from, 32 * mib);
  EXPECT_EQ(t.reductions.two_extremes_from, 16 * mib);
  EXPECT_EQ(t.reductions.alternating_from, 768 * kib);
  EXPECT_EQ(t.reductions.alternating_below, 32 * mib);
  EXPECT_EQ(t.reductions.stolen_from, 16 * mib);
  EXPECT_EQ(t.reductions.cached_bytes(8), mib);
  EXPECT_EQ(t.reductions.cached_bytes(4), 0);
  EXPECT_EQ(t.moves.cached_bytes, mib);
  EXPECT_EQ(t.moves.stream_bytes, 16 * mib);
  EXPECT_EQ(t.moves.own_columns_bytes, 2 * mib);
  EXPECT_EQ(t.moves.pipe_cached_below, 4 * mib);
  EXPECT_EQ(t.moves.own_copy_bytes, mib);
  EXPECT_EQ(t.moves.shuffle_stream_bytes, 32 * mib);
  EXPECT_EQ(t.stencils.star_bytes, 640 * kib);
  EXPECT_EQ(t.stencils.stream_bytes, 32 * mib);
  EXPECT_EQ(t.stencils.group_bytes, mib);
  EXPECT_EQ(t.stencils.l1_tile, 32 * kib * 2 / 3);
  EXPECT_EQ(t.stencils.l2_tile, 512 * kib);
}

TEST(Tuning, NumbersFollowTheCaches) {
  const tuning t{"small", caches{32 << 10, 256 << 10, 8 << 20}};
  EXPECT_EQ(t.reductions.two_streams_from, 8 << 20);
  EXPECT_EQ(t.reductions.alternating_from, 192 << 10);
  EXPECT_EQ(t.moves.stream_bytes, 4 << 20);
  EXPECT_EQ(t.stencils.star_bytes, 160 << 10);
}

TEST(Tuning, Zen4TakesTheKernelsByHalves) {
  const tuning* row = find_tuning("zen4");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(kernels_for(isa::avx512, row->halves), kernel_set::avx512_halves);
  EXPECT_EQ(kernels_for(isa::avx2, row->halves), kernel_set::avx2);
  EXPECT_EQ(kernels_for(isa::avx512, find_tuning("default")->halves), kernel_set::avx512);
  EXPECT_EQ(row->reductions.cached_bytes(4), row->has.l3 / 4 * 3);
  EXPECT_FALSE(row->reductions.two_streams_of_2_bytes);
  EXPECT_EQ(find_tuning("zen"), nullptr);
}

TEST(Tuning, ALevelMayNameARow) {
  cpu_choice chosen = best_choice();
  const char* why = "";
  ASSERT_TRUE(parse_isa("baseline:zen4", chosen, why)) << why;
  EXPECT_EQ(chosen.level, isa::baseline);
  EXPECT_STREQ(chosen.tuned->name, "zen4");
  ASSERT_TRUE(parse_isa("baseline", chosen, why)) << why;
  EXPECT_STREQ(chosen.tuned->name, "default");
  EXPECT_FALSE(parse_isa("baseline:zen9", chosen, why));
  EXPECT_STREQ(why, "known tunings are default, zen4");
  EXPECT_FALSE(parse_isa("avx512_zen4", chosen, why));
  EXPECT_NE(std::string(why).find("avx512:zen4"), std::string::npos) << why;
  for (const char* name : {"", "base", "baselines", ":zen4", "avx", "mmx"}) {
    EXPECT_FALSE(parse_isa(name, chosen, why)) << name;
    EXPECT_STREQ(why, "known are baseline, avx2, avx512");
  }
}

}  // namespace
}  // namespace lockstep::cpu
