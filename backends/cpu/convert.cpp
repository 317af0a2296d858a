// convert.cpp - dst = src * scale as another type, axes in any order; map: dst = function(src) * scale * times.
// Idea    Axes are fused as those of a permute. Where both sides run along one axis, runs are converted as they are
//         copied. Where src runs along one and dst along another, a block of rows of src is converted into the L1 and
//         transposed from there; all else goes by a few hundred elements that are gathered, converted and put in place.
// Moves   each element in and out once; large results by non-temporal stores.
// Limit   the copy limit in DRAM; of one core in its caches the conversions.
// Watch   non-temporal stores need whole lines: strips of rows start where lines of dst do, and where rows of dst begin
//         anywhere in a line they go by staged_lines.cpp.
// Source  this file; the transposes of blocks are those of tiles.cpp.
#include <algorithm>
#include <cstring>

#include "axes.hpp"
#include "convert_kernels.hpp"
#include "ops.hpp"
#include "parallel.hpp"

namespace lockstep::cpu {
namespace {

constexpr int64_t line = 64;
// Bytes that each visit of a block reads of a row of src and writes of a row of dst; bytes of a block at most, on the
// stack; elements that are gathered at a time; the shortest run, and the shortest row of a block, worth a kernel's
// call.
constexpr int64_t read_bytes = 512, written_bytes = 256, block_bytes = 96 << 10, gathered = 256, least_run = 16,
                  least_row = 8;
// Elements that are doubles at once while a function is computed: 2 KiB of the L1.
constexpr int64_t doubles = 256;
// Rows that are converted between two slices of the block before, and how many rows ahead is prefetched.
constexpr int64_t group = 16, rows_ahead = 4;

struct conversion {
  using kernel = void (*)(const void* src, void* dst, int64_t n, double scale, bool stream);
  kernel plain, widen, round;
  void (*function)(double* x, int64_t n);  // nullptr: convert
  const function_kernels* functions;
  ptrdiff_t times = 0;              // bytes from an element of src to that of `times`
  bool gated = false;               // whether there are such
  const integer_kernels* integers;  // nullptr: both types are floats
  lockstep_dtype dtype, result;
  double scale;
  move_axes axes;
  double moved;  // bytes, both ways

  conversion(const lockstep_queue& queue, const lockstep_call& call)
      : conversion(converters(queue.kernels), lockstep::cpu::integers(queue.kernels), call.convert,
                   call.op == LOCKSTEP_MAP ? functions_of(queue.kernels).apply[call.map.function] : nullptr) {
    functions = &functions_of(queue.kernels);
    if (call.op != LOCKSTEP_MAP || call.map.times == nullptr) return;
    gated = true;
    times = static_cast<ptrdiff_t>(reinterpret_cast<uintptr_t>(call.map.times) - reinterpret_cast<uintptr_t>(call.src));
    moved += moved / static_cast<double>(axes.from + axes.to) * static_cast<double>(axes.from);
  }
  conversion(const convert_kernels& kernels, const integer_kernels& of_integers, const lockstep_convert_desc& d,
             void (*of)(double*, int64_t))
      : plain(kernels.run[float_of(d.dtype)][float_of(d.result)]),
        widen(kernels.run[float_of(d.dtype)][LOCKSTEP_F64 - 1]),
        round(kernels.run[LOCKSTEP_F64 - 1][float_of(d.result)]),
        function(of),
        integers(is_integer(d.dtype) || is_integer(d.result) ? &of_integers : nullptr),
        dtype(d.dtype),
        result(d.result),
        scale(d.scale) {
    axes.from = static_cast<int64_t>(lockstep_dtype_bytes(d.dtype));
    axes.to = static_cast<int64_t>(lockstep_dtype_bytes(d.result));
    double elements = 1;
    for (int k = 0; k < d.rank; ++k) {
      axes.add(d.shape[k], d.src_strides[k] * axes.from, d.dst_strides[k] * axes.to);
      elements *= static_cast<double>(d.shape[k]);
    }
    axes.fuse();
    moved = elements * static_cast<double>(axes.from + axes.to);
  }

  static bool is_integer(lockstep_dtype d) { return d > LOCKSTEP_F64; }
  static int float_of(lockstep_dtype d) { return (is_integer(d) ? LOCKSTEP_F64 : d) - 1; }

