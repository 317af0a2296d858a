// blocks_test.cpp - reductions of arrays that are cut on several axes: all ranks have work and none much more than its
// share of the array; and the order of the grid, against plain sums of blocks.
#include <bit>
#include <cmath>

#include "world.hpp"

namespace lockstep::ranks_test {
namespace {

// Bytes that the largest of some ranks takes for a reduction, and how many of them get elements.
struct shares {
  int64_t largest = 0, bytes_in = 0;
  int with_work = 0, asked = 0;
};

shares estimated(lockstep_context* context, const lockstep_grid& g, int32_t ranks, uint32_t axes,
                 lockstep_dtype dtype) {
  shares all;
  for (int32_t rank = 0; rank < ranks; rank += std::max(1, ranks / 37)) {
    lockstep_comm* dry = nullptr;
    lockstep_ranks_plan* plan = nullptr;
    EXPECT_EQ(lockstep_comm_dry(context, ranks, rank, &dry), LOCKSTEP_OK);
    EXPECT_EQ(lockstep_ranks_reduce(dry, &g, LOCKSTEP_SUM, dtype, LOCKSTEP_F64, axes, nullptr, nullptr, &plan),
              LOCKSTEP_OK)
        << lockstep_last_error();
    lockstep_ranks_cost cost{};
    cost.size = sizeof cost;
    EXPECT_EQ(lockstep_ranks_estimate(plan, nullptr, &cost), LOCKSTEP_OK);
    all.largest = std::max(all.largest, cost.workspace_bytes);
    all.bytes_in = std::max(all.bytes_in, cost.bytes_in);
    all.with_work += cost.bytes_in > 100000;
    ++all.asked;
    lockstep_ranks_plan_destroy(plan);
    lockstep_comm_destroy(dry);
  }
  return all;
}

// A field of three components in blocks of 25 MB each; before, three ranks got it all.
TEST(Blocks, NoRankGetsMuchMoreThanItsShare) {
  if (over_mpi()) return;
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
  struct one {
    std::vector<int64_t> shape;
    std::vector<int32_t> parts;
    uint32_t axes;
  };
  const one all[] = {
      {{3, 8192, 8192}, {1, 8, 8}, 7}, {{3, 8192, 8190}, {1, 8, 8}, 7},        {{3, 10001, 4000}, {1, 6, 5}, 7},
      {{400, 400, 401}, {4, 4, 4}, 7}, {{5, 4096, 4099}, {1, 8, 8}, 6},        {{7, 4096, 4099}, {1, 6, 2}, 6},
      {{300, 400, 500}, {4, 2, 4}, 6}, {{11, 7, 2048, 900}, {1, 1, 4, 4}, 12}, {{3, 32768, 32768}, {1, 32, 32}, 7}};
  for (const one& c : all) {
    lockstep_grid g{};
    g.size = sizeof g;
    g.element_bytes = sizeof(float);
    g.rank = static_cast<int32_t>(c.shape.size());
    int32_t ranks = 1;
    int64_t bytes = sizeof(float);
    for (size_t k = 0; k < c.shape.size(); ++k) {
      g.shape[k] = c.shape[k], g.parts[k] = c.parts[k];
      ranks *= c.parts[k], bytes *= c.shape[k];
    }
    const std::string about = format_text("{} by {}", joined(c.shape, "x"), joined(c.parts, "x"));
    const shares found = estimated(context, g, ranks, c.axes, LOCKSTEP_F32);
    // Messages on their way take a constant beside the elements.
    EXPECT_LE(found.bytes_in, 2 * (bytes / ranks) + 100000) << about;
    EXPECT_LE(found.largest, 2 * (bytes / ranks) + (int64_t{160} << 20)) << about;
    EXPECT_GE(found.with_work, found.asked * 2 / 3) << about;
  }
  lockstep_context_destroy(context);
}

// What no order shows in is joined where it is: some bytes for each sequence in every step, whatever the array.
TEST(Blocks, ExtremesAndExactSumsDoNotMoveTheArray) {
  if (over_mpi()) return;
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
  struct one {
    lockstep_reduction reduction;
    lockstep_dtype dtype;
    uint32_t axes;
    int64_t sequences;
  };
  const one all[] = {{LOCKSTEP_ARGMIN, LOCKSTEP_F32, 7, 1},  {LOCKSTEP_MAX, LOCKSTEP_F64, 7, 1},
                     {LOCKSTEP_NAN_MIN, LOCKSTEP_F16, 6, 3}, {LOCKSTEP_SUM, LOCKSTEP_I32, 7, 1},
                     {LOCKSTEP_NORM2, LOCKSTEP_I64, 6, 3},   {LOCKSTEP_PROD, LOCKSTEP_U8, 7, 1},
                     {LOCKSTEP_ALL, LOCKSTEP_BOOL, 6, 3},    {LOCKSTEP_COUNT_NONZERO, LOCKSTEP_F32, 7, 1}};
  for (const one& c : all)
    for (const int32_t side : {2, 6, 32, 1000}) {
      if (side == 1000 && &c != all) continue;  // all share the way
      lockstep_grid g{};
      g.size = sizeof g;
      g.element_bytes = lockstep_dtype_bytes(c.dtype);
      g.rank = 3;
      const int64_t shape[] = {3, int64_t{1024} * side + 5, int64_t{1024} * side + 7};
      for (size_t k = 0; k < 3; ++k) g.shape[k] = shape[k], g.parts[k] = k == 0 ? 1 : side;
      const int log = std::bit_width(static_cast<uint32_t>(side * side - 1));
      for (const int32_t rank : {0, side * side / 2, side * side - 1}) {
        lockstep_comm* dry = nullptr;
        lockstep_ranks_plan* plan = nullptr;
        ASSERT_EQ(lockstep_comm_dry(context, side * side, rank, &dry), LOCKSTEP_OK);
        ASSERT_EQ(lockstep_ranks_reduce(dry, &g, c.reduction, c.dtype, lockstep_default_result(c.reduction, c.dtype),
                                        c.axes, nullptr, nullptr, &plan),
                  LOCKSTEP_OK)
            << lockstep_last_error();
        lockstep_ranks_cost cost{};
        cost.size = sizeof cost;
        EXPECT_EQ(lockstep_ranks_estimate(plan, nullptr, &cost), LOCKSTEP_OK);
        EXPECT_LE(cost.steps, 2 * log + 1) << side;
        EXPECT_LE(cost.messages, 2 * log + 1) << side;
        EXPECT_LE(cost.bytes_in, (2 * log + 1) * (48 + 32 * c.sequences)) << side;
        lockstep_ranks_plan_destroy(plan);
        lockstep_comm_destroy(dry);
      }
    }
  lockstep_context_destroy(context);
}

// The order of the grid, by its definition: sums of blocks, then the fixed tree over them.
double tree(const std::vector<double>& x, size_t low, size_t n) {
  if (n == 1) return x[low];
  const size_t half = std::bit_ceil(n) / 2;
  return tree(x, low, half) + tree(x, low + half, n - half);
}

lockstep_status one_call(lockstep_context* context, const lockstep_reduce_desc& d, const void* src, void* dst) {
  return d.reduction == LOCKSTEP_SUM ? lockstep_reduce(context, &d, src, dst, nullptr)
                                     : lockstep_square_sum(context, &d, src, dst, nullptr);
}

template <class T>
void check_order(lockstep_reduction reduction, lockstep_dtype dtype, lockstep_dtype result, const char* fill,
                 int32_t ranks, uint64_t seed) {
  std::mt19937_64 shapes(seed);
  std::vector<int64_t> shape;
  for (size_t k = 0; k < 1 + seed % 3; ++k)
    shape.push_back(static_cast<int64_t>(1 + shapes() % (seed % 3 == 0 ? 60000 : 90)));
  int64_t n = 1;
  for (const int64_t x : shape) n *= x;
  const std::vector<int32_t> parts = draw_parts(shape.size(), ranks, shapes);
  const std::vector<unsigned char> whole = data_of(dtype, n, fill, seed);
  const auto* elements = reinterpret_cast<const T*>(whole.data());
  run(shapes() % 2 == 0 ? one_each(ranks) : drawn_seats(ranks, shapes), [&](member& m) {
    std::mt19937_64 draw(seed);
    drawn_grid grid = draw_grid(sizeof(T), shape, parts, m.ranks, draw);
    // The grid's blocks, whoever has them.
    lockstep_grid by_number = *grid.get();
    by_number.order = nullptr;
    int32_t blocks = 1;
    for (const int32_t p : parts) blocks *= p;
    double largest = 0;
    for (int64_t i = 0; i < n; ++i) largest = std::fmax(largest, std::fabs(static_cast<double>(elements[i])));
    const auto total = [&](double scale) {
      std::vector<double> sums;
      for (int32_t b = 0; b < blocks; ++b) {
        block one(by_number, b, false);
        one.fill(by_number, whole.data());
        std::vector<T> packed(static_cast<size_t>(one.elements));
        for (size_t i = 0; i < packed.size(); ++i)
          packed[i] = static_cast<T>(static_cast<const T*>(one.part.data)[i] * static_cast<T>(scale));
        const lockstep_reduction r = reduction == LOCKSTEP_SUM ? LOCKSTEP_SUM : LOCKSTEP_SUM_OF_SQUARES;
        lockstep_reduce_desc d = lockstep_reduce_full(r, dtype, one.elements, 1);
        d.result = LOCKSTEP_F64;
        double sum = 0;
        EXPECT_EQ(one_call(m.context, d, packed.data(), &sum), LOCKSTEP_OK) << lockstep_last_error();
        sums.push_back(sum);
      }
      return tree(sums, 0, sums.size());
    };
    double want = total(1);
    if (reduction == LOCKSTEP_NORM2) {
      const bool huge = std::isinf(want), tiny = dtype == LOCKSTEP_F64 && want < 0x1p-900;
      want = std::sqrt(want);
      if (blocks == 1 || ((huge || tiny) && largest > 0)) {
        if (dtype == LOCKSTEP_F64 && largest > 0 && (huge || tiny)) {
          const int e = std::ilogb(largest);
          want = std::sqrt(total(std::ldexp(1.0, -e))) * std::ldexp(1.0, e);
        }
      }
    }
    std::vector<block> in, out;
    for (int32_t s = 0; s < m.seats; ++s) {
      in.emplace_back(*grid.get(), m.first + s, draw() % 2 == 0).fill(*grid.get(), whole.data());
      out.emplace_back(lockstep_dtype_bytes(result), std::vector<int64_t>{1}, false);
    }
    const std::string about = format_text("reduction {} of {} elements, {} ranks, seed {}: {}",
                                          static_cast<int>(reduction), n, m.ranks, seed, grid.text);
    lockstep_ranks_plan* plan = nullptr;
    ASSERT_EQ(lockstep_ranks_reduce_blocks(m.comm, grid.get(), reduction, dtype, result, nullptr, &plan), LOCKSTEP_OK)
        << about << lockstep_last_error();
    lockstep_ranks_cost cost{};
    cost.size = sizeof cost;
    EXPECT_EQ(lockstep_ranks_estimate(plan, nullptr, &cost), LOCKSTEP_OK);
    EXPECT_LE(cost.bytes_in, 2000 * m.seats) << about;  // headers and 8 bytes, whatever the array
    for (int round = 0; round < 2; ++round)
      EXPECT_EQ(execute(m, plan, &in, &out), LOCKSTEP_OK) << about << ": " << lockstep_last_error();
    lockstep_ranks_plan_destroy(plan);
    const auto single = static_cast<float>(want);
    for (const block& b : out)
      EXPECT_EQ(std::memcmp(b.part.data, result == LOCKSTEP_F64 ? static_cast<const void*>(&want) : &single,
                            lockstep_dtype_bytes(result)),
                0)
          << about << ", want " << want << ", got "
          << (result == LOCKSTEP_F64 ? *static_cast<const double*>(b.part.data)
                                     : *static_cast<const float*>(b.part.data));
  });
}

TEST(Blocks, TheOrderOfTheGrid) {
  for (const int32_t ranks : rank_counts())
    for (uint64_t seed = 0; seed < (ranks > 5 ? 2u : 6u); ++seed) {
      check_order<float>(LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F64, "wide", ranks, seed);
      check_order<double>(LOCKSTEP_SUM, LOCKSTEP_F64, LOCKSTEP_F64, "", ranks, seed);
      check_order<float>(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, LOCKSTEP_F32, "", ranks, seed);
      check_order<float>(LOCKSTEP_NORM2, LOCKSTEP_F32, LOCKSTEP_F64, "", ranks, seed);
      for (const char* fill : {"", "huge", "tiny"})
        check_order<double>(LOCKSTEP_NORM2, LOCKSTEP_F64, LOCKSTEP_F64, fill, ranks, seed);
      if (testing::Test::HasFailure()) return;
    }
}

// Several sums at once, of arrays drawn from three; short messages cut them into passes.
void check_several(lockstep_dtype dtype, lockstep_dtype result, int32_t ranks, uint64_t seed) {
  std::mt19937_64 shapes(seed);
  std::vector<int64_t> shape;
  for (size_t k = 0; k < 1 + seed % 3; ++k)
    shape.push_back(static_cast<int64_t>(shapes() % (seed % 3 == 0 ? 60000 : 60)));
  int64_t n = 1;
  for (const int64_t x : shape) n *= x;
  const size_t bytes = lockstep_dtype_bytes(dtype), result_bytes = lockstep_dtype_bytes(result);
  const std::vector<int32_t> parts = draw_parts(shape.size(), ranks, shapes);
  std::vector<std::vector<unsigned char>> wholes;
  for (uint64_t k = 0; k < 3; ++k) wholes.push_back(data_of(dtype, n, "special", seed + k));
  constexpr lockstep_ranks_term kinds[] = {{LOCKSTEP_REDUCE, LOCKSTEP_SUM},
                                           {LOCKSTEP_REDUCE, LOCKSTEP_NAN_SUM},
                                           {LOCKSTEP_SQUARE_SUM, LOCKSTEP_SUM_OF_SQUARES},
                                           {LOCKSTEP_SUMS, LOCKSTEP_SUMS_DOT},
                                           {LOCKSTEP_SUMS, LOCKSTEP_SUMS_SQUARED_DIFFERENCES},
                                           {LOCKSTEP_SUMS, LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES},
                                           {LOCKSTEP_SUMS, LOCKSTEP_SUMS_ABSOLUTE}};
  std::vector<lockstep_ranks_term> terms(1 + shapes() % 9);
  std::vector<size_t> arrays;  // which of the three, term by term
  for (lockstep_ranks_term& t : terms) {
    t = kinds[shapes() % std::size(kinds)];
    arrays.push_back(shapes() % 3);
    if (t.op == LOCKSTEP_SUMS && t.of != LOCKSTEP_SUMS_ABSOLUTE) arrays.push_back(shapes() % 3);
  }
  changes with;
  const int64_t message = shapes() % 2 == 0 ? 0 : 100;
  with.message_bytes = message;
  run(
      shapes() % 2 == 0 ? one_each(ranks) : drawn_seats(ranks, shapes),
      [&](member& m) {
        std::mt19937_64 draw(seed);
        drawn_grid grid = draw_grid(bytes, shape, parts, m.ranks, draw);
        lockstep_grid by_number = *grid.get();
        by_number.order = nullptr;
        int32_t blocks = 1;
        for (const int32_t p : parts) blocks *= p;
        std::vector<unsigned char> want(terms.size() * result_bytes);
        for (size_t t = 0, a = 0; t < terms.size(); ++t) {
          const bool pair = terms[t].op == LOCKSTEP_SUMS && terms[t].of != LOCKSTEP_SUMS_ABSOLUTE;
          const size_t first = arrays[a++], second = pair ? arrays[a++] : first;
          std::vector<double> sums;
          for (int32_t b = 0; b < blocks; ++b) {
            block x(by_number, b, false), y(by_number, b, false);
            x.fill(by_number, wholes[first].data()), y.fill(by_number, wholes[second].data());
            double sum = 0;
            if (terms[t].op == LOCKSTEP_SUMS) {
              lockstep_sums_desc d = lockstep_sums_full(static_cast<lockstep_sums_kind>(terms[t].of), dtype, x.elements,
                                                        pair ? y.part.data : nullptr);
              EXPECT_EQ(lockstep_sums(m.context, &d, x.part.data, &sum, nullptr), LOCKSTEP_OK);
            } else {
              const lockstep_reduce_desc d =
                  lockstep_reduce_full(static_cast<lockstep_reduction>(terms[t].of), dtype, x.elements, 1);
              EXPECT_EQ(terms[t].op == LOCKSTEP_REDUCE ? lockstep_reduce(m.context, &d, x.part.data, &sum, nullptr)
                                                       : lockstep_square_sum(m.context, &d, x.part.data, &sum, nullptr),
                        LOCKSTEP_OK);
            }
            sums.push_back(sum);
          }
          const double all = tree(sums, 0, sums.size());
          const auto rounded = static_cast<float>(all);
          const uint64_t nan = 0x7FF8000000000000u;
          const uint32_t nan_f32 = 0x7FC00000u;
          const void* from = result == LOCKSTEP_F64 ? std::isnan(all) ? static_cast<const void*>(&nan) : &all
                             : std::isnan(all)      ? static_cast<const void*>(&nan_f32)
                                                    : &rounded;
          std::memcpy(want.data() + t * result_bytes, from, result_bytes);
        }
        std::vector<block> in, out;
        for (const size_t a : arrays)
          for (int32_t s = 0; s < m.seats; ++s)
            in.emplace_back(*grid.get(), m.first + s, draw() % 2 == 0).fill(*grid.get(), wholes[a].data());
        const std::vector<int64_t> results = {static_cast<int64_t>(terms.size())};
        for (int32_t s = 0; s < m.seats; ++s) out.emplace_back(result_bytes, results, false);
        const std::string about =
            format_text("{} terms, {} ranks, seed {}: {}", terms.size(), m.ranks, seed, grid.text);
        lockstep_ranks_plan* plan = nullptr;
        ASSERT_EQ(lockstep_ranks_reduce_several(m.comm, grid.get(), terms.data(), static_cast<int32_t>(terms.size()),
                                                dtype, result, nullptr, &plan),
                  LOCKSTEP_OK)
            << about << lockstep_last_error();
        if (message == 0) {  // as many messages as of one
          lockstep_ranks_plan* one = nullptr;
          ASSERT_EQ(lockstep_ranks_reduce_blocks(m.comm, grid.get(), LOCKSTEP_SUM, dtype, result, nullptr, &one),
                    LOCKSTEP_OK);
          lockstep_ranks_cost all{}, single{};
          all.size = single.size = sizeof all;
          EXPECT_EQ(lockstep_ranks_estimate(plan, nullptr, &all), LOCKSTEP_OK);
          EXPECT_EQ(lockstep_ranks_estimate(one, nullptr, &single), LOCKSTEP_OK);
          EXPECT_TRUE(blocks == 1 || all.messages == single.messages) << about;
          lockstep_ranks_plan_destroy(one);
        }
        for (int round = 0; round < 2; ++round) {
          EXPECT_EQ(execute(m, plan, &in, &out), LOCKSTEP_OK) << about << ": " << lockstep_last_error();
          for (const block& b : out) EXPECT_EQ(b.compare(results, want.data()), "") << about;
        }
        lockstep_ranks_plan_destroy(plan);
      },
      with);
}

TEST(Blocks, SeveralSumsAtOnce) {
  for (const int32_t ranks : rank_counts())
    for (uint64_t seed = 0; seed < (ranks > 5 ? 2u : 6u); ++seed) {
      check_several(LOCKSTEP_F32, LOCKSTEP_F64, ranks, seed);
      check_several(LOCKSTEP_F64, LOCKSTEP_F32, ranks, seed + 10);
      check_several(LOCKSTEP_F16, LOCKSTEP_F64, ranks, seed + 20);
      if (testing::Test::HasFailure()) return;
    }
}

TEST(Blocks, SeveralSumsThatAreRefused) {
  run(one_each(over_mpi() ? rank_counts()[0] : 2), [&](member& m) {
    const int64_t shape[] = {100};
    const lockstep_grid g = lockstep_grid_slabs(8, 1, shape, m.ranks);
    const auto make = [&](const lockstep_ranks_term* terms, int32_t count, lockstep_dtype dtype) {
      lockstep_ranks_plan* plan = nullptr;
      const lockstep_status status = lockstep_ranks_reduce_several(
          m.comm, &g, terms, count, dtype, lockstep_default_result(LOCKSTEP_SUM, dtype), nullptr, &plan);
      EXPECT_EQ(plan, nullptr);
      return std::pair{status, std::string(lockstep_last_error())};
    };
    const lockstep_ranks_term good{LOCKSTEP_REDUCE, LOCKSTEP_SUM};
    for (const lockstep_ranks_term wrong : {lockstep_ranks_term{LOCKSTEP_REDUCE, LOCKSTEP_PROD},
                                            {LOCKSTEP_SQUARE_SUM, LOCKSTEP_NORM2},
                                            {LOCKSTEP_SUMS, LOCKSTEP_SUMS_DIGEST},
                                            {LOCKSTEP_SUMS, -1},
                                            {LOCKSTEP_SCAN, 0}}) {
      const lockstep_ranks_term two[] = {good, wrong};
      const auto [status, text] = make(two, 2, LOCKSTEP_F64);
      EXPECT_EQ(status, LOCKSTEP_INVALID_ARGUMENT);
      EXPECT_NE(text.find("terms[1] is op"), std::string::npos) << text;
    }
    EXPECT_NE(make(&good, 0, LOCKSTEP_F64).second.find("count is 0"), std::string::npos);
    EXPECT_NE(make(nullptr, 1, LOCKSTEP_F64).second.find("terms is NULL"), std::string::npos);
    EXPECT_EQ(make(&good, 1, LOCKSTEP_I64).first, LOCKSTEP_UNSUPPORTED);
  });
}

TEST(Blocks, WhatHasNoOrderIsRefused) {
  run(one_each(over_mpi() ? rank_counts()[0] : 2), [&](member& m) {
    const int64_t shape[] = {100};
    const lockstep_grid g = lockstep_grid_slabs(8, 1, shape, m.ranks);
    for (const auto& [reduction, dtype] : {std::pair{LOCKSTEP_SUM, LOCKSTEP_I64}, {LOCKSTEP_MAX, LOCKSTEP_F64}}) {
      lockstep_ranks_plan* plan = nullptr;
      EXPECT_EQ(lockstep_ranks_reduce_blocks(m.comm, &g, reduction, dtype, dtype, nullptr, &plan),
                LOCKSTEP_UNSUPPORTED);
      EXPECT_NE(std::string(lockstep_last_error()).find("call lockstep_ranks_reduce"), std::string::npos);
      EXPECT_EQ(plan, nullptr);
    }
  });
}

}  // namespace
}  // namespace lockstep::ranks_test
