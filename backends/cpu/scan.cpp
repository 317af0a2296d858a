// scan.cpp - running sums, minima and maxima of sequences: dst[i] = reduction of elements 0 to i, or 0 to i - 1.
// Idea    a leaf of 2,048 floats to be summed is read twice: for its value, which the leaves behind it need, and, while
//         it is in the cache, for its results; where values run from element to element, once. A long sequence goes by
//         blocks that all threads share: values, then results. Many sequences: each thread its own, short rows by one
//         kernel call, columns side by side, other neighbours by tiles.
// Moves   every element and every result once
// Limit   the copy limit in DRAM
// Watch   what stands before a leaf is the tree over the leaves before it, not a running sum; in place a shifted
//         result stands where the next leaf begins
// Source  lib/bits/order_rows.hpp
#include "ops.hpp"
#include "scan_kinds.hpp"

namespace lockstep::cpu {
namespace {

constexpr int64_t leaf = order::leaf;

struct call_of {
  const lockstep_scan_desc& d;
  const char* src;
  char* dst;
  int64_t bytes = static_cast<int64_t>(lockstep_dtype_bytes(d.dtype));
  int64_t result_bytes = static_cast<int64_t>(lockstep_dtype_bytes(d.result));

  explicit call_of(const lockstep_call* call)
      : d(call->scan), src(static_cast<const char*>(call->src)), dst(static_cast<char*>(call->dst)) {}
  int64_t length(int64_t s) const { return d.offsets != nullptr ? d.offsets[s + 1] - d.offsets[s] : d.length; }
  int64_t elements() const { return d.offsets != nullptr ? d.offsets[d.count] - d.offsets[0] : d.count * d.length; }
  const char* from(int64_t s, int64_t i) const {
    return src + (d.offsets != nullptr ? (d.offsets[s] + i) * d.element_stride
                                       : s * d.sequence_stride + i * d.element_stride) *
                     bytes;
  }
  char* to(int64_t s, int64_t i) const {
    return dst + (d.offsets != nullptr ? (d.offsets[s] + i) * d.dst_element_stride
                                       : s * d.dst_sequence_stride + i * d.dst_element_stride) *
                     result_bytes;
  }
  bool shifted() const { return d.exclusive != 0; }
  bool packed() const { return d.element_stride == 1 && d.dst_element_stride == 1; }
  // Sequences of a tile: neighbours in memory, on one side or both.
  int64_t tile() const {
    const bool beside =
        d.offsets == nullptr && !packed() && d.count > 1 && (d.sequence_stride == 1 || d.dst_sequence_stride == 1);
    return beside ? std::min(scan_tile, d.count) : 1;
  }
  // Columns side by side in src and in dst, scanned where they are.
  bool columns() const {
    return d.offsets == nullptr && !packed() && d.count > 1 && d.sequence_stride == 1 && d.dst_sequence_stride == 1;
  }
  size_t room_bytes() const {
    if (!columns()) return tile_bytes();
    const bool floats = lib::kind_of(d.reduction).ordered(d.dtype);  // the lanes of their leaves
    return floats ? static_cast<size_t>(order::lanes * std::min(scan_columns, d.count)) * sizeof(double) : 0;
  }
  size_t tile_bytes() const { return packed() ? 0 : static_cast<size_t>(tile() * leaf * (bytes + result_bytes)); }
};

// n elements of `count` neighbours, packed one sequence after the other, leaf apart; or back.
template <class T>
void gather(const char* from, int64_t stride, int64_t between, int64_t count, int64_t n, void* to) {
  const auto* x = reinterpret_cast<const T*>(from);
  auto* y = static_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < count; ++c) y[c * leaf + i] = x[i * stride + c * between];
}
template <class T>
void scatter(const void* from, char* to, int64_t stride, int64_t between, int64_t count, int64_t n) {
  const auto* x = static_cast<const T*>(from);
  auto* y = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < count; ++c) y[i * stride + c * between] = x[c * leaf + i];
}
template <class Body>
void by_width(int64_t bytes, const Body& body) {
  if (bytes == 2) return body(uint16_t{});
  if (bytes == 4) return body(uint32_t{});
  body(uint64_t{});
}