  // n integers as other integers, or as floats, or floats as integers, by way of doubles.
  void run_integers(const char* in, char* out, int64_t n, bool stream) const {
    if (dtype == result && scale == 1 && dtype != LOCKSTEP_BOOL) {
      memcpy(out, in, static_cast<size_t>(n * axes.to));
      return;
    }
    alignas(line) double x[doubles];
    alignas(line) int64_t whole[doubles];
    const int source = dtype - LOCKSTEP_I32, target = result - LOCKSTEP_I32;
    const bool among = is_integer(dtype) && is_integer(result), odd = scale == 1 && result != LOCKSTEP_F64;
    for (int64_t some; n > 0; in += some * axes.from, out += some * axes.to, n -= some) {
      some = std::min(n, doubles);
      if (among && scale == 1) {
        integers->to_integers[source](in, whole, some);
        integers->from_integers[target](whole, out, some);
        continue;
      }
      if (is_integer(dtype))
        integers->to_doubles[source](in, x, some, odd);
      else
        widen(in, x, some, scale, false);
      if (among)
        for (int64_t k = 0; k < some; ++k) x[k] *= scale;
      if (is_integer(result))
        integers->from_doubles[target](x, out, some);
      else
        round(x, out, some, scale, stream);
    }
  }

  // n elements that are contiguous on both sides, in place at src, and so those of times.
  void run(const void* src, void* dst, int64_t n, bool stream) const {
    run(src, gated ? static_cast<const char*>(src) + times : nullptr, dst, n, stream);
  }
  void run(const void* src, const char* by, void* dst, int64_t n, bool stream) const {
    if (integers != nullptr) return run_integers(static_cast<const char*>(src), static_cast<char*>(dst), n, stream);
    if (function == nullptr) return plain(src, dst, n, scale, stream);
    alignas(line) double x[doubles];
    alignas(line) double factor[doubles];
    const auto* in = static_cast<const char*>(src);
    auto* out = static_cast<char*>(dst);
    // Blocks after the first begin where a line of dst does.
    const int64_t past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(out) % line) / axes.to;
    for (int64_t some = std::min(n, doubles - past); n > 0; some = std::min(n, doubles)) {
      widen(in, x, some, 1, false);
      for (int64_t k = some; k % 8 != 0; ++k) x[k] = 0;
      const int64_t whole = (some + 7) / 8 * 8;
      function(x, whole);
      if (by != nullptr) {
        widen(by, factor, some, 1, false);
        for (int64_t k = some; k < whole; ++k) factor[k] = 0;
        functions->products(x, factor, whole, scale);
        by += some * axes.from;
      }
      round(x, out, some, by != nullptr ? 1 : scale, stream);
      in += some * axes.from, out += some * axes.to, n -= some;
    }
  }
};

bool beyond_caches(const lockstep_queue& queue, const conversion& c) { return c.moved >= streamed_from(queue); }

// Elements before the first whole line of dst, none if it has none.
int64_t phase_of(const char* dst, int64_t bytes) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(dst) % static_cast<uintptr_t>(line)) / bytes;
}

void run_runs(const lockstep_queue& queue, const conversion& c, const tiles& t, const char* src, char* dst) {
  const transpose_kernels& kernels = transpose_kernels_of(queue.kernels);
  const move_tuning& tuned = queue.tuned->moves;
  const bool stream = beyond_caches(queue, c) && t.cols * c.axes.to >= tuned.streamed_run;
  const int64_t share = tuned.copy_bytes / c.axes.to, pieces = (t.cols - 1) / share + 1;
  const int64_t tasks = matrices_of(t) * pieces;
  const bool alone = c.moved < static_cast<double>(tuned.one_thread_bytes);
  over_ranges(queue, tasks, alone ? tasks : 1, [&](int64_t first, int64_t last) {
    int64_t part = first % pieces;
    odometer at(t, src, dst, first / pieces);
    for (int64_t task = first; task < last; ++task) {
      const int64_t start = part * share, some = std::min(share, t.cols - start);
      c.run(at.src + start * c.axes.from, at.dst + start * c.axes.to, some, stream);
      if (++part < pieces) continue;
      part = 0;
      at.next();
    }
    kernels.fence();
  });
}

