// devices.cpp - see devices.hpp: streams, memory, and which plane two seats use.
#include "devices.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "comm.hpp"
#include "links.hpp"
#include "plan.hpp"

namespace lockstep::ranks {

namespace {
constexpr size_t slots = 3;  // one is packed while two are copied
// Bytes up to which a kernel that writes to another device is done before packs and copies are. Longer boxes use the
// link better by copy engines.
constexpr size_t written_across = 16 << 20;
constexpr size_t any_size = SIZE_MAX;
}  // namespace

const char* devices::any_backend() const {
  for (const seat& s : seats_)
    if (s.peers != nullptr) return s.name.c_str();
  return nullptr;
}

void devices::open(const char* named) {
  named_ = named != nullptr ? named : "";
  if (!named_.empty() && named_ != "direct" && named_ != "engine" && named_ != "nccl" && named_ != "staged")
    fail(LOCKSTEP_INVALID_ARGUMENT,
         "options.data is \"{}\"; known are \"direct\", \"engine\", \"nccl\" and \"staged\", or NULL for the best",
         named_);
  seats_.resize(static_cast<size_t>(comm_.seats));
  for (int32_t s = 0; s < comm_.seats; ++s) {
    seat& one = at(s);
    one.name = comm_.backends[static_cast<size_t>(s)];
    one.sent_to.assign(seats_.size(), 0);
    if (one.name.empty() || one.name == "auto") continue;
    require_ok(lockstep_peers_get(one.name.c_str(), &one.peers, &one.device));
    if (one.peers != nullptr) make(one);
  }
  std::set<std::pair<int32_t, int32_t>> pairs;
  for (seat& a : seats_)
    for (const seat& b : seats_) {
      int direct = a.device == b.device ? 1 : 0;
      if (a.peers != nullptr && a.peers == b.peers && direct == 0)
        require_ok(a.peers->connect(a.device, b.device, &direct));
      a.linked.push_back(a.peers != nullptr && a.peers == b.peers && direct != 0);
      if (a.peers == nullptr || a.peers != b.peers || !pairs.insert({a.device, b.device}).second) continue;
      if (direct == 0)
        indirect_ += format_text("; {} cannot access {}, so the driver copies through host memory", a.name, b.name);
    }
}

void devices::describe() {
  std::set<plane> used;
  std::string not_direct, not_engine;
  const auto note = [](std::string& text, std::string reason) {
    if (text.empty()) text = std::move(reason);
  };
  const auto place = [&](int32_t s) {
    const seat& one = at(s);
    return one.name.empty() ? format_text("rank {} has no backend of its own in options.backends", comm_.first() + s)
           : one.peers == nullptr ? format_text("rank {} computes on {}, in host memory", comm_.first() + s, one.name)
                                  : format_text("rank {} is on {}", comm_.first() + s, one.name);
  };
  if (comm_.engine.processes > 1) {
    if (comm_.links->any()) used.insert(plane::nccl);
    if (!comm_.links->all()) used.insert(plane::staged);
    note(not_direct, "there are ranks of other processes");
    note(not_engine, "there are ranks of other processes");
  }
  for (int32_t a = 0; a < comm_.seats; ++a)
    for (int32_t b = 0; b < comm_.seats; ++b) {
      if (a == b && (comm_.seats > 1 || comm_.engine.processes > 1)) continue;
      for (const size_t bytes : {size_t{0}, any_size}) {
        const plane p = between(a, b, true, bytes);
        used.insert(p == plane::host ? plane::staged : p);
      }
      for (const int32_t s : {a, b})
        if (!has(s)) note(not_direct, place(s)), note(not_engine, place(s));
      if (!has(a) || !has(b)) continue;
      if (at(a).linked[static_cast<size_t>(b)] == 0) note(not_direct, format_text("{} and {}", place(a), place(b)));
      if (at(a).peers != at(b).peers) note(not_engine, format_text("{} and {}", place(a), place(b)));
    }
  for (const auto& [name, reason] :
       {std::pair<const char*, const std::string&>{"direct", not_direct}, {"engine", not_engine}})
    if (named_ == name && !reason.empty())
      fail(LOCKSTEP_UNSUPPORTED, "options.data is \"{}\", but {}; name \"staged\", or NULL for the best of each pair",
           named_, reason);
  std::string not_nccl = comm_.links->why();
  if (comm_.engine.processes == 1) not_nccl = "all ranks are of one process";
  if (!comm_.links->any()) note(not_nccl, "fewer than two processes have ranks on GPUs");
  for (int32_t s = 0; s < comm_.seats; ++s)
    if (!comm_.links->all() && !has(s)) note(not_nccl, place(s));
  if (!comm_.links->all()) note(not_nccl, "there are ranks without a GPU");
  if (named_ == "nccl" && !comm_.links->all())
    fail(LOCKSTEP_UNSUPPORTED, "options.data is \"nccl\", but {}; name \"staged\", or NULL for the best of each pair",
         not_nccl);
  data_.clear(), why_.clear();
  const std::pair<plane, const char*> names[] = {
      {plane::direct, "direct"}, {plane::engine, "engine"}, {plane::nccl, "nccl"}, {plane::staged, "staged"}};
  for (const auto& [p, name] : names) {
    if (used.count(p) != 0) {
      data_ += format_text("{}{}", data_.empty() ? "" : ", ", name);
      continue;
    }
    std::string reason = p == plane::direct   ? not_direct
                         : p == plane::engine ? not_engine
                         : p == plane::nccl   ? not_nccl
                                              : "";
    if (!named_.empty() && (p != plane::nccl || comm_.engine.processes > 1))
      reason = format_text("options.data is \"{}\"", named_);
    if (reason.empty()) reason = p == plane::engine ? "direct needs no copy" : "all data stays on devices";
    why_ += format_text("{}{}: {}", why_.empty() ? "" : "; ", name, reason);
  }
  why_ += indirect_;
}

plane devices::packed_between(int32_t from, int32_t to, bool there) const {
  const plane p = between(from, to, there, any_size);
  return p == plane::host ? plane::staged : p == plane::direct ? plane::engine : p;
}

plane devices::between(int32_t from, int32_t to, bool there, size_t bytes) const {
  if (seats_.empty()) return plane::host;  // a dry communicator
  const seat &a = at(from), &b = at(to);
  if (a.peers == nullptr && b.peers == nullptr) return plane::host;
  if (a.peers != b.peers || !there || named_ == "staged") return plane::staged;
  if (named_ == "engine" || a.linked[static_cast<size_t>(to)] == 0) return plane::engine;
  const bool at_once = a.device == b.device || named_ == "direct" || bytes <= written_across;
  return at_once ? plane::direct : plane::engine;
}

bool devices::reaches(int32_t seat_number, const void* pointer, const std::string& name, bool& on_host) const {
  on_host = false;
  if (!has(seat_number)) return false;
  const seat& s = at(seat_number);
  lockstep_memory kind = LOCKSTEP_HOST;
  const lockstep_peer_table* owner = nullptr;
  int32_t device = -1;
  require_ok(lockstep_peers_locate(pointer, &kind, &owner, &device));
  on_host = kind == LOCKSTEP_HOST || kind == LOCKSTEP_PINNED;
  const bool own = kind == LOCKSTEP_MANAGED || (kind == LOCKSTEP_DEVICE && owner == s.peers && device == s.device);
  if (!own && (named_ == "direct" || named_ == "engine" || named_ == "nccl"))
    fail(LOCKSTEP_INVALID_ARGUMENT,
         "{}.data is {}, but rank {} is on {} and the communicator's data plane is \"{}\"; pass memory of that device, "
         "or "
         "make the communicator with data \"staged\"",
         name, kind == LOCKSTEP_DEVICE ? format_text("memory of device {}", device) : "host memory",
         comm_.first() + seat_number, s.name, named_);
  return own;
}

// ---- streams and memory ----------------------------------------------------

void devices::make(seat& s) const {
  require_ok(s.peers->stream_create(s.device, &s.own));
  for (void*& copies : s.copies) require_ok(s.peers->stream_create(s.device, &copies));
  for (void** event : {&s.ready, &s.joined, &s.ended}) require_ok(s.peers->event_create(s.device, event));
  s.now = s.own;
}

void devices::drop(seat& s) const {
  if (s.peers == nullptr) return;
  for (slot& one : s.ring) {
    if (one.data != nullptr)
      static_cast<void>(lockstep_free(comm_.context, s.name.c_str(), LOCKSTEP_DEVICE, s.slot_bytes, one.data));
    for (void* event : {one.full, one.free})
      if (event != nullptr) s.peers->event_destroy(s.device, event);
  }
  s.ring.clear();
  if (s.own != nullptr) static_cast<void>(lockstep_release_stream(comm_.context, s.name.c_str(), s.own));
  for (void* stream : {s.own, s.copies[0], s.copies[1]})
    if (stream != nullptr) s.peers->stream_destroy(s.device, stream);
  for (void* event : {s.ready, s.joined, s.ended})
    if (event != nullptr) s.peers->event_destroy(s.device, event);
}

// Memory that a stuck device may still write to is not freed.
devices::~devices() {
  if (!any()) return;
  try {
    if (quiet())
      for (seat& s : seats_) drop(s);
    else
      comm_.kept.abandon();
  } catch (...) {  // the device is lost
    comm_.kept.abandon();
  }
}

// Long bands, because each costs its copy engine some microseconds.
size_t devices::band_bytes() const {
  return static_cast<size_t>(comm_.message_bytes_given ? comm_.message_bytes : 64 << 20);
}

void devices::grow(seat& s, size_t bytes) {
  bytes = (std::min(bytes, band_bytes()) + 255) / 256 * 256;
  if (bytes <= s.slot_bytes || comm_.dry) return;
  finish();  // the old slots may be in use
  s.ring.resize(slots);
  for (slot& one : s.ring) {
    if (one.data != nullptr)
      static_cast<void>(lockstep_free(comm_.context, s.name.c_str(), LOCKSTEP_DEVICE, s.slot_bytes,
                                      std::exchange(one.data, nullptr)));
    for (void** event : {&one.full, &one.free})
      if (*event == nullptr) require_ok(s.peers->event_create(s.device, event));
    one.used = false;
  }
  s.slot_bytes = 0;
  for (slot& one : s.ring) {
    void* data = nullptr;
    require_ok(lockstep_alloc(comm_.context, s.name.c_str(), LOCKSTEP_DEVICE, bytes, &data));
    one.data = static_cast<char*>(data);
  }
  s.slot_bytes = bytes;
}

bool devices::writes(int32_t from, int32_t to, const void* pointer) const {
  const seat &a = at(from), &b = at(to);
  constexpr size_t whole = offsetof(lockstep_peer_table, writes) + sizeof a.peers->writes;
  return a.peers != nullptr && a.peers == b.peers && a.peers->size >= whole && a.peers->writes != nullptr &&
         a.peers->writes(a.device, pointer) != 0;
}

// The memory of another device may turn out to be closed to writes, so direct needs a ring there, too.
void devices::reserve(int32_t from, int32_t to, plane p, size_t bytes) {
  if (p == plane::engine || (p == plane::direct && !on_one(from, to)))
    for (const int32_t s : {from, to}) grow(at(s), bytes);
  if (p == plane::staged && between_.bytes() < std::min(bytes, static_cast<size_t>(comm_.message_bytes)))
    between_ = host_memory(comm_, std::min(bytes, static_cast<size_t>(comm_.message_bytes)));
}

void devices::begin(const std::vector<void*>& streams) {
  for (size_t s = 0; s < seats_.size(); ++s) seats_[s].now = streams[s] != nullptr ? streams[s] : seats_[s].own;
  for (seat& s : seats_)
    if (s.peers != nullptr) require_ok(s.peers->record(s.device, s.now, s.ready));
}

void* devices::stream_of(int32_t seat) const {
  return static_cast<size_t>(seat) < seats_.size() ? at(seat).now : nullptr;
}

void devices::await_last(int32_t seat) const {
  if (has(seat) && at(seat).busy) require_ok(at(seat).peers->wait(at(seat).device, at(seat).now, at(seat).ended));
}

void devices::await_ready(int32_t by, int32_t owner) {
  const seat& a = at(by);
  require_ok(a.peers->wait(a.device, a.now, at(owner).ready));
  at(by).sent_to[static_cast<size_t>(owner)] = 1;
}

void devices::join() {
  for (seat& a : seats_) {
    a.moves.clear(), a.own_shares.clear();  // those that a failure has left
    if (a.peers == nullptr) continue;
    if (a.copying)  // later work of the sender's stream comes after its copies, too
      for (const slot& one : a.ring)
        if (one.used) require_ok(a.peers->wait(a.device, a.now, one.free));
    a.copying = false;
    if (std::find(a.sent_to.begin(), a.sent_to.end(), 1) != a.sent_to.end())
      require_ok(a.peers->record(a.device, a.now, a.joined));
  }
  for (seat& a : seats_)
    for (size_t b = 0; b < a.sent_to.size(); ++b) {
      if (a.sent_to[b] == 0) continue;
      a.sent_to[b] = 0;
      const seat& to = seats_[b];
      require_ok(to.peers->wait(to.device, to.now, a.joined));
    }
}

void devices::end() {
  for (seat& s : seats_) {
    if (s.peers == nullptr) continue;
    require_ok(s.peers->record(s.device, s.now, s.ended));
    s.busy = true;
  }
}

// Whether all executions are done by the deadline.
bool devices::quiet() {
  const auto since = std::chrono::steady_clock::now();
  for (seat& s : seats_)
    while (s.busy) {
      int done = 0;
      require_ok(s.peers->passed(s.device, s.ended, &done));
      if (done == 0) comm_.links->check();
      const auto waited = std::chrono::steady_clock::now() - since;
      if (done != 0)
        s.busy = false;
      else if (comm_.timeout_ms >= 0 && waited > std::chrono::milliseconds(comm_.timeout_ms))
        return false;
      else if (waited < std::chrono::milliseconds(10))  // a sleep takes longer than it is asked to
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  return true;
}

void devices::finish() {
  if (quiet() || comm_.closed != LOCKSTEP_OK) return;
  for (int32_t s = 0; s < comm_.seats; ++s)
    if (at(s).busy) {
      comm_.links->give_up(s);
      comm_.close(LOCKSTEP_RANK_LOST,
                  format_text("rank {} on {} did not finish its work in {} ms: find out what its stream waits for",
                              comm_.first() + s, at(s).name, comm_.timeout_ms));
    }
}

}  // namespace lockstep::ranks
