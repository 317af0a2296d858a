// calls.hpp - part of lockstep.hpp, which says how it is used: typed calls over packed data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>

#include "lockstep/handles.hpp"

namespace lockstep {

// ---- typed calls over packed data ---------------------------------------------

template <element T>
failure try_transpose(context& c, std::span<const T> src, std::span<T> dst, std::int64_t rows, std::int64_t cols,
                      const lockstep_options* o = nullptr) noexcept {
  const std::int64_t n = detail::count_of({rows, cols});
  if (n >= 0 && !detail::fits(src.size(), n)) return detail::size_mismatch("src", src.size(), n);
  if (n >= 0 && !detail::fits(dst.size(), n)) return detail::size_mismatch("dst", dst.size(), n);
  return try_run(c, lockstep_transpose_packed(sizeof(T), rows, cols), src.data(), dst.data(), o);
}
template <element T>
void transpose(context& c, std::span<const T> src, std::span<T> dst, std::int64_t rows, std::int64_t cols,
               const lockstep_options* o = nullptr) {
  try_transpose(c, src, dst, rows, cols, o).raise();
}

namespace detail {
inline failure wrong_axes(std::size_t src, std::size_t dst, std::span<const std::int64_t> shape,
                          std::span<const std::int32_t> perm) noexcept {
  if (shape.size() != perm.size() || shape.empty() || shape.size() > LOCKSTEP_MAX_RANK)
    return failure(LOCKSTEP_INVALID_ARGUMENT, "shape and perm must have the same length, 1 to 8");
  std::int64_t n = 1;
  for (const std::int64_t s : shape) n = n < 0 ? n : count_of({n, s});
  if (n >= 0 && !fits(src, n)) return size_mismatch("src", src, n);
  if (n >= 0 && !fits(dst, n)) return size_mismatch("dst", dst, n);
  return {};
}
}  // namespace detail

// shape of src, outermost first; axis k of dst is axis perm[k] of src.
template <element T>
failure try_permute(context& c, std::span<const T> src, std::span<T> dst, std::span<const std::int64_t> shape,
                    std::span<const std::int32_t> perm, const lockstep_options* o = nullptr) noexcept {
  if (auto wrong = detail::wrong_axes(src.size(), dst.size(), shape, perm)) return wrong;
  const auto rank = static_cast<std::int32_t>(shape.size());
  return try_run(c, lockstep_permute_packed(sizeof(T), rank, shape.data(), perm.data()), src.data(), dst.data(), o);
}
template <element T>
void permute(context& c, std::span<const T> src, std::span<T> dst, std::span<const std::int64_t> shape,
             std::span<const std::int32_t> perm, const lockstep_options* o = nullptr) {
  try_permute(c, src, dst, shape, perm, o).raise();
}

// Elements as another type, times scale; shape and perm as for permute, or in the order they lie in.
template <number R, number T>
failure try_convert(context& c, std::span<const T> src, std::span<R> dst, std::span<const std::int64_t> shape,
                    std::span<const std::int32_t> perm, double scale = 1,
                    const lockstep_options* o = nullptr) noexcept {
  if (auto wrong = detail::wrong_axes(src.size(), dst.size(), shape, perm)) return wrong;
  const auto rank = static_cast<std::int32_t>(shape.size());
  return try_run(c, lockstep_convert_packed(dtype_of<T>, dtype_of<R>, scale, rank, shape.data(), perm.data()),
                 src.data(), dst.data(), o);
}
template <number R, number T>
failure try_convert(context& c, std::span<const T> src, std::span<R> dst, double scale = 1,
                    const lockstep_options* o = nullptr) noexcept {
  const auto n = static_cast<std::int64_t>(src.size());
  if (dst.size() < src.size()) return detail::size_mismatch("dst", dst.size(), n);
  return try_run(c, lockstep_convert_packed(dtype_of<T>, dtype_of<R>, scale, 1, &n, nullptr), src.data(), dst.data(),
                 o);
}
template <number R, number T>
void convert(context& c, std::span<const T> src, std::span<R> dst, std::span<const std::int64_t> shape,
             std::span<const std::int32_t> perm, double scale = 1, const lockstep_options* o = nullptr) {
  try_convert<R, T>(c, src, dst, shape, perm, scale, o).raise();
}
template <number R, number T>
void convert(context& c, std::span<const T> src, std::span<R> dst, double scale = 1,
             const lockstep_options* o = nullptr) {
  try_convert<R, T>(c, src, dst, scale, o).raise();
}

// A function of each element, as T or another float type; shape and perm as for permute, or in the order they lie in.
template <number R, number T>
failure try_map(context& c, lockstep_function function, std::span<const T> src, std::span<R> dst,
                std::span<const std::int64_t> shape, std::span<const std::int32_t> perm,
                const lockstep_options* o = nullptr) noexcept {
  if (auto wrong = detail::wrong_axes(src.size(), dst.size(), shape, perm)) return wrong;
  const auto rank = static_cast<std::int32_t>(shape.size());
  return try_run(c, lockstep_map_packed(function, dtype_of<T>, dtype_of<R>, rank, shape.data(), perm.data()),
                 src.data(), dst.data(), o);
}
template <number R, number T>
failure try_map(context& c, lockstep_function function, std::span<const T> src, std::span<R> dst,
                const lockstep_options* o = nullptr) noexcept {
  const auto n = static_cast<std::int64_t>(src.size());
  if (dst.size() < src.size()) return detail::size_mismatch("dst", dst.size(), n);
  return try_run(c, lockstep_map_packed(function, dtype_of<T>, dtype_of<R>, 1, &n, nullptr), src.data(), dst.data(), o);
}
// The same times the elements of a second array, which lies as src does: one rounding of each product.
template <number R, number T>
failure try_map(context& c, lockstep_function function, std::span<const T> src, std::span<const T> times,
                std::span<R> dst, const lockstep_options* o = nullptr) noexcept {
  const auto n = static_cast<std::int64_t>(src.size());
  if (times.size() < src.size()) return detail::size_mismatch("times", times.size(), n);
  if (dst.size() < src.size()) return detail::size_mismatch("dst", dst.size(), n);
  lockstep_map_desc desc = lockstep_map_packed(function, dtype_of<T>, dtype_of<R>, 1, &n, nullptr);
  desc.times = times.data();
  return try_run(c, desc, src.data(), dst.data(), o);
}
template <number R, number T>
void map(context& c, lockstep_function function, std::span<const T> src, std::span<const T> times, std::span<R> dst,
         const lockstep_options* o = nullptr) {
  try_map<R, T>(c, function, src, times, dst, o).raise();
}
template <number R, number T>
void map(context& c, lockstep_function function, std::span<const T> src, std::span<R> dst,
         std::span<const std::int64_t> shape, std::span<const std::int32_t> perm, const lockstep_options* o = nullptr) {
  try_map<R, T>(c, function, src, dst, shape, perm, o).raise();
}
template <number R, number T>
void map(context& c, lockstep_function function, std::span<const T> src, std::span<R> dst,
         const lockstep_options* o = nullptr) {
  try_map<R, T>(c, function, src, dst, o).raise();
}

// One result for all of src. R is its type: sum_of<T> for SUM, T for MIN and MAX, int64_t
// for ARGMIN and ARGMAX, double for NORM2; float may replace double.
template <number R, number T>
failure try_reduce(context& c, lockstep_reduction reduction, std::span<const T> src, R& result,
                   const lockstep_options* o = nullptr) noexcept {
  lockstep_reduce_desc d = lockstep_reduce_full(reduction, dtype_of<T>, static_cast<std::int64_t>(src.size()), 1);
  d.result = dtype_of<R>;
  return try_run(c, d, src.data(), &result, o);
}
template <number R, number T>
[[nodiscard]] R reduce(context& c, lockstep_reduction reduction, std::span<const T> src,
                       const lockstep_options* o = nullptr) {
  R result{};
  lockstep_options blocking = o != nullptr ? *o : lockstep_options_defaults();
  blocking.flags &= ~static_cast<std::uint32_t>(LOCKSTEP_ASYNC);  // result must be there when this returns
  try_reduce<R, T>(c, reduction, src, result, &blocking).raise();
  return result;
}

template <number T>
[[nodiscard]] sum_of<T> square_sum(context& c, std::span<const T> src, const lockstep_options* o = nullptr) {
  return reduce<sum_of<T>, T>(c, LOCKSTEP_SUM_OF_SQUARES, src, o);
}
template <number T>
failure try_square_sum(context& c, std::span<const T> src, sum_of<T>& result,
                       const lockstep_options* o = nullptr) noexcept {
  return try_reduce<sum_of<T>, T>(c, LOCKSTEP_SUM_OF_SQUARES, src, result, o);
}
template <number T>
[[nodiscard]] double norm2(context& c, std::span<const T> src, const lockstep_options* o = nullptr) {
  return reduce<double, T>(c, LOCKSTEP_NORM2, src, o);
}
template <number T>
failure try_norm2(context& c, std::span<const T> src, double& result, const lockstep_options* o = nullptr) noexcept {
  return try_reduce<double, T>(c, LOCKSTEP_NORM2, src, result, o);
}
template <comparable T>
[[nodiscard]] sum_of<T> sum(context& c, std::span<const T> src, const lockstep_options* o = nullptr) {
  return reduce<sum_of<T>, T>(c, LOCKSTEP_SUM, src, o);
}
template <comparable T>
failure try_sum(context& c, std::span<const T> src, sum_of<T>& result, const lockstep_options* o = nullptr) noexcept {
  return try_reduce<sum_of<T>, T>(c, LOCKSTEP_SUM, src, result, o);
}
template <comparable T>
[[nodiscard]] T min(context& c, std::span<const T> src, const lockstep_options* o = nullptr) {
  return reduce<T, T>(c, LOCKSTEP_MIN, src, o);
}
template <comparable T>
failure try_min(context& c, std::span<const T> src, T& result, const lockstep_options* o = nullptr) noexcept {
  return try_reduce<T, T>(c, LOCKSTEP_MIN, src, result, o);
}
template <comparable T>
[[nodiscard]] T max(context& c, std::span<const T> src, const lockstep_options* o = nullptr) {
  return reduce<T, T>(c, LOCKSTEP_MAX, src, o);
}
template <comparable T>
failure try_max(context& c, std::span<const T> src, T& result, const lockstep_options* o = nullptr) noexcept {
  return try_reduce<T, T>(c, LOCKSTEP_MAX, src, result, o);
}
template <comparable T>
[[nodiscard]] std::int64_t argmin(context& c, std::span<const T> src, const lockstep_options* o = nullptr) {
  return reduce<std::int64_t, T>(c, LOCKSTEP_ARGMIN, src, o);
}
template <comparable T>
failure try_argmin(context& c, std::span<const T> src, std::int64_t& result,
                   const lockstep_options* o = nullptr) noexcept {
  return try_reduce<std::int64_t, T>(c, LOCKSTEP_ARGMIN, src, result, o);
}
template <comparable T>
[[nodiscard]] std::int64_t argmax(context& c, std::span<const T> src, const lockstep_options* o = nullptr) {
  return reduce<std::int64_t, T>(c, LOCKSTEP_ARGMAX, src, o);
}
template <comparable T>
failure try_argmax(context& c, std::span<const T> src, std::int64_t& result,
                   const lockstep_options* o = nullptr) noexcept {
  return try_reduce<std::int64_t, T>(c, LOCKSTEP_ARGMAX, src, result, o);
}

// One result for each row (or column) of a packed rows x cols matrix.
enum class along { rows, columns };
template <number R, number T>
failure try_reduce_matrix(context& c, lockstep_reduction reduction, along direction, std::span<const T> src,
                          std::span<R> dst, std::int64_t rows, std::int64_t cols,
                          const lockstep_options* o = nullptr) noexcept {
  const std::int64_t n = detail::count_of({rows, cols}), results = direction == along::rows ? rows : cols;
  if (n >= 0 && !detail::fits(src.size(), n)) return detail::size_mismatch("src", src.size(), n);
  if (results >= 0 && !detail::fits(dst.size(), results)) return detail::size_mismatch("dst", dst.size(), results);
  lockstep_reduce_desc d = direction == along::rows
                               ? lockstep_reduce_rows(reduction, dtype_of<T>, rows, cols, cols > 0 ? cols : 1)
                               : lockstep_reduce_columns(reduction, dtype_of<T>, rows, cols, cols > 0 ? cols : 1);
  d.result = dtype_of<R>;
  return try_run(c, d, src.data(), dst.data(), o);
}
template <number R, number T>
void reduce_matrix(context& c, lockstep_reduction reduction, along direction, std::span<const T> src, std::span<R> dst,
                   std::int64_t rows, std::int64_t cols, const lockstep_options* o = nullptr) {
  try_reduce_matrix<R, T>(c, reduction, direction, src, dst, rows, cols, o).raise();
}

// One result for each segment src[offsets[s]] .. src[offsets[s+1]].
template <number R, number T>
failure try_reduce_segments(context& c, lockstep_reduction reduction, std::span<const T> src,
                            std::span<const std::int64_t> offsets, std::span<R> dst,
                            const lockstep_options* o = nullptr) noexcept {
  if (offsets.empty())
    return failure(LOCKSTEP_INVALID_ARGUMENT, "offsets is empty; give one more than there are segments");
  const auto segments = static_cast<std::int64_t>(offsets.size() - 1);
  if (!detail::fits(dst.size(), segments)) return detail::size_mismatch("dst", dst.size(), segments);
  lockstep_reduce_desc d = lockstep_reduce_segments(reduction, dtype_of<T>, segments, offsets.data());
  d.result = dtype_of<R>;
  return try_run(c, d, src.data(), dst.data(), o);
}
template <number R, number T>
void reduce_segments(context& c, lockstep_reduction reduction, std::span<const T> src,
                     std::span<const std::int64_t> offsets, std::span<R> dst, const lockstep_options* o = nullptr) {
  try_reduce_segments<R, T>(c, reduction, src, offsets, dst, o).raise();
}

// One result for each element of the axes of a packed array that are not in axes (NumPy's axis=(0, 2)); the sequence of
// each is its elements in row-major order.
template <number R, number T>
failure try_reduce_axes(context& c, lockstep_reduction reduction, std::span<const T> src, std::span<R> dst,
                        std::span<const std::int64_t> shape, std::span<const std::int32_t> axes,
                        const lockstep_options* o = nullptr) noexcept {
  if (shape.empty() || shape.size() > LOCKSTEP_MAX_RANK || axes.empty() || axes.size() > shape.size())
    return failure(LOCKSTEP_INVALID_ARGUMENT, "shape must have 1 to 8 axes, and axes name 1 or more of them");
  std::int64_t n = 1, results = 1;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    bool goes = false;
    for (const std::int32_t axis : axes) goes = goes || static_cast<std::size_t>(axis) == k;
    n = n < 0 ? n : detail::count_of({n, shape[k]});
    if (!goes) results = results < 0 ? results : detail::count_of({results, shape[k]});
  }
  if (n >= 0 && !detail::fits(src.size(), n)) return detail::size_mismatch("src", src.size(), n);
  if (results >= 0 && !detail::fits(dst.size(), results)) return detail::size_mismatch("dst", dst.size(), results);
  lockstep_reduce_axes_desc d =
      lockstep_reduce_axes_packed(reduction, dtype_of<T>, static_cast<std::int32_t>(shape.size()), shape.data(),
                                  static_cast<std::int32_t>(axes.size()), axes.data());
  d.result = dtype_of<R>;
  return try_run(c, d, src.data(), dst.data(), o);
}
template <number R, number T>
void reduce_axes(context& c, lockstep_reduction reduction, std::span<const T> src, std::span<R> dst,
                 std::span<const std::int64_t> shape, std::span<const std::int32_t> axes,
                 const lockstep_options* o = nullptr) {
  try_reduce_axes<R, T>(c, reduction, src, dst, shape, axes, o).raise();
}

