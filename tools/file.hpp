// file.hpp - arrays in files: inputs mapped, outputs written beside their name
// and renamed, so that a failure leaves what was there before.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npy.hpp"

namespace lockstep::tool {

// The bytes of a file: a private read-only mapping, or memory where the file
// cannot be mapped (a pipe, "-" for stdin).
class input_file {
 public:
  explicit input_file(const std::string& path);
  ~input_file();
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;
  std::string_view bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  void read_all(int fd);
  std::string path_;
  const char* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;
  std::vector<char> memory_;
};

// An array: its type and shape, and either a file or memory behind it. F order is
// turned into C order by the reader who cannot use it as it is.
struct array {
  npy::header header;
  const char* data = nullptr;
  std::shared_ptr<input_file> file;
  std::shared_ptr<char> memory;
};
array read_npy(const std::string& path);
// Zeroed memory, aligned to 256 bytes.
array make_array(std::string descr, std::vector<int64_t> shape);
inline char* writable(array& a) { return a.memory.get(); }

// A .npy file in the making. data() is where the elements go: a shared mapping of
// a temporary file beside path, so that results need no second copy; or memory,
// when path is "-" (stdout) or no regular file (a pipe, /dev/null).
class output_npy {
 public:
  output_npy(const std::string& path, npy::header header);
  ~output_npy();  // without commit: the temporary file is removed
  output_npy(const output_npy&) = delete;
  output_npy& operator=(const output_npy&) = delete;
  char* data() { return data_; }
  const npy::header& header() const { return header_; }
  void commit();

 private:
  std::string path_, temporary_;
  npy::header header_;
  char* data_ = nullptr;
  void* mapping_ = nullptr;
  size_t file_bytes_ = 0;
  std::vector<char> memory_;
};

// Before anything is measured: what cannot be written must not be found out after ten minutes. Each is an option and
// its file, "-" for stdout; true where one of them takes stdout, which then gets nothing else. Two of them are refused.
bool take_stdout(std::initializer_list<std::pair<const char*, const std::string&>> outputs);
// Writes a small file (a picture) through a temporary one; "-" is stdout.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace lockstep::tool
