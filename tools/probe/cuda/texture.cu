// texture.cu - E6: textures of one, two and three dimensions: values, interpolation,
// integers read as fractions, locality in two dimensions.
// Idea    arrays whose values say where they are from; reads between them, compared with
//         interpolation by the host; a 2-D array read by rows, columns and 8 x 4 tiles,
//         beside the same walk through linear memory
// Moves   values: a few KiB; locality: 16 MiB of floats, eight times: once would be 8 us
// Limit   the texture path: four filtered lanes a cycle and partition; L1's sectors
// Watch   filtering keeps 8 bits of the fraction: differences up to 1/512 of a step
#include "../predict.hpp"
#include "bench.cuh"
#include "rows.hpp"

namespace lockstep::probe {
namespace {

// An array with its texture.
class texture {
 public:
  texture(cudaChannelFormatDesc format, cudaExtent size, const void* data, size_t element_bytes,
          cudaTextureFilterMode filter, cudaTextureReadMode read, bool fractions) {
    PROBE_CUDA(cudaMalloc3DArray(&array_, &format, size));
    cudaMemcpy3DParms copy{};
    copy.srcPtr = make_cudaPitchedPtr(const_cast<void*>(data), size.width * element_bytes, size.width,
                                      std::max<size_t>(size.height, 1));
    copy.dstArray = array_;
    copy.extent = make_cudaExtent(size.width, std::max<size_t>(size.height, 1), std::max<size_t>(size.depth, 1));
    copy.kind = cudaMemcpyHostToDevice;
    PROBE_CUDA(cudaMemcpy3D(&copy));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array_;
    cudaTextureDesc how{};
    for (auto& mode : how.addressMode) mode = cudaAddressModeClamp;
    how.filterMode = filter;
    how.readMode = read;
    how.normalizedCoords = fractions;
    PROBE_CUDA(cudaCreateTextureObject(&object_, &resource, &how, nullptr));
  }
  ~texture() {
    if (object_ != 0) (void)cudaDestroyTextureObject(object_);
    if (array_ != nullptr) (void)cudaFreeArray(array_);
    (void)cudaGetLastError();
  }
  texture(const texture&) = delete;
  texture& operator=(const texture&) = delete;
  operator cudaTextureObject_t() const { return object_; }

