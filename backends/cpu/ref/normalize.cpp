// normalize.cpp (ref) - the definition: rows less their mean, divided, weighed,
// rounded once; and rows of exponentials.
#include <vector>

#include "../ops.hpp"
#include "bits/functions.hpp"
#include "fixed_order.hpp"

namespace lockstep::cpu {
namespace {

// y rounded to an element of dtype.
double as_element(lockstep_dtype dtype, double y) {
  if (dtype == LOCKSTEP_F64) return y;
  if (dtype == LOCKSTEP_F32) return static_cast<float>(y);
  uint64_t half = 0;  // room for any dtype
  ref::store(dtype, &half, 0, y);
  return ref::widened(&half, dtype, 0);
}

// Where element i of a row is, of rows side by side too.
int64_t place_of(const lockstep_normalize_desc& d, int64_t stride, int64_t row, int64_t i) {
  const int64_t side_by_side = d.inner > 1 ? d.inner : 1;
  return row / side_by_side * stride + i * side_by_side + row % side_by_side;
}

// x of a row, or x + residual as an element of the same type.
struct row_elements {
  const lockstep_normalize_desc& d;
  const void* src;
  int64_t row;

  double operator()(int64_t i) const {
    const double x =
        ref::widened(src, d.dtype, d.offsets == nullptr ? place_of(d, d.src_stride, row, i) : d.offsets[row] + i);
    if (d.residual == nullptr) return x;
    return as_element(d.dtype, x + ref::widened(d.residual, d.dtype, place_of(d, d.residual_stride, row, i)));
  }
};

struct part {
  double count, sum, squares;  // squares of what is left without the mean
};
part part_of(int64_t first, int64_t last, int64_t n, const row_elements& h) {
  if (last - first == 1) {
    const int64_t begin = first * 2048, end = n < last * 2048 ? n : last * 2048;
    const double count = static_cast<double>(end - begin);
    const double sum = ref::leaf_of<ref::adding>(begin, end, [&](double acc, int64_t i) { return acc + h(i); });
    const double mean = sum / count;
    return {count, sum, ref::leaf_of<ref::adding>(begin, end, [&](double acc, int64_t i) {
              const double off = h(i) - mean;
              return std::fma(off, off, acc);
            })};
  }
  int64_t left = 1;
  while (2 * left < last - first) left *= 2;
  const part a = part_of(first, first + left, n, h), b = part_of(first + left, last, n, h);
  const double apart = b.sum / b.count - a.sum / a.count, count = a.count + b.count;
  const double weight = a.count * (b.count / count);
  return {count, a.sum + b.sum, (a.squares + b.squares) + (apart * apart) * weight};
}

struct spread {
  double mean, divisor;
};
spread layer_spread(const lockstep_normalize_desc& d, const row_elements& h) {
  const part whole = part_of(0, (d.length - 1) / 2048 + 1, d.length, h);
  if (d.dtype == LOCKSTEP_F64 && ref::all_equal(d.length, h)) return {h(0), std::sqrt(d.eps)};
  return {whole.sum / whole.count, std::sqrt(whole.squares / whole.count + d.eps)};
}

double norm(int64_t n, bool f64, const row_elements& h) {
  const double plain = ref::fixed_order_sum(n, [&](double acc, int64_t i) { return std::fma(h(i), h(i), acc); });
  bool finite = true;
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    finite = finite && std::isfinite(h(i));
    largest = std::fmax(largest, std::fabs(h(i)));
  }
  if (!f64 || !finite || largest == 0 || (plain >= 0x1p-900 && plain < INFINITY)) return std::sqrt(plain);
  const int e = largest < 0x1p-1022 ? -1022 : std::ilogb(largest);
  const double down = std::ldexp(1.0, -e);
  const double scaled =
      ref::fixed_order_sum(n, [&](double acc, int64_t i) { return std::fma(h(i) * down, h(i) * down, acc); });
  return std::sqrt(scaled) * std::ldexp(1.0, e);
}

// The extreme of a row: the largest, of a negative scale the smallest; a NaN wins.
double centre_of(int64_t n, double scale, const row_elements& h) {
  double m = h(0);
  for (int64_t i = 0; i < n; ++i) {
    if (std::isnan(h(i))) return h(i);
    if (scale > 0 ? h(i) > m : h(i) < m) m = h(i);
  }
  return m;
}

int64_t length_of(const lockstep_normalize_desc& d, int64_t r) {
  return d.offsets == nullptr ? d.length : d.offsets[r + 1] - d.offsets[r];
}

void exponentials(const lockstep_normalize_desc& d, void* dst, int64_t r, const row_elements& h) {
  const int64_t n = length_of(d, r);
  if (n == 0) {  // a segment
    if (d.kind == LOCKSTEP_NORMALIZE_LOGSUMEXP) ref::store(d.result, dst, r * d.dst_stride, -INFINITY);
    return;
  }
  const double m = d.given != nullptr ? d.given[2 * r] : centre_of(n, d.scale, h);
  const auto below = [&](int64_t i) { return (h(i) - m) * d.scale; };
  const auto e = [&](int64_t i) { return functions::apply(functions::exp, below(i)); };
  const double sum = d.given != nullptr ? d.given[2 * r + 1]
                                        : ref::fixed_order_sum(n, [&](double acc, int64_t i) { return acc + e(i); });
  const double factor = 1 / sum, log = functions::apply(functions::log, sum);
  const bool all = d.kind == LOCKSTEP_NORMALIZE_SOFTMAX || d.kind == LOCKSTEP_NORMALIZE_LOG_SOFTMAX;
  const auto store = [&](int64_t i, double y) {
    const int64_t at = !all                   ? r * d.dst_stride
                       : d.offsets != nullptr ? d.offsets[r] + i
                                              : place_of(d, d.dst_stride, r, i);
    ref::store(d.result, dst, at, y);
  };
  if (d.kind == LOCKSTEP_NORMALIZE_LOGSUMEXP) store(0, std::isinf(m) ? m * d.scale : m * d.scale + log);
  if (d.kind == LOCKSTEP_NORMALIZE_PICKED) store(0, below(d.labels[r]) - log);
  for (int64_t i = 0; i < n; ++i) {  // src may be sum or dst
    const double x = h(i), y = d.kind == LOCKSTEP_NORMALIZE_SOFTMAX ? e(i) * factor : below(i) - log;
    if (d.sum != nullptr) ref::store(d.dtype, d.sum, place_of(d, d.sum_stride, r, i), x);
    if (all) store(i, y);
  }
}

struct statistics {
  double mean, scale;
};
statistics statistics_of(const lockstep_normalize_desc& d, const row_elements& h) {
  const double count = static_cast<double>(d.length);
  if (d.kind == LOCKSTEP_NORMALIZE_RMS_BACKWARD) {
    const auto square = [&](double acc, int64_t i) { return std::fma(h(i), h(i), acc); };
    return {0, 1 / std::sqrt(ref::fixed_order_sum(d.length, square) / count + d.eps)};
  }
  const spread of_layer = layer_spread(d, h);
  return {of_layer.mean, 1 / of_layer.divisor};
}

// The gradients of RMS and LAYER. dst may be src, so each row's statistics are kept and columns come first.
void gradients(const lockstep_normalize_desc& d, const lockstep_call* call) {
  const bool layer = d.kind == LOCKSTEP_NORMALIZE_LAYER_BACKWARD;
  const double n = static_cast<double>(d.length);
  const auto g = [&](int64_t r, int64_t i) { return ref::widened(d.gradient, d.dtype, r * d.gradient_stride + i); };
  std::vector<statistics> found;
  for (int64_t r = 0; r < d.count; ++r) found.push_back(statistics_of(d, {d, call->src, r}));
  const auto t = [&](int64_t r, int64_t i) {
    const statistics& s = found[static_cast<size_t>(r)];
    return (row_elements{d, call->src, r}(i)-s.mean) * s.scale;
  };
  for (int64_t i = 0; i < d.length; ++i) {
    if (d.weight_gradient != nullptr)
      ref::store(d.weight_dtype, d.weight_gradient, i,
                 ref::fixed_order_sum(d.count, [&](double acc, int64_t r) { return std::fma(g(r, i), t(r, i), acc); }));
    if (d.bias_gradient != nullptr)
      ref::store(d.weight_dtype, d.bias_gradient, i,
                 ref::fixed_order_sum(d.count, [&](double acc, int64_t r) { return acc + g(r, i); }));
  }
  for (int64_t r = 0; r < d.count; ++r) {
    const row_elements h{d, call->src, r};
    const statistics s = found[static_cast<size_t>(r)];
    const double pivot = layer ? h(0) : 0;
    const auto u = [&](int64_t i) {
      return g(r, i) * (d.weight != nullptr ? ref::widened(d.weight, d.weight_dtype, i) : 1);
    };
    const auto product = [&](double acc, int64_t i) { return std::fma(u(i), h(i) - pivot, acc); };
    const double sum = layer ? ref::fixed_order_sum(d.length, [&](double acc, int64_t i) { return acc + u(i); }) : 0;
    const double a = sum / n;
    const double b = std::fma(pivot - s.mean, sum, ref::fixed_order_sum(d.length, product)) * s.scale / n;
    for (int64_t i = 0; i < d.length; ++i)
      ref::store(d.result, call->dst, r * d.dst_stride + i, std::fma(-t(r, i), b, u(i) - a) * s.scale);
  }
}

}  // namespace

