// group.hpp - groups of calls on CUDA: one launch for each type of element, whose blocks find their call in a table.
//
// A table begins with a header, whose parts name a kernel each. A part has the calls of one type of element, largest
// first, so that no large one is left for the end, and a word for each block: which call, and which part of it.
#pragma once

#include <algorithm>
#include <cstring>

#include "../device/queue.hpp"
#include "lockstep/backend_group.h"

namespace lockstep::cuda {

// A call of more bytes or blocks runs by itself: a few blocks would read it while all others have ended.
constexpr size_t most_group_bytes = size_t{2} << 20;
constexpr int64_t most_group_blocks = 1024;

struct group_part {
  uint32_t kind;  // which kernel
  uint32_t calls, blocks;
  uint32_t block_words;          // 0: each call has one block
  uint64_t calls_at, blocks_at;  // in the table
};
constexpr int most_parts = 8;
struct group_header {
  uint64_t parts, bytes;  // of the whole table
  group_part part[most_parts];
};
struct group_block {
  uint32_t call, number;  // of the call's blocks
};

// What a block of a part works on.
template <class Call>
struct group_view {
  const Call* calls;
  const group_block* blocks;  // NULL: each call has one block
};
template <class Call>
group_view<Call> view_of(const group_part& part, const void* table) {
  const auto* base = static_cast<const char*>(table);
  return {reinterpret_cast<const Call*>(base + part.calls_at),
          part.block_words == 0 ? nullptr : reinterpret_cast<const group_block*>(base + part.blocks_at)};
}

#if defined(__CUDACC__)
template <class Call>
__device__ __forceinline__ group_block block_of(const group_view<Call>& all) {
  return all.blocks == nullptr ? group_block{blockIdx.x, 0} : all.blocks[blockIdx.x];
}
#endif

// An op's kind_of(call), below most_parts, and call_of(call), which has blocks and bytes.
template <class Call, class Kind, class Make>
size_t describe_group(const lockstep_group& group, void* to, const Kind& kind_of, const Make& call_of) {
  group_header header{};
  uint64_t at = sizeof header;
  auto* base = static_cast<char*>(to);
  for (uint32_t kind = 0; kind < most_parts; ++kind) {
    group_part part{kind, 0, 0, 0, at, 0};
    for (size_t i = 0; i < group.count; ++i) {
      if (kind_of(group.calls[i]) != kind) continue;
      const Call call = call_of(group.calls[i]);
      if (base != nullptr) std::memcpy(base + at, &call, sizeof call);
      at += sizeof call;
      ++part.calls;
      part.blocks += call.blocks;
    }
    if (part.calls == 0) continue;
    part.blocks_at = at;
    part.block_words = part.blocks == part.calls ? 0 : 1;
    if (part.block_words != 0) at += part.blocks * sizeof(group_block);
    if (base != nullptr) {
      auto* calls = reinterpret_cast<Call*>(base + part.calls_at);
      std::stable_sort(calls, calls + part.calls, [](const Call& a, const Call& b) { return a.bytes > b.bytes; });
      auto* block = reinterpret_cast<group_block*>(base + part.blocks_at);
      for (uint32_t c = 0; c < part.calls && part.block_words != 0; ++c)
        for (uint32_t b = 0; b < calls[c].blocks; ++b) *block++ = {c, b};
    }
    header.part[header.parts++] = part;
  }
  header.bytes = at;
  if (base != nullptr) std::memcpy(base, &header, sizeof header);
  return at;
}

// The table of a group: a plan's, or a copy that is queued now. The described bytes travel as parameters of kernels, so
// that they may be gone when the stream gets there, and a captured graph keeps them.
lockstep_status table_of_group(lockstep_queue& queue, const lockstep_group& group, const void** table);

// Launches each part of a group: run(part, table).
template <class Run>
lockstep_status launch_parts(lockstep_queue& queue, const lockstep_group& group, const Run& run) {
  if (forked()) return failed_fork();
  const device_guard guard(queue.device);
  LOCKSTEP_CUDA(guard.code());
  const void* table = nullptr;
  lockstep_status status = table_of_group(queue, group, &table);
  const auto& header = *static_cast<const group_header*>(group.described);
  for (uint64_t p = 0; p < header.parts && status == LOCKSTEP_OK; ++p) status = run(header.part[p], table);
  return status;
}

// For a row that runs one call by a group's kernel: its workspace holds the table.
template <size_t (*describe)(const lockstep_queue*, const lockstep_group*, void*)>
size_t workspace_of_one(const lockstep_queue* queue, const lockstep_call* call) {
  const size_t bytes = 0;
  const lockstep_group group{call->op, call, &bytes, 1, nullptr, nullptr, nullptr};
  return describe(queue, &group, nullptr);
}
template <size_t (*describe)(const lockstep_queue*, const lockstep_group*, void*),
          lockstep_status (*launch)(lockstep_queue*, const lockstep_group*, size_t*)>
lockstep_status launch_one(lockstep_queue* queue, const lockstep_call* call) {
  alignas(8) char described[sizeof(group_header) + 256 + most_group_blocks * sizeof(group_block)];
  const size_t bytes = 0;
  lockstep_group group{call->op, call, &bytes, 1, nullptr, nullptr, call->workspace};
  describe(queue, &group, described);
  group.described = described;
  size_t failed = 0;
  return launch(queue, &group, &failed);
}
// The table where launch makes it.
template <size_t (*describe)(const lockstep_queue*, const lockstep_group*, void*)>
size_t workspace_of_group(const lockstep_queue* queue, const lockstep_group* group) {
  return group->table != nullptr ? 0 : describe(queue, group, nullptr);
}

}  // namespace lockstep::cuda
