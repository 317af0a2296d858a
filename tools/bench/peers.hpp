// peers.hpp - other libraries' times for the same case, from small programs of
// their own (tools/peers), so that this program links none of them.
#pragma once

#include "bench.hpp"

namespace lockstep::tool::bench {
// Runs every program of asked.peers on the cases that were timed on backend, and
// appends what they measured.
void run_peers(const options& asked, const std::string& backend, report& out);
}  // namespace lockstep::tool::bench
