// stencil.cpp - correlation over a star: threads over tiles, tiles into rows, rows
// to the micro-kernels of isa/stencil.cpp.
// Idea    A result row needs 2r rows of each outer axis and its own row: folding an
//         outer axis only changes which row a pointer names (CONSTANT: a row of the
//         value), folding the inner axis touches the ends of a row, which run from
//         a small folded copy. So the kernels never fold. Tiles keep the 2r + 1
//         planes (rank 3) or rows (rank 2) that a result needs in L2.
// Moves   each element in once, out once; 2 * r * rank + 1 fma for 2 elements.
// Limit   DRAM for rank 1; loads per cycle and L2 for stars (see isa/stencil.cpp).
// Watch   order id 1 is a chain of fma: independent results must fill its latency.
// Source  order.hpp.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "mutant.hpp"
#include "ops.hpp"
#include "order.hpp"
#include "parallel.hpp"
#include "stencil_kernels.hpp"

namespace lockstep::cpu {
namespace {

constexpr int max_radius = 16;
constexpr int max_taps = 2 * 8 * 3 + 1;
constexpr int max_rows = 2 * 2 * 8;  // of the outer axes

// One application to batch arrays. A missing outer axis has length 1, no taps.
template <class T>
struct sweep {
  stencil_kernel<T> kernel;
  const stencil_block_kernels<T>* blocks;  // NULL: row by row
  lockstep_boundary boundary;
  int rank, radius;
  T value;
  T coefficients[max_taps];
  const T* src;
  T* dst;
  int64_t batch, src_shape[3], dst_shape[3], src_strides[3], dst_strides[3], src_batch_stride, dst_batch_stride;
  bool stream;  // stores go past the cache
};

struct extent {
  int64_t b, z, y, x;
};

// ---- tiles --------------------------------------------------------------------
// Tried on Zen 5 (1 MiB of L2), f32, radius 4: rank 2 512 27.6 GB/s, 1,024 17.4,
// 2,048 18.0; rank 3 rows of 256 6.0 GB/s against 7.9 with 512; planes of a tile in
// 160 KB 6.8, 330 KB 7.6, 640 KiB 7.9, 900 KB 7.5.
constexpr int64_t task_elements = 1 << 16;
constexpr int64_t line_tile = 1 << 15;
constexpr int64_t plane_tile = 512;
constexpr int64_t star_tile = 512, star_bytes = 640 << 10;
constexpr int64_t longest_tile = 512;  // results of a row of rank 2 and 3

template <class T>
extent choose_tile(const sweep<T>& s, int threads) {
  const int64_t nz = s.dst_shape[0], ny = s.dst_shape[1], nx = s.dst_shape[2];
  const auto at_least_one = [](int64_t n) { return std::max<int64_t>(n, 1); };
  extent t{1, 1, 1, nx};
  if (s.rank == 1) {
    t.x = std::min(nx, line_tile);
  } else if (s.rank == 2) {
    t.x = std::min(nx, plane_tile);
    t.y = std::min(ny, std::max<int64_t>(task_elements / t.x, 64));
  } else {
    t.x = std::min(nx, star_tile);
    t.y = std::min(ny, at_least_one(star_bytes / static_cast<int64_t>(sizeof(T)) / ((2 * s.radius + 1) * t.x)));
    t.z = nz;
    // Fewer columns than threads: share them out along axis 0 too.
    const int64_t columns = ((ny + t.y - 1) / t.y) * ((nx + t.x - 1) / t.x) * s.batch;
    if (columns < 2 * threads)
      t.z = std::max((nz * columns + 2 * threads - 1) / (2 * threads), std::min<int64_t>(nz, 4 * s.radius));
  }
  if (t.z == nz && t.y == ny && t.x == nx) t.b = std::min(s.batch, at_least_one(task_elements / (nz * ny * nx)));
  return t;
}

// In order of memory: whole rows, row after row (CONSTANT has a value row of one length).
template <class T>
extent no_tile(const sweep<T>& s) {
  const int64_t nx = s.dst_shape[2];
  return {1, 1, s.rank == 3 ? s.dst_shape[1] : std::min<int64_t>(s.dst_shape[1], 64),
          s.rank == 1                                ? std::min(nx, line_tile)
          : s.boundary == LOCKSTEP_BOUNDARY_CONSTANT ? std::min(nx, longest_tile)
                                                     : nx};
}

// ---- rows ---------------------------------------------------------------------
// Results of one row, first <= x < last, whose inner taps reach beyond the array:
// they run from a copy of their piece of the row with the folded ends in place.
constexpr int64_t piece = 128;  // results a copy serves; a whole number of registers

template <class T>
void fold_piece(const sweep<T>& s, const T* line, int64_t first, int64_t last, T* copy) {
  const int64_t n = s.src_shape[2], from = first - s.radius, to = last + s.radius;
  const int64_t inside = std::max<int64_t>(from, 0), outside = std::min(to, n);
  for (int64_t x = from; x < to; ++x) {
    if (x == inside && outside > inside) {
      std::memcpy(copy + (x - from), line + x, static_cast<size_t>(outside - inside) * sizeof(T));
      x = outside - 1;
    } else {
      copy[x - from] = s.boundary == LOCKSTEP_BOUNDARY_CONSTANT
                           ? s.value
                           : line[order::folded(
                                 x, n,
                                 LOCKSTEP_MUTANT("stencil_mirror_as_reflect") && s.boundary == LOCKSTEP_BOUNDARY_MIRROR
                                     ? order::fold::reflect
                                     : static_cast<order::fold>(s.boundary))];
    }
  }
}

// Cuts first <= x < last into the ends of the array and what lies between:
// body(a, b, folds).
template <class T, class Body>
void over_pieces(const sweep<T>& s, int64_t first, int64_t last, const Body& body) {
  const int64_t n = s.src_shape[2], r = s.radius;
  if (s.boundary == LOCKSTEP_BOUNDARY_VALID) return body(first, last, false);
  if (first < r) {
    const int64_t b = last - first <= piece ? last : first + piece / 2;
    body(first, b, true);
    first = b;
  }
  if (first >= last) return;
  if (last <= n - r) return body(first, last, false);
  const int64_t a = last - first <= piece ? first : last - piece / 2;
  if (first < a) body(first, a, false);
  body(a, last, true);
}

template <class T>
struct line {
  const T* rows[max_rows];  // at x = 0
  const T* centre;
  T* dst;
};

template <class T>
void run_row(const sweep<T>& s, const line<T>& l, int64_t first, int64_t last) {
  const int outer = s.radius * (s.rank - 1);
  const T* rows[max_rows];
  over_pieces(s, first, last, [&](int64_t a, int64_t b, bool folds) {
    T copy[piece + 2 * max_radius];
    if (folds) fold_piece(s, l.centre, a, b, copy);
    for (int k = 0; k < 2 * outer; ++k) rows[k] = l.rows[k] + a;
    s.kernel(
        {rows, folds ? copy + s.radius : l.centre + a, s.coefficients, l.dst + a, b - a, outer, s.radius, s.stream});
  });
}

// ---- a tile -------------------------------------------------------------------
template <class T>
struct planes {
  const sweep<T>& s;
  const T* array;      // of this batch, at the x of dst's 0
  const T* value_row;  // CONSTANT: what lies outside, at the x of dst's 0
  int64_t shift[2];    // from dst's coordinate to src's

