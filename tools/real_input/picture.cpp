// picture.cpp - what pictures of all formats have in common, see formats.hpp.
#include <algorithm>
#include <cctype>
#include <cstring>

#include "cli.hpp"
#include "formats.hpp"

namespace lockstep::tool {
namespace {

constexpr int64_t most_pixels = int64_t{1} << 31;

// .png as well as .PNG
bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() &&
         std::equal(end.begin(), end.end(), text.end() - static_cast<std::ptrdiff_t>(end.size()),
                    [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

}  // namespace

array make_picture(const std::string& name, int64_t height, int64_t width, int64_t channels, size_t bytes) {
  if (height < 1 || width < 1 || height > most_pixels / width)
    fail("{}: {} x {} pixels; 1 to 2^31 are read, cut the picture", name, width, height);
  std::vector<int64_t> shape = {height, width};
  if (channels > 1) shape.push_back(channels);
  return make_array(npy::descr_of('u', bytes), shape);
}

bool is_picture(std::string_view bytes) {
  return bytes.starts_with("\x89PNG") || bytes.starts_with("\xFF\xD8\xFF") ||
         (bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7' &&
          std::isspace(static_cast<unsigned char>(bytes[2])) != 0);
}

array read_picture(const std::string& name, std::string_view bytes, channels_wanted wanted) {
  if (bytes[0] == 'P') return read_pnm(name, bytes);
  return bytes[0] == '\x89' ? read_png(name, bytes, wanted) : read_jpeg(name, bytes, wanted);
}

array gray(const array& picture) {
  const std::vector<int64_t>& shape = picture.header.shape;
  const size_t channels = shape.size() == 3 ? static_cast<size_t>(shape[2]) : 1;
  const bool wide = picture.header.descr == "<u2";
  if (shape.size() < 2 || shape.size() > 3 || (channels != 1 && channels != 3) ||
      (!wide && picture.header.descr != "|u1") || picture.header.fortran)
    fail("a picture is u1 or u2, (height, width) or (height, width, 3); this is {} {}", picture.header.descr,
         shape_text(shape));
  const auto pixels = static_cast<size_t>(shape[0] * shape[1]);
  array out = make_array("<f4", {shape[0], shape[1]});
  auto* to = reinterpret_cast<float*>(writable(out));
  const auto value = [&](size_t i) -> int {
    if (!wide) return static_cast<unsigned char>(picture.data[i]);
    uint16_t sample;
    std::memcpy(&sample, picture.data + 2 * i, 2);
    return sample;
  };
  // The quotient in f64 is so near that its rounding to f32 is that of the exact one.
  for (size_t i = 0; i < pixels; ++i)
    to[i] =
        channels == 1
            ? static_cast<float>(value(i))
            : static_cast<float>((299.0 * value(3 * i) + 587.0 * value(3 * i + 1) + 114.0 * value(3 * i + 2)) / 1000.0);
  return out;
}

void write_picture(const std::string& path, const array& picture) {
  const std::vector<int64_t>& shape = picture.header.shape;
  const int64_t channels = shape.size() == 3 ? shape[2] : 1;
  const bool color = channels == 3;
  if (picture.header.descr != "|u1" || shape.size() < 2 || shape.size() > 3 || (shape.size() == 3 && channels < 3) ||
      channels > 4 || picture.header.fortran)
    refuse("a picture is u1, (height, width) or (height, width, 3 or 4); this is {} {}", picture.header.descr,
           shape_text(shape));
  if (picture.header.elements() == 0) refuse("a picture has at least one pixel; this array is {}", shape_text(shape));
  if (path == "-" || ends_with(path, ".png")) return write_file(path, png_of(path, picture));
  const bool ppm = ends_with(path, ".ppm");
  if (channels == 4) refuse("{}: four channels are written as PNG alone; end the name in .png", path);
  if (!ppm && (color || !ends_with(path, ".pgm")))
    refuse("{}: end the name in .png{} or .ppm", path, color ? "" : ", .pgm");
  std::string out = format_text("P{}\n{} {}\n255\n", ppm ? 6 : 5, shape[1], shape[0]);
  if (ppm && !color)
    for (size_t i = 0; i < picture.header.data_bytes(); ++i) out.append(3, picture.data[i]);
  else
    out.append(picture.data, picture.header.data_bytes());
  write_file(path, out);
}

}  // namespace lockstep::tool