template <class K>
struct scanner {
  const lockstep_queue& queue;
  const call_of& c;
  const K& kind;
  typedef typename K::value value;

  // What stands before a sequence, and before its first element.
  typename K::before before_of(int64_t s) const {
    typename K::before b;
    if (c.d.before != nullptr) kind.resume(c.d, s, b);
    return b;
  }
  auto total_before(int64_t s) const { return c.d.before != nullptr ? before_of(s).total() : kind.nothing(); }
  auto entering_of(int64_t s) const { return c.d.before != nullptr ? kind.resumed(c.d, s) : kind.first(); }

  // The results of one packed leaf behind `total`; the first one of a shifted leaf is `entering`. Gives what stands
  // behind the leaf if the kind runs.
  template <class Total, class Last>
  auto leaf_results(const void* x, void* y, int64_t n, const Total& total, const Last& entering, int64_t s) const {
    if (!c.shifted()) return kind.scan({x, y, n, false}, total, s);
    alignas(64) char copied[leaf * 8];  // in place a result would stand on the next element
    if (x == y) x = std::memcpy(copied, x, static_cast<size_t>(n * c.bytes));
    const auto behind = kind.scan({x, y, n, true}, total, s);
    kind.put(y, entering, s);
    return behind;
  }
  // A packed leaf and, if more follow, what stands before the next one and enters it.
  template <class Entering>
  void one_leaf(const char* x, char* y, int64_t n, typename K::before& before, Entering& entering, bool more,
                int64_t s) const {
    const auto total = before.total();
    const auto enters = entering;
    if constexpr (!K::runs)
      if (more) {
        before.push(kind.of_leaf(x, n));
        if (c.shifted()) entering = kind.last(x, n, total);
      }
    const auto behind = leaf_results(x, y, n, total, enters, s);
    if constexpr (K::runs) before.becomes(behind), entering = behind;
  }

  // A packed sequence.
  void packed(int64_t s) const {
    const int64_t length = c.length(s);
    if (length <= leaf) {
      if (length > 0) leaf_results(c.from(s, 0), c.to(s, 0), length, total_before(s), entering_of(s), s);
      return;
    }
    auto before = before_of(s);
    auto entering = entering_of(s);
    for (int64_t at = 0; at < length && !interrupted(queue); at += leaf)
      one_leaf(c.from(s, at), c.to(s, at), std::min(leaf, length - at), before, entering, at + leaf < length, s);
  }
  // Packed sequences of at most a leaf whose results are not shifted.
  bool short_rows() const {
    return c.packed() && !c.shifted() && c.d.offsets == nullptr && c.d.before == nullptr && c.d.length <= leaf &&
           c.d.length > 0;
  }

  // Sequences [first, last), at most a tile of them and of one length, by way of `room`.
  void tile(int64_t first, int64_t last, char* room) const {
    const int64_t count = last - first, length = c.length(first);
    char* results = room + count * leaf * c.bytes;
    typename K::before before[scan_tile];
    decltype(kind.first()) entering[scan_tile];
    for (int64_t k = 0; k < count; ++k) entering[k] = entering_of(first + k);
    for (int64_t k = 0; k < count && c.d.before != nullptr; ++k) before[k] = before_of(first + k);
    for (int64_t at = 0; at < length && !interrupted(queue); at += leaf) {
      const int64_t n = std::min(leaf, length - at);
      by_width(c.bytes, [&](auto t) {
        gather<decltype(t)>(c.from(first, at), c.d.element_stride, c.d.sequence_stride, count, n, room);
      });
      for (int64_t k = 0; k < count; ++k)
        one_leaf(room + k * leaf * c.bytes, results + k * leaf * c.result_bytes, n, before[k], entering[k],
                 at + leaf < length, first + k);
      by_width(c.result_bytes, [&](auto t) {
        scatter<decltype(t)>(results, c.to(first, at), c.d.dst_element_stride, c.d.dst_sequence_stride, count, n);
      });
    }
  }

