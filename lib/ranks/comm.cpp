// comm.cpp - see comm.hpp.
#include "comm.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

#include "../mutant.hpp"

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

// "missing 3 7" is what a process tells the others when its deadline has passed.
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

// A message that must be read by whoever waits, whatever becomes of this process's memory.
struct closing_message {
  header head;
  char text[text_bytes];
};
}  // namespace
}  // namespace lockstep::ranks

using namespace lockstep;
using namespace lockstep::ranks;

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

void lockstep_comm::wait(std::vector<pending>& requests, const std::function<void(size_t)>& arrived) {
  auto since = clock::now();
  waiting = &requests;
  const std::unique_ptr<lockstep_comm, void (*)(lockstep_comm*)> no_longer(
      this, [](lockstep_comm* comm) { comm->waiting = nullptr; });
  for (int64_t idle = 0;; ++idle) {
    bool all = true;
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].done) continue;
      int done = 0;
      const int result = engine.test(engine.user, &requests[i].request, &done, &requests[i].received);
      if (result == LOCKSTEP_ENGINE_TRUNCATED)
        close(LOCKSTEP_MISMATCH, format_text("{} sent a longer message than this call has; make the same calls in the "
                                             "same order on every rank",
                                             name_of(requests[i].process)));
      if (result != 0)
        close(LOCKSTEP_RANK_LOST, format_text("a message between this process and {} failed: {}",
                                              name_of(requests[i].process), engine.error(engine.user, result)));
      if (done == 0) {
        all = false;
        continue;
      }
      requests[i].done = true;
      arrived(i);
      since = clock::now();
      idle = 0;
    }
    if (all) return;
    // Ranks may outnumber the processors: whoever waits gives way, first for a turn, then for longer.
    if (idle < 200)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (timeout_ms >= 0 && clock::now() - since > std::chrono::milliseconds(timeout_ms) &&
        !LOCKSTEP_MUTANT("ranks_deadline_ignored")) {
      std::set<int32_t> silent;
      for (const pending& r : requests)
        if (!r.done) silent.insert(r.process);
      lost(silent, -1);
    }
  }
}

