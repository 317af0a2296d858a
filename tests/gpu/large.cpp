// large.cpp - beyond 2^31 and 2^32 elements, beyond 65,535 rows of tiles: the real
// public calls, against the CPU bit for bit.
#include <unistd.h>

#include "gpu.hpp"

namespace lockstep::gpu_test {
namespace {

class large : public gpu {
 protected:
  // Host and device must hold what the test needs.
  static bool fits(size_t host_bytes, size_t device_bytes) {
    size_t free_bytes = 0, total = 0;
    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess || free_bytes < device_bytes + (size_t{1} << 30))
      return false;
    return static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE)) >
           host_bytes + (size_t{2} << 30);
  }
};

// memory that new does not touch twice
template <class T>
using block = std::unique_ptr<T[]>;
template <class T>
block<T> uninitialised(size_t n) { return block<T>(new T[n]); }

TEST_F(large, transpose_of_more_than_2_32_bytes) {
  constexpr int64_t rows = 70001, cols = 62003;  // 4.34e9 elements of one byte
  constexpr size_t n = static_cast<size_t>(rows) * cols;
  if (!fits(3 * n, 2 * n))
    GTEST_SKIP() << "needs " << 3 * n << " bytes of host memory and " << 2 * n << " on the device";
  context c("cuda");
  auto src = uninitialised<uint8_t>(n), want = uninitialised<uint8_t>(n), got = uninitialised<uint8_t>(n);
  for (size_t i = 0; i < n; ++i) src[i] = static_cast<uint8_t>(i * 167 + (i >> 13));
  const lockstep_transpose_desc d = lockstep_transpose_packed(1, rows, cols);
  const lockstep_options cpu = on("cpu"), cuda = on("cuda");
  run(c, d, src.get(), want.get(), &cpu);
  buffer<uint8_t> in(c, "cuda", LOCKSTEP_DEVICE, n), out(c, "cuda", LOCKSTEP_DEVICE, n);
  in.assign({src.get(), n});
  run(c, d, in.data(), out.data(), &cuda);
  out.copy_to({got.get(), n});
  EXPECT_EQ(std::memcmp(got.get(), want.get(), n), 0);
}

TEST_F(large, narrow_transposes_with_more_than_65535_tiles) {
  constexpr int64_t rows = 5000011, cols = 3;
  context c("cuda");
  const auto src = data<float>(static_cast<size_t>(rows * cols));
  std::vector<float> want(src.size()), got(src.size());
  const lockstep_options cpu = on("cpu");
  for (int32_t v = 0; v < lockstep_variant_count("cuda", LOCKSTEP_TRANSPOSE); ++v) {
    lockstep_variant_info info{};
    info.size = sizeof info;
    failure(lockstep_variant_get("cuda", LOCKSTEP_TRANSPOSE, v, &info)).raise();
    lockstep_options cuda = on("cuda");
    cuda.variant = info.name;
    for (const bool tall : {true, false}) {
      SCOPED_TRACE(std::string(info.name) + (tall ? " tall" : " wide"));
      const auto d = tall ? lockstep_transpose_packed(4, rows, cols) : lockstep_transpose_packed(4, cols, rows);
      run(c, d, src.data(), want.data(), &cpu);
      std::fill(got.begin(), got.end(), -1.0f);  // not what the variant before left
      if (const failure f = try_run(c, d, src.data(), got.data(), &cuda)) {
        EXPECT_EQ(f.status(), LOCKSTEP_UNSUPPORTED) << f.text();
        continue;
      }
      EXPECT_TRUE(same_bits(got, want));
    }
  }
}

TEST_F(large, sums_and_stencil_of_more_than_2_31_elements) {
  constexpr size_t n = (size_t{1} << 31) + 12347;
  if (!fits(3 * n * 4, 2 * n * 4))
    GTEST_SKIP() << "needs " << 12 * n << " bytes of host memory and " << 8 * n << " on the device";
  context c("cuda");
  auto src = uninitialised<float>(n), want = uninitialised<float>(n), got = uninitialised<float>(n);
  for (size_t i = 0; i < n; ++i)
    src[i] = static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(i) * 2654435761u)) * 0x1p-20f;
  buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, n), out(c, "cuda", LOCKSTEP_DEVICE, n);
  in.assign({src.get(), n});
  const lockstep_options cpu = on("cpu"), cuda = on("cuda");
  const auto count = static_cast<int64_t>(n);
  for (const lockstep_reduction what : {LOCKSTEP_SUM, LOCKSTEP_SUM_OF_SQUARES}) {
    double a = 0, b = 1;
    run(c, lockstep_reduce_full(what, LOCKSTEP_F32, count, 1), src.get(), &a, &cpu);
    run(c, lockstep_reduce_full(what, LOCKSTEP_F32, count, 1), in.data(), &b, &cuda);
    EXPECT_EQ(a, b);
  }
  int64_t first = 0, second = 1;
  src[n - 2] = 4096.0f;
  in.assign({src.get(), n});
  run(c, lockstep_reduce_full(LOCKSTEP_ARGMAX, LOCKSTEP_F32, count, 1), src.get(), &first, &cpu);
  run(c, lockstep_reduce_full(LOCKSTEP_ARGMAX, LOCKSTEP_F32, count, 1), in.data(), &second, &cuda);
  EXPECT_EQ(first, count - 2);
  EXPECT_EQ(second, first);
  const double coefficients[] = {0.5, 0.25, -0.125};
  const lockstep_stencil_desc d =
      lockstep_stencil_packed(LOCKSTEP_F32, 1, &count, 1, coefficients, LOCKSTEP_BOUNDARY_WRAP);
  run(c, d, src.get(), want.get(), &cpu);
  run(c, d, in.data(), out.data(), &cuda);
  out.copy_to({got.get(), n});
  EXPECT_EQ(std::memcmp(got.get(), want.get(), n * 4), 0);
}

TEST_F(large, more_than_65535_rows_and_columns) {
  constexpr int64_t rows = 200003, cols = 70;
  context c("cuda");
  const auto src = data<float>(static_cast<size_t>(rows * cols));
  const lockstep_options cpu = on("cpu"), cuda = on("cuda");
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
