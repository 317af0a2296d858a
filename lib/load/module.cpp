// module.cpp - see module.hpp. trusted.cpp decides which files may be loaded.
#include "module.hpp"

#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "../status.hpp"
#include "registry.hpp"

namespace lockstep::lib {
namespace {
namespace fs = std::filesystem;
constexpr const char* prefix = "lockstep-";
constexpr const char* suffix = ".so";

const lockstep_host host = {LOCKSTEP_BACKEND_ABI, sizeof(lockstep_host), &set_error};

// Not std::filesystem's iterator: it ends the process when memory runs out.
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
      if (shown(name) != name || name.find_first_of(":, \"") != std::string::npos) continue;  // no backend's name
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

namespace {
// These texts are given to callers as they are, who show them on terminals.
void require_printable(const char* text, const std::string& path) {
  if (shown(text) != text)
    fail(LOCKSTEP_NO_BACKEND, "{}: its text \"{}\" has control characters or is not UTF-8", path, shown(text));
}

// Checks every pointer that a call would use without a test.
void require_whole(const lockstep_backend& b, const std::string& path) {
  const std::pair<const char*, bool> members[] = {{"name", b.name != nullptr},
                                                  {"description", b.description != nullptr},
                                                  {"devices", b.devices != nullptr},
                                                  {"device_info", b.device_info != nullptr},
                                                  {"queue_create", b.queue_create != nullptr},
                                                  {"queue_destroy", b.queue_destroy != nullptr},
                                                  {"finish", b.finish != nullptr},
                                                  {"scratch", b.scratch != nullptr},
                                                  {"allocate", b.allocate != nullptr},
                                                  {"release", b.release != nullptr},
                                                  {"copy", b.copy != nullptr},
                                                  {"locate", b.locate != nullptr},
                                                  {"reachable", b.reachable != nullptr},
                                                  {"tables", b.tables != nullptr || b.table_count == 0}};
  for (const auto& [name, there] : members)
    if (!there) fail(LOCKSTEP_NO_BACKEND, "{}: its {} is NULL; give it", path, name);
  constexpr size_t most = 1024;
  if (b.table_count > most) fail(LOCKSTEP_NO_BACKEND, "{}: table_count is {}; {} is most", path, b.table_count, most);
  for (int op = 0; op < LOCKSTEP_OP_COUNT; ++op) {
    const lockstep_table table = table_of(b, static_cast<lockstep_op>(op));
    const char* name = lockstep_op_name(static_cast<lockstep_op>(op));
    if (table.count > most) fail(LOCKSTEP_NO_BACKEND, "{}: {} has {} rows; {} is most", path, name, table.count, most);
    if (table.count > 0 && table.rows == nullptr)
      fail(LOCKSTEP_NO_BACKEND, "{}: {} has {} rows at NULL", path, name, table.count);
    for (size_t i = 0; i < table.count; ++i)
      if (table.rows[i].name == nullptr || table.rows[i].idea == nullptr || table.rows[i].launch == nullptr)
        fail(LOCKSTEP_NO_BACKEND, "{}: row {} of {} lacks its name, idea or launch", path, i, name);
      else
        for (const char* text : {table.rows[i].name, table.rows[i].idea}) require_printable(text, path);
  }
  for (const char* text : {b.name, b.description}) require_printable(text, path);
}
}  // namespace

namespace {
const lockstep_group_table* groups_of(void* handle, const std::string& path) {
  const auto entry = reinterpret_cast<lockstep_groups_entry_fn>(dlsym(handle, LOCKSTEP_GROUPS_ENTRY));
  const lockstep_group_table* groups = entry != nullptr ? entry() : nullptr;
  if (groups == nullptr) return nullptr;
  constexpr size_t least_groups = offsetof(lockstep_group_table, of_description);
  if (groups->abi != LOCKSTEP_BACKEND_ABI || groups->size < least_groups)
    fail(LOCKSTEP_NO_BACKEND, "{}: its groups speak backend ABI {} ({} bytes), this library ABI {} ({} bytes)", path,
         groups->abi, groups->size, LOCKSTEP_BACKEND_ABI, sizeof(lockstep_group_table));
  const size_t count = std::min<size_t>(groups->count, LOCKSTEP_OP_COUNT);
  for (size_t op = 0; op < count; ++op) {
    const bool rows = groups->rows != nullptr;
    const lockstep_group_row row = rows ? groups->rows[op] : lockstep_group_row{};
    const bool whole = row.takes != nullptr && row.describe != nullptr && row.launch != nullptr;
    if (!rows || (row.name != nullptr && !whole))
      fail(LOCKSTEP_NO_BACKEND, "{}: its groups of {} lack their row, or its takes, describe or launch", path,
           lockstep_op_name(static_cast<lockstep_op>(op)));
  }
  return groups;
}

const lockstep_peer_table* peers_of(void* handle, const std::string& path) {
  const auto entry = reinterpret_cast<lockstep_peers_entry_fn>(dlsym(handle, LOCKSTEP_PEERS_ENTRY));
  const lockstep_peer_table* p = entry != nullptr ? entry() : nullptr;
  if (p == nullptr) return nullptr;
  constexpr size_t least_peers = offsetof(lockstep_peer_table, messages);
  if (p->abi != LOCKSTEP_BACKEND_ABI || p->size < least_peers)
    fail(LOCKSTEP_NO_BACKEND, "{}: its peers speak backend ABI {} ({} bytes), this library ABI {} ({} bytes)", path,
         p->abi, p->size, LOCKSTEP_BACKEND_ABI, sizeof(lockstep_peer_table));
  if (p->stream_create == nullptr || p->stream_destroy == nullptr || p->event_create == nullptr ||
      p->event_destroy == nullptr || p->record == nullptr || p->wait == nullptr || p->passed == nullptr ||
      p->connect == nullptr || p->copy_rows == nullptr)
    fail(LOCKSTEP_NO_BACKEND, "{}: its peers lack a function; give all of them", path);
  return p;
}
}  // namespace

const lockstep_backend* load_module(const std::string& path, const lockstep_group_table** groups,
                                    const lockstep_peer_table** peers) {
  std::string why;
  void* handle = open_trusted(path, why);
  if (handle == nullptr) fail(LOCKSTEP_NO_BACKEND, "{}", why);
  const auto entry = reinterpret_cast<lockstep_backend_entry_fn>(dlsym(handle, LOCKSTEP_BACKEND_ENTRY));
  if (entry == nullptr)
    fail(LOCKSTEP_NO_BACKEND, "{} does not export " LOCKSTEP_BACKEND_ENTRY "; it is not a lockstep backend", path);
  clear_error();
  const lockstep_backend* backend = entry(&host);
  if (backend == nullptr)
    fail(LOCKSTEP_NO_BACKEND, "{} refused to start: {}", path, *last_error() ? last_error() : "it gave no reason");
  // Members that were added later are used only if size covers them.
  constexpr size_t least = offsetof(lockstep_backend, remark);
  if (backend->abi != LOCKSTEP_BACKEND_ABI || backend->size < least)
    fail(LOCKSTEP_NO_BACKEND,
         "{} speaks backend ABI {} ({} bytes), this library ABI {} ({} bytes); rebuild it against this lockstep", path,
         backend->abi, backend->size, LOCKSTEP_BACKEND_ABI, sizeof(lockstep_backend));
  require_whole(*backend, path);
  *groups = groups_of(handle, path);
  *peers = peers_of(handle, path);
  return backend;
}
}  // namespace lockstep::lib
