// omp_sums.cpp - peer_omp for sums of two arrays and of one: loops in double, a share of the array or whole rows a
// thread.
#include <omp.h>

#include <cmath>

#include "peer.hpp"

namespace {
using namespace lockstep;

// The sum of term(x, y) over n elements.
template <class T, class Term>
double of_range(const T* x, const T* y, int64_t n, const Term& term) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += term(static_cast<double>(x[i]), static_cast<double>(y[i]));
  return sum;
}
template <class T, class Term>
void sums_of(const T* x, const T* y, double* sums, const lockstep_sums_desc& d, const Term& term) {
  if (d.count > 1) {
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < d.count; ++r)
      sums[r] = of_range(x + r * d.sequence_stride, y + r * d.other_sequence_stride, d.length, term);
    return;
  }
  double sum = 0;
#pragma omp parallel reduction(+ : sum)
  {
    const int64_t t = omp_get_thread_num(), all = omp_get_num_threads(), first = d.length * t / all,
                  last = d.length * (t + 1) / all;
    sum += of_range(x + first, y + first, last - first, term);
  }
  *sums = sum;
}
template <class T>
void moments_of(const T* x, double* out, const lockstep_sums_desc& d) {
  const double n = static_cast<double>(d.length), divisor = n - static_cast<double>(d.correction);
  const auto value = [](double a, double) { return a; };
  if (d.count == 1) {
    double sum, squares;
    sums_of(x, x, &sum, d, value);
    const double mean = sum / n;
    sums_of(x, x, &squares, d, [mean](double a, double) { return (a - mean) * (a - mean); });
    out[0] = mean, out[1] = squares / divisor;
    return;
  }
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < d.count; ++r) {
    const T* row = x + r * d.sequence_stride;
    const double mean = of_range(row, row, d.length, value) / n;
    const auto square = [mean](double a, double) { return (a - mean) * (a - mean); };
    out[2 * r] = mean, out[2 * r + 1] = of_range(row, row, d.length, square) / divisor;
  }
}

template <class T>
void sums_of_type(peers::subject& s, const lockstep_sums_desc& d) {
  const T* x = s.src<T>();
  const T* y = static_cast<const T*>(d.other);
  double* out = s.dst<double>();
  const auto time = [&](const auto& term) {
    s.time(
        "omp loop, double", [&] { sums_of(x, y, out, d, term); }, [&] { return s.values<double>(out, d.count); });
  };
  switch (d.kind) {
    case LOCKSTEP_SUMS_DOT: return time([](double a, double b) { return a * b; });
    case LOCKSTEP_SUMS_SQUARED_DIFFERENCES: return time([](double a, double b) { return (a - b) * (a - b); });
    case LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES: return time([](double a, double b) { return std::abs(a - b); });
    case LOCKSTEP_SUMS_ABSOLUTE: y = x; return time([](double a, double) { return std::abs(a); });
    default:
      s.time(
          "omp loops, double, two reads", [&] { moments_of(x, out, d); },
          [&] { return s.values<double>(out, 2 * d.count); });
  }
}
}  // namespace

void measure_sums(peers::subject& s) {
  const lockstep_sums_desc d = cases::with_other(s.c, nullptr);
  const bool other = d.kind <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES;
  if (s.c.op != LOCKSTEP_SUMS || !s.c.offsets.empty() || d.result != LOCKSTEP_F64 || d.length == 0 ||
      d.element_stride != 1 || (other && d.other_element_stride != 1))
    return;
  if (d.dtype == LOCKSTEP_F32) sums_of_type<float>(s, d);
  if (d.dtype == LOCKSTEP_F64) sums_of_type<double>(s, d);
}
