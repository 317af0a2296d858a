// stencil.cpp - cases stencil/<dtype>/<form>/<boundary>/r<radius>/<sizes>
// [/sweeps<n>][/batch<n>,<src gap>,<dst gap>][/pad<src>,<dst>].
#include <bit>

#include "cases.hpp"
#include "tokens.hpp"

namespace lockstep::cases {
namespace {
constexpr const char* forms[] = {"general", "symmetric", "antisymmetric"};
constexpr const char* boundaries[] = {"nearest", "mirror", "reflect", "wrap", "constant", "valid"};

// Sign and magnitude 2^-4 to 2^-1: sweeps neither vanish nor blow up.
double coefficient(uint64_t seed, size_t k) {
  const uint64_t draw = mix(seed * 7919 + k);
  return std::bit_cast<double>((draw & 0x800FFFFFFFFFFFFFu) | ((1019 + (draw >> 52) % 4) << 52));
}
}  // namespace

void parse_stencil(tokens& in, test_case& c) {
  c.op = LOCKSTEP_STENCIL;
  constexpr const char* dtypes[] = {"f32", "f64"};
  const int dtype = in.one_of(dtypes), form = in.one_of(forms), boundary = in.one_of(boundaries);
  if (dtype < 0 || form < 0 || boundary < 0) in.refuse("say dtype/form/boundary");
  const int64_t radius = in.number("r", 1, 0, 16), sweeps = in.number("sweeps", 1, 0, INT32_MAX);
  const auto batch = in.numbers("batch"), pad = in.numbers("pad");
  const auto size = in.sizes();
  if (size.size() > 3) in.refuse("at most three axes");
  c.dtype = dtype == 0 ? LOCKSTEP_F32 : LOCKSTEP_F64;
  lockstep_stencil_desc& d = c.stencil;
  d = lockstep_stencil_packed(static_cast<lockstep_dtype>(c.dtype), static_cast<int32_t>(size.size()), size.data(),
                              static_cast<int32_t>(radius), nullptr, static_cast<lockstep_boundary>(boundary));
  d.form = static_cast<lockstep_form>(form);
  d.sweeps = static_cast<int32_t>(sweeps);
  const size_t count = static_cast<size_t>(radius) * size.size() * (form == 0 ? 2 : 1) + 1;
  d.coefficient_count = static_cast<int32_t>(count);
  for (size_t k = 0; k < count; ++k) c.coefficients.push_back(coefficient(c.seed, k));
  if (form == 2) c.coefficients[0] = 0.0;
  const double values[] = {0.0, -1.5, 1e30, 0.1};
  d.value = values[c.seed % 4];

  const int64_t shrink = boundary == LOCKSTEP_BOUNDARY_VALID ? 2 * radius * sweeps : 0;
  int64_t src_stride = 1, dst_stride = 1;
  for (int k = d.rank - 1; k >= 0; --k) {
    const int64_t axes_inside = d.rank - k;
    d.src_strides[k] = src_stride;
    d.dst_strides[k] = dst_stride;
    src_stride = in.plus(in.times(src_stride, d.shape[k]), pad.empty() ? 0 : in.times(pad.front(), axes_inside));
    dst_stride =
        in.plus(in.times(dst_stride, d.shape[k] - shrink), pad.empty() ? 0 : in.times(pad.back(), axes_inside));
  }
  if (!batch.empty()) {
    d.batch = batch[0];
    d.src_batch_stride = in.plus(src_stride, batch.size() > 1 ? batch[1] : 0);
    d.dst_batch_stride = in.plus(dst_stride, batch.size() > 2 ? batch[2] : 0);
  }
  c.src.element_bytes = c.dst.element_bytes = dtype == 0 ? 4 : 8;
  c.src.axis(d.batch, d.src_batch_stride);
  c.dst.axis(d.batch, d.dst_batch_stride);
  for (int k = 0; k < d.rank; ++k) {
    c.src.axis(d.shape[k], d.src_strides[k]);
    c.dst.axis(d.shape[k] == 0 ? 0 : d.shape[k] - shrink, d.dst_strides[k]);
  }
  c.cell = std::string("stencil ") + dtypes[dtype] + " rank" + std::to_string(d.rank) + " " + boundaries[boundary] +
           " " + forms[form];
}

std::vector<std::string> list_stencil(level depth) {
  std::vector<std::string> names;
  for (const std::string dtype : {"f32", "f64"})
    for (const std::string form : forms)
      for (const std::string boundary : boundaries) {
        const auto add = [&](const std::string& rest) {
          names.push_back("stencil/" + dtype + "/" + form + "/" + boundary + "/" + rest);
        };
        const bool valid = boundary == "valid";
        for (const char* rest : {"r4/1000",
                                 "r4/4097/off1,3",
                                 "r1/33",
                                 "r16/100",
                                 "r4/257/batch3,5,7",
                                 "r2/65/batch20",
                                 "r1/17x33",
                                 "r4/40x70/off1",
                                 "r8/20x129",
                                 "r1/7x9x33",
                                 "r4/12x11x40",
                                 "r2/9x10x35/pad1,2",
                                 "r3/30x41/pad2,1",
                                 "r1/6x7x8/batch3,1,2",
                                 "r4/100/sweeps3",
                                 "r1/30x33/sweeps2",
                                 "r1/9x11x12/sweeps3",
                                 "r4/200/special",
                                 "r1/20x21/special",
                                 "r1/100/zeros",
                                 "r1/20x41/zeros",
                                 "r1/9x10x40/zeros",
                                 "r1/0",
                                 "r2/5x0"})
          add(rest);
        // Rows long enough for blocks of rows, whole registers and two tiles.
        for (const char* rest :
             {"r4/9x131", "r4/9x15x193/off3,1", "r2/13x129/pad1,3", "r3/12x11x160/special", "r4/12x13x128/pad16,32"})
          add(rest);
        if (!valid)  // axes shorter than the radius: folding repeats
          for (const char* rest : {"r4/1", "r4/3", "r16/5", "r4/8", "r7/2x40", "r8/40x3", "r3/1x1", "r4/2x3x5",
                                   "r8/1x2x33", "r5/3/sweeps2", "r2/2x2x2/sweeps2/batch2"})
            add(rest);
        else
          for (const char* rest : {"r4/9", "r1/3x3", "r8/17x18", "r2/5x6x7", "r2/13/sweeps3"}) add(rest);
        // Many sweeps: several passes of them, tiles cut for the threads.
        if (form == "general")
          for (const char* rest : {"r1/5001/sweeps40", "r4/3001/sweeps5", "r2/200x70/sweeps6", "r1/15x40x70/sweeps4",
                                   "r3/700/sweeps4/special",
                                   // Stretches of 512 and 1,024 with their stale ends, lines that are ends alone.
                                   "r1/2017/sweeps16", "r2/1023/sweeps7/off1,3", "r3/2050/sweeps33/batch3,5,2",
                                   "r4/993/sweeps32", "r1/1000/sweeps2/special", "r4/262/sweeps16/batch2",
                                   // Strips of 128 and 256 columns with their stale sides, planes that are edges alone.
                                   "r1/90x530/sweeps8", "r2/61x301/sweeps4/pad3,1", "r1/75x263/sweeps17/off1,2",
                                   "r2/70x700/sweeps9/special", "r1/66x260/sweeps5/batch3,4,8/pad4,8",
                                   "r2/80x600/sweeps3/pad4,8", "r1/50x40/sweeps7", "r2/300x57/sweeps2/off0,1",
                                   // Tiles of 32 x 64 and 128, cubes that are faces alone.
                                   "r1/20x70x140/sweeps3", "r1/18x40x133/sweeps5/pad1,2/off1",
                                   "r1/21x37x136/sweeps4/special", "r1/17x36x68/sweeps2/batch2,4,8/pad4,4"})
            add(rest);
        if (form == "general" && !valid)
          for (const char* rest : {"r5/3/sweeps9", "r2/40x3/sweeps20"}) add(rest);
        // Short rows and planes in number: tiles of more than 8 of them, ragged at the end.
        if (form == "general" && dtype == "f32")
          for (const char* rest : {"r4/9003x9", "r2/5001x5x6", "r2/9/batch9005", "r16/33/batch4500,1,0"}) add(rest);
        if (form == "general") {
          for (int r = 1; r <= 16; ++r) add("r" + std::to_string(r) + "/" + std::to_string(500 + r));
          for (int r = 1; r <= 8; ++r) {
            add("r" + std::to_string(r) + "/25x" + std::to_string(60 + r));
            add("r" + std::to_string(r) + "/18x19x" + std::to_string(30 + r));
            add("r" + std::to_string(r) + "/19x" + std::to_string(190 + 7 * r) + "/off1,2");
            add("r" + std::to_string(r) + "/18x19x" + std::to_string(128 + 7 * r));
            // Rows of whole 16 bytes, and of whole 8.
            add("r" + std::to_string(r) + "/" + std::to_string(480 + 4 * r));
            add("r" + std::to_string(r) + "/26x" + std::to_string(60 + 4 * r));
            add("r" + std::to_string(r) + "/27x" + std::to_string(62 + 4 * r) + "/batch3,4,6");
          }
        }
        if (depth == level::full)
          for (const char* rest :
               {"r4/300001", "r1/100000/off1", "r16/70001", "r4/70000/sweeps2", "r4/500x1001", "r8/300x301/pad3,1",
                "r4/60x61x129", "r2/40x50x257/pad1,3/off1", "r4/33/batch3000", "r1/100x100/sweeps7", "r8/33x34x70",
                "r3/9x9x9/batch40,1,1", "r4/150x1100/sweeps2", "r1/300001/sweeps16", "r1/900x700/sweeps16",
                "r1/50x80x300/sweeps16", "r3/11x12x1100/off1"})
            add(rest);
        // Beyond 32 MiB: stores past the cache, dst on and off its 64 bytes.
        if (depth == level::quick && dtype == "f32" && form == "general" && boundary == "mirror") add("r2/2050x2051");
        if (depth == level::full && dtype == "f32" && form == "general" && (boundary == "mirror" || valid))
          for (const char* rest :
               {"r4/4300003/off0,3", "r4/2060x2070/pad0,1", "r4/150x170x180/off0,1", "r4/160x160x176"})
            add(rest);
      }
  return names;
}

}  // namespace lockstep::cases
