// formats.hpp - reads ordinary files as arrays. Every reader takes the bytes of a file,
// checks all of them, and fails with a sentence that starts with the file's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "file.hpp"

namespace lockstep::tool {

// Pictures: PNG and JPEG (where built with libpng and libjpeg), PGM and PPM.
// u1 (u2 for 16-bit PNM), (height, width) or (height, width, 3).
bool is_picture(std::string_view bytes);
array read_picture(const std::string& name, std::string_view bytes);
// f4 of (299 R + 587 G + 114 B) / 1000, one rounding: 0 to 255.
array gray(const array& picture);
// Pictures of u1 arrays of those shapes; .png, .pgm or .ppm by the name's end.
void write_picture(const std::string& path, const array& picture);

// Sound: RIFF WAVE of 8-, 16-, 24-, 32-bit integers or 32-bit floats, as f4 in
// [-1, 1); (samples,) or (samples, channels).
bool is_sound(std::string_view bytes);
array read_sound(const std::string& name, std::string_view bytes);

// A vertical grid of PROJ (.gtx): a 40-byte header and big-endian f4, south to
// north; (rows, columns).
bool is_grid(const std::string& name, std::string_view bytes);
array read_grid(const std::string& name, std::string_view bytes);

// Numbers as text, a row a line, f8: fields between commas, semicolons or white
// space; lines that begin with # and a first line of names are skipped.
array read_table(const std::string& name, std::string_view bytes);

// Any file: its bytes as i4.
array read_bytes(std::string_view bytes);
// Where its lines begin, and the end: i8, lines + 1 of them.
array line_offsets(std::string_view bytes);

}  // namespace lockstep::tool
