// reduce.cpp
#include "ops.hpp"

namespace lockstep::cpu {
const lockstep_table reduce_table = {nullptr, 0};
}
