// openmp_team.hpp - calls on the threads of an OpenMP runtime, in place of the library's own.
#pragma once

namespace lockstep::cpu {

// What an OpenMP runtime is asked for; GCC's entry points, which LLVM's and Intel's runtimes have too.
struct openmp_runtime {
  void (*parallel)(void (*part)(void* data), void* data, unsigned threads, unsigned flags);
  int (*thread_num)();
  int (*num_threads)();
  int (*in_parallel)();
};

// The runtime whose threads a call of so many threads runs on; NULL: the library's own threads.
// Idle threads of OpenMP spin for some milliseconds. Where another part of the program has them, a second set of
// threads would fight with them for the cores. So the program's main thread calls on the runtime that another loaded
// library (or the program) needs. LOCKSTEP_TEAM=own never does, LOCKSTEP_TEAM=openmp always calls on the runtime that
// this library was built with.
const openmp_runtime* openmp_team(int threads);

// An OpenMP runtime's threads do not survive fork: a child that enters a parallel region hangs.
bool forked();

}  // namespace lockstep::cpu
