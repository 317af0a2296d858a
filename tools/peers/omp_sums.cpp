// omp_sums.cpp - peer_omp for sums of two arrays and of one: loops in double, a share of the array or whole rows a
// thread.
#include "omp_types.hpp"

namespace {
using namespace lockstep;

// The sum of term(x, y) over n elements.
template <class T, class Term>
double of_range(const T* x, const T* y, int64_t n, const Term& term) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += term(static_cast<double>(x[i]), static_cast<double>(y[i]));
  return sum;
}
// sum[j] += term of row i for each column j, by blocks of columns; if there are few, threads share the rows.
template <class T, class Term>
void sums_of_columns(const T* x, const T* y, double* sums, const lockstep_sums_desc& d, const Term& term) {
  constexpr int64_t block = 512;
  const int64_t cols = d.count, rows = d.length, blocks = (cols + block - 1) / block, threads = omp_get_max_threads();
  const auto add = [&](double* to, int64_t first_row, int64_t end_row, int64_t first, int64_t end) {
    for (int64_t j = first; j < end; ++j) to[j] = 0;
    for (int64_t i = first_row; i < end_row; ++i) {
      const T *a = x + i * d.element_stride, *b = y + i * d.other_element_stride;
      for (int64_t j = first; j < end; ++j) to[j] += term(static_cast<double>(a[j]), static_cast<double>(b[j]), j);
    }
  };
  if (blocks >= 2 * threads) {
#pragma omp parallel for schedule(static)
    for (int64_t k = 0; k < blocks; ++k) add(sums, 0, rows, k * block, std::min(cols, (k + 1) * block));
    return;
  }
  const int64_t pieces = std::clamp<int64_t>(rows * cols / 4096, 1, std::min(threads, rows));
  std::vector<double> part(static_cast<size_t>(pieces * cols));
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < pieces; ++k) add(part.data() + k * cols, rows * k / pieces, rows * (k + 1) / pieces, 0, cols);
  for (int64_t j = 0; j < cols; ++j) {
    sums[j] = 0;
    for (int64_t k = 0; k < pieces; ++k) sums[j] += part[static_cast<size_t>(k * cols + j)];
  }
}
template <class T>
void moments_of_columns(const T* x, double* out, const lockstep_sums_desc& d) {
  const auto cols = static_cast<size_t>(d.count);
  std::vector<double> mean(cols), squares(cols);
  lockstep_sums_desc one = d;
  one.other_element_stride = d.element_stride;
  sums_of_columns(x, x, mean.data(), one, [](double a, double, int64_t) { return a; });
  for (double& m : mean) m /= static_cast<double>(d.length);
  sums_of_columns(x, x, squares.data(), one, [&](double a, double, int64_t j) {
    const double off = a - mean[static_cast<size_t>(j)];
    return off * off;
  });
  for (size_t j = 0; j < cols; ++j)
    out[2 * j] = mean[j], out[2 * j + 1] = squares[j] / static_cast<double>(d.length - d.correction);
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
  const bool columns = d.element_stride > 1;
  const auto time = [&](const auto& term) {
    s.time(
        "omp loop, double",
        [&] {
          if (columns)
            sums_of_columns(x, y, out, d, [&](double a, double b, int64_t) { return term(a, b); });
          else
            sums_of(x, y, out, d, term);
        },
        [&] { return s.values<double>(out, d.count); });
  };
  switch (d.kind) {
    case LOCKSTEP_SUMS_DOT: return time([](double a, double b) { return a * b; });
    case LOCKSTEP_SUMS_SQUARED_DIFFERENCES: return time([](double a, double b) { return (a - b) * (a - b); });
    case LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES: return time([](double a, double b) { return std::abs(a - b); });
    case LOCKSTEP_SUMS_ABSOLUTE: return time([](double a, double) { return std::abs(a); });
    default:
      s.time(
          "omp loops, double, two reads", [&] { columns ? moments_of_columns(x, out, d) : moments_of(x, out, d); },
          [&] { return s.values<double>(out, 2 * d.count); });
  }
}
}  // namespace

void measure_sums(peers::subject& s) {
  lockstep_sums_desc d = cases::with_other(s.c, nullptr);
  const bool other = d.kind <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES;
  if (s.c.op != LOCKSTEP_SUMS || !s.c.offsets.empty() || d.result != LOCKSTEP_F64 || d.length == 0) return;
  const bool rows = d.element_stride == 1 && (!other || d.other_element_stride == 1);
  const bool columns = d.sequence_stride == 1 && (!other || d.other_sequence_stride == 1);
  if (!rows && !columns) return;
  if (!other) d.other = s.src(), d.other_element_stride = d.element_stride;
  if (d.dtype == LOCKSTEP_F32) sums_of_type<float>(s, d);
  if (d.dtype == LOCKSTEP_F64) sums_of_type<double>(s, d);
  if (d.dtype == LOCKSTEP_F16) sums_of_type<peers::f16>(s, d);
  if (d.dtype == LOCKSTEP_BF16) sums_of_type<peers::bf16>(s, d);
}
