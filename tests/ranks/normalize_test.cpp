// normalize_test.cpp - rows that are cut among ranks are normalized with the bits of one call on the whole array.
#include "bits/normalizations.hpp"
#include "context_of.hpp"
#include "world.hpp"

namespace lockstep::ranks_test {
namespace {

struct rows_case {
  lockstep_normalization kind;
  lockstep_dtype dtype, result, weight_dtype;
  uint32_t arrays;
  double eps;  // or the scale
  std::vector<int64_t> shape;
  const char* fill;
  bool in_place = false;  // dst is src, sum the residual
  bool one_result() const { return lib::kind_of(kind).one_result; }
  bool has(uint32_t array) const { return (arrays & array) != 0; }
  int64_t length() const { return shape.back(); }
  int64_t rows() const {
    int64_t n = 1;
    for (size_t k = 0; k + 1 < shape.size(); ++k) n *= shape[k];
    return n;
  }
  std::vector<int64_t> row_shape() const {
    std::vector<int64_t> s(shape.begin(), shape.end() - 1);
    if (s.empty()) s.push_back(1);
    return s;
  }
};

std::string name_of(const rows_case& c) {
  return format_text("{} of {} to {}, arrays {}, eps or scale {}, {} ({}{})", lib::kind_of(c.kind).name,
                     cases::dtype_names()[static_cast<size_t>(c.dtype)],
                     cases::dtype_names()[static_cast<size_t>(c.result)], c.arrays, c.eps, joined(c.shape, "x"), c.fill,
                     c.in_place ? ", in place" : "");
}

using bytes_of = std::vector<unsigned char>;
struct whole_arrays {
  bytes_of x, residual, weight, bias, dst, sum;
  std::vector<int64_t> labels;
};

whole_arrays make(lockstep_context* context, const rows_case& c, uint64_t seed) {
  whole_arrays w;
  const int64_t n = c.rows() * c.length();
  w.x = data_of(c.dtype, n, c.fill, seed);
  w.residual = data_of(c.dtype, n, c.fill, seed + 1);
  w.weight = data_of(c.weight_dtype, c.length(), "", seed + 2);
  w.bias = data_of(c.weight_dtype, c.length(), "", seed + 3);
  std::mt19937_64 draw(seed);
  for (int64_t r = 0; r < c.rows(); ++r)
    w.labels.push_back(static_cast<int64_t>(draw() % static_cast<uint64_t>(c.length())));
  w.sum.resize(w.x.size());
  const int64_t results = c.one_result() ? c.rows() : n;
  lockstep_normalize_desc d = lockstep_normalize_rows(c.kind, c.dtype, c.rows(), c.length(), c.eps);
  d.result = c.result;
  d.weight_dtype = c.weight_dtype;
  if (c.has(LOCKSTEP_RANKS_WEIGHT)) d.weight = w.weight.data();
  if (c.kind == LOCKSTEP_NORMALIZE_PICKED) d.labels = w.labels.data();
  if (c.has(LOCKSTEP_RANKS_BIAS)) d.bias = w.bias.data();
  if (c.has(LOCKSTEP_RANKS_RESIDUAL)) d.residual = w.residual.data(), d.sum = w.sum.data();
  const size_t bytes = static_cast<size_t>(results) * lockstep_dtype_bytes(c.result);
  const bytes_of both = told_to_all([&] {
    bytes_of made(bytes);
    EXPECT_EQ(lockstep_normalize(context, &d, w.x.data(), made.data(), nullptr), LOCKSTEP_OK) << lockstep_last_error();
    made.insert(made.end(), w.sum.begin(), w.sum.end());
    return made;
  });
  w.dst.assign(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(bytes));
  w.sum.assign(both.begin() + static_cast<std::ptrdiff_t>(bytes), both.end());
  return w;
}

// A seat's part of an array along some axes of the grid, packed: those of its rows, or of its columns.
block part_of(const drawn_grid& grid, int32_t rank, size_t element_bytes, bool of_rows, const void* whole) {
  int64_t low[LOCKSTEP_MAX_RANK], length[LOCKSTEP_MAX_RANK];
  EXPECT_EQ(lockstep_grid_box(&grid.g, rank, low, length), LOCKSTEP_OK);
  int64_t elements = 1;
  const auto last = static_cast<size_t>(grid.g.rank) - 1;
  for (size_t k = 0; k <= last; ++k) elements *= length[k];
  std::vector<int64_t> lows = {of_rows ? 0 : low[last]}, lengths = {of_rows ? 1 : length[last]},
                       shape = {of_rows ? 1 : grid.g.shape[last]};
  if (of_rows && last > 0) {
    lows.assign(low, low + last), lengths.assign(length, length + last);
    shape.assign(grid.g.shape, grid.g.shape + last);
  }
  if (elements == 0) lengths[0] = 0;
  block b(element_bytes, lengths, false);
  b.low = lows;
  lockstep_grid g{};
  g.rank = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), g.shape);
  if (whole != nullptr) b.fill(g, static_cast<const unsigned char*>(whole));
  return b;
}

