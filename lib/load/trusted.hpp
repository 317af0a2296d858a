// trusted.hpp - where modules are searched for and which files may be loaded. Does not use
// the rest of the library, so that the lockstep program can apply the same rules to its own
// modules.
#pragma once

#include <string>
#include <vector>

namespace lockstep::lib {

// A file is trusted when only these users may write it or replace a folder above it: root, this user, and the users who
// may write or replace the library itself, since they could change that too. If the library's file was deleted or
// replaced after it was loaded, those users are unknown, and only root and this user are trusted.

// Why a file or folder is not trusted, because of itself or of a folder above it, links resolved; "" when it is.
std::string untrusted(const std::string& path);

struct search_folder {
  std::string path;
  std::string refused;  // why it is not trusted ("anybody may write to it"); "" when it is
};
// LOCKSTEP_BACKEND_PATH (ignored in setuid programs), then <folder of
// liblockstep.so>/lockstep; for a static library the configured libdir/lockstep. own is
// the address of one of the library's functions. Never the current directory, never
// LD_LIBRARY_PATH.
std::vector<search_folder> search_folders(const void* own);

// Checks and loads a module. Returns nullptr and sets why if it is not trusted, truncated or not loadable. A module is
// never unloaded.
void* open_trusted(const std::string& path, std::string& why);

}  // namespace lockstep::lib