  // The row at z, y of dst's coordinates, of which one may lie outside.
  const T* operator()(int64_t z, int64_t y) const {
    z += shift[0], y += shift[1];
    if (z < 0 || z >= s.src_shape[0] || y < 0 || y >= s.src_shape[1]) {
      if (s.boundary == LOCKSTEP_BOUNDARY_CONSTANT &&
          !(LOCKSTEP_MUTANT("stencil_constant_missing_below") && z >= s.src_shape[0]))
        return value_row;
      z = order::folded(z, s.src_shape[0], static_cast<order::fold>(s.boundary));
      y = order::folded(y, s.src_shape[1], static_cast<order::fold>(s.boundary));
    }
    const int64_t plane = z * s.src_strides[0];
    return array + (LOCKSTEP_MUTANT("stencil_int32_plane") ? static_cast<int32_t>(plane) : plane) +
           y * s.src_strides[1];
  }
};

template <class T>
void run_one_row(const sweep<T>& s, const planes<T>& row, T* dst, int64_t z, int64_t y, const extent& first,
                 const extent& last) {
  const int r = s.radius;
  line<T> l;
  l.centre = row(z, y);
  l.dst = dst + z * s.dst_strides[0] + y * s.dst_strides[1];
  const T** below = l.rows;
  const T** above = l.rows + 2 * r * (s.rank - 1) - 1;
  if (s.rank == 3)
    for (int k = r; k >= 1; --k) *below++ = row(z - k, y), *above-- = row(z + k, y);
  if (s.rank >= 2)
    for (int k = r; k >= 1; --k) *below++ = row(z, y - k), *above-- = row(z, y + k);
  run_row(s, l, first.x, last.x);
}

template <class T>
void run_block(const sweep<T>& s, const planes<T>& row, T* dst, int64_t z0, int64_t y0, const extent& first,
               const extent& last) {
  const int r = s.radius, deep = s.blocks->deep, high = s.blocks->high;
  stencil_block<T> block;
  // What the next block reads first: in rank 3 the planes at the far end of its
  // column (of the next column, once the tile ends), in rank 2 its last rows.
  const bool ends = s.rank == 3 && y0 + high >= last.y;
  const int64_t next_z = s.rank == 2 ? 0 : z0 + r + (ends ? deep : 0);
  const int64_t next_y = s.rank == 2 ? y0 + high + r : ends ? first.y : y0 + high;
  for (int z = 0; z < deep; ++z) {
    for (int y = 0; y < high + 2 * r; ++y) block.side[z][y] = row(z0 + z, y0 + y - r);
    for (int y = 0; y < high; ++y) {
      block.dst[z * high + y] = dst + (z0 + z) * s.dst_strides[0] + (y0 + y) * s.dst_strides[1];
      block.ahead[z * high + y] = row(next_z + z, next_y + y);
    }
  }
  if (s.rank == 3)
    for (int z = 0; z < deep + 2 * r; ++z)
      for (int y = 0; y < high; ++y) block.column[z][y] = row(z0 + z - r, y0 + y);
  block.coefficients = s.coefficients;
  // Streamed stores need aligned addresses and a block's rows start together: only
  // a pitch of whole cache lines keeps them all aligned.
  const auto whole_lines = [](int64_t stride) { return stride * static_cast<int64_t>(sizeof(T)) % 64 == 0; };
  block.stream = s.stream && ((whole_lines(s.dst_strides[1]) && whole_lines(s.dst_strides[0])) ||
                              LOCKSTEP_MUTANT("stencil_streams_unaligned_rows"));
  over_pieces(s, first.x, last.x, [&](int64_t a, int64_t b, bool folds) {
    T copies[16][piece + 2 * max_radius];
    for (int z = 0; z < deep; ++z)
      for (int y = 0; y < high; ++y) {
        const T*& centre = block.centre[z * high + y];
        centre = block.side[z][y + r];
        if (!folds) continue;
        T* const copy = copies[z * high + y];
        fold_piece(s, centre, a, b, copy);
        centre = copy + r - a;
      }
    block.first = a;
    block.last = b;
    s.blocks->rows[r - 1](block);
  });
}

template <class T>
void run_tile(const sweep<T>& s, const extent& first, const extent& last, const T* value_row) {
  const int64_t shift = s.boundary == LOCKSTEP_BOUNDARY_VALID ? s.radius : 0;
  const int64_t deep = s.blocks ? s.blocks->deep : 1, high = s.blocks ? s.blocks->high : 1;
  const bool blocked = s.blocks && last.x - first.x >= 2 * s.blocks->least;
  for (int64_t b = first.b; b < last.b; ++b) {
    const planes<T> row{s,
                        s.src + b * s.src_batch_stride + shift,
                        value_row - first.x,
                        {s.rank == 3 ? shift : 0, s.rank >= 2 ? shift : 0}};
    T* const dst = s.dst + b * s.dst_batch_stride;
    for (int64_t z = first.z; z < last.z; z += deep)
      for (int64_t y = first.y; y < last.y; y += high) {
        if (blocked && z + deep <= last.z && y + high <= last.y) {
          run_block(s, row, dst, z, y, first, last);
          continue;
        }
        for (int64_t i = z; i < std::min(z + deep, last.z); ++i)
          for (int64_t j = y; j < std::min(y + high, last.y); ++j) run_one_row(s, row, dst, i, j, first, last);
      }
  }
}

template <class T>
void run_sweep(const lockstep_queue& queue, const sweep<T>& s, const extent& tile) {
  const auto tiles = [](int64_t n, int64_t t) { return (n + t - 1) / t; };
  const extent count{tiles(s.batch, tile.b), tiles(s.dst_shape[0], tile.z), tiles(s.dst_shape[1], tile.y),
                     tiles(s.dst_shape[2], tile.x)};
  const auto run_task = [&](int64_t task) {
    extent first, last;
    first.x = task % count.x * tile.x, task /= count.x;
    first.y = task % count.y * tile.y, task /= count.y;
    first.z = task % count.z * tile.z, task /= count.z;
    first.b = task * tile.b;
    last.x = std::min(first.x + tile.x, s.dst_shape[2]);
    last.y = std::min(first.y + tile.y, s.dst_shape[1]);
    last.z = std::min(first.z + tile.z, s.dst_shape[0]);
    last.b = std::min(first.b + tile.b, s.batch);
    T value_row[longest_tile];
    if (s.boundary == LOCKSTEP_BOUNDARY_CONSTANT && s.rank > 1) std::fill_n(value_row, last.x - first.x, s.value);
    run_tile(s, first, last, value_row);
    if (s.stream) std::atomic_thread_fence(std::memory_order_seq_cst);  // streamed stores are ordered by nothing else
  };
  // What fits the caches stays on the core that holds it since the last call; what
  // does not is handed out tile by tile. Lines of rank 1 go by one range a thread, a
  // stream each: 128 KiB by turns took 1.21 times as long on two threads (16 Mi and 128 Mi f32).
  const int64_t tasks = count.b * count.z * count.y * count.x;
  if (s.stream && s.rank > 1)
    over_tasks(queue, tasks, run_task);
  else
    over_ranges(queue, tasks, 1, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) run_task(task);
    });
}

