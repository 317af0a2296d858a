// kernels.cuh - dst = src * scale, or a function of src, as another type: a tile, runs, few rows or columns, single
// elements.
//
// Idea    A thread takes 4 x 4 elements: a quad of each of four rows of src, converted, becomes a quad of each of four
//         rows of dst by the choice of registers. A shared tile in dst's layout stands between, so that both sides are
//         read and written by 256 bytes of a row, 8 to 32 bytes per thread. Where rows of dst begin anywhere, each lies
//         in the tile as far from a piece of 4 to 16 bytes as it does in dst, and tiles overlap by a piece, so that
//         only the ends of dst's rows are written by elements.
// Moves   every element once in, once out.
// Limit   DRAM; the ceiling is a copy of as many bytes.
// Watch   The chunk of a tile's row is XORed with a mix of its number: lanes that store a quad have rows four apart,
//         lanes that load single elements neighbouring ones, and neither may meet in a bank.
// Source  lockstep.h
#pragma once

#include "values.cuh"

namespace lockstep::cuda {

// ---- tiles -----------------------------------------------------------------------------
template <class E, class R>
struct tile_shape {
  static constexpr int from = static_cast<int>(sizeof(E)), to = static_cast<int>(sizeof(R));
  static constexpr int row = convert_row(to), cols = convert_row(from) / from, rows = row / to;
  static constexpr int across = cols / convert_quad, down = rows / convert_quad;  // quads; also chunks of a row of dst
  static constexpr int units = across * down, threads = units < 256 ? units : 256, each = units / threads;
  // Rows of dst that begin anywhere: the tile's begin with a whole piece each, so that only dst's ends have others.
  static constexpr int piece = convert_piece(to), spare = piece / to, pieces = (row - piece) / piece;
  static constexpr int pitch = row + piece;
  static constexpr uint32_t by_pieces = (1u << 20) / pieces + 1;  // divides by them, of a tile's pieces, in 32 bits
  static_assert(cols * pieces * (by_pieces * pieces - (1u << 20)) < 1u << 20 &&
                cols * pieces * uint64_t{by_pieces} < uint64_t{1} << 32);
  static constexpr int bytes(bool whole) { return cols * (whole ? row : pitch); }
  // Where in shared memory column j is, in columns: those that neighbouring threads store to together share no bank
  // where dst's rows begin at all places within a piece in turn.
  static __device__ __forceinline__ uint32_t slot(uint32_t j) {
    if constexpr (to == 1) return j;
    if constexpr (to == 2) return (j & ~31u) | (j & 2) << 3 | (j >> 2 & 7) << 1 | (j & 1);
    if constexpr (to == 4) return (j & ~31u) | (j & 3) << 3 | (j >> 2 & 7);
    return (j & ~15u) | (j & 1) << 3 | (j >> 1 & 7);
  }
  // Of chunk c of row j.
  static __device__ __forceinline__ int place(int j, int c) {
    constexpr int shift = to == 1 ? 3 : to == 2 ? 2 : 1;
    const int mix = (j >> 2) ^ ((j & 3) << shift);
    return j * row + ((c ^ mix) & (down - 1)) * convert_quad * to;
  }
};

template <class E, class R, class Map>
__global__ void __launch_bounds__(tile_shape<E, R>::threads) convert_tile(const __grid_constant__ convert_tiles plan) {
  using shape = tile_shape<E, R>;
  constexpr int threads = shape::threads, each = shape::each, to = shape::to, piece = shape::piece;
  extern __shared__ uint4 shared[];
  auto* const tile = reinterpret_cast<unsigned char*>(shared);
  uint32_t number = blockIdx.x;
  const uint32_t matrix = plan.by_matrix.split(number);
  const uint32_t band = plan.by_band.split(number);
  const bool last = (band + 1) * plan.group > plan.tiles_i;
  const uint32_t tile_j = (last ? plan.by_last_group : plan.by_group).split(number);
  const uint32_t j0 = tile_j * shape::cols;
  // Where pieces of dst's rows begin anywhere, the first tile begins before src does.
  const int i0 = static_cast<int>((band * plan.group + number) * plan.tall) - (plan.whole_dst ? 0 : shape::spare);
  const convert_place at = place_of(plan.walk, matrix);
  const E* const src = settled(static_cast<const E*>(plan.walk.src) + at.src + j0);
  R* const dst = settled(static_cast<R*>(plan.walk.dst) + at.dst + int64_t{j0} * plan.dst_ld);
  const int rows = static_cast<int>(plan.rows), rows_left = min(rows - i0, shape::rows);
  const int cols_left = static_cast<int>(min(plan.cols - j0, static_cast<uint32_t>(shape::cols)));
  // Elements from the beginning of a piece of dst to dst.
  constexpr uint32_t within = shape::spare - 1;
  const uint32_t ahead = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(dst) / to) & within;
  // Where in shared memory row i0 of column j is.
  const auto column_at = [&](int j) {
    const uint32_t skew = (ahead + static_cast<uint32_t>(i0) + static_cast<uint32_t>(j) * plan.dst_ld) & within;
    return settled(shape::slot(static_cast<uint32_t>(j)) * shape::pitch + skew * to);
  };
  // column: of j, plus so many bytes that chunk c begins there.
  const auto put = [&](int j, int c, uint32_t column, const quad<R>& y) {
    if (plan.whole_dst) {
      store_whole(tile + shape::place(j, c), y);
    } else {
#pragma unroll
      for (int k = 0; k < convert_quad; ++k) reinterpret_cast<R*>(tile + column)[k] = element(y, k);
    }
  };

