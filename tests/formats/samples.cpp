// samples.cpp - see samples.hpp.
#include "samples.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#if defined(LOCKSTEP_PNG)
#include <png.h>
#endif
#if defined(LOCKSTEP_JPEG)
#include <jpeglib.h>
#endif

namespace {

std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}
std::string big(uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}
std::string noise(size_t count) {
  std::string out;
  uint32_t state = 7;
  for (size_t i = 0; i < count; ++i) out += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return out;
}

uint32_t crc(const char* bytes, size_t count) {
  uint32_t value = ~0u;
  for (size_t i = 0; i < count; ++i) {
    value ^= static_cast<unsigned char>(bytes[i]);
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xEDB88320u : 0);
  }
  return ~value;
}

#if defined(LOCKSTEP_PNG)
// libpng's writer in full, because the simplified one has neither palettes nor 16 stored bits.
std::string png(int color, int depth, int interlace, bool transparent) {
  std::string out;
  png_structp write = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(write);
  if (setjmp(png_jmpbuf(write)) != 0) std::abort();
  png_set_write_fn(
      write, &out,
      [](png_structp self, png_bytep bytes, size_t count) {
        static_cast<std::string*>(png_get_io_ptr(self))->append(reinterpret_cast<char*>(bytes), count);
      },
      nullptr);
  constexpr png_uint_32 width = 13, height = 9;
  png_set_IHDR(write, info, width, height, depth, color, interlace, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_set_gAMA(write, info, 1.0);
  png_color palette[16];
  for (int i = 0; i < 16; ++i) palette[i] = {static_cast<png_byte>(i * 17), static_cast<png_byte>(255 - i), 40};
  png_byte alpha[3] = {0, 128, 200};
  png_color_16 clear{};
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(write, info, palette, depth == 8 ? 16 : 1 << depth);
  if (transparent) png_set_tRNS(write, info, alpha, 3 < 1 << depth ? 3 : 1 << depth, &clear);
  png_write_info(write, info);
  std::string pixels = noise(8 * width * height);
  if (color == PNG_COLOR_TYPE_PALETTE && depth == 8)
    for (char& entry : pixels) entry &= 15;
  for (int pass = png_set_interlace_handling(write); pass > 0; --pass)
    for (png_uint_32 row = 0; row < height; ++row)
      png_write_row(write, reinterpret_cast<png_const_bytep>(pixels.data() + row * 8 * width));
  png_write_end(write, nullptr);
  png_destroy_write_struct(&write, &info);
  return out;
}
#endif

#if defined(LOCKSTEP_JPEG)
std::string jpeg(int channels, bool progressive, int restart) {
  jpeg_compress_struct write{};
  jpeg_error_mgr errors{};
  write.err = jpeg_std_error(&errors);
  jpeg_create_compress(&write);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&write, &memory, &size);
  write.image_width = 37;
  write.image_height = 21;
  write.input_components = channels;
  write.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&write);
  if (progressive) jpeg_simple_progression(&write);
  write.restart_interval = static_cast<unsigned>(restart);
  jpeg_start_compress(&write, TRUE);
  std::string pixels = noise(37 * 21 * 4);
  while (write.next_scanline < write.image_height) {
    JSAMPROW row = reinterpret_cast<JSAMPROW>(pixels.data()) + write.next_scanline * 37 * static_cast<size_t>(channels);
    jpeg_write_scanlines(&write, &row, 1);
  }
  jpeg_finish_compress(&write);
  jpeg_destroy_compress(&write);
  std::string out(reinterpret_cast<char*>(memory), size);
  std::free(memory);
  return out;
}
#endif

std::string wav(int code, int channels, int bits, int container, bool extensible) {
  const auto pcm = [&](int format) {
    return little(format, 2) + little(channels, 2) + little(48000, 4) + little(48000 * channels * container, 4) +
           little(channels * container, 2) + little(extensible ? 8 * container : bits, 2);
  };
  std::string format = pcm(extensible ? 0xFFFE : code);
  if (extensible)
    format += little(22, 2) + little(bits, 2) + little(3, 4) + little(code, 2) +
              std::string("\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71", 14);
  std::string data;
  for (int i = 0; i < 10 * channels; ++i)
    data += little(code == 3 ? 0x3F000000u : (static_cast<uint64_t>(i) * 977 + 1) << (8 * container - bits), container);
  const std::string body = "WAVEfmt " + little(format.size(), 4) + format + "LIST" + little(3, 4) +
                           std::string("abc\0", 4) + "data" + little(data.size(), 4) + data +
                           (data.size() % 2 != 0 ? std::string(1, '\0') : "");
  return "RIFF" + little(body.size(), 4) + body;
}

