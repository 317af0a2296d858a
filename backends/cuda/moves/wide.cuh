// wide.cuh - the kernel behind wide.hpp.
//
// Idea    A thread takes a square unit of V x V elements (V * element_bytes = 16):
//         V loads of 16 bytes along src's rows, a transposition in registers
//         (renaming for 4 bytes and up, byte permutes below), V stores of 16 bytes
//         into a shared tile that already has dst's layout; after the barrier the
//         tile leaves by rows of dst, again 16 bytes per lane.
// Moves   every element once in, once out; no arithmetic.
// Limit   DRAM; the ceiling is a device-to-device copy of the same bytes.
// Watch   The chunk index is XORed with the unit's column (& 7): without it the 8
//         lanes that store one shared-memory wavefront hit one 16-byte bank group
//         (8-way conflict). Rows of src that are not aligned to 16 bytes: elements of 4
//         bytes and more come one by one, lanes along the row, each thread a chunk of a
//         column (10000x7001 0.964 of a copy, 0.925 staged); smaller ones are first staged
//         as they lie, so that global memory still sees 16-byte accesses. Rows of dst that
//         are not leave by words from a sector boundary on, and then src is staged in any
//         case (7001x10000 0.85 for 0.76). Tile numbers are kept below 2^31.
// Source  CUDA C++ Best Practices Guide, "Shared memory in matrix multiplication
//         (C = AA^T)" for the barrier; figures in tests/results.
#pragma once

#include "../index/wide.hpp"
#include "../kernel/cache.cuh"
#include "../kernel/chunk.cuh"
#include "../kernel/element.cuh"
#include "../kernel/record.cuh"
#include "../kernel/unit.cuh"
#include "wide.hpp"

namespace lockstep::cuda {

// The job as the kernel sees it: tiles numbered below 2^31.
struct wide_plan {
  const unsigned char* src;
  unsigned char* dst;
  const unsigned char *src_begin, *src_end;  // bytes that may be read, for word loads around unaligned rows
  int64_t rows, cols, src_ld, dst_ld;
  uint32_t tiles;
  uint32_t tiles_i, group;  // bands of group tile rows are walked down, then across
  divider by_matrix, by_band, by_group, by_last_group;
  int outer_axes;
  divider outer_count[6];
  int64_t outer_src[6], outer_dst[6];
  bool src_vector, dst_vector;  // 16-byte accesses are aligned on that side
  uint32_t last_tiles;          // whose lines the L2 may still keep at the end
};

// 16 bytes of shared memory from an offset that is a multiple of the element. word(k) reads word k.
template <int bytes, class Word>
__device__ inline void read_16(uint32_t (&w)[4], int offset, const Word& word) {
  const int first = offset >> 2, shift = 8 * (offset & 3);
#pragma unroll
  for (int k = 0; k < 4; ++k) w[k] = word(first + k);
  if constexpr (bytes < 4) {
    const uint32_t next = shift != 0 ? word(first + 4) : 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) w[k] = __funnelshift_r(w[k], k < 3 ? w[k + 1] : next, shift);
  }
}

// What a kernel can take. Each is a kernel of its own, because a more general one needs more registers, which leaves
// fewer blocks in flight.
enum class tile_reads {
  units,     // both sides are aligned, and matrices end between units
  elements,  // dst is aligned, elements have 4 bytes or more: V of them below one another, a chunk of dst
  any
};

