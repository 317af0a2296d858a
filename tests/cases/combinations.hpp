// combinations.hpp - every combination of op, types, kinds and layout that the library's validation may accept, as
// small calls: what each backend must have a row for. The lists say what is tried; the library says what of it is a
// call.
#pragma once

#include <lockstep/lockstep.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::cases {

// Bytes that src, dst and any other array of a combination have at most.
constexpr size_t combination_bytes = size_t{1} << 16;

struct combination {
  lockstep_op op;
  std::string name;
  const void* desc;  // lives during the visit
  bool in_place = false;
  bool cpu_only = false;  // the CUDA module refuses it, as README's table says
};

// Memory of the walker's for the arrays that descriptions point to, each of combination_bytes.
struct combination_memory {
  const int64_t* offsets;  // host memory, for segments
  const void* other;       // sums' second array; normalize's weight
  const void* bias;
  const void* residual;
  void* sum;
};
// The offsets that `offsets` must point to.
const std::vector<int64_t>& combination_offsets();

void each_combination(lockstep_op op, const combination_memory& at,
                      const std::function<void(const combination&)>& visit);

}  // namespace lockstep::cases
