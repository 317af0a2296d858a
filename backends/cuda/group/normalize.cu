// normalize.cu - the rows of many small arrays normalised in one launch for each type and kind.
// Idea    the kernels of normalize/held.cuh and staged.cuh, whose blocks find their call in a table
// Moves   every element once in and once out, 200 bytes of the table for each call and 8 for each block
// Limit   latencies; memory where there are enough rows
// Watch   a block reads its call into shared memory: registers would not hold it
// Source  lib/bits/order_rows.hpp
#include "../dtypes.hpp"
#include "../normalize/launch.cuh"
#include "normalize.hpp"

namespace lockstep::cuda {
namespace {

constexpr int group_warps = 4, rows_a_group = 4;

struct normalize_call {
  normalized_rows rows;
  uint64_t bytes;
  uint32_t blocks;
  int32_t threads;  // of a row that is held in registers; 0: it is staged
};
static_assert(sizeof(normalize_call) % 8 == 0);

template <class E, class P>
__global__ __launch_bounds__(group_warps * 32) void grouped_normalize(const group_view<normalize_call> all) {
  __shared__ normalize_call call;
  follow_on();
  const group_block mine = block_of(all);
  const auto* from = reinterpret_cast<const uint64_t*>(&all.calls[mine.call]);
  for (int i = threadIdx.x; i < static_cast<int>(sizeof call / 8); i += blockDim.x)
    reinterpret_cast<uint64_t*>(&call)[i] = from[i];
  __syncthreads();  // every thread reads the call
  if (call.threads != 0)
    held_rows<E, P, true, rows_a_group>(call.rows, call.threads, mine.number);
  else
    staged_rows_of<E, P, true>(call.rows, 1, order::rows, mine.number);
}

int threads_of(int64_t length) {
  if (length > order::lanes) return 0;
  int threads = 4;
  while (threads < 32 && threads * 4 < length) threads *= 2;
  return threads;
}
int64_t blocks_of(const lockstep_normalize_desc& d) {
  const int threads = threads_of(d.length);
  const int64_t rows = threads != 0 ? int64_t{group_warps} * (32 / threads) * rows_a_group : group_warps;
  return (d.count - 1) / rows + 1;
}

const char* refuses(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_normalize_desc& d = call->normalize;
  if (d.inner > 1) return "needs contiguous rows";
  if (d.given != nullptr) return "computes the rows' own statistics, but others are given";
  if (d.kind > LOCKSTEP_NORMALIZE_LAYER) return "has no kernels for kinds from SOFTMAX on";
  if (d.result != d.dtype) return "needs results of the elements' type";
  if (d.length > order::leaf) return "needs rows of at most 2,048 elements";
  if (blocks_of(d) > most_group_blocks) return "needs at most 4,096 rows, or more of less than 128 elements";
  // 4 KiB for the call and what warps exchange.
  return held_bytes(group_warps, order::rows, static_cast<size_t>(dtype_bytes(d.dtype))) + 4096 >
                 static_cast<size_t>(queue->facts->shared_bytes)
             ? "rows do not fit a block's shared memory"
             : nullptr;
}
int takes(const lockstep_queue* queue, const lockstep_call* call, size_t bytes) {
  return bytes <= most_group_bytes && refuses(queue, call) == nullptr;
}

// The type, twice: layers have moments.
uint32_t kind_of(const lockstep_call& call) {
  const lockstep_normalize_desc& d = call.normalize;
  const uint32_t type = d.dtype == LOCKSTEP_F16 ? 0 : d.dtype == LOCKSTEP_BF16 ? 1 : d.dtype == LOCKSTEP_F32 ? 2 : 3;
  return type * 2 + (d.kind == LOCKSTEP_NORMALIZE_LAYER ? 1 : 0);
}
normalize_call call_of(const lockstep_call& call) {
  const lockstep_normalize_desc& d = call.normalize;
  normalize_call made{};
  switch (d.dtype) {
    case LOCKSTEP_F16: made.rows = rows_of<half16>(call); break;
    case LOCKSTEP_BF16: made.rows = rows_of<bfloat16>(call); break;
    case LOCKSTEP_F32: made.rows = rows_of<float>(call); break;
    default: made.rows = rows_of<double>(call);
  }
  made.threads = threads_of(d.length);
  made.blocks = static_cast<uint32_t>(blocks_of(d));
  made.bytes = static_cast<uint64_t>(d.length);
  return made;
}
size_t describe(const lockstep_queue*, const lockstep_group* group, void* to) {
  return describe_group<normalize_call>(*group, to, kind_of, call_of);
}

template <class E, class P>
lockstep_status launch_part(lockstep_queue& queue, const group_part& part, const void* table) {
  const auto kernel = grouped_normalize<E, P>;
  const size_t bytes = held_bytes(group_warps, order::rows, sizeof(E));
  if (const lockstep_status status = allow_shared(queue, kernel, bytes); status != LOCKSTEP_OK) return status;
  return launch_soon(queue, "grouped_normalize", kernel, dim3(part.blocks), dim3(group_warps * 32), bytes,
                     view_of<normalize_call>(part, table));
}
template <class E>
lockstep_status launch_type(lockstep_queue& queue, const group_part& part, const void* table) {
  return part.kind % 2 == 0 ? launch_part<E, double>(queue, part, table)
                            : launch_part<E, order::moments>(queue, part, table);
}
lockstep_status launch_group(lockstep_queue* queue, const lockstep_group* group, size_t*) {
  return launch_parts(*queue, *group, [&](const group_part& part, const void* table) {
    switch (part.kind / 2) {
      case 0: return launch_type<half16>(*queue, part, table);
      case 1: return launch_type<bfloat16>(*queue, part, table);
      case 2: return launch_type<float>(*queue, part, table);
      default: return launch_type<double>(*queue, part, table);
    }
  });
}

int yields(const lockstep_queue*, const lockstep_call*) { return 1; }

}  // namespace

const lockstep_group_row normalize_group = {"grouped", takes, describe, workspace_of_group<describe>, launch_group};
const lockstep_variant grouped_normalize_row = {
    "grouped",
    "the kernels of groups (group.h): a block finds its call in a table; rows of up to 2,048 elements held or staged",
    0,
    refuses,
    yields,
    workspace_of_one<describe>,
    launch_one<describe, launch_group>};

}  // namespace lockstep::cuda
