// import.cpp - lockstep import FILE -o out.npy: a picture, a sound, a grid, a table
// or a text as an array; lockstep export: an array as a picture.
#include "import.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "call.hpp"

namespace lockstep::tool {
namespace {

void write_npy(const std::string& path, const array& a) {
  output_npy out(path, a.header);
  std::memcpy(out.data(), a.data, a.header.data_bytes());
  out.commit();
}

}  // namespace

array import_file(const std::string& path, const std::string& as) {
  const input_file file(path);
  const std::string_view bytes = file.bytes();
  const std::string& name = file.path();
  const bool guess = as == "auto";
  if (bytes.empty() && as != "text" && as != "lines") fail("{} is empty; nothing can be imported from it", name);
  if (guess && npy::kind_of(bytes) == "a .npy array")
    fail("{} is a .npy array already; give it to lockstep run as it is", name);
  if (guess ? is_picture(bytes) : as == "picture") {
    if (!is_picture(bytes)) fail("{}: no PNG, JPEG, PGM or PPM picture", name);
    return read_picture(name, bytes);
  }
  if (as == "gray") {
    if (!is_picture(bytes)) fail("{}: no PNG, JPEG, PGM or PPM picture", name);
    return gray(read_picture(name, bytes));
  }
  if (guess ? is_sound(bytes) : as == "sound") {
    if (!is_sound(bytes)) fail("{}: no RIFF WAVE sound", name);
    return read_sound(name, bytes);
  }
  if (guess ? is_grid(name, bytes) : as == "grid") {
    if (bytes.size() <= 40) fail("{}: too short for a .gtx grid", name);
    return read_grid(name, bytes);
  }
  if (as == "text") return read_bytes(bytes);
  if (as == "lines") return line_offsets(bytes);
  return read_table(name, bytes);
}

array as_picture(const array& a, double low, double high) {
  if (a.header.descr != "<f4" && a.header.descr != "|u1")
    refuse("a picture is made of f4 or u1, this is {}; convert it with NumPy's astype", a.header.descr);
  if (a.header.descr == "|u1") return a;
  array out = make_array("|u1", a.header.shape);
  const double scale = high > low ? 255.0 / (high - low) : 0.0;
  for (int64_t i = 0; i < a.header.elements(); ++i) {
    float value;
    std::memcpy(&value, a.data + 4 * i, 4);
    const double shade = (static_cast<double>(value) - low) * scale;
    writable(out)[i] = static_cast<char>(
        static_cast<unsigned char>(std::lround(std::clamp(std::isnan(shade) ? 0.0 : shade, 0.0, 255.0))));
  }
  return out;
}

array thinned(const array& picture, int64_t width) {
  const std::vector<int64_t>& shape = picture.header.shape;
  if (width <= 0 || shape.size() < 2 || shape[1] <= width || picture.header.descr != "|u1") return picture;
  const int64_t channels = shape.size() == 3 ? shape[2] : 1, height = std::max<int64_t>(1, shape[0] * width / shape[1]);
  std::vector<int64_t> small = shape;
  small[0] = height;
  small[1] = width;
  array out = make_array("|u1", small);
  // Each pixel is the mean of the block that it covers.
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t y0 = y * shape[0] / height, y1 = std::max(y0 + 1, (y + 1) * shape[0] / height);
        const int64_t x0 = x * shape[1] / width, x1 = std::max(x0 + 1, (x + 1) * shape[1] / width);
        int64_t sum = 0;
        for (int64_t v = y0; v < y1; ++v)
          for (int64_t u = x0; u < x1; ++u)
            sum += static_cast<unsigned char>(picture.data[(v * shape[1] + u) * channels + c]);
        const int64_t count = (y1 - y0) * (x1 - x0);
        writable(out)[(y * width + x) * channels + c] = static_cast<char>((sum + count / 2) / count);
      }
  return out;
}

void import_command(command root, action& chosen) {
  struct options {
    std::string input, output, as = "auto";
    double low = 0, high = 255;
    int64_t width = 0;
  };
  auto in = std::make_shared<options>();
  auto taken = root.add_command("import", "Turn a picture, a sound, a grid, a table or a text into a .npy array");
  taken.add("input", in->input, "PNG, JPEG, PGM, PPM; WAV; GTX; numbers between commas or spaces; - for stdin")
      .required()
      .type_name("FILE");
  taken.add("-o,--output", in->output, "the array, - for stdout").required().type_name("OUT.npy");
  taken
      .add("--as", in->as,
           "auto, picture, gray (f4), sound, grid, table, text (bytes as i4) or lines (where they begin, i8)")
      .type_name("KIND")
      .one_of({"auto", "picture", "gray", "sound", "grid", "table", "text", "lines"});
  taken.when_called([&chosen, in] {
    chosen = [in] {
      const array a = import_file(in->input, in->as);
      write_npy(in->output, a);
      print_error("{} {} -> {}\n", a.header.descr, shape_text(a.header.shape), in->output);
      return 0;
    };
  }  // namespace lockstep::tool
  );

  auto out = std::make_shared<options>();
  auto command = root.add_command("export", "Turn a 2-D f4 or a u1 array into a picture");
  command.add("input", out->input, "the array, - for stdin").required().type_name("IN.npy");
  command.add("-o,--output", out->output, "a name that ends in .png, .pgm or .ppm; - for a PNG on stdout")
      .required()
      .type_name("FILE");
  command.add("--low", out->low, "what becomes black (f4)").show_default();
  command.add("--high", out->high, "what becomes white (f4)").show_default();
  command.add("--width", out->width, "shrink to this width, by the mean of the pixels")
      .type_name("PIXELS")
      .between(int64_t{1}, int64_t{1} << 31);
  command.when_called([&chosen, out] {
    chosen = [out] {
      if (!(std::isfinite(out->low) && std::isfinite(out->high) && out->low < out->high))
        refuse("--low {} and --high {}: give two finite numbers, the smaller one first", out->low, out->high);
      const array in = in_c_order(context({.backend = "cpu", .variant = {}, .isa = {}}), read_npy(out->input));
      write_picture(out->output, thinned(as_picture(in, out->low, out->high), out->width));
      return 0;
    };
  });
}

}  // namespace lockstep::tool
