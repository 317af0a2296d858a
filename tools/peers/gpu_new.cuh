// gpu_new.cuh - peer_gpu for what the second distribution of a sample draws: CUB's scans (rows by keys) and reductions
// of products, cuBLAS's dots, a call for each array of a group, casts by Thrust. Left out: scans of columns, means and
// variances, rows to normalize, which neither library has. CUB 3.0 offers no determinism to ask for; its scans give the
// same bits from run to run as they are.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/transform_output_iterator.h>
#include <thrust/transform.h>

#include "gpu.cuh"

namespace {

struct to_double {
  template <class T>
  __host__ __device__ double operator()(T x) const {
    if constexpr (std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, __half>)
      return static_cast<double>(static_cast<float>(x));
    else
      return static_cast<double>(x);
  }
};
struct to_i64 {
  __host__ __device__ long long operator()(int x) const { return x; }
};
template <class To>
struct narrowed {
  template <class From>
  __host__ __device__ To operator()(From x) const {
    if constexpr (std::is_same_v<To, __nv_bfloat16>)
      return __float2bfloat16(static_cast<float>(x));
    else if constexpr (std::is_same_v<To, __half>)
      return __float2half(static_cast<float>(x));
    else
      return static_cast<To>(static_cast<float>(x));
  }
};
struct row_of_element {
  int64_t length;
  __host__ __device__ int64_t operator()(int64_t i) const { return i / length; }
};
// Term i of a sum of two arrays.
template <class T>
struct term_of {
  const T *x, *y;
  lockstep_sums_kind kind;
  __host__ __device__ double operator()(int64_t i) const {
    const double a = to_double{}(x[i]);
    if (kind == LOCKSTEP_SUMS_ABSOLUTE) return a < 0 ? -a : a;
    const double b = to_double{}(y[i]), off = a - b;
    return kind == LOCKSTEP_SUMS_DOT                   ? a * b
           : kind == LOCKSTEP_SUMS_SQUARED_DIFFERENCES ? off * off
           : off < 0                                   ? -off
                                                       : off;
  }
};

// In: what is added, Out: where results go, both iterators.
template <class In, class Out, class Op, class Check>
void scan_by_cub(on_device& d, const std::string& how, const In& in, const Out& out, const Op& op, const Check& check) {
  const auto& c = d.s.c.scan;
  if (c.count == 1)
    return d.time_cub(
        cub_name + " InclusiveScan" + how,
        [&](void* w, size_t& bytes) { return cub::DeviceScan::InclusiveScan(w, bytes, in, out, op, c.length); }, check);
  const auto keys =
      thrust::make_transform_iterator(thrust::make_counting_iterator<int64_t>(0), row_of_element{c.length});
  d.time_cub(
      cub_name + " InclusiveScanByKey" + how,
      [&](void* w, size_t& bytes) {
        return cub::DeviceScan::InclusiveScanByKey(w, bytes, keys, in, out, op, c.count * c.length);
      },
      check);
}
void scans(on_device& d) {
  const auto& c = d.s.c.scan;
  const int64_t n = c.count * c.length;
  if (!d.s.c.offsets.empty() || d.s.c.in_place || c.exclusive != 0 || c.element_stride != 1 ||
      c.dst_element_stride != 1 ||
      (c.count > 1 && (c.sequence_stride != c.length || c.dst_sequence_stride != c.length)))
    return;
  const cuda::std::plus<> plus;
  const bool sum = c.reduction == LOCKSTEP_SUM;
  if (c.dtype == LOCKSTEP_F32 && c.result == LOCKSTEP_F32) {
    const auto check = [&] { return d.check<float, float>(d.dst.p, n); };
    if (!sum && c.reduction == LOCKSTEP_MAX)
      return scan_by_cub(d, "", d.x<float>(), d.y<float>(), cuda::maximum<float>(), check);
    if (!sum) return;
    scan_by_cub(d, ", float", d.x<float>(), d.y<float>(), plus, check);
    scan_by_cub(d, ", double", thrust::make_transform_iterator(d.x<float>(), to_double{}),
                thrust::make_transform_output_iterator(d.y<float>(), narrowed<float>{}), plus, check);
  }
  if (sum && c.dtype == LOCKSTEP_F64)
    scan_by_cub(d, "", d.x<double>(), d.y<double>(), plus, [&] { return d.check<double, double>(d.dst.p, n); });
  if (sum && c.dtype == LOCKSTEP_I32)
    scan_by_cub(d, "", thrust::make_transform_iterator(d.x<int>(), to_i64{}), d.y<long long>(), plus,
                [&] { return d.check<int64_t, int64_t>(d.dst.p, n); });
  if (sum && c.dtype == LOCKSTEP_BF16 && c.result == LOCKSTEP_BF16)
    scan_by_cub(d, ", double", thrust::make_transform_iterator(d.x<__nv_bfloat16>(), to_double{}),
                thrust::make_transform_output_iterator(d.y<__nv_bfloat16>(), narrowed<__nv_bfloat16>{}), plus,
                [&] { return d.check<__nv_bfloat16, __nv_bfloat16>(d.dst.p, n); });
}

template <class T>
void sums_of(on_device& d, const T* other) {
  const auto& c = d.s.c.sums;
  const auto terms =
      thrust::make_transform_iterator(thrust::make_counting_iterator<int64_t>(0), term_of<T>{d.x<T>(), other, c.kind});
  const auto check = [&] { return d.check<double, double>(d.dst.p, c.count); };
  if (c.count == 1)
    return d.time_cub(
        cub_name + " Sum, double",
        [&](void* w, size_t& bytes) { return cub::DeviceReduce::Sum(w, bytes, terms, d.y<double>(), c.length); },
        check);
  const auto starts = thrust::make_transform_iterator(thrust::make_counting_iterator<int64_t>(0), row_start{c.length});
  d.time_cub(
      cub_name + " segmented Sum, double",
      [&](void* w, size_t& bytes) {
        return cub::DeviceSegmentedReduce::Sum(w, bytes, terms, d.y<double>(), c.count, starts, starts + 1);
      },
      check);
}
void sums(on_device& d, cublasHandle_t blas) {
  const auto& c = d.s.c.sums;
  if (!d.s.c.offsets.empty() || c.result != LOCKSTEP_F64 || c.kind == LOCKSTEP_SUMS_MEAN_VARIANCE || c.length == 0 ||
      c.element_stride != 1 || (c.count > 1 && c.sequence_stride != c.length) ||
      (!d.s.c.other.empty() && (c.other_element_stride != 1 || (c.count > 1 && c.other_sequence_stride != c.length))))
    return;
  const device_memory other(d.s.c.other.size());
  must(cudaMemcpy(other.p, d.s.c.other.data(), d.s.c.other.size(), cudaMemcpyHostToDevice), "upload");
  if (c.dtype == LOCKSTEP_F32) sums_of(d, static_cast<const float*>(other.p));
  if (c.dtype == LOCKSTEP_F64) sums_of(d, static_cast<const double*>(other.p));
  if (c.dtype == LOCKSTEP_F16) sums_of(d, static_cast<const __half*>(other.p));
  if (c.dtype == LOCKSTEP_BF16) sums_of(d, static_cast<const __nv_bfloat16*>(other.p));
  if (c.kind != LOCKSTEP_SUMS_DOT || c.count != 1 || c.length > INT32_MAX) return;
  const auto n = static_cast<int>(c.length);
  cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE);
  if (c.dtype == LOCKSTEP_F32)
    d.time(
        "cuBLAS dot, float",
        [&] { cublasSdot(blas, n, d.x<float>(), 1, static_cast<const float*>(other.p), 1, d.y<float>()); },
        [&] { return d.check<double, float>(d.dst.p, 1); });
  if (c.dtype == LOCKSTEP_F64)
    d.time(
        "cuBLAS dot",
        [&] { cublasDdot(blas, n, d.x<double>(), 1, static_cast<const double*>(other.p), 1, d.y<double>()); },
        [&] { return d.check<double, double>(d.dst.p, 1); });
  cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST);
}