void check(const rows_case& c, const std::vector<int32_t>& seats, const std::vector<int32_t>& parts, uint64_t seed,
           int64_t message_bytes = 0) {
  changes with;
  with.message_bytes = message_bytes;
  const cases::context_of alone("cpu", 1);
  const whole_arrays want = make(alone.self, c, seed);
  run(
      seats,
      [&](member& m) {
        std::mt19937_64 draw(seed);
        drawn_grid grid = draw_grid(lockstep_dtype_bytes(c.dtype), c.shape, parts, m.ranks, draw);
        const bool padded = draw() % 2 == 0;
        std::vector<block> src, dst;
        const auto each_seat = [&](const auto& body) {
          for (int32_t s = 0; s < m.seats; ++s) body(m.first + s);
        };
        const auto block_of = [&](int32_t rank, size_t bytes) {
          drawn_grid g = grid;
          g.g.element_bytes = bytes;
          return block(*g.get(), rank, padded);
        };
        const size_t bytes = lockstep_dtype_bytes(c.dtype);
        const lockstep_grid* const g = grid.get();
        const auto filled = [&](const bytes_of& whole) {
          each_seat([&](int32_t rank) { src.emplace_back(block_of(rank, bytes)).fill(*g, whole.data()); });
        };
        const auto vectors = [&](const bytes_of& whole) {
          each_seat([&](int32_t rank) {
            src.push_back(part_of(grid, rank, lockstep_dtype_bytes(c.weight_dtype), false, whole.data()));
          });
        };
        filled(want.x);
        if (c.has(LOCKSTEP_RANKS_RESIDUAL)) filled(want.residual);
        if (c.has(LOCKSTEP_RANKS_WEIGHT)) vectors(want.weight);
        if (c.has(LOCKSTEP_RANKS_BIAS)) vectors(want.bias);
        if (c.kind == LOCKSTEP_NORMALIZE_PICKED)
          each_seat([&](int32_t rank) { src.push_back(part_of(grid, rank, 8, true, want.labels.data())); });
        const auto result_bytes = lockstep_dtype_bytes(c.result);
        each_seat([&](int32_t rank) {
          dst.push_back(c.one_result() ? part_of(grid, rank, result_bytes, true, nullptr)
                                       : block_of(rank, result_bytes));
        });
        if (c.has(LOCKSTEP_RANKS_RESIDUAL)) each_seat([&](int32_t rank) { dst.push_back(block_of(rank, bytes)); });
        const std::string about =
            format_text("{}, {} ranks, rank {}, seed {}, {}", name_of(c), m.ranks, m.first, seed, grid.text);
        lockstep_normalize_desc d = lockstep_normalize_rows(c.kind, c.dtype, 0, 0, c.eps);
        d.result = c.result;
        d.weight_dtype = c.weight_dtype;
        lockstep_ranks_plan* plan = nullptr;
        ASSERT_EQ(lockstep_ranks_normalize(m.comm, g, &d, c.arrays, nullptr, &plan), LOCKSTEP_OK)
            << about << ": " << lockstep_last_error();
        const auto seats_here = static_cast<size_t>(m.seats);
        const auto compare = [&](const std::vector<block>& all, size_t array, const std::vector<int64_t>& shape,
                                 const bytes_of& whole, const char* what) {
          for (size_t s = 0; s < seats_here; ++s)
            EXPECT_EQ(all[array * seats_here + s].compare(shape, whole.data()), "") << what << " of " << about;
        };
        for (int round = 0; round < (c.in_place ? 1 : 2); ++round) {
          // In place both lists name the same memory.
          std::vector<block>* to = c.in_place ? &src : &dst;
          EXPECT_EQ(execute(m, plan, &src, to), LOCKSTEP_OK) << about << ": " << lockstep_last_error();
          compare(*to, 0, c.one_result() ? c.row_shape() : c.shape, want.dst, "dst");
          if (c.has(LOCKSTEP_RANKS_RESIDUAL)) compare(*to, 1, c.shape, want.sum, "sum");
        }
        lockstep_ranks_plan_destroy(plan);
      },
      with);
}

