// child.cpp - see child.hpp.
#include "child.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>

namespace faults {
namespace {
constexpr size_t step_bytes = 512;
constexpr unsigned most_seconds = 120;  // a child that takes longer hangs
constexpr char end_of_text = '\1';

void write_all(int to, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = write(to, text.data() + at, text.size() - at);
    if (n <= 0) return;
    at += static_cast<size_t>(n);
  }
}
}  // namespace

void report::step(const std::string& text) { std::snprintf(step_, step_bytes, "%s", text.c_str()); }

void report::expect(bool ok, const std::string& what) {
  if (ok) return;
  if (++failures_ <= 20) text_ += std::string(step_) + ": " + what + "\n";
}

std::string in_child(const std::function<void(report&)>& body, std::string* notes) {
  char* step = static_cast<char*>(mmap(nullptr, step_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  int ends[2];
  if (step == MAP_FAILED || pipe(ends) != 0) return "the test has no memory or pipe";
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return "the test cannot fork";
  if (child == 0) {
    close(ends[0]);
    alarm(most_seconds);
    report r(step);
    try {
      body(r);
    } catch (const std::exception& e) {
      r.expect(false, std::string("threw ") + e.what());
    }
    write_all(ends[1], r.text() + end_of_text + r.notes());
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t n = 0; (n = read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  const size_t end = text.find(end_of_text);
  if (end != std::string::npos) {
    if (notes != nullptr) *notes = text.substr(end + 1);
    text.resize(end);
  }
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    text += std::string(step) + ": " + (signal == SIGALRM ? "hung" : strsignal(signal)) + "\n";
  } else if (WEXITSTATUS(status) != 0) {
    text += std::string(step) + ": the child exited with " + std::to_string(WEXITSTATUS(status)) + "\n";
  }
  munmap(step, step_bytes);
  return text;
}

}  // namespace faults
