// convert_kernels.hpp - the micro-kernels of convert (isa/convert.cpp).
#pragma once

#include "isa.hpp"
#include "lockstep/lockstep.h"

namespace lockstep::cpu {

struct convert_kernels {
  // dst[i] = src[i] * scale for i < n, both contiguous, at any address; by dtype less one, of src and of dst: F16,
  // BF16, F32, F64. With stream, the whole lines of dst are written non-temporally (transpose_kernels' fence orders
  // them).
  void (*run[4][4])(const void* src, void* dst, int64_t n, double scale, bool stream);
};

struct function_kernels {
  // x[i] = function(x[i]) for i < n, by lockstep_function. n is a multiple of 8.
  void (*apply[LOCKSTEP_FUNCTION_COUNT])(double* x, int64_t n);
  // x[i] = x[i] * scale * by[i], the second product rounded to odd, for a shorter type. n is a multiple of 8.
  void (*products)(double* x, const double* by, int64_t n, double scale);
  // Of n elements x, by dtype less one, where d = (x - centre) * scale is below or equal to 0 and no NaN: to[i] =
  // exp(d) and d - less. to has room for n rounded up to a multiple of 8.
  void (*exponentials[4])(const void* x, int64_t n, double centre, double scale, double* to);
  void (*differences[4])(const void* x, int64_t n, double centre, double scale, double less, double* to);
};

// n integers or booleans, by dtype less LOCKSTEP_I32.
struct integer_kernels {
  // odd: those beyond 2^53 are rounded to odd, for a second rounding; else to nearest.
  void (*to_doubles[9])(const void* src, double* x, int64_t n, bool odd);
  void (*from_doubles[9])(const double* x, void* dst, int64_t n);
  void (*to_integers[9])(const void* src, int64_t* x, int64_t n);
  void (*from_integers[9])(const int64_t* x, void* dst, int64_t n);
};

}  // namespace lockstep::cpu

LOCKSTEP_ISA_TABLES(integer_kernels, integers)
LOCKSTEP_ISA_TABLES(convert_kernels, converters)
LOCKSTEP_ISA_TABLES(function_kernels, functions_of)
