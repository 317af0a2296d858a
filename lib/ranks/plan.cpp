// plan.cpp - plans: making them together, running them, destroying them.
#include "plan.hpp"

#include "permute.hpp"
#include "reduce.hpp"
#include "stencil.hpp"

lockstep_ranks_plan::lockstep_ranks_plan() = default;
lockstep_ranks_plan::~lockstep_ranks_plan() = default;

namespace lockstep::ranks {

placed read_part(const lockstep_part* parts, int32_t seat, const char* name, const box& b) {
  if (b.empty()) return {};
  if (parts == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "{} is NULL; pass one part for each seat", name);
  const std::string which = format_text("{}[{}]", name, seat);
  const lockstep_part p = lib::sized(parts + seat, lockstep_part{}, which.c_str());
  if (p.data == nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "{}.data is NULL but the block has {} elements; pass its memory", which,
         b.elements());
  placed out{static_cast<char*>(p.data), {}};
  for (int k = 0; k < b.rank; ++k) {
    const auto i = static_cast<size_t>(k);
    out.strides[i] = p.strides[k];
    if (b.length[i] > 1 && p.strides[k] < 1)
      fail(LOCKSTEP_INVALID_ARGUMENT, "{}.strides[{}] is {}; give 1 or more", which, k, p.strides[k]);
  }
  return out;
}

std::vector<placed> read_parts(const lockstep_comm& comm, const lockstep_part* parts, const char* name, const grid& g,
                               failure& so_far) {
  std::vector<placed> out(static_cast<size_t>(comm.seats));
  for (int32_t s = 0; s < comm.seats; ++s) try {
      out[static_cast<size_t>(s)] = read_part(parts, s, name, g.of(comm.first() + s));
    } catch (const error& e) {
      so_far.note(e.status, comm.first() + s, e.text);
    }
  return out;
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
  const lockstep_options options = comm.options_of(seat);
  require_ok(lockstep_permute(comm.context, &d, src, dst, &options));
}

namespace {
lockstep_options read_options(const lockstep_options* given, uint32_t known) {
  const lockstep_options o = lib::sized(given, lockstep_options_defaults(), "options");
  lib::require_flags("options.flags", o.flags, known, "LOCKSTEP_NO_FALLBACK (2) and LOCKSTEP_DEVICE_DATA (4)");
  if (o.backend != nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "options.backend is \"{}\"; name a seat's backend when the communicator is made",
         o.backend);
  if (o.variant != nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "options.variant is \"{}\"; name variants for the context", o.variant);
  if (o.stream != nullptr || o.workspace != nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "options.{} is given; a call over ranks takes none",
         o.stream != nullptr ? "stream" : "workspace");
  return o;
}
}  // namespace

lockstep_status make_plan(lockstep_comm* comm, kind k, const lockstep_options* options, lockstep_ranks_plan** out,
                          const std::function<void(lockstep_ranks_plan&, described&)>& build) {
  return lib::guarded([&] {
    if (comm == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "comm is NULL; pass a communicator");
    if (out != nullptr) *out = nullptr;
    comm->require_open();
    auto plan = std::make_unique<lockstep_ranks_plan>();
    plan->comm = comm;
    plan->what = k;
    plan->number = comm->plans++;
    failure own;
    described d;
    d.add("the call", static_cast<int64_t>(k));
    try {
      if (out == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; pass the place for the plan");
      read_options(options, LOCKSTEP_NO_FALLBACK | LOCKSTEP_DEVICE_DATA);
      build(*plan, d);
    } catch (const error& e) {
      own.note(e.status, comm->first(), e.text);
    } catch (const std::bad_alloc&) {
      own.note(LOCKSTEP_OUT_OF_MEMORY, comm->first(), "out of host memory; free some or use more ranks");
    }
    comm->agree(own, d);
    *out = plan.release();
  });
}

}  // namespace lockstep::ranks

using namespace lockstep;
using namespace lockstep::ranks;

extern "C" {
lockstep_status lockstep_ranks_execute(lockstep_ranks_plan* plan, const lockstep_part* src, const lockstep_part* dst,
                                       const lockstep_options* options) {
  return lib::guarded([&] {
    if (plan == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "plan is NULL; pass a plan");
    lockstep_comm& comm = *plan->comm;
    comm.require_open();
    if (comm.dry) fail(LOCKSTEP_UNSUPPORTED, "the plan's communicator is a dry one; make one of ranks that are there");
    failure so_far;
    try {
      read_options(options, LOCKSTEP_NO_FALLBACK | LOCKSTEP_DEVICE_DATA);
    } catch (const error& e) {
      so_far.note(e.status, comm.first(), e.text);
    }
    ++plan->executions;  // whatever comes of it: all ranks count alike
    if (plan->reduce != nullptr) plan->reduce->execute(*plan, src, dst, so_far);
    if (plan->permute != nullptr) {
      const permute_plan& p = *plan->permute;
      const std::vector<placed> from = read_parts(comm, src, "src", p.src, so_far);
      const std::vector<placed> to = read_parts(comm, dst, "dst", p.dst, so_far);
      plan->permute->run(*plan, 0, from, to, so_far);
    }
    if (plan->stencil != nullptr) plan->stencil->execute(*plan, src, dst, so_far);
    if (plan->halo != nullptr) plan->halo->execute(*plan, dst, so_far);
    if (!so_far.any()) return;
    // Neighbours know by now; the others are told when all synchronize.
    if (comm.mine(so_far.rank) && comm.late == LOCKSTEP_OK && (plan->stencil != nullptr || plan->halo != nullptr))
      comm.late = so_far.status, comm.late_text = so_far.text;
    if (so_far.rank < 0 || comm.mine(so_far.rank)) throw error{so_far.status, so_far.text};
    fail(LOCKSTEP_RANK_FAILED, "rank {}: {}", so_far.rank, so_far.text);
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
    if (plan->reduce != nullptr) plan->reduce->tell(l, c);
    if (plan->permute != nullptr)
      for (const exchange& e : plan->permute->rounds) e.tell(l, c);
    if (plan->halo != nullptr) plan->halo->around.all.tell(l, c);
    if (plan->stencil != nullptr) {
      plan->stencil->around.all.tell(l, c);
      for (const stencil_plan::border& b : plan->stencil->borders)
        c.workspace_bytes += static_cast<int64_t>(b.elements.bytes() + b.results.bytes());
    }
    lib::give(c, cost, "cost");
  });
}

void lockstep_ranks_plan_destroy(lockstep_ranks_plan* plan) { delete plan; }

lockstep_status lockstep_ranks_reduce(lockstep_comm* comm, const lockstep_grid* src, lockstep_reduction reduction,
                                      lockstep_dtype dtype, lockstep_dtype result, uint32_t axes,
                                      const lockstep_grid* dst, const lockstep_options* options,
                                      lockstep_ranks_plan** plan) {
  return make_plan(comm, kind::reduce, options, plan, [&](lockstep_ranks_plan& p, described& d) {
    p.reduce = std::make_unique<reduce_plan>();
    p.reduce->reduction = reduction;
    p.reduce->dtype = dtype;
    p.reduce->result = result;
    p.reduce->build(*comm, src, axes, dst, d);
  });
}
}
