// gpu.cu - CUB, Thrust and cuBLAS on the GPU: transposes (geam, gather), squares (dot,
// nrm2, transform-reduce with double accumulation), full and segmented reductions, 1-D
// stencils (transform). Results are checked before they are timed. Samples are queued
// behind a kernel that holds the stream, like lockstep's own, so that no gap between
// launches is measured. Thrust's reductions return a value to the host and so cannot be
// held: their times include the wait.
// Left out: permutes, batches and 3-D stencils, which would be hand-written loops over
// indices; rows by Thrust (reduce_by_key also reads a key for each element); columns by CUB
// and cuBLAS (gemv also reads a vector of ones); shuffles of lanes.
#include <cublas_v2.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/gather.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>

#include <cub/cub.cuh>
#include <memory>

#include "peer.hpp"

namespace {

using namespace lockstep;

void must(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}

struct device_memory {
  void* p = nullptr;
  explicit device_memory(size_t bytes) { must(cudaMalloc(&p, bytes > 0 ? bytes : 1), "cudaMalloc"); }
  ~device_memory() { cudaFree(p); }
  device_memory(const device_memory&) = delete;
};

// Keeps the stream busy until the host has queued a sample behind it, so that no gap between launches is measured;
// backends/cuda/device/measure.cu does the same. Gives up after 0.1 s.
__global__ void hold(const volatile unsigned* go) {
  const auto clock = [] {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
  };
  for (const unsigned long long begin = clock(); *go == 0 && clock() - begin < 100000000ull;) __nanosleep(1000);
}

struct device_timing {
  std::vector<double> ms;
  bool held;  // false: the calls wait for the device themselves, so their times include the gaps
};

// Hot samples: runs back to back for 0.2 ms between two events, behind a hold. If two samples in a row were not queued
// before the hold gave up, the call waits for the device. Then a sample has ten runs or more, with their gaps.
template <class Body>
device_timing time_device(const peers::arguments& a, const Body& body) {
  unsigned *go = nullptr, *go_device = nullptr;
  must(cudaHostAlloc(&go, sizeof *go, cudaHostAllocMapped), "cudaHostAlloc");
  must(cudaHostGetDevicePointer(&go_device, go, 0), "cudaHostGetDevicePointer");
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  int runs = 1, late = 0;
  bool held = true;
  const auto sample = [&] {  // milliseconds of a run; late: samples in a row that were not queued in time
    *static_cast<volatile unsigned*>(go) = held ? 0 : 1;
    hold<<<1, 1>>>(go_device);
    cudaEventRecord(begin);
    for (int r = 0; r < runs; ++r) body();
    cudaEventRecord(end);
    late = held && cudaEventQuery(begin) == cudaSuccess ? late + 1 : 0;
    *static_cast<volatile unsigned*>(go) = 1;
    must(cudaEventSynchronize(end), "timing");
    float t = 0;
    cudaEventElapsedTime(&t, begin, end);
    return static_cast<double>(t) / runs;
  };
  (void)sample();
  const double once = sample();
  held = late < 2;
  runs = std::clamp(static_cast<int>(0.2 / std::max(once, 1e-3)), held ? 1 : 10, 50);
  std::vector<double> ms;
  const double start = peers::now_ms();
  while (ms.size() < 15 || (peers::now_ms() - start < a.seconds * 1e3 && ms.size() < 400)) {
    const double one = sample();
    if (late == 0)
      ms.push_back(one);
    else if (late == 3)
      std::fprintf(stderr, "samples are queued too late: is the host busy?\n"), std::exit(1);
  }
  must(cudaGetLastError(), "timing");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaFreeHost(go);
  return {std::move(ms), held};
}

struct square {
  template <class T>
  __host__ __device__ double operator()(T x) const {
    return static_cast<double>(x) * static_cast<double>(x);
  }
};
struct square_i64 {
  __host__ __device__ long long operator()(int x) const { return static_cast<long long>(x) * x; }
};
struct widened {
  __host__ __device__ double operator()(float x) const { return x; }
};
struct row_start {
  int64_t stride;
  __host__ __device__ int64_t operator()(int64_t row) const { return row * stride; }
};
// Element k of dst is element (k % rows) * cols + k / rows of src.
struct transposed {
  int64_t rows, cols;
  __host__ __device__ int64_t operator()(int64_t k) const { return k % rows * cols + k / rows; }
};
struct taps {
  const float* x;
  float c[5];
  template <class Index>
  __host__ __device__ float operator()(Index i) const {
    float sum = c[0] * x[i];
    for (int k = 1; k <= 4; ++k) sum += c[k] * (x[i - k] + x[i + k]);
    return sum;
  }
};

// A case on the device.
struct on_device {
  const peers::arguments& a;
  peers::subject& s;
  device_memory src, dst;
  on_device(const peers::arguments& how, peers::subject& what)
      : a(how), s(what), src(what.c.src.span_bytes()), dst(what.c.dst.span_bytes() + 16) {
    must(cudaMemcpy(src.p, s.src(), s.c.src.span_bytes(), cudaMemcpyHostToDevice), "upload");
  }
  template <class T>
  const T* x() const {
    return static_cast<const T*>(src.p);
  }
  template <class T>
  T* y() const {
    return static_cast<T*>(dst.p);
  }

