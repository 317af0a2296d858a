// trace.cpp - see trace.hpp.
#include "trace.hpp"

#include <atomic>
#include <cstring>

#include "../environment.hpp"
#include "../files/quiet_write.hpp"

namespace lockstep::lib {
namespace {
struct trace_file {
  int fd = -1;
  char path[256] = "", trouble[512] = "";
  const char* refused = nullptr;  // why the file was not opened
  std::atomic<int> code{0};       // of the system, once the file could not be opened or written
  std::atomic<bool> told{false};
  trace_file() noexcept {
    const char* name = environment("LOCKSTEP_TRACE");
    if (name == nullptr || *name == '\0') return;
    int failed = 0;
    fd = open_to_append(name, failed, refused);
    code = failed;
    copy_shown(path, sizeof path, name);
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
  const bool well = file.path[0] == '\0' || (file.fd >= 0 && code == 0);
  if (well || file.told.exchange(true)) return "";
  format_to(file.trouble, "LOCKSTEP_TRACE is {}, which cannot be written ({}); {}", file.path,
            code != 0 ? std::strerror(code) : file.refused,
            file.fd < 0 ? "nothing is traced" : "calls are missing from it");
  return file.trouble;
}

void trace(const prepared_call& prepared, const choice& chosen, size_t staged_bytes, lockstep_status status) noexcept {
  trace_file& file = the_file();
  if (file.fd < 0) return;
  try {
    const std::string why = why_not_others(chosen);
    std::string line = format_text("{} backend={}:{} variant={} moved_bytes={} staged_bytes={} status={}{}{}\n",
                                   lockstep_op_name(prepared.call.op), chosen.entry->name(), chosen.device,
                                   chosen.variant->name, prepared.moved_bytes, staged_bytes,
                                   lockstep_status_name(status), why.empty() ? "" : " because ", why);
    line = shown(line, '\n');
    // One write, so that lines of several threads do not mix (O_APPEND).
    if (const int failed = write_quietly(file.fd, line.data(), line.size()); failed != 0) file.code = failed;
  } catch (...) {  // a trace never fails a call
  }
}
}  // namespace lockstep::lib
