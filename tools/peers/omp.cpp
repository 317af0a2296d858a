// omp.cpp - what a careful user writes without a library: OpenMP loops that the
// compiler vectorises (-O3 -march=native -ffast-math), double accumulation.
#include <omp.h>

#include "peer.hpp"

namespace {

template <class T, class Acc>
Acc squares(const T* x, int64_t n) {
  Acc sum = 0;
#pragma omp parallel for simd reduction(+ : sum) schedule(static)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<Acc>(x[i]) * static_cast<Acc>(x[i]);
  return sum;
}
template <class T>
double total(const T* x, int64_t n) {
  double sum = 0;
#pragma omp parallel for simd reduction(+ : sum) schedule(static)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  return sum;
}
float largest(const float* x, int64_t n) {
  float best = x[0];
#pragma omp parallel for simd reduction(max : best) schedule(static)
  for (int64_t i = 0; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

void stencil_1d(const float* src, float* dst, int64_t n, const float* c) {
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 4; i < n - 4; ++i) {
    float sum = c[0] * src[i];
    for (int k = 1; k <= 4; ++k) sum += c[k] * (src[i - k] + src[i + k]);
    dst[i] = sum;
  }
}
void star_3d(const float* src, float* dst, int64_t nz, int64_t ny, int64_t nx, const float* c) {
  const int64_t plane = ny * nx;
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t y0 = 4; y0 < ny - 4; y0 += 16)
    for (int64_t z = 4; z < nz - 4; ++z)
      for (int64_t y = y0; y < (y0 + 16 < ny - 4 ? y0 + 16 : ny - 4); ++y) {
        const float* p = src + z * plane + y * nx;
#pragma omp simd
        for (int64_t x = 4; x < nx - 4; ++x) {
          float sum = c[0] * p[x];
          for (int k = 1; k <= 4; ++k)
            sum += c[8 + k] * (p[x - k] + p[x + k]) + c[4 + k] * (p[x - k * nx] + p[x + k * nx]) + c[k] * (p[x - k * plane] + p[x + k * plane]);
          dst[z * plane + y * nx + x] = sum;
        }
      }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace lockstep;
  const peers::arguments a = peers::parse(argc, argv);
  if (a.backend != "cpu") return 0;
  if (a.threads > 0) omp_set_num_threads(a.threads);
  for (const std::string& one : a.cases) {
    const peers::subject s(one);
    const auto& r = s.c.reduce;
    const auto* f32 = reinterpret_cast<const float*>(s.src.data());
    const auto* f64 = reinterpret_cast<const double*>(s.src.data());
    const auto* i32 = reinterpret_cast<const int32_t*>(s.src.data());
    const bool full = (s.c.op == LOCKSTEP_SQUARE_SUM || s.c.op == LOCKSTEP_REDUCE) && r.count == 1 && r.element_stride == 1 && s.c.offsets.empty();
    volatile double sink = 0;
    const auto report = [&](const char* way, const auto& body) { peers::print(one, std::string("omp loop") + way, peers::time_host(a, body), "no order"); };
    if (full && r.reduction == LOCKSTEP_SUM_OF_SQUARES) {
      if (r.dtype == LOCKSTEP_F32) report(", double", [&] { sink = squares<float, double>(f32, r.length); });
      if (r.dtype == LOCKSTEP_F64) report("", [&] { sink = squares<double, double>(f64, r.length); });
      if (r.dtype == LOCKSTEP_I32) report(", wrapping i64", [&] { sink = static_cast<double>(squares<int32_t, int64_t>(i32, r.length)); });
    }
    if (full && r.dtype == LOCKSTEP_F32 && r.reduction == LOCKSTEP_SUM) report(", double", [&] { sink = total(f32, r.length); });
    if (full && r.dtype == LOCKSTEP_F32 && r.reduction == LOCKSTEP_MAX) report("", [&] { sink = static_cast<double>(largest(f32, r.length)); });
    if (s.c.op == LOCKSTEP_REDUCE && r.count > 1 && s.c.offsets.empty() && r.element_stride == 1 && r.dtype == LOCKSTEP_F32) {
      std::vector<double> sums(static_cast<size_t>(r.count));
      std::vector<float> best(static_cast<size_t>(r.count));
      if (r.reduction == LOCKSTEP_SUM) report(", double", [&] {
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < r.count; ++i) {
          double sum = 0;
          for (int64_t k = 0; k < r.length; ++k) sum += static_cast<double>(f32[i * r.sequence_stride + k]);
          sums[static_cast<size_t>(i)] = sum;
        }
      });
      if (r.reduction == LOCKSTEP_MAX) report("", [&] {
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < r.count; ++i) {
          float top = f32[i * r.sequence_stride];
          for (int64_t k = 1; k < r.length; ++k) top = f32[i * r.sequence_stride + k] > top ? f32[i * r.sequence_stride + k] : top;
          best[static_cast<size_t>(i)] = top;
        }
      });
      sink = sums[0] + static_cast<double>(best[0]);
    }
    const auto& d = s.c.stencil;
    if (s.c.op == LOCKSTEP_STENCIL && d.dtype == LOCKSTEP_F32 && d.radius == 4 && d.form == LOCKSTEP_SYMMETRIC && d.batch == 1 && (d.rank == 1 || d.rank == 3)) {
      std::vector<float> c(s.c.coefficients.begin(), s.c.coefficients.end()), dst(s.want.size() / 4);
      if (d.rank == 1) report(", inside only", [&] { stencil_1d(f32, dst.data(), d.shape[0], c.data()); });
      else report(", tiled, inside only", [&] { star_3d(f32, dst.data(), d.shape[0], d.shape[1], d.shape[2], c.data()); });
    }
  }
}
