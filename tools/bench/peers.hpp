// peers.hpp - other libraries' times for the same case, from small programs of
// their own (tools/peers), so that this program links none of them.
#pragma once

#include "bench.hpp"
#include "cases.hpp"

namespace lockstep::tool::bench {
// Runs every program of asked.peers on a case; appends what they measured.
void run_peers(const options& asked, const std::string& backend, const cases::test_case& t, double bytes, report& out);
}  // namespace lockstep::tool::bench
