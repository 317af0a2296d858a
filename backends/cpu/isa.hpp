// isa.hpp - instruction-set levels of the CPU backend. Micro-kernels in isa/*.cpp
// are compiled once a level (see meson.build: rows of flags), each into its own
// namespace LOCKSTEP_ISA; those files hold straight loops only: no OpenMP, no std
// templates (an -mavx512f copy of a weak std symbol could be linked in for all).
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace lockstep::cpu {

// avx512_zen4: the same instructions as Zen 4 likes them, which has them by halves (tests/results/tries.md). Reductions
// and stencils of rank 1 without prefetches into L1, a line by two loads of 32 bytes: on one core a plain loop over
// 1 GiB of f64 takes 45 ms, by halves of lines 41.5, and 54 with prefetches 8 KiB ahead; on Zen 5 these take stencils
// of rank 1 from 0.81 to 0.89 of a copy, and reductions take 0.94 to 1.05 of the time without them. f32 become
// doubles by fours, and long sums are loops of few loads (isa/float_sums.cpp); stencils of rank 1 take eight registers
// at once (isa/stencil.cpp). Transposes and permutes by isa/transpose_pipe.hpp.
enum class isa { baseline, avx2, avx512, avx512_zen4 };

// The kernels of one level out of those that the build made. Where a level
// was not built (another architecture), its table is the baseline's.
template <class Kernels>
const Kernels& choose(isa level, const Kernels& baseline, const Kernels& avx2, const Kernels& avx512,
                      const Kernels& avx512_zen4) {
  return level == isa::avx512_zen4 ? avx512_zen4 : level == isa::avx512 ? avx512 : level == isa::avx2 ? avx2 : baseline;
}

}  // namespace lockstep::cpu

// Declares the tables of one op's kernels: LOCKSTEP_ISA_TABLES(transpose_kernels, transpose_kernels_of)
// gives `const transpose_kernels& transpose_kernels_of(isa)`; LOCKSTEP_ZEN4_TABLES, where avx512_zen4 has its own.
#if defined(__x86_64__)
#define LOCKSTEP_TABLES_OF(type, function, plain)                                                      \
  namespace lockstep::cpu {                                                                            \
  namespace baseline {                                                                                 \
  extern const type function##_table;                                                                  \
  }                                                                                                    \
  namespace avx2 {                                                                                     \
  extern const type function##_table;                                                                  \
  }                                                                                                    \
  namespace avx512 {                                                                                   \
  extern const type function##_table;                                                                  \
  }                                                                                                    \
  namespace plain {                                                                                    \
  extern const type function##_table;                                                                  \
  }                                                                                                    \
  inline const type& function(isa level) {                                                             \
    return choose(level, baseline::function##_table, avx2::function##_table, avx512::function##_table, \
                  plain::function##_table);                                                            \
  }                                                                                                    \
  }
#define LOCKSTEP_ISA_TABLES(type, function) LOCKSTEP_TABLES_OF(type, function, avx512)
#define LOCKSTEP_ZEN4_TABLES(type, function) LOCKSTEP_TABLES_OF(type, function, avx512_zen4)
#else
#define LOCKSTEP_ISA_TABLES(type, function)                               \
  namespace lockstep::cpu {                                               \
  namespace baseline {                                                    \
  extern const type function##_table;                                     \
  }                                                                       \
  inline const type& function(isa) { return baseline::function##_table; } \
  }
#define LOCKSTEP_ZEN4_TABLES(type, function) LOCKSTEP_ISA_TABLES(type, function)
#endif
