// kept_file.hpp - the small text files that lockstep keeps for a machine (its calibration, its tuned choices): where
// they lie, whether to trust them, and how one is replaced. Each function throws the reason where it cannot.
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

// The path that an environment variable names, else $XDG_CACHE_HOME/lockstep/<name>, else $HOME/.cache/lockstep/<name>.
// "" where there is none, and reason says why.
std::string kept_path(const char* variable, const char* name, std::string& reason);

// The whole of a file that root or this user alone could have written.
std::string read_kept(const std::string& path, size_t most_bytes);

// Holds a lock on the file's folder, which it makes where it is missing, so that of two processes that read, change and
// write the file neither loses the other's part. Waits for seconds at most.
class kept_folder {
 public:
  explicit kept_folder(const std::string& path);
  // The file as a whole: who reads meanwhile sees the old text or the new one.
  void replace(const std::string& text) const;

 private:
  std::string path_;
  descriptor lock_;
};

}  // namespace lockstep::lib
