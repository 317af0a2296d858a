// trusted.cpp - see trusted.hpp. A truncated module dies by SIGBUS inside dlopen,
// a bare name can be hijacked through LD_LIBRARY_PATH, and a folder that anybody
// may write to is anybody's code: each is refused before dlopen sees the file.
#include "trusted.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "text.hpp"

namespace lockstep::lib {
namespace {
namespace fs = std::filesystem;

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
  if (f.fd < 0 || fstat(f.fd, &s) != 0) return format_text("cannot be opened: {}", std::strerror(errno));
  const auto size = static_cast<uint64_t>(s.st_size);
  Elf64_Ehdr header{};
  if (!f.read_at(&header, sizeof header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return format_text("is no ELF file ({} bytes)", size);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN) return "is no 64-bit shared object";
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return "has a malformed ELF header";
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!f.read_at(&segment, sizeof segment, header.e_phoff + i * sizeof segment))
      return format_text("is truncated ({} bytes end within the program headers)", size);
    if (segment.p_filesz > size || segment.p_offset > size - segment.p_filesz)
      return format_text("is truncated (a segment ends at byte {}, the file at {})",
                         segment.p_offset + segment.p_filesz, size);
  }
  if (header.e_shoff > size || size - header.e_shoff < uint64_t{header.e_shnum} * header.e_shentsize)
    return format_text("is truncated (its section table ends beyond byte {})", size);
  return "";
}

std::string folder_of(const void* own) {
  Dl_info info{};
  if (dladdr(own, &info) == 0 || info.dli_fname == nullptr) return "";
  std::error_code ignored;
  const fs::path self = fs::canonical(info.dli_fname, ignored);
  return ignored ? "" : self.parent_path().string();
}
}  // namespace

std::string untrusted(const std::string& path) {
  if (path.empty() || path[0] != '/') return "it is not an absolute path";
  struct stat s {};
  if (stat(path.c_str(), &s) != 0) return format_text("{}", std::strerror(errno));
  if (s.st_uid != 0 && s.st_uid != geteuid())
    return format_text("it belongs to uid {}, not to root or this user", s.st_uid);
  if ((s.st_mode & S_IWOTH) != 0 && (s.st_mode & S_ISVTX) == 0) return "anybody may write to it (chmod o-w)";
  if ((s.st_mode & S_IWOTH) != 0) return "anybody may put files into it (chmod o-w)";
  return "";
}

std::vector<search_folder> search_folders(const void* own) {
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
  if (const std::string folder = folder_of(own); !folder.empty()) add(fs::path(folder) / "lockstep");
  return folders;
}

std::string why_not_loadable(const std::string& path) {
  if (const std::string why = untrusted(path); !why.empty()) return format_text("{} is not trusted: {}", path, why);
  if (const std::string why = broken_elf(path); !why.empty()) return format_text("{} {}", path, why);
  return "";
}

}  // namespace lockstep::lib
