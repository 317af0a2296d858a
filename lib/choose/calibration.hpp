// calibration.hpp - the cost model that is used: the built-in one, or the file that
// `lockstep calibrate` wrote on this machine.
#pragma once

#include <map>
#include <string>

#include "cost.hpp"

namespace lockstep::lib {

struct calibration {
  cost::model model;
  std::string path;    // the file that was looked for, "" when switched off
  std::string reason;  // why it is not used, "" when it is
  std::string basis;   // appended to estimates in reasons: ", calibrated"
  int threads = 1;     // of a context that gives no number
};

// Reads the file that LOCKSTEP_CALIBRATION names, else $XDG_CACHE_HOME/lockstep/calibration,
// else $HOME/.cache/lockstep/calibration. A bad file is not an error: the reason says what is wrong.
calibration read_calibration();

// The device of each backend that runs here: "NVIDIA H200; sm_90, driver ...".
using device_names = std::map<std::string, std::string>;

// Puts a file's figures into model. Returns "", or why it cannot ("line 3: ..."); then model
// is unchanged. here: the devices that the file must have been made on.
std::string parse_calibration(const std::string& text, const device_names& here, cost::model& model);

cost::model built_in_model();

}  // namespace lockstep::lib
