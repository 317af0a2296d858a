// file.cpp - see file.hpp.
#include "file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "cli.hpp"
#include "progress.hpp"

namespace lockstep::tool {
namespace {

struct descriptor {
  int fd;
  ~descriptor() {
    if (fd > STDERR_FILENO) close(fd);
  }
};

// Removes the unfinished output file if the program is interrupted. Only one output is open
// at a time, and unlink is safe in a signal handler.
char unfinished[4096];
void remove_unfinished(int signal) {
  if (unfinished[0] != '\0') unlink(unfinished);
  std::signal(signal, SIG_DFL);
  raise(signal);
}
void guard_unfinished(const std::string& path) {
  if (path.size() >= sizeof unfinished) return;
  std::memcpy(unfinished, path.c_str(), path.size() + 1);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, remove_unfinished) == SIG_IGN) std::signal(signal, SIG_IGN);
}
void release_unfinished() { unfinished[0] = '\0'; }

void write_all(int fd, std::string_view bytes, const std::string& name) {
  progress shown("writing " + name, bytes.size());
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, std::min<size_t>(bytes.size() - done, 8 << 20));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EPIPE) throw broken_pipe{};
    if (n <= 0)
      fail("{}: {} after {} of {} bytes", name, n < 0 ? std::strerror(errno) : "wrote nothing", done, bytes.size());
    done += static_cast<size_t>(n);
    shown.at(done);
  }
}

// The file that a rename must replace: what a symbolic link leads to.
std::string resolved(const std::string& path) {
  std::error_code none;
  const auto real = std::filesystem::canonical(path, none);
  return none ? path : real.string();
}

bool is_special(const std::string& path) {
  struct stat s {};
  return stat(path.c_str(), &s) == 0 && !S_ISREG(s.st_mode);
}

// A new file beside path, with the permissions that path has or would get.
std::string make_temporary(const std::string& path, int& fd) {
  std::string name = path + ".XXXXXX";
  fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) fail("cannot write {}: {}; choose another place", path, std::strerror(errno));
  struct stat s {};
  const mode_t mask = umask(0);
  umask(mask);
  (void)fchmod(fd, stat(path.c_str(), &s) == 0 ? s.st_mode & 0777 : 0666 & ~mask);
  guard_unfinished(name);
  return name;
}

void put_in_place(const std::string& temporary, const std::string& path) {
  if (std::rename(temporary.c_str(), path.c_str()) != 0)
    fail("cannot rename {} to {}: {}", temporary, path, std::strerror(errno));
  release_unfinished();
}

int open_special(const std::string& path) {
  if (path == "-") return STDOUT_FILENO;
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) fail("cannot write {}: {}; choose another place", path, std::strerror(errno));
  return fd;
}

}  // namespace

input_file::input_file(const std::string& path, std::string_view beginning) : path_(path == "-" ? "stdin" : path) {
  const descriptor file{path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat s {};
  if (file.fd < 0 || fstat(file.fd, &s) != 0) fail("cannot read {}: {}", path_, std::strerror(errno));
  if (S_ISDIR(s.st_mode)) fail("cannot read {}: it is a directory; name a file in it", path_);
  const bool regular = S_ISREG(s.st_mode) && s.st_size > 0 && lseek(file.fd, 0, SEEK_CUR) == 0;
  size_ = static_cast<size_t>(s.st_size);
  void* mapping = regular ? mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0) : MAP_FAILED;
  if (mapping == MAP_FAILED) {
    read_all(file.fd, beginning);
    return;
  }
  mapped_ = true;
  data_ = static_cast<const char*>(mapping);
  (void)madvise(mapping, size_, MADV_WILLNEED);
}

input_file::~input_file() {
  if (mapped_) munmap(const_cast<char*>(data_), size_);
}

