// kept_file.cpp - see kept_file.hpp.
#include "kept_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "../environment.hpp"
#include "../load/trusted.hpp"
#include "../status.hpp"
#include "quiet_write.hpp"

namespace lockstep::lib {
namespace {

void require_trusted(const std::string& path) {
  if (const std::string why = untrusted(path); !why.empty())
    fail(LOCKSTEP_INTERNAL, "{} is not trusted: {}", path, why);
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

// Creates the folder if it is missing.
int open_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(LOCKSTEP_INTERNAL, "{} cannot be made: {}", folder, error.message());
  require_trusted(folder);
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(LOCKSTEP_INTERNAL, "{} cannot be opened: {}", folder, std::strerror(errno));
  return fd;
}

}  // namespace

descriptor::~descriptor() {
  if (fd >= 0) close(fd);
}

std::string kept_path(const char* variable, const char* name, std::string& reason) {
  const auto value_of = [](const char* of) {
    const char* value = environment(of);
    return std::string(value != nullptr ? value : "");
  };
  if (const std::string named = value_of(variable); !named.empty()) {
    if (named == "off")
      reason = format_text("{} is \"off\"", variable);
    else if (named[0] != '/')
      reason = format_text("{} is \"{}\"; give an absolute path, or \"off\"", variable, named);
    return reason.empty() ? named : "";
  }
  std::string folder = value_of("XDG_CACHE_HOME");
  if (folder.empty() || folder[0] != '/') {
    const std::string home = value_of("HOME");
    folder = home.empty() || home[0] != '/' ? "" : home + "/.cache";
  }
  if (folder.empty()) reason = "neither XDG_CACHE_HOME nor HOME names a folder";
  return folder.empty() ? "" : folder + "/lockstep/" + name;
}

std::string read_kept(const std::string& path, size_t most_bytes) {
  require_trusted(folder_of(path));
  require_trusted(path);
  // A pipe or a device would block or never end.
  const descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat s {};
  if (file.fd < 0 || fstat(file.fd, &s) != 0) fail(LOCKSTEP_INTERNAL, "it cannot be opened: {}", std::strerror(errno));
  if (!S_ISREG(s.st_mode)) fail(LOCKSTEP_INTERNAL, "it is not a regular file");
  std::string text(most_bytes + 1, '\0');
  size_t have = 0;
  for (ssize_t n = 1; n > 0 && have < text.size(); have += static_cast<size_t>(n)) {
    n = read(file.fd, text.data() + have, text.size() - have);
    if (n < 0) fail(LOCKSTEP_INTERNAL, "it cannot be read: {}", std::strerror(errno));
  }
  if (have > most_bytes) fail(LOCKSTEP_INTERNAL, "it has more than {} bytes", most_bytes);
  text.resize(have);
  return text;
}

kept_folder::kept_folder(const std::string& path) : path_(path), lock_(open_folder(folder_of(path))) {
  constexpr int tries = 200;  // of ten milliseconds
  for (int i = 0; flock(lock_.fd, LOCK_EX | LOCK_NB) != 0; ++i) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      fail(LOCKSTEP_INTERNAL, "its folder cannot be locked: {}", std::strerror(errno));
    if (i == tries) fail(LOCKSTEP_INTERNAL, "another process has locked its folder for too long");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void kept_folder::replace(const std::string& text) const {
  // The folder's lock is held, so a file of this name was left behind by a process that was killed.
  const std::string name = path_ + ".new";
  unlink(name.c_str());
  const descriptor file(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  int code = file.fd < 0 ? errno : write_quietly(file.fd, text.data(), text.size());
  if (code == 0 && fsync(file.fd) != 0) code = errno;  // some systems notice only now that the disk is full
  if (code == 0 && rename(name.c_str(), path_.c_str()) != 0) code = errno;
  if (code == 0) return;
  if (file.fd >= 0) unlink(name.c_str());
  fail(LOCKSTEP_INTERNAL, "{} cannot be written: {}", path_, std::strerror(code));
}

}  // namespace lockstep::lib
