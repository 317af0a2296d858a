// narrow.cpp - matrices with a side of a few bytes: batches of tiny ones, interleaving and deinterleaving of pixels.
// Idea    dst (or each row of it, if there are few columns) is a stream of registers whose bytes come from a few places
//         of src. Their relative positions repeat every `period` items. A program of byte permutations (isa/bytes.cpp)
//         describes one period; it is made at the start of a call and run over all periods.
//           tiny      a batch without gaps; item: a matrix
//           few rows  dst rows without gaps; item: a column of src, a row of dst
//           few cols  src rows without gaps; item: a row of src, an element of every row of dst
//         Batches of matrices that fit into registers have a kernel of their own (isa/small.cpp).
// Moves   each byte in and out once; large results by non-temporal stores.
// Limit   that of tiles.cpp from L3 on
// Watch   a register's loads may read past the end of src, so the register tiles handle the last items.
// Source  this file
#include "byte_kernels.hpp"
#include "parallel.hpp"
#include "tiles.hpp"

namespace lockstep::cpu {

bool has_vbmi() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vbmi");
#else
  return false;
#endif
}

namespace {

struct narrow {
  enum { none, tiny, few_rows, few_cols } kind = none;
  int64_t items = 0, item_src = 0, item_dst = 0;  // bytes from an item to the next
  int64_t end = 0;                                // of src's bytes, from the first item on
  int64_t period = 1;                             // items
  int stores = 0;                                 // of a period
  bool operator==(const narrow&) const = default;
};

// Makes the steps of a store whose byte b comes from src + at[b], at most `most` of them. Returns the number of places
// of src that they need, or -1.
int put_steps(byte_step* steps, int most, int width, const int64_t* at) {
  uint64_t open = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  int places = 0;
  for (; open != 0; ++places) {
    if (places == 2 * most) return -1;
    byte_step& step = steps[places / 2];
    const bool second = places % 2 != 0;
    int64_t first = INT64_MAX;
    for (uint64_t left = open; left != 0; left &= left - 1)
      if (at[__builtin_ctzll(left)] < first) first = at[__builtin_ctzll(left)];
    if (!second) {
      step.src[1] = first;
      step.into = 0;
      for (int b = 0; b < 64; ++b) step.from[b] = width == 64 ? 0 : 0x80;
    }
    step.src[second] = first;
    for (uint64_t left = open; left != 0; left &= left - 1) {
      const int b = __builtin_ctzll(left);
      if (at[b] - first >= width) continue;
      step.from[width == 64 ? b : b + 16 * second] =
          static_cast<uint8_t>(at[b] - first + (width == 64 ? 64 * second : 0));
      step.into |= uint64_t{1} << b;
      open &= ~(uint64_t{1} << b);
    }
  }
  return places;
}

int64_t common(int64_t a, int64_t b) { return b == 0 ? a : common(b, a % b); }

// The innermost outer axis longer than one; -1 if there is none.
int batch_axis(const tiles& t) {
  int last = t.axes - 1;
  while (last >= 0 && t.outer[last].count == 1) --last;
  return last;
}

// The shape of t; kind none if it is not narrow.
narrow narrow_of(const tiles& t, int width) {
  const int64_t bytes = int64_t{1} << t.log2_bytes, row_src = t.cols * bytes, row_dst = t.rows * bytes,
                all = t.rows * row_src;
  const int batch = batch_axis(t);
  const tiles::axis* last = batch < 0 ? nullptr : &t.outer[batch];
  narrow n;
  if (t.rows < 2 || t.cols < 2 || t.src_ld < row_src || t.dst_ld < row_dst) return n;
  if (t.src_ld == row_src && t.dst_ld == row_dst && all <= (width == 64 ? 256 : 64) && last != nullptr &&
      last->src == all && last->dst == all) {
    n.kind = narrow::tiny;
    n.items = last->count;
    n.item_src = n.item_dst = all;
    n.end = n.items * all;
  } else if (t.dst_ld == row_dst && (row_dst < 16 || (width == 64 && row_dst < 32 && row_dst != 16))) {
    n.kind = narrow::few_rows;
    n.items = t.cols;
    n.item_src = bytes;
    n.item_dst = row_dst;
    n.end = (t.rows - 1) * t.src_ld + row_src;
  } else if (row_src < 16 && t.src_ld == row_src) {
    n.kind = narrow::few_cols;
    n.items = t.rows;
    n.item_src = row_src;
    n.item_dst = bytes;
    n.end = all;
  } else {
    return n;
  }
  if (n.kind == narrow::few_cols) {
    n.period = width / bytes;
    n.stores = static_cast<int>(t.cols);
  } else if (n.item_dst < width) {
    n.period = width / common(n.item_dst, width);
    n.stores = static_cast<int>(n.period * n.item_dst / width);
  } else {
    n.stores = static_cast<int>((n.item_dst - 1) / width + 1);
  }
  return n.stores <= byte_program::most_stores ? n : narrow{};
}

// Makes the program of a narrow shape; false if it would be too long.
bool make_program(const tiles& t, const narrow& n, int width, byte_program& program) {
  const int64_t bytes = int64_t{1} << t.log2_bytes;
  program.width = width;
  program.stores = n.stores;
  program.src_advance = n.period * n.item_src;
  program.dst_advance = n.period * n.item_dst;
  // The sources of the bytes of a period, in the order of dst (few cols: of the columns).
  int64_t at[byte_program::most_stores * 64];
  int64_t* next = at;
  if (n.kind == narrow::few_cols) {
    for (int64_t j = 0; j < t.cols; ++j)
      for (int64_t i = 0; i < n.period; ++i)
        for (int64_t b = 0; b < bytes; ++b) *next++ = i * t.src_ld + j * bytes + b;
  } else {
    const int64_t rows_of_dst = n.kind == narrow::tiny ? t.cols : 1;
    for (int64_t item = 0; item < n.period; ++item)
      for (int64_t j = 0; j < rows_of_dst; ++j)
        for (int64_t i = 0; i < t.rows; ++i)
          for (int64_t b = 0; b < bytes; ++b) *next++ = item * n.item_src + i * t.src_ld + j * bytes + b;
  }
  const int most = byte_program::most_steps / program.stores;
  int places = 0, needed[byte_program::most_stores];
  for (int k = 0; k < program.stores; ++k) {
    // A tiny matrix's last store ends with it.
    const int64_t begin =
        n.kind != narrow::few_cols && k == program.stores - 1 ? program.dst_advance - width : k * width;
    program.dst[k] = n.kind == narrow::few_cols ? k * t.dst_ld : begin;
    needed[k] = put_steps(program.steps + k * most, most, width, at + begin);
    if (needed[k] < 0) return false;
    if (needed[k] > places) places = needed[k];
  }
  program.together = places / 2 + (places > 1 ? places % 2 : 0);
  // Every store gets the same number of steps, stored closely; the spare ones do nothing.
  for (int k = 0; k < program.stores; ++k)
    for (int i = 0; i < program.stride(); ++i) {
      byte_step& step = program.steps[k * program.stride() + i];
      step = program.steps[k * most + (2 * i < needed[k] ? i : 0)];
      if (2 * i < needed[k]) continue;
      step.into = 0;
      for (uint8_t& from : step.from) from = width == 64 ? 0 : 0x80;
    }
  return true;
}

// The program of a narrow shape; NULL if it would be too long. The thread keeps its last one, because a table asks
// whether there is one before it runs it, and calls repeat.
const byte_program* program_of(const tiles& t, const narrow& n, int width) {
  struct shape {
    int log2_bytes = 0, width = 0;
    int64_t rows = 0, cols = 0, src_ld = 0, dst_ld = 0;
    narrow items;
    bool operator==(const shape&) const = default;
  };
  static thread_local shape last;
  static thread_local bool fits;
  static thread_local byte_program program;
  const shape wanted{t.log2_bytes, width, t.rows, t.cols, t.src_ld, t.dst_ld, n};
  if (wanted != last) {
    fits = make_program(t, n, width, program);
    last = wanted;
  }
  return fits ? &program : nullptr;
}

int64_t runs_of(const tiles& t, const narrow& n) { return matrices_of(t) / (n.kind == narrow::tiny ? n.items : 1); }

small_kernels::kernel register_kernel(const lockstep_queue& queue, const tiles& t) {
  const int64_t side = t.rows > t.cols ? t.rows : t.cols, bytes = int64_t{1} << t.log2_bytes;
  const small_kernels& kernels = small_kernels_of(queue.kernels);
  return bytes == 4 && side <= 8    ? kernels.of_4_by_8
         : bytes == 4 && side <= 16 ? kernels.of_4_by_16
         : bytes == 8 && side <= 8  ? kernels.of_8_by_8
                                    : nullptr;
}

// The kernel that runs programs, and the width of its registers in bytes.
struct program_kernel {
  byte_kernels::kernel run;
  int width;
};
program_kernel program_kernel_of(const lockstep_queue& queue) {
  const byte_kernels& kernels = byte_kernels_of(queue.kernels);
  if (kernels.by_64 != nullptr && has_vbmi()) return {kernels.by_64, 64};
  return {kernels.by_16, 16};
}

}  // namespace

