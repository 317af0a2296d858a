// estimate.hpp - describes a prepared call to the cost model and compares CPU and device for auto.
#pragma once

#include "../call/run.hpp"

namespace lockstep::lib {

cost::call cost_call(const prepared_call& prepared);

// The times of the device and of the CPU with that many threads (0: the default), with the
// copies over the link, for data in `where`.
comparison compare(const calibration& figures, const prepared_call& prepared, const backend_entry& device,
                   cost::place where, int threads);
// The comparison as text: "cuda: ... costs more than the CPU needs (41 us against 12 us, ...)".
std::string in_words(const comparison& compared, std::string_view basis);

}  // namespace lockstep::lib
