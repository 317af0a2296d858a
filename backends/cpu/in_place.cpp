// in_place.cpp - transposes in place (src == dst).
// Idea    Square: blocks (a, b) and (b, a) are swapped through a block on the stack,
//         and transposed by the register tiles on the way. Packed rectangles: tiles
//         into a workspace of the matrix's size, then a copy back. If there is no
//         memory for that, the variant permuted can be forced: three permutations
//         within rows or columns (rotate columns, shuffle rows, shuffle columns), with
//         scratch for one row or a few columns for each thread.
// Moves   square: each byte in and out once, and a block more within L1;
//         rectangles: twice in and out; permuted three times (twice if rows and
//         cols are coprime).
// Limit   square and copied: DRAM; permuted: one 64-bit remainder for each element and pass.
// Watch   the gaps between the rows of a square matrix with ld > cols must stay
//         unchanged.
// Source  B. Catanzaro, A. Keller, M. Garland, "A Decomposition for In-place Matrix
//         Transposition", PPoPP 2014 (rectangles).
#include "in_place.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "parallel.hpp"
#include "tiles.hpp"

namespace lockstep::cpu {
namespace {

void swap_blocks(const lockstep_queue& queue, const lockstep_transpose_desc& d, char* data) {
  const transpose_kernels& kernels = transpose_kernels_of(queue.kernels);
  const int log2_bytes = log2_of(d.element_bytes);
  const auto tile = kernels.tile[log2_bytes];
  const int64_t bytes = int64_t{1} << log2_bytes, ld = d.src_ld * bytes, n = d.rows,
                side = queue.tuned->moves.block_rows[log2_bytes];
  const int64_t blocks = (n - 1) / side + 1, pairs = blocks * (blocks + 1) / 2;
  over_ranges(queue, d.batch * pairs, 1, [&](int64_t first, int64_t last) {
    alignas(64) char buffer[128 * 128];
    // Pair k of a matrix is (a, b), b <= a, with k = a (a + 1) / 2 + b.
    const int64_t k = first % pairs;
    auto a = static_cast<int64_t>((std::sqrt(8.0 * static_cast<double>(k) + 1.0) - 1.0) / 2.0);
    while (a * (a + 1) / 2 > k) --a;
    while ((a + 1) * (a + 2) / 2 <= k) ++a;
    int64_t b = k - a * (a + 1) / 2;
    char* matrix = data + first / pairs * d.src_batch_stride * bytes;
    for (int64_t task = first; task < last; ++task) {
      const int64_t rows = std::min(side, n - a * side), cols = std::min(side, n - b * side);
      char* lower = matrix + a * side * ld + b * side * bytes;
      char* upper = matrix + b * side * ld + a * side * bytes;
      tile(lower, ld, buffer, rows * bytes, rows, cols, store::cached, {});
      if (a != b) tile(upper, ld, lower, ld, cols, rows, store::cached, {});
      for (int64_t i = 0; i < cols; ++i) kernels.copy(buffer + i * rows * bytes, upper + i * ld, rows * bytes, false);
      if (++b <= a) continue;
      b = 0;
      if (++a < blocks) continue;
      a = 0;
      matrix += d.src_batch_stride * bytes;
    }
  });
}

struct sixteen {
  uint64_t half[2];
};

// The passes of the paper's C2R algorithm for a packed matrix of m rows and n columns,
// c = gcd(m, n), m = c*a, n = c*b. Each handles a range of rows or columns.
template <class T>
struct rectangle {
  T* x;
  int64_t m, n, a, b;
  int64_t width;  // columns shuffled together