// Rows [first, last) of a piece of src to a block; rows farther on, or of the next piece, are prefetched.
void convert_rows(const conversion& c, const tiles& t, const char* src, char* block, int64_t pitch, int64_t first,
                  int64_t last, int64_t rows, int64_t cols, bool goes_on) {
  const int64_t bytes = cols * c.axes.from;
  for (int64_t row = first; row < last; ++row) {
    const bool below = row + rows_ahead < rows;
    const char* const then =
        src + (below ? (row + rows_ahead) * t.src_ld : (row + rows_ahead - rows) * t.src_ld + bytes);
    if (below || (goes_on && row + rows_ahead - rows < rows))
      for (int64_t k = 0; k < bytes; k += line) __builtin_prefetch(then + k, 0, 2);
    c.run(src + row * t.src_ld, block + row * pitch, cols, false);
  }
}

// Short rows of src without gaps, which are one run.
bool one_run(const conversion& c, const tiles& t) { return t.src_ld == t.cols * c.axes.from && t.src_ld < read_bytes; }

// A strip of rows of src by cols columns, piece by piece: while one is converted the one before is transposed, so that
// reads and writes overlap.
void convert_strip(const conversion& c, const transpose_kernels& kernels, const tiles& t, const char* src, char* dst,
                   int64_t rows, int64_t cols, int64_t width, store how) {
  alignas(line) char blocks[2][block_bytes];
  const auto tile = kernels.tile[t.log2_bytes];
  if (one_run(c, t)) {
    c.run(src, blocks[0], rows * cols, false);
    tile(blocks[0], cols * c.axes.to, dst, t.dst_ld, rows, cols, how, {});
    return;
  }
  const int64_t pitch = pitch_of(width * c.axes.to), groups = (rows - 1) / group + 1;
  const int64_t slice = ((width - 1) / groups / group + 1) * group;  // columns of the piece before to each group
  int64_t before = 0;                                                // its columns
  for (int64_t col = 0, piece = 0; col < cols + width; col += width, ++piece) {
    const int64_t here = std::clamp<int64_t>(cols - col, 0, width);
    char *const block = blocks[piece % 2], *const done = blocks[(piece + 1) % 2];
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t first = g * group, last = std::min(rows, first + group);
      if (here > 0)
        convert_rows(c, t, src + col * c.axes.from, block, pitch, first, last, rows, here, col + 2 * width <= cols);
      const int64_t from = std::min(before, g * slice), to = g + 1 == groups ? before : std::min(before, from + slice);
      if (from < to)
        tile(done + from * c.axes.to, pitch, dst + (col - width + from) * t.dst_ld, t.dst_ld, rows, to - from, how, {});
    }
    before = here;
  }
}

// Large matrices whose rows of dst begin at any place in a line.
void run_lines(const lockstep_queue& queue, const conversion& c, const tiles& t, const char* src, char* dst) {
  struct lines {
    const conversion& c;
    const tiles& t;
  } const all{c, t};
  const strip_maker maker{
      c.axes.from,
      [](const void* self, const char* from, char* room, int64_t pitch, int64_t rows, int64_t cols) {
        const auto& l = *static_cast<const lines*>(self);
        convert_rows(l.c, l.t, from, room, pitch, 0, rows, rows, cols, false);
      },
      &all};
  run_staged(queue, t, &maker, src, dst);
}

