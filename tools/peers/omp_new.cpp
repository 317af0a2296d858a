// omp_new.cpp - peer_omp for what the second distribution of a sample draws (tools/bench/sample.hpp): scans of every
// layout, casts in any order of axes, reductions of any axes, groups.
#include <cmath>

#include "omp_types.hpp"

namespace {
using namespace lockstep;
using peers::bf16;
using peers::f16;

// ---- scans -----------------------------------------------------------------------------
template <class Acc>
struct adds {
  static constexpr Acc none = 0;
  static Acc join(Acc a, Acc b) { return a + b; }
};
template <class Acc>
struct keeps_largest {
  static constexpr Acc none = std::is_integral_v<Acc> ? std::numeric_limits<Acc>::lowest() : static_cast<Acc>(-3e38);
  static Acc join(Acc a, Acc b) { return a > b ? a : b; }
};

template <class From, class To, class Acc, template <class> class Op>
void scan(const From* x, To* y, const lockstep_scan_desc& d) {
  typedef Op<Acc> op;
  const auto along = [](const From* from, To* to, int64_t n, Acc before) {
    for (int64_t i = 0; i < n; ++i) to[i] = peers::rounded<To>(before = op::join(before, static_cast<Acc>(from[i])));
  };
  if (d.element_stride > 1) {  // columns
    const int64_t block = std::clamp<int64_t>(d.count / omp_get_max_threads(), 16, 512);
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < d.count; first += block) {
      const int64_t n = std::min(block, d.count - first);
      Acc sums[512];
      for (int64_t j = 0; j < n; ++j) sums[j] = op::none;
      for (int64_t i = 0; i < d.length; ++i) {
        const From* from = x + i * d.element_stride + first;
        To* to = y + i * d.dst_element_stride + first;
        for (int64_t j = 0; j < n; ++j)
          to[j] = peers::rounded<To>(sums[j] = op::join(sums[j], static_cast<Acc>(from[j])));
      }
    }
    return;
  }
  if (d.count > 1) {
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < d.count; ++r) along(x + r * d.length, y + r * d.length, d.length, op::none);
    return;
  }
  // Each thread reduces its share; then each scans it, starting from the shares before.
  std::vector<Acc> shares(static_cast<size_t>(omp_get_max_threads()) + 1, op::none);
#pragma omp parallel
  {
    const int64_t t = omp_get_thread_num(), all = omp_get_num_threads(), first = d.length * t / all,
                  last = d.length * (t + 1) / all;
    Acc sum = op::none;
    for (int64_t i = first; i < last; ++i) sum = op::join(sum, static_cast<Acc>(x[i]));
    shares[static_cast<size_t>(t) + 1] = sum;
#pragma omp barrier
#pragma omp single
    for (size_t k = 1; k < shares.size(); ++k) shares[k] = op::join(shares[k], shares[k - 1]);
    along(x + first, y + first, last - first, shares[static_cast<size_t>(t)]);
  }
}
template <class From, class To, class Acc, template <class> class Op>
void scanned(peers::subject& s, const char* name) {
  const auto& d = s.c.scan;
  s.time(
      name, [&, x = s.src<From>(), y = s.dst<To>()] { scan<From, To, Acc, Op>(x, y, d); },
      [&] { return s.values<To>(s.dst<To>(), d.count * d.length); });
}
void scans(peers::subject& s) {
  const auto& d = s.c.scan;
  const bool sum = d.reduction == LOCKSTEP_SUM;
  if (!s.c.offsets.empty() || s.c.in_place || d.exclusive != 0 || d.reduction == LOCKSTEP_MIN) return;
  const bool rows = d.element_stride == 1 && d.dst_element_stride == 1 && d.sequence_stride == d.length &&
                    d.dst_sequence_stride == d.length;
  if (!rows && (d.sequence_stride != 1 || d.dst_sequence_stride != 1)) return;
  if (d.dtype == LOCKSTEP_F32 && d.result == LOCKSTEP_F32)
    sum ? scanned<float, float, double, adds>(s, "omp loops of any scan, double")
        : scanned<float, float, float, keeps_largest>(s, "omp loops of any scan");
  if (d.dtype == LOCKSTEP_F64 && d.result == LOCKSTEP_F64)
    sum ? scanned<double, double, double, adds>(s, "omp loops of any scan")
        : scanned<double, double, double, keeps_largest>(s, "omp loops of any scan");
  if (d.dtype == LOCKSTEP_BF16 && d.result == LOCKSTEP_BF16)
    sum ? scanned<bf16, bf16, double, adds>(s, "omp loops of any scan, double")
        : scanned<bf16, bf16, float, keeps_largest>(s, "omp loops of any scan");
  if (d.dtype == LOCKSTEP_I32)
    sum ? scanned<int32_t, int64_t, int64_t, adds>(s, "omp loops of any scan")
        : scanned<int32_t, int32_t, int32_t, keeps_largest>(s, "omp loops of any scan");
}

