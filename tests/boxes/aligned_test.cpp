// aligned_test.cpp - plans of aligned.cu (boxes by aligned chunks), executed on the host: every
// chunk is within its image and overlaps no other, addresses and places agree modulo 16, every
// byte of dst is written by its own box, and no other byte is written.
#include "permute/aligned.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace lockstep::cuda {
namespace {

const move_tuning h100{{132, 50 << 20}};

uintptr_t number(const void* p) { return reinterpret_cast<uintptr_t>(p); }

struct run_at {
  int64_t memory = 0;
  uint32_t place = 0;
};

// False where the box, cut short along the axes of `cut`, lacks that run.
bool run_of(const aligned_plan& plan, const run_side& side, uint32_t run, unsigned cut, run_at& r) {
  for (int k = 0; k < side.axes; ++k) {
    uint32_t index = run;
    run = side.at[k].count.split(index);
    r.memory += index * side.at[k].memory, r.place += index * side.at[k].place;
    if ((cut >> side.at[k].tile & 1) != 0 && index >= plan.tile[side.at[k].tile].last) return false;
  }
  return true;
}

uint32_t bytes_of(const run_side& side, unsigned cut) {
  return side.cut >= 0 && (cut >> side.cut & 1) != 0 ? side.cut_bytes : side.bytes;
}

// One box after the other, as blocks of threads take them.
class follower {
 public:
  follower(const aligned_plan& plan, int bytes, const unsigned char* dst_end)
      : plan_(plan), bytes_(bytes), dst_end_(dst_end), src_(plan.from.image), dst_(plan.to.image) {}

  void box(uint32_t tile) {
    const unsigned char* src = plan_.src;
    unsigned char* dst = plan_.dst;
    unsigned cut = 0;
    bool first = true;
    int64_t left = INT64_MAX / 2;
    for (int k = 0; k < plan_.rank; ++k) {
      const aligned_axis& a = plan_.tile[k];
      uint32_t index = tile;
      tile = a.tiles.split(index);
      src += index * a.src_step, dst += index * a.dst_step;
      if (index == a.tiles.d - 1 && a.last != a.box) cut |= 1u << k;
      if (k == plan_.overlap) first = index == 0, left = plan_.overlap_bytes - index * a.dst_step;
    }
    load(src, cut);
    move(number(src) % 16, number(dst) % 16);
    store(dst, cut, first, left);
  }

 private:
  void load(const unsigned char* src, unsigned cut) {
    std::fill(src_.begin(), src_.end(), static_cast<unsigned char>(0x55));
    std::vector<bool> taken(src_.size() / 16);
    for (uint32_t run = 0; run < plan_.from.runs; ++run) {
      run_at r;
      if (!run_of(plan_, plan_.from, run, cut, r)) continue;
      const uint32_t place = static_cast<uint32_t>(number(src) % 16) + r.place, skew = place % 16;
      ASSERT_EQ(number(src + r.memory) % 16, skew);
      for (uint32_t c = 0; c < skew + bytes_of(plan_.from, cut); c += 16) {
        const uint32_t at = place - skew + c;
        ASSERT_LE(at + 16, src_.size());
        ASSERT_FALSE(taken[at / 16]) << "a chunk of two runs";
        taken[at / 16] = true;
        for (uint32_t b = 0; b < 16; ++b)
          if (const unsigned char* byte = src + r.memory - skew + c + b; byte >= plan_.src && byte < plan_.src_end)
            src_[at + b] = *byte;
      }
    }
  }
  void move(uint64_t src_low, uint64_t dst_low) {
    std::fill(dst_.begin(), dst_.end(), static_cast<unsigned char>(0x66));
    for (uint32_t thread = 0; thread < plan_.movers; ++thread) {
      uint64_t get = src_low, put = dst_low;
      uint32_t rest = thread;
      for (int k = 0; k < plan_.lane_axes; ++k) {
        uint32_t index = rest;
        rest = plan_.lane[k].count.split(index);
        get += index * plan_.lane[k].get, put += index * plan_.lane[k].put;
      }
      for (uint32_t s = 0; s < plan_.steps; ++s) {
        const uint64_t from = get + plan_.step[s].get, to = put + plan_.step[s].put;
        const auto bytes = static_cast<uint64_t>(bytes_);
        ASSERT_LE(from + bytes, src_.size());
        ASSERT_LE(to + bytes, dst_.size());
        ASSERT_EQ(from % bytes + to % bytes, 0u);
        std::memcpy(&dst_[to], &src_[from], bytes);
      }
    }
  }
  void store(unsigned char* dst, unsigned cut, bool first, int64_t left) {
    for (uint32_t run = 0; run < plan_.to.runs; ++run) {
      run_at r;
      if (!run_of(plan_, plan_.to, run, cut, r)) continue;
      unsigned char* to = dst + r.memory;
      const uint64_t place = number(dst) % 16 + r.place;
      ASSERT_EQ(number(to) % 16, place % 16);
      int64_t begin = 0, end = bytes_of(plan_.to, cut);
      const auto up = [&](int64_t offset) {
        return static_cast<int64_t>((number(to) + static_cast<uint64_t>(offset) + 31) / 32 * 32 - number(to));
      };
      if (plan_.overlap >= 0) begin = first ? 0 : up(0), end = std::min(up(plan_.overlap_step), left);
      if (begin >= end) continue;
      ASSERT_LE(place + static_cast<uint64_t>(end), dst_.size());
      ASSERT_LE(end, dst_end_ - to) << "behind dst";
      std::memcpy(to + begin, &dst_[place + static_cast<uint64_t>(begin)], static_cast<size_t>(end - begin));
    }
  }

