// halo.cpp - see stencil.hpp: fetches the elements of other ranks that a rank needs.
#include <cstring>
#include <set>

#include "../bits/order.hpp"
#include "devices.hpp"
#include "links.hpp"
#include "stencil.hpp"

namespace lockstep::ranks {
namespace {

// Consecutive indices of an axis.
struct run_of_indices {
  int64_t place, source, length;
};

// The elements that indices [low, low + length) of an axis of n stand for. Outside the array there are none under
// CONSTANT and VALID.
std::vector<run_of_indices> runs(int64_t low, int64_t length, int64_t n, lockstep_boundary boundary) {
  std::vector<run_of_indices> all;
  const bool folds = boundary != LOCKSTEP_BOUNDARY_CONSTANT && boundary != LOCKSTEP_BOUNDARY_VALID;
  constexpr order::fold hows[] = {order::fold::nearest, order::fold::mirror, order::fold::reflect, order::fold::wrap};
  for (int64_t i = low; i < low + length;) {
    // The part inside the array is one run, and under WRAP so is each of its repetitions.
    if ((i >= 0 && i < n) || (boundary == LOCKSTEP_BOUNDARY_WRAP && n > 0)) {
      const int64_t source = order::folded(i, n, order::fold::wrap);
      const int64_t here = std::min(n - source, low + length - i);
      all.push_back({i, source, here});
      i += here;
      continue;
    }
    if (folds && n > 0) {
      const int64_t source = order::folded(i, n, hows[boundary]);
      if (!all.empty() && all.back().place + all.back().length == i && all.back().source + all.back().length == source)
        ++all.back().length;
      else
        all.push_back({i, source, 1});
    }
    ++i;
  }
  return all;
}

// The ranks of this process, and those whose blocks are so near to theirs that one may want elements of the other.
// Ascending, as all ranks list them. Elements beyond an end of the array are folded to ones as near to that end.
std::set<int32_t> near(const lockstep_comm& comm, const grid& g, bool wraps,
                       const std::array<int64_t, LOCKSTEP_MAX_RANK>& reach) {
  std::set<int32_t> all;
  for (int32_t s = 0; s < comm.seats; ++s) {
    all.insert(comm.first() + s);
    std::vector<box> around = {g.of(comm.first() + s)};
    if (around[0].empty()) continue;
    for (size_t k = 0; k < static_cast<size_t>(g.rank); ++k) {
      const int64_t low = around[0].low[k] - reach[k] - 1, length = around[0].length[k] + 2 * reach[k] + 2;
      const int64_t n = g.shape[k];
      for (size_t i = 0, count = around.size(); i < count; ++i) {
        around[i].low[k] = std::max<int64_t>(low, 0);
        around[i].length[k] = std::min(low + length, n) - around[i].low[k];
        if (length >= n || reach[k] >= n) around[i].low[k] = 0, around[i].length[k] = n;
        if (!wraps || length >= n || reach[k] >= n) continue;
        box other = around[i];  // at the other end
        if (low < 0) other.low[k] = n + low, other.length[k] = -low, around.push_back(other);
        if (low + length > n) other.low[k] = 0, other.length[k] = low + length - n, around.push_back(other);
      }
    }
    for (const box& b : around) g.overlapping(b, [&](int32_t rank, const box&) { all.insert(rank); });
  }
  return all;
}

}  // namespace

void ghosts::build(lockstep_comm& comm, workspace& memory, const grid& g, lockstep_boundary boundary,
                   const std::array<int64_t, LOCKSTEP_MAX_RANK>& reach,
                   const std::function<void(int32_t, std::vector<target>&)>& targets_of) {
  const auto axes = static_cast<size_t>(g.rank);
  all.by_links = true;
  for (const int32_t r : near(comm, g, boundary == LOCKSTEP_BOUNDARY_WRAP, reach)) {
    std::vector<target> list;
    targets_of(r, list);
    int64_t key = 0;  // grows alike on both sides, because all ranks enumerate in the same order
    for (const target& t : list) {
      const size_t number = comm.mine(r) ? targets.size() : 0;
      if (comm.mine(r)) targets.push_back(t);
      std::array<std::vector<run_of_indices>, LOCKSTEP_MAX_RANK> along;
      int64_t products = 1;
      for (size_t k = 0; k < axes; ++k) {
        const int64_t beyond = t.wanted.length[k] - g.shape[k];  // repetitions under WRAP, else single elements
        comm.pieces.require(beyond / (boundary == LOCKSTEP_BOUNDARY_WRAP ? std::max<int64_t>(g.shape[k], 1) : 1));
        along[k] = runs(t.wanted.low[k], t.wanted.length[k], g.shape[k], boundary);
        products *= static_cast<int64_t>(along[k].size());
        comm.pieces.require(products);
      }
      for (int64_t p = 0; p < products; ++p) {
        box source, place;
        source.rank = place.rank = g.rank;
        int64_t left = p;
        for (size_t k = axes; k-- > 0;) {
          const run_of_indices& one = along[k][static_cast<size_t>(left) % along[k].size()];
          left /= static_cast<int64_t>(along[k].size());
          source.low[k] = one.source, place.low[k] = one.place;
          source.length[k] = place.length[k] = one.length;
        }
        g.overlapping(source, [&](int32_t owner, const box& shared) {
          if (!comm.mine(owner) && !comm.mine(r)) return;
          // Cut into pieces that fit a message.
          std::vector<box> parts;
          const int64_t most_bytes =
              comm.links->between(owner, r) ? static_cast<int64_t>(comm.links->piece_bytes()) : comm.message_bytes;
          const int64_t most = std::max<int64_t>(most_bytes / static_cast<int64_t>(g.element_bytes), 1);
          comm.pieces.require(shared.elements() / most);
          cut_box(shared, most, parts);
          for (const box& part : parts) {
            box to = place;
            for (size_t k = 0; k < axes; ++k) {
              to.low[k] += part.low[k] - source.low[k];
              to.length[k] = part.length[k];
            }
            const box there = intersection(to, t.without);
            if (!there.empty() && there.elements() == to.elements()) continue;
            const item i{owner, r, key++, static_cast<size_t>(part.elements()) * g.element_bytes, pieces.size()};
            pieces.push_back({number, part, to, t.field});
            if (const int32_t a = owner - comm.first(), b = r - comm.first(); comm.mine(owner) && comm.mine(r))
              comm.devices->reserve(a, b, comm.devices->packed_between(a, b, true), i.bytes);
            if (comm.mine(owner)) all.sends(comm, i);
            if (comm.mine(r)) all.receives(comm, i);
          }
        });
      }
    }
  }
  all.finish(comm, memory);
}

task ghosts::run(execution& x, const grid& g, const std::vector<placed>& from, const std::vector<placed>& to,
                 const std::function<void()>& meanwhile) {
  lockstep_comm& comm = *x.plan.comm;
  const auto bytes = static_cast<int64_t>(g.element_bytes);
  const auto seat = [&](int32_t rank) { return rank - comm.first(); };
  const auto block_of = [&](const item& i) -> const placed& {
    return from[pieces[i.index].field * static_cast<size_t>(comm.seats) + static_cast<size_t>(seat(i.from))];
  };
  const auto source = [&](const item& i) {
    const placed& at = block_of(i);
    return std::pair{at.data + offset_of(pieces[i.index].source, g.of(i.from), at.strides.data()) * bytes, at.strides};
  };
  const auto place = [&](const item& i) {
    const piece& p = pieces[i.index];
    const placed& at = to[p.target];
    return std::pair{at.data + offset_of(p.place, targets[p.target].wanted, at.strides.data()) * bytes, at.strides};
  };
  step_work work;
  work.pack = [&](const item& i, char* message) {
    const auto [data, strides] = source(i);
    const box& part = pieces[i.index].source;
    copy_box(comm, seat(i.from), g.element_bytes, part, data, strides.data(), message, packed_strides(part).data());
  };
  work.unpack = [&](const item& i, const char* message) {
    const auto [data, strides] = place(i);
    const box& part = pieces[i.index].source;
    copy_box(comm, seat(i.to), g.element_bytes, part, message, packed_strides(part).data(), data, strides.data());
  };
  // Ghosts are interleaved with the block's own elements, so one call for all would be refused as an overlap.
  work.local = [&](const item& out, const item& in) {
    const int32_t sender = seat(out.from), receiver = seat(in.to);
    const placed& a = block_of(out);
    const plane way = comm.devices->packed_between(sender, receiver, a.there && to[pieces[in.index].target].there);
    const box& part = pieces[out.index].source;
    const auto pack = [&comm, &g, &a, &out, sender, bytes](const box& band, char* packed) {
      copy_box(comm, sender, g.element_bytes, band, a.data + offset_of(band, g.of(out.from), a.strides.data()) * bytes,
               a.strides.data(), packed, packed_strides(band).data());
    };
    const auto [data, strides] = place(in);
    comm.devices->move({sender, receiver, g.element_bytes, part, pack, data, strides}, way);
  };
  work.waits = x.waits;
  work.meanwhile = meanwhile;
  task step = all.run(comm, x.step(0), x.so_far, work);
  co_await step;
}

void halo_plan::place(execution& x, const lockstep_part*, const lockstep_part* dst) {
  x.to = x.read_several(dst, "dst", nullptr, fields, g);
}

task halo_plan::run(execution& x) {
  lockstep_comm& comm = *x.plan.comm;
  const std::vector<placed>& blocks = x.to;
  const auto bytes = static_cast<int64_t>(g.element_bytes);
  std::vector<placed> with_ghosts;
  for (const ghosts::target& t : around.targets) {
    placed at = blocks[t.field * static_cast<size_t>(comm.seats) + static_cast<size_t>(t.rank - comm.first())];
    if (at.data != nullptr) at.data += offset_of(t.wanted, g.of(t.rank), at.strides.data()) * bytes;
    with_ghosts.push_back(at);
  }
  const std::function<void()> constants = [&] {
    // Beyond the array: rows of the constant on both sides of each axis.
    if (boundary != LOCKSTEP_BOUNDARY_CONSTANT) return;
    for (size_t i = 0; i < around.targets.size(); ++i) {
      const ghosts::target& t = around.targets[i];
      const placed& at = with_ghosts[i];
      for (size_t k = 0; k < static_cast<size_t>(g.rank); ++k)
        for (const bool high : {false, true}) {
          box side = t.wanted;
          const int64_t end = t.wanted.low[k] + t.wanted.length[k];
          if (high) side.low[k] = std::max(side.low[k], g.shape[k]);
          side.length[k] = high ? end - side.low[k] : std::min<int64_t>(end, 0) - side.low[k];
          if (side.empty()) continue;
          const std::vector<double> f64(static_cast<size_t>(side.elements()), value);
          const std::vector<float> f32(g.element_bytes == 4 ? f64.size() : 0, static_cast<float>(value));
          copy_box(comm, t.rank - comm.first(), g.element_bytes, side,
                   g.element_bytes == 4 ? static_cast<const void*>(f32.data()) : f64.data(),
                   packed_strides(side).data(), at.data + offset_of(side, t.wanted, at.strides.data()) * bytes,
                   at.strides.data());
        }
    }
  };
  task step = around.run(x, g, blocks, with_ghosts, constants);
  co_await step;
}

}  // namespace lockstep::ranks

