// trusted.cpp - see trusted.hpp. Checked before dlopen sees the file: a truncated module
// would raise SIGBUS inside dlopen, a bare name could be redirected by LD_LIBRARY_PATH,
// and in a folder that anyone may write to, anyone can place a module.
#include "trusted.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "../environment.hpp"
#include "text.hpp"

namespace lockstep::lib {
namespace {
namespace fs = std::filesystem;

struct file {
  int fd = -1;
  // Non-blocking: opening a pipe would wait for its writer.
  explicit file(const std::string& path) : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~file() {
    if (fd >= 0) close(fd);
  }
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  bool read_at(void* to, size_t bytes, uint64_t offset) const {
    return pread(fd, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  }
};

// What dlopen follows without a look: the tables that the dynamic section names must lie within segments of the file.
std::string broken_tables(const file& f, const std::vector<Elf64_Phdr>& segments) {
  const Elf64_Phdr* dynamic = nullptr;
  for (const Elf64_Phdr& s : segments)
    if (s.p_type == PT_DYNAMIC) dynamic = &s;
  constexpr uint64_t most_entries = 4096;
  if (dynamic == nullptr || dynamic->p_filesz / sizeof(Elf64_Dyn) > most_entries) return "has no dynamic section";
  // The bytes from an address to the end of the part of its segment that is in the file; 0: there is none.
  const auto room = [&](uint64_t address) -> uint64_t {
    for (const Elf64_Phdr& s : segments)
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
        return s.p_filesz - (address - s.p_vaddr);
    return 0;
  };
  std::vector<Elf64_Dyn> entries(dynamic->p_filesz / sizeof(Elf64_Dyn));
  if (!f.read_at(entries.data(), entries.size() * sizeof(Elf64_Dyn), dynamic->p_offset))
    return "has a malformed dynamic section";
  uint64_t value[DT_NUM] = {};
  bool ends = false;
  for (const Elf64_Dyn& e : entries) {
    ends = e.d_tag == DT_NULL;
    if (ends) break;
    if (e.d_tag > 0 && e.d_tag < DT_NUM) value[e.d_tag] = e.d_un.d_val;
    if (e.d_tag == DT_GNU_HASH && room(e.d_un.d_ptr) < 16) return "has a malformed hash table of symbols";
  }
  if (!ends || room(dynamic->p_vaddr) < dynamic->p_filesz) return "has a malformed dynamic section";
  const struct {
    int at, size, entry;
    uint64_t entry_bytes;
    const char* what;
  } tables[] = {{DT_STRTAB, DT_STRSZ, 0, 0, "string table"},
                {DT_RELA, DT_RELASZ, DT_RELAENT, sizeof(Elf64_Rela), "relocation table"},
                {DT_JMPREL, DT_PLTRELSZ, 0, 0, "relocation table of the PLT"},
                {DT_INIT_ARRAY, DT_INIT_ARRAYSZ, 0, 0, "array of initializers"},
                {DT_FINI_ARRAY, DT_FINI_ARRAYSZ, 0, 0, "array of finalizers"}};
  for (const auto& t : tables) {
    if (value[t.size] != 0 && room(value[t.at]) < value[t.size]) return format_text("has a malformed {}", t.what);
    if (t.entry != 0 && value[t.size] != 0 && value[t.entry] != t.entry_bytes)
      return format_text("has a malformed {}", t.what);
  }
  if (value[DT_SYMENT] != sizeof(Elf64_Sym) || room(value[DT_SYMTAB]) < sizeof(Elf64_Sym) || value[DT_STRSZ] == 0)
    return "has a malformed symbol table";
  for (const int code : {DT_INIT, DT_FINI})
    if (value[code] != 0 && room(value[code]) == 0) return "has a malformed dynamic section";
  for (const Elf64_Dyn& e : entries) {
    if (e.d_tag == DT_NULL) break;
    if ((e.d_tag == DT_NEEDED || e.d_tag == DT_SONAME || e.d_tag == DT_RUNPATH) && e.d_un.d_val >= value[DT_STRSZ])
      return "has a malformed string table";
  }
  return "";
}

// Every segment that dlopen would map must lie within the file.
std::string broken_elf(const file& f, uint64_t size) {
  Elf64_Ehdr header{};
  if (!f.read_at(&header, sizeof header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return format_text("is not an ELF file ({} bytes)", size);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN) return "is not a 64-bit shared object";
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return "has a malformed ELF header";
  std::vector<Elf64_Phdr> segments;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr& segment = segments.emplace_back();
    if (!f.read_at(&segment, sizeof segment, header.e_phoff + i * sizeof segment))
      return format_text("is truncated ({} bytes end within the program headers)", size);
    if (segment.p_filesz > size || segment.p_offset > size - segment.p_filesz)
      return format_text("is truncated (a segment ends at byte {}, the file at {})",
                         segment.p_offset + segment.p_filesz, size);
  }
  if (header.e_shoff > size || size - header.e_shoff < uint64_t{header.e_shnum} * header.e_shentsize)
    return format_text("is truncated (its section table ends beyond byte {})", size);
  return broken_tables(f, segments);
}

struct loaded_file {
  std::string path;
  bool gone = false;  // deleted or replaced since, so the path now names another file
};
// The file that holds this code, from the kernel's list of mappings. dladdr's path may be relative to a folder that the
// process has left, and so name another file.
loaded_file own_file(const void* own) {
  Dl_info info{};
  const bool known = dladdr(own, &info) != 0 && info.dli_fname != nullptr;
  std::ifstream maps("/proc/self/maps");
  const auto address = reinterpret_cast<uintptr_t>(own);
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx", &begin, &end) != 2 || address < begin || address >= end) continue;
    const size_t at = line.find('/');
    if (at == std::string::npos) return {};
    constexpr std::string_view mark = " (deleted)";
    if (!line.ends_with(mark)) return {line.substr(at)};
    return {line.substr(at, line.size() - at - mark.size()), true};
  }
  return known && info.dli_fname[0] == '/' ? loaded_file{info.dli_fname} : loaded_file{};  // no /proc here
}

// The users who may write the library, or replace it by writing to a folder above it.
struct writers {
  std::vector<uid_t> owners;
  std::vector<gid_t> groups;
};
const writers& writers_of_library() {
  static const writers known = [] {
    writers all;
    const loaded_file library = own_file(reinterpret_cast<const void*>(&writers_of_library));
    if (library.path.empty() || library.gone) return all;  // its folders may have other owners by now
    for (fs::path at = library.path;; at = at.parent_path()) {
      struct stat s {};
      if (stat(at.c_str(), &s) != 0) return writers{};
      all.owners.push_back(s.st_uid);
      const bool sticky = at != library.path && (s.st_mode & S_ISVTX) != 0;
      if ((s.st_mode & S_IWGRP) != 0 && !sticky) all.groups.push_back(s.st_gid);
      if (at == at.root_path()) return all;
    }
  }();
  return known;
}
template <typename T>
bool among(const std::vector<T>& all, T one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// Why a file or folder with this owner and mode is not trusted; "" when it is. In a sticky folder only the owner of an
// entry can replace it, so a sticky folder above a file is accepted.
std::string untrusted(const struct stat& s, bool above) {
  const writers& library = writers_of_library();
  if (s.st_uid != 0 && s.st_uid != geteuid() && !among(library.owners, s.st_uid))
    return format_text("it belongs to uid {}, not to root, this user or the library's owner", s.st_uid);
  if (above && (s.st_mode & S_ISVTX) != 0) return "";
  if ((s.st_mode & S_IWOTH) != 0) return "anybody may write to it (chmod o-w)";
  // Debian and others give each user a group of the same number, with no other members.
  const bool own_group = s.st_gid == getegid() && s.st_gid == geteuid();
  if ((s.st_mode & S_IWGRP) != 0 && s.st_gid != 0 && !own_group && !among(library.groups, s.st_gid))
    return format_text("group {} may write to it (chmod g-w)", s.st_gid);
  return "";
}

}  // namespace

std::string untrusted(const std::string& path) {
  if (path.empty() || path[0] != '/') return "it is not an absolute path";
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return error.message();
  for (fs::path at = real;; at = at.parent_path()) {
    struct stat s {};
    if (stat(at.c_str(), &s) != 0) return format_text("{}", std::strerror(errno));
    if (const std::string why = untrusted(s, at != real); !why.empty())
      return at == real ? why : format_text("{}: {}", at.string(), why);
    if (at == at.root_path()) return "";
  }
}

std::vector<search_folder> search_folders(const void* own) {
  std::vector<search_folder> folders;
  const auto add = [&](const fs::path& path) { folders.push_back({path.string(), untrusted(path.string())}); };
  if (const char* list = environment("LOCKSTEP_BACKEND_PATH")) {
    const std::string text = list;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(':', begin), text.size());
      if (end > begin) add(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
#if defined(LOCKSTEP_MODULE_FOLDER)  // a static library has no folder of its own
  (void)own;
  add(LOCKSTEP_MODULE_FOLDER);
#else
  if (const loaded_file library = own_file(own); !library.path.empty())
    add(fs::path(library.path).parent_path() / "lockstep");
#endif
  return folders;
}

void* open_trusted(const std::string& path, std::string& why) {
  const file f(path);
  struct stat s {};
  if (f.fd < 0 || fstat(f.fd, &s) != 0) {
    why = format_text("{} cannot be opened: {}", path, std::strerror(errno));
    return nullptr;
  }
  // Reading a FIFO or a device may wait for ever.
  why = !S_ISREG(s.st_mode) ? "is not an ELF file" : untrusted(path);
  if (S_ISREG(s.st_mode) && why.empty()) why = untrusted(s, false);
  if (S_ISREG(s.st_mode) && !why.empty()) why = "is not trusted: " + why;
  if (why.empty()) why = broken_elf(f, static_cast<uint64_t>(s.st_size));
  if (!why.empty()) {
    why = path + " " + why;
    return nullptr;
  }
  // Opened by name, because $ORIGIN and debuggers need it. Only trusted users can have changed the file behind it.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    why = format_text("{} cannot be loaded: {}", path, dlerror());
    return nullptr;
  }
  struct stat now {};
  if (stat(path.c_str(), &now) == 0 && now.st_dev == s.st_dev && now.st_ino == s.st_ino) return handle;
  why = format_text("{} was replaced while it was loaded; start again", path);
  return nullptr;
}

}  // namespace lockstep::lib
