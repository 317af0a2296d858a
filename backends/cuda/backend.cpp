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
std::vector<lockstep_variant> with_row(const lockstep_table& table, const lockstep_variant& row) {
  std::vector<lockstep_variant> rows(table.rows, table.rows + table.count);
  rows.push_back(row);
  return rows;
}
// Never destroyed: threads may call while the process ends.
using rows_of_op = const std::vector<lockstep_variant>&;
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
  static rows_of_op transposes = *new std::vector(with_row(transpose_table, grouped_transpose_row));
  static rows_of_op normalized = *new std::vector(with_row(normalize_table, grouped_normalize_row));
  static rows_of_op square_sums = *new std::vector(with_row(square_sum_table, grouped_square_sum_row));
  static const lockstep_table tables[] = {{transposes.data(), transposes.size()},
                                          permute_table,
                                          {square_sums.data(), square_sums.size()},
                                          reduce_table,
                                          stencil_table,
                                          shuffle_table,
                                          {normalized.data(), normalized.size()},
                                          scan_table,
                                          sums_table,
                                          reduce_axes_table,
                                          convert_table,
                                          map_table};
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
                                           9,
                                           pin,
                                           unpin};
  return &backend;
}

extern "C" __attribute__((visibility("default"))) const lockstep_group_table* lockstep_groups_entry() {
  using namespace lockstep::cuda;
  static const lockstep_group_row rows[] = {transpose_group, {}, square_sum_group, {}, {}, {}, normalize_group};
  static const lockstep_group_table table = {
      LOCKSTEP_BACKEND_ABI, sizeof(lockstep_group_table), rows, sizeof rows / sizeof *rows, measure_group,
      of_description};
  return &table;
}
