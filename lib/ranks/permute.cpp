// permute.cpp - see permute.hpp.
#include "permute.hpp"

#include <algorithm>
#include <map>

#include "devices.hpp"
#include "links.hpp"

namespace lockstep::ranks {

namespace {
constexpr int64_t swapped_on_devices = 16 << 20;  // bytes of a tile, so that a kernel is worth its launch
}

box permute_plan::in_dst(const box& b) const {
  box out = b;
  for (size_t k = 0; k < static_cast<size_t>(b.rank); ++k) {
    out.low[k] = b.low[static_cast<size_t>(perm[k])];
    out.length[k] = b.length[static_cast<size_t>(perm[k])];
  }
  return out;
}

box permute_plan::in_src(const box& b) const {
  box out = b;
  for (size_t k = 0; k < static_cast<size_t>(b.rank); ++k) {
    out.low[static_cast<size_t>(perm[k])] = b.low[k];
    out.length[static_cast<size_t>(perm[k])] = b.length[k];
  }
  return out;
}

void permute_plan::build(lockstep_comm& comm, workspace& memory) {
  const auto bytes = static_cast<int64_t>(dst.element_bytes);
  const bool in_groups = relay::pays(comm, *this);
  std::map<std::pair<int32_t, int32_t>, size_t> counted;  // pieces of each pair of ranks, in the same order on both
  const auto add = [&](int32_t seat, int32_t other, const box& b, bool out) {
    const int32_t me = comm.first() + seat;
    size_t& number = counted[out ? std::pair{me, other} : std::pair{other, -1 - me}];
    std::vector<box> parts;
    const size_t all = static_cast<size_t>(b.elements()) * dst.element_bytes;
    if (const int32_t receiver = other - comm.first(); comm.mine(other) && out && seat != receiver)
      comm.devices->reserve(seat, receiver, comm.devices->between(seat, receiver, true, all), all);
    if (in_groups) return pieces.push_back({seat, b, other, out});
    const bool linked = comm.links->between(comm.first() + seat, other);
    const int64_t piece =
        linked ? static_cast<int64_t>(comm.links->piece_bytes()) : std::min(comm.message_bytes, piece_bytes);
    if (!comm.mine(other)) comm.pieces.require(b.elements() / std::max<int64_t>(piece / bytes, 1));
    const bool turned = square && out == (me < other);  // both sides cut what the lower rank holds
    if (comm.mine(other))
      parts.push_back(b);  // no message
    else
      cut_box(turned ? in_src(b) : b, std::max<int64_t>(piece / bytes, 1), parts);
    if (turned && !comm.mine(other))
      for (box& part : parts) part = in_dst(part);
    const auto in_a_round = static_cast<size_t>(std::max<int64_t>(comm.message_bytes / piece, 1));
    for (size_t p = 0; p < parts.size(); ++p) {
      const size_t k = number++, r = comm.mine(other) || linked ? 0 : k / in_a_round;
      if (rounds.size() <= r) rounds.emplace_back().by_links = true;
      const size_t size = static_cast<size_t>(parts[p].elements()) * dst.element_bytes;
      const item i{out ? me : other, out ? other : me, static_cast<int64_t>(k), size, pieces.size()};
      pieces.push_back({seat, parts[p], other, out});
      out ? rounds[r].sends(comm, i) : rounds[r].receives(comm, i);
    }
  };
  for (int32_t s = 0; s < comm.seats; ++s) {
    const int32_t me = comm.first() + s;
    const box mine = in_dst(src.of(me));
    if (!boxes) dst.overlapping(mine, [&](int32_t to, const box& b) { add(s, to, b, true); });
    for (const int32_t to : boxes && !mine.empty() ? takers(mine) : std::vector<int32_t>{})
      for (const box& one : boxes(to))
        if (const box both = intersection(one, mine); !both.empty()) add(s, to, both, true);
    for (const box& one : boxes ? boxes(me) : std::vector<box>{dst.of(me)})
      src.overlapping(in_src(one), [&](int32_t from, const box& b) { add(s, from, in_dst(b), false); });
  }
  if (in_groups) return by_groups.build(comm, memory, *this);
  const size_t mark = memory.mark();
  for (exchange& round : rounds) {
    memory.rewind(mark);
    round.finish(comm, memory, piece_bytes);
  }
  memory.skip();
}

void permute_plan::prepare_swaps(lockstep_ranks_plan& plan) {
  lockstep_comm& comm = *plan.comm;
  square = src.parts == dst.parts && src.cuts == dst.cuts && src.rank_of == dst.rank_of;
  for (size_t k = 0; k < static_cast<size_t>(src.rank); ++k)
    square = square && perm[static_cast<size_t>(perm[k])] == static_cast<int32_t>(k);
  // Between devices of one process bands go to where others may not have been read yet.
  swaps = square && (!comm.devices->any() || comm.seats == 1);
  if (!swaps) return;
  size_t most = 0;
  for (int32_t s = 0; s < comm.seats; ++s)
    most = std::max(most, static_cast<size_t>(src.of(comm.first() + s).elements()) * src.element_bytes);
  const int64_t piece = comm.devices->has(0) ? swapped_on_devices : piece_bytes;
  most = std::min(most, static_cast<size_t>(std::max<int64_t>(std::min(piece, comm.message_bytes), 16)));
  workspace& memory = plan.memory_of(0);
  going = buffer(memory, most), coming = buffer(memory, most);
}

bool permute_plan::is_swapped(const placed& from, const placed& to, int32_t rank) const {
  if (!swaps || from.data == nullptr || from.data != to.data) return false;
  const box b = src.of(rank);
  for (size_t k = 0; k < static_cast<size_t>(b.rank); ++k)
    if (b.length[k] > 1 && from.strides[k] != to.strides[k]) return false;
  return true;
}

void permute_plan::swap(lockstep_comm& comm, const box& part, int32_t a, int32_t b, const std::vector<placed>& from,
                        const std::vector<placed>& to) const {
  const auto most = static_cast<int64_t>(going.bytes() / dst.element_bytes);
  // Tiles that perm makes tiles again: of axes that it swaps the lengths are the same.
  box tile = part;
  while (tile.elements() > most) {
    const auto k = static_cast<size_t>(std::max_element(tile.length.begin(), tile.length.begin() + tile.rank) -
                                       tile.length.begin());
    const int64_t half = (tile.length[k] + 1) / 2;
    tile.length[k] = half;
    if (a == b) tile.length[static_cast<size_t>(perm[k])] = half;
  }
  const auto swap_tile = [&](const box& p) {
    const box q = in_src(p);
    const bool is_own = a == b && p.low == q.low;
    if (a == b && p.low > q.low) return;  // with its counterpart
    const auto seat_a = static_cast<size_t>(a - comm.first()), seat_b = static_cast<size_t>(b - comm.first());
    const auto pack = [&](size_t seat, int32_t rank, const box& what, char* packed) {
      move(comm, {static_cast<int32_t>(seat), what}, from[seat].data, src.of(rank), from[seat].strides.data(), packed,
           what, packed_strides(what).data());
    };
    const auto unpack = [&](size_t seat, int32_t rank, const box& what, const char* packed) {
      const placed& at = to[seat];
      copy_box(comm, static_cast<int32_t>(seat), dst.element_bytes, what, packed, packed_strides(what).data(),
               at.data + offset_of(what, dst.of(rank), at.strides.data()) * static_cast<int64_t>(dst.element_bytes),
               at.strides.data());
    };
    pack(seat_a, a, p, going.data());
    if (!is_own) pack(seat_b, b, q, coming.data());
    unpack(seat_b, b, p, going.data());
    if (!is_own) unpack(seat_a, a, q, coming.data());
  };
  box p = tile;
  const auto along = [&](const auto& self, size_t k) -> void {
    if (k == static_cast<size_t>(part.rank)) return swap_tile(p);
    const int64_t end = part.low[k] + part.length[k];
    for (int64_t low = part.low[k]; low < end; low += tile.length[k]) {
      p.low[k] = low, p.length[k] = std::min(tile.length[k], end - low);
      self(self, k + 1);
    }
  };
  along(along, 0);
}

// Copies the elements p.part of dst's index space from memory with src's strides to memory with dst's strides.
void permute_plan::move(lockstep_comm& comm, const piece& p, const char* from, const box& from_box,
                        const int64_t* from_strides, char* to, const box& to_box, const int64_t* to_strides) const {
  const box part = in_src(p.part);
  lockstep_permute_desc d{};
  d.size = sizeof d;
  d.element_bytes = dst.element_bytes;
  d.rank = dst.rank;
  for (int k = 0; k < d.rank; ++k) {
    d.perm[k] = perm[static_cast<size_t>(k)];
    d.shape[k] = part.length[static_cast<size_t>(k)];
    d.src_strides[k] = from_strides[k];
    d.dst_strides[k] = to_strides[k];
  }
  const auto bytes = static_cast<int64_t>(dst.element_bytes);
  const lockstep_options options = comm.options_of(p.seat);
  require_ok(lockstep_permute(comm.context, &d, from + offset_of(part, from_box, from_strides) * bytes,
                              to + offset_of(p.part, to_box, to_strides) * bytes, &options));
}

void permute_plan::place(execution& x, const lockstep_part* src_parts, const lockstep_part* dst_parts) {
  x.from = x.read(src_parts, "src", src);
  x.to = x.read(dst_parts, "dst", dst);
  for (int32_t s = 0; s < x.plan.comm->seats; ++s)
    x.attempt(x.plan.comm->first() + s, [&] {
      const int32_t rank = x.plan.comm->first() + s;
      const placed &a = x.from[static_cast<size_t>(s)], &b = x.to[static_cast<size_t>(s)];
      if (a.data == nullptr || b.data == nullptr || a.data == b.data) return;
      const auto spans = [&](const placed& one, const box& all) {
        int64_t last = 0;
        for (size_t k = 0; k < static_cast<size_t>(all.rank); ++k)
          if (all.length[k] > 1) last += (all.length[k] - 1) * one.strides[k];
        return (static_cast<uintptr_t>(last) + 1) * dst.element_bytes;
      };
      const auto from = reinterpret_cast<uintptr_t>(a.data), to = reinterpret_cast<uintptr_t>(b.data);
      if (from < to ? to - from >= spans(a, src.of(rank)) : from - to >= spans(b, dst.of(rank))) return;
      fail(LOCKSTEP_INVALID_ARGUMENT,
           "src[{}] ({}, {} bytes) and dst[{}] ({}, {} bytes) overlap; give dst memory of its own, or let it begin "
           "where src does, which is in place",
           s, static_cast<void*>(a.data), spans(a, src.of(rank)), s, static_cast<void*>(b.data),
           spans(b, dst.of(rank)));
    });
}

task permute_plan::run(execution& x) {
  lockstep_comm& comm = *x.plan.comm;
  copies.resize(static_cast<size_t>(comm.seats));
  bool in_place = false;
  for (int32_t s = 0; s < comm.seats; ++s)
    x.attempt(comm.first() + s, [&] {
      placed& a = x.from[static_cast<size_t>(s)];
      const placed& b = x.to[static_cast<size_t>(s)];
      if (a.data == nullptr || a.data != b.data) return;
      comm.devices->await_last(s);  // which may use the plan's memory on another stream
      in_place = true;
      if (is_swapped(a, b, comm.first() + s)) return;
      const box own = src.of(comm.first() + s);
      const size_t bytes = static_cast<size_t>(own.elements()) * src.element_bytes;
      const bool on_device = comm.devices->has(s);
      host_memory& copy = copies[static_cast<size_t>(s)];
      if (copy.bytes() < bytes) copy = on_device ? host_memory(comm, bytes, s) : host_memory::pageable(comm, bytes);
      const auto strides = packed_strides(own);
      copy_box(comm, s, src.element_bytes, own, a.data, a.strides.data(), copy.data(), strides.data());
      a.data = copy.data(), a.strides = strides, a.there = on_device;
    });
  // Others write to blocks that are ready, which they are once they were copied.
  if (in_place) x.attempt(comm.first(), [&] { comm.devices->begin(x.streams); });
  task all = move_all(x, 0, x.from, x.to);
  co_await all;
}

void permute_plan::tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const {
  for (const exchange& e : rounds) e.tell(link, cost);
  if (by_groups.used()) by_groups.tell(link, cost);
}

task permute_plan::move_all(execution& x, uint64_t first_step, const std::vector<placed>& from,
                            const std::vector<placed>& to) {
  lockstep_comm& comm = *x.plan.comm;
  step_work work;
  work.pack = [&](const item& i, char* message) {
    const piece& p = pieces[i.index];
    const placed& at = from[static_cast<size_t>(p.seat)];
    const auto strides = packed_strides(p.part);
    move(comm, p, at.data, src.of(i.from), at.strides.data(), message, p.part, strides.data());
  };
  work.unpack = [&](const item& i, const char* message) {
    const piece& p = pieces[i.index];
    const placed& at = to[static_cast<size_t>(p.seat)];
    const auto strides = packed_strides(p.part);
    copy_box(comm, p.seat, dst.element_bytes, p.part, message, strides.data(),
             at.data + offset_of(p.part, origin_of(i.to), at.strides.data()) * static_cast<int64_t>(dst.element_bytes),
             at.strides.data());
  };
  const auto swapped = [&](int32_t seat) {
    return is_swapped(from[static_cast<size_t>(seat)], to[static_cast<size_t>(seat)], comm.first() + seat);
  };
  for (int32_t s = 0; s < comm.seats; ++s) work.packs_first = work.packs_first || swapped(s);
  work.local = [&](const item& out, const item& in) {
    const piece& p = pieces[out.index];
    const int32_t receiver = pieces[in.index].seat;
    if (work.packs_first && (swapped(p.seat) || swapped(receiver)))  // both directions at once
      return out.from <= out.to ? swap(comm, p.part, out.from, out.to, from, to) : void();
    const placed &a = from[static_cast<size_t>(p.seat)], &b = to[static_cast<size_t>(receiver)];
    const size_t bytes = static_cast<size_t>(p.part.elements()) * dst.element_bytes;
    plane way = comm.devices->between(p.seat, receiver, a.there && b.there, bytes);
    const bool across = way == plane::direct && !comm.devices->on_one(p.seat, receiver);
    if (across && !comm.devices->writes(p.seat, receiver, b.data)) way = plane::engine;
    if ((p.seat == receiver && comm.devices->has(p.seat) && a.there && b.there) || (across && way == plane::direct))
      return comm.devices->put(p.seat, receiver, p.part, dst.element_bytes,
                               [this, &comm, &p, &a, &b, out](const box& band) {
                                 move(comm, {p.seat, band}, a.data, src.of(out.from), a.strides.data(), b.data,
                                      origin_of(out.to), b.strides.data());
                               });
    if (p.seat == receiver || way == plane::host || way == plane::direct) {
      if (p.seat != receiver && way == plane::direct) comm.devices->await_ready(p.seat, receiver);
      return move(comm, p, a.data, src.of(out.from), a.strides.data(), b.data, origin_of(out.to), b.strides.data());
    }
    const auto offset =
        offset_of(p.part, origin_of(out.to), b.strides.data()) * static_cast<int64_t>(dst.element_bytes);
    const auto pack = [this, &comm, &p, &a, out](const box& band, char* packed) {
      const auto strides = packed_strides(band);
      move(comm, {p.seat, band}, a.data, src.of(out.from), a.strides.data(), packed, band, strides.data());
    };
    comm.devices->move({p.seat, receiver, dst.element_bytes, p.part, pack, b.data + offset, b.strides}, way);
  };
  work.waits = x.waits;
  if (by_groups.used()) {
    task both = by_groups.run(comm, x.step(first_step), x.step(first_step + 1), x.so_far, work);
    co_await both;
  }
  for (size_t r = 0; r < rounds.size(); ++r) {
    task step = rounds[r].run(comm, x.step(first_step + r % 128), x.so_far, work);
    co_await step;
  }
}

}  // namespace lockstep::ranks

