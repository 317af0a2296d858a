// square_sum.cu - dst[s] = sum of x^2 over sequence s, or its root (NORM2).
// Idea    reduce/table.cuh's ways with another fold; whole arrays: a warp a leaf of 2,048 elements, four neighbouring
//         lanes per thread in one 16-byte load; joins by shuffles; a block an aligned subtree of leaves; the last block
//         joins what the others hand over: one launch, no atomic decides an order
// Moves   n elements read once; 1 fma in double (integers: a multiply and a wide
//         add) per element; 0.25 operations per byte for f32
// Limit   memory reads, from about 16 Mi elements; below that launch and the way to
//         the last block
// Watch   the tail leaf; who waits for a partial result (mailbox.cuh); 2^31 elements; f64 norms
//         whose squares leave the range (norm.cuh)
// Source  lib/bits/order.hpp; mailbox.cuh.
#include "../ops.hpp"
#include "../reduce/table.cuh"
#include "rows.hpp"

namespace lockstep::cuda {
namespace {

// Where several blocks may share a sequence, two passes follow that skip what is well (norm.cuh).
template <class Way>
lockstep_status run_norm(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_dtype result = call.reduce.result;
  if (!Way::shares(call)) return run_fold<Way>(queue, call, norm_sum{{call.dst, false, true}, result, nullptr});
  const int64_t count = call.reduce.count;
  auto* plain = reinterpret_cast<double*>(static_cast<char*>(call.workspace) + call.workspace_bytes) - 2 * count;
  auto* largest = reinterpret_cast<uint64_t*>(plain + count);
  lockstep_status status = run_fold<Way>(queue, call, norm_sum{{call.dst, false, true}, result, plain});
  if (status == LOCKSTEP_OK) status = run_fold<Way>(queue, call, largest_magnitude{{}, plain, largest});
  if (status == LOCKSTEP_OK)
    status = run_fold<Way>(queue, call, scaled_squares{{1.0}, call.dst, result, plain, largest, 1.0});
  return status;
}

struct square_sum_op {
  static constexpr const char* by_leaves_name = "shuffle";
  static constexpr const char* by_leaves_idea =
      "B10: a warp a leaf, 16-byte loads, shuffles, one launch: the last block joins the blocks";

