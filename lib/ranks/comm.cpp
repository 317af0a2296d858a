// comm.cpp - see comm.hpp.
#include "comm.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

#include "devices.hpp"
#include "links.hpp"

namespace lockstep::ranks {

constexpr uint64_t magic = 0x6C6F636B73746570;  // "lockstep"
using clock = std::chrono::steady_clock;

const char* kind_name(kind k) {
  switch (k) {
    case kind::create: return "lockstep_comm_create";
    case kind::agree:
    case kind::details: return "the making of a plan";
    case kind::permute: return "a permute";
    case kind::reduce: return "a reduction";
    case kind::stencil: return "a stencil";
    case kind::halo: return "a halo exchange";
    case kind::closing: return "a closed communicator";
  }
  return "an unknown call";
}

namespace {
std::string words(uint64_t what) {
  const auto k = static_cast<kind>(what >> 56);
  const uint64_t plan = what >> 32 & 0xFFFFFF, execution = what >> 8 & 0xFFFFFF;
  if (k == kind::agree || k == kind::details || k == kind::create)
    return format_text("{} or a synchronisation (number {})", kind_name(k), execution);
  return format_text("{} (plan {}, execution {}, step {})", kind_name(k), plan, execution, what & 0xFF);
}

// "missing 3 7": the message to the other processes after a deadline has passed.
std::vector<int32_t> missing_in(const std::string& text) {
  std::vector<int32_t> all;
  if (text.rfind("missing", 0) != 0) return all;
  for (const char* at = text.c_str() + 7; *at == ' ';) {
    char* end = nullptr;
    all.push_back(static_cast<int32_t>(std::strtol(at + 1, &end, 10)));
    at = end;
  }
  return all;
}

// A message that its receivers must be able to read even after this process has freed its memory.
struct closing_message {
  header head;
  char text[text_bytes];
};
}  // namespace
}  // namespace lockstep::ranks

using namespace lockstep;
using namespace lockstep::ranks;

lockstep_comm::lockstep_comm()
    : devices(std::make_unique<lockstep::ranks::devices>(*this)),
      links(std::make_unique<lockstep::ranks::links>(*this)) {}
lockstep_comm::~lockstep_comm() {
  links->close();
  devices.reset();  // its end asks the links
}

int32_t lockstep_comm::process_of(int32_t rank) const {
  return static_cast<int32_t>(std::upper_bound(first_rank.begin(), first_rank.end(), rank) - first_rank.begin()) - 1;
}

std::string lockstep_comm::name_of(int32_t process) const {
  const int32_t low = first_rank[static_cast<size_t>(process)], high = first_rank[static_cast<size_t>(process) + 1] - 1;
  return low == high ? format_text("rank {}", low) : format_text("ranks {} to {}", low, high);
}

lockstep_options lockstep_comm::options_of(int32_t seat) const {
  lockstep_options options = lockstep_options_defaults();
  const std::string& name = backends[static_cast<size_t>(seat)];
  options.backend = name.empty() ? nullptr : name.c_str();
  options.stream = devices->stream_of(seat);
  if (devices->has(seat)) options.flags |= LOCKSTEP_ASYNC;
  return options;
}

void lockstep_comm::require_open() const {
  if (closed != LOCKSTEP_OK) fail(closed, "the communicator is closed: {}", reason);
}

void lockstep_comm::send(int32_t process, const void* data, size_t bytes, std::vector<pending>& requests) {
  pending p{process, nullptr, nullptr};
  const int result = engine.isend(engine.user, process, data, bytes, &p.request);
  if (result != 0)
    close(LOCKSTEP_RANK_LOST,
          format_text("sending {} bytes to {} failed: {}", bytes, name_of(process), engine.error(engine.user, result)));
  requests.push_back(p);
}

void lockstep_comm::receive(int32_t process, void* data, size_t bytes, std::vector<pending>& requests) {
  pending p{process, nullptr, data};
  const int result = engine.irecv(engine.user, process, data, bytes, &p.request);
  if (result != 0)
    close(LOCKSTEP_RANK_LOST, format_text("receiving {} bytes from {} failed: {}", bytes, name_of(process),
                                          engine.error(engine.user, result)));
  requests.push_back(p);
}