  // n results of type Got; the right values have type Want.
  template <class Want, class Got>
  std::string check(const void* at, int64_t n) {
    std::vector<Got> got(static_cast<size_t>(n));
    must(cudaMemcpy(got.data(), at, got.size() * sizeof(Got), cudaMemcpyDeviceToHost), "download");
    return s.values<Want>(got.data(), n);
  }
  // Runs once on a poisoned dst, checks, times.
  template <class Body, class Check>
  void time(const std::string& peer, const Body& body, const Check& check) {
    must(cudaMemset(dst.p, 0xA5, s.c.dst.span_bytes()), "poison");
    body();
    must(cudaDeviceSynchronize(), peer.c_str());
    std::string checked = check();
    s.report(peer, checked, [&] {
      device_timing timing = time_device(a, body);
      if (!timing.held) checked += ", waits for each";
      return std::move(timing.ms);
    });
  }
  // A CUB call: first for the size of its workspace, then as above.
  template <class Call, class Check>
  void time_cub(const std::string& peer, const Call& call, const Check& check) {
    size_t bytes = 0;
    must(call(nullptr, bytes), "CUB");
    device_memory workspace(bytes);
    time(
        peer, [&] { call(workspace.p, bytes); }, check);
  }
};

const std::string cub_name =
    "CUB " + std::to_string(CUB_VERSION / 100000) + "." + std::to_string(CUB_VERSION / 100 % 1000);
const std::string thrust_name =
    "Thrust " + std::to_string(THRUST_MAJOR_VERSION) + "." + std::to_string(THRUST_MINOR_VERSION);

void geam(cublasHandle_t blas, int rows, int cols, const float* x, float* y) {
  const float one = 1, zero = 0;
  cublasSgeam(blas, CUBLAS_OP_T, CUBLAS_OP_N, rows, cols, &one, x, cols, &zero, y, rows, y, rows);
}
void geam(cublasHandle_t blas, int rows, int cols, const double* x, double* y) {
  const double one = 1, zero = 0;
  cublasDgeam(blas, CUBLAS_OP_T, CUBLAS_OP_N, rows, cols, &one, x, cols, &zero, y, rows, y, rows);
}

template <class T>
void transposes(on_device& d, cublasHandle_t blas) {
  const auto& t = d.s.c.transpose;
  const auto check = [&] {
    std::vector<unsigned char> got(d.s.c.dst.span_bytes());
    must(cudaMemcpy(got.data(), d.dst.p, got.size(), cudaMemcpyDeviceToHost), "download");
    return d.s.bits(got.data());
  };
  if constexpr (std::is_floating_point_v<T>) {
    int version = 0;
    cublasGetVersion(blas, &version);
    if (t.rows <= INT32_MAX && t.cols <= INT32_MAX)
      d.time(
          "cuBLAS " + std::to_string(version) + " geam",
          [&] { geam(blas, static_cast<int>(t.rows), static_cast<int>(t.cols), d.x<T>(), d.y<T>()); }, check);
  }
  const auto map = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), transposed{t.rows, t.cols});
  d.time(
      thrust_name + " gather",
      [&] { thrust::gather(thrust::cuda::par_nosync, map, map + t.rows * t.cols, d.x<T>(), d.y<T>()); }, check);
}

