/* two_module.c - a backend with two rows for transposes and two for normalize: the first in its table is slow, the
 * second fast, but only where dst lies at a multiple of 64 bytes. What normalize computes is of no interest here, only
 * that it reads and writes each array. */
#define _DEFAULT_SOURCE  // usleep
#include <unistd.h>

#include "../api/modules/whole.h"

struct lockstep_queue {
  int one;
};
static lockstep_queue queue;

static lockstep_status create(const lockstep_queue_options* options, lockstep_queue** to) {
  (void)options;
  *to = &queue;
  return LOCKSTEP_OK;
}
static lockstep_status allocate(lockstep_queue* on, lockstep_memory kind, size_t bytes, void** pointer) {
  (void)on, (void)kind;
  *pointer = aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *pointer != NULL ? LOCKSTEP_OK : LOCKSTEP_OUT_OF_MEMORY;
}
static lockstep_status fast(lockstep_queue* on, const lockstep_call* call) {
  const lockstep_transpose_desc* d = &call->transpose;
  (void)on;
  for (int64_t i = 0; i < d->rows; ++i)
    for (int64_t j = 0; j < d->cols; ++j)
      ((float*)call->dst)[j * d->dst_ld + i] = ((const float*)call->src)[i * d->src_ld + j];
  return LOCKSTEP_OK;
}
static lockstep_status slow(lockstep_queue* on, const lockstep_call* call) {
  usleep(3000);
  return fast(on, call);
}
static lockstep_status fast_rows(lockstep_queue* on, const lockstep_call* call) {
  const lockstep_normalize_desc* d = &call->normalize;
  (void)on;
  for (int64_t i = 0; i < d->count; ++i)
    for (int64_t j = 0; j < d->length; ++j) {
      const float x = ((const float*)call->src)[i * d->src_stride + j],
                  with = ((const float*)d->residual)[i * d->residual_stride + j];
      ((float*)d->sum)[i * d->sum_stride + j] = x + with;
      ((float*)call->dst)[i * d->dst_stride + j] = (x + with) * ((const float*)d->weight)[j];
    }
  return LOCKSTEP_OK;
}
static lockstep_status slow_rows(lockstep_queue* on, const lockstep_call* call) {
  usleep(3000);
  return fast_rows(on, call);
}
static const char* unless_aligned(const lockstep_queue* on, const lockstep_call* call) {
  (void)on;
  return (size_t)call->dst % 64 == 0 ? NULL : "needs dst at a multiple of 64 bytes";
}

static const lockstep_variant rows[] = {
    {.name = "slow", .idea = "sleeps", .launch = slow},
    {.name = "fast", .idea = "does not", .refuses = unless_aligned, .launch = fast}};
static const lockstep_variant normalize_rows[] = {
    {.name = "slow", .idea = "sleeps", .launch = slow_rows},
    {.name = "fast", .idea = "does not", .refuses = unless_aligned, .launch = fast_rows}};
static const lockstep_table tables[] = {[LOCKSTEP_TRANSPOSE] = {rows, 2}, [LOCKSTEP_NORMALIZE] = {normalize_rows, 2}};
#pragma GCC diagnostic ignored "-Woverride-init"
static const lockstep_backend backend = {WHOLE_BACKEND,
                                         .name = "two",
                                         .description = "two rows",
                                         .queue_create = create,
                                         .allocate = allocate,
                                         .tables = tables,
                                         .table_count = sizeof tables / sizeof *tables};

__attribute__((visibility("default"))) const lockstep_backend* lockstep_backend_entry(const lockstep_host* given) {
  (void)given;
  return &backend;
}
