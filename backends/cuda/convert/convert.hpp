// convert.hpp - what convert's kernels are told, made by convert.cpp, and their launches, one file a type of src.
#pragma once

#include "../device/queue.hpp"
#include "../kernel/divide.hpp"

namespace lockstep::cuda {

struct convert_axis {
  divider count;
  uint32_t src, dst;  // elements
};

// Where src or dst has integers or BOOL: what elements are between them (integers.cuh). same: what they were.
enum class convert_form : uint8_t { same, floats, doubles, integers };
struct any_type_plan {
  double scale;
  uint8_t dtype, result;
  convert_form form;
};

// What all kernels share: pointers, the factor, and axes that are walked by their index, dst's fastest first.
struct convert_walk {
  const void* src;
  void* dst;
  double scale;
  any_type_plan types;
  int function;  // a lockstep_function; -1: none
  bool gated;
  int64_t times;  // elements from one of src to that of `times`, if gated
  int axes;
  convert_axis axis[LOCKSTEP_MAX_RANK];
};

constexpr int convert_quad = 4;  // neighbouring elements that a thread moves at once
// Bytes of a tile's rows, of src's and of dst's, by those of an element.
constexpr int convert_row(int64_t bytes) { return bytes == 1 ? 128 : 256; }
// Bytes of a row of dst that are written at once.
constexpr int convert_piece(int64_t bytes) { return bytes < 4 ? convert_quad * static_cast<int>(bytes) : 16; }

// src runs along j, dst along i; the axes are matrices.
struct convert_tiles {
  convert_walk walk;
  uint32_t rows, cols, src_ld, dst_ld;  // dst's contiguous axis, src's
  uint32_t tall;                        // rows of src from a tile to the next
  // Bands of so many tile rows are walked down, then across.
  uint32_t tiles_i, group;
  divider by_matrix, by_band, by_group, by_last_group;
  bool whole_src, whole_dst;  // by whole quads
  uint32_t grid;
};

// Both run along one axis, of `length` elements; the axes are runs.
struct convert_runs {
  convert_walk walk;
  uint32_t length;
  bool whole;      // by pieces, which are aligned on both sides, the last of a run may be short; else by elements
  divider by_run;  // pieces or elements of a run
  uint32_t items, grid;
};

// One side has few rows or columns, without gaps: `few` of them. Apart: src's rows hold them, and each goes to a row of
// dst; else each comes from a row of src, and dst's rows hold them. A block takes `share` of the long side.
struct convert_narrow {
  convert_walk walk;
  bool apart;
  uint32_t few, length, share, long_ld;  // elements; the long side's rows are long_ld apart
  divider by_few, by_share, by_matrix;   // by_share: quads of a share; by_matrix: blocks
  bool whole_src, whole_dst;
  uint32_t grid;
};

// An element at a time.
struct convert_elements {
  convert_walk walk;
  uint32_t elements, grid;
};

constexpr int run_threads = 256, run_pieces = 4, element_threads = 256, element_steps = 4;
// Neighbouring elements of a run that a thread moves at once: at most 16 bytes of a side, so that neighbouring threads
// read and write whole sectors together.
constexpr int run_piece(int64_t from, int64_t to) { return from == 8 || to == 8 ? convert_quad / 2 : convert_quad; }
// Elements of a narrow block at most, and where there are few of them; behind each row of the shared tile, so that rows
// begin in different banks.
constexpr int narrow_threads = 256, narrow_block = 4096, narrow_least = narrow_threads * convert_quad, narrow_gap = 4;
constexpr int most_few = 32;

// A function of 16-bit floats by a table of its 65,536 values.
constexpr int table_bytes = 65536 * 2, look_up_threads = 1024, look_up_chunks = 4;
// Elements from which the table pays: it takes about as long as so many elements by the program.
constexpr int64_t least_looked_up = int64_t{1} << 23;

// A function of BF16 times a second array, by a table of doubles.
constexpr int unit_table_bytes = 2 * 2816 * 8, unit_threads = 512, unit_blocks = 2, unit_chunks = 2;
constexpr int64_t least_units = int64_t{1} << 22;  // elements from which the table pays

// A function of F32 as F32 by a kernel of its own.
constexpr int one_function_threads = 256, one_function_quads = 2;

// One of them.
struct convert_job {
  const convert_tiles* tiles = nullptr;
  const convert_runs* runs = nullptr;
  const convert_narrow* narrow = nullptr;
  const convert_elements* elements = nullptr;
};

lockstep_status convert_from_f16(lockstep_queue& queue, const convert_job& job, lockstep_dtype result);
lockstep_status convert_from_bf16(lockstep_queue& queue, const convert_job& job, lockstep_dtype result);
lockstep_status convert_from_f32(lockstep_queue& queue, const convert_job& job, lockstep_dtype result);
lockstep_status convert_from_f64(lockstep_queue& queue, const convert_job& job, lockstep_dtype result);
// elements: contiguous on both sides, at multiples of 16 bytes.
lockstep_status map_by_its_kernel(lockstep_queue& queue, int function, const void* src, void* dst, uint32_t elements);
// As there. table: table_bytes, at a multiple of 16.
lockstep_status convert_by_table(lockstep_queue& queue, const convert_walk& walk, lockstep_dtype dtype,
                                 lockstep_dtype result, void* table, uint32_t elements);
// chunks: of eight elements. table: unit_table_bytes.
lockstep_status gated_by_table(lockstep_queue& queue, const convert_walk& walk, const void* times,
                               lockstep_dtype result, void* table, uint32_t chunks);
lockstep_status convert_integers(lockstep_queue& queue, const convert_job& job, int64_t from_bytes, int64_t to_bytes);

}  // namespace lockstep::cuda