  follow_on();
  if (plan.whole_src) {
    taken<E, Map> held[each][4];
#pragma unroll
    for (int p = 0; p < each; ++p) {
      const int unit = static_cast<int>(threadIdx.x) + p * threads, uj = unit % shape::across,
                ui = unit / shape::across;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const auto i = static_cast<uint32_t>(i0 + ui * 4 + v);
        held[p][v] = {};
        if (i < plan.rows && uj * 4 < cols_left) take_whole(held[p][v], src + (i * plan.src_ld + uj * 4), plan.walk);
      }
    }
#pragma unroll
    for (int p = 0; p < each; ++p) {
      const int unit = static_cast<int>(threadIdx.x) + p * threads, uj = unit % shape::across,
                ui = unit / shape::across;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const int j = uj * 4 + v;
        const uint32_t column = plan.whole_dst ? 0 : column_at(j) + static_cast<uint32_t>(ui * convert_quad * to);
        put(j, ui, column, converted<R>(held[p], v, plan.walk));
      }
    }
  } else {
    // Four rows of a column each; in place of rows that are not there the nearest ones come.
    constexpr int apart = threads / shape::cols;
    const int j = static_cast<int>(threadIdx.x) % shape::cols, first = static_cast<int>(threadIdx.x) / shape::cols;
    const E* const from = settled(src + min(j, cols_left - 1));
    const auto source = [&](int i) {
      return from + static_cast<uint32_t>(min(max(i0 + i, 0), rows - 1)) * plan.src_ld;
    };
    taken<E, Map> held[each * 4];
    if constexpr (sizeof(E) < 4 && !std::is_same_v<Map, mapped>) {
      // A register each until all are on their way: elements that share one would wait for one another.
      uint32_t bits[each * 4][convert_quad] = {};
#pragma unroll
      for (int p = 0; p < each * 4; ++p)
        if (const int i = (first + p * apart) * convert_quad; i < rows_left)
#pragma unroll
          for (int v = 0; v < convert_quad; ++v)
            bits[p][v] = *reinterpret_cast<const typename element_of<shape::from>::type*>(source(i + v));
      asm volatile("" ::: "memory");
#pragma unroll
      for (int p = 0; p < each * 4; ++p) {
        constexpr int each_word = 4 / shape::from;
#pragma unroll
        for (int k = 0; k < shape::from; ++k)
          held[p].x.word[k] = each_word == 2 ? __byte_perm(bits[p][2 * k % 4], bits[p][(2 * k + 1) % 4], 0x5410)
                                             : __byte_perm(__byte_perm(bits[p][0], bits[p][1], 0x0040),
                                                           __byte_perm(bits[p][2], bits[p][3], 0x0040), 0x5410);
      }
    } else {
#pragma unroll
      for (int p = 0; p < each * 4; ++p) {
        const int i = (first + p * apart) * convert_quad;
        held[p] = {};
        if (i < rows_left)
#pragma unroll
          for (int v = 0; v < convert_quad; ++v) take_one(held[p], v, source(i + v), plan.walk);
      }
    }
    const uint32_t column = column_at(j) + static_cast<uint32_t>(first * convert_quad * to);
#pragma unroll
    for (int p = 0; p < each * 4; ++p)
      put(j, first + p * apart, column + p * apart * convert_quad * to, mapped_quad<R>(held[p], plan.walk));
  }
  __syncthreads();  // the tile is in place before any thread reads a row of dst
  if (plan.whole_dst) {
    // Neighbouring threads write neighbouring 16 bytes: two to a quad of doubles.
    constexpr int parts = sizeof(R) == 8 ? 2 : 1, chunks = shape::down * parts;
#pragma unroll
    for (int p = 0; p < each * 4 * parts; ++p) {
      const int item = static_cast<int>(threadIdx.x) + p * threads, c = item % chunks, j = item / chunks;
      const int i = c * convert_quad / parts;
      if (j >= cols_left || i >= rows_left) continue;
      copy_piece<piece>(dst + (static_cast<uint32_t>(j) * plan.dst_ld + static_cast<uint32_t>(i0 + i)),
                        tile + shape::place(j, c / parts) + c % parts * 16);
    }
  } else {
    // In elements from the beginning of the piece in which dst begins.
    const uint32_t items = static_cast<uint32_t>(cols_left * shape::pieces);
    const bool inside = i0 >= 0 && i0 + shape::rows <= rows;
    R* const first = settled(dst - ahead);
    constexpr int most = (shape::cols * shape::pieces - 1) / threads + 1;
#pragma unroll
    for (int p = 0; p < most; ++p) {
      const uint32_t item = threadIdx.x + p * threads;
      if (item >= items) continue;
      const uint32_t j = item * shape::by_pieces >> 20, c = item - j * shape::pieces + 1, row = j * plan.dst_ld;
      const uint32_t to_piece = ((ahead + static_cast<uint32_t>(i0) + row) & ~within) + c * shape::spare;
      const unsigned char* const from = tile + shape::slot(j) * shape::pitch + c * piece;
      const uint32_t i = to_piece - ahead - row;  // of the piece's first element; beyond all rows if it is negative
      if (inside || (i < plan.rows && i + shape::spare <= plan.rows)) {
        copy_piece<piece>(first + to_piece, from);
      } else {
#pragma unroll
        for (uint32_t k = 0; k < shape::spare; ++k)
          if (i + k < plan.rows) dst[row + (i + k)] = reinterpret_cast<const R*>(from)[k];
      }
    }
  }
}

