// jpeg.cpp - JPEG by libjpeg, see formats.hpp.
#include "cli.hpp"
#include "formats.hpp"

#if defined(LOCKSTEP_JPEG)
#include <cstdio>  // jpeglib.h needs it
// (in this order)
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#endif

namespace lockstep::tool {

#if defined(LOCKSTEP_JPEG)
namespace {

struct decoder {
  jpeg_error_mgr manager{};
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX] = "";
  // The header, once it was read.
  int64_t height = 0, width = 0;
  int channels = 0;
  bool inks = false;        // CMYK
  bool arithmetic = false;  // arithmetic coding, which has no least number of bits a block
  // Where it fails.
  int64_t row = -1;
  size_t left = 0;       // bytes that were not read yet
  bool unknown = false;  // a kind of JPEG that libjpeg was not built for
};

[[noreturn]] void on_error(j_common_ptr common) {
  auto* d = reinterpret_cast<decoder*>(common->err);
  common->err->format_message(common, d->text);
  for (const int code : {JERR_BAD_PRECISION, JERR_SOF_UNSUPPORTED, JERR_ARITH_NOTIMPL, JERR_NOT_COMPILED})
    d->unknown |= common->err->msg_code == code;
  const jpeg_source_mgr* const source = reinterpret_cast<j_decompress_ptr>(common)->src;
  d->left = source != nullptr ? source->bytes_in_buffer : 0;
  std::longjmp(d->back, 1);
}
// What libjpeg calls a warning leaves pixels gray: the file ends too early, codes that do not exist.
void on_message(j_common_ptr common, int level) {
  const int code = common->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM)
    on_error(common);
}

// libjpeg reports by longjmp: nothing with a destructor lives in this function.
// rows == nullptr: only the header is read.
bool decode(std::string_view bytes, decoder& d, unsigned char* rows) {
  jpeg_decompress_struct jpeg{};
  jpeg.err = jpeg_std_error(&d.manager);
  d.manager.error_exit = on_error;
  d.manager.emit_message = on_message;
  if (setjmp(d.back) != 0) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  d.height = jpeg.image_height;
  d.width = jpeg.image_width;
  d.channels = jpeg.num_components;
  d.inks = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  d.arithmetic = jpeg.arith_code != FALSE;
  if (rows != nullptr) {
    jpeg.out_color_space = d.channels == 1 ? JCS_GRAYSCALE : d.inks ? JCS_CMYK : JCS_RGB;
    jpeg.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&jpeg);
    while (jpeg.output_scanline < jpeg.output_height) {
      d.row = jpeg.output_scanline;
      JSAMPROW row = rows + static_cast<size_t>(d.row * d.width * d.channels);
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
  }
  jpeg_destroy_decompress(&jpeg);
  return true;
}

[[noreturn]] void damaged(const std::string& name, std::string_view bytes, const decoder& d) {
  if (d.unknown) fail("{}: a kind of JPEG that is not read ({}); save it as PNG", name, d.text);
  const std::string place = d.row >= 0 ? format_text(" in row {} of {}", d.row, d.height) : "";
  fail("{}: damaged{} near byte {}: {}; get the file again, or save it as PNG", name, place, bytes.size() - d.left,
       d.text);
}

}  // namespace

array read_jpeg(const std::string& name, std::string_view bytes, channels_wanted wanted) {
  decoder d;
  if (!decode(bytes, d, nullptr)) damaged(name, bytes, d);
  if (d.channels != 1 && d.channels != 3 && !d.inks)
    fail("{}: a JPEG of {} channels is not known; save it as PNG", name, d.channels);
  if (d.inks && wanted == channels_wanted::plain)
    fail("{}: its colors are inks (CMYK), which have no gray here; convert it to RGB", name);
  // Huffman codes have at least one bit for 8 x 8 pixels.
  if (!d.arithmetic && d.height * d.width / 512 > static_cast<int64_t>(bytes.size()))
    fail("{}: {} x {} pixels cannot be in {} bytes; get the file again", name, d.width, d.height, bytes.size());
  array a = make_picture(name, d.height, d.width, d.channels, 1);
  auto* samples = reinterpret_cast<unsigned char*>(writable(a));
  if (!decode(bytes, d, samples)) damaged(name, bytes, d);
  // Programs store inks inverted, after Adobe's.
  if (d.inks)
    for (size_t i = 0; i < a.header.data_bytes(); ++i) samples[i] = static_cast<unsigned char>(255 - samples[i]);
  return a;
}
#else
array read_jpeg(const std::string& name, std::string_view, channels_wanted) {
  fail("{}: this lockstep was built without libjpeg-dev; install it and build again, or convert the picture to PPM",
       name);
}
#endif

}  // namespace lockstep::tool
