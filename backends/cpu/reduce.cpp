// reduce.cpp
#include "ops.hpp"

namespace lockstep::cpu {
namespace {
const lockstep_variant rows[] = {
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_reduce},
};
}
const lockstep_table reduce_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
