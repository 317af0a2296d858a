// float_environment.hpp - sets the floating-point mode that the order needs, whatever the caller has set.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cfenv>
#include <cstdint>

namespace lockstep {

// Round to nearest even, denormals kept, no traps. The destructor restores the caller's
// state and exception flags. fesetenv(FE_DFL_ENV) covers MXCSR (with FTZ and DAZ) on x86
// and FPCR on aarch64. It also loads and stores the whole x87 environment, which is slow,
// so only MXCSR is set when x87 is already in its default state.
class default_float_environment {
 public:
  default_float_environment() {
#if defined(__x86_64__)
    uint16_t x87;
    asm volatile("fnstcw %0" : "=m"(x87));
    whole_ = (x87 & 0x0F3F) != 0x033F;  // to nearest, 64 bits, no traps
    mxcsr_ = _mm_getcsr();
    if (!whole_) {
      _mm_setcsr(0x1F80);
      return;
    }
#endif
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~default_float_environment() {
#if defined(__x86_64__)
    if (!whole_) {
      _mm_setcsr(mxcsr_);
      return;
    }
#endif
    std::fesetenv(&saved_);
  }
  default_float_environment(const default_float_environment&) = delete;
  default_float_environment& operator=(const default_float_environment&) = delete;

 private:
  std::fenv_t saved_;
#if defined(__x86_64__)
  bool whole_;
  unsigned mxcsr_;
#endif
};

}  // namespace lockstep
