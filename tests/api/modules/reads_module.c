/* reads_module.c - a backend whose reductions take every call and leave 0xEE in dst: what it must not see shows at
 * once. READS: what it says that it reads; without, it is one from before that member. */
#include <stddef.h>

#include "whole.h"

struct lockstep_queue {
  int one;
};
static lockstep_queue queue;
static const char *device_begin, *device_end; /* memory that it calls its own */

static lockstep_status create(const lockstep_queue_options* options, lockstep_queue** to) {
  (void)options;
  *to = &queue;
  return LOCKSTEP_OK;
}
static lockstep_status allocate(lockstep_queue* on, lockstep_memory kind, size_t bytes, void** pointer) {
  (void)on;
  *pointer = malloc(bytes);
  if (*pointer == NULL) return LOCKSTEP_OUT_OF_MEMORY;
  if (kind == LOCKSTEP_DEVICE) device_begin = *pointer, device_end = device_begin + bytes;
  return LOCKSTEP_OK;
}
static void locate(const void* pointer, lockstep_memory* kind, int32_t* device) {
  const char* at = pointer;
  const int own = at >= device_begin && at < device_end;
  *kind = own ? LOCKSTEP_DEVICE : LOCKSTEP_HOST;
  *device = own ? 0 : -1;
}
static lockstep_status scribble(lockstep_queue* on, const lockstep_call* call) {
  (void)on;
  *(unsigned char*)call->dst = 0xEE;
  return LOCKSTEP_OK;
}

static const lockstep_variant rows[] = {{.name = "scribble", .idea = "writes 0xEE", .launch = scribble}};
static const lockstep_table tables[] = {[LOCKSTEP_SQUARE_SUM] = {rows, 1}, [LOCKSTEP_REDUCE] = {rows, 1}};
#pragma GCC diagnostic ignored "-Woverride-init"
static const lockstep_backend backend = {WHOLE_BACKEND,
#if defined(READS)
                                         .reads = READS,
#else
                                         .size = offsetof(lockstep_backend, reads),
                                         .reads = 0x7EADBEEFu, /* what lies behind it in memory */
#endif
                                         .name = "reads",
                                         .description = "scribbles",
                                         .queue_create = create,
                                         .allocate = allocate,
                                         .locate = locate,
                                         .tables = tables,
                                         .table_count = sizeof tables / sizeof *tables};

__attribute__((visibility("default"))) const lockstep_backend* lockstep_backend_entry(const lockstep_host* given) {
  (void)given;
  return &backend;
}