// ---- casts -----------------------------------------------------------------------------
template <class From, class To>
void converted(peers::subject& s) {
  const auto& d = s.c.convert;
  s.time(
      "omp loops of any axes",
      [&, x = s.src<From>(), y = s.dst<To>()] { peers::permute(x, y, d.rank, d.shape, d.src_strides, d.dst_strides); },
      [&] { return s.values<To>(s.dst<To>(), s.c.dst.elements()); });
}
void converts(peers::subject& s) {
  const auto& d = s.c.convert;
  if (d.scale != 1 || d.dst_strides[d.rank - 1] != 1) return;
  const auto is = [&](lockstep_dtype from, lockstep_dtype to) { return d.dtype == from && d.result == to; };
  if (is(LOCKSTEP_F32, LOCKSTEP_F16)) converted<float, f16>(s);
  if (is(LOCKSTEP_F32, LOCKSTEP_BF16)) converted<float, bf16>(s);
  if (is(LOCKSTEP_F16, LOCKSTEP_F32)) converted<f16, float>(s);
  if (is(LOCKSTEP_BF16, LOCKSTEP_F32)) converted<bf16, float>(s);
}

// ---- functions -------------------------------------------------------------------------
template <class Function>
void loops(peers::subject& s, const Function& function) {
  const int64_t n = s.c.dst.elements();
  s.time(
      "omp loops of libm's floats",
      [&, x = s.src<float>(), y = s.dst<float>()] {
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < n; ++i) y[i] = function(x[i]);
      },
      [&] { return s.values<float>(s.dst<float>(), n); });
}
void functions(peers::subject& s) {
  const auto& d = s.c.map;
  if (d.scale != 1 || d.rank != 1 || d.src_strides[0] != 1 || d.dtype != LOCKSTEP_F32 || d.result != LOCKSTEP_F32)
    return;
  switch (d.function) {
    case LOCKSTEP_MAP_EXP: return loops(s, [](float x) { return std::exp(x); });
    case LOCKSTEP_MAP_LOG: return loops(s, [](float x) { return std::log(x); });
    case LOCKSTEP_MAP_SQRT: return loops(s, [](float x) { return std::sqrt(x); });
    case LOCKSTEP_MAP_TANH: return loops(s, [](float x) { return std::tanh(x); });
    case LOCKSTEP_MAP_ERF: return loops(s, [](float x) { return std::erf(x); });
    case LOCKSTEP_MAP_SILU: return loops(s, [](float x) { return x / (1 + std::exp(-x)); });
    default: return;
  }
}