// ---- sweeps -------------------------------------------------------------------
// Results between sweeps are packed. Arrays of a batch go through all their sweeps
// in groups, so that small ones stay in cache. dst serves as one of the two
// buffers in turn, except under VALID, where what lies between is larger.
// Bytes read and written from which stores go past the cache: 2 x 64 MiB of one
// thread, NT against plain, 1.3 x; in L2 they run at two thirds.
constexpr int64_t stream_bytes = 32 << 20;
constexpr int64_t group_bytes = 1 << 20;

int64_t array_elements(const lockstep_stencil_desc& d) {
  int64_t elements = 1;
  for (int k = 0; k < d.rank; ++k) elements *= d.shape[k];
  return elements;
}
int64_t group_of(const lockstep_stencil_desc& d) {
  const int64_t bytes = array_elements(d) * static_cast<int64_t>(lockstep_dtype_bytes(d.dtype));
  return std::clamp<int64_t>(group_bytes / bytes, 1, d.batch);
}
size_t stencil_workspace(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  const int most = d.boundary == LOCKSTEP_BOUNDARY_VALID ? 2 : 1;
  const auto buffers = static_cast<size_t>(std::min(d.sweeps - 1, most));
  return buffers * static_cast<size_t>(group_of(d) * array_elements(d)) * lockstep_dtype_bytes(d.dtype);
}

