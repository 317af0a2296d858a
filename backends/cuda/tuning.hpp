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
  int64_t processors = 0;  // multiprocessors
  int64_t l2 = 0;          // bytes
};

struct reduction_tuning {
  chip has;
  // Bytes of an array beyond which its next reader would not find it in the L2: it is read past the L1.
  int64_t stream_bytes = has.l2 / 2;
  // Kernels for many short rows: elements in all from which they pay for their start.
  int64_t rows_from = 1 << 18;
  // Rows staged by the copy engine, which chips have from sm_90 on. Of a row with its gap, in bytes: of longer ones two
  // tiles of 8 do not fit. Elements left out between rows are copied too: a row to a gap, at least.
  bool copy_engine = false;
  int64_t staged_row = 1792, staged_gap = 8;
  // Of a tile: bytes, rows at most, tiles a processor that there must be. Rows that fit into so many rounds of all
  // tiles are dealt out once; of more a warp takes a few tiles, as warps drift apart and DRAM likes one window.
  int64_t staged_tile = 8192, staged_rows = 64, staged_tiles = 32, staged_rounds = 16, staged_run = 4;
  int64_t few_columns = 4;
  // Short columns, a thread each: so many a processor, but for the shortest.
  int64_t short_columns = 256, shortest_column = 16;
  // Segments staged in shared memory, 32 a warp: so many a processor, twice as many warps as are at work. Fewer warps
  // are slower for long segments. Blocks a processor for the long ones.
  int64_t staged_segments = 24 * 32 * 2, listed_blocks = 3;
  // Rows with a thread a lane: bytes of those that 16-byte loads fit, too.
  int64_t lane_rows_from = 2 * has.l2;
  // And those nearly a leaf long, from so many elements, or from fewer where rows are few.
  int64_t lane_row = 1536, lane_row_of_few = 449;
  // Elements from which a row of 8 and of 2 bytes each is a warp's; so are extremes of as few rows a processor as this,
  // and rows of few leaves that 16-byte loads do not fit, where there are so many a processor.
  int64_t warp_row_of_8 = 400, warp_row_of_2 = 1025, few_rows = 16, warp_leaves = 6, warp_rows = 10;
  // Elements of a staged row from which two rows a warp are faster; of 2-byte elements in arrays below so many bytes.
  int64_t pair_row = 288, pair_bytes = 2 << 20;
  // More loads in flight: leaves that blocks share, leaves a processor where each block has whole rows.
  int64_t stream_leaves = 4096, stream_leaves_a_processor = 32;
  // Bytes of an array up to which several long rows gain by them too.
  int64_t stream_small = has.l2 / 6;
  // Tasks a processor from which a block without a task joins the others', and the grids that may each have such a
  // block at once: two fit a processor, and one must be left for work.
  int64_t apart_tasks = 8, apart_grids = 128;
};

// Permutations by small tiles. Estimates are in microseconds of a chip with measured_processors, per block, byte and so
// on; how well they fit is in tries.md.
constexpr int measured_processors = 132;
struct tile_tuning {
  // Elements that are tried along src's rows and along dst's; bytes of a tile at most, so that several blocks share a
  // processor.
  int along_src[9] = {4, 8, 16, 32, 48, 64, 128, 256, 512};
  int along_dst[10] = {4, 8, 16, 32, 64, 96, 128, 256, 512, 1024};
  int64_t tile = 20000;
  // The launch; a block, and each of its rounds of loads and stores; stores of words that are put together from 2 and
  // from 4 elements.
  double launch = 1.18, block = 0.072, load = 0.0073, store = 0.0069, pairs = 1.3, quads = 2;
  // A million bytes of sectors read and written. A byte beyond what the L2 holds of both arrays, and how many times a
  // part of a sector costs there.
  double read = 0.056, written = 0.227, l2_bytes = 30e6, dram_byte = 0.147e-6, dram_part = 4;
  // Factors: runs much shorter than a line, single narrow elements that many warps write into one sector, 16 rounds.
  double short_runs = 0.2, narrow = 2, most_rounds = 1.05;
};
// By a gather: a launch, the lines of src that a warp meets, a warp, more axes than 3, a byte.
struct gather_tuning {
  uint32_t least_threads = 64;
  double launch = 1, line = 0.012, warp = 0.0063, axes = 0.001, warp_line = 0.00013, byte = 0.2e-6;
  double l2_bytes = 30e6, dram_byte = 0.24e-6;
};

