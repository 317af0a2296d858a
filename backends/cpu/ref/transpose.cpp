// transpose.cpp (ref) - the definition: dst[b][j][i] = src[b][i][j].
#include <cstring>

#include "../ops.hpp"

namespace lockstep::cpu {

lockstep_status ref_transpose(lockstep_queue*, const lockstep_call* call) {
  const lockstep_transpose_desc& d = call->transpose;
  const auto* src = static_cast<const unsigned char*>(call->src);
  auto* dst = static_cast<unsigned char*>(call->dst);
  const auto bytes = static_cast<int64_t>(d.element_bytes);
  for (int64_t b = 0; b < d.batch; ++b) {
    const unsigned char* from = src + b * d.src_batch_stride * bytes;
    unsigned char* to = dst + b * d.dst_batch_stride * bytes;
    if (from != to) {
      for (int64_t i = 0; i < d.rows; ++i)
        for (int64_t j = 0; j < d.cols; ++j)
          std::memcpy(to + (j * d.dst_ld + i) * bytes, from + (i * d.src_ld + j) * bytes, d.element_bytes);
      continue;
    }
    // In place: follow each cycle of the permutation k -> its new index. For a
    // square matrix the cycles are pairs; ld beyond cols leaves the gaps alone.
    const auto swap_elements = [&](int64_t x, int64_t y) {
      unsigned char t[16];
      std::memcpy(t, to + x * bytes, d.element_bytes);
      std::memcpy(to + x * bytes, to + y * bytes, d.element_bytes);
      std::memcpy(to + y * bytes, t, d.element_bytes);
    };
    if (d.rows == d.cols) {
      for (int64_t i = 0; i < d.rows; ++i)
        for (int64_t j = 0; j < i; ++j) swap_elements(i * d.src_ld + j, j * d.src_ld + i);
      continue;
    }
    // Packed: element k = i * cols + j goes to j * rows + i. A cycle is moved when the loop
    // reaches its smallest index.
    const int64_t total = d.rows * d.cols;
    const auto target = [&](int64_t k) { return k % d.cols * d.rows + k / d.cols; };
    for (int64_t start = 0; start < total; ++start) {
      int64_t k = target(start);
      while (k > start) k = target(k);
      if (k < start) continue;
      for (k = target(start); k != start; k = target(k)) swap_elements(start, k);
    }
  }
  return LOCKSTEP_OK;
}

}  // namespace lockstep::cpu
