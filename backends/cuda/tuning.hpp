// tuning.hpp - the numbers that a chip decides. No number here can change a result: tests run every row. `tuning` is
// looked at while a call runs: a row a chip, sizes asked from the device. What follows it is compiled into kernels. How
// the numbers were found, on an H200 unless said otherwise: tests/results/tries.md.
#pragma once

#include <cstdint>

namespace lockstep::cuda {

struct device_facts;

// ---- looked at while a call runs -----------------------------------------------------
// What a row is made for: asked from the device.
struct chip {
  int64_t processors = 0;  // SMs
  int64_t l2 = 0;          // bytes
};

struct reduction_tuning {
  chip has;
  // Bytes. Larger arrays are read past the L1, because the L2 would not keep them for the next reader.
  int64_t stream_bytes = has.l2 / 2;
  // Elements. Least total for the kernels for many short rows; below, their start costs more than they save.
  int64_t rows_from = 1 << 18;
  // Whether rows may be staged in shared memory by the copy engine (sm_90 and later).
  bool copy_engine = false;
  // Bytes. Longest staged row with its gap: two tiles of 8 such rows fit shared memory.
  int64_t staged_row = 1792;
  // Rows per gap. Rows are staged if the gap between two is at most this part of a row: gaps are copied too.
  int64_t staged_gap = 8;
  // Bytes. Size of a staged tile, about.
  int64_t staged_tile = 8192;
  // Rows. Most rows of a staged tile.
  int64_t staged_rows = 64;
  // Tiles per SM. A tile is not enlarged if fewer than this would remain.
  int64_t staged_tiles = 32;
  // Tiles per warp. Up to this many, each warp gets its whole share of the tiles at once.
  int64_t staged_rounds = 16;
  // Tiles. Beyond staged_rounds a warp takes this many at a time, so that all warps read near one another in DRAM.
  int64_t staged_run = 4;
  // Columns. Fewer are left to other kernels than the one for columns.
  int64_t few_columns = 4;
  // Columns per SM. Fewer columns are too few for one thread per column.
  int64_t short_columns = 256;
  // Elements. Columns up to this length always get one thread each.
  int64_t shortest_column = 16;
  // Segments per SM. From this many on, a warp stages 32 segments in shared memory.
  int64_t staged_segments = 24 * 32 * 2;
  // Blocks per SM for the segments that are too long for one warp.
  int64_t listed_blocks = 3;
  // Bytes. Larger arrays of rows of whole leaves use one thread per lane even if 16-byte loads fit them.
  int64_t lane_rows_from = 2 * has.l2;
  // Elements. Longer rows of less than a leaf use one thread per lane.
  int64_t lane_row = 1536;
  // Elements. Least row length for one thread per lane if all rows fit on the chip at once.
  int64_t lane_row_of_few = 449;
  // Elements. Least row length for one warp per row, 8-byte elements.
  int64_t warp_row_of_8 = 400;
  // Elements. Least row length for one warp per row, 2-byte elements.
  int64_t warp_row_of_2 = 1025;
  // Rows per SM. Extremes of up to this many rows use one warp per row.
  int64_t few_rows = 16;
  // Leaves. Longest row for one warp per row if 16-byte loads do not fit it.
  int64_t warp_leaves = 6;
  // Rows per SM. Least number of such rows.
  int64_t warp_rows = 10;
  // Elements. Longer rows of floats are faster two per warp than staged.
  int64_t pair_row = 288;
  // Bytes. For 2-byte elements the same holds only in arrays smaller than this.
  int64_t pair_bytes = 2 << 20;
  // Leaves. Least total for the kernel with more loads in flight if several blocks share a row.
  int64_t stream_leaves = 4096;
  // Leaves per SM. The same if each block has whole rows.
  int64_t stream_leaves_a_processor = 32;
  // Bytes. In arrays up to this size several long rows use that kernel too.
  int64_t stream_small = has.l2 / 6;
  // Tasks per SM. Above this many, a dedicated block joins the partial results.
  int64_t apart_tasks = 8;
  // Grids. So many may each have a dedicated block at once; the chip must have room for more than that.
  int64_t apart_grids = 128;
};

// Permutations by small tiles. Estimates are in microseconds of a chip with measured_processors, per block, byte and so
// on; how well they fit is in tries.md.
constexpr int measured_processors = 132;
struct tile_tuning {
  // Elements. Tile widths along rows of src that are tried.
  int along_src[9] = {4, 8, 16, 32, 48, 64, 128, 256, 512};
  // Elements. Tile widths along rows of dst that are tried.
  int along_dst[10] = {4, 8, 16, 32, 64, 96, 128, 256, 512, 1024};
  // Bytes. Largest tile, so that several blocks share an SM.
  int64_t tile = 20000;
  // Microseconds per launch.
  double launch = 1.18;
  // Microseconds per block.
  double block = 0.072;
  // Microseconds per round of loads of a block.
  double load = 0.0073;
  // Microseconds per round of stores of a block.
  double store = 0.0069;
  // Factor of a store of a word that is put together from 2 elements.
  double pairs = 1.3;
  // Factor of a store of a word that is put together from 4 elements.
  double quads = 2;
  // Microseconds per million bytes of sectors read.
  double read = 0.056;
  // Microseconds per million bytes of sectors written.
  double written = 0.227;
  // Bytes of src and dst together that the L2 holds.
  double l2_bytes = 30e6;
  // Microseconds per byte beyond l2_bytes.
  double dram_byte = 0.147e-6;
  // Factor of a byte beyond l2_bytes if only a part of its sector is used.
  double dram_part = 4;
  // Part of the time that runs much shorter than a line add.
  double short_runs = 0.2;
  // Factor of single elements of 1 or 2 bytes in runs shorter than a sector.
  double narrow = 2;
  // Factor of a block with 16 rounds.
  double most_rounds = 1.05;
};
// By a gather: a launch, the lines of src that a warp meets, a warp, more axes than 3, a byte.
struct gather_tuning {
  // Threads. Smallest block.
  uint32_t least_threads = 64;
  // Microseconds per launch.
  double launch = 1;
  // Microseconds per line of src that one warp reads: latency.
  double line = 0.012;
  // Microseconds per warp of an SM.
  double warp = 0.0063;
  // Microseconds per warp of an SM if there are more than 3 axes.
  double axes = 0.001;
  // Microseconds per warp of an SM and line of src that it reads.
  double warp_line = 0.00013;
  // Microseconds per byte.
  double byte = 0.2e-6;
  // Bytes of src and dst together that the L2 holds.
  double l2_bytes = 30e6;
  // Microseconds per byte beyond l2_bytes.
  double dram_byte = 0.24e-6;
};

struct move_tuning {
  chip has;
  tile_tuning tiles{};
  gather_tuning gathers{};
  // Whether kernels can tell the L2 which lines to keep (sm_80 and later; kernel/cache.cuh).
  bool keeps_reads = false;
  // Bytes of an array. Larger ones are read so that the L2 keeps their lines; below, that costs time.
  int64_t kept_from = has.l2 * 2 / 3;
  // Bytes. So much may still be kept when a kernel ends.
  int64_t kept_at_end = has.l2 / 3;
  // Bytes. Least array for which pixels of few channels are moved as whole words.
  int64_t pixels_from = 1 << 18;
  // Bytes. Larger arrays are permuted in registers; below, tiles are faster.
  int64_t registers_from = 1 << 20;
  // Factor. Wide tiles with more padding than this are slower than registers.
  double registers_padding = 1.5;
  // Factor. Most padding of wide tiles if the arrays are in DRAM.
  double wide_padding = 1.1;
  // Factor. Most padding of wide tiles if the arrays are in the L2.
  double wide_padding_in_l2 = 1.35;
  // Microseconds per launch of wide tiles in the L2.
  double wide_launch = 1.1;
  // Microseconds per byte of wide tiles in the L2.
  double wide_byte = 0.36e-6;
};

struct scan_tuning {
  // Leaves per SM. Up to here one block per leaf; with more, one warp per leaf. Of 8-byte elements always a block.
  int64_t leaves_of_blocks = 8;
  // Elements. Least total for which sequences with gaps are permuted to rows and back.
  int64_t permuted_from = 1 << 14;
  // Bytes of one row of side-by-side sequences. From here on one thread per sequence has enough loads in flight.
  int64_t columns_from = 1 << 15;
  // Elements. Sequences up to this length use one thread each in any number.
  int64_t columns_short = 128;
  // Elements. The same limit below permuted_from elements in all.
  int64_t columns_at_once = 32;
};

struct stencil_tuning {
  // ---- planes: whole planes in shared memory
  // Bytes of a tile that leave room for six per SM.
  int64_t planes_tile = 36 << 10;
  // Bytes of a tile that leave room for two per SM.
  int64_t planes_large_tile = 108 << 10;
  // Tiles per SM that there should be.
  int64_t planes_tiles = 4;
  // Elements. Longest row of rank 1, 4-byte elements.
  int64_t planes_row_of_4 = 900;
  // Elements. Longest row of rank 1, 8-byte elements.
  int64_t planes_row_of_8 = 1500;
  // Rows. Least batch of rows of rank 1.
  int64_t planes_rows = 8;
  // Part. Planes that fill more than this part of the other kernels' tiles are left to those.
  double planes_fill = 0.6;
  // ---- streamed: planes through shared memory
  // Elements. Least x that fills enough of a tile.
  int64_t streamed_x = 32;
  // Elements. Least y that fills enough of a tile.
  int64_t streamed_y = 8;
  // Chunks. Most along the streamed axis.
  int64_t streamed_chunks = 256;
  // Planes of work that reading one plane of the halo again costs.
  double streamed_halo = 1.2;
  // ---- sweeps_registers: many sweeps of a line
  // Sweeps. Most per pass.
  int32_t registers_depth = 32;
  // Fused multiply-adds that moving one element in and out costs.
  double registers_copy = 64;
  // Fused multiply-adds per element that the shuffles of a sweep cost.
  double registers_shuffles = 1.5;
  // Lines. More lines than this are left to other rows if they are short (registers_reaches).
  int64_t registers_lines = 256;
  // Times the elements that a pass takes from a neighbour: shorter lines count as short.
  int64_t registers_reaches = 8;
  // Elements. Several shorter lines are left to other rows if their ends do not fold.
  int64_t registers_line = 256;
  // ---- sweeps_streamed: many sweeps of a plane
  // Sweeps. Most per pass.
  int32_t swept_depth = 8;
  // Fused multiply-adds that moving one element in and out costs.
  double swept_copy = 57;
  // Fused multiply-adds per element that the shuffles of a sweep cost.
  double swept_shuffles = 1.5;
  // Elements. Least x and least y.
  int64_t swept_side = 64;
  // Elements. Least x of planes with many elements, where a narrow plane wastes most of a strip.
  int64_t swept_x = 256;
  // Elements. Larger planes count as ones with many elements.
  int64_t swept_many = 1 << 18;
  // Chunks of rows. Most.
  int64_t swept_chunks = 256;
  // ---- sweeps_planes: several sweeps of a cube
  // Elements. Least of a cube: smaller ones lie in the L2, where single sweeps are faster.
  int64_t stacked_least = 3 << 20;
  // Elements. Least of a cube of 4-byte elements in rows of no whole 16 bytes, which are copied one by one.
  int64_t stacked_ragged = 32 << 20;
  // Times the results that tiles compute. Most: tiles of a narrow cube are mostly empty.
  double stacked_waste = 2.5;
  // ---- direct: a few outputs of a row per thread, each tap from memory
  // Outputs of lines per SM. With more, another row is faster.
  double direct_line = 14000;
  // Outputs of cubes per SM. With more, another row is faster.
  double direct_cube = 800;
  // Taps and outputs of planes per SM (see direct_output). With more, another row is faster.
  double direct_plane = 200000;
  // Taps that one output of a plane counts as.
  double direct_output = 8;
  // Factor of the limits of lines and planes for packs of four outputs, and for rows that are not whole 16 bytes.
  double direct_further = 2.25;
  // ---- a cube streamed through shared memory: estimate
  // Microseconds for its start.
  double streamed_start = 8;
  // Microseconds per million elements that its tiles have room for.
  double streamed_million = 0.7;
  // Microseconds per million elements and unit of radius.
  double streamed_radius = 0.7;
  // Factor for rows that are not whole 16 bytes.
  double streamed_ragged = 1.6;
  // ---- marched: threads walk along the outermost axis: estimate
  // Microseconds for its start.
  double marched_start = 2.7;
  // Microseconds per million outputs.
  double marched_million = 1.3;
  // Microseconds per million outputs and unit of radius.
  double marched_radius = 1.4;
  // Factor for 8-byte elements.
  double marched_of_8 = 1.55;
  // Planes of work that one plane at the ends of a walk costs.
  double marched_ends = 0.3;
};

// Normalized rows, two lanes per thread.
struct normalize_tuning {
  // Threads per SM of a call. Up to this many, two lanes per thread are faster than one warp per leaf.
  int64_t pair_threads = 512;
  // Elements. Longer rows that 16-byte loads do not fit use two lanes per thread in any number.
  int64_t pair_row = 512;
  // Rows per SM. Up to this many, a row of one leaf has a block of its own; of more, four share one.
  int64_t lone_rows = 16;
};

struct tuning {
  const char* name = "";
  chip has{};
  reduction_tuning reductions{has};
  move_tuning moves{has};
  scan_tuning scans{};
  stencil_tuning stencils{};
  normalize_tuning normalizations{};
};

// The row for this device.
tuning tuning_for(const device_facts& facts);

// ---- compiled into kernels -------------------------------------------------------------
// ---- reductions
// Threads per block.
constexpr int block_threads = 256;
// Leaves. Largest subtree of a block, whose leaf values wait in shared memory.
constexpr int most_leaves = 256;
// Bytes per thread in flight with one warp per leaf; fastest up to 4 Mi elements.
constexpr int ahead_bytes = 32;
// Blocks per SM for ahead_bytes.
constexpr int leaf_blocks = 4;
// Bytes per thread in flight in larger arrays.
constexpr int stream_ahead_bytes = 64;
// Blocks per SM for stream_ahead_bytes.
constexpr int stream_blocks = 2;
// Leaves. Longest row with one thread per lane.
constexpr int most_lane_leaves = 8;
// Tiles of a warp in shared memory; more gain nothing, because the copy engine is faster than the sums.
constexpr int row_stages = 2;
// Warps per block that stages rows.
constexpr int staged_warps = 4;
// Threads per block if threads share rows; 512 lose 4 %.
constexpr int split_threads = 128;
// Loads in flight per thread if threads share rows; 16 need twice the registers and gain nothing.
constexpr int split_batches = 8;
// Bytes of segments that a warp stages.
constexpr int staged_bytes = 4096;
// Elements. Longest segment that 8 threads sum.
constexpr int short_segment = 32;
// Elements. Longest segment of which a warp sums four at once.
constexpr int joined_segment = 512;
// Leaves. Longest segment that one warp sums; longer ones are listed and divided.
constexpr int short_leaves = 16;
// Partial results of listed segments that there is room for.
constexpr unsigned most_slots = 32768;
// Listed segments that there is room for.
constexpr unsigned most_listed = 1024;
// Blocks per SM of short rows and of columns. These launch bounds keep a row's loads together: without one, ptxas saves
// registers by putting each load next to its use, so that their latencies add up.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int packed_blocks = 4;  // sm_75 holds 1,024 threads
constexpr int most_column_blocks = 4;
#else
constexpr int packed_blocks = 5;
constexpr int most_column_blocks = 5;
#endif

// ---- tiles that are moved
// Percent of an SM's memory for tiles; the rest is left to the L1, where loads wait.
constexpr int part_for_tiles = 43;
// Bytes of exact tiles in an SM at once; more and fewer are slower.
constexpr int64_t bytes_under_way = 64 << 10;
// Bytes of shared memory. With less, an SM gets as many tiles as fit.
constexpr int64_t large_memory = 160 << 10;
// Wide tiles: bytes along src's columns and along its rows, threads of a block. What a wasted byte costs beside the
// best shape; odd: where dst is not aligned to 16 bytes. Narrow shapes cost more where a wider one would do.
struct wide_shape {
  int tall, broad, threads;
  bool across;  // neighbouring tiles share rows of src, else of dst
  double weight, odd_weight;
};
constexpr int wide_shape_count = 6;
template <int bytes>
constexpr wide_shape wide_shapes[wide_shape_count] = {
    {256, 256, 256, false, 1.0, 1.0},
    {512, 128, 256, false, 1.025, 0.97},
    {256, 128, 128, false, 1.03, 1.03},
    {128, 128, 64, false, 1.05, 1.15},
    {bytes == 4 ? 1024 : 512, 32, bytes == 4 ? 128 : 64, true, 1.24, 1.24},
    {32, 1024, 128, false, 1.2, 1.2},
};
template <>
constexpr wide_shape wide_shapes<1>[wide_shape_count] = {
    {128, 256, 128, false, 1.0, 1.4}, {256, 128, 128, false, 1.03, 1.0}, {128, 128, 64, false, 1.03, 1.4},
    {256, 64, 64, false, 1.2, 1.1},   {512, 32, 64, true, 1.25, 1.25},   {32, 1024, 128, false, 1.2, 1.4},
};
template <>
constexpr wide_shape wide_shapes<8>[wide_shape_count] = {
    {256, 256, 256, false, 1.0, 1.0},  {512, 128, 256, false, 1.04, 1.2}, {256, 128, 128, false, 1.03, 1.03},
    {128, 128, 64, false, 1.05, 1.15}, {1024, 32, 128, true, 1.25, 1.25}, {64, 512, 128, false, 1.2, 1.2},
};
template <>
constexpr wide_shape wide_shapes<16>[wide_shape_count] = {
    {512, 256, 256, false, 1.0, 1.0}, {256, 256, 256, false, 1.1, 1.1}, {512, 128, 256, false, 1.1, 1.1},
    {128, 128, 64, false, 1.1, 1.1},  {512, 32, 64, true, 1.25, 1.25},  {128, 256, 128, false, 1.1, 1.1},
};
// Bytes of a tile in a row of dst, for matrices whose rows of src are 32 bytes.
constexpr int thin_run = 256;
// Warps per block for such matrices.
constexpr int thin_warps = 8;
// Threads. Largest block of small tiles and of the gather.
constexpr int move_threads = 256;
// Elements per thread of the gather.
constexpr int gather_rounds = 2;
// Bytes. Most elements that lie together on both sides and move as one block of a small tile.
constexpr int64_t together_bytes = 2048;
// Threads per block of permutes by registers.
constexpr int register_threads = 128;
// Words. Most per thread of permutes by registers.
constexpr int register_words = 64;
// 16-byte chunks. Longest row of permutes by registers.
constexpr int register_chunks = 4;
// Bytes that a block should read in one place: a line.
constexpr int64_t register_near = 128;
// Planes per thread of a stencil in whole planes.
constexpr int planes_together = 8;
// Blocks per SM. Up to this many, programmatic dependent launch is used.
constexpr int early_blocks = 16;
// Threads per block of shuffles.
constexpr int shuffle_threads = 128;
// Groups of 32 elements in flight per warp of shuffles; fewer and more are slower.
constexpr int shuffle_groups = 4;

// ---- copies to and from the host
// Slabs in flight of a one-way copy.
constexpr int64_t copy_slots = 3;
// Bytes of a slab of a one-way copy.
constexpr int64_t copy_chunk = 8 << 20;
// Bytes. Least array of pageable memory that several threads copy.
constexpr int64_t crew_from = 4 << 20;
// Bytes. Least block that those threads share.
constexpr int64_t crew_block_from = 256 << 10;
// Bytes. Least row that the copy engine sends fast enough; shorter rows are copied by a kernel.
constexpr int64_t engine_row = 8192;
// Blocks of that kernel; more slow down an upload.
constexpr int row_blocks = 8;
// Threads per block of that kernel.
constexpr int row_threads = 256;
// Loads in flight per thread of that kernel.
constexpr int row_ahead = 4;
// Times that a blocking call looks for the end of its work before it waits in the driver (tens of microseconds).
constexpr int finish_looks = 1 << 16;
// Looks after which it also asks the driver for errors.
constexpr int finish_asks = 1 << 12;

}  // namespace lockstep::cuda
