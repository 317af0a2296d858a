// comm.hpp - a communicator. Its processes compare arguments and failures (agree), exchange the messages of a step
// (exchange.hpp) and wait with a deadline (wait). Any failure of these closes the communicator for good.
#pragma once

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "../options.hpp"
#include "crew.hpp"
#include "lockstep/ranks.h"
#include "task.hpp"
#include "workspace.hpp"

namespace lockstep::lib {
template <>
inline constexpr std::array known_sizes<lockstep_part> = {offsetof(lockstep_part, stream), sizeof(lockstep_part)};
template <>
inline constexpr std::array known_sizes<lockstep_engine> = {offsetof(lockstep_engine, peek), sizeof(lockstep_engine)};
template <>
inline constexpr std::array known_sizes<lockstep_comm_options> = {offsetof(lockstep_comm_options, data),
                                                                  sizeof(lockstep_comm_options)};
template <>
inline constexpr std::array known_sizes<lockstep_comm_info> = {offsetof(lockstep_comm_info, data),
                                                               sizeof(lockstep_comm_info)};
}  // namespace lockstep::lib

namespace lockstep::ranks {

using lib::error;
using lib::fail;

// The failure of a call so far: this process's own, or one reported by a message.
struct failure {
  lockstep_status status = LOCKSTEP_OK;
  int32_t rank = -1;
  std::string text;
  bool any() const { return status != LOCKSTEP_OK; }
  void note(lockstep_status s, int32_t r, std::string t) {
    if (!any()) status = s, rank = r, text = std::move(t);
  }
  // Runs body, if nothing has failed so far; what it throws is a failure of that rank.
  template <class Body>
  void attempt(int32_t r, const Body& body) {
    if (any()) return;
    try {
      body();
    } catch (const error& e) {
      note(e.status, r, e.text);
    } catch (const std::bad_alloc&) {
      note(LOCKSTEP_OUT_OF_MEMORY, r, "out of host memory; free some or use more ranks");
    }
  }
};

constexpr size_t text_bytes = 512;

// Every message begins with this.
constexpr uint64_t magic = 0x6C6F636B73746570;  // "lockstep"
struct header {
  uint64_t magic;
  uint64_t sequence;  // of the messages from this process to that one
  uint64_t what;      // plan, step and execution: both sides are in the same call
  uint64_t bytes;     // that follow
  int64_t note;       // of a message with status OK: the first result that overflowed, or -1
  int32_t status;     // not OK: the sender failed, and the error text follows in place of data
  int32_t rank;       // the rank that failed
};

// header::what identifies the call and step of a message; the kind is only for error texts.
enum class kind : uint64_t {
  create,
  agree,
  permute,
  reduce,
  stencil,
  halo,
  closing,
  synchronize,
  refuse,
  destroy,
  reduce_blocks,
  sums,
  mean_variance,
  reduce_several,
  halo_fields,
  normalize,
  scan
};
const char* kind_name(kind k);
// The function that a kind of call is made with, "lockstep_ranks_permute".
std::string kind_function(int64_t k);
inline uint64_t what_of(kind k, uint64_t plan, uint64_t execution, uint64_t step) {
  return static_cast<uint64_t>(k) << 56 | (plan & 0xFFFFFF) << 32 | (execution & 0xFFFFFF) << 8 | (step & 0xFF);
}

// The arguments that must agree between ranks, with their names.
class described {
 public:
  // words: the value as an error gives it; NULL: the number.
  void add(std::string name, int64_t value, std::string (*words)(int64_t) = nullptr) {
    names_.push_back({std::move(name), values.size(), false, words});
    values.push_back(value);
  }
  // A list has one name, because there may be as many elements as ranks.
  template <class List>
  void add_list(std::string name, const List& list) {
    names_.push_back({std::move(name), values.size(), true, nullptr});
    values.insert(values.end(), list.begin(), list.end());
  }
  std::string name(size_t i) const {
    const named& n = of(i);
    return n.list ? format_text("{}[{}]", n.name, i - n.first) : n.name;
  }
  std::string text(size_t i, int64_t value) const {
    const named& n = of(i);
    return n.words != nullptr ? n.words(value) : format_text("{}", value);
  }
  std::vector<int64_t> values;

