// gpu.cu - CUB, Thrust and cuBLAS on the GPU: transposes (geam), squares (dot, nrm2,
// transform-reduce with double accumulation), full and segmented reductions.
#include <cublas_v2.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
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

// Hot samples: runs back to back for 0.2 ms between two events.
template <class Body>
std::vector<double> time_device(const peers::arguments& a, const Body& body) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  float once = 0;
  for (int i = 0; i < 2; ++i) {
    cudaEventRecord(begin);
    body();
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&once, begin, end);
  }
  const int runs = std::max(1, std::min(50, static_cast<int>(0.2f / std::max(once, 1e-3f))));
  std::vector<double> ms;
  const double start = peers::now_ms();
  while (ms.size() < 15 || (peers::now_ms() - start < a.seconds * 1e3 && ms.size() < 400)) {
    cudaEventRecord(begin);
    for (int r = 0; r < runs; ++r) body();
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float t = 0;
    cudaEventElapsedTime(&t, begin, end);
    ms.push_back(t / runs);
  }
  must(cudaGetLastError(), "timing");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return ms;
}

struct square {
  template <class T>
  __host__ __device__ double operator()(T x) const { return static_cast<double>(x) * static_cast<double>(x); }
};
struct square_i64 {
  __host__ __device__ long long operator()(int x) const { return static_cast<long long>(x) * x; }
};
struct row_start {
  int64_t stride;
  __host__ __device__ int64_t operator()(int64_t row) const { return row * stride; }
};

// Runs a CUB call twice: for its workspace, then as the body to time.
template <class Call>
std::vector<double> time_cub(const peers::arguments& a, const Call& call) {
  size_t bytes = 0;
  must(call(nullptr, bytes), "CUB");
  device_memory workspace(bytes);
  return time_device(a, [&] { call(workspace.p, bytes); });
}

void transposes(const peers::arguments& a, const std::string& name, const peers::subject& s, const void* src, void* dst, cublasHandle_t blas) {
  const auto& t = s.c.transpose;
  if (t.batch != 1 || (t.element_bytes != 4 && t.element_bytes != 8) || t.rows > INT32_MAX || t.cols > INT32_MAX) return;
  const int rows = static_cast<int>(t.rows), cols = static_cast<int>(t.cols);
  const auto body = [&] {
    if (t.element_bytes == 4) {
      const float one = 1, zero = 0;
      cublasSgeam(blas, CUBLAS_OP_T, CUBLAS_OP_N, rows, cols, &one, static_cast<const float*>(src), cols, &zero, static_cast<float*>(dst), rows,
                  static_cast<float*>(dst), rows);
    } else {
      const double one = 1, zero = 0;
      cublasDgeam(blas, CUBLAS_OP_T, CUBLAS_OP_N, rows, cols, &one, static_cast<const double*>(src), cols, &zero, static_cast<double*>(dst), rows,
                  static_cast<double*>(dst), rows);
    }
  };
  const std::vector<double> ms = time_device(a, body);
  std::vector<unsigned char> got(s.want.size());
  must(cudaMemcpy(got.data(), dst, got.size(), cudaMemcpyDeviceToHost), "download");
  int version = 0;
  cublasGetVersion(blas, &version);
  peers::print(name, "cuBLAS " + std::to_string(version) + " geam", ms, s.compare(got.data()));
}

template <class T>
std::string checked(const peers::subject& s, const void* dst) {
  T got{}, want{};
  must(cudaMemcpy(&got, dst, sizeof got, cudaMemcpyDeviceToHost), "download");
  std::memcpy(&want, s.want.data(), sizeof want);
  return s.compare_value(static_cast<double>(got), static_cast<double>(want));
}