// ---- reductions of any axes --------------------------------------------------------------
// Where the n-th element of some axes lies.
struct odometer {
  std::vector<int64_t> n, stride;
  int64_t count() const {
    int64_t all = 1;
    for (const int64_t one : n) all *= one;
    return all;
  }
  int64_t at(int64_t index) const {
    int64_t where = 0;
    for (size_t k = n.size(); k-- > 0;) where += index % n[k] * stride[k], index /= n[k];
    return where;
  }
};
template <class T, class Acc, class Join>
void axes_reduced(const T* x, Acc* y, const lockstep_reduce_axes_desc& d, const Join& join, Acc none) {
  bool goes[LOCKSTEP_MAX_RANK] = {};
  for (int k = 0; k < d.axis_count; ++k) goes[d.axes[k]] = true;
  odometer kept, gone;
  const int last = d.rank - 1;
  for (int k = 0; k < last; ++k) {
    odometer& one = goes[k] ? gone : kept;
    one.n.push_back(d.shape[k]), one.stride.push_back(d.src_strides[k]);
  }
  const int64_t results = kept.count(), terms = gone.count(), inner = d.shape[last];
  const int64_t threads = omp_get_max_threads();
  if (goes[last]) {  // a result from rows; where results are few, threads share the rows
    const int64_t pieces = results >= 4 * threads ? 1 : std::clamp<int64_t>(terms, 1, threads);
    std::vector<Acc> part(static_cast<size_t>(results * pieces));
#pragma omp parallel for schedule(static)
    for (int64_t k = 0; k < results * pieces; ++k) {
      const int64_t piece = k % pieces, end = terms * (piece + 1) / pieces, base = kept.at(k / pieces);
      Acc sum = none;
      for (int64_t t = terms * piece / pieces; t < end; ++t) {
        const T* row = x + base + gone.at(t);
        for (int64_t i = 0; i < inner; ++i) sum = join(sum, row[i]);
      }
      part[static_cast<size_t>(k)] = sum;
    }
    for (int64_t r = 0; r < results; ++r) {
      y[r] = part[static_cast<size_t>(r * pieces)];
      for (int64_t k = 1; k < pieces; ++k) {
        const Acc one = part[static_cast<size_t>(r * pieces + k)];
        y[r] = std::is_same_v<T, Acc> && none != 0 ? std::max(y[r], one) : y[r] + one;
      }
    }
    return;
  }
  const int64_t block = std::clamp<int64_t>(inner * results / threads, 16, 512), blocks = (inner + block - 1) / block;
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < results * blocks; ++k) {
    const int64_t first = k % blocks * block, n = std::min(block, inner - first);
    Acc* to = y + k / blocks * inner + first;
    for (int64_t j = 0; j < n; ++j) to[j] = none;
    const T* base = x + kept.at(k / blocks) + first;
    for (int64_t t = 0; t < terms; ++t) {
      const T* row = base + gone.at(t);
      for (int64_t j = 0; j < n; ++j) to[j] = join(to[j], row[j]);
    }
  }
}
template <class T>
void axes_of(peers::subject& s) {
  const auto& d = s.c.reduce_axes;
  const T* x = s.src<T>();
  const int64_t results = s.c.dst.elements();
  if (d.reduction == LOCKSTEP_MAX) {
    if constexpr (std::is_floating_point_v<T>)
      s.time(
          "omp loops of any axes",
          [&, y = s.dst<T>()] {
            axes_reduced<T, T>(
                x, y, d, [](T a, T b) { return a > b ? a : b; }, std::numeric_limits<T>::lowest());
          },
          [&] { return s.values<T>(s.dst<T>(), results); });
    return;
  }
  const bool sum = d.reduction == LOCKSTEP_SUM, root = d.reduction == LOCKSTEP_NORM2;
  if (d.result != LOCKSTEP_F64 || !(sum || root || d.reduction == LOCKSTEP_SUM_OF_SQUARES)) return;
  s.time(
      "omp loops of any axes, double",
      [&, y = s.dst<double>()] {
        if (sum)
          return axes_reduced<T, double>(
              x, y, d, [](double a, T b) { return a + static_cast<double>(b); }, 0.0);
        axes_reduced<T, double>(
            x, y, d,
            [](double a, T b) {
              const auto v = static_cast<double>(b);
              return a + v * v;
            },
            0.0);
        for (int64_t i = 0; root && i < results; ++i) y[i] = std::sqrt(y[i]);
      },
      [&] { return s.values<double>(s.dst<double>(), results); });
}
void reduced_axes(peers::subject& s) {
  const auto& d = s.c.reduce_axes;
  if (d.src_strides[d.rank - 1] != 1 || s.c.src.elements() == 0) return;
  if (d.dtype == LOCKSTEP_F32) axes_of<float>(s);
  if (d.dtype == LOCKSTEP_F64) axes_of<double>(s);
  if (d.dtype == LOCKSTEP_F16) axes_of<f16>(s);
  if (d.dtype == LOCKSTEP_BF16) axes_of<bf16>(s);
}

