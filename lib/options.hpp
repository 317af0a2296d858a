// options.hpp - reading the sized structs of the C ABI, and shared checks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "status.hpp"

namespace lockstep::lib {

// All sizes that a public struct has had, oldest first. A release that adds members appends the new size.
template <class T>
inline constexpr std::array known_sizes = {sizeof(T)};

inline void require_size(size_t given, std::span<const size_t> known, const char* argument,
                         const char* type = "its type") {
  if (std::find(known.begin(), known.end(), given) == known.end())
    fail(LOCKSTEP_INVALID_ARGUMENT, "{}->size is {}; set it to sizeof of {} ({} in this library)", argument, given,
         type, known.back());
}

// Copies a caller's struct, which may be older (shorter) than ours: members that it
// lacks keep their defaults. NULL gives the defaults.
template <class T>
T sized(const T* given, T defaults, const char* argument) {
  if (given == nullptr) return defaults;
  require_size(given->size, known_sizes<T>, argument);
  std::memcpy(&defaults, given, given->size);
  defaults.size = sizeof(T);
  return defaults;
}

// Fills a caller's (perhaps shorter) info struct.
template <class T>
void give(T value, T* out, const char* argument) {
  if (out == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "{} is NULL; pass the address of a struct", argument);
  require_size(out->size, known_sizes<T>, argument);
  const size_t bytes = out->size;
  value.size = bytes;
  std::memcpy(static_cast<void*>(out), &value, bytes);
}

// Refuses unknown flags: a later library may give them a meaning that the caller
// relies on.
inline void require_flags(const char* argument, uint32_t flags, uint32_t known, const char* names) {
  if ((flags & ~known) != 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "{} is {:#x}, but {:#x} means nothing here; known are {}", argument, flags,
         flags & ~known, names);
}

// Flags that mean something besides those of every call: where a plan is made, and where it is executed.
constexpr uint32_t flags_of_plans = LOCKSTEP_TUNE | LOCKSTEP_RETUNE, flags_of_executions = LOCKSTEP_PLACED;

inline lockstep_options call_options(const lockstep_options* given, uint32_t more_flags = 0) {
  const lockstep_options options = sized(given, lockstep_options_defaults(), "options");
  require_flags("options.flags", options.flags,
                LOCKSTEP_ASYNC | LOCKSTEP_NO_FALLBACK | LOCKSTEP_DEVICE_DATA | more_flags,
                "LOCKSTEP_ASYNC (1), LOCKSTEP_NO_FALLBACK (2) and LOCKSTEP_DEVICE_DATA (4); where a plan is made, "
                "LOCKSTEP_TUNE (16) and LOCKSTEP_RETUNE (32); where it is executed, LOCKSTEP_PLACED (64); for reduce "
                "and square_sum, "
                "LOCKSTEP_BOUNDED (128)");
  return options;
}

inline void require_measure_flags(uint32_t flags) { require_flags("flags", flags, LOCKSTEP_COLD, "LOCKSTEP_COLD (8)"); }

inline void require_context(const lockstep_context* context) {
  if (context == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "context is NULL; create one with lockstep_context_create");
}

inline lockstep_op find_op(const std::string& name) {
  for (int i = 0; i < LOCKSTEP_OP_COUNT; ++i)
    if (name == lockstep_op_name(static_cast<lockstep_op>(i))) return static_cast<lockstep_op>(i);
  return LOCKSTEP_OP_COUNT;
}

}  // namespace lockstep::lib
