// large.cpp - beyond 2^31 and 2^32 elements, beyond 65,535 rows of tiles: the real
// public calls, against the CPU bit for bit.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <thread>

#include "gpu.hpp"

namespace lockstep::gpu_test {
namespace {

template <class T>
using block = std::unique_ptr<T[]>;

// body(begin, end) over parts of n elements, a thread each: one alone takes a second a GiB to touch memory first.
template <class Body>
void in_threads(size_t n, const Body& body) {
  const size_t parts = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (size_t k = 0; k < parts; ++k)
    threads.emplace_back([&, k] { body(n / parts * k, k + 1 == parts ? n : n / parts * (k + 1)); });
  for (std::thread& t : threads) t.join();
}
template <class T, class Value>
block<T> filled(size_t n, const Value& value) {
  block<T> all(new T[n]);
  in_threads(n, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) all[i] = value(i);
  });
  return all;
}
template <class T>
block<T> poisoned(size_t n) {
  return filled<T>(n, [](size_t) { return T(-7); });
}
template <class T>
bool equal(const block<T>& a, const block<T>& b, size_t n) {
  std::atomic<bool> same{true};
  in_threads(n, [&](size_t begin, size_t end) {
    if (std::memcmp(a.get() + begin, b.get() + begin, (end - begin) * sizeof(T)) != 0) same = false;
  });
  return same;
}

// Host and device must hold what the test needs.
bool fits(size_t host_bytes, size_t device_bytes) {
  size_t free_bytes = 0, total = 0;
  if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess || free_bytes < device_bytes + (size_t{1} << 30)) return false;
  return static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE)) >
         host_bytes + (size_t{2} << 30);
}

// What several tests read: a little more than 2^31 floats, here and on the device.
struct floats {
  static constexpr size_t n = (size_t{1} << 31) + 123457;
  static constexpr auto count = static_cast<int64_t>(n);
  static constexpr const char* needs = "needs 24 GiB of host memory and 16 on the device";
  context c{"cuda"};
  block<float> src = filled<float>(n, [](size_t i) {
    if (i == n - 2) return 4096.0f;  // the largest
    return static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(i) * 2654435761u)) * 0x1p-20f;
  });
  buffer<float> in{c, "cuda", LOCKSTEP_DEVICE, n};
  floats() { in.assign({src.get(), n}); }
};

class large : public gpu {
 protected:
  // nullptr: not enough memory for it, one more array on the device and two more on the host.
  static floats* shared() {
    if (all == nullptr && fits(3 * floats::n * 4, 2 * floats::n * 4)) all = std::make_unique<floats>();
    return all.get();
  }
  static void TearDownTestSuite() { all.reset(); }
  const lockstep_options cpu = on("cpu"), cuda = on("cuda");

 private:
  static inline std::unique_ptr<floats> all;
};

TEST_F(large, transpose_of_more_than_2_32_bytes) {
  constexpr int64_t rows = 70001, cols = 62003;  // 4.34e9 elements of one byte
  constexpr size_t n = static_cast<size_t>(rows) * cols;
  if (!fits(3 * n, 2 * n))
    GTEST_SKIP() << "needs " << 3 * n << " bytes of host memory and " << 2 * n << " on the device";
  context c("cuda");
  const auto src = filled<uint8_t>(n, [](size_t i) { return static_cast<uint8_t>(i * 167 + (i >> 13)); });
  auto want = poisoned<uint8_t>(n), got = poisoned<uint8_t>(n);
  const lockstep_transpose_desc d = lockstep_transpose_packed(1, rows, cols);
  run(c, d, src.get(), want.get(), &cpu);
  buffer<uint8_t> in(c, "cuda", LOCKSTEP_DEVICE, n), out(c, "cuda", LOCKSTEP_DEVICE, n);
  in.assign({src.get(), n});
  run(c, d, in.data(), out.data(), &cuda);
  out.copy_to({got.get(), n});
  EXPECT_TRUE(equal(got, want, n));
}

