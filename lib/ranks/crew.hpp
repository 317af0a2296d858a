// crew.hpp - threads that stay with a communicator, for calls on several devices at once. Starting a thread for each
// call would take longer than a reduction may lose.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

namespace lockstep::ranks {

class crew {
 public:
  crew() = default;
  ~crew() {
    for (const auto& m : members_) {
      m->job = nullptr;
      m->begin();
      m->thread.join();
    }
  }
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;

  // Runs all jobs, which must not throw, the first in this thread and each other one in a thread of its own.
  void run(const std::vector<std::function<void()>>& jobs) {
    if (jobs.empty()) return;
    size_t at_work = 0;
    for (size_t j = 1; j < jobs.size() && has(j); ++j, ++at_work) {
      members_[j - 1]->job = &jobs[j];
      members_[j - 1]->begin();
    }
    jobs[0]();
    for (size_t j = 1 + at_work; j < jobs.size(); ++j) jobs[j]();  // there are no more threads
    for (size_t m = 0; m < at_work; ++m) await(members_[m]->done, members_[m]->begun.load());
  }

 private:
  struct member {
    std::atomic<uint64_t> begun{0}, done{0};
    const std::function<void()>* job = nullptr;
    std::thread thread;
    void begin() {
      begun.fetch_add(1);
      begun.notify_one();
    }
  };
  // Looks for a moment before it sleeps: calls often follow each other.
  static void await(const std::atomic<uint64_t>& count, uint64_t want) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
    while (count.load() != want && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    for (uint64_t now = count.load(); now != want; now = count.load()) count.wait(now);
  }
  bool has(size_t j) {
    if (j <= members_.size()) return true;
    try {
      auto made = std::make_unique<member>();
      made->thread = std::thread([m = made.get()] {
        for (uint64_t number = 1;; ++number) {
          await(m->begun, number);
          if (m->job == nullptr) return;
          (*m->job)();
          m->done.store(number);
          m->done.notify_one();
        }
      });
      members_.push_back(std::move(made));
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  }
  std::vector<std::unique_ptr<member>> members_;
};

}  // namespace lockstep::ranks
