// trace.cpp - see trace.hpp.
#include "trace.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace lockstep::lib {
namespace {
int trace_file() {
  static const int fd = [] {
    const char* path = secure_getenv("LOCKSTEP_TRACE");
    return path != nullptr && *path != '\0' ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
  }();
  return fd;
}
}  // namespace

void trace(const prepared_call& prepared, const choice& chosen, size_t staged_bytes, lockstep_status status) noexcept {
  const int fd = trace_file();
  if (fd < 0) return;
  try {
    const std::string why = why_not_others(chosen);
    const std::string line = format_text("{} backend={}:{} variant={} moved_bytes={} staged_bytes={} status={}{}{}\n",
                                         lockstep_op_name(prepared.call.op), chosen.entry->name(), chosen.device,
                                         chosen.variant->name, prepared.moved_bytes, staged_bytes,
                                         lockstep_status_name(status), why.empty() ? "" : " because ", why);
    // One write, so that lines of several threads do not mix (O_APPEND).
    if (write(fd, line.data(), line.size()) < 0) return;
  } catch (...) {  // a trace never fails a call
  }
}
}  // namespace lockstep::lib
