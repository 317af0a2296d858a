// stencil_sweeps.cpp - many sweeps of a star stencil over a tile while it is in cache.
// Idea    A tile of the last sweep's results needs r more elements on each side from the
//         sweep before, 2r more from the one before that, and so on. Neighbouring tiles
//         both compute these. Along the outermost axis of rank 2 and 3 nothing is computed
//         twice: each sweep runs r rows (planes) behind the one before it, and a ring
//         keeps the 2r + a few rows that are still needed.
//         A line of radius 1 to 4 is divided into as many equal parts as a register has
//         lanes, one in each lane. So no sweep shuffles, and 2 to 4 of them stay in
//         registers.
// Moves   each element in once and out once in each pass, and the halos once more.
// Limit   the micro-kernels: fma of lines by lanes, else L1 (rank 1) or L2.
// Watch   a boundary folds in every sweep, not once before the first. Only WRAP may extend
//         the array, because elements outside are then computed from the same values.
// Source  order.hpp; wavefronts: Nguyen et al., 3.5-D blocking, SC10; lanes: Henretty et
//         al., data layout transformation for stencils, CC 2011.
#include "stencil_sweeps.hpp"

#include <atomic>

#include "parallel.hpp"
#include "transpose_kernels.hpp"

namespace lockstep::cpu {
namespace {

constexpr int64_t endless = int64_t{1} << 62;

int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

// The rows or planes that a sweep computes before the next sweep follows: those of a block.
int64_t chunk_of(int rank) { return rank == 2 ? 4 : rank == 3 ? 2 : 1; }

// Elements before and after each row that sweeps keep of a tile, and the distance between rows.
int64_t ends_of(int64_t r) { return parts_of(r, 16) * 16; }
int64_t pitch_of(int64_t r, int depth, int64_t width) {
  return parts_of(width + 2 * r * (depth - 1) + 2 * ends_of(r), 16) * 16;
}

// The axis along which sweeps follow each other. A line (rank 1) has none.
int streamed_axis(int rank) { return rank == 3 ? 0 : 1; }

}  // namespace

bool too_little_to_plan(const lockstep_queue& queue, const lockstep_stencil_desc& d) {
  double work = static_cast<double>(d.batch) * d.sweeps;
  for (int k = 0; k < d.rank; ++k) work *= static_cast<double>(d.shape[k]);
  return d.sweeps == 1 || work < 4 * static_cast<double>(queue.tuned->stencils.task_work);
}

// The depth and the tile of least cost. The cost of an element is its taps, with those of
// the halo, plus its transfer from and to memory, divided by the sweeps of a pass.
sweeps_plan plan_sweeps(const lockstep_queue& queue, const lockstep_stencil_desc& d) {
  const stencil_tuning& tuned = queue.tuned->stencils;
  const int threads = queue.threads;
  const int64_t r = d.radius, element = static_cast<int64_t>(lockstep_dtype_bytes(d.dtype));
  const int64_t nx = d.shape[d.rank - 1], ny = d.rank > 1 ? d.shape[d.rank - 2] : 1, nz = d.rank > 2 ? d.shape[0] : 1;
  const int64_t taps = 2 * r * d.rank + 1;
  const auto evenly = [](int64_t n, int64_t size) { return parts_of(n, parts_of(n, size)); };
  // Elements computed, with the halo, for each element of a tile.
  const auto again = [&](int64_t n, int64_t size, int depth, int64_t whole) {
    const int64_t wide = size + (size < n ? r * (depth - 1) : 0);
    return static_cast<double>(parts_of(wide, whole) * whole) / static_cast<double>(size);
  };
  sweeps_plan best;
  double least = 0;
  const auto consider = [&](int depth, int64_t x, int64_t y) {
    x = std::max<int64_t>(x, 1);
    const double passes = static_cast<double>(parts_of(d.sweeps, depth)) / d.sweeps;
    const double halo = again(nx, x, depth, 1) * (d.rank == 3 ? again(ny, y, depth, 1) : 1);
    const double computed = halo * again(nx, x, depth, tuned.block_bytes / element) / again(nx, x, depth, 1);
    const double cost = static_cast<double>(taps) * computed * (1 + tuned.row_cost / static_cast<double>(x)) +
                        tuned.memory_cost * (halo * halo + 1) / 2 * passes;
    if (least != 0 && cost >= least) return;
    least = cost;
    best.depth = depth;
    best.tile = {1, nz, y, x};
  };
  for (int depth = 1; depth <= std::min(d.sweeps, most_sweeps); ++depth) {
    const int64_t halo = 2 * r * (depth - 1);
    if (d.rank == 1) {
      for (const int64_t bytes : {tuned.l1_tile, tuned.l2_tile})
        consider(depth, std::min(nx, bytes / 2 / element - halo), 1);
      continue;
    }
    const int64_t rows = tuned.l2_tile / element / ((2 * r + chunk_of(d.rank)) * std::max(depth - 1, 1));
    for (int64_t size = 128, width = 0; width < nx; size *= 2) {
      width = std::min(evenly(nx, size), nx);
      const int64_t most = rows / pitch_of(r, depth, width);  // rows of one plane that a ring keeps
      if (depth == 1 ? size == 128 || most > 0 : most > (d.rank == 3 ? halo : 0))
        consider(depth, width, d.rank == 3 ? std::clamp<int64_t>(most - halo, 1, ny) : ny);
    }
  }
  // Enough tasks for all threads, as long as a task is worth waking a thread and its halo is a small part of it.
  extent& t = best.tile;
  const auto share_out = [&](int64_t n, int64_t& size) {
    const int64_t others = d.batch * parts_of(nz, t.z) * parts_of(ny, t.y) * parts_of(nx, t.x) / parts_of(n, size);
    const int64_t least = std::max(8 * r * best.depth, tuned.task_work / (t.z * t.y * t.x / size * best.depth));
    size = std::min(n, std::max(std::min(size, parts_of(n, parts_of(4 * threads, others))), least));
  };
  t.x = std::min(parts_of(evenly(nx, t.x), 16) * 16, nx);
  t.y = evenly(ny, t.y);
  if (threads > 1) {
    if (d.rank == 1) share_out(nx, t.x);
    if (d.rank == 2) share_out(ny, t.y);
    if (d.rank == 3) share_out(nz, t.z);
  }
  return plan_of(d, best.depth, t);
}

sweeps_plan plan_lanes(const lockstep_queue& queue, const lockstep_stencil_desc& d, int lanes) {
  const stencil_tuning& tuned = queue.tuned->stencils;
  const int64_t element = static_cast<int64_t>(lockstep_dtype_bytes(d.dtype)), line = 64 / element;
  const int passes = static_cast<int>(parts_of(d.sweeps, most_sweeps));
  sweeps_plan plan;
  plan.depth = static_cast<int>(parts_of(d.sweeps, passes));
  const int64_t halo = int64_t{d.radius} * plan.depth;
  // Tiles with a comparatively small halo, in the smallest cache that has room for them.
  const int64_t small = tuned.l1_tile / element;
  const int64_t large = tuned.l2_line_tile / element;
  int64_t elements = small >= tuned.l1_halos * halo ? small : large;
  const int64_t least = std::max(tuned.lane_halos * halo * lanes, tuned.task_work / plan.depth);
  elements = std::clamp(parts_of(d.shape[0] * d.batch, 2 * queue.threads), std::min(elements, least), elements);
  const int64_t columns = (elements / lanes / line - 1) / 2 * 2 + 1;
  plan.tile = {1, 1, 1, std::max<int64_t>(columns * line * lanes - 2 * halo - line, line)};
  plan.tile.x = std::min(plan.tile.x, d.shape[0]);
  return with_columns(d, plan, columns * line, lanes);
}

sweeps_plan with_columns(const lockstep_stencil_desc& d, sweeps_plan plan, int64_t columns, int lanes) {
  sweeps_plan all = plan_of(d, plan.depth, plan.tile);
  all.columns = columns;
  all.own_elements = std::max(all.own_elements, all.pitch + (columns + 2 * int64_t{d.radius} * plan.depth) * lanes);
  return all;
}

sweeps_plan plan_of(const lockstep_stencil_desc& d, int depth, const extent& tile) {
  const int64_t r = d.radius, halo = 2 * r * (depth - 1);
  sweeps_plan plan;
  plan.depth = depth;
  plan.tile = tile;
  plan.ends = ends_of(r);
  plan.pitch = pitch_of(r, depth, tile.x);
  // Rows must not fall into only a few sets of a cache.
  if (plan.pitch * static_cast<int64_t>(lockstep_dtype_bytes(d.dtype)) % 4096 == 0) plan.pitch += 16;
  plan.plane = plan.pitch * (d.rank == 3 ? tile.y + halo : 1);
  plan.ring = d.rank == 1 ? 1 : 2 * r + chunk_of(d.rank);
  const int rings = d.rank == 1 ? std::min(depth - 1, 2) : depth - 1;
  plan.own_elements = plan.pitch + rings * plan.ring * plan.plane;
  return plan;
}

namespace {

struct span {
  int64_t begin, end;
};

// Sweeps a line whose parts are in the lanes of registers: neighbours are one register apart in the
// same lane, so no sweep shuffles. Only the two ends of the window become wrong. Computes those of
// the results begin <= x < end whose halo is within the array, and returns their range.
template <class T>
span by_lanes(const lockstep_queue& queue, const sweep<T>& s, const sweeps_plan& plan, int depth, int64_t begin,
              int64_t end, T* own) {
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T));
  const int64_t lanes = s.lanes->lanes, halo = int64_t{s.radius} * depth, n = s.src_shape[2];
  const int64_t shift = s.boundary == LOCKSTEP_BOUNDARY_VALID ? halo : 0;  // from a result's place to src's
  // The window: elements of src from `at` on, such that the results start on a cache line. As
  // many registers as the tile or the array has, with an odd number of lines for each lane.
  const int64_t from = std::max(begin, halo - shift + line - 1);
  const auto place = static_cast<int64_t>(reinterpret_cast<uintptr_t>(s.dst.data) / sizeof(T)) + from - halo;
  const int64_t at = from + shift - halo - place % line;
  const int64_t wanted = parts_of(parts_of(end + shift + halo - at, lanes), line) | 1;
  const int64_t there = std::max<int64_t>(n - at, 0) / (lanes * line);
  const int64_t columns = (wanted <= there ? wanted : there - (there % 2 == 0)) * line;
  const int64_t first = from + shift - at, last = std::min(end + shift - at, columns * lanes - halo);
  const int64_t spare = columns * lanes - last;  // of the last lane
  if (columns > plan.columns || columns < first + spare || last <= first) return {begin, begin};