// Who waits for a rank that is gone is silent itself. So everyone tells everyone first that it is alive and whom it
// misses, and for a moment listens: named is who stays silent even then. told_by: the process that was first, or -1.
void lockstep_comm::lost(std::set<int32_t> missed, int32_t told_by) {
  const bool named_here = missed.erase(engine.process) != 0;
  std::vector<pending> none, &requests = waiting != nullptr ? *waiting : none;
  if (missed.empty())
    for (const pending& r : requests)
      if (!r.done && r.process != told_by) missed.insert(r.process);
  std::string list = "missing";
  for (const int32_t p : missed) list += format_text(" {}", p);
  tell_all(list, LOCKSTEP_RANK_LOST);

  std::set<int32_t> alive, others;
  if (told_by >= 0) alive.insert(told_by);
  std::vector<pending> listeners;
  const auto listen_to = [&](int32_t process) {
    // Never freed: the transport may write into it later.
    pending l{process, nullptr, std::malloc(sizeof(closing_message))};
    if (l.data == nullptr) return;
    if (engine.irecv(engine.user, process, const_cast<void*>(l.data), sizeof(closing_message), &l.request) == 0)
      listeners.push_back(l);
  };
  const auto listen = [&](pending& r) {
    int done = 0;
    if (r.done) return;
    const int result = engine.test(engine.user, &r.request, &done, &r.received);
    r.done = done != 0 || result != 0;
    if (!r.done || r.data == nullptr) return;
    const auto* m = static_cast<const closing_message*>(r.data);
    if (result != 0 || r.received < sizeof(closing_message) || m->head.magic != magic ||
        m->head.what >> 56 != static_cast<uint64_t>(kind::closing))
      return listen_to(r.process);  // sent before; a sign of life is what follows
    alive.insert(r.process);
    for (const int32_t p : missing_in(m->text)) others.insert(p);
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
  std::set<int32_t> named;
  for (const auto* from : {&missed, &others})
    for (const int32_t p : *from)
      if (alive.count(p) == 0 && p != engine.process && p >= 0 && p < engine.processes) named.insert(p);
  if (named.empty() && !named_here) named = missed;
  std::vector<std::string> names;
  for (const int32_t p : named) names.push_back(name_of(p));
  closed = LOCKSTEP_RANK_LOST;
  reason = named.empty() ? format_text("{} waited in vain for {}, which is this process",
                                       told_by >= 0 ? name_of(told_by) : "another rank", name_of(engine.process))
                         : format_text("{} gave no sign for {} ms", joined(names, ", "), timeout_ms);
  if ((flags & LOCKSTEP_ABORT_ON_LOSS) != 0 && engine.abort != nullptr) engine.abort(engine.user, reason.c_str());
  fail(LOCKSTEP_RANK_LOST,
       "{}; see what became of it, or give a longer timeout_ms. The communicator is closed: make another one", reason);
}

void lockstep_comm::tell_all(const std::string& text, lockstep_status status) {
  for (int32_t p = 0; p < engine.processes; ++p) {
    if (p == engine.process) continue;
    auto* m = static_cast<closing_message*>(std::malloc(sizeof(closing_message)));  // parked: nobody waits for it
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

void lockstep_comm::close(lockstep_status status, std::string text) {
  if (closed == LOCKSTEP_OK) {
    closed = status;
    reason = std::move(text);
    tell_all(reason, status);
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
    closed = static_cast<lockstep_status>(head.status);
    reason = format_text("{}: {}", from, told);
    fail(closed, "{}. The communicator is closed: make another one", reason);
  }
  const uint64_t expected = received[static_cast<size_t>(process)]++;
  if (head.sequence != expected)
    close(LOCKSTEP_RANK_LOST,
          format_text("message {} from {} arrived where message {} was due", head.sequence, from, expected));
  if (head.what != what && !LOCKSTEP_MUTANT("ranks_header_unchecked"))
    close(LOCKSTEP_MISMATCH,
          format_text("{} is in {} where {} is in {}; make the same calls in the same order on every rank", from,
                      words(head.what), name_of(engine.process), words(what)));
  if (head.bytes != received_bytes - sizeof head)
    close(LOCKSTEP_RANK_LOST,
          format_text("{} of {} bytes of a message from {} arrived", received_bytes - sizeof head, head.bytes, from));
  if (head.status != LOCKSTEP_OK)
    so_far.note(static_cast<lockstep_status>(head.status), head.rank, std::string(text, text_length));
}

namespace {
// What processes tell each other to agree. Joining two is idempotent, so that it does not matter how often a record
// arrives: after ceil(log2 p) rounds everyone has what everyone had.
struct record {
  header head;
  uint64_t low[2], high[2];  // of the digests
  int32_t status, rank;      // the failed rank with the lowest number
  char text[text_bytes];

  void join(const record& other) {
    if (std::lexicographical_compare(other.low, other.low + 2, low, low + 2)) std::memcpy(low, other.low, sizeof low);
    if (std::lexicographical_compare(high, high + 2, other.high, other.high + 2))
      std::memcpy(high, other.high, sizeof high);
    if (other.status != LOCKSTEP_OK && (status == LOCKSTEP_OK || other.rank < rank)) {
      status = other.status;
      rank = other.rank;
      std::memcpy(text, other.text, sizeof text);
    }
  }
};

void digest_of(const described& d, uint64_t out[2]) {
  out[0] = 0xCBF29CE484222325u, out[1] = 0x9E3779B97F4A7C15u;
  for (const int64_t v : d.values)
    for (int k = 0; k < 2; ++k) {
      uint64_t x = out[k] ^ static_cast<uint64_t>(v);
      x *= k == 0 ? 0xFF51AFD7ED558CCDu : 0xC4CEB9FE1A85EC53u;
      out[k] = x ^ x >> 29;
    }
}
}  // namespace

failure lockstep_comm::worst(const failure& own, uint64_t* low, uint64_t* high) {
  if (dry) return own;
  const int32_t p = engine.processes, me = engine.process;
  const uint64_t number = agreements++;
  record mine{};
  std::memcpy(mine.low, low, sizeof mine.low);
  std::memcpy(mine.high, high, sizeof mine.high);
  mine.status = own.status;
  mine.rank = own.rank;
  std::strncpy(mine.text, own.text.c_str(), text_bytes - 1);
  // Parked where the communicator closes: the transport may still use them.
  auto buffers = std::make_unique<record[]>(2);
  try {
    uint64_t round = 0;
    for (int64_t step = 1; step < p; step *= 2, ++round) {
      const auto to = static_cast<int32_t>((me + step) % p), from = static_cast<int32_t>((me - step + p) % p);
      const uint64_t what = what_of(kind::agree, 0, number, round);
      std::vector<pending> requests;
      receive(from, &buffers[1], sizeof(record), requests);
      buffers[0] = mine;
      failure none;
      buffers[0].head = next_header(to, what, none);
      buffers[0].head.bytes = sizeof(record) - sizeof(header);
      send(to, &buffers[0], sizeof(record), requests);
      wait(requests, [&](size_t i) {
        if (i != 0) return;
        failure poison;
        check(from, &buffers[1], requests[0].received, what, poison);
        mine.join(buffers[1]);
      });
      if (LOCKSTEP_MUTANT("ranks_agreement_skips_a_round") && step * 2 < p) step *= 2;
    }
  } catch (...) {
    buffers.release();
    throw;
  }
  std::memcpy(low, mine.low, sizeof mine.low);
  std::memcpy(high, mine.high, sizeof mine.high);
  failure all;
  if (mine.status != LOCKSTEP_OK) all.note(static_cast<lockstep_status>(mine.status), mine.rank, mine.text);
  return all;
}

void lockstep_comm::agree(const failure& own, const described& what) {
  uint64_t digest[2];
  digest_of(what, digest);
  uint64_t low[2] = {digest[0], digest[1]}, high[2] = {digest[0], digest[1]};
  if (own.any()) {  // its arguments are wrong in themselves: not to be compared
    low[0] = low[1] = UINT64_MAX;
    high[0] = high[1] = 0;
  }
  const failure all = worst(own, low, high);
  if (all.any()) {
    if (own.any()) throw error{own.status, own.text};
    fail(LOCKSTEP_RANK_FAILED, "rank {}: {}", all.rank, all.text);
  }
  if (low[0] == high[0] && low[1] == high[1]) return;

  // Ranks differ: process 0 sends what it has, each finds its first difference, and the lowest rank's is told.
  const uint64_t step = what_of(kind::details, 0, agreements, 0);
  failure difference;
  auto* parked = new std::vector<std::vector<char>>;
  const size_t bytes = what.values.size() * sizeof(int64_t);
  std::vector<pending> requests;
  if (engine.process == 0) {
    for (int32_t p = 1; p < engine.processes; ++p) {
      // The size goes first: descriptions differ in length too.
      for (const bool data : {false, true}) {
        auto& buffer = parked->emplace_back(sizeof(header) + (data ? bytes : 8));
        failure none;
        header head = next_header(p, step, none);
        head.bytes = buffer.size() - sizeof head;
        std::memcpy(buffer.data(), &head, sizeof head);
        const auto count = static_cast<uint64_t>(bytes);
        std::memcpy(buffer.data() + sizeof head, data ? static_cast<const void*>(what.values.data()) : &count,
                    data ? bytes : 8);
        send(p, buffer.data(), buffer.size(), requests);
      }
    }
    wait(requests, [](size_t) {});
  } else {
    failure none;
    const auto get = [&](size_t length) -> const char* {
      auto& buffer = parked->emplace_back(sizeof(header) + length);
      requests.clear();
      receive(0, buffer.data(), buffer.size(), requests);
      wait(requests, [](size_t) {});
      check(0, buffer.data(), requests[0].received, step, none);
      return buffer.data() + sizeof(header);
    };
    uint64_t length = 0;
    std::memcpy(&length, get(8), 8);
    const char* data = get(static_cast<size_t>(length));
    const size_t theirs = static_cast<size_t>(length) / sizeof(int64_t), ours = what.values.size();
    for (size_t i = 0; i < std::max(theirs, ours); ++i) {
      int64_t value = 0;
      if (i < theirs) std::memcpy(&value, data + i * sizeof value, sizeof value);
      if (i < theirs && i < ours && value == what.values[i]) continue;
      const std::string name = i < ours ? what.names[i] : "an argument that this rank lacks";
      difference.note(
          LOCKSTEP_MISMATCH, first(),
          i < ours && i < theirs
              ? format_text("{} is {} on rank {} and {} on rank 0; give the same on every rank", name, what.values[i],
                            first(), value)
              : format_text("{} is given on rank {} or on rank 0 only; give the same on every rank", name, first()));
      break;
    }
  }
  delete parked;
  uint64_t none[2] = {0, 0}, also_none[2] = {0, 0};
  const failure told = worst(difference, none, also_none);
  fail(LOCKSTEP_MISMATCH, "{}", told.any() ? told.text : "the ranks' arguments differ; give the same on every rank");
}
