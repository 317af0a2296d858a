// module.cpp - see module.hpp; what may be loaded at all: trusted.cpp.
#include "module.hpp"

#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "status.hpp"

namespace lockstep::lib {
namespace {
namespace fs = std::filesystem;
constexpr const char* prefix = "lockstep-";
constexpr const char* suffix = ".so";

const lockstep_host host = {LOCKSTEP_BACKEND_ABI, sizeof(lockstep_host), &set_error};

// (std::filesystem's iterator ends the process where there is no memory for it.)
std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  while (const dirent* item = folder != nullptr ? readdir(folder.get()) : nullptr) names.emplace_back(item->d_name);
  return names;
}
}  // namespace

std::vector<search_folder> search_folders() { return search_folders(reinterpret_cast<const void*>(&lockstep_version)); }

std::vector<module_file> find_modules() {
  std::vector<module_file> found;
  for (const search_folder& folder : search_folders()) {
    if (!folder.refused.empty()) continue;
    std::error_code ignored;
    std::vector<module_file> here;
    for (const std::string& file_name : names_in(folder.path)) {
      const size_t fixed = std::strlen(prefix) + std::strlen(suffix);
      if (file_name.size() <= fixed || !file_name.starts_with(prefix) || !file_name.ends_with(suffix)) continue;
      const std::string name = file_name.substr(std::strlen(prefix), file_name.size() - fixed);
      const fs::path real = fs::canonical(fs::path(folder.path) / file_name, ignored);
      if (!real.empty()) here.push_back({name, real.string()});
    }
    std::sort(here.begin(), here.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    for (auto& module : here) {  // the first folder that has a name wins
      const auto same = [&](const module_file& m) { return m.name == module.name; };
      if (module.name != "cpu" && module.name != "auto" && std::none_of(found.begin(), found.end(), same))
        found.push_back(std::move(module));
    }
  }
  return found;
}

const lockstep_backend* load_module(const std::string& path) {
  if (const std::string why = why_not_loadable(path); !why.empty()) fail(LOCKSTEP_NO_BACKEND, "{}", why);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) fail(LOCKSTEP_NO_BACKEND, "cannot be loaded: {}", dlerror());
  const auto entry = reinterpret_cast<lockstep_backend_entry_fn>(dlsym(handle, LOCKSTEP_BACKEND_ENTRY));
  if (entry == nullptr)
    fail(LOCKSTEP_NO_BACKEND, "{} does not export " LOCKSTEP_BACKEND_ENTRY "; it is no lockstep backend", path);
  clear_error();
  const lockstep_backend* backend = entry(&host);
  if (backend == nullptr)
    fail(LOCKSTEP_NO_BACKEND, "{} refused to start: {}", path, *last_error() ? last_error() : "it gave no reason");
  if (backend->abi != LOCKSTEP_BACKEND_ABI || backend->size < sizeof(lockstep_backend))
    fail(LOCKSTEP_NO_BACKEND,
         "{} speaks backend ABI {} ({} bytes), this library ABI {} ({} bytes); rebuild it against this lockstep", path,
         backend->abi, backend->size, LOCKSTEP_BACKEND_ABI, sizeof(lockstep_backend));
  return backend;
}
}  // namespace lockstep::lib
