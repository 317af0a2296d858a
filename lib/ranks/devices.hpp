// devices.hpp - seats that compute on devices: their streams, and how two seats of this process exchange boxes.
//
// Calls of such a seat are enqueued on the stream of the execution, the caller's or one of the seat's own; calls that
// touch host memory wait for themselves. Between seats:
//   direct   one call from block to block, on one device, or where the sender's writes to the receiver's memory
//   engine   the sender packs bands of the box into a ring of slots on its device, and copy engines put each band's
//            rows in place while the next one is packed; no SM waits for a link
//   nccl     messages between GPUs of different processes: links.hpp
//   staged   the sender packs into host memory, the receiver unpacks: for any two seats, and like messages
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "grid.hpp"
#include "lockstep/backend_peer.h"
#include "workspace.hpp"

namespace lockstep::ranks {

enum class plane { host, direct, engine, nccl, staged };  // host: neither seat is on a device, so one call does it

// A box that one seat of this process gives another, or itself.
struct box_move {
  int32_t from = 0, to = 0;  // seats
  size_t element_bytes = 0;
  box part;  // in the receiver's order of axes
  // Packs a part of the box by calls of seat `from`.
  std::function<void(const box& band, char* packed)> pack;
  char* at = nullptr;  // the memory of part's first element, in the receiver's memory
  std::array<int64_t, LOCKSTEP_MAX_RANK> strides{};
};

class devices {
 public:
  explicit devices(lockstep_comm& comm) : comm_(comm) {}
  ~devices();
  devices(const devices&) = delete;
  devices& operator=(const devices&) = delete;

  // Finds each seat's device and makes its streams. named: the data plane that was asked for, or NULL.
  void open(const char* named);
  // Says which planes are used and why not the others; a named one that cannot be used is an error.
  void describe();
  bool any() const { return any_backend() != nullptr; }
  const char* any_backend() const;  // of a seat on a device; NULL: there is none
  bool has(int32_t seat) const {
    return static_cast<size_t>(seat) < seats_.size() && seats_[static_cast<size_t>(seat)].peers != nullptr;
  }
  bool on_one(int32_t a, int32_t b) const { return at(a).peers == at(b).peers && at(a).device == at(b).device; }
  const std::string& data() const { return data_; }  // the planes in use
  const std::string& why() const { return why_; }    // why not the others

  // Whether an address is memory of the seat's device. Throws if it is not and the named plane needs it. on_host: it is
  // host memory, and the seat is on a device.
  bool reaches(int32_t seat, const void* pointer, const std::string& name, bool& on_host) const;
  // How a box of that many bytes goes from one seat to another; there: both have it in memory of their devices.
  plane between(int32_t from, int32_t to, bool there, size_t bytes) const;
  // The same where a single call cannot do it, because the boxes are interleaved or in one block.
  plane packed_between(int32_t from, int32_t to, bool there) const;
  // Whether calls of seat `from` can write to that memory of seat `to`, which is on another device.
  bool writes(int32_t from, int32_t to, const void* pointer) const;
  // While a plan is made: memory for boxes of that many bytes between two seats.
  void reserve(int32_t from, int32_t to, plane p, size_t bytes);

  // An execution begins: the stream of each seat, or NULL for its own.
  void begin(const std::vector<void*>& streams);
  void* stream_of(int32_t seat) const;
  // From now on the seat's calls go to another stream; returns the one before.
  void* use_stream(int32_t seat, void* stream) { return std::exchange(at(seat).now, stream); }
  // The seat's calls of this execution come after those of the last one, whatever stream it used.
  void await_last(int32_t seat) const;
  // Before a call of seat `by` writes to another seat's block on the same device.
  void await_ready(int32_t by, int32_t owner);
  // By the engine plane it only notes the move, and flush enqueues band after band of all senders in turn: while the
  // host enqueues, every device has work. What m.pack captures must live until then.
  void move(const box_move& m, plane p);
  // The same for what a seat's calls put in place: in its own memory, where it must not hold up what goes to others, or
  // in that of another device.
  void put(int32_t from, int32_t to, const box& part, size_t element_bytes,
           const std::function<void(const box& band)>& move_band);
  void flush();
  // What was moved becomes visible to the streams of the receivers.
  void join();
  // The execution has enqueued everything.
  void end();
  // Waits for all executions, until the deadline; throws their failure.
  void finish();

 private:
  struct slot {
    char* data = nullptr;
    void *full = nullptr, *free = nullptr;  // events
    bool used = false;                      // free was recorded
  };
  struct banded {
    box_move m;
    std::vector<box> bands;
    size_t next = 0;
    std::function<void(const box& band)> move_band;  // of put
  };
  struct seat {
    const lockstep_peer_table* peers = nullptr;  // NULL: the seat is not on a device
    int32_t device = 0;
    std::string name;                          // "cuda:1"
    void *own = nullptr, *copies[2] = {};      // streams
    void* now = nullptr;                       // of the execution
    void *ready = nullptr, *joined = nullptr;  // events: when the execution began; what join waits for
    void* ended = nullptr;                     // event: the last execution
    bool busy = false;                         // ended was recorded and not waited for
    std::vector<char> linked;                  // of each seat: whether it is on this device or one that this can reach
    bool copying = false;                      // copies have work that join has not seen
    size_t slot_bytes = 0, next = 0, bands = 0;
    std::vector<slot> ring;
    std::vector<char> sent_to;             // of each seat, since the last join
    std::deque<banded> moves, own_shares;  // to be enqueued
  };
  // Rows that copy engines can put in place.
  struct rows_of_band {
    size_t width = 0, height = 1, pitch = 0;
    int64_t more = 1;  // such blocks of rows
    int outer = 0;     // axes [0, outer) count them
  };
  seat& at(int32_t s) { return seats_[static_cast<size_t>(s)]; }
  const seat& at(int32_t s) const { return seats_[static_cast<size_t>(s)]; }
  void make(seat& s) const;
  void drop(seat& s) const;
  void grow(seat& s, size_t bytes);
  size_t band_bytes() const;
  bool quiet();
  slot& take(seat& s, const seat& user, void* stream);
  void begin_move(const box_move& m);
  void send_band(const box_move& m, const box& band);
  void by_host(const box_move& m);
  void unpack(const box_move& m, const box& band, const char* packed);
  static bool rows_of(const box_move& m, const box& band, rows_of_band& rows);
  void copy_band(const seat& from, const seat& to, const box_move& m, const box& band, const rows_of_band& rows,
                 const char* packed, void* stream) const;

  lockstep_comm& comm_;
  std::vector<seat> seats_;
  std::string named_, data_ = "staged", why_, indirect_;
  host_memory between_;
};

}  // namespace lockstep::ranks
