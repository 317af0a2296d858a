// shuffle.cpp (isa) - one permutation of 32 lanes, over many warps.
// Idea    AVX-512 holds a warp in two (four) registers: one permute (two and a blend) for
//         each register of results; other levels look lanes up in a table.
// Moves   each element in once, out once.
// Limit   the copy of the same size.
// Watch   in place: all of a warp is read before any of it is written.
// Source  order.hpp, source_lane.
#include "../shuffle_kernels.hpp"

#if defined(LOCKSTEP_ISA_AVX512)
#include <immintrin.h>
#endif

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

#if defined(LOCKSTEP_ISA_AVX512)
template <bool Stream>
void put(void* p, __m512i v) {
  if constexpr (Stream)
    _mm512_stream_si512(static_cast<__m512i*>(p), v);
  else
    _mm512_storeu_si512(p, v);
}

template <bool Stream>
void four_byte(const uint32_t* src, uint32_t* dst, int64_t warps, const uint32_t* source) {
  const __m512i low = _mm512_loadu_si512(source), high = _mm512_loadu_si512(source + 16);
  for (int64_t w = 0; w < warps; ++w, src += 32, dst += 32) {
    const __m512i a = _mm512_loadu_si512(src), b = _mm512_loadu_si512(src + 16);
    put<Stream>(dst, _mm512_permutex2var_epi32(a, low, b));
    put<Stream>(dst + 16, _mm512_permutex2var_epi32(a, high, b));
  }
}

// Four registers for a warp; an index below 16 selects from the first two, else from the
// last two (the permutation itself uses the low four bits).
template <bool Stream>
void eight_byte(const uint64_t* src, uint64_t* dst, int64_t warps, const uint64_t* source) {
  __m512i index[4];
  __mmask8 late[4];
  for (int k = 0; k < 4; ++k) {
    index[k] = _mm512_loadu_si512(source + 8 * k);
    late[k] = _mm512_cmpge_epu64_mask(index[k], _mm512_set1_epi64(16));
  }
  for (int64_t w = 0; w < warps; ++w, src += 32, dst += 32) {
    const __m512i a = _mm512_loadu_si512(src), b = _mm512_loadu_si512(src + 8), c = _mm512_loadu_si512(src + 16),
                  d = _mm512_loadu_si512(src + 24);
    for (int k = 0; k < 4; ++k)
      put<Stream>(dst + 8 * k, _mm512_mask_blend_epi64(late[k], _mm512_permutex2var_epi64(a, index[k], b),
                                                       _mm512_permutex2var_epi64(c, index[k], d)));
  }
}

void four(const uint32_t* src, uint32_t* dst, int64_t warps, const uint32_t* source, bool stream) {
  stream ? four_byte<true>(src, dst, warps, source) : four_byte<false>(src, dst, warps, source);
}
void eight(const uint64_t* src, uint64_t* dst, int64_t warps, const uint64_t* source, bool stream) {
  stream ? eight_byte<true>(src, dst, warps, source) : eight_byte<false>(src, dst, warps, source);
}
constexpr bool streams = true;
#else
// A load and a store for each lane is fast enough for memory. The copy of the warp makes in place safe.
template <class T>
void lane_by_lane(const T* src, T* dst, int64_t warps, const T* source, bool) {
  T from[32];
  for (int lane = 0; lane < 32; ++lane) from[lane] = source[lane];
  for (int64_t w = 0; w < warps; ++w, src += 32, dst += 32) {
    T warp[32];
    __builtin_memcpy(warp, src, sizeof warp);
    for (int lane = 0; lane < 32; ++lane) dst[lane] = warp[from[lane]];
  }
}
constexpr shuffle_kernel<uint32_t> four = lane_by_lane<uint32_t>;
constexpr shuffle_kernel<uint64_t> eight = lane_by_lane<uint64_t>;
constexpr bool streams = false;
#endif

}  // namespace

extern const shuffle_kernels shuffle_kernels_of_table;
const shuffle_kernels shuffle_kernels_of_table = {four, eight, streams};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
