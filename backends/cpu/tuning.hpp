// tuning.hpp - the numbers that a chip decides, all of them. No number here can change a result: tests run every row.
// `tuning` is looked at while a call runs: a row a chip, sizes of caches asked from the machine. `kernel_tuning` is
// compiled into isa/*.cpp: a row a set of kernels. How the numbers were found: tests/results/tries.md.
#pragma once

#include <stdint.h>

namespace lockstep::cpu {

// Bytes, of one core; l3 is no more than one core can count on (machine_caches).
struct caches {
  int64_t l1 = 32 << 10, l2 = 1 << 20, l3 = 32 << 20;
};

// ---- looked at while a call runs -----------------------------------------------------
struct reduction_tuning {
  caches has;
  // Bytes of a sequence from which two places of it are read side by side: what no cache holds. Extremes of 4 bytes on
  // one thread gain earlier.
  int64_t two_streams_from = has.l3, two_extremes_from = has.l3 / 2;
  bool two_streams_of_2_bytes = true;
  // Chunks that the first of two streams is ahead: a power of two apart their lines share sets of the L1.
  int64_t stagger = 5;
  // Bytes of a sequence whose passes alternate direction: a shorter one stays in L2 either way, of a longer one a cache
  // holds too little. In four parts, since every part begins anew.
  int64_t alternating_from = has.l2 / 4 * 3, alternating_below = has.l3;
  int64_t parts_of_a_pass = 4;
  // Bytes of a call up to which leaves are read as from a cache, by the size of an element; 0: never.
  int64_t cached_2 = 0, cached_4 = 0, cached_8 = has.l2;
  // Eight tasks a thread keep uneven cores busy to within an eighth of a share. From stolen_from on who is done first
  // takes what others have left; smaller data would only move between their caches.
  int64_t tasks_a_thread = 8, stolen_a_thread = 64;
  int64_t stolen_from = has.l3 / 2, task_bytes = 512 << 10;
  // Bytes of a sequence beyond which all threads read it: about what waking them costs.
  int64_t long_bytes = 256 << 10;
  int64_t grain_elements = 65536;  // at least, a thread
  int64_t segment_cost = 16;       // of a kernel's call beside its elements, in elements
  int64_t short_row = 1024, few_rows = 16, few_columns = 4;