void reductions(const peers::arguments& a, const std::string& name, const peers::subject& s, const void* src, void* dst, cublasHandle_t blas) {
  const auto& r = s.c.reduce;
  const std::string cub = "CUB " + std::to_string(CUB_VERSION / 100000) + "." + std::to_string(CUB_VERSION / 100 % 1000);
  const auto* f32 = static_cast<const float*>(src);
  const auto* i32 = static_cast<const int*>(src);
  if (!s.c.offsets.empty() || r.element_stride != 1) return;
  if (r.count == 1) {
    const int64_t n = r.length;
    if (r.reduction == LOCKSTEP_SUM_OF_SQUARES && r.dtype == LOCKSTEP_F32) {
      const auto ms = time_cub(a, [&](void* w, size_t& bytes) {
        return cub::DeviceReduce::TransformReduce(w, bytes, f32, static_cast<double*>(dst), n, cuda::std::plus<>{}, square{}, 0.0);
      });
      peers::print(name, cub + " TransformReduce, double", ms, checked<double>(s, dst));
      double value = 0;
      const auto thrust_ms = time_device(a, [&] {
        value = thrust::transform_reduce(thrust::device, thrust::device_pointer_cast(f32), thrust::device_pointer_cast(f32) + n, square{}, 0.0, cuda::std::plus<>{});
      });
      double want = 0;
      std::memcpy(&want, s.want.data(), 8);
      peers::print(name, "Thrust transform_reduce, double", thrust_ms, s.compare_value(value, want));
      if (n <= INT32_MAX) {
        cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE);
        const auto dot = time_device(a, [&] { cublasSdot(blas, static_cast<int>(n), f32, 1, f32, 1, static_cast<float*>(dst)); });
        peers::print(name, "cuBLAS dot, float", dot, "float accumulation");
        cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST);
      }
    }
    if (r.reduction == LOCKSTEP_SUM_OF_SQUARES && r.dtype == LOCKSTEP_I32) {
      const auto ms = time_cub(a, [&](void* w, size_t& bytes) {
        return cub::DeviceReduce::TransformReduce(w, bytes, i32, static_cast<long long*>(dst), n, cuda::std::plus<>{}, square_i64{}, 0ll);
      });
      peers::print(name, cub + " TransformReduce, wrapping i64", ms, checked<long long>(s, dst));
    }
    if (r.dtype == LOCKSTEP_F32 && r.reduction == LOCKSTEP_SUM) {
      const auto ms = time_cub(a, [&](void* w, size_t& bytes) {
        return cub::DeviceReduce::TransformReduce(w, bytes, f32, static_cast<double*>(dst), n, cuda::std::plus<>{}, cuda::std::identity{}, 0.0);
      });
      peers::print(name, cub + " TransformReduce, double", ms, checked<double>(s, dst));
    }
    if (r.dtype == LOCKSTEP_F32 && r.reduction == LOCKSTEP_MAX) {
      const auto ms = time_cub(a, [&](void* w, size_t& bytes) { return cub::DeviceReduce::Max(w, bytes, f32, static_cast<float*>(dst), n); });
      peers::print(name, cub + " Max", ms, checked<float>(s, dst));
    }
    if (r.dtype == LOCKSTEP_F32 && r.reduction == LOCKSTEP_ARGMAX) {
      device_memory best(16);
      const auto ms = time_cub(a, [&](void* w, size_t& bytes) {
        return cub::DeviceReduce::ArgMax(w, bytes, f32, static_cast<float*>(best.p), static_cast<int64_t*>(dst), n);
      });
      peers::print(name, cub + " ArgMax", ms, checked<int64_t>(s, dst));
    }
    return;
  }
  if (r.sequence_stride != r.length || r.dtype != LOCKSTEP_F32 || r.reduction != LOCKSTEP_SUM) return;
  const auto starts = thrust::make_transform_iterator(thrust::make_counting_iterator<int64_t>(0), row_start{r.length});
  device_memory floats(static_cast<size_t>(r.count) * 4);
  const auto ms = time_cub(a, [&](void* w, size_t& bytes) {
    return cub::DeviceSegmentedReduce::Sum(w, bytes, f32, static_cast<float*>(floats.p), r.count, starts, starts + 1);
  });
  peers::print(name, cub + " segmented Sum, float", ms, "float accumulation");
}

}  // namespace

int main(int argc, char** argv) {
  const peers::arguments a = peers::parse(argc, argv);
  if (a.backend.rfind("cuda", 0) != 0 || a.cold) return 0;
  cublasHandle_t blas;
  if (cublasCreate(&blas) != CUBLAS_STATUS_SUCCESS) return 1;
  for (const std::string& name : a.cases) {
    const cases::test_case c = cases::parse(name);
    if (c.op != LOCKSTEP_TRANSPOSE && c.op != LOCKSTEP_SQUARE_SUM && c.op != LOCKSTEP_REDUCE) continue;
    const peers::subject s(name);
    device_memory src(s.src.size()), dst(s.want.size() + 16);
    must(cudaMemcpy(src.p, s.src.data(), s.src.size(), cudaMemcpyHostToDevice), "upload");
    if (c.op == LOCKSTEP_TRANSPOSE) transposes(a, name, s, src.p, dst.p, blas);
    else reductions(a, name, s, src.p, dst.p, blas);
  }
  cublasDestroy(blas);
}
