// team.hpp - the threads that share the parts of a call.
#pragma once

namespace lockstep::cpu {

// Runs part(data, p, parts) for every p below parts, each once, on the caller's thread and on up to parts - 1 others,
// and returns when all are done. A part that no other thread has begun is run by the caller: a busy machine, or one
// that gives no more threads, makes a call slower but never waits for a thread that does not run.
void run_on_team(int parts, void (*part)(void* data, int p, int parts), void* data);

// How many threads too few there were when one was last asked for and could not be made; 0: there are enough.
int refused_threads();

}  // namespace lockstep::cpu