// A stencil's coefficients. The length of a range decides the form (2*radius*rank + 1:
// general; radius*rank + 1: symmetric). Use antisymmetric(range) for the antisymmetric
// form, which has as many as the symmetric one.
struct weights {
  template <class Range>
  requires std::convertible_to<const Range&, std::span<const double> > weights(const Range& range, bool odd = false)
  noexcept : coefficients(range), antisymmetric(odd) {}
  std::span<const double> coefficients;
  bool antisymmetric;
};
[[nodiscard]] inline weights antisymmetric(std::span<const double> coefficients) noexcept {
  return {coefficients, true};
}

// A packed array of 1 to 3 axes.
template <class T>
requires(std::same_as<T, float> || std::same_as<T, double>) failure
    try_stencil(context& c, std::span<const T> src, std::span<T> dst, std::span<const std::int64_t> shape,
                std::int32_t radius, weights taps, lockstep_boundary boundary, std::int32_t sweeps = 1,
                double value = 0.0, const lockstep_options* o = nullptr)
noexcept {
  if (shape.empty() || shape.size() > 3) return failure(LOCKSTEP_INVALID_ARGUMENT, "shape must have 1 to 3 axes");
  const auto rank = static_cast<std::int32_t>(shape.size());
  lockstep_stencil_desc d =
      lockstep_stencil_packed(dtype_of<T>, rank, shape.data(), radius, taps.coefficients.data(), boundary);
  const std::int64_t shrink = boundary == LOCKSTEP_BOUNDARY_VALID ? 2 * std::int64_t{radius} * sweeps : 0;
  std::int64_t n = 1, written = 1;
  for (std::int32_t k = rank - 1; k >= 0; --k) {
    d.dst_strides[k] = written > 0 ? written : 1;
    n = n < 0 ? n : detail::count_of({n, shape[static_cast<std::size_t>(k)]});
    written = written < 0 ? written : detail::count_of({written, shape[static_cast<std::size_t>(k)] - shrink});
  }
  if (n >= 0 && !detail::fits(src.size(), n)) return detail::size_mismatch("src", src.size(), n);
  if (written >= 0 && !detail::fits(dst.size(), written)) return detail::size_mismatch("dst", dst.size(), written);
  d.sweeps = sweeps;
  d.value = value;
  const std::size_t count = taps.coefficients.size();
  d.coefficient_count = count <= INT32_MAX ? static_cast<std::int32_t>(count) : -1;
  if (taps.antisymmetric)
    d.form = LOCKSTEP_ANTISYMMETRIC;
  else if (d.coefficient_count == std::int64_t{radius} * rank + 1)
    d.form = LOCKSTEP_SYMMETRIC;
  return try_run(c, d, src.data(), dst.data(), o);
}
template <class T>
requires(std::same_as<T, float> ||
         std::same_as<T, double>) void stencil(context& c, std::span<const T> src, std::span<T> dst,
                                               std::span<const std::int64_t> shape, std::int32_t radius, weights taps,
                                               lockstep_boundary boundary, std::int32_t sweeps = 1, double value = 0.0,
                                               const lockstep_options* o = nullptr) {
  try_stencil(c, src, dst, shape, radius, taps, boundary, sweeps, value, o).raise();
}