using namespace lockstep;
using namespace lockstep::ranks;

namespace {
lockstep_status make_halo(lockstep_comm* comm, kind k, const lockstep_grid* given, const int64_t* width,
                          lockstep_boundary boundary, double value, int32_t fields, const lockstep_options* options,
                          lockstep_ranks_plan** plan) {
  return make_plan<halo_plan>(comm, k, options, plan, [&](halo_plan& p, auto& out, auto& d) {
    p.g = read_grid(given, "grid", comm->ranks(), d);
    p.boundary = boundary;
    p.value = value;
    p.fields = fields;
    d.add("fields", fields);
    if (fields < 1 || fields > most_arrays)
      fail(LOCKSTEP_INVALID_ARGUMENT, "fields is {}; give 1 to {}", fields, most_arrays);
    d.add("boundary", boundary);
    int64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    d.add("value (its bits)", bits);
    if (boundary < LOCKSTEP_BOUNDARY_NEAREST || boundary > LOCKSTEP_BOUNDARY_VALID)
      fail(LOCKSTEP_INVALID_ARGUMENT, "boundary is {}; use one of LOCKSTEP_BOUNDARY_*", static_cast<int>(boundary));
    if (boundary == LOCKSTEP_BOUNDARY_CONSTANT && p.g.element_bytes != 4 && p.g.element_bytes != 8)
      fail(LOCKSTEP_INVALID_ARGUMENT, "grid->element_bytes is {}; a CONSTANT is an F32 (4) or an F64 (8)",
           p.g.element_bytes);
    if (width == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "width is NULL; pass the ghosts on both sides of each axis");
    for (int k = 0; k < p.g.rank; ++k) {
      const int64_t w = p.width[static_cast<size_t>(k)] = width[k];
      if (w < 0 || w > 65536) fail(LOCKSTEP_INVALID_ARGUMENT, "width[{}] is {}; give 0 to 65536", k, w);
      d.add(format_text("width[{}]", k), w);
    }
    p.g.limit_pieces(*comm, "grid", "a smaller shape, fewer ghosts or another number of ranks");
    p.around.build(*comm, out.memory, p.g, boundary, p.width, [&](int32_t rank, std::vector<ghosts::target>& list) {
      const box block = p.g.of(rank);
      if (block.empty()) return;
      ghosts::target t{rank, block, block};
      for (size_t k = 0; k < static_cast<size_t>(p.g.rank); ++k) {
        t.wanted.low[k] -= p.width[k];
        t.wanted.length[k] += 2 * p.width[k];
      }
      for (; t.field < static_cast<size_t>(fields); ++t.field) list.push_back(t);
    });
  });
}
}  // namespace

extern "C" {
lockstep_status lockstep_ranks_halo(lockstep_comm* comm, const lockstep_grid* grid, const int64_t* width,
                                    lockstep_boundary boundary, double value, const lockstep_options* options,
                                    lockstep_ranks_plan** plan) {
  return make_halo(comm, kind::halo, grid, width, boundary, value, 1, options, plan);
}

lockstep_status lockstep_ranks_halo_fields(lockstep_comm* comm, const lockstep_grid* grid, const int64_t* width,
                                           lockstep_boundary boundary, double value, int32_t fields,
                                           const lockstep_options* options, lockstep_ranks_plan** plan) {
  return make_halo(comm, kind::halo_fields, grid, width, boundary, value, fields, options, plan);
}
}