const char* not_in_registers(const lockstep_queue& queue, const tiles& t, const char*) {
  if (small_kernels_of(queue.kernels).of_4_by_8 == nullptr) return "needs AVX-512";
  if (batch_axis(t) < 0) return "needs a batch";
  if (t.rows < 2 || t.cols < 2) return "needs 2 rows and columns";
  return register_kernel(queue, t) == nullptr ? "needs at most 16 x 16 of 4 bytes or 8 x 8 of 8" : nullptr;
}

// Programs are faster for small packed matrices, register tiles where whole lines go to DRAM.
bool registers_pay(const lockstep_queue& queue, const tiles& t, const char* dst) {
  const bool large = beyond_caches(queue, t);
  if ((t.rows * t.cols) << t.log2_bytes > queue.tuned->moves.program_bytes && !large) return true;
  if (large && t.rows << t.log2_bytes >= 64) return false;
  return not_by_programs(queue, t, dst) != nullptr || !programs_pay(queue, t, dst);
}

void run_registers(const lockstep_queue& queue, const tiles& t, const char* src, char* dst) {
  const int batch = batch_axis(t);
  const int64_t bytes = int64_t{1} << t.log2_bytes;
  const auto run = register_kernel(queue, t);
  const tiles::axis items = t.outer[batch];
  tiles outer = t;
  outer.outer[batch].count = 1;
  const int64_t share = queue.tuned->moves.tiny_task_bytes / (t.rows * t.cols * bytes) + 1,
                chunks = (items.count - 1) / share + 1;
  over_ranges(queue, matrices_of(outer) * chunks, 1, [&](int64_t first, int64_t last) {
    odometer at(outer, src, dst, first / chunks);
    for (int64_t task = first, chunk = first % chunks; task < last; ++task) {
      const int64_t begin = chunk * share, count = items.count - begin < share ? items.count - begin : share;
      run(at.src + begin * items.src, t.src_ld, items.src, at.dst + begin * items.dst, t.dst_ld, items.dst, t.rows,
          t.cols, count);
      if (++chunk < chunks) continue;
      chunk = 0;
      at.next();
    }
  });
}

