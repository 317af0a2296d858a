// progress.hpp - shows one line on the terminal while something takes longer than half a
// second; nothing if stderr is not a terminal.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

namespace lockstep::tool {

class progress {
 public:
  // total 0: only the elapsed time is known.
  progress(std::string what, size_t total);
  ~progress();  // clears the line
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  // The current work, and how much of it is done.
  void now(const std::string& what, size_t done);
  void at(size_t done) { done_.store(done, std::memory_order_relaxed); }

 private:
  void show();
  std::string what_;
  size_t total_;
  std::atomic<size_t> done_{0};
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace lockstep::tool
