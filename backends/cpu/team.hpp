// team.hpp - the threads that share the parts of a call.
#pragma once

namespace lockstep::cpu {

// Runs part(data, p, parts) once for every p below parts, on the caller's thread and on up to parts - 1 others, and
// returns when all are done. The caller runs every part that no other thread has started. So on a busy machine, or if
// no more threads can be made, a call is slower but never waits for a thread that does not run.
void run_on_team(int parts, void (*part)(void* data, int p, int parts), void* data);

// The number of threads that were missing the last time one could not be made; 0 if there are enough.
int refused_threads();

}  // namespace lockstep::cpu
