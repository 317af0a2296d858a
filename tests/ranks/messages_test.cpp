// messages_test.cpp - messages are no longer than message_bytes, the number of steps grows with the logarithm of the
// ranks, and memory does not grow with the array.
#include <atomic>
#include <bit>

#include "engines.hpp"

namespace lockstep::ranks_test {
namespace {

using handle = std::unique_ptr<lockstep_ranks_plan, decltype(&lockstep_ranks_plan_destroy)>;

handle make(lockstep_comm* comm, int what, const std::vector<int64_t>& shape, int32_t ranks) {
  const lockstep_grid g = lockstep_grid_slabs(8, 2, shape.data(), ranks);
  lockstep_grid t = g;
  std::swap(t.shape[0], t.shape[1]);
  const int32_t perm[] = {1, 0};
  const double coefficients[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const lockstep_stencil_desc d =
      lockstep_stencil_packed(LOCKSTEP_F64, 2, shape.data(), 2, coefficients, LOCKSTEP_BOUNDARY_NEAREST);
  const int64_t width[] = {3, 0};
  lockstep_ranks_plan* plan = nullptr;
  const auto sum = [&](uint32_t axes, const lockstep_grid* to) {
    return lockstep_ranks_reduce(comm, &g, LOCKSTEP_SUM, LOCKSTEP_F64, LOCKSTEP_F64, axes, to, nullptr, &plan);
  };
  const lockstep_grid columns = lockstep_grid_slabs(8, 1, &shape[1], ranks);
  const lockstep_status status = what == 0   ? lockstep_ranks_permute(comm, &g, perm, &t, nullptr, &plan)
                                 : what == 1 ? lockstep_ranks_stencil(comm, &g, &d, nullptr, &plan)
                                 : what == 2
                                     ? lockstep_ranks_halo(comm, &g, width, LOCKSTEP_BOUNDARY_WRAP, 0, nullptr, &plan)
                                 : what == 3 ? sum(1, nullptr)
                                 : what == 4 ? sum(1, &columns)
                                 : what == 5 ? sum(2, nullptr)
                                             : sum(3, nullptr);
  EXPECT_EQ(status, LOCKSTEP_OK) << lockstep_last_error();
  return {plan, &lockstep_ranks_plan_destroy};
}
constexpr int operations = 7;

// A transport that refuses what is longer than it takes, as MPI's counts do.
TEST(Messages, AreNoLongerThanAskedFor) {
  constexpr int32_t ranks = 5;
  constexpr int64_t rows = 301, cols = 1500, message_bytes = 20000;
  for (int what = 0; what < operations; ++what) {
    std::vector<std::atomic<size_t>> longest(ranks);
    changes with;
    with.message_bytes = message_bytes;
    with.engine = [&](int32_t p, lockstep_engine& e) {
      watch(e, [&, p](size_t bytes) {
        longest[static_cast<size_t>(p)] = std::max<size_t>(longest[static_cast<size_t>(p)], bytes);
        return bytes <= message_bytes + 1024;
      });
    };
    run(
        one_each(ranks),
        [&](member& m) {
          const handle plan = make(m.comm, what, {rows, cols}, ranks);
          std::vector<double> src((rows + 10) * (cols + 10), 1.0), dst(src);
          const int64_t block[] = {rows, cols}, turned[] = {cols, rows}, line[] = {cols};
          const lockstep_part in = lockstep_part_packed(src.data(), 2, block);
          const lockstep_part out = what == 0   ? lockstep_part_packed(dst.data(), 2, turned)
                                    : what == 2 ? lockstep_part_packed(dst.data() + 3 * cols, 2, block)
                                    : what < 2  ? lockstep_part_packed(dst.data(), 2, block)
                                                : lockstep_part_packed(dst.data(), 1, line);
          EXPECT_EQ(lockstep_ranks_execute(plan.get(), &in, &out, nullptr), LOCKSTEP_OK)
              << what << ": " << lockstep_last_error();
        },
        with);
    size_t most = 0;
    for (const auto& one : longest) most = std::max<size_t>(most, one);
    EXPECT_GT(most, what >= 5 ? 0u : 1000u) << what;  // of messages that hold something
    if (HasFailure()) return;
  }
}

TEST(Messages, AreOfAtMostAGibibyte) {
  if (over_mpi()) return;
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
  for (const int64_t bytes : {int64_t{-1}, (int64_t{1} << 30) + 1, INT64_MAX}) {
    lockstep_comm_options o = lockstep_comm_defaults();
    o.message_bytes = bytes;
    lockstep_comm* comm = nullptr;
    EXPECT_EQ(lockstep_comm_local(context, &o, &comm), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(lockstep_last_error()).find("options.message_bytes"), std::string::npos);
  }
  lockstep_context_destroy(context);
}

// Of every reduction: so many steps, and one message a step.
TEST(Messages, AreLogarithmicallyMany) {
  if (over_mpi()) return;
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
  for (const int32_t ranks : {2, 3, 8, 100, 1000, 1024})
    for (const int what : {3, 5, 6})
      for (const int32_t rank : {0, 1, ranks / 2, ranks - 1}) {
        lockstep_comm* dry = nullptr;
        ASSERT_EQ(lockstep_comm_dry(context, ranks, rank, &dry), LOCKSTEP_OK);
        lockstep_ranks_cost cost{};
        cost.size = sizeof cost;
        {
          const handle plan = make(dry, what, {int64_t{4096} * ranks, 300}, ranks);
          ASSERT_EQ(lockstep_ranks_estimate(plan.get(), nullptr, &cost), LOCKSTEP_OK);
        }
        const int log = std::bit_width(static_cast<uint32_t>(ranks - 1));
        // Joining, one step more where ranks are no power of 2; handing on; and a cut leaf's elements.
        EXPECT_LE(cost.steps, 2 * log + 2) << what << " on rank " << rank << " of " << ranks;
        EXPECT_LE(cost.messages, 2 * log + 3) << what << " on rank " << rank << " of " << ranks;
        lockstep_comm_destroy(dry);
      }
  lockstep_context_destroy(context);
}

// While a rank sends to all others it does not look at all requests after each message.
TEST(Messages, AreLookedAtAFewTimes) {
  if (over_mpi()) return;
  constexpr int32_t ranks = 17;               // too few for groups
  constexpr int64_t n = int64_t{24} * ranks;  // boxes that the transport does not take at once
  struct counter : engine_before {
    bool counts = false;
    int sends = 0, looks = 0, until_last_send = 0;
    int isend(int32_t to, const void* data, size_t bytes, void** request) override {
      if (counts) ++sends, until_last_send = sends == 1 ? looks = 0 : looks;
      return engine_before::isend(to, data, bytes, request);
    }
    int test(void** request, int* done, size_t* received) override {
      ++looks;
      return engine_before::test(request, done, received);
    }
  };
  std::vector<counter*> counters(ranks);
  changes with;
  with.engine = [&](int32_t p, lockstep_engine& e) {
    auto made = std::make_unique<counter>();
    counters[static_cast<size_t>(p)] = made.get();
    stand_before(e, std::move(made));
  };
  run(
      one_each(ranks),
      [&](member& m) {
        const handle plan = make(m.comm, 0, {n, n}, ranks);
        std::vector<double> src(n / ranks * n), dst(src);
        const int64_t block[] = {n / ranks, n};
        const lockstep_part in = lockstep_part_packed(src.data(), 2, block),
                            out = lockstep_part_packed(dst.data(), 2, block);
        counter& mine = *counters[static_cast<size_t>(m.first)];
        mine.counts = true;
        EXPECT_EQ(lockstep_ranks_execute(plan.get(), &in, &out, nullptr), LOCKSTEP_OK) << lockstep_last_error();
        mine.counts = false;
        EXPECT_EQ(mine.sends, ranks - 1);
        EXPECT_LE(mine.until_last_send, 8 * 2 * ranks);  // at most eight times each
      },
      with);
}

// What ranks say of a hundred sequences travels in the messages of one.
TEST(Messages, OfManySequencesAreThoseOfOne) {
  if (over_mpi()) return;
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
  constexpr int32_t ranks = 64, rank = 21;
  const char* const names[] = {"sum",        "least",       "mean and variance", "softmax",
                               "layer norm", "running sum", "running maximum"};
  for (int what = 0; what < static_cast<int>(std::size(names)); ++what) {
    lockstep_ranks_cost of[2]{};
    for (const int64_t rows : {1, 100}) {
      const int64_t shape[] = {rows, 20480 * ranks + 77};
      lockstep_grid g{};
      g.size = sizeof g, g.element_bytes = 4, g.rank = 2;
      for (size_t k = 0; k < 2; ++k) g.shape[k] = shape[k], g.parts[k] = k == 0 ? 1 : ranks;
      lockstep_comm* dry = nullptr;
      ASSERT_EQ(lockstep_comm_dry(context, ranks, rank, &dry), LOCKSTEP_OK);
      lockstep_ranks_plan* plan = nullptr;
      const auto desc = [&](lockstep_normalization kind) {
        return lockstep_normalize_rows(kind, LOCKSTEP_F32, 0, 0, 1);
      };
      const lockstep_normalize_desc softmax = desc(LOCKSTEP_NORMALIZE_SOFTMAX), layer = desc(LOCKSTEP_NORMALIZE_LAYER);
      const auto reduce = [&](lockstep_reduction r, lockstep_dtype result) {
        return lockstep_ranks_reduce(dry, &g, r, LOCKSTEP_F32, result, 2, nullptr, nullptr, &plan);
      };
      const auto scan = [&](lockstep_reduction r) {
        return lockstep_ranks_scan(dry, &g, r, LOCKSTEP_F32, LOCKSTEP_F32, 1, 0, nullptr, &plan);
      };
      const lockstep_status made =
          what == 0   ? reduce(LOCKSTEP_SUM, LOCKSTEP_F64)
          : what == 1 ? reduce(LOCKSTEP_MIN, LOCKSTEP_F32)
          : what == 2 ? lockstep_ranks_mean_variance(dry, &g, LOCKSTEP_F32, LOCKSTEP_F64, 2, 0, nullptr, nullptr, &plan)
          : what == 3 ? lockstep_ranks_normalize(dry, &g, &softmax, 0, nullptr, &plan)
          : what == 4 ? lockstep_ranks_normalize(dry, &g, &layer, 0, nullptr, &plan)
          : what == 5 ? scan(LOCKSTEP_SUM)
                      : scan(LOCKSTEP_MAX);
      ASSERT_EQ(made, LOCKSTEP_OK) << names[what] << ": " << lockstep_last_error();
      lockstep_ranks_cost& cost = of[rows == 1 ? 0 : 1];
      cost.size = sizeof cost;
      ASSERT_EQ(lockstep_ranks_estimate(plan, nullptr, &cost), LOCKSTEP_OK);
      lockstep_ranks_plan_destroy(plan);
      lockstep_comm_destroy(dry);
    }
    EXPECT_GE(of[1].bytes_out, 5 * of[0].bytes_out) << names[what];  // of all of them
    EXPECT_LE(of[1].messages, of[0].messages) << names[what];
  }
  lockstep_context_destroy(context);
}

// A transpose between p ranks that have less than 64 KiB for each other sends about 2 sqrt(p) messages, not p - 1.
TEST(Messages, OfShortBoxesGoByGroups) {
  if (over_mpi()) return;
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
  const struct {
    int32_t ranks;
    int64_t by_groups;  // at most
  } all[] = {{17, 16}, {64, 14}, {100, 18}, {1000, 63}, {1024, 62}, {4096, 126}};
  for (const auto& one : all)
    for (const int64_t side : {8, 200}) {  // of a pair's box: 256 and 160,000 bytes
      const int64_t n = side * one.ranks, shape[] = {n, n};
      const lockstep_grid g = lockstep_grid_slabs(4, 2, shape, one.ranks);
      const int32_t perm[] = {1, 0};
      for (const int32_t rank : {0, one.ranks / 2, one.ranks - 1}) {
        lockstep_comm* dry = nullptr;
        ASSERT_EQ(lockstep_comm_dry(context, one.ranks, rank, &dry), LOCKSTEP_OK);
        lockstep_ranks_plan* plan = nullptr;
        ASSERT_EQ(lockstep_ranks_permute(dry, &g, perm, &g, nullptr, &plan), LOCKSTEP_OK) << lockstep_last_error();
        lockstep_ranks_cost cost{};
        cost.size = sizeof cost;
        ASSERT_EQ(lockstep_ranks_estimate(plan, nullptr, &cost), LOCKSTEP_OK);
        const std::string about = format_text("rank {} of {}, {} elements a side", rank, one.ranks, side);
        const bool in_groups = side == 8 && one.ranks > 17;
        EXPECT_EQ(cost.steps, in_groups ? 2 : 1) << about;
        if (in_groups)
          EXPECT_LE(cost.messages, one.by_groups) << about;
        else
          EXPECT_EQ(cost.messages, one.ranks - 1) << about;
        // Twice the elements at most, and the headers of messages.
        const int64_t block = 4 * side * n;
        EXPECT_LE(cost.bytes_out, (in_groups ? 2 : 1) * block + 64 * cost.messages) << about;
        EXPECT_GE(cost.bytes_out, block - 4 * side * side) << about;
        lockstep_ranks_plan_destroy(plan);
        lockstep_comm_destroy(dry);
      }
    }
  lockstep_context_destroy(context);
}

// The neighbours of a block are found without a look at all ranks, so plans for very many can be made; what an
// execution sends grows with the neighbours, or with the logarithm of the ranks.
TEST(Messages, OfAMillionRanksAreFew) {
  if (over_mpi()) return;
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
  for (const int32_t side : {2, 10, 100}) {
    const int32_t ranks = side * side * side, log = std::bit_width(static_cast<uint32_t>(ranks));
    lockstep_grid g{};
    g.size = sizeof g;
    g.element_bytes = 8;
    g.rank = 3;
    for (int k = 0; k < 3; ++k) g.shape[k] = int64_t{64} * side, g.parts[k] = side;
    std::vector<int64_t> cuts = {0};  // eight elements further
    for (int32_t c = 1; c < side; ++c) cuts.push_back(int64_t{64} * c + 8);
    cuts.push_back(g.shape[0]);
    lockstep_grid shifted = g;
    for (auto& axis : shifted.cuts) axis = cuts.data();
    const int64_t line = int64_t{2048} * ranks + 77, width[] = {2, 2, 2};
    const lockstep_grid slabs = lockstep_grid_slabs(8, 1, &line, ranks);
    const int32_t same[] = {0, 1, 2};
    const double weights[] = {1, 2, 3, 4, 5, 6, 7};
    const lockstep_stencil_desc d =
        lockstep_stencil_packed(LOCKSTEP_F64, 3, g.shape, 1, weights, LOCKSTEP_BOUNDARY_WRAP);
    const lockstep_ranks_term terms[] = {{LOCKSTEP_SUMS, LOCKSTEP_SUMS_DOT}, {LOCKSTEP_REDUCE, LOCKSTEP_SUM}};
    using make_plan = std::function<lockstep_status(lockstep_comm*, lockstep_ranks_plan**)>;
    const auto sums = [&](lockstep_sums_kind kind, lockstep_dtype result) -> make_plan {
      return [&slabs, kind, result](lockstep_comm* c, lockstep_ranks_plan** plan) {
        return lockstep_ranks_sums(c, &slabs, kind, LOCKSTEP_F64, result, 1, nullptr, nullptr, plan);
      };
    };
    const int neighbours = side == 2 ? 7 : 26, joins = 2 * log + 2;
    const auto scan = [&](lockstep_reduction reduction) -> make_plan {
      return [&slabs, reduction](lockstep_comm* c, lockstep_ranks_plan** plan) {
        return lockstep_ranks_scan(c, &slabs, reduction, LOCKSTEP_F64, LOCKSTEP_F64, 0, 0, nullptr, plan);
      };
    };
    // A row cut at no leaf: its extreme, then its sum.
    const auto rows = [&](lockstep_normalization kind) -> make_plan {
      return [&slabs, kind](lockstep_comm* c, lockstep_ranks_plan** plan) {
        const lockstep_normalize_desc desc = lockstep_normalize_rows(kind, LOCKSTEP_F64, 0, 0, 1);
        return lockstep_ranks_normalize(c, &slabs, &desc, 0, nullptr, plan);
      };
    };
    const struct {
      const char* name;
      make_plan make;
      int64_t messages, bytes_out;
    } all[] = {
        {"halo",
         [&](auto* c, auto** plan) {
           return lockstep_ranks_halo(c, &g, width, LOCKSTEP_BOUNDARY_WRAP, 0, nullptr, plan);
         },
         neighbours, int64_t{8} * (68 * 68 * 68 - 64 * 64 * 64) + 26 * 64 * 8},
        {"halo of three fields",
         [&](auto* c, auto** plan) {
           return lockstep_ranks_halo_fields(c, &g, width, LOCKSTEP_BOUNDARY_WRAP, 0, 3, nullptr, plan);
         },
         neighbours, int64_t{24} * (68 * 68 * 68 - 64 * 64 * 64) + 26 * 64 * 24},
        {"stencil", [&](auto* c, auto** plan) { return lockstep_ranks_stencil(c, &g, &d, nullptr, plan); }, neighbours,
         int64_t{1} << 22},
        {"redistribution to cuts nearby",
         [&](auto* c, auto** plan) { return lockstep_ranks_permute(c, &g, same, &shifted, nullptr, plan); }, 7,
         int64_t{1} << 21},
        {"norm in the order of the grid",
         [&](auto* c, auto** plan) {
           return lockstep_ranks_reduce_blocks(c, &g, LOCKSTEP_NORM2, LOCKSTEP_F64, LOCKSTEP_F64, nullptr, plan);
         },
         joins, 100 * joins},
        {"several sums",
         [&](auto* c, auto** plan) {
           return lockstep_ranks_reduce_several(c, &g, terms, 2, LOCKSTEP_F64, LOCKSTEP_F64, nullptr, plan);
         },
         joins, 100 * joins},
        {"index of the least of blocks",
         [&](auto* c, auto** plan) {
           return lockstep_ranks_reduce(c, &g, LOCKSTEP_ARGMIN, LOCKSTEP_F64, LOCKSTEP_I64, 7, nullptr, nullptr, plan);
         },
         joins, 100 * joins},
        {"dot", sums(LOCKSTEP_SUMS_DOT, LOCKSTEP_F64), joins + 2, 2 * 16384 + 64 * log * joins},
        {"mean and variance", sums(LOCKSTEP_SUMS_MEAN_VARIANCE, LOCKSTEP_F64), joins + 2, 16384 + 100 * log * joins},
        {"digest", sums(LOCKSTEP_SUMS_DIGEST, LOCKSTEP_U64), joins + 2, 16384 + 100 * joins},
        {"rms norm", rows(LOCKSTEP_NORMALIZE_RMS), joins + 2, 16384 + 64 * log * joins},
        {"layer norm", rows(LOCKSTEP_NORMALIZE_LAYER), joins + 2, 16384 + 100 * log * joins},
        {"softmax", rows(LOCKSTEP_NORMALIZE_SOFTMAX), 2 * joins + 2, 16384 + 100 * log * joins},
        {"running sum", scan(LOCKSTEP_SUM), log + 3, 2 * 16384 + 100 * log * joins},
        {"running maximum", scan(LOCKSTEP_MAX), log + 1, 100 * joins}};
    for (const int32_t rank : {0, ranks / 2, ranks - 1}) {
      lockstep_comm* dry = nullptr;
      ASSERT_EQ(lockstep_comm_dry(context, ranks, rank, &dry), LOCKSTEP_OK);
      for (const auto& one : all) {
        const std::string about = format_text("{} on rank {} of {}", one.name, rank, ranks);
        lockstep_ranks_plan* plan = nullptr;
        ASSERT_EQ(one.make(dry, &plan), LOCKSTEP_OK) << about << ": " << lockstep_last_error();
        lockstep_ranks_cost cost{};
        cost.size = sizeof cost;
        ASSERT_EQ(lockstep_ranks_estimate(plan, nullptr, &cost), LOCKSTEP_OK);
        EXPECT_LE(cost.messages, one.messages) << about;
        EXPECT_LE(cost.bytes_out, one.bytes_out) << about;
        if (std::string(one.name).starts_with("halo")) EXPECT_EQ(cost.messages, neighbours) << about;
        lockstep_ranks_plan_destroy(plan);
      }
      int64_t low[8], length[8];
      EXPECT_EQ(lockstep_grid_box(&g, rank, low, length), LOCKSTEP_OK);
      EXPECT_EQ(low[2], int64_t{64} * (rank % side));
      lockstep_comm_destroy(dry);
    }
  }
  lockstep_context_destroy(context);
}

TEST(Messages, ManyColumnsTakeLittleMemory) {
  if (over_mpi()) return;
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
  for (const int what : {3, 4}) {
    lockstep_comm* dry = nullptr;
    ASSERT_EQ(lockstep_comm_dry(context, 16, 5, &dry), LOCKSTEP_OK);
    lockstep_ranks_cost few{}, many{};
    few.size = many.size = sizeof few;
    {
      // Cuts at leaves, and anywhere.
      for (const int64_t rows : {int64_t{1} << 24, (int64_t{1} << 24) + 999}) {
        const handle a = make(dry, what, {rows, 100000}, 16), b = make(dry, what, {rows, 1000000}, 16);
        ASSERT_EQ(lockstep_ranks_estimate(a.get(), nullptr, &few), LOCKSTEP_OK);
        ASSERT_EQ(lockstep_ranks_estimate(b.get(), nullptr, &many), LOCKSTEP_OK);
        EXPECT_LE(many.workspace_bytes, int64_t{4} * 32 << 20) << rows;
        EXPECT_GE(many.messages, 5 * few.messages) << rows;
      }
    }
    lockstep_comm_destroy(dry);
  }
  lockstep_context_destroy(context);
}

}  // namespace
}  // namespace lockstep::ranks_test
