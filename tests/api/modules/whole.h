/* whole.h - the functions that every backend must have, for modules that are about something else. */
#include <stdlib.h>
#include <string.h>

#include "lockstep/backend.h"

#pragma GCC diagnostic ignored "-Wunused-function"

static lockstep_status whole_devices(int32_t* count) {
  *count = 1;
  return LOCKSTEP_OK;
}
static lockstep_status whole_device_info(int32_t device, lockstep_device_info* info) {
  (void)device;
  info->usable = 1;
  return LOCKSTEP_OK;
}
static lockstep_status whole_scratch(lockstep_queue* queue, size_t bytes, void** pointer) {
  (void)queue, (void)bytes, (void)pointer;
  return LOCKSTEP_OUT_OF_MEMORY;
}
static lockstep_status whole_allocate(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void** pointer) {
  (void)queue, (void)kind;
  *pointer = malloc(bytes);
  return *pointer != NULL ? LOCKSTEP_OK : LOCKSTEP_OUT_OF_MEMORY;
}
static void whole_release(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void* pointer) {
  (void)queue, (void)kind, (void)bytes;
  free(pointer);
}
static lockstep_status whole_copy(lockstep_queue* queue, const void* src, void* dst, size_t bytes) {
  (void)queue;
  memmove(dst, src, bytes);
  return LOCKSTEP_OK;
}
static lockstep_status whole_queue_create(const lockstep_queue_options* options, lockstep_queue** queue) {
  (void)options, (void)queue;
  return LOCKSTEP_OUT_OF_MEMORY;
}
static void whole_queue_destroy(lockstep_queue* queue) { (void)queue; }
static lockstep_status whole_finish(lockstep_queue* queue) {
  (void)queue;
  return LOCKSTEP_OK;
}
static void whole_locate(const void* pointer, lockstep_memory* kind, int32_t* device) {
  (void)pointer;
  *kind = LOCKSTEP_HOST;
  *device = -1;
}
static int whole_reachable(const lockstep_queue* queue, const void* pointer) {
  (void)queue, (void)pointer;
  return 1;
}
/* What follows in an initialiser may name any of them again. */
#define WHOLE_BACKEND                                                                                         \
  .abi = LOCKSTEP_BACKEND_ABI, .size = sizeof(lockstep_backend), .devices = whole_devices,                    \
  .device_info = whole_device_info, .queue_create = whole_queue_create, .queue_destroy = whole_queue_destroy, \
  .finish = whole_finish, .scratch = whole_scratch, .allocate = whole_allocate, .release = whole_release,     \
  .copy = whole_copy, .locate = whole_locate, .reachable = whole_reachable