template <class From, class To>
void cast(on_device& d) {
  const int64_t n = d.s.c.src.elements();
  d.time(
      thrust_name + " transform",
      [&] { thrust::transform(thrust::cuda::par_nosync, d.x<From>(), d.x<From>() + n, d.y<To>(), narrowed<To>{}); },
      [&] { return d.check<To, To>(d.dst.p, n); });
}
void casts(on_device& d) {
  const auto& c = d.s.c.convert;
  if (c.rank != 1 || c.scale != 1) return;
  const auto is = [&](lockstep_dtype from, lockstep_dtype to) { return c.dtype == from && c.result == to; };
  if (is(LOCKSTEP_F32, LOCKSTEP_F16)) cast<float, __half>(d);
  if (is(LOCKSTEP_F32, LOCKSTEP_BF16)) cast<float, __nv_bfloat16>(d);
  if (is(LOCKSTEP_F16, LOCKSTEP_F32)) cast<__half, float>(d);
  if (is(LOCKSTEP_BF16, LOCKSTEP_F32)) cast<__nv_bfloat16, float>(d);
}

void group(on_device& d, cublasHandle_t blas) {
  const auto& c = d.s.c;
  const auto x = [&](size_t k) {
    return reinterpret_cast<const float*>(static_cast<const char*>(d.src.p) + c.src_at[k]);
  };
  const auto y = [&](size_t k) { return reinterpret_cast<float*>(static_cast<char*>(d.dst.p) + c.dst_at[k]); };
  if (c.op == LOCKSTEP_SQUARE_SUM && c.dtype == LOCKSTEP_F32 && c.members.front().reduce.reduction == LOCKSTEP_NORM2) {
    cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE);
    d.time(
        "cuBLAS nrm2 of each, float",
        [&] {
          for (size_t k = 0; k < c.members.size(); ++k)
            cublasSnrm2(blas, static_cast<int>(c.members[k].reduce.length), x(k), 1, y(k));
        },
        [&] {  // its results are floats where ours are doubles
          std::vector<char> bytes(c.dst.span_bytes());
          must(cudaMemcpy(bytes.data(), d.dst.p, bytes.size(), cudaMemcpyDeviceToHost), "download");
          std::vector<double> got(bytes.size() / sizeof(double));
          for (size_t k = 0; k < c.members.size(); ++k) {
            float one = 0;
            std::memcpy(&one, bytes.data() + c.dst_at[k], sizeof one);
            got[c.dst_at[k] / sizeof(double)] = static_cast<double>(one);
          }
          return d.s.grouped(got.data(), [](const cases::test_case&) { return int64_t{1}; });
        });
    cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST);
  }
  if (c.op == LOCKSTEP_TRANSPOSE && c.src.element_bytes == 4)
    d.time(
        "cuBLAS geam of each",
        [&] {
          const float one = 1, zero = 0;
          for (size_t k = 0; k < c.members.size(); ++k) {
            const auto rows = static_cast<int>(c.members[k].transpose.rows),
                       cols = static_cast<int>(c.members[k].transpose.cols);
            cublasSgeam(blas, CUBLAS_OP_T, CUBLAS_OP_N, rows, cols, &one, x(k), cols, &zero, y(k), rows, y(k), rows);
          }
        },
        [&] {
          std::vector<float> got(c.dst.span_bytes() / sizeof(float));
          must(cudaMemcpy(got.data(), d.dst.p, got.size() * sizeof(float), cudaMemcpyDeviceToHost), "download");
          return d.s.grouped(got.data(), [](const cases::test_case& m) { return m.src.elements(); });
        });
}

// Whether it is a case of these ops.
bool measure_new(const peers::arguments& a, peers::subject& s, cublasHandle_t blas) {
  if (!s.c.members.empty()) {
    on_device d(a, s);
    group(d, blas);
    return true;
  }
  if (s.c.op != LOCKSTEP_SCAN && s.c.op != LOCKSTEP_SUMS && s.c.op != LOCKSTEP_CONVERT) return false;
  on_device d(a, s);
  if (s.c.op == LOCKSTEP_SCAN) scans(d);
  if (s.c.op == LOCKSTEP_SUMS) sums(d, blas);
  if (s.c.op == LOCKSTEP_CONVERT) casts(d);
  return true;
}

}  // namespace
