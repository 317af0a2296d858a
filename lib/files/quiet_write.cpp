// quiet_write.cpp - see quiet_write.hpp.
#include "quiet_write.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <initializer_list>

namespace lockstep::lib {
namespace {

// Keeps those signals from this thread, and takes those back that its own writes have raised.
class without_signals {
 public:
  without_signals() noexcept {
    sigemptyset(&ours_);
    for (const int number : {SIGXFSZ, SIGPIPE, SIGTTOU}) sigaddset(&ours_, number);
    sigset_t before;
    sigpending(&before);
    for (const int number : {SIGXFSZ, SIGPIPE, SIGTTOU})
      if (sigismember(&before, number) == 1) sigdelset(&ours_, number);  // another's, which is still to come
    pthread_sigmask(SIG_BLOCK, &ours_, &masked_);
  }
  ~without_signals() {
    const timespec at_once{};
    while (sigtimedwait(&ours_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &masked_, nullptr);
  }
  without_signals(const without_signals&) = delete;
  without_signals& operator=(const without_signals&) = delete;

 private:
  sigset_t ours_, masked_;
};

bool cannot_block(const struct stat& s, int fd) noexcept {
  constexpr unsigned memory_devices = 1, null = 3, full = 7;
  const bool is_null = major(s.st_rdev) == memory_devices && (minor(s.st_rdev) == null || minor(s.st_rdev) == full);
  return S_ISREG(s.st_mode) || (S_ISCHR(s.st_mode) && (is_null || fd < 0 || isatty(fd) == 1));
}

}  // namespace

int write_quietly(int fd, const char* bytes, size_t count) noexcept {
  const without_signals quiet;
  while (count > 0) {
    const ssize_t n = write(fd, bytes, count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes += n;
    count -= static_cast<size_t>(n);
  }
  return 0;
}

int open_to_append(const char* path, int& code, const char*& reason) noexcept {
  struct stat s {};
  code = 0;
  reason = "it is neither a regular file nor a terminal";
  // Asked before, because opening can already do something: wait for a pipe's reader, rewind a tape.
  if (stat(path, &s) == 0 && !cannot_block(s, -1)) return -1;
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
  if (fd < 0) return code = errno, -1;
  if (fstat(fd, &s) == 0 && cannot_block(s, fd)) return fd;
  close(fd);
  return -1;
}

}  // namespace lockstep::lib
