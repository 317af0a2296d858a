// sources.cpp - see sources.hpp.
#include "sources.hpp"

#include <unistd.h>

#include <cstring>

#include "cli.hpp"
#include "import.hpp"

namespace lockstep::tool {
namespace {

struct source {
  const char *path, *package, *what;
};
constexpr source pictures[] = {
    {"/usr/share/backgrounds/mate/abstract/Elephants_5640x3172.jpg", "mate-backgrounds",
     "a desktop picture, 5640 x 3172"},
    {"/usr/share/desktop-base/softwaves-theme/grub/grub-16x9.png", "desktop-base", "a boot screen, 1920 x 1080"},
};
constexpr source signals[] = {
    {"/usr/share/sounds/alsa/Front_Center.wav", "alsa-utils", "a voice says \"front center\", 48 kHz"},
};
constexpr source tables[] = {
    {"/usr/share/proj/egm96_15.gtx", "proj-data", "heights of the geoid EGM96 in metres, every 15 minutes of arc"},
};
constexpr source texts[] = {
    {"/usr/share/unicode/UnicodeData.txt", "unicode-data", "the Unicode character database"},
    {"/usr/share/common-licenses/GPL-3", "base-files", "the GNU General Public License"},
};
constexpr const char* self = "/proc/self/exe";
constexpr const char* self_what = "this program's own machine code";

bool readable(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

// What was found for a role; path "" when nothing but this program's own file is there.
template <size_t n>
found_input choose(const char* role, const std::string& given, const source (&sources)[n]) {
  if (!given.empty()) return {role, given, "", "given on the command line"};
  for (const source& s : sources)
    if (readable(s.path)) return {role, s.path, &s == sources ? "" : sources[0].package, s.what};
  return {role, "", sources[0].package, self_what};
}

// This program's own bytes, as many as fit rows of width.
array own_bytes(int64_t width) {
  const input_file file(self);
  const std::string_view bytes = file.bytes();
  const int64_t rows = static_cast<int64_t>(bytes.size()) / width;
  array a = make_array("|u1", {rows, width});
  std::memcpy(writable(a), bytes.data(), static_cast<size_t>(rows * width));
  return a;
}

array as_f32(const array& a, const std::string& path) {
  if (a.header.descr == "<f4") return a;
  if (a.header.descr != "<f8" && a.header.descr != "|u1")
    fail("{} holds {}, a table or signal is f4, f8 or u1", path, a.header.descr);
  array out = make_array("<f4", a.header.shape);
  for (int64_t i = 0; i < a.header.elements(); ++i) {
    double wide = static_cast<unsigned char>(a.data[i]);
    if (a.header.descr == "<f8") std::memcpy(&wide, a.data + 8 * i, 8);
    const auto value = static_cast<float>(wide);
    std::memcpy(writable(out) + 4 * i, &value, 4);
  }
  return out;
}

array read_any(const std::string& path) { return path.ends_with(".npy") ? read_npy(path) : import_file(path, {}); }

array read_any_picture(const std::string& path) {
  if (path.ends_with(".npy")) return read_npy(path);
  const input_file file(path);
  if (!is_picture(file.bytes())) fail("{}: no PNG, JPEG, PBM, PGM or PPM picture; convert it", path);
  return read_picture(path, file.bytes(), channels_wanted::plain);
}

// 16 bits a sample as 8, the pictures' own range.
array eight_bits(array a) {
  if (a.header.descr != "<u2") return a;
  array out = make_array("|u1", a.header.shape);
  for (int64_t i = 0; i < a.header.elements(); ++i) {
    uint16_t wide;
    std::memcpy(&wide, a.data + 2 * i, 2);
    writable(out)[i] = static_cast<char>((wide + 128) / 257);
  }
  return out;
}

array flat(array a) {
  a.header.shape = {a.header.elements()};
  return a;
}

array need_rank(array a, size_t rank, const found_input& from) {
  if (a.header.shape.size() != rank || a.header.elements() == 0 || a.header.fortran)
    fail("{}: {} {} cannot be the {}; it needs {} axes in C order and at least one element", from.path, a.header.descr,
         shape_text(a.header.shape), from.role, rank);
  return a;
}

}  // namespace

real_input find_real_input(const input_paths& given) {
  real_input in;
  in.picture_from = choose("picture", given.picture, pictures);
  in.signal_from = choose("signal", given.signal, signals);
  in.table_from = choose("table", given.table, tables);
  in.text_from = choose("text", given.text, texts);
  for (found_input* from : {&in.picture_from, &in.signal_from, &in.table_from, &in.text_from}) {
    const bool nothing = from->path.empty();
    if (nothing) from->path = self;
    if (from == &in.picture_from) {
      in.color = nothing ? own_bytes(1024) : eight_bits(read_any_picture(from->path));
      in.picture = in.color.header.descr == "<f4" ? in.color : gray(in.color);
      need_rank(in.picture, 2, *from);
    } else if (from == &in.signal_from) {
      in.signal = need_rank(flat(as_f32(nothing ? own_bytes(1024) : read_any(from->path), from->path)), 1, *from);
      if (nothing)  // bytes as 8-bit sound
        for (auto *x = reinterpret_cast<float*>(writable(in.signal)), *end = x + in.signal.header.elements(); x != end;
             ++x)
          *x = (*x - 128) / 128;
    } else if (from == &in.table_from) {
      in.table = need_rank(as_f32(nothing ? own_bytes(1000) : read_any(from->path), from->path), 2, *from);
    } else {
      in.text = need_rank(import_file(from->path, {.as = "text"}), 1, *from);
      in.lines = import_file(from->path, {.as = "lines"});
    }
  }
  return in;
}

}  // namespace lockstep::tool
