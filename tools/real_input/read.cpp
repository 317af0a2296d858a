// read.cpp - which reader reads a file, see formats.hpp.
#include "cli.hpp"
#include "formats.hpp"

namespace lockstep::tool {
namespace {

// What files begin with that nobody means as a table.
constexpr std::pair<std::string_view, const char*> others[] = {
    {"GIF8", "a GIF picture; convert it to PNG"},
    {"BM", "a BMP picture; convert it to PNG"},
    {std::string_view("II*\0", 4), "a TIFF picture; convert it to PNG"},
    {std::string_view("MM\0*", 4), "a TIFF picture; convert it to PNG"},
    {"fLaC", "a FLAC sound; convert it to WAV"},
    {"OggS", "an Ogg sound; convert it to WAV"},
    {"FORM", "an AIFF sound; convert it to WAV"},
    {"ID3", "an MP3 sound; convert it to WAV"},
    {"PK\x03\x04", "a ZIP archive (.npz, .xlsx); take out what is in it, as .npy or CSV"},
    {"\x1F\x8B", "compressed by gzip; gunzip it"},
    {"\x89HDF", "an HDF5 file; save the array as .npy"},
    {"PAR1", "a Parquet file; save it as CSV"},
    {"%PDF", "a PDF document; save its picture as PNG"},
    {"RIFF", "a RIFF file, but no WAVE sound; convert a WebP picture to PNG"},
};

// NUL bytes: no text.
bool is_binary(std::string_view bytes) { return bytes.substr(0, 4096).find('\0') != std::string_view::npos; }

void need(bool fits, const std::string& name, const char* what, const std::string& as) {
  if (!fits) fail("{}: {}; leave out --as {}, or convert it", name, what, as);
}

}  // namespace

array import_bytes(const std::string& name, std::string_view bytes, const import_options& options) {
  const std::string& as = options.as;
  const bool guess = as == "auto";
  if (as == "text") return read_bytes(bytes);
  if (as == "lines") return line_offsets(bytes);
  if (bytes.empty()) fail("{} is empty; nothing can be imported from it", name);
  if (guess && npy::kind_of(bytes) == "a .npy array")
    fail("{} is a .npy array already; give it to lockstep run as it is", name);
  if (as == "picture" || as == "gray") need(is_picture(bytes), name, "no PNG, JPEG, PBM, PGM or PPM picture", as);
  if (as == "sound") need(is_sound(bytes), name, "no RIFF WAVE sound", as);
  if (as == "gray") return gray(read_picture(name, bytes, channels_wanted::plain));
  if (as == "picture" || (guess && is_picture(bytes))) return read_picture(name, bytes, channels_wanted::stored);
  if (as == "sound" || (guess && is_sound(bytes))) return read_sound(name, bytes);
  if (as == "grid" || (guess && is_grid(name, bytes))) return read_grid(name, bytes);
  if (guess) {
    for (const auto& [beginning, what] : others)
      // "BM" could be the beginning of a column's name.
      if (bytes.starts_with(beginning) && (beginning.size() > 3 || is_binary(bytes))) fail("{} is {}", name, what);
    if (is_binary(bytes) && bytes[0] != '\xFF' && bytes[0] != '\xFE')
      fail("{} is no text and of no known format; --as text reads the bytes of any file", name);
  }
  return read_table(name, bytes, options.skip_lines);
}

array import_file(const std::string& path, const import_options& options) {
  const input_file file(path);
  return import_bytes(file.path(), file.bytes(), options);
}

}  // namespace lockstep::tool
