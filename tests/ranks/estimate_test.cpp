// estimate_test.cpp - plans without ranks: what they say is what the messages of real ones carry.
#include <atomic>

#include "world.hpp"

namespace lockstep::ranks_test {
namespace {

// Counts what a process really sends in one execution.
struct counter {
  lockstep_engine inner{};
  std::atomic<int64_t>* messages;
  std::atomic<int64_t>* bytes;
  static int isend(void* u, int32_t to, const void* d, size_t b, void** r) {
    auto* c = static_cast<counter*>(u);
    ++*c->messages;
    *c->bytes += static_cast<int64_t>(b);
    return c->inner.isend(c->inner.user, to, d, b, r);
  }
  static int irecv(void* u, int32_t from, void* d, size_t b, void** r) {
    auto* c = static_cast<counter*>(u);
    return c->inner.irecv(c->inner.user, from, d, b, r);
  }
  static int test(void* u, void** r, int* done, size_t* n) {
    auto* c = static_cast<counter*>(u);
    return c->inner.test(c->inner.user, r, done, n);
  }
  static const char* error(void*, int) { return ""; }
  static void close(void* u, int clean) {
    auto* c = static_cast<counter*>(u);
    c->inner.close(c->inner.user, clean);
    delete c;
  }
};

lockstep_status make(lockstep_comm* comm, int what, int32_t ranks, lockstep_ranks_plan** plan) {
  const int64_t shape[] = {5000, 40}, turned[] = {40, 5000};
  const lockstep_grid g = lockstep_grid_slabs(8, 2, shape, ranks), t = lockstep_grid_slabs(8, 2, turned, ranks);
  const int32_t perm[] = {1, 0};
  const double coefficients[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const lockstep_stencil_desc d =
      lockstep_stencil_packed(LOCKSTEP_F64, 2, shape, 2, coefficients, LOCKSTEP_BOUNDARY_NEAREST);
  if (what == 0) return lockstep_ranks_permute(comm, &g, perm, &t, nullptr, plan);
  if (what == 1)
    return lockstep_ranks_reduce(comm, &g, LOCKSTEP_SUM, LOCKSTEP_F64, LOCKSTEP_F64, 1, nullptr, nullptr, plan);
  return lockstep_ranks_stencil(comm, &g, &d, nullptr, plan);
}

TEST(Estimate, TellsWhatIsSent) {
  if (over_mpi()) return;
  constexpr int32_t ranks = 6;
  for (int what = 0; what < 3; ++what) {
    std::vector<std::atomic<int64_t>> messages(ranks), bytes(ranks);
    changes with;
    with.engine = [&](int32_t p, lockstep_engine& e) {
      auto* c = new counter{e, &messages[static_cast<size_t>(p)], &bytes[static_cast<size_t>(p)]};
      e = {sizeof e,
           LOCKSTEP_ENGINE_ABI,
           0,
           c,
           e.processes,
           e.process,
           "counted",
           &counter::isend,
           &counter::irecv,
           &counter::test,
           &counter::error,
           nullptr,
           &counter::close};
    };
    run(
        one_each(ranks),
        [&](member& m) {
          lockstep_ranks_plan *plan = nullptr, *dry_plan = nullptr;
          ASSERT_EQ(make(m.comm, what, ranks, &plan), LOCKSTEP_OK) << lockstep_last_error();
          lockstep_comm* dry = nullptr;
          ASSERT_EQ(lockstep_comm_dry(m.context, ranks, m.first, &dry), LOCKSTEP_OK) << lockstep_last_error();
          ASSERT_EQ(make(dry, what, ranks, &dry_plan), LOCKSTEP_OK) << lockstep_last_error();
          lockstep_ranks_cost cost{}, dry_cost{};
          cost.size = dry_cost.size = sizeof cost;
          const lockstep_ranks_link link = {sizeof link, 2.0, 10.0};
          ASSERT_EQ(lockstep_ranks_estimate(plan, &link, &cost), LOCKSTEP_OK) << lockstep_last_error();
          ASSERT_EQ(lockstep_ranks_estimate(dry_plan, &link, &dry_cost), LOCKSTEP_OK) << lockstep_last_error();
          EXPECT_EQ(std::memcmp(&cost, &dry_cost, sizeof cost), 0);
          EXPECT_GT(cost.ms, 0);
          EXPECT_GT(cost.workspace_bytes, cost.bytes_in);
          EXPECT_EQ(lockstep_ranks_execute(dry_plan, nullptr, nullptr, nullptr), LOCKSTEP_UNSUPPORTED);
          std::vector<double> src(5000 * 40), dst(5000 * 40);
          const int64_t block[] = {5000, 40}, whole[] = {40};
          const lockstep_part in = lockstep_part_packed(src.data(), 2, block);
          const int64_t wide[] = {40, 5000};
          const lockstep_part out = what == 0   ? lockstep_part_packed(dst.data(), 2, wide)
                                    : what == 1 ? lockstep_part_packed(dst.data(), 1, whole)
                                                : lockstep_part_packed(dst.data(), 2, block);
          const int64_t before = messages[static_cast<size_t>(m.first)], sent = bytes[static_cast<size_t>(m.first)];
          ASSERT_EQ(lockstep_ranks_execute(plan, &in, &out, nullptr), LOCKSTEP_OK) << lockstep_last_error();
          EXPECT_EQ(messages[static_cast<size_t>(m.first)] - before, cost.messages);
          EXPECT_EQ(bytes[static_cast<size_t>(m.first)] - sent, cost.bytes_out);
          lockstep_ranks_plan_destroy(plan);
          lockstep_ranks_plan_destroy(dry_plan);
          lockstep_comm_destroy(dry);
        },
        with);
  }
}

}  // namespace
}  // namespace lockstep::ranks_test
