// create.cpp - creating, describing and destroying communicators; the error text of this library.
#include <cstdlib>
#include <cstring>
#include <string>

#include "devices.hpp"
#include "links.hpp"
#include "plan.hpp"

namespace lockstep::lib {
// The text is stored in the core library, so that lockstep_last_error serves both.
void set_error(const char* text) noexcept { lockstep_set_error(text); }
void clear_error() noexcept { lockstep_set_error(nullptr); }
const char* last_error() noexcept { return lockstep_last_error(); }
}  // namespace lockstep::lib

namespace lockstep::ranks {
namespace {

constexpr int64_t default_message_bytes = int64_t{32} << 20;
constexpr int64_t most_message_bytes = int64_t{1} << 30;  // with headers it still fits an int, which MPI counts in

constexpr int64_t longest_timeout_ms = INT64_MAX / 2'000'000;  // a clock counts it in nanoseconds

int64_t default_timeout() {
  const char* text = std::getenv("LOCKSTEP_RANKS_TIMEOUT");
  if (text == nullptr || *text == '\0') return 60000;
  char* end = nullptr;
  const long long ms = std::strtoll(text, &end, 10);
  if (*end != '\0' || ms < -1 || ms == 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "LOCKSTEP_RANKS_TIMEOUT is \"{}\"; give milliseconds, or -1 to wait for ever",
         text);
  return ms;
}

lockstep_comm_options read_options(const lockstep_comm_options* given) {
  lockstep_comm_options o = lib::sized(given, lockstep_comm_defaults(), "options");
  if (o.seats < 1 || o.seats > 1024) fail(LOCKSTEP_INVALID_ARGUMENT, "options.seats is {}; give 1 to 1024", o.seats);
  if (o.timeout_ms < -1)
    fail(LOCKSTEP_INVALID_ARGUMENT, "options.timeout_ms is {}; give milliseconds, 0 or -1", o.timeout_ms);
  if (o.message_bytes < 0 || o.message_bytes > most_message_bytes)
    fail(LOCKSTEP_INVALID_ARGUMENT, "options.message_bytes is {}; give at most {}, or 0 for the default",
         o.message_bytes, most_message_bytes);
  if (o.message_bytes == 0) o.message_bytes = default_message_bytes;
  if (o.timeout_ms == 0) o.timeout_ms = default_timeout();
  o.timeout_ms = std::min(o.timeout_ms, longest_timeout_ms);
  lib::require_flags("options.flags", o.flags, LOCKSTEP_ABORT_ON_LOSS, "LOCKSTEP_ABORT_ON_LOSS (1)");
  return o;
}

void check_engine(const lockstep_engine& e) {
  if (e.abi != LOCKSTEP_ENGINE_ABI)
    fail(LOCKSTEP_INVALID_ARGUMENT, "engine->abi is {}, but this library has {}; recompile the transport", e.abi,
         LOCKSTEP_ENGINE_ABI);
  lib::require_flags("engine->flags", e.flags, LOCKSTEP_ENGINE_GIVES_WAY | LOCKSTEP_ENGINE_CLOSES_TOGETHER,
                     "LOCKSTEP_ENGINE_GIVES_WAY (1) and LOCKSTEP_ENGINE_CLOSES_TOGETHER (2)");
  if (e.processes < 1 || e.process < 0 || e.process >= e.processes)
    fail(LOCKSTEP_INVALID_ARGUMENT, "engine->process is {} of {}; give 0 to processes - 1", e.process, e.processes);
  if (e.isend == nullptr || e.irecv == nullptr || e.test == nullptr || e.error == nullptr || e.close == nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "engine lacks isend, irecv, test, error or close; set all of them");
}

// Tells every process the numbers of seats of all, and how many of them may have links.
task gather_seats(lockstep_comm& comm, bool may_link, int32_t& linkable) {
  const int32_t mine[2] = {comm.seats, may_link ? 1 : 0};
  std::vector<char> all;
  task seats = comm.gather(0, mine, sizeof mine, all);
  co_await seats;
  int32_t rank = 0;
  for (size_t q = 0; q + 1 < comm.first_rank.size(); ++q) {
    int32_t theirs[2];
    std::memcpy(theirs, all.data() + q * sizeof theirs, sizeof theirs);
    comm.first_rank[q] = rank;
    rank += theirs[0];
    linkable += theirs[1];
  }
  comm.first_rank.back() = rank;
}

// A process with invalid arguments still takes part, so that the others need not wait for the deadline. refusal: why it
// takes part only to say that it cannot; NULL otherwise.
lockstep_comm* create(lockstep_context* context, const lockstep_engine& engine, const lockstep_comm_options* given,
                      const char* refusal) {
  check_engine(engine);
  auto comm = std::make_unique<lockstep_comm>();
  failure own;
  lockstep_comm_options o = lockstep_comm_defaults();
  if (refusal != nullptr) own.note(LOCKSTEP_INVALID_ARGUMENT, -1, refusal);
  try {
    o = read_options(given);
    if (refusal == nullptr) lib::require_context(context);
  } catch (const error& e) {
    o = lockstep_comm_defaults();  // what was read so far may have been written to it
    own.note(e.status, -1, e.text);
  }
  comm->context = context;
  comm->engine = engine;
  comm->engine_name = engine.name != nullptr ? engine.name : "";
  comm->seats = o.seats;
  comm->timeout_ms = o.timeout_ms != 0 ? o.timeout_ms : 60000;
  comm->flags = o.flags;
  comm->message_bytes = o.message_bytes;
  comm->message_bytes_given = given != nullptr && given->message_bytes > 0;
  for (int32_t s = 0; s < o.seats; ++s)
    comm->backends.push_back(o.backends != nullptr && o.backends[s] != nullptr ? o.backends[s] : "");
  const auto p = static_cast<size_t>(engine.processes);
  comm->sent.resize(p);
  comm->received.resize(p);
  comm->first_rank.resize(p + 1);
  for (size_t q = 0; q <= p; ++q) comm->first_rank[q] = static_cast<int32_t>(q);  // until the seats are known
  const std::string data = o.data != nullptr ? o.data : "";
  bool may_link = false;
  for (const std::string& name : comm->backends) may_link = may_link || (!name.empty() && name != "cpu");
  may_link = may_link && links::wanted(data);
  int32_t linkable = 0;
  comm->run(gather_seats(*comm, may_link, linkable));
  own.rank = own.any() ? comm->first() : -1;
  for (int32_t s = 0; s < comm->seats && !own.any(); ++s) {
    // Reports a missing backend now rather than at the first call.
    const std::string& name = comm->backends[static_cast<size_t>(s)];
    if (name.empty()) continue;
    const lockstep_options options = comm->options_of(s);
    const lockstep_shuffle_desc one_warp = lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_IDX, 4, 32, 32, 0);
    const uint32_t src[32] = {};
    uint32_t dst[32];
    const lockstep_status status = lockstep_shuffle(context, &one_warp, src, dst, &options);
    if (status != LOCKSTEP_OK)
      own.note(status, comm->first() + s, format_text("options.backends[{}]: {}", s, lockstep_last_error()));
  }
  own.attempt(comm->first(), [&] { comm->devices->open(o.data); });
  if (linkable > 1) comm->run(comm->links->open(own));
  own.attempt(comm->first(), [&] { comm->devices->describe(); });
  described d;
  d.add("the call", static_cast<int64_t>(kind::create), kind_function);
  d.add("options.message_bytes", comm->message_bytes);
  comm->agree(own, d);
  return comm.release();
}

}  // namespace
}  // namespace lockstep::ranks

