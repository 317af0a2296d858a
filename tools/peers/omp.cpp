// omp.cpp - what a careful user writes without a library: OpenMP loops that the
// compiler vectorises (-O3 -march=native -ffast-math), double accumulation.
#include "omp_types.hpp"

void measure_any(lockstep::peers::subject& s);    // omp_any.cpp
void measure_sums(lockstep::peers::subject& s);   // omp_sums.cpp
void measure_new(lockstep::peers::subject& s);    // omp_new.cpp
void measure_group(lockstep::peers::subject& s);  // there too

namespace {
using namespace lockstep;

template <class T, class Acc>
Acc squares(const T* x, int64_t n) {
  Acc sum = 0;
#pragma omp parallel for simd reduction(+ : sum) schedule(static)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<Acc>(x[i]) * static_cast<Acc>(x[i]);
  return sum;
}
double total(const float* x, int64_t n) {
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
// The largest value by a loop that vectorises, then its place.
int64_t first_largest(const float* x, int64_t n) {
  const float best = largest(x, n);
  int64_t at = n;
#pragma omp parallel for simd reduction(min : at) schedule(static)
  for (int64_t i = 0; i < n; ++i) at = x[i] == best && i < at ? i : at;
  return at;
}

void row_sums(const float* x, double* sums, int64_t count, int64_t n) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += static_cast<double>(x[i * n + k]);
    sums[i] = sum;
  }
}
void row_largest(const float* x, float* best, int64_t count, int64_t n) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    float top = x[i * n];
    for (int64_t k = 1; k < n; ++k) top = x[i * n + k] > top ? x[i * n + k] : top;
    best[i] = top;
  }
}
void row_first_largest(const float* x, int64_t* best, int64_t count, int64_t n) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    float top = x[i * n];
    for (int64_t k = 1; k < n; ++k) top = x[i * n + k] > top ? x[i * n + k] : top;
    int64_t at = n;
    for (int64_t k = 0; k < n; ++k) at = x[i * n + k] == top && k < at ? k : at;
    best[i] = at;
  }
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
            sum += c[8 + k] * (p[x - k] + p[x + k]) + c[4 + k] * (p[x - k * nx] + p[x + k * nx]) +
                   c[k] * (p[x - k * plane] + p[x + k * plane]);
          dst[z * plane + y * nx + x] = sum;
        }
      }
}

// Tiles of 16 x 16 in a local block; the edges element by element.
template <class T>
void transpose(const T* src, T* dst, const lockstep_transpose_desc& t) {
  constexpr int64_t side = 16;
#pragma omp parallel for collapse(3) schedule(static)
  for (int64_t b = 0; b < t.batch; ++b)
    for (int64_t i0 = 0; i0 < t.rows; i0 += side)
      for (int64_t j0 = 0; j0 < t.cols; j0 += side) {
        const T* from = src + b * t.src_batch_stride + i0 * t.src_ld + j0;
        T* to = dst + b * t.dst_batch_stride + j0 * t.dst_ld + i0;
        const int64_t ni = std::min(side, t.rows - i0), nj = std::min(side, t.cols - j0);
        if (ni == side && nj == side) {
          T tile[side][side];
          for (int64_t i = 0; i < side; ++i)
            for (int64_t j = 0; j < side; ++j) tile[j][i] = from[i * t.src_ld + j];
          for (int64_t j = 0; j < side; ++j)
            for (int64_t i = 0; i < side; ++i) to[j * t.dst_ld + i] = tile[j][i];
        } else {
          for (int64_t j = 0; j < nj; ++j)
            for (int64_t i = 0; i < ni; ++i) to[j * t.dst_ld + i] = from[i * t.src_ld + j];
        }
      }
}
// Rank 4 in the order of dst, the innermost loop contiguous there.
template <class T>
void permute(const T* src, T* dst, const lockstep_permute_desc& p) {
  int64_t n[4], step[4];
  for (int k = 0; k < 4; ++k) n[k] = p.shape[p.perm[k]], step[k] = p.src_strides[p.perm[k]];
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t i = 0; i < n[0]; ++i)
    for (int64_t j = 0; j < n[1]; ++j)
      for (int64_t k = 0; k < n[2]; ++k) {
        const T* from = src + i * step[0] + j * step[1] + k * step[2];
        T* to = dst + ((i * n[1] + j) * n[2] + k) * n[3];
        if (step[3] == 1)
          std::memcpy(to, from, static_cast<size_t>(n[3]) * sizeof(T));
        else
          for (int64_t l = 0; l < n[3]; ++l) to[l] = from[l * step[3]];
      }
}

