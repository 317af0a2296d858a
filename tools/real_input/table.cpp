// table.cpp - sound, grids, tables of numbers and plain text, see formats.hpp.
#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "cli.hpp"
#include "formats.hpp"

namespace lockstep::tool {
namespace {

uint32_t little(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i)
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}
uint64_t big(std::string_view bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// One sample in [-1, 1): integers over the power of two that they reach.
float sample(std::string_view bytes, size_t at, size_t count, bool is_float) {
  const uint32_t raw = little(bytes, at, count);
  if (is_float) return std::bit_cast<float>(raw);
  if (count == 1) return (static_cast<float>(raw) - 128.0f) / 128.0f;
  const auto value = static_cast<int32_t>(raw << (32 - 8 * count));
  return static_cast<float>(std::ldexp(static_cast<double>(value), -31));
}

}  // namespace

bool is_sound(std::string_view bytes) {
  return bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WAVE";
}

array read_sound(const std::string& name, std::string_view bytes) {
  size_t channels = 0, width = 0;
  bool is_float = false;
  for (size_t at = 12; bytes.size() >= 8 && at <= bytes.size() - 8;) {
    const std::string_view id = bytes.substr(at, 4);
    const size_t body = at + 8, said = little(bytes, at + 4, 4), size = std::min(said, bytes.size() - body);
    if (id == "fmt " && size >= 16) {
      uint32_t code = little(bytes, body, 2);
      if (code == 0xFFFE && size >= 26) code = little(bytes, body + 24, 2);  // the code behind WAVE_FORMAT_EXTENSIBLE
      channels = little(bytes, body + 2, 2);
      width = little(bytes, body + 14, 2) / 8;
      is_float = code == 3;
      if ((code != 1 && code != 3) || channels < 1 || width < 1 || width > 4 || (is_float && width != 4))
        fail("{}: format {}, {} bytes a sample, {} channels; PCM of 8 to 32 bits and 32-bit floats are read", name,
             code, width, channels);
    }
    if (id == "data") {
      if (channels == 0) fail("{}: its data come before their format", name);
      const size_t samples = size / (width * channels);
      std::vector<int64_t> shape = {static_cast<int64_t>(samples)};
      if (channels > 1) shape.push_back(static_cast<int64_t>(channels));
      array a = make_array("<f4", shape);
      auto* to = reinterpret_cast<float*>(writable(a));
      for (size_t i = 0; i < samples * channels; ++i) to[i] = sample(bytes, body + i * width, width, is_float);
      return a;
    }
    at = body + size + (size & 1);  // chunks are padded to an even length
  }
  fail("{}: a WAVE file without data", name);
}

bool is_grid(const std::string& name, std::string_view bytes) { return name.ends_with(".gtx") && bytes.size() > 40; }

array read_grid(const std::string& name, std::string_view bytes) {
  const uint64_t rows = big(bytes, 32, 4), columns = big(bytes, 36, 4);
  if (rows < 1 || columns < 1 || rows * columns != (bytes.size() - 40) / 4)
    fail("{}: {} x {} heights do not fit {} bytes", name, rows, columns, bytes.size());
  array a = make_array("<f4", {static_cast<int64_t>(rows), static_cast<int64_t>(columns)});
  auto* to = reinterpret_cast<float*>(writable(a));
  for (size_t i = 0; i < rows * columns; ++i)
    to[i] = std::bit_cast<float>(static_cast<uint32_t>(big(bytes, 40 + 4 * i, 4)));
  return a;
}

array read_table(const std::string& name, std::string_view bytes) {
  std::vector<double> values;
  int64_t rows = 0, columns = -1, line_number = 0;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const std::string_view line = bytes.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    const size_t before = values.size();
    const char *at = line.data(), *const stop = at + line.size();
    const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (at != stop && is_space(*at)) ++at;
    if (at == stop || *at == '#') continue;
    bool names = false;
    for (;;) {
      double value = std::numeric_limits<double>::quiet_NaN();  // an empty field
      if (at != stop && *at == '+') ++at;
      if (at != stop && *at != ',' && *at != ';') {
        const auto [rest, code] = std::from_chars(at, stop, value);
        const bool whole = rest == stop || is_space(*rest) || *rest == ',' || *rest == ';';
        if (code == std::errc::invalid_argument || !whole) {
          names = true;
          break;
        }
        at = rest;
      }
      values.push_back(value);
      while (at != stop && is_space(*at)) ++at;
      if (at == stop) break;
      if (*at == ',' || *at == ';') ++at;
      while (at != stop && is_space(*at)) ++at;
    }
    if (names) {
      if (rows != 0) fail("{}: line {} has a field that is no number; read text with --as text", name, line_number);
      values.resize(before);
      continue;  // a line of column names above the first row
    }
    const auto here = static_cast<int64_t>(values.size() - before);
    if (columns >= 0 && here != columns)
      fail("{}: line {} has {} fields, those before it {}", name, line_number, here, columns);
    columns = here;
    ++rows;
  }
  if (rows == 0) fail("{}: no line of numbers in it; read text with --as text", name);
  array a = make_array("<f8", {rows, columns});
  std::memcpy(writable(a), values.data(), values.size() * sizeof(double));
  return a;
}

array read_bytes(std::string_view bytes) {
  array a = make_array("<i4", {static_cast<int64_t>(bytes.size())});
  auto* to = reinterpret_cast<int32_t*>(writable(a));
  for (size_t i = 0; i < bytes.size(); ++i) to[i] = static_cast<unsigned char>(bytes[i]);
  return a;
}

array line_offsets(std::string_view bytes) {
  std::vector<int64_t> offsets = {0};
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] == '\n' || i + 1 == bytes.size()) offsets.push_back(static_cast<int64_t>(i) + 1);
  array a = make_array("<i8", {static_cast<int64_t>(offsets.size())});
  std::memcpy(writable(a), offsets.data(), offsets.size() * sizeof(int64_t));
  return a;
}

}  // namespace lockstep::tool
