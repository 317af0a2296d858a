// stencil.cpp - see stencil.hpp.
#include "stencil.hpp"

#include <cstring>

#include "devices.hpp"

namespace lockstep::ranks {

box stencil_plan::results_of(int32_t rank) const {
  box out = g.of(rank);
  if (d.boundary != LOCKSTEP_BOUNDARY_VALID) return out;
  box kept = g.whole();
  for (auto k = static_cast<size_t>(batch_axes); k < static_cast<size_t>(g.rank); ++k) {
    kept.low[k] += reach;
    kept.length[k] -= 2 * reach;
  }
  return intersection(out, kept);
}

// The sides of a block beyond which the array continues, in another block or (WRAP) at its other end.
void stencil_plan::list_borders(int32_t rank, std::vector<border>& into) const {
  const box block = g.of(rank), results = results_of(rank);
  if (results.empty()) return;
  const bool wraps = d.boundary == LOCKSTEP_BOUNDARY_WRAP, valid = d.boundary == LOCKSTEP_BOUNDARY_VALID;
  for (auto k = static_cast<size_t>(batch_axes); k < static_cast<size_t>(g.rank); ++k) {
    if (block.length[k] == g.shape[k]) continue;
    for (const bool high : {false, true}) {
      const int64_t edge = high ? block.low[k] + block.length[k] : block.low[k];
      if (!wraps && edge == (high ? g.shape[k] : 0)) continue;
      border b{rank, results, {}, {}, {}};
      b.out.low[k] = high ? std::max(edge - reach, results.low[k]) : results.low[k];
      b.out.length[k] =
          (high ? results.low[k] + results.length[k] : std::min(edge + reach, results.low[k] + results.length[k])) -
          b.out.low[k];
      if (b.out.empty()) continue;
      b.in = b.out;
      for (auto j = static_cast<size_t>(batch_axes); j < static_cast<size_t>(g.rank); ++j) {
        if (!valid && block.length[j] == g.shape[j]) continue;  // the block has the whole axis, so folding is right
        const int64_t more = reach;
        int64_t low = b.out.low[j] - more, end = b.out.low[j] + b.out.length[j] + more;
        if (!wraps) low = std::max<int64_t>(low, 0), end = std::min(end, g.shape[j]);
        b.in.low[j] = low;
        b.in.length[j] = end - low;
      }
      into.push_back(b);
    }
  }
}

void stencil_plan::build(lockstep_comm& comm, lockstep_ranks_plan& plan, described& described) {
  const auto bits = [&](const std::string& name, double value) {
    int64_t as_integer = 0;
    std::memcpy(&as_integer, &value, sizeof as_integer);
    described.add(name + " (its bits)", as_integer);
  };
  described.add("desc->dtype", d.dtype);
  described.add("desc->form", d.form);
  described.add("desc->boundary", d.boundary);
  described.add("desc->rank", d.rank);
  described.add("desc->radius", d.radius);
  described.add("desc->sweeps", d.sweeps);
  bits("desc->value", d.value);
  // An empty call checks everything but the shape.
  lockstep_stencil_desc nothing = d;
  nothing.batch = 0;
  require_ok(lockstep_stencil(comm.context, &nothing, nullptr, nullptr, nullptr));
  coefficients.assign(d.coefficients, d.coefficients + d.coefficient_count);
  d.coefficients = coefficients.data();
  for (size_t k = 0; k < coefficients.size(); ++k) bits(format_text("desc->coefficients[{}]", k), coefficients[k]);
  batch_axes = g.rank - d.rank;
  if (batch_axes < 0 || batch_axes > 1)
    fail(LOCKSTEP_INVALID_ARGUMENT,
         "grid->rank is {}, but the stencil has rank {}; give that, or one more axis in front for a batch", g.rank,
         d.rank);
  if (g.element_bytes != lockstep_dtype_bytes(d.dtype))
    fail(LOCKSTEP_INVALID_ARGUMENT, "grid->element_bytes is {}, but elements of desc->dtype have {}", g.element_bytes,
         lockstep_dtype_bytes(d.dtype));
  if (__builtin_mul_overflow(int64_t{d.radius}, int64_t{d.sweeps}, &reach) || reach > int64_t{1} << 40)
    fail(LOCKSTEP_INVALID_ARGUMENT, "desc->sweeps is {}; give fewer", d.sweeps);
  bool empty = g.whole().empty();
  for (auto k = static_cast<size_t>(batch_axes); !empty && k < static_cast<size_t>(g.rank); ++k)
    if (d.boundary == LOCKSTEP_BOUNDARY_VALID && g.shape[k] <= 2 * reach)
      fail(LOCKSTEP_INVALID_ARGUMENT,
           "grid->shape[{}] is {}, but VALID takes away {} (2 * radius {} * sweeps {}); give more elements or another "
           "boundary",
           k, g.shape[k], 2 * reach, d.radius, d.sweeps);
  for (int32_t s = 0; s < comm.seats; ++s) {
    const int32_t rank = comm.first() + s;
    const box block = g.of(rank);
    std::vector<border> own;
    list_borders(rank, own);
    for (const border& b : own) {
      int64_t bytes = 2 * static_cast<int64_t>(g.element_bytes);  // the elements and their results
      for (int k = 0; k < g.rank; ++k)
        if (__builtin_mul_overflow(bytes, b.in.length[static_cast<size_t>(k)], &bytes))
          fail(LOCKSTEP_INVALID_ARGUMENT,
               "desc->sweeps is {}, of radius {}: a side of rank {}'s block would have more than 2^63-1 bytes; give "
               "fewer sweeps or a smaller grid->shape",
               d.sweeps, d.radius, rank);
    }
    // The results between the borders.
    box between = results_of(rank);
    for (auto k = static_cast<size_t>(batch_axes); k < static_cast<size_t>(g.rank); ++k) {
      int64_t low = between.low[k], end = low + between.length[k];
      const bool wraps = d.boundary == LOCKSTEP_BOUNDARY_WRAP && block.length[k] != g.shape[k];
      if (wraps || block.low[k] > 0) low = std::max(low, block.low[k] + reach);
      if (wraps || block.low[k] + block.length[k] < g.shape[k])
        end = std::min(end, block.low[k] + block.length[k] - reach);
      between.low[k] = low;
      between.length[k] = std::max<int64_t>(end - low, 0);
    }
    whole.push_back(!between.empty());
    for (border& b : own) {
      b.seat = s;
      b.elements = buffer(plan.memory_of(s), static_cast<size_t>(b.in.elements()) * g.element_bytes);
      b.results = buffer(plan.memory_of(s), static_cast<size_t>(b.in.elements()) * g.element_bytes);
      borders.push_back(b);
    }
  }
  g.limit_pieces(comm, "grid", "a smaller shape, fewer sweeps or another number of ranks");
  std::array<int64_t, LOCKSTEP_MAX_RANK> reaches{};
  for (auto k = static_cast<size_t>(batch_axes); k < static_cast<size_t>(g.rank); ++k) reaches[k] = reach;
  around.build(comm, plan.memory, g, d.boundary, reaches, [&](int32_t rank, std::vector<ghosts::target>& list) {
    std::vector<border> of_rank;
    list_borders(rank, of_rank);
    box none;
    none.rank = g.rank;
    for (const border& b : of_rank) list.push_back({rank, b.in, none});
  });
}

// Computes the stencil of one box as if it were the whole array.
void stencil_plan::call(lockstep_comm& comm, int32_t seat, const box& in, const void* src, const int64_t* src_strides,
                        void* dst, const int64_t* dst_strides) const {
  lockstep_stencil_desc c = d;
  c.batch = batch_axes == 1 ? in.length[0] : 1;
  c.src_batch_stride = batch_axes == 1 ? src_strides[0] : 0;
  c.dst_batch_stride = batch_axes == 1 ? dst_strides[0] : 0;
  for (int k = 0; k < d.rank; ++k) {
    c.shape[k] = in.length[static_cast<size_t>(k) + static_cast<size_t>(batch_axes)];
    c.src_strides[k] = src_strides[k + batch_axes];
    c.dst_strides[k] = dst_strides[k + batch_axes];
  }
  const lockstep_options options = comm.options_of(seat);
  require_ok(lockstep_stencil(comm.context, &c, src, dst, &options));
}

void stencil_plan::place(execution& x, const lockstep_part* src, const lockstep_part* dst) {
  const lockstep_comm& comm = *x.plan.comm;
  x.from = x.read(src, "src", g);
  x.to = x.read(dst, "dst", comm.first(), comm.seats, [&](int32_t rank) { return results_of(rank); });
}

task stencil_plan::run(execution& x) {
  lockstep_comm& comm = *x.plan.comm;
  const bool valid = d.boundary == LOCKSTEP_BOUNDARY_VALID;
  const auto bytes = static_cast<int64_t>(g.element_bytes);
  const std::vector<placed>&from = x.from, &into = x.to;
  std::vector<placed> targets;
  for (const border& b : borders)
    targets.push_back({b.elements.data(), packed_strides(b.in), comm.devices->has(b.seat)});
  const std::function<void()> inside = [&] {
    for (int32_t s = 0; s < comm.seats; ++s) {
      const auto i = static_cast<size_t>(s);
      if (whole[i] == 0) continue;
      x.attempt(comm.first() + s, [&] {
        const box block = g.of(comm.first() + s), results = results_of(comm.first() + s);
        box first = block;  // the results of this call
        for (auto k = static_cast<size_t>(batch_axes); valid && k < static_cast<size_t>(g.rank); ++k)
          first.low[k] += reach;
        call(comm, s, block, from[i].data, from[i].strides.data(),
             into[i].data + offset_of(first, results, into[i].strides.data()) * bytes, into[i].strides.data());
      });
    }
  };
  task step = around.run(x, g, from, targets, inside);
  co_await step;
  for (const border& b : borders)
    x.attempt(comm.first() + b.seat, [&] {
      const placed& to = into[static_cast<size_t>(b.seat)];
      const auto strides = packed_strides(b.in);
      char* there = to.data + offset_of(b.out, results_of(comm.first() + b.seat), to.strides.data()) * bytes;
      if (valid) return call(comm, b.seat, b.in, b.elements.data(), strides.data(), there, to.strides.data());
      call(comm, b.seat, b.in, b.elements.data(), strides.data(), b.results.data(), strides.data());
      copy_box(comm, b.seat, g.element_bytes, b.out, b.results.data() + offset_of(b.out, b.in, strides.data()) * bytes,
               strides.data(), there, to.strides.data());
    });
}

}  // namespace lockstep::ranks

using namespace lockstep;
using namespace lockstep::ranks;

extern "C" lockstep_status lockstep_ranks_stencil(lockstep_comm* comm, const lockstep_grid* given,
                                                  const lockstep_stencil_desc* desc, const lockstep_options* options,
                                                  lockstep_ranks_plan** plan) {
  return make_plan<stencil_plan>(comm, kind::stencil, options, plan, [&](stencil_plan& p, auto& out, auto& d) {
    if (desc == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "desc is NULL; pass the address of a description");
    p.d = lib::sized(desc, lockstep_stencil_desc{}, "desc");
    p.g = read_grid(given, "grid", comm->ranks(), d);
    p.build(*comm, out, d);
  });
}
