/* engine.h - how the ranks of a communicator (ranks.h) reach each other: what a
 * transport implements. ranks_mpi.h is one over MPI, lockstep_engine_local one
 * for the threads of a process.
 *
 * A transport carries bytes between processes, numbered 0 to processes - 1. A
 * process may hold several ranks ("seats"); the library assigns messages to them.
 * In each step two processes exchange at most one message in each direction. */
#ifndef LOCKSTEP_ENGINE_H
#define LOCKSTEP_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOCKSTEP_ENGINE_ABI 1u

/* Results of its functions: 0 is success. Other numbers are the transport's own;
 * error() gives their text. */
enum {
  LOCKSTEP_ENGINE_TRUNCATED = -1 /* test: the message is longer than the buffer that was given for it */
};

/* Bits of flags. */
enum {
  LOCKSTEP_ENGINE_GIVES_WAY = 1u, /* other processes run within test, on the same thread, as in a simulation: a process
                                   * that waits does not sleep between two calls of it */
  LOCKSTEP_ENGINE_CLOSES_TOGETHER = 2u /* close with clean 1 is collective: lockstep_comm_destroy waits before it, until
                                        * the deadline, for the other processes to destroy theirs */
};

/* Copied by the library, which calls its functions only from the thread that calls
 * lockstep. No function except close may block. */
typedef struct lockstep_engine {
  size_t size;    /* sizeof(lockstep_engine) */
  uint32_t abi;   /* LOCKSTEP_ENGINE_ABI */
  uint32_t flags; /* LOCKSTEP_ENGINE_GIVES_WAY, LOCKSTEP_ENGINE_CLOSES_TOGETHER */
  void* user;     /* handed to every function */
  int32_t processes;
  int32_t process;  /* the own number */
  const char* name; /* "mpi (Open MPI 4.1.4)"; copied */
  /* Start to send, or to receive at most, that many bytes. The host memory is not
   * touched until test says done. Messages from one process to another arrive in the
   * order in which they were sent, and complete the receives in the order in which
   * those were posted. */
  int (*isend)(void* user, int32_t to, const void* data, size_t bytes, void** request);
  int (*irecv)(void* user, int32_t from, void* data, size_t bytes, void** request);
  /* Makes progress and says whether a request is done. A done request is freed, and
   * for an irecv received holds the message's size. A result other than 0 frees the
   * request too. */
  int (*test)(void* user, void** request, int* done, size_t* received);
  /* The text for a result other than 0; valid until the next call. */
  const char* (*error)(void* user, int result);
  /* Ends all processes; NULL if the transport cannot. Called only with
   * LOCKSTEP_ABORT_ON_LOSS. */
  void (*abort)(void* user, const char* why);
  /* The last call. clean 0: a failure closed the communicator. Requests may still be
   * open and other processes may be gone, so do nothing collective. */
  void (*close)(void* user, int clean);
  /* Whether a message from that process has come for which no irecv was posted, and its size. May be NULL: a process
   * that only sends to one that has failed then hears of it at its deadline. */
  int (*peek)(void* user, int32_t from, int* found, size_t* bytes);
} lockstep_engine;

#ifdef __cplusplus
}
#endif
#endif