void run_matrices(const lockstep_queue& queue, const conversion& c, const tiles& t, const char* src, char* dst) {
  const transpose_kernels& kernels = transpose_kernels_of(queue.kernels);
  const move_tuning& tuned = queue.tuned->moves;
  bool lines = t.dst_ld % line == 0 && t.rows * c.axes.to >= line;
  for (int k = 0; k < t.axes; ++k) lines = lines && (t.outer[k].count == 1 || t.outer[k].dst % line == 0);
  const store how = lines && beyond_caches(queue, c) ? store::stream_lines : store::cached;
  // The first strip is short where dst begins within a line.
  const int64_t phase = how == store::stream_lines ? phase_of(dst, c.axes.to) : 0;
  const bool run = one_run(c, t);
  const int64_t of_line = line / c.axes.to;
  const int64_t most = run ? block_bytes / c.axes.to / t.cols / of_line * of_line : written_bytes / c.axes.to;
  const int64_t height = std::min(t.rows + phase, most);
  const int64_t width =
      run ? t.cols : std::min(t.cols, std::max((block_bytes / height - 2 * line) / c.axes.to / group * group, group));
  const int64_t strips = (t.rows - 1 + phase) / height + 1, matrices = matrices_of(t);
  // Of a flat matrix the columns are shared out, too.
  const int64_t wanted = tuned.strips_a_thread * queue.threads / (matrices * strips) + 1;
  const int64_t share = std::max(std::min(tuned.task_cols, t.cols / wanted / width * width), width);
  const int64_t chunks = (t.cols - 1) / share + 1, tasks = matrices * strips * chunks;
  const bool alone = c.moved < static_cast<double>(tuned.one_thread_bytes);
  over_ranges(queue, tasks, alone ? tasks : 1, [&](int64_t first, int64_t last) {
    int64_t chunk = first % chunks, strip = first / chunks % strips;
    odometer at(t, src, dst, first / chunks / strips);
    for (int64_t task = first; task < last; ++task) {
      const int64_t row = std::max<int64_t>(strip * height - phase, 0);
      const int64_t end = std::min(t.rows, (strip + 1) * height - phase);
      const int64_t col = chunk * share, cols = std::min(share, t.cols - col);
      const bool head = phase != 0 && strip == 0;
      convert_strip(c, kernels, t, at.src + row * t.src_ld + col * c.axes.from,
                    at.dst + col * t.dst_ld + row * c.axes.to, end - row, cols, width, head ? store::cached : how);
      if (++chunk < chunks) continue;
      chunk = 0;
      if (++strip < strips) continue;
      strip = 0;
      at.next();
    }
    kernels.fence();
  });
}

// Elements on the way along dst's fastest axis, the others as an odometer.
struct walk {
  const tiles& t;
  const tiles::axis inner;
  odometer at;
  int64_t i = 0;

  walk(const tiles& outer, const tiles::axis& fastest, const char* src, char* dst, int64_t row)
      : t(outer), inner(fastest), at(outer, src, dst, row) {}
  // Calls body(src, dst, n, done) for n elements of one row at a time, `count` in all.
  template <class Body>
  void over(int64_t count, const Body& body) {
    for (int64_t done = 0; done < count;) {
      const int64_t n = std::min(inner.count - i, count - done);
      body(at.src + i * inner.src, at.dst + i * inner.dst, n, done);
      done += n, i += n;
      if (i < inner.count) continue;
      i = 0;
      at.next();
    }
  }
};

template <class Element>
void gather(walk& w, int64_t count, char* to) {
  w.over(count, [&](const char* src, char*, int64_t n, int64_t done) {
    for (int64_t k = 0; k < n; ++k)
      std::memcpy(to + (done + k) * static_cast<int64_t>(sizeof(Element)), src + k * w.inner.src, sizeof(Element));
  });
}
template <class Element>
void scatter(walk& w, int64_t count, const char* from) {
  w.over(count, [&](const char*, char* dst, int64_t n, int64_t done) {
    for (int64_t k = 0; k < n; ++k)
      std::memcpy(dst + k * w.inner.dst, from + (done + k) * static_cast<int64_t>(sizeof(Element)), sizeof(Element));
  });
}

void run_elements(const lockstep_queue& queue, const conversion& c, const char* src, char* dst) {
  const move_axes& a = c.axes;
  const tiles::axis inner = a.axes > 0 ? a.axis[a.axes - 1] : tiles::axis{1, 0, 0};
  const tiles outer = a.without(a.axes - 1, a.axes - 1);
  const int64_t from = c.axes.from, to = c.axes.to;
  const auto gather_one = from == 1   ? gather<uint8_t>
                          : from == 2 ? gather<uint16_t>
                          : from == 4 ? gather<uint32_t>
                                      : gather<uint64_t>;
  const auto scatter_one = to == 1   ? scatter<uint8_t>
                           : to == 2 ? scatter<uint16_t>
                           : to == 4 ? scatter<uint32_t>
                                     : scatter<uint64_t>;
  over_ranges(queue, matrices_of(outer) * inner.count, gathered, [&](int64_t first, int64_t last) {
    walk in(outer, inner, src, dst, first / inner.count), out(outer, inner, src, dst, first / inner.count);
    walk beside(outer, inner, src + c.times, dst, first / inner.count);
    in.i = out.i = beside.i = first % inner.count;
    uint64_t here[gathered], there[gathered], by[gathered];
    for (int64_t begin = first; begin < last; begin += gathered) {
      const int64_t n = std::min(gathered, last - begin);
      gather_one(in, n, reinterpret_cast<char*>(here));
      if (c.gated) gather_one(beside, n, reinterpret_cast<char*>(by));
      c.run(here, c.gated ? reinterpret_cast<const char*>(by) : nullptr, there, n, false);
      scatter_one(out, n, reinterpret_cast<const char*>(there));
    }
  });
}

