// exchange.hpp - one step of a call: everything that two processes have for each other goes in one message.
#pragma once

#include <functional>
#include <vector>

#include "comm.hpp"
#include "workspace.hpp"

namespace lockstep::ranks {

// Something that one rank has for another. key: both sides number what this pair exchanges alike.
struct item {
  int32_t from, to;
  int64_t key;
  size_t bytes;
  size_t index;       // the caller's
  size_t offset = 0;  // in the message
};

// What a step does with its items: pack one into a message, unpack it, or do both at once within the process. The
// first failure stops the others, and goes out as poison in place of data.
struct step_work {
  std::function<void(const item&, char*)> pack;
  std::function<void(const item&, const char*)> unpack;
  std::function<void(const item& from, const item& to)> local;  // items with equal ranks and key
  std::function<bool(const item&)> active = [](const item&) { return true; };
  // What decides whether later steps happen is unpacked after failures too; nullptr stands for a poisoned message.
  bool always = false;
  std::function<void()> meanwhile = [] {};  // once all is sent
};

class exchange {
 public:
  // An item that a seat of this process sends, or receives; a process that does both adds it twice.
  void sends(lockstep_comm& comm, item i);
  void receives(lockstep_comm& comm, item i);
  // Sorts the items into messages, which both sides do alike, and lays out their memory. A message holds
  // comm.message_bytes, or one item that is longer.
  void finish(lockstep_comm& comm, workspace& memory);
  // note: of a healthy message; the lowest of all that is not -1 comes back.
  task run(lockstep_comm& comm, uint64_t what, failure& so_far, const step_work& work, int64_t* note = nullptr);

  // Adds what running it costs.
  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const;

 private:
  struct message {
    int32_t process;
    std::vector<item> items;
    size_t bytes = sizeof(header);
    buffer memory;
  };
  std::vector<message> messages_of(lockstep_comm& comm, std::vector<item>& items, bool sent, workspace& memory) const;
  std::vector<item> local_out_, local_in_, out_items_, in_items_;
  std::vector<message> out_, in_;
};

}  // namespace lockstep::ranks
