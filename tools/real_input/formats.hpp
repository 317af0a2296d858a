// formats.hpp - reads ordinary files as arrays. Every reader takes the bytes of a file,
// checks all of them, and fails with a sentence that starts with the file's name and says where and what to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "file.hpp"

namespace lockstep::tool {

struct import_options {
  std::string as = "auto";  // "auto", "picture", "gray", "sound", "grid", "table", "text", "lines"
  int64_t skip_lines = 0;   // of a table
};
array import_bytes(const std::string& name, std::string_view bytes, const import_options& options);
array import_file(const std::string& path, const import_options& options);

// Pictures: PNG and JPEG by libpng and libjpeg (where built with them), PBM, PGM and PPM. Samples as they are stored,
// u1 or u2: (height, width) or (height, width, channels). Samples of 1, 2 and 4 bits are scaled to 0..255, which is
// exact. Palettes become colors. Gamma, color profiles and EXIF's orientation change nothing.
enum class channels_wanted {
  stored,  // gray, gray and alpha, RGB, RGB and alpha, or CMYK
  plain    // gray or RGB: alpha is left out, CMYK refused
};
bool is_picture(std::string_view bytes);
array read_picture(const std::string& name, std::string_view bytes, channels_wanted wanted);
// f4 of (299 R + 587 G + 114 B) / 1000 of a plain picture, one rounding.
array gray(const array& picture);
// Pictures of u1, (height, width) or (height, width, 3) or, as PNG, (height, width, 4); .png, .pgm or .ppm by the
// name's end.
void write_picture(const std::string& path, const array& picture);

// The readers of the formats. Those that were not built fail and name their package.
array read_png(const std::string& name, std::string_view bytes, channels_wanted wanted);
array read_jpeg(const std::string& name, std::string_view bytes, channels_wanted wanted);
array read_pnm(const std::string& name, std::string_view bytes);
std::string png_of(const std::string& path, const array& picture);
// Zeroed pixels of u1 or u2. Fails where a header claims more than 2^31 of them.
array make_picture(const std::string& name, int64_t height, int64_t width, int64_t channels, size_t bytes);

// Sound: RIFF WAVE of integers or floats, (samples,) or (samples, channels). Integers are divided by the power of two
// that they reach, so they lie in [-1, 1): f4 up to 24 bits and f8 up to 53, which is exact. Floats stay as they are.
bool is_sound(std::string_view bytes);
array read_sound(const std::string& name, std::string_view bytes);

// A vertical grid of PROJ (.gtx): a 40-byte header and big-endian f4, south to
// north; (rows, columns).
bool is_grid(const std::string& name, std::string_view bytes);
array read_grid(const std::string& name, std::string_view bytes);

// Numbers as text, a row a line, f8: fields between commas, semicolons, tabs or spaces. What follows # is a comment; a
// first line of words is column names. An empty field is NaN.
array read_table(const std::string& name, std::string_view bytes, int64_t skip_lines);

// Any file: its bytes as i4.
array read_bytes(std::string_view bytes);
// Where its lines begin, and the end: i8, lines + 1 of them. A line ends at LF, CR LF or CR.
array line_offsets(std::string_view bytes);

}  // namespace lockstep::tool
