// fake_machine.hpp - the state of the fake runtime: live objects, and the call that fails.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fake_cudart.hpp"

struct CUstream_st {
  int device;
  bool capturing;
};
struct CUevent_st {
  int device;
  cudaStream_t of = nullptr;  // recorded there, behind its launch number ...
  long launch = 0;
};
struct CUmemPoolHandle_st {
  int device;
};

namespace fake {

constexpr size_t page = 4096, most_memory = size_t{64} << 30;

struct range {
  size_t bytes, mapped;  // mapped 0: the caller's own, page-locked
  cudaMemoryType type;
  int device;
  bool pooled = false;  // of a pool: its own device alone may copy it by cudaMemcpyAsync
};

// What may still run on a stream, as far as a test has to know it: kernels that read __constant__ memory.
struct progress {
  long launched = 0, done = 0;
  const char* reads = nullptr;          // the last copy to a symbol, until an event follows
  std::map<cudaStream_t, long> behind;  // launches of other streams that it waits for
};
struct reader {
  cudaStream_t stream;
  long launch;
};

struct machine {
  std::mutex mutex;
  fake::chips chips;
  long calls = 0, fail_at = 0, launches = 0;
  cudaError_t error = cudaSuccess, lost = cudaSuccess;
  bool sticky = false, late_host = false;
  std::string failed_call, next_call, misuse;
  std::map<uintptr_t, range> memory;
  std::set<cudaStream_t> streams;
  std::map<cudaStream_t, progress> work;
  std::map<const char*, reader> readers;  // of bytes of symbols
  std::set<cudaEvent_t> events;
  std::set<cudaMemPool_t> pools;
  std::map<const void*, std::string> kernels;  // and their names
  std::set<const void*> variables;
  std::vector<fake::started> started;  // the last launches
  std::vector<fake::crossed> crossed;  // and copies
  int capturing = 0;                   // streams
};
machine& all();

extern thread_local int current;
extern thread_local cudaError_t last_error;
extern thread_local cudaStreamCaptureMode capture_mode;

void blame(const std::string& text);

// body() under the lock, unless the script fails this call. frees: the effect takes place all the same.
template <class Body>
cudaError_t call(const char* name, const Body& body, bool frees = false) {
  machine& m = all();
  const std::lock_guard lock(m.mutex);
  cudaError_t code = m.lost;
  if (m.calls == m.fail_at) m.next_call = name;
  if (++m.calls == m.fail_at && code == cudaSuccess) {
    code = m.error;
    m.failed_call = name;
    if (m.sticky) m.lost = code;
  }
  if (code == cudaSuccess || frees) {
    const cudaError_t own = body(m);
    if (code == cudaSuccess) code = own;
  }
  if (code != cudaSuccess) last_error = code;
  return code;
}

inline cudaError_t no_start(const machine& m) { return m.chips.start; }

cudaError_t map_memory(machine& m, void** out, size_t bytes, cudaMemoryType type, int device);
cudaError_t unmap(machine& m, void* p, bool host, const char* name);
// The live range that holds all of [at, at + bytes); memory.end() when it is none's.
std::map<uintptr_t, range>::iterator find(machine& m, const void* at, size_t bytes);
// Both ends of a long block stand for all of it.
cudaError_t move(machine& m, void* dst, const void* src, size_t bytes, cudaMemcpyKind kind);
cudaError_t set(machine& m, void* dst, int value, size_t bytes);

bool built_in(cudaStream_t s);
bool capturing(cudaStream_t s);
cudaError_t alive(machine& m, cudaStream_t s);
cudaError_t alive(machine& m, cudaEvent_t e);
cudaError_t waits(machine& m, cudaStream_t s);
// All of its work is done.
void drained(machine& m, cudaStream_t s);
// Blames a copy to bytes of a symbol that a kernel of another stream may still read.
void overwritten(machine& m, const char* bytes, cudaStream_t s);
// A kernel runs where its stream lives.
cudaError_t launch(machine& m, const void* kernel, dim3 grid, dim3 block, cudaStream_t s);

}  // namespace fake