  const aligned_plan& plan_;
  int bytes_;
  const unsigned char* dst_end_;
  std::vector<unsigned char> src_, dst_;
};

// sizes in src's order, perm as in lockstep_permute_packed; pointers so many elements beyond 64 bytes.
void check(int bytes, const std::vector<int64_t>& sizes, const std::vector<int>& perm, int src_off, int dst_off) {
  std::string name = "b" + std::to_string(bytes);
  for (const int64_t s : sizes) name += " " + std::to_string(s);
  for (const int p : perm) name += " ," + std::to_string(p);
  SCOPED_TRACE(name + " off " + std::to_string(src_off) + "," + std::to_string(dst_off));
  const auto rank = static_cast<int>(sizes.size());
  int64_t stride[LOCKSTEP_MAX_RANK], all = 1;
  for (int k = rank - 1; k >= 0; --k) stride[k] = all, all *= sizes[static_cast<size_t>(k)];
  const auto span = static_cast<size_t>(all * bytes);
  std::vector<unsigned char> src(span + 512), dst(span + 512, 0xee);
  std::mt19937 random(static_cast<unsigned>(span));
  for (unsigned char& x : src) x = static_cast<unsigned char>(random());
  const auto begin = [&](std::vector<unsigned char>& v, int off) {
    return v.data() + (64 - number(v.data()) % 64) + off * bytes;
  };
  axes given{begin(src, src_off), begin(dst, dst_off), bytes, 0, {}};
  int64_t dst_stride = all;
  for (const int p : perm) {
    dst_stride /= sizes[static_cast<size_t>(p)];
    if (sizes[static_cast<size_t>(p)] > 1)
      given.at[given.rank++] = {sizes[static_cast<size_t>(p)], stride[p], dst_stride};
  }
  const axes a = simplified(given, pointers::as_given);
  if (!aligned_fits(a)) return;
  // The second plan is the first one's, moved.
  axes elsewhere = a;
  elsewhere.src += 64, elsewhere.dst += 160;
  aligned_plan plan;
  ASSERT_TRUE(plan_aligned_again(elsewhere, h100, plan) && plan_aligned_again(a, h100, plan));
  follower f(plan, a.element_bytes, given.dst + span);
  for (uint32_t tile = 0; tile < plan.tiles; ++tile) {
    f.box(tile);
    if (::testing::Test::HasFatalFailure()) return;
  }
  int64_t wrong = 0;
  for (int64_t e = 0; e < all; ++e) {
    int64_t rest = e, from = 0, to = 0;
    for (int k = given.rank - 1; k >= 0; --k) {
      const int64_t index = rest % given.at[k].count;
      rest /= given.at[k].count;
      from += index * given.at[k].src, to += index * given.at[k].dst;
    }
    wrong += std::memcmp(given.src + from * bytes, given.dst + to * bytes, static_cast<size_t>(bytes)) != 0;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(std::all_of(dst.data(), given.dst, [](unsigned char x) { return x == 0xee; })) << "written before dst";
  EXPECT_TRUE(std::all_of(given.dst + span, dst.data() + dst.size(), [](unsigned char x) { return x == 0xee; }))
      << "written behind dst";
}

TEST(boxes, transposes) {
  for (const int bytes : {1, 2, 4, 8, 16})
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1, 7},
                                     {7, 1},
                                     {3, 5},
                                     {17, 33},
                                     {65, 63},
                                     {129, 257},
                                     {8, 1000},
                                     {1000, 8},
                                     {5, 2049},
                                     {15, 20001},
                                     {20001, 15},
                                     {33, 5000},
                                     {700, 901},
                                     {513, 511}})
      for (const auto& [src_off, dst_off] : {std::pair<int, int>{0, 0}, {1, 3}, {5, 2}})
        check(bytes, {rows, cols}, {1, 0}, src_off, dst_off);
}

TEST(boxes, batches_of_small_matrices) {
  for (const int bytes : {1, 2, 4, 8, 16})
    for (const auto& [n, rows, cols] : {std::tuple<int64_t, int64_t, int64_t>{1201, 2, 2},
                                        {1201, 3, 3},
                                        {300, 5, 7},
                                        {100, 8, 8},
                                        {50, 33, 33},
                                        {99, 17, 17},
                                        {9, 64, 64},
                                        {70000, 1, 3}})
      check(bytes, {n, rows, cols}, {0, 2, 1}, static_cast<int>(n % 5), static_cast<int>(n % 3));
}

TEST(boxes, permutations) {
  std::mt19937 random(7);
  const int64_t counts[] = {1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 31, 33, 61, 257};
  for (int n = 0; n < 200; ++n) {
    const size_t rank = 2 + random() % 5;
    std::vector<int64_t> sizes;
    std::vector<int> perm;
    int64_t all = 1;
    for (size_t k = 0; k < rank; ++k) {
      const int64_t count = counts[random() % std::size(counts)];
      sizes.push_back(all * count > 400000 ? 1 : count), perm.push_back(static_cast<int>(k));
      all *= sizes.back();
    }
    std::shuffle(perm.begin(), perm.end(), random);
    const int src_off = static_cast<int>(random() % 16), dst_off = static_cast<int>(random() % 16);
    check(1 << random() % 5, sizes, perm, src_off, dst_off);
  }
}

}  // namespace
}  // namespace lockstep::cuda