  template <class Way>
  static lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
    const lockstep_reduce_desc& d = call.reduce;
    const bool as_f32 = d.result == LOCKSTEP_F32, root = lib::kind_of(d.reduction).to == lib::finish::root;
    switch (d.dtype) {
      case LOCKSTEP_F16: return run_fold<Way>(queue, call, float_sum<half16, true>{call.dst, as_f32, root});
      case LOCKSTEP_BF16: return run_fold<Way>(queue, call, float_sum<bfloat16, true>{call.dst, as_f32, root});
      case LOCKSTEP_F32: return run_fold<Way>(queue, call, float_sum<float, true>{call.dst, as_f32, root});
      case LOCKSTEP_F64:
        if (root) return run_norm<Way>(queue, call);
        return run_fold<Way>(queue, call, float_sum<double, true>{call.dst, as_f32, root});
      case LOCKSTEP_I32:
        return run_fold<Way>(queue, call, integer_squares<int32_t>{call.dst, as_f32, root, queue.report});
      case LOCKSTEP_I64:
        return run_fold<Way>(queue, call, integer_squares<int64_t>{call.dst, as_f32, root, queue.report});
      default: break;
    }
    return failed(LOCKSTEP_INTERNAL, "square_sum of dtype %d reached the CUDA backend", static_cast<int>(d.dtype));
  }
};

// Flags are a row's, not a dtype's: a lesson's own order holds for the sums of floats;
// those of integers are exact and equal to the bit.
constexpr uint32_t lesson = LOCKSTEP_OWN_ORDER | LOCKSTEP_LESSON;

constexpr lockstep_variant others[] = {
    any_type_row,
    {"thrust", "Thrust's transform_reduce over the same fold: what a program would call; waits for the sum",
     LOCKSTEP_OWN_ORDER | LOCKSTEP_LIBRARY, refuses_thrust, nullptr, workspace_thrust, launch_thrust},
    {"ptx_fma",
     "B9: multiply-adds as inline PTX (fma.rn, mad.wide, madc.hi): for floats the compiler's instruction, but not its "
     "unrolled loop",
     lesson, refuses_lesson, nullptr, workspace_full, launch_ptx_fma},
    {"compiler_fma", "B9: its twin, as the compiler writes them: loops unrolled, 4 to 16 loads in flight", lesson,
     refuses_lesson, nullptr, workspace_full, launch_compiler_fma},
    {"conflict_free", "B8: the conflicting tree on padded shared memory: the pad alone removes the conflicts", lesson,
     refuses_lesson, nullptr, workspace_full, launch_conflict_free},
    {"conflicting", "B8: a tree whose neighbouring threads use addresses 2d apart: bank conflicts on purpose", lesson,
     refuses_lesson, nullptr, workspace_full, launch_conflicting},
    {"shared_tree_unrolled_full", "B7 on a grid that fills the chip", lesson, refuses_lesson, nullptr, workspace_full,
     launch_shared_tree_unrolled_full},
    {"shared_tree_unrolled", "B7: sequential addressing, unrolled, the last warp on __syncwarp; 32 blocks of 256",
     lesson, refuses_lesson, nullptr, workspace_classic, launch_shared_tree_unrolled},
    {"shared_tree_masked_full", "B6 on a grid that fills the chip", lesson, refuses_lesson, nullptr, workspace_full,
     launch_shared_tree_masked_full},
    {"shared_tree_masked",
     "B6: a tree by bit mask, interleaved addressing: warps diverge at every level; 32 blocks of 256", lesson,
     refuses_lesson, nullptr, workspace_classic, launch_shared_tree_masked},
    {"shared_serial_full",
     "B5 on a grid that fills the chip: 4.5 times as fast as B4 there, whose sum a thread is 270,336 to add", lesson,
     refuses_lesson, nullptr, workspace_full, launch_shared_serial_full},
    {"shared_serial",
     "B5: thread 0 adds its block's 256 sums from shared memory; 32 blocks of 256: slower than B4, as published "
     "(1 Mi ints 12.4 us for 10.2, H200)",
     lesson, refuses_lesson, nullptr, workspace_classic, launch_shared_serial},
    {"grid_stride_full", "B4 on a grid that fills the chip", lesson, refuses_lesson, nullptr, workspace_full,
     launch_grid_stride_full},
    {"grid_stride",
     "B4: 32 blocks of 256 threads, grid-stride, a sum a thread: several multiprocessors at last; "
     "a kernel adds the 8,192",
     lesson, refuses_lesson, nullptr, workspace_classic, launch_grid_stride},
    {"one_block_interleaved", "B3: one block, neighbouring threads on neighbouring elements: coalesced", lesson,
     refuses_lesson, nullptr, workspace_classic, launch_one_block_interleaved},
    {"one_block_slices",
     "B2: one block, each thread a contiguous slice: every load of a warp touches 32 lines; "
     "a kernel adds the 256 sums, not the host",
     lesson, refuses_lesson, nullptr, workspace_classic, launch_one_block_slices},
    {"serial", "B1: one thread: the latency of one load after another", lesson, refuses_lesson, nullptr, nullptr,
     launch_serial},
    reduction_row<square_sum_op, by_threads>(
        "alone", "a thread a sequence, in the fixed order: what the order costs without the memory hierarchy",
        LOCKSTEP_LESSON),
};

constexpr auto rows = ways_and<square_sum_op>(others);

}  // namespace

const lockstep_table square_sum_table = {rows.data(), rows.size()};

}  // namespace lockstep::cuda
