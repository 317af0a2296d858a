// task.hpp - a call over ranks as a coroutine. Where it would wait for messages it suspends; lockstep_comm::drive
// resumes it when they have arrived. So an asynchronous call needs no thread.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace lockstep::ranks {

class task {
 public:
  struct promise_type {
    std::coroutine_handle<> caller = std::noop_coroutine();  // resumed when this ends
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
  // Throws the exception that the task ended with, if any.
  void result() const {
    if (handle_.promise().failed) std::rethrow_exception(handle_.promise().failed);
  }

  // Awaiting another task starts it; an exception of it is thrown here.
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
