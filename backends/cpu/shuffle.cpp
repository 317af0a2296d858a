// shuffle.cpp
#include "ops.hpp"

namespace lockstep::cpu {
const lockstep_table shuffle_table = {nullptr, 0};
}
