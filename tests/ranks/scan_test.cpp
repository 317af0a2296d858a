// scan_test.cpp - running sums and extremes along a cut axis have the bits of one call on the whole array.
#include "context_of.hpp"
#include "world.hpp"

namespace lockstep::ranks_test {
namespace {

struct scan_case {
  lockstep_reduction reduction;
  lockstep_dtype dtype, result;
  int32_t exclusive;
  std::vector<int64_t> shape;
  int32_t axis;
  const char* fill;
  bool in_place = false;
};

std::string name_of(const scan_case& c) {
  return format_text(
      "scan by {} of {} to {} along {} of {}{}{} ({})", cases::reduction_names()[static_cast<size_t>(c.reduction)],
      cases::dtype_names()[static_cast<size_t>(c.dtype)], cases::dtype_names()[static_cast<size_t>(c.result)], c.axis,
      joined(c.shape, "x"), c.exclusive != 0 ? ", exclusive" : "", c.in_place ? ", in place" : "", c.fill);
}

// The axis last, by a permute; each row by the one call; and back.
std::vector<unsigned char> reference(lockstep_context* context, const scan_case& c,
                                     const std::vector<unsigned char>& whole, lockstep_status& status) {
  const auto rank = static_cast<int32_t>(c.shape.size());
  std::vector<int32_t> perm, inverse(c.shape.size());
  for (int32_t k = 0; k < rank; ++k)
    if (k != c.axis) perm.push_back(k);
  perm.push_back(c.axis);
  std::vector<int64_t> turned;
  int64_t rows = 1;
  for (int32_t k = 0; k < rank; ++k) {
    inverse[static_cast<size_t>(perm[static_cast<size_t>(k)])] = k;
    turned.push_back(c.shape[static_cast<size_t>(perm[static_cast<size_t>(k)])]);
    if (k + 1 < rank) rows *= turned.back();
  }
  const size_t bytes = lockstep_dtype_bytes(c.dtype), result_bytes = lockstep_dtype_bytes(c.result);
  const lockstep_permute_desc there = lockstep_permute_packed(bytes, rank, c.shape.data(), perm.data()),
                              back = lockstep_permute_packed(result_bytes, rank, turned.data(), inverse.data());
  lockstep_scan_desc d = lockstep_scan_rows(c.reduction, c.dtype, rows, turned.back(), turned.back());
  d.result = c.result, d.exclusive = c.exclusive;
  const std::vector<unsigned char> both = told_to_all([&] {
    std::vector<unsigned char> x(whole.size()), y(whole.size() / bytes * result_bytes), z(y.size());
    EXPECT_EQ(lockstep_permute(context, &there, whole.data(), x.data(), nullptr), LOCKSTEP_OK);
    const lockstep_status told = lockstep_scan(context, &d, x.data(), y.data(), nullptr);
    EXPECT_EQ(lockstep_permute(context, &back, y.data(), z.data(), nullptr), LOCKSTEP_OK);
    z.push_back(static_cast<unsigned char>(told));
    return z;
  });
  status = static_cast<lockstep_status>(both.back());
  return {both.begin(), both.end() - 1};
}

void check(const scan_case& c, const std::vector<int32_t>& seats, const std::vector<int32_t>& parts, uint64_t seed,
           int64_t message_bytes = 0) {
  changes with;
  with.message_bytes = message_bytes;
  int64_t n = 1;
  for (const int64_t x : c.shape) n *= x;
  const std::vector<unsigned char> whole = data_of(c.dtype, n, c.fill, seed);
  const cases::context_of alone("cpu", 1);
  lockstep_status told = LOCKSTEP_OK;
  const std::vector<unsigned char> want = reference(alone.self, c, whole, told);
  run(
      seats,
      [&](member& m) {
        std::mt19937_64 draw(seed);
        drawn_grid grid = draw_grid(lockstep_dtype_bytes(c.dtype), c.shape, parts, m.ranks, draw), to = grid;
        to.g.element_bytes = lockstep_dtype_bytes(c.result);
        const bool padded = draw() % 2 == 0;
        std::vector<block> src, dst;
        for (int32_t s = 0; s < m.seats; ++s) {
          src.emplace_back(*grid.get(), m.first + s, padded).fill(*grid.get(), whole.data());
          dst.emplace_back(*to.get(), m.first + s, padded);
        }
        const std::string about =
            format_text("{}, {} ranks, rank {}, seed {}, {}", name_of(c), m.ranks, m.first, seed, grid.text);
        lockstep_ranks_plan* plan = nullptr;
        ASSERT_EQ(lockstep_ranks_scan(m.comm, grid.get(), c.reduction, c.dtype, c.result, c.axis, c.exclusive, nullptr,
                                      &plan),
                  LOCKSTEP_OK)
            << about << ": " << lockstep_last_error();
        for (int round = 0; round < (c.in_place ? 1 : 2); ++round) {
          std::vector<block>& out = c.in_place ? src : dst;
          EXPECT_EQ(execute(m, plan, &src, &out), told) << about << ": " << lockstep_last_error();
          for (const block& b : out) EXPECT_EQ(b.compare(c.shape, want.data()), "") << about;
        }
        lockstep_ranks_plan_destroy(plan);
      },
      with);
}

struct kind_of_scan {
  lockstep_reduction reduction;
  lockstep_dtype dtype;
  const char* fills[4];
};
constexpr kind_of_scan all_kinds[] = {
    {LOCKSTEP_SUM, LOCKSTEP_F16, {"", "special", "wide", "one_nan"}},
    {LOCKSTEP_SUM, LOCKSTEP_BF16, {"", "special", "wide", "one_nan"}},
    {LOCKSTEP_SUM, LOCKSTEP_F32, {"", "special", "wide", "zeros"}},
    {LOCKSTEP_SUM, LOCKSTEP_F64, {"", "special", "finite", "zeros"}},
    {LOCKSTEP_SUM, LOCKSTEP_I32, {"", "small", "special", ""}},
    {LOCKSTEP_SUM, LOCKSTEP_I64, {"", "cross", "over", "under"}},
    {LOCKSTEP_MIN, LOCKSTEP_F16, {"", "special", "ties", "one_nan"}},
    {LOCKSTEP_MIN, LOCKSTEP_F32, {"", "special", "ties", "one_nan"}},
    {LOCKSTEP_MIN, LOCKSTEP_I32, {"", "ties", "", ""}},
    {LOCKSTEP_MAX, LOCKSTEP_BF16, {"", "special", "ties", "one_nan"}},
    {LOCKSTEP_MAX, LOCKSTEP_F64, {"", "special", "ties", "one_nan"}},
    {LOCKSTEP_MAX, LOCKSTEP_I64, {"", "ties", "", ""}},
};

class Scan : public testing::TestWithParam<kind_of_scan> {};
TEST_P(Scan, HasTheBitsOfOneCall) {
  const kind_of_scan k = GetParam();
  for (const int32_t ranks : rank_counts())
    for (int round = 0; round < (ranks > 8 ? 6 : 12); ++round) {
      const uint64_t seed = cases::mix(static_cast<uint64_t>(round * 1000 + ranks)) % 100000;
      std::mt19937_64 draw(seed * 31 + static_cast<uint64_t>(k.reduction) * 7 + static_cast<uint64_t>(k.dtype));
      const bool floats = lockstep_dtype_kind(k.dtype) == 'f', sum = k.reduction == LOCKSTEP_SUM;
      scan_case c{k.reduction, k.dtype, k.dtype, static_cast<int32_t>(draw() % 2), {}, 0, k.fills[draw() % 4]};
      if (sum && !floats) c.result = LOCKSTEP_I64;
      if (sum && floats && draw() % 2 == 0) c.result = draw() % 2 == 0 ? LOCKSTEP_F64 : LOCKSTEP_F32;
      const int64_t lengths[] = {1, 7, 130, 2048, 2049, 4096, 9000, 70001}, others[] = {1, 3, 40};
      const size_t axes = 1 + draw() % 3;
      c.axis = static_cast<int32_t>(draw() % axes);
      for (size_t a = 0; a < axes; ++a) c.shape.push_back(others[draw() % (axes == 2 ? 3 : 2)]);
      c.shape[static_cast<size_t>(c.axis)] = lengths[draw() % (axes == 1 ? 8 : 7)];
      if (axes == 1 && draw() % 3 == 0) c.shape[0] = 300000;
      const std::vector<int32_t> parts = draw_parts(axes, ranks, draw);
      c.in_place = c.result == c.dtype && draw() % 3 == 0;
      const int64_t sizes[] = {0, 0, 500, 20000};
      check(c, draw() % 2 == 0 ? one_each(ranks) : drawn_seats(ranks, draw), parts, seed, sizes[draw() % 4]);
      if (HasFailure()) return;
    }
}
// Every rank has some elements of each of many sequences: float sums go by other cuts, and their results come back.
TEST_P(Scan, OfManyShortSequences) {
  const kind_of_scan k = GetParam();
  for (const int32_t ranks : rank_counts())
    for (const int32_t exclusive : {0, 1}) {
      const bool floats = lockstep_dtype_kind(k.dtype) == 'f';
      scan_case c{k.reduction, k.dtype,   k.reduction == LOCKSTEP_SUM && !floats ? LOCKSTEP_I64 : k.dtype,
                  exclusive,   {700, 90}, 0,
                  k.fills[0]};
      check(c, one_each(ranks), {ranks, 1}, 7 + static_cast<uint64_t>(ranks));
      c.shape = {9, 700, 10}, c.axis = 1;
      check(c, one_each(ranks), {1, ranks, 1}, 8, 3000);
      if (HasFailure()) return;
    }
}
std::string suite_name(const testing::TestParamInfo<kind_of_scan>& info) {
  return cases::reduction_names()[static_cast<size_t>(info.param.reduction)] + "_" +
         cases::dtype_names()[static_cast<size_t>(info.param.dtype)];
}
INSTANTIATE_TEST_SUITE_P(All, Scan, testing::ValuesIn(all_kinds), suite_name);

// Vectors whose every cut is a multiple of a leaf, and one element for each rank.
TEST(ScanOf, CutsAtLeavesAndSingleElements) {
  for (const int32_t ranks : rank_counts())
    for (const int32_t exclusive : {0, 1})
      for (const int64_t n : {int64_t{2048} * ranks, int64_t{ranks}, int64_t{4096} * ranks + 1}) {
        const scan_case c{LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F64, exclusive, {n}, 0, ""};
        check(c, one_each(ranks), {ranks}, static_cast<uint64_t>(n));
      }
}

TEST(ScanOf, NothingWrongIsTaken) {
  run(one_each(rank_counts().back() > 1 ? 2 : 1), [&](member& m) {
    const int64_t shape[] = {4, 10};
    const lockstep_grid g = lockstep_grid_slabs(4, 2, shape, m.ranks), wide = lockstep_grid_slabs(8, 2, shape, 1);
    const auto refused = [&](const lockstep_grid& grid, lockstep_reduction reduction, lockstep_dtype result,
                             int32_t axis, int32_t exclusive, const char* text) {
      lockstep_ranks_plan* plan = nullptr;
      EXPECT_NE(lockstep_ranks_scan(m.comm, &grid, reduction, LOCKSTEP_F32, result, axis, exclusive, nullptr, &plan),
                LOCKSTEP_OK);
      EXPECT_NE(std::string(lockstep_last_error()).find(text), std::string::npos) << lockstep_last_error();
    };
    refused(g, LOCKSTEP_PROD, LOCKSTEP_F32, 0, 0, "does SUM, MIN and MAX");
    refused(g, LOCKSTEP_SUM, LOCKSTEP_I64, 0, 0, "result is I64");
    refused(g, LOCKSTEP_SUM, LOCKSTEP_F32, 2, 0, "axis is 2; give 0 to 1");
    refused(g, LOCKSTEP_SUM, LOCKSTEP_F32, -1, 0, "axis is -1");
    refused(g, LOCKSTEP_SUM, LOCKSTEP_F32, 0, 2, "exclusive is 2");
    refused(wide, LOCKSTEP_SUM, LOCKSTEP_F32, 0, 0, "src->element_bytes is 8");
    lockstep_ranks_plan* plan = nullptr;
    if (m.ranks > 1) {
      EXPECT_EQ(
          lockstep_ranks_scan(m.comm, &g, LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F32, m.first % 2, 0, nullptr, &plan),
          LOCKSTEP_MISMATCH);
      EXPECT_NE(std::string(lockstep_last_error()).find("axis"), std::string::npos) << lockstep_last_error();
    }
  });
}

}  // namespace
}  // namespace lockstep::ranks_test