// ---- runs ------------------------------------------------------------------------------
// A thread takes pieces of runs, or single elements where pieces are not aligned; neighbouring threads take neighbours.
template <class E, class R, class Map>
__global__ void __launch_bounds__(run_threads) convert_run(const __grid_constant__ convert_runs plan) {
  constexpr int piece = run_piece(sizeof(E), sizeof(R)), elements = run_pieces * piece;
  constexpr int of_quad = convert_quad / piece, quads_here = elements / convert_quad;
  const uint32_t first = blockIdx.x * static_cast<uint32_t>(plan.whole ? run_pieces : elements) * run_threads;
  const auto* const src = static_cast<const E*>(plan.walk.src);
  auto* const dst = static_cast<R*>(plan.walk.dst);
  follow_on();
  taken<E, Map> held[quads_here];
#pragma unroll
  for (int q = 0; q < quads_here; ++q) held[q] = {};
  if (plan.whole) {
    int64_t to[run_pieces];
    int left[run_pieces];  // elements of the piece, none beyond the last one
#pragma unroll
    for (int p = 0; p < run_pieces; ++p) {
      uint32_t piece_of_run = first + threadIdx.x + p * run_threads;
      const bool there = piece_of_run < plan.items;
      const convert_place at = place_of(plan.walk, plan.by_run.split(piece_of_run));
      to[p] = at.dst + int64_t{piece_of_run} * piece;
      left[p] = there ? static_cast<int>(min(plan.length - piece_of_run * piece, static_cast<uint32_t>(piece))) : 0;
      const E* const from = src + at.src + int64_t{piece_of_run} * piece;
      const int place = p % of_quad * piece;
      if (left[p] == piece) {
        take_piece<piece>(held[p / of_quad], place, from, plan.walk);
      } else {
#pragma unroll
        for (int k = 0; k < piece - 1; ++k)
          if (k < left[p]) take_one(held[p / of_quad], place + k, from + k, plan.walk);
      }
    }
    quad<R> many[quads_here];
    if constexpr (takes_many<Map>) Map::many(held, many, plan.walk);
#pragma unroll
    for (int p = 0; p < run_pieces; ++p) {
      quad<R>& y = many[p / of_quad];
      const int place = p % of_quad * piece;
      if (!takes_many<Map> && place == 0) y = mapped_quad<R>(held[p / of_quad], plan.walk);
      if (left[p] == piece) {
        store_piece<piece>(dst + to[p], y, place);
      } else {
#pragma unroll
        for (int k = 0; k < piece - 1; ++k)
          if (k < left[p]) dst[to[p] + k] = element(y, place + k);
      }
    }
  } else {
    int64_t to[quads_here][4];
#pragma unroll
    for (int q = 0; q < quads_here; ++q) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        uint32_t i = first + threadIdx.x + (q * 4 + k) * run_threads;
        const bool there = i < plan.items;
        const convert_place at = place_of(plan.walk, plan.by_run.split(i));
        to[q][k] = there ? at.dst + i : -1;
        if (there) take_one(held[q], k, src + at.src + i, plan.walk);
      }
    }