  T* const registers = own + plan.pitch + halo * lanes;
  const transpose_kernels& transposes = transpose_kernels_of(queue.kernels);
  const auto transpose = transposes.tile[sizeof(T) == 4 ? 2 : 3];
  const int most = std::min(s.lanes->most[s.radius - 1], depth);
  const auto bytes = [](int64_t elements) { return elements * static_cast<int64_t>(sizeof(T)); };
  const auto chars = [](const T* p) { return reinterpret_cast<const char*>(p); };
  transpose(chars(s.src.data + at), bytes(columns), reinterpret_cast<char*>(registers), bytes(lanes), lanes, columns,
            store::cached, {});
  // Meanwhile the data of the next tile is prefetched, a part by each kernel.
  const int64_t ahead_bytes = bytes(lanes) * most / depth;
  const char* ahead = chars(s.src.data + at + plan.tile.x);
  for (int done = 0; done < depth; ahead += columns * ahead_bytes) {
    const int sweeps = std::min(most, depth - done);
    const int64_t beside = int64_t{s.radius} * sweeps * lanes;
    // The register before the first is the last one shifted by a lane; the one after the last is the first, shifted
    // back.
    std::memcpy(registers - beside, registers + columns * lanes - beside - 1, static_cast<size_t>(bytes(beside)));
    std::memcpy(registers + columns * lanes, registers + 1, static_cast<size_t>(bytes(beside)));
    done += sweeps;
    s.lanes->sweep[s.radius - 1](registers, columns, sweeps, s.coefficients, done == depth, ahead, ahead_bytes);
  }
  T* const dst = s.dst.data + at - shift;
  const auto put = [&](int64_t a, int64_t b, int64_t lane, int64_t to, store how) {
    if (a < b)
      transpose(chars(registers + a * lanes + lane), bytes(lanes), reinterpret_cast<char*>(dst + lane * columns + a),
                bytes(columns), b - a, to - lane, how, {});
  };
  const int64_t a = std::min(parts_of(first, line) * line, columns - spare),
                b = std::max(a, (columns - spare) / line * line);
  put(0, first, 1, lanes, store::cached);
  put(first, a, 0, lanes, store::cached);
  put(a, b, 0, lanes, s.stream ? store::stream_lines : store::cached);
  put(b, columns - spare, 0, lanes, store::cached);
  put(columns - spare, columns, 0, lanes - 1, store::cached);
  return {from, last + at - shift};
}

