// lessons.cu - rows B1 to B9: the classic walk from one thread to a shared-memory
// tree, without the classic defects (wrapped sums, uninitialised partials, lost
// tails, a race in the last warp).
// Idea    one step of the walk a row: who reads which elements, and how a block's 256
//         partial sums become one
// Moves   n elements read once; partial sums 8 to 24 bytes each; 1 fma an element
// Limit   B1-B3 the latency of one thread or one SM; B4-B7 at 32 blocks,
//         32 SMs; with a full grid memory reads
// Watch   float rows add in an order of their own (launch geometry decides it); integer
//         rows are exact. Element index in 64 bits
// Source  M. Harris, Optimizing Parallel Reduction in CUDA; CUDA C++ Programming Guide,
//         warp-synchronous code and __syncwarp.
#include "../index/square_sum.hpp"
#include "../kernel/record.cuh"
#include "../reduce/any_type.hpp"
#include "../reduce/fold.cuh"
#include "rows.hpp"

namespace lockstep::cuda {
namespace {

constexpr int threads = 256;
constexpr int classic_blocks = 32;  // the original's launch: 32 blocks of 256 threads

// A thread's accesses to the block's shared memory (walk_share).
template <share how, class Fold>
struct shared_hand {
  using P = typename Fold::partial;
  // Banks hold 4 bytes each, 32 of them: a pad of one value every 128 bytes.
  static constexpr int row = 128 / sizeof(P), values = share_place<how>(threads - 1, row) + 1;
  const Fold& fold;
  P* value;
  P own;

