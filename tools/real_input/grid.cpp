// grid.cpp - grids of PROJ, see formats.hpp.
#include <bit>

#include "cli.hpp"
#include "formats.hpp"

namespace lockstep::tool {
namespace {

uint32_t big(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace

bool is_grid(const std::string& name, std::string_view bytes) { return name.ends_with(".gtx") && bytes.size() > 40; }

array read_grid(const std::string& name, std::string_view bytes) {
  if (bytes.size() <= 40) fail("{}: too short for a .gtx grid; get the file again", name);
  const uint64_t rows = big(bytes, 32), columns = big(bytes, 36);
  if (rows < 1 || columns < 1 || bytes.size() % 4 != 0 || rows * columns != (bytes.size() - 40) / 4)
    fail("{}: {} x {} heights of 4 bytes behind a header of 40 are not {} bytes; get the file again", name, rows,
         columns, bytes.size());
  array a = make_array("<f4", {static_cast<int64_t>(rows), static_cast<int64_t>(columns)});
  auto* to = reinterpret_cast<float*>(writable(a));
  for (size_t i = 0; i < rows * columns; ++i) to[i] = std::bit_cast<float>(big(bytes, 40 + 4 * i));
  return a;
}

}  // namespace lockstep::tool