enum class how { best, direct, folded };

template <class T>
void run_all(const lockstep_queue& queue, const lockstep_call& call, const stencil_kernels_for<T>& kernels, how way) {
  const lockstep_stencil_desc& d = call.stencil;
  sweep<T> s{};
  s.kernel = way == how::best ? kernels.best : way == how::direct ? kernels.direct : kernels.folded;
  const stencil_block_kernels<T>& blocks = d.rank == 3 ? kernels.star : kernels.plane;
  if (way == how::best && d.rank > 1 && blocks.least != 0 && d.radius <= 4) s.blocks = &blocks;
  s.boundary = d.boundary;
  s.rank = d.rank;
  s.radius = d.radius;
  {
    s.value = static_cast<T>(d.value);
    for (int k = 0; k < d.coefficient_count; ++k) s.coefficients[k] = static_cast<T>(d.coefficients[k]);
  }
  const bool valid = d.boundary == LOCKSTEP_BOUNDARY_VALID;
  const int64_t elements = array_elements(d);
  s.stream = way != how::direct && 2 * d.batch * elements * static_cast<int64_t>(sizeof(T)) >= stream_bytes;
  const int64_t group = d.sweeps > 1 ? group_of(d) : d.batch;
  T* const buffers[2] = {static_cast<T*>(call.workspace), static_cast<T*>(call.workspace) + group * elements};
  for (int64_t b = 0; b < d.batch; b += group) {
    s.batch = std::min(group, d.batch - b);
    int64_t shape[3] = {1, 1, 1};
    s.src_strides[0] = s.src_strides[1] = 0, s.src_strides[2] = 1;
    for (int k = 0; k < d.rank; ++k) {
      shape[3 - d.rank + k] = d.shape[k];
      s.src_strides[3 - d.rank + k] = d.src_strides[k];
    }
    s.src = static_cast<const T*>(call.src) + b * d.src_batch_stride;
    s.src_batch_stride = d.src_batch_stride;
    for (int sweep = 0; sweep < d.sweeps; ++sweep) {
      std::copy_n(shape, 3, s.src_shape);
      if (valid)
        for (int k = 3 - d.rank; k < 3; ++k) shape[k] -= 2 * d.radius;
      std::copy_n(shape, 3, s.dst_shape);
      const int left = d.sweeps - 1 - sweep;
      if (left == 0 || (!valid && left % 2 == (LOCKSTEP_MUTANT("stencil_sweeps_in_the_wrong_buffer") ? 1 : 0))) {
        s.dst = static_cast<T*>(call.dst) + b * d.dst_batch_stride;
        s.dst_batch_stride = d.dst_batch_stride;
        s.dst_strides[0] = s.dst_strides[1] = 0, s.dst_strides[2] = 1;
        for (int k = 0; k < d.rank; ++k) s.dst_strides[3 - d.rank + k] = d.dst_strides[k];
      } else {
        s.dst = buffers[valid ? (left - 1) % 2 : 0];
        s.dst_batch_stride = shape[0] * shape[1] * shape[2];
        s.dst_strides[0] = shape[1] * shape[2], s.dst_strides[1] = shape[2], s.dst_strides[2] = 1;
      }
      run_sweep(queue, s, way == how::direct ? no_tile(s) : choose_tile(s, queue.threads));
      s.src = s.dst;
      s.src_batch_stride = s.dst_batch_stride;
      std::copy_n(s.dst_strides, 3, s.src_strides);
    }
  }
}

