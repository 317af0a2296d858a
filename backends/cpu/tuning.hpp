// tuning.hpp - all numbers that depend on the chip. No number here can change a result; tests run every row. `tuning`
// is read at run time: one row for each chip, with cache sizes from the machine. `kernel_tuning` is compiled into
// isa/*.cpp: one row for each set of kernels. tests/results/tries.md says how the numbers were found.
#pragma once

#include <stdint.h>

namespace lockstep::cpu {

// Bytes for one core; l3 is the part that one core can rely on (machine_caches).
struct caches {
  int64_t l1 = 32 << 10, l2 = 1 << 20, l3 = 32 << 20;
};

// ---- read at run time ------------------------------------------------------------------
struct reduction_tuning {
  caches has;
  // From this many bytes on a sequence is read at two places at the same time, because no cache holds it. Extremes of
  // 4 bytes on one thread gain earlier.
  int64_t two_streams_from = has.l3, two_extremes_from = has.l3 / 2;
  bool two_streams_of_2_bytes = true;
  int64_t two_streams_threads = 4;  // more threads are streams enough
  // Chunks that the first of two streams is ahead, because lines a power of two apart share sets of the L1.
  int64_t stagger = 5;
  // Sequences of this many bytes alternate the direction of repeated passes: shorter ones stay in L2 anyway, and of
  // longer ones too little stays cached. A pass is cut into parts, each of which starts with cached data.
  int64_t alternating_from = has.l2 / 4 * 3, alternating_below = has.l3;
  int64_t parts_of_a_pass = 4;
  // Up to this many bytes a call's data counts as cached and is read without prefetches, by element size; 0: never.
  int64_t cached_2 = 0, cached_4 = 0, cached_8 = has.l2;
  // Eight tasks for each thread balance uneven cores to within an eighth of a share. From stolen_from on threads that
  // are done take tasks of others; smaller data would only move between caches.
  int64_t tasks_a_thread = 8, stolen_a_thread = 64;
  int64_t stolen_from = has.l3 / 2, task_bytes = 512 << 10;
  // A sequence of more bytes is shared by all threads: reading this much takes about as long as waking them.
  int64_t long_bytes = 256 << 10;
  int64_t grain_elements = 65536;  // least number for each thread
  int64_t segment_cost = 16;       // the overhead of a kernel call, in elements
  int64_t short_row = 1024, few_rows = 16, few_columns = 4;
  // Of elements of 1 or 2 bytes: fewer do not fill a vector, and are entered one by one.
  int64_t few_narrow_columns = 12;
  // Reductions over axes that lie as one: a batch of fewer bytes is one thread's; of still fewer, and of few sequences,
  // not worth a call.
  int64_t axes_batch = 1 << 20, axes_small_batch = 2 << 10, axes_few = 4;

