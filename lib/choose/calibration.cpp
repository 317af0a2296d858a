// calibration.cpp - finds this machine's calibration file and decides whether to use it.
#include "calibration.hpp"

#include <unistd.h>

#include <algorithm>

#include "../files/kept_file.hpp"
#include "../load/registry.hpp"
#include "../status.hpp"

namespace lockstep::lib {
namespace {

constexpr size_t most_bytes = size_t{1} << 18;  // twice the size of a file with 64 thread counts

device_names devices_here() {
  device_names names;
  for (backend_entry* entry : backends()) {
    if (std::string text = device_text(*entry, 0); !text.empty()) names[entry->name()] = std::move(text);
  }
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
  now.path = kept_path("LOCKSTEP_CALIBRATION", "calibration", now.reason);
  now.reason = shown(now.reason);
  if (now.path.empty()) return now;
  if (access(now.path.c_str(), F_OK) != 0) {
    now.reason = "there is no such file; lockstep calibrate makes one";
    return now;
  }
  try {
    now.reason = parse_calibration(read_kept(now.path, most_bytes), devices_here(), now.model);
  } catch (const error& e) {
    now.reason = e.text;
  }
  now.basis = now.reason.empty()
                  ? ", calibrated"
                  : shown(format_text(", by built-in figures; {} is not used: {}", now.path, now.reason));
  return now;
}

}  // namespace lockstep::lib
