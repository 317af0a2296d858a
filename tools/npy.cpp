// npy.cpp - see npy.hpp. The dictionary is a Python literal; this reader accepts the
// subset that NumPy writes: strings, True, False, tuples of non-negative integers.
#include "npy.hpp"

#include <algorithm>
#include <limits>

#include "text.hpp"

namespace lockstep::npy {
namespace {

constexpr int64_t max_i64 = std::numeric_limits<int64_t>::max();
constexpr size_t max_rank = 64;  // NumPy 2's own limit

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw error(format_text(text, std::forward<Args>(args)...));
}

// Makes text from an untrusted file safe for a terminal.
std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 40)) shown += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > 40 ? shown + "..." : shown;
}

class reader {
 public:
  explicit reader(std::string_view text) : text_(text) {}

  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c, const char* where) {
    if (!take(c)) refuse("has a broken header: '{}' expected {}, found \"{}\"", c, where, printable(text_.substr(at_)));
  }
  bool at_end() { return peek() == '\0' && at_ >= text_.size(); }

  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"')
      refuse("has a broken header: a string expected, found \"{}\"", printable(text_.substr(at_)));
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) refuse("has a broken header: a string does not end");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    peek();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    refuse("has a broken header: True or False expected, found \"{}\"", printable(text_.substr(at_)));
  }
  int64_t size() {
    if (peek() == '-') refuse("has a negative size in its shape");
    if (peek() < '0' || peek() > '9')
      refuse("has a broken header: a size expected, found \"{}\"", printable(text_.substr(at_)));
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value))
        refuse("has a size beyond 2^63-1 in its shape");
    take('L');  // Python 2 wrote long integers with an L
    return value;
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> sizes;
    expect('(', "before the shape");
    while (!take(')')) {
      if (sizes.size() == max_rank) refuse("has more than {} axes", max_rank);
      sizes.push_back(size());
      if (!take(',')) {
        expect(')', "after the shape");
        break;
      }
    }
    return sizes;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

// "<f4" of "<f4", "=f4", "|f4" and "f4", which NumPy reads alike on a little-endian machine.
std::string type_of(std::string_view descr) {
  const auto fix = "convert it with NumPy's astype";
  const bool has_order = !descr.empty() && std::string_view("<>=|").find(descr[0]) != std::string_view::npos;
  const std::string_view kind = descr.substr(has_order, 1),
                         bytes = descr.substr(std::min<size_t>(descr.size(), has_order + 1));
  if (kind == "O")
    refuse("holds Python objects (\"|O\"), whose values are not in the file as numbers; convert it: a.astype('f8')");
  const auto is_one_of = [&](std::initializer_list<std::string_view> sizes) {
    return std::find(sizes.begin(), sizes.end(), bytes) != sizes.end();
  };
  bool known = false;
  switch (kind.empty() ? '\0' : kind[0]) {
    case 'b': known = is_one_of({"1"}); break;
    case 'i':
    case 'u': known = is_one_of({"1", "2", "4", "8"}); break;
    case 'f': known = is_one_of({"2", "4", "8"}); break;
    case 'c': known = is_one_of({"8", "16"}); break;
    case 'V': known = is_one_of({"1", "2", "4", "8", "16"}); break;  // opaque; bfloat16 is saved as V2
    default: break;
  }
  const bool ordered = bytes != "1" && kind != "V";
  if (descr.starts_with('>') && ordered)
    refuse("is big-endian (\"{}\"); convert it: a.astype(a.dtype.newbyteorder('<'))", printable(descr));
  if (!known)
    refuse("has the type \"{}\"; lockstep moves elements of 1, 2, 4, 8 or 16 bytes (b i u f c V); {}", printable(descr),
           fix);
  return format_text("{}{}{}", ordered ? '<' : '|', kind, bytes);
}

}  // namespace

size_t header::element_bytes() const { return static_cast<size_t>(std::stoi(descr.substr(2))); }
int64_t header::elements() const {
  int64_t product = 1;
  for (const int64_t n : shape) product *= n;
  return product;
}

