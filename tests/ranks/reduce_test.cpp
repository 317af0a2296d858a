// reduce_test.cpp - reductions over ranks have the bits of one call on the whole array.
#include <tuple>

#include "bits/reductions.hpp"
#include "context_of.hpp"
#include "world.hpp"

namespace lockstep::ranks_test {
namespace {

const std::string& name_of(lockstep_reduction r) { return cases::reduction_names()[static_cast<size_t>(r)]; }
const std::string& name_of(lockstep_dtype t) { return cases::dtype_names()[static_cast<size_t>(t)]; }

struct reduction_case {
  lockstep_reduction reduction;
  lockstep_dtype dtype;
  lockstep_dtype result;
  std::vector<int64_t> shape;
  uint32_t axes;
  const char* fill;
  int terms = -1;  // a lockstep_sums_kind: lockstep_ranks_sums, in place of the reduction
  int64_t correction = 0;
  bool pairs() const { return terms >= 0 && terms <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES; }
  bool two_results() const { return terms >= LOCKSTEP_SUMS_MEAN_VARIANCE; }
};

struct expected {
  std::vector<unsigned char> bytes;
  std::vector<int64_t> shape;  // of the results
  lockstep_status status;
};

lockstep_status one_call(lockstep_context* context, const lockstep_reduce_desc& d, const void* src, void* dst) {
  return lib::kind_of(d.reduction).op == LOCKSTEP_SQUARE_SUM ? lockstep_square_sum(context, &d, src, dst, nullptr)
                                                             : lockstep_reduce(context, &d, src, dst, nullptr);
}

// The kept axes first, by a permute; then each row by the one call. other: the second array, if there are two.
expected reference(lockstep_context* context, const reduction_case& c, const std::vector<unsigned char>& whole,
                   const std::vector<unsigned char>& other) {
  const auto rank = static_cast<int32_t>(c.shape.size());
  std::vector<int32_t> perm;
  expected e;
  int64_t rows = 1, length = 1;
  for (int32_t k = 0; k < rank; ++k)
    if ((c.axes >> k & 1) == 0) {
      perm.push_back(k);
      rows *= c.shape[static_cast<size_t>(k)];
      e.shape.push_back(c.shape[static_cast<size_t>(k)]);
    }
  if (c.two_results()) e.shape.push_back(2);
  if (e.shape.empty()) e.shape.push_back(1);
  for (int32_t k = 0; k < rank; ++k)
    if ((c.axes >> k & 1) != 0) perm.push_back(k), length *= c.shape[static_cast<size_t>(k)];
  const size_t bytes = lockstep_dtype_bytes(c.dtype);
  const lockstep_permute_desc p = lockstep_permute_packed(bytes, rank, c.shape.data(), perm.data());
  lockstep_reduce_desc d = lockstep_reduce_rows(c.reduction, c.dtype, rows, length, length);
  d.result = c.result;
  const size_t result_bytes = static_cast<size_t>(2 * rows) * lockstep_dtype_bytes(c.result) + 8;
  e.bytes = told_to_all([&] {
    const auto by_rows = [&](const std::vector<unsigned char>& array) {
      std::vector<unsigned char> rowwise(whole.size() + bytes);
      EXPECT_EQ(lockstep_permute(context, &p, array.data(), rowwise.data(), nullptr), LOCKSTEP_OK)
          << lockstep_last_error();
      return rowwise;
    };
    std::vector<unsigned char> results(result_bytes + sizeof e.status);
    const std::vector<unsigned char> x = by_rows(whole), y = c.pairs() ? by_rows(other) : x;
    lockstep_status status = LOCKSTEP_OK;
    if (c.terms < 0) {
      status = one_call(context, d, x.data(), results.data());
    } else {
      lockstep_sums_desc sums = lockstep_sums_rows(static_cast<lockstep_sums_kind>(c.terms), c.dtype, rows, length,
                                                   length, c.pairs() ? y.data() : nullptr, length);
      sums.result = c.result;
      sums.correction = c.correction;
      status = lockstep_sums(context, &sums, x.data(), results.data(), nullptr);
    }
    std::memcpy(results.data() + result_bytes, &status, sizeof status);
    return results;
  });
  std::memcpy(&e.status, e.bytes.data() + result_bytes, sizeof e.status);
  e.bytes.resize(result_bytes);
  return e;
}

std::string name_of(const reduction_case& c) {
  constexpr const char* kinds[] = {"dot",      "squared_differences", "absolute_differences",
                                   "absolute", "mean_variance",       "digest"};
  return format_text("{} of {} to {} over axes {:#x} of {} ({})",
                     c.terms < 0 ? name_of(c.reduction).c_str() : kinds[c.terms], name_of(c.dtype), name_of(c.result),
                     c.axes, joined(c.shape, "x"), c.fill);
}

void check(const reduction_case& c, const std::vector<int32_t>& seats, const std::vector<int32_t>& parts, bool to_grid,
           uint64_t seed, int64_t message_bytes = 0) {
  changes with;  // short messages: the sequences are reduced in several passes
  with.message_bytes = message_bytes;
  int64_t n = 1;
  for (const int64_t x : c.shape) n *= x;
  const std::vector<unsigned char> whole = data_of(c.dtype, n, c.fill, seed);
  const std::vector<unsigned char> other = c.pairs() ? data_of(c.dtype, n, c.fill, seed + 1) : whole;
  const cases::context_of alone("cpu", 1);
  const expected want = reference(alone.self, c, whole, other);  // once for all ranks
  run(
      seats,
      [&](member& m) {
        std::mt19937_64 draw(seed);  // the same on every rank
        drawn_grid grid = draw_grid(lockstep_dtype_bytes(c.dtype), c.shape, parts, m.ranks, draw);
        const size_t result_bytes = lockstep_dtype_bytes(c.result);
        std::vector<int32_t> dst_parts = draw_parts(want.shape.size(), m.ranks, draw);
        if (c.two_results()) dst_parts.back() = 1;
        drawn_grid dst = draw_grid(result_bytes, want.shape, dst_parts, m.ranks, draw);
        const bool padded = draw() % 2 == 0;
        std::vector<block> src_blocks, dst_blocks;
        for (int32_t s = 0; s < m.seats; ++s) {
          src_blocks.emplace_back(*grid.get(), m.first + s, padded).fill(*grid.get(), whole.data());
          if (to_grid)
            dst_blocks.emplace_back(*dst.get(), m.first + s, padded);
          else
            dst_blocks.emplace_back(result_bytes, want.shape, padded);
        }
        const std::string about = format_text("{}, {} ranks, rank {}, seed {}, {}{}", name_of(c), m.ranks, m.first,
                                              seed, grid.text, to_grid ? "; to " + dst.text : "");
        for (int32_t s = 0; s < m.seats && c.pairs(); ++s)
          src_blocks.emplace_back(*grid.get(), m.first + s, draw() % 2 == 0).fill(*grid.get(), other.data());
        lockstep_ranks_plan* plan = nullptr;
        const lockstep_grid* to = to_grid ? dst.get() : nullptr;
        ASSERT_EQ(c.terms < 0 ? lockstep_ranks_reduce(m.comm, grid.get(), c.reduction, c.dtype, c.result, c.axes, to,
                                                      nullptr, &plan)
                  : c.correction != 0 && c.terms == LOCKSTEP_SUMS_MEAN_VARIANCE
                      ? lockstep_ranks_mean_variance(m.comm, grid.get(), c.dtype, c.result, c.axes, c.correction, to,
                                                     nullptr, &plan)
                      : lockstep_ranks_sums(m.comm, grid.get(), static_cast<lockstep_sums_kind>(c.terms), c.dtype,
                                            c.result, c.axes, to, nullptr, &plan),
                  LOCKSTEP_OK)
            << about << ": " << lockstep_last_error();
        for (int round = 0; round < 2; ++round) {
          const lockstep_status status = execute(m, plan, &src_blocks, &dst_blocks);
          EXPECT_EQ(status, want.status) << about << ": " << lockstep_last_error();
          if (want.status == LOCKSTEP_EMPTY) continue;
          for (const block& b : dst_blocks) EXPECT_EQ(b.compare(want.shape, want.bytes.data()), "") << about;
        }
        lockstep_ranks_plan_destroy(plan);
      },
      with);
}

struct kind_of_reduction {
  lockstep_reduction reduction;
  lockstep_dtype dtype;
  const char* fills[4];
};
constexpr kind_of_reduction all_kinds[] = {
    {LOCKSTEP_SUM, LOCKSTEP_F32, {"", "special", "wide", "zeros"}},
    {LOCKSTEP_SUM, LOCKSTEP_F64, {"", "special", "finite", "zeros"}},
    {LOCKSTEP_SUM, LOCKSTEP_I32, {"", "small", "", ""}},
    {LOCKSTEP_SUM, LOCKSTEP_I64, {"", "cross", "over", "under"}},
    {LOCKSTEP_MIN, LOCKSTEP_F32, {"", "special", "ties", "one_nan"}},
    {LOCKSTEP_MIN, LOCKSTEP_I64, {"", "ties", "", ""}},
    {LOCKSTEP_MAX, LOCKSTEP_F64, {"", "special", "ties", "one_nan"}},
    {LOCKSTEP_MAX, LOCKSTEP_I32, {"", "ties", "", ""}},
    {LOCKSTEP_ARGMIN, LOCKSTEP_F32, {"", "special", "ties", "one_nan"}},
    {LOCKSTEP_ARGMIN, LOCKSTEP_I32, {"", "ties", "", ""}},
    {LOCKSTEP_ARGMAX, LOCKSTEP_F64, {"", "special", "ties", "one_nan"}},
    {LOCKSTEP_ARGMAX, LOCKSTEP_I64, {"", "ties", "", ""}},
    {LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F16, {"", "special", "", ""}},
    {LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_BF16, {"", "special", "", ""}},
    {LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, {"", "special", "wide", "zeros"}},
    {LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F64, {"", "special", "huge", "tiny"}},
    {LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_I32, {"", "small", "", ""}},
    {LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_I64, {"", "small", "", ""}},
    {LOCKSTEP_NORM2, LOCKSTEP_F16, {"", "special", "", ""}},
    {LOCKSTEP_NORM2, LOCKSTEP_BF16, {"", "special", "", ""}},
    {LOCKSTEP_NORM2, LOCKSTEP_F32, {"", "special", "wide", "zeros"}},
    {LOCKSTEP_NORM2, LOCKSTEP_F64, {"", "huge", "tiny", "special"}},
    {LOCKSTEP_NORM2, LOCKSTEP_I32, {"", "small", "", ""}},
    {LOCKSTEP_NORM2, LOCKSTEP_I64, {"", "small", "", ""}},
    // Other types of these, and the later reductions: fewer draws of each, because they share what they are made of.
    {LOCKSTEP_SUM, LOCKSTEP_F16, {"", "special", "wide", "zeros"}},
    {LOCKSTEP_SUM, LOCKSTEP_BF16, {"", "special", "wide", "zeros"}},
    {LOCKSTEP_SUM, LOCKSTEP_I8, {"", "special", "", ""}},
    {LOCKSTEP_SUM, LOCKSTEP_U16, {"", "special", "", ""}},
    {LOCKSTEP_SUM, LOCKSTEP_U32, {"", "special", "", ""}},
    {LOCKSTEP_SUM, LOCKSTEP_U64, {"", "special", "small", "over"}},
    {LOCKSTEP_SUM, LOCKSTEP_BOOL, {"", "special", "sparse", "zeros"}},
    {LOCKSTEP_MIN, LOCKSTEP_F16, {"", "special", "ties", "one_nan"}},
    {LOCKSTEP_MIN, LOCKSTEP_U64, {"", "special", "ties", ""}},
    {LOCKSTEP_MIN, LOCKSTEP_BOOL, {"", "special", "sparse", "zeros"}},
    {LOCKSTEP_MAX, LOCKSTEP_BF16, {"", "special", "ties", "one_nan"}},
    {LOCKSTEP_MAX, LOCKSTEP_I16, {"", "special", "ties", ""}},
    {LOCKSTEP_MAX, LOCKSTEP_U32, {"", "special", "ties", ""}},
    {LOCKSTEP_ARGMIN, LOCKSTEP_BF16, {"", "special", "ties", "one_nan"}},
    {LOCKSTEP_ARGMIN, LOCKSTEP_U64, {"", "special", "ties", ""}},
    {LOCKSTEP_ARGMAX, LOCKSTEP_F16, {"", "special", "ties", "one_nan"}},
    {LOCKSTEP_ARGMAX, LOCKSTEP_BOOL, {"", "special", "sparse", ""}},
    {LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_I16, {"", "special", "", ""}},
    {LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_U32, {"", "small", "sparse", "over"}},
    {LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_U64, {"", "small", "sparse", "over"}},
    {LOCKSTEP_NORM2, LOCKSTEP_U8, {"", "special", "", ""}},
    {LOCKSTEP_NORM2, LOCKSTEP_U64, {"", "special", "", ""}},
    {LOCKSTEP_COUNT_NONZERO, LOCKSTEP_F32, {"", "special", "sparse", "zeros"}},
    {LOCKSTEP_COUNT_NONZERO, LOCKSTEP_BF16, {"", "special", "sparse", "zeros"}},
    {LOCKSTEP_COUNT_NONZERO, LOCKSTEP_U64, {"", "special", "sparse", "zeros"}},
    {LOCKSTEP_ANY, LOCKSTEP_F64, {"zeros", "special", "sparse", "zeros"}},
    {LOCKSTEP_ANY, LOCKSTEP_BOOL, {"zeros", "special", "sparse", "sparse"}},
    {LOCKSTEP_ALL, LOCKSTEP_F16, {"", "special", "one_nan", "wide"}},
    {LOCKSTEP_ALL, LOCKSTEP_I8, {"units", "special", "ties", "units"}},
    {LOCKSTEP_PROD, LOCKSTEP_F16, {"units", "special", "ties", "one_nan"}},
    {LOCKSTEP_PROD, LOCKSTEP_F32, {"units", "special", "wide", "units"}},
    {LOCKSTEP_PROD, LOCKSTEP_F64, {"units", "", "zeros", "units"}},
    {LOCKSTEP_PROD, LOCKSTEP_I32, {"units", "special", "small", "ties"}},
    {LOCKSTEP_PROD, LOCKSTEP_I64, {"units", "special", "cross", "under"}},
    {LOCKSTEP_PROD, LOCKSTEP_U8, {"units", "", "special", "units"}},
    {LOCKSTEP_PROD, LOCKSTEP_U64, {"units", "special", "over", "units"}},
    {LOCKSTEP_NAN_SUM, LOCKSTEP_BF16, {"", "special", "one_nan", "zeros"}},
    {LOCKSTEP_NAN_SUM, LOCKSTEP_F32, {"", "special", "one_nan", "zeros"}},
    {LOCKSTEP_NAN_SUM, LOCKSTEP_F64, {"", "special", "one_nan", "wide"}},
    {LOCKSTEP_NAN_SUM, LOCKSTEP_I64, {"", "cross", "over", "small"}},
    {LOCKSTEP_NAN_MIN, LOCKSTEP_F32, {"", "special", "ties", "one_nan"}},
    {LOCKSTEP_NAN_MIN, LOCKSTEP_U16, {"", "special", "ties", ""}},
    {LOCKSTEP_NAN_MAX, LOCKSTEP_F16, {"", "special", "ties", "one_nan"}},
    {LOCKSTEP_NAN_MAX, LOCKSTEP_F64, {"", "special", "ties", "one_nan"}},
};

void PrintTo(const kind_of_reduction& k, std::ostream* out) { *out << name_of(k.reduction) << " " << name_of(k.dtype); }

// Every reduction and type; the sizes, cuts, seats and fills are drawn.
class Reduce : public testing::TestWithParam<kind_of_reduction> {};

// One processor simulates many ranks, so these take fewer rounds; so do types that share the way of others.
int rounds_of(int rounds, bool shares, int32_t ranks) {
  if (shares) return ranks > 8 ? 1 : (rounds + 1) / 2;
  return ranks > 8 ? (rounds + 1) / 2 : rounds;
}

void draw_cases(const kind_of_reduction& k, int rounds, uint64_t salt,
                const std::function<void(std::vector<int64_t>&, uint32_t&, std::mt19937_64&)>& layout) {
  const bool shares = k.dtype > LOCKSTEP_I64 || k.reduction > LOCKSTEP_NORM2;
  for (const int32_t ranks : rank_counts())
    for (int round = 0; round < rounds_of(rounds, shares, ranks); ++round) {
      const uint64_t seed =
          cases::mix(salt + static_cast<uint64_t>(round) * 1000 + static_cast<uint64_t>(ranks)) % 100000;
      std::mt19937_64 draw(seed * 31 + static_cast<uint64_t>(k.reduction) * 7 + static_cast<uint64_t>(k.dtype));
      reduction_case c{k.reduction, k.dtype, lockstep_default_result(k.reduction, k.dtype), {}, 0, k.fills[draw() % 4]};
      constexpr lockstep_dtype rounded[] = {LOCKSTEP_F32, LOCKSTEP_F16, LOCKSTEP_BF16};
      if (c.result == LOCKSTEP_F64 && !lib::kind_of(k.reduction).extreme() && draw() % 3 == 0)
        c.result = rounded[draw() % 3];
      layout(c.shape, c.axes, draw);
      const std::vector<int32_t> parts = draw_parts(c.shape.size(), ranks, draw);
      const int64_t sizes[] = {0, 0, 500, 20000};
      const bool to_grid = draw() % 2 == 0;
      check(c, draw() % 2 == 0 ? one_each(ranks) : drawn_seats(ranks, draw), parts, to_grid, seed, sizes[draw() % 4]);
      if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
    }
}

TEST_P(Reduce, Full) {
  draw_cases(GetParam(), 4, 1, [](auto& shape, uint32_t& axes, auto& draw) {
    const int64_t sizes[] = {1, 5, 2048, 4097, 12345, 70001, 300000};
    shape = {sizes[draw() % 7]};
    axes = 1;
  });
}
TEST_P(Reduce, Rows) {
  draw_cases(GetParam(), 3, 2, [](auto& shape, uint32_t& axes, auto& draw) {
    const int64_t rows[] = {1, 3, 40}, cols[] = {1, 100, 2049, 9000};
    shape = {rows[draw() % 3], cols[draw() % 4]};
    axes = 2;
  });
}
TEST_P(Reduce, Columns) {
  draw_cases(GetParam(), 3, 3, [](auto& shape, uint32_t& axes, auto& draw) {
    const int64_t rows[] = {1, 100, 2049, 9000}, cols[] = {1, 3, 40, 700};
    shape = {rows[draw() % 4], cols[draw() % 4]};
    if (shape[0] > 2049 && shape[1] == 700) shape[0] = 2049;
    axes = 1;
  });
}

std::string suite_name(const testing::TestParamInfo<kind_of_reduction>& info) {
  return name_of(info.param.reduction) + "_" + name_of(info.param.dtype);
}
TEST_P(Reduce, AnyAxesOfAnyBlocks) {
  draw_cases(GetParam(), 4, 4, [](auto& shape, uint32_t& axes, auto& draw) {
    const size_t rank = 2 + draw() % 3;
    const int64_t lengths[] = {1, 2, 7, 33, 130};
    for (size_t k = 0; k < rank; ++k) shape.push_back(lengths[rank == 4 ? draw() % 4 : draw() % 5]);
    axes = static_cast<uint32_t>(1 + draw() % ((1u << rank) - 1));
  });
}

INSTANTIATE_TEST_SUITE_P(All, Reduce, testing::ValuesIn(all_kinds), suite_name);

// Sums of two arrays, and of magnitudes.
struct kind_of_sum {
  lockstep_sums_kind kind;
  lockstep_dtype dtype;
  const char* fill;
  int64_t correction = 0;
};
struct sum_layout {
  std::vector<int64_t> shape;
  uint32_t axes;
};
// On more than 8 ranks, which one processor simulates, every `often`th kind.
void check_sums(const std::vector<kind_of_sum>& kinds, const std::vector<sum_layout>& layouts, size_t often) {
  uint64_t seed = 1;
  for (size_t k = 0; k < kinds.size(); ++k)
    for (const int32_t ranks : rank_counts())
      for (const sum_layout& l : layouts) {
        if (ranks > 8 && k % often != 0) continue;
        std::mt19937_64 draw(++seed);
        reduction_case c{LOCKSTEP_SUM,
                         kinds[k].dtype,
                         lockstep_default_result(LOCKSTEP_SUM, kinds[k].dtype),
                         l.shape,
                         l.axes,
                         kinds[k].fill,
                         static_cast<int>(kinds[k].kind),
                         kinds[k].correction};
        if (c.terms == LOCKSTEP_SUMS_DIGEST) c.result = LOCKSTEP_U64;
        if (c.result == LOCKSTEP_F64 && draw() % 3 == 0) c.result = draw() % 2 == 0 ? LOCKSTEP_F32 : LOCKSTEP_BF16;
        const int64_t sizes[] = {0, 500, 20000};
        const bool to_grid = draw() % 2 == 0;
        check(c, draw() % 2 == 0 ? one_each(ranks) : drawn_seats(ranks, draw), draw_parts(l.shape.size(), ranks, draw),
              to_grid, seed, sizes[draw() % 3]);
        if (testing::Test::HasFailure()) return;
      }
}
TEST(ReduceOf, MomentsAndDigests) {
  check_sums({{LOCKSTEP_SUMS_MEAN_VARIANCE, LOCKSTEP_F32, "wide"},
              {LOCKSTEP_SUMS_MEAN_VARIANCE, LOCKSTEP_F64, "", 1},
              {LOCKSTEP_SUMS_DIGEST, LOCKSTEP_U8, ""},
              {LOCKSTEP_SUMS_MEAN_VARIANCE, LOCKSTEP_F16, "", 3},
              {LOCKSTEP_SUMS_MEAN_VARIANCE, LOCKSTEP_BF16, "special"},
              {LOCKSTEP_SUMS_DIGEST, LOCKSTEP_F32, "special"},
              {LOCKSTEP_SUMS_DIGEST, LOCKSTEP_I64, ""},
              {LOCKSTEP_SUMS_DIGEST, LOCKSTEP_BOOL, "sparse"},
              {LOCKSTEP_SUMS_DIGEST, LOCKSTEP_F16, ""},
              {LOCKSTEP_SUMS_MEAN_VARIANCE, LOCKSTEP_F64, "equal"},
              {LOCKSTEP_SUMS_MEAN_VARIANCE, LOCKSTEP_F64, "nearly"}},
             {{{70001}, 1},
              {{4097}, 1},
              {{9000, 3}, 1},
              {{40, 2049}, 2},
              {{33, 7, 130}, 5},
              {{7, 130, 33}, 6},
              {{7, 33}, 1},
              {{3}, 1},
              {{0, 3}, 1},
              {{0}, 1}},
             5);
}
TEST(ReduceOf, TwoArrays) {
  check_sums(
      {{LOCKSTEP_SUMS_DOT, LOCKSTEP_F32, "wide"},
       {LOCKSTEP_SUMS_DOT, LOCKSTEP_F64, ""},
       {LOCKSTEP_SUMS_DOT, LOCKSTEP_BF16, "special"},
       {LOCKSTEP_SUMS_DOT, LOCKSTEP_I64, "small"},
       {LOCKSTEP_SUMS_DOT, LOCKSTEP_I64, "special"},
       {LOCKSTEP_SUMS_DOT, LOCKSTEP_U64, "sparse"},
       {LOCKSTEP_SUMS_SQUARED_DIFFERENCES, LOCKSTEP_F16, ""},
       {LOCKSTEP_SUMS_SQUARED_DIFFERENCES, LOCKSTEP_F64, "special"},
       {LOCKSTEP_SUMS_SQUARED_DIFFERENCES, LOCKSTEP_I64, ""},
       {LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES, LOCKSTEP_F32, "zeros"},
       {LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES, LOCKSTEP_I64, "cross"},
       {LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES, LOCKSTEP_BOOL, "special"},
       {LOCKSTEP_SUMS_ABSOLUTE, LOCKSTEP_F32, "special"},
       {LOCKSTEP_SUMS_ABSOLUTE, LOCKSTEP_I32, ""}},
      {{{70001}, 1}, {{4097}, 1}, {{9000, 3}, 1}, {{40, 2049}, 2}, {{33, 7, 130}, 5}, {{7, 130, 33}, 6}, {{0, 3}, 1}},
      14);
}

TEST(ReduceOf, SumsThatAreRefused) {
  run(one_each(over_mpi() ? rank_counts()[0] : 2), [](member& m) {
    if (m.seats != 1) return;  // a plane that joins seats of one process: the arrays below are one seat's
    const int64_t shape[] = {100};
    const lockstep_grid g = lockstep_grid_slabs(8, 1, shape, m.ranks);
    const auto make = [&](lockstep_sums_kind kind, lockstep_dtype result, lockstep_ranks_plan** plan) {
      return lockstep_ranks_sums(m.comm, &g, kind, LOCKSTEP_F64, result, 1, nullptr, nullptr, plan);
    };
    const auto tells = [](const char* words) {
      return std::string(lockstep_last_error()).find(words) != std::string::npos;
    };
    lockstep_ranks_plan* plan = nullptr;
    EXPECT_EQ(make(LOCKSTEP_SUMS_DIGEST, LOCKSTEP_F64, &plan), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_TRUE(tells("a digest is two U64")) << lockstep_last_error();
    const auto variance = [&](int64_t correction, const lockstep_grid* to) {
      return lockstep_ranks_mean_variance(m.comm, &g, LOCKSTEP_F64, LOCKSTEP_F64, 1, correction, to, nullptr, &plan);
    };
    const int64_t pair[] = {2}, one[] = {1};
    const lockstep_grid apart = lockstep_grid_slabs(8, 1, pair, 2), single = lockstep_grid_slabs(8, 1, one, 1);
    EXPECT_EQ(variance(-1, nullptr), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_TRUE(tells("correction is -1")) << lockstep_last_error();
    if (m.ranks > 1) {
      EXPECT_EQ(variance(0, &apart), LOCKSTEP_INVALID_ARGUMENT);
      EXPECT_TRUE(tells("dst->parts[0] is 2")) << lockstep_last_error();
    }
    EXPECT_EQ(variance(0, &single), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_TRUE(tells("the results have 2 there")) << lockstep_last_error();
    EXPECT_EQ(make(static_cast<lockstep_sums_kind>(9), LOCKSTEP_F64, &plan), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_TRUE(tells("kind is 9")) << lockstep_last_error();
    EXPECT_EQ(make(LOCKSTEP_SUMS_DOT, LOCKSTEP_I64, &plan), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_TRUE(tells("set result to LOCKSTEP_F64")) << lockstep_last_error();
    ASSERT_EQ(make(LOCKSTEP_SUMS_DOT, LOCKSTEP_F64, &plan), LOCKSTEP_OK) << lockstep_last_error();
    std::vector<block> in, out;
    for (int k = 0; k < 2; ++k) in.emplace_back(g, m.first, false);
    out.emplace_back(sizeof(double), std::vector<int64_t>{1}, false);
    in[1].part.data = nullptr;  // on every rank
    EXPECT_EQ(execute(m, plan, &in, &out), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_TRUE(tells("other[0].data is NULL")) << lockstep_last_error();
    EXPECT_EQ(lockstep_ranks_execute(plan, nullptr, &out[0].part, nullptr), LOCKSTEP_INVALID_ARGUMENT);
    lockstep_ranks_plan_destroy(plan);
  });
}

TEST(ReduceOf, NothingAtAll) {
  for (const int32_t ranks : rank_counts()) {
    check({LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F64, {0}, 1, ""}, one_each(ranks), {ranks}, false, 1);
    check({LOCKSTEP_NORM2, LOCKSTEP_I64, LOCKSTEP_F64, {0, 3}, 1, ""}, one_each(ranks), {ranks, 1}, false, 2);
    check({LOCKSTEP_MIN, LOCKSTEP_F32, LOCKSTEP_F32, {0, 3}, 1, ""}, one_each(ranks), {ranks, 1}, false, 3);
    check({LOCKSTEP_ARGMAX, LOCKSTEP_I64, LOCKSTEP_I64, {3, 0}, 1, ""}, one_each(ranks), {ranks, 1}, true, 4);
    check({LOCKSTEP_PROD, LOCKSTEP_F16, LOCKSTEP_BF16, {0, 3}, 1, ""}, one_each(ranks), {ranks, 1}, false, 5);
    check({LOCKSTEP_PROD, LOCKSTEP_U64, LOCKSTEP_U64, {0, 3}, 1, ""}, one_each(ranks), {ranks, 1}, true, 6);
    check({LOCKSTEP_ALL, LOCKSTEP_BOOL, LOCKSTEP_BOOL, {0, 3}, 1, ""}, one_each(ranks), {ranks, 1}, false, 7);
    check({LOCKSTEP_ANY, LOCKSTEP_F32, LOCKSTEP_BOOL, {0, 3}, 1, ""}, one_each(ranks), {ranks, 1}, false, 8);
    check({LOCKSTEP_NAN_MIN, LOCKSTEP_F64, LOCKSTEP_F64, {0, 3}, 1, ""}, one_each(ranks), {ranks, 1}, true, 9);
  }
}

// Half of the second leaf is on one rank, half on the next; a disagreement about who sums it would be a long wait.
TEST(ReduceOf, LeavesInEqualShares) {
  changes soon;
  soon.options = [](int32_t, lockstep_comm_options& o) { o.timeout_ms = 3000; };
  for (const int32_t ranks : rank_counts()) {
    const int64_t n = ranks * int64_t{1024} + 2048;
    std::vector<int64_t> cuts = {0};
    for (int32_t r = 1; r < ranks; ++r) cuts.push_back(2048 + r * int64_t{1024});
    cuts.push_back(n);
    const std::vector<unsigned char> whole = data_of(LOCKSTEP_F32, n, "wide", 7);
    run(
        one_each(ranks),
        [&](member& m) {
          lockstep_grid g = lockstep_grid_slabs(4, 1, &n, m.ranks);
          g.cuts[0] = cuts.data();
          std::vector<block> in, out;
          for (int32_t seat = 0; seat < m.seats; ++seat) {
            in.emplace_back(g, m.first + seat, false).fill(g, whole.data());
            out.emplace_back(sizeof(double), std::vector<int64_t>{1}, false);
          }
          double want = 0;
          lockstep_ranks_plan* plan = nullptr;
          ASSERT_EQ(
              lockstep_ranks_reduce(m.comm, &g, LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F64, 1, nullptr, nullptr, &plan),
              LOCKSTEP_OK)
              << lockstep_last_error();
          EXPECT_EQ(execute(m, plan, &in, &out), LOCKSTEP_OK) << m.ranks << " ranks: " << lockstep_last_error();
          lockstep_ranks_plan_destroy(plan);
          const lockstep_reduce_desc d = lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, n, 1);
          ASSERT_EQ(lockstep_reduce(m.context, &d, whole.data(), &want, nullptr), LOCKSTEP_OK);
          for (const block& b : out)
            EXPECT_EQ(std::memcmp(b.part.data, &want, sizeof want), 0) << m.ranks << " ranks: other bits than " << want;
        },
        soon);
    if (testing::Test::HasFailure()) return;
  }
}

// An element of each sequence on each rank, and so many results that they go from the seats' memory to all ranks.
TEST(ReduceOf, VectorsAddedElementByElement) {
  for (const int32_t ranks : rank_counts()) {
    if (ranks > 5) continue;
    const int64_t n = 17001 * int64_t{ranks};
    for (const reduction_case& c : std::initializer_list<reduction_case>{
             {LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F32, {ranks, n}, 1, "wide"},
             {LOCKSTEP_NORM2, LOCKSTEP_F64, LOCKSTEP_F64, {ranks, 3, n / 3}, 1, "wide"},
             {LOCKSTEP_SUM, LOCKSTEP_BF16, LOCKSTEP_F64, {n, ranks}, 2, ""},
             {LOCKSTEP_ARGMIN, LOCKSTEP_F16, LOCKSTEP_I64, {n, 2 * ranks}, 2, ""},
             {LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F32, {ranks, n}, 1, "", LOCKSTEP_SUMS_DOT}})
      for (const bool to_grid : {false, true}) {
        std::vector<int32_t> parts(c.shape.size(), 1);
        parts[c.axes == 1 ? 0 : 1] = ranks;
        check(c, one_each(ranks), parts, to_grid, 11, to_grid ? 0 : 20000);
      }
    if (testing::Test::HasFailure()) return;
  }
}

// What a rank is sent when vectors are added does not grow with the number of ranks.
TEST(ReduceOf, VectorsAreNotGathered) {
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
  for (const int32_t ranks : {2, 8, 64, 500}) {
    lockstep_comm* comm = nullptr;
    ASSERT_EQ(lockstep_comm_dry(context, ranks, 0, &comm), LOCKSTEP_OK) << lockstep_last_error();
    const int64_t n = 1 << 20, shape[] = {ranks, n};
    const lockstep_grid g = lockstep_grid_slabs(4, 2, shape, ranks);
    lockstep_ranks_plan* plan = nullptr;
    ASSERT_EQ(lockstep_ranks_reduce(comm, &g, LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F32, 1, nullptr, nullptr, &plan),
              LOCKSTEP_OK)
        << lockstep_last_error();
    lockstep_ranks_cost cost{};
    cost.size = sizeof cost;
    const lockstep_ranks_link link = {sizeof link, 2.0, 10.0};
    EXPECT_EQ(lockstep_ranks_estimate(plan, &link, &cost), LOCKSTEP_OK);
    EXPECT_LE(cost.bytes_in, 21 * n * 4 / 10) << ranks << " ranks";  // its share of all vectors, then all results
    lockstep_ranks_plan_destroy(plan);
    lockstep_comm_destroy(comm);
  }
  lockstep_context_destroy(context);
}

// A rank's own product may not fit its type where that of all ranks does.
TEST(ReduceOf, ProductsThatPassTheirTypeOnTheWay) {
  const int32_t ranks = over_mpi() ? rank_counts()[0] : 3;
  if (ranks < 2) return;
  constexpr int64_t two62 = int64_t{1} << 62;
  struct one_product {
    std::vector<int64_t> first, last;  // the elements of the first and of the last rank
    int64_t want;
    lockstep_status status;
  };
  const one_product all[] = {
      {{two62, 2}, {-1, 1}, INT64_MIN, LOCKSTEP_OK},           {{two62, 2}, {1, 1}, INT64_MAX, LOCKSTEP_OVERFLOW},
      {{two62, -4}, {1, 1}, INT64_MIN, LOCKSTEP_OVERFLOW},     {{INT64_MAX, INT64_MIN}, {5, 0}, 0, LOCKSTEP_OK},
      {{INT64_MIN, 1}, {-1, 1}, INT64_MAX, LOCKSTEP_OVERFLOW}, {{0, -7}, {INT64_MAX, INT64_MAX}, 0, LOCKSTEP_OK}};
  for (const one_product& p : all)
    run(one_each(ranks), [&](member& m) {
      if (m.seats != 1) return;  // as above
      const int64_t n = 2 * m.ranks;
      const lockstep_grid g = lockstep_grid_slabs(8, 1, &n, m.ranks);
      std::vector<int64_t> mine = m.first == 0 ? p.first : m.first == m.ranks - 1 ? p.last : std::vector<int64_t>{1, 1};
      std::vector<block> in, out;
      in.emplace_back(sizeof(int64_t), std::vector<int64_t>{2}, false);
      std::memcpy(in[0].part.data, mine.data(), 2 * sizeof(int64_t));
      out.emplace_back(sizeof(int64_t), std::vector<int64_t>{1}, false);
      lockstep_ranks_plan* plan = nullptr;
      ASSERT_EQ(
          lockstep_ranks_reduce(m.comm, &g, LOCKSTEP_PROD, LOCKSTEP_I64, LOCKSTEP_I64, 1, nullptr, nullptr, &plan),
          LOCKSTEP_OK)
          << lockstep_last_error();
      EXPECT_EQ(execute(m, plan, &in, &out), p.status) << lockstep_last_error();
      EXPECT_EQ(*static_cast<const int64_t*>(out[0].part.data), p.want);
      lockstep_ranks_plan_destroy(plan);
    });
}

// Each rank is told the reason, as by a call on one device.
TEST(ReduceOf, TypesThatDoNotBelongTogether) {
  const std::tuple<lockstep_reduction, lockstep_dtype, lockstep_dtype, const char*> types[] = {
      {LOCKSTEP_SUM, LOCKSTEP_U8, LOCKSTEP_F64, "set result to LOCKSTEP_I64"},
      {LOCKSTEP_MAX, LOCKSTEP_F16, LOCKSTEP_F32, "set result to LOCKSTEP_F16"},
      {LOCKSTEP_ANY, LOCKSTEP_F32, LOCKSTEP_I64, "set result to LOCKSTEP_BOOL"},
      {static_cast<lockstep_reduction>(77), LOCKSTEP_F32, LOCKSTEP_F32, "reduction is 77"}};
  for (const auto& [reduction, dtype, result, text] : types)
    run(one_each(over_mpi() ? rank_counts()[0] : 2),
        [&, reduction = reduction, dtype = dtype, result = result, text = text](member& m) {
          const int64_t shape[] = {100};
          const lockstep_grid g = lockstep_grid_slabs(lockstep_dtype_bytes(dtype), 1, shape, m.ranks);
          lockstep_ranks_plan* plan = nullptr;
          EXPECT_EQ(lockstep_ranks_reduce(m.comm, &g, reduction, dtype, result, 1, nullptr, nullptr, &plan),
                    LOCKSTEP_INVALID_ARGUMENT);
          EXPECT_NE(std::string(lockstep_last_error()).find(text), std::string::npos) << lockstep_last_error();
          EXPECT_EQ(plan, nullptr);
        });
}

}  // namespace
}  // namespace lockstep::ranks_test