template <class T>
void moved(peers::subject& s) {
  const T* x = s.src<T>();
  T* y = s.dst<T>();
  const auto check = [&] { return s.bits(y); };
  if (s.c.op == LOCKSTEP_TRANSPOSE)
    s.time(
        "omp loop, tiles of 16", [&] { transpose(x, y, s.c.transpose); }, check);
  else
    s.time(
        "omp loop", [&] { permute(x, y, s.c.permute); }, check);
}

void reductions(peers::subject& s) {
  const int64_t n = s.c.reduce.length, count = s.c.reduce.count;
  double value = 0;
  int64_t exact = 0;
  const auto check = [&] { return s.values<double>(&value, 1); };
  const auto check_exact = [&] { return s.values<int64_t>(&exact, 1); };
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32))
    s.time(
        "omp loop, double", [&, x = s.src<float>()] { value = squares<float, double>(x, n); }, check);
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F64))
    s.time(
        "omp loop", [&, x = s.src<double>()] { value = squares<double, double>(x, n); }, check);
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_I32))
    s.time(
        "omp loop, wrapping i64", [&, x = s.src<int32_t>()] { exact = squares<int32_t, int64_t>(x, n); }, check_exact);
  if (peers::whole(s.c, LOCKSTEP_SUM, LOCKSTEP_F32))
    s.time(
        "omp loop, double", [&, x = s.src<float>()] { value = total(x, n); }, check);
  if (peers::whole(s.c, LOCKSTEP_MAX, LOCKSTEP_F32))
    s.time(
        "omp loop", [&, x = s.src<float>()] { value = static_cast<double>(largest(x, n)); },
        [&] { return s.values<float>(&value, 1); });
  if (peers::whole(s.c, LOCKSTEP_ARGMAX, LOCKSTEP_F32))
    s.time(
        "omp loop, two passes", [&, x = s.src<float>()] { exact = first_largest(x, n); }, check_exact);
  if (peers::rows(s.c, LOCKSTEP_SUM, LOCKSTEP_F32))
    s.time(
        "omp loop, double", [&, x = s.src<float>(), y = s.dst<double>()] { row_sums(x, y, count, n); },
        [&] { return s.values<double>(s.dst<double>(), count); });
  if (peers::rows(s.c, LOCKSTEP_MAX, LOCKSTEP_F32))
    s.time(
        "omp loop", [&, x = s.src<float>(), y = s.dst<float>()] { row_largest(x, y, count, n); },
        [&] { return s.bits(s.dst()); });
  if (peers::rows(s.c, LOCKSTEP_ARGMAX, LOCKSTEP_F32))
    s.time(
        "omp loop, two passes", [&, x = s.src<float>(), y = s.dst<int64_t>()] { row_first_largest(x, y, count, n); },
        [&] { return s.bits(s.dst()); });
}

void stencils(peers::subject& s) {
  const std::vector<float> c(s.c.coefficients.begin(), s.c.coefficients.end());
  const auto& d = s.c.stencil;
  const auto check = [&] { return s.inside(s.dst<float>()); };
  if (peers::star(s.c, 1))
    s.time(
        "omp loop", [&, x = s.src<float>(), y = s.dst<float>()] { stencil_1d(x, y, d.shape[0], c.data()); }, check);
  if (peers::star(s.c, 3))
    s.time(
        "omp loop, tiled",
        [&, x = s.src<float>(), y = s.dst<float>()] { star_3d(x, y, d.shape[0], d.shape[1], d.shape[2], c.data()); },
        check);
}

