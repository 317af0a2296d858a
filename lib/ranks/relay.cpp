// relay.cpp - see relay.hpp.
#include "relay.hpp"

#include <cmath>
#include <cstring>

#include "devices.hpp"
#include "links.hpp"
#include "permute.hpp"

namespace lockstep::ranks {

namespace {
constexpr int64_t short_box = 64 << 10;  // bytes up to which a message takes longer to begin than to send

int32_t groups_of(int32_t processes) {
  return std::max(static_cast<int32_t>(std::lround(std::sqrt(static_cast<double>(processes)))), 1);
}
}  // namespace

bool relay::pays(const lockstep_comm& comm, const permute_plan& of) {
  if (comm.links->any() || of.boxes) return false;
  // Pairs of ranks that share a box: the product of the pairs of pieces that overlap on each axis.
  double pairs = 1, bytes = static_cast<double>(of.src.element_bytes), longest = bytes;
  for (size_t k = 0; k < static_cast<size_t>(of.dst.rank); ++k) {
    const std::vector<int64_t>&to = of.dst.cuts[k], &from = of.src.cuts[static_cast<size_t>(of.perm[k])];
    bytes *= static_cast<double>(of.dst.shape[k]);
    int64_t along = 0, most = 0;
    for (size_t i = 0, j = 0; i + 1 < from.size() && j + 1 < to.size();) {
      const int64_t both = std::min(from[i + 1], to[j + 1]) - std::max(from[i], to[j]);
      along += both > 0 ? 1 : 0;
      most = std::max(most, both);
      if (from[i + 1] < to[j + 1])
        ++i;
      else if (from[i + 1] > to[j + 1])
        ++j;
      else
        ++i, ++j;
    }
    pairs *= static_cast<double>(along), longest *= static_cast<double>(most);
  }
  const double p = comm.engine.processes, partners = std::min(pairs / p, p - 1);
  return partners > 4 * std::sqrt(p) && bytes / (p * partners) < short_box &&
         longest <= static_cast<double>(comm.message_bytes);
}

int32_t relay::group_of(int32_t process) const {
  return static_cast<int32_t>(std::upper_bound(cuts_.begin(), cuts_.end(), process) - cuts_.begin()) - 1;
}

int32_t relay::by(int32_t from, int32_t to) const {
  const auto g = static_cast<size_t>(group_of(from));
  const int64_t member = to - cuts_[static_cast<size_t>(group_of(to))];
  return static_cast<int32_t>(cuts_[g] + member % (cuts_[g + 1] - cuts_[g]));
}

void relay::build(lockstep_comm& comm, workspace& memory, const permute_plan& of) {
  const int32_t p = comm.engine.processes, me = comm.engine.process;
  cuts_ = even_cuts(p, groups_of(p));
  const auto first = [&](int32_t process) { return comm.first_rank[static_cast<size_t>(process)]; };
  const auto add = [&](exchange& step, bool out, const item& i, size_t piece, size_t at) {
    item one = i;
    one.index = entries_.size();
    entries_.push_back({piece, at, i.bytes});
    out ? step.sends(comm, one) : step.receives(comm, one);
  };
  size_t passing = 0;
  const auto wait_here = [&](size_t bytes) {
    const size_t at = passing;
    passing += (bytes + 15) / 16 * 16;
    return at;
  };
  // What this process has and gets. What moves within it is a piece in both lists of the first step.
  for (size_t k = 0; k < of.pieces.size(); ++k) {
    const permute_plan::piece& one = of.pieces[k];
    const int32_t mine = comm.first() + one.seat;
    const item i{one.out ? mine : one.other, one.out ? one.other : mine, 0,
                 static_cast<size_t>(one.part.elements()) * of.dst.element_bytes, 0};
    if (comm.mine(one.other)) {
      add(gather_, one.out, {i.from, i.to, i.to, i.bytes, 0}, k, none);
      continue;
    }
    const int32_t from = comm.process_of(i.from), to = comm.process_of(i.to), through = by(from, to);
    if (one.out && through == me) {
      const size_t at = wait_here(i.bytes);
      add(gather_, true, {i.from, first(me), i.to, i.bytes, 0}, k, none);
      add(gather_, false, {i.from, first(me), i.to, i.bytes, 0}, none, at);
      add(scatter_, true, {first(me), i.to, i.from, i.bytes, 0}, none, at);
    } else if (one.out) {
      add(gather_, true, {i.from, first(through), i.to, i.bytes, 0}, k, none);
    } else {
      add(scatter_, false, {first(through), i.to, i.from, i.bytes, 0}, k, none);
    }
  }
  // What the others of the group send by this process.
  const auto g = static_cast<size_t>(group_of(me));
  const int64_t size = cuts_[g + 1] - cuts_[g], member = me - cuts_[g];
  for (auto from = static_cast<int32_t>(cuts_[g]); from < cuts_[g + 1]; ++from)
    for (int32_t s = first(from); from != me && s < first(from + 1); ++s) {
      const box has = of.in_dst(of.src.of(s));
      if (has.empty()) continue;
      for (size_t h = 0; h + 1 < cuts_.size(); ++h)
        for (int64_t to = cuts_[h] + member; to < cuts_[h + 1]; to += size)
          for (int32_t d = first(static_cast<int32_t>(to)); to != from && d < first(static_cast<int32_t>(to) + 1);
               ++d) {
            const box both = intersection(has, of.dst.of(d));
            if (both.empty()) continue;
            const size_t bytes = static_cast<size_t>(both.elements()) * of.dst.element_bytes, at = wait_here(bytes);
            add(gather_, false, {s, first(me), d, bytes, 0}, none, at);
            add(scatter_, true, {first(me), d, s, bytes, 0}, none, at);
          }
    }
  passing_ = buffer(memory, passing);
  const size_t mark = memory.mark();
  gather_.finish(comm, memory);
  memory.rewind(mark);
  scatter_.finish(comm, memory);
  memory.skip();
}

task relay::run(lockstep_comm& comm, uint64_t first, uint64_t second, failure& so_far, const step_work& direct) {
  const auto of = [this](const item& i) -> const entry& { return entries_[i.index]; };
  const auto place = [&](const entry& e) { return passing_.data() + e.at; };
  const auto as_piece = [&](item i) {
    i.index = of(i).piece;
    return i;
  };
  step_work work;
  work.waits = direct.waits, work.packs_first = direct.packs_first;
  work.pack = [&](const item& i, char* message) { direct.pack(as_piece(i), message); };
  work.unpack = [&](const item& i, const char* message) { std::memcpy(place(of(i)), message, of(i).bytes); };
  work.local = [&](const item& out, const item& in) {
    if (of(in).at == none)
      direct.local(as_piece(out), as_piece(in));
    else
      direct.pack(as_piece(out), place(of(in)));
  };
  task gathered = gather_.run(comm, first, so_far, work);
  co_await gathered;
  work.pack = [&](const item& i, char* message) { std::memcpy(message, place(of(i)), of(i).bytes); };
  work.unpack = [&](const item& i, const char* message) { direct.unpack(as_piece(i), message); };
  work.local = [&](const item& out, const item& in) { direct.unpack(as_piece(in), place(of(out))); };
  task scattered = scatter_.run(comm, second, so_far, work);
  co_await scattered;
}

void relay::tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const {
  gather_.tell(link, cost);
  scatter_.tell(link, cost);
}

}  // namespace lockstep::ranks
