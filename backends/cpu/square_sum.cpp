// square_sum.cpp
#include "ops.hpp"

namespace lockstep::cpu {
namespace {
const lockstep_variant rows[] = {
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_square_sum},
};
}
const lockstep_table square_sum_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