 private:
  struct named {
    std::string name;
    size_t first;  // of its values
    bool list;
    std::string (*words)(int64_t);
  };
  const named& of(size_t i) const {
    return *std::prev(std::upper_bound(names_.begin(), names_.end(), i,
                                       [](size_t value, const named& one) { return value < one.first; }));
  }
  std::vector<named> names_;
};

// How many pieces of arrays a plan lists; more than most are refused before they take gigabytes.
class piece_count {
 public:
  static constexpr int64_t most = int64_t{1} << 22;
  // of: what makes them, "src->shape is 4x5"; fix: what to give instead.
  void start(std::string of, const char* fix) { of_ = std::move(of), fix_ = fix, taken_ = 0; }
  void require(int64_t more) const {
    if (more > most - taken_)
      fail(LOCKSTEP_INVALID_ARGUMENT, "{}, for which this plan would list more than {} pieces of arrays; give {}", of_,
           most, fix_);
  }
  void take(int64_t n = 1) {
    require(n);
    taken_ += n;
  }

 private:
  std::string of_;
  const char* fix_ = "";
  int64_t taken_ = 0;
};

struct pending {
  int32_t process;
  void* request;
  const void* data;  // of a receive: the destination
  size_t received = 0;
  bool done = false;
  bool came_early = false;                         // received before this call asked for it
  const std::function<bool()>* reached = nullptr;  // no message: something else that depends on the process
};

// Awaiting it resumes when all requests are done; arrived(i) is called for each. Await a named object: GCC 12 may
// destroy temporaries of an awaited expression twice.
class arrivals {
 public:
  arrivals(lockstep_comm& comm, std::vector<pending>& requests, std::function<void(size_t)> arrived)
      : comm_(comm), requests_(requests), arrived_(std::move(arrived)) {}
  bool await_ready();
  void await_suspend(std::coroutine_handle<> rest);
  void await_resume();
  bool test();  // looks at the requests once; whether one was completed

 private:
  friend lockstep_comm;
  bool all_done() const;
  lockstep_comm& comm_;
  std::vector<pending>& requests_;
  std::function<void(size_t)> arrived_;
  std::coroutine_handle<> rest_;
  std::exception_ptr failed_;
};

struct execution;  // plan.hpp
class devices;     // devices.hpp
class links;       // links.hpp

}  // namespace lockstep::ranks

struct lockstep_comm {
  using failure = lockstep::ranks::failure;
  using header = lockstep::ranks::header;
  using pending = lockstep::ranks::pending;

  lockstep_comm();
  ~lockstep_comm();

  lockstep_context* context = nullptr;
  lockstep_engine engine{};
  std::string engine_name;
  std::vector<std::string> backends;  // of each seat; "" is the context's
  std::vector<int32_t> first_rank;    // of each process, and the number of ranks behind the last
  int32_t seats = 1;
  int64_t timeout_ms = 60000;
  uint32_t flags = 0;
  int64_t message_bytes = 0;  // most bytes of a piece of an array
  bool message_bytes_given = false;
  bool dry = false;    // lockstep_comm_dry: there are no other processes
  uint64_t plans = 0;  // made so far, the same number on every rank
  uint64_t agreements = 0;
  lockstep::ranks::piece_count pieces;                      // of the plan that is being made
  std::vector<uint64_t> sent, received;                     // messages to and from each process
  std::map<int32_t, std::vector<std::vector<char>>> early;  // messages that were received before a call asked for them
  std::map<int32_t, std::chrono::steady_clock::time_point> gone;  // processes that have left, and when this was seen
  std::set<int32_t> sends_to, hears_from;                         // processes, by any plan so far
  bool leaving = false;                                           // its farewell has begun
  lockstep_status closed = LOCKSTEP_OK;
  std::string reason;
  failure late;  // the first one that lockstep_ranks_synchronize must return
  lockstep::ranks::kept_memory kept{*this};
  std::unique_ptr<lockstep::ranks::devices> devices;
  std::unique_ptr<lockstep::ranks::links> links;
  lockstep::ranks::crew crew;
  std::list<std::shared_ptr<lockstep::ranks::execution>> queue;  // executions; the first one runs

