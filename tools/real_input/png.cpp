// png.cpp - PNG by libpng, see formats.hpp.
#include "cli.hpp"
#include "formats.hpp"

#if defined(LOCKSTEP_PNG)
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string_view>
#endif

namespace lockstep::tool {

#if defined(LOCKSTEP_PNG)
namespace {

struct decoder {
  std::string_view bytes;
  size_t at = 0;
  std::jmp_buf back;
  char text[256] = "";
  int64_t row = -1;  // that is being read
  // The header, once it was read.
  int64_t height = 0, width = 0;
  int channels = 0, depth = 0;
  bool has_palette = false;
  int colors = 0, alphas = 0;
  png_color palette[256];
  png_byte alpha[256];

  int64_t row_bytes() const { return width * channels * (depth == 16 ? 2 : 1); }
};

decoder& of(void* self) { return *static_cast<decoder*>(self); }

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  decoder& d = of(png_get_error_ptr(png));
  std::strncpy(d.text, text, sizeof d.text - 1);
  std::longjmp(d.back, 1);
}
// A damaged palette or transparency would change samples; other warnings are about what is not used.
void on_warning(png_structp png, png_const_charp text) {
  const std::string_view said = text;
  if (said.starts_with("tRNS") || said.starts_with("PLTE")) on_error(png, text);
}
void on_read(png_structp png, png_bytep to, size_t count) {
  decoder& d = of(png_get_io_ptr(png));
  if (count > d.bytes.size() - d.at) png_error(png, "the file ends too early");
  std::memcpy(to, d.bytes.data() + d.at, count);
  d.at += count;
}

// libpng reports by longjmp: nothing with a destructor lives here.
void read_header(png_structp png, png_infop info, decoder& d) {
  png_read_info(png, info);
  d.height = png_get_image_height(png, info);
  d.width = png_get_image_width(png, info);
  d.channels = png_get_channels(png, info);
  d.depth = png_get_bit_depth(png, info);
  d.has_palette = png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE;
  if (!d.has_palette) return;
  png_colorp palette = nullptr;
  if (png_get_PLTE(png, info, &palette, &d.colors) == 0) png_error(png, "its palette is missing");
  std::copy_n(palette, d.colors, d.palette);
  png_bytep alpha = nullptr;
  if (png_get_tRNS(png, info, &alpha, &d.alphas, nullptr) != 0) std::copy_n(alpha, d.alphas, d.alpha);
}

void read_rows(png_structp png, png_infop info, decoder& d, unsigned char* rows) {
  if (d.depth < 8) png_set_packing(png);
  if (d.depth < 8 && !d.has_palette) png_set_expand_gray_1_2_4_to_8(png);
  if (d.depth == 16) png_set_swap(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (static_cast<int64_t>(png_get_rowbytes(png, info)) != d.row_bytes()) png_error(png, "its rows have another size");
  for (int pass = 0; pass < passes; ++pass)
    for (d.row = 0; d.row < d.height; ++d.row) png_read_row(png, rows + d.row * d.row_bytes(), nullptr);
  png_read_end(png, nullptr);
}

// rows == nullptr: only the header is read.
bool decode(decoder& d, unsigned char* rows) {
  d.at = 0;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning);
  png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
  if (info == nullptr || setjmp(d.back) != 0) {
    png_destroy_read_struct(&png, &info, nullptr);
    return false;
  }
  png_set_read_fn(png, &d, on_read);
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // not a million; make_picture limits the pixels
  read_header(png, info, d);
  if (rows != nullptr) read_rows(png, info, d, rows);
  png_destroy_read_struct(&png, &info, nullptr);
  return true;
}

[[noreturn]] void damaged(const std::string& name, const decoder& d) {
  const std::string place = d.row >= 0 ? format_text(" in row {} of {}", std::min(d.row, d.height - 1), d.height) : "";
  fail("{}: damaged{} at byte {}: {}; get the file again", name, place, d.at, d.text[0] != '\0' ? d.text : "no memory");
}

// The colors of palette entries, with alpha where a color of the palette has it.
array colors_of(const std::string& name, const array& entries, const decoder& d, bool with_alpha) {
  const int64_t channels = with_alpha && d.alphas > 0 ? 4 : 3;
  array a = make_picture(name, d.height, d.width, channels, 1);
  auto* to = reinterpret_cast<unsigned char*>(writable(a));
  for (int64_t i = 0; i < d.height * d.width; ++i, to += channels) {
    const int entry = static_cast<unsigned char>(entries.data[i]);
    if (entry >= d.colors)
      fail(
          "{}: the pixel in row {}, column {} has color {} of a palette of {}; save the picture again without a "
          "palette",
          name, i / d.width, i % d.width, entry, d.colors);
    to[0] = d.palette[entry].red;
    to[1] = d.palette[entry].green;
    to[2] = d.palette[entry].blue;
    if (channels == 4) to[3] = entry < d.alphas ? d.alpha[entry] : 255;
  }
  return a;
}

array without_alpha(const std::string& name, const array& all, const decoder& d) {
  const size_t each = d.depth == 16 ? 2 : 1, from = static_cast<size_t>(d.channels) * each, to = from - each;
  array a = make_picture(name, d.height, d.width, d.channels - 1, each);
  for (int64_t i = 0; i < d.height * d.width; ++i)
    std::memcpy(writable(a) + static_cast<size_t>(i) * to, all.data + static_cast<size_t>(i) * from, to);
  return a;
}

}  // namespace

array read_png(const std::string& name, std::string_view bytes, channels_wanted wanted) {
  decoder d;
  d.bytes = bytes;
  if (!decode(d, nullptr)) damaged(name, d);
  // zlib makes at most 1032 bytes of one.
  if (d.height * ((d.width * d.channels * d.depth + 7) / 8) / 1032 > static_cast<int64_t>(bytes.size()))
    fail("{}: {} x {} pixels cannot be in {} bytes; get the file again", name, d.width, d.height, bytes.size());
  array a = make_picture(name, d.height, d.width, d.channels, d.depth == 16 ? 2 : 1);
  if (!decode(d, reinterpret_cast<unsigned char*>(writable(a)))) damaged(name, d);
  const bool plain = wanted == channels_wanted::plain;
  if (d.has_palette) return colors_of(name, a, d, !plain);
  return plain && d.channels % 2 == 0 ? without_alpha(name, a, d) : a;
}

std::string png_of(const std::string& path, const array& picture) {
  const std::vector<int64_t>& shape = picture.header.shape;
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(shape[0]);
  image.width = static_cast<png_uint_32>(shape[1]);
  image.format = shape.size() == 2 ? PNG_FORMAT_GRAY : shape[2] == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string out(bytes, '\0');
  if (png_image_write_to_memory(&image, out.data(), &bytes, 0, picture.data, 0, nullptr) == 0)
    fail("{}: {}", path, image.message);
  out.resize(bytes);
  return out;
}
#else
array read_png(const std::string& name, std::string_view, channels_wanted) {
  fail("{}: this lockstep was built without libpng-dev; install it and build again, or convert the picture to PPM",
       name);
}
std::string png_of(const std::string& path, const array& picture) {
  const size_t axes = picture.header.shape.size();
  fail("{}: this lockstep was built without libpng-dev; install it and build again, or write a .{}", path,
       axes == 3 ? "ppm" : "pgm");
}
#endif

}  // namespace lockstep::tool
