// status.cpp - names of statuses and types; the per-thread error text.
#include "status.hpp"

#include <cstring>

namespace lockstep::lib {
namespace {
// A fixed buffer: reporting "out of memory" must not allocate.
thread_local char error_text[error_text_bytes];
}  // namespace

// The text may come from a module or a system library.
void set_error(const char* text) noexcept {
  if (text != error_text) copy_shown(error_text, sizeof error_text, text);
}
void clear_error() noexcept { error_text[0] = '\0'; }
const char* last_error() noexcept { return error_text; }
}  // namespace lockstep::lib

extern "C" {
const char* lockstep_last_error(void) { return lockstep::lib::last_error(); }
void lockstep_set_error(const char* text) { lockstep::lib::set_error(text != nullptr ? text : ""); }
const char* lockstep_version(void) { return LOCKSTEP_VERSION; }

const char* lockstep_status_name(lockstep_status status) {
  switch (status) {
    case LOCKSTEP_OK: return "LOCKSTEP_OK";
    case LOCKSTEP_INVALID_ARGUMENT: return "LOCKSTEP_INVALID_ARGUMENT";
    case LOCKSTEP_UNSUPPORTED: return "LOCKSTEP_UNSUPPORTED";
    case LOCKSTEP_NO_BACKEND: return "LOCKSTEP_NO_BACKEND";
    case LOCKSTEP_NO_VARIANT: return "LOCKSTEP_NO_VARIANT";
    case LOCKSTEP_OUT_OF_MEMORY: return "LOCKSTEP_OUT_OF_MEMORY";
    case LOCKSTEP_OVERFLOW: return "LOCKSTEP_OVERFLOW";
    case LOCKSTEP_EMPTY: return "LOCKSTEP_EMPTY";
    case LOCKSTEP_BACKEND_FAILED: return "LOCKSTEP_BACKEND_FAILED";
    case LOCKSTEP_BACKEND_LOST: return "LOCKSTEP_BACKEND_LOST";
    case LOCKSTEP_INTERNAL: return "LOCKSTEP_INTERNAL";
    case LOCKSTEP_RANK_FAILED: return "LOCKSTEP_RANK_FAILED";
    case LOCKSTEP_RANK_LOST: return "LOCKSTEP_RANK_LOST";
    case LOCKSTEP_MISMATCH: return "LOCKSTEP_MISMATCH";
    case LOCKSTEP_INTERRUPTED: return "LOCKSTEP_INTERRUPTED";
  }
  return "(not a lockstep_status)";
}

size_t lockstep_dtype_bytes(lockstep_dtype dtype) {
#define LOCKSTEP_ROW(name, bytes, ...) \
  case LOCKSTEP_##name: return bytes;
  switch (dtype) { LOCKSTEP_DTYPES(LOCKSTEP_ROW) }
#undef LOCKSTEP_ROW
  return 0;
}

char lockstep_dtype_kind(lockstep_dtype dtype) {
#define LOCKSTEP_ROW(name, bytes, kind, sum, numpy, type) \
  case LOCKSTEP_##name: return kind;
  switch (dtype) { LOCKSTEP_DTYPES(LOCKSTEP_ROW) }
#undef LOCKSTEP_ROW
  return 0;
}
}
