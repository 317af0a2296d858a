// fake_nccl.cpp - NCCL's functions for the devices of fake_module.cpp, between the threads of a process: a part of the
// same module, which the tests name in LOCKSTEP_NCCL. As strict as NCCL may be: calls are in progress until somebody
// has asked several times, and only then on the streams; two ranks on one device, other streams and memory, and
// messages that do not match are refused. LOCKSTEP_FAKE_NCCL plans a failure: "old", "no id", "init fails 1" (a rank),
// "init hangs 1", "group fails 1", "lost 1" (NCCL notices a failure after the first group), "gone 1" (what this rank
// sends never leaves).
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "fake_module.hpp"

namespace {

enum result : int { success = 0, system_error = 2, invalid = 4, invalid_usage = 5, remote_error = 6, in_progress = 7 };
struct id {
  char bytes[128];
};
struct config {
  size_t size;
  unsigned int magic, version;
  int blocking;
};

struct message {
  char* data;
  size_t bytes;
  std::shared_ptr<fake::ticket> done;
};
struct channel {
  std::deque<message> sends, receives;
};
struct world {
  int ranks = 0, joined = 0;
  std::map<int, int> device_of;
  std::map<std::pair<int, int>, channel> channels;  // from, to
};
struct communicator;
struct call {
  communicator* comm;
  bool send;
  char* data;
  size_t bytes;
  int peer;
  void* stream;
};
struct communicator {
  std::shared_ptr<world> in;
  int rank = 0, device = 0, looks = 0;
  result state = success;
  bool finalized = false, aborted = false;
  std::vector<call> late;  // of a group that is still in progress
  std::vector<std::shared_ptr<fake::ticket>> open;
};

std::map<std::string, std::shared_ptr<world>> worlds;
thread_local int depth = 0;
thread_local std::vector<call> group;

bool planned(const std::string& what) {
  const char* plan = std::getenv("LOCKSTEP_FAKE_NCCL");
  return plan != nullptr && what == plan;
}
bool planned(const std::string& what, const communicator& c) { return planned(what + " " + std::to_string(c.rank)); }

void match(channel& c) {
  while (!c.sends.empty() && !c.receives.empty()) {
    const message from = c.sends.front(), to = c.receives.front();
    if (from.bytes != to.bytes) std::abort();  // NCCL would hang
    std::memcpy(to.data, from.data, to.bytes);
    from.done->done = to.done->done = true;
    c.sends.pop_front(), c.receives.pop_front();
  }
}

void launch(communicator& c) {
  for (const call& one : c.late) {
    const auto done = std::make_shared<fake::ticket>();
    c.open.push_back(done);
    fake::enqueue(
        one.stream,
        [one, done, in = c.in, rank = c.rank, gone = planned("gone", c)] {
          if (done->done || gone) return;
          channel& way = in->channels[one.send ? std::pair{rank, one.peer} : std::pair{one.peer, rank}];
          (one.send ? way.sends : way.receives).push_back({fake::memory(one.data), one.bytes, done});
          match(way);
        },
        nullptr);
  }
  for (size_t k = c.open.size() - c.late.size(); k < c.open.size(); ++k)
    fake::enqueue(c.late[0].stream, nullptr, c.open[k]);
  c.late.clear();
}

result add(bool send, const void* data, size_t bytes, int peer, communicator* comm, void* stream) {
  const std::lock_guard guard(fake::lock());
  auto* at = static_cast<char*>(const_cast<void*>(data));
  if (depth == 0 || comm->state != success || comm->finalized || bytes == 0 || peer == comm->rank || peer < 0 ||
      peer >= comm->in->ranks || !fake::is_stream_of(stream, comm->device) ||
      fake::device_of_memory(data) != comm->device)
    return invalid;
  group.push_back({comm, send, at, bytes, peer, stream});
  return success;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED result ncclGetVersion(int* version) {
  *version = planned("old") ? 21304 : 22809;
  return success;
}
EXPORTED const char* ncclGetErrorString(result r) {
  return r == remote_error ? "remote process exited" : r == invalid ? "invalid argument" : "unhandled system error";
}
EXPORTED const char* ncclGetLastError(communicator*) { return ""; }

EXPORTED result ncclGetUniqueId(id* out) {
  const std::lock_guard guard(fake::lock());
  if (planned("no id")) return system_error;
  std::memset(out, 0, sizeof *out);
  const std::string name = "world " + std::to_string(worlds.size());
  std::memcpy(out->bytes, name.c_str(), name.size());
  worlds[name] = std::make_shared<world>();
  return success;
}

EXPORTED result ncclCommInitRankConfig(communicator** out, int ranks, id name, int rank, const config* how) {
  const std::lock_guard guard(fake::lock());
  if (how->magic != 0xcafebeef || how->size < sizeof *how || how->version < 21400 || how->blocking != 0) return invalid;
  const auto found = worlds.find(name.bytes);
  if (found == worlds.end() || rank < 0 || rank >= ranks) return invalid;
  auto* c = new communicator;
  c->in = found->second;
  c->rank = rank;
  c->device = fake::current_device();
  for (const auto& other : c->in->device_of)
    if (other.second == c->device) c->state = invalid_usage;  // two ranks on one device
  c->in->device_of[rank] = c->device;
  c->in->ranks = ranks;
  if (planned("init fails", *c)) c->state = system_error;
  if (!planned("init hangs", *c)) ++c->in->joined;
  *out = c;
  return in_progress;
}

EXPORTED result ncclCommGetAsyncError(communicator* c, result* state) {
  const std::lock_guard guard(fake::lock());
  *state = c->state;
  if (c->state != success) return success;
  const bool waits = c->in->joined < c->in->ranks || (!c->late.empty() && ++c->looks % 3 != 0);
  if (waits)
    *state = in_progress;
  else if (!c->late.empty()) {
    launch(*c);
    if (planned("lost", *c)) c->state = remote_error;
  }
  return success;
}

EXPORTED result ncclGroupStart() {
  ++depth;
  return success;
}
EXPORTED result ncclGroupEnd() {
  const std::lock_guard guard(fake::lock());
  if (--depth != 0) return success;
  for (const call& one : group) {
    if (planned("group fails", *one.comm)) one.comm->state = system_error;
    one.comm->late.push_back(one);
  }
  const bool any = !group.empty();
  group.clear();
  return any ? in_progress : success;
}
EXPORTED result ncclSend(const void* data, size_t count, int, int peer, communicator* c, void* stream) {
  return add(true, data, count, peer, c, stream);
}
EXPORTED result ncclRecv(void* data, size_t count, int, int peer, communicator* c, void* stream) {
  return add(false, data, count, peer, c, stream);
}

EXPORTED result ncclCommFinalize(communicator* c) {
  c->finalized = true;
  return in_progress;
}
EXPORTED result ncclCommDestroy(communicator* c) {
  const std::lock_guard guard(fake::lock());
  if (!c->finalized || !c->late.empty()) std::abort();
  for (const auto& one : c->open)
    if (!one->done) std::abort();
  delete c;
  return success;
}
EXPORTED result ncclCommAbort(communicator* c) {
  const std::lock_guard guard(fake::lock());
  for (const auto& one : c->open) one->done = true;  // its kernels end
  for (auto& [way, one] : c->in->channels) {
    if (way.first == c->rank) one.sends.clear();
    if (way.second == c->rank) one.receives.clear();
  }
  delete c;
  return success;
}
