// tuning.hpp - rows chosen by measuring (LOCKSTEP_TUNE), remembered for this machine in a text file:
//   lockstep-tuning 1
//   choice <library> <backend> <device> <setup> <class of calls> <row> <us> <row beside it> <its us>
//   end
// with a tab between the parts of a line. An entry can only name a row, which is taken where the table has it, it keeps
// the order and it does not refuse the call: no file can change a bit of a result.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "registry.hpp"

namespace lockstep::lib {

// What an entry holds for: every part must be the same.
struct tuned_key {
  std::string library, backend, device, setup, calls;
  auto operator<=>(const tuned_key&) const = default;
};
struct tuned_choice {
  std::string row;
  double us = 0;
  std::string beside;  // what auto would have taken, or the next best
  double beside_us = 0;
};
using tuned_entry = std::pair<tuned_key, tuned_choice>;

// Puts a file's entries into `into`, oldest first; "" or why it cannot ("line 3: ..."), into is then as before.
std::string parse_tuning(const std::string& text, std::vector<tuned_entry>& into);
std::string tuning_text(const std::vector<tuned_entry>& entries);

// What a context knows: the file's entries, read again when it has changed, and its own.
class tuning {
 public:
  // Whether there is anything to look up: one stat of the file.
  bool any();
  std::optional<tuned_choice> find(const tuned_key& key);
  // Remembers for this context, and in the file: "" or why not there.
  std::string keep(const tuned_key& key, const tuned_choice& choice);
  // What lockstep_tuning_get gives; the choices are those of this library and these devices.
  struct state {
    std::string path, reason, choices;
    int32_t count = 0;
  };
  state now();
  // "NVIDIA H200; sm_90, driver ...", asked once a device.
  std::string device_text(backend_entry& entry, int32_t device);
  // Around a fork, as of the context that has this.
  void before_fork() { mutex_.lock(); }
  void after_fork() { mutex_.unlock(); }

 private:
  void refresh();
  std::mutex mutex_;
  std::map<std::pair<backend_entry*, int32_t>, std::string> devices_;
  bool looked_ = false;
  std::string path_, reason_;
  struct stamp {
    uint64_t inode = 0;
    int64_t size = -1, seconds = 0, nanoseconds = 0;
    bool operator==(const stamp&) const = default;
  } stamp_;
  std::map<tuned_key, tuned_choice> file_, own_;
};

}  // namespace lockstep::lib
