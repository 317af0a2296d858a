// group.hpp - calls of one op that run together: validated one by one, on one queue. What the backend's group row takes
// it runs at once; the other calls follow one after the other, each by a variant of its own.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "run.hpp"

namespace lockstep::lib {

struct group_arguments {
  lockstep_op op;
  const void* descs;
  size_t desc_bytes;
  int64_t count;
  const void* const* srcs;
  void* const* dsts;
};

// A call that is not empty, with its pointers.
struct group_member {
  prepared_call prepared;
  array_places data;
  size_t index = 0;                         // of its description
  const lockstep_variant* alone = nullptr;  // the row that runs it; NULL: the group's
};

// Throws where an array that one call writes overlaps one of another call.
void require_members_apart(const std::vector<group_member>& members);

class call_group {
 public:
  call_group(lockstep_context* context, const group_arguments& arguments);

  bool empty() const { return members_.empty(); }
  // Throws where a caller's workspace overlaps an array.
  void require_apart(const lockstep_options& options) const;
  // Chooses the backend, and which calls run together. skip: a backend that has failed.
  void choose(lockstep_context* context, const settings& now, const lockstep_options& options,
              const backend_entry* skip);
  choice& chosen() { return chosen_; }
  // That a caller's workspace must have: for the largest of the calls, and for the table of those that run together.
  size_t workspace_bytes() const { return workspace_bytes_; }
  // Without the table, once make_table has made it.
  size_t scratch_bytes() const { return std::max(together_workspace(), alone_workspace_); }
  const char* name() const;  // of what runs first: the group's row, or a call's own
  int32_t order() const;

  // Once, for a plan: the table of the calls goes to memory of the chosen backend.
  void make_table();
  void release_table(lockstep_context* context, pooled_queue* reserved);

  struct result {
    size_t staged_bytes = 0;
    bool started = false;  // a dst may have been written to
  };
  // On the queue that is leased. OVERFLOW or EMPTY of the first such description, after all have run.
  lockstep_status launch(lockstep_context* context, const lockstep_options& options, result& done);
  void remember(const result& done, lockstep_status status);
  // Whether the calls could be repeated after a failure: none may have overwritten its src.
  bool repeatable(lockstep_status failure, const result& done) const;
  // Before a plan's execution: offsets in host memory must be those that were validated.
  void require_same_offsets(lockstep_context* context);
  // Device times, where the backend takes them of all the calls.
  bool measure(lockstep_context* context, uint32_t flags, int32_t samples, double* ms);

 private:
  void choose_rows(lockstep_context* context, const settings& now, const lockstep_options& options,
                   const backend_entry* skip);
  void choose_each();
  lockstep_group group_of_calls() const;
  size_t together_workspace() const;
  void find_workspace();
  void require_workspace(const lockstep_options& options) const;
  void together(const lockstep_options& options);
  void note(size_t index, lockstep_status status);

  std::vector<group_member> members_;
  prepared_call all_;  // stands for all calls where one is asked for: the choice of a backend, a trace
  choice chosen_;
  const lockstep_group_row* row_ = nullptr;
  lockstep_variant shown_{};           // the group's row, for lockstep_last_run
  std::vector<lockstep_call> calls_;   // that run together,
  std::vector<size_t> bytes_, which_;  // their bytes, and their places in members_
  std::vector<size_t> alone_;          // places of the others
  bool has_offsets_ = false;
  size_t workspace_bytes_ = 0, alone_workspace_ = 0;
  std::vector<uint64_t> described_;
  void* table_ = nullptr;  // a plan's
  lockstep_memory table_kind_ = LOCKSTEP_HOST;
  lockstep_status first_status_ = LOCKSTEP_OK;
  size_t first_index_ = 0;
  std::string first_text_;
};

void run_group(lockstep_context* context, const group_arguments& arguments, const lockstep_options* options);
void make_group_plan(lockstep_context* context, const group_arguments& arguments, const lockstep_options* options,
                     lockstep_plan** plan);

}  // namespace lockstep::lib