template <element T>
requires(sizeof(T) == 4 || sizeof(T) == 8) failure
    try_shuffle(context& c, lockstep_shuffle_kind kind, std::span<const T> src, std::span<T> dst, std::int32_t width,
                std::int32_t operand, const lockstep_options* o = nullptr)
noexcept {
  if (dst.size() < src.size()) return detail::size_mismatch("dst", dst.size(), static_cast<std::int64_t>(src.size()));
  return try_run(c, lockstep_shuffle_warps(kind, sizeof(T), static_cast<std::int64_t>(src.size()), width, operand),
                 src.data(), dst.data(), o);
}
template <element T>
requires(sizeof(T) == 4 || sizeof(T) == 8) void shuffle(context& c, lockstep_shuffle_kind kind, std::span<const T> src,
                                                        std::span<T> dst, std::int32_t width, std::int32_t operand,
                                                        const lockstep_options* o = nullptr) {
  try_shuffle(c, kind, src, dst, width, operand, o).raise();
}

// Running reductions of src: dst[i] is the reduction of src[0] to src[i]; exclusive: to src[i - 1].
template <number R, number T>
failure try_scan(context& c, lockstep_reduction reduction, std::span<const T> src, std::span<R> dst,
                 bool exclusive = false, const lockstep_options* o = nullptr) noexcept {
  const auto n = static_cast<std::int64_t>(src.size());
  if (!detail::fits(dst.size(), n)) return detail::size_mismatch("dst", dst.size(), n);
  lockstep_scan_desc d = lockstep_scan_full(reduction, dtype_of<T>, n);
  d.result = dtype_of<R>;
  d.exclusive = exclusive ? 1 : 0;
  return try_run(c, d, src.data(), dst.data(), o);
}
template <number R, number T>
void scan(context& c, lockstep_reduction reduction, std::span<const T> src, std::span<R> dst, bool exclusive = false,
          const lockstep_options* o = nullptr) {
  try_scan<R, T>(c, reduction, src, dst, exclusive, o).raise();
}