// Odd axes stay bytes: every variant sees more than 2^31 elements, and those that divide by
// 31-bit numbers cut them in parts.
TEST_F(large, permute_of_more_than_2_31_elements) {
  constexpr int64_t shape[] = {1291, 1291, 1289};
  constexpr int32_t perm[] = {2, 1, 0};
  constexpr size_t n = size_t{1291} * 1291 * 1289;
  static_assert(n > size_t{1} << 31);
  if (!fits(3 * n, 2 * n))
    GTEST_SKIP() << "needs " << 3 * n << " bytes of host memory and " << 2 * n << " on the device";
  context c("cuda");
  const auto src = filled<uint8_t>(n, [](size_t i) { return static_cast<uint8_t>(i * 167 + (i >> 13)); });
  auto want = poisoned<uint8_t>(n), got = poisoned<uint8_t>(n);
  const lockstep_permute_desc d = lockstep_permute_packed(1, 3, shape, perm);
  run(c, d, src.get(), want.get(), &cpu);
  buffer<uint8_t> in(c, "cuda", LOCKSTEP_DEVICE, n), out(c, "cuda", LOCKSTEP_DEVICE, n);
  in.assign({src.get(), n});
  for (int32_t v = 0; v < lockstep_variant_count("cuda", LOCKSTEP_PERMUTE); ++v) {
    lockstep_variant_info info{};
    info.size = sizeof info;
    failure(lockstep_variant_get("cuda", LOCKSTEP_PERMUTE, v, &info)).raise();
    SCOPED_TRACE(info.name);
    ASSERT_EQ(cudaMemset(out.data(), 0xee, n), cudaSuccess);  // not what the variant before left
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);          // the library's stream does not wait for it
    lockstep_options forced = cuda;
    forced.variant = info.name;
    const failure f = try_run(c, d, in.data(), out.data(), &forced);
    if (std::string(info.name) == "registers" || std::string(info.name) == "pixels") {  // rows of 1,289 bytes
      EXPECT_EQ(f.status(), LOCKSTEP_UNSUPPORTED) << f.text();
      continue;
    }
    f.raise();
    out.copy_to({got.get(), n});
    EXPECT_TRUE(equal(got, want, n));
  }
}

// Arrays so much larger than the L2 that the kernels keep the lines they read (backends/cuda/kernel/cache.cuh): tiles
// that are full, or cut short on a side; rows aligned on both sides, on one, on none.
TEST_F(large, moves_that_keep_lines) {
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  const auto n = static_cast<size_t>(properties.l2CacheSize) * 6;
  if (!fits(3 * n, 2 * n))
    GTEST_SKIP() << "needs " << 3 * n << " bytes of host memory and " << 2 * n << " on the device";
  context c("cuda");
  const auto src = filled<uint8_t>(n, [](size_t i) { return static_cast<uint8_t>(i * 167 + (i >> 13)); });
  auto want = poisoned<uint8_t>(n), got = poisoned<uint8_t>(n);
  buffer<uint8_t> in(c, "cuda", LOCKSTEP_DEVICE, n), out(c, "cuda", LOCKSTEP_DEVICE, n);
  in.assign({src.get(), n});
  const auto compare = [&](const auto& d, size_t moved) {
    ASSERT_LE(moved, n);
    ASSERT_GE(moved, static_cast<size_t>(properties.l2CacheSize) * 4);  // keeps_reads
    run(c, d, src.get(), want.get(), &cpu);
    ASSERT_EQ(cudaMemset(out.data(), 0xee, n), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    run(c, d, in.data(), out.data(), &cuda);
    out.copy_to({got.get(), n});
    EXPECT_TRUE(equal(got, want, moved));
  };
  for (const size_t bytes : {1, 2, 4, 8, 16}) {
    const auto narrow = static_cast<int64_t>(32 / bytes), step = static_cast<int64_t>(512 / bytes);  // rows of a tile
    const auto compare_matrix = [&](int64_t rows, int64_t cols) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + ", bytes " + std::to_string(bytes));
      compare(lockstep_transpose_packed(bytes, rows, cols), static_cast<size_t>(rows * cols) * bytes);
    };
    for (const int64_t cols : {int64_t{8192}, int64_t{8191}, int64_t{8196}, narrow})
      for (const int64_t fewer : {0, 3})
        compare_matrix(static_cast<int64_t>(n / bytes) / cols / step * step - fewer, cols);
    compare_matrix(narrow, static_cast<int64_t>(n / 32) / 256 * 256);
  }
  const int64_t runs[] = {64, static_cast<int64_t>(n / 4) / (64 * 96 * 160), 96, 160};
  const int32_t middle[] = {0, 2, 1, 3};
  compare(lockstep_permute_packed(4, 4, runs, middle), static_cast<size_t>(64 * runs[1] * 96 * 160) * 4);
  const int32_t rows_first[] = {3, 0, 2, 1};
  for (const int64_t row : {4, 8, 12}) {  // of a thread (registers.cu)
    const int64_t shape[] = {static_cast<int64_t>(n / 4) / (28 * 36 * row), 28, 36, row};
    compare(lockstep_permute_packed(4, 4, shape, rows_first), static_cast<size_t>(shape[0] * 28 * 36 * row) * 4);
  }
}

