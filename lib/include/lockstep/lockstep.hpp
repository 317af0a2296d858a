// lockstep.hpp - header-only C++20 over lockstep.h: RAII handles, spans, types.
//
// Every function that can fail has two forms. The plain one throws
// lockstep::exception. The one that starts with try_ is noexcept, returns a
// lockstep::failure, which is true when the call failed, and stores its result in
// the last argument before the options. For a constructor this is try_create, called
// on an object made empty with nullptr. Shapes, aliasing, exactness and errors are
// those of the C call of the same name (lockstep.h). A span may name device memory,
// because it is never dereferenced here.
#pragma once

#if __cplusplus < 202002L
#error "lockstep.hpp needs C++20: compile with -std=c++20 or later; lockstep.h, the C interface, needs no C++20"
#else

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lockstep/lockstep.h"

namespace lockstep {

// ---- errors -----------------------------------------------------------------

class exception : public std::runtime_error {
 public:
  exception(lockstep_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  [[nodiscard]] lockstep_status status() const noexcept { return status_; }

 private:
  lockstep_status status_;
};

// What a try_ form returns: true in a condition when the call failed.
class [[nodiscard]] failure {
 public:
  failure() noexcept = default;
  explicit failure(lockstep_status status) noexcept : status_(status) {
    if (status == LOCKSTEP_OK) return;
    const char* text = lockstep_last_error();
    size_t i = 0;
    for (; i + 1 < text_.size() && text[i] != '\0'; ++i) text_[i] = text[i];
    text_[i] = '\0';
  }
  failure(lockstep_status status, std::string_view text) noexcept : status_(status) {
    const size_t length = text.copy(text_.data(), text_.size() - 1);
    text_[length] = '\0';
  }
  explicit operator bool() const noexcept { return status_ != LOCKSTEP_OK; }
  [[nodiscard]] lockstep_status status() const noexcept { return status_; }
  [[nodiscard]] const char* text() const noexcept { return text_.data(); }
  void raise() const {
    if (status_ != LOCKSTEP_OK) throw exception(status_, text());
  }

 private:
  lockstep_status status_ = LOCKSTEP_OK;
  std::array<char, 1024> text_{};  // no allocation, so that "out of memory" can be reported
};

// ---- types ------------------------------------------------------------------

// Storage for the two 16-bit floats, because not all compilers have such types.
struct f16 {
  std::uint16_t bits;
};
struct bf16 {
  std::uint16_t bits;
};

template <class T>
inline constexpr lockstep_dtype dtype_of = lockstep_dtype{};
#define LOCKSTEP_ROW(name, bytes, kind, sum, numpy, type) \
  template <>                                             \
  inline constexpr lockstep_dtype dtype_of<type> = LOCKSTEP_##name;
LOCKSTEP_DTYPES(LOCKSTEP_ROW)
#undef LOCKSTEP_ROW

template <class T>
concept element = std::is_trivially_copyable_v<T> &&
    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
template <class T>
concept number = dtype_of<T>
!= lockstep_dtype{};
template <class T>
concept comparable = number<T>;

// The type of a sum of T: an integer for integers, double for floats.
template <number T>
using sum_of = std::conditional_t<std::same_as<T, std::uint64_t>, std::uint64_t,
                                  std::conditional_t<std::integral<T>, std::int64_t, double> >;

// ---- handles ----------------------------------------------------------------

class context {
 public:
  // backend: "auto", "cpu", "cuda", "cuda:1".
  explicit context(const char* backend = nullptr) {
    lockstep_context_options options = lockstep_context_defaults();
    options.backend = backend;
    open(options).raise();
  }
  explicit context(const lockstep_context_options& options) { open(options).raise(); }
  // The no-throw form: leaves out empty when it fails.
  static failure try_create(const lockstep_context_options& options, context& out) noexcept {
    return out.open(options);
  }
  // An empty context, for try_create.
  explicit context(std::nullptr_t) noexcept {}

