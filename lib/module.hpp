// module.hpp - finding a backend module on disk and loading it safely.
#pragma once

#include <string>
#include <vector>

#include "lockstep/backend.h"

namespace lockstep::lib {

// Why a file or folder is not to be trusted ("anybody may write to it"), "" when it is.
std::string untrusted(const std::string& path);

struct search_folder {
  std::string path;
  std::string refused;  // why it is not trusted; "" when it is
};
// LOCKSTEP_BACKEND_PATH (ignored in setuid programs), then <folder of
// liblockstep.so>/lockstep. Never the current directory, never LD_LIBRARY_PATH.
std::vector<search_folder> search_folders();

struct module_file {
  std::string name;  // "cuda" of lockstep-cuda.so
  std::string path;  // absolute, symbolic links resolved
};
std::vector<module_file> find_modules();

// Loads a module and asks it for its backend; throws error{NO_BACKEND, reason}.
const lockstep_backend* load_module(const std::string& path);

}  // namespace lockstep::lib
