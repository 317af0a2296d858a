// trace.cpp - see trace.hpp.
#include "trace.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "environment.hpp"

namespace lockstep::lib {
namespace {
struct trace_file {
  int fd = -1;
  char trouble[512] = "";
  std::atomic<bool> told{false};
  trace_file() noexcept {
    const char* path = environment("LOCKSTEP_TRACE");
    if (path == nullptr || *path == '\0') return;
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    const int code = errno;
    if (fd < 0)
      format_to(trouble, "LOCKSTEP_TRACE is {}, which cannot be written ({}); nothing is traced", path,
                std::strerror(code));
    make_printable(trouble, std::strlen(trouble));
  }
};
trace_file& the_file() {
  static trace_file file;
  return file;
}
}  // namespace

const char* trace_trouble() noexcept {
  trace_file& file = the_file();
  return *file.trouble != '\0' && (!file.told.exchange(true) || LOCKSTEP_MUTANT("unwritable_trace_told_again"))
             ? file.trouble
             : "";
}

void trace(const prepared_call& prepared, const choice& chosen, size_t staged_bytes, lockstep_status status) noexcept {
  const int fd = the_file().fd;
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
