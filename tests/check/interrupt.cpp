// interrupt.cpp - calls that their program may end early: the same bits where it does not, and an end where it does.
#include <chrono>
#include <cstring>
#include <thread>

#include "check.hpp"
#include "context_of.hpp"

namespace lockstep::check {
namespace {

constexpr int64_t rows = 3000, cols = 4096, n = rows * cols;  // 48 MiB of floats: long enough to be asked about

struct asked_of : cases::context_of {
  explicit asked_of(int threads) : context_of("cpu", threads) {}
  ~asked_of() { lockstep_set_interrupt(nullptr, nullptr); }
};

struct answer {
  int says;
  int asked = 0;
  std::thread::id thread{};
  static int give(void* self) {
    answer& a = *static_cast<answer*>(self);
    ++a.asked;
    a.thread = std::this_thread::get_id();
    return a.says;
  }
};

lockstep_stencil_desc sweeps_of(int32_t rank, int32_t sweeps) {
  static constexpr double taps[] = {0.25, 0.5, 0.25}, star[] = {0.125, 0.125, 0.5, 0.125, 0.125};
  const int64_t shape[] = {rank == 1 ? n : rows, cols};
  lockstep_stencil_desc d =
      lockstep_stencil_packed(LOCKSTEP_F32, rank, shape, 1, rank == 1 ? taps : star, LOCKSTEP_BOUNDARY_WRAP);
  d.sweeps = sweeps;
  return d;
}

// body(name, op, description, whether src is dst) for a call of each kind.
template <class Body>
void each_call(const float* src, const Body& body) {
  const int64_t shape[] = {rows, cols / 8, 8};
  const int32_t perm[] = {2, 0, 1}, axes[] = {0, 2};
  const auto run = [&](const char* name, lockstep_op op, const auto& d, bool in_place = false) {
    SCOPED_TRACE(name);
    body(op, &d, in_place);
  };
  run("transpose", LOCKSTEP_TRANSPOSE, lockstep_transpose_packed(4, rows, cols));
  run("transpose in place", LOCKSTEP_TRANSPOSE, lockstep_transpose_packed(4, rows, cols), true);
  run("permute", LOCKSTEP_PERMUTE, lockstep_permute_packed(4, 3, shape, perm));
  for (const lockstep_reduction r : {LOCKSTEP_SUM, LOCKSTEP_ARGMAX, LOCKSTEP_MIN}) {
    run("full", LOCKSTEP_REDUCE, lockstep_reduce_full(r, LOCKSTEP_F32, n, 1));
    run("rows", LOCKSTEP_REDUCE, lockstep_reduce_rows(r, LOCKSTEP_F32, rows, cols, cols));
    run("columns", LOCKSTEP_REDUCE, lockstep_reduce_columns(r, LOCKSTEP_F32, rows, cols, cols));
    run("few rows", LOCKSTEP_REDUCE, lockstep_reduce_rows(r, LOCKSTEP_F32, 3, n / 3, n / 3));
    run("axes", LOCKSTEP_REDUCE_AXES, lockstep_reduce_axes_packed(r, LOCKSTEP_F32, 3, shape, 2, axes));
  }
  run("norm", LOCKSTEP_SQUARE_SUM, lockstep_reduce_full(LOCKSTEP_NORM2, LOCKSTEP_F64, n / 2, 1));
  run("integers", LOCKSTEP_REDUCE, lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_I32, n, 1));
  run("dot", LOCKSTEP_SUMS, lockstep_sums_full(LOCKSTEP_SUMS_DOT, LOCKSTEP_F32, n, src));
  run("moments", LOCKSTEP_SUMS,
      lockstep_sums_rows(LOCKSTEP_SUMS_MEAN_VARIANCE, LOCKSTEP_F32, rows, cols, cols, nullptr, 0));
  run("scan", LOCKSTEP_SCAN, lockstep_scan_full(LOCKSTEP_SUM, LOCKSTEP_F32, n / 2));
  run("scan of columns", LOCKSTEP_SCAN, lockstep_scan_columns(LOCKSTEP_MAX, LOCKSTEP_F32, rows, cols, cols));
  run("rows as layer_norm", LOCKSTEP_NORMALIZE,
      lockstep_normalize_rows(LOCKSTEP_NORMALIZE_LAYER, LOCKSTEP_F32, rows, cols, 1e-5));
  run("a row as rms_norm", LOCKSTEP_NORMALIZE,
      lockstep_normalize_rows(LOCKSTEP_NORMALIZE_RMS, LOCKSTEP_F32, 1, n, 1e-5));
  run("shuffle", LOCKSTEP_SHUFFLE, lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_XOR, 4, n, 32, 3));
  run("convert", LOCKSTEP_CONVERT, lockstep_convert_packed(LOCKSTEP_F32, LOCKSTEP_F16, 0.5, 3, shape, perm));
  run("map", LOCKSTEP_MAP, lockstep_map_packed(LOCKSTEP_MAP_SQRT, LOCKSTEP_F32, LOCKSTEP_F32, 3, shape, perm));
  run("stencil of a line", LOCKSTEP_STENCIL, sweeps_of(1, 3));
  run("stencil of a plane", LOCKSTEP_STENCIL, sweeps_of(2, 5));
  run("one sweep", LOCKSTEP_STENCIL, sweeps_of(2, 1));
}

