// retired.hpp - names of variants that were removed, so that an error can name the variant to use now. For the library
// and the program.
#pragma once

#include <string_view>

#include "lockstep/lockstep.h"

namespace lockstep::lib {

// The variant to use in place of a removed one; nullptr if op never had a variant of that name.
inline const char* successor_of(lockstep_op op, std::string_view name) {
  static constexpr struct {
    lockstep_op op;
    std::string_view name;
    const char* successor;
  } retired[] = {{LOCKSTEP_TRANSPOSE, "blocks", "tiles"},  {LOCKSTEP_PERMUTE, "blocks", "tiles"},
                 {LOCKSTEP_TRANSPOSE, "aligned", "tiles"}, {LOCKSTEP_PERMUTE, "aligned", "tiles"},
                 {LOCKSTEP_PERMUTE, "runs", "gather"},     {LOCKSTEP_REDUCE, "shuffle", "lanes"},
                 {LOCKSTEP_SUMS, "leaves", "lanes"},       {LOCKSTEP_PERMUTE, "naive_coalesced_write", "gather"},
                 {LOCKSTEP_REDUCE, "alone", "lanes"},      {LOCKSTEP_PERMUTE, "naive_coalesced_read", "gather"},
                 {LOCKSTEP_REDUCE, "thrust", "lanes"},     {LOCKSTEP_REDUCE, "cub", "lanes"},
                 {LOCKSTEP_SQUARE_SUM, "cub", "thrust"}};
  for (const auto& one : retired)
    if (op == one.op && name == one.name) return one.successor;
  return nullptr;
}

}  // namespace lockstep::lib
