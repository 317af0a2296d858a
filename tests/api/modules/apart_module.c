/* apart_module.c - a backend with memory of its own, which it alone can use, and one op: a transpose that does
 * nothing. */
#include "whole.h"

struct lockstep_queue {
  int unused;
};
static unsigned char memory[1 << 16];
static size_t taken;

static lockstep_status devices(int32_t* count) {
  *count = 1;
  return LOCKSTEP_OK;
}
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
  (void)queue, (void)kind, (void)bytes, (void)pointer;
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
static lockstep_status succeed(lockstep_queue* queue, const lockstep_call* call) {
  (void)queue, (void)call;
  return LOCKSTEP_OK;
}

static const lockstep_variant transposes[] = {{.name = "apart", .idea = "does nothing", .launch = succeed}};
static const lockstep_table tables[] = {[LOCKSTEP_TRANSPOSE] = {transposes, 1}};
#pragma GCC diagnostic ignored "-Woverride-init"
static const lockstep_backend backend = {WHOLE_BACKEND,
                                         .name = "apart",
                                         .description = "memory of its own",
                                         .devices = devices,
                                         .queue_create = queue_create,
                                         .queue_destroy = queue_destroy,
                                         .allocate = allocate,
                                         .release = release,
                                         .locate = locate,
                                         .reachable = reachable,
                                         .tables = tables,
                                         .table_count = sizeof tables / sizeof *tables};

__attribute__((visibility("default"))) const lockstep_backend* lockstep_backend_entry(const lockstep_host* host) {
  (void)host;
  return &backend;
}
