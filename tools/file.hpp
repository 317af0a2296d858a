// file.hpp - arrays in files. Inputs are mapped. Outputs are written to a temporary file
// and renamed, so that a failure leaves the old file unchanged.
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

// The bytes of a file: a private read-only mapping, or memory if the file cannot be
// mapped (a pipe, "-" for stdin). A stream that does not start with beginning is not read to its end, which it may not
// have.
class input_file {
 public:
  explicit input_file(const std::string& path, std::string_view beginning = {});
  ~input_file();
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;
  std::string_view bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  void read_all(int fd, std::string_view beginning);
  std::string path_;
  const char* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;
  std::vector<char> memory_;
};

// An array: its type and shape, and its data in a file or in memory. The data may be in
// Fortran order; code that needs C order converts it.
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

// A .npy file being written. data() is the memory for the elements: a shared mapping of a
// temporary file next to path, so that results need no second copy; or plain memory if path
// is "-" (stdout) or not a regular file (a pipe, /dev/null).
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

// Checks that output files can be written, before minutes of measuring. Each entry is an option and its file, "-" for
// stdout. Returns whether one of them uses stdout, which then gets nothing else; two such options are refused.
bool take_stdout(std::initializer_list<std::pair<const char*, const std::string&>> outputs);
// Writes a small file (a picture) through a temporary one; "-" is stdout.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace lockstep::tool
