// any_type.cu - reductions of the types that the other rows have no kernels for.
// Idea    Which type an element has is asked at every load, so that one kernel takes all: a warp folds a leaf, a block
//         joins a sequence's leaves; a warp a segment
// Moves   n elements read once; 24 bytes a leaf written and read
// Limit   the instructions of a load: this row is for correctness, at a part of the memory's speed
// Watch   an unsigned 64-bit element has the bits of a negative one
// Source  lib/order.hpp
#include "../normalize/quad.cuh"
#include "any_type.hpp"
#include "block_tree.cuh"
#include "norm.cuh"

namespace lockstep::cuda {
namespace {

constexpr int threads = 256;

struct any_call {
  const void* src;
  void* dst;
  int64_t count, length, element_stride, sequence_stride;
  const int64_t* offsets;
  lockstep_reduction reduction;
  lockstep_dtype dtype, result;
  report_word word;
};

__device__ double float_at(const void* src, lockstep_dtype dtype, int64_t i) {
  switch (dtype) {
    case LOCKSTEP_F16: return widened(static_cast<const half16*>(src)[i]);
    case LOCKSTEP_BF16: return widened(static_cast<const bfloat16*>(src)[i]);
    case LOCKSTEP_F32: return static_cast<const float*>(src)[i];
    default: return static_cast<const double*>(src)[i];
  }
}
__device__ int64_t integer_at(const void* src, lockstep_dtype dtype, int64_t i) {
  switch (dtype) {
    case LOCKSTEP_I8: return static_cast<const int8_t*>(src)[i];
    case LOCKSTEP_I16: return static_cast<const int16_t*>(src)[i];
    case LOCKSTEP_I32: return static_cast<const int32_t*>(src)[i];
    case LOCKSTEP_U8: return static_cast<const uint8_t*>(src)[i];
    case LOCKSTEP_U16: return static_cast<const uint16_t*>(src)[i];
    case LOCKSTEP_U32: return static_cast<const uint32_t*>(src)[i];
    case LOCKSTEP_BOOL: return static_cast<const uint8_t*>(src)[i] != 0 ? 1 : 0;
    default: return static_cast<const int64_t*>(src)[i];
  }
}

__device__ void store_float(void* dst, lockstep_dtype result, int64_t s, double y) {
  switch (result) {
    case LOCKSTEP_F16: static_cast<half16*>(dst)[s] = rounded_to<half16>::of(y); break;
    case LOCKSTEP_BF16: static_cast<bfloat16*>(dst)[s] = rounded_to<bfloat16>::of(y); break;
    case LOCKSTEP_F32: static_cast<float*>(dst)[s] = rounded_to<float>::of(y); break;
    default: static_cast<double*>(dst)[s] = rounded_to<double>::of(y);
  }
}

// ---- what is folded -------------------------------------------------------------------
struct float_fold {
  using partial = double;
  __device__ static partial none() { return -0.0; }
  __device__ static partial join(partial a, partial b) { return __dadd_rn(a, b); }
  // n elements from `first` on, by a warp, in every thread.
  __device__ static partial leaf(const any_call& d, int64_t first, int n, int64_t, int t) {
    double lane[1][4] = {{-0.0, -0.0, -0.0, -0.0}}, sum[1];
    for (int r = 0; r * order::lanes < n; ++r)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int i = r * order::lanes + 4 * t + j;
        if (i >= n) continue;
        const double x = float_at(d.src, d.dtype, first + i * d.element_stride);
        lane[0][j] = d.reduction == LOCKSTEP_SUM ? __dadd_rn(lane[0][j], x) : __fma_rn(x, x, lane[0][j]);
      }
    join_rows<4>(float_fold{}, lane, sum, t);
    return sum[0];
  }
  __device__ static void store(const any_call& d, int64_t s, partial sum) {
    store_float(d.dst, d.result, s, d.reduction == LOCKSTEP_NORM2 ? __dsqrt_rn(sum) : sum);
  }
  __device__ static void store_empty(const any_call& d, int64_t s) { store_float(d.dst, d.result, s, 0.0); }
};

// 192 bits, two's complement.
struct exact_sum : wide_sum {};
__device__ __forceinline__ exact_sum operator+(exact_sum a, const exact_sum& b) {
  a.add(b.word[0], b.word[1], b.word[2]);
  return a;
}
__device__ __forceinline__ exact_sum joined(const exact_sum& a, const exact_sum& b) { return a + b; }

struct exact_fold {
  using partial = exact_sum;
  __device__ static partial none() { return {}; }
  __device__ static partial join(const partial& a, const partial& b) { return a + b; }
  __device__ static partial leaf(const any_call& d, int64_t first, int n, int64_t, int t) {
    partial mine{};
    const bool is_signed = d.dtype != LOCKSTEP_U64;
    for (int i = t; i < n; i += 32) {
      const int64_t x = integer_at(d.src, d.dtype, first + i * d.element_stride);
      if (d.reduction == LOCKSTEP_SUM) {
        const uint64_t above = is_signed && x < 0 ? ~0ull : 0;
        mine.add(static_cast<uint64_t>(x), above, above);
      } else {
        const uint64_t magnitude = is_signed && x < 0 ? -static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
        mine.add(magnitude * magnitude, __umul64hi(magnitude, magnitude), 0);
      }
    }
    for (int mask = 16; mask >= 1; mask /= 2) mine = mine + from_xor(mine, mask);
    return mine;
  }
  __device__ static void store(const any_call& d, int64_t s, const partial& sum) {
    if (d.reduction == LOCKSTEP_NORM2) return store_float(d.dst, d.result, s, rounded_root(sum));
    const bool negative = static_cast<int64_t>(sum.word[2]) < 0;
    const uint64_t above = negative ? ~0ull : 0;
    bool fits = sum.word[1] == above && sum.word[2] == above;
    uint64_t value = sum.word[0];
    if (d.result == LOCKSTEP_U64) {
      fits = fits && !negative;
      if (!fits) value = negative ? 0 : ~0ull;
    } else {
      fits = fits && (static_cast<int64_t>(value) < 0) == negative;
      if (!fits) value = static_cast<uint64_t>(negative ? INT64_MIN : INT64_MAX);
    }
    static_cast<uint64_t*>(d.dst)[s] = value;
    if (!fits) report(d.word, fault::overflow, s);
  }
  __device__ static void store_empty(const any_call& d, int64_t s) { store(d, s, {}); }
};

// The largest key, at the lowest index; keys of minima fall where elements grow. A NaN's key is beyond all.
struct best {
  int64_t key, index;
};
__device__ __forceinline__ best joined(const best& a, const best& b) {
  return a.key > b.key || (a.key == b.key && a.index <= b.index) ? a : b;
}
__device__ __forceinline__ best operator+(const best& a, const best& b) { return joined(a, b); }

struct extreme_fold {
  using partial = best;
  __device__ static partial none() { return {INT64_MIN, INT64_MAX}; }
  __device__ static partial join(const partial& a, const partial& b) { return joined(a, b); }
  __device__ static bool floats(const any_call& d) { return d.dtype >= LOCKSTEP_F16 && d.dtype <= LOCKSTEP_F64; }
  __device__ static int64_t turn(const any_call& d) {
    return d.reduction == LOCKSTEP_MIN || d.reduction == LOCKSTEP_ARGMIN ? -1 : 0;
  }
  __device__ static partial leaf(const any_call& d, int64_t first, int n, int64_t index, int t) {
    partial mine = none();
    for (int i = t; i < n; i += 32) {
      const int64_t at = first + i * d.element_stride;
      int64_t key;
      if (floats(d)) {
        const double x = float_at(d.src, d.dtype, at);
        key = x != x ? INT64_MAX : order::key_f64(static_cast<uint64_t>(__double_as_longlong(x))) ^ turn(d);
      } else {
        key = integer_at(d.src, d.dtype, at);
        if (d.dtype == LOCKSTEP_U64) key ^= INT64_MIN;
        key ^= turn(d);
      }
      mine = joined(mine, best{key, index + i});
    }
    for (int mask = 16; mask >= 1; mask /= 2) mine = joined(mine, from_xor(mine, mask));
    return mine;
  }
  __device__ static void store(const any_call& d, int64_t s, const partial& found) {
    if (d.reduction != LOCKSTEP_MIN && d.reduction != LOCKSTEP_MAX) {
      static_cast<int64_t*>(d.dst)[s] = found.index;
      return;
    }
    int64_t key = found.key ^ turn(d);
    if (floats(d)) {
      const uint64_t bits = key >= 0 ? static_cast<uint64_t>(key) : static_cast<uint64_t>(~key) ^ 0x8000000000000000u;
      return store_float(d.dst, d.result, s,
                         __longlong_as_double(static_cast<int64_t>(found.key == INT64_MAX ? order::nan_f64 : bits)));
    }
    switch (d.dtype) {
      case LOCKSTEP_I8:
      case LOCKSTEP_U8:
      case LOCKSTEP_BOOL: static_cast<uint8_t*>(d.dst)[s] = static_cast<uint8_t>(key); break;
      case LOCKSTEP_I16:
      case LOCKSTEP_U16: static_cast<uint16_t*>(d.dst)[s] = static_cast<uint16_t>(key); break;
      case LOCKSTEP_I32:
      case LOCKSTEP_U32: static_cast<uint32_t*>(d.dst)[s] = static_cast<uint32_t>(key); break;
      case LOCKSTEP_U64: static_cast<int64_t*>(d.dst)[s] = key ^ INT64_MIN; break;
      default: static_cast<int64_t*>(d.dst)[s] = key;
    }
  }
  __device__ static void store_empty(const any_call& d, int64_t s) { report(d.word, fault::empty, s); }
};

// ---- kernels -----------------------------------------------------------------------------
// A warp a leaf. Sequences of one leaf are stored, the others' leaves wait in values.
template <class Fold>
__global__ __launch_bounds__(threads) void any_leaves(const any_call d, typename Fold::partial* values) {
  const int t = threadIdx.x % 32;
  const int64_t leaves = order::leaves(d.length), step = int64_t{gridDim.x} * (threads / 32);
  for (int64_t at = (int64_t{blockIdx.x} * threads + threadIdx.x) / 32; at < d.count * leaves; at += step) {
    const int64_t s = at / leaves, first = (at - s * leaves) * order::leaf;
    const auto n = static_cast<int>(min(d.length - first, order::leaf));
    const auto value = Fold::leaf(d, s * d.sequence_stride + first * d.element_stride, n, first, t);
    if (t != 0) continue;
    if (leaves == 1)
      Fold::store(d, s, value);
    else
      values[at] = value;
  }
}

template <class Fold>
__global__ __launch_bounds__(threads) void any_join(const any_call d, const typename Fold::partial* values) {
  __shared__ typename Fold::partial subtrees[threads];
  const int64_t leaves = order::leaves(d.length);
  for (int64_t s = blockIdx.x; s < d.count; s += gridDim.x) {
    const auto total = tree_of_block<threads>(values + s * leaves, leaves, subtrees);
    if (threadIdx.x == 0) Fold::store(d, s, total);
    __syncthreads();  // the next sequence's subtrees come after thread 0 has read these
  }
}

template <class Fold>
__global__ __launch_bounds__(threads) void any_segments(const any_call d) {
  const int t = threadIdx.x % 32;
  const int64_t step = int64_t{gridDim.x} * (threads / 32);
  for (int64_t s = (int64_t{blockIdx.x} * threads + threadIdx.x) / 32; s < d.count; s += step) {
    const int64_t begin = d.offsets != nullptr ? d.offsets[s] : 0;
    const int64_t length = d.offsets != nullptr ? d.offsets[s + 1] - begin : 0;
    if (begin < 0 || length < 0) {
      if (t == 0) report(d.word, fault::invalid, s);
      continue;
    }
    if (length == 0) {
      if (t == 0) Fold::store_empty(d, s);
      continue;
    }
    warp_counter<Fold> tree;
    for (int64_t first = 0; first < length; first += order::leaf) {
      const auto n = static_cast<int>(min(length - first, order::leaf));
      tree.push(Fold{}, Fold::leaf(d, (begin + first) * d.element_stride, n, first, t), t);
    }
    const auto total = tree.total(Fold{});
    if (t == 0) Fold::store(d, s, total);
  }
}

template <class Fold>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call, const any_call& d) {
  const auto blocks = [](int64_t warps) {
    return dim3(static_cast<unsigned>(std::min<int64_t>((warps + threads / 32 - 1) / (threads / 32), INT32_MAX)));
  };
  // Empty sequences too: all of one length, 0.
  if (d.offsets != nullptr || d.length == 0)
    return launch(queue, "any_segments", any_segments<Fold>, blocks(d.count), threads, 0, d);
  const int64_t leaves = order::leaves(d.length);
  auto* values = static_cast<typename Fold::partial*>(call.workspace);
  const lockstep_status status =
      launch(queue, "any_leaves", any_leaves<Fold>, blocks(d.count * leaves), threads, 0, d, values);
  if (status != LOCKSTEP_OK || leaves == 1) return status;
  return launch(queue, "any_join", any_join<Fold>, dim3(static_cast<unsigned>(std::min<int64_t>(d.count, 65535))),
                threads, 0, d, static_cast<const typename Fold::partial*>(values));
}