// tall x broad: the tile's bytes along i and along j. threads divide the units. kept: arrays are
// large enough for kept_reads (cache.cuh).
template <int bytes, int tall, int broad, int threads, tile_reads how, bool kept>
__global__ void __launch_bounds__(threads) transpose_wide(const __grid_constant__ wide_plan plan) {
  constexpr int V = 16 / bytes;
  constexpr int chunks = tall / 16, unit_cols = broad / 16;  // 16-byte chunks of a tile row; units across
  constexpr int units = chunks * unit_cols, per_thread = units / threads;
  constexpr int tile_rows = tall / bytes, tile_cols = broad / bytes;
  constexpr bool by_units = how == tile_reads::units, by_elements = how == tile_reads::elements;
  static_assert(units % threads == 0 && V * chunks % 8 == 0);
  using element = typename element_of<bytes>::type;
  extern __shared__ uint4 tile[];
  // 8 lanes at a time store `spread` neighbouring chunks of each of their units' columns.
  constexpr int spread = wide_spread(unit_cols);
  const auto place = [&](int j, int c) {
    return by_elements ? (j * chunks + c) ^ (j & 7) : wide_place(j, c, chunks, V, spread);
  };
  const kept_reads keeping;
  const auto read = [&](const auto* from) {
    if constexpr (kept)
      return keeping.load(from);
    else
      return __ldg(from);
  };

  uint32_t number = blockIdx.x;
  uint32_t matrix = plan.by_matrix.split(number);
  const uint32_t band = plan.by_band.split(number);
  const bool last = (band + 1) * plan.group > plan.tiles_i;
  const uint32_t tile_j = (last ? plan.by_last_group : plan.by_group).split(number);
  const int64_t i0 = static_cast<int64_t>(band * plan.group + number) * tile_rows;
  const int64_t j0 = static_cast<int64_t>(tile_j) * tile_cols;
  const unsigned char* src = plan.src + (i0 * plan.src_ld + j0) * bytes;
  unsigned char* dst = plan.dst + (j0 * plan.dst_ld + i0) * bytes;
  for (int axis = plan.outer_axes - 1; axis >= 0; --axis) {
    uint32_t index = matrix;
    matrix = plan.outer_count[axis].split(index);
    src += plan.outer_src[axis] * index * bytes;
    dst += plan.outer_dst[axis] * index * bytes;
  }
  const auto left = [](int64_t all, int tile) { return static_cast<int>(all < tile ? all : tile); };
  const int rows_left = left(plan.rows - i0, tile_rows), cols_left = left(plan.cols - j0, tile_cols);
  const bool full = rows_left == tile_rows && cols_left == tile_cols;

  follow_on();
  uint32_t w[per_thread][V][4];
  const bool by_chunks = by_units || (!by_elements && full && plan.src_vector && plan.dst_vector);
  if (by_chunks) {
    walk_items(per_thread, threadIdx.x, threads, unit_cols, [&](int p, int ui, int uj) {
      if (ui * V >= rows_left || uj * V >= cols_left) return;
      const unsigned char* from = src + ui * V * plan.src_ld * bytes + uj * 16;
      walk_unit(V, ui, uj, [&](int v, int, int) {
        LOCKSTEP_SEEN(read_src, plan.src, reinterpret_cast<const uint4*>(from + v * plan.src_ld * bytes));
        const uint4 x = read(reinterpret_cast<const uint4*>(from + v * plan.src_ld * bytes));
        w[p][v][0] = x.x, w[p][v][1] = x.y, w[p][v][2] = x.z, w[p][v][3] = x.w;
      });
    });
  } else if constexpr (by_elements) {
    walk_items(per_thread * V, threadIdx.x, threads, tile_cols, [&](int p, int c, int j) {
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const int i = c * V + k;
        const auto* from = reinterpret_cast<const element*>(src) + i * plan.src_ld + j;
        const element x = i < rows_left && j < cols_left ? read(from) : element{};
        memcpy(&w[p / V][p % V][k * bytes / 4], &x, bytes);
      }
    });
  } else {
    // The rows as they lie, in aligned chunks with up to 15 bytes too many on both
    // sides; one chunk more than the tile is broad.
    constexpr int row_chunks = unit_cols + 1;
    for (int index = threadIdx.x; index < tile_rows * row_chunks; index += threads) {
      const int i = index / row_chunks, k = index % row_chunks;
      const unsigned char* row = src + i * plan.src_ld * bytes;
      const unsigned char* chunk = row - (reinterpret_cast<uintptr_t>(row) & 15) + k * 16;
      if (i < rows_left && chunk < row + cols_left * bytes)
        stage_chunk(&tile[index], chunk, plan.src_begin, plan.src_end);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();  // every thread's chunks have arrived before units are read from them
#pragma unroll
    for (int p = 0; p < per_thread; ++p) {
      const int unit = threadIdx.x + p * threads, ui = unit / unit_cols, uj = unit % unit_cols;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const int i = ui * V + v;
        const auto skew = static_cast<int>(reinterpret_cast<uintptr_t>(src + i * plan.src_ld * bytes) & 15);
        const auto* words = reinterpret_cast<const uint32_t*>(&tile[i * row_chunks + uj]);
        read_16<bytes>(w[p][v], skew, [&](int k) { return words[k]; });
      }
    }
    __syncthreads();  // all units are in registers before the tile overwrites the rows
  }
  if constexpr (by_elements) {
    walk_items(per_thread * V, threadIdx.x, threads, tile_cols, [&](int p, int c, int j) {
      const auto& x = w[p / V][p % V];
      tile[place(j, c)] = make_uint4(x[0], x[1], x[2], x[3]);
    });
  } else {
    walk_items(per_thread, threadIdx.x, threads, unit_cols, [&](int p, int ui, int uj) {
      transpose_unit<bytes, 16>(w[p]);
      walk_unit(V, ui, uj, [&](int v, int, int j) {
        LOCKSTEP_SEEN(write_tile, tile, &tile[place(j, ui)]);
        tile[place(j, ui)] = make_uint4(w[p][v][0], w[p][v][1], w[p][v][2], w[p][v][3]);
      });
    });
  }
  __syncthreads();  // all units of the tile are in place before any thread reads a row of dst

  if (by_units || by_elements || (full && plan.dst_vector)) {
    walk_items(per_thread * V, threadIdx.x, threads, chunks, [&](int, int j, int c) {
      if (j >= cols_left || c * V >= rows_left) return;
      LOCKSTEP_SEEN(read_tile, tile, &tile[place(j, c)]);
      const uint4 x = tile[place(j, c)];
      auto* to = reinterpret_cast<uint4*>(dst + j * plan.dst_ld * bytes + c * 16);
      LOCKSTEP_SEEN(write_dst, plan.dst, to);
      if (by_elements && c * V + V > rows_left) {
#pragma unroll
        for (int k = 0; k < V - 1; ++k)
          if (c * V + k < rows_left)
            memcpy(reinterpret_cast<element*>(to) + k, reinterpret_cast<const element*>(&x) + k, bytes);
      } else if constexpr (kept) {
        *to = x;
      } else {
        __stcs(to, x);
      }
    });
  } else {
    // Words of each dst row from a sector boundary on, neighbouring lanes on
    // neighbouring words: no warp splits a sector. Words that are not all ours
    // (below 4 bytes only) go by elements.
    constexpr int word_bytes = bytes < 4 ? 4 : bytes;
    using word_type = typename element_of<word_bytes>::type;
    constexpr int row_words = (tall + 32) / word_bytes, lanes = row_words > 16 ? 32 : 16;
    const auto* shared = reinterpret_cast<const unsigned char*>(tile);
    const int valid = rows_left * bytes;
    for (int j = threadIdx.x / lanes; j < cols_left; j += threads / lanes) {
      unsigned char* row = dst + j * plan.dst_ld * bytes;
      const int skew = static_cast<int>(reinterpret_cast<uintptr_t>(row) & 31);
      const auto at = [&](int offset) { return shared + place(j, offset >> 4) * 16 + (offset & 15); };
#pragma unroll
      for (int step = 0; step < row_words; step += lanes) {
        const int offset = (step + static_cast<int>(threadIdx.x % lanes)) * word_bytes - skew;
        if (offset >= 0 && offset + word_bytes <= valid) {
          if constexpr (bytes >= 4) {
            *reinterpret_cast<word_type*>(row + offset) = *reinterpret_cast<const word_type*>(at(offset));
          } else {
            uint32_t x = *reinterpret_cast<const uint32_t*>(at(offset & ~3));
            if (const int shift = 8 * (offset & 3); shift != 0)
              x = __funnelshift_r(x, *reinterpret_cast<const uint32_t*>(at((offset & ~3) + 4)), shift);
            *reinterpret_cast<uint32_t*>(row + offset) = x;
          }
        } else if constexpr (bytes < 4) {
          for (int b = max(offset, 0); b < min(offset + 4, valid); b += bytes)
            *reinterpret_cast<element*>(row + b) = *reinterpret_cast<const element*>(at(b));
        }
      }
    }
  }

  if constexpr (kept) {
    if (blockIdx.x < plan.tiles - plan.last_tiles) return;
    constexpr int lines = (broad + 127) / 128;  // that may begin in a row of the tile
    for (int index = threadIdx.x; index < rows_left * lines; index += threads) {
      const unsigned char* row = src + index / lines * plan.src_ld * bytes;
      const auto before = static_cast<int>(-reinterpret_cast<uintptr_t>(row) & 127) + index % lines * 128;
      if (before < cols_left * bytes) keeping.release(row + before);
    }
  }
}