std::string_view kind_of(std::string_view bytes) {
  constexpr std::pair<std::string_view, std::string_view> beginnings[] = {
      {magic, "a .npy array"},           {"\x89PNG", "a PNG picture"}, {"\xFF\xD8\xFF", "a JPEG picture"},
      {"PK\x03\x04", "an .npz archive"}, {"\x89HDF", "an HDF5 file"},  {"\x1F\x8B", "compressed by gzip"},
      {"RIFF", "a WAV sound"},           {"\x7F\x45LF", "a program"},  {"\x80\x04\x95", "a Python pickle"}};
  if (bytes.empty()) return "empty";
  for (const auto& [begin, kind] : beginnings)
    if (bytes.starts_with(begin)) return kind;
  return "";
}

header parse(std::string_view bytes) {
  if (!bytes.starts_with(magic)) {
    const std::string_view kind = kind_of(bytes);
    const bool imported = kind.ends_with("picture") || kind.ends_with("sound");
    if (kind.empty()) refuse("is no .npy file (it does not begin with \\x93NUMPY); numpy.save writes one");
    refuse("is {}, no .npy file; {}", kind,
           imported                    ? "make one of it: lockstep import FILE -o OUT.npy"
           : kind == "an .npz archive" ? "save one of its arrays: np.save('a.npy', np.load('FILE.npz')['NAME'])"
                                       : "save the array with numpy.save");
  }
  if (bytes.size() < 10) refuse("is truncated within its header");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  const size_t version = byte(6);
  if (version < 1 || version > 3) refuse("is .npy version {}.{}; lockstep reads versions 1 to 3", version, byte(7));
  const size_t prefix = version == 1 ? 10 : 12;
  if (bytes.size() < prefix) refuse("is truncated within its header");
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (bytes.size() - prefix < length) refuse("is truncated within its header, which says that it has {} bytes", length);

  header h;
  h.data_offset = prefix + length;
  reader in(bytes.substr(prefix, length));
  bool has_descr = false, has_order = false, has_shape = false;
  in.expect('{', "at the beginning");
  while (!in.take('}')) {
    const std::string_view key = in.string();
    in.expect(':', "after a key");
    bool* seen = key == "descr"           ? &has_descr
                 : key == "fortran_order" ? &has_order
                 : key == "shape"         ? &has_shape
                                          : nullptr;
    if (seen == nullptr) refuse("has the unknown key \"{}\" in its header", printable(key));
    if (*seen) refuse("has the key \"{}\" twice in its header", key);
    *seen = true;
    if (seen == &has_descr) {
      if (in.peek() == '[') refuse("holds records; save one field of them: a['name']");
      h.descr = type_of(in.string());
    }
    if (seen == &has_order) h.fortran = in.boolean();
    if (seen == &has_shape) h.shape = in.tuple();
    if (!in.take(',')) {
      in.expect('}', "at the end");
      break;
    }
  }
  if (!in.at_end()) refuse("has something behind the dictionary in its header");
  if (!has_descr || !has_order || !has_shape)
    refuse("lacks the key \"{}\" in its header", !has_descr ? "descr" : !has_order ? "fortran_order" : "shape");

  // An axis of 0 makes any product 0, but strides are products of the others.
  int64_t product = static_cast<int64_t>(h.element_bytes());
  for (const int64_t n : h.shape)
    if (n != 0 && __builtin_mul_overflow(product, n, &product)) refuse("has a shape of more than {} bytes", max_i64);
  return h;
}

std::string format(const header& h) {
  std::string shape = h.shape.empty() ? "()" : format_text("({},)", joined(h.shape, ", "));
  if (h.shape.size() > 1) shape.erase(shape.size() - 2, 1);
  std::string text = format_text("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", h.descr,
                                 h.fortran ? "True" : "False", shape);
  const size_t prefix = text.size() + 10 + 64 <= 65535 ? 10 : 12;
  const size_t total = (prefix + text.size() + 1 + 63) / 64 * 64;  // the newline included
  text.append(total - prefix - text.size() - 1, ' ');
  text += '\n';
  const auto low = [](size_t value, int shift) { return static_cast<char>(value >> shift & 0xFF); };
  std::string out(magic);
  out += {prefix == 10 ? '\1' : '\2', '\0', low(text.size(), 0), low(text.size(), 8)};
  if (prefix == 12) out += {low(text.size(), 16), low(text.size(), 24)};
  return out + text;
}

std::string descr_of(char kind, size_t bytes) {
  return format_text("{}{}{}", bytes == 1 || kind == 'V' ? '|' : '<', kind, bytes);
}

}  // namespace lockstep::npy
