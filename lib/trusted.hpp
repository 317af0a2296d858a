// trusted.hpp - where modules are looked for and which files may be loaded. Free of
// the rest of the library, so that the lockstep program finds its own modules by
// the same rules.
#pragma once

#include <string>
#include <vector>

namespace lockstep::lib {

// Why a file or folder is not to be trusted ("anybody may write to it"), "" when it is.
std::string untrusted(const std::string& path);

struct search_folder {
  std::string path;
  std::string refused;  // why it is not trusted; "" when it is
};
// LOCKSTEP_BACKEND_PATH (ignored in setuid programs), then <folder of
// liblockstep.so>/lockstep; own is the address of one of the library's functions.
// Never the current directory, never LD_LIBRARY_PATH.
std::vector<search_folder> search_folders(const void* own);

// Why dlopen must not see this file; "" when it may.
std::string why_not_loadable(const std::string& path);

}  // namespace lockstep::lib
