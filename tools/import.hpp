// import.hpp - the functions of import and export, used by demo too.
#pragma once

#include "real_input/formats.hpp"

namespace lockstep::tool {

// Refuses an array that is no picture; name is its file's.
void require_picture(const std::string& name, const npy::header& h);
// Numbers from low (black, NaN too) to high (white) as u1; u1 as it is. low < high, and their difference is finite.
array as_picture(const array& a, double low, double high);
// A u1 picture shrunk to width pixels; unchanged if width is 0 or the picture is narrower.
array thinned(const array& picture, int64_t width);

}  // namespace lockstep::tool