void reductions(on_device& d, cublasHandle_t blas) {
  const auto& c = d.s.c;
  const int64_t n = c.reduce.length, count = c.reduce.count;
  const auto* f32 = d.x<float>();
  const auto* i32 = d.x<int>();
  const cuda::std::plus<> plus;
  const auto is_double = [&] { return d.check<double, double>(d.dst.p, 1); };
  if (peers::whole(c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32)) {
    d.time_cub(
        cub_name + " TransformReduce, double",
        [&](void* w, size_t& bytes) {
          return cub::DeviceReduce::TransformReduce(w, bytes, f32, d.y<double>(), n, plus, square{}, 0.0);
        },
        is_double);
    double value = 0;
    d.time(
        thrust_name + " transform_reduce, double",
        [&] {
          value = thrust::transform_reduce(thrust::device, thrust::device_pointer_cast(f32),
                                           thrust::device_pointer_cast(f32) + n, square{}, 0.0, plus);
        },
        [&] { return d.s.values<double>(&value, 1); });
    if (n <= INT32_MAX) {
      cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE);
      d.time(
          "cuBLAS dot, float", [&] { cublasSdot(blas, static_cast<int>(n), f32, 1, f32, 1, d.y<float>()); },
          [&] { return d.check<double, float>(d.dst.p, 1); });
      d.time(
          "cuBLAS nrm2, float", [&] { cublasSnrm2(blas, static_cast<int>(n), f32, 1, d.y<float>()); },
          [&] {
            float norm = 0;
            must(cudaMemcpy(&norm, d.dst.p, sizeof norm, cudaMemcpyDeviceToHost), "download");
            const double squares = static_cast<double>(norm) * norm;
            return d.s.values<double>(&squares, 1);
          });
      cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST);
    }
  }
  const auto first = thrust::device_pointer_cast(f32);
  const auto first_i32 = thrust::device_pointer_cast(i32);
  if (peers::whole(c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_I32)) {
    int64_t value = 0;
    d.time(
        thrust_name + " transform_reduce, wrapping i64",
        [&] {
          value = thrust::transform_reduce(thrust::device, first_i32, first_i32 + n, square_i64{}, 0ll,
                                           cuda::std::plus<long long>());
        },
        [&] { return d.s.values<int64_t>(&value, 1); });
  }
  if (peers::whole(c, LOCKSTEP_SUM, LOCKSTEP_F32)) {
    double value = 0;
    d.time(
        thrust_name + " transform_reduce, double",
        [&] { value = thrust::transform_reduce(thrust::device, first, first + n, widened{}, 0.0, plus); },
        [&] { return d.s.values<double>(&value, 1); });
  }
  if (peers::whole(c, LOCKSTEP_MAX, LOCKSTEP_F32)) {
    float value = 0;
    d.time(
        thrust_name + " reduce",
        [&] { value = thrust::reduce(thrust::device, first, first + n, -INFINITY, cuda::maximum<float>()); },
        [&] { return d.s.values<float>(&value, 1); });
  }
  if (peers::whole(c, LOCKSTEP_ARGMAX, LOCKSTEP_F32)) {
    int64_t at = 0;
    d.time(
        thrust_name + " max_element", [&] { at = thrust::max_element(thrust::device, first, first + n) - first; },
        [&] { return d.s.values<int64_t>(&at, 1); });
  }
  if (peers::whole(c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_I32))
    d.time_cub(
        cub_name + " TransformReduce, wrapping i64",
        [&](void* w, size_t& bytes) {
          return cub::DeviceReduce::TransformReduce(w, bytes, i32, d.y<long long>(), n, plus, square_i64{}, 0ll);
        },
        [&] { return d.check<int64_t, int64_t>(d.dst.p, 1); });
  if (peers::whole(c, LOCKSTEP_SUM, LOCKSTEP_F32))
    d.time_cub(
        cub_name + " TransformReduce, double",
        [&](void* w, size_t& bytes) {
          return cub::DeviceReduce::TransformReduce(w, bytes, f32, d.y<double>(), n, plus, cuda::std::identity{}, 0.0);
        },
        is_double);
  if (peers::whole(c, LOCKSTEP_MAX, LOCKSTEP_F32))
    d.time_cub(
        cub_name + " Max",
        [&](void* w, size_t& bytes) { return cub::DeviceReduce::Max(w, bytes, f32, d.y<float>(), n); },
        [&] { return d.check<float, float>(d.dst.p, 1); });
  if (peers::whole(c, LOCKSTEP_ARGMAX, LOCKSTEP_F32)) {
    device_memory best(16);
    d.time_cub(
        cub_name + " ArgMax",
        [&](void* w, size_t& bytes) {
          return cub::DeviceReduce::ArgMax(w, bytes, f32, static_cast<float*>(best.p), d.y<int64_t>(), n);
        },
        [&] { return d.check<int64_t, int64_t>(d.dst.p, 1); });
  }
  if (peers::rows(c, LOCKSTEP_SUM, LOCKSTEP_F32)) {
    const bool to_f32 = c.reduce.result == LOCKSTEP_F32;
    const auto starts = thrust::make_transform_iterator(thrust::make_counting_iterator<int64_t>(0), row_start{n});
    const auto doubles = thrust::make_transform_iterator(f32, widened{});
    const auto is_float = [&] {
      return to_f32 ? d.check<float, float>(d.dst.p, count) : d.check<double, float>(d.dst.p, count);
    };
    if (!to_f32)
      d.time_cub(
          cub_name + " segmented Sum, double",
          [&](void* w, size_t& bytes) {
            return cub::DeviceSegmentedReduce::Sum(w, bytes, doubles, d.y<double>(), count, starts, starts + 1);
          },
          [&] { return d.check<double, double>(d.dst.p, count); });
    d.time_cub(
        cub_name + " segmented Sum, float",
        [&](void* w, size_t& bytes) {
          return cub::DeviceSegmentedReduce::Sum(w, bytes, f32, d.y<float>(), count, starts, starts + 1);
        },
        is_float);
  }
  if (peers::rows(c, LOCKSTEP_ARGMAX, LOCKSTEP_F32)) {
    const auto starts = thrust::make_transform_iterator(thrust::make_counting_iterator<int64_t>(0), row_start{n});
    using found = cub::KeyValuePair<int, float>;  // the index within the row, and the value
    device_memory best(static_cast<size_t>(count) * sizeof(found));
    d.time_cub(
        cub_name + " segmented ArgMax",
        [&](void* w, size_t& bytes) {
          return cub::DeviceSegmentedReduce::ArgMax(w, bytes, f32, static_cast<found*>(best.p), count, starts,
                                                    starts + 1);
        },
        [&] {
          std::vector<found> pairs(static_cast<size_t>(count));
          must(cudaMemcpy(pairs.data(), best.p, pairs.size() * sizeof(found), cudaMemcpyDeviceToHost), "download");
          std::vector<int64_t> at(pairs.size());
          std::transform(pairs.begin(), pairs.end(), at.begin(), [](const found& one) { return one.key; });
          return d.s.values<int64_t>(at.data(), count);
        });
  }
}