struct move_tuning {
  chip has;
  tile_tuning tiles{};
  gather_tuning gathers{};
  // Bytes of an array, each way, from which it is read so that the L2 keeps its lines (kernel/cache.cuh), where the
  // chip can; below, keeping costs time. Bytes that may still be kept when a kernel ends.
  bool keeps_reads = false;
  int64_t kept_from = has.l2 * 2 / 3, kept_at_end = has.l2 / 3;
  // Pixels of few channels: bytes of an array from which whole words pay.
  int64_t pixels_from = 1 << 18;
  // Permutes by registers: bytes of an array, below which a launch is most of it and tiles are faster, and the padding
  // of wide tiles beyond which registers are.
  int64_t registers_from = 1 << 20;
  double registers_padding = 1.5;
  // Wide tiles: their padding at most, in DRAM and in the L2; in the L2 a launch and a byte, in microseconds as above.
  double wide_padding = 1.1, wide_padding_in_l2 = 1.35, wide_launch = 1.1, wide_byte = 0.36e-6;
};

struct scan_tuning {
  // Elements from which sequences whose elements lie apart pay for their way to rows and back.
  int64_t permuted_from = 1 << 14;
  // Sequences side by side, a thread each: bytes of the elements at one index from which there are loads enough in
  // flight; elements of a sequence up to which fewer do, and of those that have not enough elements in all for a way to
  // rows.
  int64_t columns_from = 1 << 15, columns_short = 128, columns_at_once = 32;
};

struct stencil_tuning {
  // Whole planes in shared memory: bytes of a tile that leave room for six a multiprocessor, and for two; tiles a
  // multiprocessor that there should be.
  int64_t planes_tile = 36 << 10, planes_large_tile = 108 << 10, planes_tiles = 4;
  // They take rows of rank 1 up to so many elements of 4 and 8 bytes, so many of them at least, and planes that fill
  // less than this part of the other kernels' tiles.
  int64_t planes_row_of_4 = 900, planes_row_of_8 = 1500, planes_rows = 8;
  double planes_fill = 0.6;
  // Streamed planes: the least x and y that fill enough of a tile; chunks along the streamed axis at most; what reading
  // a plane of the halo again costs beside a plane's work.
  int64_t streamed_x = 32, streamed_y = 8, streamed_chunks = 256;
  double streamed_halo = 1.2;
  // Many sweeps of a line in registers: sweeps of a pass at most; what an element's way in and out, and a sweep's
  // shuffles, cost beside one fused multiply-add of each element.
  int32_t registers_depth = 32;
  double registers_copy = 64, registers_shuffles = 1.5;
  // Lines that are little but ends are left to the other rows: so many of them, of so many times the elements that a
  // pass takes from a neighbour; where lines have no ends that fold, of fewer elements than this.
  int64_t registers_lines = 256, registers_reaches = 8, registers_line = 256;
  // Many sweeps of a plane, streamed: likewise. The least x and y, and the least x of planes of many elements, where
  // narrow ones waste most of a strip; chunks of rows at most.
  int32_t swept_depth = 8;
  double swept_copy = 57, swept_shuffles = 1.5;
  int64_t swept_side = 64, swept_x = 256, swept_many = 1 << 18, swept_chunks = 256;
  // Several sweeps of a cube: of a pass at most; the least side for elements of 8 bytes. Elements of 4 bytes gain
  // nothing.
  int32_t stacked_depth = 3;
  int64_t stacked_side_of_8 = 512;
  // An output a thread, each tap from memory: what a multiprocessor may have of a line's and of a cube's outputs, and
  // of a plane's taps, where an output counts as so many more, until another row is faster; of rows that are not whole
  // 16 bytes so many times as many.
  double direct_line = 14000, direct_cube = 800, direct_plane = 200000, direct_output = 8, direct_ragged = 2.25;
  // A cube streamed through shared memory, in microseconds: its start; a million elements that its tiles have room for,
  // and those for each of the radius; of rows that are not whole 16 bytes so many times as much.
  double streamed_start = 8, streamed_million = 0.7, streamed_radius = 0.7, streamed_ragged = 1.6;
  // Walks along the outermost axis, likewise; for elements of 8 bytes so many times as much; and what a plane at a
  // walk's ends costs beside one within.
  double marched_start = 2.7, marched_million = 1.3, marched_radius = 1.4, marched_of_8 = 1.55, marched_ends = 0.3;
};