  int64_t cached_bytes(int64_t element_bytes) const {
    return element_bytes == 8 ? cached_8 : element_bytes == 4 ? cached_4 : cached_2;
  }
};

struct move_tuning {
  caches has;
  // src and dst together: below cached_bytes nothing is fetched ahead, from stream_bytes on dst goes around the cache.
  int64_t cached_bytes = has.l2, stream_bytes = has.l3 / 2;
  // Below, a team costs more than it saves; up to own_columns_bytes a thread takes rows of dst of its own, since lines
  // that two write move between their caches.
  int64_t one_thread_bytes = 256 << 10, own_columns_bytes = 2 * has.l2;
  // Rows of a strip, by log2 of an element's bytes.
  int64_t strip_rows[5] = {256, 64, 32, 32, 32};
  // Bytes of a dst row that a strip writes at a visit where rows of dst share few sets of the caches.
  int64_t tall_cached_bytes = 512, tall_streamed_bytes = 256, least_strip = 32, most_strip = 256;
  // Rows of src no further apart than close_pitch are few pages: close_bytes of a dst row a visit.
  int64_t close_pitch = 1024, close_bytes = 512;
  int64_t task_cols = 4096;     // long enough for rows to be streams, short enough to share out a flat matrix
  int64_t strips_a_thread = 8;  // at least, where tasks are whole rows
  int64_t lines_ahead = 4;      // of each row, fetched before their use
  int64_t few_rows = 8, few_rows_ahead = 32;  // few rows are few streams for the hardware's prefetchers
  int64_t joined_bytes = 16 << 10;            // of a row of src, where runs of it are joined
  // Copies: bytes of a task, of the shortest run that goes around the cache, of the longest that is fetched ahead.
  int64_t copy_bytes = 256 << 10, streamed_run = 128, fetched_run = 4096;
  int64_t pixel_bytes = 192;  // of a dst row a visit
  // Tiny matrices: bytes of a packed one that a program takes, whatever the batch; bytes of a task.
  int64_t program_bytes = 128, tiny_task_bytes = 64 << 10;
  int64_t program_periods = 4, program_runs = 16;  // fewer are not worth making a program
  // Whether blocks come in while others go out, where kernels do not pack (transpose_pipe.hpp): the least rows and
  // bytes of a row, and the bytes in all of crowded rows within the caches. Rows of a strip of theirs through the
  // cache.
  int64_t pipe_least_rows = 16, pipe_least_bytes = 128, pipe_cached_below = 4 * has.l2;
  int64_t squares_strip = 64, squares_strip_of_4 = 128;
  // In place: rows of a swapped block by log2 of an element's bytes (two of them stay in L1), scratch for columns,
  // bytes of a matrix that a thread copies on its own and that one thread copies back.
  int64_t block_rows[5] = {128, 64, 64, 32, 16};
  int64_t column_scratch = 4 << 20, own_copy_bytes = has.l2, alone_bytes = 256 << 10;
  // Shuffles: bytes in and out from which stores go around the cache; warps a thread is worth waking for.
  int64_t shuffle_stream_bytes = has.l3, shuffle_grain_warps = 2048;
};

struct stencil_tuning {
  caches has;
  int64_t task_elements = 1 << 16, line_tile = 1 << 15;
  int64_t row_tile = 512;               // results of a row of rank 2 and 3, at most stencil_longest_tile
  int64_t star_bytes = has.l2 / 8 * 5;  // of the planes of a tile of rank 3
  int64_t rows_of_a_tile = 64;          // at least, of rank 2
  int64_t stream_bytes = has.l3;        // in and out, from which stores go around the cache
  int64_t group_bytes = has.l2;         // of arrays of a batch that go through their sweeps together
  // Sweeps: what a core's tile may fill of its caches; the work worth a thread's waking, in elements times sweeps.
  int64_t l1_tile = has.l1 * 2 / 3, l2_tile = has.l2 / 2, task_work = 1 << 15;
  int64_t block_bytes = 256;               // of a row that the kernels take at a time
  double row_cost = 64, memory_cost = 32;  // of beginning a row, in elements; of moving an element, in taps
  int64_t least_line = 256;                // registers of a line that goes by lanes
};

struct tuning {
  const char* name;
  caches has;
  bool halves = false;  // AVX-512 by the kernels for chips that execute 512-bit operations as two 256-bit halves
  reduction_tuning reductions{has};
  move_tuning moves{has};
  stencil_tuning stencils{has};
};

// Rows of a strip that a kernel pipes through two packed blocks on the stack, of which callers may have 512 KiB in all.
constexpr int64_t piped_rows(int64_t element_bytes) { return element_bytes <= 8 ? 128 : 32; }
// Addresses so far apart fall into one set of an L1 of 64 sets; its ways hold that many of them at ease.
constexpr int64_t l1_period = 4096, l1_ways_at_ease = 8;

caches machine_caches();
// The row of this name for this machine; NULL: there is none.
const tuning* find_tuning(const char* name);

// Rounds of looking for work before a thread sleeps: a few hundred microseconds, so that calls that follow one another
// find their threads awake, and no more, so that a machine that others use loses little.
constexpr int team_rounds = 10000;

// ---- compiled into isa/*.cpp ---------------------------------------------------------
struct kernel_tuning {
  // 512-bit operations run as two halves: conversions by fours, a line by two loads, loops of few loads, which the
  // hardware's prefetchers follow without help.
  bool halves = false;
  // Reductions: bytes that reads run ahead of the arithmetic; bytes of one of two streams before it is the other's
  // turn; bytes of a step of two streams of integers, of an extreme's chunk, and of a leaf that is read by turns.
  int read_ahead = 8192, turn_bytes = 2048, two_step = 256, extreme_step = 512, leaf_step = 128;
  // Stencils of rank 1: registers of results at once, one inner tap in so many by a load, bytes read ahead where dst
  // goes around the cache (0: none).
  int line_registers = 4, taps_by_load = 3, line_ahead = 8192;
  // Blocks of rank 3 (z x y rows, u registers) and 2, and sweeps in registers at once, by radius - 1: as many partial
  // sums as the registers hold beside the coefficients.
  int star_z = 2, star_y = 2, star_u = 4, plane_y = 4, plane_u = 4;
  int lane_sweeps[4] = {4, 4, 3, 2};
  // Transposes of crowded rows: bytes of a row in a packed block (dst cached, around the cache), rows fetched ahead of
  // the copy; bytes of a row, and rows ahead, where blocks come in while others go out.
  int pack_cached = 256, pack_streamed = 512, pack_ahead = 4, pack_rows = 256, pipe_bytes = 1024, pipe_ahead = 3;
  // The same where blocks are fetched into L2 and read in place: rows fetched by turns (the hardware follows so many
  // streams), and how strips spare the L2 TLB. Rows few_sets_from to few_sets_to apart leave it few sets of pages, and
  // one_set_from apart one: rows of a strip, columns of a chunk, bytes of pages that those few sets hold.
  int pipe_group = 16, tall_strip = 64, usual_strip = 32, low_strip = 16, chunk_cols = 1024, short_chunk_cols = 512;
  int64_t few_sets_from = 16 << 10, few_sets_to = 64 << 10, one_set_from = 512 << 10, chunk_bytes = 8 << 20;
  int narrow_row = 1024;  // columns: bytes of a row of the matrix up to which its memory is read ahead in order
  int copy_ahead = 4096;  // bytes that a measured copy around the cache reads ahead
  int pixel_piece = 128, pixel_ahead = 512;  // pixels: bytes of a row packed at a time, bytes read ahead
};

// Names as the sets of kernels have them (isa.hpp).
namespace kernels_of {
constexpr kernel_tuning baseline{};
constexpr kernel_tuning avx2{.plane_u = 2, .lane_sweeps = {4, 2, 2, 1}};
constexpr kernel_tuning avx512{};
constexpr kernel_tuning avx512_halves{
    .halves = true, .extreme_step = 128, .line_registers = 8, .taps_by_load = 2, .line_ahead = 0};
}  // namespace kernels_of

}  // namespace lockstep::cpu

#if defined(LOCKSTEP_ISA)
namespace lockstep::cpu::LOCKSTEP_ISA {
constexpr kernel_tuning tuned = kernels_of::LOCKSTEP_ISA;
}
#endif