// ---- the table ------------------------------------------------------------------------
const char* not_runs(const lockstep_queue* queue, const lockstep_call* call) {
  return conversion(*queue, *call).axes.runs() ? nullptr : "needs an axis that is contiguous in src and in dst";
}
int runs_yield(const lockstep_queue* queue, const lockstep_call* call) {
  const auto t = conversion(*queue, *call).axes.runs();
  return static_cast<int>(t->cols < least_run && t->axes > 0);
}
lockstep_status launch_runs(lockstep_queue* queue, const lockstep_call* call) {
  const conversion c(*queue, *call);
  run_runs(*queue, c, *copies_of(c.axes), static_cast<const char*>(call->src), static_cast<char*>(call->dst));
  return LOCKSTEP_OK;
}
const char* not_matrices(const lockstep_queue* queue, const lockstep_call* call) {
  return conversion(*queue, *call).axes.matrices()
             ? nullptr
             : "needs an axis that is contiguous in src and another that is in dst";
}
const char* not_staged(const lockstep_queue* queue, const lockstep_call* call) {
  const auto t = conversion(*queue, *call).axes.matrices();
  return t ? not_staged(*queue, *t, nullptr) : not_matrices(queue, call);
}
int staged_yields(const lockstep_queue* queue, const lockstep_call* call) {
  const conversion c(*queue, *call);
  const tiles t = *c.axes.matrices();
  return static_cast<int>(!beyond_caches(*queue, c) || !rows_share_lines(t) ||
                          t.rows * c.axes.to < queue->tuned->staging.least_row);
}
lockstep_status launch_staged(lockstep_queue* queue, const lockstep_call* call) {
  const conversion c(*queue, *call);
  run_lines(*queue, c, *c.axes.matrices(), static_cast<const char*>(call->src), static_cast<char*>(call->dst));
  return LOCKSTEP_OK;
}
int matrices_yield(const lockstep_queue* queue, const lockstep_call* call) {
  const conversion c(*queue, *call);
  const auto t = c.axes.matrices();
  return static_cast<int>(t->cols < least_row && !one_run(c, *t));
}
lockstep_status launch_matrices(lockstep_queue* queue, const lockstep_call* call) {
  const conversion c(*queue, *call);
  run_matrices(*queue, c, *c.axes.matrices(), static_cast<const char*>(call->src), static_cast<char*>(call->dst));
  return LOCKSTEP_OK;
}
lockstep_status launch_elements(lockstep_queue* queue, const lockstep_call* call) {
  const conversion c(*queue, *call);
  run_elements(*queue, c, static_cast<const char*>(call->src), static_cast<char*>(call->dst));
  return LOCKSTEP_OK;
}

const lockstep_variant rows[] = {
    {"runs", "axes fused, then runs that are contiguous on both sides, by SIMD conversions", 0, not_runs, runs_yield,
     nullptr, launch_runs},
    {"staged_lines", "as tiled, where rows of dst begin at any place in a line: whole lines from a block in L2", 0,
     not_staged, staged_yields, nullptr, launch_staged},
    {"tiled", "axes fused, then blocks of rows converted into the L1 and transposed from there", 0, not_matrices,
     matrices_yield, nullptr, launch_matrices},
    {"strided", "axes fused, then some elements at a time, gathered and put in place, with any strides", 0, nullptr,
     nullptr, nullptr, launch_elements},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_convert},
};

}  // namespace
const lockstep_table convert_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
