// npy.hpp - the header of NumPy's .npy files, versions 1 to 3: read without
// trusting a byte of it, written so that NumPy maps it.
// Source: the format as numpy.lib.format documents it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::npy {

// An error in a header; the text continues a sentence that starts with the file's name.
struct error : std::runtime_error {
  using runtime_error::runtime_error;
};

struct header {
  std::string descr;  // "<f4", "|u1", "|V2": kind and bytes of an element, little-endian
  bool fortran = false;
  std::vector<int64_t> shape;
  size_t data_offset = 0;  // bytes from the start of the file; a multiple of 64 in what we write

  char kind() const { return descr[1]; }
  size_t element_bytes() const;
  int64_t elements() const;  // does not overflow, nor does data_bytes: parse has checked it
  size_t data_bytes() const { return static_cast<size_t>(elements()) * element_bytes(); }
};

// The first bytes of every such file.
inline constexpr std::string_view magic = "\x93NUMPY";

// The kind of a file by its first bytes: "a PNG picture", "empty"; "" if unknown.
std::string_view kind_of(std::string_view bytes);

// Reads the header at the beginning of a file; bytes may include the data. Accepts only
// dense little-endian arrays of 1-, 2-, 4-, 8- or 16-byte elements.
header parse(std::string_view bytes);

// The bytes of a header, data_offset of them; version 1 unless it is too long.
std::string format(const header& h);

// descr of an element type of this machine: 'f', 4 -> "<f4"; 'u', 1 -> "|u1".
std::string descr_of(char kind, size_t bytes);

}  // namespace lockstep::npy
