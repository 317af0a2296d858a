// stencil.cpp
#include "ops.hpp"

namespace lockstep::cpu {
const lockstep_table stencil_table = {nullptr, 0};
}
