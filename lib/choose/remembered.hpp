// remembered.hpp - rows chosen by measuring (LOCKSTEP_TUNE), remembered for this machine in a text file:
//   lockstep-tuning 1
//   choice <library> <backend> <device> <setup> <class of calls> <row> <us> <row beside it> <its us>
//   end
// with tabs between the parts of a line. No file can change a bit of a result: an entry only names a row, and that row
// is used only if the table has it, it keeps the order and it does not refuse the call.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "../load/registry.hpp"

namespace lockstep::lib {

// The calls that an entry is for: every part must match.
struct tuned_key {
  std::string library, backend, device, setup, calls;
  auto operator<=>(const tuned_key&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};
struct tuned_choice {
  std::string row;
  double us = 0;
  std::string beside;  // auto's own row, or the second fastest if row is auto's own
  double beside_us = 0;
};
using tuned_entry = std::pair<tuned_key, tuned_choice>;

// Puts a file's entries into `into`, oldest first. Returns "", or why it cannot ("line 3: ..."); then `into` is
// unchanged.
std::string parse_tuning(const std::string& text, std::vector<tuned_entry>& into);
std::string tuning_text(const std::vector<tuned_entry>& entries);

// A context's choices: the file's entries, read again when the file has changed, and its own.
class remembered_choices {
 public:
  // Whether there is any entry. Costs one stat of the file.
  bool any();
  std::optional<tuned_choice> find(const tuned_key& key);
  // Remembers a choice in this context and in the file. Returns "", or why it could not be written there.
  std::string keep(const tuned_key& key, const tuned_choice& choice);
  // For lockstep_tuning_get: the choices for this library version and these devices.
  struct state {
    std::string path, reason, choices;
    int32_t count = 0;
  };
  state now();
  // "NVIDIA H200; sm_90, driver ...". The device is asked only once.
  std::string device_text(backend_entry& entry, int32_t device);
  // Called around a fork by the context.
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
