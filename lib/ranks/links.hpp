// links.hpp - the data plane "nccl": boxes between seats on devices of different processes.
//
// What two seats exchange in a step is cut into rounds of pieces. For each round a seat packs its pieces into a slot of
// its device, one grouped call of NCCL exchanges the slots of all, and the seat unpacks what came; meanwhile the pieces
// of the next round are packed. Only bytes travel so, no sums are made.
//
// Nobody can be called back from a grouped call. So the processes first tell each other by messages that they take part
// (exchange.cpp), the communicators do not block, and the host waits for them and for their streams with a deadline.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "comm.hpp"
#include "exchange.hpp"
#include "lockstep/backend_peer.h"
#include "nccl.hpp"

namespace lockstep::ranks {

class links {
 public:
  explicit links(lockstep_comm& comm) : comm_(comm) {}
  ~links();
  links(const links&) = delete;
  links& operator=(const links&) = delete;

  // Whether to use the plane if it can be opened.
  static bool wanted(const std::string& data);
  // Collective, once the devices are known: opens links between the seats on devices if every process with such seats
  // can. own: the process's failure so far.
  task open(const failure& own);
  const std::string& why() const { return why_; }  // why there are none
  bool any() const { return open_; }
  bool all() const;  // between any two processes, whatever the ranks
  bool between(int32_t a, int32_t b) const;

  // While a plan is made: most bytes that two seats exchange in a round, and memory for a seat's rounds.
  size_t piece_bytes() const;
  void reserve(int32_t seat, bool out, size_t bytes);

  using pack_item = std::function<void(const item&, char*)>;
  using unpack_item = std::function<void(const item&, const char*)>;
  // A step begins: packing comes after what the seats' streams have now.
  void begin(const std::vector<round_of_parcels>& rounds);
  void pack(const round_of_parcels& round, size_t number, const pack_item& pack_one);
  // Exchanges all rounds with the processes that take part; the first one is packed. The streams of the seats then wait
  // for it all. waits: calls of this execution wait for their stream, so nothing stays under way that other processes
  // can hold up.
  task carry(const std::vector<round_of_parcels>& rounds, const std::function<bool(int32_t process)>& takes_part,
             const pack_item& pack_one, const unpack_item& unpack_one, bool waits);
  // Waits until nothing is under way. Calls of a seat that wait for their stream have no deadline, so this comes
  // before.
  task settled();
  void settle();  // outside of executions
  // Closes the communicator if NCCL has noticed a failure.
  void check();
  // At a deadline: if the seat waits for others, they are lost.
  void give_up(int32_t seat);
  // When the communicator is closed: ends what is under way.
  void abort();
  void close();  // when the communicator is destroyed

 private:
  struct slot {
    char* data = nullptr;
    void *full = nullptr, *free = nullptr;  // events
    bool used = false;                      // free was recorded
  };
  struct lane {  // of a seat
    int32_t seat = 0, device = 0;
    const lockstep_peer_table* peers = nullptr;
    std::string name;  // "cuda:1"
    nccl::comm comm = nullptr;
    void *aside = nullptr, *carrier = nullptr;                    // streams: of packing and unpacking, of NCCL
    void *begun = nullptr, *unpacked = nullptr, *sent = nullptr;  // events
    slot out[2], in[2];
    size_t out_bytes = 0, in_bytes = 0;
    bool busy = false;  // sent was recorded and not waited for
  };
  struct offer;
  offer make_offer(const failure& own);
  void start(const nccl::id& id);
  void make(lane& l) const;
  void drop(lane& l) const;
  lane* lane_of(int32_t seat);
  std::string under_way(bool& any) const;
  std::string await_calls(int64_t ms) const;  // until none of NCCL is in progress: "", or what failed
  // Until then others may go on; if it takes too long, the partners are lost.
  task until(std::function<bool()> reached);
  bool quiet();
  bool launched();
  std::vector<lane*> launch(const round_of_parcels& round, size_t number,
                            const std::function<bool(int32_t process)>& takes_part);
  void unpack(const round_of_parcels& round, size_t number, const std::function<bool(int32_t process)>& takes_part,
              const unpack_item& unpack_one);

  lockstep_comm& comm_;
  const nccl* nccl_ = nullptr;
  bool open_ = false;
  std::string why_;
  std::vector<int32_t> member_;  // of each rank: its number in NCCL's communicator, or -1
  int32_t members_ = 0;
  std::vector<lane> lanes_;
  size_t next_ = 0;             // slots are used in turn
  std::set<int32_t> partners_;  // processes of the last rounds
};

}  // namespace lockstep::ranks
