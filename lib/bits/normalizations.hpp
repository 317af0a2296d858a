// normalizations.hpp - the one table of the kinds of normalize. The library, the backends and the program read it.
#pragma once

#include "lockstep/lockstep.h"

namespace lockstep::lib {

struct normalization_kind {
  const char* name;    // LOCKSTEP_NORMALIZE_<name>
  const char* option;  // its name for the program
  bool exponential;    // of exponentials: it has a scale and no eps, weight or bias
  bool one_result;     // a row has one result
  bool backward;       // the gradients of another kind
};

// Indexed by lockstep_normalization.
inline constexpr normalization_kind normalizations[] = {
    {"L2", "l2", false, false, false},
    {"RMS", "rms", false, false, false},
    {"LAYER", "layer", false, false, false},
    {"SOFTMAX", "softmax", true, false, false},
    {"LOG_SOFTMAX", "log_softmax", true, false, false},
    {"LOGSUMEXP", "logsumexp", true, true, false},
    {"PICKED", "picked", true, true, false},
    {"RMS_BACKWARD", "rms_backward", false, false, true},
    {"LAYER_BACKWARD", "layer_backward", false, false, true},
};
static_assert(sizeof normalizations / sizeof *normalizations == LOCKSTEP_NORMALIZATION_COUNT);

constexpr bool is_normalization(lockstep_normalization kind) {
  return kind >= 0 && kind < LOCKSTEP_NORMALIZATION_COUNT;
}
constexpr const normalization_kind& kind_of(lockstep_normalization kind) { return normalizations[kind]; }

}  // namespace lockstep::lib