void input_file::read_all(int fd, std::string_view beginning) {
  progress shown("reading " + path_, 0);
  size_t done = 0;
  for (;;) {
    if (memory_.size() - done < (1 << 20)) memory_.resize(std::max<size_t>(1 << 22, memory_.size() * 2));
    const ssize_t n = read(fd, memory_.data() + done, memory_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot read {}: {}", path_, std::strerror(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
    shown.at(done);
    if (done >= beginning.size() && !std::string_view(memory_.data(), done).starts_with(beginning)) break;
  }
  data_ = memory_.data();
  size_ = done;
}

array make_array(std::string descr, std::vector<int64_t> shape) {
  array a;
  a.header = {std::move(descr), false, std::move(shape), 0};
  const size_t bytes = a.header.data_bytes();
  // calloc, because the kernel gives large arrays as pages that are already zero.
  auto* memory = static_cast<char*>(std::calloc(bytes + 256, 1));
  if (memory == nullptr) fail("no memory for an array of {}", bytes_text(static_cast<double>(bytes)));
  const size_t shift = 256 - reinterpret_cast<uintptr_t>(memory) % 256;
  a.memory = std::shared_ptr<char>(memory + shift, [memory](char*) { std::free(memory); });
  a.data = a.memory.get();
  return a;
}

array read_npy(const std::string& path) {
  array a;
  a.file = std::make_shared<input_file>(path, npy::magic);
  const std::string_view bytes = a.file->bytes();
  try {
    a.header = npy::parse(bytes);
  } catch (const npy::error& error) {
    fail("{} {}", a.file->path(), error.what());
  }
  const size_t there = bytes.size() - a.header.data_offset;
  if (there != a.header.data_bytes())
    fail("{} {}: shape {} of {} needs {} bytes of data, the file has {}", a.file->path(),
         there < a.header.data_bytes() ? "is truncated" : "goes on behind its data", shape_text(a.header.shape),
         a.header.descr, a.header.data_bytes(), there);
  a.data = bytes.data() + a.header.data_offset;
  // Writers pad the header so that the data is aligned; if it is not, copy.
  if (reinterpret_cast<uintptr_t>(a.data) % std::min<size_t>(a.header.element_bytes(), 16) != 0) {
    array copy = make_array(a.header.descr, a.header.shape);
    copy.header.fortran = a.header.fortran;
    std::memcpy(writable(copy), a.data, a.header.data_bytes());
    return copy;
  }
  return a;
}

output_npy::output_npy(const std::string& path, npy::header header) : path_(path), header_(std::move(header)) {
  const std::string head = npy::format(header_);
  header_.data_offset = head.size();
  file_bytes_ = head.size() + header_.data_bytes();
  if (path_ == "-" || is_special(path_)) {
    if (std::filesystem::is_directory(path_)) refuse("cannot write {}: it is a directory; name a file in it", path_);
    memory_.resize(file_bytes_);
    std::memcpy(memory_.data(), head.data(), head.size());
    data_ = memory_.data() + head.size();
    return;
  }
  path_ = resolved(path_);
  if (const int existing = access(path_.c_str(), F_OK) == 0 ? access(path_.c_str(), W_OK) : 0; existing != 0)
    fail("cannot write {}: {}; choose another place", path_, std::strerror(errno));
  descriptor file{-1};
  temporary_ = make_temporary(path_, file.fd);
  try {
    // Allocates the space now, so that a full disk is an error here and not a SIGBUS later.
    if (const int code = posix_fallocate(file.fd, 0, static_cast<off_t>(file_bytes_)); code != 0)
      fail("cannot write {} of output to {}: {}", bytes_text(static_cast<double>(file_bytes_)), path_,
           std::strerror(code));
    mapping_ = mmap(nullptr, file_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
    if (mapping_ == MAP_FAILED) {
      mapping_ = nullptr;
      fail("cannot map {}: {}", temporary_, std::strerror(errno));
    }
  } catch (...) {
    unlink(temporary_.c_str());
    release_unfinished();
    throw;
  }
  std::memcpy(mapping_, head.data(), head.size());
  data_ = static_cast<char*>(mapping_) + head.size();
}

output_npy::~output_npy() {
  if (mapping_ != nullptr) munmap(mapping_, file_bytes_);
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
    release_unfinished();
  }
}

void output_npy::commit() {
  if (mapping_ == nullptr) {
    if (path_ == "-") flush();
    const descriptor file{open_special(path_)};
    write_all(file.fd, {memory_.data(), file_bytes_}, path_ == "-" ? "stdout" : path_);
    return;
  }
  if (munmap(std::exchange(mapping_, nullptr), file_bytes_) != 0)
    fail("cannot finish {}: {}", temporary_, std::strerror(errno));
  put_in_place(temporary_, path_);
  temporary_.clear();
}

namespace {
void check_writable(const char* option, const std::string& path) {
  if (path.empty() || path == "-") return;
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path folder = fs::absolute(path, ignored).parent_path();
  if (fs::is_directory(path, ignored)) fail("{}: {} is a folder; name a file in it", option, path);
  if (!fs::is_directory(folder, ignored))
    fail("{}: there is no folder {} ({}); make it first", option, folder.string(), std::strerror(ENOENT));
  const bool there = fs::exists(path, ignored);
  if (access(there ? path.c_str() : folder.c_str(), W_OK) != 0)
    fail("{}: {} cannot be written: {}", option, path, std::strerror(errno));
}
}  // namespace

bool take_stdout(std::initializer_list<std::pair<const char*, const std::string&>> outputs) {
  const char* taken = nullptr;
  for (const auto& [option, path] : outputs) {
    check_writable(option, path);
    if (path != "-") continue;
    if (taken != nullptr) refuse("{} and {} both want stdout; give one of them a file", taken, option);
    taken = option;
  }
  return taken != nullptr;
}

void write_file(const std::string& path, std::string_view bytes) {
  if (path == "-" || is_special(path)) {
    if (path == "-") flush();
    const descriptor file{open_special(path)};
    return write_all(file.fd, bytes, path == "-" ? "stdout" : path);
  }
  const std::string real = resolved(path);
  std::string temporary;
  try {
    descriptor file{-1};
    temporary = make_temporary(real, file.fd);
    write_all(file.fd, bytes, path);
    put_in_place(temporary, real);
  } catch (...) {
    if (!temporary.empty()) unlink(temporary.c_str());
    release_unfinished();
    throw;
  }
}

}  // namespace lockstep::tool
