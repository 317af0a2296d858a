// sweeps_test.cpp - many sweeps in one pass have the same bits as single sweeps, for any depth of a pass and any tile.
// The plans here are smaller than any machine's caches would suggest, so that every boundary meets a tile's edge.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ops.hpp"
#include "stencil_sweeps.hpp"

namespace lockstep::cpu {
namespace {

constexpr const char* boundary_names[] = {"nearest", "mirror", "reflect", "wrap", "constant", "valid"};

struct trial {
  lockstep_stencil_desc d{};
  std::vector<double> coefficients;
  sweeps_plan plan;
  lockstep_queue queue;
  size_t src_elements = 0, dst_elements = 0;
  bool special = false;

  std::string text() const {
    std::string shape;
    for (int k = 0; k < d.rank; ++k) shape += format_text("{}{}", k == 0 ? "" : "x", d.shape[k]);
    return format_text("{} {} r{} {} sweeps {} batch {}, depth {} tile {}x{}x{}, {}, {} threads, {} columns",
                       d.dtype == LOCKSTEP_F32 ? "f32" : "f64", boundary_names[d.boundary], d.radius, shape, d.sweeps,
                       d.batch, plan.depth, plan.tile.z, plan.tile.y, plan.tile.x, static_cast<int>(queue.kernels),
                       queue.threads, plan.columns);
  }
};

trial draw_trial(std::mt19937_64& draw, lockstep_boundary boundary, const cpu_choice& chosen) {
  const auto upto = [&](int64_t most) { return static_cast<int64_t>(draw() % static_cast<uint64_t>(most)) + 1; };
  trial t;
  lockstep_stencil_desc& d = t.d;
  const bool f32 = draw() % 2 == 0, by_lanes = draw() % 4 == 0;
  d.dtype = f32 ? LOCKSTEP_F32 : LOCKSTEP_F64;
  d.rank = by_lanes ? 1 : static_cast<int32_t>(upto(3));
  d.radius = static_cast<int32_t>(!by_lanes && draw() % 8 == 0 ? upto(8) : upto(4));
  d.sweeps = static_cast<int32_t>(upto(d.rank == 1 ? 12 : d.rank == 2 ? 7 : 5));
  d.boundary = boundary;
  d.value = 0.75;
  d.batch = upto(3);
  d.coefficient_count = 2 * d.radius * d.rank + 1;
  for (int k = 0; k < d.coefficient_count; ++k)
    t.coefficients.push_back((static_cast<double>(draw() % 2001) - 1000) / 1000 / d.radius);
  const int64_t lost = boundary == LOCKSTEP_BOUNDARY_VALID ? int64_t{2} * d.radius * d.sweeps : 0;
  const int64_t most[3][3] = {{by_lanes ? 4000 : 600, 0, 0}, {40, 300, 0}, {14, 18, 170}};
  int64_t src = 1, dst = 1;
  for (int k = d.rank - 1; k >= 0; --k) {
    d.shape[k] = (draw() % 4 == 0 ? upto(5) : upto(most[d.rank - 1][k])) + lost;
    d.src_strides[k] = src;
    d.dst_strides[k] = dst;
    src = src * d.shape[k] + static_cast<int64_t>(draw() % 4);
    dst = dst * (d.shape[k] - lost) + static_cast<int64_t>(draw() % 4);
  }
  d.src_batch_stride = src;
  d.dst_batch_stride = dst;
  t.src_elements = static_cast<size_t>(src * d.batch);
  t.dst_elements = static_cast<size_t>(dst * d.batch);
  const auto some = [&](int64_t n) { return draw() % 3 == 0 ? n : upto(n); };  // a whole axis, or part of it
  const int64_t nx = d.shape[d.rank - 1], ny = d.rank > 1 ? d.shape[d.rank - 2] : 1, nz = d.rank > 2 ? d.shape[0] : 1;
  t.plan = plan_of(d, static_cast<int>(upto(d.sweeps)), {1, some(nz), some(ny), some(nx)});
  t.queue.threads = static_cast<int>(upto(3));
  t.queue.kernels = chosen.kernels();
  t.queue.tuned = chosen.tuned;
  const int64_t lanes =
      f32 ? stencil_kernels_of(t.queue.kernels).f32.lanes.lanes : stencil_kernels_of(t.queue.kernels).f64.lanes.lanes;
  if (by_lanes && lanes > 0) {
    const int64_t line = f32 ? 16 : 8, columns = (2 * upto(5) + 1) * line;
    t.plan.tile.x = std::clamp<int64_t>(columns * lanes - 2 * d.radius * t.plan.depth - line * upto(3), 1, d.shape[0]);
    t.plan = with_columns(d, t.plan, columns, static_cast<int>(lanes));
  }
  t.special = draw() % 4 == 0;
  return t;
}

template <class T>
std::vector<T> filled(std::mt19937_64& draw, size_t elements, bool special) {
  std::vector<T> x(elements);
  for (T& v : x) v = static_cast<T>(static_cast<int64_t>(draw() % 200001) - 100000) / T{4096};
  const T odd[] = {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::quiet_NaN(), T{-0.0},
                   std::numeric_limits<T>::denorm_min(), std::numeric_limits<T>::max()};
  for (size_t k = 0; special && k < 1 + elements / 200; ++k) x[draw() % elements] = odd[draw() % 5];
  return x;
}

template <class T>
void check(std::mt19937_64& draw, trial& t) {
  const std::vector<T> src = filled<T>(draw, t.src_elements, t.special);
  std::vector<T> got(t.dst_elements, T{-77}), want = got;
  lockstep_call call{};
  call.op = LOCKSTEP_STENCIL;
  call.src = src.data();
  call.stencil = t.d;
  call.stencil.coefficients = t.coefficients.data();
  const auto with_workspace = [&](size_t bytes, const auto& body) {
    constexpr size_t guard = 256;
    std::vector<unsigned char> memory(bytes + 2 * guard, 0xA5);  // read as an element: tiny, but not 0
    call.workspace = memory.data() + guard;
    call.workspace_bytes = bytes;
    body();
    for (size_t k = 0; k < guard; ++k)
      ASSERT_TRUE(memory[k] == 0xA5 && memory[bytes + guard + k] == 0xA5) << "beyond the workspace: " << t.text();
  };
  call.dst = want.data();
  with_workspace(ref_stencil_workspace(nullptr, &call), [&] { (void)ref_stencil(nullptr, &call); });
  call.dst = got.data();
  with_workspace(sweeps_bytes(t.queue, call.stencil, t.plan), [&] { run_sweeps(t.queue, call, t.plan); });
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(T)), 0)
        << "element " << i << " is " << got[i] << ", one sweep after the other " << want[i] << ": " << t.text();
}

