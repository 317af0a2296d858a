// tbb.cpp - TBB, and the C++ library's parallel algorithms, which run on TBB here (-O3 -march=native -ffast-math);
// sums in double. Left out: batches, permutes, 3-D stencils and extremes of rows, which would be hand-written loops in
// its parallel_for; peer_omp has such loops.
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/blocked_range2d.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/version.h>

#include <execution>
#include <functional>
#include <numeric>
#include <optional>

#include "peer.hpp"

namespace {
using namespace lockstep;
constexpr auto how = std::execution::par_unseq;
const std::string library = "TBB " + std::to_string(TBB_VERSION_MAJOR) + "." + std::to_string(TBB_VERSION_MINOR);

// TBB halves the matrix until pieces are at most 32 x 32, so that they fit any cache.
template <class T>
void transpose(peers::subject& s) {
  const int64_t rows = s.c.transpose.rows, cols = s.c.transpose.cols;
  const T* x = s.src<T>();
  T* y = s.dst<T>();
  const auto piece = [=](const tbb::blocked_range2d<int64_t>& r) {
    for (int64_t j = r.cols().begin(); j < r.cols().end(); ++j)
#pragma omp simd
      for (int64_t i = r.rows().begin(); i < r.rows().end(); ++i) y[j * rows + i] = x[i * cols + j];
  };
  s.time(
      library + " parallel_for, 2-D range",
      [&] {
        tbb::parallel_for(tbb::blocked_range2d<int64_t>(0, rows, 32, 0, cols, 32), piece, tbb::simple_partitioner());
      },
      [&] { return s.bits(y); });
}

template <class T, class Acc, class Term>
Acc sum(const T* x, int64_t n, const Term& term) {
  return std::transform_reduce(how, x, x + n, Acc{}, std::plus<Acc>(), term);
}

void reductions(peers::subject& s) {
  const int64_t n = s.c.reduce.length, count = s.c.reduce.count;
  const std::string reduce = "std::transform_reduce, " + library;
  double value = 0;
  int64_t exact = 0;
  const auto check = [&] { return s.values<double>(&value, 1); };
  const auto check_exact = [&] { return s.values<int64_t>(&exact, 1); };
  const auto square = [](auto v) { return static_cast<double>(v) * static_cast<double>(v); };
  const auto square_exact = [](int32_t v) { return int64_t{v} * v; };
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32))
    s.time(
        reduce + ", double", [&, x = s.src<float>()] { value = sum<float, double>(x, n, square); }, check);
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F64))
    s.time(
        reduce, [&, x = s.src<double>()] { value = sum<double, double>(x, n, square); }, check);
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_I32))
    s.time(
        reduce + ", wrapping i64", [&, x = s.src<int32_t>()] { exact = sum<int32_t, int64_t>(x, n, square_exact); },
        check_exact);
  if (peers::whole(s.c, LOCKSTEP_SUM, LOCKSTEP_F32))
    s.time(
        reduce + ", double",
        [&, x = s.src<float>()] { value = sum<float, double>(x, n, [](float v) { return static_cast<double>(v); }); },
        check);
  if (peers::whole(s.c, LOCKSTEP_MAX, LOCKSTEP_F32))
    s.time(
        "std::reduce, " + library,
        [&, x = s.src<float>()] {
          value = static_cast<double>(std::reduce(how, x, x + n, x[0], [](float a, float b) { return a > b ? a : b; }));
        },
        [&] { return s.values<float>(&value, 1); });
  if (peers::whole(s.c, LOCKSTEP_ARGMAX, LOCKSTEP_F32))
    s.time(
        "std::max_element, " + library, [&, x = s.src<float>()] { exact = std::max_element(how, x, x + n) - x; },
        check_exact);
  if (peers::rows(s.c, LOCKSTEP_SUM, LOCKSTEP_F32)) {
    const auto body = [&, x = s.src<float>(), y = s.dst<double>()] {
      tbb::parallel_for(tbb::blocked_range<int64_t>(0, count), [=](const tbb::blocked_range<int64_t>& r) {
        for (int64_t i = r.begin(); i < r.end(); ++i)
          y[i] = std::reduce(std::execution::unseq, x + i * n, x + i * n + n, 0.0);
      });
    };
    s.time(library + " parallel_for, double", body, [&] { return s.values<double>(s.dst<double>(), count); });
  }
}

void stencil_1d(peers::subject& s) {
  const std::vector<float> c(s.c.coefficients.begin(), s.c.coefficients.end());
  const int64_t n = s.c.stencil.shape[0];
  const float* x = s.src<float>();
  float* y = s.dst<float>();
  const auto piece = [=, c = c.data()](const tbb::blocked_range<int64_t>& r) {
#pragma omp simd
    for (int64_t i = r.begin(); i < r.end(); ++i) {
      float sum = c[0] * x[i];
      for (int k = 1; k <= 4; ++k) sum += c[k] * (x[i - k] + x[i + k]);
      y[i] = sum;
    }
  };
  s.time(
      library + " parallel_for", [&] { tbb::parallel_for(tbb::blocked_range<int64_t>(4, n - 4, 1 << 14), piece); },
      [&] { return s.inside(y); });
}
}  // namespace

int main(int argc, char** argv) {
  std::optional<tbb::global_control> limit;
  return peers::serve(argc, argv, "cpu", [&](const peers::arguments& a) {
    if (a.threads > 0) limit.emplace(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(a.threads));
    return [](peers::subject& s) {
      if (peers::plain_transpose(s.c)) switch (s.c.transpose.element_bytes) {
          case 1: transpose<uint8_t>(s); break;
          case 4: transpose<uint32_t>(s); break;
          case 8: transpose<uint64_t>(s); break;
          default: break;
        }
      if (peers::reduction(s.c)) reductions(s);
      if (peers::star(s.c, 1)) stencil_1d(s);
    };
  });
}
