// limits.hpp - the plain loops that measure memory's limits, one set an ISA level.
#pragma once

#include "../isa.hpp"

namespace lockstep::cpu {
struct limit_kernels {
  void (*copy)(unsigned char* dst, const unsigned char* src, int64_t bytes);
  void (*copy_streaming)(unsigned char* dst, const unsigned char* src, int64_t bytes);  // non-temporal stores
  uint64_t (*read)(const unsigned char* src, int64_t bytes);
  uint64_t (*read_prefetched)(const unsigned char* src, int64_t bytes);
  uint64_t (*read_two)(const unsigned char* src, int64_t bytes);
};
}  // namespace lockstep::cpu
LOCKSTEP_ISA_TABLES(limit_kernels, limit_kernels_of)
