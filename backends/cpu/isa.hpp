// isa.hpp - instruction-set levels of the CPU backend. Micro-kernels in isa/*.cpp
// are compiled once a level (see meson.build: rows of flags), each into its own
// namespace LOCKSTEP_ISA; those files hold straight loops only: no OpenMP, no std
// templates (an -mavx512f copy of a weak std symbol could be linked in for all).
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace lockstep::cpu {

enum class isa { baseline, avx2, avx512 };

// The kernels of one level out of the three that the build made. Where a level
// was not built (another architecture), its table is the baseline's.
template <class Kernels>
const Kernels& choose(isa level, const Kernels& baseline, const Kernels& avx2, const Kernels& avx512) {
  return level == isa::avx512 ? avx512 : level == isa::avx2 ? avx2 : baseline;
}

}  // namespace lockstep::cpu

// Declares the tables of one op's kernels: LOCKSTEP_ISA_TABLES(transpose_kernels, transpose_kernels_of)
// gives `const transpose_kernels& transpose_kernels_of(isa)`.
#if defined(__x86_64__)
#define LOCKSTEP_ISA_TABLES(type, function)                                        \
  namespace lockstep::cpu {                                                        \
  namespace baseline { extern const type function##_table; }                       \
  namespace avx2 { extern const type function##_table; }                           \
  namespace avx512 { extern const type function##_table; }                         \
  inline const type& function(isa level) {                                         \
    return choose(level, baseline::function##_table, avx2::function##_table, avx512::function##_table); \
  }                                                                                \
  }
#else
#define LOCKSTEP_ISA_TABLES(type, function)                                        \
  namespace lockstep::cpu {                                                        \
  namespace baseline { extern const type function##_table; }                       \
  inline const type& function(isa) { return baseline::function##_table; }          \
  }
#endif