  // x[i][j] = x[source(i, j)][j] for columns [first, last).
  template <class Source>
  void shuffle_columns(int64_t first, int64_t last, T* scratch, const Source& source) const {
    for (int64_t j = first; j < last; j += width) {
      const int64_t some = std::min(width, last - j);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t k = 0; k < some; ++k) scratch[i * some + k] = x[source(i, j + k) * n + j + k];
      for (int64_t i = 0; i < m; ++i)
        std::memcpy(x + i * n + j, scratch + i * some, static_cast<size_t>(some) * sizeof(T));
    }
  }
  void rotate_columns(int64_t first, int64_t last, T* scratch) const {
    shuffle_columns(first, last, scratch, [this](int64_t i, int64_t j) { return (i + j / b) % m; });
  }
  void finish_columns(int64_t first, int64_t last, T* scratch) const {
    shuffle_columns(first, last, scratch, [this](int64_t i, int64_t j) { return (j + i * n - i / a) % m; });
  }
  void shuffle_rows(int64_t first, int64_t last, T* scratch) const {
    for (int64_t i = first; i < last; ++i) {
      T* row = x + i * n;
      for (int64_t j = 0; j < n; ++j) scratch[((i + j / b) % m + j * m) % n] = row[j];
      std::memcpy(row, scratch, static_cast<size_t>(n) * sizeof(T));
    }
  }
};

// A group of columns fills a cache line, unless that needs too much scratch.
int64_t column_width(const lockstep_queue& queue, const lockstep_transpose_desc& d) {
  const auto bytes = static_cast<int64_t>(d.element_bytes);
  return std::max<int64_t>(1, std::min({64 / bytes, d.cols, queue.tuned->moves.column_scratch / bytes / d.rows}));
}
int64_t scratch_elements(const lockstep_queue& queue, const lockstep_transpose_desc& d) {
  return (std::max(d.cols, d.rows * column_width(queue, d)) + 63) / 64 * 64;
}

// The start of a thread's share of count.
int64_t share(int64_t count, int thread, int threads) {
  return count / threads * thread + std::min<int64_t>(thread, count % threads);
}

template <class T>
void decompose(const lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_transpose_desc& d = call.transpose;
  const int64_t c = std::gcd(d.rows, d.cols), each = scratch_elements(queue, d);
  auto* scratch = static_cast<T*>(call.workspace);
  auto* data = static_cast<T*>(call.dst);
  const auto matrix = [&](int64_t k) {
    return rectangle<T>{data + k * d.dst_batch_stride, d.rows, d.cols, d.rows / c, d.cols / c, column_width(queue, d)};
  };
  const region all(queue);
  if (d.batch >= queue.threads) {  // one matrix for each thread at a time
    on_threads(usable_threads(queue, d.batch), [&](int thread, int threads) {
      T* own = scratch + thread * each;
      const int64_t last = share(d.batch, thread + 1, threads);
      for (int64_t k = share(d.batch, thread, threads); k < last && !all.over(); ++k) {
        const rectangle<T> r = matrix(k);
        if (c > 1) r.rotate_columns(0, d.cols, own);
        r.shuffle_rows(0, d.rows, own);
        r.finish_columns(0, d.cols, own);
      }
    });
    return all.end();
  }
  for (int64_t k = 0; k < d.batch; ++k) {
    const rectangle<T> r = matrix(k);
    const auto pass = [&](int64_t count, auto member) {
      on_threads(usable_threads(queue, count), [&](int thread, int threads) {
        all.in_pieces(share(count, thread, threads), share(count, thread + 1, threads), all.piece(count, r.width),
                      false, [&](int64_t first, int64_t last) { (r.*member)(first, last, scratch + thread * each); });
      });
      all.end();
    };
    if (c > 1) pass(d.cols, &rectangle<T>::rotate_columns);
    pass(d.rows, &rectangle<T>::shuffle_rows);
    pass(d.cols, &rectangle<T>::finish_columns);
  }
}

// ---- rectangles through a copy ---------------------------------------------------

int64_t matrix_bytes(const lockstep_transpose_desc& d) {
  return d.rows * d.cols * static_cast<int64_t>(d.element_bytes);
}
int64_t copy_bytes(const lockstep_transpose_desc& d) {
  return (std::min<int64_t>(matrix_bytes(d), INT64_MAX - 63) + 63) / 64 * 64;
}

// Each thread takes whole matrices, if there are enough of them and L2 has room for the copy.
bool own_copies(const lockstep_queue& queue, const lockstep_transpose_desc& d) {
  return d.batch >= queue.threads && matrix_bytes(d) <= queue.tuned->moves.own_copy_bytes;
}

void through_copy(const lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_transpose_desc& d = call.transpose;
  const auto bytes = static_cast<int64_t>(d.element_bytes);
  tiles matrix;
  matrix.log2_bytes = log2_of(d.element_bytes);
  matrix.rows = d.rows, matrix.cols = d.cols;
  matrix.src_ld = d.src_ld * bytes, matrix.dst_ld = d.dst_ld * bytes;
  // The transpose and the copy back use the same number of threads, all or one. An OpenMP runtime ends and restarts
  // threads when the number changes, which can cost more than the call.
  const int64_t whole = matrix_bytes(d);
  const auto turn = [&](const lockstep_queue& with, int64_t k, char* copy) {
    char* data = static_cast<char*>(call.dst) + k * d.dst_batch_stride * bytes;
    run_best_method(with, matrix, data, copy);
    const int64_t grain = whole <= queue.tuned->moves.alone_bytes ? whole : 64;
    over_ranges(with, whole, grain, [&](int64_t first, int64_t last) {
      std::memcpy(data + first, copy + first, static_cast<size_t>(last - first));
    });
  };
  auto* workspace = static_cast<char*>(call.workspace);
  if (!own_copies(queue, d)) {
    for (int64_t k = 0; k < d.batch; ++k) turn(queue, k, workspace);
    return;
  }
  lockstep_queue one = queue;
  one.threads = 1;
  const region all(queue);
  on_threads(usable_threads(queue, d.batch), [&](int thread, int threads) {
    char* copy = workspace + thread * copy_bytes(d);
    const int64_t last = share(d.batch, thread + 1, threads);
    for (int64_t k = share(d.batch, thread, threads); k < last && !all.over(); ++k) turn(one, k, copy);
  });
  all.end();
}

// A packed row or column does not change by a transpose.
bool nothing_to_do(const lockstep_transpose_desc& d) { return d.rows == 1 || d.cols == 1; }

}  // namespace