using namespace lockstep;
using namespace lockstep::ranks;

extern "C" {
lockstep_status lockstep_comm_create(lockstep_context* context, const lockstep_engine* engine,
                                     const lockstep_comm_options* options, lockstep_comm** comm) {
  return lib::guarded([&] {
    if (comm == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "comm is NULL; pass the address of a lockstep_comm*");
    *comm = nullptr;
    if (engine == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "engine is NULL; pass a transport");
    *comm = create(context, lib::sized(engine, lockstep_engine{}, "engine"), options, nullptr);
  });
}

lockstep_status lockstep_comm_refuse(const lockstep_engine* engine, const lockstep_comm_options* options,
                                     const char* why) {
  return lib::guarded([&] {
    if (engine == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "engine is NULL; pass a transport");
    create(nullptr, lib::sized(engine, lockstep_engine{}, "engine"), options,
           why != nullptr && *why != '\0' ? why : "this process refuses");
  });
}

int64_t lockstep_comm_timeout(const lockstep_comm_options* options) {
  int64_t ms = 0;
  const lockstep_status status = lib::guarded([&] { ms = read_options(options).timeout_ms; });
  return status == LOCKSTEP_OK ? ms : 60000;
}

lockstep_status lockstep_comm_local(lockstep_context* context, const lockstep_comm_options* options,
                                    lockstep_comm** comm) {
  lockstep_engine alone{};
  const lockstep_status status = lockstep_engine_local(1, &alone);
  if (status != LOCKSTEP_OK) return status;
  const lockstep_status made = lockstep_comm_create(context, &alone, options, comm);
  if (made != LOCKSTEP_OK) alone.close(alone.user, 0);
  return made;
}

lockstep_status lockstep_comm_dry(lockstep_context* context, int32_t ranks, int32_t rank, lockstep_comm** comm) {
  return lib::guarded([&] {
    if (comm == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "comm is NULL; pass the address of a lockstep_comm*");
    *comm = nullptr;
    lib::require_context(context);
    if (ranks < 1 || ranks > 1 << 20) fail(LOCKSTEP_INVALID_ARGUMENT, "ranks is {}; give 1 to 1048576", ranks);
    if (rank < 0 || rank >= ranks) fail(LOCKSTEP_INVALID_ARGUMENT, "rank is {}; give 0 to {}", rank, ranks - 1);
    auto made = std::make_unique<lockstep_comm>();
    made->context = context;
    made->engine.processes = ranks;
    made->engine.process = rank;
    made->engine.close = [](void*, int) {};
    made->engine_name = "dry";
    made->backends.emplace_back();
    made->message_bytes = default_message_bytes;
    made->dry = true;
    for (int32_t r = 0; r <= ranks; ++r) made->first_rank.push_back(r);
    *comm = made.release();
  });
}

void lockstep_comm_destroy(lockstep_comm* comm) {
  if (comm == nullptr) return;
  comm->progress(true);
  const bool clean = comm->leave_together();
  comm->links->close();
  comm->devices.reset();
  comm->engine.close(comm->engine.user, clean ? 1 : 0);
  delete comm;
}

void lockstep_comm_leave(lockstep_comm* comm, const char* why) {
  if (comm != nullptr) comm->leave(why != nullptr ? why : "");
}

lockstep_status lockstep_comm_get(const lockstep_comm* comm, lockstep_comm_info* info) {
  return lib::guarded([&] {
    if (comm == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "comm is NULL; pass a communicator");
    lockstep_comm_info i{};
    i.ranks = comm->ranks();
    i.rank = comm->first();
    i.seats = comm->seats;
    i.processes = comm->engine.processes;
    i.engine = comm->engine_name.c_str();
    i.closed = comm->closed != LOCKSTEP_OK;
    i.reason = comm->reason.c_str();
    i.data = comm->devices->data().c_str();
    i.why = comm->devices->why().c_str();
    lib::give(i, info, "info");
  });
}

lockstep_status lockstep_ranks_synchronize(lockstep_comm* comm) {
  return lib::guarded([&] {
    if (comm == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "comm is NULL; pass a communicator");
    comm->progress(true);
    comm->require_open();
    failure own = std::exchange(comm->late, {});
    try {
      comm->devices->finish();
    } catch (const error& e) {
      if (comm->closed != LOCKSTEP_OK) throw;
      own.note(e.status, comm->first(), e.text);
    }
    const lockstep_status status = lockstep_synchronize(comm->context);
    if (status != LOCKSTEP_OK) own.note(status, comm->first(), lockstep_last_error());
    described d;
    d.add("the call", static_cast<int64_t>(kind::synchronize), kind_function);
    comm->agree(own, d);
  });
}
}