lockstep_status require_labels(const lockstep_normalize_desc& d) {
  for (int64_t r = 0; d.kind == LOCKSTEP_NORMALIZE_PICKED && r < d.count; ++r) {
    const int64_t n = length_of(d, r);
    if (d.labels[r] >= 0 && d.labels[r] < n) continue;
    char text[160];
    if (n == 0)
      format_to(text, "labels[{}] is {}, but segment {} is empty; leave empty segments out", r, d.labels[r], r);
    else
      format_to(text, "labels[{}] is {}; give 0 to {}, a place in the row", r, d.labels[r], n - 1);
    host->set_error(text);
    return LOCKSTEP_INVALID_ARGUMENT;
  }
  return LOCKSTEP_OK;
}

lockstep_status ref_normalize(lockstep_queue*, const lockstep_call* call) {
  const lockstep_normalize_desc& d = call->normalize;
  if (const lockstep_status status = require_labels(d); status != LOCKSTEP_OK) return status;
  if (d.kind > LOCKSTEP_NORMALIZE_PICKED) return gradients(d, call), LOCKSTEP_OK;
  const int64_t n = d.length;
  const double count = static_cast<double>(n);
  const bool f64 = d.dtype == LOCKSTEP_F64;
  for (int64_t r = 0; r < d.count; ++r) {
    const row_elements h{d, call->src, r};
    if (d.kind >= LOCKSTEP_NORMALIZE_SOFTMAX) {
      exponentials(d, call->dst, r, h);
      continue;
    }
    double mean = 0, divisor = 0;
    if (d.given != nullptr) {
      mean = d.given[2 * r], divisor = d.given[2 * r + 1];
    } else if (d.kind == LOCKSTEP_NORMALIZE_L2) {
      divisor = norm(n, f64, h);
      if (divisor < d.eps) divisor = d.eps;
    } else if (d.kind == LOCKSTEP_NORMALIZE_RMS) {
      const double squares = ref::fixed_order_sum(n, [&](double acc, int64_t i) { return std::fma(h(i), h(i), acc); });
      divisor = std::sqrt(squares / count + d.eps);
    } else {
      const spread of_layer = layer_spread(d, h);
      mean = of_layer.mean, divisor = of_layer.divisor;
    }
    for (int64_t i = 0; i < n; ++i) {
      const double x = h(i);
      double y = f64 ? (x - mean) / divisor : (x - mean) * (1 / divisor);
      const double weight = d.weight != nullptr ? ref::widened(d.weight, d.weight_dtype, i) : 1;
      const double bias = d.bias != nullptr ? ref::widened(d.bias, d.weight_dtype, i) : 0;
      if (d.bias != nullptr)
        y = std::fma(y, weight, bias);
      else
        y = y * weight;
      if (d.sum != nullptr) ref::store(d.dtype, d.sum, place_of(d, d.sum_stride, r, i), x);
      ref::store(d.result, call->dst, place_of(d, d.dst_stride, r, i), y);
    }
  }
  return LOCKSTEP_OK;
}

}  // namespace lockstep::cpu