// One task: `depth` sweeps of the tile first <= at < last of the last sweep's results.
template <class T>
class tile_sweeps {
 public:
  tile_sweeps(const lockstep_queue& called_on, const sweep<T>& pass, const sweeps_plan& chosen, int sweeps,
              const extent& from, const extent& to, T* mine)
      : queue(called_on), s(pass), plan(chosen), depth(sweeps), streamed(streamed_axis(pass.rank)), own(mine) {
    const int64_t begin[3] = {from.z, from.y, from.x}, end[3] = {to.z, to.y, to.x};
    for (int axis = 0; axis < 3; ++axis) {
      const int64_t n = s.src_shape[axis];
      halo[axis] = axis >= 3 - s.rank ? s.radius : 0;
      // Under WRAP the axis has no ends. Its coordinates are shifted by whole rounds, so that no
      // halo starts below 0.
      rounds[axis] =
          s.boundary == LOCKSTEP_BOUNDARY_WRAP && halo[axis] != 0 && (axis == streamed || end[axis] - begin[axis] < n);
      shift[axis] = rounds[axis] ? parts_of(halo[axis] * depth, n) * n : 0;
      first[axis] = begin[axis] + shift[axis];
      last[axis] = end[axis] + shift[axis];
    }
  }

  void run() {
    span of[most_sweeps + 1];  // still to do along the streamed axis
    for (int level = 1; level <= depth; ++level) of[level] = reach(streamed, level);
    const int64_t behind = halo[streamed] * (s.boundary == LOCKSTEP_BOUNDARY_VALID ? 2 : 1);
    while (of[depth].begin < of[depth].end && !interrupted(queue))
      for (int level = 1; level <= depth; ++level) {
        int64_t end = std::min(of[level].end, of[level].begin + chunk_of(s.rank));
        if (level > 1 && of[level - 1].begin < of[level - 1].end) end = std::min(end, of[level - 1].begin - behind);
        if (end <= of[level].begin) continue;
        run_level(level, of[level].begin, end);
        of[level].begin = end;
      }
  }