void stencil_1d(on_device& d) {
  taps at{d.x<float>(), {}};
  for (size_t k = 0; k < 5; ++k) at.c[k] = static_cast<float>(d.s.c.coefficients[k]);
  const int64_t n = d.s.c.stencil.shape[0];
  // Indices of 32 bits where they suffice, because addresses of 64 bits cost half of the instructions.
  const auto by_index = [&](auto four) {
    const thrust::counting_iterator<decltype(four)> first(four);
    d.time(
        thrust_name + " transform",
        [&] { thrust::transform(thrust::cuda::par_nosync, first, first + (n - 8), d.y<float>() + 4, at); },
        [&] {
          std::vector<float> got(static_cast<size_t>(n));
          must(cudaMemcpy(got.data(), d.dst.p, got.size() * 4, cudaMemcpyDeviceToHost), "download");
          return d.s.inside(got.data());
        });
  };
  if (n <= INT32_MAX)
    by_index(int32_t{4});
  else
    by_index(int64_t{4});
}

}  // namespace

int main(int argc, char** argv) {
  return peers::serve(argc, argv, "cuda", [](const peers::arguments& a) {
    cublasHandle_t blas;
    if (a.cold || cublasCreate(&blas) != CUBLAS_STATUS_SUCCESS) std::exit(a.cold ? 0 : 1);
    return [&a, blas](peers::subject& s) {
      const bool transpose = peers::plain_transpose(s.c), reduce = peers::reduction(s.c), stencil = peers::star(s.c, 1);
      if (!transpose && !reduce && !stencil) return;
      on_device d(a, s);
      if (transpose) switch (s.c.transpose.element_bytes) {
          case 1: transposes<uint8_t>(d, blas); break;
          case 2: transposes<uint16_t>(d, blas); break;
          case 4: transposes<float>(d, blas); break;
          case 8: transposes<double>(d, blas); break;
          default: break;
        }
      if (reduce) reductions(d, blas);
      if (stencil) stencil_1d(d);
    };
  });
}
