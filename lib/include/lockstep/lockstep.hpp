// lockstep.hpp - header-only C++20 over lockstep.h: RAII handles, spans, types.
//
// Every operation has two forms. The plain one throws lockstep::exception; the
// one that starts with try_ is noexcept and returns a lockstep::failure, which
// is true when something went wrong. Shapes, aliasing, exactness and errors are
// those of the C call of the same name (lockstep.h). A span may name device
// memory: it is never dereferenced here.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
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
  std::array<char, 1024> text_{};  // no allocation: "out of memory" must be reportable
};

// ---- types ------------------------------------------------------------------

// Storage of the two 16-bit floats for compilers without a type of their own.
struct f16 {
  std::uint16_t bits;
};
struct bf16 {
  std::uint16_t bits;
};

template <class T>
inline constexpr lockstep_dtype dtype_of = lockstep_dtype{};
template <> inline constexpr lockstep_dtype dtype_of<f16> = LOCKSTEP_F16;
template <> inline constexpr lockstep_dtype dtype_of<bf16> = LOCKSTEP_BF16;
template <> inline constexpr lockstep_dtype dtype_of<float> = LOCKSTEP_F32;
template <> inline constexpr lockstep_dtype dtype_of<double> = LOCKSTEP_F64;
template <> inline constexpr lockstep_dtype dtype_of<std::int32_t> = LOCKSTEP_I32;
template <> inline constexpr lockstep_dtype dtype_of<std::int64_t> = LOCKSTEP_I64;

