// links.cpp - see links.hpp: opening and closing, and waiting with a deadline.
#include "links.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "devices.hpp"
#include "plan.hpp"

namespace lockstep::ranks {

namespace {
using clock = std::chrono::steady_clock;
constexpr int most_devices = 16;  // of a process
constexpr size_t why_bytes = 256;

void pause(clock::time_point since) {
  if (clock::now() - since < std::chrono::milliseconds(1))
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}
bool past(clock::time_point since, int64_t ms) {
  return ms >= 0 && clock::now() - since > std::chrono::milliseconds(ms);
}
}  // namespace

// What a process can do, told to all others.
struct links::offer {
  int32_t count;  // of its seats on devices; -1: it cannot take part
  struct {
    int32_t seat;
    unsigned char id[16];
  } devices[most_devices];
  char why[why_bytes];
  void refuse(const std::string& text) {
    count = -1;
    std::strncpy(why, text.c_str(), why_bytes - 1);
  }
};

bool links::wanted(const std::string& data) { return data.empty() || data == "nccl"; }

links::offer links::make_offer(const failure& own) {
  offer mine{};
  if (own.any()) {
    mine.refuse("the communicator could not be made");
    return mine;
  }
  for (int32_t s = 0; s < comm_.seats; ++s) {
    if (!comm_.devices->has(s)) continue;
    const std::string& name = comm_.backends[static_cast<size_t>(s)];
    const lockstep_peer_table* peers = nullptr;
    int32_t device = 0;
    require_ok(lockstep_peers_get(name.c_str(), &peers, &device));
    constexpr size_t whole = offsetof(lockstep_peer_table, stream_create_first) + sizeof peers->stream_create_first;
    std::string why;
    if (peers->size < whole || peers->messages == nullptr || peers->identity == nullptr ||
        peers->with_device == nullptr || peers->stream_create_first == nullptr)
      why = format_text("{} has no messages between processes", name);
    else if (mine.count == most_devices)
      why = format_text("it holds ranks on more than {} devices", most_devices);
    else if (nccl_ = nccl::open(peers->messages, why); nccl_ != nullptr) {
      auto& place = mine.devices[mine.count++];
      place.seat = s;
      require_ok(peers->identity(device, place.id));
      lane l;
      l.seat = s, l.device = device, l.peers = peers, l.name = name;
      lanes_.push_back(std::move(l));
      continue;
    }
    mine.refuse(why);
    return mine;
  }
  return mine;
}

task links::open(const failure& own) {
  offer mine{};
  try {
    mine = make_offer(own);
  } catch (const error& e) {
    mine.refuse(e.text);
  }
  std::vector<char> all;
  task offers = comm_.gather(1, &mine, sizeof mine, all);
  co_await offers;
  // All processes decide by the same offers.
  why_.clear();
  std::map<std::string, int32_t> holder;  // of a device
  int32_t root = -1, with_devices = 0;
  member_.assign(static_cast<size_t>(comm_.ranks()), -1);
  for (int32_t q = 0; q < comm_.engine.processes && why_.empty(); ++q) {
    offer o;
    std::memcpy(&o, all.data() + static_cast<size_t>(q) * sizeof o, sizeof o);
    const int32_t first = comm_.first_rank[static_cast<size_t>(q)];
    if (o.count < 0) why_ = format_text("{}: {}", comm_.name_of(q), o.why);
    if (o.count > 0) ++with_devices;
    if (o.count > 0 && root < 0) root = q;
    for (int32_t k = 0; k < o.count && why_.empty(); ++k) {
      const int32_t rank = first + o.devices[k].seat;
      const auto [at, is_new] =
          holder.try_emplace(std::string(reinterpret_cast<const char*>(o.devices[k].id), 16), rank);
      if (!is_new) why_ = format_text("ranks {} and {} are on one GPU, which NCCL refuses", at->second, rank);
      member_[static_cast<size_t>(rank)] = members_++;
    }
  }
  if (why_.empty() && with_devices < 2) why_ = "fewer than two processes have ranks on GPUs";
  failure failed;
  if (why_.empty()) {
    struct {
      int32_t status;
      char why[why_bytes];
      nccl::id id;
    } ticket{};
    if (comm_.engine.process == root)
      if (const nccl::result r = nccl_->get_unique_id(&ticket.id); r != nccl::success) {
        ticket.status = 1;
        std::strncpy(ticket.why, nccl_->text(r).c_str(), why_bytes - 1);
      }
    task ids = comm_.gather(2, &ticket, sizeof ticket, all);
    co_await ids;
    std::memcpy(&ticket, all.data() + static_cast<size_t>(root) * sizeof ticket, sizeof ticket);
    if (ticket.status != 0)
      failed.note(LOCKSTEP_BACKEND_FAILED, comm_.first_rank[static_cast<size_t>(root)], ticket.why);
    failed.attempt(comm_.first(), [&] { start(ticket.id); });
    uint64_t low[2] = {0, 0}, high[2] = {0, 0};
    failure of_all;
    task outcome = comm_.worst(failed, low, high, of_all);
    co_await outcome;
    if (of_all.any()) why_ = format_text("rank {}: {}", of_all.rank, of_all.text);
  }
  open_ = why_.empty();
  if (open_) co_return;
  abort();
  for (lane& l : lanes_) drop(l);
  lanes_.clear();
}

// Makes the communicator and waits for it: half the timeout, so that who fails early still hears of the others in time.
void links::start(const nccl::id& id) {
  if (lanes_.empty()) return;
  for (lane& l : lanes_) make(l);
  const bool several = lanes_.size() > 1;  // one thread's communicators wait for each other
  nccl::result r = several ? nccl_->group_start() : nccl::success;
  for (lane& l : lanes_) {
    const auto init = [&] {
      nccl::config blocking_not;
      const auto rank = static_cast<size_t>(comm_.first()) + static_cast<size_t>(l.seat);
      const nccl::result made = nccl_->init(&l.comm, members_, id, member_[rank], &blocking_not);
      if (r == nccl::success && made != nccl::in_progress) r = made;
    };
    std::function<void()> call = init;
    require_ok(l.peers->with_device(
        l.device, [](void* user) { (*static_cast<std::function<void()>*>(user))(); }, &call));
  }
  const nccl::result ended = several ? nccl_->group_end() : nccl::success;
  if (r == nccl::success && ended != nccl::in_progress) r = ended;
  if (r != nccl::success) fail(LOCKSTEP_BACKEND_FAILED, "{}", nccl_->text(r));
  if (const std::string why = await_calls(comm_.timeout_ms < 0 ? -1 : comm_.timeout_ms / 2); !why.empty())
    fail(LOCKSTEP_BACKEND_FAILED, "{}", why);
}

bool links::all() const { return open_ && std::find(member_.begin(), member_.end(), -1) == member_.end(); }

bool links::between(int32_t a, int32_t b) const {
  return open_ && member_[static_cast<size_t>(a)] >= 0 && member_[static_cast<size_t>(b)] >= 0 &&
         comm_.process_of(a) != comm_.process_of(b);
}

size_t links::piece_bytes() const {
  // NCCL needs longer messages than MPI to reach a link's speed.
  const int64_t message = comm_.message_bytes_given ? comm_.message_bytes : int64_t{256} << 20;
  const auto partners = static_cast<int64_t>(std::max(members_ - 1, 1));
  // The slots of a round hold about one message.
  return static_cast<size_t>(std::max(message / partners, std::min<int64_t>(message, 256 << 10)));
}

links::lane* links::lane_of(int32_t seat) {
  for (lane& l : lanes_)
    if (l.seat == seat) return &l;
  return nullptr;
}

// ---- streams and memory ----------------------------------------------------

void links::make(lane& l) const {
  require_ok(l.peers->stream_create_first(l.device, &l.aside));
  require_ok(l.peers->stream_create_first(l.device, &l.carrier));
  for (void** event : {&l.begun, &l.unpacked, &l.sent}) require_ok(l.peers->event_create(l.device, event));
  for (slot* s : {&l.out[0], &l.out[1], &l.in[0], &l.in[1]})
    for (void** event : {&s->full, &s->free}) require_ok(l.peers->event_create(l.device, event));
}

void links::drop(lane& l) const {
  for (slot* s : {&l.out[0], &l.out[1], &l.in[0], &l.in[1]}) {
    if (s->data != nullptr)
      static_cast<void>(lockstep_free(comm_.context, l.name.c_str(), LOCKSTEP_DEVICE,
                                      s < l.in ? l.out_bytes : l.in_bytes, std::exchange(s->data, nullptr)));
    for (void* event : {s->full, s->free})
      if (event != nullptr) l.peers->event_destroy(l.device, event);
  }
  for (void* event : {l.begun, l.unpacked, l.sent})
    if (event != nullptr) l.peers->event_destroy(l.device, event);
  if (l.aside != nullptr) static_cast<void>(lockstep_release_stream(comm_.context, l.name.c_str(), l.aside));
  for (void* stream : {l.aside, l.carrier})
    if (stream != nullptr) l.peers->stream_destroy(l.device, stream);
}

void links::reserve(int32_t seat, bool out, size_t bytes) {
  lane& l = *lane_of(seat);
  size_t& have = out ? l.out_bytes : l.in_bytes;
  if (bytes <= have) return;
  comm_.devices->finish();  // the old slots may be in use
  settle();
  for (slot& s : out ? l.out : l.in) {
    if (s.data != nullptr)
      static_cast<void>(
          lockstep_free(comm_.context, l.name.c_str(), LOCKSTEP_DEVICE, have, std::exchange(s.data, nullptr)));
    s.used = false;
  }
  have = 0;
  void* data[2] = {};
  for (int k = 0; k < 2; ++k) {
    const lockstep_status status = lockstep_alloc(comm_.context, l.name.c_str(), LOCKSTEP_DEVICE, bytes, &data[k]);
    if (status == LOCKSTEP_OK) continue;
    const std::string text = lockstep_last_error();
    if (k == 1) static_cast<void>(lockstep_free(comm_.context, l.name.c_str(), LOCKSTEP_DEVICE, bytes, data[0]));
    fail(status, "{} bytes for messages on {}: {}", bytes, l.name, text);
  }
  for (int k = 0; k < 2; ++k) (out ? l.out : l.in)[k].data = static_cast<char*>(data[k]);
  have = bytes;
}

// ---- waiting ---------------------------------------------------------------

// What NCCL has noticed since, or "". any: a call of it is still in progress.
std::string links::under_way(bool& any) const {
  any = false;
  for (const lane& l : lanes_) {
    if (l.comm == nullptr) continue;
    nccl::result now = nccl::success;
    if (const nccl::result r = nccl_->get_async_error(l.comm, &now); r != nccl::success) now = r;
    if (now == nccl::in_progress)
      any = true;
    else if (now != nccl::success)
      return nccl_->text(now, l.comm);
  }
  return "";
}

std::string links::await_calls(int64_t ms) const {
  const auto since = clock::now();
  for (bool any = true; any;) {
    if (std::string why = under_way(any); !why.empty()) return why;
    if (any && past(since, ms)) return format_text("NCCL was not ready after {} ms", ms);
    if (any) pause(since);
  }
  return "";
}

void links::check() {
  bool any = false;
  if (!open_ || comm_.closed != LOCKSTEP_OK) return;
  if (const std::string why = under_way(any); !why.empty())
    comm_.close(LOCKSTEP_RANK_LOST, format_text("data between GPUs was lost: {}", why));
}

bool links::quiet() {
  bool all = true;
  for (lane& l : lanes_) {
    if (!l.busy) continue;
    int done = 0;
    require_ok(l.peers->passed(l.device, l.sent, &done));
    l.busy = done == 0;
    all = all && !l.busy;
  }
  if (!all) check();
  return all;
}

bool links::launched() {
  bool any = false;
  if (const std::string why = under_way(any); !why.empty())
    comm_.close(LOCKSTEP_RANK_LOST, format_text("data between GPUs cannot be sent: {}", why));
  return !any;
}

// A short time is waited out: only what is on a stream runs while the caller does other things.
task links::until(std::function<bool()> reached) {
  for (const auto since = clock::now(); !past(since, 1); std::this_thread::yield())
    if (reached()) co_return;
  std::vector<pending> requests;
  for (const int32_t process : partners_) {
    pending p{process, nullptr, nullptr};
    p.reached = &reached;
    requests.push_back(p);
  }
  arrivals all(comm_, requests, [](size_t) {});
  co_await all;
}

task links::settled() {
  task t = until([this] { return quiet(); });
  co_await t;
}

void links::settle() {
  for (const auto since = clock::now(); !quiet(); pause(since))
    if (past(since, comm_.timeout_ms)) comm_.lost(partners_, -1);
}

void links::give_up(int32_t seat) {
  for (const lane& l : lanes_) {
    int done = 0;
    if (l.seat == seat && l.busy && l.peers->passed(l.device, l.sent, &done) == LOCKSTEP_OK && done == 0)
      comm_.lost(partners_, -1);
  }
}

// NCCL may wait in an abort for what never ends, so another thread calls it and is left alone if it takes long. All
// communicators of the process are aborted before any is waited for.
void links::abort() {
  open_ = false;
  struct shared {
    std::mutex lock;
    std::condition_variable changed;
    size_t left = 0;
  };
  const auto state = std::make_shared<shared>();
  for (lane& l : lanes_) {
    if (l.comm == nullptr) continue;
    ++state->left;
    const auto work = [state, library = nccl_, peers = l.peers, device = l.device, comm = l.comm] {
      struct job {
        const nccl* library;
        nccl::comm comm;
      } one{library, comm};
      static_cast<void>(peers->with_device(
          device,
          [](void* user) {
            const job& j = *static_cast<job*>(user);
            static_cast<void>(j.library->abort(j.comm));
          },
          &one));
      const std::lock_guard guard(state->lock);
      --state->left;
      state->changed.notify_all();
    };
    l.comm = nullptr;
    try {
      std::thread(work).detach();
    } catch (const std::system_error&) {  // no more threads: it is left as it is
      const std::lock_guard guard(state->lock);
      --state->left;
    }
  }
  std::unique_lock guard(state->lock);
  state->changed.wait_for(guard, std::chrono::seconds(2), [&] { return state->left == 0; });
}

void links::close() {
  if (!open_) return;
  try {
    settle();
    for (const lane& l : lanes_) static_cast<void>(nccl_->finalize(l.comm));
    if (await_calls(std::clamp<int64_t>(comm_.timeout_ms, 0, 5000)).empty()) {
      for (lane& l : lanes_) static_cast<void>(nccl_->destroy(std::exchange(l.comm, nullptr)));
      open_ = false;
    }
  } catch (const error&) {  // the communicator is closed, or the device lost
  }
  if (open_) abort();
}

// Memory that a stuck device may still write to is not freed.
links::~links() {
  if (open_) close();
  const auto since = clock::now();
  for (lane& l : lanes_) {
    int done = l.busy ? 0 : 1;
    while (done == 0 && l.peers->passed(l.device, l.sent, &done) == LOCKSTEP_OK && done == 0 && !past(since, 1000))
      pause(since);
    if (done != 0) drop(l);
  }
}

}  // namespace lockstep::ranks
