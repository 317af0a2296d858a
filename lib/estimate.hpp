// estimate.hpp - a prepared call in the cost model's terms, and what auto makes of it.
#pragma once

#include "run.hpp"

namespace lockstep::lib {

cost::call cost_call(const prepared_call& prepared);

// What device needs beside the CPU with so many threads (0: the default), trips over
// the link counted, for data that lie in where.
comparison compare(const calibration& figures, const prepared_call& prepared, const backend_entry& device,
                   cost::place where, int threads);
// In words: "cuda: ... costs more than the CPU needs (41 us against 12 us, ...)".
std::string in_words(const comparison& compared, std::string_view basis);

}  // namespace lockstep::lib
