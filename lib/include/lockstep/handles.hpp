// handles.hpp - part of lockstep.hpp, which says how it is used: errors, types, contexts, buffers, one call for each
// description.
#pragma once

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
    size_t length = text.copy(text_.data(), text_.size() - 1);
    while (length < text.size() && length > 0 && (text[length] & 0xC0) == 0x80) --length;  // between UTF-8 characters
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

// The caller's own host memory, page-locked while this lives (lockstep_pin): calls on it cross the link without a copy
// by the CPU. The memory and the context must outlive it.
class page_lock {
 public:
  template <class T>
  page_lock(context& where, const char* backend, std::span<T> memory) {
    open(where, backend, memory).raise();
  }
  template <class T>
  static failure try_create(context& where, const char* backend, std::span<T> memory, page_lock& out) noexcept {
    return out.open(where, backend, memory);
  }
  // Locks nothing, for try_create.
  explicit page_lock(std::nullptr_t) noexcept {}
  ~page_lock() { release(); }
  page_lock(page_lock&& other) noexcept
      : context_(other.context_),
        backend_(std::move(other.backend_)),
        pointer_(std::exchange(other.pointer_, nullptr)) {}
  page_lock(const page_lock&) = delete;
  page_lock& operator=(const page_lock&) = delete;
  page_lock& operator=(page_lock&&) = delete;

 private:
  template <class T>
  failure open(context& where, const char* backend, std::span<T> memory) noexcept {
    static_assert(!std::is_const_v<T>, "page-locked memory must be writable");
    release();
    try {
      backend_ = backend != nullptr ? backend : "";
    } catch (const std::bad_alloc&) {
      return failure(LOCKSTEP_OUT_OF_MEMORY, "no memory for the backend's name");
    }
    failure failed(lockstep_pin(where.get(), backend, memory.data(), memory.size_bytes()));
    if (failed || memory.empty()) return failed;
    context_ = where.get(), pointer_ = memory.data();
    return failed;
  }
  void release() noexcept {
    if (pointer_ != nullptr) (void)lockstep_unpin(context_, backend_.c_str(), pointer_);
    pointer_ = nullptr;
  }
  lockstep_context* context_ = nullptr;
  std::string backend_;
  void* pointer_ = nullptr;
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
inline lockstep_op op_of(const lockstep_convert_desc&) noexcept { return LOCKSTEP_CONVERT; }
inline lockstep_op op_of(const lockstep_map_desc&) noexcept { return LOCKSTEP_MAP; }
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

}  // namespace lockstep