  // Columns [first, last), at most K::most_columns, from leaf to leaf.
  void columns(int64_t first, int64_t last, char* room) const {
    typename K::before before[K::most_columns];
    decltype(kind.first()) entering[K::most_columns];
    for (int64_t k = 0; k < K::most_columns; ++k)
      entering[k] = k < last - first ? entering_of(first + k) : kind.first();
    for (int64_t k = 0; k < last - first && c.d.before != nullptr; ++k) before[k] = before_of(first + k);
    for (int64_t at = 0; at < c.d.length && !interrupted(queue); at += leaf)
      kind.columns({c.from(first, at), c.to(first, at), c.d.element_stride, c.d.dst_element_stride,
                    std::min(leaf, c.d.length - at), last - first, c.shifted(), nullptr, nullptr, nullptr,
                    reinterpret_cast<double*>(room)},
                   before, entering, at + leaf < c.d.length, first);
  }

  // One long packed sequence by all threads, block by block.
  void together(int64_t s, void* workspace) const {
    const int64_t length = c.length(s), leaves = order::leaves(length),
                  block = queue.tuned->rows.scan_leaves * queue.threads;
    auto* values = static_cast<value*>(workspace);
    typedef decltype(kind.first()) edge;
    auto* edges = reinterpret_cast<edge*>(values + block);
    const auto elements = [&](int64_t k) { return std::min(leaf, length - k * leaf); };
    auto before = before_of(s);
    auto entering = entering_of(s);
    for (int64_t first = 0; first < leaves; first += block) {
      const int64_t count = std::min(block, leaves - first);
      const auto x = [&](int64_t k) { return c.from(s, (first + k) * leaf); };
      over_ranges(queue, count, 1, [&](int64_t a, int64_t b) {
        for (int64_t k = a; k < b; ++k) values[k] = kind.of_leaf(x(k), elements(first + k));
      });
      // Each thread pushes the leaves before its own: a push takes a tenth of what a total does.
      const auto before_leaf = [&](int64_t a) {
        auto mine = before;
        for (int64_t k = 0; k < a; ++k) mine.push(values[k]);
        return mine;
      };
      if (c.shifted()) {  // before anything of the block is written
        over_ranges(queue, count, 1, [&](int64_t a, int64_t b) {
          auto mine = before_leaf(a);
          for (int64_t k = a; k < b; ++k) {
            edges[k] = kind.last(x(k), elements(first + k), mine.total());
            mine.push(values[k]);
          }
        });
      }
      over_ranges(queue, count, 1, [&](int64_t a, int64_t b) {
        auto mine = before_leaf(a);
        for (int64_t k = a; k < b; ++k) {
          leaf_results(x(k), c.to(s, (first + k) * leaf), elements(first + k), mine.total(),
                       k == 0 ? entering : edges[k - 1], s);
          mine.push(values[k]);
        }
      });
      for (int64_t k = 0; k < count; ++k) before.push(values[k]);
      if (c.shifted()) entering = edges[count - 1];
    }
  }