// ---- groups: whole calls a thread ----------------------------------------------------------
template <class T, class Result, class Call, class Count>
void grouped(peers::subject& s, const char* name, const Call& call, const Count& results) {
  const unsigned char* src = s.src();
  auto* dst = s.dst();
  s.time(
      name,
      [&] {
#pragma omp parallel for schedule(dynamic, 4)
        for (size_t k = 0; k < s.c.members.size(); ++k)
          call(s.c.members[k], reinterpret_cast<const T*>(src + s.c.src_at[k]),
               reinterpret_cast<Result*>(dst + s.c.dst_at[k]));
      },
      [&] { return s.grouped(reinterpret_cast<const Result*>(dst), results); });
}
template <class T>
void group_of(peers::subject& s) {
  const auto elements = [](const cases::test_case& m) { return m.src.elements(); };
  if (s.c.op == LOCKSTEP_SQUARE_SUM && s.c.members.front().reduce.reduction == LOCKSTEP_NORM2)
    grouped<T, double>(
        s, "omp loop, double",
        [](const cases::test_case& m, const T* x, double* y) {
          double sum = 0;
          for (int64_t i = 0; i < m.reduce.length; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
          *y = std::sqrt(sum);
        },
        [](const cases::test_case&) { return int64_t{1}; });
  if (s.c.op == LOCKSTEP_NORMALIZE && s.c.members.front().normalize.kind == LOCKSTEP_NORMALIZE_RMS)
    grouped<T, T>(
        s, "omp loop, float",
        [](const cases::test_case& m, const T* x, T* y) {
          const int64_t n = m.normalize.length;
          for (int64_t r = 0; r < m.normalize.count; ++r, x += n, y += n) {
            float sum = 0;
            for (int64_t i = 0; i < n; ++i) sum += static_cast<float>(x[i]) * static_cast<float>(x[i]);
            const float by = 1 / std::sqrt(sum / static_cast<float>(n) + static_cast<float>(m.normalize.eps));
            for (int64_t i = 0; i < n; ++i) y[i] = peers::rounded<T>(static_cast<float>(x[i]) * by);
          }
        },
        elements);
}
template <class T>
void group_of_transposes(peers::subject& s) {
  grouped<T, T>(
      s, "omp loop",
      [](const cases::test_case& m, const T* x, T* y) {
        const int64_t rows = m.transpose.rows, cols = m.transpose.cols;
        for (int64_t i = 0; i < rows; i += 16)
          for (int64_t j = 0; j < cols; j += 16)
            for (int64_t jj = j; jj < std::min(cols, j + 16); ++jj)
              for (int64_t ii = i; ii < std::min(rows, i + 16); ++ii) y[jj * rows + ii] = x[ii * cols + jj];
      },
      [](const cases::test_case& m) { return m.src.elements(); });
}
}  // namespace

void measure_group(peers::subject& s) {
  if (s.c.op == LOCKSTEP_TRANSPOSE) {
    if (s.c.src.element_bytes == 2) group_of_transposes<uint16_t>(s);
    if (s.c.src.element_bytes == 4) group_of_transposes<uint32_t>(s);
    return;
  }
  if (s.c.dtype == LOCKSTEP_F32) group_of<float>(s);
  if (s.c.dtype == LOCKSTEP_BF16) group_of<bf16>(s);
}
void measure_new(peers::subject& s) {
  if (s.c.op == LOCKSTEP_SCAN) scans(s);
  if (s.c.op == LOCKSTEP_CONVERT) converts(s);
  if (s.c.op == LOCKSTEP_MAP) functions(s);
  if (s.c.op == LOCKSTEP_REDUCE_AXES) reduced_axes(s);
}
