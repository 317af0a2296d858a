// import.hpp - the functions of import and export, used by demo too.
#pragma once

#include "real_input/formats.hpp"

namespace lockstep::tool {

// as: "auto", "picture", "gray", "sound", "grid", "table", "text", "lines".
array import_file(const std::string& path, const std::string& as);
// f4 from low (black) to high (white) as u1; u1 as it is.
array as_picture(const array& a, double low, double high);
// A u1 picture shrunk to width pixels; unchanged if width is 0 or the picture is narrower.
array thinned(const array& picture, int64_t width);

}  // namespace lockstep::tool
