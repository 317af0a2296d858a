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

// x[i] = function(x[i]) for i < n, by lockstep_function. n is a multiple of 8.
struct function_kernels {
  void (*apply[LOCKSTEP_FUNCTION_COUNT])(double* x, int64_t n);
};

}  // namespace lockstep::cpu

LOCKSTEP_ISA_TABLES(convert_kernels, converters)
LOCKSTEP_ISA_TABLES(function_kernels, functions_of)
