// exchange.hpp - one step of a call: all items that two processes exchange travel in one message each way.
#pragma once

#include <functional>
#include <vector>

#include "comm.hpp"
#include "workspace.hpp"

namespace lockstep::ranks {

// Large boxes travel in pieces of about this size: while one is packed, others are on their way, and it is unpacked
// while it is in the cache.
constexpr int64_t piece_bytes = int64_t{1} << 20;

// One item from one rank to another. key: the items of a pair of ranks, numbered in the same order on both sides;
// within a process by the same numbers.
struct item {
  int32_t from, to;
  int64_t key;
  size_t bytes;
  size_t index;       // for the caller's use
  size_t offset = 0;  // in the message
};

// How a step handles its items: pack one into a message, unpack it, or do both within the process, at once if there is
// `local`. The first failure stops the rest and is sent in place of data.
struct step_work {
  std::function<void(const item&, char*)> pack;
  std::function<void(const item&, const char*)> unpack;
  std::function<void(const item& from, const item& to)> local;  // items with equal ranks and key
  std::function<bool(const item&)> active = [](const item&) { return true; };
  // Data that decides whether later steps happen is unpacked even after a failure; nullptr means that the sender
  // failed.
  bool always = false;
  std::function<void()> meanwhile = [] {};  // once all is sent
  bool waits = false;                       // with by_links: execution::waits
  bool packs_first = false;                 // unpacking writes where packing reads
};

// What two seats of different processes exchange by links.hpp in one round: items in a slot of the own seat's device.
struct parcel {
  int32_t seat, other, process;  // own; the other rank, and its process
  bool out;
  size_t offset = 0, bytes = 0;
  std::vector<item> items;  // with their offsets in the slot
};
using round_of_parcels = std::vector<parcel>;

class exchange {
 public:
  // Set before items are added: packing and unpacking are calls of the seats, so their items may take links. Items that
  // do are no longer than links::piece_bytes.
  bool by_links = false;
  // Adds an item that a seat of this process sends or receives. If it does both, add the item twice.
  void sends(lockstep_comm& comm, item i);
  void receives(lockstep_comm& comm, item i);
  // Sorts the items into messages, in the same way on both sides, and lays out their memory. A message holds at most
  // comm.message_bytes and at most most_bytes, or a single longer item.
  void finish(lockstep_comm& comm, workspace& memory, int64_t most_bytes = INT64_MAX);
  // note: sent with a message of status OK. Returns the lowest note of all that is not -1.
  task run(lockstep_comm& comm, uint64_t what, failure& so_far, const step_work& work, int64_t* note = nullptr);

  // Adds the cost of running this step.
  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const;

 private:
  struct message {
    int32_t process;
    std::vector<item> items;
    size_t bytes = sizeof(header);
    buffer memory;
  };
  std::vector<message> messages_of(lockstep_comm& comm, std::vector<item>& items, bool sent, workspace& memory,
                                   int64_t most_bytes) const;
  // A process that takes part in rounds: the messages in which both say so.
  struct partner {
    int32_t process;
    buffer out, in;
    bool ready = false;
  };
  void finish_links(lockstep_comm& comm, workspace& memory);
  bool say_ready(lockstep_comm& comm, uint64_t what, const failure& so_far, std::vector<pending>& requests);
  bool linked(const lockstep_comm& comm, const item& i) const;
  std::vector<item> local_out_, local_in_, out_items_, in_items_, link_items_;
  std::vector<message> out_, in_;
  std::vector<round_of_parcels> rounds_;
  std::vector<partner> partners_;
};

}  // namespace lockstep::ranks