  __device__ __forceinline__ P& at(int i) const { return value[share_place<how>(i, row)]; }
  __device__ __forceinline__ void put(int i) {
    LOCKSTEP_SEEN(put_value, value, &at(i));
    at(i) = own;
  }
  __device__ __forceinline__ void join(int i, int k) {
    LOCKSTEP_SEEN(read_own, value, &at(i));
    LOCKSTEP_SEEN(read_other, value, &at(k));
    LOCKSTEP_SEEN(write_joined, value, &at(i));
    at(i) = fold.join(at(i), at(k));
  }
  __device__ __forceinline__ void begin(int i, int k) {
    LOCKSTEP_SEEN(read_own, value, &at(i));
    LOCKSTEP_SEEN(read_other, value, &at(k));
    own = fold.join(at(i), at(k));
  }
  __device__ __forceinline__ void add(int k) {
    LOCKSTEP_SEEN(read_other, value, &at(k));
    own = fold.join(own, at(k));
  }
  __device__ __forceinline__ void barrier() { __syncthreads(); }  // walk_share says whom it orders
  __device__ __forceinline__ void warp_barrier() { __syncwarp(); }
};

// A block's 256 values to one, by the lesson's way.
template <share how, class Fold>
__device__ typename Fold::partial share_values(const Fold& fold, typename Fold::partial mine) {
  __shared__ typename Fold::partial value[shared_hand<how, Fold>::values];
  shared_hand<how, Fold> hand{fold, value, mine};
  walk_share<how>(threads, 32, threadIdx.x, hand);
  return hand.at(0);  // of thread 0, which has written it or waited for it
}

// B1: one thread reads everything.
template <class Fold>
__global__ void square_sum_serial(Fold fold, const typename Fold::element* src, const int64_t n) {
  typename Fold::lane sum = fold.empty_lane();
  walk_serial(n, [&](int64_t i) {
    LOCKSTEP_SEEN(read_src, src, &src[i]);
    fold.take(sum, src[i], 0);
  });
  fold.store(fold.close(sum, 0), 0);
}

// B2: each thread a contiguous slice, the last ones may get less: neighbouring
// threads read addresses a slice apart.
template <class Fold>
__global__ __launch_bounds__(threads) void square_sum_slices(Fold fold, const typename Fold::element* src,
                                                             const int64_t n, typename Fold::partial* partials) {
  typename Fold::lane sum = fold.empty_lane();
  walk_slice(n, threads, threadIdx.x, [&](int64_t i) {
    LOCKSTEP_SEEN(read_src, src, &src[i]);
    fold.take(sum, src[i], 0);
  });
  LOCKSTEP_SEEN(write_partial, partials, &partials[threadIdx.x]);
  partials[threadIdx.x] = fold.close(sum, 0);
}

// What B3 to B9 read: thread k of all takes elements k, k + all, ...
template <class Fold, class Take>
__device__ __forceinline__ typename Fold::partial take_strided(const Fold& fold, const typename Fold::element* src,
                                                               int64_t n, Take take) {
  typename Fold::lane sum = fold.empty_lane();
  walk_strided<int64_t>(n, gridDim.x, threads, blockIdx.x, threadIdx.x, [&](int64_t i) {
    LOCKSTEP_SEEN(read_src, src, &src[i]);
    take(sum, src[i]);
  });
  return fold.close(sum, 0);
}

// B3 (one block) and B4 (many): a partial sum a thread.
template <class Fold>
__global__ __launch_bounds__(threads) void square_sum_strided(Fold fold, const typename Fold::element* src,
                                                              const int64_t n, typename Fold::partial* partials) {
  const auto mine = take_strided(fold, src, n, [&](auto& sum, auto x) { fold.take(sum, x, 0); });
  const int64_t k = int64_t{blockIdx.x} * threads + threadIdx.x;
  LOCKSTEP_SEEN(write_partial, partials, &partials[k]);
  partials[k] = mine;
}

// B5 to B8: a partial sum a block.
template <share how, class Fold>
__global__ __launch_bounds__(threads) void square_sum_shared(Fold fold, const typename Fold::element* src,
                                                             const int64_t n, typename Fold::partial* partials) {
  const auto mine = take_strided(fold, src, n, [&](auto& sum, auto x) { fold.take(sum, x, 0); });
  const auto value = share_values<how>(fold, mine);
  if (threadIdx.x != 0) return;
  LOCKSTEP_SEEN(write_partial, partials, &partials[blockIdx.x]);
  partials[blockIdx.x] = value;
}

// B9: the multiply-add as PTX. For fma.rn the compiler writes the same machine instruction
// (DFMA), but around asm it does not unroll the loop (nvcc 13.0, sm_90): one load in flight
// in place of 4 (i32: 16). At 256 Mi this row took 1.8 times the twin's time on an H200. The
// compiler's i32 sum takes one wide multiply and a 128-bit add.
__device__ __forceinline__ void take_ptx(double& sum, float x) {
  const double wide = x;
  asm("fma.rn.f64 %0, %1, %1, %0;" : "+d"(sum) : "d"(wide));
}
__device__ __forceinline__ void take_ptx(double& sum, double x) {
  asm("fma.rn.f64 %0, %1, %1, %0;" : "+d"(sum) : "d"(x));
}
__device__ __forceinline__ void take_ptx(uint128& sum, int32_t x) {
  uint64_t low = static_cast<uint64_t>(sum), high = static_cast<uint64_t>(sum >> 64);
  asm("{\n\t"
      ".reg .u64 square;\n\t"
      "mad.wide.s32 square, %2, %2, 0;\n\t"
      "add.cc.u64 %0, %0, square;\n\t"
      "addc.u64 %1, %1, 0;\n\t"
      "}"
      : "+l"(low), "+l"(high)
      : "r"(x));
  sum = (static_cast<uint128>(high) << 64) | low;
}
__device__ __forceinline__ void take_ptx(wide_sum& sum, int64_t x) {
  const uint64_t magnitude = x < 0 ? -static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  asm("mad.lo.cc.u64 %0, %3, %3, %0;\n\t"
      "madc.hi.cc.u64 %1, %3, %3, %1;\n\t"
      "addc.u64 %2, %2, 0;"
      : "+l"(sum.word[0]), "+l"(sum.word[1]), "+l"(sum.word[2])
      : "l"(magnitude));
}
template <bool ptx, class Fold>
__global__ __launch_bounds__(threads) void square_sum_multiply_add(Fold fold, const typename Fold::element* src,
                                                                   const int64_t n, typename Fold::partial* partials) {
  const auto mine = take_strided(fold, src, n, [&](auto& sum, auto x) {
    if constexpr (ptx)
      take_ptx(sum, x);
    else
      fold.take(sum, x, 0);
  });
  const auto value = share_values<share::unrolled>(fold, mine);
  if (threadIdx.x != 0) return;
  LOCKSTEP_SEEN(write_partial, partials, &partials[blockIdx.x]);
  partials[blockIdx.x] = value;
}

// The finishing step (the original's host loop): one block adds the partial sums.
template <class Fold>
__global__ __launch_bounds__(threads) void square_sum_finish(Fold fold, const typename Fold::partial* partials,
                                                             const int count) {
  auto sum = fold.none();
  walk_strided<int>(count, 1, threads, 0, threadIdx.x, [&](int i) {
    LOCKSTEP_SEEN(read_partial, partials, &partials[i]);
    sum = fold.join(sum, partials[i]);
  });
  const auto value = share_values<share::unrolled>(fold, sum);
  if (threadIdx.x == 0) fold.store(value, 0);
}

// ---- launchers ------------------------------------------------------------------------
enum class lesson {
  serial,
  slices,
  interleaved,
  grid_stride,
  shared_serial,
  masked,
  unrolled,
  conflicting,
  conflict_free,
  compiler,
  ptx
};

int full_blocks(const lockstep_queue& queue) {
  return queue.facts->processors * (queue.facts->resident_threads / threads);
}

template <lesson row, bool full, class Fold>
lockstep_status run_lesson(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
  const auto* src = static_cast<const typename Fold::element*>(call.src);
  const int64_t n = call.reduce.length;
  auto* partials = static_cast<typename Fold::partial*>(call.workspace);
  if constexpr (row == lesson::serial)
    return launch(queue, "square_sum_serial", square_sum_serial<Fold>, 1, 1, 0, fold, src, n);
  const auto kernel = [] {
    if constexpr (row == lesson::slices)
      return square_sum_slices<Fold>;
    else if constexpr (row == lesson::shared_serial)
      return square_sum_shared<share::serial, Fold>;
    else if constexpr (row == lesson::masked)
      return square_sum_shared<share::masked, Fold>;
    else if constexpr (row == lesson::unrolled)
      return square_sum_shared<share::unrolled, Fold>;
    else if constexpr (row == lesson::conflicting)
      return square_sum_shared<share::conflicting, Fold>;
    else if constexpr (row == lesson::conflict_free)
      return square_sum_shared<share::conflict_free, Fold>;
    else if constexpr (row == lesson::compiler)
      return square_sum_multiply_add<false, Fold>;
    else if constexpr (row == lesson::ptx)
      return square_sum_multiply_add<true, Fold>;
    else
      return square_sum_strided<Fold>;
  }();
  constexpr bool one_block = row == lesson::slices || row == lesson::interleaved;
  constexpr bool partial_a_thread = one_block || row == lesson::grid_stride;
  const int blocks = one_block ? 1 : full ? full_blocks(queue) : classic_blocks;
  const lockstep_status status = launch(queue, "square_sum lesson", kernel, blocks, threads, 0, fold, src, n, partials);
  if (status != LOCKSTEP_OK) return status;
  return launch(queue, "square_sum_finish", square_sum_finish<Fold>, 1, threads, 0, fold, partials,
                partial_a_thread ? blocks * threads : blocks);
}

template <lesson row, bool full = false>
lockstep_status launch_lesson(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_reduce_desc& d = call.reduce;
  const bool as_f32 = d.result == LOCKSTEP_F32;
  switch (d.dtype) {
    case LOCKSTEP_F32: return run_lesson<row, full>(queue, call, float_sum<float, true>{call.dst, as_f32, false});
    case LOCKSTEP_F64: return run_lesson<row, full>(queue, call, float_sum<double, true>{call.dst, as_f32, false});
    case LOCKSTEP_I32:
      return run_lesson<row, full>(queue, call, integer_squares<int32_t>{call.dst, as_f32, false, queue.report});
    case LOCKSTEP_I64:
      return run_lesson<row, full>(queue, call, integer_squares<int64_t>{call.dst, as_f32, false, queue.report});
    default: return failed(LOCKSTEP_INTERNAL, "a lesson of dtype %d was launched", static_cast<int>(d.dtype));
  }
}

}  // namespace

const char* refuses_lesson(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  if (lib::kind_of(d.reduction).to == lib::finish::root) return "the lessons sum squares; NORM2 is shuffle's";
  if (is_for_any_type(*call) || d.dtype == LOCKSTEP_F16 || d.dtype == LOCKSTEP_BF16)
    return "the lessons take F32, F64, I32 and I64, and give no 16-bit results";
  if (d.offsets != nullptr || d.count != 1 || d.element_stride != 1 || d.length < 1)
    return "the lessons take one contiguous sequence of one element or more";
  return nullptr;
}

size_t workspace_classic(const lockstep_queue*, const lockstep_call*) { return size_t{24} * threads * classic_blocks; }
size_t workspace_full(const lockstep_queue* queue, const lockstep_call*) {
  return size_t{24} * threads * static_cast<size_t>(full_blocks(*queue));
}

lockstep_status launch_serial(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::serial>>(queue, call);
}
lockstep_status launch_one_block_slices(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::slices>>(queue, call);
}
lockstep_status launch_one_block_interleaved(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::interleaved>>(queue, call);
}
lockstep_status launch_grid_stride(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::grid_stride>>(queue, call);
}
lockstep_status launch_grid_stride_full(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::grid_stride, true>>(queue, call);
}
lockstep_status launch_shared_serial(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::shared_serial>>(queue, call);
}
lockstep_status launch_shared_serial_full(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::shared_serial, true>>(queue, call);
}
lockstep_status launch_shared_tree_masked(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::masked>>(queue, call);
}
lockstep_status launch_shared_tree_masked_full(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::masked, true>>(queue, call);
}
lockstep_status launch_shared_tree_unrolled(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::unrolled>>(queue, call);
}
lockstep_status launch_shared_tree_unrolled_full(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::unrolled, true>>(queue, call);
}
lockstep_status launch_conflicting(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::conflicting, true>>(queue, call);
}
lockstep_status launch_conflict_free(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::conflict_free, true>>(queue, call);
}
lockstep_status launch_compiler_fma(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::compiler, true>>(queue, call);
}
lockstep_status launch_ptx_fma(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<launch_lesson<lesson::ptx, true>>(queue, call);
}

}  // namespace lockstep::cuda
