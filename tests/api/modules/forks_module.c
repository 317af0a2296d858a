/* forks_module.c - a backend that forks in each of its functions, as drivers do that start programs to make their
 * device nodes: once from the calling thread and once from a thread of its own, which it waits for. So a call hangs if
 * it holds a lock that the library's handler of forks takes. forks_calls counts the calls of each function. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/backend_group.h"
#include "whole.h"

#define EXPORT __attribute__((visibility("default")))
// clang-format off
#define EACH(DO)                                                                                                       \
  DO(entry)                                                                                                            \
  DO(devices)                                                                                                          \
  DO(device_info)                                                                                                      \
  DO(queue_create) DO(queue_destroy) DO(finish) DO(scratch) DO(allocate) DO(release) DO(copy) DO(locate) DO(reachable) \
      DO(refuses) DO(yields) DO(workspace) DO(launch) DO(measure) DO(limit) DO(remark) DO(pin) DO(unpin) DO(takes)     \
          DO(describe) DO(group_workspace) DO(group_launch) DO(group_measure)
// clang-format on
#define NUMBER(name) in_##name,
#define NAME(name) #name,
enum { EACH(NUMBER) functions };
EXPORT const char* const forks_names[] = {EACH(NAME) NULL};
EXPORT int forks_calls[functions];
EXPORT int forks_failures;
/* What the child of a fork does, on the calling thread; NULL: it ends at once. Returns 0 if all is well. */
EXPORT int (*forks_child)(void);

static void wait_for(pid_t child) {
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
    __atomic_fetch_add(&forks_failures, 1, __ATOMIC_RELAXED);
}
static void* fork_here(void* unused) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  wait_for(child);
  return unused;
}
static __thread int inside;
static void forks(int function) {
  __atomic_fetch_add(&forks_calls[function], 1, __ATOMIC_RELAXED);
  if (inside++ == 0) {
    const pid_t child = fork();
    if (child == 0) _exit(forks_child != NULL ? forks_child() : 0);
    wait_for(child);
    pthread_t thread;
    if (pthread_create(&thread, NULL, fork_here, NULL) != 0 || pthread_join(thread, NULL) != 0)
      __atomic_fetch_add(&forks_failures, 1, __ATOMIC_RELAXED);
  }
  --inside;
}

struct lockstep_queue {
  int unused;
};
static unsigned char memory[1 << 20];
static size_t taken;

static lockstep_status devices(int32_t* count) {
  forks(in_devices);
  *count = 1;
  return LOCKSTEP_OK;
}
static lockstep_status device_info(int32_t device, lockstep_device_info* info) {
  forks(in_device_info);
  strcpy(info->name, "a device");
  return whole_device_info(device, info);
}
static lockstep_status queue_create(const lockstep_queue_options* options, lockstep_queue** queue) {
  (void)options;
  forks(in_queue_create);
  *queue = calloc(1, sizeof(lockstep_queue));
  return *queue != NULL ? LOCKSTEP_OK : LOCKSTEP_OUT_OF_MEMORY;
}
static void queue_destroy(lockstep_queue* queue) { forks(in_queue_destroy), free(queue); }
static lockstep_status finish(lockstep_queue* queue) {
  (void)queue;
  forks(in_finish);
  return LOCKSTEP_OK;
}
static void* take(size_t bytes) {
  const size_t whole = (bytes + 255) / 256 * 256, at = __atomic_fetch_add(&taken, whole, __ATOMIC_RELAXED);
  return at + whole <= sizeof memory ? memory + at : NULL;
}
static lockstep_status scratch(lockstep_queue* queue, size_t bytes, void** pointer) {
  (void)queue;
  forks(in_scratch);
  *pointer = take(bytes);
  return *pointer != NULL ? LOCKSTEP_OK : LOCKSTEP_OUT_OF_MEMORY;
}
static lockstep_status allocate(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void** pointer) {
  (void)kind;
  forks(in_allocate);
  return scratch(queue, bytes, pointer);
}
static void release(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void* pointer) {
  (void)queue, (void)kind, (void)bytes, (void)pointer;
  forks(in_release);
}
static lockstep_status copy(lockstep_queue* queue, const void* src, void* dst, size_t bytes) {
  forks(in_copy);
  return whole_copy(queue, src, dst, bytes);
}
static int is_ours(const void* pointer) {
  return (const unsigned char*)pointer >= memory && (const unsigned char*)pointer < memory + sizeof memory;
}
static void locate(const void* pointer, lockstep_memory* kind, int32_t* device) {
  forks(in_locate);
  *kind = is_ours(pointer) ? LOCKSTEP_DEVICE : LOCKSTEP_HOST;
  *device = is_ours(pointer) ? 0 : -1;
}
static int reachable(const lockstep_queue* queue, const void* pointer) {
  (void)queue;
  forks(in_reachable);
  return is_ours(pointer);
}
static lockstep_status measure(lockstep_queue* queue, const lockstep_variant* variant, const lockstep_call* call,
                               uint32_t flags, int32_t samples, double* ms) {
  (void)queue, (void)variant, (void)call, (void)flags;
  forks(in_measure);
  for (int32_t i = 0; i < samples; ++i) ms[i] = 1;
  return LOCKSTEP_OK;
}
static lockstep_status limit(lockstep_queue* queue, lockstep_limit which, size_t bytes, uint32_t flags, int32_t samples,
                             double* ms) {
  (void)which, (void)bytes;
  forks(in_limit);
  return measure(queue, NULL, NULL, flags, samples, ms);
}
static const char* remark(const lockstep_queue* queue) {
  (void)queue;
  forks(in_remark);
  return NULL;
}
static lockstep_status pin(lockstep_queue* queue, void* pointer, size_t bytes) {
  (void)queue, (void)pointer, (void)bytes;
  forks(in_pin);
  return LOCKSTEP_OK;
}
static lockstep_status unpin(lockstep_queue* queue, void* pointer) {
  (void)queue, (void)pointer;
  forks(in_unpin);
  return LOCKSTEP_OK;
}

