// tiles_test.cpp - plans of tiles.cu (small boxes), followed on the host: every word lies within the image, rows
// do not meet there, every byte of dst is written by its own box, and no other byte is.
#include "moves/tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace lockstep::cuda {
namespace {

uintptr_t number(const void* p) { return reinterpret_cast<uintptr_t>(p); }

tile_row row_at(const tile_level* levels, int count, uint32_t row, unsigned cut, int bytes) {
  return bytes == 1   ? row_of<2>(levels, count, row, cut)
         : bytes == 2 ? row_of<1>(levels, count, row, cut)
                      : row_of<0>(levels, count, row, cut);
}

// One box after the other, as blocks of threads take them.
void follow(const tiles_plan& plan, int bytes, std::vector<uint8_t>& writes, const unsigned char* dst_begin) {
  const uint32_t word = std::max(bytes, 4);
  std::vector<int> owner(plan.image);
  std::vector<uint8_t> image(plan.image);
  for (uint32_t box = 0; box < plan.boxes; ++box) {
    const unsigned char* src = plan.src;
    unsigned char* dst = plan.dst;
    unsigned cut = 0;
    bool first = true, last = true;
    uint32_t rest = box;
    for (int k = 0; k < plan.axes; ++k) {
      uint32_t index = rest;
      rest = plan.axis[k].boxes.split(index);
      src += index * plan.axis[k].src_step, dst += index * plan.axis[k].dst_step;
      if (index == plan.axis[k].boxes.d - 1) cut |= 1u << k;
      if (k == plan.overlap) first = index == 0, last = index == plan.axis[k].boxes.d - 1;
    }
    const auto length = [&](const tile_side& s) { return s.cut >= 0 && (cut >> s.cut & 1) != 0 ? s.cut_run : s.run; };
    const uint32_t skew = bytes < 4 ? number(src) % 4 : 0;
    std::fill(owner.begin(), owner.end(), -1);
    for (uint32_t row = 0; row < plan.from.rows; ++row) {
      const tile_row r = row_at(plan.from.at, plan.from.levels, row, cut, bytes);
      if (r.there == 0) continue;
      const unsigned char* from = src + r.memory;
      ASSERT_LE(number(plan.src), number(from));
      ASSERT_LE(number(from) + length(plan.from) * bytes, number(plan.src_end));
      const uint32_t before = bytes < 4 ? number(from) % 4 : 0;
      const uint32_t place = skew + r.place;
      if (bytes < 4) ASSERT_EQ(place % 4, before) << "a word of src is none of the image";
      const uint32_t begin = place - before, end = begin + (before + length(plan.from) * bytes + word - 1) / word * word;
      ASSERT_LE(end, plan.image);
      for (uint32_t b = begin; b < end; ++b) {
        ASSERT_EQ(owner[b], -1) << "two rows meet";
        owner[b] = static_cast<int>(row);
      }
      std::memcpy(&image[place], from, length(plan.from) * bytes);
    }
    ASSERT_LE(plan.to.lanes.d * plan.to.groups, plan.threads);
    ASSERT_LE(plan.from.lanes.d * plan.from.groups, plan.threads);
    for (uint32_t row = 0; row < plan.to.rows; ++row) {
      const tile_row r = row_at(plan.to.at, plan.to.levels, row, cut, bytes);
      if (r.there == 0) continue;
      unsigned char* to = dst + r.memory;
      uint32_t begin = 0, end = length(plan.to);
      if (plan.overlap >= 0) {
        const auto base = static_cast<uint32_t>(number(to));
        if (!first) begin = (-base & (tile_sector - 1)) / bytes;
        if (!last) {
          end = plan.overlap_step + (-(base + plan.overlap_step * bytes) & (tile_sector - 1)) / bytes;
          ASSERT_LE(end, length(plan.to));
        }
      }
      for (uint32_t column = begin; column < end; ++column) {
        const uint32_t place = row_at(plan.run, plan.run_levels, column, 0, bytes).place;
        ASSERT_LT(place, 65536u);
        ASSERT_NE(owner[skew + place + r.place], -1) << "an element that has not come in";
        std::memcpy(to + column * bytes, &image[skew + place + r.place], bytes);
        for (int b = 0; b < bytes; ++b) ++writes[to + column * bytes + b - dst_begin];
      }
    }
  }
}

struct room {
  int64_t src_bytes, dst_bytes, most_bytes;
  bool overlap;
  uint32_t threads;
};

void check(const std::vector<int64_t>& shape, const std::vector<int>& perm, int bytes, int64_t pad_src, int64_t pad_dst,
           int offset, const room& r) {
  lockstep_call call{};
  lockstep_permute_desc& d = call.permute;
  d.element_bytes = bytes, d.rank = static_cast<int>(shape.size());
  int64_t n = 1, m = 1;
  for (int k = d.rank - 1; k >= 0; --k) {
    d.shape[k] = shape[k], d.perm[k] = perm[k];
    d.src_strides[k] = n, n = n * shape[k] + (k > 0 ? pad_src : 0);
  }
  for (int k = d.rank - 1; k >= 0; --k) d.dst_strides[k] = m, m = m * shape[perm[k]] + (k > 0 ? pad_dst : 0);
  std::vector<std::max_align_t> src_memory((n * bytes + 256) / sizeof(std::max_align_t)), dst_memory((m * bytes + 256) / sizeof(std::max_align_t));
  auto* src = reinterpret_cast<unsigned char*>(src_memory.data()) + offset * bytes;
  auto* dst = reinterpret_cast<unsigned char*>(dst_memory.data()) + (offset * 3 % 7) * bytes;
  std::mt19937 random(1);
  for (int64_t k = 0; k < n * bytes; ++k) src[k] = static_cast<unsigned char>(random());
  call.src = src, call.dst = dst;
  const axes a = simplified(call, pointers::as_given);
  if (a.rank == 0) return;
  tiles_plan plan;
  int64_t most = r.most_bytes;
  while (!plan_tiles(a, choose_tiles(a, r.src_bytes, r.dst_bytes, most, r.overlap, r.threads), plan)) ASSERT_GE(most /= 2, 64);
  ASSERT_LE(tiles_shared(plan, a.element_bytes), 48u * 1024);
  std::vector<uint8_t> writes(m * bytes);
  ASSERT_NO_FATAL_FAILURE(follow(plan, a.element_bytes, writes, dst));
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
  for (int turn = 0; turn < 3000; ++turn) {
    std::vector<int64_t> shape(2 + up_to(5));
    std::vector<int> perm(shape.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random);
    int64_t all = 1;
    for (int64_t& s : shape) s = std::clamp<int64_t>(1 + up_to(up_to(4) == 0 ? 300 : 20), 1, std::max<int64_t>(40000 / all, 1)), all *= s;
    const int bytes = 1 << up_to(5);
    const int64_t pad_src = up_to(3) == 0 ? up_to(5) : 0, pad_dst = up_to(3) == 0 ? up_to(5) : 0;
    const int offset = up_to(2) == 0 ? up_to(4) : 0;
    const room r{32 << up_to(5), 32 << up_to(5), 1024 << up_to(5), up_to(2) == 0, 64u << up_to(3)};
    std::string text = "b" + std::to_string(bytes);
    for (const int64_t s : shape) text += " x" + std::to_string(s);
    for (const int p : perm) text += "," + std::to_string(p);
    SCOPED_TRACE(text + " pads " + std::to_string(pad_src) + " " + std::to_string(pad_dst) + " offset " + std::to_string(offset) + " turn " + std::to_string(turn));
    ASSERT_NO_FATAL_FAILURE(check(shape, perm, bytes, pad_src, pad_dst, offset, r));
  }
}

}  // namespace
}  // namespace lockstep::cuda
