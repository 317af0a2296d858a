// transport_test.cpp - transports that fail, lie or delay: every rank returns in time, and no result is ever wrong.
#include <atomic>
#include <list>
#include <map>

#include "engines.hpp"
#include "faults.hpp"

namespace lockstep::ranks_test {
namespace {

enum class broken { isend, irecv, test, short_receive, twice, reordered, garbage, count };

struct spoiler : engine_before {
  broken how = broken::count;  // not yet: the communicator is made first
  int64_t at = 0, calls = 0;   // the call that goes wrong
  std::vector<char> copy;
  struct held {
    int32_t to;
    std::vector<char> data;
  };
  std::list<held> kept;  // sent later than what follows

  bool now(broken what) { return how == what && calls++ == at; }
  int isend(int32_t to, const void* data, size_t bytes, void** request) override {
    const auto* begin = static_cast<const char*>(data);
    if (now(broken::isend)) return 77;
    if (now(broken::garbage)) {
      copy.assign(begin, begin + bytes);
      copy[0] = static_cast<char>(copy[0] + 1);
      return engine_before::isend(to, copy.data(), bytes, request);
    }
    if (now(broken::twice)) {
      void* first = nullptr;
      copy.assign(begin, begin + bytes);
      const int result = engine_before::isend(to, copy.data(), bytes, &first);
      if (result != 0) return result;
    }
    if (now(broken::reordered)) {
      // The next message to that process overtakes this one, which the sender takes for sent.
      kept.push_back({to, {begin, begin + bytes}});
      *request = this;  // stands for a request that is done
      return 0;
    }
    const int result = engine_before::isend(to, data, bytes, request);
    for (held& k : kept)
      if (k.to == to && !k.data.empty()) {
        void* late = nullptr;
        const int also = engine_before::isend(to, k.data.data(), k.data.size(), &late);
        k.to = -1;
        if (also != 0) return also;
      }
    return result;
  }
  int irecv(int32_t from, void* data, size_t bytes, void** request) override {
    return now(broken::irecv) ? 78 : engine_before::irecv(from, data, bytes, request);
  }
  int test(void** request, int* done, size_t* received) override {
    if (*request == this) return *done = 1, *request = nullptr, 0;
    if (how == broken::test && calls++ == at) return 79;
    const int result = engine_before::test(request, done, received);
    if (result == 0 && *done != 0 && *received > 8 && now(broken::short_receive)) *received -= 8;
    return result;
  }
  const char* error(int result) override { return result == 77 ? "no route" : "the wire is cut"; }
};

TEST(Faults, ATransportThatFails) {
  if (over_mpi()) return;
  for (int how = 0; how < static_cast<int>(broken::count); ++how)
    for (const int64_t at : {0, 1, 2, 4, 9})
      for (int o = 0; o < static_cast<int>(op::count); ++o) {
        const std::string about = format_text("{}, way {}, call {}", op_names[o], how, at);
        spoiler* spoils = nullptr;
        changes with = in_time(200);
        with.engine = [&](int32_t p, lockstep_engine& e) {
          if (p != 1) return;
          auto made = std::make_unique<spoiler>();
          spoils = made.get();
          stand_before(e, std::move(made));
        };
        std::atomic<int> lost{0};
        run(
            one_each(4),
            [&](member& m) {
              if (m.first == 1) spoils->how = static_cast<broken>(how), spoils->at = at;
              const auto begin = clock::now();
              lockstep_status status = LOCKSTEP_OK;
              for (int k = 0; k < 12 && status == LOCKSTEP_OK; ++k) {  // what came twice shows with what comes next
                world_of_one w;
                lockstep_ranks_plan* plan = nullptr;
                status = make(static_cast<op>(o), m, twist::none, w, &plan);
                if (status == LOCKSTEP_OK) status = execute(m, twist::none, 0, w, plan);
                lockstep_ranks_plan_destroy(plan);
              }
              EXPECT_TRUE(status == LOCKSTEP_RANK_LOST || status == LOCKSTEP_MISMATCH)
                  << about << ", rank " << m.first << ": " << lockstep_status_name(status) << lockstep_last_error();
              lost += status != LOCKSTEP_OK;
              EXPECT_LT(clock::now() - begin, std::chrono::milliseconds(2 * timeout_ms + 1000)) << about;
            },
            with);
        EXPECT_EQ(lost, 4) << about;
        if (HasFailure()) return;
      }
}

// It is the transport's fault, not that of the ranks' calls, and the error says which message it was.
TEST(Faults, AMessageThatComesTwice) {
  if (over_mpi()) return;
  spoiler* spoils = nullptr;
  changes with = in_time(500);  // until who only sends to the one that noticed looks around
  with.engine = [&](int32_t p, lockstep_engine& e) {
    if (p != 1) return;
    auto made = std::make_unique<spoiler>();
    spoils = made.get();
    stand_before(e, std::move(made));
  };
  run(
      one_each(4),
      [&](member& m) {
        world_of_one w;
        lockstep_ranks_plan* plan = nullptr;
        ASSERT_EQ(make(op::permute, m, twist::none, w, &plan), LOCKSTEP_OK) << lockstep_last_error();
        if (m.first == 1) spoils->how = broken::twice;
        lockstep_status status = LOCKSTEP_OK;
        for (int k = 0; k < 4 && status == LOCKSTEP_OK; ++k) status = execute(m, twist::none, 0, w, plan);
        EXPECT_EQ(status, LOCKSTEP_RANK_LOST) << lockstep_last_error();
        expect_text("was due", format_text("rank {}", m.first));
        expect_text("from rank 1", format_text("rank {}", m.first));
        lockstep_ranks_plan_destroy(plan);
      },
      with);
}

// Messages that arrive late, in bursts, never change a result.
TEST(Faults, AnyDelays) {
  if (over_mpi()) return;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    changes with = in_time(20000);
    with.engine = [&](int32_t p, lockstep_engine& e) { delay(e, seed * 100 + static_cast<uint64_t>(p)); };
    run(
        one_each(6),
        [&](member& m) {
          const int64_t n = 100003, shape[] = {n};
          const std::vector<unsigned char> whole = data_of(LOCKSTEP_F32, n, "wide", 3);
          const lockstep_grid g = lockstep_grid_slabs(4, 1, shape, m.ranks);
          block mine(g, m.first, false);
          mine.fill(g, whole.data());
          double sum = 0, want = 0;
          const int64_t one = 1;
          const lockstep_part out = lockstep_part_packed(&sum, 1, &one);
          lockstep_ranks_plan* plan = nullptr;
          ASSERT_EQ(
              lockstep_ranks_reduce(m.comm, &g, LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F64, 1, nullptr, nullptr, &plan),
              LOCKSTEP_OK)
              << lockstep_last_error();
          for (int k = 0; k < 5; ++k)
            ASSERT_EQ(lockstep_ranks_execute(plan, &mine.part, &out, nullptr), LOCKSTEP_OK) << lockstep_last_error();
          lockstep_ranks_plan_destroy(plan);
          const lockstep_reduce_desc d = lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, n, 1);
          ASSERT_EQ(lockstep_reduce(m.context, &d, whole.data(), &want, nullptr), LOCKSTEP_OK);
          EXPECT_EQ(std::memcmp(&sum, &want, sizeof sum), 0);
        },
        with);
    if (HasFailure()) return;
  }
}

