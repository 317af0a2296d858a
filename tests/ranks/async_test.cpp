// async_test.cpp - asynchronous executions: the same bits, in the order of the calls, whenever they are finished;
// lockstep_ranks_synchronize returns failures; workspaces of the caller.
#include <atomic>

#include "world.hpp"

namespace lockstep::ranks_test {
namespace {

constexpr int64_t rows = 700, cols = 96;

lockstep_options asynchronous() {
  lockstep_options o = lockstep_options_defaults();
  o.flags = LOCKSTEP_ASYNC;
  return o;
}

// An array, its transpose and the sums of its columns, with one block of each for each seat.
struct arrays {
  int64_t shape[2] = {rows, cols}, turned[2] = {cols, rows}, sums[1] = {cols};
  lockstep_grid g, t;
  std::vector<double> whole;
  std::vector<std::vector<double>> memory;
  std::vector<lockstep_part> in, out, back, sum;
  explicit arrays(const member& m) {
    g = lockstep_grid_slabs(8, 2, shape, m.ranks);
    t = lockstep_grid_slabs(8, 2, turned, m.ranks);
    for (int64_t i = 0; i < rows * cols; ++i) whole.push_back(1.0 / static_cast<double>(i + 1));
    memory.reserve(static_cast<size_t>(4 * m.seats));
    for (int32_t s = 0; s < m.seats; ++s) {
      int64_t low[2], length[2], t_low[2], t_length[2];
      EXPECT_EQ(lockstep_grid_box(&g, m.first + s, low, length), LOCKSTEP_OK);
      EXPECT_EQ(lockstep_grid_box(&t, m.first + s, t_low, t_length), LOCKSTEP_OK);
      const auto take = [&](int64_t n) { return memory.emplace_back(static_cast<size_t>(n + 1), -1.0).data(); };
      in.push_back(lockstep_part_packed(take(length[0] * cols), 2, length));
      std::copy_n(whole.begin() + low[0] * cols, length[0] * cols, memory.back().begin());
      out.push_back(lockstep_part_packed(take(t_length[0] * rows), 2, t_length));
      back.push_back(lockstep_part_packed(take(length[0] * cols), 2, length));
      sum.push_back(lockstep_part_packed(take(cols), 1, sums));
    }
  }
  // What the one calls give.
  void compare(const member& m, const std::string& about) const {
    std::vector<double> want(cols);
    const lockstep_reduce_desc d = lockstep_reduce_columns(LOCKSTEP_SUM, LOCKSTEP_F64, rows, cols, cols);
    ASSERT_EQ(lockstep_reduce(m.context, &d, whole.data(), want.data(), nullptr), LOCKSTEP_OK);
    for (size_t s = 0; s < in.size(); ++s) {
      const auto& again = memory[4 * s + 2];
      EXPECT_TRUE(std::equal(again.begin(), again.end() - 1, memory[4 * s].begin())) << about << ": the array";
      EXPECT_TRUE(std::equal(want.begin(), want.end(), memory[4 * s + 3].begin())) << about << ": the sums";
    }
  }
};

struct plans {
  lockstep_ranks_plan *turn = nullptr, *back = nullptr, *sum = nullptr;
  plans(const member& m, const arrays& a, const lockstep_options* o = nullptr) {
    const int32_t perm[] = {1, 0};
    EXPECT_EQ(lockstep_ranks_permute(m.comm, &a.g, perm, &a.t, o, &turn), LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_EQ(lockstep_ranks_permute(m.comm, &a.t, perm, &a.g, o, &back), LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_EQ(lockstep_ranks_reduce(m.comm, &a.g, LOCKSTEP_SUM, LOCKSTEP_F64, LOCKSTEP_F64, 1, nullptr, o, &sum),
              LOCKSTEP_OK)
        << lockstep_last_error();
  }
  ~plans() {
    for (lockstep_ranks_plan* p : {turn, back, sum}) lockstep_ranks_plan_destroy(p);
  }
};

std::vector<std::vector<int32_t>> worlds() {
  if (over_mpi()) return {one_each(rank_counts()[0])};
  return {{1}, {3}, one_each(2), one_each(5), {2, 1, 3}};
}

// What each reads, the one before has written; finished by whichever call comes next.
TEST(Async, InTheOrderOfTheCalls) {
  for (const auto& seats : worlds())
    for (int end = 0; end < 5; ++end)
      run(seats, [&](member& m) {
        arrays a(m);
        const std::string about = format_text("{} processes, end {}", seats.size(), end);
        const lockstep_options o = asynchronous();
        {
          plans p(m, a);
          for (int round = 0; round < 3; ++round) {
            std::vector<lockstep_part> out = a.out;  // the structs may go at once
            ASSERT_EQ(lockstep_ranks_execute(p.turn, a.in.data(), out.data(), &o), LOCKSTEP_OK)
                << lockstep_last_error();
            ASSERT_EQ(lockstep_ranks_execute(p.back, out.data(), a.back.data(), &o), LOCKSTEP_OK);
            out.assign(out.size(), lockstep_part{});
            ASSERT_EQ(lockstep_ranks_execute(p.sum, a.back.data(), a.sum.data(), &o), LOCKSTEP_OK);
          }
          if (end == 0) {
            ASSERT_EQ(lockstep_ranks_synchronize(m.comm), LOCKSTEP_OK) << lockstep_last_error();
          }
          if (end == 1) {  // one that waits
            ASSERT_EQ(lockstep_ranks_execute(p.turn, a.in.data(), a.out.data(), nullptr), LOCKSTEP_OK);
          }
          if (end == 2) plans more(m, a);
          if (end == 3) {
            lockstep_ranks_plan_destroy(p.turn);
            p.turn = nullptr;
          }
          if (end == 4) {  // none: the last plan's end
            lockstep_ranks_plan_destroy(p.sum);
            p.sum = nullptr;
          }
          a.compare(m, about);
        }
        EXPECT_EQ(lockstep_ranks_synchronize(m.comm), LOCKSTEP_OK) << about << lockstep_last_error();
      });
}

// The call returns although nobody has sent what it waits for.
TEST(Async, ReturnsAtOnce) {
  if (over_mpi()) return;
  std::atomic<int> begun{0};
  run(one_each(3), [&](member& m) {
    arrays a(m);
    plans p(m, a);
    if (m.first == 2)
      while (begun < 2) std::this_thread::yield();
    const lockstep_options o = asynchronous();
    ASSERT_EQ(lockstep_ranks_execute(p.turn, a.in.data(), a.out.data(), &o), LOCKSTEP_OK);
    ASSERT_EQ(lockstep_ranks_execute(p.back, a.out.data(), a.back.data(), &o), LOCKSTEP_OK);
    ASSERT_EQ(lockstep_ranks_execute(p.sum, a.back.data(), a.sum.data(), &o), LOCKSTEP_OK);
    ++begun;
    ASSERT_EQ(lockstep_ranks_synchronize(m.comm), LOCKSTEP_OK) << lockstep_last_error();
    a.compare(m, "");
  });
}

TEST(Async, FailuresAreToldWhenAllSynchronize) {
  for (const auto& seats : worlds())
    for (int how = 0; how < 3; ++how)
      run(seats, [&](member& m) {
        const int32_t bad = m.ranks - 1;
        const bool mine = bad >= m.first && bad < m.first + m.seats;
        arrays a(m);
        plans p(m, a);
        std::vector<lockstep_part> in = a.in;
        if (mine && how == 0) in.back().data = nullptr;
        if (mine && how == 1) in.back().data = static_cast<char*>(in.back().data) + 1;
        lockstep_options o = asynchronous();
        if (mine && how == 2) o.backend = "cpu";
        const lockstep_status at_once = lockstep_ranks_execute(p.turn, in.data(), a.out.data(), &o);
        // Misalignment is found where the data are read, which may be at once or later.
        if (how != 1) {
          EXPECT_EQ(at_once, mine ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_OK) << how << lockstep_last_error();
        }
        o = asynchronous();
        EXPECT_EQ(lockstep_ranks_execute(p.turn, a.in.data(), a.out.data(), &o), LOCKSTEP_OK) << lockstep_last_error();
        EXPECT_EQ(lockstep_ranks_execute(p.back, a.out.data(), a.back.data(), &o), LOCKSTEP_OK);
        EXPECT_EQ(lockstep_ranks_execute(p.sum, a.back.data(), a.sum.data(), &o), LOCKSTEP_OK);
        EXPECT_EQ(lockstep_ranks_synchronize(m.comm), mine ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED)
            << how << lockstep_last_error();
        if (!mine) {
          EXPECT_NE(
              std::string(lockstep_last_error()).find(how == 2 ? "options.backend" : format_text("rank {}: ", bad)),
              std::string::npos)
              << lockstep_last_error();
        }
        // Told once; and what came after it was done.
        EXPECT_EQ(lockstep_ranks_synchronize(m.comm), LOCKSTEP_OK) << how << lockstep_last_error();
        a.compare(m, "after a failure");
      });
}

TEST(Async, OverflowIsToldWhenAllSynchronize) {
  for (const auto& seats : worlds())
    run(seats, [&](member& m) {
      const int64_t shape[] = {1000}, one[] = {1};
      const lockstep_grid g = lockstep_grid_slabs(8, 1, shape, m.ranks);
      std::vector<int64_t> data(1000, INT64_MAX), results(static_cast<size_t>(m.seats));
      std::vector<lockstep_part> in, out;
      for (int32_t s = 0; s < m.seats; ++s) {
        in.push_back(lockstep_part_packed(data.data(), 1, shape));
        out.push_back(lockstep_part_packed(&results[static_cast<size_t>(s)], 1, one));
      }
      lockstep_ranks_plan* plan = nullptr;
      ASSERT_EQ(lockstep_ranks_reduce(m.comm, &g, LOCKSTEP_SUM, LOCKSTEP_I64, LOCKSTEP_I64, 1, nullptr, nullptr, &plan),
                LOCKSTEP_OK);
      const lockstep_options o = asynchronous();
      EXPECT_EQ(lockstep_ranks_execute(plan, in.data(), out.data(), &o), LOCKSTEP_OK) << lockstep_last_error();
      EXPECT_EQ(lockstep_ranks_synchronize(m.comm), LOCKSTEP_OVERFLOW) << lockstep_last_error();
      EXPECT_EQ(results.front(), INT64_MAX);
      EXPECT_EQ(lockstep_ranks_execute(plan, in.data(), out.data(), nullptr), LOCKSTEP_OVERFLOW);
      EXPECT_EQ(lockstep_ranks_synchronize(m.comm), LOCKSTEP_OK) << "the call itself has told it";
      lockstep_ranks_plan_destroy(plan);
    });
}

// A plan that is brought its workspace takes no memory; one that is too small or askew is refused by name.
TEST(Async, WorkspacesOfTheCaller) {
  struct counted {
    std::atomic<int64_t> calls{0};
    static void* allocate(void* user, size_t bytes, size_t alignment) {
      ++static_cast<counted*>(user)->calls;
      return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    }
    static void release(void*, void* pointer, size_t, size_t) { std::free(pointer); }
  };
  for (const auto& seats : worlds()) {
    std::vector<counted> counts(64);
    std::vector<lockstep_allocator> allocators;
    for (counted& c : counts) allocators.push_back({&c, &counted::allocate, &counted::release});
    changes with;
    with.context = [&](int32_t p, lockstep_context_options& co) { co.allocator = &allocators[static_cast<size_t>(p)]; };
    run(
        seats,
        [&](member& m) {
          arrays a(m);
          alignas(256) static const char some[256] = {};
          lockstep_options brings = lockstep_options_defaults();
          brings.workspace = const_cast<char*>(some);
          plans own(m, a), p(m, a, &brings);
          size_t bytes = 0, most = 0;
          for (lockstep_ranks_plan* plan : {p.turn, p.back, p.sum}) {
            ASSERT_EQ(lockstep_ranks_workspace(plan, &bytes), LOCKSTEP_OK);
            most = std::max(most, bytes);
            lockstep_ranks_cost cost{};
            cost.size = sizeof cost;
            ASSERT_EQ(lockstep_ranks_estimate(plan, nullptr, &cost), LOCKSTEP_OK);
            EXPECT_EQ(static_cast<size_t>(cost.workspace_bytes), bytes);
          }
          EXPECT_EQ(lockstep_ranks_workspace(p.turn, nullptr), LOCKSTEP_INVALID_ARGUMENT);
          EXPECT_EQ(lockstep_ranks_workspace(nullptr, &bytes), LOCKSTEP_INVALID_ARGUMENT);
          EXPECT_TRUE(m.ranks == m.seats || most > 0);
          std::vector<char> memory(most + 512, 0x5A);
          char* aligned = memory.data() + (256 - reinterpret_cast<uintptr_t>(memory.data()) % 256) % 256;
          lockstep_options o = asynchronous();
          o.workspace = aligned;
          o.workspace_bytes = most;
          o.stream = LOCKSTEP_STREAM_PER_THREAD;  // which the CPU has no use for
          // The calls within take a queue the first time.
          ASSERT_EQ(lockstep_ranks_execute(own.turn, a.in.data(), a.out.data(), nullptr), LOCKSTEP_OK);
          ASSERT_EQ(lockstep_ranks_execute(own.sum, a.in.data(), a.sum.data(), nullptr), LOCKSTEP_OK);
          const auto& mine = counts[static_cast<size_t>(m.process)].calls;
          const int64_t before = mine;
          for (int round = 0; round < 2; ++round) {
            EXPECT_EQ(lockstep_ranks_execute(p.turn, a.in.data(), a.out.data(), &o), LOCKSTEP_OK)
                << lockstep_last_error();
            EXPECT_EQ(lockstep_ranks_execute(p.back, a.out.data(), a.back.data(), &o), LOCKSTEP_OK);
            EXPECT_EQ(lockstep_ranks_execute(p.sum, a.back.data(), a.sum.data(), &o), LOCKSTEP_OK);
            EXPECT_EQ(lockstep_ranks_synchronize(m.comm), LOCKSTEP_OK) << lockstep_last_error();
          }
          EXPECT_EQ(mine, before) << "memory was taken";
          a.compare(m, "with the caller's workspace");
          int64_t beyond = 0;
          for (const char* at = memory.data(); at < memory.data() + memory.size(); ++at)
            beyond += (at < aligned || at >= aligned + most) && *at != 0x5A;
          EXPECT_EQ(beyond, 0) << "bytes written beyond the workspace";
          // Who brings none after all has it taken.
          EXPECT_EQ(lockstep_ranks_execute(p.sum, a.back.data(), a.sum.data(), nullptr), LOCKSTEP_OK);
          for (int how = 0; how < 2; ++how) {
            ASSERT_EQ(lockstep_ranks_workspace(p.turn, &bytes), LOCKSTEP_OK);
            if (m.ranks == m.seats) break;  // it needs none
            lockstep_options wrong = o;
            wrong.flags = 0;
            if (m.first == 0 && how == 0) wrong.workspace_bytes = bytes - 1;
            if (m.first == 0 && how == 1) wrong.workspace = aligned + 8;
            EXPECT_EQ(lockstep_ranks_execute(p.turn, a.in.data(), a.out.data(), &wrong),
                      m.first == 0 ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED);
            EXPECT_NE(std::string(lockstep_last_error()).find("options.workspace"), std::string::npos)
                << lockstep_last_error();
            EXPECT_EQ(lockstep_ranks_synchronize(m.comm),
                      m.first == 0 ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED);
          }
          a.compare(m, "after a bad workspace");
        },
        with);
  }
}

}  // namespace
}  // namespace lockstep::ranks_test
