// calibration.cpp - finding the calibration file of this machine, and whether to trust it.
#include "calibration.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "environment.hpp"
#include "module.hpp"
#include "registry.hpp"
#include "status.hpp"

namespace lockstep::lib {
namespace {

constexpr size_t most_bytes = size_t{1} << 18;  // a file of 64 thread counts is half of that

// The path to look at; reason says why there is none.
std::string path_of(std::string& reason) {
  const auto variable = [](const char* name) {
    const char* value = environment(name);
    return std::string(value != nullptr ? value : "");
  };
  if (const std::string named = variable("LOCKSTEP_CALIBRATION"); !named.empty()) {
    if (named == "off")
      reason = "LOCKSTEP_CALIBRATION is \"off\"";
    else if (named[0] != '/')
      reason = format_text("LOCKSTEP_CALIBRATION is \"{}\"; give an absolute path, or \"off\"", named);
    return reason.empty() ? named : "";
  }
  std::string folder = variable("XDG_CACHE_HOME");
  if (folder.empty() || folder[0] != '/') {
    const std::string home = variable("HOME");
    folder = home.empty() || home[0] != '/' ? "" : home + "/.cache";
  }
  if (folder.empty()) reason = "neither XDG_CACHE_HOME nor HOME names a folder";
  return folder.empty() ? "" : folder + "/lockstep/calibration";
}

// The file's text; throws the reason where it is not to be trusted or read.
std::string text_of(const std::string& path) {
  struct descriptor {
    const int fd;
    ~descriptor() {
      if (fd >= 0) close(fd);
    }
  };
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (const std::string& part : {folder, path})
    if (const std::string why = untrusted(part); !why.empty())
      fail(LOCKSTEP_INTERNAL, "{} is not trusted: {}", part, why);
  // A pipe or a device would block or never end.
  const descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat s {};
  if (file.fd < 0 || fstat(file.fd, &s) != 0) fail(LOCKSTEP_INTERNAL, "it cannot be opened: {}", std::strerror(errno));
  if (!S_ISREG(s.st_mode)) fail(LOCKSTEP_INTERNAL, "it is no regular file");
  std::string text(most_bytes + 1, '\0');
  size_t have = 0;
  for (ssize_t n = 1; n > 0 && have < text.size(); have += static_cast<size_t>(n)) {
    n = read(file.fd, text.data() + have, text.size() - have);
    if (n < 0) fail(LOCKSTEP_INTERNAL, "it cannot be read: {}", std::strerror(errno));
  }
  if (have > most_bytes) fail(LOCKSTEP_INTERNAL, "it has more than {} bytes", most_bytes);
  text.resize(have);
  return text;
}

device_names devices_here() {
  device_names names;
  for (backend_entry* entry : backends()) {
    const lockstep_backend* backend = entry->get();
    lockstep_device_info info{};
    info.size = sizeof info;
    if (backend != nullptr && backend->device_info(0, &info) == LOCKSTEP_OK)
      names[entry->name()] = format_text("{}; {}", info.name, info.detail);
  }
  clear_error();
  return names;
}

}  // namespace

calibration read_calibration() {
  calibration now;
  now.model = built_in_model();
  now.basis = ", by built-in figures";
  lockstep_device_info cpu{};
  cpu.size = sizeof cpu;
  if (find_backend("cpu")->get()->device_info(0, &cpu) == LOCKSTEP_OK) now.threads = std::max(cpu.processors, 1);
  now.path = path_of(now.reason);
  now.reason = printable(now.reason);
  if (now.path.empty()) return now;
  if (access(now.path.c_str(), F_OK) != 0) {
    now.reason = "there is no such file; lockstep calibrate makes one";
    return now;
  }
  try {
    now.reason = parse_calibration(text_of(now.path), devices_here(), now.model);
  } catch (const error& e) {
    now.reason = e.text;
  }
  now.basis = now.reason.empty()
                  ? ", calibrated"
                  : printable(format_text(", by built-in figures; {} is not used: {}", now.path, now.reason));
  return now;
}

}  // namespace lockstep::lib
