// plan.hpp - a prepared call over ranks (what each step sends, and its memory), and its executions.
#pragma once

#include <memory>

#include "exchange.hpp"
#include "grid.hpp"

namespace lockstep::ranks {

// A seat's memory, checked.
struct placed {
  char* data = nullptr;
  std::array<int64_t, LOCKSTEP_MAX_RANK> strides{};
  bool there = false;  // memory of the seat's device
  bool on_host = false;
  void* stream = nullptr;  // the caller's
};

constexpr int32_t most_arrays = 1024;  // of one plan

// Throws the failure of a lockstep call.
inline void require_ok(lockstep_status status) {
  if (status != LOCKSTEP_OK) throw error{status, lockstep_last_error()};
}

// Throws what the CPU refuses in a call: one of nothing checks that a description's members fit together.
void require_taken(const std::function<lockstep_status(lockstep_context*)>& call);

// The caller's memory for a seat's block; name is "src" or "dst".
placed read_part(const lockstep_comm& comm, const lockstep_part* parts, int32_t seat, const char* name, const box& b);
// Copies a box of elements by a call of the seat; the order of the axes stays. no_seat: between host memory, by the
// CPU.
constexpr int32_t no_seat = -1;
void copy_box(lockstep_comm& comm, int32_t seat, size_t element_bytes, const box& lengths, const void* src,
              const int64_t* src_strides, void* dst, const int64_t* dst_strides);

// Makes a plan on all ranks or on none. build(described&) checks the arguments, describes and builds; the other ranks
// are told what it throws.
lockstep_status make_plan(lockstep_comm* comm, kind k, const lockstep_options* options, lockstep_ranks_plan** out,
                          const std::function<void(lockstep_ranks_plan&, described&)>& build);

// One execution of a plan, with everything that must outlive the call that started it.
struct execution {
  explicit execution(lockstep_ranks_plan& p) : plan(p) {}
  lockstep_ranks_plan& plan;
  uint64_t number = 0;           // of the plan's executions
  std::vector<placed> from, to;  // of each seat
  std::vector<void*> streams;    // of each seat; NULL: its own
  char* memory = nullptr;        // the workspace: the plan's, the caller's, or own memory
  host_memory own_memory;
  bool waits = false;       // some of its calls touch host memory, so they wait for their stream
  bool waited_for = false;  // the call waits for it and returns its failure
  failure so_far;
  task work;

  uint64_t step(uint64_t k) const;
  // A failure of one seat does not stop the others; they are told.
  template <class Body>
  void attempt(int32_t rank, const Body& body) {
    if (so_far.any()) return;
    try {
      body();
    } catch (const error& e) {
      so_far.note(e.status, rank, e.text);
    } catch (const std::bad_alloc&) {
      so_far.note(LOCKSTEP_OUT_OF_MEMORY, rank, "out of host memory; free some or use more ranks");
    }
  }
  // Reads a seat's part, and its stream.
  placed read_one(const lockstep_part* parts, int32_t seat, const char* name, const box& b);
  // Reads the blocks of a grid.
  std::vector<placed> read(const lockstep_part* parts, const char* name, const grid& g);
  // The same of several arrays, one array's parts behind the other's. second: what errors call the second of two.
  std::vector<placed> read_several(const lockstep_part* parts, const char* name, const char* second, int64_t arrays,
                                   const grid& g);
  template <class BoxOf>
  std::vector<placed> read(const lockstep_part* parts, const char* name, int32_t first, int32_t seats,
                           const BoxOf& box_of) {
    std::vector<placed> all(static_cast<size_t>(seats));
    for (int32_t s = 0; s < seats; ++s)
      attempt(first + s, [&] { all[static_cast<size_t>(s)] = read_one(parts, s, name, box_of(first + s)); });
    return all;
  }
};

// What plan.cpp knows of an operation.
struct operation {
  virtual ~operation() = default;
  virtual void place(execution& x, const lockstep_part* src, const lockstep_part* dst) = 0;
  virtual task run(execution& x) = 0;
  virtual bool joins_on_the_host() const { return false; }
  virtual void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const = 0;
};

}  // namespace lockstep::ranks

struct lockstep_ranks_plan {
  lockstep_comm* comm = nullptr;
  lockstep::ranks::kind what{};
  uint64_t number = 0, executions = 0;
  lockstep::ranks::failure unheard;  // the first of an asynchronous execution that wait or test have not returned
  lockstep::ranks::workspace memory;
  lockstep::ranks::host_memory own_memory;  // empty if the caller gives the workspace
  // Of seats on devices: buffers that calls of the seat alone touch.
  std::vector<lockstep::ranks::workspace> on_devices;
  std::vector<lockstep::ranks::host_memory> device_memory;
  std::unique_ptr<lockstep::ranks::operation> op;
  lockstep::ranks::described description;  // of the call that made it; at its end, 0 for a new plan
  lockstep::ranks::workspace& memory_of(int32_t seat);
};

inline uint64_t lockstep::ranks::execution::step(uint64_t k) const {
  return what_of(plan.what, plan.number, number, k);
}
