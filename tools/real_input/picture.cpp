// picture.cpp - pictures, see formats.hpp.
#include <algorithm>
#include <charconv>
#include <csetjmp>
#include <cstring>

#include "cli.hpp"
#include "formats.hpp"

#if defined(LOCKSTEP_PNG)
#include <png.h>
#endif
#if defined(LOCKSTEP_JPEG)
#include <jpeglib.h>
#endif

namespace lockstep::tool {
namespace {

constexpr int64_t most_pixels = int64_t{1} << 31;  // a header that claims more is refused

array make_picture(const std::string& name, int64_t height, int64_t width, int64_t channels, size_t bytes) {
  if (height < 1 || width < 1 || height > most_pixels / width)
    fail("{}: a picture of {} x {} pixels is not believed", name, width, height);
  std::vector<int64_t> shape = {height, width};
  if (channels == 3) shape.push_back(3);
  return make_array(npy::descr_of('u', bytes), shape);
}

#if defined(LOCKSTEP_PNG)
array read_png(const std::string& name, std::string_view bytes) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) fail("{}: {}", name, image.message);
  image.format = (image.format & PNG_FORMAT_FLAG_COLOR) != 0 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  const bool color = image.format == PNG_FORMAT_RGB;
  array a;
  try {
    a = make_picture(name, image.height, image.width, color ? 3 : 1, 1);
  } catch (...) {
    png_image_free(&image);
    throw;
  }
  const png_color black = {0, 0, 0};  // transparent parts are laid on black
  if (png_image_finish_read(&image, &black, writable(a), 0, nullptr) == 0) fail("{}: {}", name, image.message);
  return a;
}

void write_png(const std::string& path, const array& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(picture.header.shape[0]);
  image.width = static_cast<png_uint_32>(picture.header.shape[1]);
  image.format = picture.header.shape.size() == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string out(bytes, '\0');
  if (png_image_write_to_memory(&image, out.data(), &bytes, 0, picture.data, 0, nullptr) == 0)
    fail("{}: {}", path, image.message);
  write_file(path, {out.data(), bytes});
}
#endif

