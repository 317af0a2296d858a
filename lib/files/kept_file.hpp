// kept_file.hpp - the small text files that lockstep keeps for a machine (its calibration, its remembered choices):
// where they are, whether to trust them, and how to replace one. A function that fails throws the reason.
#pragma once

#include <string>

namespace lockstep::lib {

struct descriptor {
  explicit descriptor(int opened) : fd(opened) {}
  ~descriptor();
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  const int fd;
};

// The path in an environment variable, else $XDG_CACHE_HOME/lockstep/<name>, else $HOME/.cache/lockstep/<name>. "" if
// there is none; reason then says why.
std::string kept_path(const char* variable, const char* name, std::string& reason);

// Reads a whole file. Refuses one that anyone but root and this user could have written.
std::string read_kept(const std::string& path, size_t most_bytes);

// Locks the file's folder, creating it if needed, so that two processes that read, change and write the file do not
// lose each other's changes. Waits a few seconds at most.
class kept_folder {
 public:
  explicit kept_folder(const std::string& path);
  // Replaces the file at once: a reader sees the old text or the new one, never a mixture.
  void replace(const std::string& text) const;

 private:
  std::string path_;
  descriptor lock_;
};

}  // namespace lockstep::lib
