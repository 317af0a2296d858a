// closing.cpp - the end of a communicator: ranks that are lost, failures that close it for all, and processes that
// leave.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <set>
#include <thread>

#include "comm.hpp"
#include "links.hpp"

namespace lockstep::ranks {

using clock = std::chrono::steady_clock;

namespace {
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

closing_message closing(int32_t of_rank, const std::string& text, lockstep_status status) {
  closing_message m{};
  m.head = {magic, 0, what_of(kind::closing, 0, 0, 0), text_bytes, -1, status, of_rank};
  std::strncpy(m.text, text.c_str(), text_bytes - 1);
  return m;
}

// A process that leaves in good order says OK; to one that still waits for it, it is lost.
lockstep_status status_of(const header& head) {
  return head.status == LOCKSTEP_OK ? LOCKSTEP_RANK_LOST : static_cast<lockstep_status>(head.status);
}

constexpr const char* left =
    "it has destroyed its communicator; destroy communicators after the last call on every rank";
}  // namespace
}  // namespace lockstep::ranks

using namespace lockstep;
using namespace lockstep::ranks;

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
      cause.note(status_of(m->head), r.process, format_text("{}: {}", name_of(origin(r.process, m->head)), told));
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

void lockstep_comm::tell(int32_t process, int32_t of_rank, const std::string& text, lockstep_status status) {
  auto* m = static_cast<closing_message*>(std::malloc(sizeof(closing_message)));  // never freed: nothing waits for it
  if (m == nullptr) return;
  *m = closing(of_rank, text, status);
  void* request = nullptr;
  if (engine.isend(engine.user, process, m, sizeof *m, &request) != 0) return;
  int done = 0;
  size_t none = 0;
  if (engine.test(engine.user, &request, &done, &none) == 0 && done != 0) std::free(m);
}

void lockstep_comm::tell_all(const std::string& text, lockstep_status status) {
  for (int32_t p = 0; p < engine.processes; ++p)
    if (p != engine.process) tell(p, first(), text, status);
}

// The processes that wait for this one (direction 1), or that it waits for (-1): in plans, and in the rounds of an
// agreement.
std::set<int32_t> lockstep_comm::neighbours(const std::set<int32_t>& by_plans, int32_t direction) const {
  std::set<int32_t> all = by_plans;
  const int64_t p = engine.processes;
  for (int64_t step = 1; step < p; step *= 2)
    all.insert(static_cast<int32_t>((engine.process + direction * step + p) % p));
  all.erase(engine.process);
  return all;
}

std::set<int32_t> lockstep_comm::everyone() const {
  std::set<int32_t> all = neighbours(sends_to, 1);
  all.merge(neighbours(hears_from, -1));
  return all;
}

// Who made the first of the closing messages that led to this one.
int32_t lockstep_comm::origin(int32_t process, const header& head) const {
  return head.rank >= 0 && head.rank < ranks() ? process_of(head.rank) : process;
}

void lockstep_comm::heard_of_the_end(int32_t process, const header& head, const std::string& text) {
  const std::vector<int32_t> missing = missing_in(text);
  if (!missing.empty()) lost({missing.begin(), missing.end()}, process);
  const int32_t source = origin(process, head);
  closed = status_of(head);
  // Others may wait for this process, or send to it, and not to the one that closed it. That one may wait for all to
  // leave.
  for (const int32_t q : everyone()) tell(q, head.rank, text, closed);
  shut(closed, format_text("{}: {}", name_of(source), text));
  fail(closed, "{}. The communicator is closed: make another one", reason);
}

