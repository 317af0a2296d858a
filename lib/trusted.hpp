// trusted.hpp - where modules are looked for and which files may be loaded. Free of
// the rest of the library, so that the lockstep program finds its own modules by
// the same rules.
#pragma once

#include <string>
#include <vector>

namespace lockstep::lib {

// Code is trusted when nobody may write it, or replace a folder above it, but root, this user, and whoever may write
// the library itself, or replace it (they could as well change that). Where the library's file was deleted or replaced
// after its load, nobody knows who could: root and this user alone are left.

// Why a file or folder is not to be trusted, for its own sake or for a folder above it, links resolved; "" when it is.
std::string untrusted(const std::string& path);

struct search_folder {
  std::string path;
  std::string refused;  // why it is not trusted ("anybody may write to it"); "" when it is
};
// LOCKSTEP_BACKEND_PATH (ignored in setuid programs), then <folder of
// liblockstep.so>/lockstep (of a static library: libdir/lockstep, as it was configured);
// own is the address of one of the library's functions.
// Never the current directory, never LD_LIBRARY_PATH.
std::vector<search_folder> search_folders(const void* own);

// Checks and loads a module; nullptr, and why, where it is not trusted, not whole or not loadable. It is never
// unloaded.
void* open_trusted(const std::string& path, std::string& why);

}  // namespace lockstep::lib
