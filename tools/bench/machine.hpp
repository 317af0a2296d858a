// machine.hpp - which processor this is: several are named "AMD EPYC".
#pragma once

#include "../json.hpp"

namespace lockstep::tool::bench {

// {"name", "family", "model", "stepping", "caches": {"L1d": bytes, ...}} as far as Linux says it.
nlohmann::ordered_json processor();

}  // namespace lockstep::tool::bench