TEST_F(large, narrow_transposes_with_more_than_65535_tiles) {
  constexpr int64_t rows = 5000011, cols = 3;
  context c("cuda");
  const auto src = data<float>(static_cast<size_t>(rows * cols));
  std::vector<float> want(src.size()), got(src.size());
  std::set<std::string> refused;
  for (int32_t v = 0; v < lockstep_variant_count("cuda", LOCKSTEP_TRANSPOSE); ++v) {
    lockstep_variant_info info{};
    info.size = sizeof info;
    failure(lockstep_variant_get("cuda", LOCKSTEP_TRANSPOSE, v, &info)).raise();
    lockstep_options forced = cuda;
    forced.variant = info.name;
    for (const bool tall : {true, false}) {
      SCOPED_TRACE(std::string(info.name) + (tall ? " tall" : " wide"));
      const auto d = tall ? lockstep_transpose_packed(4, rows, cols) : lockstep_transpose_packed(4, cols, rows);
      run(c, d, src.data(), want.data(), &cpu);
      std::fill(got.begin(), got.end(), -1.0f);  // not what the variant before left
      if (const failure f = try_run(c, d, src.data(), got.data(), &forced)) {
        EXPECT_EQ(f.status(), LOCKSTEP_UNSUPPORTED) << f.text();
        refused.insert(info.name);
        continue;
      }
      EXPECT_TRUE(same_bits(got, want));
    }
  }
  // For small calls; for rows of whole 16 bytes; for squares in place.
  EXPECT_EQ(refused, (std::set<std::string>{"grouped", "pixels", "swap_tiles"}));
}

TEST_F(large, sums_of_more_than_2_31_elements) {
  floats* const f = shared();
  if (f == nullptr) GTEST_SKIP() << floats::needs;
  for (const lockstep_reduction what : {LOCKSTEP_SUM, LOCKSTEP_SUM_OF_SQUARES}) {
    double want = 0, got = 1;
    run(f->c, lockstep_reduce_full(what, LOCKSTEP_F32, f->count, 1), f->src.get(), &want, &cpu);
    run(f->c, lockstep_reduce_full(what, LOCKSTEP_F32, f->count, 1), f->in.data(), &got, &cuda);
    EXPECT_EQ(got, want);
  }
  int64_t want = 0, got = 1;
  run(f->c, lockstep_reduce_full(LOCKSTEP_ARGMAX, LOCKSTEP_F32, f->count, 1), f->src.get(), &want, &cpu);
  run(f->c, lockstep_reduce_full(LOCKSTEP_ARGMAX, LOCKSTEP_F32, f->count, 1), f->in.data(), &got, &cuda);
  EXPECT_EQ(want, f->count - 2);
  EXPECT_EQ(got, want);
}

