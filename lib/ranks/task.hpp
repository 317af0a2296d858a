// task.hpp - a call over ranks as a coroutine: where it would wait for messages it stops, and whoever drives it
// (lockstep_comm::drive) goes on when they have come. So an asynchronous call needs no thread of its own.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace lockstep::ranks {

class task {
 public:
  struct promise_type {
    std::coroutine_handle<> caller = std::noop_coroutine();  // goes on when this ends
    std::exception_ptr failed;
    task get_return_object() { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct end {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) noexcept {
        return h.promise().caller;
      }
      void await_resume() noexcept {}
    };
    end final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { failed = std::current_exception(); }
  };

  task() = default;
  task(task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  task& operator=(task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~task() {
    if (handle_) handle_.destroy();
  }

  bool done() const { return handle_.done(); }
  void resume() { handle_.resume(); }
  // Throws what it ended with.
  void result() const {
    if (handle_.promise().failed) std::rethrow_exception(handle_.promise().failed);
  }

  // co_await of another task: it begins, and what it throws is thrown here.
  bool await_ready() const { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) const {
    handle_.promise().caller = caller;
    return handle_;
  }
  void await_resume() const { result(); }

 private:
  explicit task(std::coroutine_handle<promise_type> h) : handle_(h) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace lockstep::ranks
