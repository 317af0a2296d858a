// table.cpp - tables of numbers and plain text, see formats.hpp.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "cli.hpp"
#include "formats.hpp"

namespace lockstep::tool {
namespace {

// The line at begin; afterwards begin is that of the next. A line ends at LF, CR LF or CR.
std::string_view next_line(std::string_view bytes, size_t& begin) {
  const size_t end = std::min(bytes.find_first_of("\r\n", begin), bytes.size());
  const std::string_view line = bytes.substr(begin, end - begin);
  begin = std::min(bytes.size(), end + (bytes.substr(end, 2) == "\r\n" ? 2 : 1));
  return line;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin + 1);
}

// The nearest f8, as NumPy reads it: 1e400 is infinity, 1e-400 is 0. False if text is no number.
bool number(std::string_view text, double& value) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  if (rest != end || code == std::errc::invalid_argument) return false;
  if (code == std::errc::result_out_of_range) value = std::strtod(std::string(text).c_str(), nullptr);
  return true;
}

constexpr std::string_view quotes = "\"'()[]{}";

bool is_blank(std::string_view field) { return field.find_first_not_of(quotes) == std::string_view::npos; }

// A name of a column, not a value that is written oddly (50%, 12:30, "5", (5), NA, TRUE).
bool is_word(std::string_view field) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto same = [](char a, char b) { return (a | 0x20) == b; };
  if (is_blank(field)) return false;
  const size_t begin = field.find_first_not_of(quotes);
  field = field.substr(begin, field.find_last_not_of(quotes) - begin + 1);
  for (const std::string_view value : {"na", "n/a", "null", "none", "nil", "missing", "true", "false"})
    if (std::equal(field.begin(), field.end(), value.begin(), value.end(), same)) return false;
  // In UTF-8 these begin signs, no letters: U+0080 to U+00BF (no-break space), U+2000 to U+2FFF (minus, dash, euro),
  // U+FF00 to U+FF3F (wide digits).
  for (const std::string_view sign : {"\xC2", "\xE2", "\xEF\xBC"})
    if (field.starts_with(sign)) return false;
  double value;
  return (is_letter(field[0]) || field[0] == '_' || static_cast<unsigned char>(field[0]) >= 0x80) &&
         !number(field, value);
}

// The line up to its comment. Spreadsheets write errors, and old C libraries infinities, with a # of their own.
std::string_view without_comment(std::string_view line) {
  constexpr std::string_view values[] = {"N/A", "DIV/0!", "VALUE!", "REF!", "NAME?", "NUM!", "NULL!"};
  constexpr std::string_view numbers[] = {"INF", "QNAN", "SNAN", "IND"};  // 1.#INF
  size_t at = line.find('#');
  for (; at != std::string_view::npos; at = line.find('#', at + 1)) {
    const auto follows = [&](std::string_view value) { return line.substr(at + 1).starts_with(value); };
    const bool dotted = at > 0 && line[at - 1] == '.';
    if (std::none_of(std::begin(values), std::end(values), follows) &&
        !(dotted && std::any_of(std::begin(numbers), std::end(numbers), follows)))
      break;
  }
  return line.substr(0, at);
}

// What separates the fields of a file, as its first line shows; ' ' for white space.
char separator_of(std::string_view line) {
  for (const char c : {';', ',', '\t'})
    if (line.find(c) != std::string_view::npos) return c;
  return ' ';
}

void split(std::string_view line, char separator, std::vector<std::string_view>& fields) {
  fields.clear();
  for (size_t at = 0;;) {
    if (separator == ' ') {
      at = line.find_first_not_of(" \t", at);
      if (at == std::string_view::npos) return;
    }
    const size_t end = separator == ' ' ? line.find_first_of(" \t", at) : line.find(separator, at);
    fields.push_back(trimmed(line.substr(at, end == std::string_view::npos ? end : end - at)));
    if (end == std::string_view::npos) return;
    at = end + 1;
  }
}

[[noreturn]] void no_number(const std::string& name, int64_t line, size_t column, std::string_view field,
                            char separator) {
  const bool comma = separator != ',' && field.find(',') != std::string_view::npos;
  fail("{}: line {}, field {}: \"{}\" is no number; {}", name, line, column + 1, field.substr(0, 40),
       comma ? "write decimals with a point"
             : "write a number, or nan or nothing for a missing one (--skip-lines N leaves out the first N lines, "
               "--as text reads text)");
}

}  // namespace

array read_table(const std::string& name, std::string_view bytes, int64_t skip_lines) {
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF"))
    fail("{}: its text is UTF-16; write it as UTF-8: iconv -f UTF-16 -t UTF-8", name);
  size_t begin = bytes.starts_with("\xEF\xBB\xBF") ? 3 : 0;  // the byte-order mark of UTF-8
  std::vector<double> values;
  std::vector<std::string_view> fields;
  int64_t rows = 0, line_number = 0;
  size_t columns = 0;
  char separator = 0;
  bool first = true;
  while (begin < bytes.size()) {
    std::string_view line = next_line(bytes, begin);
    if (++line_number <= skip_lines) continue;
    line = without_comment(line);
    if (trimmed(line).empty() && (separator != '\t' || line.find('\t') == std::string_view::npos)) continue;
    if (separator == 0) separator = separator_of(line);
    split(line, separator, fields);
    const bool names = first && std::any_of(fields.begin(), fields.end(), is_word) &&
                       std::all_of(fields.begin(), fields.end(),
                                   [](std::string_view field) { return is_blank(field) || is_word(field); });
    first = false;
    if (names) {
      separator = 0;  // names may have spaces or commas of their own
      continue;
    }
    if (rows > 0 && fields.size() != columns)
      fail("{}: line {} has {} fields, those before it {}; give every row as many", name, line_number, fields.size(),
           columns);
    columns = fields.size();
    for (size_t i = 0; i < columns; ++i) {
      values.push_back(std::numeric_limits<double>::quiet_NaN());
      if (!fields[i].empty() && !number(fields[i], values.back()))
        no_number(name, line_number, i, fields[i], separator);
    }
    ++rows;
  }
  if (rows == 0) fail("{}: no line of numbers in it; read text with --as text", name);
  array a = make_array("<f8", {rows, static_cast<int64_t>(columns)});
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
  for (size_t begin = 0; begin < bytes.size();) {
    next_line(bytes, begin);
    offsets.push_back(static_cast<int64_t>(begin));
  }
  array a = make_array("<i8", {static_cast<int64_t>(offsets.size())});
  std::memcpy(writable(a), offsets.data(), offsets.size() * sizeof(int64_t));
  return a;
}

}  // namespace lockstep::tool
