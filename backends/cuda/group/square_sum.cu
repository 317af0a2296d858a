// square_sum.cu - sums of squares and norms of many small arrays in one launch for each type of element.
// Idea    a block a sequence, a warp a leaf, as reduce/lanes.cuh; sequences of at most one leaf are a warp's
// Moves   every element once, 4 or 8 bytes for each result, 56 bytes of the table for each call
// Limit   latencies: the table's entry, then the elements; memory where there are enough calls
// Watch   norms of f64 whose squares leave the range are folded again on the spot (norm.cuh)
// Source  lib/bits/order.hpp; reduce/subtree.cuh, reduce/sequences.cuh
#include "../reduce/any_type.hpp"
#include "../reduce/subtree.cuh"
#include "../reduce/way.cuh"
#include "square_sum.hpp"

namespace lockstep::cuda {
namespace {

constexpr int block_warps = block_threads / 32;
// Leaves of a sequence at most: one block reads it.
constexpr int64_t most_group_leaves = 64;

struct squares_call {
  const void* src;
  void* dst;
  int64_t count, element_stride, sequence_stride;
  uint64_t bytes;
  uint32_t length, blocks;
  bool neighbours, as_f32, root, unused;
  lockstep_dtype result;
};

template <class T>
__device__ __forceinline__ void store_squares(const squares_call& call, double sum, int64_t s) {
  if constexpr (sizeof(T) == 8)
    store_float(call.dst, call.result, s, call.root ? __dsqrt_rn(sum) : sum);
  else
    float_sum<T, true>{call.dst, call.as_f32, call.root}.store(sum, s);
}

template <class T, int V>
__device__ __forceinline__ void square_sums(const squares_call& call, int64_t number, double* values, bool* again) {
  const float_sum<T, true> fold{call.dst, call.as_f32, call.root};
  const int64_t stride = call.element_stride, length = call.length;
  const auto sequence = [&](int64_t s) { return static_cast<const T*>(call.src) + s * call.sequence_stride; };
  if (length <= order::leaf) {
    const int64_t s = number * block_warps + threadIdx.x / 32;
    const int t = threadIdx.x % 32;
    if (s >= call.count) return;
    const T* at = sequence(s);
    if (length == 0) {
      if (t == 0) store_squares<T>(call, 0.0, s);
      return;
    }
    const double value = fold_sequence<float_sum<T, true>, V>(fold, at, stride, length, t);
    if constexpr (sizeof(T) == 8) {
      if (call.root && norm_sum::needs_again(value)) {  // every thread has the value
        const double root = norm_again(value, [&](const auto& by) {
          return fold_sequence<std::remove_cvref_t<decltype(by)>, V>(by, at, stride, length, t);
        });
        if (t == 0) store_float(call.dst, call.result, s, root);
        return;
      }
    }
    if (t == 0) store_squares<T>(call, value, s);
    return;
  }
  const T* at = sequence(number);
  const auto leaves = static_cast<int>(order::leaves(length));
  constexpr int ahead = rows_ahead<false, T>;
  const double value = fold_subtree<V, ahead, false>(fold, at, stride, length, 0, leaves, values);
  if (threadIdx.x == 0) {
    if constexpr (sizeof(T) == 8) *again = call.root && norm_sum::needs_again(value);
    store_squares<T>(call, value, number);
  }
  if constexpr (sizeof(T) == 8) {
    __syncthreads();  // all wait for thread 0's `again`, and for warp 0 to have read values
    if (!*again) return;
    const double root = norm_by_block<V, ahead, false>(value, at, stride, length, leaves, values);
    if (threadIdx.x == 0) store_float(call.dst, call.result, number, root);
  }
}

template <class T>
__global__ __launch_bounds__(block_threads, leaf_blocks) void grouped_squares(const group_view<squares_call> all) {
  __shared__ double values[most_group_leaves];
  __shared__ bool again;
  follow_on();
  const group_block mine = block_of(all);
  const squares_call call = all.calls[mine.call];
  if (call.neighbours)
    square_sums<T, neighbours_of<float_sum<T, true>>>(call, mine.number, values, &again);
  else
    square_sums<T, 1>(call, mine.number, values, &again);
}

uint32_t blocks_of(const lockstep_reduce_desc& d) {
  return static_cast<uint32_t>(d.length <= order::leaf ? (d.count + block_warps - 1) / block_warps : d.count);
}

const char* refuses(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  if (is_for_any_type(*call)) return "leaves these types to any_type";
  if (!sums_floats(d)) return "needs floats: sums of integers are checked one by one";
  if (d.offsets != nullptr) return "needs sequences of one length";
  if (d.length > most_group_leaves * order::leaf) return "needs sequences of at most 131,072 elements";
  if (d.count > most_group_blocks * block_warps || blocks_of(d) > most_group_blocks)
    return "needs at most 1,024 sequences, or 8,192 of at most 2,048 elements";
  return nullptr;
}
int takes(const lockstep_queue* queue, const lockstep_call* call, size_t bytes) {
  return bytes <= most_group_bytes && refuses(queue, call) == nullptr;
}

uint32_t kind_of(const lockstep_call& call) {
  switch (call.reduce.dtype) {
    case LOCKSTEP_F16: return 0;
    case LOCKSTEP_BF16: return 1;
    case LOCKSTEP_F32: return 2;
    default: return 3;
  }
}
squares_call call_of(const lockstep_call& call) {
  const lockstep_reduce_desc& d = call.reduce;
  squares_call made{};
  made.src = call.src, made.dst = call.dst;
  made.count = d.count, made.element_stride = d.element_stride, made.sequence_stride = d.sequence_stride;
  made.length = static_cast<uint32_t>(d.length);
  made.bytes = static_cast<uint64_t>(d.length) * static_cast<uint64_t>(element_bytes(d));  // of a block
  made.blocks = blocks_of(d);
  made.neighbours = loads_neighbours(call);
  made.as_f32 = d.result == LOCKSTEP_F32;
  made.result = d.result;
  made.root = lib::kind_of(d.reduction).to == lib::finish::root;
  return made;
}
size_t describe(const lockstep_queue*, const lockstep_group* group, void* to) {
  return describe_group<squares_call>(*group, to, kind_of, call_of);
}

lockstep_status launch_group(lockstep_queue* queue, const lockstep_group* group, size_t*) {
  return launch_parts(*queue, *group, [&](const group_part& part, const void* table) {
    const auto run = [&](auto element) {
      return launch_soon(*queue, "grouped_squares", grouped_squares<decltype(element)>, dim3(part.blocks),
                         dim3(block_threads), 0, view_of<squares_call>(part, table));
    };
    return part.kind == 0 ? run(half16{}) : part.kind == 1 ? run(bfloat16{}) : part.kind == 2 ? run(0.0F) : run(0.0);
  });
}

int yields(const lockstep_queue*, const lockstep_call*) { return 1; }

}  // namespace

const lockstep_group_row square_sum_group = {"grouped", takes, describe, workspace_of_group<describe>, launch_group};
const lockstep_variant grouped_square_sum_row = {
    "grouped",
    "the kernel of groups (group.h): a block finds its call in a table; a block a sequence, a warp a leaf",
    0,
    refuses,
    yields,
    workspace_of_one<describe>,
    launch_one<describe, launch_group>};

}  // namespace lockstep::cuda
