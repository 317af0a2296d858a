// transpose.cpp
#include "ops.hpp"

namespace lockstep::cpu {
namespace {
const lockstep_variant rows[] = {
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_transpose},
};
}
const lockstep_table transpose_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
