// enough_stack.cpp - see enough_stack.hpp.
#include "enough_stack.hpp"

#include <cstring>
#include <exception>

#include "../status.hpp"

// Of the CPU backend (team.cpp): false if no thread could be made.
extern "C" bool lockstep_cpu_run_elsewhere(void (*body)(void*), void* data);

namespace lockstep::lib {

lockstep_status run_elsewhere(lockstep_status (*body)(const void*), const void* data) {
  struct work {
    lockstep_status (*body)(const void*);
    const void* data;
    lockstep_status status = LOCKSTEP_OK;
    char text[error_text_bytes] = "";
    std::exception_ptr thrown{};
  } one{body, data};
  const bool ran = lockstep_cpu_run_elsewhere(
      [](void* of) {
        work& w = *static_cast<work*>(of);
        clear_error();
        try {
          w.status = w.body(w.data);
        } catch (...) {
          w.thrown = std::current_exception();
        }
        std::strcpy(w.text, last_error());
      },
      &one);
  if (!ran) {
    set_error(
        "this thread has less stack left than the CPU needs (768 KiB), and no thread could be made to compute on; call "
        "from a thread with a larger stack");
    return LOCKSTEP_OUT_OF_MEMORY;
  }
  if (one.thrown != nullptr) std::rethrow_exception(one.thrown);
  set_error(one.text);
  return one.status;
}

}  // namespace lockstep::lib
