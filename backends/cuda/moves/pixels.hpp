// pixels.hpp - see pixels.cu.
#pragma once

#include "../device/queue.hpp"
#include "axes.hpp"

namespace lockstep::cuda {
bool pixels_fit(const axes& a);                               // but for addresses, multiples of 16 bytes
bool pixels_pay(const lockstep_queue& queue, const axes& a);  // enough of them for every processor
lockstep_status launch_pixels(lockstep_queue& queue, const axes& a);
}  // namespace lockstep::cuda