// ---- normalize -----------------------------------------------------------------------
// In float, as kernels for inference do: the sums, then the results while the row is in the cache.
template <class T>
void normalize(const T* src, T* dst, const lockstep_normalize_desc& d) {
  const T *weight = static_cast<const T*>(d.weight), *bias = static_cast<const T*>(d.bias);
  const auto n = static_cast<float>(d.length), eps = static_cast<float>(d.eps);
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < d.count; ++r) {
    const T* x = src + r * d.src_stride;
    T* y = dst + r * d.dst_stride;
    float mean = 0, squares = 0;
    if (d.kind == LOCKSTEP_NORMALIZE_LAYER) {
      for (int64_t i = 0; i < d.length; ++i) mean += static_cast<float>(x[i]);
      mean /= n;
    }
    for (int64_t i = 0; i < d.length; ++i)
      squares += (static_cast<float>(x[i]) - mean) * (static_cast<float>(x[i]) - mean);
    const float root = d.kind == LOCKSTEP_NORMALIZE_L2 ? std::sqrt(squares) : std::sqrt(squares / n + eps);
    const float scale = 1 / (root < eps ? eps : root);
    if (weight != nullptr && bias != nullptr)
      for (int64_t i = 0; i < d.length; ++i)
        y[i] = peers::rounded<T>((static_cast<float>(x[i]) - mean) * scale * static_cast<float>(weight[i]) +
                                 static_cast<float>(bias[i]));
    else if (weight != nullptr)
      for (int64_t i = 0; i < d.length; ++i)
        y[i] = peers::rounded<T>((static_cast<float>(x[i]) - mean) * scale * static_cast<float>(weight[i]));
    else
      for (int64_t i = 0; i < d.length; ++i) y[i] = peers::rounded<T>((static_cast<float>(x[i]) - mean) * scale);
  }
}
template <class T>
void softmax(const T* src, T* dst, const lockstep_normalize_desc& d) {
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < d.count; ++r) {
    const T* x = src + r * d.length;
    T* y = dst + r * d.length;
    float most = static_cast<float>(x[0]), sum = 0;
    for (int64_t i = 1; i < d.length; ++i) most = std::max(most, static_cast<float>(x[i]));
    for (int64_t i = 0; i < d.length; ++i) sum += std::exp(static_cast<float>(x[i]) - most);
    for (int64_t i = 0; i < d.length; ++i) y[i] = peers::rounded<T>(std::exp(static_cast<float>(x[i]) - most) / sum);
  }
}
template <class T>
void normalizations(peers::subject& s) {
  const lockstep_normalize_desc d = cases::with_sides(s.c);
  const bool exponentials = d.kind == LOCKSTEP_NORMALIZE_SOFTMAX;
  if (d.kind > LOCKSTEP_NORMALIZE_SOFTMAX || (exponentials && d.scale != 1)) return;
  s.time(
      "omp loop, float", [&, x = s.src<T>(), y = s.dst<T>()] { exponentials ? softmax(x, y, d) : normalize(x, y, d); },
      [&] { return s.values<T>(s.dst<T>(), d.count * d.length); });
}

}  // namespace

int main(int argc, char** argv) {
  return peers::serve(
      argc, argv, "cpu",
      [](const peers::arguments& a) {
        if (a.threads > 0) omp_set_num_threads(a.threads);
        return [&a](peers::subject& s) {
          if (!s.c.members.empty()) return measure_group(s);
          const bool dense = s.c.op == LOCKSTEP_PERMUTE && s.c.permute.rank == 4 && s.c.permute.dst_strides[3] == 1;
          const size_t bytes = s.c.op == LOCKSTEP_TRANSPOSE && !s.c.in_place ? s.c.transpose.element_bytes
                               : dense                                       ? s.c.permute.element_bytes
                                                                             : 0;
          if (bytes == 1) moved<uint8_t>(s);
          if (bytes == 4) moved<uint32_t>(s);
          if (bytes == 8) moved<uint64_t>(s);
          if (peers::reduction(s.c)) reductions(s);
          stencils(s);
          const auto& n = s.c.normalize;
          const bool plain = s.c.op == LOCKSTEP_NORMALIZE && n.result == n.dtype && n.weight_dtype == n.dtype &&
                             s.c.residual.empty() && (s.c.bias.empty() || !s.c.weight.empty()) && !s.c.in_place &&
                             n.src_stride == n.length && n.dst_stride == n.length;
          if (plain && n.dtype == LOCKSTEP_F32) normalizations<float>(s);
          if (plain && n.dtype == LOCKSTEP_BF16) normalizations<peers::bf16>(s);
          if (plain && n.dtype == LOCKSTEP_F16) normalizations<peers::f16>(s);
          measure_new(s);
          measure_sums(s);
          if (a.sample) measure_any(s);
        };
      },
      true);
}
