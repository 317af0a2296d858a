// engines.hpp - transports that wrap another one. A test writes only what they watch, delay or damage.
#pragma once

#include <memory>

#include "world.hpp"

namespace lockstep::ranks_test {

// Hands everything on; a test overrides what it is about. It belongs to the engine that `stand_before` changes.
struct engine_before {
  lockstep_engine inner{};
  virtual ~engine_before() = default;
  virtual int isend(int32_t to, const void* data, size_t bytes, void** request) {
    return inner.isend(inner.user, to, data, bytes, request);
  }
  virtual int irecv(int32_t from, void* data, size_t bytes, void** request) {
    return inner.irecv(inner.user, from, data, bytes, request);
  }
  virtual int test(void** request, int* done, size_t* received) {
    return inner.test(inner.user, request, done, received);
  }
  virtual const char* error(int result) { return inner.error(inner.user, result); }
};
void stand_before(lockstep_engine& engine, std::unique_ptr<engine_before> with);

// sees(bytes) of every message that is sent; false: it is refused.
void watch(lockstep_engine& engine, std::function<bool(size_t bytes)> sees);

// Messages are seen late, in bursts that are drawn.
void delay(lockstep_engine& engine, uint64_t seed);

}  // namespace lockstep::ranks_test
