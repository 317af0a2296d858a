// any_type.cu - reductions of the types that the other rows have no kernels for.
// Idea    sums are those of sums/. Extremes: a thread takes 16 bytes at a time and the largest key of eight such
//         loads at once, and remembers where; which element has it is asked once per run, of the threads with the
//         warp's largest key
// Moves   n elements read once; 24 bytes per task of leaves
// Limit   instructions for elements of 1 and 2 bytes, else memory
// Watch   an unsigned 64-bit element has the bits of a negative one
// Source  lib/bits/order.hpp
#include "../sums/kernels.cuh"
#include "any_type.hpp"

namespace lockstep::cuda {
namespace {

// The largest key, at the lowest index; keys of minima fall where elements grow. A NaN's key is beyond all.
struct best {
  uint64_t key;
  int64_t index;
};
__device__ __forceinline__ best joined(const best& a, const best& b) {
  return a.key > b.key || (a.key == b.key && a.index <= b.index) ? a : b;
}
__device__ __forceinline__ best operator+(const best& a, const best& b) { return joined(a, b); }

// ---- keys: unsigned, as wide as the element ------------------------------------------------
struct key_kind {
  uint64_t flip;  // of integers, and of floats that are no NaN after their signs have been turned
  bool truths;
  uint64_t infinity;  // the bits of a float's; 0: integers
  bool falls;         // of minima
  bool skips;         // a NaN's key is 0: it is the result only if there is no number
};
__device__ __forceinline__ key_kind keys_of(const term_sums& d) {
  const bool falls = d.reduction.by == lib::join::smallest;
  const bool is_signed =
      d.dtype == LOCKSTEP_I8 || d.dtype == LOCKSTEP_I16 || d.dtype == LOCKSTEP_I32 || d.dtype == LOCKSTEP_I64;
  const uint64_t top = d.dtype == LOCKSTEP_I8    ? 0x80
                       : d.dtype == LOCKSTEP_I16 ? 0x8000
                       : d.dtype == LOCKSTEP_I32 ? 0x80000000u
                                                 : uint64_t{1} << 63;
  const uint64_t infinity = d.dtype == LOCKSTEP_F16    ? 0x7C00u
                            : d.dtype == LOCKSTEP_BF16 ? 0x7F80u
                            : d.dtype == LOCKSTEP_F32  ? 0x7F800000u
                            : d.dtype == LOCKSTEP_F64  ? uint64_t{0x7FF} << 52
                                                       : 0;
  return {(is_signed ? top : 0) ^ (falls ? ~uint64_t{0} : 0), d.dtype == LOCKSTEP_BOOL, infinity, falls,
          d.reduction.of == lib::term::number};
}

// The keys of a word's elements of 1, 2 or 4 bytes.
template <int bytes>
__device__ __forceinline__ uint32_t word_keys(const key_kind& k, uint32_t x) {
  constexpr uint32_t each = bytes == 1 ? 0x01010101u : bytes == 2 ? 0x00010001u : 1u;
  constexpr uint32_t all = bytes == 1 ? 0xFFu : bytes == 2 ? 0xFFFFu : ~0u;
  const uint32_t flip = (static_cast<uint32_t>(k.flip) & all) * each;
  if constexpr (bytes == 1)
    if (k.truths) x = (((x & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | x) >> 7 & 0x01010101u;
  const auto infinity = static_cast<uint32_t>(k.infinity);
  if constexpr (bytes == 2) {
    if (infinity != 0) {
      const uint32_t negative = (x >> 15 & 0x00010001u) * 0xFFFFu;
      const uint32_t nan = __vcmpgtu2(x & 0x7FFF7FFFu, infinity * 0x00010001u);
      const uint32_t keys = (x ^ (negative | 0x80008000u)) ^ flip;
      return k.skips ? keys & ~nan : keys | nan;
    }
  }
  if constexpr (bytes == 4) {
    if (infinity != 0) {
      const uint32_t negative = static_cast<uint32_t>(static_cast<int32_t>(x) >> 31);
      const uint32_t key = (x ^ (negative | 0x80000000u)) ^ flip;
      return (x & 0x7FFFFFFFu) <= infinity ? key : k.skips ? 0 : ~0u;
    }
  }
  return x ^ flip;
}
__device__ __forceinline__ uint64_t key_of_8(const key_kind& k, uint64_t x) {
  if (k.infinity == 0) return x ^ k.flip;
  const auto negative = static_cast<uint64_t>(static_cast<int64_t>(x) >> 63);
  const uint64_t key = (x ^ (negative | uint64_t{1} << 63)) ^ k.flip;
  return (x & ~uint64_t{0} >> 1) <= k.infinity ? key : k.skips ? 0 : ~uint64_t{0};
}
template <int bytes>
__device__ __forceinline__ uint32_t larger_keys(uint32_t a, uint32_t b) {
  if constexpr (bytes == 1) return __vmaxu4(a, b);
  if constexpr (bytes == 2) return __vmaxu2(a, b);
  return max(a, b);
}
// The largest of a word's keys.
template <int bytes>
__device__ __forceinline__ uint32_t largest_key(uint32_t x) {
  if constexpr (bytes == 1) {
    x = __vmaxu4(x, x >> 16);
    return max(x & 0xFF, x >> 8 & 0xFF);
  }
  if constexpr (bytes == 2) return max(x & 0xFFFF, x >> 16);
  return x;
}

template <int bytes>
struct extreme_fold {
  using partial = best;
  static constexpr bool ordered = false, commutes = true;
  static constexpr int blocks = 3, ahead = 8;  // loads of a thread at once
  using element =
      std::conditional_t<bytes == 1, uint8_t,
                         std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;
  __device__ static partial none() { return {0, INT64_MAX}; }
  __device__ static partial join(const partial& a, const partial& b) { return joined(a, b); }

  __device__ static uint64_t key_of(const key_kind& k, element x) {
    if constexpr (bytes == 8)
      return key_of_8(k, x);
    else
      return word_keys<bytes>(k, x) & static_cast<element>(~element{0});
  }

  __device__ static partial leaf(const term_sums& d, const pair_places& at, int64_t first, int n, int t, partial mine) {
    constexpr int V = 16 / bytes;
    const element* x = static_cast<const element*>(d.src) + at.src + first * d.element_stride;
    const key_kind kind = keys_of(d);
    const bool arg = d.reduction.to == lib::finish::index;
    int done = 0;
    if (whole_units(x, d.element_stride, 16)) {
      const int vectors = n / V;
      const auto* loads = reinterpret_cast<const uint4*>(x);
      uint64_t most = 0;
      int where = -1;  // the first of the loads among which the key is
      for (int v = t; v < vectors; v += ahead * 32) {
        uint4 q[ahead];
#pragma unroll
        for (int k = 0; k < ahead; ++k) q[k] = __ldg(loads + min(v + k * 32, vectors - 1));  // the last ones again
        const uint64_t key = largest_of(kind, q);
        if (where < 0 || key > most) most = key, where = v;
      }
      uint64_t of_warp = most;
      for (int mask = 16; mask >= 1; mask /= 2) of_warp = max(of_warp, from_xor(of_warp, mask));
      if (where >= 0 && most == of_warp && (most > mine.key || mine.index == INT64_MAX)) {
        int v = where, in_load = 0;
        if (arg)
          while ((in_load = first_of(kind, __ldg(loads + v), most)) < 0) v = min(v + 32, vectors - 1);
        mine = {most, first + v * V + in_load};
      }
      done = vectors * V;
    }
    for (int i = done + t; i < n; i += 32) mine = joined(mine, best{key_of(kind, x[i * d.element_stride]), first + i});
    return mine;
  }

  __device__ static uint64_t largest_of(const key_kind& kind, const uint4 (&q)[ahead]) {
    if constexpr (bytes == 8) {
      uint64_t most = 0;
#pragma unroll
      for (int k = 0; k < ahead; ++k) {
        most = max(most, key_of_8(kind, static_cast<uint64_t>(q[k].y) << 32 | q[k].x));
        most = max(most, key_of_8(kind, static_cast<uint64_t>(q[k].w) << 32 | q[k].z));
      }
      return most;
    } else {
      if constexpr (bytes == 2)
        if (kind.infinity != 0 && !kind.skips)
          return largest_key<2>(word_keys<2>(
              kind, kind.falls ? extreme_float<true>(kind.infinity, q) : extreme_float<false>(kind.infinity, q)));
      uint32_t most = 0;
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        for (const uint32_t word : {q[k].x, q[k].y, q[k].z, q[k].w})
          most = larger_keys<bytes>(most, word_keys<bytes>(kind, word));
      return largest_key<bytes>(most);
    }
  }

  // The smallest or largest of the floats in the words' upper and lower halves; a NaN where there is one.
  template <bool smallest>
  __device__ static uint32_t extreme_float(uint32_t infinity, const uint4 (&q)[ahead]) {
    uint32_t best = q[0].x;
    const auto all = [&]<class F>(F) {
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        for (const uint32_t word : {q[k].x, q[k].y, q[k].z, q[k].w}) {
          F a, b;
          memcpy(&a, &best, 4), memcpy(&b, &word, 4);
          a = smallest ? __hmin2_nan(a, b) : __hmax2_nan(a, b);
          memcpy(&best, &a, 4);
        }
    };
    if (infinity == 0x7C00u)
      all(__half2{});
    else
      all(__nv_bfloat162{});
    return best;
  }

  // The lowest index of a key in a load; -1: it is not there.
  __device__ static int first_of(const key_kind& kind, const uint4& q, uint64_t key) {
    const uint32_t words[4] = {q.x, q.y, q.z, q.w};
    int index = -1;
#pragma unroll
    for (int w = 3; w >= 0; --w) {
      if constexpr (bytes == 8) {
        if (w % 2 == 0 && key_of_8(kind, static_cast<uint64_t>(words[w + 1]) << 32 | words[w]) == key) index = w / 2;
      } else if constexpr (bytes == 4) {
        if (word_keys<4>(kind, words[w]) == key) index = w;
      } else {
        const uint32_t keys = word_keys<bytes>(kind, words[w]), wanted = static_cast<uint32_t>(key);
        const uint32_t same =
            bytes == 1 ? __vcmpeq4(keys, wanted * 0x01010101u) : __vcmpeq2(keys, wanted * 0x00010001u);
        if (same != 0) index = w * 4 / bytes + (__ffs(static_cast<int>(same)) - 1) / (8 * bytes);
      }
    }
    return index;
  }

  __device__ static void store(const term_sums& d, int64_t s, const partial& found, int64_t) {
    if (d.reduction.to == lib::finish::index) {
      static_cast<int64_t*>(d.dst)[s] = found.index;
      return;
    }
    const key_kind kind = keys_of(d);
    auto x = static_cast<element>(found.key ^ kind.flip);
    if constexpr (bytes > 1) {
      constexpr auto sign = static_cast<element>(element{1} << (8 * bytes - 1));
      const auto infinity = static_cast<element>(kind.infinity);
      if (infinity != 0) {
        if (found.key == (kind.skips ? 0 : static_cast<element>(~element{0})))
          x = static_cast<element>(infinity | (infinity & (0 - infinity)) >> 1);  // the canonical NaN
        else
          x = static_cast<element>(x ^ ((x & sign) != 0 ? sign : static_cast<element>(~element{0})));
      }
    }
    static_cast<element*>(d.dst)[s] = x;
  }
  __device__ static void store_empty(const term_sums& d, int64_t s) { report(d.faults, fault::empty, s); }
};

lockstep_status find_extremes(lockstep_queue& queue, const term_sums& d, void* workspace) {
  switch (dtype_bytes(d.dtype)) {
    case 1: return launch_sums<extreme_fold<1>, extreme_fold<1>>(queue, d, workspace);
    case 2: return launch_sums<extreme_fold<2>, extreme_fold<2>>(queue, d, workspace);
    case 4: return launch_sums<extreme_fold<4>, extreme_fold<4>>(queue, d, workspace);
    default: return launch_sums<extreme_fold<8>, extreme_fold<8>>(queue, d, workspace);
  }
}

term term_of(const lib::reduction_kind& kind) {
  if (kind.extreme()) return term::extreme;
  if (kind.by == lib::join::product) return term::factor;
  switch (kind.of) {
    case lib::term::square: return term::square;
    case lib::term::truth: return term::truth;
    case lib::term::number: return term::number;
    case lib::term::plain: break;
  }
  return term::plain;
}

term_sums terms_of(const lockstep_call& call, const report_word& faults) {
  const lockstep_reduce_desc& r = call.reduce;
  const lib::reduction_kind& kind = lib::kind_of(r.reduction);
  return {call.src,          nullptr,   call.dst, r.count, r.length,      r.element_stride,
          r.sequence_stride, r.offsets, 1,        0,       term_of(kind), kind,
          r.dtype,           r.result,  0,        faults};
}

lockstep_status run_any(lockstep_queue& queue, const lockstep_call& call) {
  const term_sums d = terms_of(call, queue.report);
  if (d.kind == term::extreme) return find_extremes(queue, d, call.workspace);
  if (d.kind == term::factor) return multiply(queue, d, call.workspace);
  return d.reduction.ordered(d.dtype) ? sum_floats(queue, d, call.workspace) : sum_exactly(queue, d, call.workspace);
}

}  // namespace

const char* refuses_any_type(const lockstep_queue*, const lockstep_call* call) {
  return is_for_any_type(*call) ? nullptr : "the other rows take these types";
}

size_t workspace_any_type(const lockstep_queue* queue, const lockstep_call* call) {
  return workspace_of_terms(*queue, terms_of(*call, queue->report));
}

lockstep_status launch_any_type(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<run_any>(queue, call);
}

}  // namespace lockstep::cuda
