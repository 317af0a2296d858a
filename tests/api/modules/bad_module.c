/* bad_module.c - modules with one defect each, chosen at compile time. */
#include "lockstep/backend_peer.h"
#include "whole.h"

#define EXPORT __attribute__((visibility("default")))

#if defined(DEFECT_SYMBOL) /* a library, but no backend */
EXPORT int unrelated(void);
EXPORT int unrelated(void) { return 1; }
#else
static lockstep_status devices(int32_t* count) {
#if defined(DEFECT_DEVICES) /* as a driver that fails: the output stays unwritten */
  (void)count;
  return LOCKSTEP_NO_BACKEND;
#else
  *count = 1;
  return LOCKSTEP_OK;
#endif
}
static lockstep_status launch(lockstep_queue* queue, const lockstep_call* call) {
  (void)queue, (void)call;
  return LOCKSTEP_OK;
}
__attribute__((unused)) static const lockstep_variant nameless[] = {{.idea = "no name", .launch = launch}};
__attribute__((unused)) static const lockstep_variant coloured[] = {
    {.name = "plain", .idea = "\x1B[31mred", .launch = launch}};
__attribute__((unused)) static const char* red(const lockstep_queue* queue, const lockstep_call* call) {
  (void)queue, (void)call;
  return "\x1B[31mred \xE9";
}
__attribute__((unused)) static const lockstep_variant refusing[] = {
    {.name = "plain", .idea = "refuses", .refuses = red, .launch = launch}};
#if defined(DEFECT_REFUSES)
static lockstep_status create(const lockstep_queue_options* options, lockstep_queue** queue) {
  static max_align_t one;
  (void)options;
  *queue = (lockstep_queue*)&one;
  return LOCKSTEP_OK;
}
static lockstep_status coloured_info(int32_t device, lockstep_device_info* info) {
  strcpy(info->name, "\x1B[31mred");
  memset(info->detail, 'x', sizeof info->detail); /* without an end */
  return whole_device_info(device, info);
}
#endif
static const lockstep_table tables[] = {
#if defined(DEFECT_ROWS)
    {NULL, 3},
#elif defined(DEFECT_COUNT)
    {nameless, (size_t)-1},
#elif defined(DEFECT_NAMELESS)
    {nameless, 1},
#elif defined(DEFECT_COLOURED)
    {coloured, 1},
#elif defined(DEFECT_REFUSES)
    {refusing, 1},
#else
    {NULL, 0},
#endif
};
#pragma GCC diagnostic ignored "-Woverride-init"
#pragma GCC diagnostic ignored "-Wunused-const-variable"
static const lockstep_backend backend = {WHOLE_BACKEND,
                                         .name = "bad",
                                         .description = "has one defect",
                                         .devices = devices,
                                         .tables = tables,
                                         .table_count = sizeof tables / sizeof *tables,
#if defined(DEFECT_ABI)
                                         .abi = LOCKSTEP_BACKEND_ABI + 1
#elif defined(DEFECT_REFUSES)
                                         .queue_create = create,
                                         .device_info = coloured_info
#elif defined(DEFECT_MEMBER)
                                         .copy = NULL
#elif defined(DEFECT_TABLES)
                                         .tables = NULL
#endif
};
EXPORT const lockstep_backend* lockstep_backend_entry(const lockstep_host* host) {
  if (host->abi != LOCKSTEP_BACKEND_ABI) return NULL;
#if defined(DEFECT_INIT)
  host->set_error("the flux capacitor is missing\x1B[31m \xE9");
  return NULL;
#else
  return &backend;
#endif
}
#if defined(DEFECT_OLD_PEERS) || defined(DEFECT_HALF_PEERS)
EXPORT const lockstep_peer_table* lockstep_peers_entry(void) {
#if defined(DEFECT_OLD_PEERS)
  static const lockstep_peer_table table = {.abi = LOCKSTEP_BACKEND_ABI, .size = 16};
#else
  static const lockstep_peer_table table = {.abi = LOCKSTEP_BACKEND_ABI, .size = sizeof(lockstep_peer_table)};
#endif
  return &table;
}
#endif
#endif
