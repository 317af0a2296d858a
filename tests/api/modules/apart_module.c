/* apart_module.c - a backend with memory of its own, which it alone can use, and one op: a transpose that does
 * nothing. One of 13 rows is found to overflow when its queue is waited for, one of 17 to be empty; of several calls
 * of a group the first description's is told, as CUDA does it. */
#include <stdio.h>

#include "lockstep/backend_group.h"
#include "whole.h"

struct lockstep_queue {
  int64_t description, first; /* of a group, plus 1 */
  lockstep_status failed;
};
static const lockstep_host* host;
static unsigned char memory[1 << 16];
static size_t taken;

static lockstep_status queue_create(const lockstep_queue_options* options, lockstep_queue** queue) {
  (void)options;
  *queue = calloc(1, sizeof(lockstep_queue));
  return *queue != NULL ? LOCKSTEP_OK : LOCKSTEP_OUT_OF_MEMORY;
}
static void queue_destroy(lockstep_queue* queue) { free(queue); }
static lockstep_status allocate(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void** pointer) {
  (void)queue, (void)kind;
  if (bytes > sizeof memory - taken) return LOCKSTEP_OUT_OF_MEMORY;
  *pointer = memory + taken;
  taken += (bytes + 255) / 256 * 256;
  return LOCKSTEP_OK;
}
static void release(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void* pointer) {
  (void)queue, (void)kind;
  if ((unsigned char*)pointer + (bytes + 255) / 256 * 256 == memory + taken)
    taken = (size_t)((unsigned char*)pointer - memory);
}
static int is_ours(const void* pointer) {
  return (const unsigned char*)pointer >= memory && (const unsigned char*)pointer < memory + sizeof memory;
}
static void locate(const void* pointer, lockstep_memory* kind, int32_t* device) {
  *kind = is_ours(pointer) ? LOCKSTEP_DEVICE : LOCKSTEP_HOST;
  *device = is_ours(pointer) ? 0 : -1;
}
static int reachable(const lockstep_queue* queue, const void* pointer) {
  (void)queue;
  return is_ours(pointer);
}
static lockstep_status launch(lockstep_queue* queue, const lockstep_call* call) {
  const int64_t rows = call->transpose.rows;
  if (rows != 13 && rows != 17) return LOCKSTEP_OK;
  if (queue->failed != LOCKSTEP_OK && queue->first <= queue->description) return LOCKSTEP_OK;
  queue->failed = rows == 13 ? LOCKSTEP_OVERFLOW : LOCKSTEP_EMPTY;
  queue->first = queue->description;
  return LOCKSTEP_OK;
}
static lockstep_status finish(lockstep_queue* queue) {
  const lockstep_status failed = queue->failed;
  char text[64];
  if (failed == LOCKSTEP_OK) return LOCKSTEP_OK;
  snprintf(text, sizeof text, queue->first != 0 ? "descs[%d]: found late" : "found late", (int)queue->first - 1);
  host->set_error(text);
  queue->failed = LOCKSTEP_OK;
  return failed;
}
static void of_description(lockstep_queue* queue, int64_t index) { queue->description = index + 1; }

static const lockstep_variant transposes[] = {{.name = "apart", .idea = "does nothing", .launch = launch}};
static const lockstep_table tables[] = {[LOCKSTEP_TRANSPOSE] = {transposes, 1}};
#pragma GCC diagnostic ignored "-Woverride-init"
static const lockstep_backend backend = {WHOLE_BACKEND,
                                         .name = "apart",
                                         .description = "memory of its own",
                                         .queue_create = queue_create,
                                         .queue_destroy = queue_destroy,
                                         .finish = finish,
                                         .allocate = allocate,
                                         .release = release,
                                         .locate = locate,
                                         .reachable = reachable,
                                         .tables = tables,
                                         .table_count = sizeof tables / sizeof *tables};

__attribute__((visibility("default"))) const lockstep_backend* lockstep_backend_entry(const lockstep_host* given) {
  host = given;
  return &backend;
}
__attribute__((visibility("default"))) const lockstep_group_table* lockstep_groups_entry(void) {
  static const lockstep_group_table groups = {
      .abi = LOCKSTEP_BACKEND_ABI, .size = sizeof groups, .of_description = of_description};
  return &groups;
}
