/* engine.h - how the ranks of a communicator (ranks.h) reach each other: what a
 * transport implements. ranks_mpi.h is one over MPI, lockstep_engine_local one
 * for the threads of a process.
 *
 * A transport carries bytes between processes, numbered 0 to processes - 1. A
 * process may hold several ranks ("seats"); it is the library that sorts their
 * messages. Two processes exchange at most one message in each direction a step. */
#ifndef LOCKSTEP_ENGINE_H
#define LOCKSTEP_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOCKSTEP_ENGINE_ABI 1u

/* Results of its functions: 0 is success; any other number is the transport's own,
 * which error() puts into words. */
enum {
  LOCKSTEP_ENGINE_TRUNCATED = -1 /* test: the message is longer than the buffer that was given for it */
};

/* Copied by the library, which calls it from one thread at a time: the one that
 * calls lockstep. No function may block, but for close. */
typedef struct lockstep_engine {
  size_t size;    /* sizeof(lockstep_engine) */
  uint32_t abi;   /* LOCKSTEP_ENGINE_ABI */
  uint32_t flags; /* 0 */
  void* user;     /* handed to every function */
  int32_t processes;
  int32_t process;  /* the own number */
  const char* name; /* "mpi (Open MPI 4.1.4)"; copied */
  /* Begins to send, or to receive at most, bytes from host memory that stays as it
   * is until test says done. The messages from one process to another arrive in the
   * order in which they were sent, and fill the receives in the order in which those
   * were posted. */
  int (*isend)(void* user, int32_t to, const void* data, size_t bytes, void** request);
  int (*irecv)(void* user, int32_t from, void* data, size_t bytes, void** request);
  /* Makes progress and says whether a request is done; then the request is gone,
   * and received (of an irecv) holds the message's bytes. A result that is not 0
   * ends the request too. */
  int (*test)(void* user, void** request, int* done, size_t* received);
  /* The words for a result that is not 0; valid until the next call. */
  const char* (*error)(void* user, int result);
  /* Ends all processes; NULL where the transport cannot. Only where
   * LOCKSTEP_ABORT_ON_LOSS asks for it. */
  void (*abort)(void* user, const char* why);
  /* The last call. clean 0: the communicator was closed by a failure; requests may
   * be open, and other processes may be gone, so nothing collective is possible. */
  void (*close)(void* user, int clean);
} lockstep_engine;

#ifdef __cplusplus
}
#endif
#endif