template <class T>
concept element = std::is_trivially_copyable_v<T> &&
                  (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
template <class T>
concept number = dtype_of<T> != lockstep_dtype{};
template <class T>
concept comparable = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::int32_t> ||
                     std::same_as<T, std::int64_t>;

// What a sum of T is: exact for integers, double for floats.
template <number T>
using sum_of = std::conditional_t<std::integral<T>, std::int64_t, double>;

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
  buffer(context& where, const char* backend, lockstep_memory kind, std::size_t count)
      : context_(where.get()), backend_(backend), kind_(kind), count_(count) {
    if (count > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    failure(lockstep_alloc(context_, backend, kind, count * sizeof(T), &data_)).raise();
  }
  ~buffer() {
    if (data_ != nullptr) (void)lockstep_free(context_, backend_.c_str(), kind_, count_ * sizeof(T), data_);
  }
  buffer(buffer&& other) noexcept
      : context_(other.context_), backend_(std::move(other.backend_)), kind_(other.kind_),
        count_(std::exchange(other.count_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;
  buffer& operator=(buffer&&) = delete;

  [[nodiscard]] T* data() const noexcept { return static_cast<T*>(data_); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::span<T> span() const noexcept { return {data(), count_}; }
  void assign(std::span<const T> from) {
    if (from.size() != count_) throw exception(LOCKSTEP_INVALID_ARGUMENT, "assign: the sizes differ");
    failure(lockstep_copy(context_, backend_.c_str(), from.data(), data_, count_ * sizeof(T))).raise();
  }
  void copy_to(std::span<T> to) const {
    if (to.size() != count_) throw exception(LOCKSTEP_INVALID_ARGUMENT, "copy_to: the sizes differ");
    failure(lockstep_copy(context_, backend_.c_str(), data_, to.data(), count_ * sizeof(T))).raise();
  }

 private:
  lockstep_context* context_;
  std::string backend_;
  lockstep_memory kind_;
  std::size_t count_;
  void* data_ = nullptr;
};

// ---- one call for each description -------------------------------------------
// The whole of the C API: any description, raw pointers.

inline failure try_run(context& c, const lockstep_transpose_desc& d, const void* src, void* dst,
                       const lockstep_options* o = nullptr) noexcept {
  return failure(lockstep_transpose(c.get(), &d, src, dst, o));
}
inline failure try_run(context& c, const lockstep_permute_desc& d, const void* src, void* dst,
                       const lockstep_options* o = nullptr) noexcept {
  return failure(lockstep_permute(c.get(), &d, src, dst, o));
}
inline failure try_run(context& c, const lockstep_reduce_desc& d, const void* src, void* dst,
                       const lockstep_options* o = nullptr) noexcept {
  const bool squares = d.reduction == LOCKSTEP_SUM_OF_SQUARES || d.reduction == LOCKSTEP_NORM2;
  return failure(squares ? lockstep_square_sum(c.get(), &d, src, dst, o) : lockstep_reduce(c.get(), &d, src, dst, o));
}
inline failure try_run(context& c, const lockstep_stencil_desc& d, const void* src, void* dst,
                       const lockstep_options* o = nullptr) noexcept {
  return failure(lockstep_stencil(c.get(), &d, src, dst, o));
}
inline failure try_run(context& c, const lockstep_shuffle_desc& d, const void* src, void* dst,
                       const lockstep_options* o = nullptr) noexcept {
  return failure(lockstep_shuffle(c.get(), &d, src, dst, o));
}
template <class Desc>
void run(context& c, const Desc& d, const void* src, void* dst, const lockstep_options* o = nullptr) {
  try_run(c, d, src, dst, o).raise();
}

namespace detail {
inline failure size_mismatch(const char* what, std::size_t has, std::int64_t needs) noexcept {
  std::array<char, 160> text{};
  // Digits by hand: snprintf obeys the locale, and this must not throw.
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

// One result of all of src. R is the result's type: sum_of<T>, T for MIN and MAX,
// int64_t for ARGMIN and ARGMAX, double for NORM2, or float in place of double.
template <class R, number T>
failure try_reduce(context& c, lockstep_reduction reduction, std::span<const T> src, R& result,
                   const lockstep_options* o = nullptr) noexcept {
  lockstep_reduce_desc d = lockstep_reduce_full(reduction, dtype_of<T>, static_cast<std::int64_t>(src.size()), 1);
  d.result = dtype_of<R>;
  return try_run(c, d, src.data(), &result, o);
}
template <class R, number T>
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
[[nodiscard]] double norm2(context& c, std::span<const T> src, const lockstep_options* o = nullptr) {
  return reduce<double, T>(c, LOCKSTEP_NORM2, src, o);
}
template <comparable T>
[[nodiscard]] sum_of<T> sum(context& c, std::span<const T> src, const lockstep_options* o = nullptr) {
  return reduce<sum_of<T>, T>(c, LOCKSTEP_SUM, src, o);
}
template <comparable T>
[[nodiscard]] T min(context& c, std::span<const T> src, const lockstep_options* o = nullptr) {
  return reduce<T, T>(c, LOCKSTEP_MIN, src, o);
}
template <comparable T>
[[nodiscard]] T max(context& c, std::span<const T> src, const lockstep_options* o = nullptr) {
  return reduce<T, T>(c, LOCKSTEP_MAX, src, o);
}
template <comparable T>
[[nodiscard]] std::int64_t argmin(context& c, std::span<const T> src, const lockstep_options* o = nullptr) {
  return reduce<std::int64_t, T>(c, LOCKSTEP_ARGMIN, src, o);
}
template <comparable T>
[[nodiscard]] std::int64_t argmax(context& c, std::span<const T> src, const lockstep_options* o = nullptr) {
  return reduce<std::int64_t, T>(c, LOCKSTEP_ARGMAX, src, o);
}

// One result for each row (or column) of a packed rows x cols matrix.
enum class along { rows, columns };
template <class R, number T>
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
template <class R, number T>
void reduce_matrix(context& c, lockstep_reduction reduction, along direction, std::span<const T> src, std::span<R> dst,
                   std::int64_t rows, std::int64_t cols, const lockstep_options* o = nullptr) {
  try_reduce_matrix<R, T>(c, reduction, direction, src, dst, rows, cols, o).raise();
}

// One result for each segment src[offsets[s]] .. src[offsets[s+1]].
template <class R, number T>
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
template <class R, number T>
void reduce_segments(context& c, lockstep_reduction reduction, std::span<const T> src,
                     std::span<const std::int64_t> offsets, std::span<R> dst, const lockstep_options* o = nullptr) {
  try_reduce_segments<R, T>(c, reduction, src, offsets, dst, o).raise();
}

// A packed array of 1 to 3 axes; the form follows from the number of coefficients
// (2*radius*rank + 1: general; radius*rank + 1: symmetric).
template <class T>
  requires(std::same_as<T, float> || std::same_as<T, double>)
failure try_stencil(context& c, std::span<const T> src, std::span<T> dst, std::span<const std::int64_t> shape,
                    std::int32_t radius, std::span<const double> coefficients, lockstep_boundary boundary,
                    std::int32_t sweeps = 1, double value = 0.0, const lockstep_options* o = nullptr) noexcept {
  if (shape.empty() || shape.size() > 3) return failure(LOCKSTEP_INVALID_ARGUMENT, "shape must have 1 to 3 axes");
  const auto rank = static_cast<std::int32_t>(shape.size());
  lockstep_stencil_desc d =
      lockstep_stencil_packed(dtype_of<T>, rank, shape.data(), radius, coefficients.data(), boundary);
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
  d.coefficient_count = static_cast<std::int32_t>(coefficients.size());
  if (static_cast<std::int64_t>(coefficients.size()) == std::int64_t{radius} * rank + 1) d.form = LOCKSTEP_SYMMETRIC;
  return try_run(c, d, src.data(), dst.data(), o);
}
template <class T>
  requires(std::same_as<T, float> || std::same_as<T, double>)
void stencil(context& c, std::span<const T> src, std::span<T> dst, std::span<const std::int64_t> shape,
             std::int32_t radius, std::span<const double> coefficients, lockstep_boundary boundary,
             std::int32_t sweeps = 1, double value = 0.0, const lockstep_options* o = nullptr) {
  try_stencil(c, src, dst, shape, radius, coefficients, boundary, sweeps, value, o).raise();
}

template <element T>
  requires(sizeof(T) == 4 || sizeof(T) == 8)
failure try_shuffle(context& c, lockstep_shuffle_kind kind, std::span<const T> src, std::span<T> dst,
                    std::int32_t width, std::int32_t operand, const lockstep_options* o = nullptr) noexcept {
  if (dst.size() < src.size()) return detail::size_mismatch("dst", dst.size(), static_cast<std::int64_t>(src.size()));
  return try_run(c, lockstep_shuffle_warps(kind, sizeof(T), static_cast<std::int64_t>(src.size()), width, operand),
                 src.data(), dst.data(), o);
}
template <element T>
  requires(sizeof(T) == 4 || sizeof(T) == 8)
void shuffle(context& c, lockstep_shuffle_kind kind, std::span<const T> src, std::span<T> dst, std::int32_t width,
             std::int32_t operand, const lockstep_options* o = nullptr) {
  try_shuffle(c, kind, src, dst, width, operand, o).raise();
}

// ---- plans --------------------------------------------------------------------

// A call prepared once; the context must outlive it.
class plan {
 public:
  plan(context& c, const lockstep_transpose_desc& d, const lockstep_options* o = nullptr) {
    take([&](lockstep_plan** p) { return lockstep_plan_transpose(c.get(), &d, o, p); });
  }
  plan(context& c, const lockstep_permute_desc& d, const lockstep_options* o = nullptr) {
    take([&](lockstep_plan** p) { return lockstep_plan_permute(c.get(), &d, o, p); });
  }
  plan(context& c, const lockstep_reduce_desc& d, const lockstep_options* o = nullptr) {
    const bool squares = d.reduction == LOCKSTEP_SUM_OF_SQUARES || d.reduction == LOCKSTEP_NORM2;
    take([&](lockstep_plan** p) {
      return squares ? lockstep_plan_square_sum(c.get(), &d, o, p) : lockstep_plan_reduce(c.get(), &d, o, p);
    });
  }
  plan(context& c, const lockstep_stencil_desc& d, const lockstep_options* o = nullptr) {
    take([&](lockstep_plan** p) { return lockstep_plan_stencil(c.get(), &d, o, p); });
  }
  plan(context& c, const lockstep_shuffle_desc& d, const lockstep_options* o = nullptr) {
    take([&](lockstep_plan** p) { return lockstep_plan_shuffle(c.get(), &d, o, p); });
  }

  [[nodiscard]] std::size_t workspace_bytes() const {
    std::size_t bytes = 0;
    failure(lockstep_plan_workspace(handle_.get(), &bytes)).raise();
    return bytes;
  }
  failure try_execute(const void* src, void* dst, const lockstep_options* o = nullptr) noexcept {
    return failure(lockstep_plan_execute(handle_.get(), src, dst, o));
  }
  void execute(const void* src, void* dst, const lockstep_options* o = nullptr) { try_execute(src, dst, o).raise(); }
  [[nodiscard]] lockstep_plan* get() const noexcept { return handle_.get(); }

 private:
  template <class Create>
  void take(const Create& create) {
    lockstep_plan* raw = nullptr;
    failure(create(&raw)).raise();
    handle_.reset(raw);
  }
  struct destroy {
    void operator()(lockstep_plan* p) const noexcept { lockstep_plan_destroy(p); }
  };
  std::unique_ptr<lockstep_plan, destroy> handle_;
};

// What this thread's last call did (texts valid until its next lockstep call).
[[nodiscard]] inline lockstep_run_info last_run() {
  lockstep_run_info info{};
  info.size = sizeof info;
  failure(lockstep_last_run(&info)).raise();
  return info;
}

}  // namespace lockstep