TEST_F(large, rows_columns_and_segments_of_more_than_2_31_elements) {
  floats* const f = shared();
  if (f == nullptr) GTEST_SKIP() << floats::needs;
  constexpr int64_t rows = 65537, cols = 32768;
  static_assert(rows * cols > int64_t{1} << 31 && rows * cols <= floats::count);
  const std::vector<int64_t> offsets = {0, 5, floats::count - 7, floats::count};
  const std::pair<const char*, lockstep_reduce_desc> all[] = {
      {"rows", lockstep_reduce_rows(LOCKSTEP_SUM, LOCKSTEP_F32, rows, cols, cols)},
      {"argmax of rows", lockstep_reduce_rows(LOCKSTEP_ARGMAX, LOCKSTEP_F32, rows, cols, cols)},
      {"short rows", lockstep_reduce_rows(LOCKSTEP_SUM, LOCKSTEP_F32, f->count / 96, 96, 96)},
      {"columns", lockstep_reduce_columns(LOCKSTEP_SUM, LOCKSTEP_F32, rows, cols, cols)},
      {"segments", lockstep_reduce_segments(LOCKSTEP_SUM, LOCKSTEP_F32, 3, offsets.data())},
  };
  for (const auto& [name, d] : all) {
    SCOPED_TRACE(name);
    std::vector<int64_t> want(static_cast<size_t>(d.count)), got(want.size(), -7);  // results have 8 bytes
    run(f->c, d, f->src.get(), want.data(), &cpu);
    run(f->c, d, f->in.data(), got.data(), &cuda);
    EXPECT_TRUE(same_bits(got, want));
  }
}

TEST_F(large, stencil_and_shuffle_of_more_than_2_31_elements) {
  floats* const f = shared();
  if (f == nullptr) GTEST_SKIP() << floats::needs;
  auto want = poisoned<float>(f->n), got = poisoned<float>(f->n);
  buffer<float> out(f->c, "cuda", LOCKSTEP_DEVICE, f->n);
  const auto compare = [&](const auto& d, const char* name) {
    run(f->c, d, f->src.get(), want.get(), &cpu);
    run(f->c, d, f->in.data(), out.data(), &cuda);
    out.copy_to({got.get(), f->n});
    EXPECT_TRUE(equal(got, want, f->n)) << name;
  };
  const double coefficients[] = {0.5, 0.25, -0.125};
  compare(lockstep_stencil_packed(LOCKSTEP_F32, 1, &floats::count, 1, coefficients, LOCKSTEP_BOUNDARY_WRAP), "stencil");
  // The last, incomplete warp is left as the stencil has made it, on both sides.
  compare(lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_UP, 4, floats::count / 32 * 32, 16, 3), "shuffle");
}

TEST_F(large, more_than_65535_rows_and_columns) {
  constexpr int64_t rows = 200003, cols = 70;
  context c("cuda");
  const auto src = data<float>(static_cast<size_t>(rows * cols));
  for (const along way : {along::rows, along::columns})
    for (const bool tall : {true, false}) {
      const int64_t r = tall ? rows : cols, k = tall ? cols : rows;
      std::vector<double> want(static_cast<size_t>(way == along::rows ? r : k)), got(want.size());
      reduce_matrix<double, float>(c, LOCKSTEP_SUM, way, src, want, r, k, &cpu);
      reduce_matrix<double, float>(c, LOCKSTEP_SUM, way, src, got, r, k, &cuda);
      EXPECT_TRUE(same_bits(got, want)) << (way == along::rows ? "rows " : "columns ") << r << " x " << k;
    }
}

}  // namespace
}  // namespace lockstep::gpu_test
