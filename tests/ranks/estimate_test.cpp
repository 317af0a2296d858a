// estimate_test.cpp - estimates of plans on an imaginary communicator equal what real ranks send; and the makers of
// grids and parts.
#include <sys/resource.h>

#include <atomic>

#include "engines.hpp"

namespace lockstep::ranks_test {
namespace {

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

TEST(Makers, BadArgumentsGiveWhatCallsRefuse) {
  const int64_t shape[] = {4, 6, 10}, huge[] = {INT64_MAX, INT64_MAX, INT64_MAX};
  const lockstep_grid g = lockstep_grid_slabs(8, 3, shape, 2);
  EXPECT_EQ(std::vector<int64_t>(g.shape, g.shape + 4), (std::vector<int64_t>{4, 6, 10, 0}));
  EXPECT_EQ(std::vector<int32_t>(g.parts, g.parts + 4), (std::vector<int32_t>{2, 1, 1, 0}));
  const lockstep_part p = lockstep_part_packed(nullptr, 3, shape);
  EXPECT_EQ(std::vector<int64_t>(p.strides, p.strides + 4), (std::vector<int64_t>{60, 10, 1, 0}));
  for (const int32_t rank : {0, -1, 9, INT32_MAX}) {
    EXPECT_EQ(lockstep_grid_slabs(8, rank, shape, 2).parts[0], 0) << rank;
    EXPECT_EQ(lockstep_part_packed(nullptr, rank, shape).strides[0], 0) << rank;
  }
  EXPECT_EQ(lockstep_grid_slabs(8, 3, nullptr, 2).parts[0], 0);
  EXPECT_EQ(lockstep_part_packed(nullptr, 3, nullptr).strides[0], 0);
  EXPECT_EQ(lockstep_part_packed(nullptr, 3, huge).strides[2], 1);  // the product wraps, and must not trap
  int64_t low[8], length[8];
  const lockstep_grid refused = lockstep_grid_slabs(8, 3, nullptr, 2);
  EXPECT_EQ(lockstep_grid_box(&refused, 0, low, length), LOCKSTEP_INVALID_ARGUMENT);
}

// Address space of 1 GiB more than now: a plan that lists without end gets no memory, and the machine stays well.
struct little_memory {
  rlimit before{};
  little_memory() {
    getrlimit(RLIMIT_AS, &before);
    long pages = 0;
    std::FILE* const f = std::fopen("/proc/self/statm", "r");
    if (f == nullptr || std::fscanf(f, "%ld", &pages) != 1) pages = 0;
    if (f != nullptr) std::fclose(f);
    rlimit now = before;
    now.rlim_cur = static_cast<rlim_t>(pages) * 4096 + (rlim_t{1} << 30);
    setrlimit(RLIMIT_AS, &now);
  }
  ~little_memory() { setrlimit(RLIMIT_AS, &before); }
};

// Sizes that no machine has are refused before their lists take memory; the text names what makes them.
TEST(Estimate, AbsurdSizesAreRefusedEarly) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer takes all of the address space";
#endif
  if (over_mpi()) return;
  struct plan_case {
    const char* text;  // of the error; "": the plan is made
    std::function<lockstep_status(lockstep_comm*, lockstep_ranks_plan**)> make;
  };
  const int64_t huge[] = {2'000'000'000, 1'000'000'000}, turned[] = {huge[1], huge[0]}, tiny[] = {4, 4, 4};
  const double coefficients[] = {1, 2, 3};
  const auto permute = [&](lockstep_comm* c, lockstep_ranks_plan** plan) {
    const lockstep_grid src = lockstep_grid_slabs(4, 2, huge, 1024), dst = lockstep_grid_slabs(4, 2, turned, 1024);
    const int32_t perm[] = {1, 0};
    return lockstep_ranks_permute(c, &src, perm, &dst, nullptr, plan);
  };
  const auto reduce = [&](uint32_t axes, bool to_grid) {
    return [&huge, axes, to_grid](lockstep_comm* c, lockstep_ranks_plan** plan) {
      const lockstep_grid src = lockstep_grid_slabs(4, 2, huge, 1024), dst = lockstep_grid_slabs(8, 1, huge + 1, 1024);
      return lockstep_ranks_reduce(c, &src, LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F64, axes, to_grid ? &dst : nullptr,
                                   nullptr, plan);
    };
  };
  const auto halo = [&](int64_t width, lockstep_boundary boundary) {
    return [&tiny, width, boundary](lockstep_comm* c, lockstep_ranks_plan** plan) {
      const lockstep_grid g = lockstep_grid_slabs(4, 3, tiny, 4);
      const int64_t widths[] = {width, width, width};
      return lockstep_ranks_halo(c, &g, widths, boundary, 0, nullptr, plan);
    };
  };
  const auto stencil = [&](int32_t sweeps, const int64_t* shape) {
    return [&coefficients, sweeps, shape](lockstep_comm* c, lockstep_ranks_plan** plan) {
      const lockstep_grid g = lockstep_grid_slabs(4, 1, shape, 4);
      lockstep_stencil_desc d =
          lockstep_stencil_packed(LOCKSTEP_F32, 1, shape, 1, coefficients, LOCKSTEP_BOUNDARY_WRAP);
      d.sweeps = sweeps;
      return lockstep_ranks_stencil(c, &g, &d, nullptr, plan);
    };
  };
  const plan_case all[] = {
      {"src->shape is 2000000000x1000000000 over 1024 ranks", permute},
      {"src->shape is 2000000000x1000000000 over 1024 ranks", reduce(1, false)},
      {"src->shape is 2000000000x1000000000 over 1024 ranks", reduce(1, true)},
      {"", reduce(3, false)},
      {"grid->shape is 4x4x4 over 1024 ranks", halo(65536, LOCKSTEP_BOUNDARY_NEAREST)},
      {"fewer ghosts", halo(65536, LOCKSTEP_BOUNDARY_WRAP)},
      {"", halo(40, LOCKSTEP_BOUNDARY_WRAP)},
      {"fewer sweeps", stencil(2'000'000'000, tiny)},
      {"", stencil(2'000'000'000, huge)},
      {"", stencil(1'000, tiny)},
  };
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK) << lockstep_last_error();
  for (const plan_case& one : all) {
    const little_memory limit;
    lockstep_comm* dry = nullptr;
    ASSERT_EQ(lockstep_comm_dry(context, 1024, 1, &dry), LOCKSTEP_OK) << lockstep_last_error();
    lockstep_ranks_plan* plan = nullptr;
    const lockstep_status status = one.make(dry, &plan);
    const std::string text = lockstep_last_error();
    const bool taken = *one.text == '\0';
    EXPECT_EQ(status, taken ? LOCKSTEP_OK : LOCKSTEP_INVALID_ARGUMENT) << &one - all << ": " << text;
    EXPECT_NE(text.find(one.text), std::string::npos) << text;
    lockstep_ranks_plan_destroy(plan);
    lockstep_comm_destroy(dry);
  }
  lockstep_context_destroy(context);
  const little_memory limit;
  const lockstep_grid blocks = lockstep_grid_slabs(4, 1, huge, INT32_MAX);
  int64_t low[8], length[8];
  EXPECT_EQ(lockstep_grid_box(&blocks, 0, low, length), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(lockstep_last_error()).find("grid->parts make 2147483647 blocks"), std::string::npos)
      << lockstep_last_error();
}

TEST(Estimate, TellsWhatIsSent) {
  if (over_mpi()) return;
  constexpr int32_t ranks = 6;
  for (int what = 0; what < 3; ++what) {
    std::vector<std::atomic<int64_t>> messages(ranks), bytes(ranks);
    changes with;
    with.engine = [&](int32_t p, lockstep_engine& e) {
      watch(e, [&, i = static_cast<size_t>(p)](size_t sent) {  // what a process really sends
        ++messages[i];
        bytes[i] += static_cast<int64_t>(sent);
        return true;
      });
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
