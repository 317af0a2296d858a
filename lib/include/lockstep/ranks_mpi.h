/* ranks_mpi.h - a communicator (ranks.h) over MPI. Header-only: it is compiled with
 * the MPI of the program that includes it, so the library is tied to no MPI. It uses
 * only point-to-point messages, with one tag, on a communicator of its own.
 *
 * MPI_THREAD_SINGLE and FUNNELED are enough if the thread that calls lockstep is the one that called MPI_Init; other
 * threads are refused. With SERIALIZED and MULTIPLE any thread may call, one at a time for each communicator. Destroy a
 * communicator before MPI_Finalize; afterwards it can only be destroyed, not used.
 *
 * After LOCKSTEP_RANK_LOST, MPI_Finalize may wait for the lost process for ever: call MPI_Abort in its place. */
#ifndef LOCKSTEP_RANKS_MPI_H
#define LOCKSTEP_RANKS_MPI_H

/* Without MPI's old C++ bindings, which would need another library. */
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif

#include <lockstep/ranks.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts are int before MPI 4, so longer messages are sent in pieces of this size, the
 * last one shorter. */
#ifndef LOCKSTEP_MPI_PIECE_BYTES
#define LOCKSTEP_MPI_PIECE_BYTES ((size_t)1 << 30)
#endif

typedef struct lockstep_mpi_state {
  MPI_Comm comm;
  int key; /* of an attribute of MPI_COMM_SELF, which MPI_Finalize deletes first */
  int finalized;
  char name[96];
  char text[MPI_MAX_ERROR_STRING + 1];
} lockstep_mpi_state;

/* A result of the functions below, beside those of MPI. */
enum { LOCKSTEP_MPI_OTHER_THREAD = -100 };
#define LOCKSTEP_MPI_OTHER_THREAD_TEXT                                                                             \
  "MPI was initialized at a level at which only the thread that called MPI_Init may call it, and this is another " \
  "one; call lockstep from that thread, or MPI_Init_thread with MPI_THREAD_SERIALIZED"

/* Whether MPI allows this thread to call it. */
static inline int lockstep_mpi_allows_thread(void) {
#ifdef SMPI_H
  return 1; /* simulated processes are threads */
#else
  int level = MPI_THREAD_SINGLE, main_thread = 0;
  MPI_Query_thread(&level);
  MPI_Is_thread_main(&main_thread);
  return level >= MPI_THREAD_SERIALIZED || main_thread;
#endif
}

typedef struct lockstep_mpi_request {
  MPI_Request now; /* of the current piece */
  char* data;
  size_t bytes, done; /* done: bytes of the earlier pieces */
  int peer, sends;
} lockstep_mpi_request;

static inline int lockstep_mpi_piece(lockstep_mpi_state* state, lockstep_mpi_request* r) {
  const size_t left = r->bytes - r->done;
  const int count = (int)(left < LOCKSTEP_MPI_PIECE_BYTES ? left : LOCKSTEP_MPI_PIECE_BYTES);
  return r->sends ? MPI_Isend(r->data + r->done, count, MPI_BYTE, r->peer, 0, state->comm, &r->now)
                  : MPI_Irecv(r->data + r->done, count, MPI_BYTE, r->peer, 0, state->comm, &r->now);
}

static inline int lockstep_mpi_begin(void* user, int peer, void* data, size_t bytes, int sends, void** request) {
  lockstep_mpi_state* state = (lockstep_mpi_state*)user;
  lockstep_mpi_request* r = NULL;
  int result = MPI_ERR_NO_MEM;
  if (state->finalized) return MPI_ERR_COMM;
  if (!lockstep_mpi_allows_thread()) return LOCKSTEP_MPI_OTHER_THREAD;
  r = (lockstep_mpi_request*)calloc(1, sizeof *r);
  if (r == NULL) return result;
  r->data = (char*)data;
  r->bytes = bytes;
  r->peer = peer;
  r->sends = sends;
  result = lockstep_mpi_piece(state, r);
  if (result != MPI_SUCCESS)
    free(r);
  else
    *request = r;
  return result;
}

static inline int lockstep_mpi_isend(void* user, int32_t to, const void* data, size_t bytes, void** request) {
  return lockstep_mpi_begin(user, (int)to, (void*)data, bytes, 1, request);
}
static inline int lockstep_mpi_irecv(void* user, int32_t from, void* data, size_t bytes, void** request) {
  return lockstep_mpi_begin(user, (int)from, data, bytes, 0, request);
}

/* MPI_Test whose errors return. MPICH has forgotten the communicator of a request that
 * is complete and asks MPI_COMM_WORLD's error handler, which ends the program unless
 * the caller chose another; so that one is exchanged for the moment. */
static inline int lockstep_mpi_ask(lockstep_mpi_request* r, int* flag, MPI_Status* status) {
#ifdef MPICH_VERSION
  MPI_Errhandler before;
  int result = MPI_SUCCESS;
  if (r->sends) return MPI_Test(&r->now, flag, status);
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  result = MPI_Test(&r->now, flag, status);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
  MPI_Errhandler_free(&before);
  return result;
#else
  return MPI_Test(&r->now, flag, status);
#endif
}