template <class T>
concept floating = std::same_as<T, f16> || std::same_as<T, bf16> || std::same_as<T, float> || std::same_as<T, double>;

// The optional arrays of a normalization; an empty span means none. W is T or float.
template <floating T, floating W = T>
struct normalize_extras {
  std::span<const W> weight = {}, bias = {};              // one a column
  std::span<const T> residual = {};                       // as src, added first
  std::span<T> sum = {};                                  // where src + residual goes
  std::span<const std::int64_t> labels = {};              // of PICKED, one a row
  std::span<const T> gradient = {};                       // of *_BACKWARD: of the other call's dst, packed rows
  std::span<W> weight_gradient = {}, bias_gradient = {};  // of *_BACKWARD, one a column
};
// Along the middle axis of outer x cols x inner packed elements: outer * inner rows. R: T, f16, bf16 or float.
// LOGSUMEXP and PICKED: one result per row, R also double. eps: for the kinds from SOFTMAX to PICKED the scale.
template <floating T, floating R = T, floating W = T>
failure try_normalize_axis(context& c, lockstep_normalization kind, std::span<const T> src,
                           std::span<std::type_identity_t<R> > dst, std::int64_t outer, std::int64_t cols,
                           std::int64_t inner, double eps,
                           const std::type_identity_t<normalize_extras<T, W> >& extras = {},
                           const lockstep_options* o = nullptr) noexcept {
  const std::int64_t rows = detail::count_of({outer, inner}), n = detail::count_of({outer, cols, inner});
  const auto missing = [](std::size_t has, std::int64_t needed) { return has != 0 && !detail::fits(has, needed); };
  if (n >= 0 && !detail::fits(src.size(), n)) return detail::size_mismatch("src", src.size(), n);
  const std::int64_t results = kind == LOCKSTEP_NORMALIZE_LOGSUMEXP || kind == LOCKSTEP_NORMALIZE_PICKED ? rows : n;
  if (n >= 0 && !detail::fits(dst.size(), results)) return detail::size_mismatch("dst", dst.size(), results);
  if (missing(extras.labels.size(), rows)) return detail::size_mismatch("labels", extras.labels.size(), rows);
  if (missing(extras.weight.size(), cols)) return detail::size_mismatch("weight", extras.weight.size(), cols);
  if (missing(extras.bias.size(), cols)) return detail::size_mismatch("bias", extras.bias.size(), cols);
  if (missing(extras.residual.size(), n)) return detail::size_mismatch("residual", extras.residual.size(), n);
  if (missing(extras.sum.size(), n)) return detail::size_mismatch("sum", extras.sum.size(), n);
  if (missing(extras.gradient.size(), n)) return detail::size_mismatch("gradient", extras.gradient.size(), n);
  if (missing(extras.weight_gradient.size(), cols))
    return detail::size_mismatch("weight_gradient", extras.weight_gradient.size(), cols);
  if (missing(extras.bias_gradient.size(), cols))
    return detail::size_mismatch("bias_gradient", extras.bias_gradient.size(), cols);
  lockstep_normalize_desc d = lockstep_normalize_axis(kind, dtype_of<T>, outer, cols, inner, eps);
  const auto given = [](const auto& span) { return span.empty() ? nullptr : span.data(); };
  d.result = dtype_of<R>;
  d.weight_dtype = dtype_of<W>;
  d.weight = given(extras.weight), d.bias = given(extras.bias);
  if (!extras.labels.empty()) d.labels = extras.labels.data();
  d.residual = given(extras.residual), d.sum = given(extras.sum);
  d.gradient = given(extras.gradient);
  d.weight_gradient = given(extras.weight_gradient), d.bias_gradient = given(extras.bias_gradient);
  return try_run(c, d, src.data(), dst.data(), o);
}
template <floating T, floating R = T, floating W = T>
void normalize_axis(context& c, lockstep_normalization kind, std::span<const T> src,
                    std::span<std::type_identity_t<R> > dst, std::int64_t outer, std::int64_t cols, std::int64_t inner,
                    double eps, const std::type_identity_t<normalize_extras<T, W> >& extras = {},
                    const lockstep_options* o = nullptr) {
  try_normalize_axis<T, R, W>(c, kind, src, dst, outer, cols, inner, eps, extras, o).raise();
}
// Packed rows x cols.
template <floating T, floating R = T, floating W = T>
failure try_normalize(context& c, lockstep_normalization kind, std::span<const T> src,
                      std::span<std::type_identity_t<R> > dst, std::int64_t rows, std::int64_t cols, double eps,
                      const std::type_identity_t<normalize_extras<T, W> >& extras = {},
                      const lockstep_options* o = nullptr) noexcept {
  return try_normalize_axis<T, R, W>(c, kind, src, dst, rows, cols, 1, eps, extras, o);
}
template <floating T, floating R = T, floating W = T>
void normalize(context& c, lockstep_normalization kind, std::span<const T> src, std::span<std::type_identity_t<R> > dst,
               std::int64_t rows, std::int64_t cols, double eps,
               const std::type_identity_t<normalize_extras<T, W> >& extras = {}, const lockstep_options* o = nullptr) {
  try_normalize<T, R, W>(c, kind, src, dst, rows, cols, eps, extras, o).raise();
}
// Segments src[offsets[s]] .. src[offsets[s+1]], of kinds from SOFTMAX on: results at the same places of dst; LOGSUMEXP
// and PICKED: one per segment, as for rows.
template <floating T, floating R = T>
failure try_normalize_segments(context& c, lockstep_normalization kind, std::span<const T> src,
                               std::span<const std::int64_t> offsets, std::span<std::type_identity_t<R> > dst,
                               double scale = 1, std::span<const std::int64_t> labels = {},
                               const lockstep_options* o = nullptr) noexcept {
  if (offsets.empty())
    return failure(LOCKSTEP_INVALID_ARGUMENT, "offsets is empty; give one more than there are segments");
  const auto segments = static_cast<std::int64_t>(offsets.size() - 1);
  const bool one = kind == LOCKSTEP_NORMALIZE_LOGSUMEXP || kind == LOCKSTEP_NORMALIZE_PICKED;
  const std::int64_t last = offsets.back(), results = one ? segments : last;
  if (last >= 0 && src.size() < static_cast<std::size_t>(last)) return detail::size_mismatch("src", src.size(), last);
  if (results >= 0 && (one ? !detail::fits(dst.size(), results) : dst.size() < static_cast<std::size_t>(results)))
    return detail::size_mismatch("dst", dst.size(), results);
  if (!labels.empty() && !detail::fits(labels.size(), segments))
    return detail::size_mismatch("labels", labels.size(), segments);
  lockstep_normalize_desc d = lockstep_normalize_segments(kind, dtype_of<T>, segments, offsets.data(), scale);
  d.result = dtype_of<R>;
  if (!labels.empty()) d.labels = labels.data();
  return try_run(c, d, src.data(), dst.data(), o);
}
template <floating T, floating R = T>
void normalize_segments(context& c, lockstep_normalization kind, std::span<const T> src,
                        std::span<const std::int64_t> offsets, std::span<std::type_identity_t<R> > dst,
                        double scale = 1, std::span<const std::int64_t> labels = {},
                        const lockstep_options* o = nullptr) {
  try_normalize_segments<T, R>(c, kind, src, offsets, dst, scale, labels, o).raise();
}

