// tiles_test.cpp - plans of moves/tiles.cu, executed on the host: every word is within the image, an element is read
// from where it was put, every byte of dst is written once, and no other byte is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "moves/moves.hpp"

namespace lockstep::cuda {
namespace {

const move_tuning h100{{132, 50 << 20}};

void follow(const tiles_plan& plan, const tiles_choice& choice, int bytes, std::vector<uint8_t>& writes,
            const unsigned char* dst_begin) {
  std::vector<unsigned char> image(plan.image);
  std::vector<uint32_t> owner(plan.image / bytes);
  for (uint32_t block = 0; block < plan.grid; ++block) {
    uint32_t tile_j = block;
    uint32_t tile_i = plan.tiles_j.split(tile_j);
    uint32_t rest = plan.tiles_i.split(tile_i);
    const uint32_t i0 = tile_i * plan.tile_i, j0 = tile_j * plan.tile_j;
    uint32_t from = i0 * plan.inner.d, to = j0 * plan.inner.d;
    for (int k = 0; k < plan.outer; ++k) {
      uint32_t index = rest;
      rest = plan.out[k].count.split(index);
      from += index * plan.out[k].src, to += index * plan.out[k].dst;
    }
    ASSERT_EQ(rest, 0u);
    const uint32_t here_i = std::min(plan.count_i - i0, plan.tile_i), here_j = std::min(plan.count_j - j0, plan.tile_j);
    std::fill(owner.begin(), owner.end(), 0u);
    const auto place = [&](uint32_t j) { return j * plan.pitch + j / choice.word_j * plan.skew; };
    for (uint32_t t = 0; t < move_threads; ++t)
      for (int p = 0; p < choice.rounds; ++p) {
        uint32_t column = t;
        const uint32_t row = plan.lanes_i.split(column), j = row + p * plan.groups_i;
        column *= choice.word_i;
        if (row >= plan.groups_i || column >= here_i * plan.inner.d || j >= here_j) continue;
        const unsigned char* at = plan.src + int64_t{from + column + plan.j.offset(j0 + j)} * bytes;
        if (choice.word_i > 1) {
          ASSERT_EQ(reinterpret_cast<uintptr_t>(at) % (choice.word_i * bytes), 0u);
        }
        ASSERT_EQ((place(j) + column) % choice.word_i, 0u);
        ASSERT_LE((place(j) + column + choice.word_i) * bytes, plan.image);
        for (int k = 0; k < choice.word_i; ++k) ASSERT_EQ(owner[place(j) + column + k]++, 0u) << "two words meet";
        std::memcpy(&image[(place(j) + column) * bytes], at, bytes * choice.word_i);
      }
    for (uint32_t t = 0; t < move_threads; ++t)
      for (int p = 0; p < choice.rounds; ++p) {
        uint32_t column = t;
        const uint32_t row = plan.lanes_j.split(column), i = row + p * plan.groups_j;
        column *= choice.word_j;
        if (row >= plan.groups_j || column >= here_j * plan.inner.d || i >= here_i) continue;
        unsigned char* at = plan.dst + int64_t{to + column + plan.i.offset(i0 + i)} * bytes;
        if (choice.word_j > 1) {
          ASSERT_EQ(reinterpret_cast<uintptr_t>(at) % (choice.word_j * bytes), 0u);
        }
        for (int k = 0; k < choice.word_j; ++k) {
          uint32_t within = column + k;
          const uint32_t j = plan.inner.split(within);
          const uint32_t e = place(j) + plan.within.offset(within) + i * plan.inner.d;
          ASSERT_EQ(owner[e], 1u) << "an element that has not come in";
          std::memcpy(at + k * bytes, &image[e * bytes], bytes);
          for (int b = 0; b < bytes; ++b) ++writes[at + k * bytes + b - dst_begin];
        }
      }
  }
}

int checked = 0;

void check(const std::vector<int64_t>& shape, const std::vector<int>& perm, int bytes, int64_t pad_src, int64_t pad_dst,
           int offset, int want_i, int want_j) {
  lockstep_call call{};
  call.op = LOCKSTEP_PERMUTE;
  lockstep_permute_desc& d = call.permute;
  d.element_bytes = bytes, d.rank = static_cast<int>(shape.size());
  int64_t n = 1, m = 1;
  for (int k = d.rank - 1; k >= 0; --k) {
    d.shape[k] = shape[k], d.perm[k] = perm[k];
    d.src_strides[k] = n, n = n * shape[k] + (k > 0 ? pad_src : 0);
  }
  for (int k = d.rank - 1; k >= 0; --k) d.dst_strides[k] = m, m = m * shape[perm[k]] + (k > 0 ? pad_dst : 0);
  std::vector<std::max_align_t> src_memory((n * bytes + 256) / sizeof(std::max_align_t)),
      dst_memory((m * bytes + 256) / sizeof(std::max_align_t));
  auto* src = reinterpret_cast<unsigned char*>(src_memory.data()) + offset * bytes;
  auto* dst = reinterpret_cast<unsigned char*>(dst_memory.data()) + (offset * 3 % 7) * bytes;
  std::mt19937 random(1);
  for (int64_t k = 0; k < n * bytes; ++k) src[k] = static_cast<unsigned char>(random());
  call.src = src, call.dst = dst;
  const axes a = simplified(call, pointers::as_given);
  tiles_shape s;
  if (!shape_tiles(a, pointers::as_given, s)) return;
  tiles_plan plan;
  tiles_choice choice{};
  if (want_i == 0) {  // as a launch chooses
    if (!std::isfinite(choose_tiles(a, s, h100, choice))) return;
    ASSERT_TRUE(plan_tiles(a, s, choice, plan));
  } else {
    choice = {tile_share(s, false, std::max<int64_t>(want_i / s.block, 1), s.word_i),
              tile_share(s, true, std::max<int64_t>(want_j / s.block, 1), s.word_j), 16, s.word_i, s.word_j};
    if (!plan_tiles(a, s, choice, plan)) return;
  }
  ASSERT_LE(plan.image, 48u * 1024);
  ++checked;
  std::vector<uint8_t> writes(m * bytes);
  ASSERT_NO_FATAL_FAILURE(follow(plan, choice, a.element_bytes, writes, dst));
  const int64_t all = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  int64_t written = 0;
  for (const uint8_t w : writes) {
    ASSERT_LE(w, 1) << "written twice";
    written += w;
  }
  ASSERT_EQ(written, all * bytes);
  std::vector<int64_t> at(shape.size());
  for (int64_t e = 0; e < all; ++e) {
    int64_t from = 0, to = 0, rest = e;
    for (int k = d.rank - 1; k >= 0; --k) at[k] = rest % shape[k], rest /= shape[k], from += at[k] * d.src_strides[k];
    for (int k = 0; k < d.rank; ++k) to += at[perm[k]] * d.dst_strides[k];
    ASSERT_EQ(std::memcmp(src + from * bytes, dst + to * bytes, bytes), 0);
  }
}

TEST(tiles, random_permutations) {
  std::mt19937 random(20261123);
  const auto up_to = [&](int most) { return static_cast<int>(random() % most); };
  for (int turn = 0; turn < 1200; ++turn) {
    std::vector<int64_t> shape(2 + up_to(5));
    std::vector<int> perm(shape.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random);
    int64_t all = 1;
    for (int64_t& s : shape)
      s = std::clamp<int64_t>(1 + up_to(up_to(4) == 0 ? 300 : 20), 1, std::max<int64_t>(40000 / all, 1)), all *= s;
    const int bytes = 1 << up_to(5);
    const int64_t pad_src = up_to(3) == 0 ? up_to(5) : 0, pad_dst = up_to(3) == 0 ? up_to(5) : 0;
    const int offset = up_to(2) == 0 ? up_to(4) : 0;
    std::string text = "b" + std::to_string(bytes);
    for (const int64_t s : shape) text += " x" + std::to_string(s);
    for (const int p : perm) text += "," + std::to_string(p);
    SCOPED_TRACE(text + " pads " + std::to_string(pad_src) + " " + std::to_string(pad_dst) + " offset " +
                 std::to_string(offset) + " turn " + std::to_string(turn));
    ASSERT_NO_FATAL_FAILURE(
        check(shape, perm, bytes, pad_src, pad_dst, offset, up_to(2) == 0 ? 0 : 4 << up_to(6), 4 << up_to(6)));
  }
  RecordProperty("checked", checked);
  EXPECT_GT(checked, 700);
}

// The gather walks dst in order: every element once, from where the permutation has it.
TEST(gather, offsets) {
  lockstep_call call{};
  call.op = LOCKSTEP_PERMUTE;
  lockstep_permute_desc& d = call.permute;
  const int64_t shape[] = {3, 5, 2, 7, 4}, perm[] = {3, 0, 4, 2, 1};
  d.element_bytes = 2, d.rank = 5;
  int64_t n = 1, m = 1;
  for (int k = 4; k >= 0; --k)
    d.shape[k] = shape[k], d.perm[k] = static_cast<int32_t>(perm[k]), d.src_strides[k] = n, n *= shape[k];
  for (int k = 4; k >= 0; --k) d.dst_strides[k] = m, m *= shape[perm[k]];
  const axes a = simplified(call, pointers::assumed_aligned);
  const gather_plan plan = plan_gather(a, h100);
  ASSERT_GE(uint64_t{plan.grid} * plan.threads * gather_rounds, plan.elements);
  std::vector<int> seen(n * d.element_bytes / a.element_bytes);
  for (uint32_t e = 0; e < plan.elements; ++e) {
    uint32_t rest = e, from = 0, to = 0;
    for (const quick_axis& x : plan.axis) {
      uint32_t index = rest;
      rest = x.count.split(index);
      from += index * x.src, to += index * x.dst;
    }
    ASSERT_EQ(to, e);  // dst is packed
    ++seen[from];
  }
  for (const int s : seen) ASSERT_EQ(s, 1);
}

TEST(quick_divider, one_is_no_special_case) {
  for (const int64_t by : {1, 2, 3, 7, 255, 256, 65537, 2147483647})
    for (const uint32_t n : {0u, 1u, 2u, 6u, 255u, 65536u, 2147483646u, 2147483647u})
      EXPECT_EQ(quick_divider(by).quotient(n), n / by) << n << " / " << by;
}

}  // namespace
}  // namespace lockstep::cuda
