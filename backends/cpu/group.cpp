// group.cpp - many small calls of one op by one team of threads.
// Idea    Each call runs on one thread, by the row that it would take alone on one thread; the threads share the calls.
//         A row's bits do not depend on the number of threads.
// Moves   what the calls move
// Limit   the longest call, which is why large ones are not taken
// Watch   workspaces: one for each thread, as large as the largest that a call needs
// Source  parallel.hpp
#include <algorithm>
#include <iterator>
#include <mutex>

#include "best_row.hpp"
#include "lockstep/backend_group.h"
#include "ops.hpp"
#include "parallel.hpp"

namespace lockstep::cpu {
namespace {

// A call that moves more is shared by all threads, after the others.
constexpr size_t most_bytes = size_t{256} << 10;
// Bytes for each thread below which a larger team costs more than it saves.
constexpr size_t bytes_a_thread = size_t{32} << 10;

struct description {
  size_t workspace = 0;  // of one thread
  int threads = 1;
};
const lockstep_variant** rows_of(void* described) {
  return reinterpret_cast<const lockstep_variant**>(static_cast<description*>(described) + 1);
}
const lockstep_variant* const* rows_of(const void* described) {
  return reinterpret_cast<const lockstep_variant* const*>(static_cast<const description*>(described) + 1);
}
const description& description_of(const lockstep_group& group) {
  return *static_cast<const description*>(group.described);
}

const lockstep_table& table_of(lockstep_op op) {
  static const lockstep_table* const all[] = {&transpose_table, &permute_table,     &square_sum_table, &reduce_table,
                                              &stencil_table,   &shuffle_table,     &normalize_table,  &scan_table,
                                              &sums_table,      &reduce_axes_table, &convert_table,    &convert_table};
  static_assert(std::size(all) == LOCKSTEP_OP_COUNT);
  return *all[op];
}

}  // namespace

lockstep_queue with_threads(const lockstep_queue& queue, int threads) {
  lockstep_queue other = queue;
  other.threads = threads;
  return other;
}

// The row that auto takes: the library's rule (lib/choose/select.cpp).
const lockstep_variant& best_row(const lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_table& table = table_of(call.op);
  const lockstep_variant* yielded = nullptr;
  for (size_t i = 0; i < table.count; ++i) {
    const lockstep_variant& row = table.rows[i];
    if (row.flags != 0 || (row.refuses != nullptr && row.refuses(&queue, &call) != nullptr)) continue;
    if (row.yields == nullptr || row.yields(&queue, &call) == 0) return row;
    if (yielded == nullptr) yielded = &row;
  }
  return yielded != nullptr ? *yielded : table.rows[table.count - 1];  // the reference, which takes every call
}

namespace {

int takes(const lockstep_queue* queue, const lockstep_call*, size_t bytes) {
  return queue->threads == 1 || bytes <= most_bytes;
}

size_t describe(const lockstep_queue* queue, const lockstep_group* group, void* to) {
  if (to != nullptr) {
    auto& about = *new (to) description;
    const lockstep_queue alone = with_threads(*queue, 1);
    size_t bytes = 0;
    for (size_t i = 0; i < group->count; ++i) {
      const lockstep_call& call = group->calls[i];
      const lockstep_variant& row = best_row(alone, call);
      rows_of(to)[i] = &row;
      if (row.workspace != nullptr) about.workspace = std::max(about.workspace, row.workspace(&alone, &call));
      bytes += group->bytes[i];
    }
    about.workspace = (about.workspace + 255) / 256 * 256;
    const size_t most = std::min(group->count, bytes / bytes_a_thread + 1);
    about.threads = static_cast<int>(std::min(most, static_cast<size_t>(queue->threads)));
  }
  return sizeof(description) + group->count * sizeof(const lockstep_variant*);
}

size_t workspace(const lockstep_queue*, const lockstep_group* group) {
  const description& about = description_of(*group);
  return about.workspace * static_cast<size_t>(about.threads);
}

// The first call, in the order of the group, that gave another status than OK.
class first_status {
 public:
  void add(size_t call, lockstep_status status) {
    if (status == LOCKSTEP_OK) return;
    const std::lock_guard lock(mutex_);
    if (status_ != LOCKSTEP_OK && call > call_) return;
    call_ = call, status_ = status;
    format_to(text_, "{}", lockstep_last_error());  // this thread's
  }
  lockstep_status told(size_t* failed) const {
    if (status_ == LOCKSTEP_OK) return LOCKSTEP_OK;
    *failed = call_;
    host->set_error(text_);
    return status_;
  }

 private:
  std::mutex mutex_;
  size_t call_ = 0;
  lockstep_status status_ = LOCKSTEP_OK;
  char text_[512] = "";
};

lockstep_status launch(lockstep_queue* queue, const lockstep_group* group, size_t* failed) {
  const description& about = description_of(*group);
  first_status first;
  over_shares(with_threads(*queue, about.threads), static_cast<int64_t>(group->count), [&](int64_t task, int thread) {
    const auto i = static_cast<size_t>(task);
    lockstep_queue alone = with_threads(*queue, 1);
    lockstep_call call = group->calls[i];
    call.workspace = static_cast<char*>(group->workspace) + about.workspace * static_cast<size_t>(thread);
    call.workspace_bytes = about.workspace;
    first.add(i, rows_of(group->described)[i]->launch(&alone, &call));
  });
  return first.told(failed);
}

}  // namespace
}  // namespace lockstep::cpu

extern "C" const lockstep_group_table* lockstep_cpu_groups() {
  using namespace lockstep::cpu;
  static constexpr lockstep_group_row row = {"grouped", takes, describe, workspace, launch};
  static constexpr lockstep_group_row rows[] = {row, row, row, row, row, row, row, row, row, row, row, row};
  static_assert(sizeof rows / sizeof *rows == LOCKSTEP_OP_COUNT);
  static constexpr lockstep_group_table table = {LOCKSTEP_BACKEND_ABI, sizeof table, rows,
                                                 LOCKSTEP_OP_COUNT,    nullptr,      nullptr};
  return &table;
}