template <how Way>
lockstep_status launch(lockstep_queue* queue, const lockstep_call* call) {
  const stencil_kernels& k = stencil_kernels_of(queue->level);
  if (call->stencil.dtype == LOCKSTEP_F32)
    run_all<float>(*queue, *call, k.f32, Way);
  else
    run_all<double>(*queue, *call, k.f64, Way);
  return LOCKSTEP_OK;
}

const char* not_symmetric(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  for (int k = 0; k < d.coefficient_count / 2; ++k)
    if (!(d.coefficients[k] == d.coefficients[d.coefficient_count - 1 - k]))
      return "its coefficients are not symmetric";
  return nullptr;
}

const lockstep_variant rows[] = {
    {"tiled", "2r+1 planes stay in L2, folded ends apart, eight registers of results a tap", 0, nullptr, nullptr,
     stencil_workspace, launch<how::best>},
    {"folded", "c_k * (x[-k] + x[+k]): half the multiplications, other bits", LOCKSTEP_OWN_ORDER, not_symmetric,
     nullptr, stencil_workspace, launch<how::folded>},
    {"direct", "every tap from memory, one register of results at a time, no tiles: what blocking is worth",
     LOCKSTEP_LESSON, nullptr, nullptr, stencil_workspace, launch<how::direct>},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, ref_stencil_workspace,
     ref_stencil},
};
}  // namespace
const lockstep_table stencil_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
