// pixels.cu - interleaving and deinterleaving: pixels of 2 to 4 channels, and their planes.
//
// Idea    A thread takes 16 bytes of each plane, and the same pixels where they lie together: both sides are whole
//         16-byte accesses, and elements change places in registers.
// Moves   every element once in, once out.
// Limit   the L2, then DRAM; the ceiling is a device-to-device copy of the same bytes.
// Watch   Where pixels lie together, a warp's lanes are 32 to 64 bytes apart: the L1 joins what they load, but nothing
//         joins what they store, so they hand it to one another through shared memory.
// Source  this repository; figures in tests/results/tries.md.
#include "../kernel/element.cuh"
#include "pixels.hpp"
#include "walk.cuh"

namespace lockstep::cuda {
namespace {

constexpr int threads = register_threads;
constexpr int64_t most_channels = 4;

struct pixels_plan : move_walk {  // units of pixels, then the other axes
  int64_t plane;                  // bytes from a plane to the next
};

// apart: src has the planes, else dst.
template <int bytes, int channels, bool apart>
__global__ void __launch_bounds__(threads) permute_pixels(const __grid_constant__ pixels_plan plan) {
  using element = typename element_of<bytes>::type;
  constexpr int pixels = 16 / bytes;
  const uint32_t unit = blockIdx.x * threads + threadIdx.x, lane = threadIdx.x % 32;
  const bool wanted = unit < plan.units;
  const auto [from, to] = place_of(plan, wanted ? unit : 0);
  follow_on();
  uint4 in[channels], out[channels];
  const unsigned char* const src = plan.src + from;
#pragma unroll
  for (int c = 0; c < channels; ++c) in[c] = __ldg(reinterpret_cast<const uint4*>(src + c * (apart ? plan.plane : 16)));
  element x[channels * pixels], y[channels * pixels];
  memcpy(x, in, sizeof x);
#pragma unroll
  for (int c = 0; c < channels; ++c)
#pragma unroll
    for (int p = 0; p < pixels; ++p) {
      const int in_planes = c * pixels + p, in_pixels = p * channels + c;
      y[apart ? in_pixels : in_planes] = x[apart ? in_planes : in_pixels];
    }
  memcpy(out, y, sizeof y);
  if constexpr (apart) {
    // The warp's pixels change hands, so that neighbouring lanes store neighbouring 16 bytes.
    __shared__ uint4 together[threads / 32][32 * channels];
    uint4* const mine = together[threadIdx.x / 32];
#pragma unroll
    for (int c = 0; c < channels; ++c) mine[lane * channels + c] = out[c];
    __syncwarp();
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      const uint32_t place = c * 32 + lane, owner = place / channels;
      const int64_t its = __shfl_sync(~0u, to, static_cast<int>(owner)) + place % channels * 16;
      if (unit - lane + owner < plan.units) *reinterpret_cast<uint4*>(plan.dst + its) = mine[place];
    }
  } else if (wanted) {
    const int64_t next = plan.plane;
#pragma unroll
    for (int c = 0; c < channels; ++c) *reinterpret_cast<uint4*>(plan.dst + to + c * next) = out[c];
  }
}

// Which axis is the channels', which the pixels', and on which side pixels lie together.
struct image {
  int channels = -1, pixels = -1;
  bool apart = false;
};
image image_of(const axes& a) {
  if (a.rank < 2) return {};
  const int in_src = a.fastest_src(), in_dst = a.fastest_dst();
  const bool apart = a.at[in_dst].count <= most_channels && a.at[in_src].dst == a.at[in_dst].count;
  const bool together = a.at[in_src].count <= most_channels && a.at[in_dst].src == a.at[in_src].count;
  if (in_src == in_dst || a.at[in_src].src != 1 || a.at[in_dst].dst != 1 || !(apart || together)) return {};
  return {apart ? in_dst : in_src, apart ? in_src : in_dst, apart};
}
int64_t units_of(const axes& a) { return a.elements() * a.element_bytes / (16 * a.at[image_of(a).channels].count); }

template <int bytes, int channels>
lockstep_status launch_image(lockstep_queue& queue, const axes& a) {
  const image found = image_of(a);
  const axis &channel = a.at[found.channels], &pixel = a.at[found.pixels];
  pixels_plan plan{};
  plan.src = a.src, plan.dst = a.dst, plan.units = static_cast<uint32_t>(units_of(a));
  plan.plane = (found.apart ? channel.src : channel.dst) * bytes;
  constexpr int64_t together = 16 / bytes;
  plan.axis[plan.rank++] = {divider(pixel.count / together), pixel.src * 16, pixel.dst * 16};
  for (int k = a.rank - 1; k >= 0; --k)
    if (k != found.channels && k != found.pixels)
      plan.axis[plan.rank++] = {divider(a.at[k].count), a.at[k].src * bytes, a.at[k].dst * bytes};
  const auto kernel = found.apart ? permute_pixels<bytes, channels, true> : permute_pixels<bytes, channels, false>;
  return launch_early(queue, "permute_pixels", kernel, dim3((plan.units - 1) / threads + 1), dim3(threads), 0, plan);
}

template <int bytes>
lockstep_status launch_bytes(lockstep_queue& queue, const axes& a) {
  switch (a.at[image_of(a).channels].count) {
    case 2: return launch_image<bytes, 2>(queue, a);
    case 3: return launch_image<bytes, 3>(queue, a);
    default: return launch_image<bytes, 4>(queue, a);
  }
}

}  // namespace

bool pixels_fit(const axes& a) {
  const image found = image_of(a);
  if (found.channels < 0 || a.element_bytes > 4) return false;
  const int64_t together = 16 / a.element_bytes;
  const axis& channel = a.at[found.channels];
  if (a.at[found.pixels].count % together != 0 || (found.apart ? channel.src : channel.dst) % together != 0)
    return false;
  for (int k = 0; k < a.rank; ++k)
    if (k != found.channels && k != found.pixels && (a.at[k].src % together != 0 || a.at[k].dst % together != 0))
      return false;
  return units_of(a) < int64_t{1} << 31;
}

bool pixels_pay(const lockstep_queue& queue, const axes& a) {
  return a.elements() * a.element_bytes >= queue.facts->tuned.moves.pixels_from;
}

lockstep_status launch_pixels(lockstep_queue& queue, const axes& a) {
  switch (a.element_bytes) {
    case 1: return launch_bytes<1>(queue, a);
    case 2: return launch_bytes<2>(queue, a);
    default: return launch_bytes<4>(queue, a);
  }
}

}  // namespace lockstep::cuda
