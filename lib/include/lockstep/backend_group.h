/* backend_group.h - how a backend runs many calls of one op at once: a second, optional
 * part of the interface in backend.h. A module that has it exports lockstep_groups_entry;
 * without it the library runs the calls one after the other. */
#ifndef LOCKSTEP_BACKEND_GROUP_H
#define LOCKSTEP_BACKEND_GROUP_H

#include "lockstep/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Calls of one op that run together. None depends on another: no dst of one overlaps an array of another. */
typedef struct lockstep_group {
  lockstep_op op;
  const lockstep_call* calls; /* complete, but without workspaces of their own */
  const size_t* bytes;        /* that each call reads and writes */
  size_t count;               /* 1 or more */
  const void* described;      /* what describe wrote for these calls, in host memory */
  const void* table; /* its copy in memory that the queue's kernels read; NULL: launch makes one in workspace */
  void* workspace;   /* workspace() bytes, aligned to 256; not initialised */
} lockstep_group;

/* How a group of an op's calls runs at once. Every call gives the bits that it gives
 * alone. No function but workspace may be NULL. */
typedef struct lockstep_group_row {
  const char* name; /* NULL: no groups of this op. If the op's table has a row of this name, naming it forces this */
  /* Whether a call that reads and writes so many bytes may be in a group; the others run alone. */
  int (*takes)(const lockstep_queue* queue, const lockstep_call* call, size_t bytes);
  /* Writes what launch needs to know of the calls, and returns its bytes; only that where to is NULL. to is aligned
   * to 8. */
  size_t (*describe)(const lockstep_queue* queue, const lockstep_group* group, void* to);
  size_t (*workspace)(const lockstep_queue* queue, const lockstep_group* group); /* of a described group; NULL: none */
  /* Runs or enqueues the calls. All of them run even if one gives OVERFLOW or EMPTY: that status is returned, and
   * *failed is the first such call. finish never gives these statuses for a group: what may end so is not taken, or
   * waited for here. */
  lockstep_status (*launch)(lockstep_queue* queue, const lockstep_group* group, size_t* failed);
} lockstep_group_row;

/* Members are only added at the end, so size says which exist. */
typedef struct lockstep_group_table {
  uint32_t abi; /* LOCKSTEP_BACKEND_ABI that it was built with */
  uint32_t size;
  const lockstep_group_row* rows; /* indexed by lockstep_op; an op at or beyond the count has no groups */
  size_t count;
  /* As lockstep_backend.measure, for a group. NULL: the library takes the host's time. */
  lockstep_status (*measure)(lockstep_queue* queue, const lockstep_group_row* row, const lockstep_group* group,
                             uint32_t flags, int32_t samples, double* ms);
  /* Calls that rows of the op's table launch from now on are description index of a group; -1: of none. The text of a
   * failure of theirs that finish tells begins with "descs[3]: ", and of several the lowest description's is told.
   * NULL: finish cannot name them. */
  void (*of_description)(lockstep_queue* queue, int64_t index);
} lockstep_group_table;

/* Called once, after lockstep_backend_entry. */
typedef const lockstep_group_table* (*lockstep_groups_entry_fn)(void);
#define LOCKSTEP_GROUPS_ENTRY "lockstep_groups_entry"

#ifdef __cplusplus
}
#endif
#endif