class Sweeps : public testing::TestWithParam<int> {};

TEST_P(Sweeps, OfAnyDepthAndTileAreSingleSweeps) {
  std::mt19937_64 draw(static_cast<uint64_t>(GetParam()) + 1);
  for (const char* name : {"baseline:zen4", "avx2:default", "avx512:default", "avx512:zen4"}) {
    cpu_choice chosen = best_choice();
    const char* why = "";
    if (!parse_isa(name, chosen, why)) continue;
    for (int repeat = 0; repeat < 250; ++repeat) {
      trial t = draw_trial(draw, static_cast<lockstep_boundary>(GetParam()), chosen);
      if (t.d.dtype == LOCKSTEP_F32)
        check<float>(draw, t);
      else
        check<double>(draw, t);
      if (HasFatalFailure()) return;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Boundaries, Sweeps, testing::Range(0, 6), [](const testing::TestParamInfo<int>& info) {
  return std::string(boundary_names[info.param]);
});

// The plan of this machine: enough tasks for the threads, a tile and rings that its caches can hold.
TEST(SweepsPlan, FitsTheCallAndTheCaches) {
  const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  const std::vector<std::vector<int64_t>> shapes = {{1},       {1000},       {1 << 26},       {1, 1},
                                                    {30, 30},  {8192, 8192}, {30, 1 << 28},   {1 << 28, 30},
                                                    {1, 1, 1}, {12, 12, 12}, {400, 400, 400}, {5, 7, 1 << 26}};
  for (const lockstep_dtype dtype : {LOCKSTEP_F32, LOCKSTEP_F64})
    for (const std::vector<int64_t>& shape : shapes)
      for (int r = 1; r <= 8; ++r)
        for (const int sweeps : {1, 2, 5, 16, 100})
          for (const int threads : {1, 2, 16, 200}) {
            const auto rank = static_cast<int32_t>(shape.size());
            const double c[1] = {};
            auto d = lockstep_stencil_packed(dtype, rank, shape.data(), r, c, LOCKSTEP_BOUNDARY_NEAREST);
            d.sweeps = sweeps;
            SCOPED_TRACE(testing::Message() << "dtype " << dtype << " rank " << rank << " inner axis " << shape.back()
                                            << " r " << r << " sweeps " << sweeps << " threads " << threads);
            const auto fits = [&](const sweeps_plan& plan) {
              ASSERT_GE(plan.depth, 1);
              ASSERT_LE(plan.depth, sweeps);
              const int64_t tile[] = {plan.tile.z, plan.tile.y, plan.tile.x};
              for (int k = 0; k < 3; ++k) {
                ASSERT_GE(tile[k], 1);
                ASSERT_LE(tile[k], k < 3 - rank ? 1 : shape[static_cast<size_t>(k - 3 + rank)]);
              }
              const int64_t bytes = plan.own_elements * static_cast<int64_t>(lockstep_dtype_bytes(dtype));
              ASSERT_TRUE(l2 <= 0 || bytes <= l2) << bytes;
            };
            lockstep_queue queue;
            queue.threads = threads;
            fits(plan_sweeps(queue, d));
            if (rank == 1 && r <= 4)
              for (const int lanes : {4, 8, 16}) fits(plan_lanes(queue, d, lanes));
            if (HasFatalFailure()) return;
          }
}

}  // namespace
}  // namespace lockstep::cpu