class Normalize : public testing::TestWithParam<lockstep_normalization> {};

TEST_P(Normalize, HasTheBitsOfOneCall) {
  const lockstep_normalization kind = GetParam();
  constexpr lockstep_dtype types[] = {LOCKSTEP_F16, LOCKSTEP_BF16, LOCKSTEP_F32, LOCKSTEP_F64};
  const bool exponential = lib::kind_of(kind).exponential;
  for (const int32_t ranks : rank_counts())
    for (int round = 0; round < (ranks > 8 ? 8 : 14); ++round) {
      const uint64_t seed = cases::mix(static_cast<uint64_t>(round * 1000 + ranks)) % 100000;
      std::mt19937_64 draw(seed * 31 + static_cast<uint64_t>(kind) * 7);
      rows_case c{kind, types[draw() % 4], {}, {}, 0, 0, {}, ""};
      const lockstep_dtype narrow = types[draw() % 3];
      c.result = draw() % 2 == 0 ? c.dtype : lib::kind_of(kind).one_result && draw() % 2 == 0 ? LOCKSTEP_F64 : narrow;
      c.weight_dtype = draw() % 2 == 0 ? c.dtype : LOCKSTEP_F32;
      c.arrays = static_cast<uint32_t>(draw() % 8);
      if (exponential) c.arrays &= LOCKSTEP_RANKS_RESIDUAL;
      constexpr double scales[] = {1, 0.125, -0.5, 3};
      c.eps = exponential ? scales[draw() % 4] : draw() % 3 == 0 ? 0 : 1e-5;
      constexpr const char* fills[] = {"", "wide", "special", "ties", "finite", "huge"};
      c.fill = fills[draw() % (c.dtype == LOCKSTEP_F64 ? 6 : 4)];
      const int64_t lengths[] = {1, 7, 130, 2048, 2049, 4096, 9000, 70001}, rows[] = {1, 3, 40};
      const size_t axes = draw() % 3;
      for (size_t k = 0; k < axes; ++k) c.shape.push_back(rows[draw() % (axes == 1 ? 3 : 2)]);
      c.shape.push_back(lengths[draw() % (axes == 0 ? 8 : 7)]);
      if (axes == 0 && draw() % 3 == 0) c.shape = {300000};  // more than goes through host memory at once
      const std::vector<int32_t> parts = draw_parts(c.shape.size(), ranks, draw);
      c.in_place = c.result == c.dtype && !lib::kind_of(kind).one_result && draw() % 3 == 0;
      const int64_t sizes[] = {0, 0, 500, 20000};
      check(c, draw() % 2 == 0 ? one_each(ranks) : drawn_seats(ranks, draw), parts, seed, sizes[draw() % 4]);
      if (HasFailure()) return;
    }
}

// Many rows whose few leaves are cut among more ranks: sums are made after a redistribution, extremes where rows are.
TEST_P(Normalize, OfManyShortRows) {
  const bool exponential = lib::kind_of(GetParam()).exponential;
  for (const int32_t ranks : rank_counts())
    for (const lockstep_dtype dtype : {LOCKSTEP_BF16, LOCKSTEP_F64}) {
      rows_case c{GetParam(), dtype, dtype, LOCKSTEP_F32, exponential ? 4u : 7u, exponential ? 0.5 : 1e-6, {}, ""};
      c.shape = {30, 9, 700};
      check(c, one_each(ranks), {1, 1, ranks}, 7 + static_cast<uint64_t>(ranks));
      check(c, one_each(ranks), {1, std::min(ranks, 2), ranks / std::min(ranks, 2)}, 8, 3000);
      if (HasFailure()) return;
    }
}

std::string kind_name(const testing::TestParamInfo<lockstep_normalization>& info) {
  return lib::kind_of(info.param).name;
}
INSTANTIATE_TEST_SUITE_P(All, Normalize,
                         testing::Values(LOCKSTEP_NORMALIZE_L2, LOCKSTEP_NORMALIZE_RMS, LOCKSTEP_NORMALIZE_LAYER,
                                         LOCKSTEP_NORMALIZE_SOFTMAX, LOCKSTEP_NORMALIZE_LOG_SOFTMAX,
                                         LOCKSTEP_NORMALIZE_LOGSUMEXP, LOCKSTEP_NORMALIZE_PICKED),
                         kind_name);