#if defined(LOCKSTEP_JPEG)
struct jpeg_errors {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

// libjpeg reports by longjmp: nothing with a destructor lives in this function.
// rows == nullptr: only width and height are read.
bool decode_jpeg(std::string_view bytes, jpeg_errors& errors, int64_t& height, int64_t& width, unsigned char* rows) {
  jpeg_decompress_struct jpeg{};
  jpeg.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = [](j_common_ptr common) {
    auto* own = reinterpret_cast<jpeg_errors*>(common->err);
    common->err->format_message(common, own->text);
    std::longjmp(own->back, 1);
  };
  errors.manager.output_message = [](j_common_ptr) {};  // warnings are not printed
  if (setjmp(errors.back) != 0) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  height = jpeg.image_height;
  width = jpeg.image_width;
  if (rows != nullptr) {
    jpeg.out_color_space = JCS_RGB;
    jpeg.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&jpeg);
    while (jpeg.output_scanline < jpeg.output_height) {
      JSAMPROW row = rows + static_cast<size_t>(jpeg.output_scanline) * jpeg.output_width * 3;
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
  }
  jpeg_destroy_decompress(&jpeg);
  return true;
}

array read_jpeg(const std::string& name, std::string_view bytes) {
  jpeg_errors errors{};
  int64_t height = 0, width = 0;
  if (!decode_jpeg(bytes, errors, height, width, nullptr)) fail("{}: {}", name, errors.text);
  array a = make_picture(name, height, width, 3, 1);
  if (!decode_jpeg(bytes, errors, height, width, reinterpret_cast<unsigned char*>(writable(a))))
    fail("{}: {}", name, errors.text);
  return a;
}
#endif

// The next number of a PNM header or text; comments run from # to the line's end.
int64_t next_number(const std::string& name, std::string_view bytes, size_t& at) {
  while (at < bytes.size() && (bytes[at] == '#' || std::isspace(static_cast<unsigned char>(bytes[at])) != 0)) {
    if (bytes[at] == '#')
      while (at < bytes.size() && bytes[at] != '\n') ++at;
    else
      ++at;
  }
  int64_t value = -1;
  const auto [rest, code] = std::from_chars(bytes.data() + at, bytes.data() + bytes.size(), value);
  if (code != std::errc{} || value < 0) fail("{}: a number expected at byte {}", name, at);
  at = static_cast<size_t>(rest - bytes.data());
  return value;
}

array read_pnm(const std::string& name, std::string_view bytes) {
  const bool text = bytes[1] == '2' || bytes[1] == '3';
  const int64_t channels = bytes[1] == '3' || bytes[1] == '6' ? 3 : 1;
  size_t at = 2;
  const int64_t width = next_number(name, bytes, at), height = next_number(name, bytes, at),
                most = next_number(name, bytes, at);
  if (most < 1 || most > 65535) fail("{}: its largest value is {}; 1 to 65535 is allowed", name, most);
  const size_t bytes_each = most > 255 ? 2 : 1;
  if (width < 1 || height < 1 || static_cast<uint64_t>(height) > bytes.size() / static_cast<uint64_t>(width))
    fail("{}: {} x {} pixels do not fit {} bytes", name, width, height, bytes.size());
  array a = make_picture(name, height, width, channels, bytes_each);
  const auto count = static_cast<size_t>(a.header.elements());
  ++at;  // one white space ends the header
  if (!text && bytes.size() - std::min(at, bytes.size()) < count * bytes_each)
    fail("{} is truncated: {} x {} pixels need {} bytes", name, width, height, count * bytes_each);
  for (size_t i = 0; i < count; ++i) {
    const auto byte = [&](size_t k) { return static_cast<unsigned char>(bytes[at + k]); };
    const int64_t value = text              ? next_number(name, bytes, at)
                          : bytes_each == 1 ? byte(i)
                                            : byte(2 * i) << 8 | byte(2 * i + 1);
    if (value > most) fail("{}: the value {} is beyond its largest, {}", name, value, most);
    const auto small = static_cast<unsigned char>(value);
    const auto wide = static_cast<uint16_t>(value);
    std::memcpy(writable(a) + i * bytes_each, bytes_each == 1 ? static_cast<const void*>(&small) : &wide, bytes_each);
  }
  return a;
}

// .png as well as .PNG
bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() &&
         std::equal(end.begin(), end.end(), text.end() - static_cast<std::ptrdiff_t>(end.size()),
                    [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

}  // namespace

bool is_picture(std::string_view bytes) {
  return bytes.starts_with("\x89PNG") || bytes.starts_with("\xFF\xD8\xFF") ||
         (bytes.size() > 2 && bytes[0] == 'P' &&
          (bytes[1] == '2' || bytes[1] == '3' || bytes[1] == '5' || bytes[1] == '6') &&
          std::isspace(static_cast<unsigned char>(bytes[2])) != 0);
}

array read_picture(const std::string& name, std::string_view bytes) {
  if (bytes[0] == 'P') return read_pnm(name, bytes);
#if defined(LOCKSTEP_PNG)
  if (bytes[0] == '\x89') return read_png(name, bytes);
#endif
#if defined(LOCKSTEP_JPEG)
  if (bytes[0] == '\xFF') return read_jpeg(name, bytes);
#endif
  fail("{}: this lockstep was built without {}; install it and build again, or convert the picture to PPM", name,
       bytes[0] == '\xFF' ? "libjpeg-dev" : "libpng-dev");
}

array gray(const array& picture) {
  const std::vector<int64_t>& shape = picture.header.shape;
  const size_t channels = shape.size() == 3 ? 3 : 1, pixels = static_cast<size_t>(shape[0] * shape[1]);
  const size_t bytes = picture.header.element_bytes();
  array out = make_array("<f4", {shape[0], shape[1]});
  auto* to = reinterpret_cast<float*>(writable(out));
  const auto value = [&](size_t i) -> int {
    if (bytes == 1) return static_cast<unsigned char>(picture.data[i]);
    uint16_t wide;
    std::memcpy(&wide, picture.data + 2 * i, 2);
    return wide;
  };
  for (size_t i = 0; i < pixels; ++i)
    to[i] = channels == 1
                ? static_cast<float>(value(i))
                : static_cast<float>(299 * value(3 * i) + 587 * value(3 * i + 1) + 114 * value(3 * i + 2)) / 1000.0f;
  return out;
}

void write_picture(const std::string& path, const array& picture) {
  const std::vector<int64_t>& shape = picture.header.shape;
  const bool color = shape.size() == 3 && shape[2] == 3;
  if (picture.header.descr != "|u1" || !(color || shape.size() == 2) || picture.header.fortran)
    refuse("a picture is u1, (height, width) or (height, width, 3); this is {} {}", picture.header.descr,
           shape_text(shape));
  if (path == "-" || ends_with(path, ".png")) {
#if defined(LOCKSTEP_PNG)
    return write_png(path, picture);
#else
    fail("{}: this lockstep was built without libpng-dev; write a .{} instead", path, color ? "ppm" : "pgm");
#endif
  }
  const bool ppm = ends_with(path, ".ppm");
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