#pragma unroll
    for (int q = 0; q < quads_here; ++q) {
      const quad<R> y = mapped_quad<R>(held[q], plan.walk);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (to[q][k] >= 0) dst[to[q][k]] = element(y, k);
    }
  }
}

// ---- narrow ----------------------------------------------------------------------------
// Up to four elements from `at`, `left` of them there.
template <class Map, class E>
__device__ __forceinline__ taken<E, Map> take_some(const E* at, int left, bool whole, const convert_walk& walk) {
  taken<E, Map> t{};
  if (whole && left >= 4) {
    take_whole(t, at, walk);
    return t;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (k < left) take_one(t, k, at + k, walk);
  return t;
}
template <class R>
__device__ __forceinline__ void store_some(R* at, int left, bool whole, const quad<R>& q) {
  if (whole && left >= 4) return store_whole(at, q);
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (k < left) at[k] = element(q, k);
}

template <class E, class R, class Map>
__global__ void __launch_bounds__(narrow_threads) convert_few(const __grid_constant__ convert_narrow plan) {
  extern __shared__ uint4 shared[];
  auto* const tile = reinterpret_cast<R*>(shared);
  uint32_t number = blockIdx.x;
  const convert_place at = place_of(plan.walk, plan.by_matrix.split(number));
  const uint32_t first = number * plan.share;  // of the long side
  const int long_here = static_cast<int>(min(plan.length - first, plan.share));
  const int few = static_cast<int>(plan.few), all = long_here * few;
  const auto* src = static_cast<const E*>(plan.walk.src) + at.src;
  auto* dst = static_cast<R*>(plan.walk.dst) + at.dst;
  follow_on();
  if (plan.apart) {
    const int pitch = static_cast<int>(plan.share) + narrow_gap;
    src += int64_t{first} * few, dst += first;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x) * 4; i < all; i += narrow_threads * 4) {
      const quad<R> y = mapped_quad<R>(take_some<Map>(src + i, all - i, plan.whole_src, plan.walk), plan.walk);
      uint32_t column = static_cast<uint32_t>(i);
      uint32_t row = plan.by_few.split(column);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (i + k < all) tile[column * pitch + row] = element(y, k);
        if (++column == plan.few) column = 0, ++row;
      }
    }
    __syncthreads();  // the rows of dst are in place before any thread reads them
    const int quads = static_cast<int>(plan.by_share.d);
    for (int item = static_cast<int>(threadIdx.x); item < quads * few; item += narrow_threads) {
      uint32_t q = static_cast<uint32_t>(item);
      const uint32_t j = plan.by_share.split(q);
      quad<R> y;
      memcpy(&y, __builtin_assume_aligned(tile + j * pitch + q * 4, min(sizeof y, size_t{16})), sizeof y);
      store_some(dst + int64_t{j} * plan.long_ld + q * 4, long_here - static_cast<int>(q * 4), plan.whole_dst, y);
    }
  } else {
    src += first, dst += int64_t{first} * few;
    const int quads = static_cast<int>(plan.by_share.d);
#pragma unroll 4
    for (int item = static_cast<int>(threadIdx.x); item < quads * few; item += narrow_threads) {
      uint32_t q = static_cast<uint32_t>(item);
      const uint32_t j = plan.by_share.split(q);
      const int left = long_here - static_cast<int>(q * 4);
      const auto t = take_some<Map>(src + int64_t{j} * plan.long_ld + q * 4, left, plan.whole_src, plan.walk);
      const quad<R> y = mapped_quad<R>(t, plan.walk);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (k < left) tile[(q * 4 + k) * few + j] = element(y, k);
    }
    __syncthreads();  // the run of dst is in place before any thread reads it
    for (int i = static_cast<int>(threadIdx.x) * 4; i < all; i += narrow_threads * 4) {
      quad<R> y;
      memcpy(&y, __builtin_assume_aligned(tile + i, min(sizeof y, size_t{16})), sizeof y);
      store_some(dst + i, all - i, plan.whole_dst, y);
    }
  }
}

