// parallel.hpp - divides tasks among the queue's threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "call/float_environment.hpp"
#include "openmp_team.hpp"
#include "queue.hpp"
#include "team.hpp"

namespace lockstep::cpu {

inline int usable_threads(const lockstep_queue& queue, int64_t tasks) {
  if (tasks <= 1 || queue.threads <= 1) return 1;
  return tasks < queue.threads ? static_cast<int>(tasks) : queue.threads;
}

// Calls body(part, parts) once for each of `threads` parts, on that many threads if they can be made.
template <class Body>
void on_threads(int threads, const Body& body) {
  if (threads <= 1) {  // on the caller's thread, whose floating-point mode the library has set
    body(0, 1);
    return;
  }
  if (const openmp_runtime* runtime = openmp_team(threads); runtime != nullptr) {
    struct region {
      const Body& body;
      const openmp_runtime& runtime;
    } here{body, *runtime};
    runtime->parallel(
        [](void* data) {
          const default_float_environment environment;
          const region& r = *static_cast<const region*>(data);
          r.body(r.runtime.thread_num(), r.runtime.num_threads());
        },
        &here, static_cast<unsigned>(threads), 0);
    return;
  }
  run_on_team(
      threads, [](void* data, int part, int parts) { (*static_cast<const Body*>(data))(part, parts); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// Tasks that all threads share. In a long call of a program that may end it early, they can be left out.
class region {
 public:
  explicit region(const lockstep_queue& queue)
      : interrupt_(queue.interrupt != nullptr && queue.interrupt->enter() ? queue.interrupt : nullptr) {}
  ~region() {
    if (interrupt_ != nullptr) interrupt_->leave();
  }
  region(const region&) = delete;
  region& operator=(const region&) = delete;

  bool over() const { return interrupt_ != nullptr && interrupt_->over(); }
  // Once all threads are back.
  void end() const {
    if (interrupt_ != nullptr && interrupt_->ended()) throw call_interrupted();
  }
  // How many of the call's tasks, in multiples of grain, a thread runs before it looks whether the call is over.
  int64_t piece(int64_t tasks, int64_t grain) const {
    constexpr size_t piece_bytes = size_t{8} << 20;
    if (interrupt_ == nullptr) return tasks;
    const size_t pieces = interrupt_->bytes() / piece_bytes + 1;
    const auto each = static_cast<int64_t>(static_cast<double>(tasks) / static_cast<double>(pieces)) / grain * grain;
    return each > grain ? each : grain;
  }
  // body(first, last) with pieces of a thread's range, the last one first if `back`.
  template <class Body>
  void in_pieces(int64_t first, int64_t last, int64_t piece, bool back, const Body& body) const {
    if (last - first <= piece) {
      if (first < last && !over()) body(first, last);
      return;
    }
    const int64_t pieces = (last - first - 1) / piece + 1;
    for (int64_t k = 0; k < pieces && !over(); ++k) {
      const int64_t at = first + (back ? pieces - 1 - k : k) * piece;
      body(at, last - at < piece ? last : at + piece);
    }
  }

 private:
  interruption* const interrupt_;
};

// The start of part `part` of `parts` of n.
inline int64_t part_begin(int64_t n, int64_t part, int64_t parts) {
  return n / parts * part + n % parts * part / parts;
}

// Calls body(first, last) with one contiguous range of [0, tasks) for each thread, cut at
// multiples of grain. A long call that may end early gets each range piece by piece, from its end if `back`.
template <class Body>
void over_ranges(const lockstep_queue& queue, int64_t tasks, int64_t grain, const Body& body, bool back = false) {
  const int64_t grains = tasks / grain + (tasks % grain != 0);
  const region all(queue);
  const int64_t piece = all.piece(tasks, grain);
  on_threads(usable_threads(queue, grains), [&](int thread, int threads) {
    const auto cut = [&](int t) {
      const int64_t at = part_begin(grains, t, threads);
      return at < grains ? at * grain : tasks;
    };
    all.in_pieces(cut(thread), cut(thread + 1), piece, back, body);
  });
  all.end();
}

// The same, cut into equal parts; a thread for each `least` tasks.
template <class Body>
void over_parts(const lockstep_queue& queue, int64_t tasks, int64_t least, const Body& body) {
  const region all(queue);
  const int64_t piece = all.piece(tasks, 1);
  on_threads(usable_threads(queue, tasks / least + (tasks % least != 0)), [&](int thread, int threads) {
    all.in_pieces(part_begin(tasks, thread, threads), part_begin(tasks, thread + 1, threads), piece, false, body);
  });
  all.end();
}

// Calls body(task, thread) for each task. A thread first takes the tasks of its own contiguous share, then tasks that
// are left in other shares.
template <class Body>
void over_shares(const lockstep_queue& queue, int64_t tasks, const Body& body) {
  struct alignas(64) share {
    std::atomic<int64_t> next;
    int64_t end;
  };
  constexpr int most = 64;
  share shares[most];
  const int threads = usable_threads(queue, tasks), count = threads < most ? threads : most;
  for (int s = 0; s < count; ++s) {
    shares[s].next = part_begin(tasks, s, count);
    shares[s].end = part_begin(tasks, s + 1, count);
  }
  const region all(queue);
  on_threads(threads, [&](int thread, int) {
    for (int k = 0; k < count; ++k) {
      share& s = shares[(thread + k) % count];
      for (int64_t task; !all.over() && (task = s.next.fetch_add(1, std::memory_order_relaxed)) < s.end;)
        body(task, thread);
    }
  });
  all.end();
}

// Calls body(task) for each task, handed out one at a time (for uneven tasks).
template <class Body>
void over_tasks(const lockstep_queue& queue, int64_t tasks, const Body& body) {
  std::atomic<int64_t> next{0};
  const region all(queue);
  on_threads(usable_threads(queue, tasks), [&](int, int) {
    for (int64_t task; !all.over() && (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) body(task);
  });
  all.end();
}

}  // namespace lockstep::cpu
