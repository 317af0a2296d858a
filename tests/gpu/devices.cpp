// devices.cpp - several devices: each computes the same bits, data may live on any,
// the caller's current device stays.
#include <thread>

#include "gpu.hpp"

namespace lockstep::gpu_test {
namespace {

class several : public gpu {
 protected:
  void SetUp() override {
    gpu::SetUp();
    if (!IsSkipped() && devices() < 2) GTEST_SKIP() << "needs two devices";
  }
};

TEST_F(several, each_device_gives_the_same_bits_and_is_reported) {
  context c("auto");
  const auto src = data<float>(3000017);
  const lockstep_options cpu = on("cpu");
  const double want = square_sum<float>(c, src, &cpu);
  for (int i = 0; i < devices(); ++i) {
    const std::string name = "cuda:" + std::to_string(i);
    const lockstep_options o = on(name.c_str());
    EXPECT_EQ(square_sum<float>(c, src, &o), want);
    EXPECT_EQ(last_run().device, i);
    int current = -1;
    ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 0);
  }
}

TEST_F(several, auto_goes_where_the_data_is) {
  context c("auto");
  const auto src = data<float>(1 << 20);
  const lockstep_options cpu = on("cpu");
  const double want = square_sum<float>(c, src, &cpu);
  buffer<float> in(c, "cuda:1", LOCKSTEP_DEVICE, src.size());
  in.assign(src);
  double got = 0;
  run(c, lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, 1 << 20, 1), in.data(), &got);
  EXPECT_STREQ(last_run().backend, "cuda");
  EXPECT_EQ(last_run().device, 1);
  EXPECT_EQ(got, want);
}

TEST_F(several, data_of_one_device_computed_on_the_other) {
  context c("auto");
  constexpr int64_t rows = 700, cols = 1234;
  const auto src = data<float>(rows * cols);
  std::vector<float> want(src.size()), got(src.size());
  const lockstep_options cpu = on("cpu"), first = on("cuda:0");
  transpose<float>(c, src, want, rows, cols, &cpu);
  buffer<float> in(c, "cuda:1", LOCKSTEP_DEVICE, src.size()), out(c, "cuda:1", LOCKSTEP_DEVICE, src.size());
  in.assign(src);
  run(c, lockstep_transpose_packed(4, rows, cols), in.data(), out.data(), &first);
  EXPECT_EQ(last_run().device, 0);
  out.copy_to(got);
  EXPECT_TRUE(same_bits(got, want));
}

TEST_F(several, all_devices_at_once_from_their_own_threads) {
  context c("auto");
  const auto src = data<double>(2000003);
  const lockstep_options cpu = on("cpu");
  const double want = norm2<double>(c, src, &cpu);
  std::vector<std::thread> threads;
  std::vector<int> wrong(static_cast<size_t>(devices()), 0);
  for (int i = 0; i < devices(); ++i)
    threads.emplace_back([&, i] {
      const std::string name = "cuda:" + std::to_string(i);
      const lockstep_options o = on(name.c_str());
      for (int k = 0; k < 20; ++k) {
        double got = 0;
        if (try_reduce<double, double>(c, LOCKSTEP_NORM2, src, got, &o) || got != want) ++wrong[static_cast<size_t>(i)];
      }
    });
  for (std::thread& t : threads) t.join();
  for (const int w : wrong) EXPECT_EQ(w, 0);
}

}  // namespace
}  // namespace lockstep::gpu_test
