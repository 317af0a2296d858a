// square_sum.cu - sums of squares and norms of many small arrays in one launch for each type of element.
// Idea    sequences are cut into equal tasks of 2^k leaves, a block each, one warp per leaf, as reduce/lanes.cuh; the
//         block of the last task joins what the others hand over. Sequences of at most one leaf are a warp's
// Moves   every element once, 4 or 8 bytes for each result, 80 bytes of the table for each call
// Limit   latencies: the table's entry, then the elements; memory where there are enough calls
// Watch   norms of f64 whose squares leave the range are folded again on the spot (norm.cuh): a block has all of one
// Source  lib/bits/order.hpp; reduce/subtree.cuh, reduce/sequences.cuh
#include "../reduce/any_type.hpp"
#include "../reduce/subtree.cuh"
#include "../reduce/way.cuh"
#include "square_sum.hpp"

namespace lockstep::cuda {
namespace {

constexpr int block_warps = block_threads / 32;
// Leaves of a sequence at most that one block must read.
constexpr int64_t most_group_leaves = 64;
// Bytes of a call whose sequences blocks share; larger ones run as fast by themselves.
constexpr size_t most_shared_bytes = size_t{64} << 20;

struct squares_call {
  const void* src;
  void* dst;
  int64_t count, element_stride, sequence_stride;
  uint64_t bytes;
  uint32_t length, blocks;
  bool neighbours, as_f32, root, unused;
  lockstep_dtype result;
  uint32_t leaves_a_task, tasks;  // of a sequence
  uint64_t box;                   // of its first task
};

template <class T>
__device__ __forceinline__ void store_squares(const squares_call& call, double sum, int64_t s) {
  if constexpr (sizeof(T) == 8)
    store_float(call.dst, call.result, s, call.root ? __dsqrt_rn(sum) : sum);
  else
    float_sum<T, true>{call.dst, call.as_f32, call.root}.store(sum, s);
}

template <class T, int V>
__device__ __forceinline__ void square_sums(const squares_call& call, int64_t number, double* values, bool* again,
                                            mailbox* boxes) {
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
  const int64_t s = number / call.tasks, task = number - s * call.tasks;
  const T* at = sequence(s);
  const int64_t first = first_leaf(task, static_cast<int>(call.leaves_a_task));
  const int here = leaves_here(order::leaves(length), first, static_cast<int>(call.leaves_a_task));
  constexpr int ahead = rows_ahead<false, T>;
  const double value = fold_subtree<V, ahead, false>(fold, at, stride, length, first, here, values);
  if (call.tasks > 1) {
    mailbox* const of_call = boxes + call.box;
    if (threadIdx.x == 0) hand_over(&of_call[number], value);
    if (task != call.tasks - 1) return;
    __syncthreads();  // warp 0 has read values
    const double sum = join_handed_over(fold, of_call + s * call.tasks, call.tasks, values);
    if (threadIdx.x == 0) store_squares<T>(call, sum, s);
    return;
  }
  if (threadIdx.x == 0) {
    if constexpr (sizeof(T) == 8) *again = call.root && norm_sum::needs_again(value);
    store_squares<T>(call, value, s);
  }
  if constexpr (sizeof(T) == 8) {
    __syncthreads();  // all wait for thread 0's `again`, and for warp 0 to have read values
    if (!*again) return;
    const double root = norm_by_block<V, ahead, false>(value, at, stride, length, here, values);
    if (threadIdx.x == 0) store_float(call.dst, call.result, s, root);
  }
}

template <class T>
__global__ __launch_bounds__(block_threads, leaf_blocks) void grouped_squares(const group_view<squares_call> all,
                                                                              mailbox* boxes) {
  __shared__ double values[most_leaves];
  __shared__ bool again;
  follow_on();
  const group_block mine = block_of(all);
  const squares_call call = all.calls[mine.call];
  if (call.neighbours)
    square_sums<T, neighbours_of<float_sum<T, true>>>(call, mine.number, values, &again, boxes);
  else
    square_sums<T, 1>(call, mine.number, values, &again, boxes);
}

// How the sequences of a call among `leaves` of a group are cut.
sequence_tasks tasks_in_group(const lockstep_reduce_desc& d, int64_t leaves) {
  const int64_t mine = order::leaves(d.length);
  if (rescales(d) || mine <= 1) return {static_cast<int>(std::min(mine, most_group_leaves)), 1};
  int64_t task = leaves_a_task(leaves, 1, most_leaves);
  while (task < most_leaves && d.count * ((mine + task - 1) / task) > most_group_blocks) task *= 2;
  return {static_cast<int>(task), (mine + task - 1) / task};
}
int64_t blocks_of(const lockstep_reduce_desc& d, int64_t leaves) {
  return d.length <= order::leaf ? (d.count + block_warps - 1) / block_warps
                                 : d.count * tasks_in_group(d, leaves).count;
}
int64_t leaves_of(const lockstep_group& group) {
  int64_t leaves = 1;
  for (size_t i = 0; i < group.count; ++i)
    leaves += group.calls[i].reduce.count * order::leaves(group.calls[i].reduce.length);
  return leaves;
}

const char* refuses(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  if (is_for_any_type(*call)) return "leaves these types to any_type";
  if (!sums_floats(d)) return "needs floats: sums of integers are checked one by one";
  if (d.offsets != nullptr) return "needs sequences of one length";
  if (rescales(d) && d.length > most_group_leaves * order::leaf)
    return "needs norms of F64 to be of sequences of at most 131,072 elements";
  if (d.length > UINT32_MAX || d.count > most_group_blocks * block_warps || blocks_of(d, INT64_MAX) > most_group_blocks)
    return "needs at most 1,024 sequences of at most 524,288 elements, fewer longer ones, or 8,192 of at most 2,048";
  return nullptr;
}
int takes(const lockstep_queue* queue, const lockstep_call* call, size_t bytes) {
  if (refuses(queue, call) != nullptr) return 0;
  return bytes <= (rescales(call->reduce) ? most_group_bytes : most_shared_bytes);
}

uint32_t kind_of(const lockstep_call& call) {
  switch (call.reduce.dtype) {
    case LOCKSTEP_F16: return 0;
    case LOCKSTEP_BF16: return 1;
    case LOCKSTEP_F32: return 2;
    default: return 3;
  }
}
squares_call call_of(const lockstep_call& call, int64_t leaves) {
  const lockstep_reduce_desc& d = call.reduce;
  const sequence_tasks tasks = tasks_in_group(d, leaves);
  squares_call made{};
  made.src = call.src, made.dst = call.dst;
  made.count = d.count, made.element_stride = d.element_stride, made.sequence_stride = d.sequence_stride;
  made.length = static_cast<uint32_t>(d.length);
  // Of a block.
  made.bytes =
      static_cast<uint64_t>(std::min(d.length, tasks.leaves * order::leaf)) * static_cast<uint64_t>(element_bytes(d));
  made.blocks = static_cast<uint32_t>(blocks_of(d, leaves));
  made.leaves_a_task = static_cast<uint32_t>(tasks.leaves), made.tasks = static_cast<uint32_t>(tasks.count);
  made.neighbours = loads_neighbours(call);
  made.as_f32 = d.result == LOCKSTEP_F32;
  made.result = d.result;
  made.root = lib::kind_of(d.reduction).to == lib::finish::root;
  return made;
}
size_t describe(const lockstep_queue*, const lockstep_group* group, void* to) {
  const int64_t leaves = leaves_of(*group);
  uint64_t boxes = 0;
  return describe_group<squares_call>(*group, to, kind_of, [&](const lockstep_call& call) {
    squares_call made = call_of(call, leaves);
    made.box = boxes;
    if (made.tasks > 1) boxes += made.blocks;
    return made;
  });
}

// The mailboxes of a group's tasks, behind its table; a queue's own serve where they are enough.
size_t bytes_of_boxes(const lockstep_group& group) {
  const int64_t leaves = leaves_of(group);
  int64_t boxes = 0;
  for (size_t i = 0; i < group.count; ++i)
    if (tasks_in_group(group.calls[i].reduce, leaves).count > 1) boxes += blocks_of(group.calls[i].reduce, leaves);
  return static_cast<size_t>(boxes) * sizeof(mailbox);
}
size_t before_boxes(const lockstep_group& group) {
  return (workspace_of_group<describe>(nullptr, &group) + 15) / 16 * 16;
}
size_t workspace(const lockstep_queue*, const lockstep_group* group) {
  return before_boxes(*group) + bytes_of_boxes(*group);
}
size_t workspace_of_call(const lockstep_queue* queue, const lockstep_call* call) {
  const size_t bytes = 0;
  const lockstep_group group{call->op, call, &bytes, 1, nullptr, nullptr, nullptr};
  return workspace(queue, &group);
}

lockstep_status launch_group(lockstep_queue* queue, const lockstep_group* group, size_t*) {
  const size_t bytes = bytes_of_boxes(*group);
  mailbox* boxes = queue->mailboxes;
  // A captured graph must not share the queue's.
  const bool own = bytes > mailbox_count * sizeof(mailbox) || (bytes != 0 && capturing(*queue));
  if (own) boxes = reinterpret_cast<mailbox*>(static_cast<char*>(group->workspace) + before_boxes(*group));
  return launch_parts(*queue, *group, [&](const group_part& part, const void* table) {
    if (own) LOCKSTEP_CUDA(cudaMemsetAsync(boxes, 0, bytes, queue->stream));
    const auto run = [&](auto element) {
      return launch_soon(*queue, "grouped_squares", grouped_squares<decltype(element)>, dim3(part.blocks),
                         dim3(block_threads), 0, view_of<squares_call>(part, table), boxes);
    };
    return part.kind == 0 ? run(half16{}) : part.kind == 1 ? run(bfloat16{}) : part.kind == 2 ? run(0.0F) : run(0.0);
  });
}

int yields(const lockstep_queue*, const lockstep_call*) { return 1; }

}  // namespace

const lockstep_group_row square_sum_group = {"grouped", takes, describe, workspace, launch_group};
const lockstep_variant grouped_square_sum_row = {
    "grouped",
    "the kernel of groups (group.h): a block finds its call in a table; a block a sequence, a warp a leaf",
    0,
    refuses,
    yields,
    workspace_of_call,
    launch_one<describe, launch_group>};

}  // namespace lockstep::cuda