namespace lockstep::ranks {

bool arrivals::all_done() const {
  return std::all_of(requests_.begin(), requests_.end(), [](const pending& p) { return p.done; });
}

bool arrivals::test() {
  bool any = false;
  for (size_t i = 0; i < requests_.size(); ++i) {
    pending& r = requests_[i];
    if (r.done) continue;
    // Messages from one process stand together in requests_ and count in that order, even if a later one comes between
    // two looks.
    const auto receives = [&](const pending& p) { return p.data != nullptr && p.process == r.process; };
    if (i > 0 && !requests_[i - 1].done && receives(requests_[i - 1]) && receives(r)) continue;
    if (r.reached != nullptr) {
      r.done = (*r.reached)();
      any = any || r.done;
      continue;
    }
    int done = 0;
    const int result = comm_.engine.test(comm_.engine.user, &r.request, &done, &r.received);
    if (result == LOCKSTEP_ENGINE_TRUNCATED)
      comm_.close(LOCKSTEP_MISMATCH, format_text("{} sent a longer message than this call has; make the same calls in "
                                                 "the same order on every rank",
                                                 comm_.name_of(r.process)));
    if (result != 0)
      comm_.close(LOCKSTEP_RANK_LOST,
                  format_text("a message between this process and {} failed: {}", comm_.name_of(r.process),
                              comm_.engine.error(comm_.engine.user, result)));
    if (done == 0) continue;
    r.done = any = true;
    arrived_(i);
  }
  return any;
}

bool arrivals::await_ready() { return all_done(); }

void arrivals::await_suspend(std::coroutine_handle<> rest) {
  rest_ = rest;
  comm_.waiting = this;
}

void arrivals::await_resume() {
  comm_.waiting = nullptr;
  if (failed_) std::rethrow_exception(failed_);
}

}  // namespace lockstep::ranks

