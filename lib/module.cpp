// module.cpp - see module.hpp. A truncated module dies by SIGBUS inside dlopen,
// a bare name can be hijacked through LD_LIBRARY_PATH, and a folder that anybody
// may write to is anybody's code: each is refused before dlopen sees the file.
#include "module.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "status.hpp"

namespace lockstep::lib {
namespace {
namespace fs = std::filesystem;
constexpr const char* prefix = "lockstep-";
constexpr const char* suffix = ".so";

struct file {
  int fd = -1;
  explicit file(const std::string& path) : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~file() {
    if (fd >= 0) close(fd);
  }
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  bool read_at(void* to, size_t bytes, uint64_t offset) const {
    return pread(fd, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  }
};

// Every segment that dlopen would map must lie within the file.
std::string broken_elf(const std::string& path) {
  const file f(path);
  struct stat s {};
  if (f.fd < 0 || fstat(f.fd, &s) != 0) return fmt::format("cannot be opened: {}", std::strerror(errno));
  const auto size = static_cast<uint64_t>(s.st_size);
  Elf64_Ehdr header{};
  if (!f.read_at(&header, sizeof header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return fmt::format("is no ELF file ({} bytes)", size);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN) return "is no 64-bit shared object";
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return "has a malformed ELF header";
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!f.read_at(&segment, sizeof segment, header.e_phoff + i * sizeof segment))
      return fmt::format("is truncated ({} bytes end within the program headers)", size);
    if (segment.p_filesz > size || segment.p_offset > size - segment.p_filesz)
      return fmt::format("is truncated (a segment ends at byte {}, the file at {})",
                         segment.p_offset + segment.p_filesz, size);
  }
  if (header.e_shoff > size || size - header.e_shoff < uint64_t{header.e_shnum} * header.e_shentsize)
    return fmt::format("is truncated (its section table ends beyond byte {})", size);
  return "";
}

std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&lockstep_version), &info) == 0 || info.dli_fname == nullptr) return "";
  std::error_code ignored;
  const fs::path self = fs::canonical(info.dli_fname, ignored);
  return ignored ? "" : self.parent_path().string();
}

const lockstep_host host = {LOCKSTEP_BACKEND_ABI, sizeof(lockstep_host), &set_error};
}  // namespace

std::string untrusted(const std::string& path) {
  if (path.empty() || path[0] != '/') return "it is not an absolute path";
  struct stat s {};
  if (stat(path.c_str(), &s) != 0) return fmt::format("{}", std::strerror(errno));
  if (s.st_uid != 0 && s.st_uid != geteuid()) return fmt::format("it belongs to uid {}, not to root or this user", s.st_uid);
  if ((s.st_mode & S_IWOTH) != 0 && (s.st_mode & S_ISVTX) == 0) return "anybody may write to it (chmod o-w)";
  if ((s.st_mode & S_IWOTH) != 0) return "anybody may put files into it (chmod o-w)";
  return "";
}

std::vector<search_folder> search_folders() {
  std::vector<search_folder> folders;
  const auto add = [&](const fs::path& path) { folders.push_back({path.string(), untrusted(path.string())}); };
  if (const char* list = secure_getenv("LOCKSTEP_BACKEND_PATH")) {
    const std::string text = list;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(':', begin), text.size());
      if (end > begin) add(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  if (const std::string own = own_folder(); !own.empty()) add(fs::path(own) / "lockstep");
  return folders;
}

std::vector<module_file> find_modules() {
  std::vector<module_file> found;
  for (const search_folder& folder : search_folders()) {
    if (!folder.refused.empty()) continue;
    std::error_code ignored;
    std::vector<module_file> here;
    for (const auto& item : fs::directory_iterator(folder.path, ignored)) {
      const std::string file_name = item.path().filename().string();
      const size_t fixed = std::strlen(prefix) + std::strlen(suffix);
      if (file_name.size() <= fixed || !file_name.starts_with(prefix) || !file_name.ends_with(suffix)) continue;
      const std::string name = file_name.substr(std::strlen(prefix), file_name.size() - fixed);
      const fs::path real = fs::canonical(item.path(), ignored);
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
  if (const std::string why = untrusted(path); !why.empty())
    fail(LOCKSTEP_NO_BACKEND, "{} is not trusted: {}", path, why);
  if (const std::string why = broken_elf(path); !why.empty()) fail(LOCKSTEP_NO_BACKEND, "{} {}", path, why);
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
