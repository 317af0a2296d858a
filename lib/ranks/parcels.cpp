// parcels.cpp - see links.hpp: the rounds of a step.
#include <algorithm>

#include "devices.hpp"
#include "links.hpp"
#include "plan.hpp"

namespace lockstep::ranks {

namespace {
// Calls of a seat go to another stream meanwhile.
class on_stream {
 public:
  on_stream(devices& of, int32_t seat, void* stream) : of_(of), seat_(seat), before_(of.use_stream(seat, stream)) {}
  ~on_stream() { of_.use_stream(seat_, before_); }
  on_stream(const on_stream&) = delete;
  on_stream& operator=(const on_stream&) = delete;

 private:
  devices& of_;
  int32_t seat_;
  void* before_;
};
}  // namespace

void links::begin(const std::vector<round_of_parcels>& rounds) {
  for (lane& l : lanes_) {
    const auto of_lane = [&](const parcel& p) { return p.seat == l.seat; };
    if (std::none_of(rounds.begin(), rounds.end(),
                     [&](const round_of_parcels& r) { return std::any_of(r.begin(), r.end(), of_lane); }))
      continue;
    require_ok(l.peers->record(l.device, comm_.devices->stream_of(l.seat), l.begun));
    require_ok(l.peers->wait(l.device, l.aside, l.begun));
  }
}

void links::pack(const round_of_parcels& round, size_t number, const pack_item& pack_one) {
  for (lane& l : lanes_) {
    slot& s = l.out[(next_ + number) % 2];
    bool any = false;
    const on_stream aside(*comm_.devices, l.seat, l.aside);
    for (const parcel& p : round) {
      if (p.seat != l.seat || !p.out) continue;
      if (!any && s.used) require_ok(l.peers->wait(l.device, l.aside, s.free));
      any = true;
      for (const item& i : p.items) pack_one(i, s.data + i.offset);
    }
    if (any) require_ok(l.peers->record(l.device, l.aside, s.full));
  }
}

// Hands a round to NCCL; the seats that have a part in it.
std::vector<links::lane*> links::launch(const round_of_parcels& round, size_t number,
                                        const std::function<bool(int32_t process)>& takes_part) {
  const size_t turn = (next_ + number) % 2;
  bool any = false;
  for (const parcel& p : round) any = any || takes_part(p.process);
  std::vector<lane*> used;
  if (!any) return used;
  const auto call = [&](nccl::result r) {
    if (r == nccl::success || r == nccl::in_progress) return;
    comm_.close(LOCKSTEP_RANK_LOST, format_text("data between GPUs cannot be sent: {}", nccl_->text(r)));
  };
  for (lane& l : lanes_) {
    bool sends = false, receives = false;
    for (const parcel& p : round)
      if (p.seat == l.seat && takes_part(p.process)) (p.out ? sends : receives) = true;
    if (sends) require_ok(l.peers->wait(l.device, l.carrier, l.out[turn].full));
    if (receives && l.in[turn].used) require_ok(l.peers->wait(l.device, l.carrier, l.in[turn].free));
    if (sends || receives) used.push_back(&l);
  }
  call(nccl_->group_start());
  for (lane* l : used)
    for (const parcel& p : round) {
      if (p.seat != l->seat || !takes_part(p.process)) continue;
      const int32_t peer = member_[static_cast<size_t>(p.other)];
      if (p.out)
        call(nccl_->send(l->out[turn].data + p.offset, p.bytes, nccl::bytes_type, peer, l->comm, l->carrier));
      else
        call(nccl_->recv(l->in[turn].data + p.offset, p.bytes, nccl::bytes_type, peer, l->comm, l->carrier));
    }
  call(nccl_->group_end());
  return used;
}

void links::unpack(const round_of_parcels& round, size_t number, const std::function<bool(int32_t process)>& takes_part,
                   const unpack_item& unpack_one) {
  for (lane& l : lanes_) {
    slot& s = l.in[(next_ + number) % 2];
    bool any = false;
    const on_stream aside(*comm_.devices, l.seat, l.aside);
    for (const parcel& p : round) {
      if (p.seat != l.seat || p.out || !takes_part(p.process)) continue;
      if (!any) require_ok(l.peers->wait(l.device, l.aside, s.full));
      any = true;
      for (const item& i : p.items) unpack_one(i, s.data + i.offset);
    }
    if (any) require_ok(l.peers->record(l.device, l.aside, s.free));
    s.used = s.used || any;
  }
}

task links::carry(const std::vector<round_of_parcels>& rounds, const std::function<bool(int32_t process)>& takes_part,
                  const pack_item& pack_one, const unpack_item& unpack_one, bool waits) {
  partners_.clear();
  for (const round_of_parcels& round : rounds)
    for (const parcel& p : round)
      if (takes_part(p.process)) partners_.insert(p.process);
  for (size_t r = 0; r < rounds.size(); ++r) {
    const std::vector<lane*> used = launch(rounds[r], r, takes_part);
    task launching = until([this] { return launched(); });
    co_await launching;  // only then is it on the streams
    for (lane* l : used) {
      slot &out = l->out[(next_ + r) % 2], &in = l->in[(next_ + r) % 2];
      for (void* event : {out.free, in.full, l->sent}) require_ok(l->peers->record(l->device, l->carrier, event));
      out.used = l->busy = true;
    }
    if (waits) {
      task arrived = settled();
      co_await arrived;
    }
    if (r + 1 < rounds.size()) try {
        pack(rounds[r + 1], r + 1, pack_one);
      } catch (const error& e) {  // the others count on it
        comm_.close(e.status, e.text);
      }
    unpack(rounds[r], r, takes_part, unpack_one);
  }
  next_ += rounds.size();
  for (lane& l : lanes_) {
    void* now = comm_.devices->stream_of(l.seat);
    require_ok(l.peers->record(l.device, l.aside, l.unpacked));
    require_ok(l.peers->wait(l.device, now, l.unpacked));
    if (l.busy) require_ok(l.peers->wait(l.device, now, l.sent));
  }
}

}  // namespace lockstep::ranks