  failure try_set_backend(const char* backend) noexcept {
    return failure(lockstep_context_set_backend(get(), backend));
  }
  void set_backend(const char* backend) { try_set_backend(backend).raise(); }
  failure try_set_variant(lockstep_op op, const char* variant) noexcept {
    return failure(lockstep_context_set_variant(get(), op, variant));
  }
  void set_variant(lockstep_op op, const char* variant) { try_set_variant(op, variant).raise(); }
  failure try_synchronize() noexcept { return failure(lockstep_synchronize(get())); }
  void synchronize() { try_synchronize().raise(); }
  failure try_release_stream(const char* backend, void* stream) noexcept {
    return failure(lockstep_release_stream(get(), backend, stream));
  }
  void release_stream(const char* backend, void* stream) { try_release_stream(backend, stream).raise(); }

  [[nodiscard]] lockstep_context* get() const noexcept { return handle_.get(); }

 private:
  failure open(const lockstep_context_options& options) noexcept {
    lockstep_context* raw = nullptr;
    failure failed(lockstep_context_create(&options, &raw));
    handle_.reset(raw);
    return failed;
  }
  struct destroy {
    void operator()(lockstep_context* c) const noexcept { lockstep_context_destroy(c); }
  };
  std::unique_ptr<lockstep_context, destroy> handle_;
};

// Memory of a backend, freed with the object; the context must outlive it.
template <element T>
class buffer {
 public:
  buffer(context& where, const char* backend, lockstep_memory kind, std::size_t count) {
    open(where, backend, kind, count).raise();
  }
  // The no-throw form: frees what out had, and leaves out empty when it fails.
  static failure try_create(context& where, const char* backend, lockstep_memory kind, std::size_t count,
                            buffer& out) noexcept {
    return out.open(where, backend, kind, count);
  }
  // An empty buffer, for try_create.
  explicit buffer(std::nullptr_t) noexcept {}
  ~buffer() { release(); }
  buffer(buffer&& other) noexcept
      : context_(other.context_),
        backend_(std::move(other.backend_)),
        kind_(other.kind_),
        count_(std::exchange(other.count_, 0)),
        data_(std::exchange(other.data_, nullptr)) {}
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;
  buffer& operator=(buffer&&) = delete;

