/* streams_module.c - a backend named cuda whose device memory is the host's, and which computes nothing: it tells
 * what stream a call came on, and how often somebody waited. */
#include <stdint.h>

#include "../api/modules/whole.h"

struct lockstep_queue {
  void* stream;
};
__attribute__((visibility("default"))) void* told_stream;
__attribute__((visibility("default"))) int told_waits, told_launches, told_looks;
static const char *first, *last; /* the device's memory: one block */

static lockstep_status queue_create(const lockstep_queue_options* options, lockstep_queue** queue) {
  *queue = calloc(1, sizeof(lockstep_queue));
  if (*queue == NULL) return LOCKSTEP_OUT_OF_MEMORY;
  (*queue)->stream = options->stream;
  return LOCKSTEP_OK;
}
static void queue_destroy(lockstep_queue* queue) { free(queue); }
static lockstep_status finish(lockstep_queue* queue) {
  (void)queue;
  ++told_waits;
  return LOCKSTEP_OK;
}
static lockstep_status allocate(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void** pointer) {
  (void)queue, (void)kind, (void)bytes;
  enum { size = 1 << 16 };
  if (first == NULL) {
    first = calloc(1, size);
    if (first == NULL) return LOCKSTEP_OUT_OF_MEMORY;
    last = first;
  }
  if (bytes > (size_t)(first + size - last)) return LOCKSTEP_OUT_OF_MEMORY;
  *pointer = (void*)(uintptr_t)last;
  last += (bytes + 255) / 256 * 256;
  return LOCKSTEP_OK;
}
static void release(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void* pointer) {
  (void)queue, (void)kind, (void)bytes, (void)pointer;
}
static void locate(const void* pointer, lockstep_memory* kind, int32_t* device) {
  ++told_looks;
  const char* at = pointer;
  const int ours = first != NULL && at >= first && at < last;
  *kind = ours ? LOCKSTEP_DEVICE : LOCKSTEP_HOST;
  *device = ours ? 0 : -1;
}
static lockstep_status launch(lockstep_queue* queue, const lockstep_call* call) {
  (void)call;
  told_stream = queue->stream;
  ++told_launches;
  return LOCKSTEP_OK;
}

static const lockstep_variant rows[] = {{.name = "told", .idea = "tells its stream", .launch = launch}};
static const lockstep_table tables[] = {[LOCKSTEP_TRANSPOSE] = {rows, 1},
                                        [LOCKSTEP_PERMUTE] = {rows, 1},
                                        [LOCKSTEP_SQUARE_SUM] = {rows, 1},
                                        [LOCKSTEP_SUMS] = {rows, 1}};
#pragma GCC diagnostic ignored "-Woverride-init"
static const lockstep_backend backend = {WHOLE_BACKEND,
                                         .name = "cuda",
                                         .description = "tells streams",
                                         .queue_create = queue_create,
                                         .queue_destroy = queue_destroy,
                                         .finish = finish,
                                         .allocate = allocate,
                                         .release = release,
                                         .locate = locate,
                                         .tables = tables,
                                         .table_count = sizeof tables / sizeof *tables};

__attribute__((visibility("default"))) const lockstep_backend* lockstep_backend_entry(const lockstep_host* host) {
  (void)host;
  return &backend;
}
