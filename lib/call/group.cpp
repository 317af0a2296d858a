// group.cpp - see group.hpp.
#include "group.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "../ops/ops.hpp"
#include "enough_stack.hpp"
#include "interruptible.hpp"
#include "lockstep/group.h"
#include "trace.hpp"

namespace lockstep::lib {
namespace {

// Runs body for one description, whose number an error then names.
template <class Body>
void of_description(size_t index, const Body& body) {
  try {
    body();
  } catch (const error& e) {
    throw error{e.status, format_text("descs[{}]: {}", index, e.text)};
  }
}

void require_arguments(const group_arguments& a) {
  row_of(a.op);
  if (a.count < 0) fail(LOCKSTEP_INVALID_ARGUMENT, "count is {}; give 0 or more", a.count);
  if (a.count == 0) return;
  if (a.descs == nullptr || a.srcs == nullptr || a.dsts == nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "{} is NULL; pass an array of {}",
         a.descs == nullptr  ? "descs"
         : a.srcs == nullptr ? "srcs"
                             : "dsts",
         a.count);
  const auto sizes = row_of(a.op).sizes;
  if (std::find(sizes.begin(), sizes.end(), a.desc_bytes) == sizes.end())
    fail(LOCKSTEP_INVALID_ARGUMENT, "desc_bytes is {}; give sizeof({}), {} in this library", a.desc_bytes,
         row_of(a.op).description, sizes.back());
}

// While it lives, the backend's calls are those of a description.
class described_calls {
 public:
  described_calls(const choice& chosen, int64_t index) : chosen_(chosen) {
    const lockstep_group_table* groups = chosen.entry->groups();
    constexpr size_t needed = offsetof(lockstep_group_table, of_description) + sizeof groups->of_description;
    if (index >= 0 && groups != nullptr && groups->size >= needed) tell_ = groups->of_description;
    if (tell_ != nullptr) tell_(chosen_.queue.get(), index);
  }
  ~described_calls() {
    if (tell_ != nullptr) tell_(chosen_.queue.get(), -1);
  }
  described_calls(const described_calls&) = delete;
  described_calls& operator=(const described_calls&) = delete;

