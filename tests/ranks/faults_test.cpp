// faults_test.cpp - no rank hangs: for every mistake of one rank, every rank returns in time, with the right status and
// a text that names the rank. If the communicator can still be used, it works.
#include "faults.hpp"

#include <atomic>
#include <cstdlib>

namespace lockstep::ranks_test {
namespace {

// Communicators are made on all ranks or on none.
TEST(Faults, CommunicatorsThatCannotBeMade) {
  if (over_mpi()) return;
  constexpr int32_t processes = 3;
  enum { no_context, no_seats, unknown_backend, bad_timeout, bad_flags, other_message_bytes, bad_size, ways };
  for (int how = 0; how < ways; ++how)
    for (int32_t bad = 0; bad < processes; ++bad) {
      std::vector<lockstep_engine> engines(processes);
      ASSERT_EQ(lockstep_engine_local(processes, engines.data()), LOCKSTEP_OK);
      std::vector<std::thread> threads;
      for (int32_t p = 0; p < processes; ++p)
        threads.emplace_back([&, p] {
          const std::string about = format_text("way {}, rank {} wrong, rank {}", how, bad, p);
          const bool mine = p == bad;
          lockstep_context_options co = lockstep_context_defaults();
          co.backend = "cpu";
          lockstep_context* context = nullptr;
          ASSERT_EQ(lockstep_context_create(&co, &context), LOCKSTEP_OK);
          lockstep_comm_options o = lockstep_comm_defaults();
          o.timeout_ms = 20000;
          const char* names[] = {"no-such-backend"};
          if (mine && how == no_seats) o.seats = 0;
          if (mine && how == unknown_backend) o.backends = names;
          if (mine && how == bad_timeout) o.timeout_ms = -7;
          if (mine && how == bad_flags) o.flags = 64;
          if (mine && how == other_message_bytes) o.message_bytes = 4711;
          if (mine && how == bad_size) o.size = 3;
          lockstep_engine& e = engines[static_cast<size_t>(p)];
          lockstep_comm* comm = nullptr;
          const lockstep_status status =
              lockstep_comm_create(mine && how == no_context ? nullptr : context, &e, &o, &comm);
          EXPECT_EQ(comm, nullptr) << about;
          EXPECT_EQ(status, how == other_message_bytes ? LOCKSTEP_MISMATCH
                            : !mine                    ? LOCKSTEP_RANK_FAILED
                            : how == unknown_backend   ? LOCKSTEP_NO_BACKEND
                                                       : LOCKSTEP_INVALID_ARGUMENT)
              << about << ": " << lockstep_last_error();
          if (!mine && how != other_message_bytes) expect_text(format_text("rank {}: ", bad).c_str(), about);
          lockstep_comm_destroy(comm);
          e.close(e.user, 0);
          lockstep_context_destroy(context);
        });
      for (std::thread& t : threads) t.join();
      if (HasFailure()) return;
    }
}

TEST(Faults, PlansThatAreWrongInThemselves) {
  for (const auto& seats : worlds())
    for (int o = 0; o < static_cast<int>(op::count); ++o)
      for (int t = static_cast<int>(twist::null_grid); t <= static_cast<int>(twist::a_struct_of_another_size); ++t)
        for (const int32_t bad : {0, total(seats) - 1}) {
          const std::string about =
              format_text("{}, twist {}, {} processes, rank {} wrong", op_names[o], t, seats.size(), bad);
          run(
              seats,
              [&](member& m) {
                if (m.ranks == 1) return;
                const bool mine = bad >= m.first && bad < m.first + m.seats;
                world_of_one w;
                lockstep_ranks_plan* plan = nullptr;
                const lockstep_status status =
                    make(static_cast<op>(o), m, mine ? static_cast<twist>(t) : twist::none, w, &plan);
                EXPECT_EQ(plan, nullptr) << about;
                EXPECT_EQ(status, mine ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED)
                    << about << ": " << lockstep_last_error();
                if (!mine) expect_text(bad == 0 ? "rank 0: " : "rank ", about);
                expect_health(static_cast<op>(o), m, about);
              },
              in_time(20000));
          if (HasFailure()) return;
        }
}

// Of several ranks that are wrong the one with the lowest number is told, on every rank that is right.
TEST(Faults, TheFirstOfSeveralFailures) {
  for (const auto& seats : worlds()) {
    const int32_t ranks = total(seats);
    for (int32_t low = 0; low + 2 < ranks; ++low)
      run(
          seats,
          [&](member& m) {
            const auto has = [&](int32_t rank) { return rank >= m.first && rank < m.first + m.seats; };
            const bool mine = has(low) || has(ranks - 1);
            world_of_one w;
            lockstep_ranks_plan* plan = nullptr;
            EXPECT_EQ(make(op{}, m, mine ? twist::null_grid : twist::none, w, &plan),
                      mine ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED)
                << lockstep_last_error();
            if (!mine)
              expect_text(format_text("rank {}: ", low).c_str(), format_text("ranks {} and {}", low, ranks - 1));
          },
          in_time(20000));
    if (HasFailure()) return;
  }
}

TEST(Faults, PlansThatDiffer) {
  const std::pair<twist, const char*> twists[] = {{twist::other_shape, "shape[1]"}, {twist::other_cuts, "cuts[0][1]"},
                                                  {twist::other_order, "order[0]"}, {twist::other_operation, ""},
                                                  {twist::other_dtype, ""},         {twist::other_call, "the call"}};
  for (const auto& seats : worlds())
    for (int o = 0; o < static_cast<int>(op::count); ++o)
      for (const auto& [t, word] : twists)
        for (const int32_t bad : {0, total(seats) - 1}) {
          const std::string about = format_text("{}, twist {}, {} processes, rank {} differs", op_names[o],
                                                static_cast<int>(t), seats.size(), bad);
          run(
              seats,
              [&, t = t, word = word](member& m) {
                const bool mine = bad >= m.first && bad < m.first + m.seats;
                if (m.ranks == m.seats) return;
                world_of_one w;
                lockstep_ranks_plan* plan = nullptr;
                EXPECT_EQ(make(static_cast<op>(o), m, mine ? t : twist::none, w, &plan), LOCKSTEP_MISMATCH)
                    << about << ": " << lockstep_last_error();
                expect_text(word, about);
                expect_text("rank 0", about);
                expect_health(static_cast<op>(o), m, about);
              },
              in_time(20000));
          if (HasFailure()) return;
        }
}

TEST(Faults, ExecutionsThatAreWrongInThemselves) {
  for (const auto& seats : worlds())
    for (int o = 0; o < static_cast<int>(op::count); ++o)
      for (int t = static_cast<int>(twist::null_data); t <= static_cast<int>(twist::bad_options); ++t)
        for (const int32_t bad : {0, total(seats) - 1}) {
          const std::string about =
              format_text("{}, twist {}, {} processes, rank {} wrong", op_names[o], t, seats.size(), bad);
          run(
              seats,
              [&](member& m) {
                if (m.ranks == m.seats) return;
                const bool mine = bad >= m.first && bad < m.first + m.seats;
                world_of_one w;
                lockstep_ranks_plan* plan = nullptr;
                ASSERT_EQ(make(static_cast<op>(o), m, twist::none, w, &plan), LOCKSTEP_OK) << lockstep_last_error();
                for (int round = 0; round < 2; ++round) {
                  const lockstep_status status =
                      execute(m, mine ? static_cast<twist>(t) : twist::none, mine ? bad - m.first : 0, w, plan);
                  if (static_cast<op>(o) >= op::stencil && !mine && status == LOCKSTEP_OK) {
                    // No neighbour of the failed one.
                  } else {
                    EXPECT_EQ(status, mine ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED)
                        << about << ": " << lockstep_last_error();
                    if (!mine) expect_text("rank ", about);
                  }
                  EXPECT_EQ(lockstep_ranks_synchronize(m.comm), mine ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED)
                      << about;
                }
                EXPECT_EQ(execute(m, twist::none, 0, w, plan), LOCKSTEP_OK) << about << ": " << lockstep_last_error();
                EXPECT_EQ(lockstep_ranks_synchronize(m.comm), LOCKSTEP_OK) << about;
                lockstep_ranks_plan_destroy(plan);
              },
              in_time(20000));
          if (HasFailure()) return;
        }
}

// Every allocation of one rank fails once, while a plan is made and while it runs.
TEST(Faults, OutOfMemory) {
  struct hook {
    std::atomic<int64_t> left{INT64_MAX};
    static void* allocate(void* user, size_t bytes, size_t alignment) {
      auto* h = static_cast<hook*>(user);
      if (h->left.fetch_sub(1) <= 0) return nullptr;
      return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    }
    static void release(void*, void* pointer, size_t, size_t) { std::free(pointer); }
  };
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 4;
  if (ranks < 2) return;
  for (int o = 0; o < static_cast<int>(op::count); ++o) {
    int failed_plans = 0;
    for (int64_t fails_at = 0, done = 0; fails_at < 200 && done == 0; ++fails_at) {
      std::vector<hook> hooks(static_cast<size_t>(ranks));
      std::vector<lockstep_allocator> allocators;
      for (hook& h : hooks) allocators.push_back({&h, &hook::allocate, &hook::release});
      changes with = in_time(20000);
      with.context = [&](int32_t p, lockstep_context_options& co) {
        if (p == 1) co.allocator = &allocators[1];
      };
      std::atomic<bool> planned{true};
      const std::string about = format_text("{}, allocation {} fails", op_names[o], fails_at);
      run(
          one_each(ranks),
          [&](member& m) {
            world_of_one w;
            lockstep_ranks_plan* plan = nullptr;
            if (m.first == 1) hooks[1].left = fails_at;
            const lockstep_status status = make(static_cast<op>(o), m, twist::none, w, &plan);
            if (status != LOCKSTEP_OK) {
              planned = false;
              EXPECT_EQ(status, m.first == 1 ? LOCKSTEP_OUT_OF_MEMORY : LOCKSTEP_RANK_FAILED)
                  << about << lockstep_last_error();
              if (m.first != 1) expect_text("rank 1: ", about);
            } else {
              const lockstep_status ran = execute(m, twist::none, 0, w, plan);
              EXPECT_TRUE(ran == LOCKSTEP_OK || ran == (m.first == 1 ? LOCKSTEP_OUT_OF_MEMORY : LOCKSTEP_RANK_FAILED))
                  << about << ": " << lockstep_last_error();
            }
            if (m.first == 1) hooks[1].left = INT64_MAX;
            lockstep_ranks_plan_destroy(plan);
            expect_health(static_cast<op>(o), m, about);
          },
          with);
      if (HasFailure()) return;
      failed_plans += !planned;
      done = over_mpi() ? fails_at == 3 : planned.load();
    }
    EXPECT_TRUE(over_mpi() || failed_plans > 0);
  }
}

// One rank makes other calls than the rest.
TEST(Faults, OtherCallsThanTheRest) {
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 4;
  if (ranks < 2) return;
  for (int how = 0; how < 5; ++how)
    for (const int32_t bad : {0, ranks - 1}) {
      const std::string about = format_text("way {}, rank {}", how, bad);
      run(
          one_each(ranks),
          [&](member& m) {
            world_of_one a, b, c, e;
            lockstep_ranks_plan *permute = nullptr, *reduce = nullptr, *more = nullptr, *twin = nullptr;
            ASSERT_EQ(make(op::permute, m, twist::none, a, &permute), LOCKSTEP_OK);
            ASSERT_EQ(make(op::reduce, m, twist::none, b, &reduce), LOCKSTEP_OK);
            // Another plan whose messages are as long: only what they say of themselves tells them apart.
            ASSERT_EQ(make(op::permute, m, twist::none, c, &twin), LOCKSTEP_OK);
            const auto begin = clock::now();
            lockstep_status status = LOCKSTEP_OK;
            if (how == 4)
              status = execute(m, twist::none, 0, m.first == bad ? c : a, m.first == bad ? twin : permute);
            else if (m.first != bad)
              status = execute(m, twist::none, 0, a, permute);
            else if (how == 0)
              status = execute(m, twist::none, 0, b, reduce);
            else if (how == 1)
              status = make(op::permute, m, twist::none, e, &more);
            else if (how == 2)
              status = lockstep_ranks_synchronize(m.comm);
            else
              for (int k = 0; k < 3 && status == LOCKSTEP_OK; ++k) status = execute(m, twist::none, 0, b, reduce);
            EXPECT_TRUE(status == LOCKSTEP_MISMATCH || (status == LOCKSTEP_RANK_LOST && how != 4))
                << about << ": " << status << lockstep_last_error();
            EXPECT_LT(clock::now() - begin, std::chrono::milliseconds(timeout_ms + 1000)) << about;
            // Closed for good, on every rank.
            EXPECT_NE(execute(m, twist::none, 0, a, permute), LOCKSTEP_OK) << about;
            expect_text("closed", about);
            lockstep_comm_info info{};
            info.size = sizeof info;
            EXPECT_EQ(lockstep_comm_get(m.comm, &info), LOCKSTEP_OK);
            EXPECT_EQ(info.closed, 1) << about;
            EXPECT_STRNE(info.reason, "") << about;
            lockstep_ranks_plan_destroy(permute);
            lockstep_ranks_plan_destroy(reduce);
            lockstep_ranks_plan_destroy(more);
            lockstep_ranks_plan_destroy(twin);
          },
          in_time());
      if (HasFailure()) return;
    }
}

// One rank sleeps beyond the deadline, or goes away: before it plans, before it executes.
TEST(Faults, ARankThatGivesNoSign) {
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 5;
  if (ranks < 2) return;
  for (const bool goes_away : {false, true})
    for (const bool while_planning : {false, true})
      for (int o = 0; o < static_cast<int>(op::count); ++o)
        for (const int32_t bad : {0, 2 % ranks}) {
          const std::string about =
              format_text("{}, rank {} {} while {}", op_names[o], bad, goes_away ? "goes away" : "sleeps",
                          while_planning ? "planning" : "running");
          std::atomic<int> back{0};
          run(
              one_each(ranks),
              [&](member& m) {
                world_of_one w;
                lockstep_ranks_plan* plan = nullptr;
                const auto wait = [&] {
                  if (m.first != bad) return;
                  if (over_mpi() || !goes_away)
                    std::this_thread::sleep_for(std::chrono::milliseconds(3 * timeout_ms));
                  else
                    while (back < ranks - 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                };
                auto begin = clock::now();
                if (while_planning) wait();
                lockstep_status status = make(static_cast<op>(o), m, twist::none, w, &plan);
                if (!while_planning) {
                  ASSERT_EQ(status, LOCKSTEP_OK) << about << lockstep_last_error();
                  begin = clock::now();
                  wait();
                  // Who is no neighbour of the silent one hears of it by those that are.
                  for (int k = 0; k < 4 && status == LOCKSTEP_OK && (m.first != bad || !goes_away); ++k)
                    status = execute(m, twist::none, 0, w, plan);
                  if (m.first == bad && goes_away) status = LOCKSTEP_RANK_LOST;
                }
                // What the sleeper waited for had come before the others gave up; its next call tells it.
                if (m.first == bad && status == LOCKSTEP_OK) {
                  lockstep_ranks_plan* more = nullptr;
                  status = make(static_cast<op>(o), m, twist::none, w, &more);
                }
                EXPECT_EQ(status, LOCKSTEP_RANK_LOST) << about << ": " << lockstep_last_error();
                if (m.first != bad) {
                  expect_text(format_text("rank {}", bad).c_str(), about);
                  EXPECT_LT(clock::now() - begin, std::chrono::milliseconds(timeout_ms + 1000)) << about;
                  begin = clock::now();
                  EXPECT_EQ(make(static_cast<op>(o), m, twist::none, w, &plan), LOCKSTEP_RANK_LOST) << about;
                  EXPECT_LT(clock::now() - begin, std::chrono::milliseconds(timeout_ms)) << about;
                }
                ++back;
                lockstep_ranks_plan_destroy(plan);
              },
              in_time());
          if (HasFailure()) return;
        }
}

// The same where executions are only begun: who synchronizes finds out.
TEST(Faults, ARankThatNeverSynchronizes) {
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 4;
  if (ranks < 2) return;
  for (int o = 0; o < static_cast<int>(op::count); ++o) {
    std::atomic<int> back{0};
    run(
        one_each(ranks),
        [&](member& m) {
          world_of_one w;
          lockstep_ranks_plan* plan = nullptr;
          ASSERT_EQ(make(static_cast<op>(o), m, twist::none, w, &plan), LOCKSTEP_OK) << lockstep_last_error();
          const bool silent = m.first == 1;
          if (silent) {
            std::this_thread::sleep_for(std::chrono::milliseconds(3 * timeout_ms));
          } else {
            const auto begin = clock::now();
            for (int k = 0; k < 3; ++k)
              EXPECT_EQ(execute(m, twist::none, 0, w, plan, LOCKSTEP_ASYNC), LOCKSTEP_OK) << lockstep_last_error();
            EXPECT_LT(clock::now() - begin, std::chrono::milliseconds(timeout_ms)) << op_names[o];
          }
          const auto begin = clock::now();
          const lockstep_status status = lockstep_ranks_synchronize(m.comm);
          // The silent one finds that the others are elsewhere, or gone.
          EXPECT_TRUE(status == LOCKSTEP_RANK_LOST || (silent && status == LOCKSTEP_MISMATCH))
              << op_names[o] << lockstep_last_error();
          EXPECT_LT(clock::now() - begin, std::chrono::milliseconds(timeout_ms + 1000)) << op_names[o];
          if (!silent) expect_text("rank 1", op_names[o]);
          EXPECT_EQ(execute(m, twist::none, 0, w, plan, LOCKSTEP_ASYNC), status);
          lockstep_ranks_plan_destroy(plan);
        },
        in_time());
    if (HasFailure()) return;
  }
}

// The longest timeout is more than a clock of nanoseconds can count.
TEST(Faults, ATimeoutOfAlmostForEver) {
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 2;
  changes long_time;
  long_time.options = [](int32_t, lockstep_comm_options& o) { o.timeout_ms = INT64_MAX; };
  run(
      one_each(ranks),
      [&](member& m) {
        if (m.first == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_EQ(lockstep_ranks_synchronize(m.comm), LOCKSTEP_OK) << lockstep_last_error();
      },
      long_time);
}

}  // namespace
}  // namespace lockstep::ranks_test
