// plan.cpp - makes plans on all ranks together, runs and destroys them.
#include "plan.hpp"

#include <algorithm>

#include "devices.hpp"
#include "links.hpp"

namespace lockstep::ranks {

placed read_part(const lockstep_comm& comm, const lockstep_part* parts, int32_t seat, const char* name, const box& b) {
  if (b.empty()) return {};
  if (parts == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "{} is NULL; pass one part for each seat", name);
  const std::string which = format_text("{}[{}]", name, seat);
  // A program built for an older library has shorter elements.
  const auto* given = reinterpret_cast<const char*>(parts);
  lib::require_size(parts->size, lib::known_sizes<lockstep_part>, which.c_str());
  const lockstep_part p =
      lib::sized(reinterpret_cast<const lockstep_part*>(given + static_cast<size_t>(seat) * parts->size),
                 lockstep_part{}, which.c_str());
  if (p.data == nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "{}.data is NULL but the block has {} elements; pass its memory", which,
         b.elements());
  placed out{static_cast<char*>(p.data), {}, false, true, p.stream};
  out.there = comm.devices->reaches(seat, p.data, which, out.on_host);
  for (int k = 0; k < b.rank; ++k) {
    const auto i = static_cast<size_t>(k);
    out.strides[i] = p.strides[k];
    if (b.length[i] > 1 && p.strides[k] < 1)
      fail(LOCKSTEP_INVALID_ARGUMENT, "{}.strides[{}] is {}; give 1 or more", which, k, p.strides[k]);
  }
  return out;
}

placed execution::read_one(const lockstep_part* parts, int32_t seat, const char* name, const box& b) {
  const placed one = read_part(*plan.comm, parts, seat, name, b);
  if (one.stream != nullptr) streams[static_cast<size_t>(seat)] = one.stream;
  return one;
}

std::vector<placed> execution::read(const lockstep_part* parts, const char* name, const grid& g) {
  return read(parts, name, plan.comm->first(), plan.comm->seats, [&](int32_t rank) { return g.of(rank); });
}

std::vector<placed> execution::read_several(const lockstep_part* parts, const char* name, const char* second,
                                            int64_t arrays, const grid& g) {
  std::vector<placed> all = read(parts, name, g);
  for (int64_t k = 1; k < arrays; ++k) {
    const auto* at = reinterpret_cast<const char*>(parts);
    if (at != nullptr) at += static_cast<size_t>(k * plan.comm->seats) * parts->size;
    const std::string called = second != nullptr ? second : format_text("array {} of {}", k, name);
    const auto more = read(reinterpret_cast<const lockstep_part*>(at), called.c_str(), g);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

void each_run_of(int64_t all, int axes, const int64_t* length, const std::vector<const int64_t*>& strides,
                 const std::function<void(const run_of_elements&)>& visit) {
  const size_t arrays = strides.size();
  run_of_elements run{0, 1, std::vector<int64_t>(arrays), std::vector<int64_t>(arrays)};
  // The last axes are one run if they have a common stride, in every array.
  int k = axes - 1;
  for (; k >= 0; --k) {
    if (length[k] == 1) continue;
    bool continues = true;
    for (size_t a = 0; a < arrays; ++a) {
      if (run.count == 1) run.step[a] = strides[a][k];
      continues = continues && strides[a][k] == run.step[a] * run.count;
    }
    if (!continues) break;
    run.count *= length[k];
  }
  for (; run.first < all; run.first += run.count) {
    for (size_t a = 0; a < arrays; ++a) run.at[a] = place_of(run.first / run.count, k + 1, length, strides[a]);
    visit(run);
  }
}

void copy_box(lockstep_comm& comm, int32_t seat, size_t element_bytes, const box& lengths, const void* src,
              const int64_t* src_strides, void* dst, const int64_t* dst_strides) {
  if (lengths.empty()) return;
  lockstep_permute_desc d{};
  d.size = sizeof d;
  d.element_bytes = element_bytes;
  d.rank = lengths.rank;
  for (int k = 0; k < d.rank; ++k) {
    d.perm[k] = k;
    d.shape[k] = lengths.length[static_cast<size_t>(k)];
    d.src_strides[k] = src_strides[k];
    d.dst_strides[k] = dst_strides[k];
  }
  const lockstep_options options = seat != no_seat ? comm.options_of(seat) : on_the_cpu();
  require_ok(lockstep_permute(comm.context, &d, src, dst, &options));
}

namespace {
constexpr size_t alignment = workspace::alignment;

lockstep_options read_options(const lockstep_options* given) {
  const lockstep_options o = lib::sized(given, lockstep_options_defaults(), "options");
  lib::require_flags("options.flags", o.flags, LOCKSTEP_ASYNC | LOCKSTEP_NO_FALLBACK | LOCKSTEP_DEVICE_DATA,
                     "LOCKSTEP_ASYNC (1), LOCKSTEP_NO_FALLBACK (2) and LOCKSTEP_DEVICE_DATA (4)");
  if (o.backend != nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "options.backend is \"{}\"; name a seat's backend when the communicator is made",
         o.backend);
  if (o.variant != nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "options.variant is \"{}\"; name variants for the context", o.variant);
  return o;
}
}  // namespace

void require_taken(const std::function<lockstep_status(lockstep_context*)>& call) {
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = "cpu";
  lockstep_context* cpu = nullptr;
  require_ok(lockstep_context_create(&o, &cpu));
  const lockstep_status status = call(cpu);
  const std::string text = status != LOCKSTEP_OK ? lockstep_last_error() : "";
  lockstep_context_destroy(cpu);
  if (status != LOCKSTEP_OK) throw error{status, text};
}

lockstep_status make_plan_of(lockstep_comm* comm, kind k, const lockstep_options* options, lockstep_ranks_plan** out,
                             const std::function<void(lockstep_ranks_plan&, described&)>& build) {
  return lib::guarded([&] {
    if (comm == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "comm is NULL; pass a communicator");
    if (out != nullptr) *out = nullptr;
    comm->require_open();
    auto plan = std::make_unique<lockstep_ranks_plan>();
    plan->comm = comm;
    plan->what = k;
    plan->on_devices.resize(static_cast<size_t>(comm->seats));
    failure own;
    described d;
    d.add("the call", static_cast<int64_t>(k), kind_function);
    comm->progress(true);  // queued executions come first
    comm->require_open();
    own.attempt(comm->first(), [&] {
      if (out == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; pass the address of a lockstep_ranks_plan*");
      const lockstep_options o = read_options(options);
      build(*plan, d);
      if (o.workspace == nullptr && plan->memory.bytes() != 0)
        plan->own_memory = host_memory(*comm, plan->memory.bytes() + alignment);
      for (int32_t s = 0; s < comm->seats; ++s) {
        workspace& w = plan->on_devices[static_cast<size_t>(s)];
        plan->device_memory.emplace_back(*comm, w.bytes(), s);
        w.base = plan->device_memory.back().data();
      }
    });
    d.add("the number of a kept plan (0: a new plan)", 0);
    comm->agree(own, d);
    plan->number = comm->plans++;
    d.values.back() = static_cast<int64_t>(plan->number) + 1;
    plan->description = std::move(d);
    *out = plan.release();
  });
}

}  // namespace lockstep::ranks

using namespace lockstep;
using namespace lockstep::ranks;

workspace& lockstep_ranks_plan::memory_of(int32_t seat) {
  return comm->devices->has(seat) ? on_devices[static_cast<size_t>(seat)] : memory;
}

namespace {
char* aligned(const host_memory& m) {
  const auto at = reinterpret_cast<uintptr_t>(m.data());
  return m.data() == nullptr ? nullptr : m.data() + (alignment - at % alignment) % alignment;
}

// The memory of an execution: the caller's, the plan's, or else memory allocated for it. Without memory this process
// could not even report its failure to the others.
void find_memory(execution& x, const lockstep_options& o) {
  lockstep_comm& comm = *x.plan.comm;
  const size_t need = x.plan.memory.bytes();
  x.memory = aligned(x.plan.own_memory);
  x.attempt(comm.first(), [&] {
    if (o.workspace == nullptr || need == 0) return;
    if (reinterpret_cast<uintptr_t>(o.workspace) % alignment != 0)
      fail(LOCKSTEP_INVALID_ARGUMENT, "options.workspace is not a multiple of {} bytes; align it to that", alignment);
    if (o.workspace_bytes < need)
      fail(LOCKSTEP_INVALID_ARGUMENT,
           "options.workspace_bytes is {}, but the plan needs {}; ask lockstep_ranks_workspace", o.workspace_bytes,
           need);
    x.memory = static_cast<char*>(o.workspace);
  });
  if (x.memory != nullptr || need == 0) return;
  try {
    x.own_memory = host_memory(comm, need + alignment);
  } catch (const error& e) {
    comm.progress(true);
    comm.require_open();
    comm.close(e.status, e.text);
  }
  x.memory = aligned(x.own_memory);
}

task run(execution& x) {
  lockstep_comm& comm = *x.plan.comm;
  // A stream that is waited for must not depend on other processes then.
  const auto in_host = [](const placed& p) { return p.data != nullptr && !p.there; };
  x.waits = x.plan.op->joins_on_the_host() || !comm.links->all() ||
            std::any_of(x.from.begin(), x.from.end(), in_host) || std::any_of(x.to.begin(), x.to.end(), in_host);
  if (x.waits) {
    task before = comm.links->settled();
    co_await before;
  }
  x.attempt(comm.first(), [&] { comm.devices->begin(x.streams); });
  x.plan.memory.base = x.memory;
  task t = x.plan.op->run(x);
  co_await t;
  try {  // after a failure too: what was enqueued still runs
    comm.devices->end();
    if (x.waited_for) comm.devices->finish();
  } catch (const error& e) {
    if (comm.closed != LOCKSTEP_OK) throw;
    x.so_far.note(e.status, comm.first(), e.text);
  }
}

// Reports the failure of a finished execution: in the call itself if it waits, else in lockstep_ranks_synchronize.
void finish(execution& x) {
  lockstep_comm& comm = *x.plan.comm;
  try {
    x.work.result();
  } catch (const error& e) {
    x.so_far = {};  // agree() gave the same status on every rank, or the communicator is closed
    x.so_far.note(e.status, -1, e.text);
  } catch (const std::bad_alloc&) {
    x.so_far.note(LOCKSTEP_OUT_OF_MEMORY, comm.first(), "out of host memory; free some or use more ranks");
  }
  if (!x.waited_for && x.so_far.any()) x.plan.unheard.note(x.so_far.status, x.so_far.rank, x.so_far.text);
  // Ranks that got a message from this one know of the failure; the others learn of it when all synchronize.
  const bool own = x.so_far.rank >= 0 ? comm.mine(x.so_far.rank) : x.so_far.any() && !x.waited_for;
  if (own) comm.late.note(x.so_far.status, x.so_far.rank >= 0 ? x.so_far.rank : comm.first(), x.so_far.text);
}
}  // namespace

namespace {
bool queued(const lockstep_ranks_plan& plan) {
  return std::any_of(plan.comm->queue.begin(), plan.comm->queue.end(),
                     [&](const std::shared_ptr<execution>& x) { return &x->plan == &plan; });
}
[[noreturn]] void throw_as_told(const lockstep_comm& comm, const failure& told) {
  if (told.rank < 0 || comm.mine(told.rank)) throw error{told.status, told.text};
  fail(LOCKSTEP_RANK_FAILED, "rank {}: {}", told.rank, told.text);
}
void return_failure(lockstep_ranks_plan& plan) {
  if (plan.comm->closed == LOCKSTEP_OK) plan.comm->devices->finish();
  if (const failure told = std::exchange(plan.unheard, {}); told.any()) throw_as_told(*plan.comm, told);
  plan.comm->require_open();
}
}  // namespace

void lockstep_comm::progress(bool to_end) {
  while (!queue.empty()) {
    const std::shared_ptr<execution> x = queue.front();
    if (closed == LOCKSTEP_OK && !drive(x->work, to_end)) return;
    queue.pop_front();
    if (x->work.done())
      finish(*x);
    else  // the communicator was closed before the execution started
      x->so_far.note(closed, -1, format_text("the communicator is closed: {}", reason));
  }
}

extern "C" {
lockstep_status lockstep_ranks_execute(lockstep_ranks_plan* plan, const lockstep_part* src, const lockstep_part* dst,
                                       const lockstep_options* options) {
  return lib::guarded([&] {
    if (plan == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; pass a plan");
    lockstep_comm& comm = *plan->comm;
    comm.require_open();
    if (comm.dry)
      fail(LOCKSTEP_UNSUPPORTED,
           "the plan's communicator is lockstep_comm_dry's, whose plans are only estimated; make a real one");
    const auto x = std::make_shared<execution>(*plan);
    x->number = ++plan->executions;  // counted even if it fails, so that all ranks have the same number
    lockstep_options o = lockstep_options_defaults();
    x->attempt(comm.first(), [&] { o = read_options(options); });
    x->waited_for = (o.flags & LOCKSTEP_ASYNC) == 0;
    x->streams.assign(static_cast<size_t>(comm.seats), o.stream);
    for (int32_t s = 0; s < comm.seats; ++s)
      if (comm.backends[static_cast<size_t>(s)] == "cpu") x->streams[static_cast<size_t>(s)] = nullptr;
    plan->op->place(*x, src, dst);
    find_memory(*x, o);
    const failure at_once = x->so_far;
    x->work = run(*x);
    comm.queue.insert(comm.queue.end(), x);
    comm.progress(x->waited_for);
    const failure& told = x->waited_for ? x->so_far : at_once;
    if (told.any()) throw_as_told(comm, told);
  });
}

lockstep_status lockstep_ranks_test(lockstep_ranks_plan* plan, int32_t* done) {
  return lib::guarded([&] {
    if (plan == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; pass a plan");
    if (done == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "done is NULL; pass the address of an int32_t");
    *done = 0;
    plan->comm->progress(false);
    if (queued(*plan)) return;
    *done = 1;
    return_failure(*plan);
  });
}

lockstep_status lockstep_ranks_wait(lockstep_ranks_plan* plan) {
  return lib::guarded([&] {
    if (plan == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; pass a plan");
    plan->comm->progress(true);
    return_failure(*plan);
  });
}

lockstep_status lockstep_ranks_agree(lockstep_ranks_plan* plan) {
  return lib::guarded([&] {
    if (plan == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; pass a plan");
    lockstep_comm& comm = *plan->comm;
    comm.require_open();
    comm.progress(true);
    comm.require_open();
    comm.agree({}, plan->description);
  });
}

lockstep_status lockstep_ranks_refuse(lockstep_comm* comm, const char* why) {
  return lib::guarded([&] {
    if (comm == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "comm is NULL; pass a communicator");
    comm->require_open();
    comm->progress(true);
    comm->require_open();
    failure own;
    own.note(LOCKSTEP_INVALID_ARGUMENT, comm->first(), why != nullptr && *why != '\0' ? why : "this rank refuses");
    comm->agree(own, {});
  });
}

lockstep_status lockstep_ranks_workspace(const lockstep_ranks_plan* plan, size_t* bytes) {
  return lib::guarded([&] {
    if (plan == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; pass a plan");
    if (bytes == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "bytes is NULL; pass the address of a size_t");
    *bytes = plan->memory.bytes();
  });
}

lockstep_status lockstep_ranks_estimate(const lockstep_ranks_plan* plan, const lockstep_ranks_link* link,
                                        lockstep_ranks_cost* cost) {
  return lib::guarded([&] {
    if (plan == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; pass a plan");
    const lockstep_ranks_link l = lib::sized(link, lockstep_ranks_link{}, "link");
    if (!(l.latency_us >= 0) || !(l.gigabytes_per_s >= 0))
      fail(LOCKSTEP_INVALID_ARGUMENT, "link->latency_us is {} and gigabytes_per_s {}; give 0 or more", l.latency_us,
           l.gigabytes_per_s);
    lockstep_ranks_cost c{};
    plan->op->tell(l, c);
    c.workspace_bytes = static_cast<int64_t>(plan->memory.bytes());
    lib::give(c, cost, "cost");
  });
}

void lockstep_ranks_plan_destroy(lockstep_ranks_plan* plan) {
  if (plan == nullptr) return;
  lockstep_comm& comm = *plan->comm;
  if (comm.closed == LOCKSTEP_OK) {
    comm.progress(true);
    try {
      comm.devices->finish();
    } catch (const error& e) {  // if the communicator is not closed, lockstep_ranks_synchronize tells it
      comm.late.note(e.status, comm.first(), e.text);
    }
  }
  delete plan;
}
}
