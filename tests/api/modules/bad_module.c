/* bad_module.c - a module with one defect, chosen by -DDEFECT_*. */
#include "lockstep/backend.h"

#define EXPORT __attribute__((visibility("default")))

#if defined(DEFECT_ABI)
static const lockstep_backend backend = {
    .abi = LOCKSTEP_BACKEND_ABI + 1, .size = sizeof(lockstep_backend), .name = "wrongabi", .description = ""};
EXPORT const lockstep_backend* lockstep_backend_entry(const lockstep_host* host) {
  (void)host;
  return &backend;
}
#elif defined(DEFECT_INIT)
EXPORT const lockstep_backend* lockstep_backend_entry(const lockstep_host* host) {
  host->set_error("the flux capacitor is missing");
  return NULL;
}
#elif defined(DEFECT_DEVICES)
static lockstep_status no_devices(int32_t* count) {
  (void)count; /* as a driver that fails: the output stays unwritten */
  return LOCKSTEP_NO_BACKEND;
}
static const lockstep_backend backend = {.abi = LOCKSTEP_BACKEND_ABI,
                                         .size = sizeof(lockstep_backend),
                                         .name = "nodevice",
                                         .description = "",
                                         .devices = no_devices};
EXPORT const lockstep_backend* lockstep_backend_entry(const lockstep_host* host) {
  (void)host;
  return &backend;
}
#else /* DEFECT_SYMBOL: a library, but no backend */
EXPORT int unrelated(void);
EXPORT int unrelated(void) { return 1; }
#endif
