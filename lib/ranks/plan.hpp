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

inline lockstep_options on_the_cpu() {
  lockstep_options options = lockstep_options_defaults();
  options.backend = "cpu";
  return options;
}

// Throws what the CPU refuses in a call: one of nothing checks that a description's members fit together.
void require_taken(const std::function<lockstep_status(lockstep_context*)>& call);

// The caller's memory for a seat's block; name is "src" or "dst".
placed read_part(const lockstep_comm& comm, const lockstep_part* parts, int32_t seat, const char* name, const box& b);
// Elements of a box, row-major, as runs in which each array has one stride: visit(the run's first element, its
// elements, where it begins in each array, the arrays' strides). strides: of each array by axis; all elements of a box
// without axes lie at one place.
struct run_of_elements {
  int64_t first, count;
  std::vector<int64_t> at, step;
};
void each_run_of(int64_t all, int axes, const int64_t* length, const std::vector<const int64_t*>& strides,
                 const std::function<void(const run_of_elements&)>& visit);
// Where element i of those of a box lies, row-major.
inline int64_t place_of(int64_t i, int axes, const int64_t* length, const int64_t* strides) {
  int64_t at = 0;
  for (int k = axes - 1; k >= 0; --k) at += i % length[k] * strides[k], i /= length[k];
  return at;
}
// Copies a box of elements by a call of the seat; the order of the axes stays. no_seat: between host memory, by the
// CPU.
constexpr int32_t no_seat = -1;
void copy_box(lockstep_comm& comm, int32_t seat, size_t element_bytes, const box& lengths, const void* src,
              const int64_t* src_strides, void* dst, const int64_t* dst_strides);

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
    so_far.attempt(rank, body);
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

namespace lockstep::ranks {

inline uint64_t execution::step(uint64_t k) const { return what_of(plan.what, plan.number, number, k); }

// Makes a plan on all ranks or on none. build() checks the arguments, describes and builds; the other ranks are told
// what it throws.
lockstep_status make_plan_of(lockstep_comm* comm, kind k, const lockstep_options* options, lockstep_ranks_plan** out,
                             const std::function<void(lockstep_ranks_plan&, described&)>& build);
// The same: build(the plan's operation, the plan, its description).
template <class Operation, class Build>
lockstep_status make_plan(lockstep_comm* comm, kind k, const lockstep_options* options, lockstep_ranks_plan** out,
                          const Build& build) {
  return make_plan_of(comm, k, options, out, [&](lockstep_ranks_plan& plan, described& d) {
    auto made = std::make_unique<Operation>();
    Operation& op = *made;
    plan.op = std::move(made);
    build(op, plan, d);
  });
}

}  // namespace lockstep::ranks
