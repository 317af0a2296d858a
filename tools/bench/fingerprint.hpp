// fingerprint.hpp - what a result was measured of, as tools/fingerprint.py tells of this build's sources.
#pragma once

#include <string>

namespace lockstep::tool::bench {

// 16 digits; empty if the backend is not of this tree. `detail` is what the device says of itself: which row of the
// tuning runs on it.
std::string fingerprint_of(const std::string& backend, const std::string& detail, const std::string& op,
                           const std::string& name);

}  // namespace lockstep::tool::bench
