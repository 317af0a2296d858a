// isa.hpp - instruction-set levels of the CPU backend. Micro-kernels in isa/*.cpp
// are compiled once for each level (see meson.build: rows of flags), each into its own
// namespace LOCKSTEP_ISA. Those files use no OpenMP and no std templates, because the
// linker could pick an -mavx512f copy of a weak std symbol for the whole library.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace lockstep::cpu {

enum class isa { baseline, avx2, avx512 };

// The sets of kernels that isa/*.cpp is compiled to: one for each level, and for AVX-512 a second one for chips that
// execute 512-bit operations as two halves (tuning.hpp, halves). A set that was not built (on another architecture) has
// the tables of the baseline.
enum class kernel_set { baseline, avx2, avx512, avx512_halves };

constexpr kernel_set kernels_for(isa level, bool halves) {
  return level == isa::avx512 && halves ? kernel_set::avx512_halves : static_cast<kernel_set>(level);
}

template <class Kernels>
const Kernels& choose(kernel_set set, const Kernels& baseline, const Kernels& avx2, const Kernels& avx512,
                      const Kernels& avx512_halves) {
  return set == kernel_set::avx512_halves ? avx512_halves
         : set == kernel_set::avx512      ? avx512
         : set == kernel_set::avx2        ? avx2
                                          : baseline;
}

}  // namespace lockstep::cpu

// Declares the tables of one op's kernels: LOCKSTEP_ISA_TABLES(transpose_kernels, transpose_kernels_of)
// gives `const transpose_kernels& transpose_kernels_of(kernel_set)`. LOCKSTEP_HALVES_TABLES: for ops that have kernels
// of their own for avx512_halves.
#if defined(__x86_64__)
#define LOCKSTEP_TABLES_OF(type, function, plain)                                                    \
  namespace lockstep::cpu {                                                                          \
  namespace baseline {                                                                               \
  extern const type function##_table;                                                                \
  }                                                                                                  \
  namespace avx2 {                                                                                   \
  extern const type function##_table;                                                                \
  }                                                                                                  \
  namespace avx512 {                                                                                 \
  extern const type function##_table;                                                                \
  }                                                                                                  \
  namespace plain {                                                                                  \
  extern const type function##_table;                                                                \
  }                                                                                                  \
  inline const type& function(kernel_set set) {                                                      \
    return choose(set, baseline::function##_table, avx2::function##_table, avx512::function##_table, \
                  plain::function##_table);                                                          \
  }                                                                                                  \
  }
#define LOCKSTEP_ISA_TABLES(type, function) LOCKSTEP_TABLES_OF(type, function, avx512)
#define LOCKSTEP_HALVES_TABLES(type, function) LOCKSTEP_TABLES_OF(type, function, avx512_halves)
#else
#define LOCKSTEP_ISA_TABLES(type, function)                                      \
  namespace lockstep::cpu {                                                      \
  namespace baseline {                                                           \
  extern const type function##_table;                                            \
  }                                                                              \
  inline const type& function(kernel_set) { return baseline::function##_table; } \
  }
#define LOCKSTEP_HALVES_TABLES(type, function) LOCKSTEP_ISA_TABLES(type, function)
#endif
