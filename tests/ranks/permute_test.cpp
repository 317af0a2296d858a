// permute_test.cpp - permutes and redistributions between any two grids: every element once, and nothing else written.
#include <algorithm>
#include <cstdlib>
#include <deque>
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

// src and dst are one array on every rank. square: dst is divided as src is and perm is its own inverse, so blocks are
// swapped; else each rank copies its block first, and memory has room for the larger of both.
void check_in_place(size_t bytes, const std::vector<int64_t>& shape, const std::vector<int32_t>& perm, bool square,
                    const std::vector<int32_t>& seats, uint64_t seed, const changes& with) {
  const auto rank = static_cast<int32_t>(shape.size());
  int64_t n = 1;
  for (const int64_t x : shape) n *= x;
  std::vector<unsigned char> whole(static_cast<size_t>(n) * bytes), want(whole.size());
  for (size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<unsigned char>(cases::mix(seed + i));
  std::vector<int64_t> dst_shape;
  for (const int32_t k : perm) dst_shape.push_back(shape[static_cast<size_t>(k)]);
  run(
      seats,
      [&](member& m) {
        std::mt19937_64 draw(seed);
        drawn_grid src = draw_grid(bytes, shape, draw_parts(shape.size(), m.ranks, draw), m.ranks, draw);
        drawn_grid dst = draw_grid(bytes, dst_shape, draw_parts(shape.size(), m.ranks, draw), m.ranks, draw);
        if (square) dst = src;
        const lockstep_permute_desc d = lockstep_permute_packed(bytes, rank, shape.data(), perm.data());
        const std::vector<unsigned char> all = told_to_all([&] {
          std::vector<unsigned char> one(whole.size());
          EXPECT_EQ(lockstep_permute(m.context, &d, whole.data(), one.data(), nullptr), LOCKSTEP_OK);
          return one;
        });
        const std::string about =
            format_text("{} bytes, {} perm {}, {} ranks, rank {}, seed {}: {} to {}", bytes, joined(shape, "x"),
                        joined(perm, ","), m.ranks, m.first, seed, src.text, square ? "the same" : dst.text);
        lockstep_ranks_plan* plan = nullptr;
        ASSERT_EQ(lockstep_ranks_permute(m.comm, src.get(), perm.data(), dst.get(), nullptr, &plan), LOCKSTEP_OK)
            << about << ": " << lockstep_last_error();
        for (int round = 0; round < 2; ++round) {
          const bool padded = square && draw() % 2 == 0;
          std::vector<block> from, to;
          std::deque<std::vector<unsigned char>> memory;
          std::deque<mirror> mirrors;
          std::vector<lockstep_part> in, out;
          for (int32_t s = 0; s < m.seats; ++s) {
            from.emplace_back(*src.get(), m.first + s, padded).fill(*src.get(), whole.data());
            to.emplace_back(*dst.get(), m.first + s, padded);
            block &a = from.back(), &b = to.back();
            memory.push_back(a.memory);  // poison around and between the elements is the same in both
            memory.back().resize(std::max(a.memory.size(), b.memory.size()), 7);
            const auto seat = static_cast<int32_t>(s);
            const mirror& at = mirrors.emplace_back(m, seat, memory.back().data(), memory.back().size());
            for (const auto& [one, parts] : {std::pair{&a, &in}, std::pair{&b, &out}}) {
              lockstep_part p = one->part;
              if (p.data != nullptr) p.data = memory.back().data() + bytes;
              parts->push_back(at.of(p));
            }
          }
          ASSERT_EQ(lockstep_ranks_execute(plan, in.data(), out.data(), nullptr), LOCKSTEP_OK)
              << about << ": " << lockstep_last_error();
          for (size_t s = 0; s < to.size(); ++s) {
            mirrors[s].back();
            if (square)
              to[s].memory = memory[s];
            else  // what is behind the smaller block is not looked at
              std::copy_n(memory[s].begin() + static_cast<std::ptrdiff_t>(bytes),
                          static_cast<size_t>(to[s].elements) * bytes,
                          to[s].memory.begin() + static_cast<std::ptrdiff_t>(bytes));
            ASSERT_EQ(to[s].compare(dst_shape, all.data()), "") << about;
          }
        }
        lockstep_ranks_plan_destroy(plan);
      },
      with);
}

TEST(Permute, InPlace) {
  for (const int32_t ranks : rank_counts())
    for (uint64_t round = 0; round < 40; ++round) {
      const uint64_t seed = cases::mix(round * 100 + static_cast<uint64_t>(ranks)) % 1000000;
      std::mt19937_64 draw(seed + 2);
      const size_t sizes[] = {1, 2, 4, 8, 16}, bytes = sizes[draw() % 5];
      const bool square = round % 4 != 0;
      const std::vector<int32_t> perms[] = {{1, 0}, {0, 2, 1}, {2, 1, 0}, {3, 2, 1, 0}, {1, 0, 2}, {1, 2, 0}};
      const auto& perm = perms[draw() % (square ? 5 : 6)];
      std::vector<int64_t> shape(perm.size());
      for (size_t k = 0; k < perm.size(); ++k) {
        const auto other = static_cast<size_t>(perm[k]);
        shape[k] =
            square && other < k ? shape[other] : static_cast<int64_t>(1 + draw() % (perm.size() == 2 ? 300 : 17));
      }
      changes with;
      with.message_bytes = draw() % 2 == 0 ? 0 : 100;
      check_in_place(bytes, shape, perm, square, draw() % 2 == 0 ? one_each(ranks) : drawn_seats(ranks, draw), seed,
                     with);
      if (HasFailure()) return;
    }
}

// The receiver writes where the sender has not read, if it is let.
TEST(Permute, InPlaceWithDelays) {
  if (over_mpi()) return;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    changes with;
    with.message_bytes = seed % 2 == 0 ? 100 : 1000;
    with.engine = [&](int32_t p, lockstep_engine& e) { delay(e, seed * 100 + static_cast<uint64_t>(p)); };
    check_in_place(4, {90, 90}, {1, 0}, true, seed % 3 == 0 ? std::vector<int32_t>{2, 3, 1} : one_each(6), seed, with);
    if (HasFailure()) return;
  }
}