  int32_t ranks() const { return first_rank.back(); }
  int32_t first() const { return first_rank[static_cast<size_t>(engine.process)]; }
  bool mine(int32_t rank) const { return rank >= first() && rank < first() + seats; }
  int32_t process_of(int32_t rank) const;
  std::string name_of(int32_t process) const;  // "rank 3", "ranks 4 to 7"
  // For a call of a seat. Seats on devices only enqueue; calls that touch host memory wait all the same.
  lockstep_options options_of(int32_t seat) const;

  void require_open() const;
  // Runs a task as far as the arrived messages allow. to_end: waits for the rest, and closes the communicator at the
  // deadline. Returns whether the task is done.
  bool drive(lockstep::ranks::task& t, bool to_end);
  // The same for the queue of executions.
  void progress(bool to_end);
  void send(int32_t process, const void* data, size_t bytes, std::vector<pending>& requests);
  void receive(int32_t process, void* data, size_t bytes, std::vector<pending>& requests);
  // Fills a header for the next message to a process.
  header next_header(int32_t process, uint64_t what, const failure& so_far);
  // Checks the next message from a process; a failure of its sender goes to so_far. capacity: of the buffer.
  void check(int32_t process, const void* message, size_t received_bytes, uint64_t what, failure& so_far);
  // The communicator is closed, by this process or another.
  void shut(lockstep_status status, std::string why);
  // These processes gave no sign until the deadline: finds out which ranks are lost, closes and throws. told_by: the
  // process that started this, or -1.
  [[noreturn]] void lost(std::set<int32_t> missed, int32_t told_by);
  // Tells the other processes, closes the communicator and throws.
  [[noreturn]] void close(lockstep_status status, std::string text);
  [[noreturn]] void close_for_length(int32_t process);
  // A message said that the communicator is closed: hands that on to those who may wait for this process, and throws.
  [[noreturn]] void heard_of_the_end(int32_t process, const header& head, const std::string& text);
  // Tells the others that this process leaves, and why.
  void leave(const std::string& why);
  // For lockstep_comm_destroy: tells those who may wait for this process that it leaves. Where the engine closes
  // together, waits until all do. Whether all have left in good order.
  bool leave_together() noexcept;

  // Collective: the same outcome on every rank. own is this process's failure, digest that of the arguments that must
  // agree; if digests differ, details serves to name the argument. Queued executions run first.
  void agree(const failure& own, const lockstep::ranks::described& what);
  // all: the first failure by rank of all processes, or none. low, high: the least and the largest of all (two words).
  lockstep::ranks::task worst(const failure& own, uint64_t* low, uint64_t* high, failure& all);
  // all: the same number of bytes of each process, in their order. number: of the gathers when the communicator is
  // made.
  lockstep::ranks::task gather(uint64_t number, const void* mine, size_t bytes, std::vector<char>& all);
  // For tasks that are not executions.
  void run(lockstep::ranks::task t);

 private:
  friend lockstep::ranks::arrivals;
  void tell_all(const std::string& text, lockstep_status status);
  // Says to a process that of_rank has closed the communicator.
  void tell(int32_t process, int32_t of_rank, const std::string& text, lockstep_status status);
  // Whether processes that this one only sends to have closed the communicator; throws then.
  void look_for_the_end(const std::vector<pending>& requests);
  int32_t origin(int32_t process, const header& head) const;
  lockstep::ranks::task farewell();
  [[noreturn]] void leave_behind(int32_t process);
  std::set<int32_t> neighbours(const std::set<int32_t>& by_plans, int32_t direction) const;
  std::set<int32_t> everyone() const;  // that exchanges messages with this process
  lockstep::ranks::task agreement(const failure& own, const lockstep::ranks::described& what);
  lockstep::ranks::task compare(const lockstep::ranks::described& what, failure& difference);
  lockstep::ranks::arrivals* waiting = nullptr;  // the requests being waited for
};