static const char* refuses(const lockstep_queue* queue, const lockstep_call* call) {
  (void)queue, (void)call;
  forks(in_refuses);
  return NULL;
}
static int yields(const lockstep_queue* queue, const lockstep_call* call) {
  (void)queue, (void)call;
  forks(in_yields);
  return 0;
}
static size_t workspace(const lockstep_queue* queue, const lockstep_call* call) {
  (void)queue, (void)call;
  forks(in_workspace);
  return 512;
}
static lockstep_status launch(lockstep_queue* queue, const lockstep_call* call) {
  (void)queue, (void)call;
  forks(in_launch);
  return LOCKSTEP_OK;
}
static int takes(const lockstep_queue* queue, const lockstep_call* call, size_t bytes) {
  (void)queue, (void)call, (void)bytes;
  forks(in_takes);
  return 1;
}
static size_t describe(const lockstep_queue* queue, const lockstep_group* group, void* to) {
  (void)queue, (void)group, (void)to;
  forks(in_describe);
  return 64;
}
static size_t group_workspace(const lockstep_queue* queue, const lockstep_group* group) {
  (void)queue, (void)group;
  forks(in_group_workspace);
  return 512;
}
static lockstep_status group_launch(lockstep_queue* queue, const lockstep_group* group, size_t* failed) {
  (void)queue, (void)group, (void)failed;
  forks(in_group_launch);
  return LOCKSTEP_OK;
}
static lockstep_status group_measure(lockstep_queue* queue, const lockstep_group_row* row, const lockstep_group* group,
                                     uint32_t flags, int32_t samples, double* ms) {
  (void)row, (void)group;
  forks(in_group_measure);
  return measure(queue, NULL, NULL, flags, samples, ms);
}

static const lockstep_variant transposes[] = {
    {"one", "does nothing", 0, refuses, yields, workspace, launch},
    {"two", "does nothing either", 0, refuses, yields, workspace, launch},
};
static const lockstep_table tables[] = {[LOCKSTEP_TRANSPOSE] = {transposes, 2}};
#pragma GCC diagnostic ignored "-Woverride-init"
static const lockstep_backend backend = {WHOLE_BACKEND,
                                         .name = "forks",
                                         .description = "forks in every function",
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
                                         .table_count = sizeof tables / sizeof *tables,
                                         .measure = measure,
                                         .limit = limit,
                                         .remark = remark,
                                         .pin = pin,
                                         .unpin = unpin};
static const lockstep_group_row group_rows[] = {
    [LOCKSTEP_TRANSPOSE] = {"together", takes, describe, group_workspace, group_launch}};
static const lockstep_group_table groups = {.abi = LOCKSTEP_BACKEND_ABI,
                                            .size = sizeof(lockstep_group_table),
                                            .rows = group_rows,
                                            .count = sizeof group_rows / sizeof *group_rows,
                                            .measure = group_measure};

EXPORT const lockstep_backend* lockstep_backend_entry(const lockstep_host* host) {
  (void)host;
  forks(in_entry);
  return &backend;
}
EXPORT const lockstep_group_table* lockstep_groups_entry(void) { return &groups; }
