// trace.hpp - the accesses of every thread of a replayed kernel, and their cost: the requests
// of warps, and the segments and banks that they use.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "index/device.hpp"

namespace lockstep::tool::explain {

using cuda::site;

// constant: also kernel parameters; lanes: registers that a shuffle reads across a warp
enum class space { global, shared, constant, lanes };

struct array {
  std::string name;
  space where;
  int bytes;  // of an element
  int64_t elements;
  int64_t columns;  // elements of a row of its picture
};

// The machine that the picture assumes.
struct machine {
  int warp = 32;           // lanes
  int segment_bytes = 32;  // what global memory moves at once
  int banks = 32;          // of shared memory, 4 bytes each
};

// One access of one thread. round: the iteration of the loop; threads of a warp in the same
// round of the same phase make one request.
struct event {
  site where;
  int kernel, phase, round;
  int64_t first;  // element
  int width;      // elements
};

struct touch {
  int lane;
  int64_t first;
  int width;
};

struct request {
  int kernel, block, warp, phase, round;
  site where;
  std::vector<touch> lanes;
  // global: segments met, and how many the bytes would fill
  // constant: words, which come one after another; lanes: how many keep their own value
  // shared: wavefronts, and how many there would be without conflicts; ways: lanes in the fullest bank
  int met = 0, needed = 0, ways = 0;
  int64_t bytes_used = 0;  // each byte once
};

// One place in the source, and the rule that is taught for it.
struct place {
  site where;
  int array;
  bool writes;
  std::string rule;  // one sentence
  // Segments a request (shared memory: ways of conflict) by that rule; negative: it says nothing here.
  std::function<double(const request&)> taught;
  std::string part = {};  // where a kernel touches an array at several places: which this is
};

struct launch {
  std::string name;
  int blocks, block_x, block_y;
  bool last_block = false;  // no launch, but what one block does after its own part: the last one
};

// A drawing that a lesson makes itself, in lines of characters.
struct sketch {
  std::string title;
  std::vector<std::string> lines;
};

class trace {
 public:
  machine chip;
  std::vector<array> arrays;
  std::vector<place> places;
  std::vector<launch> launches;
  std::vector<sketch> sketches;
  std::vector<std::string> notes;     // what the picture shows, in sentences
  int best_block = 0, best_warp = 0;  // drawn by default

  // A kernel's grid; then each of its threads with what it touches.
  void start(launch grid);
  void thread(int block, int x, int y = 0);
  void access(site where, int round, int64_t first, int width = 1);
  void barrier() { ++phase_; }

  // Events of thread t (as the hardware counts them) of a block, in program order, all kernels.
  const std::vector<event>& of_thread(int block, int t) const;
  std::vector<request> requests() const;
  const place& at(site where) const;
  int64_t events() const { return events_; }

 private:
  std::vector<std::vector<std::vector<event>>> threads_;  // block, thread
  std::vector<event>* now_ = nullptr;
  int phase_ = 0;
  int64_t events_ = 0;
};

// Fills in met, needed, ways, bytes_used.
void count(request& r, const array& a, const machine& chip);

// All requests of a place: what is printed beside the rule.
struct summary {
  const place* where;
  int64_t requests = 0, lanes = 0, met = 0, needed = 0, bytes_used = 0;
  int64_t judged = 0, agreed = 0;  // requests that the rule speaks of, and those it is right about
  int most_ways = 0, most_met = 0, least_met = 0;
  double taught_least = -1, taught_most = -1;
  double efficiency(const machine& chip, const array& a) const;
};
std::vector<summary> summarize(const trace& t, const std::vector<request>& all);

}  // namespace lockstep::tool::explain
