// tuning.hpp - all numbers that depend on the chip. No number here can change a result; tests run every row. `tuning`
// is read at run time: one row for each chip, with cache sizes from the machine. `kernel_tuning` is compiled into
// isa/*.cpp: one row for each set of kernels. tests/results/tries.md says how the numbers were found.
#pragma once

#include <stdint.h>

namespace lockstep::cpu {

struct caches {
  // Bytes of one core.
  int64_t l1 = 32 << 10;
  // Bytes of one core.
  int64_t l2 = 1 << 20;
  // Bytes that one core can rely on (machine_caches).
  int64_t l3 = 32 << 20;
};

// ---- read at run time ------------------------------------------------------------------
struct reduction_tuning {
  caches has;
  // Bytes. Longer sequences are read at two places at the same time, because no cache holds them.
  int64_t two_streams_from = has.l3;
  // Bytes. The same for extremes of 4-byte elements on one thread.
  int64_t two_extremes_from = has.l3 / 2;
  // Whether 2-byte elements are read at two places too.
  bool two_streams_of_2_bytes = true;
  // Threads. With more than this, one place per thread is enough.
  int64_t two_streams_threads = 4;
  // Chunks that the first of two streams is ahead, because lines a power of two apart share sets of the L1.
  int64_t stagger = 5;
  // Bytes per thread. From here on repeated passes alternate direction; shorter sequences stay in the L2 anyway.
  int64_t alternating_from = has.l2 / 4 * 3;
  // Bytes. Up to here they do; of longer sequences too little stays cached.
  int64_t alternating_below = has.l3;
  // Parts that a pass is cut into, each of which starts with cached data.
  int64_t parts_of_a_pass = 4;
  // Bytes of 2-byte elements that count as cached and are read without prefetches; 0: none.
  int64_t cached_2 = 0;
  // The same for 4-byte elements.
  int64_t cached_4 = 0;
  // The same for 8-byte elements.
  int64_t cached_8 = has.l2;
  // Tasks per thread, which balances uneven cores to within an eighth of a share.
  int64_t tasks_a_thread = 8;
  // Tasks per thread at most if threads that are done take tasks of others.
  int64_t stolen_a_thread = 64;
  // Bytes. Least sequence for that; smaller data would only move between caches.
  int64_t stolen_from = has.l3 / 2;
  // Bytes of a task that may be taken by others.
  int64_t task_bytes = 512 << 10;
  // Bytes. Longer sequences are shared by all threads: reading this much takes about as long as waking them.
  int64_t long_bytes = 256 << 10;
  // Elements. Least work for a thread.
  int64_t grain_elements = 65536;
  // Elements that the overhead of a kernel call amounts to.
  int64_t segment_cost = 16;
  // Elements. Longest row of the kernels for many short rows.
  int64_t short_row = 1024;
  // Rows. Fewer are left to other kernels than those.
  int64_t few_rows = 16;
  // Columns. Fewer are left to other kernels than those for columns.
  int64_t few_columns = 4;
  // Columns of elements of 1 or 2 bytes. Fewer do not fill a vector and are added one by one.
  int64_t few_narrow_columns = 12;
  // Bytes. A smaller batch of a reduction over axes is one thread's.
  int64_t axes_batch = 1 << 20;
  // Bytes. A smaller batch of few sequences is not worth a call of its own.
  int64_t axes_small_batch = 2 << 10;
  // Sequences. Fewer count as few for axes_small_batch.
  int64_t axes_few = 4;

