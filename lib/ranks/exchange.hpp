// exchange.hpp - one step of a call: everything that two processes have for each other goes in one message.
#pragma once

#include <functional>
#include <vector>

#include "comm.hpp"

namespace lockstep::ranks {

// Something that one rank has for another. key: both sides number what this pair exchanges alike.
struct item {
  int32_t from, to;
  int64_t key;
  size_t bytes;
  size_t index;       // the caller's
  size_t offset = 0;  // in the message
};

// Host memory of a plan, from the context's allocator. What a message may still be written to when the communicator
// closes is left where it is.
class host_buffer {
 public:
  host_buffer() = default;
  host_buffer(lockstep_comm& comm, size_t bytes);
  host_buffer(host_buffer&& other) noexcept { *this = std::move(other); }
  host_buffer& operator=(host_buffer&& other) noexcept {
    std::swap(comm_, other.comm_), std::swap(bytes_, other.bytes_), std::swap(data_, other.data_);
    return *this;
  }
  ~host_buffer();
  char* data() const { return static_cast<char*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  lockstep_comm* comm_ = nullptr;
  size_t bytes_ = 0;
  void* data_ = nullptr;
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
  // Sorts the items, which both sides do alike, and takes the memory, or that of a step whose messages are no shorter
  // and that never runs at the same time.
  void finish(lockstep_comm& comm, const exchange* lender = nullptr);
  // note: of a healthy message; the lowest of all that is not -1 comes back.
  void run(lockstep_comm& comm, uint64_t what, failure& so_far, const step_work& work, int64_t* note = nullptr);

  // Adds what running it costs.
  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const;

 private:
  struct peer {
    int32_t process;
    std::vector<item> out, in;
    size_t out_bytes = 0, in_bytes = 0;
    host_buffer out_buffer, in_buffer;  // none where lent
    char *out_data = nullptr, *in_data = nullptr;
    size_t in_room = 0;
  };
  peer& with(int32_t process);
  std::vector<peer> peers_;
  std::vector<item> local_out_, local_in_;
};

}  // namespace lockstep::ranks