 private:
  // What a sweep computes along an axis, in its own coordinates.
  span reach(int axis, int level) const {
    const int64_t more = halo[axis] * (depth - level);
    if (s.boundary == LOCKSTEP_BOUNDARY_VALID) return {first[axis], last[axis] + 2 * more};
    if (rounds[axis]) return {first[axis] - more, last[axis] + more};
    return {std::max<int64_t>(first[axis] - more, 0), std::min(last[axis] + more, s.src_shape[axis])};
  }

  // The ring of a sweep's results, of which those from `oldest` on are needed.
  window<T> ring(int level, int64_t oldest) const {
    const int place = s.rank == 1 ? (level - 1) % 2 : level - 1;
    window<T> w{own + plan.pitch + place * plan.ring * plan.plane + plan.ends - reach(2, 1).begin};
    w.strides[0] = s.rank == 3 ? plan.plane : 0;
    w.strides[1] = plan.pitch;
    w.origin[1] = reach(1, 1).begin;
    w.origin[streamed] = oldest - oldest % plan.ring;
    w.ring[streamed] = plan.ring;
    return w;
  }

  void run_level(int level, int64_t begin, int64_t end) const {
    sweep<T> one = s;
    const int64_t below = s.boundary == LOCKSTEP_BOUNDARY_VALID ? 0 : halo[streamed];
    if (level > 1) {
      one.ends_stand = true;
      const window<T> w = ring(level - 1, std::max<int64_t>(begin - below, reach(streamed, level - 1).begin));
      one.src = {w.data};
      std::copy_n(w.strides, 3, one.src.strides);
      std::copy_n(w.origin, 2, one.src.origin);
      std::copy_n(w.ring, 2, one.src.ring);
      for (int axis = 0; axis < 3; ++axis)
        if (rounds[axis] || s.boundary == LOCKSTEP_BOUNDARY_VALID) one.src_shape[axis] = endless;
    }
    if (level < depth) {
      one.dst = ring(level, begin);
      one.stream = false;
    } else {
      one.dst.origin[0] += shift[0];
      one.dst.origin[1] += shift[1];
      one.dst.data -= shift[2];
    }
    span of[3];
    for (int axis = 0; axis < 3; ++axis) of[axis] = axis == streamed ? span{begin, end} : reach(axis, level);
    // Rows of rings start on cache lines; the elements before the first result are padding.
    if (level > 1 && level < depth) of[2].begin -= (of[2].begin - reach(2, 1).begin) % 16;
    if (level > 1)
      run_tile(one, {0, of[0].begin, of[1].begin, of[2].begin}, {1, of[0].end, of[1].end, of[2].end}, own);
    else
      over_rounds(one, of, 0);
    if (level < depth) put_ends(one.dst, of);
  }