// Normalized rows with two lanes a thread: threads a processor of a call up to which they are faster than a warp a
// leaf, as many as it holds at once; rows from which they are at any number where quads do not fit; rows a processor up
// to which each has its own block.
struct normalize_tuning {
  int64_t pair_threads = 512;
  int64_t pair_row = 512;
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
// Reductions. Threads of a block, and leaves of a block's subtree, whose values wait in shared memory.
constexpr int block_threads = 256, most_leaves = 256;
// A warp a leaf: bytes of a row of lanes that each thread has in flight, and blocks a multiprocessor. The first pair is
// the fastest up to 4 Mi elements, the second (streams) beyond.
constexpr int ahead_bytes = 32, leaf_blocks = 4, stream_ahead_bytes = 64, stream_blocks = 2;
constexpr int most_lane_leaves = 8;  // of a row with a thread a lane
// Rows staged in shared memory: tiles of a warp (3 and 4 gain nothing: the engine is ahead of the folding), warps of a
// block.
constexpr int row_stages = 2, staged_warps = 4;
// Rows split among threads: of a block (512 lose 4 %), loads of each (16 need twice the registers and gain nothing).
constexpr int split_threads = 128, split_batches = 8;
// Segments: bytes that a warp stages; elements up to which one is 8 threads' and up to which four are joined; leaves up
// to which one is a warp's, and room for the partial results of longer ones.
constexpr int staged_bytes = 4096, short_segment = 32, joined_segment = 512, short_leaves = 16;
constexpr unsigned most_slots = 32768, most_listed = 1024;
// Blocks a multiprocessor of short rows and of columns. A launch bound keeps a row's loads together: without one ptxas
// saves registers by putting each load next to its use, so that their latencies add up.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int packed_blocks = 4, most_column_blocks = 4;  // sm_75 holds 1,024 threads
#else
constexpr int packed_blocks = 5, most_column_blocks = 5;
#endif

// Tiles that are moved. Blocks share a part of a multiprocessor's memory (percent of what they may have) that leaves
// the rest to the L1, where loads wait; of exact tiles no more bytes than these are under way in it. More are slower,
// and so are fewer for tiles read by elements. Where memory is small, as many as it holds.
constexpr int part_for_tiles = 43;
constexpr int64_t bytes_under_way = 64 << 10, large_memory = 160 << 10;
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
    {bytes == 4 ? 256 : 512, 32, bytes == 4 ? 32 : 64, true, 1.24, 1.24},
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
    {128, 128, 64, false, 1.05, 1.15}, {512, 32, 64, true, 1.25, 1.25},   {64, 512, 128, false, 1.2, 1.2},
};
template <>
constexpr wide_shape wide_shapes<16>[wide_shape_count] = {
    {512, 256, 256, false, 1.0, 1.0}, {256, 256, 256, false, 1.1, 1.1}, {512, 128, 256, false, 1.1, 1.1},
    {128, 128, 64, false, 1.1, 1.1},  {512, 32, 64, true, 1.25, 1.25},  {128, 256, 128, false, 1.1, 1.1},
};
// Matrices whose rows of src are 32 bytes: bytes of a tile in a row of dst, warps of a block.
constexpr int thin_run = 256, thin_warps = 8;
// Small tiles and the gather: threads of a block at most, elements of a thread; bytes that may stay together.
constexpr int move_threads = 256, gather_rounds = 2;
constexpr int64_t together_bytes = 2048;
// Permutes by registers: threads of a block; words of a thread and 16-byte chunks of a row at most; bytes that a block
// should read in one place, a line.
constexpr int register_threads = 128, register_words = 64, register_chunks = 4;
constexpr int64_t register_near = 128;
constexpr int planes_together = 8;  // of a stencil's thread
// Blocks a multiprocessor up to which a kernel starts before the one before has ended.
constexpr int early_blocks = 16;
// Shuffles: threads of a block, groups of 32 in flight a warp; fewer and more are slower.
constexpr int shuffle_threads = 128, shuffle_groups = 4;

// Copies to and from the host. Slabs in flight and bytes of a one-way copy; bytes from which several threads copy
// pageable memory, and from which they share a block. Bytes of a row from which the copy engine sends rows fast enough;
// below, blocks of warps do, each thread with so many loads in flight: more blocks slow down an upload.
constexpr int64_t copy_slots = 3, copy_chunk = 8 << 20, crew_from = 4 << 20, crew_block_from = 256 << 10;
constexpr int64_t engine_row = 8192;
constexpr int row_blocks = 8, row_threads = 256, row_ahead = 4;
// How often a blocking call looks for the end of its work before it waits in the driver, some tens of microseconds, and
// after how many looks it asks there for errors.
constexpr int finish_looks = 1 << 16, finish_asks = 1 << 12;

}  // namespace lockstep::cuda
