// failures.cpp - out of device memory is recoverable, and under auto the CPU runs the call
// with the same bits; after a sticky error only the backend is lost.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "gpu.hpp"

namespace lockstep::gpu_test {
namespace {

class failures : public gpu {};

// Takes nearly all device memory for its lifetime.
class hog {
 public:
  explicit hog(size_t leave) {
    size_t free_bytes = 0, total = 0;
    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) return;
    for (size_t step = free_bytes; step >= (size_t{1} << 20);) {
      size_t now = 0;
      cudaMemGetInfo(&now, &total);
      if (now <= leave) break;
      step = std::min(step, now - leave);
      void* p = nullptr;
      if (cudaMalloc(&p, step) == cudaSuccess)
        blocks_.push_back(p);
      else
        (void)cudaGetLastError(), step /= 2;
    }
  }
  ~hog() {
    for (void* p : blocks_) cudaFree(p);
  }

 private:
  std::vector<void*> blocks_;
};

TEST_F(failures, out_of_memory_is_clean_and_the_next_call_works) {
  context c("cuda");
  // More than the module's pool keeps; and WRAP is not cut into slabs, which would
  // do with little memory.
  constexpr int64_t n = int64_t{3} << 27;
  const auto src = data<float>(n);
  std::vector<float> want(src.size()), got(src.size());
  const lockstep_options cpu = on("cpu"), cuda = on("cuda");
  const double taps[] = {0.25, 0.5, -0.25};
  const lockstep_stencil_desc d = lockstep_stencil_packed(LOCKSTEP_F32, 1, &n, 1, taps, LOCKSTEP_BOUNDARY_WRAP);
  run(c, d, src.data(), want.data(), &cpu);
  {
    const hog all(size_t{64} << 20);
    const failure f = try_run(c, d, src.data(), got.data(), &cuda);
    EXPECT_EQ(f.status(), LOCKSTEP_OUT_OF_MEMORY) << f.text();
    EXPECT_NE(std::string(f.text()).find("out of device memory"), std::string::npos) << f.text();
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    // The same under auto, with data that draws it to the GPU: the CPU ends it.
    context easy("auto");
    lockstep_options o = lockstep_options_defaults();
    o.flags = LOCKSTEP_DEVICE_DATA;
    const failure none = try_run(easy, d, src.data(), got.data(), &o);
    EXPECT_FALSE(none) << none.text();
    EXPECT_STREQ(last_run().backend, "cpu");
    EXPECT_NE(std::string(last_run().why).find("out of device memory"), std::string::npos) << last_run().why;
    EXPECT_TRUE(same_bits(got, want));
    // A policy forbids that.
    o.flags |= LOCKSTEP_NO_FALLBACK;
    EXPECT_EQ(try_run(easy, d, src.data(), got.data(), &o).status(), LOCKSTEP_OUT_OF_MEMORY);
  }
  std::fill(got.begin(), got.end(), 0.0f);
  run(c, d, src.data(), got.data(), &cuda);
  EXPECT_TRUE(same_bits(got, want));
}

// How much of it belongs to the call is only known on the device.
TEST_F(failures, a_second_array_of_the_host_beside_offsets_of_the_device) {
  context c("cuda");
  const auto x = data<float>(1000), y = data<float>(1000, 2);
  buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, x.size()), other(c, "cuda", LOCKSTEP_DEVICE, y.size());
  in.assign(x), other.assign(y);
  const std::vector<int64_t> offsets = {0, 400, 1000};
  buffer<int64_t> device_offsets(c, "cuda", LOCKSTEP_DEVICE, offsets.size());
  device_offsets.assign(offsets);
  double got[2] = {}, want[2] = {};
  const auto segments = [](const int64_t* at, const float* second) {
    return lockstep_sums_segments(LOCKSTEP_SUMS_DOT, LOCKSTEP_F32, 2, at, second);
  };
  const failure refused = try_run(c, segments(device_offsets.data(), y.data()), in.data(), got);
  EXPECT_EQ(refused.status(), LOCKSTEP_UNSUPPORTED);
  EXPECT_NE(std::string(refused.text()).find("other"), std::string::npos);
  run(c, segments(device_offsets.data(), other.data()), in.data(), got);
  const lockstep_options cpu = on("cpu");
  context host("cpu");
  run(host, segments(offsets.data(), y.data()), x.data(), want, &cpu);
  EXPECT_EQ(got[0], want[0]);
  EXPECT_EQ(got[1], want[1]);
}