TEST(Permute, ArraysThatOverlapInPart) {
  run(one_each(over_mpi() ? rank_counts()[0] : 2), [](member& m) {
    if (m.seats != 1) return;
    const int64_t shape[] = {64, 64};
    const lockstep_grid g = lockstep_grid_slabs(4, 2, shape, m.ranks);
    const int32_t perm[] = {1, 0};
    lockstep_ranks_plan* plan = nullptr;
    ASSERT_EQ(lockstep_ranks_permute(m.comm, &g, perm, &g, nullptr, &plan), LOCKSTEP_OK) << lockstep_last_error();
    std::vector<float> memory(2 * 64 * 64);
    int64_t low[2], length[2];
    ASSERT_EQ(lockstep_grid_box(&g, m.first, low, length), LOCKSTEP_OK);
    const mirror at(m, 0, memory.data(), memory.size() * sizeof(float));
    const lockstep_part in = at.of(lockstep_part_packed(memory.data(), 2, length));
    const auto elements = static_cast<size_t>(length[0] * length[1]);
    for (const size_t by : {size_t{1}, elements - 1}) {
      const lockstep_part out = at.of(lockstep_part_packed(memory.data() + by, 2, length));
      EXPECT_EQ(lockstep_ranks_execute(plan, &in, &out, nullptr), LOCKSTEP_INVALID_ARGUMENT) << by;
      EXPECT_NE(std::string(lockstep_last_error()).find("and dst[0] ("), std::string::npos) << lockstep_last_error();
      EXPECT_EQ(lockstep_ranks_synchronize(m.comm), LOCKSTEP_INVALID_ARGUMENT);
    }
    const lockstep_part out = at.of(lockstep_part_packed(memory.data() + elements, 2, length));
    EXPECT_EQ(lockstep_ranks_execute(plan, &in, &out, nullptr), LOCKSTEP_OK) << lockstep_last_error();
    lockstep_ranks_plan_destroy(plan);
  });
}

// Many ranks with little for each other: it goes by way of a rank of the own group.
TEST(Permute, ShortBoxesGoByGroups) {
  const std::string plane =
      std::getenv("LOCKSTEP_TEST_PLANE") != nullptr ? std::getenv("LOCKSTEP_TEST_PLANE") : "staged";
  if (over_mpi() || plane != "staged") return;
  for (const int32_t ranks : {18, 30, 49}) {
    if (ranks > 18 && std::getenv("LOCKSTEP_TEST_DEVICES") != nullptr) break;
    std::vector<int32_t> two = one_each(ranks);  // some processes with two ranks
    for (size_t k = 0; k < two.size(); k += 3) two[k] = 2;
    const int32_t all = std::accumulate(two.begin(), two.end(), 0);
    check(4, {200, 211}, {1, 0}, {ranks, 1}, {ranks, 1}, one_each(ranks), 1, 0);
    check(8, {60, 3, 70}, {2, 1, 0}, {all, 1, 1}, {all, 1, 1}, two, 2, 3000);
    check(2, {100, 90}, {0, 1}, {ranks, 1}, {1, ranks}, one_each(ranks), 3, 500);
    changes with;
    check_in_place(4, {150, 150}, {1, 0}, true, two, 4, with);
    with.engine = [&](int32_t p, lockstep_engine& e) { delay(e, static_cast<uint64_t>(p)); };
    check_in_place(4, {150, 160}, {1, 0}, false, one_each(ranks), 5, with);
    if (HasFailure()) return;
  }
}

// Who fails tells those that it sends by, and they tell theirs.
TEST(Permute, AFailureGoesByGroupsToo) {
  if (over_mpi() || !plane_takes(20)) return;
  run(one_each(20), [](member& m) {
    if (m.seats != 1) return;  // a plane of one process
    const int64_t shape[] = {200, 200};
    const lockstep_grid g = lockstep_grid_slabs(4, 2, shape, m.ranks);
    const int32_t perm[] = {1, 0};
    lockstep_ranks_plan* plan = nullptr;
    ASSERT_EQ(lockstep_ranks_permute(m.comm, &g, perm, &g, nullptr, &plan), LOCKSTEP_OK) << lockstep_last_error();
    std::vector<block> from, to;
    from.emplace_back(g, m.first, false), to.emplace_back(g, m.first, false);
    if (m.first == 3) from[0].part.data = nullptr;
    const lockstep_status status = execute(m, plan, &from, &to);
    EXPECT_EQ(status, m.first == 3 ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED) << m.first;
    EXPECT_NE(std::string(lockstep_last_error()).find("src[0].data is NULL"), std::string::npos)
        << lockstep_last_error();
    EXPECT_NE(lockstep_ranks_synchronize(m.comm), LOCKSTEP_OK);
    lockstep_ranks_plan_destroy(plan);
  });
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
