// table.cu - a group's table on its way to the device.
// Idea    parameters of kernels: no memory of the host need wait for the stream
// Moves   the table once
// Limit   launches of 3,968 bytes each
// Watch   4 KiB of parameters are what every toolkit allows
// Source  CUDA programming guide, kernel parameters
#include "group.hpp"

namespace lockstep::cuda {
namespace {

constexpr int chunk_words = 496;
struct table_chunk {
  uint64_t word[chunk_words];
};

__global__ void __launch_bounds__(256) write_table(const __grid_constant__ table_chunk chunk, uint64_t* to, int words) {
  follow_on();
  for (int i = threadIdx.x; i < words; i += blockDim.x) to[i] = chunk.word[i];
}

}  // namespace

lockstep_status table_of_group(lockstep_queue& queue, const lockstep_group& group, const void** table) {
  *table = group.table;
  if (group.table != nullptr) return LOCKSTEP_OK;
  auto* to = static_cast<uint64_t*>(group.workspace);
  const auto* from = static_cast<const uint64_t*>(group.described);
  const size_t words = (static_cast<const group_header*>(group.described)->bytes + 7) / 8;
  for (size_t at = 0; at < words; at += chunk_words) {
    table_chunk chunk;
    const size_t here = std::min<size_t>(chunk_words, words - at);
    std::memcpy(chunk.word, from + at, here * sizeof(uint64_t));
    const lockstep_status status =
        launch(queue, "write_table", write_table, dim3(1), dim3(256), 0, chunk, to + at, static_cast<int>(here));
    if (status != LOCKSTEP_OK) return status;
  }
  *table = group.workspace;
  return LOCKSTEP_OK;
}

}  // namespace lockstep::cuda
