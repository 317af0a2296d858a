// limits.cpp - the arithmetic limits of lockstep_measure_limit are plausible. It checks its results itself.
#include <algorithm>
#include <cfenv>
#include <string>
#include <vector>

#include "check.hpp"

namespace lockstep::check {
namespace {

// The fastest of a few samples, in 10^9 operations a second.
double giga_ops(const char* isa, int threads, lockstep_limit limit, double operations = 2e7) {
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = "cpu";
  o.cpu_isa = isa;
  o.threads = threads;
  lockstep_context* context = nullptr;
  EXPECT_EQ(lockstep_context_create(&o, &context), LOCKSTEP_OK) << lockstep_last_error();
  std::vector<double> ms(9);
  EXPECT_EQ(lockstep_measure_limit(context, "cpu", limit, static_cast<size_t>(operations), 0, 9, ms.data()),
            LOCKSTEP_OK)
      << lockstep_last_error();
  lockstep_context_destroy(context);
  return operations / *std::min_element(ms.begin(), ms.end()) * 1e-6;
}

// Two ports of 64-byte registers at 6 GHz are the most that any core is known to have; scalar calls of libm's emulation
// do some ten million a second.
TEST(Limits, ArithmeticOfOneThread) {
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    lockstep_context_options o = lockstep_context_defaults();
    o.backend = "cpu";
    o.cpu_isa = isa;
    lockstep_context* context = nullptr;
    if (lockstep_context_create(&o, &context) != LOCKSTEP_OK) continue;  // not on this processor
    lockstep_context_destroy(context);
    const bool vectors = std::string(isa) != "baseline";
    const double operations = vectors ? 2e7 : 1e6;
    const double f32 = giga_ops(isa, 1, LOCKSTEP_LIMIT_FMA_F32, operations);
    const double f64 = giga_ops(isa, 1, LOCKSTEP_LIMIT_FMA_F64, operations);
    EXPECT_GT(f64, vectors ? 1 : 0.01) << isa;
    EXPECT_LT(f32, 2.0 * 2 * 16 * 6) << isa;
    EXPECT_LT(f64, 2.0 * 2 * 8 * 6) << isa;
    if (vectors) {
      EXPECT_GT(f32, 0.7 * f64) << isa;  // twice, on an idle machine
    }
    std::printf("%s: %.4g f32, %.4g f64, 10^9 operations a second\n", isa, f32, f64);
  }
}

TEST(Limits, ArithmeticScalesWithWhatIsAskedFor) {
  // A block of 12 chains is far more than two operations: their share of it is taken.
  const double few = giga_ops(nullptr, 1, LOCKSTEP_LIMIT_FMA_F32, 2),
               many = giga_ops(nullptr, 1, LOCKSTEP_LIMIT_FMA_F32);
  EXPECT_GT(few, many / 20);
  EXPECT_LT(few, many * 20);
}

TEST(Limits, ArithmeticWhateverTheCallersRounding) {
  std::fesetround(FE_UPWARD);
  EXPECT_GT(giga_ops(nullptr, 2, LOCKSTEP_LIMIT_FMA_F64), 0.01);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
}

}  // namespace
}  // namespace lockstep::check
