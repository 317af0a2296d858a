// backend.cpp - the module's one symbol: CUDA devices behind the seam of backend.h.
#include <vector>

#include "device/measure.hpp"
#include "device/memory.hpp"
#include "device/pipeline.hpp"
#include "group/normalize.hpp"
#include "group/square_sum.hpp"
#include "group/transpose.hpp"
#include "ops.hpp"

namespace lockstep::cuda {
namespace {
// An op's table with the row of its groups at the end.
lockstep_table with_row(const lockstep_table& table, const lockstep_variant& row) {
  auto* rows = new std::vector<lockstep_variant>(table.rows, table.rows + table.count);  // lives as long as the module
  rows->push_back(row);
  return {rows->data(), rows->size()};
}
}  // namespace
}  // namespace lockstep::cuda

extern "C" __attribute__((visibility("default"))) const lockstep_backend* lockstep_backend_entry(
    const lockstep_host* host) {
  using namespace lockstep::cuda;
  if (host->abi != LOCKSTEP_BACKEND_ABI) {
    host->set_error("this module was built for another lockstep; rebuild it");
    return nullptr;
  }
  lockstep::cuda::host = host;
  static const lockstep_table transposes = with_row(transpose_table, grouped_transpose_row);
  static const lockstep_table normalized = with_row(normalize_table, grouped_normalize_row);
  static const lockstep_table square_sums = with_row(square_sum_table, grouped_square_sum_row);
  static const lockstep_table tables[] = {transposes,    permute_table, square_sums, reduce_table, stencil_table,
                                          shuffle_table, normalized,    scan_table,  sums_table,   reduce_axes_table};
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

extern "C" __attribute__((visibility("default"))) const lockstep_group_table* lockstep_groups_entry() {
  using namespace lockstep::cuda;
  static const lockstep_group_row rows[] = {transpose_group, {}, square_sum_group, {}, {}, {}, normalize_group};
  static const lockstep_group_table table = {LOCKSTEP_BACKEND_ABI, sizeof(lockstep_group_table), rows,
                                             sizeof rows / sizeof *rows, measure_group};
  return &table;
}
