// limits.cpp - the measured limit of arithmetic is plausible. The module itself checks the results.
#include <algorithm>

#include "gpu.hpp"

namespace lockstep::gpu_test {
namespace {

// The fastest of a few samples, in 10^9 operations a second.
double giga_ops(lockstep_limit limit, double operations) {
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = "cuda";
  lockstep_context* context = nullptr;
  EXPECT_EQ(lockstep_context_create(&o, &context), LOCKSTEP_OK) << lockstep_last_error();
  std::vector<double> ms(9);
  EXPECT_EQ(lockstep_measure_limit(context, "cuda", limit, static_cast<size_t>(operations), 0, 9, ms.data()),
            LOCKSTEP_OK)
      << lockstep_last_error();
  lockstep_context_destroy(context);
  return operations / *std::min_element(ms.begin(), ms.end()) * 1e-6;
}

using limits = gpu;

// No multiprocessor has more than 128 lanes of f32, none runs at 4 GHz; the smallest GPUs do 10^11 a second.
TEST_F(limits, arithmetic) {
  lockstep_device_info info{};
  info.size = sizeof info;
  ASSERT_EQ(lockstep_device_get("cuda", 0, &info), LOCKSTEP_OK);
  const double f32 = giga_ops(LOCKSTEP_LIMIT_FMA_F32, 1e10), f64 = giga_ops(LOCKSTEP_LIMIT_FMA_F64, 1e9);
  EXPECT_GT(f32, 100);
  EXPECT_LT(f32, info.processors * 128 * 2 * 4.0);
  EXPECT_GT(f64, 1);
  EXPECT_LT(f64, f32 * 1.05);
  std::printf("%.5g f32, %.5g f64, 10^9 operations a second\n", f32, f64);
}

}  // namespace
}  // namespace lockstep::gpu_test
