// presets.cpp - the cases of each preset. Names are those of tests/cases.
#include "bench.hpp"

namespace lockstep::tool::bench {
namespace {

const std::vector<line> readme_cuda = {
    {"transpose/b4/16384x16384"},
    {"transpose/b4/32768x32768"},
    {"transpose/b4/10000x7001"},
    {"transpose/b4/4096x4096"},
    {"transpose/b4/20000000x8"},
    {"transpose/b4/8x20000000"},
    {"transpose/b8/16384x8192"},
    {"transpose/b2/16384x16384"},
    {"transpose/b1/16384x16384"},
    {"permute/b4/32x64x112x112/perm0,2,3,1"},
    {"permute/b4/32x112x112x64/perm0,3,1,2"},
    {"permute/b4/64x96x128x160/perm3,2,1,0"},
    {"permute/b4/64x96x128x160/perm2,3,0,1"},
    {"permute/b4/64x96x128x160/perm0,1,3,2"},
    {"permute/b4/64x128x96x160/perm0,2,1,3"},
    {"permute/b4/24x20x28x32x36x12/perm5,1,3,0,4,2"},
    {"square_sum/ssq/f32/full/1073741824"},
    {"square_sum/ssq/f32/full/268435456"},
    {"square_sum/ssq/f32/full/16777216"},
    {"square_sum/ssq/f32/full/4194304"},
    {"square_sum/ssq/f32/full/1048576"},
    {"square_sum/ssq/i32/full/1073741824/sparse"},
    {"square_sum/ssq/i32/full/268435456/sparse"},
    {"square_sum/ssq/i32/full/16777216/sparse"},
    {"square_sum/ssq/i32/full/1048576/sparse"},
    {"reduce/sum/f32/full/1073741824"},
    {"reduce/max/f32/full/1073741824"},
    {"reduce/argmax/f32/full/1073741824"},
    {"reduce/sum/f32/rows/16777216x32"},
    {"reduce/sum/f32/rows/16777216x32/to_f32"},
    {"reduce/sum/f32/rows/1048576x257"},
    {"reduce/sum/f32/rows/16384x16384"},
    {"reduce/sum/f32/rows/64x4194304"},
    {"reduce/argmax/f32/rows/16777216x32"},
    {"reduce/argmax/f32/rows/1048576x257"},
    {"reduce/argmax/f32/rows/16384x16384"},
    {"reduce/argmax/f32/rows/64x4194304"},
    {"stencil/f32/symmetric/nearest/r4/268435456"},
    {"stencil/f32/symmetric/nearest/r4/16777216"},
    {"stencil/f32/symmetric/nearest/r4/512x512x512"},
    {"stencil/f32/symmetric/nearest/r4/1000x1000x1000"},
    {"shuffle/b4/xor/w32/op1/n268435456"},
    {"normalize/rms/bf16/16384x4096/weight"},
    {"normalize/layer/f32/16384x4096/weight/bias"},
    {"normalize/l2/f32/65536x768"},
    {"normalize/rms_backward/bf16/16384x4096/weight/of_weight"},
    {"normalize/layer_backward/f32/16384x4096/weight/of_weight/of_bias"},
    {"scan/sum/f32/full/268435456"},
    {"scan/sum/f32/rows/65536x4096"},
    {"scan/sum/f32/columns/16384x16384"},
    {"sums/dot/f32/full/268435456"},
    {"sums/meanvar/f32/full/268435456"},
    {"sums/meanvar/f32/columns/16384x16384"},
    {"reduce_axes/sum/f32/256x256x56x56/axes0,2,3"},
    {"convert/f32/bf16/268435456/perm0"},
    {"convert/f32/f16/16384x16384/perm1,0"},
    {"convert/bf16/f32/16x1024x32x128/perm0,2,1,3"},
    {"group/1000/varied/square_sum/norm2/f32/full/262144"},
    {"group/300/transpose/b4/256x256"},
};
const std::vector<line> readme_cpu = {
    {"transpose/b4/256x256"},
    {"transpose/b4/512x512"},
    {"transpose/b4/2048x2048"},
    {"transpose/b4/4096x4096"},
    {"transpose/b4/16384x16384"},
    {"transpose/b4/10000x7001"},
    {"transpose/b8/4096x4096"},
    {"transpose/b1/16384x16384"},
    {"transpose/b4/32x32/batch4096"},
    {"transpose/b4/1024x1024/batch256"},
    {"transpose/b4/2000000x8"},
    {"transpose/b4/8x2000000"},
    {"permute/b4/32x64x112x112/perm0,2,3,1"},
    {"permute/b4/32x112x112x64/perm0,3,1,2"},
    {"permute/b4/64x96x128x160/perm3,2,1,0"},
    {"permute/b4/64x96x128x160/perm0,1,3,2"},
    {"permute/b4/64x128x96x160/perm0,2,1,3"},
    {"square_sum/ssq/f32/full/268435456"},
    {"square_sum/ssq/f32/full/16777216"},
    {"square_sum/ssq/f32/full/262144"},
    {"square_sum/ssq/i32/full/268435456/sparse"},
    {"square_sum/ssq/i32/full/262144/sparse"},
    {"square_sum/ssq/f64/full/134217728"},
    {"square_sum/ssq/f64/full/131072"},
    {"reduce/sum/f32/full/268435456"},
    {"reduce/max/f32/full/268435456"},
    {"reduce/argmax/f32/full/268435456"},
    {"reduce/argmax/f32/full/262144"},
    {"reduce/sum/f32/rows/1048576x32"},
    {"reduce/max/f32/rows/1048576x32"},
    {"reduce/argmax/f32/rows/1048576x32"},
    {"stencil/f32/symmetric/nearest/r4/268435456"},
    {"stencil/f32/symmetric/nearest/r4/16777216"},
    {"stencil/f32/symmetric/nearest/r4/262144"},
    {"stencil/f32/symmetric/nearest/r4/512x512x512"},
    {"normalize/rms/bf16/16384x4096/weight"},
    {"normalize/layer/f32/16384x4096/weight/bias"},
    {"normalize/l2/f32/65536x768"},
    {"normalize/rms_backward/bf16/16384x4096/weight/of_weight"},
    {"normalize/layer_backward/f32/16384x4096/weight/of_weight/of_bias"},
    {"scan/sum/f32/full/67108864"},
    {"scan/sum/f32/rows/65536x768"},
    {"sums/dot/f32/full/134217728"},
    {"sums/meanvar/f32/full/134217728"},
    {"reduce_axes/sum/f32/64x256x56x56/axes0,2,3"},
    {"convert/f32/f16/8192x8192/perm1,0"},
    {"convert/f16/f32/134217728/perm0"},
    {"sums/meanvar/f32/columns/16384x4096"},
    {"group/1000/varied/square_sum/norm2/f32/full/65536"},
};
const std::vector<line> quick = {
    {"transpose/b4/2048x2048"},
    {"transpose/b4/1999x3001"},
    {"permute/b4/8x64x56x56/perm0,2,3,1"},
    {"square_sum/ssq/f32/full/16777216"},
    {"square_sum/norm2/f64/full/4194304"},
    {"reduce/sum/f32/rows/65536x64"},
    {"reduce/argmax/f32/full/16777216"},
    {"stencil/f32/symmetric/nearest/r4/16777216"},
    {"stencil/f32/symmetric/nearest/r4/192x192x192"},
    {"shuffle/b4/xor/w32/op1/n4194304"},
    {"normalize/rms/bf16/4096x4096/weight"},
    {"normalize/layer_backward/f32/4096x768/weight/of_weight/of_bias"},
    {"scan/sum/f32/full/16777216"},
    {"sums/dot/f32/full/16777216"},
    {"convert/f32/bf16/4096x4096/perm1,0"},
    {"reduce_axes/sum/f32/64x256x28x28/axes0,2,3"},
    {"group/200/varied/square_sum/norm2/f32/full/65536"},
};
// All steps of the ladder, in the geometry of the lessons.
const std::vector<line> ladder = {
    {"transpose/b4/8192x8192", "all"},
    {"square_sum/ssq/i32/full/1048576/small", "all"},
    {"square_sum/ssq/f32/full/16777216", "all"},
    {"reduce/sum/f32/full/16777216", "all"},
    {"reduce/sum/f32/rows/65536x257", "all"},
    {"stencil/f32/symmetric/nearest/r4/16777216", "all"},
    {"stencil/f32/symmetric/nearest/r4/256x256x256", "all"},
    {"permute/b4/32x64x112x112/perm0,2,3,1", "all"},
    {"stencil/f32/antisymmetric/nearest/r4/16777216", "all"},
    {"reduce/sum/f32/columns/16384x1024", "all"},
    {"reduce/sum/f32/mixed/33554x1000", "all"},
    {"shuffle/b4/idx/w16/op3/n16777216", "all"},
    {"shuffle/b4/up/w32/op1/n16777216", "all"},
    {"shuffle/b4/down/w32/op1/n16777216", "all"},
    {"shuffle/b4/xor/w32/op1/n16777216", "all"},
};

// To 2^28 elements on a CPU, 2^30 elsewhere: the oracle's arrays lie in the host's memory, 4 GiB each there.
std::vector<line> sweep(const std::string& backend) {
  const int64_t most = int64_t{1} << (backend == "cpu" ? 28 : 30);
  std::vector<line> lines;
  for (int64_t n = 256; n <= most; n *= 4) {
    lines.push_back({format_text("square_sum/ssq/f32/full/{}", n)});
    lines.push_back({format_text("stencil/f32/symmetric/nearest/r4/{}", n)});
  }
  for (int64_t side = 16; side * side <= most; side *= 2) {
    lines.push_back({format_text("transpose/b4/{}x{}", side, side)});
    lines.push_back({format_text("transpose/b4/{}x{}", side + 1, side - 1)});
  }
  return lines;
}

// Many sweeps in one call, beside as many single ones by the rows that take those.
std::vector<line> time_loop(const std::string& backend) {
  const bool cpu = backend == "cpu";
  std::vector<line> lines;
  for (const std::string dtype : {"f32", "f64"})
    for (const int sweeps : {4, 16}) {
      const auto add = [&](int radius, const std::string& size) {
        lines.push_back({format_text("stencil/{}/symmetric/nearest/r{}/{}/sweeps{}", dtype, radius, size, sweeps),
                         cpu ? "^(sweeps_.*|row_blocks|lines|tiled)$" : "^(sweeps_.*|wide|streamed)$"});
      };
      for (const int radius : {1, 2, 3, 4}) add(radius, "67108864");
      for (const int radius : {1, 2}) add(radius, cpu ? "8192x8192" : "16384x16384");
      add(1, cpu ? "400x400x400" : "512x512x512");
    }
  return lines;
}

}  // namespace

std::vector<std::string> preset_names() {
  return {"quick", "ladder", "readme", "sweep", "cliffs", "time_loop", "crossover", "full"};
}

std::vector<line> preset(const std::string& name, const std::string& backend) {
  if (name == "quick") return quick;
  if (name == "ladder") return ladder;
  if (name == "sweep") return sweep(backend);
  if (name == "cliffs") return cliffs(backend);
  if (name == "time_loop") return time_loop(backend);
  const std::vector<line>& readme = backend == "cpu" ? readme_cpu : readme_cuda;
  if (name == "readme") return readme;
  std::vector<line> all = readme;  // full
  all.insert(all.end(), ladder.begin(), ladder.end());
  // The preset cliffs has every op with every element size, type and layout.
  for (const auto& more : {sweep(backend), cliffs(backend)}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace lockstep::tool::bench
