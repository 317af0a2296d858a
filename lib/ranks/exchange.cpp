// exchange.cpp - see exchange.hpp.
#include "exchange.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "devices.hpp"
#include "links.hpp"

namespace lockstep::ranks {

bool exchange::linked(const lockstep_comm& comm, const item& i) const {
  return by_links && comm.links->between(i.from, i.to);
}

void exchange::sends(lockstep_comm& comm, item i) {
  if (i.bytes == 0) return;
  comm.pieces.take();
  (comm.mine(i.to) ? local_out_ : linked(comm, i) ? link_items_ : out_items_).push_back(i);
}

void exchange::receives(lockstep_comm& comm, item i) {
  if (i.bytes == 0) return;
  comm.pieces.take();
  (comm.mine(i.from) ? local_in_ : linked(comm, i) ? link_items_ : in_items_).push_back(i);
}

namespace {
bool before(const item& a, const item& b) { return std::tie(a.from, a.to, a.key) < std::tie(b.from, b.to, b.key); }
}  // namespace

std::vector<exchange::message> exchange::messages_of(lockstep_comm& comm, std::vector<item>& items, bool sent,
                                                     workspace& memory, int64_t most_bytes) const {
  // Starts with the next process, so that not all processes send to the same one first.
  const int32_t p = comm.engine.processes, me = comm.engine.process;
  const auto turn = [&](const item& i) { return (comm.process_of(sent ? i.to : i.from) - me + p) % p; };
  std::sort(items.begin(), items.end(), before);
  std::stable_sort(items.begin(), items.end(), [&](const item& a, const item& b) { return turn(a) < turn(b); });
  const auto most = static_cast<size_t>(std::min(comm.message_bytes, most_bytes)) + sizeof(header);
  std::vector<message> all;
  for (item i : items) {
    const int32_t process = comm.process_of(sent ? i.to : i.from);
    const size_t more = (i.bytes + 15) / 16 * 16;
    if (all.empty() || all.back().process != process || all.back().bytes + more > most)
      all.push_back({process, {}, sizeof(header), {}});
    i.offset = all.back().bytes;
    all.back().bytes += more;
    all.back().items.push_back(i);
  }
  // There is room for a failure's text.
  for (message& m : all) m.memory = buffer(memory, std::max(m.bytes, sizeof(header) + text_bytes));
  items = {};
  return all;
}

void exchange::finish(lockstep_comm& comm, workspace& memory, int64_t most_bytes) {
  std::sort(local_out_.begin(), local_out_.end(), before);
  std::sort(local_in_.begin(), local_in_.end(), before);
  out_ = messages_of(comm, out_items_, true, memory, most_bytes);
  in_ = messages_of(comm, in_items_, false, memory, most_bytes);
  if (!link_items_.empty()) finish_links(comm, memory);
  for (const message& m : out_) comm.sends_to.insert(m.process);
  for (const message& m : in_) comm.hears_from.insert(m.process);
  for (const partner& one : partners_) comm.sends_to.insert(one.process), comm.hears_from.insert(one.process);
}

// Both sides of a pair cut its items into the same parcels.
void exchange::finish_links(lockstep_comm& comm, workspace& memory) {
  struct place {
    size_t round = 0, bytes = 0;
  };
  std::map<std::pair<int32_t, int32_t>, place> last;  // of each pair
  std::sort(link_items_.begin(), link_items_.end(), before);
  for (item i : link_items_) {
    const bool out = comm.mine(i.from);
    const int32_t other = out ? i.to : i.from, seat = (out ? i.from : i.to) - comm.first();
    const size_t more = (i.bytes + 15) / 16 * 16;
    place& at = last[{i.from, i.to}];
    if (at.bytes != 0 && at.bytes + more > comm.links->piece_bytes()) ++at.round, at.bytes = 0;
    if (rounds_.size() <= at.round) rounds_.resize(at.round + 1);
    round_of_parcels& round = rounds_[at.round];
    if (at.bytes == 0) round.push_back({seat, other, comm.process_of(other), out, 0, 0, {}});
    parcel& p = *std::find_if(round.rbegin(), round.rend(), [&](const parcel& one) {
      return one.seat == seat && one.other == other && one.out == out;
    });
    i.offset = at.bytes;
    at.bytes += more;
    p.bytes = at.bytes;
    p.items.push_back(i);
  }
  link_items_ = {};
  for (round_of_parcels& round : rounds_) {
    std::map<std::pair<int32_t, bool>, size_t> used;  // of each seat's slots
    for (parcel& p : round) {
      size_t& end = used[{p.seat, p.out}];
      p.offset = end;
      end += (p.bytes + 255) / 256 * 256;
      for (item& i : p.items) i.offset += p.offset;
      const auto is_it = [&](const partner& one) { return one.process == p.process; };
      if (std::none_of(partners_.begin(), partners_.end(), is_it))
        partners_.push_back({p.process, buffer(memory, sizeof(header) + text_bytes),
                             buffer(memory, sizeof(header) + text_bytes), false});
    }
    for (const auto& [slot, bytes] : used) comm.links->reserve(slot.first, slot.second, bytes);
  }
}

// Tells the partners that this process takes part in the rounds, or why not. Whether it does.
bool exchange::say_ready(lockstep_comm& comm, uint64_t what, const failure& so_far, std::vector<pending>& requests) {
  for (partner& one : partners_) {
    header head = comm.next_header(one.process, what, so_far);
    head.bytes = so_far.any() ? text_bytes : 0;
    char* data = one.out.data();
    std::memset(data, 0, one.out.bytes());
    std::copy_n(so_far.text.data(), std::min(so_far.text.size(), text_bytes - 1), data + sizeof head);
    std::memcpy(data, &head, sizeof head);
    comm.send(one.process, data, sizeof head + head.bytes, requests);
  }
  return !so_far.any();
}

task exchange::run(lockstep_comm& comm, uint64_t what, failure& so_far, const step_work& work, int64_t* note) {
  std::vector<pending> requests;
  struct due {
    const message* data;
    partner* sign;  // or that a partner is ready
  };
  std::vector<due> from;  // of the first requests
  const auto any = [&](const std::vector<item>& items) { return std::any_of(items.begin(), items.end(), work.active); };
  const auto attempt = [&](int32_t rank, const auto& body) { so_far.attempt(rank, body); };
  if (!rounds_.empty()) attempt(comm.first(), [&] { comm.links->begin(rounds_); });
  const auto expect_sign = [&](partner& one) {
    comm.receive(one.process, one.in.data(), one.in.bytes(), requests);
    from.push_back({nullptr, &one});
  };
  const auto partner_of = [&](int32_t process) {
    return std::find_if(partners_.begin(), partners_.end(), [&](const partner& p) { return p.process == process; });
  };
  // The sign of a process comes after its messages.
  for (size_t k = 0; k < in_.size(); ++k) {
    const message& m = in_[k];
    if (any(m.items)) {
      comm.receive(m.process, m.memory.data(), m.memory.bytes(), requests);
      from.push_back({&m, nullptr});
    }
    const auto sign = partner_of(m.process);
    if (sign != partners_.end() && (k + 1 == in_.size() || in_[k + 1].process != m.process)) expect_sign(*sign);
  }
  for (partner& one : partners_) {
    one.ready = false;
    if (std::none_of(in_.begin(), in_.end(), [&](const message& m) { return m.process == one.process; }))
      expect_sign(one);
  }
  arrivals all(comm, requests, [&](size_t r) {
    if (r >= from.size()) return;
    if (partner* one = from[r].sign; one != nullptr) {
      failure refusal;
      comm.check(one->process, one->in.data(), requests[r].received, what, refusal);
      one->ready = !refusal.any();
      if (refusal.any()) so_far.note(refusal.status, refusal.rank, refusal.text);
      return;
    }
    const message& m = *from[r].data;
    const char* data = m.memory.data();
    failure poison;
    comm.check(m.process, data, requests[r].received, what, poison);
    if (poison.any()) {
      so_far.note(poison.status, poison.rank, poison.text);
      for (const item& i : m.items)
        if (work.always && work.active(i)) work.unpack(i, nullptr);
      return;
    }
    if (requests[r].received != m.bytes)
      comm.close(LOCKSTEP_RANK_LOST, format_text("{} bytes arrived from {} where {} were due", requests[r].received,
                                                 comm.name_of(m.process), m.bytes));
    header head;
    std::memcpy(&head, data, sizeof head);
    if (note != nullptr && head.note >= 0 && (*note < 0 || head.note < *note)) *note = head.note;
    for (const item& i : m.items)
      if (work.always && work.active(i))
        work.unpack(i, data + i.offset);
      else if (work.active(i))
        attempt(i.to, [&] { work.unpack(i, data + i.offset); });
  });
  const int64_t own_note = note != nullptr ? *note : -1;
  // Transports make progress only when asked, but a look at all requests after each message would be work that grows
  // with the square of the messages.
  constexpr size_t most_looks = 8;
  const auto look = [&](size_t number, size_t of) {
    if (!requests.empty() && (number + 1) % (of / most_looks + 1) == 0) all.test();
  };
  for (size_t k = 0; k < out_.size(); ++k) {
    const message& m = out_[k];
    if (!any(m.items)) continue;
    char* data = m.memory.data();
    for (const item& i : m.items)
      if (work.active(i)) attempt(i.from, [&] { work.pack(i, data + i.offset); });
    header head = comm.next_header(m.process, what, so_far);
    head.note = own_note;
    head.bytes = so_far.any() ? text_bytes : m.bytes - sizeof head;
    if (so_far.any()) {
      char* text = data + sizeof head;
      std::memset(text, 0, text_bytes);
      std::strncpy(text, so_far.text.c_str(), text_bytes - 1);
    }
    std::memcpy(data, &head, sizeof head);
    comm.send(m.process, data, sizeof head + head.bytes, requests);
    if (!work.packs_first) look(k, out_.size());
  }
  bool takes_part = false;
  if (!rounds_.empty()) {
    attempt(comm.first(), [&] {
      comm.links->pack(rounds_[0], 0, [&](const item& i, char* to) { attempt(i.from, [&] { work.pack(i, to); }); });
    });
    takes_part = say_ready(comm, what, so_far, requests);
    all.test();
  }
  std::vector<char> between;
  const auto move_within = [&](const item& out, const item& in) {
    if (work.local) return work.local(out, in);
    between.resize(out.bytes);
    work.pack(out, between.data());
    work.unpack(in, between.data());
  };
  for (size_t i = 0, j = 0; i < local_out_.size() && j < local_in_.size(); ++i, ++j)
    if (work.active(local_out_[i])) {
      attempt(local_out_[i].from, [&] { move_within(local_out_[i], local_in_[j]); });
      look(i, local_out_.size());
    }
  attempt(comm.first(), [&] { comm.devices->flush(); });
  attempt(comm.first(), work.meanwhile);
  try {
    comm.devices->join();  // after a failure too: what was enqueued still writes
  } catch (const error& e) {
    so_far.note(e.status, comm.first(), e.text);
  }
  co_await all;
  if (!takes_part) co_return;
  // Two processes that have both said so exchange their parcels, whatever they have heard from others since.
  const std::function<bool(int32_t)> exchanges = [&](int32_t process) { return partner_of(process)->ready; };
  const links::unpack_item unpack = [&](const item& i, const char* data) {
    attempt(i.to, [&] { work.unpack(i, data); });
  };
  task rounds = comm.links->carry(rounds_, exchanges, work.pack, unpack, work.waits);
  co_await rounds;
}

void exchange::tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const {
  int64_t out = 0, in = 0;
  for (const message& m : out_) out += static_cast<int64_t>(m.bytes);
  for (const message& m : in_) in += static_cast<int64_t>(m.bytes);
  auto messages = static_cast<int64_t>(out_.size());
  for (const round_of_parcels& round : rounds_)
    for (const parcel& p : round) {
      (p.out ? out : in) += static_cast<int64_t>(p.bytes);
      messages += p.out ? 1 : 0;
    }
  cost.steps += messages != 0 || in != 0;
  cost.messages += messages;
  cost.bytes_out += out;
  cost.bytes_in += in;
  if (link.gigabytes_per_s > 0)
    cost.ms += static_cast<double>(messages) * link.latency_us * 1e-3 +
               static_cast<double>(std::max(out, in)) / link.gigabytes_per_s * 1e-6;
}

}  // namespace lockstep::ranks
