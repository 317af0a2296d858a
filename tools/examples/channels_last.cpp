// channels_last.cpp - images from NCHW to NHWC and back by one plan each: a plan chooses, and takes memory, once.
#include <cstdint>
#include <cstdio>
#include <lockstep/lockstep.hpp>
#include <vector>

int main() try {
  const std::int64_t nchw[] = {8, 3, 56, 57}, nhwc[] = {8, 56, 57, 3};
  const std::int32_t to_last[] = {0, 2, 3, 1}, to_first[] = {0, 3, 1, 2};
  std::vector<std::uint8_t> image(8 * 3 * 56 * 57), packed(image.size()), back(image.size());
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::uint8_t>(i * 31);

  lockstep::context context;
  lockstep::plan there(context, lockstep_permute_packed(1, 4, nchw, to_last));
  lockstep::plan again(context, lockstep_permute_packed(1, 4, nhwc, to_first));
  for (int batch = 0; batch < 10; ++batch) {
    there.execute(image.data(), packed.data());
    again.execute(packed.data(), back.data());
  }
  std::printf("first pixel %d %d %d, the way back %s\n", packed[0], packed[1], packed[2],
              back == image ? "equal" : "DIFFERS");
  return back == image ? 0 : 1;
} catch (const lockstep::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
