// sound.cpp - RIFF WAVE, see formats.hpp.
// Source: Microsoft's "Multimedia Programming Interface and Data Specifications 1.0" and "Multiple Channel Audio Data
// and WAVE Files": samples fill their containers from the top, the bits below are 0.
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "cli.hpp"
#include "formats.hpp"

namespace lockstep::tool {
namespace {

uint64_t little(std::string_view bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

struct layout {
  size_t channels = 0, bits = 0, container = 0;  // container: bytes that a sample takes
  bool floats = false;
};

const char* name_of(uint64_t code) {
  switch (code) {
    case 2: return "ADPCM";
    case 6: return "A-law";
    case 7: return "mu-law";
    case 0x55: return "MP3";
    default: return "unknown";
  }
}

layout read_format(const std::string& name, std::string_view chunk) {
  constexpr const char* fix = "write it as PCM: ffmpeg -i IN.wav -c:a pcm_s24le OUT.wav";
  if (chunk.size() < 16) fail("{}: its format has {} bytes, 16 are needed; get the file again", name, chunk.size());
  layout to;
  uint64_t code = little(chunk, 0, 2);
  to.channels = little(chunk, 2, 2);
  const size_t block = little(chunk, 12, 2);  // bytes of a sample of all channels
  to.bits = little(chunk, 14, 2);
  if (code == 0xFFFE) {  // WAVE_FORMAT_EXTENSIBLE: the code begins a GUID
    constexpr std::string_view rest("\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71", 14);
    if (chunk.size() < 40 || chunk.substr(26, 14) != rest) fail("{}: its format has no known GUID; {}", name, fix);
    code = little(chunk, 24, 2);
    if (const size_t valid = little(chunk, 18, 2); valid > 0 && valid < to.bits) to.bits = valid;
  }
  to.floats = code == 3;
  if (code != 1 && code != 3) fail("{}: its format is {} ({}); {}", name, code, name_of(code), fix);
  if (to.channels == 0 || block == 0 || block % to.channels != 0)
    fail("{}: {} bytes are not divided among {} channels; {}", name, block, to.channels, fix);
  to.container = block / to.channels;
  const bool known = to.floats ? to.bits == 8 * to.container && (to.bits == 32 || to.bits == 64)
                               : to.bits >= 1 && to.bits <= 53 && to.container <= 8 && to.bits <= 8 * to.container &&
                                     (to.bits > 8 || to.container == 1);
  if (!known)
    fail("{}: {} of {} bits in {} bytes; integers of 1 to 53 bits and floats of 32 and 64 are read; {}", name,
         to.floats ? "floats" : "integers", to.bits, to.container, fix);
  return to;
}

template <class Value>
array samples_of(const std::string& name, std::string_view data, const layout& from) {
  const size_t count = data.size() / from.container;
  std::vector<int64_t> shape = {static_cast<int64_t>(count / from.channels)};
  if (from.channels > 1) shape.push_back(static_cast<int64_t>(from.channels));
  array a = make_array(npy::descr_of('f', sizeof(Value)), shape);
  if (from.floats) {
    std::memcpy(writable(a), data.data(), data.size());
    return a;
  }
  auto* to = reinterpret_cast<Value*>(writable(a));
  const size_t unused = 8 * from.container - from.bits;
  for (size_t i = 0; i < count; ++i) {
    uint64_t raw = little(data, i * from.container, from.container);
    if ((raw & ((uint64_t{1} << unused) - 1)) != 0)
      fail(
          "{}: sample {} has more than its {} bits: the lowest {} of {} bytes are not 0; write it with as many bits as "
          "its samples take, 16, 24 or 32",
          name, i, from.bits, unused, from.container);
    if (from.container == 1) raw ^= 0x80;  // bytes have no sign, 128 is silence
    const auto value = static_cast<int64_t>(raw << (64 - 8 * from.container));
    to[i] = static_cast<Value>(std::ldexp(static_cast<double>(value), -63));
  }
  return a;
}

}  // namespace

bool is_sound(std::string_view bytes) {
  return bytes.size() >= 12 && bytes.substr(8, 4) == "WAVE" &&
         (bytes.starts_with("RIFF") || bytes.starts_with("RIFX") || bytes.starts_with("RF64"));
}

array read_sound(const std::string& name, std::string_view bytes) {
  if (!bytes.starts_with("RIFF"))
    fail("{}: {} is not read; write it as RIFF WAVE", name, bytes.starts_with("RIFX") ? "big-endian RIFX" : "RF64");
  constexpr const char* fix =
      "it was cut, or written into a pipe: get it again, or ffmpeg -ignore_length 1 -i IN.wav OUT.wav";
  const uint64_t riff_end = little(bytes, 4, 4) + 8;
  std::optional<layout> format;
  for (size_t at = 12; bytes.size() - at >= 8;) {
    const std::string_view id = bytes.substr(at, 4);
    const size_t body = at + 8, size = little(bytes, at + 4, 4), there = bytes.size() - body;
    const bool unsaid = size == 0 && id == "data" && there > 0 && riff_end != body;
    if (size > there || unsaid)
      fail("{}: the chunk \"{}\" at byte {} says {} bytes, {} follow; {}", name, id, at, size, there, fix);
    if (id == "fmt ") format = read_format(name, bytes.substr(body, size));
    at = body + size + (size & 1);  // chunks are padded to an even length
    if (id == "data") {
      if (!format) fail("{}: its data at byte {} come before their format; get the file again", name, body);
      if (riff_end < body + size || riff_end > std::max(bytes.size(), at))
        fail("{}: its header says {} bytes, the file has {}; {}", name, riff_end, bytes.size(), fix);
      if (const size_t block = format->channels * format->container; size % block != 0)
        fail("{}: {} bytes of data at byte {} are no multiple of {}, the bytes of a sample; {}", name, size, body,
             block, fix);
      const std::string_view data = bytes.substr(body, size);
      const bool wide = format->floats ? format->container == 8 : format->bits > 24;
      return wide ? samples_of<double>(name, data, *format) : samples_of<float>(name, data, *format);
    }
    if (at > bytes.size()) break;
  }
  fail("{}: a WAVE file without data; get the file again", name);
}

}  // namespace lockstep::tool
