// import.hpp - what import and export do, for demo too.
#pragma once

#include "real_input/formats.hpp"

namespace lockstep::tool {

// as: "auto", "picture", "gray", "sound", "grid", "table", "text", "lines".
array import_file(const std::string& path, const std::string& as);
// f4 from low (black) to high (white) as u1; u1 as it is.
array as_picture(const array& a, double low, double high);
// A u1 picture shrunk to width pixels; 0 or a picture that is narrower: as it is.
array thinned(const array& picture, int64_t width);

}  // namespace lockstep::tool