void lockstep_comm::look_for_the_end(const std::vector<pending>& requests) {
  if (engine.peek == nullptr) return;
  std::set<int32_t> sent_to;
  for (const pending& r : requests)
    if (!r.done && r.reached == nullptr && r.data == nullptr) sent_to.insert(r.process);
  for (const pending& r : requests)
    if (!r.done && r.data != nullptr) sent_to.erase(r.process);
  for (const int32_t q : sent_to) {
    if (const auto since = gone.find(q); since != gone.end() && clock::now() - since->second > std::chrono::seconds(1))
      heard_of_the_end(q, {magic, 0, 0, 0, -1, LOCKSTEP_OK, first_rank[static_cast<size_t>(q)]}, left);
    int found = 0;
    size_t bytes = 0;
    if (engine.peek(engine.user, q, &found, &bytes) != 0 || found == 0 || bytes != sizeof(closing_message)) continue;
    std::vector<char> message(bytes);
    void* request = nullptr;
    if (engine.irecv(engine.user, q, message.data(), bytes, &request) != 0) continue;
    int done = 0;
    while (done == 0 && engine.test(engine.user, &request, &done, &bytes) == 0) {
    }
    header head;
    std::memcpy(&head, message.data(), sizeof head);
    if (head.magic != magic || head.what >> 56 != static_cast<uint64_t>(kind::closing) || head.status == LOCKSTEP_OK) {
      // Of a later step, or from one that has left: perhaps after it took what is being sent to it.
      if (head.magic == magic && head.what >> 56 == static_cast<uint64_t>(kind::closing)) gone.emplace(q, clock::now());
      early[q].push_back(std::move(message));
      continue;
    }
    const char* text = message.data() + sizeof head;
    heard_of_the_end(q, head, std::string(text, strnlen(text, text_bytes)));
  }
}

void lockstep_comm::leave(const std::string& why) {
  if (closed != LOCKSTEP_OK) return;
  closed = LOCKSTEP_RANK_LOST;
  if (!dry)
    for (const int32_t q : everyone()) tell(q, first(), "it has left: " + why, closed);
  shut(closed, "this process has left: " + why);
}

// While this process leaves, that one has sent a message of a call, which cannot succeed. Those that leave too must not
// wait for this process either.
void lockstep_comm::leave_behind(int32_t process) {
  shut(LOCKSTEP_RANK_LOST, format_text("{} is still in a call", name_of(process)));
  for (const int32_t q : everyone()) tell(q, first(), left, closed);
  fail(closed, "{}", reason);
}

task lockstep_comm::farewell() {
  leaving = true;
  // Kept alive after a failure, because the transport may still use them.
  auto notes = std::make_unique<std::deque<closing_message>>();
  std::vector<pending> requests;
  try {
    const std::set<int32_t> from = everyone();
    for (const int32_t q : from) receive(q, &notes->emplace_back(), sizeof(closing_message), requests);
    for (const int32_t q : from)
      send(q, &notes->emplace_back(closing(first(), left, LOCKSTEP_OK)), sizeof(closing_message), requests);
    arrivals all(*this, requests, [&](size_t i) {
      if (i >= from.size()) return;
      const closing_message& m = (*notes)[i];
      if (requests[i].received == sizeof m && m.head.magic == magic && m.head.what == what_of(kind::closing, 0, 0, 0) &&
          m.head.status == LOCKSTEP_OK)
        return;
      leave_behind(requests[i].process);
    });
    co_await all;
  } catch (...) {
    static_cast<void>(notes.release());
    throw;
  }
  failure none, told;
  uint64_t low[2] = {0, 0}, high[2] = {0, 0};
  task all_left = worst(none, low, high, told);  // only then has every process heard from its neighbours
  co_await all_left;
}

bool lockstep_comm::leave_together() noexcept {
  if (closed != LOCKSTEP_OK) return false;
  if (dry || engine.processes == 1) return true;
  try {
    if ((engine.flags & LOCKSTEP_ENGINE_CLOSES_TOGETHER) != 0)
      run(farewell());
    else
      for (const int32_t q : everyone()) tell(q, first(), left, LOCKSTEP_OK);
    return true;
  } catch (const error&) {
    if (closed == LOCKSTEP_OK) shut(LOCKSTEP_RANK_LOST, "not all processes have destroyed it");
  } catch (const std::bad_alloc&) {
    shut(LOCKSTEP_RANK_LOST, "out of host memory");
  }
  return false;
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
