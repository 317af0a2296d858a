// workspace.cpp - see workspace.hpp: where the memory comes from.
#include "workspace.hpp"

#include <algorithm>

#include "comm.hpp"
#include "devices.hpp"

namespace lockstep::ranks {

namespace {
constexpr size_t granule = 64 << 10;  // plans of about the same size share a piece
}

void* kept_memory::take(const char* backend, size_t& bytes) {
  if (bytes > SIZE_MAX - granule) return nullptr;
  backend_ = backend;
  const size_t need = (bytes + granule - 1) / granule * granule;
  auto best = pieces_.end();
  for (auto p = pieces_.begin(); p != pieces_.end(); ++p)
    if (p->bytes >= need && p->bytes / 2 <= need && (best == pieces_.end() || p->bytes < best->bytes)) best = p;
  if (best != pieces_.end()) {
    bytes = best->bytes;
    void* const data = best->data;
    bytes_ -= bytes;
    pieces_.erase(best);
    return data;
  }
  void* data = nullptr;
  if (lockstep_alloc(comm_.context, backend, LOCKSTEP_PINNED, need, &data) != LOCKSTEP_OK) {
    if (pieces_.empty()) return nullptr;
    release(0);  // what is kept may be what is missing
    if (lockstep_alloc(comm_.context, backend, LOCKSTEP_PINNED, need, &data) != LOCKSTEP_OK) return nullptr;
  }
  bytes = need;
  return data;
}

void kept_memory::give(void* data, size_t bytes) {
  pieces_.push_back({data, bytes});
  bytes_ += bytes;
  release(most);
}

void kept_memory::release(size_t down_to) {
  while (bytes_ > down_to) {
    const piece oldest = pieces_.front();
    pieces_.erase(pieces_.begin());
    bytes_ -= oldest.bytes;
    static_cast<void>(lockstep_free(comm_.context, backend_.c_str(), LOCKSTEP_PINNED, oldest.bytes, oldest.data));
  }
}

host_memory::host_memory(lockstep_comm& comm, size_t bytes) : comm_(&comm), bytes_(bytes) {
  if (bytes == 0 || comm.dry) return;
  if (const char* backend = comm.devices->any_backend(); backend != nullptr) {
    data_ = comm.kept.take(backend, bytes_);
    if (data_ != nullptr) {
      kind_ = LOCKSTEP_PINNED, backend_ = backend;
      return;
    }
  }
  allocate();  // slower to copy to devices
}

host_memory host_memory::pageable(lockstep_comm& comm, size_t bytes) {
  host_memory made;
  made.comm_ = &comm, made.bytes_ = bytes;
  if (bytes != 0 && !comm.dry) made.allocate();
  return made;
}

void host_memory::allocate() {
  const lockstep_status status = lockstep_alloc(comm_->context, backend_, kind_, bytes_, &data_);
  if (status != LOCKSTEP_OK)
    fail(status, "{} bytes for messages and partial results: {}", bytes_, lockstep_last_error());
}

host_memory::host_memory(lockstep_comm& comm, size_t bytes, int32_t seat)
    : comm_(&comm), bytes_(bytes), kind_(LOCKSTEP_DEVICE) {
  if (bytes == 0 || comm.dry || !comm.devices->has(seat)) return;
  backend_ = comm.backends[static_cast<size_t>(seat)].c_str();
  const lockstep_status status = lockstep_alloc(comm.context, backend_, kind_, bytes, &data_);
  if (status != LOCKSTEP_OK) fail(status, "{} bytes on {}: {}", bytes, backend_, lockstep_last_error());
}

host_memory::~host_memory() {
  if (data_ == nullptr || comm_->closed != LOCKSTEP_OK) return;
  if (kind_ == LOCKSTEP_PINNED)
    comm_->kept.give(data_, bytes_);
  else
    static_cast<void>(lockstep_free(comm_->context, backend_, kind_, bytes_, data_));
}

}  // namespace lockstep::ranks
