// pnm.cpp - PBM, PGM and PPM, see formats.hpp.
// Source: the manual pages pbm(5), pgm(5) and ppm(5) of Netpbm.
#include <charconv>
#include <cstring>

#include "cli.hpp"
#include "formats.hpp"

namespace lockstep::tool {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class reader {
 public:
  reader(const std::string& name, std::string_view bytes) : name_(name), bytes_(bytes) {}

  size_t at = 2;  // behind "P5"

  // Comments run from # to the line's end.
  void skip_spaces() {
    for (bool comment = false; at < bytes_.size(); ++at) {
      if (bytes_[at] == '\n' || bytes_[at] == '\r') comment = false;
      if (bytes_[at] == '#') comment = true;
      if (!comment && !is_space(bytes_[at])) break;
    }
  }
  int64_t number(const char* what) {
    skip_spaces();
    int64_t value = -1;
    const char* const end = bytes_.data() + bytes_.size();
    const auto [rest, code] = std::from_chars(bytes_.data() + at, end, value);
    if (code != std::errc{} || value < 0 || (rest != end && !is_space(*rest) && *rest != '#'))
      fail("{}: {} at byte {}, where the {} should be; write the picture again (a table is read by --as table)", name_,
           at < bytes_.size() ? "no number" : "the file ends", at, what);
    at = static_cast<size_t>(rest - bytes_.data());
    return value;
  }
  // A digit of a plain bitmap, which needs no space before the next.
  int bit() {
    skip_spaces();
    if (at >= bytes_.size() || (bytes_[at] != '0' && bytes_[at] != '1'))
      fail("{}: {} at byte {}, where a pixel, 0 or 1, should be; write the picture again", name_,
           at < bytes_.size() ? "something else" : "the file ends", at);
    return bytes_[at++] - '0';
  }
  // The pixels of a binary file are all that follows one white space. CR LF counts as one, unless the header's other
  // lines end with CR alone.
  std::string_view raster(size_t needed) {
    if (at >= bytes_.size() || !is_space(bytes_[at]))
      fail("{}: no white space at byte {}, between header and pixels; write the picture again", name_, at);
    bool lone = false;
    for (size_t i = 2; i < at; ++i) lone |= bytes_[i] == '\r' && bytes_[i + 1] != '\n';
    at += !lone && bytes_.substr(at, 2) == "\r\n" ? 2 : 1;
    const size_t there = bytes_.size() - at;
    if (there != needed)
      fail("{}: its pixels need {} bytes, {} follow the header at byte {}; {}", name_, needed, there, at,
           there < needed ? "the file was cut, get it again"
                          : "its line ends were converted, or several pictures are in it: write one alone");
    return bytes_.substr(at);
  }
  void expect_end() {
    skip_spaces();
    if (at < bytes_.size()) fail("{}: something follows the last pixel at byte {}; write one picture alone", name_, at);
  }

 private:
  const std::string& name_;
  std::string_view bytes_;
};

}  // namespace

array read_pnm(const std::string& name, std::string_view bytes) {
  const int kind = bytes[1] - '0';
  if (kind < 1 || kind > 6) fail("{}: P{} is not read; write it as PNG, PGM (P5) or PPM (P6)", name, bytes[1]);
  const bool plain = kind <= 3, bitmap = kind % 3 == 1;
  const int64_t channels = kind % 3 == 0 ? 3 : 1;
  reader in(name, bytes);
  const int64_t width = in.number("width"), height = in.number("height"),
                most = bitmap ? 1 : in.number("largest value");
  if (most < 1 || most > 65535)
    fail("{}: its largest value is {}; 1 to 65535 is allowed, write the picture again", name, most);
  // Each has at least a bit, or with a separator two bytes.
  const auto size = static_cast<int64_t>(bytes.size());
  if (width < 1 || height < 1 || height > (kind == 4 ? 8 * size : size) / width)
    fail("{}: {} x {} pixels cannot be in {} bytes; get the file again", name, width, height, size);
  const size_t each = most > 255 ? 2 : 1;
  array a = make_picture(name, height, width, channels, each);
  const auto count = static_cast<size_t>(a.header.elements()), row_bytes = static_cast<size_t>(width + 7) / 8;
  const std::string_view raster =
      plain ? std::string_view() : in.raster(bitmap ? static_cast<size_t>(height) * row_bytes : count * each);
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(raster[i]); };
  for (size_t i = 0; i < count; ++i) {
    const size_t row = i / static_cast<size_t>(width), column = i % static_cast<size_t>(width);
    int64_t value = 0;
    if (bitmap)  // 1 is black
      value = (plain ? in.bit() : byte(row * row_bytes + column / 8) >> (7 - column % 8) & 1) != 0 ? 0 : 255;
    else
      value = plain ? in.number("next sample") : each == 1 ? byte(i) : byte(2 * i) << 8 | byte(2 * i + 1);
    if (!bitmap && value > most)
      fail("{}: sample {} is {}, beyond {}, the largest value of its header; write the picture again", name, i, value,
           most);
    const auto small = static_cast<unsigned char>(value);
    const auto wide = static_cast<uint16_t>(value);
    std::memcpy(writable(a) + i * each, each == 1 ? static_cast<const void*>(&small) : &wide, each);
  }
  if (plain) in.expect_end();
  return a;
}

}  // namespace lockstep::tool