const char* not_by_programs(const lockstep_queue& queue, const tiles& t, const char*) {
  const auto [run, width] = program_kernel_of(queue);
  if (run == nullptr) return "needs AVX2";
  const narrow n = narrow_of(t, width);
  if (n.kind == narrow::none) return "needs a side of a few bytes without gaps";
  return program_of(t, n, width) != nullptr ? nullptr : "needs a shorter program";
}

bool programs_pay(const lockstep_queue& queue, const tiles& t, const char*) {
  const move_tuning& tuned = queue.tuned->moves;
  const int width = program_kernel_of(queue).width;
  const narrow n = narrow_of(t, width);
  if (n.kind == narrow::none || n.items < tuned.program_periods * n.period ||
      runs_of(t, n) * n.items < tuned.program_runs * n.period)
    return false;
  if (n.kind == narrow::tiny || width < 64 || beyond_caches(queue, t)) return true;
  const byte_program* const made = program_of(t, n, width);
  return made != nullptr && made->stride() <= (t.log2_bytes == 0 ? tuned.program_byte_steps : tuned.program_steps);
}

void run_programs(const lockstep_queue& queue, const tiles& t, const char* src, char* dst) {
  const move_tuning& tuned = queue.tuned->moves;
  const bool large = beyond_caches(queue, t);
  const auto kernel = program_kernel_of(queue);
  const auto run = kernel.run;  // no structured binding: clang 14 cannot capture one in a lambda
  const int width = kernel.width;
  const narrow n = narrow_of(t, width);
  const byte_program* const made = program_of(t, n, width);
  if (made == nullptr) return;  // not_by_programs has refused such a shape
  const byte_program& program = *made;
  const int64_t runs = runs_of(t, n);
  int64_t reach = 0;
  for (int k = 0; k < program.stores * program.stride(); ++k)
    for (const int64_t at : program.steps[k].src)
      if (at + width > reach) reach = at + width;
  tiles outer = t;  // the runs
  if (n.kind == narrow::tiny) outer.outer[batch_axis(t)].count = 1;
  const auto tile = transpose_kernels_of(queue.kernels).tile[t.log2_bytes];
  const auto by_tiles = [&](const char* from, char* to, int64_t first, int64_t last) {
    if (first >= last) return;
    from += first * n.item_src;
    to += first * n.item_dst;
    if (n.kind == narrow::few_rows)
      tile(from, t.src_ld, to, t.dst_ld, t.rows, last - first, store::cached, {});
    else if (n.kind == narrow::few_cols)
      tile(from, t.src_ld, to, t.dst_ld, last - first, t.cols, store::cached, {});
    else
      for (; first < last; ++first, from += n.item_src, to += n.item_dst)
        tile(from, t.src_ld, to, t.dst_ld, t.rows, t.cols, store::cached, {});
  };
  // Items before the first whole line of dst; -1 if no item starts a line, or not for all stores.
  const auto to_line = [&](const char* to) -> int64_t {
    if (!large || program.dst_advance % width != 0 || (n.kind == narrow::few_cols && t.dst_ld % width != 0)) return -1;
    for (int64_t k = 0; k < width && k < n.items; ++k)
      if (reinterpret_cast<uintptr_t>(to + k * n.item_dst) % static_cast<uintptr_t>(width) == 0) return k;
    return -1;
  };
  const int64_t share = (tuned.tiny_task_bytes / program.dst_advance + 1) * n.period,
                chunks = (n.items - 1) / share + 1;
  over_ranges(queue, runs * chunks, 1, [&](int64_t first, int64_t last) {
    odometer at(outer, src, dst, first / chunks);
    for (int64_t task = first, chunk = first % chunks; task < last; ++task) {
      const int64_t line = to_line(at.dst), head = line < 0 ? 0 : line;
      int64_t begin = chunk == 0 ? 0 : head + chunk * share;
      const int64_t end = n.items < head + (chunk + 1) * share ? n.items : head + (chunk + 1) * share;
      if (chunk == 0) {
        by_tiles(at.src, at.dst, 0, head < end ? head : end);
        begin = head;
      }
      if (begin < end) {
        int64_t periods = (end - begin) / n.period;
        const int64_t room = n.end - begin * n.item_src - reach;  // src bytes beyond the first period
        const int64_t safe = room < 0 ? 0 : room / program.src_advance + 1;
        if (periods > safe) periods = safe;
        run(program, at.src + begin * n.item_src, at.dst + begin * n.item_dst, periods, line >= 0);
        by_tiles(at.src, at.dst, begin + periods * n.period, end);
      }
      if (++chunk < chunks) continue;
      chunk = 0;
      at.next();
    }
    transpose_kernels_of(queue.kernels).fence();
  });
}

}  // namespace lockstep::cpu