// Sums of one array or two: sum_of<T>, double for floats.
template <number T>
failure try_sums(context& c, lockstep_sums_kind kind, std::span<const T> x, std::span<const T> y, sum_of<T>& result,
                 const lockstep_options* o = nullptr) noexcept {
  if (kind == LOCKSTEP_SUMS_MEAN_VARIANCE)
    return failure(LOCKSTEP_INVALID_ARGUMENT, "MEAN_VARIANCE has two results; use mean_variance");
  if (kind == LOCKSTEP_SUMS_DIGEST) return failure(LOCKSTEP_INVALID_ARGUMENT, "DIGEST has two results; use digest");
  const auto n = static_cast<std::int64_t>(x.size());
  const bool two = kind >= LOCKSTEP_SUMS_DOT && kind <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES;
  if (two && y.size() != x.size()) return detail::size_mismatch("y", y.size(), n);
  return try_run(c, lockstep_sums_full(kind, dtype_of<T>, n, two ? y.data() : nullptr), x.data(), &result, o);
}
template <number T>
[[nodiscard]] sum_of<T> sums(context& c, lockstep_sums_kind kind, std::span<const T> x, std::span<const T> y = {},
                             const lockstep_options* o = nullptr) {
  sum_of<T> result{};
  lockstep_options blocking = o != nullptr ? *o : lockstep_options_defaults();
  blocking.flags &= ~static_cast<std::uint32_t>(LOCKSTEP_ASYNC);  // result must be there when this returns
  try_sums<T>(c, kind, x, y, result, &blocking).raise();
  return result;
}
template <number T>
[[nodiscard]] sum_of<T> dot(context& c, std::span<const T> x, std::span<const T> y,
                            const lockstep_options* o = nullptr) {
  return sums<T>(c, LOCKSTEP_SUMS_DOT, x, y, o);
}

