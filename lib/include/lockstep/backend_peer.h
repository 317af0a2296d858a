/* backend_peer.h - how the devices of a backend wait for each other and copy to each other without the host: a third,
 * optional part of the interface in backend.h, used by liblockstep_ranks. A module that has it exports
 * lockstep_peers_entry; without it, data of different ranks goes through host memory. */
#ifndef LOCKSTEP_BACKEND_PEER_H
#define LOCKSTEP_BACKEND_PEER_H

#include "lockstep/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of bytes, from the memory of one device to that of another or the same. */
typedef struct lockstep_peer_rows {
  const void* src;
  void* dst;
  size_t src_pitch, dst_pitch; /* bytes from one row to the next; at least width, at most 2^31 - 1 */
  size_t width, height;        /* bytes of a row, rows; at least 1 */
  int32_t src_device, dst_device;
} lockstep_peer_rows;

/* Streams and events are the backend's native ones. No function may be NULL, except for those at the end that say so;
 * all but stream_destroy only enqueue, and none changes the caller's current device. Members are only added at the end,
 * so size says which exist. */
typedef struct lockstep_peer_table {
  uint32_t abi; /* LOCKSTEP_BACKEND_ABI that it was built with */
  uint32_t size;
  lockstep_status (*stream_create)(int32_t device, void** stream);
  void (*stream_destroy)(int32_t device, void* stream); /* waits for its work */
  lockstep_status (*event_create)(int32_t device, void** event);
  void (*event_destroy)(int32_t device, void* event);
  /* The event stands for all work that the stream has now. Recorded again, it stands for the later work; who already
   * waits for it, waits for the earlier. */
  lockstep_status (*record)(int32_t device, void* stream, void* event);
  /* Later work of the stream, which is the device's, waits for the event of any device. */
  lockstep_status (*wait)(int32_t device, void* stream, void* event);
  /* Whether the event's work is done. Returns its failure if the device is lost. */
  lockstep_status (*passed)(int32_t device, void* event, int* done);
  /* Lets a device use another's memory, where the driver allows it; *direct: whether it does. Copies work anyway, but
   * then the driver takes them through host memory. */
  lockstep_status (*connect)(int32_t device, int32_t peer, int* direct);
  /* In the order of a stream of either device. */
  lockstep_status (*copy_rows)(int32_t device, void* stream, const lockstep_peer_rows* rows);
  /* For messages between devices of different processes (the data plane "nccl"). NULL, all four, or a size that ends
   * before: there are none. messages: the file name of a library with NCCL's functions that takes these streams. */
  const char* messages;
  /* Names a device alike in every process and on every machine. */
  lockstep_status (*identity)(int32_t device, unsigned char id[16]);
  /* Calls call(user) while the device is the current one of this thread. */
  lockstep_status (*with_device)(int32_t device, void (*call)(void* user), void* user);
  /* A stream whose work goes before that of others, if the device can do so. */
  lockstep_status (*stream_create_first)(int32_t device, void** stream);
  /* Whether kernels of the device can write to an address of another device's memory: after connect, and where the
   * memory's owner allows it. NULL, or a size that ends before: they cannot. */
  int (*writes)(int32_t device, const void* pointer);
} lockstep_peer_table;

/* Called once, after lockstep_backend_entry. */
typedef const lockstep_peer_table* (*lockstep_peers_entry_fn)(void);
#define LOCKSTEP_PEERS_ENTRY "lockstep_peers_entry"

/* ---- devices, for liblockstep_ranks ------------------------------------- */

/* The table and the device of a backend ("cuda:1"); NULL where the backend has none, as "cpu".
 * Errors: INVALID_ARGUMENT (NULL, malformed, "auto"), NO_BACKEND. */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_peers_get(const char* backend,
                                                                   const lockstep_peer_table** table, int32_t* device);
/* The kind of memory at an address, the table of the backend that owns it (NULL: none, or host memory) and its device.
 * Errors: INVALID_ARGUMENT (NULL). */
LOCKSTEP_NODISCARD LOCKSTEP_API lockstep_status lockstep_peers_locate(const void* pointer, lockstep_memory* kind,
                                                                      const lockstep_peer_table** table,
                                                                      int32_t* device);

#ifdef __cplusplus
}
#endif
#endif