  int64_t cached_bytes(int64_t element_bytes) const {
    return element_bytes == 8 ? cached_8 : element_bytes == 4 ? cached_4 : cached_2;
  }
};

struct move_tuning {
  caches has;
  // src plus dst: below cached_bytes nothing is prefetched; from stream_bytes on dst is written by non-temporal stores.
  int64_t cached_bytes = has.l2, stream_bytes = has.l3 / 2;
  // Below one_thread_bytes more threads cost more than they save. Up to own_columns_bytes each thread writes rows of
  // dst of its own, because a line that two threads write moves between their caches.
  int64_t one_thread_bytes = 256 << 10, own_columns_bytes = 2 * has.l2;
  // Rows of a strip, by log2 of an element's bytes.
  int64_t strip_rows[5] = {256, 64, 32, 32, 32};
  // Bytes of a dst row that a strip writes at each visit, if rows of dst share few sets of the caches.
  int64_t tall_cached_bytes = 512, tall_streamed_bytes = 256, least_strip = 32, most_strip = 256;
  // If rows of src are at most close_pitch apart they share pages, and each visit writes close_bytes of a dst row.
  int64_t close_pitch = 1024, close_bytes = 512;
  int64_t task_cols = 4096;     // long enough for rows to be streams, short enough to share out a flat matrix
  int64_t strips_a_thread = 8;  // tasks a thread that there should be; of a row of src at least so many lines
  int64_t least_task_lines = 4;
  int64_t lines_ahead = 4;                    // lines of each row that are prefetched
  int64_t few_rows = 8, few_rows_ahead = 32;  // few rows are few streams for the hardware's prefetchers
  int64_t joined_bytes = 16 << 10;            // of a row of src for each task, if its runs are joined
  // Copies: bytes of a task, of the shortest run for non-temporal stores, of the longest run that is prefetched.
  int64_t copy_bytes = 256 << 10, streamed_run = 128, fetched_run = 4096;
  int64_t pixel_bytes = 192;  // of a dst row at each visit
  // Permutations: a fastest axis of fewer bytes is fused with those that follow it, in the caches and beyond.
  // Bytes of the runs of src and dst that a task takes: it should leave few bytes of a page of src for later.
  int64_t fused_cached_below = 256, fused_streamed_below = 64, fused_width = 1024, fused_height = 256;
  // Tiny matrices: bytes of a packed one for which a program is used in any batch; bytes of a task.
  int64_t program_bytes = 128, tiny_task_bytes = 64 << 10;
  int64_t program_periods = 4, program_runs = 16;  // making a program for fewer does not pay
  // Steps of a store up to which one long matrix takes a program, of single bytes and of other elements; register tiles
  // take a step for many rows.
  int program_byte_steps = 3, program_steps = 2;
  // When blocks are loaded while others are written, for kernels that do not pack (transpose_pipe.hpp): the least rows
  // and bytes of a row, and the total bytes of crowded rows within the caches; and the rows of such a strip if it is
  // written through the cache.
  int64_t pipe_least_rows = 16, pipe_least_bytes = 128, pipe_cached_below = 4 * has.l2;
  int64_t squares_strip = 64, squares_strip_of_4 = 128;
  // In place: rows of a swapped block by log2 of an element's bytes (two blocks stay in L1), scratch for columns, bytes
  // of a matrix up to which each thread takes whole matrices, and up to which one thread copies back.
  int64_t block_rows[5] = {128, 64, 64, 32, 16};
  int64_t column_scratch = 4 << 20, own_copy_bytes = has.l2, alone_bytes = 256 << 10;
  // Shuffles: bytes read plus written from which stores are non-temporal; warps that are worth waking a thread.
  int64_t shuffle_stream_bytes = has.l3, shuffle_grain_warps = 2048;
};

struct stencil_tuning {
  caches has;
  int64_t task_elements = 1 << 16, line_tile = 1 << 15;
  int64_t row_tile = 512;               // results in a row of rank 2 and 3, at most stencil_longest_tile
  int64_t star_bytes = has.l2 / 8 * 5;  // of the planes of a tile of rank 3
  int64_t rows_of_a_tile = 64;          // at least, of rank 2
  int64_t stream_bytes = has.l3;        // bytes read plus written from which stores are non-temporal
  int64_t group_bytes = has.l2;         // arrays of a batch that are swept together
  // Sweeps: how much of its caches a core's tile may fill; the work that is worth waking a thread, in elements times
  // sweeps.
  int64_t l1_tile = has.l1 * 2 / 3, l2_tile = has.l2 / 2, task_work = 1 << 15;
  int64_t block_bytes = 256;               // of a row that the kernels take at a time
  double row_cost = 64, memory_cost = 32;  // of starting a row, in elements; of moving an element, in taps
  int64_t least_line = 256;                // registers of the shortest line that is swept by lanes
  // Lines by lanes: a tile of L2 leaves room for three rows, which its ends may need; how many times its halo a tile of
  // L1 should be, a lane's part at least, and a line's.
  int64_t l2_line_tile = l2_tile * 5 / 8;
  int64_t l1_halos = 32, lane_halos = 4, line_halos = 8;
};

struct row_tuning {
  // Normalize: bytes read and written from which stores are non-temporal, bytes of a batch of short rows, elements that
  // are worth a thread.
  int64_t normalize_stream_bytes = 64 << 20, normalize_batch_bytes = 16 << 10, normalize_grain = 8192;
  // Rows and sequences of more bytes are shared by all threads; leaves of a thread's share, which stay in L2; elements
  // of short rows that are worth a thread.
  int64_t shared_bytes = 256 << 10, scan_leaves = 32, scan_grain = 8192;
};

// Lines of dst that are staged in a block in L2: bytes of a row of dst, and threads, from which that pays.
struct staging_tuning {
  int64_t least_row = 256, least_threads = 2;
};

struct tuning {
  const char* name;
  caches has;
  bool halves = false;  // use the AVX-512 kernels for chips that execute 512-bit operations as two 256-bit halves
  reduction_tuning reductions{has};
  move_tuning moves{has};
  stencil_tuning stencils{has};
  row_tuning rows{};
  staging_tuning staging{};
};

// What has room on a thread's stack. Results of a row of a tile of rank 2 and 3, and of the folded copy of a row's end;
// sweeps of a pass (at this depth the time for memory hardly matters); rows of a batch of normalize; neighbouring
// sequences that a scan copies together; reductions: rows of a batch, chunks of a kernel's call, subtrees that one
// thread reads in pairs or in alternating directions.
constexpr int64_t stencil_longest_tile = 512, stencil_piece = 128;
constexpr int most_sweeps = 32;
constexpr int64_t normalize_rows = 64, scan_tile = 16, scan_columns = 128;
constexpr int64_t row_batch = 256, row_results = 512, chunks_together = 64, subtrees_alone = 16;

// Rows of a strip that a kernel pipes through two packed blocks on the stack; a caller's stack may be only 512 KiB.
constexpr int64_t piped_rows(int64_t element_bytes) { return element_bytes <= 8 ? 128 : 32; }
// Of lines staged in L2: bytes of a row of dst that a strip fills, whole lines; of a block, which is on the stack too.
constexpr int64_t staged_strip = 512, staged_block = 192 << 10;
// Bytes up to which a run of several axes takes the next one; places of a run in a table on the stack.
constexpr int64_t fused_run = 1024, fused_places = 2048;
// Addresses l1_period apart fall into one set of an L1 with 64 sets; a set holds l1_ways_at_ease such lines.
constexpr int64_t l1_period = 4096, l1_ways_at_ease = 8;

caches machine_caches();
// The row of this name for this machine; NULL if there is none.
const tuning* find_tuning(const char* name);

// How often a thread looks for work before it sleeps: a few hundred microseconds, so that repeated calls find their
// threads awake, but not so long that it disturbs other programs.
constexpr int team_rounds = 10000;

// ---- compiled into isa/*.cpp ---------------------------------------------------------
struct kernel_tuning {
  // 512-bit operations run as two halves. So conversions take four elements, a line takes two loads, and loops have few
  // loads, which the hardware's prefetchers follow without help.
  bool halves = false;
  // Reductions: distance of prefetches; bytes read from one of two streams before switching to the other; bytes of each
  // step for two streams of integers, for an extreme's chunk, and for a leaf.
  int read_ahead = 8192, stream_piece = 2048, two_step = 256, extreme_step = 512, leaf_step = 128;
  // Stencils of rank 1: registers of results at once; one in taps_by_load inner taps is loaded, the others are
  // shuffled; distance of prefetches if dst is written by non-temporal stores (0: none).
  int line_registers = 4, taps_by_load = 3, line_ahead = 8192;
  // Blocks of rank 3 (z x y rows, u registers) and 2; and sweeps in registers at once, by radius - 1, limited by the
  // registers for partial sums and coefficients.
  int star_z = 2, star_y = 2, star_u = 4, plane_y = 4, plane_u = 4;
  int lane_sweeps[4] = {4, 4, 3, 2};
  // Transposes of crowded rows that are packed: bytes of a row in a packed block (dst through the cache, by
  // non-temporal stores), rows prefetched before the copy; bytes of a row and rows prefetched if blocks are loaded
  // while others are written.
  int pack_cached = 256, pack_streamed = 512, pack_ahead = 4, pack_rows = 256, pipe_bytes = 1024, pipe_ahead = 3;
  // The same if blocks are prefetched into L2 and read from src: rows prefetched in alternation (as many streams as the
  // hardware follows). Then the shapes that spare the L2 TLB: rows few_sets_from to few_sets_to apart use few of its
  // sets, rows one_set_from apart only one. Rows of a strip, columns of a chunk, bytes of pages that few sets hold.
  int pipe_group = 16, tall_strip = 64, usual_strip = 32, low_strip = 16, chunk_cols = 1024, short_chunk_cols = 512;
  int64_t few_sets_from = 16 << 10, few_sets_to = 64 << 10, one_set_from = 512 << 10, chunk_bytes = 8 << 20;
  int narrow_row = 1024;  // columns: up to this many bytes of a row the matrix is prefetched in order of memory
  // Columns that so few registers hold, and that so few loads read, are summed a register at a time.
  int64_t few_vectors = 4, few_vector_loads = 1536;
  int copy_ahead = 4096;                     // distance of prefetches of a measured copy with non-temporal stores
  int pixel_piece = 128, pixel_ahead = 512;  // pixels: bytes of a row packed at a time, distance of prefetches
};

// Named as the sets of kernels (isa.hpp).
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
