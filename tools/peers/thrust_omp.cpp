// thrust_omp.cpp - Thrust on its OpenMP device: the headers of a CUDA toolkit, compiled by the C++ compiler, without a
// GPU. Left out: batches, permutes and 3-D stencils, which would be hand-written loops over indices, as in peer_omp.
#include <omp.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/gather.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/version.h>

#include "peer.hpp"

namespace {
using namespace lockstep;
const std::string library =
    "Thrust " + std::to_string(THRUST_MAJOR_VERSION) + "." + std::to_string(THRUST_MINOR_VERSION) + " on OpenMP ";

// Element k of dst is element (k % rows) * cols + k / rows of src.
struct transposed {
  int64_t rows, cols;
  int64_t operator()(int64_t k) const { return k % rows * cols + k / rows; }
};
template <class T>
void transpose(peers::subject& s) {
  const T* x = s.src<T>();
  T* y = s.dst<T>();
  const int64_t n = s.c.src.elements();
  const auto map = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0),
                                                   transposed{s.c.transpose.rows, s.c.transpose.cols});
  s.time(
      library + "gather", [&] { thrust::gather(thrust::device, map, map + n, x, y); }, [&] { return s.bits(y); });
}

struct square {
  template <class T>
  double operator()(T v) const {
    return static_cast<double>(v) * static_cast<double>(v);
  }
};
struct square_exact {
  int64_t operator()(int32_t v) const { return int64_t{v} * v; }
};
struct widen {
  double operator()(float v) const { return static_cast<double>(v); }
};
struct row_sum {
  const float* x;
  int64_t n;
  double operator()(int64_t i) const {
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += static_cast<double>(x[i * n + k]);
    return sum;
  }
};
struct row_best {
  const float* x;
  int64_t n;
  int64_t operator()(int64_t i) const {
    const float* row = x + i * n;
    int64_t best = 0;
    for (int64_t k = 1; k < n; ++k) best = row[k] > row[best] ? k : best;
    return best;
  }
};
struct row_max {
  const float* x;
  int64_t n;
  float operator()(int64_t i) const {
    float best = x[i * n];
    for (int64_t k = 1; k < n; ++k) best = x[i * n + k] > best ? x[i * n + k] : best;
    return best;
  }
};

void reductions(peers::subject& s) {
  const int64_t n = s.c.reduce.length, count = s.c.reduce.count;
  double value = 0;
  int64_t exact = 0;
  const auto check = [&] { return s.values<double>(&value, 1); };
  const auto check_exact = [&] { return s.values<int64_t>(&exact, 1); };
  const std::string reduce = library + "transform_reduce";
  const auto plus = thrust::plus<double>();
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32))
    s.time(
        reduce + ", double",
        [&, x = s.src<float>()] { value = thrust::transform_reduce(thrust::device, x, x + n, square{}, 0.0, plus); },
        check);
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F64))
    s.time(
        reduce,
        [&, x = s.src<double>()] { value = thrust::transform_reduce(thrust::device, x, x + n, square{}, 0.0, plus); },
        check);
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_I32))
    s.time(
        reduce + ", wrapping i64",
        [&, x = s.src<int32_t>()] {
          exact =
              thrust::transform_reduce(thrust::device, x, x + n, square_exact{}, int64_t{0}, thrust::plus<int64_t>());
        },
        check_exact);
  if (peers::whole(s.c, LOCKSTEP_SUM, LOCKSTEP_F32))
    s.time(
        reduce + ", double",
        [&, x = s.src<float>()] { value = thrust::transform_reduce(thrust::device, x, x + n, widen{}, 0.0, plus); },
        check);
  if (peers::whole(s.c, LOCKSTEP_MAX, LOCKSTEP_F32))
    s.time(
        library + "reduce",
        [&, x = s.src<float>()] {
          value = static_cast<double>(thrust::reduce(thrust::device, x, x + n, x[0], thrust::maximum<float>()));
        },
        [&] { return s.values<float>(&value, 1); });
  if (peers::whole(s.c, LOCKSTEP_ARGMAX, LOCKSTEP_F32))
    s.time(
        library + "max_element", [&, x = s.src<float>()] { exact = thrust::max_element(thrust::device, x, x + n) - x; },
        check_exact);
  const thrust::counting_iterator<int64_t> first(0);
  if (peers::rows(s.c, LOCKSTEP_MAX, LOCKSTEP_F32))
    s.time(
        library + "transform",
        [&, x = s.src<float>(), y = s.dst<float>()] {
          thrust::transform(thrust::device, first, first + count, y, row_max{x, n});
        },
        [&] { return s.values<float>(s.dst<float>(), count); });
  if (peers::rows(s.c, LOCKSTEP_ARGMAX, LOCKSTEP_F32))
    s.time(
        library + "transform",
        [&, x = s.src<float>(), y = s.dst<int64_t>()] {
          thrust::transform(thrust::device, first, first + count, y, row_best{x, n});
        },
        [&] { return s.values<int64_t>(s.dst<int64_t>(), count); });
  if (peers::rows(s.c, LOCKSTEP_SUM, LOCKSTEP_F32)) {
    s.time(
        library + "transform, double",
        [&, x = s.src<float>(), y = s.dst<double>()] {
          thrust::transform(thrust::device, first, first + count, y, row_sum{x, n});
        },
        [&] { return s.values<double>(s.dst<double>(), count); });
  }
}

struct taps {
  const float* x;
  float c[5];
  float operator()(int64_t i) const {
    float sum = c[0] * x[i];
    for (int k = 1; k <= 4; ++k) sum += c[k] * (x[i - k] + x[i + k]);
    return sum;
  }
};
void stencil_1d(peers::subject& s) {
  taps at{s.src<float>(), {}};
  for (size_t k = 0; k < 5; ++k) at.c[k] = static_cast<float>(s.c.coefficients[k]);
  const thrust::counting_iterator<int64_t> first(4);
  s.time(
      library + "transform",
      [&, y = s.dst<float>()] {
        thrust::transform(thrust::device, first, first + (s.c.stencil.shape[0] - 8), y + 4, at);
      },
      [&] { return s.inside(s.dst<float>()); });
}
}  // namespace

int main(int argc, char** argv) {
  return peers::serve(argc, argv, "cpu", [](const peers::arguments& a) {
    if (a.threads > 0) omp_set_num_threads(a.threads);
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