  // Fills the elements beyond the ends of the innermost axis, next to the rows just computed.
  void put_ends(const window<T>& results, const span (&of)[3]) const {
    const int64_t r = s.radius, n = s.src_shape[2];
    const lockstep_boundary boundary = s.boundary;
    if (boundary == LOCKSTEP_BOUNDARY_VALID || rounds[2]) return;
    for (int64_t z = of[0].begin; z < of[0].end; ++z)
      for (int64_t y = of[1].begin; y < of[1].end; ++y) {
        T* const row = results.row(z, y);
        const auto put = [&](int64_t x) {
          row[x] = boundary == LOCKSTEP_BOUNDARY_CONSTANT
                       ? s.value
                       : row[order::folded(x, n, static_cast<order::fold>(boundary))];
        };
        for (int64_t k = 1; k <= r && of[2].begin == 0; ++k) put(-k);
        for (int64_t k = 0; k < r && of[2].end == n; ++k) put(n + k);
      }
  }

  // The first sweep reads the array, which is the same in each round: piece by piece.
  void over_rounds(const sweep<T>& one, span (&of)[3], int axis) const {
    if (axis == 3)
      return run_tile(one, {0, of[0].begin, of[1].begin, of[2].begin}, {1, of[0].end, of[1].end, of[2].end}, own);
    const span all = of[axis];
    const int64_t n = s.src_shape[axis];
    for (int64_t at = all.begin; at < all.end;) {
      const int64_t round = rounds[axis] ? at / n * n : 0, to = rounds[axis] ? std::min(all.end, round + n) : all.end;
      sweep<T> piece = one;
      if (axis < 2)
        piece.dst.origin[axis] -= round;
      else
        piece.dst.data += round;
      of[axis] = {at - round, to - round};
      over_rounds(piece, of, axis + 1);
      at = to;
    }
    of[axis] = all;
  }

  const lockstep_queue& queue;
  const sweep<T>& s;
  const sweeps_plan& plan;
  const int depth, streamed;
  T* const own;  // a row of the value, then the rings
  bool rounds[3];
  int64_t halo[3], shift[3], first[3], last[3];
};

}  // namespace

template <class T>
void run_pass(const lockstep_queue& queue, const sweep<T>& s, const sweeps_plan& plan, int depth, T* own) {
  const extent count{s.batch, parts_of(s.dst_shape[0], plan.tile.z), parts_of(s.dst_shape[1], plan.tile.y),
                     parts_of(s.dst_shape[2], plan.tile.x)};
  over_shares(queue, count.b * count.z * count.y * count.x, [&](int64_t task, int thread) {
    T* const mine = own + thread * plan.own_elements;
    extent first, last;
    first.x = task % count.x * plan.tile.x, task /= count.x;
    first.y = task % count.y * plan.tile.y, task /= count.y;
    first.z = task % count.z * plan.tile.z, task /= count.z;
    last.x = std::min(first.x + plan.tile.x, s.dst_shape[2]);
    last.y = std::min(first.y + plan.tile.y, s.dst_shape[1]);
    last.z = std::min(first.z + plan.tile.z, s.dst_shape[0]);
    sweep<T> array = s;
    array.src.data += task * s.src.batch_stride;
    array.dst.data += task * s.dst.batch_stride;
    if (s.boundary == LOCKSTEP_BOUNDARY_CONSTANT && s.rank > 1) std::fill_n(mine, plan.pitch, s.value);
    const auto part = [&](int64_t begin, int64_t end) {
      if (begin == end) return;
      first.x = begin, last.x = end;
      tile_sweeps<T>(queue, array, plan, depth, first, last, mine).run();
    };
    const int64_t from = first.x, to = last.x;
    const auto inside = s.lanes != nullptr ? by_lanes(queue, array, plan, depth, from, to, mine) : span{from, from};
    part(from, inside.begin);
    part(inside.end, to);
    if (s.stream) std::atomic_thread_fence(std::memory_order_seq_cst);  // orders non-temporal stores
  });
}
template void run_pass(const lockstep_queue&, const sweep<float>&, const sweeps_plan&, int, float*);
template void run_pass(const lockstep_queue&, const sweep<double>&, const sweeps_plan&, int, double*);

}  // namespace lockstep::cpu
