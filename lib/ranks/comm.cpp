// comm.cpp - see comm.hpp.
#include "comm.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "devices.hpp"
#include "links.hpp"

namespace lockstep::ranks {

using clock = std::chrono::steady_clock;

const char* kind_name(kind k) {
  switch (k) {
    case kind::create: return "lockstep_comm_create";
    case kind::agree: return "the making of a plan";
    case kind::permute: return "a permute";
    case kind::reduce: return "a reduction";
    case kind::stencil: return "a stencil";
    case kind::halo: return "a halo exchange";
    case kind::closing: return "a closed communicator";
    case kind::synchronize: return "lockstep_ranks_synchronize";
    case kind::refuse: return "lockstep_ranks_refuse";
    case kind::destroy: return "lockstep_comm_destroy";
    case kind::reduce_blocks: return "a reduction by blocks";
    case kind::sums: return "sums of two arrays";
    case kind::mean_variance: return "a mean and a variance";
    case kind::reduce_several: return "several sums";
    case kind::halo_fields: return "a halo exchange of several fields";
    case kind::normalize: return "a normalization";
    case kind::scan: return "a scan";
  }
  return "an unknown call";
}

std::string kind_function(int64_t k) {
  switch (static_cast<kind>(k)) {
    case kind::permute: return "lockstep_ranks_permute";
    case kind::reduce: return "lockstep_ranks_reduce";
    case kind::stencil: return "lockstep_ranks_stencil";
    case kind::halo: return "lockstep_ranks_halo";
    case kind::reduce_blocks: return "lockstep_ranks_reduce_blocks";
    case kind::sums: return "lockstep_ranks_sums";
    case kind::mean_variance: return "lockstep_ranks_mean_variance";
    case kind::reduce_several: return "lockstep_ranks_reduce_several";
    case kind::halo_fields: return "lockstep_ranks_halo_fields";
    case kind::normalize: return "lockstep_ranks_normalize";
    case kind::scan: return "lockstep_ranks_scan";
    default: return kind_name(static_cast<kind>(k));
  }
}

namespace {
std::string words(uint64_t what) {
  const auto k = static_cast<kind>(what >> 56);
  const uint64_t plan = what >> 32 & 0xFFFFFF, execution = what >> 8 & 0xFFFFFF;
  if (k == kind::agree || k == kind::create)
    return format_text("{} or a synchronisation (number {})", kind_name(k), execution);
  return format_text("{} (plan {}, execution {}, step {})", kind_name(k), plan, execution, what & 0xFF);
}
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
  if (const auto found = early.find(process); found != early.end() && !found->second.empty()) {
    const std::vector<char>& first = found->second.front();
    if (first.size() > bytes) close_for_length(process);
    std::memcpy(data, first.data(), first.size());
    p.received = first.size(), p.came_early = true;
    found->second.erase(found->second.begin());
    return requests.push_back(p);
  }
  const int result = engine.irecv(engine.user, process, data, bytes, &p.request);
  if (result != 0)
    close(LOCKSTEP_RANK_LOST, format_text("receiving {} bytes from {} failed: {}", bytes, name_of(process),
                                          engine.error(engine.user, result)));
  requests.push_back(p);
}

void lockstep_comm::close_for_length(int32_t process) {
  if (leaving) leave_behind(process);  // a message of a call may be longer than a farewell
  close(LOCKSTEP_MISMATCH, format_text("{} sent a longer message than this call has; make the same calls in the same "
                                       "order on every rank",
                                       name_of(process)));
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
    int done = r.came_early;
    const int result = done != 0 ? 0 : comm_.engine.test(comm_.engine.user, &r.request, &done, &r.received);
    if (result == LOCKSTEP_ENGINE_TRUNCATED) comm_.close_for_length(r.process);
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
      if (!any && to_end && clock::now() - since > std::chrono::milliseconds(1)) look_for_the_end(now.requests_);
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

header lockstep_comm::next_header(int32_t process, uint64_t what, const failure& so_far) {
  return {magic, sent[static_cast<size_t>(process)]++, what, 0, -1, so_far.status, so_far.rank};
}

void lockstep_comm::check(int32_t process, const void* message, size_t received_bytes, uint64_t what, failure& so_far) {
  header head;
  const std::string from = name_of(process);
  if (received_bytes < sizeof head)
    close(LOCKSTEP_RANK_LOST,
          format_text("{} bytes arrived from {}, fewer than the header of a message", received_bytes, from));
  std::memcpy(&head, message, sizeof head);
  if (head.magic != magic)
    close(LOCKSTEP_RANK_LOST, format_text("what arrived from {} is not a message of this library", from));
  const char* text = static_cast<const char*>(message) + sizeof head;
  const size_t text_length = strnlen(text, received_bytes - sizeof head);
  if (head.what >> 56 == static_cast<uint64_t>(kind::closing))
    heard_of_the_end(process, head, std::string(text, text_length));
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
