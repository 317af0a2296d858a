// status.hpp - this thread's last error, and how internal code raises one.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "call/float_environment.hpp"
#include "lockstep/lockstep.h"
#include "shown.hpp"
#include "text.hpp"

namespace lockstep::lib {

// Thrown inside the library only; guarded() turns it into a status at the ABI.
struct error {
  lockstep_status status;
  std::string text;
};

template <class... Args>
[[noreturn]] void fail(lockstep_status status, fmt::format_string<Args...> format, Args&&... args) {
  throw error{status, shown(vformat_text(format, fmt::make_format_args(args...)))};
}

inline constexpr size_t error_text_bytes = 1024;  // with the 0 at its end
void set_error(const char* text) noexcept;        // copies, and cuts what does not fit
void clear_error() noexcept;
const char* last_error() noexcept;

// Runs body under the default floating-point mode, and turns any exception into a status and the error text.
template <class Body>
lockstep_status guarded(Body&& body) noexcept {
  const default_float_environment environment;
  try {
    clear_error();
    body();
    return LOCKSTEP_OK;
  } catch (const error& e) {
    set_error(e.text.c_str());
    return e.status;
  } catch (const std::bad_alloc&) {
    set_error("out of host memory; free some or process the data in parts");
    return LOCKSTEP_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    set_error(e.what());
    return LOCKSTEP_INTERNAL;
  } catch (...) {
    set_error("an unknown exception reached the C ABI; please report it");
    return LOCKSTEP_INTERNAL;
  }
}

}  // namespace lockstep::lib