// Every wrong argument is named, on its own rank and to the others.
TEST(NormalizeOf, NothingWrongIsTaken) {
  run(one_each(rank_counts().back() > 1 ? 2 : 1), [&](member& m) {
    const int64_t shape[] = {4, 10}, none[] = {4, 0};
    const lockstep_grid g = lockstep_grid_slabs(4, 2, shape, m.ranks), empty = lockstep_grid_slabs(4, 2, none, 1),
                        wide = lockstep_grid_slabs(8, 2, shape, 1);
    const auto refused = [&](const lockstep_grid* grid, lockstep_normalization kind, uint32_t arrays,
                             const std::function<void(lockstep_normalize_desc&)>& change, const char* text) {
      lockstep_normalize_desc d = lockstep_normalize_rows(kind, LOCKSTEP_F32, 0, 0, 1);
      change(d);
      lockstep_ranks_plan* plan = nullptr;
      EXPECT_NE(lockstep_ranks_normalize(m.comm, grid, &d, arrays, nullptr, &plan), LOCKSTEP_OK);
      EXPECT_NE(std::string(lockstep_last_error()).find(text), std::string::npos) << lockstep_last_error();
      EXPECT_EQ(plan, nullptr);
    };
    const auto same = [](lockstep_normalize_desc&) {};
    refused(&g, LOCKSTEP_NORMALIZE_RMS, 8, same, "arrays is 0x8; give LOCKSTEP_RANKS_WEIGHT");
    refused(&g, LOCKSTEP_NORMALIZE_SOFTMAX, 1, same, "SOFTMAX has no weight");
    refused(&g, LOCKSTEP_NORMALIZE_PICKED, 2, same, "PICKED has no weight and no bias");
    refused(&g, LOCKSTEP_NORMALIZE_LAYER_BACKWARD, 0, same, "kind is LAYER_BACKWARD, which takes whole rows");
    refused(&wide, LOCKSTEP_NORMALIZE_L2, 0, same, "src->element_bytes is 8");
    refused(&empty, LOCKSTEP_NORMALIZE_LOGSUMEXP, 0, same, "src->shape[1] is 0; LOGSUMEXP needs rows");
    refused(
        &g, LOCKSTEP_NORMALIZE_RMS, 0, [](auto& d) { d.eps = -1; }, "eps is -1");
    refused(
        &g, LOCKSTEP_NORMALIZE_SOFTMAX, 0, [](auto& d) { d.scale = 0; }, "scale is 0");
    refused(
        &g, LOCKSTEP_NORMALIZE_RMS, 0, [](auto& d) { d.dtype = LOCKSTEP_I32; }, "dtype is I32");
    refused(
        &g, LOCKSTEP_NORMALIZE_RMS, 0, [](auto& d) { d.result = LOCKSTEP_F64; }, "result is F64");
    lockstep_ranks_plan* plan = nullptr;
    EXPECT_NE(lockstep_ranks_normalize(m.comm, &g, nullptr, 0, nullptr, &plan), LOCKSTEP_OK);
    // Differences between ranks are told by name.
    lockstep_normalize_desc d = lockstep_normalize_rows(LOCKSTEP_NORMALIZE_RMS, LOCKSTEP_F32, 0, 0, 1 + m.first);
    if (m.ranks > 1) {
      EXPECT_EQ(lockstep_ranks_normalize(m.comm, &g, &d, 0, nullptr, &plan), LOCKSTEP_MISMATCH);
      EXPECT_NE(std::string(lockstep_last_error()).find("eps or scale"), std::string::npos) << lockstep_last_error();
    }
    // At execution: a label beyond its row on the last rank, rows with gaps, a part that is missing.
    std::vector<float> x(80, 1.0F), y(80);
    std::vector<int64_t> labels(4, 3);
    int64_t low[8], length[8];
    ASSERT_EQ(lockstep_grid_box(&g, m.first, low, length), LOCKSTEP_OK);
    const bool last = m.first == m.ranks - 1;
    labels.resize(static_cast<size_t>(length[0]));
    d = lockstep_normalize_rows(LOCKSTEP_NORMALIZE_PICKED, LOCKSTEP_F32, 0, 0, 1);
    ASSERT_EQ(lockstep_ranks_normalize(m.comm, &g, &d, 0, nullptr, &plan), LOCKSTEP_OK) << lockstep_last_error();
    lockstep_part in[] = {lockstep_part_packed(x.data(), 2, length), lockstep_part_packed(labels.data(), 1, length)};
    lockstep_part out = lockstep_part_packed(y.data(), 1, length);
    const auto executes = [&](lockstep_status own, const char* text) {
      const lockstep_status status = lockstep_ranks_execute(plan, in, &out, nullptr);
      if (!last) return;
      EXPECT_EQ(status, own);
      EXPECT_NE(std::string(lockstep_last_error()).find(text), std::string::npos) << lockstep_last_error();
    };
    const auto settles = [&] { static_cast<void>(lockstep_ranks_synchronize(m.comm)); };
    executes(LOCKSTEP_OK, "");
    if (last && !labels.empty()) labels.back() = 10;
    if (length[0] > 0 && m.ranks <= 4) executes(LOCKSTEP_INVALID_ARGUMENT, "is 10; give 0 to 9, a place in the row");
    settles();
    if (last && !labels.empty()) labels.back() = 0, in[0].strides[1] = 2;
    if (length[0] > 0 && m.ranks <= 4)
      executes(LOCKSTEP_INVALID_ARGUMENT, "src[0].strides[1] is 2; rows are contiguous");
    settles();
    in[0].strides[1] = 1;
    if (last) in[1].data = nullptr;
    if (length[0] > 0 && m.ranks <= 4) executes(LOCKSTEP_INVALID_ARGUMENT, "labels[0].data is NULL");
    settles();
    lockstep_ranks_plan_destroy(plan);
  });
}

