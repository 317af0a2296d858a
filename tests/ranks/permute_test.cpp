// permute_test.cpp - permutes and redistributions between any two grids: every element once, and nothing else written.
#include <algorithm>
#include <numeric>

#include "engines.hpp"
#include "world.hpp"

namespace lockstep::ranks_test {
namespace {

void check(size_t bytes, const std::vector<int64_t>& shape, const std::vector<int32_t>& perm,
           const std::vector<int32_t>& src_parts, const std::vector<int32_t>& dst_parts,
           const std::vector<int32_t>& seats, uint64_t seed, int64_t message_bytes,
           const decltype(changes::engine)& engine = {}) {
  int64_t n = 1;
  for (const int64_t x : shape) n *= x;
  std::vector<unsigned char> whole(static_cast<size_t>(n) * bytes);
  for (size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<unsigned char>(cases::mix(seed + i));
  std::vector<int64_t> dst_shape;
  for (const int32_t k : perm) dst_shape.push_back(shape[static_cast<size_t>(k)]);
  changes with;
  with.message_bytes = message_bytes;
  with.engine = engine;
  run(
      seats,
      [&](member& m) {
        std::mt19937_64 draw(seed);
        drawn_grid src = draw_grid(bytes, shape, src_parts, m.ranks, draw);
        drawn_grid dst = draw_grid(bytes, dst_shape, dst_parts, m.ranks, draw);
        // The one call.
        const lockstep_permute_desc d =
            lockstep_permute_packed(bytes, static_cast<int32_t>(shape.size()), shape.data(), perm.data());
        const std::vector<unsigned char> want = told_to_all([&] {
          std::vector<unsigned char> one(whole.size());
          EXPECT_EQ(lockstep_permute(m.context, &d, whole.data(), one.data(), nullptr), LOCKSTEP_OK);
          return one;
        });
        std::vector<block> from, to;
        for (int32_t s = 0; s < m.seats; ++s) {
          from.emplace_back(*src.get(), m.first + s, draw() % 2 == 0).fill(*src.get(), whole.data());
          to.emplace_back(*dst.get(), m.first + s, draw() % 2 == 0);
        }
        const std::string about =
            format_text("{} bytes, {} perm {}, {} ranks, rank {}, seed {}: {} to {}", bytes, joined(shape, "x"),
                        joined(perm, ","), m.ranks, m.first, seed, src.text, dst.text);
        lockstep_ranks_plan* plan = nullptr;
        ASSERT_EQ(lockstep_ranks_permute(m.comm, src.get(), perm.data(), dst.get(), nullptr, &plan), LOCKSTEP_OK)
            << about << ": " << lockstep_last_error();
        for (int round = 0; round < 2; ++round) {
          ASSERT_EQ(execute(m, plan, &from, &to), LOCKSTEP_OK) << about << ": " << lockstep_last_error();
          for (const block& b : to) ASSERT_EQ(b.compare(dst_shape, want.data()), "") << about;
        }
        lockstep_ranks_plan_destroy(plan);
      },
      with);
}

TEST(Permute, AnyTwoGrids) {
  for (const int32_t ranks : rank_counts())
    for (uint64_t round = 0; round < 40; ++round) {
      const uint64_t seed = cases::mix(round * 100 + static_cast<uint64_t>(ranks)) % 1000000;
      std::mt19937_64 draw(seed + 1);
      const size_t sizes[] = {1, 2, 4, 8, 16}, bytes = sizes[draw() % 5], rank = 1 + draw() % 5;
      const int64_t lengths[] = {0, 1, 2, 3, 5, 8, 13};
      std::vector<int64_t> shape;
      for (size_t k = 0; k < rank; ++k) shape.push_back(lengths[draw() % 20 == 0 ? 0 : 1 + draw() % 6]);
      if (rank <= 2) shape[rank - 1] = static_cast<int64_t>(draw() % 3000);
      std::vector<int32_t> perm(rank);
      std::iota(perm.begin(), perm.end(), 0);
      if (draw() % 4 != 0) std::shuffle(perm.begin(), perm.end(), draw);
      const std::vector<int32_t> a = draw_parts(rank, ranks, draw), b = draw_parts(rank, ranks, draw);
      check(bytes, shape, perm, a, b, draw() % 2 == 0 ? one_each(ranks) : drawn_seats(ranks, draw), seed,
            draw() % 2 == 0 ? 0 : 100);
      if (HasFailure()) return;
    }
}

// Slabs to slabs the other way, as a transform over two axes does it; and everything to one rank and back.
TEST(Permute, TransposesAndGathers) {
  for (const int32_t ranks : rank_counts()) {
    check(4, {700, 301}, {1, 0}, {ranks, 1}, {ranks, 1}, one_each(ranks), 5, 4096);
    check(8, {64, 48, 20}, {0, 1, 2}, {ranks, 1, 1}, {1, ranks, 1}, one_each(ranks), 6, 0);
    check(4, {64, 48, 20}, {2, 0, 1}, {ranks, 1, 1}, {1, 1, 1}, one_each(ranks), 7, 1000);
    check(2, {1000}, {0}, {1}, {ranks}, one_each(ranks), 8, 0);
  }
}

// A transport that has nothing to say at every other look: of two messages that came together, the second is seen
// first.
struct blinker : engine_before {
  bool shut = false;
  int test(void** request, int* done, size_t* received) override {
    shut = !shut;
    *done = 0;
    return shut ? 0 : engine_before::test(request, done, received);
  }
};

TEST(Permute, MessagesCountInTheOrderThatTheyWereSent) {
  if (over_mpi()) return;
  check(4, {60, 45}, {1, 0}, {6, 1}, {6, 1}, {2, 2, 2}, 9, 100,
        [](int32_t, lockstep_engine& e) { stand_before(e, std::make_unique<blinker>()); });
}

TEST(Permute, AnyDelays) {
  if (over_mpi()) return;
  for (uint64_t seed = 0; seed < 10; ++seed)
    check(4, {60, 45}, {1, 0}, {6, 1}, {3, 2}, one_each(6), seed, seed % 2 == 0 ? 100 : 0,
          [&](int32_t p, lockstep_engine& e) { delay(e, seed * 100 + static_cast<uint64_t>(p)); });
}

}  // namespace
}  // namespace lockstep::ranks_test