// Shared memory: the tile, or the rows of src with a chunk more each.
template <int bytes, int tall, int broad, tile_reads how>
constexpr size_t wide_shared_bytes = static_cast<size_t>(tall / bytes) * (how == tile_reads::any ? broad + 16 : broad);

// Numbers the tiles of job for tiles of tile_rows x tile_cols elements. The
// matrices must be few enough (launch_wide cuts the outer axes).
inline wide_plan make_wide_plan(const wide_job& job, int64_t tile_rows, int64_t tile_cols, int64_t group) {
  wide_plan plan{};
  const auto bytes = static_cast<int64_t>(job.element_bytes);
  const auto up = [](int64_t a, int64_t b) { return a / b + (a % b != 0); };
  const int64_t tiles_i = up(job.rows, tile_rows), tiles_j = up(job.cols, tile_cols);
  if (group > tiles_i) group = tiles_i;
  plan.src = job.src, plan.dst = job.dst;
  plan.rows = job.rows, plan.cols = job.cols, plan.src_ld = job.src_ld, plan.dst_ld = job.dst_ld;
  int64_t matrices = 1, span = (job.rows - 1) * job.src_ld + job.cols;
  const auto aligned = [&](const void* p, int64_t ld) {
    return reinterpret_cast<uintptr_t>(p) % 16 == 0 && ld * bytes % 16 == 0;
  };
  plan.src_vector = aligned(job.src, job.rows > 1 ? job.src_ld : 0);
  plan.dst_vector = aligned(job.dst, job.cols > 1 ? job.dst_ld : 0);
  plan.outer_axes = job.outer_axes;
  for (int k = 0; k < job.outer_axes; ++k) {
    const axis& a = job.outer[k];
    matrices *= a.count;
    span += (a.count - 1) * a.src;
    plan.outer_count[k] = divider(a.count);
    plan.outer_src[k] = a.src, plan.outer_dst[k] = a.dst;
    plan.src_vector = plan.src_vector && a.src * bytes % 16 == 0;
    plan.dst_vector = plan.dst_vector && a.dst * bytes % 16 == 0;
  }
  plan.src_begin = job.src, plan.src_end = job.src + span * bytes;
  plan.tiles = static_cast<uint32_t>(matrices * tiles_i * tiles_j);
  plan.tiles_i = static_cast<uint32_t>(tiles_i), plan.group = static_cast<uint32_t>(group);
  plan.by_matrix = divider(tiles_i * tiles_j);
  plan.by_band = divider(group * tiles_j);
  plan.by_group = divider(group);
  plan.by_last_group = divider(tiles_i % group != 0 ? tiles_i % group : group);
  return plan;
}

}  // namespace lockstep::cuda
