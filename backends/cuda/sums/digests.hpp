// digests.hpp - digests of sequences, which are sums of no term.
#pragma once

#include "sums.hpp"

namespace lockstep::cuda {

lockstep_status digest_words(lockstep_queue& queue, const term_sums& d, void* workspace);

}  // namespace lockstep::cuda