// Labels of the device are read by the kernel alone: the first wrong one is named, other rows have their results.
TEST_F(failures, a_label_beyond_its_row_is_named) {
  context c("cuda");
  for (const int64_t length : {int64_t{5}, int64_t{700}, int64_t{5000}, int64_t{40000}, int64_t{300000}}) {
    const auto x = data<float>(3 * length);
    buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, x.size());
    in.assign(x);
    buffer<int64_t> labels(c, "cuda", LOCKSTEP_DEVICE, 3);
    const std::vector<int64_t> right = {0, length - 1, 1};
    lockstep_normalize_desc d = lockstep_normalize_rows(LOCKSTEP_NORMALIZE_PICKED, LOCKSTEP_F32, 3, length, 1);
    d.labels = labels.data();
    std::vector<float> want(3), got(3, -1.0f);
    labels.assign(right);
    run(c, d, in.data(), want.data());
    for (const int64_t wrong : {int64_t{-1}, length}) {
      std::fill(got.begin(), got.end(), -1.0f);
      labels.assign(std::vector<int64_t>{0, wrong, 1});
      const failure f = try_run(c, d, in.data(), got.data());
      EXPECT_EQ(f.status(), LOCKSTEP_INVALID_ARGUMENT) << f.text();
      EXPECT_NE(std::string(f.text()).find("labels[1]"), std::string::npos) << f.text();
    }
    labels.assign(right);
    run(c, d, in.data(), got.data());
    EXPECT_TRUE(same_bits(got, want));
  }
}

// Offsets of the device are compared with the end of src by the kernels: other segments have their results.
TEST_F(failures, an_offset_beyond_the_end_is_named) {
  context c("cuda");
  for (const int64_t each : {int64_t{3}, int64_t{20}, int64_t{300}, int64_t{60000}})
    for (const int64_t count : {int64_t{16}, int64_t{300000}}) {  // many segments: 32 per warp
      if (count * each > int64_t{1} << 24) continue;
      const auto x = data<float>(count * each);
      buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, x.size());
      in.assign(x);
      std::vector<int64_t> offsets(static_cast<size_t>(count) + 1);
      for (int64_t s = 0; s <= count; ++s) offsets[static_cast<size_t>(s)] = s * each;
      buffer<int64_t> there(c, "cuda", LOCKSTEP_DEVICE, offsets.size());
      lockstep_reduce_desc d = lockstep_reduce_segments(LOCKSTEP_SUM, LOCKSTEP_F32, count, there.data());
      d.length = count * each;
      lockstep_options o = on("cuda");
      o.flags = LOCKSTEP_BOUNDED;
      const auto size = static_cast<size_t>(count);
      std::vector<double> want(size), got(size, -1.0);
      there.assign(offsets);
      run(c, d, in.data(), want.data());
      run(c, d, in.data(), got.data(), &o);
      EXPECT_TRUE(same_bits(got, want)) << count << " of " << each;
      offsets.back() = int64_t{1} << 44;
      there.assign(offsets);
      const failure f = try_run(c, d, in.data(), got.data(), &o);
      EXPECT_EQ(f.status(), LOCKSTEP_INVALID_ARGUMENT) << f.text();
      EXPECT_NE(std::string(f.text()).find("offsets[" + std::to_string(count - 1) + "]"), std::string::npos)
          << f.text();
      EXPECT_NE(std::string(f.text()).find("beyond src's end"), std::string::npos) << f.text();
      got.back() = want.back();
      EXPECT_TRUE(same_bits(got, want)) << count << " of " << each;
    }
}

// The child's part: 0, or which expectation failed.
int lose_the_device() {
  context c("cuda");
  const auto src = data<float>(1 << 16);
  buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, src.size());
  in.assign(src);
  // An offset that leads a kernel far outside any allocation.
  const std::vector<int64_t> offsets = {0, int64_t{1} << 44};
  buffer<int64_t> device_offsets(c, "cuda", LOCKSTEP_DEVICE, 2);
  device_offsets.assign(offsets);
  buffer<double> sum(c, "cuda", LOCKSTEP_DEVICE, 1);
  const failure f =
      try_run(c, lockstep_reduce_segments(LOCKSTEP_SUM, LOCKSTEP_F32, 1, device_offsets.data()), in.data(), sum.data());
  if (f.status() != LOCKSTEP_BACKEND_LOST) return 10;
  const failure again = try_run(c, lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, 1 << 16, 1), in.data(), sum.data());
  if (again.status() != LOCKSTEP_BACKEND_LOST) return 11;  // its memory went with it
  double unused = 0;
  if (try_reduce<double, float>(c, LOCKSTEP_SUM, src, unused).status() != LOCKSTEP_NO_BACKEND) return 14;
  context other("auto");
  double total = 0;
  if (try_reduce<double, float>(other, LOCKSTEP_SUM, src, total)) return 12;
  if (std::string(last_run().why).find("lost") == std::string::npos) return 13;
  return 0;
}

// In a process of its own, started anew: after it, CUDA is gone for that process.
TEST_F(failures, a_sticky_error_loses_cuda_and_leaves_the_cpu) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(_exit(lose_the_device()), testing::ExitedWithCode(0), "");
}

TEST_F(failures, a_forked_child_computes_on_the_cpu_and_says_why) {
  context c("auto");
  const auto src = data<float>(100000);
  const lockstep_options cuda = on("cuda");
  double want = 0;
  run(c, lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, 100000, 1), src.data(), &want, &cuda);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    double got = 0;
    const failure f = try_run(c, lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, 100000, 1), src.data(), &got, &cuda);
    if (!f || std::string(f.text()).find("fork") == std::string::npos) _exit(10);
    if (try_run(c, lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, 100000, 1), src.data(), &got)) _exit(11);
    _exit(got == want ? 0 : 12);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace lockstep::gpu_test
