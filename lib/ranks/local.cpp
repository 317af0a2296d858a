// local.cpp - a transport between threads of one process: a queue for each pair of threads. The sender copies a short
// message and is done; the receiver copies a long one from the sender's memory.
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "comm.hpp"

namespace lockstep::ranks {
namespace {

constexpr size_t short_bytes = 4096;

struct message {
  const void* data;  // the sender's, or copy
  size_t bytes;
  std::unique_ptr<char[]> copy;
  bool taken = false;
};

struct receipt {
  void* data;
  size_t bytes, received = 0;
  bool done = false, truncated = false;
};

struct request {
  std::shared_ptr<message> out;  // one of the two
  std::shared_ptr<receipt> in;
  int32_t from = 0;
};

// The messages from one thread to another, in order. A long message is copied under the lock, which only these two use.
struct channel {
  std::mutex lock;
  std::list<std::shared_ptr<message>> messages;
  std::list<std::shared_ptr<receipt>> receipts;

  void match() {
    while (!messages.empty() && !receipts.empty()) {
      message& m = *messages.front();
      receipt& r = *receipts.front();
      r.truncated = m.bytes > r.bytes;
      r.received = r.truncated ? r.bytes : m.bytes;
      if (r.received != 0) std::memcpy(r.data, m.copy != nullptr ? m.copy.get() : m.data, r.received);
      r.done = m.taken = true;
      messages.pop_front();
      receipts.pop_front();
    }
  }
};

struct hub {
  explicit hub(int32_t p) : processes(p), channels(std::make_unique<channel[]>(static_cast<size_t>(p) * p)) {}
  channel& between(int32_t from, int32_t to) { return channels[static_cast<size_t>(from) * processes + to]; }
  int32_t processes;
  std::unique_ptr<channel[]> channels;
};

struct endpoint {
  std::shared_ptr<hub> all;
  int32_t process;
};

int isend(void* user, int32_t to, const void* data, size_t bytes, void** out) try {
  auto* me = static_cast<endpoint*>(user);
  auto m = std::make_shared<message>();
  m->data = data;
  m->bytes = bytes;
  if (bytes <= short_bytes) {
    m->copy = std::make_unique<char[]>(bytes + 1);
    if (bytes != 0) std::memcpy(m->copy.get(), data, bytes);
  }
  auto made = std::make_unique<request>(request{m, nullptr, to});
  channel& c = me->all->between(me->process, to);
  const std::lock_guard guard(c.lock);
  c.messages.push_back(m);
  *out = made.release();
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}

int irecv(void* user, int32_t from, void* data, size_t bytes, void** out) try {
  auto* me = static_cast<endpoint*>(user);
  auto r = std::make_shared<receipt>(receipt{data, bytes});
  auto made = std::make_unique<request>(request{nullptr, r, from});
  channel& c = me->all->between(from, me->process);
  const std::lock_guard guard(c.lock);
  c.receipts.push_back(r);
  *out = made.release();
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}

int test(void* user, void** which, int* done, size_t* received) {
  auto* me = static_cast<endpoint*>(user);
  auto* r = static_cast<request*>(*which);
  channel& c = r->in != nullptr ? me->all->between(r->from, me->process) : me->all->between(me->process, r->from);
  const std::lock_guard guard(c.lock);
  if (r->in != nullptr) c.match();
  *done = r->in != nullptr ? r->in->done : r->out->taken || r->out->copy != nullptr;
  if (*done == 0) return 0;
  const bool truncated = r->in != nullptr && r->in->truncated;
  *received = r->in != nullptr ? r->in->received : 0;
  delete r;
  *which = nullptr;
  return truncated ? LOCKSTEP_ENGINE_TRUNCATED : 0;
}

int peek(void* user, int32_t from, int* found, size_t* bytes) {
  auto* me = static_cast<endpoint*>(user);
  channel& c = me->all->between(from, me->process);
  const std::lock_guard guard(c.lock);
  c.match();
  *found = !c.messages.empty();
  if (*found != 0) *bytes = c.messages.front()->bytes;
  return 0;
}

const char* error_text(void*, int) { return "out of host memory"; }
void close(void* user, int) { delete static_cast<endpoint*>(user); }

}  // namespace
}  // namespace lockstep::ranks

using namespace lockstep;
using namespace lockstep::ranks;

extern "C" lockstep_status lockstep_engine_local(int32_t processes, lockstep_engine* engines) {
  return lib::guarded([&] {
    if (engines == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "engines is NULL; pass an array of {} engines", processes);
    if (processes < 1 || processes > 1024)
      fail(LOCKSTEP_INVALID_ARGUMENT, "processes is {}; give 1 to 1024", processes);
    const auto all = std::make_shared<hub>(processes);
    std::vector<std::unique_ptr<endpoint>> ends;
    ends.reserve(static_cast<size_t>(processes));
    for (int32_t p = 0; p < processes; ++p) ends.push_back(std::make_unique<endpoint>(endpoint{all, p}));
    for (int32_t p = 0; p < processes; ++p)
      engines[p] = {sizeof(lockstep_engine),
                    LOCKSTEP_ENGINE_ABI,
                    0,
                    ends[static_cast<size_t>(p)].release(),
                    processes,
                    p,
                    "local",
                    isend,
                    irecv,
                    test,
                    error_text,
                    nullptr,
                    close,
                    peek};
  });
}
