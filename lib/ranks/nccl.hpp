// nccl.hpp - the functions of NCCL that links.cpp calls, of a library that is opened at run time.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep::ranks {

struct nccl {
  using comm = void*;
  struct id {
    char bytes[128];
  };
  // Of ncclConfig_t the part that version 2.14 has; later versions take it by its size and version.
  struct config {
    size_t size = sizeof(config);
    unsigned int magic = 0xcafebeef, version = oldest;
    int blocking = 0;
  };
  enum result : int { success = 0, in_progress = 7 };
  static constexpr int oldest = 21400;  // 2.14.0, the first with communicators that do not block
  static constexpr int bytes_type = 0;  // ncclInt8

  result (*get_version)(int*);
  result (*get_unique_id)(id*);
  result (*init)(comm*, int ranks, id, int rank, config*);
  result (*get_async_error)(comm, result*);
  result (*finalize)(comm);
  result (*destroy)(comm);
  result (*abort)(comm);
  result (*group_start)();
  result (*group_end)();
  result (*send)(const void*, size_t, int type, int peer, comm, void* stream);
  result (*recv)(void*, size_t, int type, int peer, comm, void* stream);
  const char* (*error_string)(result);
  const char* (*last_error)(comm);
  int version = 0;
  std::string path;

  // "2.28.9"
  std::string number() const;
  // What a call failed with, and NCCL's own words for it.
  std::string text(result r, comm of = nullptr) const;

  // Opens the library once per process; nullptr, and why, if it is not there, too old or not to be trusted. Its place:
  // LOCKSTEP_NCCL, else one that the program has loaded already, else the system's folders. Never LD_LIBRARY_PATH.
  static const nccl* open(const char* file_name, std::string& why);
};

}  // namespace lockstep::ranks
