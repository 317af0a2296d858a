// staged_lines.cpp - transposes whose rows of dst begin at any place in a line, large ones; used by transpose, permute
// and convert.
// Idea    A strip of src is transposed into a small block that lies in its core's L2, and the block's rows begin at the
//         same places in a line as dst's. So whole lines go from it to dst by non-temporal stores; the bytes of a line
//         that the next strip completes stay in the block. Rows that follow each other in dst without a gap are
//         one long row: only the first and the last line of a block are partial.
// Moves   each byte in and out once, and through L2; through the cache dst would be read, too.
// Limit   DRAM, with as many threads as it takes; of one thread the stores into the block.
// Watch   two threads share the line at which a part of dst ends: both write their bytes of it through the cache.
// Source  this repository; figures in tests/results/tries.md.
#include <algorithm>
#include <cstring>

#include "parallel.hpp"
#include "tiles.hpp"

namespace lockstep::cpu {
namespace {

constexpr int64_t line = 64;

int64_t row_bytes_of(const tiles& t) { return t.rows << t.log2_bytes; }
// Rows of dst that are one long row, a strip each.
bool dense(const tiles& t) { return t.dst_ld == row_bytes_of(t) && t.dst_ld <= staged_block / 16; }

// rows x cols elements of src to rows of dst without a gap.
void move_dense(const transpose_kernels& kernels, const tiles& t, const char* src, char* dst, int64_t cols,
                int64_t ahead, char* block) {
  char* const place = block + reinterpret_cast<uintptr_t>(dst) % line;
  kernels.tile[t.log2_bytes](src, t.src_ld, place, t.dst_ld, t.rows, cols, store::cached, {ahead});
  kernels.copy(place, dst, cols * t.dst_ld, true);
}

// `rows` rows of src from src on to cols rows of dst, strip by strip; by way of room where maker makes elements.
void move_lines(const transpose_kernels& kernels, const tiles& t, const strip_maker* maker, const char* src, char* dst,
                int64_t rows, int64_t cols, int64_t ahead, char* block, char* room) {
  const int64_t bytes = int64_t{1} << t.log2_bytes, height = staged_strip / bytes;
  const int64_t pitch = staged_strip + 2 * line + t.dst_ld % line, room_pitch = pitch_of(cols * bytes);
  char* const first = block + line + reinterpret_cast<uintptr_t>(dst) % line;
  for (int64_t row = 0; row < rows; row += height) {
    const int64_t here = std::min(height, rows - row);
    const bool last = row + here == rows;
    const char* const from = src + row * t.src_ld;
    if (maker != nullptr) maker->make(maker->self, from, room, room_pitch, here, cols);
    kernels.tile[t.log2_bytes](maker != nullptr ? room : from, maker != nullptr ? room_pitch : t.src_ld, first, pitch,
                               here, cols, store::cached, {ahead});
    for (int64_t j = 0; j < cols; ++j) {
      char* const begin = first + j * pitch;
      char* const to = dst + j * t.dst_ld + row * bytes;
      const auto phase = static_cast<int64_t>(reinterpret_cast<uintptr_t>(begin) % line);
      const int64_t before = row == 0 ? 0 : phase;  // bytes that the strip before has left
      const int64_t after = last ? 0 : phase;
      kernels.copy(begin - before, to - before, before + here * bytes - after, true);
      if (!last)
        std::memcpy(begin - phase, begin + staged_strip - phase, line);  // what is no element yet comes with the next
    }
  }
}

}  // namespace

bool rows_share_lines(const tiles& t) {
  bool whole = t.dst_ld % line == 0;
  for (int k = 0; k < t.axes; ++k) whole = whole && (t.outer[k].count == 1 || t.outer[k].dst % line == 0);
  return !whole;
}

const char* not_staged(const lockstep_queue&, const tiles& t, const char*) {
  return row_bytes_of(t) < line ? "needs rows of dst of 64 bytes or more" : nullptr;
}

bool staged_pays(const lockstep_queue& queue, const tiles& t, const char*) {
  return beyond_caches(queue, t) && rows_share_lines(t) && row_bytes_of(t) >= queue.tuned->staging.least_row &&
         queue.threads >= queue.tuned->staging.least_threads;
}

void run_staged(const lockstep_queue& queue, const tiles& t, const char* src, char* dst) {
  run_staged(queue, t, nullptr, src, dst);
}

void run_staged(const lockstep_queue& queue, const tiles& t, const strip_maker* maker, const char* src, char* dst) {
  const transpose_kernels& kernels = transpose_kernels_of(queue.kernels);
  const int64_t bytes = int64_t{1} << t.log2_bytes, src_bytes = maker != nullptr ? maker->bytes : bytes;
  const int64_t matrices = matrices_of(t), height = staged_strip / bytes, strips = (t.rows - 1) / height + 1;
  const bool whole = maker == nullptr && dense(t);
  const int64_t row_of_block = whole ? t.dst_ld : staged_strip + 2 * line + t.dst_ld % line;
  const int64_t block_bytes = maker == nullptr ? staged_block : staged_block / 2;  // room has the other half
  // Whole lines of a row of src, where it begins with one.
  const int64_t most = (block_bytes - 2 * line) / row_of_block;
  const int64_t width = std::min(t.cols, std::max<int64_t>(most / (line / std::min(bytes, line)), 1) *
                                             std::min(most, line / std::min(bytes, line)));
  const int64_t chunks = (t.cols - 1) / width + 1;
  // Parts of the rows, where chunks are too few for the threads.
  const int64_t wanted = queue.tuned->moves.strips_a_thread * queue.threads;
  const int64_t parts = whole ? 1 : std::clamp<int64_t>(wanted / (matrices * chunks), 1, strips);
  const int64_t ahead = maker == nullptr ? queue.tuned->moves.lines_ahead : 0;
  over_ranges(queue, matrices * chunks * parts, 1, [&](int64_t begin, int64_t end) {
    alignas(64) char block[staged_block];
    for (int64_t task = begin; task < end; ++task) {
      const odometer at(t, src, dst, task / (chunks * parts));
      const int64_t part = task % parts, col = task / parts % chunks * width, cols = std::min(width, t.cols - col);
      const int64_t row = part_begin(strips, part, parts) * height,
                    below = std::min(t.rows, part_begin(strips, part + 1, parts) * height);
      const char* const from = at.src + row * t.src_ld + col * src_bytes;
      char* const to = at.dst + col * t.dst_ld + row * bytes;
      if (whole)
        move_dense(kernels, t, from, to, cols, ahead, block);
      else
        move_lines(kernels, t, maker, from, to, below - row, cols, ahead, block, block + block_bytes);
    }
    kernels.fence();
  });
}

}  // namespace lockstep::cpu
