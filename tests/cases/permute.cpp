// permute.cpp - cases permute/b<bytes>/<sizes>/perm<axes>[/pad<src>,<dst>]: pad
// adds elements behind every innermost row and, twice that, behind every plane.
#include <algorithm>

#include "cases.hpp"
#include "tokens.hpp"

namespace lockstep::cases {

void parse_permute(tokens& in, test_case& c) {
  c.op = LOCKSTEP_PERMUTE;
  const auto bytes = in.element_bytes();
  const auto perm = in.numbers("perm", 0, LOCKSTEP_MAX_RANK - 1), pad = in.numbers("pad");
  const auto size = in.sizes();
  const auto rank = static_cast<int32_t>(size.size());
  if (rank > LOCKSTEP_MAX_RANK || perm.size() != size.size()) in.refuse("perm and sizes do not fit");
  int32_t axes[LOCKSTEP_MAX_RANK] = {};
  for (int k = 0; k < rank; ++k) {
    axes[k] = static_cast<int32_t>(perm[static_cast<size_t>(k)]);
    if (axes[k] >= rank || std::find(axes, axes + k, axes[k]) != axes + k)
      in.refuse("perm must name each of 0 to " + std::to_string(rank - 1) + " once");
  }
  lockstep_permute_desc& d = c.permute = lockstep_permute_packed(bytes, rank, size.data(), axes);
  if (!pad.empty()) {
    int64_t src_stride = 1, dst_stride = 1;
    for (int k = rank - 1; k >= 0; --k) {
      d.src_strides[k] = src_stride;
      d.dst_strides[k] = dst_stride;
      src_stride = in.plus(in.times(src_stride, d.shape[k]), in.times(pad.front(), rank - k));
      dst_stride = in.plus(in.times(dst_stride, d.shape[axes[k]]), in.times(pad.back(), rank - k));
    }
  }
  c.src.element_bytes = c.dst.element_bytes = bytes;
  for (int k = 0; k < rank; ++k) {
    c.src.axis(d.shape[k], d.src_strides[k]);
    c.dst.axis(d.shape[axes[k]], d.dst_strides[k]);
  }
  c.cell = "permute b" + std::to_string(bytes) + " rank" + std::to_string(rank) + (pad.empty() ? " packed" : " padded");
}

std::vector<std::string> list_permute(level depth) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& rest) { names.push_back("permute/" + rest); };
  const char* all[] = {"100/perm0",
                       "7/perm0/pad2,1",
                       "17x33/perm1,0",
                       "17x33/perm0,1",
                       "17x33/perm0,1/pad0,1",
                       "5x64/perm1,0/pad3,1",
                       "3x5x7/perm0,1,2",
                       "3x5x7/perm0,2,1",
                       "3x5x7/perm1,0,2",
                       "13x5x9/perm1,2,0",
                       "13x5x9/perm2,0,1/pad1,2",
                       "33x2x35/perm2,1,0",
                       "4x1x6/perm2,1,0/pad1,1",
                       "32x32x3/perm1,0,2/off1,2",
                       "2x3x4x5/perm0,2,3,1",
                       "2x5x6x7/perm0,3,1,2",
                       "6x5x4x3/perm3,2,1,0",
                       "3x4x5x6/perm2,3,0,1/pad2,0",
                       "2x33x5x17/perm0,1,3,2",
                       "4x7x3x8/perm0,2,1,3",
                       "3x1x4x1x5/perm4,3,2,1,0",
                       "2x3x4x3x2/perm1,0,2,4,3/pad1,2",
                       "3x2x4x5x3x2/perm5,1,3,0,4,2",
                       "2x2x3x2x2x3/perm3,2,5,4,0,1/pad1,1",
                       "2x2x3x2x2x2x3/perm6,5,4,3,2,1,0",
                       "2x3x2x2x1x2x2/perm1,0,3,2,5,4,6/pad2,1",
                       "2x2x2x2x2x2x2x2/perm7,6,5,4,3,2,1,0",
                       "2x1x3x2x2x1x2x3/perm3,1,7,0,5,2,4,6/pad1,3",
                       "3x0x4/perm2,1,0",
                       "0/perm0",
                       "1x1x1/perm2,0,1"};
  for (const char* bytes : {"b1/", "b2/", "b4/", "b8/", "b16/"}) {
    for (const char* rest : all) add(std::string(bytes) + rest);
    add(std::string(bytes) + "9x11x13/perm2,1,0/special/off3,1");
    // Pixels that change places whole, of 3 to 112 bytes; and taken apart, put together.
    for (const char* rest : {"70x150x3/perm1,0,2/off1,1", "67x45x3/perm1,0,2/pad2,1", "5x23x31x7/perm0,2,1,3",
                             "2x9x600x3/perm0,3,1,2", "2x3x9x601/perm0,2,3,1"})
      add(std::string(bytes) + rest);
  }
  // Short axes that hold whole chunks of 8 or 16 bytes, in several boxes, some of them cut short.
  for (const char* rest :
       {"b1/24x5x16x7x32/perm2,4,1,3,0", "b2/12x3x28x5x20x12/perm5,1,3,0,4,2", "b4/12x3x28x5x20x12/perm5,1,3,0,4,2",
        "b4/14x6x5x18x10/perm4,1,3,2,0", "b4/28x3x20x12/perm3,1,2,0/off4,8", "b8/10x7x9x6x14/perm4,2,3,1,0",
        "b16/6x5x11x7x9/perm4,1,3,2,0"})
    add(rest);
  // Short rows of src that a thread holds: of one to four times 16 bytes.
  for (const char* rest :
       {"b1/5x32x7x16/perm3,0,2,1", "b2/5x24x7x8/perm3,0,2,1", "b2/5x24x7x16/perm3,0,2,1", "b4/5x12x7x4/perm3,0,2,1",
        "b4/5x12x7x8/perm3,0,2,1", "b4/5x12x7x12/perm3,0,2,1/pad4,8", "b4/9x28x11x12/perm3,0,2,1/off4,8",
        "b4/9x28x11x12/perm3,0,2,1/off1,4", "b4/5x12x7x16/perm3,2,0,1", "b8/5x6x7x2/perm3,0,2,1",
        "b8/5x6x7x4/perm3,0,2,1", "b8/5x6x7x6/perm3,0,2,1", "b8/5x6x7x8/perm3,0,2,1", "b16/5x3x7x2/perm3,0,2,1",
        "b16/5x3x7x3/perm3,0,2,1", "b16/5x3x7x4/perm3,0,2,1"})
    add(rest);
  // Planes of whole 16 bytes as pixels of 2 to 4 channels, and back.
  for (const char* bytes : {"b1/", "b2/", "b4/"})
    for (const char* rest : {"2x3x9x16/perm0,2,3,1", "3x2x48/perm0,2,1", "2x3x4x32/perm1,0,3,2", "3x64x2/perm0,2,1",
                             "2x80x3/perm0,2,1/pad0,16", "32x4x5/perm2,1,0", "5x4x160/perm0,2,1/off1,3"})
      add(std::string(bytes) + rest);
  // Large enough (16 MiB moved) for the CPU's stores around the cache, with short rows that go on along another axis:
  // in several tasks, the last one short, ragged in dst, one of whose lines begin elsewhere.
  for (const char* rest :
       {"b1/64x5x201x128/perm3,2,1,0", "b2/64x9x131x64/perm3,2,1,0", "b4/16x9x331x48/perm3,2,1,0",
        "b4/48x21x27x80/perm3,2,1,0/off0,4", "b4/64x130x256/perm2,1,0", "b8/24x7x99x72/perm3,2,1,0",
        "b16/12x9x70x80/perm3,2,1,0",
        // Odd axes in several boxes a block of threads, on a GPU.
        "b1/15x17x31x1001/perm3,2,1,0/off1,3", "b1/15x17x31x1001/perm0,2,1,3/off3,1", "b1/4099x61x7x3/perm1,0,3,2",
        "b2/4099x61x7x3/perm3,2,1,0/off1,1", "b2/15x17x31x501/perm2,3,0,1/pad1,3", "b4/2047x61x7x3/perm0,3,1,2"})
    add(rest);
  if (depth == level::full)
    for (const char* bytes : {"b1/", "b2/", "b4/", "b8/", "b16/"})
      for (const char* rest :
           {"8x64x28x28/perm0,2,3,1", "8x28x28x64/perm0,3,1,2", "16x24x32x40/perm3,2,1,0", "16x24x32x40/perm2,3,0,1",
            "16x24x32x40/perm0,1,3,2", "16x32x24x40/perm0,2,1,3", "6x5x7x8x9x3/perm5,1,3,0,4,2",
            "100x100x101/perm1,0,2", "127x3x129/perm2,1,0/pad5,3/off1,1", "70000x3x2/perm1,2,0", "3x70000x2/perm2,1,0"})
        add(std::string(bytes) + rest);
  return names;
}

}  // namespace lockstep::cases
