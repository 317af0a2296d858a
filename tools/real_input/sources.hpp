// sources.hpp - where real input is found: files of Debian and Ubuntu packages, best
// first, and files that every system has.
#pragma once

#include <string>
#include <vector>

#include "file.hpp"

namespace lockstep::tool {

struct found_input {
  std::string role;     // "picture", "signal", "table", "text"
  std::string path;     // the file that was read
  std::string missing;  // the package to install for the better input; "" when path is it
  std::string what;     // one line about it
};

struct real_input {
  found_input picture_from, signal_from, table_from, text_from;
  array color;    // u1 (height, width, 3) or (height, width)
  array picture;  // f4 (height, width)
  array signal;   // f4 (samples,)
  array table;    // f4 (rows, columns)
  array text;     // i4 (bytes,)
  array lines;    // i8 (lines + 1,)
};

// A path that is not "" takes the place of the role's packaged file.
struct input_paths {
  std::string picture, signal, table, text;
};
real_input find_real_input(const input_paths& given);

}  // namespace lockstep::tool