// Asked about and waited for as any plan is; rows of nothing are no error.
TEST(NormalizeOf, AsynchronousExecutions) {
  for (const int32_t ranks : rank_counts()) {
    if (ranks > 8) continue;
    run(one_each(ranks), [&](member& m) {
      const int64_t shape[] = {3, 5000}, none[] = {3, 0};
      lockstep_grid g = lockstep_grid_slabs(4, 2, shape, 1);
      g.parts[1] = m.ranks;
      const lockstep_normalize_desc d = lockstep_normalize_rows(LOCKSTEP_NORMALIZE_SOFTMAX, LOCKSTEP_F32, 0, 0, 1);
      lockstep_ranks_plan *plan = nullptr, *nothing = nullptr;
      ASSERT_EQ(lockstep_ranks_normalize(m.comm, &g, &d, 0, nullptr, &plan), LOCKSTEP_OK) << lockstep_last_error();
      const lockstep_grid e = lockstep_grid_slabs(4, 2, none, 1);
      ASSERT_EQ(lockstep_ranks_normalize(m.comm, &e, &d, 0, nullptr, &nothing), LOCKSTEP_OK) << lockstep_last_error();
      int64_t low[8], length[8];
      ASSERT_EQ(lockstep_grid_box(&g, m.first, low, length), LOCKSTEP_OK);
      std::vector<float> x(static_cast<size_t>(3 * length[1]) + 1, 2.0F), y(x.size()), z(x.size());
      lockstep_options o = lockstep_options_defaults();
      o.flags = LOCKSTEP_ASYNC;
      const lockstep_part in = lockstep_part_packed(x.data(), 2, length),
                          out = lockstep_part_packed(y.data(), 2, length),
                          then = lockstep_part_packed(z.data(), 2, length);
      EXPECT_EQ(lockstep_ranks_execute(plan, &in, &out, &o), LOCKSTEP_OK) << lockstep_last_error();
      EXPECT_EQ(lockstep_ranks_execute(plan, &out, &then, &o), LOCKSTEP_OK) << lockstep_last_error();
      EXPECT_EQ(lockstep_ranks_execute(nothing, nullptr, nullptr, &o), LOCKSTEP_OK) << lockstep_last_error();
      for (int32_t done = 0; done == 0;) ASSERT_EQ(lockstep_ranks_test(plan, &done), LOCKSTEP_OK);
      EXPECT_EQ(lockstep_ranks_wait(nothing), LOCKSTEP_OK) << lockstep_last_error();
      for (int64_t i = 0; i < 3 * length[1]; ++i) {
        EXPECT_EQ(y[static_cast<size_t>(i)], static_cast<float>(1.0 / 5000));
        EXPECT_EQ(z[static_cast<size_t>(i)], static_cast<float>(1.0 / 5000));
      }
      lockstep_ranks_plan_destroy(plan);
      lockstep_ranks_plan_destroy(nothing);
    });
  }
}

}  // namespace
}  // namespace lockstep::ranks_test