  [[nodiscard]] T* data() const noexcept { return static_cast<T*>(data_); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::span<T> span() const noexcept { return {data(), count_}; }
  failure try_assign(std::span<const T> from) noexcept {
    if (from.size() != count_) return failure(LOCKSTEP_INVALID_ARGUMENT, "assign: the sizes differ");
    return failure(lockstep_copy(context_, backend_.c_str(), from.data(), data_, count_ * sizeof(T)));
  }
  void assign(std::span<const T> from) { try_assign(from).raise(); }
  failure try_copy_to(std::span<T> to) const noexcept {
    if (to.size() != count_) return failure(LOCKSTEP_INVALID_ARGUMENT, "copy_to: the sizes differ");
    return failure(lockstep_copy(context_, backend_.c_str(), data_, to.data(), count_ * sizeof(T)));
  }
  void copy_to(std::span<T> to) const { try_copy_to(to).raise(); }

 private:
  failure open(context& where, const char* backend, lockstep_memory kind, std::size_t count) noexcept {
    release();
    if (count > SIZE_MAX / sizeof(T))
      return failure(LOCKSTEP_INVALID_ARGUMENT, "count is too large: its bytes do not fit size_t");
    try {
      backend_ = backend != nullptr ? backend : "";
    } catch (const std::bad_alloc&) {
      return failure(LOCKSTEP_OUT_OF_MEMORY, "no memory for the backend's name");
    }
    failure failed(lockstep_alloc(where.get(), backend, kind, count * sizeof(T), &data_));
    if (failed) return failed;
    context_ = where.get(), kind_ = kind, count_ = count;
    return failed;
  }
  void release() noexcept {
    if (data_ != nullptr) (void)lockstep_free(context_, backend_.c_str(), kind_, count_ * sizeof(T), data_);
    data_ = nullptr, count_ = 0;
  }
  lockstep_context* context_ = nullptr;
  std::string backend_;
  lockstep_memory kind_ = LOCKSTEP_HOST;
  std::size_t count_ = 0;
  void* data_ = nullptr;
};

// ---- one call for each description -------------------------------------------
// The whole of the C API: any description, raw pointers.

namespace detail {
inline lockstep_op op_of(const lockstep_transpose_desc&) noexcept { return LOCKSTEP_TRANSPOSE; }
inline lockstep_op op_of(const lockstep_permute_desc&) noexcept { return LOCKSTEP_PERMUTE; }
inline lockstep_op op_of(const lockstep_reduce_desc& d) noexcept {
  return d.reduction == LOCKSTEP_SUM_OF_SQUARES || d.reduction == LOCKSTEP_NORM2 ? LOCKSTEP_SQUARE_SUM
                                                                                 : LOCKSTEP_REDUCE;
}
inline lockstep_op op_of(const lockstep_stencil_desc&) noexcept { return LOCKSTEP_STENCIL; }
inline lockstep_op op_of(const lockstep_shuffle_desc&) noexcept { return LOCKSTEP_SHUFFLE; }
inline lockstep_op op_of(const lockstep_normalize_desc&) noexcept { return LOCKSTEP_NORMALIZE; }
inline lockstep_op op_of(const lockstep_scan_desc&) noexcept { return LOCKSTEP_SCAN; }
inline lockstep_op op_of(const lockstep_sums_desc&) noexcept { return LOCKSTEP_SUMS; }
inline lockstep_op op_of(const lockstep_reduce_axes_desc&) noexcept { return LOCKSTEP_REDUCE_AXES; }
}  // namespace detail

// A description of any op.
template <class Desc>
concept description = requires(const Desc& d) {
  detail::op_of(d);
};
template <description Desc>
failure try_run(context& c, const Desc& d, const void* src, void* dst, const lockstep_options* o = nullptr) noexcept {
  return failure(lockstep_execute(c.get(), detail::op_of(d), &d, src, dst, o));
}
template <description Desc>
void run(context& c, const Desc& d, const void* src, void* dst, const lockstep_options* o = nullptr) {
  try_run(c, d, src, dst, o).raise();
}

namespace detail {
inline failure size_mismatch(const char* what, std::size_t has, std::int64_t needs) noexcept {
  std::array<char, 160> text{};
  // Not snprintf, which depends on the locale; and this must not throw.
  std::size_t at = 0;
  const auto put = [&](std::string_view part) {
    for (const char ch : part)
      if (at + 1 < text.size()) text[at++] = ch;
  };
  const auto number_text = [&](std::uint64_t v) {
    std::array<char, 20> digits{};
    std::size_t n = 0;
    do digits[n++] = static_cast<char>('0' + v % 10);
    while ((v /= 10) != 0);
    while (n > 0) put(std::string_view(&digits[--n], 1));
  };
  put(what);
  put(" has ");
  number_text(has);
  put(" elements, but the shape needs ");
  number_text(static_cast<std::uint64_t>(needs));
  return failure(LOCKSTEP_INVALID_ARGUMENT, std::string_view(text.data(), at));
}
// -1 when a size is negative or the product does not fit.
inline std::int64_t count_of(std::initializer_list<std::int64_t> sizes) noexcept {
  std::int64_t total = 1;
  for (const std::int64_t n : sizes) {
    if (n < 0 || (n != 0 && total > INT64_MAX / n)) return -1;
    total *= n;
  }
  return total;
}
inline bool fits(std::size_t has, std::int64_t needs) noexcept {
  return needs >= 0 && has >= static_cast<std::uint64_t>(needs);
}
}  // namespace detail

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

// shape of src, outermost first; axis k of dst is axis perm[k] of src.
template <element T>
failure try_permute(context& c, std::span<const T> src, std::span<T> dst, std::span<const std::int64_t> shape,
                    std::span<const std::int32_t> perm, const lockstep_options* o = nullptr) noexcept {
  if (shape.size() != perm.size() || shape.empty() || shape.size() > LOCKSTEP_MAX_RANK)
    return failure(LOCKSTEP_INVALID_ARGUMENT, "shape and perm must have the same length, 1 to 8");
  std::int64_t n = 1;
  for (const std::int64_t s : shape) n = n < 0 ? n : detail::count_of({n, s});
  if (n >= 0 && !detail::fits(src.size(), n)) return detail::size_mismatch("src", src.size(), n);
  if (n >= 0 && !detail::fits(dst.size(), n)) return detail::size_mismatch("dst", dst.size(), n);
  const auto rank = static_cast<std::int32_t>(shape.size());
  return try_run(c, lockstep_permute_packed(sizeof(T), rank, shape.data(), perm.data()), src.data(), dst.data(), o);
}
template <element T>
void permute(context& c, std::span<const T> src, std::span<T> dst, std::span<const std::int64_t> shape,
             std::span<const std::int32_t> perm, const lockstep_options* o = nullptr) {
  try_permute(c, src, dst, shape, perm, o).raise();
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
  std::span<const W> weight = {}, bias = {};  // one a column
  std::span<const T> residual = {};           // packed rows, added first
  std::span<T> sum = {};                      // where src + residual goes
};
// Packed rows x cols, R: T, f16, bf16 or float.
template <floating T, floating R = T, floating W = T>
failure try_normalize(context& c, lockstep_normalization kind, std::span<const T> src,
                      std::span<std::type_identity_t<R> > dst, std::int64_t rows, std::int64_t cols, double eps,
                      const std::type_identity_t<normalize_extras<T, W> >& extras = {},
                      const lockstep_options* o = nullptr) noexcept {
  const std::int64_t n = detail::count_of({rows, cols});
  const auto missing = [](std::size_t has, std::int64_t needed) { return has != 0 && !detail::fits(has, needed); };
  if (n >= 0 && !detail::fits(src.size(), n)) return detail::size_mismatch("src", src.size(), n);
  if (n >= 0 && !detail::fits(dst.size(), n)) return detail::size_mismatch("dst", dst.size(), n);
  if (missing(extras.weight.size(), cols)) return detail::size_mismatch("weight", extras.weight.size(), cols);
  if (missing(extras.bias.size(), cols)) return detail::size_mismatch("bias", extras.bias.size(), cols);
  if (missing(extras.residual.size(), n)) return detail::size_mismatch("residual", extras.residual.size(), n);
  if (missing(extras.sum.size(), n)) return detail::size_mismatch("sum", extras.sum.size(), n);
  lockstep_normalize_desc d = lockstep_normalize_rows(kind, dtype_of<T>, rows, cols, eps);
  const auto given = [](const auto& span) { return span.empty() ? nullptr : span.data(); };
  d.result = dtype_of<R>;
  d.weight_dtype = dtype_of<W>;
  d.weight = given(extras.weight), d.bias = given(extras.bias);
  d.residual = given(extras.residual), d.sum = given(extras.sum);
  return try_run(c, d, src.data(), dst.data(), o);
}
template <floating T, floating R = T, floating W = T>
void normalize(context& c, lockstep_normalization kind, std::span<const T> src, std::span<std::type_identity_t<R> > dst,
               std::int64_t rows, std::int64_t cols, double eps,
               const std::type_identity_t<normalize_extras<T, W> >& extras = {}, const lockstep_options* o = nullptr) {
  try_normalize<T, R, W>(c, kind, src, dst, rows, cols, eps, extras, o).raise();
}

// Sums of one array or two: sum_of<T>, double for floats.
template <number T>
failure try_sums(context& c, lockstep_sums_kind kind, std::span<const T> x, std::span<const T> y, sum_of<T>& result,
                 const lockstep_options* o = nullptr) noexcept {
  if (kind == LOCKSTEP_SUMS_MEAN_VARIANCE)
    return failure(LOCKSTEP_INVALID_ARGUMENT, "MEAN_VARIANCE has two results; use mean_variance");
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

// The same for each row of packed rows x cols matrices. other_rows is rows, or 1: every row then meets the same y.
template <number R, number T>
failure try_sums_rows(context& c, lockstep_sums_kind kind, std::span<const T> x, std::span<const T> y, std::span<R> dst,
                      std::int64_t rows, std::int64_t cols, std::int64_t other_rows,
                      const lockstep_options* o = nullptr) noexcept {
  const bool two = kind >= LOCKSTEP_SUMS_DOT && kind <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES;
  if (two && other_rows != rows && other_rows != 1)
    return failure(LOCKSTEP_INVALID_ARGUMENT, "other_rows is neither rows nor 1");
  const std::int64_t n = detail::count_of({rows, cols}), others = two ? detail::count_of({other_rows, cols}) : 0;
  const std::int64_t results = kind == LOCKSTEP_SUMS_MEAN_VARIANCE ? detail::count_of({2, rows}) : rows;
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

// ---- without naming types ----------------------------------------------------
// The same calls on any contiguous range (vector, array, span), from which T is deduced.

template <class Range>
concept elements = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    element<std::ranges::range_value_t<Range> >;

namespace detail {
template <class Range>
using value_of = std::ranges::range_value_t<Range>;
template <class Range>
using source = std::span<const value_of<Range> >;  // what a call reads
template <class Range>
using target = std::span<value_of<Range> >;  // what it writes
}  // namespace detail

template <elements Src>
[[nodiscard]] auto square_sum(context& c, const Src& src, const lockstep_options* o = nullptr) {
  return square_sum(c, detail::source<Src>(src), o);
}
template <elements Src>
[[nodiscard]] double norm2(context& c, const Src& src, const lockstep_options* o = nullptr) {
  return norm2(c, detail::source<Src>(src), o);
}
template <elements Src>
[[nodiscard]] auto sum(context& c, const Src& src, const lockstep_options* o = nullptr) {
  return sum(c, detail::source<Src>(src), o);
}
template <elements Src>
[[nodiscard]] auto min(context& c, const Src& src, const lockstep_options* o = nullptr) {
  return min(c, detail::source<Src>(src), o);
}
template <elements Src>
[[nodiscard]] auto max(context& c, const Src& src, const lockstep_options* o = nullptr) {
  return max(c, detail::source<Src>(src), o);
}
template <elements Src>
[[nodiscard]] std::int64_t argmin(context& c, const Src& src, const lockstep_options* o = nullptr) {
  return argmin(c, detail::source<Src>(src), o);
}
template <elements Src>
[[nodiscard]] std::int64_t argmax(context& c, const Src& src, const lockstep_options* o = nullptr) {
  return argmax(c, detail::source<Src>(src), o);
}
template <elements Src, elements Dst>
void transpose(context& c, const Src& src, Dst&& dst, std::int64_t rows, std::int64_t cols,
               const lockstep_options* o = nullptr) {
  transpose(c, detail::source<Src>(src), detail::target<Dst>(dst), rows, cols, o);
}
template <elements Src, elements Dst>
void permute(context& c, const Src& src, Dst&& dst, std::span<const std::int64_t> shape,
             std::span<const std::int32_t> perm, const lockstep_options* o = nullptr) {
  permute(c, detail::source<Src>(src), detail::target<Dst>(dst), shape, perm, o);
}
template <elements Src, elements Dst>
void reduce_matrix(context& c, lockstep_reduction reduction, along direction, const Src& src, Dst&& dst,
                   std::int64_t rows, std::int64_t cols, const lockstep_options* o = nullptr) {
  reduce_matrix(c, reduction, direction, detail::source<Src>(src), detail::target<Dst>(dst), rows, cols, o);
}
template <elements Src, elements Dst>
void reduce_segments(context& c, lockstep_reduction reduction, const Src& src, std::span<const std::int64_t> offsets,
                     Dst&& dst, const lockstep_options* o = nullptr) {
  reduce_segments(c, reduction, detail::source<Src>(src), offsets, detail::target<Dst>(dst), o);
}
template <elements Src, elements Dst>
void reduce_axes(context& c, lockstep_reduction reduction, const Src& src, Dst&& dst,
                 std::span<const std::int64_t> shape, std::span<const std::int32_t> axes,
                 const lockstep_options* o = nullptr) {
  reduce_axes(c, reduction, detail::source<Src>(src), detail::target<Dst>(dst), shape, axes, o);
}
template <elements Src, elements Other>
[[nodiscard]] auto dot(context& c, const Src& x, const Other& y, const lockstep_options* o = nullptr) {
  return dot(c, detail::source<Src>(x), detail::source<Other>(y), o);
}
template <elements Src>
[[nodiscard]] mean_and_variance mean_variance(context& c, const Src& x, std::int64_t correction = 0,
                                              const lockstep_options* o = nullptr) {
  return mean_variance(c, detail::source<Src>(x), correction, o);
}
template <elements Src, elements Dst>
void stencil(context& c, const Src& src, Dst&& dst, std::span<const std::int64_t> shape, std::int32_t radius,
             weights taps, lockstep_boundary boundary, std::int32_t sweeps = 1, double value = 0.0,
             const lockstep_options* o = nullptr) {
  stencil(c, detail::source<Src>(src), detail::target<Dst>(dst), shape, radius, taps, boundary, sweeps, value, o);
}
template <elements Src, elements Dst>
void shuffle(context& c, lockstep_shuffle_kind kind, const Src& src, Dst&& dst, std::int32_t width,
             std::int32_t operand, const lockstep_options* o = nullptr) {
  shuffle(c, kind, detail::source<Src>(src), detail::target<Dst>(dst), width, operand, o);
}

// ---- plans --------------------------------------------------------------------

// A call prepared once; the context must outlive it.
class plan {
 public:
  template <description Desc>
  plan(context& c, const Desc& d, const lockstep_options* o = nullptr) {
    open(c, d, o).raise();
  }
  // The no-throw form: leaves out empty when it fails.
  template <description Desc>
  static failure try_create(context& c, const Desc& d, plan& out, const lockstep_options* o = nullptr) noexcept {
    return out.open(c, d, o);
  }
  // An empty plan, for try_create.
  explicit plan(std::nullptr_t) noexcept {}

  failure try_workspace_bytes(std::size_t& bytes) const noexcept {
    return failure(lockstep_plan_workspace(handle_.get(), &bytes));
  }
  [[nodiscard]] std::size_t workspace_bytes() const {
    std::size_t bytes = 0;
    try_workspace_bytes(bytes).raise();
    return bytes;
  }
  // What the plan has chosen, in the form of last_run().
  failure try_info(lockstep_run_info& info) const noexcept {
    info.size = sizeof info;
    return failure(lockstep_plan_get(handle_.get(), &info));
  }
  [[nodiscard]] lockstep_run_info info() const {
    lockstep_run_info told{};
    try_info(told).raise();
    return told;
  }
  failure try_execute(const void* src, void* dst, const lockstep_options* o = nullptr) noexcept {
    return failure(lockstep_plan_execute(handle_.get(), src, dst, o));
  }
  void execute(const void* src, void* dst, const lockstep_options* o = nullptr) { try_execute(src, dst, o).raise(); }
  [[nodiscard]] lockstep_plan* get() const noexcept { return handle_.get(); }

 private:
  template <class Desc>
  failure open(context& c, const Desc& d, const lockstep_options* o) noexcept {
    lockstep_plan* raw = nullptr;
    failure failed(lockstep_plan_create(c.get(), detail::op_of(d), &d, o, &raw));
    handle_.reset(raw);
    return failed;
  }
  struct destroy {
    void operator()(lockstep_plan* p) const noexcept { lockstep_plan_destroy(p); }
  };
  std::unique_ptr<lockstep_plan, destroy> handle_;
};

// What this thread's last call did (texts valid until its next lockstep call).
inline failure try_last_run(lockstep_run_info& info) noexcept {
  info.size = sizeof info;
  return failure(lockstep_last_run(&info));
}
[[nodiscard]] inline lockstep_run_info last_run() {
  lockstep_run_info info{};
  try_last_run(info).raise();
  return info;
}

}  // namespace lockstep

#endif