std::string grid() { return std::string(32, '\1') + big(3, 4) + big(5, 4) + noise(60); }

}  // namespace

std::vector<sample> samples() {
  std::vector<sample> all = {
      {"bits.pbm", "P1\n# c\n5 3\n1 0 110\n00000\n1 1 1 1 1\n", false},
      {"plain.pgm", "P2\n3 2 # c\n300\n0 1 2\n300 4 5\n", false},
      {"plain.ppm", "P3 1 2 255 1 2 3 4 5 6", false},
      {"packed.pbm", "P4\n11 3\n" + noise(6), true},
      {"bytes.pgm", "P5\n7 5\n255\n" + noise(35), true},
      {"lines.pgm", "P5\r\n7 5\r\n255\r\n" + noise(35), true},
      {"wide.ppm", "P6 3 2 65535\n" + noise(36), true},
      {"i8.wav", wav(1, 1, 8, 1, false), true},
      {"i12.wav", wav(1, 2, 12, 2, false), true},
      {"i16.wav", wav(1, 3, 16, 2, true), true},
      {"i24.wav", wav(1, 1, 24, 3, false), true},
      {"i24in32.wav", wav(1, 2, 24, 4, true), true},
      {"i32.wav", wav(1, 2, 32, 4, false), true},
      {"i36.wav", wav(1, 1, 36, 5, true), true},
      {"f32.wav", wav(3, 1, 32, 4, false), true},
      {"f64.wav", wav(3, 2, 64, 8, false), true},
      {"grid.gtx", grid(), true},
      {"names.csv", "\xEF\xBB\xBFname,\"b, c\"\r\n1,2\r\n,1e400\r\n+3,-nan # c\r\n", false},
      {"old.tsv", "1\t2\r\t3\r1e-400\t12345678901234567890123\r", false},
      {"spaces.txt", "# c\n  1  2.5\n\n -3e7 inf\n", false},
      {"semicolons.csv", "1;2\n3;\n", false},
  };
#if defined(LOCKSTEP_PNG)
  for (const auto& [color, depths] :
       std::initializer_list<std::pair<int, std::vector<int>>>{{PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16}},
                                                               {PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8}},
                                                               {PNG_COLOR_TYPE_RGB, {8, 16}},
                                                               {PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16}},
                                                               {PNG_COLOR_TYPE_RGB_ALPHA, {8, 16}}})
    for (const int depth : depths)
      for (const int interlace : {PNG_INTERLACE_NONE, PNG_INTERLACE_ADAM7}) {
        const bool transparent = interlace == PNG_INTERLACE_ADAM7 && (color & PNG_COLOR_MASK_ALPHA) == 0;
        all.push_back({"color" + std::to_string(color) + "depth" + std::to_string(depth) + "way" +
                           std::to_string(interlace) + ".png",
                       png(color, depth, interlace, transparent), true});
      }
#endif
#if defined(LOCKSTEP_JPEG)
  for (const int channels : {1, 3, 4})
    for (const bool progressive : {false, true})
      all.push_back({std::to_string(channels) + (progressive ? "progressive.jpg" : ".jpg"),
                     jpeg(channels, progressive, progressive ? 0 : 2), true});
#endif
  return all;
}

void mend_crc(std::string& png) {
  const auto byte = [&](size_t at) { return static_cast<uint32_t>(static_cast<unsigned char>(png[at])); };
  for (size_t at = 8; at + 12 <= png.size();) {
    const size_t size = byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3);
    if (size > png.size() - at - 12) return;
    png.replace(at + 8 + size, 4, big(crc(png.data() + at + 4, size + 4), 4));
    at += 12 + size;
  }
}
