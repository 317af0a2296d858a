// stencil.cpp
#include "ops.hpp"

namespace lockstep::cpu {
namespace {
const lockstep_variant rows[] = {
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, ref_stencil_workspace, ref_stencil},
};
}
const lockstep_table stencil_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