static inline int lockstep_mpi_test(void* user, void** request, int* done, size_t* received) {
  lockstep_mpi_state* state = (lockstep_mpi_state*)user;
  lockstep_mpi_request* r = (lockstep_mpi_request*)*request;
  MPI_Status status;
  int result = MPI_ERR_COMM, flag = 0, count = 0;
  *done = 0;
  if (!state->finalized) result = lockstep_mpi_ask(r, &flag, &status);
  if (result == MPI_SUCCESS && !flag) return 0;
  if (result == MPI_SUCCESS) {
    if (r->sends) {
      const size_t left = r->bytes - r->done;
      count = (int)(left < LOCKSTEP_MPI_PIECE_BYTES ? left : LOCKSTEP_MPI_PIECE_BYTES);
    } else {
      result = MPI_Get_count(&status, MPI_BYTE, &count);
    }
  }
  if (result == MPI_SUCCESS) {
    r->done += (size_t)count;
    /* A whole piece is followed by another, which may be empty. */
    if ((size_t)count == LOCKSTEP_MPI_PIECE_BYTES) {
      result = lockstep_mpi_piece(state, r);
      if (result == MPI_SUCCESS) return 0;
    }
  }
  *done = 1;
  *received = r->done;
  free(r);
  *request = NULL;
  if (result != MPI_SUCCESS) {
    int kind = 0;
    MPI_Error_class(result, &kind);
    if (kind == MPI_ERR_TRUNCATE) return LOCKSTEP_ENGINE_TRUNCATED;
  }
  return result;
}

static inline int lockstep_mpi_peek(void* user, int32_t from, int* found, size_t* bytes) {
  lockstep_mpi_state* state = (lockstep_mpi_state*)user;
  MPI_Status status;
  int count = 0, result = MPI_SUCCESS;
  *found = 0;
  if (state->finalized || !lockstep_mpi_allows_thread()) return MPI_ERR_COMM;
  result = MPI_Iprobe((int)from, 0, state->comm, found, &status);
  if (result == MPI_SUCCESS && *found) result = MPI_Get_count(&status, MPI_BYTE, &count);
  *bytes = (size_t)count;
  return result;
}

static inline const char* lockstep_mpi_error(void* user, int result) {
  lockstep_mpi_state* state = (lockstep_mpi_state*)user;
  int length = 0;
  if (state->finalized) return "MPI_Finalize was called before";
  if (result == LOCKSTEP_MPI_OTHER_THREAD) return LOCKSTEP_MPI_OTHER_THREAD_TEXT;
  if (MPI_Error_string(result, state->text, &length) != MPI_SUCCESS) return "an unknown MPI error";
  return state->text;
}

static inline void lockstep_mpi_abort(void* user, const char* why) {
  lockstep_mpi_state* state = (lockstep_mpi_state*)user;
  fprintf(stderr, "lockstep: %s\n", why);
  if (!state->finalized) MPI_Abort(state->comm, 1);
}

static inline void lockstep_mpi_close(void* user, int clean) {
  lockstep_mpi_state* state = (lockstep_mpi_state*)user;
  if (!state->finalized) {
    MPI_Comm_delete_attr(MPI_COMM_SELF, state->key); /* sets finalized */
    MPI_Comm_free_keyval(&state->key);
    /* Collective, so only if all processes come here. */
    if (clean) MPI_Comm_free(&state->comm);
  }
  free(state);
}

static inline int lockstep_mpi_at_finalize(MPI_Comm self, int key, void* value, void* extra) {
  (void)self, (void)key, (void)extra;
  ((lockstep_mpi_state*)value)->finalized = 1;
  return MPI_SUCCESS;
}

/* Duplicates a communicator with all its processes, within the timeout (-1: none). */
static inline lockstep_status lockstep_mpi_duplicate(MPI_Comm comm, int64_t timeout_ms, MPI_Comm* made) {
#ifdef SMPI_H /* which has no MPI_Comm_idup, and ends by itself where all processes wait */
  int result = MPI_Comm_dup(comm, made);
  (void)timeout_ms;
#else
  MPI_Request request;
  int done = 0;
  const double begin = MPI_Wtime();
  int result = MPI_Comm_idup(comm, made, &request);
  while (result == MPI_SUCCESS) {
    result = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done || result != MPI_SUCCESS) break;
    if (timeout_ms >= 0 && (MPI_Wtime() - begin) * 1000 > (double)timeout_ms) {
      lockstep_set_error(
          "not all processes of the MPI communicator made theirs of lockstep before the deadline; find out why, or "
          "give "
          "a longer timeout_ms. MPI_Finalize may wait for them for ever: call MPI_Abort");
      return LOCKSTEP_RANK_LOST;
    }
    sched_yield();
  }