 private:
  const choice& chosen_;
  void (*tell_)(lockstep_queue*, int64_t) = nullptr;
};

bool reaches_all(const choice& chosen, const prepared_call& p, const array_places& data) {
  if (p.src_span != 0 && !can_reach(chosen, data.src, p.call.src)) return false;
  if (!can_reach(chosen, data.dst, p.call.dst)) return false;
  if (p.offsets_bytes != 0 && !can_reach(chosen, data.offsets, offsets_of(p.call))) return false;
  for (int i = 0; i < p.side_count; ++i)
    if (!can_reach(chosen, data.sides[i], p.sides[i].pointer)) return false;
  return true;
}

}  // namespace

call_group::call_group(lockstep_context* context, const group_arguments& a) {
  require_arguments(a);
  members_.reserve(static_cast<size_t>(std::min<int64_t>(a.count, 1 << 16)));
  const auto* desc = static_cast<const unsigned char*>(a.descs);
  for (size_t i = 0; i < static_cast<size_t>(a.count); ++i, desc += a.desc_bytes) {
    of_description(i, [&] {
      size_t size = 0;
      std::memcpy(&size, desc, sizeof size);
      if (size != a.desc_bytes)
        fail(LOCKSTEP_INVALID_ARGUMENT, "its size is {}, but desc_bytes is {}; both are sizeof({})", size, a.desc_bytes,
             row_of(a.op).description);
      prepared_call prepared = prepare(a.op, desc);
      check_pointers(prepared, a.srcs[i], a.dsts[i]);
      if (prepared.empty) return;
      group_member& m = members_.emplace_back();
      m.prepared = std::move(prepared);
      m.index = i;
      m.prepared.call.src = a.srcs[i];
      m.prepared.call.dst = a.dsts[i];
      resolve_offsets(context, m.prepared);
      has_offsets_ = has_offsets_ || m.prepared.offsets_bytes != 0;
      m.data = locate(m.prepared, a.srcs[i], a.dsts[i]);
    });
  }
  require_members_apart(members_);
}

static bool names_a_backend(const settings& now, const lockstep_options& options) {
  return options.backend != nullptr ? std::string(options.backend) != "auto" : !now.backend.is_auto();
}

void call_group::choose(lockstep_context* context, const settings& now, const lockstep_options& options,
                        const backend_entry* skip) {
  chosen_ = {};
  try {
    return choose_rows(context, now, options, skip);
  } catch (const error& e) {
    const bool passes_over = e.status == LOCKSTEP_UNSUPPORTED && !names_a_backend(now, options) && skip == nullptr &&
                             chosen_.entry != nullptr && !chosen_.entry->is_cpu() && !chosen_.forced;
    if (!passes_over) throw;
    const backend_entry* const without = chosen_.entry;
    choose_rows(context, now, options, without);
    chosen_.why = chosen_.why.empty() ? e.text : e.text + "; " + chosen_.why;
  }
}

void call_group::choose_rows(lockstep_context* context, const settings& now, const lockstep_options& options,
                             const backend_entry* skip) {
  // A call whose arrays are on a device, where there is one, stands for all.
  const group_member* first = &members_.front();
  for (const group_member& m : members_)
    if (m.data.on_device().owner != nullptr && first->data.on_device().owner == nullptr) first = &m;
  all_ = first->prepared;
  all_.moved_bytes = 0;
  for (const group_member& m : members_) {
    all_.moved_bytes += m.prepared.moved_bytes;
    if (m.prepared.reads > all_.reads) all_.reads = m.prepared.reads, all_.needs = m.prepared.needs;
  }
  try {
    chosen_ = select(context, now, all_, options, first->data, skip);
  } catch (const error& e) {  // only this is about a description; the rest are faults of options or of a backend
    if (e.status != LOCKSTEP_UNSUPPORTED) throw;
    throw error{e.status, format_text("descs[{}]: {}", first->index, e.text)};
  }
  with_enough_stack(*chosen_.entry, [&] { choose_each(); });
}

// Which of the calls run together, and the rows of the others.
void call_group::choose_each() {
  row_ = chosen_.entry->group_row(all_.call.op);
  const bool forced_apart = chosen_.forced && (row_ == nullptr || std::strcmp(chosen_.variant->name, row_->name) != 0);
  calls_.clear(), bytes_.clear(), which_.clear(), alone_.clear();
  for (group_member& m : members_) {
    const lockstep_queue* queue = chosen_.queue.get();
    m.alone = nullptr;
    m.prepared.call.workspace_bytes = 0;
    if (row_ != nullptr && !forced_apart && reaches_all(chosen_, m.prepared, m.data) &&
        row_->takes(queue, &m.prepared.call, m.prepared.moved_bytes) != 0) {
      calls_.push_back(m.prepared.call);
      bytes_.push_back(m.prepared.moved_bytes);
      which_.push_back(static_cast<size_t>(&m - members_.data()));
      continue;
    }
    m.alone = pick_variant(chosen_, m.prepared.call);
    if (m.alone == nullptr) {
      const auto refuses = chosen_.variant->refuses;
      const char* why = chosen_.forced && refuses != nullptr ? refuses(queue, &m.prepared.call) : nullptr;
      fail(LOCKSTEP_UNSUPPORTED, "descs[{}]: {} of {}{}{}; lift the forced backend or variant", m.index,
           chosen_.forced ? format_text("variant \"{}\"", chosen_.variant->name) : "no variant", chosen_.entry->name(),
           chosen_.forced ? " refuses this call: " : " takes this call", why != nullptr ? why : "");
    }
    m.prepared.call.workspace_bytes = m.alone->workspace != nullptr ? m.alone->workspace(queue, &m.prepared.call) : 0;
    alone_.push_back(static_cast<size_t>(&m - members_.data()));
  }
  if (row_ != nullptr) shown_.name = row_->name;
  if (calls_.empty()) return find_workspace();
  const lockstep_group group = group_of_calls();
  described_.resize((row_->describe(chosen_.queue.get(), &group, nullptr) + 7) / 8);
  row_->describe(chosen_.queue.get(), &group, described_.data());
  find_workspace();
  if (calls_.size() != members_.size())
    chosen_.why += format_text("{}{} of {} calls each by a variant of its own", chosen_.why.empty() ? "" : "; ",
                               members_.size() - calls_.size(), members_.size());
}

lockstep_group call_group::group_of_calls() const {
  lockstep_group group{};
  group.op = all_.call.op;
  group.calls = calls_.data();
  group.bytes = bytes_.data();
  group.count = calls_.size();
  group.described = described_.data();
  group.table = table_;
  return group;
}

const char* call_group::name() const { return calls_.empty() ? members_.front().alone->name : shown_.name; }
int32_t call_group::order() const { return order_of(calls_.empty() ? *members_.front().alone : shown_); }

size_t call_group::together_workspace() const {
  if (calls_.empty() || row_->workspace == nullptr) return 0;
  const lockstep_group group = group_of_calls();
  return row_->workspace(chosen_.queue.get(), &group);
}
void call_group::find_workspace() {
  alone_workspace_ = 0;
  for (const size_t a : alone_)
    alone_workspace_ = std::max(alone_workspace_, members_[a].prepared.call.workspace_bytes);
  workspace_bytes_ = scratch_bytes();
}

void call_group::make_table() {
  if (calls_.empty() || chosen_.entry->is_cpu()) return;
  const size_t bytes = described_.size() * sizeof(uint64_t);
  const lockstep_backend& backend = *chosen_.backend;
  lockstep_queue* queue = chosen_.queue.get();
  table_kind_ = LOCKSTEP_DEVICE;
  lockstep_status s = backend.allocate(queue, table_kind_, bytes, &table_);
  if (s == LOCKSTEP_UNSUPPORTED)  // a module that computes in host memory
    s = backend.allocate(queue, table_kind_ = LOCKSTEP_HOST, bytes, &table_);
  if (s != LOCKSTEP_OK) fail_backend(s, *chosen_.entry);
  s = backend.copy(queue, described_.data(), table_, bytes);
  if (s == LOCKSTEP_OK) s = backend.finish(queue);
  if (s == LOCKSTEP_OK) return;
  backend.release(queue, table_kind_, bytes, std::exchange(table_, nullptr));
  fail_backend(s, *chosen_.entry);
}

void call_group::release_table(lockstep_context* context, pooled_queue* reserved) {
  if (table_ == nullptr) return;
  const queue_lease lease = context->lock(reserved);
  context->settle(lease);
  lease->backend->release(lease.get(), table_kind_, described_.size() * sizeof(uint64_t),
                          std::exchange(table_, nullptr));
}

void call_group::note(size_t index, lockstep_status status) {
  if (status == LOCKSTEP_OK || (first_status_ != LOCKSTEP_OK && index > first_index_)) return;
  first_status_ = status;
  first_index_ = index;
  first_text_ = format_text("descs[{}]: {}", index, last_error());
}

void call_group::require_apart(const lockstep_options& options) const {
  for (const group_member& m : members_)
    require_workspace_apart(m.prepared, options, format_text(" of descs[{}]", m.index));
}

// The caller's workspace is for every call: before the first runs, as one that is refused later would be half a group.
void call_group::require_workspace(const lockstep_options& options) const {
  if (options.workspace == nullptr) return;
  require_workspace_usable(chosen_, options);
  require_apart(options);
  if (options.workspace_bytes < workspace_bytes_)
    fail(
        LOCKSTEP_INVALID_ARGUMENT,
        "options.workspace_bytes is {}, but this group needs {} on {}, as lockstep_plan_workspace says; give that many "
        "or NULL",
        options.workspace_bytes, workspace_bytes_, chosen_.entry->name());
}

// Runs the calls that the group's row takes.
void call_group::together(const lockstep_options& options) {
  lockstep_group group = group_of_calls();
  const size_t bytes = together_workspace();
  group.workspace = options.workspace;
  if (options.workspace == nullptr && bytes != 0) {
    if (const lockstep_status s = chosen_.backend->scratch(chosen_.queue.get(), bytes, &group.workspace);
        s != LOCKSTEP_OK)
      fail_backend(s, *chosen_.entry);
  }
  size_t failed = 0;
  lockstep_queue* const queue = chosen_.queue.get();
  const lockstep_status s = on_enough_stack(*chosen_.entry, [&] {
    return interruptible(*chosen_.entry, queue, all_.moved_bytes, 1,
                         [&] { return row_->launch(queue, &group, &failed); });
  });
  if (is_bad(s)) fail_backend(s, *chosen_.entry);
  note(members_[which_[failed]].index, s);
}

lockstep_status call_group::launch(lockstep_context* context, const lockstep_options& given, result& done) {
  const bool on_cpu = chosen_.entry->is_cpu();
  // Copies are waited for. The whole group then waits, so that one place tells the first failure of all.
  const bool copies = std::any_of(alone_.begin(), alone_.end(), [&](size_t a) {
    return !reaches_all(chosen_, members_[a].prepared, members_[a].data);
  });
  lockstep_options options = given;
  if (on_cpu || copies) options.flags &= ~LOCKSTEP_ASYNC;
  const bool async = (options.flags & LOCKSTEP_ASYNC) != 0;
  first_status_ = LOCKSTEP_OK;
  require_workspace(options);
  if (!calls_.empty()) {
    chosen_.variant = &shown_;
    if (!async && !on_cpu) context->settle(chosen_.queue);
    done.started = true;
    together(options);
    if (async) context->mark_pending(chosen_.queue);
    if (!async && !on_cpu)
      if (const lockstep_status s = chosen_.backend->finish(chosen_.queue.get()); s != LOCKSTEP_OK)
        fail_backend(s, *chosen_.entry);
  }
  for (const size_t a : alone_) {
    group_member& m = members_[a];
    chosen_.variant = m.alone;
    of_description(m.index, [&] {
      launch_result launched;
      // If nothing waits for this call, the backend names it when its failure is found.
      const described_calls named(chosen_, async ? static_cast<int64_t>(m.index) : -1);
      lockstep_status s = give_workspace(m.prepared, chosen_, options);
      if (s == LOCKSTEP_OK) s = launch_staged(context, chosen_, m.prepared, options, m.data, launched);
      done.staged_bytes += launched.staged_bytes;
      done.started = done.started || launched.started;
      if (is_bad(s)) fail_backend(s, *chosen_.entry);
      note(m.index, s);
    });
  }
  if (!calls_.empty()) chosen_.variant = &shown_;
  if (first_status_ != LOCKSTEP_OK) set_error(first_text_.c_str());
  return first_status_;
}

void call_group::remember(const result& done, lockstep_status status) {
  remember_run(&chosen_, workspace_bytes(), done.staged_bytes);
  trace(all_, chosen_, done.staged_bytes, status);
}

bool call_group::repeatable(lockstep_status failure, const result& done) const {
  for (const group_member& m : members_) {
    if (m.prepared.in_place() && done.started) return false;
    if (failure == LOCKSTEP_BACKEND_LOST && m.data.on_device().owner != nullptr) return false;
  }
  return true;
}

void call_group::require_same_offsets(lockstep_context* context) {
  if (!has_offsets_) return;
  for (const group_member& m : members_) {
    if (m.prepared.offsets_bytes == 0) continue;
    of_description(m.index, [&] {
      const prepared_call& p = m.prepared;
      prepared_call now = p;  // a refusal leaves the plan as it was made
      resolve_offsets(context, now);
      if (now.src_span != p.src_span || now.dst_span != p.dst_span || now.src_lead < p.src_lead)
        fail(LOCKSTEP_INVALID_ARGUMENT, "its offsets name other elements than when the plan was made; make a new plan");
    });
  }
}

bool call_group::measure(lockstep_context* context, uint32_t flags, int32_t samples, double* ms) {
  const lockstep_backend& backend = *chosen_.backend;
  if (calls_.size() != members_.size() || chosen_.entry->groups()->measure == nullptr) return false;
  context->settle(chosen_.queue);
  lockstep_group group = group_of_calls();
  const size_t bytes = together_workspace();
  lockstep_status s = bytes != 0 ? backend.scratch(chosen_.queue.get(), bytes, &group.workspace) : LOCKSTEP_OK;
  if (s == LOCKSTEP_OK) s = chosen_.entry->groups()->measure(chosen_.queue.get(), row_, &group, flags, samples, ms);
  if (s != LOCKSTEP_OK) fail_backend(s, *chosen_.entry);
  chosen_.variant = &shown_;
  remember_run(&chosen_, bytes, 0);
  return true;
}

void run_group(lockstep_context* context, const group_arguments& arguments, const lockstep_options* given) {
  require_context(context);
  lockstep_options options = call_options(given);
  call_group group(context, arguments);
  remember_run(nullptr, 0, 0);
  if (group.empty()) return;
  const auto now = context->current();
  const bool named = names_a_backend(*now, options);
  const backend_entry* skip = nullptr;
  std::string failure;
  for (;;) {
    call_group::result done;
    choice& chosen = group.chosen();
    try {
      group.choose(context, *now, options, skip);
      if (!failure.empty()) chosen.why = chosen.why.empty() ? failure : failure + "; " + chosen.why;
      const lockstep_status status = group.launch(context, options, done);
      group.remember(done, status);
      if (status != LOCKSTEP_OK) throw error{status, last_error()};
      return;
    } catch (const error& e) {
      const bool may_fall_back = !named && chosen.entry != nullptr && !chosen.entry->is_cpu() &&
                                 ((options.flags | now->flags) & LOCKSTEP_NO_FALLBACK) == 0;
      if (!may_fall_back || !recoverable(e.status) || !group.repeatable(e.status, done)) throw;  // as run() does
      failure = e.text;
      skip = chosen.entry;
      options.workspace = nullptr;  // it was for the backend that failed
    }
  }
}

}  // namespace lockstep::lib

using namespace lockstep::lib;
extern "C" {
lockstep_status lockstep_execute_group(lockstep_context* context, lockstep_op op, const void* descs, size_t desc_bytes,
                                       int64_t count, const void* const* srcs, void* const* dsts,
                                       const lockstep_options* options) {
  return guarded([&] { run_group(context, {op, descs, desc_bytes, count, srcs, dsts}, options); });
}
lockstep_status lockstep_plan_group(lockstep_context* context, lockstep_op op, const void* descs, size_t desc_bytes,
                                    int64_t count, const void* const* srcs, void* const* dsts,
                                    const lockstep_options* options, lockstep_plan** plan) {
  return guarded([&] { make_group_plan(context, {op, descs, desc_bytes, count, srcs, dsts}, options, plan); });
}
}
