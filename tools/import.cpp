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

namespace {

template <class Value>
double value_of(const char* at) {
  Value value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

using reader = double (*)(const char*);
// nullptr: export does not take such elements.
reader reader_of(const std::string& descr) {
  constexpr std::pair<std::string_view, reader> readers[] = {
      {"|b1", value_of<uint8_t>},  {"|u1", value_of<uint8_t>}, {"<u2", value_of<uint16_t>}, {"<u4", value_of<uint32_t>},
      {"<u8", value_of<uint64_t>}, {"|i1", value_of<int8_t>},  {"<i2", value_of<int16_t>},  {"<i4", value_of<int32_t>},
      {"<i8", value_of<int64_t>},  {"<f4", value_of<float>},   {"<f8", value_of<double>}};
  for (const auto& [name, read] : readers)
    if (descr == name) return read;
  return nullptr;
}

// What becomes white if --high is not given: the largest value of u2, true of b1.
double usual_high(const std::string& descr) { return descr == "<u2" ? 65535 : descr == "|b1" ? 1 : 255; }

}  // namespace

void require_picture(const std::string& name, const npy::header& h) {
  const std::vector<int64_t>& shape = h.shape;
  if (reader_of(h.descr) == nullptr)
    refuse("{} holds {}; a picture is made of integers, f4 or f8: convert it with NumPy's astype{}", name, h.descr,
           h.descr == "<f2" || h.descr == "|V2" ? ", or lockstep run convert --result f32" : "");
  if (shape.size() < 2 || shape.size() > 3 || (shape.size() == 3 && shape[2] != 3 && shape[2] != 4))
    refuse("{} is {} {}; a picture is (height, width) or (height, width, 3 or 4): reshape it with NumPy", name, h.descr,
           shape_text(shape));
  if (h.elements() == 0) refuse("{} is {}; a picture has at least one pixel", name, shape_text(shape));
}

array as_picture(const array& a, double low, double high) {
  if (a.header.descr == "|u1") return a;
  const reader read = reader_of(a.header.descr);
  array out = make_array("|u1", a.header.shape);
  const double scale = 255.0 / (high - low);
  const size_t bytes = a.header.element_bytes();
  for (int64_t i = 0; i < a.header.elements(); ++i) {
    const double shade = (read(a.data + bytes * static_cast<size_t>(i)) - low) * scale;
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
    std::string input, output;
    import_options how;
  };
  auto in = std::make_shared<options>();
  auto taken = root.add_command("import", "Turn a picture, a sound, a grid, a table or a text into a .npy array");
  taken.add("input", in->input, "PNG, JPEG, PBM, PGM, PPM; WAV; GTX; numbers between commas or spaces; - for stdin")
      .required()
      .type_name("FILE");
  taken.add("-o,--output", in->output, "the array, - for stdout").required().type_name("OUT.npy");
  taken
      .add("--as", in->how.as,
           "auto, picture, gray (f4), sound, grid, table, text (bytes as i4) or lines (where they begin, i8)")
      .type_name("KIND")
      .one_of({"auto", "picture", "gray", "sound", "grid", "table", "text", "lines"});
  taken.add("--skip-lines", in->how.skip_lines, "leave out the first lines of a table")
      .type_name("N")
      .between(int64_t{0}, int64_t{1} << 62);
  taken.when_called([&chosen, in] {
    chosen = [in] {
      const array a = import_file(in->input, in->how);
      write_npy(in->output, a);
      print_error("{} {} -> {}\n", a.header.descr, shape_text(a.header.shape), in->output);
      return 0;
    };
  });

  struct picture_options {
    std::string input, output;
    double low = 0, high = 255;
    int64_t width = 0;
  };
  auto out = std::make_shared<picture_options>();
  auto command = root.add_command("export", "Turn an array into a picture");
  command.add("input", out->input, "the array, - for stdin").required().type_name("IN.npy");
  command.add("-o,--output", out->output, "a name that ends in .png, .pgm or .ppm; - for a PNG on stdout")
      .required()
      .type_name("FILE");
  command.add("--low", out->low, "what becomes black (not of u1, which stays as it is)").show_default();
  const option high = command.add("--high", out->high, "what becomes white (default: 255, of u2 65535, of b1 1)");
  command.add("--width", out->width, "shrink to this width, by the mean of the pixels")
      .type_name("PIXELS")
      .between(int64_t{1}, int64_t{1} << 31);
  command.when_called([&chosen, out, high] {
    const bool given = high.given();
    chosen = [out, given] {
      const array in = read_npy(out->input);
      require_picture(out->input == "-" ? "stdin" : out->input, in.header);
      if (!given) out->high = usual_high(in.header.descr);
      if (!(std::isfinite(out->low) && std::isfinite(out->high) && out->low < out->high))
        refuse("--low {} and --high {}: give two finite numbers, the smaller one first", out->low, out->high);
      if (!std::isfinite(out->high - out->low))
        refuse("--low {} and --high {}: their difference is beyond f8; give a smaller range", out->low, out->high);
      const array ordered = in_c_order(context({.backend = "cpu", .variant = {}, .isa = {}}), in);
      write_picture(out->output, thinned(as_picture(ordered, out->low, out->high), out->width));
      return 0;
    };
  });
}

}  // namespace lockstep::tool