TEST(Interrupt, TheSameBitsWhereTheProgramMayEndACall) {
  std::vector<float> src(n), want(n), got(n);
  for (int64_t i = 0; i < n; ++i)
    src[static_cast<size_t>(i)] = static_cast<float>((i * 2654435761u) % 100003) / 50000 - 1;
  for (const int threads : {1, 3}) {
    const asked_of c(threads);
    each_call(src.data(), [&](lockstep_op op, const void* d, bool in_place) {
      const auto run = [&](std::vector<float>& dst) {
        if (in_place)
          dst = src;
        else
          std::fill(dst.begin(), dst.end(), 7.0f);
        return lockstep_execute(c.self, op, d, in_place ? dst.data() : src.data(), dst.data(), nullptr);
      };
      lockstep_set_interrupt(nullptr, nullptr);
      const lockstep_status plain = run(want);
      answer no{0};
      lockstep_set_interrupt(answer::give, &no);
      EXPECT_EQ(run(got), plain) << lockstep_last_error();
      EXPECT_EQ(std::memcmp(want.data(), got.data(), n * sizeof(float)), 0) << threads << " threads";
      EXPECT_TRUE(no.asked == 0 || no.thread == std::this_thread::get_id());
    });
  }
}

TEST(Interrupt, ACallOfManySweepsEnds) {
  std::vector<float> src(n, 1.0f), dst(n);
  for (const int threads : {1, 3})
    for (const int32_t rank : {1, 2}) {
      const asked_of c(threads);
      const lockstep_stencil_desc d = sweeps_of(rank, 100'000);  // half an hour
      answer yes{1};
      lockstep_set_interrupt(answer::give, &yes);
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_EQ(lockstep_stencil(c.self, &d, src.data(), dst.data(), nullptr), LOCKSTEP_INTERRUPTED);
      EXPECT_NE(std::string(lockstep_last_error()).find("dst"), std::string::npos) << lockstep_last_error();
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
      EXPECT_EQ(yes.asked, 1);
      EXPECT_EQ(yes.thread, std::this_thread::get_id());
      lockstep_plan* plan = nullptr;
      ASSERT_EQ(lockstep_plan_stencil(c.self, &d, nullptr, &plan), LOCKSTEP_OK);
      EXPECT_EQ(lockstep_plan_execute(plan, src.data(), dst.data(), nullptr), LOCKSTEP_INTERRUPTED);
      lockstep_plan_destroy(plan);
      // The context goes on.
      const lockstep_stencil_desc once = sweeps_of(rank, 1);
      yes.says = 0;
      EXPECT_EQ(lockstep_stencil(c.self, &once, src.data(), dst.data(), nullptr), LOCKSTEP_OK);
      EXPECT_EQ(dst, src);
    }
}

// What one thread's program wants is nothing to another's calls.
TEST(Interrupt, OtherThreadsCallsGoOn) {
  const asked_of c(2);
  std::vector<float> src(n, 1.0f), dst(n), mine(n);
  const lockstep_stencil_desc d = sweeps_of(2, 40), endless = sweeps_of(2, 100'000);
  lockstep_status other = LOCKSTEP_INTERNAL;
  std::thread caller([&] { other = lockstep_stencil(c.self, &d, src.data(), dst.data(), nullptr); });
  answer yes{1};
  lockstep_set_interrupt(answer::give, &yes);
  EXPECT_EQ(lockstep_stencil(c.self, &endless, src.data(), mine.data(), nullptr), LOCKSTEP_INTERRUPTED);
  caller.join();
  EXPECT_EQ(other, LOCKSTEP_OK);
  EXPECT_EQ(dst, src);
}

}  // namespace
}  // namespace lockstep::check