  bool is_long(int64_t s) const {
    const bool few = c.d.offsets != nullptr || c.d.count < queue.tuned->reductions.tasks_a_thread * queue.threads;
    return queue.threads > 1 && !forked() && few && c.length(s) > queue.tuned->rows.shared_bytes / c.bytes;
  }
  void run(char* workspace) const {
    if (c.columns()) {
      constexpr int64_t lines = 32;  // elements: a line of each row, or more
      const int64_t part = ((c.d.count - 1) / queue.threads / lines + 1) * lines;
      const int64_t each = std::min(part, K::most_columns);
      return over_shares(queue, (c.d.count - 1) / each + 1, [&](int64_t t, int thread) {
        columns(t * each, std::min((t + 1) * each, c.d.count),
                workspace + static_cast<size_t>(thread) * c.room_bytes());
      });
    }
    if (!c.packed()) {
      const int64_t each = c.tile(), tiles = (c.d.count - 1) / each + 1;
      return over_shares(queue, tiles, [&](int64_t t, int thread) {
        tile(t * each, std::min((t + 1) * each, c.d.count), workspace + static_cast<size_t>(thread) * c.tile_bytes());
      });
    }
    if (short_rows()) {
      const int64_t grain = std::max<int64_t>(queue.tuned->rows.scan_grain / c.d.length, 1);
      return over_parts(queue, c.d.count, grain, [&](int64_t first, int64_t last) {
        kind.scan({c.from(first, 0), c.to(first, 0), c.d.length, false, last - first, c.d.sequence_stride,
                   c.d.dst_sequence_stride},
                  kind.nothing(), first);
      });
    }
    for (int64_t s = 0; s < c.d.count; ++s)
      if (is_long(s)) together(s, workspace);
    // Tasks of about 65,536 elements, a sequence at least.
    const int64_t tasks = std::clamp<int64_t>(c.elements() / 65536, 1, c.d.count);
    over_shares(queue, tasks, [&](int64_t t, int) {
      for (int64_t s = part_begin(c.d.count, t, tasks); s < part_begin(c.d.count, t + 1, tasks); ++s)
        if (!is_long(s)) packed(s);
    });
  }
};

template <class K>
void scan_by(const lockstep_queue& queue, const lockstep_call* call, const K& kind) {
  const call_of c(call);
  scanner<K>{queue, c, kind}.run(static_cast<char*>(call->workspace));
}

lockstep_status launch(lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_scan_desc& d = call->scan;
  const running_scan_kernels& running = running_scanners(queue->kernels);
  if (const lib::reduction_kind& kind = lib::kind_of(d.reduction); kind.extreme()) {
    const bool largest = kind.by == lib::join::largest;
    const running_kernels& kernels = running.extremes[d.dtype - LOCKSTEP_F16][largest];
    if (largest)
      scan_by(*queue, call, extreme_scan<true>{kernels});
    else
      scan_by(*queue, call, extreme_scan<false>{kernels});
    return LOCKSTEP_OK;
  }
  if (lockstep_dtype_kind(d.dtype) == 'f') {
    scan_by(*queue, call,
            float_scan{d.dtype, d.result, scanners(queue->kernels),
                       term_kernels(queue->kernels, static_cast<float_term>(sum_f16 + (d.dtype - LOCKSTEP_F16)))});
    return LOCKSTEP_OK;
  }
  first_failure overflow;
  if (d.dtype == LOCKSTEP_I32)
    scan_by(*queue, call, exact_scan<int32_t>{overflow, running.sums[0]});
  else
    scan_by(*queue, call, exact_scan<int64_t>{overflow, running.sums[1]});
  if (!overflow.any()) return LOCKSTEP_OK;
  return failed(LOCKSTEP_OVERFLOW,
                "sums of sequence {} do not fit I64, dst holds the nearest values there; scan shorter sequences or "
                "floats",
                overflow.sequence());
}

size_t workspace(const lockstep_queue* queue, const lockstep_call* call) {
  const call_of c(call);
  const auto threads = static_cast<size_t>(queue->threads);
  // A leaf's value and its last result: 16 bytes each at most.
  return threads * (c.packed() ? static_cast<size_t>(queue->tuned->rows.scan_leaves) * 32 : c.room_bytes());
}

const lockstep_variant rows[] = {
    {"leaves",
     "leaves summed and, still in the cache, scanned; long sequences by all threads, columns side by side, other "
     "neighbours by tiles",
     0, nullptr, nullptr, workspace, launch},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_scan},
};
}  // namespace

const lockstep_table scan_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