using namespace lockstep;
using namespace lockstep::ranks;

extern "C" lockstep_status lockstep_ranks_permute(lockstep_comm* comm, const lockstep_grid* src, const int32_t* perm,
                                                  const lockstep_grid* dst, const lockstep_options* options,
                                                  lockstep_ranks_plan** plan) {
  return make_plan<permute_plan>(comm, kind::permute, options, plan, [&](permute_plan& p, auto& out, auto& d) {
    p.src = read_grid(src, "src", comm->ranks(), d);
    p.dst = read_grid(dst, "dst", comm->ranks(), d);
    if (perm == nullptr)
      fail(LOCKSTEP_INVALID_ARGUMENT, "perm is NULL; pass the order of the axes; 0, 1, ... keeps it");
    uint32_t seen = 0;
    for (int k = 0; k < p.src.rank; ++k) {
      const int32_t axis = p.perm[static_cast<size_t>(k)] = perm[k];
      if (axis < 0 || axis >= p.src.rank || (seen >> axis & 1) != 0)
        fail(LOCKSTEP_INVALID_ARGUMENT, "perm[{}] is {}; perm must hold each of 0 to {} once", k, axis, p.src.rank - 1);
      seen |= 1u << axis;
      d.add(format_text("perm[{}]", k), axis);
    }
    if (p.dst.rank != p.src.rank)
      fail(LOCKSTEP_INVALID_ARGUMENT, "dst->rank is {}, but src has {} axes", p.dst.rank, p.src.rank);
    if (p.dst.element_bytes != p.src.element_bytes)
      fail(LOCKSTEP_INVALID_ARGUMENT, "dst->element_bytes is {}, but src's are {}", p.dst.element_bytes,
           p.src.element_bytes);
    for (size_t k = 0; k < static_cast<size_t>(p.dst.rank); ++k)
      if (p.dst.shape[k] != p.src.shape[static_cast<size_t>(p.perm[k])])
        fail(LOCKSTEP_INVALID_ARGUMENT, "dst->shape[{}] is {}, but axis {} of src has {}", k, p.dst.shape[k], p.perm[k],
             p.src.shape[static_cast<size_t>(p.perm[k])]);
    p.src.limit_pieces(*comm, "src", "a smaller shape or another number of ranks");
    p.prepare_swaps(out);
    p.build(*comm, out.memory);
  });
}
