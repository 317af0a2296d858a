// engines.cpp - see engines.hpp.
#include "engines.hpp"

namespace lockstep::ranks_test {
namespace {
engine_before& of(void* user) { return *static_cast<engine_before*>(user); }

struct slow : engine_before {
  std::mt19937_64 draw;
  int test(void** request, int* done, size_t* received) override {
    *done = 0;
    return draw() % 8 != 0 ? 0 : engine_before::test(request, done, received);
  }
};

struct watcher : engine_before {
  std::function<bool(size_t)> sees;
  int isend(int32_t to, const void* data, size_t bytes, void** request) override {
    return sees(bytes) ? engine_before::isend(to, data, bytes, request) : 75;
  }
  const char* error(int) override { return "the message is too long"; }
};
}  // namespace

void stand_before(lockstep_engine& engine, std::unique_ptr<engine_before> with) {
  with->inner = engine;
  engine.user = with.release();
  engine.isend = [](void* u, int32_t to, const void* d, size_t b, void** r) { return of(u).isend(to, d, b, r); };
  engine.irecv = [](void* u, int32_t from, void* d, size_t b, void** r) { return of(u).irecv(from, d, b, r); };
  engine.test = [](void* u, void** r, int* done, size_t* n) { return of(u).test(r, done, n); };
  engine.peek = [](void* u, int32_t from, int* found, size_t* n) {
    return of(u).inner.peek(of(u).inner.user, from, found, n);
  };
  engine.error = [](void* u, int result) { return of(u).error(result); };
  engine.close = [](void* u, int clean) {
    of(u).inner.close(of(u).inner.user, clean);
    delete &of(u);
  };
}

void watch(lockstep_engine& engine, std::function<bool(size_t bytes)> sees) {
  auto w = std::make_unique<watcher>();
  w->sees = std::move(sees);
  stand_before(engine, std::move(w));
}

void delay(lockstep_engine& engine, uint64_t seed) {
  auto s = std::make_unique<slow>();
  s->draw.seed(seed);
  stand_before(engine, std::move(s));
}

}  // namespace lockstep::ranks_test