 private:
  cudaArray_t array_ = nullptr;
  cudaTextureObject_t object_ = 0;
};

struct place {
  float x, y, z;
};

__global__ void e6_read_1d_kernel(cudaTextureObject_t t, const place* at, float* values, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = tex1D<float>(t, at[i].x);
}
__global__ void e6_read_2d_kernel(cudaTextureObject_t t, const place* at, float* values, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = tex2D<float>(t, at[i].x, at[i].y);
}
__global__ void e6_read_3d_kernel(cudaTextureObject_t t, const place* at, float* values, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = tex3D<float>(t, at[i].x, at[i].y, at[i].z);
}

constexpr int side = 16;  // of the arrays whose values are compared
float cell(int x, int y, int z) { return static_cast<float>(x * 3 + y * 50 + z * 1000 + (x * y + z) % 7); }

// Linear interpolation as the programming guide defines it, in exact arithmetic: between
// cell centres, clamped.
double interpolated(const place& at, int dimensions) {
  const double c[3] = {at.x - 0.5, dimensions > 1 ? at.y - 0.5 : 0, dimensions > 2 ? at.z - 0.5 : 0};
  double sum = 0;
  for (int corner = 0; corner < 1 << dimensions; ++corner) {
    double weight = 1;
    int index[3] = {0, 0, 0};
    for (int d = 0; d < dimensions; ++d) {
      const double low = std::floor(c[d]), part = c[d] - low;
      weight *= (corner >> d & 1) != 0 ? part : 1 - part;
      index[d] = std::clamp(static_cast<int>(low) + (corner >> d & 1), 0, side - 1);
    }
    sum += weight * cell(index[0], index[1], index[2]);
  }
  return sum;
}

// The same with the weights of predict.hpp: exact in float, 14 bits of a cell and 8 of a weight.
double filtered(const place& at, int dimensions) {
  double c[3] = {at.x - 0.5, dimensions > 1 ? at.y - 0.5 : 0, dimensions > 2 ? at.z - 0.5 : 0};
  for (double& one : c) one = std::clamp(one, 0.0, side - 1.0);  // before it is split: no fraction beyond the edge
  const std::array<int, 8> weights =
      filter_weights(c[0] - std::floor(c[0]), c[1] - std::floor(c[1]), c[2] - std::floor(c[2]));
  double sum = 0;
  for (size_t corner = 0; corner < 8; ++corner) {
    int index[3];
    for (int d = 0; d < 3; ++d)
      index[d] = std::min(static_cast<int>(std::floor(c[d])) + static_cast<int>(corner >> d & 1), side - 1);
    sum += weights[corner] / 256.0 * cell(index[0], dimensions > 1 ? index[1] : 0, dimensions > 2 ? index[2] : 0);
  }
  return sum;
}

// The largest difference between neighbours along each axis bounds what 8 bits of a
// fraction can cost: half a 256th of it an axis.
double allowed(int dimensions) { return (10.0 + (dimensions > 1 ? 57 : 0) + (dimensions > 2 ? 1007 : 0)) / 512 * 1.01; }

template <class Kernel>
std::vector<float> read_at(Kernel* kernel, cudaTextureObject_t t, const std::vector<place>& places) {
  const device_array<place> at(places);
  const device_array<float> values(places.size());
  PROBE_CUDA(cudaMemset(values, 0xFF, places.size() * sizeof(float)));  // NAN where nothing is written
  kernel<<<1, 256>>>(t, at, values, static_cast<int>(places.size()));
  PROBE_CUDA(cudaGetLastError());
  return values.host();
}

template <class Kernel>
void values_of(bench& b, int dimensions, const char* kernel_name, Kernel* kernel) {
  const int sizes[3] = {side, dimensions > 1 ? side : 1, dimensions > 2 ? side : 1};
  std::vector<float> cells;
  for (int z = 0; z < sizes[2]; ++z)
    for (int y = 0; y < sizes[1]; ++y)
      for (int x = 0; x < sizes[0]; ++x) cells.push_back(cell(x, y, z));
  const auto format = cudaCreateChannelDesc<float>();
  const cudaExtent size = make_cudaExtent(side, dimensions > 1 ? side : 0, dimensions > 2 ? side : 0);
  const std::string name = std::to_string(dimensions) + "-D ";

  // Points: the element that a place lies in, exactly.
  std::vector<place> places;
  for (uint32_t i = 0; i < 1024; ++i) {
    const auto part = [&](uint32_t salt) {
      return static_cast<float>((i * 2654435761u + salt * 40503u) >> 8 & 0xFFFFu) / 65536.0f * side;
    };
    places.push_back({part(1), part(2), part(3)});
  }
  uint64_t same = 0;
  {
    const texture t(format, size, cells.data(), sizeof(float), cudaFilterModePoint, cudaReadModeElementType, false);
    const auto got = read_at(kernel, t, places);
    for (size_t i = 0; i < places.size(); ++i)
      same += got[i] == cell(static_cast<int>(places[i].x), dimensions > 1 ? static_cast<int>(places[i].y) : 0,
                             dimensions > 2 ? static_cast<int>(places[i].z) : 0);
  }
  b.report(name + "points read exactly", kernel_name, "of 1024", NAN, {double(same), double(same), double(same)}, same,
           places.size());
  {
    const texture t(format, size, cells.data(), sizeof(float), cudaFilterModeLinear, cudaReadModeElementType, false);
    const auto got = read_at(kernel, t, places);
    double worst = 0;
    uint64_t near = 0, as_weighed = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      const double off = std::abs(got[i] - interpolated(places[i], dimensions));
      worst = std::max(worst, off);
      as_weighed += got[i] == filtered(places[i], dimensions);
      near += off <= 2 * allowed(dimensions);  // beyond the rounding of the fraction: wrong values, not few bits
    }
    b.report(name + "interpolation, largest difference", kernel_name, "of the bound", NAN,
             {worst / allowed(dimensions), worst / allowed(dimensions), worst / allowed(dimensions)}, near,
             places.size());
    const auto equal = static_cast<double>(as_weighed);  // another device may filter otherwise: no wrong values
    b.report(name + "filtered as weights of 8 bits give it", "", "of 1024", NAN, {equal, equal, equal}, 0, 0);
  }
}

// ---- integers as fractions ------------------------------------------------------

template <class T>
void fractions_of(bench& b, const char* name, double scale) {
  constexpr int n = 256;
  std::vector<T> cells(n);
  for (int i = 0; i < n; ++i) cells[static_cast<size_t>(i)] = static_cast<T>(sizeof(T) == 1 ? i : i * 257);
  const texture t(cudaCreateChannelDesc<T>(), make_cudaExtent(n, 0, 0), cells.data(), sizeof(T), cudaFilterModePoint,
                  cudaReadModeNormalizedFloat, true);
  std::vector<place> places(n);
  for (int i = 0; i < n; ++i) places[static_cast<size_t>(i)] = {(static_cast<float>(i) + 0.5f) / n, 0, 0};
  const auto got = read_at(e6_read_1d_kernel, t, places);
  uint64_t same = 0;
  for (size_t i = 0; i < n; ++i) {
    const double expected = std::max(-1.0, static_cast<double>(cells[i]) / scale);  // the lowest signed value is -1 too
    same += std::abs(got[i] - expected) <= 0x1p-24;
  }
  b.report(name, "e6_read_1d_kernel", "of 256", NAN, {double(same), double(same), double(same)}, same, n);
}

// ---- locality -------------------------------------------------------------------

constexpr int image = 2048, rounds = 8;  // 16 MiB of floats
enum class walk { rows, columns, tiles };

// Element of lane l of warp w, of all elements of the image once.
__host__ __device__ inline void element_of(walk how, uint32_t warp, uint32_t lane, uint32_t& x, uint32_t& y) {
  constexpr uint32_t across = image / 32;
  switch (how) {
    case walk::rows: x = warp % across * 32 + lane, y = warp / across; break;
    case walk::columns: y = warp % across * 32 + lane, x = warp / across; break;
    case walk::tiles: x = warp % (image / 8) * 8 + lane % 8, y = warp / (image / 8) * 4 + lane / 8; break;
  }
}
__host__ __device__ inline float pixel(uint32_t x, uint32_t y) { return static_cast<float>((x * 31 + y * 17) % 1024); }

__device__ void walk_image(walk how, outcome* out, const auto& read) {
  uint32_t sum = 0;
  const uint32_t warps = gridDim.x * (blockDim.x / 32), first = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32,
                 all = image * image / 32;  // a power of two
  stopwatch watch;
#pragma unroll 8
  for (uint32_t w = first; w < all * rounds; w += warps) {
    uint32_t x, y;
    element_of(how, w % all, threadIdx.x % 32, x, y);
    sum += static_cast<uint32_t>(read(x, y));
  }
  watch.stop(out, sum);
}
template <walk how>
__global__ void __launch_bounds__(256) e6_texture_walk_kernel(cudaTextureObject_t t, outcome* out) {
  walk_image(how, out, [&](uint32_t x, uint32_t y) {
    return tex2D<float>(t, static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f);
  });
}
template <walk how>
__global__ void __launch_bounds__(256) e6_linear_walk_kernel(const float* image_of, outcome* out) {
  walk_image(how, out, [&](uint32_t x, uint32_t y) { return __ldg(image_of + y * image + x); });
}

template <walk how>
void locality(bench& b, const char* name, cudaTextureObject_t t, const float* linear, uint32_t expected) {
  const int blocks = b.processors() * 8;
  const auto of_texture =
      b.milliseconds(blocks, [&](outcome* out) { e6_texture_walk_kernel<how><<<blocks, 256>>>(t, out); });
  b.report(std::string("texture by ") + name, "e6_texture_walk_kernel", "GB/s", NAN,
           of_texture.ms.rate(rounds * image * image * 4e-6), of_texture.sum, expected);
  const auto of_linear =
      b.milliseconds(blocks, [&](outcome* out) { e6_linear_walk_kernel<how><<<blocks, 256>>>(linear, out); });
  b.report(std::string("linear by ") + name, "e6_linear_walk_kernel", "GB/s", NAN,
           of_linear.ms.rate(rounds * image * image * 4e-6), of_linear.sum, expected);
}

}  // namespace