  int64_t cached_bytes(int64_t element_bytes) const {
    return element_bytes == 8 ? cached_8 : element_bytes == 4 ? cached_4 : cached_2;
  }
};

struct move_tuning {
  caches has;
  // ---- tiles: bytes of src and dst together
  // Bytes moved. Below, nothing is prefetched.
  int64_t cached_bytes = has.l2;
  // Bytes moved. From here on dst is written by non-temporal stores.
  int64_t stream_bytes = has.l3 / 2;
  // Bytes moved. Below, more threads cost more than they save.
  int64_t one_thread_bytes = 256 << 10;
  // Bytes moved. Up to here each thread writes rows of dst of its own: a line that two threads write moves between
  // caches.
  int64_t own_columns_bytes = 2 * has.l2;
  // ---- tiles: shapes
  // Rows of a strip, by log2 of an element's bytes.
  int64_t strip_rows[5] = {256, 64, 32, 32, 32};
  // Bytes of a dst row per visit of a strip if rows of dst share few sets of the caches, cached stores.
  int64_t tall_cached_bytes = 512;
  // The same for non-temporal stores.
  int64_t tall_streamed_bytes = 256;
  // Rows. Lowest such strip.
  int64_t least_strip = 32;
  // Rows. Highest such strip.
  int64_t most_strip = 256;
  // Bytes between rows of src up to which they share pages.
  int64_t close_pitch = 1024;
  // Bytes of a dst row per visit if they do.
  int64_t close_bytes = 512;
  // Columns of a task: long enough for rows to be streams, short enough to share out a flat matrix.
  int64_t task_cols = 4096;
  // Tasks per thread that there should be.
  int64_t strips_a_thread = 8;
  // Lines. Least part of a row of src in a task.
  int64_t least_task_lines = 4;
  // Lines of each row that are prefetched.
  int64_t lines_ahead = 4;
  // Rows. So few are few streams for the hardware's prefetchers.
  int64_t few_rows = 8;
  // Lines of each row that are prefetched if rows are few.
  int64_t few_rows_ahead = 32;
  // Bytes of a row of src per task if its runs are joined.
  int64_t joined_bytes = 16 << 10;
  // ---- copies
  // Bytes of a task.
  int64_t copy_bytes = 256 << 10;
  // Bytes. Shortest run that is written by non-temporal stores.
  int64_t streamed_run = 128;
  // Bytes. Longest run that is prefetched.
  int64_t fetched_run = 4096;
  // Bytes of a dst row per visit, for pixels.
  int64_t pixel_bytes = 192;
  // ---- permutations whose fastest axes are fused
  // Bytes. A shorter fastest axis is fused with those that follow it, data in the caches.
  int64_t fused_cached_below = 256;
  // The same for data beyond the caches.
  int64_t fused_streamed_below = 64;
  // Bytes of the run of src that a task takes.
  int64_t fused_width = 1024;
  // Bytes of the run of dst that a task takes; few bytes of a page of src should be left for later.
  int64_t fused_height = 256;
  // ---- tiny matrices
  // Bytes. Packed matrices up to this size use a byte program in any batch.
  int64_t program_bytes = 128;
  // Bytes of a task.
  int64_t tiny_task_bytes = 64 << 10;
  // Periods of a byte program. Making one for fewer does not pay.
  int64_t program_periods = 4;
  // Runs of a byte program. Making one for fewer does not pay.
  int64_t program_runs = 16;
  // Shuffles per store. One long matrix of single bytes uses a byte program up to this many.
  int program_byte_steps = 3;
  // The same for wider elements.
  int program_steps = 2;
  // ---- blocks that are loaded while others are written, for kernels that do not pack (transpose_pipe.hpp)
  // Rows. Least matrix.
  int64_t pipe_least_rows = 16;
  // Bytes. Least row.
  int64_t pipe_least_bytes = 128;
  // Bytes moved. Crowded rows within the caches use it below this.
  int64_t pipe_cached_below = 4 * has.l2;
  // Rows of such a strip written through the cache, elements of 1 and 2 bytes.
  int64_t squares_strip = 64;
  // The same for 4-byte elements.
  int64_t squares_strip_of_4 = 128;
  // ---- in place
  // Rows of a swapped block, by log2 of an element's bytes; two blocks stay in the L1.
  int64_t block_rows[5] = {128, 64, 64, 32, 16};
  // Bytes of scratch for columns.
  int64_t column_scratch = 4 << 20;
  // Bytes. Up to this size each thread takes whole matrices.
  int64_t own_copy_bytes = has.l2;
  // Bytes. Up to this size one thread copies back.
  int64_t alone_bytes = 256 << 10;
  // ---- shuffles
  // Bytes moved. From here on stores are non-temporal.
  int64_t shuffle_stream_bytes = has.l3;
  // Warps that are worth waking a thread.
  int64_t shuffle_grain_warps = 2048;
};

struct stencil_tuning {
  caches has;
  // Elements of a task.
  int64_t task_elements = 1 << 16;
  // Results of a tile of rank 1.
  int64_t line_tile = 1 << 15;
  // Results in a row of a tile of rank 2 and 3; at most stencil_longest_tile.
  int64_t row_tile = 512;
  // Bytes of the planes of a tile of rank 3.
  int64_t star_bytes = has.l2 / 8 * 5;
  // Rows. Least tile of rank 2.
  int64_t rows_of_a_tile = 64;
  // Bytes moved. From here on stores are non-temporal.
  int64_t stream_bytes = has.l3;
  // Bytes of the arrays of a batch that are swept together.
  int64_t group_bytes = has.l2;
  // ---- many sweeps
  // Bytes of the L1 that a core's tile may fill.
  int64_t l1_tile = has.l1 * 2 / 3;
  // Bytes of the L2 that a core's tile may fill.
  int64_t l2_tile = has.l2 / 2;
  // Elements times sweeps that are worth waking a thread.
  int64_t task_work = 1 << 15;
  // Bytes of a row that the kernels take at a time.
  int64_t block_bytes = 256;
  // Elements of work that starting a row costs.
  double row_cost = 64;
  // Taps of work that moving an element costs.
  double memory_cost = 32;
  // Registers. Shortest line that is swept by lanes.
  int64_t least_line = 256;
  // Bytes of a tile of lines in the L2, with room for three rows that its ends may need.
  int64_t l2_line_tile = l2_tile * 5 / 8;
  // Halos. Least length of a tile in the L1.
  int64_t l1_halos = 32;
  // Halos. Least part of a lane.
  int64_t lane_halos = 4;
  // Halos. Least line.
  int64_t line_halos = 8;
};

struct row_tuning {
  // Bytes moved. From here on normalize uses non-temporal stores.
  int64_t normalize_stream_bytes = 64 << 20;
  // Bytes of a batch of short rows of normalize.
  int64_t normalize_batch_bytes = 16 << 10;
  // Elements that are worth a thread of normalize.
  int64_t normalize_grain = 8192;
  // Bytes. Longer rows and sequences are shared by all threads.
  int64_t shared_bytes = 256 << 10;
  // Leaves of a thread's share of a scan, which stay in the L2.
  int64_t scan_leaves = 32;
  // Elements of short rows that are worth a thread of a scan.
  int64_t scan_grain = 8192;
};

// Lines of dst that are staged in a block in the L2.
struct staging_tuning {
  // Bytes. Least row of dst for which that pays.
  int64_t least_row = 256;
  // Threads. Least number for which that pays.
  int64_t least_threads = 2;
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

// What has room on a thread's stack.
// Results in a row of a stencil's tile of rank 2 and 3.
constexpr int64_t stencil_longest_tile = 512;
// Results of the folded copy of a row's end.
constexpr int64_t stencil_piece = 128;
// Sweeps of a pass; with this many the time for memory hardly matters.
constexpr int most_sweeps = 32;
// Rows of a batch of normalize.
constexpr int64_t normalize_rows = 64;
// Neighbouring sequences that a scan copies together.
constexpr int64_t scan_tile = 16;
// Neighbouring sequences that a scan of columns takes together.
constexpr int64_t scan_columns = 128;
// Rows of a batch of means and variances.
constexpr int64_t row_batch = 256;
// Rows of a batch of other reductions.
constexpr int64_t row_results = 512;
// Chunks of a kernel's call.
constexpr int64_t chunks_together = 64;
// Subtrees that one thread reads in pairs or in alternating directions.
constexpr int64_t subtrees_alone = 16;
// Rows of a strip that a kernel pipes through two packed blocks.
constexpr int64_t piped_rows(int64_t element_bytes) { return element_bytes <= 8 ? 128 : 32; }
// Bytes of a row of dst that a strip fills if lines are staged in the L2; whole lines.
constexpr int64_t staged_strip = 512;
// Bytes of the block that they are staged in.
constexpr int64_t staged_block = 192 << 10;
// Bytes. A run of several axes takes the next axis up to this length.
constexpr int64_t fused_run = 1024;
// Places of a run in a table.
constexpr int64_t fused_places = 2048;
// Bytes. Addresses so far apart fall into one set of an L1 with 64 sets.
constexpr int64_t l1_period = 4096;
// Lines so far apart that a set holds.
constexpr int64_t l1_ways_at_ease = 8;

caches machine_caches();
// The row of this name for this machine; NULL if there is none.
const tuning* find_tuning(const char* name);

// Times that a thread looks for work before it sleeps: a few hundred microseconds, so that repeated calls find their
// threads awake, but not so long that it disturbs other programs.
constexpr int team_rounds = 10000;

// ---- compiled into isa/*.cpp ---------------------------------------------------------
struct kernel_tuning {
  // Whether 512-bit operations run as two halves. Then conversions take four elements, a line takes two loads, and
  // loops have few loads, which the hardware's prefetchers follow without help.
  bool halves = false;
  // ---- reductions
  // Bytes. Distance of prefetches.
  int read_ahead = 8192;
  // Bytes that are read from one of two streams before switching to the other.
  int stream_piece = 2048;
  // Bytes of each step for two streams of integers.
  int two_step = 256;
  // Bytes of each step for an extreme's chunk.
  int extreme_step = 512;
  // Bytes of each step for a leaf.
  int leaf_step = 128;
  // ---- stencils
  // Registers of results at once, rank 1.
  int line_registers = 4;
  // One in so many inner taps is loaded, the others are shuffled, rank 1.
  int taps_by_load = 3;
  // Bytes. Distance of prefetches if dst is written by non-temporal stores, rank 1; 0: none.
  int line_ahead = 8192;
  // Rows along z of a block of rank 3.
  int star_z = 2;
  // Rows along y of a block of rank 3.
  int star_y = 2;
  // Registers along x of a block of rank 3.
  int star_u = 4;
  // Rows of a block of rank 2.
  int plane_y = 4;
  // Registers along x of a block of rank 2.
  int plane_u = 4;
  // Sweeps in registers at once, by radius - 1; limited by the registers for partial sums and coefficients.
  int lane_sweeps[4] = {4, 4, 3, 2};
  // ---- transposes of crowded rows: rows are packed first
  // Bytes of a row in a packed block, dst written through the cache.
  int pack_cached = 256;
  // Bytes of a row in a packed block, dst written by non-temporal stores.
  int pack_streamed = 512;
  // Rows that are prefetched before they are packed.
  int pack_ahead = 4;
  // Rows of a packed block.
  int pack_rows = 256;
  // ---- or blocks are loaded while others are written
  // Bytes of a row of a block.
  int pipe_bytes = 1024;
  // Rows that are prefetched.
  int pipe_ahead = 3;
  // ---- or blocks are prefetched into the L2 and read from src
  // Rows that are prefetched in alternation: as many streams as the hardware follows.
  int pipe_group = 16;
  // Rows of a strip if rows of dst use few sets of the L2 TLB.
  int tall_strip = 64;
  // Rows of a strip.
  int usual_strip = 32;
  // Rows of a strip if rows of src use one set of the L2 TLB.
  int low_strip = 16;
  // Columns of a chunk.
  int chunk_cols = 1024;
  // Columns of a chunk if rows of dst use few sets of the L2 TLB.
  int short_chunk_cols = 512;
  // Bytes. Rows at least so far apart use few sets of the L2 TLB.
  int64_t few_sets_from = 16 << 10;
  // Bytes. Rows at most so far apart use few sets of the L2 TLB.
  int64_t few_sets_to = 64 << 10;
  // Bytes. Rows at least so far apart use one set of the L2 TLB.
  int64_t one_set_from = 512 << 10;
  // Bytes of pages that few sets hold.
  int64_t chunk_bytes = 8 << 20;
  // ---- columns
  // Bytes. Distance of prefetches of the rows that are read one after the other.
  int column_ahead = 4096;
  // Registers. Columns that fit so few are summed a register at a time.
  int64_t few_vectors = 4;
  // Loads. And only if they are read by at most this many.
  int64_t few_vector_loads = 1536;
  // ---- others
  // Bytes. Distance of prefetches of copies with non-temporal stores.
  int copy_ahead = 4096;
  // Bytes of a row of pixels that are packed at a time.
  int pixel_piece = 128;
  // Bytes. Distance of prefetches of pixels.
  int pixel_ahead = 512;
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
