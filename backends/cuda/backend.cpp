// backend.cpp - the module's one symbol: CUDA devices behind the seam of backend.h.
#include "device/measure.hpp"
#include "device/memory.hpp"
#include "device/pipeline.hpp"
#include "ops.hpp"

extern "C" __attribute__((visibility("default"))) const lockstep_backend* lockstep_backend_entry(
    const lockstep_host* host) {
  using namespace lockstep::cuda;
  if (host->abi != LOCKSTEP_BACKEND_ABI) {
    host->set_error("this module was built for another lockstep; rebuild it");
    return nullptr;
  }
  lockstep::cuda::host = host;
  static const lockstep_table tables[] = {transpose_table, permute_table,    square_sum_table, reduce_table,
                                          stencil_table,   shuffle_table,    normalize_table,  scan_table,
                                          sums_table,      reduce_axes_table};
  static const lockstep_backend backend = {LOCKSTEP_BACKEND_ABI,
                                           sizeof(lockstep_backend),
                                           "cuda",
                                           "hand-written kernels on NVIDIA GPUs",
                                           devices,
                                           device_info,
                                           queue_create,
                                           queue_destroy,
                                           finish,
                                           scratch,
                                           allocate,
                                           release,
                                           copy,
                                           locate,
                                           reachable,
                                           tables,
                                           sizeof tables / sizeof *tables,
                                           measure,
                                           limit,
                                           run_slabs,
                                           nullptr,
                                           LOCKSTEP_BACKEND_READS};
  return &backend;
}
