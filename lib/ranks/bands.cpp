// bands.cpp - see devices.hpp: a box on its way from one seat of this process to another.
#include <algorithm>
#include <limits>

#include "comm.hpp"
#include "devices.hpp"
#include "plan.hpp"

namespace lockstep::ranks {

namespace {
// Copy engines take long for short rows and for many small copies; the receiver's kernels then put them in place.
constexpr size_t shortest_row = 2048;
constexpr int64_t most_copies = 32;
}  // namespace

void devices::move(const box_move& m, plane p) {
  if (m.part.empty()) return;
  if (p == plane::engine)
    begin_move(m);
  else
    by_host(m);
}

void devices::unpack(const box_move& m, const box& band, const char* packed) {
  copy_box(comm_, m.to, m.element_bytes, band, packed, packed_strides(band).data(),
           m.at + offset_of(band, m.part, m.strides.data()) * static_cast<int64_t>(m.element_bytes), m.strides.data());
}

void devices::by_host(const box_move& m) {
  const auto most = static_cast<size_t>(comm_.message_bytes);
  const size_t need = std::min(static_cast<size_t>(m.part.elements()) * m.element_bytes, most);
  if (between_.bytes() < need) between_ = host_memory(comm_, need);
  std::vector<box> bands;
  cut_box(m.part, std::max<int64_t>(static_cast<int64_t>(need / m.element_bytes), 1), bands);
  for (const box& band : bands) {  // both wait: they touch host memory
    m.pack(band, between_.data());
    unpack(m, band, between_.data());
  }
}

// The next slot; the stream, which is the user's, waits until nobody uses it.
devices::slot& devices::take(seat& s, const seat& user, void* stream) {
  slot& one = s.ring[s.next++ % s.ring.size()];
  if (one.used) require_ok(s.peers->wait(user.device, stream, one.free));
  one.used = true;
  return one;
}

// The band as rows in the receiver's memory: the inner axes that are contiguous there, the next one, and the rest.
bool devices::rows_of(const box_move& m, const box& band, rows_of_band& rows) {
  int k = band.rank - 1;
  int64_t run = 1;
  for (; k >= 0; --k) {
    const auto i = static_cast<size_t>(k);
    if (band.length[i] == 1) continue;
    if (m.strides[i] != run) break;
    run *= band.length[i];
  }
  rows.width = static_cast<size_t>(run) * m.element_bytes;
  rows.pitch = rows.width;
  while (k >= 0 && band.length[static_cast<size_t>(k)] == 1) --k;
  if (k >= 0) {
    const auto i = static_cast<size_t>(k--);
    const int64_t pitch = m.strides[i] * static_cast<int64_t>(m.element_bytes);
    if (pitch > std::numeric_limits<int32_t>::max()) return false;
    rows.pitch = static_cast<size_t>(pitch);
    rows.height = static_cast<size_t>(band.length[i]);
  }
  rows.outer = k + 1;
  for (int j = 0; j < rows.outer; ++j) rows.more *= band.length[static_cast<size_t>(j)];
  if (rows.width > static_cast<size_t>(std::numeric_limits<int32_t>::max())) return rows.height == 1 && rows.more == 1;
  return rows.more <= most_copies && (rows.width >= shortest_row || rows.height * static_cast<size_t>(rows.more) <= 8);
}

void devices::copy_band(const seat& from, const seat& to, const box_move& m, const box& band, const rows_of_band& rows,
                        const char* packed, void* stream) const {
  const auto bytes = static_cast<int64_t>(m.element_bytes);
  char* first = m.at + offset_of(band, m.part, m.strides.data()) * bytes;
  for (int64_t i = 0; i < rows.more; ++i) {
    const int64_t offset = place_of(i, rows.outer, band.length.data(), m.strides.data());
    const size_t packed_offset = static_cast<size_t>(i) * rows.width * rows.height;
    const lockstep_peer_rows r{packed + packed_offset,
                               first + offset * bytes,
                               rows.width,
                               rows.pitch,
                               rows.width,
                               rows.height,
                               from.device,
                               to.device};
    require_ok(from.peers->copy_rows(from.device, stream, &r));
  }
}

void devices::begin_move(const box_move& m) {
  seat &a = at(m.from), &b = at(m.to);
  banded one;
  one.m = m;
  const size_t fits = std::min(a.slot_bytes, b.slot_bytes) / m.element_bytes;  // a band may pass through both rings
  if (fits == 0) fail(LOCKSTEP_INTERNAL, "ranks {} and {} have no ring; please report it", m.from, m.to);
  cut_box(m.part, static_cast<int64_t>(fits), one.bands);
  if (m.from != m.to) {  // the receiver's earlier work may still use its block
    for (void* copies : a.copies) require_ok(a.peers->wait(a.device, copies, b.ready));
    a.copying = true;
    a.sent_to[static_cast<size_t>(m.to)] = 1;
  }
  a.moves.push_back(std::move(one));
}

void devices::put(int32_t from, int32_t to, const box& part, size_t element_bytes,
                  const std::function<void(const box& band)>& move_band) {
  if (part.empty()) return;
  banded one;
  one.m.from = from, one.m.to = to;
  one.move_band = move_band;
  cut_box(part, std::max<int64_t>(static_cast<int64_t>(band_bytes() / element_bytes), 1), one.bands);
  if (from != to) await_ready(from, to);
  (from == to ? at(from).own_shares : at(from).moves).push_back(std::move(one));
}

// A seat first packs as many bands as its ring has slots; then a band of its own share comes before each further pack,
// which has to wait for a slot anyway. So copy engines do not wait for the own share.
void devices::flush() {
  const auto next = [](std::deque<banded>& moves, const auto& enqueue) {
    banded& now = moves.front();
    enqueue(now, now.bands[now.next++]);
    if (now.next == now.bands.size()) moves.pop_front();
  };
  // Each seat begins with the one behind it, so that no receiver is sent data by all at once.
  const auto distance = [n = seats_.size()](const banded& b) {
    return (static_cast<size_t>(b.m.to) + n - static_cast<size_t>(b.m.from)) % n;
  };
  for (seat& s : seats_)
    std::stable_sort(s.moves.begin(), s.moves.end(),
                     [&](const banded& a, const banded& b) { return distance(a) < distance(b); });
  size_t round = 0;
  for (bool any = true; any; ++round) {
    any = false;
    for (seat& s : seats_) {
      any = any || !s.moves.empty() || !s.own_shares.empty();
      if (!s.own_shares.empty() && (round >= s.ring.size() || s.moves.empty()))
        next(s.own_shares, [](const banded& now, const box& band) { now.move_band(band); });
      if (!s.moves.empty())
        next(s.moves,
             [&](const banded& now, const box& band) { now.move_band ? now.move_band(band) : send_band(now.m, band); });
    }
  }
}

void devices::send_band(const box_move& m, const box& band) {
  seat &a = at(m.from), &b = at(m.to);
  const lockstep_peer_table& peers = *a.peers;
  void* copies = a.copies[a.bands++ % 2];  // one copy begins while the other ends
  slot& s = take(a, a, a.now);
  m.pack(band, s.data);
  if (m.from == m.to) {
    unpack(m, band, s.data);
    return require_ok(peers.record(a.device, a.now, s.free));
  }
  require_ok(peers.record(a.device, a.now, s.full));
  rows_of_band rows;
  if (rows_of(m, band, rows)) {
    require_ok(peers.wait(a.device, copies, s.full));
    copy_band(a, b, m, band, rows, s.data, copies);
    require_ok(peers.record(a.device, copies, s.free));
  } else if (a.device == b.device) {
    require_ok(peers.wait(b.device, b.now, s.full));
    unpack(m, band, s.data);
    require_ok(peers.record(b.device, b.now, s.free));
  } else {
    slot& landing = take(b, a, copies);
    require_ok(peers.wait(a.device, copies, s.full));
    const size_t bytes = static_cast<size_t>(band.elements()) * m.element_bytes;
    const lockstep_peer_rows all{s.data, landing.data, bytes, bytes, bytes, 1, a.device, b.device};
    require_ok(peers.copy_rows(a.device, copies, &all));
    require_ok(peers.record(a.device, copies, s.free));  // the landing is full, too: an event of this device tells both
    require_ok(peers.wait(b.device, b.now, s.free));
    unpack(m, band, landing.data);
    require_ok(peers.record(b.device, b.now, landing.free));
  }
}

}  // namespace lockstep::ranks