bool lockstep_comm::drive(task& t, bool to_end) {
  auto since = clock::now();
  if (waiting == nullptr) t.resume();
  while (!t.done()) {
    arrivals& now = *waiting;
    bool any = false;
    try {
      any = now.test();
      const bool silent = timeout_ms >= 0 && clock::now() - since > std::chrono::milliseconds(timeout_ms);
      if (!any && to_end && silent) {
        std::set<int32_t> missed;
        for (const pending& r : now.requests_)
          if (!r.done) missed.insert(r.process);
        lost(missed, -1);
      }
    } catch (...) {
      now.failed_ = std::current_exception();
    }
    const bool over = now.failed_ || now.all_done();
    if (over) now.rest_.resume();
    if (any || over) {
      since = clock::now();
    } else if (!to_end) {
      return false;
    } else if ((engine.flags & LOCKSTEP_ENGINE_GIVES_WAY) != 0) {
      continue;
    } else if (clock::now() - since < std::chrono::microseconds(100)) {
      // Ranks may outnumber the processors, so a waiting rank first yields, then sleeps. By the clock: where others
      // want the processor too, a yield lasts until they have had it.
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return true;
}

void lockstep_comm::run(task t) {
  progress(true);
  require_open();
  drive(t, true);
  t.result();
}

// Finds which rank is lost. A process that waits for a lost rank sends nothing either, so silence alone proves nothing.
// So every process first tells all others that it is alive and whom it is missing, then listens for a moment. The lost
// ranks are those that are silent even then. told_by: the process that started this, or -1.
void lockstep_comm::lost(std::set<int32_t> missed, int32_t told_by) {
  const bool named_here = missed.erase(engine.process) != 0;
  std::vector<pending> none, &requests = waiting != nullptr ? waiting->requests_ : none;
  if (missed.empty())
    for (const pending& r : requests)
      if (!r.done && r.process != told_by) missed.insert(r.process);
  std::string list = "missing";
  for (const int32_t p : missed) list += format_text(" {}", p);
  tell_all(list, LOCKSTEP_RANK_LOST);

  std::set<int32_t> alive, others;
  failure cause;  // of a process that has closed the communicator, unheard as only sends to it were open
  if (told_by >= 0) alive.insert(told_by);
  std::vector<pending> listeners;
  const auto listen_to = [&](int32_t process) {
    // Never freed, because the transport may still write into it.
    pending l{process, nullptr, std::malloc(sizeof(closing_message))};
    if (l.data == nullptr) return;
    if (engine.irecv(engine.user, process, const_cast<void*>(l.data), sizeof(closing_message), &l.request) == 0)
      listeners.push_back(l);
  };
  const auto listen = [&](pending& r) {
    int done = 0;
    if (r.done || r.reached != nullptr) return;
    const int result = engine.test(engine.user, &r.request, &done, &r.received);
    r.done = done != 0 || result != 0;
    if (!r.done || r.data == nullptr) return;
    const auto* m = static_cast<const closing_message*>(r.data);
    if (result != 0 || r.received < sizeof(closing_message) || m->head.magic != magic ||
        m->head.what >> 56 != static_cast<uint64_t>(kind::closing))
      return listen_to(r.process);  // an earlier message; the sign of life comes after it
    alive.insert(r.process);
    const std::string told(m->text, strnlen(m->text, text_bytes));
    const std::vector<int32_t> theirs = missing_in(told);
    others.insert(theirs.begin(), theirs.end());
    if (theirs.empty() && told.rfind("missing", 0) != 0)
      cause.note(static_cast<lockstep_status>(m->head.status), r.process,
                 format_text("{}: {}", name_of(r.process), told));
  };
  for (int32_t p = 0; p < engine.processes; ++p) {
    bool listened_to = p == engine.process || p == told_by;
    for (const pending& r : requests) listened_to = listened_to || (r.process == p && r.data != nullptr && !r.done);
    if (!listened_to) listen_to(p);
  }
  const auto until = clock::now() + std::chrono::milliseconds(std::clamp<int64_t>(timeout_ms, 20, 600));
  while (clock::now() < until) {
    for (pending& r : requests) listen(r);
    for (size_t i = 0; i < listeners.size(); ++i) {
      pending l = listeners[i];
      listen(l);
      listeners[i] = l;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (cause.any()) {
    shut(cause.status, cause.text);
    if ((flags & LOCKSTEP_ABORT_ON_LOSS) != 0 && engine.abort != nullptr) engine.abort(engine.user, reason.c_str());
    fail(closed, "{}. The communicator is closed: make another one", reason);
  }
  std::set<int32_t> named;
  for (const auto* from : {&missed, &others})
    for (const int32_t p : *from)
      if (alive.count(p) == 0 && p != engine.process && p >= 0 && p < engine.processes) named.insert(p);
  if (named.empty() && !named_here) named = missed;
  std::vector<std::string> names;
  names.reserve(named.size());
  for (const int32_t p : named) names.push_back(name_of(p));
  std::string why = named.empty()
                        ? format_text("{} waited in vain for {}, which is this process",
                                      told_by >= 0 ? name_of(told_by) : "another rank", name_of(engine.process))
                        : format_text("{} did not answer for {} ms", joined(names, ", "), timeout_ms);
  shut(LOCKSTEP_RANK_LOST, std::move(why));
  if ((flags & LOCKSTEP_ABORT_ON_LOSS) != 0 && engine.abort != nullptr) engine.abort(engine.user, reason.c_str());
  fail(LOCKSTEP_RANK_LOST,
       "{}; find out why, or give a longer timeout_ms. The communicator is closed: make another one", reason);
}

void lockstep_comm::tell_all(const std::string& text, lockstep_status status) {
  for (int32_t p = 0; p < engine.processes; ++p) {
    if (p == engine.process) continue;
    auto* m = static_cast<closing_message*>(std::malloc(sizeof(closing_message)));  // never freed: nothing waits for it
    if (m == nullptr) continue;
    *m = {};
    m->head = {magic, sent[static_cast<size_t>(p)]++, what_of(kind::closing, 0, 0, 0), text_bytes, -1, status, first()};
    std::strncpy(m->text, text.c_str(), text_bytes - 1);
    void* request = nullptr;
    if (engine.isend(engine.user, p, m, sizeof *m, &request) != 0) continue;
    int done = 0;
    size_t none = 0;
    if (engine.test(engine.user, &request, &done, &none) == 0 && done != 0) std::free(m);
  }
}

void lockstep_comm::shut(lockstep_status status, std::string why) {
  closed = status;
  reason = std::move(why);
  links->abort();
}

void lockstep_comm::close(lockstep_status status, std::string text) {
  if (closed == LOCKSTEP_OK) {
    closed = status;  // what follows may fail, too
    tell_all(text, status);
    shut(status, std::move(text));
    if ((flags & LOCKSTEP_ABORT_ON_LOSS) != 0 && engine.abort != nullptr) engine.abort(engine.user, reason.c_str());
  }
  fail(closed, "{}. The communicator is closed: make another one", reason);
}

header lockstep_comm::next_header(int32_t process, uint64_t what, const failure& so_far) {
  return {magic, sent[static_cast<size_t>(process)]++, what, 0, -1, so_far.status, so_far.rank};
}

void lockstep_comm::check(int32_t process, const void* message, size_t received_bytes, uint64_t what, failure& so_far) {
  header head;
  const std::string from = name_of(process);
  if (received_bytes < sizeof head)
    close(LOCKSTEP_RANK_LOST, format_text("{} bytes arrived from {}, fewer than a message has", received_bytes, from));
  std::memcpy(&head, message, sizeof head);
  if (head.magic != magic)
    close(LOCKSTEP_RANK_LOST, format_text("what arrived from {} is no message of this library", from));
  const char* text = static_cast<const char*>(message) + sizeof head;
  const size_t text_length = strnlen(text, received_bytes - sizeof head);
  if (head.what >> 56 == static_cast<uint64_t>(kind::closing)) {
    const std::string told(text, text_length);
    const std::vector<int32_t> missing = missing_in(told);
    if (!missing.empty()) lost({missing.begin(), missing.end()}, process);
    shut(static_cast<lockstep_status>(head.status), format_text("{}: {}", from, told));
    fail(closed, "{}. The communicator is closed: make another one", reason);
  }
  const uint64_t expected = received[static_cast<size_t>(process)]++;
  if (head.sequence != expected)
    close(LOCKSTEP_RANK_LOST,
          format_text("message {} from {} arrived where message {} was due", head.sequence, from, expected));
  if (head.what != what)
    close(LOCKSTEP_MISMATCH,
          format_text("{} is in {} where {} is in {}; make the same calls in the same order on every rank", from,
                      words(head.what), name_of(engine.process), words(what)));
  if (head.bytes != received_bytes - sizeof head)
    close(LOCKSTEP_RANK_LOST,
          format_text("{} of {} bytes of a message from {} arrived", received_bytes - sizeof head, head.bytes, from));
  if (head.status != LOCKSTEP_OK)
    so_far.note(static_cast<lockstep_status>(head.status), head.rank, std::string(text, text_length));
}