bool in_place_rectangle(const lockstep_call& call) {
  return call.src == call.dst && call.transpose.rows != call.transpose.cols;
}
size_t copied_workspace(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_transpose_desc& d = call->transpose;
  if (!in_place_rectangle(*call) || nothing_to_do(d)) return 0;
  return static_cast<size_t>((own_copies(*queue, d) ? queue->threads : 1) * copy_bytes(d));
}

void transpose_swapped(const lockstep_queue& queue, const lockstep_call& call) {
  if (!nothing_to_do(call.transpose)) swap_blocks(queue, call.transpose, static_cast<char*>(call.dst));
}
void transpose_copied(const lockstep_queue& queue, const lockstep_call& call) {
  if (!nothing_to_do(call.transpose)) through_copy(queue, call);
}

size_t permuted_workspace(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_transpose_desc& d = call->transpose;
  if (!in_place_rectangle(*call) || nothing_to_do(d)) return 0;
  return static_cast<size_t>(scratch_elements(*queue, d)) * d.element_bytes * static_cast<size_t>(queue->threads);
}

void transpose_permuted(const lockstep_queue& queue, const lockstep_call& call) {
  if (nothing_to_do(call.transpose)) return;
  switch (call.transpose.element_bytes) {
    case 1: return decompose<uint8_t>(queue, call);
    case 2: return decompose<uint16_t>(queue, call);
    case 4: return decompose<uint32_t>(queue, call);
    case 8: return decompose<uint64_t>(queue, call);
    default: return decompose<sixteen>(queue, call);
  }
}

}  // namespace lockstep::cpu
