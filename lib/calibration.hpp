// calibration.hpp - the cost model in force: the built-in one, or what `lockstep
// calibrate` measured on this machine and wrote to a file.
#pragma once

#include <map>
#include <string>

#include "cost.hpp"

namespace lockstep::lib {

struct calibration {
  cost::model model;
  std::string path;    // the file that was looked for, "" where that is switched off
  std::string reason;  // why it is not in force, "" when it is
  std::string basis;   // what a reason says behind its estimates: ", calibrated"
  int threads = 1;     // of a context that names no count
};

// Reads the file that LOCKSTEP_CALIBRATION names, else $XDG_CACHE_HOME/lockstep/calibration,
// else $HOME/.cache/lockstep/calibration. Whatever is wrong with it is a reason, no failure.
calibration read_calibration();

// "NVIDIA H200; sm_90, driver ..." of each backend that runs here.
using device_names = std::map<std::string, std::string>;

// Puts a file's figures into model; "" or why it cannot ("line 3: ..."), model is then
// as before. here: what the file's devices must be called.
std::string parse_calibration(const std::string& text, const device_names& here, cost::model& model);

cost::model built_in_model();

}  // namespace lockstep::lib
