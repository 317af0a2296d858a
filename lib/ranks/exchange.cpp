// exchange.cpp - see exchange.hpp.
#include "exchange.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "../mutant.hpp"
#include "devices.hpp"

namespace lockstep::ranks {

host_memory::host_memory(lockstep_comm& comm, size_t bytes) : comm_(&comm), bytes_(bytes) {
  if (bytes == 0 || comm.dry) return;
  if (const char* backend = comm.devices->any_backend(); backend != nullptr) {
    kind_ = LOCKSTEP_PINNED, backend_ = backend;
    if (lockstep_alloc(comm.context, backend_, kind_, bytes, &data_) == LOCKSTEP_OK) return;
    kind_ = LOCKSTEP_HOST, backend_ = "cpu";  // slower to copy to devices
  }
  const lockstep_status status = lockstep_alloc(comm.context, backend_, kind_, bytes, &data_);
  if (status != LOCKSTEP_OK)
    fail(status, "{} bytes for messages and partial results: {}", bytes, lockstep_last_error());
}

host_memory::host_memory(lockstep_comm& comm, size_t bytes, int32_t seat)
    : comm_(&comm), bytes_(bytes), kind_(LOCKSTEP_DEVICE) {
  if (bytes == 0 || comm.dry || !comm.devices->has(seat)) return;
  backend_ = comm.backends[static_cast<size_t>(seat)].c_str();
  const lockstep_status status = lockstep_alloc(comm.context, backend_, kind_, bytes, &data_);
  if (status != LOCKSTEP_OK) fail(status, "{} bytes on {}: {}", bytes, backend_, lockstep_last_error());
}

host_memory::~host_memory() {
  if (data_ == nullptr || comm_->closed != LOCKSTEP_OK) return;
  static_cast<void>(lockstep_free(comm_->context, backend_, kind_, bytes_, data_));
}

void exchange::sends(lockstep_comm& comm, item i) {
  if (i.bytes != 0) (comm.mine(i.to) ? local_out_ : out_items_).push_back(i);
}

void exchange::receives(lockstep_comm& comm, item i) {
  if (i.bytes != 0) (comm.mine(i.from) ? local_in_ : in_items_).push_back(i);
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
    if (all.empty() || all.back().process != process ||
        (all.back().bytes + more > most && !LOCKSTEP_MUTANT("ranks_messages_of_any_length")))
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
}

task exchange::run(lockstep_comm& comm, uint64_t what, failure& so_far, const step_work& work, int64_t* note) {
  std::vector<pending> requests;
  std::vector<const message*> from;  // of the first requests
  const auto any = [&](const std::vector<item>& items) { return std::any_of(items.begin(), items.end(), work.active); };
  // A failure within this process; its text is that of the lockstep call.
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
  for (const message& m : in_) {
    if (!any(m.items)) continue;
    comm.receive(m.process, m.memory.data(), m.memory.bytes(), requests);
    from.push_back(&m);
  }
  arrivals all(comm, requests, [&](size_t r) {
    if (r >= from.size()) return;
    const message& m = *from[r];
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
  for (const message& m : out_) {
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
      if (LOCKSTEP_MUTANT("ranks_poison_not_sent")) head.status = LOCKSTEP_OK, head.bytes = m.bytes - sizeof head;
    }
    std::memcpy(data, &head, sizeof head);
    comm.send(m.process, data, sizeof head + head.bytes, requests);
    all.test();  // transports make progress only when asked
  }
  for (size_t i = 0, j = 0; i < local_out_.size() && j < local_in_.size(); ++i, ++j)
    if (work.active(local_out_[i])) {
      attempt(local_out_[i].from, [&] { work.local(local_out_[i], local_in_[j]); });
      if (!requests.empty()) all.test();
    }
  attempt(comm.first(), [&] { comm.devices->flush(); });
  attempt(comm.first(), work.meanwhile);
  try {
    comm.devices->join();  // after a failure too: what was enqueued still writes
  } catch (const error& e) {
    so_far.note(e.status, comm.first(), e.text);
  }
  co_await all;
}

void exchange::tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const {
  int64_t out = 0, in = 0;
  for (const message& m : out_) out += static_cast<int64_t>(m.bytes);
  for (const message& m : in_) in += static_cast<int64_t>(m.bytes);
  const auto messages = static_cast<int64_t>(out_.size());
  cost.steps += messages != 0 || in != 0;
  cost.messages += messages;
  cost.bytes_out += out;
  cost.bytes_in += in;
  if (link.gigabytes_per_s > 0)
    cost.ms += static_cast<double>(messages) * link.latency_us * 1e-3 +
               static_cast<double>(std::max(out, in)) / link.gigabytes_per_s * 1e-6;
}

}  // namespace lockstep::ranks