// ---- elements --------------------------------------------------------------------------
template <class E, class R, class Map>
__global__ void __launch_bounds__(element_threads) convert_element(const __grid_constant__ convert_elements plan) {
  const uint32_t first = blockIdx.x * static_cast<uint32_t>(element_threads * element_steps) + threadIdx.x;
  const auto* const src = static_cast<const E*>(plan.walk.src);
  auto* const dst = static_cast<R*>(plan.walk.dst);
  follow_on();
  taken<E, Map> held{};
  int64_t to[element_steps];
#pragma unroll
  for (int k = 0; k < element_steps; ++k) {
    const uint32_t index = first + k * element_threads;
    const convert_place at = place_of(plan.walk, min(index, plan.elements - 1));
    to[k] = at.dst;
    take_one(held, k, src + at.src, plan.walk);
  }
  const quad<R> y = mapped_quad<R>(held, plan.walk);
#pragma unroll
  for (int k = 0; k < element_steps; ++k)
    if (first + k * element_threads < plan.elements) dst[to[k]] = element(y, k);
}

// ---- launches --------------------------------------------------------------------------
template <class E, class R, class Map>
lockstep_status launch_convert(lockstep_queue& queue, const convert_job& job) {
  if (job.tiles != nullptr) {
    using shape = tile_shape<E, R>;
    return launch_soon(queue, "convert_tile", convert_tile<E, R, Map>, dim3(job.tiles->grid), dim3(shape::threads),
                       shape::bytes(job.tiles->whole_dst), *job.tiles);
  }
  if (job.narrow != nullptr) {
    const size_t bytes = (narrow_block + most_few * narrow_gap) * sizeof(R);
    return launch_soon(queue, "convert_few", convert_few<E, R, Map>, dim3(job.narrow->grid), dim3(narrow_threads),
                       bytes, *job.narrow);
  }
  if (job.runs != nullptr)
    return launch_soon(queue, "convert_run", convert_run<E, R, Map>, dim3(job.runs->grid), dim3(run_threads), 0,
                       *job.runs);
  return launch_soon(queue, "convert_element", convert_element<E, R, Map>, dim3(job.elements->grid),
                     dim3(element_threads), 0, *job.elements);
}

template <class E, class Map>
lockstep_status launch_to(lockstep_queue& queue, const convert_job& job, lockstep_dtype result) {
  switch (result) {
    case LOCKSTEP_F16: return launch_convert<E, half16, Map>(queue, job);
    case LOCKSTEP_BF16: return launch_convert<E, bfloat16, Map>(queue, job);
    case LOCKSTEP_F32: return launch_convert<E, float, Map>(queue, job);
    default: break;
  }
  if constexpr (!std::is_same_v<Map, mapped>) return launch_convert<E, double, Map>(queue, job);
  return LOCKSTEP_INTERNAL;
}
template <class E>
lockstep_status launch_from(lockstep_queue& queue, const convert_job& job, lockstep_dtype result) {
  const convert_walk& walk = job.tiles != nullptr    ? job.tiles->walk
                             : job.runs != nullptr   ? job.runs->walk
                             : job.narrow != nullptr ? job.narrow->walk
                                                     : job.elements->walk;
  if constexpr (!std::is_same_v<E, double>)
    if (walk.function >= 0) return launch_to<E, mapped>(queue, job, result);
  return walk.scale == 1 ? launch_to<E, cast>(queue, job, result) : launch_to<E, scaled_cast>(queue, job, result);
}

}  // namespace lockstep::cuda