lockstep_status run_any(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_reduce_desc& r = call.reduce;
  const any_call d{call.src,  call.dst,    r.count, r.length, r.element_stride, r.sequence_stride,
                   r.offsets, r.reduction, r.dtype, r.result, queue.report};
  const bool sums =
      r.reduction == LOCKSTEP_SUM || r.reduction == LOCKSTEP_SUM_OF_SQUARES || r.reduction == LOCKSTEP_NORM2;
  if (!sums) return run<extreme_fold>(queue, call, d);
  return r.dtype <= LOCKSTEP_F64 ? run<float_fold>(queue, call, d) : run<exact_fold>(queue, call, d);
}

}  // namespace

const char* refuses_any_type(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  if (!is_for_any_type(*call)) return "the other rows take these types";
  if (d.reduction == LOCKSTEP_NORM2 && d.dtype == LOCKSTEP_F64)
    return "has no kernels for NORM2 of F64 rounded to 16 bits";
  return nullptr;
}

size_t workspace_any_type(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  if (d.offsets != nullptr || d.length <= order::leaf) return 0;
  return static_cast<size_t>(d.count) * static_cast<size_t>(order::leaves(d.length)) * sizeof(exact_sum);
}

lockstep_status launch_any_type(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<run_any>(queue, call);
}

}  // namespace lockstep::cuda