#endif
  if (result == MPI_SUCCESS) return LOCKSTEP_OK;
  lockstep_set_error("the MPI communicator could not be duplicated; give one that is in order");
  return LOCKSTEP_BACKEND_FAILED;
}

/* Refuses what cannot carry ranks. */
static inline lockstep_status lockstep_mpi_check(MPI_Comm comm) {
  int initialized = 0, finalized = 0, inter = 0;
  const char* why = NULL;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (!initialized || finalized)
    why = "call this between MPI_Init and MPI_Finalize";
  else if (!lockstep_mpi_allows_thread())
    why = LOCKSTEP_MPI_OTHER_THREAD_TEXT;
  else if (comm == MPI_COMM_NULL)
    why = "mpi is MPI_COMM_NULL; give a communicator, as MPI_COMM_WORLD";
  else if (MPI_Comm_test_inter(comm, &inter) == MPI_SUCCESS && inter)
    why = "mpi is an intercommunicator, whose two groups each have a rank 0; merge them by MPI_Intercomm_merge";
  if (why == NULL) return LOCKSTEP_OK;
  lockstep_set_error(why);
  return LOCKSTEP_INVALID_ARGUMENT;
}

/* A transport over MPI; the caller's communicator is duplicated: collective. timeout_ms: for the others to come, -1:
 * for ever. */
LOCKSTEP_NODISCARD static inline lockstep_status lockstep_engine_mpi_within(MPI_Comm comm, int64_t timeout_ms,
                                                                            lockstep_engine* engine) {
  lockstep_mpi_state* state = NULL;
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0, processes = 0, process = 0;
  lockstep_engine e = {sizeof(lockstep_engine),
                       LOCKSTEP_ENGINE_ABI,
                       LOCKSTEP_ENGINE_CLOSES_TOGETHER,
                       0,
                       0,
                       0,
                       0,
                       lockstep_mpi_isend,
                       lockstep_mpi_irecv,
                       lockstep_mpi_test,
                       lockstep_mpi_error,
                       lockstep_mpi_abort,
                       lockstep_mpi_close,
                       lockstep_mpi_peek};
  lockstep_status status = lockstep_mpi_check(comm);
  if (status != LOCKSTEP_OK) return status;
#ifdef SMPI_H /* SimGrid: simulated ranks on one thread */
  e.flags |= LOCKSTEP_ENGINE_GIVES_WAY;
#endif
  state = (lockstep_mpi_state*)calloc(1, sizeof *state);
  if (state == NULL) {
    lockstep_set_error("out of host memory");
    return LOCKSTEP_OUT_OF_MEMORY;
  }
  status = lockstep_mpi_duplicate(comm, timeout_ms, &state->comm);
  if (status == LOCKSTEP_RANK_LOST) return status; /* state stays: MPI may still write to it */
  if (status != LOCKSTEP_OK) {
    free(state);
    return status;
  }
  MPI_Comm_set_errhandler(state->comm, MPI_ERRORS_RETURN);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, lockstep_mpi_at_finalize, &state->key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, state->key, state);
  MPI_Comm_size(state->comm, &processes);
  MPI_Comm_rank(state->comm, &process);
  MPI_Get_library_version(version, &length);
  version[strcspn(version, ",\n")] = '\0';
  snprintf(state->name, sizeof state->name, "mpi (%.80s)", version);
  e.user = state;
  e.processes = processes;
  e.process = process;
  e.name = state->name;
  *engine = e;
  return LOCKSTEP_OK;
}
LOCKSTEP_NODISCARD static inline lockstep_status lockstep_engine_mpi(MPI_Comm comm, lockstep_engine* engine) {
  return lockstep_engine_mpi_within(comm, lockstep_comm_timeout(NULL), engine);
}

/* lockstep_comm_create over MPI: collective over mpi, which the caller still owns. If
 * it fails on one process it fails on all. */
LOCKSTEP_NODISCARD static inline lockstep_status lockstep_comm_from_mpi(lockstep_context* context, MPI_Comm mpi,
                                                                        const lockstep_comm_options* options,
                                                                        lockstep_comm** comm) {
  lockstep_engine engine;
  lockstep_status status = lockstep_engine_mpi_within(mpi, lockstep_comm_timeout(options), &engine);
  if (status != LOCKSTEP_OK) return status;
  status = lockstep_comm_create(context, &engine, options, comm);
  if (status != LOCKSTEP_OK) engine.close(engine.user, 0);
  return status;
}
/* lockstep_comm_refuse over MPI, in place of lockstep_comm_from_mpi. */
LOCKSTEP_NODISCARD static inline lockstep_status lockstep_comm_refuse_mpi(MPI_Comm mpi,
                                                                          const lockstep_comm_options* options,
                                                                          const char* why) {
  lockstep_engine engine;
  lockstep_status status = lockstep_engine_mpi_within(mpi, lockstep_comm_timeout(options), &engine);
  if (status != LOCKSTEP_OK) return status;
  status = lockstep_comm_refuse(&engine, options, why);
  engine.close(engine.user, 0);
  return status;
}

#ifdef __cplusplus
}
#endif
#endif
