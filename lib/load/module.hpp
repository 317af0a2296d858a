// module.hpp - finding a backend module on disk and loading it safely.
#pragma once

#include <string>
#include <vector>

#include "lockstep/backend_group.h"
#include "lockstep/backend_peer.h"
#include "trusted.hpp"

namespace lockstep::lib {

std::vector<search_folder> search_folders();

struct module_file {
  std::string name;  // "cuda" of lockstep-cuda.so
  std::string path;  // absolute, symbolic links resolved
};
std::vector<module_file> find_modules();

// Loads a module and asks it for its backend; throws error{NO_BACKEND, reason}. groups, peers: NULL where it
// has none.
const lockstep_backend* load_module(const std::string& path, const lockstep_group_table** groups,
                                    const lockstep_peer_table** peers);

}  // namespace lockstep::lib
