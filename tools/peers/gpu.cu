// gpu.cu - CUB, Thrust and cuBLAS on the GPU: transposes (geam, gather), squares (dot,
// nrm2, transform-reduce with double accumulation), full and segmented reductions, 1-D
// stencils (transform); the ops that came later are in gpu_new.cuh. Results are checked before they are timed. Samples
// are queued behind a kernel that holds the stream, like lockstep's own, so that no gap between launches is measured.
// Thrust's reductions return a value to the host and so cannot be held: their times include the wait. Left out:
// permutes, batches and 3-D stencils, which would be hand-written loops over indices; rows by Thrust (reduce_by_key
// also reads a key for each element); columns by CUB and cuBLAS (gemv also reads a vector of ones); shuffles of lanes.
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/gather.h>
#include <thrust/reduce.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>

#include "gpu.cuh"
#include "gpu_new.cuh"

namespace {

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
  return peers::serve(
      argc, argv, "cuda",
      [](const peers::arguments& a) {
        cublasHandle_t blas;
        if (a.cold || cublasCreate(&blas) != CUBLAS_STATUS_SUCCESS) std::exit(a.cold ? 0 : 1);
        return [&a, blas](peers::subject& s) {
          if (measure_new(a, s, blas)) return;
          const bool transpose = peers::plain_transpose(s.c), reduce = peers::reduction(s.c),
                     stencil = peers::star(s.c, 1);
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
      },
      true);
}