// What a transport is promised: each request is waited for to its end, and memory that one may write to is nobody
// else's until then.
TEST(Faults, RequestsAndTheirMemory) {
  if (over_mpi()) return;
  struct strict : engine_before {
    struct open_request {
      const char *begin, *end;
      bool receives;
    };
    std::map<void*, open_request> open;
    std::atomic<int>* wrong = nullptr;
    void add(void* request, const void* data, size_t bytes, bool receives) {
      const auto* begin = static_cast<const char*>(data);
      for (const auto& [other, o] : open)
        if ((receives || o.receives) && begin < o.end && o.begin < begin + bytes) ++*wrong;
      open[request] = {begin, begin + bytes, receives};
    }
    int isend(int32_t to, const void* data, size_t bytes, void** request) override {
      const int result = engine_before::isend(to, data, bytes, request);
      if (result == 0) add(*request, data, bytes, false);
      return result;
    }
    int irecv(int32_t from, void* data, size_t bytes, void** request) override {
      const int result = engine_before::irecv(from, data, bytes, request);
      if (result == 0) add(*request, data, bytes, true);
      return result;
    }
    int test(void** request, int* done, size_t* received) override {
      void* const which = *request;
      const int result = engine_before::test(request, done, received);
      if (*done != 0 || result != 0) open.erase(which);
      return result;
    }
    ~strict() override { *wrong += static_cast<int>(open.size()); }
  };
  for (const int64_t message_bytes : {0, 700})
    for (int o = 0; o < static_cast<int>(op::count); ++o) {
      std::atomic<int> wrong{0};
      changes with = in_time(20000);
      with.options = [&](int32_t, lockstep_comm_options& c) { c.message_bytes = message_bytes; };
      with.engine = [&](int32_t, lockstep_engine& e) {
        auto s = std::make_unique<strict>();
        s->wrong = &wrong;
        stand_before(e, std::move(s));
      };
      run(
          one_each(5),
          [&](member& m) {
            world_of_one w;
            lockstep_ranks_plan* plan = nullptr;
            ASSERT_EQ(make(static_cast<op>(o), m, twist::none, w, &plan), LOCKSTEP_OK) << lockstep_last_error();
            for (int k = 0; k < 3; ++k)
              EXPECT_EQ(execute(m, twist::none, 0, w, plan, k == 1 ? LOCKSTEP_ASYNC : 0), LOCKSTEP_OK);
            EXPECT_EQ(lockstep_ranks_synchronize(m.comm), LOCKSTEP_OK);
            lockstep_ranks_plan_destroy(plan);
          },
          with);
      EXPECT_EQ(wrong, 0) << op_names[o] << ", messages of " << message_bytes;
    }
}

}  // namespace
}  // namespace lockstep::ranks_test
