// group.hpp - many calls of one op at once, in C++: group.h with spans and exceptions.
#ifndef LOCKSTEP_GROUP_HPP
#define LOCKSTEP_GROUP_HPP

#include <memory>
#include <span>

#include "lockstep/group.h"
#include "lockstep/lockstep.hpp"

namespace lockstep {

// An array of descriptions of one op: std::vector, std::array, std::span.
template <class Descs>
concept descriptions = requires(const Descs& all) {
  requires description<typename decltype(std::span(all))::value_type>;
};

namespace detail {
inline failure same_counts(std::size_t descs, std::size_t srcs, std::size_t dsts) noexcept {
  if (descs == srcs && descs == dsts) return {};
  return {LOCKSTEP_INVALID_ARGUMENT, "descs, srcs and dsts differ in their counts; give one src and one dst each"};
}
}  // namespace detail

// Many calls of one op at once (lockstep_execute_group). The first description decides which op.
template <descriptions Descs>
[[nodiscard]] failure try_execute_group(context& c, const Descs& descs, std::span<const void* const> srcs,
                                        std::span<void* const> dsts, const lockstep_options* o = nullptr) noexcept {
  const std::span all(descs);
  if (failure f = detail::same_counts(all.size(), srcs.size(), dsts.size())) return f;
  const lockstep_op op = all.empty() ? LOCKSTEP_TRANSPOSE : detail::op_of(all[0]);
  return failure(lockstep_execute_group(c.get(), op, all.data(), sizeof(all[0]), static_cast<std::int64_t>(all.size()),
                                        srcs.data(), dsts.data(), o));
}
template <descriptions Descs>
void execute_group(context& c, const Descs& descs, std::span<const void* const> srcs, std::span<void* const> dsts,
                   const lockstep_options* o = nullptr) {
  try_execute_group(c, descs, srcs, dsts, o).raise();
}

// A group prepared once: it keeps the pointers. The context and the arrays must outlive it.
class group_plan {
 public:
  template <descriptions Descs>
  group_plan(context& c, const Descs& descs, std::span<const void* const> srcs, std::span<void* const> dsts,
             const lockstep_options* o = nullptr) {
    open(c, descs, srcs, dsts, o).raise();
  }
  // The no-throw form: leaves out empty when it fails.
  template <descriptions Descs>
  static failure try_create(context& c, const Descs& descs, std::span<const void* const> srcs,
                            std::span<void* const> dsts, group_plan& out,
                            const lockstep_options* o = nullptr) noexcept {
    return out.open(c, descs, srcs, dsts, o);
  }
  // An empty plan, for try_create.
  explicit group_plan(std::nullptr_t) noexcept {}

  failure try_execute(const lockstep_options* o = nullptr) noexcept {
    return failure(lockstep_plan_execute(handle_.get(), nullptr, nullptr, o));
  }
  void execute(const lockstep_options* o = nullptr) { try_execute(o).raise(); }
  // For the functions of lockstep.h: lockstep_plan_get, _workspace, _measure.
  [[nodiscard]] lockstep_plan* get() const noexcept { return handle_.get(); }

 private:
  template <class Descs>
  failure open(context& c, const Descs& descs, std::span<const void* const> srcs, std::span<void* const> dsts,
               const lockstep_options* o) noexcept {
    handle_.reset();
    const std::span all(descs);
    if (failure f = detail::same_counts(all.size(), srcs.size(), dsts.size())) return f;
    lockstep_plan* raw = nullptr;
    const lockstep_op op = all.empty() ? LOCKSTEP_TRANSPOSE : detail::op_of(all[0]);
    failure failed(lockstep_plan_group(c.get(), op, all.data(), sizeof(all[0]), static_cast<std::int64_t>(all.size()),
                                       srcs.data(), dsts.data(), o, &raw));
    handle_.reset(raw);
    return failed;
  }
  struct destroy {
    void operator()(lockstep_plan* p) const noexcept { lockstep_plan_destroy(p); }
  };
  std::unique_ptr<lockstep_plan, destroy> handle_;
};

}  // namespace lockstep

#endif
