// progress.cpp - see progress.hpp.
#include "progress.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "format.hpp"

namespace lockstep::tool {
namespace {
bool on_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) && term != nullptr && std::string_view(term) != "dumb";
}
}  // namespace

progress::progress(std::string what, size_t total) : what_(std::move(what)), total_(total) {
  if (on_terminal()) thread_ = std::thread([this] { show(); });
}

progress::~progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

void progress::now(const std::string& what, size_t done) {
  if (thread_.joinable()) {
    const std::lock_guard lock(mutex_);
    what_ = what;
  }
  at(done);
}

void progress::show() {
  using namespace std::chrono;
  const auto begin = steady_clock::now();
  bool shown = false;
  std::unique_lock lock(mutex_);
  for (auto wait = milliseconds(500); !stop_.wait_for(lock, wait, [this] { return stopped_; });
       wait = milliseconds(200)) {
    const double seconds = duration<double>(steady_clock::now() - begin).count();
    const size_t done = done_.load(std::memory_order_relaxed);
    std::string line = format_text("\r\033[K{} ... {:.1f} s", what_, seconds);
    if (total_ != 0)
      line += format_text(", {:.0f} %", 100.0 * static_cast<double>(done) / static_cast<double>(total_));
    else if (done != 0)
      line += format_text(", {}", bytes_text(static_cast<double>(done)));
    shown = true;
    if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
  }
  if (shown && write(STDERR_FILENO, "\r\033[K", 4) < 0) return;
}

}  // namespace lockstep::tool
