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
  char path[256] = "", trouble[512] = "";
  std::atomic<int> code{0};  // of the system, once the file could not be opened or written
  std::atomic<bool> told{false};
  trace_file() noexcept {
    const char* name = environment("LOCKSTEP_TRACE");
    if (name == nullptr || *name == '\0') return;
    fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) code = errno;
    format_to(path, "{}", name);
  }
};
trace_file& the_file() {
  static trace_file file;
  return file;
}
}  // namespace

const char* trace_trouble() noexcept {
  trace_file& file = the_file();
  const int code = file.code;
  if (code == 0 || file.told.exchange(true)) return "";
  format_to(file.trouble, "LOCKSTEP_TRACE is {}, which cannot be written ({}); {}", file.path, std::strerror(code),
            file.fd < 0 ? "nothing is traced" : "calls are missing from it");
  make_printable(file.trouble, std::strlen(file.trouble));
  return file.trouble;
}

void trace(const prepared_call& prepared, const choice& chosen, size_t staged_bytes, lockstep_status status) noexcept {
  trace_file& file = the_file();
  if (file.fd < 0) return;
  try {
    const std::string why = why_not_others(chosen);
    const std::string line = format_text("{} backend={}:{} variant={} moved_bytes={} staged_bytes={} status={}{}{}\n",
                                         lockstep_op_name(prepared.call.op), chosen.entry->name(), chosen.device,
                                         chosen.variant->name, prepared.moved_bytes, staged_bytes,
                                         lockstep_status_name(status), why.empty() ? "" : " because ", why);
    // One write, so that lines of several threads do not mix (O_APPEND).
    if (write(file.fd, line.data(), line.size()) < 0) file.code = errno;
  } catch (...) {  // a trace never fails a call
  }
}
}  // namespace lockstep::lib
