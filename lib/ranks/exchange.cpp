// exchange.cpp - see exchange.hpp.
#include "exchange.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "../mutant.hpp"

namespace lockstep::ranks {

host_buffer::host_buffer(lockstep_comm& comm, size_t bytes) : comm_(&comm), bytes_(bytes) {
  if (bytes == 0 || comm.dry) return;
  const lockstep_status status = lockstep_alloc(comm.context, "cpu", LOCKSTEP_HOST, bytes, &data_);
  if (status != LOCKSTEP_OK)
    fail(status, "{} bytes for messages and partial results: {}", bytes, lockstep_last_error());
}

host_buffer::~host_buffer() {
  if (data_ == nullptr || comm_->closed != LOCKSTEP_OK) return;
  static_cast<void>(lockstep_free(comm_->context, "cpu", LOCKSTEP_HOST, bytes_, data_));
}

exchange::peer& exchange::with(int32_t process) {
  for (peer& p : peers_)
    if (p.process == process) return p;
  peers_.emplace_back().process = process;
  return peers_.back();
}

void exchange::sends(lockstep_comm& comm, item i) {
  if (i.bytes == 0) return;
  if (comm.mine(i.to))
    local_out_.push_back(i);
  else
    with(comm.process_of(i.to)).out.push_back(i);
}

void exchange::receives(lockstep_comm& comm, item i) {
  if (i.bytes == 0) return;
  if (comm.mine(i.from))
    local_in_.push_back(i);
  else
    with(comm.process_of(i.from)).in.push_back(i);
}

void exchange::finish(lockstep_comm& comm, const exchange* lender) {
  const auto before = [](const item& a, const item& b) {
    return std::tie(a.from, a.to, a.key) < std::tie(b.from, b.to, b.key);
  };
  const auto place = [&](std::vector<item>& items) {
    std::sort(items.begin(), items.end(), before);
    size_t bytes = sizeof(header);
    for (item& i : items) {
      i.offset = bytes;
      bytes += (i.bytes + 15) / 16 * 16;
    }
    return bytes;
  };
  std::sort(local_out_.begin(), local_out_.end(), before);
  std::sort(local_in_.begin(), local_in_.end(), before);
  // From the next process on, so that not all begin with the same.
  const int32_t p = comm.engine.processes, me = comm.engine.process;
  std::sort(peers_.begin(), peers_.end(),
            [&](const peer& a, const peer& b) { return (a.process - me + p) % p < (b.process - me + p) % p; });
  for (peer& with : peers_) {
    with.out_bytes = place(with.out);
    with.in_bytes = place(with.in);
    const size_t least = sizeof(header) + text_bytes;
    const size_t out_room = std::max(with.out_bytes, least);
    with.in_room = std::max(with.in_bytes, least);
    const peer* lent = nullptr;
    for (size_t k = 0; lender != nullptr && k < lender->peers_.size(); ++k)
      if (lender->peers_[k].process == with.process) lent = &lender->peers_[k];
    if (lent == nullptr || std::max(lent->out_bytes, least) < out_room || lent->in_room < with.in_room) {
      with.out_buffer = host_buffer(comm, out_room);
      with.in_buffer = host_buffer(comm, with.in_room);
    }
    const bool own = with.out_buffer.bytes() != 0;
    with.out_data = own ? with.out_buffer.data() : lent->out_data;
    with.in_data = own ? with.in_buffer.data() : lent->in_data;
  }
}

void exchange::run(lockstep_comm& comm, uint64_t what, failure& so_far, const step_work& work, int64_t* note) {
  std::vector<pending> requests;
  std::vector<peer*> from;  // of the first requests
  const auto any = [&](const std::vector<item>& items) { return std::any_of(items.begin(), items.end(), work.active); };
  // A failure within this process is its own; what the lockstep calls said is the text.
  const auto attempt = [&](int32_t rank, const auto& body) {
    if (so_far.any()) return;
    try {
      body();
    } catch (const error& e) {
      so_far.note(e.status, rank, e.text);
    } catch (const std::bad_alloc&) {
      so_far.note(LOCKSTEP_OUT_OF_MEMORY, rank, "out of host memory; free some or process the data in parts");
    }
  };
  for (peer& p : peers_) {
    if (!any(p.in)) continue;
    comm.receive(p.process, p.in_data, p.in_room, requests);
    from.push_back(&p);
  }
  const int64_t own_note = note != nullptr ? *note : -1;
  for (peer& p : peers_) {
    if (!any(p.out)) continue;
    for (const item& i : p.out)
      if (work.active(i)) attempt(i.from, [&] { work.pack(i, p.out_data + i.offset); });
    header head = comm.next_header(p.process, what, so_far);
    head.note = own_note;
    head.bytes = so_far.any() ? text_bytes : p.out_bytes - sizeof head;
    if (so_far.any()) {
      char* text = p.out_data + sizeof head;
      std::memset(text, 0, text_bytes);
      std::strncpy(text, so_far.text.c_str(), text_bytes - 1);
      if (LOCKSTEP_MUTANT("ranks_poison_not_sent")) head.status = LOCKSTEP_OK, head.bytes = p.out_bytes - sizeof head;
    }
    std::memcpy(p.out_data, &head, sizeof head);
    comm.send(p.process, p.out_data, sizeof head + head.bytes, requests);
  }
  for (size_t i = 0, j = 0; i < local_out_.size() && j < local_in_.size(); ++i, ++j)
    if (work.active(local_out_[i])) attempt(local_out_[i].from, [&] { work.local(local_out_[i], local_in_[j]); });
  attempt(comm.first(), work.meanwhile);
  comm.wait(requests, [&](size_t r) {
    if (r >= from.size()) return;
    peer& p = *from[r];
    failure poison;
    comm.check(p.process, p.in_data, requests[r].received, what, poison);
    if (poison.any()) {
      so_far.note(poison.status, poison.rank, poison.text);
      for (const item& i : p.in)
        if (work.always && work.active(i)) work.unpack(i, nullptr);
      return;
    }
    if (requests[r].received != p.in_bytes)
      comm.close(LOCKSTEP_RANK_LOST, format_text("{} bytes arrived from {} where {} were due", requests[r].received,
                                                 comm.name_of(p.process), p.in_bytes));
    header head;
    std::memcpy(&head, p.in_data, sizeof head);
    if (note != nullptr && head.note >= 0 && (*note < 0 || head.note < *note)) *note = head.note;
    for (const item& i : p.in)
      if (work.always && work.active(i))
        work.unpack(i, p.in_data + i.offset);
      else if (work.active(i))
        attempt(i.to, [&] { work.unpack(i, p.in_data + i.offset); });
  });
}

void exchange::tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const {
  int64_t messages = 0, out = 0, in = 0;
  for (const peer& p : peers_) {
    messages += !p.out.empty();
    out += p.out.empty() ? 0 : static_cast<int64_t>(p.out_bytes);
    in += p.in.empty() ? 0 : static_cast<int64_t>(p.in_bytes);
    cost.workspace_bytes += static_cast<int64_t>(p.out_buffer.bytes() + p.in_buffer.bytes());
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
