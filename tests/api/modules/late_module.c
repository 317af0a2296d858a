/* late_module.c - a backend that computes nothing and fails on purpose. A
 * transpose is found to overflow when its queue is waited for; a shuffle spoils
 * dst and fails at once; a permute succeeds. */
#include "whole.h"

struct lockstep_queue {
  int overflown;
};
static const lockstep_host* host;

static lockstep_status queue_create(const lockstep_queue_options* options, lockstep_queue** queue) {
  (void)options;
  *queue = calloc(1, sizeof(lockstep_queue));
  return *queue != NULL ? LOCKSTEP_OK : LOCKSTEP_OUT_OF_MEMORY;
}
static void queue_destroy(lockstep_queue* queue) { free(queue); }
static lockstep_status finish(lockstep_queue* queue) {
  if (!queue->overflown) return LOCKSTEP_OK;
  queue->overflown = 0;
  host->set_error("it overflowed late");
  return LOCKSTEP_OVERFLOW;
}
static lockstep_status overflow_late(lockstep_queue* queue, const lockstep_call* call) {
  (void)call;
  queue->overflown = 1;
  return LOCKSTEP_OK;
}
static lockstep_status succeed(lockstep_queue* queue, const lockstep_call* call) {
  (void)queue;
  (void)call;
  return LOCKSTEP_OK;
}
static lockstep_status spoil(lockstep_queue* queue, const lockstep_call* call) {
  (void)queue;
  *(unsigned char*)call->dst = 0xEE;
  host->set_error("it spoilt dst");
  return LOCKSTEP_BACKEND_FAILED;
}

static const lockstep_variant transposes[] = {{.name = "late", .idea = "overflows late", .launch = overflow_late}};
static const lockstep_variant permutes[] = {{.name = "late", .idea = "succeeds", .launch = succeed}};
static const lockstep_variant shuffles[] = {{.name = "late", .idea = "spoils dst", .launch = spoil}};
static const lockstep_table tables[] = {
    [LOCKSTEP_TRANSPOSE] = {transposes, 1}, [LOCKSTEP_PERMUTE] = {permutes, 1}, [LOCKSTEP_SHUFFLE] = {shuffles, 1}};
#pragma GCC diagnostic ignored "-Woverride-init"
static const lockstep_backend backend = {WHOLE_BACKEND,
                                         .name = "late",
                                         .description = "fails late",
                                         .queue_create = queue_create,
                                         .queue_destroy = queue_destroy,
                                         .finish = finish,
                                         .tables = tables,
                                         .table_count = sizeof tables / sizeof *tables};

__attribute__((visibility("default"))) const lockstep_backend* lockstep_backend_entry(const lockstep_host* given) {
  host = given;
  return &backend;
}
