/* lockstep-plain.c - a backend of one's own in plain C, outside lockstep's tree: one op, one variant. Built as
 * lockstep-plain.so into a folder that LOCKSTEP_BACKEND_PATH names, it appears in every program as backend "plain". */
#include <lockstep/backend.h>
#include <stdlib.h>
#include <string.h>

struct lockstep_queue {
  const lockstep_allocator* allocator;
  void* scratch;
  size_t scratch_bytes;
};

static const lockstep_host* host;

static lockstep_status failed(lockstep_status status, const char* text) {
  host->set_error(text);
  return status;
}

static lockstep_status devices(int32_t* count) {
  *count = 1;
  return LOCKSTEP_OK;
}
static lockstep_status device_info(int32_t device, lockstep_device_info* info) {
  (void)device;
  strcpy(info->name, "plain loops");
  strcpy(info->detail, "one thread");
  info->processors = 1;
  info->usable = 1;
  return LOCKSTEP_OK;
}

static lockstep_status queue_create(const lockstep_queue_options* options, lockstep_queue** queue) {
  *queue = calloc(1, sizeof(lockstep_queue));
  if (*queue == NULL) return failed(LOCKSTEP_OUT_OF_MEMORY, "no memory for a queue");
  (*queue)->allocator = options->allocator;
  return LOCKSTEP_OK;
}
static void queue_destroy(lockstep_queue* queue) {
  const lockstep_allocator* a = queue->allocator;
  if (queue->scratch != NULL) a->release(a->user, queue->scratch, queue->scratch_bytes, 256);
  free(queue);
}
static lockstep_status finish(lockstep_queue* queue) {
  (void)queue;
  return LOCKSTEP_OK; /* every call is done when it returns */
}
static lockstep_status scratch(lockstep_queue* queue, size_t bytes, void** pointer) {
  const lockstep_allocator* a = queue->allocator;
  if (bytes > queue->scratch_bytes) {
    if (queue->scratch != NULL) a->release(a->user, queue->scratch, queue->scratch_bytes, 256);
    queue->scratch = a->allocate(a->user, bytes, 256);
    queue->scratch_bytes = queue->scratch != NULL ? bytes : 0;
    if (queue->scratch == NULL) return failed(LOCKSTEP_OUT_OF_MEMORY, "no memory for scratch");
  }
  *pointer = queue->scratch;
  return LOCKSTEP_OK;
}

static lockstep_status allocate(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void** pointer) {
  const lockstep_allocator* a = queue->allocator;
  if (kind != LOCKSTEP_HOST) return failed(LOCKSTEP_UNSUPPORTED, "plain has host memory only");
  *pointer = a->allocate(a->user, bytes, 256);
  return *pointer != NULL ? LOCKSTEP_OK : failed(LOCKSTEP_OUT_OF_MEMORY, "no memory");
}
static void release(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void* pointer) {
  (void)kind;
  queue->allocator->release(queue->allocator->user, pointer, bytes, 256);
}
static lockstep_status copy(lockstep_queue* queue, const void* src, void* dst, size_t bytes) {
  (void)queue;
  memmove(dst, src, bytes);
  return LOCKSTEP_OK;
}
static void locate(const void* pointer, lockstep_memory* kind, int32_t* device) {
  (void)pointer;
  *kind = LOCKSTEP_HOST;
  *device = -1;
}
static int reachable(const lockstep_queue* queue, const void* pointer) {
  lockstep_memory kind;
  int32_t device;
  (void)queue;
  locate(pointer, &kind, &device);
  return kind == LOCKSTEP_HOST;
}

/* The library has checked and completed the call: sizes fit, nothing is empty, nothing overlaps but in place. */
static const char* not_in_place(const lockstep_queue* queue, const lockstep_call* call) {
  (void)queue;
  return call->src == call->dst ? "plain loops need src and dst apart" : NULL;
}
static lockstep_status launch(lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_transpose_desc* d = &call->transpose;
  (void)queue;
  for (int64_t b = 0; b < d->batch; ++b)
    for (int64_t i = 0; i < d->rows; ++i)
      for (int64_t j = 0; j < d->cols; ++j) {
        const size_t from = (size_t)(b * d->src_batch_stride + i * d->src_ld + j) * d->element_bytes;
        const size_t to = (size_t)(b * d->dst_batch_stride + j * d->dst_ld + i) * d->element_bytes;
        memcpy((char*)call->dst + to, (const char*)call->src + from, d->element_bytes);
      }
  return LOCKSTEP_OK;
}

static const lockstep_variant transposes[] = {
    {.name = "loops", .idea = "two loops, one element at a time", .refuses = not_in_place, .launch = launch}};

static const lockstep_table tables[] = {[LOCKSTEP_TRANSPOSE] = {transposes, 1}}; /* the other ops are not supported */

static const lockstep_backend backend = {.abi = LOCKSTEP_BACKEND_ABI,
                                         .size = sizeof(lockstep_backend),
                                         .name = "plain",
                                         .description = "plain loops in C, an example",
                                         .devices = devices,
                                         .device_info = device_info,
                                         .queue_create = queue_create,
                                         .queue_destroy = queue_destroy,
                                         .finish = finish,
                                         .scratch = scratch,
                                         .allocate = allocate,
                                         .release = release,
                                         .copy = copy,
                                         .locate = locate,
                                         .reachable = reachable,
                                         .tables = tables,
                                         .table_count = sizeof tables / sizeof *tables};

__attribute__((visibility("default"))) const lockstep_backend* lockstep_backend_entry(const lockstep_host* given) {
  host = given;
  return &backend;
}
