// endings_test.cpp - ranks that leave, destroy their communicator before the others or refuse a call: the others are
// told at once, long before the deadline. And what ranks are told that described different things.
#include <atomic>

#include "engines.hpp"
#include "faults.hpp"

namespace lockstep::ranks_test {
namespace {

constexpr int64_t deadline_ms = 60000;
constexpr auto at_once = std::chrono::seconds(10);  // the machine may be busy

enum class end { destroys, leaves };

// together: threads leave as processes of MPI do, where each waits for the others' farewell.
changes closing(bool together) {
  changes with = in_time(deadline_ms);
  with.engine = [together](int32_t, lockstep_engine& e) {
    if (together) e.flags |= LOCKSTEP_ENGINE_CLOSES_TOGETHER;
  };
  return with;
}

// One rank ends while the others call on.
void check_ends(int32_t ranks, end how, op what, bool while_planning, int32_t bad, bool together) {
  const std::string about =
      format_text("{}, rank {} of {} {} while {}{}", op_names[static_cast<int>(what)], bad, ranks,
                  how == end::destroys ? "destroys" : "leaves", while_planning ? "planning" : "running",
                  together ? ", which closes together" : "");
  const auto begin = clock::now();
  run(
      one_each(ranks),
      [&](member& m) {
        world_of_one w;
        lockstep_ranks_plan* plan = nullptr;
        ASSERT_EQ(make(what, m, twist::none, w, &plan), LOCKSTEP_OK) << about << lockstep_last_error();
        lockstep_status status = LOCKSTEP_OK;
        for (int k = 0; k < 50 && status == LOCKSTEP_OK && m.first != bad; ++k) {
          world_of_one other;
          lockstep_ranks_plan* more = nullptr;
          status = while_planning ? make(what, m, twist::none, other, &more) : execute(m, twist::none, 0, w, plan);
          lockstep_ranks_plan_destroy(more);
        }
        if (m.first != bad) {
          EXPECT_EQ(status, LOCKSTEP_RANK_LOST) << about << ": " << lockstep_last_error();
          expect_text(
              format_text("rank {}: it has {}", bad, how == end::leaves ? "left: KeyError: 7" : "destroyed").c_str(),
              about);
        }
        lockstep_ranks_plan_destroy(plan);
        if (m.first != bad || how != end::leaves) return;
        lockstep_comm_leave(m.comm, "KeyError: 7");
        EXPECT_EQ(lockstep_ranks_synchronize(m.comm), LOCKSTEP_RANK_LOST) << about;
        expect_text("this process has left: KeyError: 7", about);
        lockstep_comm_leave(m.comm, "a second time");
        lockstep_comm_leave(nullptr, nullptr);
      },
      closing(together));
  EXPECT_LT(clock::now() - begin, at_once) << about;
}

TEST(Endings, OfOneRankAreToldToTheOthersAtOnce) {
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 7;
  if (ranks < 2) return;
  for (const end how : {end::destroys, end::leaves})
    for (const bool while_planning : {false, true})
      for (int o = 0; o < static_cast<int>(op::count); ++o)
        for (const int32_t bad : {0, ranks - 1})
          for (const bool together : {false, true}) {
            if (together && over_mpi()) continue;  // it always does
            check_ends(ranks, how, static_cast<op>(o), while_planning, bad, together);
            if (testing::Test::HasFailure()) return;
          }
}

// Those that destroy theirs do not wait for each other either.
TEST(Endings, OfSeveralRanksWhileOthersCallOn) {
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 5;
  if (ranks < 3) return;
  const auto begin = clock::now();
  for (const int32_t last : {1, ranks - 1})
    run(
        one_each(ranks),
        [&](member& m) {
          world_of_one w;
          lockstep_ranks_plan* plan = nullptr;
          ASSERT_EQ(make(op::columns, m, twist::none, w, &plan), LOCKSTEP_OK) << lockstep_last_error();
          lockstep_status status = LOCKSTEP_OK;
          const bool ends = m.first < last;
          for (int k = 0; k < 50 && status == LOCKSTEP_OK && !ends; ++k) status = execute(m, twist::none, 0, w, plan);
          EXPECT_EQ(status, ends ? LOCKSTEP_OK : LOCKSTEP_RANK_LOST) << lockstep_last_error();
          if (!ends) expect_text("it has destroyed", format_text("rank {} of {}", m.first, ranks));
          lockstep_ranks_plan_destroy(plan);
        },
        closing(true));
  EXPECT_LT(clock::now() - begin, at_once);
}

// Two ranks fail at once, one of them in its own program; each has its own status, the others that of the first.
TEST(Endings, OfAPlanThatTwoRanksRefuse) {
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 5;
  if (ranks < 3) return;
  for (const int32_t refuses : {0, 1}) {
    const int32_t is_wrong = 1 - refuses;
    run(
        one_each(ranks),
        [&](member& m) {
          const std::string about = format_text("rank {} refuses, on rank {}", refuses, m.first);
          world_of_one w;
          lockstep_ranks_plan* plan = nullptr;
          const lockstep_status status =
              m.first == refuses ? lockstep_ranks_refuse(m.comm, "there is no file of that name")
                                 : make(op::reduce, m, m.first == is_wrong ? twist::bad_flags : twist::none, w, &plan);
          EXPECT_EQ(plan, nullptr) << about;
          EXPECT_EQ(status, m.first < 2 ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED) << about;
          if (m.first != is_wrong)
            expect_text(refuses == 0 || m.first == refuses ? "no file of that name" : "flags", about);
          if (m.first > 1) expect_text("rank 0: ", about);
          expect_health(op::reduce, m, about);
        },
        in_time(deadline_ms));
  }
}

TEST(Endings, OfACommunicatorThatTwoRanksRefuse) {
  if (over_mpi()) return;  // creation_test.cpp
  constexpr int32_t processes = 4;
  for (const int32_t refuses : {1, 2}) {
    const int32_t is_wrong = 3 - refuses;
    std::vector<lockstep_engine> engines(processes);
    ASSERT_EQ(lockstep_engine_local(processes, engines.data()), LOCKSTEP_OK);
    std::vector<std::thread> threads;
    for (int32_t p = 0; p < processes; ++p)
      threads.emplace_back([&, p] {
        lockstep_comm_options o = lockstep_comm_defaults();
        o.timeout_ms = deadline_ms;
        if (p == is_wrong) o.seats = -3;
        lockstep_context* context = nullptr;
        ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
        lockstep_engine& e = engines[static_cast<size_t>(p)];
        lockstep_comm* comm = nullptr;
        const lockstep_status status = p == refuses ? lockstep_comm_refuse(&e, &o, "its input is damaged")
                                                    : lockstep_comm_create(context, &e, &o, &comm);
        EXPECT_EQ(comm, nullptr);
        EXPECT_EQ(status, p == 0 || p == 3 ? LOCKSTEP_RANK_FAILED : LOCKSTEP_INVALID_ARGUMENT);
        const std::string about = format_text("rank {} refuses, on rank {}", refuses, p);
        if (p != is_wrong) expect_text(p == refuses || refuses == 1 ? "its input is damaged" : "seats is -3", about);
        if (p == 0 || p == 3) expect_text("rank 1: ", about);
        e.close(e.user, 0);
        lockstep_context_destroy(context);
      });
    for (std::thread& t : threads) t.join();
  }
  lockstep_comm_options o = lockstep_comm_defaults();
  o.timeout_ms = 1234;
  EXPECT_EQ(lockstep_comm_timeout(&o), 1234);
  o.timeout_ms = -1;
  EXPECT_EQ(lockstep_comm_timeout(&o), -1);
  o.timeout_ms = -9;
  EXPECT_EQ(lockstep_comm_timeout(&o), 60000);
}

// The error names the calls, and an argument where they are the same.
TEST(Endings, CallsThatDifferAreNamed) {
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 5;
  if (ranks < 2) return;
  run(
      one_each(ranks),
      [&](member& m) {
        const bool other = m.first == ranks - 1;
        world_of_one w;
        lockstep_ranks_plan* plan = nullptr;
        EXPECT_EQ(make(op::reduce, m, other ? twist::other_call : twist::none, w, &plan), LOCKSTEP_MISMATCH);
        expect_text(
            format_text("the call is lockstep_ranks_permute on rank {} and lockstep_ranks_reduce on rank 0", ranks - 1)
                .c_str(),
            "permute");
        EXPECT_EQ(other ? lockstep_ranks_synchronize(m.comm) : make(op::halo, m, twist::none, w, &plan),
                  LOCKSTEP_MISMATCH);
        expect_text(format_text("the call is lockstep_ranks_synchronize on rank {} and lockstep_ranks_halo on rank 0",
                                ranks - 1)
                        .c_str(),
                    "synchronize");
        expect_health(op::reduce, m, "afterwards");
      },
      in_time(deadline_ms));
}

// A program that keeps plans: ranks that name different ones, or make one meanwhile, are told, and nothing is closed.
TEST(Endings, KeptPlansAreCompared) {
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 5;
  EXPECT_EQ(lockstep_ranks_agree(nullptr), LOCKSTEP_INVALID_ARGUMENT);
  if (ranks < 2) return;
  run(
      one_each(ranks),
      [&](member& m) {
        const bool other = m.first == ranks - 1;
        world_of_one w;
        lockstep_ranks_plan *sum = nullptr, *halo = nullptr, *again = nullptr;
        ASSERT_EQ(make(op::reduce, m, twist::none, w, &sum), LOCKSTEP_OK) << lockstep_last_error();
        ASSERT_EQ(make(op::halo, m, twist::none, w, &halo), LOCKSTEP_OK) << lockstep_last_error();
        for (int round = 0; round < 2; ++round) {
          EXPECT_EQ(lockstep_ranks_agree(sum), LOCKSTEP_OK) << lockstep_last_error();
          EXPECT_EQ(lockstep_ranks_agree(other ? halo : sum), LOCKSTEP_MISMATCH);
          expect_text(
              format_text("the call is lockstep_ranks_halo on rank {} and lockstep_ranks_reduce on rank 0", ranks - 1)
                  .c_str(),
              "another plan");
          EXPECT_EQ(other ? make(op::reduce, m, twist::none, w, &again) : lockstep_ranks_agree(sum), LOCKSTEP_MISMATCH);
          expect_text(format_text("the number of a kept plan (0: a new plan) is 0 on rank {}", ranks - 1).c_str(),
                      "new");
          EXPECT_EQ(again, nullptr);
          EXPECT_EQ(other ? lockstep_ranks_refuse(m.comm, "no") : lockstep_ranks_agree(sum),
                    other ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED);
        }
        lockstep_ranks_plan_destroy(sum);
        lockstep_ranks_plan_destroy(halo);
        expect_health(op::reduce, m, "afterwards");
      },
      in_time(deadline_ms));
}

// However long the descriptions are, only what differs is told: no rank sends one to all others.
TEST(Endings, DifferencesAreFoundInShortMessages) {
  if (over_mpi()) return;
  constexpr int32_t ranks = 64;
  std::atomic<size_t> longest{0};
  std::atomic<bool> counts{false};
  changes with = in_time(deadline_ms);
  with.engine = [&](int32_t, lockstep_engine& e) {
    watch(e, [&](size_t bytes) {
      if (!counts) return true;
      size_t most = longest;
      while (bytes > most && !longest.compare_exchange_weak(most, bytes)) {
      }
      return true;
    });
  };
  run(
      one_each(ranks),
      [&](member& m) {
        counts = true;
        const int64_t shape[] = {1000, 64}, turned[] = {64, 1000};
        const lockstep_grid a = lockstep_grid_slabs(8, 2, shape, ranks);
        lockstep_grid b = lockstep_grid_slabs(8, 2, turned, ranks);
        std::vector<int64_t> cuts;
        for (int64_t r = 0; r <= ranks; ++r) cuts.push_back(r);
        if (m.first == 41) cuts[50] = cuts[51];
        b.cuts[0] = cuts.data();
        const int32_t perm[] = {1, 0};
        lockstep_ranks_plan* plan = nullptr;
        EXPECT_EQ(lockstep_ranks_permute(m.comm, &a, perm, &b, nullptr, &plan), LOCKSTEP_MISMATCH);
        expect_text("dst->cuts[0][50] is 51 on rank 41 and 50 on rank 0", "");
      },
      with);
  EXPECT_LE(longest, 1024u);
}

// A program's own loop: it asks now and then, and hears of a failure once.
TEST(Endings, OfExecutionsThatAProgramAsksFor) {
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 4;
  for (const bool fails : {false, true})
    run(
        one_each(ranks),
        [&](member& m) {
          const bool mine = fails && m.first == ranks - 1;
          world_of_one a, b;
          lockstep_ranks_plan *permute = nullptr, *sum = nullptr;
          ASSERT_EQ(make(op::permute, m, twist::none, a, &permute), LOCKSTEP_OK) << lockstep_last_error();
          ASSERT_EQ(make(op::reduce, m, twist::none, b, &sum), LOCKSTEP_OK) << lockstep_last_error();
          EXPECT_EQ(execute(m, mine ? twist::null_data : twist::none, 0, a, permute, LOCKSTEP_ASYNC),
                    mine ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_OK);
          EXPECT_EQ(execute(m, twist::none, 0, b, sum, LOCKSTEP_ASYNC), LOCKSTEP_OK) << lockstep_last_error();
          int32_t done = 0;
          lockstep_status status = LOCKSTEP_OK;
          while (done == 0) status = lockstep_ranks_test(permute, &done);
          const lockstep_status want = !fails ? LOCKSTEP_OK : mine ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED;
          EXPECT_EQ(status, want) << lockstep_last_error();
          EXPECT_EQ(lockstep_ranks_test(permute, &done), LOCKSTEP_OK) << "a failure is returned once";
          EXPECT_EQ(lockstep_ranks_wait(sum), LOCKSTEP_OK) << lockstep_last_error();
          EXPECT_EQ(*static_cast<const double*>(b.dst_parts[0].data), static_cast<double>(rows * cols));
          EXPECT_EQ(lockstep_ranks_test(sum, &done), LOCKSTEP_OK);
          EXPECT_EQ(done, 1);
          EXPECT_EQ(lockstep_ranks_synchronize(m.comm), want);
          EXPECT_EQ(lockstep_ranks_test(nullptr, &done), LOCKSTEP_INVALID_ARGUMENT);
          EXPECT_EQ(lockstep_ranks_test(sum, nullptr), LOCKSTEP_INVALID_ARGUMENT);
          lockstep_ranks_plan_destroy(permute);
          lockstep_ranks_plan_destroy(sum);
        },
        in_time(20000));
}

}  // namespace
}  // namespace lockstep::ranks_test