// 128 bits that tell apart what has other bits (LOCKSTEP_SUMS_DIGEST).
template <number T>
failure try_digest(context& c, std::span<const T> x, std::array<std::uint64_t, 2>& to) noexcept {
  return failure(lockstep_digest(c.get(), dtype_of<T>, static_cast<std::int64_t>(x.size()), x.data(), to.data()));
}
template <number T>
[[nodiscard]] std::array<std::uint64_t, 2> digest(context& c, std::span<const T> x) {
  std::array<std::uint64_t, 2> to{};
  try_digest<T>(c, x, to).raise();
  return to;
}

// The same for each row of packed rows x cols matrices. other_rows is rows, or 1: every row then meets the same y.
template <number R, number T>
failure try_sums_rows(context& c, lockstep_sums_kind kind, std::span<const T> x, std::span<const T> y, std::span<R> dst,
                      std::int64_t rows, std::int64_t cols, std::int64_t other_rows,
                      const lockstep_options* o = nullptr) noexcept {
  const bool two = kind >= LOCKSTEP_SUMS_DOT && kind <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES;
  if (two && other_rows != rows && other_rows != 1)
    return failure(LOCKSTEP_INVALID_ARGUMENT, "other_rows is neither rows nor 1");
  const std::int64_t n = detail::count_of({rows, cols}), others = two ? detail::count_of({other_rows, cols}) : 0;
  const std::int64_t results = kind >= LOCKSTEP_SUMS_MEAN_VARIANCE ? detail::count_of({2, rows}) : rows;
  if (n >= 0 && !detail::fits(x.size(), n)) return detail::size_mismatch("x", x.size(), n);
  if (two && others >= 0 && !detail::fits(y.size(), others)) return detail::size_mismatch("y", y.size(), others);
  if (results >= 0 && !detail::fits(dst.size(), results)) return detail::size_mismatch("dst", dst.size(), results);
  const std::int64_t ld = cols > 0 ? cols : 1;
  lockstep_sums_desc d = lockstep_sums_rows(kind, dtype_of<T>, rows, cols, ld, two ? y.data() : nullptr, ld);
  if (two && other_rows == 1) d.other_sequence_stride = 0;
  d.result = dtype_of<R>;
  return try_run(c, d, x.data(), dst.data(), o);
}
template <number R, number T>
void sums_rows(context& c, lockstep_sums_kind kind, std::span<const T> x, std::span<const T> y, std::span<R> dst,
               std::int64_t rows, std::int64_t cols, std::int64_t other_rows, const lockstep_options* o = nullptr) {
  try_sums_rows<R, T>(c, kind, x, y, dst, rows, cols, other_rows, o).raise();
}

struct mean_and_variance {
  double mean, variance;
};
// The variance divides by n - correction.
template <floating T>
failure try_mean_variance(context& c, std::span<const T> x, mean_and_variance& result, std::int64_t correction = 0,
                          const lockstep_options* o = nullptr) noexcept {
  lockstep_sums_desc d =
      lockstep_sums_full(LOCKSTEP_SUMS_MEAN_VARIANCE, dtype_of<T>, static_cast<std::int64_t>(x.size()), nullptr);
  d.correction = correction;
  return try_run(c, d, x.data(), &result.mean, o);
}
template <floating T>
[[nodiscard]] mean_and_variance mean_variance(context& c, std::span<const T> x, std::int64_t correction = 0,
                                              const lockstep_options* o = nullptr) {
  mean_and_variance result{};
  lockstep_options blocking = o != nullptr ? *o : lockstep_options_defaults();
  blocking.flags &= ~static_cast<std::uint32_t>(LOCKSTEP_ASYNC);
  try_mean_variance<T>(c, x, result, correction, &blocking).raise();
  return result;
}

}  // namespace lockstep