void e6_texture(bench& b) {
  values_of(b, 1, "e6_read_1d_kernel", e6_read_1d_kernel);
  values_of(b, 2, "e6_read_2d_kernel", e6_read_2d_kernel);
  values_of(b, 3, "e6_read_3d_kernel", e6_read_3d_kernel);
  fractions_of<uint8_t>(b, "8-bit integers as fractions", 255);
  fractions_of<uint16_t>(b, "16-bit integers as fractions", 65535);
  fractions_of<signed char>(b, "signed 8-bit integers as fractions", 127);

  std::vector<float> pixels(size_t{image} * image);
  uint32_t expected = 0;
  for (uint32_t y = 0; y < image; ++y)
    for (uint32_t x = 0; x < image; ++x) expected += static_cast<uint32_t>(pixels[size_t{y} * image + x] = pixel(x, y));
  const texture t(cudaCreateChannelDesc<float>(), make_cudaExtent(image, image, 0), pixels.data(), sizeof(float),
                  cudaFilterModePoint, cudaReadModeElementType, false);
  const device_array<float> linear(pixels);
  expected *= rounds;
  locality<walk::rows>(b, "rows", t, linear, expected);
  locality<walk::columns>(b, "columns", t, linear, expected);
  locality<walk::tiles>(b, "tiles of 8 x 4", t, linear, expected);
}

}  // namespace lockstep::probe
