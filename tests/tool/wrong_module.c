/* wrong_module.c - a backend whose transposes of 4-byte elements are right, and one that gets a bit wrong. */
#include "../api/modules/whole.h"

struct lockstep_queue {
  int unused;
};

static lockstep_status device_info(int32_t device, lockstep_device_info* info) {
  (void)device;
  strcpy(info->name, "a scripted device");
  return LOCKSTEP_OK;
}
static lockstep_status queue_create(const lockstep_queue_options* options, lockstep_queue** queue) {
  (void)options;
  *queue = calloc(1, sizeof(lockstep_queue));
  return *queue != NULL ? LOCKSTEP_OK : LOCKSTEP_OUT_OF_MEMORY;
}
static void queue_destroy(lockstep_queue* queue) { free(queue); }
static lockstep_status right(lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_transpose_desc* d = &call->transpose;
  const uint32_t* src = call->src;
  uint32_t* dst = call->dst;
  (void)queue;
  for (int64_t i = 0; i < d->rows; ++i)
    for (int64_t j = 0; j < d->cols; ++j) dst[j * d->dst_ld + i] = src[i * d->src_ld + j];
  return LOCKSTEP_OK;
}
static lockstep_status wrong(lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_transpose_desc* d = &call->transpose;
  (void)right(queue, call);
  ((uint32_t*)call->dst)[(d->cols - 1) * d->dst_ld + d->rows - 1] ^= 1; /* the last element's lowest bit */
  return LOCKSTEP_OK;
}
static lockstep_status measure(lockstep_queue* queue, const lockstep_variant* variant, const lockstep_call* call,
                               uint32_t flags, int32_t samples, double* ms) {
  (void)flags;
  for (int32_t i = 0; i < samples; ++i) ms[i] = 1;
  return variant->launch(queue, call);
}
static lockstep_status limit(lockstep_queue* queue, lockstep_limit kind, size_t bytes, uint32_t flags, int32_t samples,
                             double* ms) {
  (void)queue;
  (void)bytes;
  (void)flags;
  for (int32_t i = 0; i < samples; ++i) ms[i] = 1;
  return kind == LOCKSTEP_LIMIT_FMA_F32 || kind == LOCKSTEP_LIMIT_FMA_F64 ? LOCKSTEP_UNSUPPORTED : LOCKSTEP_OK;
}

static const lockstep_variant transposes[] = {{.name = "right", .idea = "plain loops", .launch = right},
                                              {.name = "wrong", .idea = "a bit off", .launch = wrong}};
static const lockstep_table tables[] = {[LOCKSTEP_TRANSPOSE] = {transposes, 2}};
#pragma GCC diagnostic ignored "-Woverride-init"
static const lockstep_backend backend = {WHOLE_BACKEND,
                                         .name = "wrong",
                                         .description = "gets a bit wrong",
                                         .device_info = device_info,
                                         .queue_create = queue_create,
                                         .queue_destroy = queue_destroy,
                                         .tables = tables,
                                         .table_count = 1,
                                         .measure = measure,
                                         .limit = limit};

__attribute__((visibility("default"))) const lockstep_backend* lockstep_backend_entry(const lockstep_host* host) {
  (void)host;
  return &backend;
}
