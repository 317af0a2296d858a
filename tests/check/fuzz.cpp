// fuzz.cpp - random descriptions, valid and invalid, through the C ABI: the chosen row and `ref` must give the same
// bytes of dst and the same error text, alone, planned or twice in a group. A call that could reach beyond the buffers
// gets NULL for them, which it must refuse. Every case has a number: lockstep_check --gtest_filter=Fuzz.* --seed N runs
// it first; fuzz_corpus.txt keeps the cases that have found a defect.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "check.hpp"
#include "context_of.hpp"
#include "lockstep/group.h"

namespace lockstep::check {
namespace {
__extension__ using wide = __int128;

constexpr size_t room = 1 << 18;
alignas(4096) unsigned char src_bytes[room], dst_bytes[3][room];
int64_t drawn_offsets[70];

// Draws of one case; the same number gives the same case on every machine.
class draws {
 public:
  explicit draws(uint64_t number) : state_(number) {}
  uint64_t bits() { return cases::mix(state_ += 0x9E3779B97F4A7C15u); }
  bool one_in(unsigned n) { return bits() % n == 0; }
  int64_t upto(int64_t most) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(most + 1)); }
  template <class T>
  T of(std::initializer_list<T> all) {
    return all.begin()[bits() % all.size()];
  }
  // A size: small most of the time, else where arithmetic goes wrong.
  int64_t size(int64_t most) {
    if (!one_in(24)) return one_in(3) ? upto(3) : upto(most);
    return of<int64_t>({-1, INT64_MIN, INT64_MAX, INT64_MAX / 2 + 1, INT64_MAX / 16, int64_t{1} << 31,
                        (int64_t{1} << 31) - 1, (int64_t{1} << 32) + 1, int64_t{1} << 62, 0});
  }
  // What is right, or near it.
  int64_t near(int64_t right) {
    const auto plus = [&](int64_t more) {  // which may wrap
      return static_cast<int64_t>(static_cast<uint64_t>(right) + static_cast<uint64_t>(more));
    };
    if (one_in(3)) return plus(upto(9));
    return one_in(20) ? plus(-1) : one_in(30) ? size(40) : right;
  }
  template <class E>
  E enumerator(int least, int most) {
    const int value = one_in(40) ? of<int>({least - 1, most + 1, INT32_MAX, INT32_MIN, 99})
                                 : least + static_cast<int>(upto(most - least));
    return static_cast<E>(value);
  }

 private:
  uint64_t state_;
};

// Of wrong descriptions sums and products may wrap.
int64_t times(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t plus(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }

// Bytes from the first to the last of count elements stride apart on each axis; 0 for none, and never more than just
// beyond what the buffers hold.
struct axis {
  int64_t count, stride;
};
constexpr wide beyond = static_cast<wide>(room) + 1;
template <class Axes>
wide span(const Axes& axes, size_t bytes) {
  wide last = 0;
  for (const axis& a : axes) {
    if (a.count <= 0) return 0;
    if (a.count > 1 && a.stride > 0) last = std::min(last + static_cast<wide>(a.count - 1) * a.stride, beyond);
  }
  return std::min((last + 1) * static_cast<wide>(std::min<size_t>(bytes, room)), beyond);
}
wide span(std::initializer_list<axis> axes, size_t bytes) { return span<std::initializer_list<axis>>(axes, bytes); }

// A call, and the bytes that it may reach.
struct drawn {
  lockstep_op op;
  lockstep_transpose_desc transpose{};
  lockstep_permute_desc permute{};
  lockstep_reduce_desc reduce{};
  lockstep_stencil_desc stencil{};
  lockstep_shuffle_desc shuffle{};
  lockstep_normalize_desc normalize{};
  lockstep_scan_desc scan{};
  lockstep_sums_desc sums{};
  lockstep_reduce_axes_desc reduce_axes{};
  lockstep_convert_desc convert{};
  lockstep_map_desc map{};
  wide src = 0, dst = 0;
  double coefficients[64];

  const void* description() const {
    switch (op) {
      case LOCKSTEP_TRANSPOSE: return &transpose;
      case LOCKSTEP_PERMUTE: return &permute;
      case LOCKSTEP_SQUARE_SUM:
      case LOCKSTEP_REDUCE: return &reduce;
      case LOCKSTEP_STENCIL: return &stencil;
      case LOCKSTEP_NORMALIZE: return &normalize;
      case LOCKSTEP_SCAN: return &scan;
      case LOCKSTEP_SUMS: return &sums;
      case LOCKSTEP_REDUCE_AXES: return &reduce_axes;
      case LOCKSTEP_CONVERT: return &convert;
      case LOCKSTEP_MAP: return &map;
      default: return &shuffle;
    }
  }
  size_t description_bytes() const {
    switch (op) {
      case LOCKSTEP_TRANSPOSE: return sizeof transpose;
      case LOCKSTEP_PERMUTE: return sizeof permute;
      case LOCKSTEP_SQUARE_SUM:
      case LOCKSTEP_REDUCE: return sizeof reduce;
      case LOCKSTEP_STENCIL: return sizeof stencil;
      case LOCKSTEP_NORMALIZE: return sizeof normalize;
      case LOCKSTEP_SCAN: return sizeof scan;
      case LOCKSTEP_SUMS: return sizeof sums;
      case LOCKSTEP_CONVERT: return sizeof convert;
      case LOCKSTEP_MAP: return sizeof map;
      case LOCKSTEP_REDUCE_AXES: return sizeof reduce_axes;
      default: return sizeof shuffle;
    }
  }
  // A group of the call and its twin, which writes elsewhere.
  lockstep_status twins(lockstep_context* c, const void* const (&from)[2], void* const (&to)[2],
                        const lockstep_options* o) const {
    const size_t bytes = description_bytes();
    std::vector<unsigned char> both(2 * bytes);
    for (const size_t at : {size_t{0}, bytes}) std::memcpy(both.data() + at, description(), bytes);
    return lockstep_execute_group(c, op, both.data(), bytes, 2, from, to, o);
  }
  lockstep_status run(lockstep_context* c, const void* from, void* to, const lockstep_options* o) const {
    return lockstep_execute(c, op, description(), from, to, o);
  }
  lockstep_status plan(lockstep_context* c, const lockstep_options* o, lockstep_plan** out) const {
    return lockstep_plan_create(c, op, description(), o, out);
  }
  // Executed once, waited for.
  lockstep_status planned(lockstep_context* c, const void* from, void* to, const lockstep_options* o) const {
    lockstep_plan* made = nullptr;
    lockstep_status status = plan(c, o, &made);
    if (status == LOCKSTEP_OK) status = lockstep_plan_execute(made, from, to, o);
    const std::string text = lockstep_last_error();
    lockstep_plan_destroy(made);
    return status;
  }
};

size_t element_bytes(draws& d) {
  return d.one_in(40) ? d.of<size_t>({0, 3, 32, SIZE_MAX}) : d.of<size_t>({1, 2, 4, 8, 16});
}

void draw_transpose(draws& d, drawn& c) {
  const int64_t most = d.one_in(4) ? 300 : 40;
  auto& t = c.transpose;
  t = lockstep_transpose_packed(element_bytes(d), d.size(most), d.size(most));
  t.src_ld = d.near(t.cols), t.dst_ld = d.near(t.rows);
  t.batch = d.one_in(2) ? 1 : d.size(5);
  t.src_batch_stride = d.one_in(8) ? d.upto(4) : d.near(times(t.rows, t.src_ld));
  t.dst_batch_stride = d.near(times(t.cols, t.dst_ld));
  c.src = span({{t.batch, t.src_batch_stride}, {t.rows, t.src_ld}, {t.cols, 1}}, t.element_bytes);
  c.dst = span({{t.batch, t.dst_batch_stride}, {t.cols, t.dst_ld}, {t.rows, 1}}, t.element_bytes);
}

void draw_permute(draws& d, drawn& c) {
  auto& p = c.permute;
  const int rank = d.one_in(40) ? d.of<int>({0, 9, -1}) : 1 + static_cast<int>(d.upto(LOCKSTEP_MAX_RANK - 1));
  int64_t shape[LOCKSTEP_MAX_RANK];
  int32_t perm[LOCKSTEP_MAX_RANK];
  const int used = std::clamp(rank, 0, LOCKSTEP_MAX_RANK);
  for (int k = 0; k < used; ++k) shape[k] = d.size(used < 3 ? 60 : used < 5 ? 9 : 3), perm[k] = k;
  for (int k = used - 1; k > 0; --k) std::swap(perm[k], perm[d.upto(k)]);
  p = lockstep_permute_packed(element_bytes(d), rank, shape, perm);
  if (rank < 1 || rank > LOCKSTEP_MAX_RANK) return;
  if (d.one_in(3)) {  // padded, or spoilt
    const auto k = static_cast<int>(d.upto(used - 1));
    const int64_t factor = d.one_in(10) ? 0 : 1 + d.upto(2);
    for (int a = 0; a <= k; ++a) p.src_strides[a] = times(p.src_strides[a], factor);
    for (int a = 0; a <= k && d.one_in(2); ++a) p.dst_strides[a] = times(p.dst_strides[a], factor);
  }
  if (d.one_in(30)) p.perm[d.upto(used - 1)] = d.of<int32_t>({-1, 0, 1, 8, INT32_MAX});
  std::vector<axis> src, dst;
  for (int k = 0; k < used; ++k) {
    const int32_t of_dst = p.perm[k];
    if (of_dst < 0 || of_dst >= used) return void(c.src = c.dst = beyond);
    src.push_back({p.shape[k], p.src_strides[k]});
    dst.push_back({p.shape[of_dst], p.dst_strides[k]});
  }
  c.src = span(src, p.element_bytes);
  c.dst = span(dst, p.element_bytes);
}

// The end of the segment that ends last. Offsets of empty segments mean nothing.
int64_t reach(int64_t segments) {
  int64_t last = 0;
  for (int64_t s = 0; s < segments; ++s)
    if (drawn_offsets[s + 1] > drawn_offsets[s]) last = std::max(last, drawn_offsets[s + 1]);
  return last;
}

void draw_reduce(draws& d, drawn& c) {
  auto& r = c.reduce;
  const bool squares = c.op == LOCKSTEP_SQUARE_SUM;
  const auto reduction = squares ? d.enumerator<lockstep_reduction>(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_NORM2)
                                 : d.enumerator<lockstep_reduction>(LOCKSTEP_SUM, LOCKSTEP_ARGMAX);
  const auto dtype = d.enumerator<lockstep_dtype>(LOCKSTEP_F16, LOCKSTEP_BOOL);
  const bool large = d.one_in(6);
  r = lockstep_reduce_rows(reduction, dtype, d.size(large ? 4 : 60), d.size(large ? 6000 : 90), 0);
  r.sequence_stride = d.near(r.length);
  if (d.one_in(3)) r.element_stride = d.near(std::max<int64_t>(r.count, 1)), r.sequence_stride = 1;
  if (d.one_in(6)) r.result = d.of({LOCKSTEP_F32, LOCKSTEP_F16, LOCKSTEP_BF16});
  if (d.one_in(30)) r.result = d.enumerator<lockstep_dtype>(0, LOCKSTEP_BOOL + 1);
  const size_t bytes = std::max<size_t>(lockstep_dtype_bytes(dtype), 1);
  if (d.one_in(4) && r.count >= 0 && r.count < 69) {
    drawn_offsets[0] = d.one_in(20) ? d.size(9) : d.upto(5);
    for (int64_t s = 0; s < r.count; ++s)
      drawn_offsets[s + 1] =
          d.one_in(60) ? d.size(50) : plus(drawn_offsets[s], d.one_in(4) ? 0 : d.upto(large ? 900 : 40));
    r.offsets = drawn_offsets;
    if (!d.one_in(6)) r.element_stride = 1;
    c.src = span({{reach(r.count), std::max<int64_t>(r.element_stride, 1)}}, bytes);
  } else {
    c.src = span({{r.count, r.sequence_stride}, {r.length, r.element_stride}}, bytes);
  }
  c.dst = span({{r.count, 1}}, 8);
}

void draw_stencil(draws& d, drawn& c) {
  auto& s = c.stencil;
  const int rank = 1 + static_cast<int>(d.upto(2));
  int64_t shape[3];
  for (int k = 0; k < rank; ++k) shape[k] = d.size(rank == 1 ? 400 : rank == 2 ? 60 : 20);
  for (double& x : c.coefficients)
    x = d.one_in(5) ? d.of<double>({0, -0.0, 1e300, 5e-310}) : static_cast<double>(d.upto(2000) - 1000) / 512;
  const int radius = d.one_in(40) ? d.of<int>({0, 17, -1, 9}) : 1 + static_cast<int>(d.upto(rank == 1 ? 9 : 4));
  s = lockstep_stencil_packed(d.one_in(30) ? LOCKSTEP_I32 : d.of<lockstep_dtype>({LOCKSTEP_F32, LOCKSTEP_F64}), rank,
                              shape, radius, c.coefficients,
                              d.enumerator<lockstep_boundary>(LOCKSTEP_BOUNDARY_NEAREST, LOCKSTEP_BOUNDARY_VALID));
  s.sweeps = d.one_in(3) ? static_cast<int32_t>(1 + d.upto(5)) : 1;
  s.value = d.of<double>({0, 1.5, -0.0, 1e-310, __builtin_nan("")});
  const bool valid = s.boundary == LOCKSTEP_BOUNDARY_VALID;
  const int64_t shrink = valid ? 2 * int64_t{s.radius} * s.sweeps : 0;
  for (int k = rank - 2, inner = rank - 1; k >= 0; inner = k--)
    s.dst_strides[k] = times(s.dst_strides[inner], plus(s.shape[inner], -shrink));
  if (d.one_in(4)) {
    s.form = d.enumerator<lockstep_form>(LOCKSTEP_SYMMETRIC, LOCKSTEP_ANTISYMMETRIC);
    s.coefficient_count = radius * rank + 1;
    if (s.form == LOCKSTEP_ANTISYMMETRIC && !d.one_in(9)) c.coefficients[0] = 0;
  }
  if (d.one_in(40)) s.coefficient_count += 1;
  if (d.one_in(3))
    for (int k = 0; k < rank - 1; ++k)
      s.src_strides[k] = d.near(s.src_strides[k]), s.dst_strides[k] = d.near(s.dst_strides[k]);
  s.batch = d.one_in(3) ? d.size(4) : 1;
  const int64_t whole = times(s.src_strides[0], s.shape[0]);
  s.src_batch_stride = d.near(whole), s.dst_batch_stride = d.near(std::max<int64_t>(whole, 1));
  std::vector<axis> src{{s.batch, s.src_batch_stride}}, dst{{s.batch, s.dst_batch_stride}};
  for (int k = 0; k < rank; ++k) {
    src.push_back({s.shape[k], s.src_strides[k]});
    dst.push_back({s.shape[k], s.dst_strides[k]});
  }
  c.src = span(src, 8), c.dst = span(dst, 8);
}

void draw_shuffle(draws& d, drawn& c) {
  auto& s = c.shuffle;
  s = lockstep_shuffle_warps(d.enumerator<lockstep_shuffle_kind>(LOCKSTEP_SHUFFLE_IDX, LOCKSTEP_SHUFFLE_XOR),
                             d.one_in(30) ? 2 : d.of<size_t>({4, 8}), times(32, d.upto(300)), 1 << d.upto(5),
                             static_cast<int32_t>(d.upto(40)) - 4);
  if (d.one_in(30)) s.count = d.size(100);
  if (d.one_in(30)) s.width = d.of<int32_t>({0, 3, 64, -32});
  if (d.one_in(30)) s.operand = d.of<int32_t>({INT32_MIN, INT32_MAX, 32});
  c.src = c.dst = span({{s.count, 1}}, s.element_bytes);
}

// Offsets of at most 60 segments, their number, and where the last one ends.
int64_t draw_segments(draws& d, int64_t& segments) {
  segments = d.upto(60);
  int64_t at = d.upto(5);
  for (int64_t s = 0; s <= segments; ++s)
    drawn_offsets[s] = at, at += d.one_in(40) ? -1 : d.upto(d.one_in(5) ? 3000 : 60);
  return reach(segments);
}

// Side arrays lie where the sources do, sum in src's last quarter or (once) over src itself.
void draw_normalize(draws& d, drawn& c) {
  auto& n = c.normalize;
  const auto type = [&] { return d.enumerator<lockstep_dtype>(LOCKSTEP_F16, LOCKSTEP_F64); };
  n = lockstep_normalize_rows(
      d.enumerator<lockstep_normalization>(LOCKSTEP_NORMALIZE_L2, LOCKSTEP_NORMALIZE_LAYER_BACKWARD), type(),
      d.size(d.one_in(3) ? 60 : 5), d.size(d.one_in(3) ? 5000 : 300),
      d.of<double>({1e-5, 0, 1e-300, 1, d.one_in(9) ? -1.0 : 1e-6}));
  int64_t block = n.length, blocks = n.count;  // rows side by side
  if (d.one_in(4)) {
    n.inner = d.size(40);
    const int64_t rows = std::max<int64_t>(n.inner, 1);
    const auto times = [](int64_t a, int64_t b) {
      int64_t product = 0;
      return __builtin_mul_overflow(a, b, &product) ? INT64_MAX - 1 : product;
    };
    blocks = d.size(5), block = times(n.length, rows);
    n.count = plus(times(blocks, rows), d.one_in(9) ? 1 : 0);
    if (rows == 1) blocks = n.count;  // any count is whole blocks then
    n.src_stride = block;
    if (n.dst_stride == n.length) n.dst_stride = block;
  }
  if (d.one_in(2)) n.src_stride = d.near(block), n.dst_stride = d.near(block);
  if (d.one_in(3)) n.result = type();
  if (d.one_in(3)) n.weight_dtype = d.one_in(9) ? type() : LOCKSTEP_F32;
  const auto bytes = [](lockstep_dtype dtype) { return lockstep_dtype_bytes(dtype); };
  const auto side = [&](int64_t count, int64_t stride, size_t element) -> void* {
    const bool within = span({{count, stride}, {block, 1}}, element) <= static_cast<wide>(room / 4);
    return within ? src_bytes + room / 2 + (d.one_in(40) ? 1 : 8) * d.upto(9) : nullptr;
  };
  const bool backward = n.kind > LOCKSTEP_NORMALIZE_PICKED,
             exponential = n.kind >= LOCKSTEP_NORMALIZE_SOFTMAX && !backward;
  if (exponential) n.scale = d.of<double>({1, 1, 0.125, -3, 1e-300, d.one_in(9) ? 0.0 : 1e9});
  static const int64_t labels[64] = {0, 0, 0, 0, 0, 0, 0, 250};  // the last is beyond some rows
  if (n.kind == LOCKSTEP_NORMALIZE_PICKED && n.count <= 64 && !d.one_in(9)) n.labels = labels;
  if (!exponential && d.one_in(2)) n.weight = side(1, 0, bytes(n.weight_dtype));
  if (backward) {
    n.gradient_stride = d.near(n.length);
    n.gradient = side(n.count, n.gradient_stride, bytes(n.dtype));
  }
  if (!exponential && d.one_in(backward ? 40 : 3)) n.bias = side(1, 0, bytes(n.weight_dtype));
  if (d.one_in(3)) {
    n.residual_stride = d.near(block);
    n.residual = side(blocks, n.residual_stride, bytes(n.dtype));
  }
  c.src = span({{blocks, n.src_stride}, {block, 1}}, bytes(n.dtype));
  const bool one_result = n.kind == LOCKSTEP_NORMALIZE_LOGSUMEXP || n.kind == LOCKSTEP_NORMALIZE_PICKED;
  c.dst = one_result ? span({{n.count, n.dst_stride}}, bytes(n.result))
                     : span({{blocks, n.dst_stride}, {block, 1}}, bytes(n.result));
  if (!exponential || !d.one_in(3)) return;
  if (!d.one_in(9)) n.residual = n.sum = nullptr;
  const int64_t last = draw_segments(d, n.count);
  n.offsets = drawn_offsets;
  c.src = span({{last, 1}}, bytes(n.dtype));
  c.dst = n.kind < LOCKSTEP_NORMALIZE_LOGSUMEXP ? span({{last, 1}}, bytes(n.result))
                                                : span({{n.count, n.dst_stride}}, bytes(n.result));
}

void draw_scan(draws& d, drawn& c) {
  auto& r = c.scan;
  const auto reduction =
      d.one_in(30) ? LOCKSTEP_ARGMIN : d.of<lockstep_reduction>({LOCKSTEP_SUM, LOCKSTEP_MIN, LOCKSTEP_MAX});
  const auto type = d.enumerator<lockstep_dtype>(LOCKSTEP_F16, LOCKSTEP_I64);
  const int64_t rows = d.size(40), cols = d.size(d.one_in(3) ? 3000 : 60);
  r = d.one_in(3) ? lockstep_scan_columns(reduction, type, cols, rows, d.near(rows))
                  : lockstep_scan_rows(reduction, type, rows, cols, d.near(cols));
  if (d.one_in(3))
    r.dst_sequence_stride = d.near(r.dst_sequence_stride), r.dst_element_stride = d.near(r.dst_element_stride);
  if (d.one_in(4)) r.result = d.enumerator<lockstep_dtype>(LOCKSTEP_F16, LOCKSTEP_I64);
  r.exclusive = d.one_in(30) ? 7 : d.one_in(2);
  const size_t bytes = lockstep_dtype_bytes(r.dtype), result_bytes = lockstep_dtype_bytes(r.result);
  if (d.one_in(3)) {
    const int64_t last = draw_segments(d, r.count);
    r.offsets = drawn_offsets;
    if (r.element_stride < 1 || r.element_stride > 4) r.element_stride = 1;
    if (d.one_in(2)) r.dst_element_stride = r.element_stride;
    c.src = span({{last, r.element_stride}}, bytes), c.dst = span({{last, r.dst_element_stride}}, result_bytes);
    return;
  }
  c.src = span({{r.count, r.sequence_stride}, {r.length, r.element_stride}}, bytes);
  c.dst = span({{r.count, r.dst_sequence_stride}, {r.length, r.dst_element_stride}}, result_bytes);
}

// other lies where the sources do, behind src; sometimes it is missing, or not wanted.
void draw_sums(draws& d, drawn& c) {
  auto& r = c.sums;
  const auto kind = d.one_in(30) ? static_cast<lockstep_sums_kind>(9)
                                 : d.enumerator<lockstep_sums_kind>(LOCKSTEP_SUMS_DOT, LOCKSTEP_SUMS_DIGEST);
  const auto type = d.enumerator<lockstep_dtype>(LOCKSTEP_F16, LOCKSTEP_BOOL);
  const int64_t rows = d.size(40), cols = d.size(d.one_in(3) ? 3000 : 60);
  r = lockstep_sums_rows(kind, type, rows, cols, d.near(cols), nullptr, d.one_in(3) ? 0 : d.near(cols));
  if (d.one_in(4)) r.result = d.enumerator<lockstep_dtype>(LOCKSTEP_F16, LOCKSTEP_F64);
  if (d.one_in(4)) r.element_stride = d.near(2), r.other_element_stride = d.near(2);
  if (d.one_in(5)) r.correction = d.of<int64_t>({0, 1, 5, -1});
  const size_t bytes = lockstep_dtype_bytes(r.dtype);
  const int64_t results = kind >= LOCKSTEP_SUMS_MEAN_VARIANCE ? 2 : 1;
  wide other = span({{r.count, r.other_sequence_stride}, {r.length, r.other_element_stride}}, bytes);
  c.src = span({{r.count, r.sequence_stride}, {r.length, r.element_stride}}, bytes);
  if (d.one_in(3)) {
    const int64_t last = draw_segments(d, r.count);
    r.offsets = drawn_offsets;
    if (r.element_stride < 1 || r.element_stride > 4) r.element_stride = 1;
    if (r.other_element_stride < 1 || r.other_element_stride > 4) r.other_element_stride = 1;
    c.src = span({{last, r.element_stride}}, bytes), other = span({{last, r.other_element_stride}}, bytes);
  }
  c.dst = span({{r.count, results}, {results, 1}}, lockstep_dtype_bytes(r.result));
  const bool wanted = kind <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES;
  if (other <= static_cast<wide>(room / 4) && wanted != d.one_in(30))
    r.other = src_bytes + room / 2 + (d.one_in(40) ? 1 : 8) * d.upto(9);
}

void draw_reduce_axes(draws& d, drawn& c) {
  auto& r = c.reduce_axes;
  const auto rank = static_cast<int32_t>(1 + d.upto(7)), gone = static_cast<int32_t>(1 + d.upto(rank - 1));
  int64_t shape[8];
  int32_t axes[8];
  for (int32_t k = 0; k < 8; ++k)
    shape[k] = d.size(rank < 3 ? 300 : 9), axes[k] = static_cast<int32_t>(d.upto(rank - 1));
  if (!d.one_in(4))  // each once
    for (int32_t k = 0, first = axes[0]; k < rank; ++k) axes[k] = (first + k) % rank;
  const auto reduction = d.enumerator<lockstep_reduction>(LOCKSTEP_SUM, LOCKSTEP_NORM2);
  r = lockstep_reduce_axes_packed(reduction, d.enumerator<lockstep_dtype>(LOCKSTEP_F16, LOCKSTEP_BOOL), rank, shape,
                                  gone, axes);
  if (d.one_in(30)) r.rank = static_cast<int32_t>(d.upto(12)) - 2;
  if (d.one_in(30)) r.axis_count = static_cast<int32_t>(d.upto(12)) - 2;
  if (d.one_in(4)) r.result = d.enumerator<lockstep_dtype>(LOCKSTEP_F16, LOCKSTEP_F64);
  if (d.one_in(3)) r.src_strides[d.upto(rank - 1)] = d.near(r.src_strides[d.upto(rank - 1)]);
  c.src = 1, c.dst = 8;
  bool none = false;
  const int32_t axes_there = std::clamp(r.rank, 1, 8);
  for (int32_t k = 0; k < axes_there; ++k) {
    const bool goes =
        std::find(r.axes, r.axes + std::clamp(r.axis_count, 0, 8), k) != r.axes + std::clamp(r.axis_count, 0, 8);
    const int64_t n = std::max<int64_t>(r.shape[k], 0);
    if (!goes) c.dst = std::min(c.dst * n, beyond);
    none = none || n == 0;
    const wide farthest = static_cast<wide>(std::max<int64_t>(n, 1) - 1) * std::max<int64_t>(r.src_strides[k], 0);
    c.src = std::min(c.src + farthest, beyond);
  }
  c.src = none ? 0 : c.src * static_cast<wide>(lockstep_dtype_bytes(r.dtype));
  // With strides of 0 a few bytes are any number of elements: more than a test has time for.
  wide elements = none ? 0 : 1;
  for (int32_t k = 0; k < axes_there && elements <= (1 << 22); ++k)
    elements *= static_cast<wide>(std::max<int64_t>(r.shape[k], 1));
  if (elements > (1 << 22)) c.src = std::max<wide>(c.src, room);
}

void draw_convert(draws& d, drawn& c) {
  auto& v = c.convert;
  const int rank = d.one_in(40) ? d.of<int>({0, 9, -1}) : 1 + static_cast<int>(d.upto(LOCKSTEP_MAX_RANK - 1));
  int64_t shape[LOCKSTEP_MAX_RANK];
  int32_t perm[LOCKSTEP_MAX_RANK];
  const int used = std::clamp(rank, 0, LOCKSTEP_MAX_RANK);
  for (int k = 0; k < used; ++k) shape[k] = d.size(used < 3 ? 300 : used < 5 ? 9 : 3), perm[k] = k;
  for (int k = used - 1; k > 0; --k) std::swap(perm[k], perm[d.upto(k)]);
  const auto type = [&] {
    return d.enumerator<lockstep_dtype>(LOCKSTEP_F16, d.one_in(30) ? LOCKSTEP_BOOL : LOCKSTEP_F64);
  };
  const lockstep_dtype dtype = type(), result = type();
  const auto scale = d.of<double>({1, 1, 0.5, -3, 0.1, 0x1p-140, 1e300, -0.0, __builtin_inf(), __builtin_nan("")});
  v = lockstep_convert_packed(dtype, result, scale, rank, shape, d.one_in(4) ? nullptr : perm);
  if (rank < 1 || rank > LOCKSTEP_MAX_RANK) return;
  if (d.one_in(3)) {  // padded, or spoilt
    const int64_t factor = d.one_in(10) ? 0 : 1 + d.upto(2);
    for (auto* strides : {v.src_strides, v.dst_strides})
      if (d.one_in(2)) strides[d.upto(used - 1)] = times(strides[d.upto(used - 1)], factor);
  }
  std::vector<axis> src, dst;
  for (int k = 0; k < used; ++k) {
    src.push_back({v.shape[k], v.src_strides[k]});
    dst.push_back({v.shape[k], v.dst_strides[k]});
  }
  c.src = span(src, std::max<size_t>(lockstep_dtype_bytes(dtype), 1));
  c.dst = span(dst, std::max<size_t>(lockstep_dtype_bytes(result), 1));
}

// The axes of a convert, whose description begins alike; F64 is drawn too, and refused.
void draw_map(draws& d, drawn& c) {
  draw_convert(d, c);
  std::memcpy(&c.map, &c.convert, sizeof c.convert);
  c.map.size = sizeof c.map;
  c.map.function = static_cast<lockstep_function>(d.upto(d.one_in(30) ? 99 : LOCKSTEP_FUNCTION_COUNT - 1));
  if (c.src <= static_cast<wide>(room / 4) && d.one_in(3))
    c.map.times = src_bytes + room / 2 + (d.one_in(40) ? 1 : 8) * d.upto(9);
}

// "" or what is wrong with the case.
std::string wrong_with(uint64_t number, lockstep_context* context) {
  draws d(number);
  auto c = std::make_unique<drawn>();
  c->op = static_cast<lockstep_op>(d.upto(LOCKSTEP_OP_COUNT - 1));
  switch (c->op) {
    case LOCKSTEP_TRANSPOSE: draw_transpose(d, *c); break;
    case LOCKSTEP_PERMUTE: draw_permute(d, *c); break;
    case LOCKSTEP_SQUARE_SUM:
    case LOCKSTEP_REDUCE: draw_reduce(d, *c); break;
    case LOCKSTEP_STENCIL: draw_stencil(d, *c); break;
    case LOCKSTEP_NORMALIZE: draw_normalize(d, *c); break;
    case LOCKSTEP_SCAN: draw_scan(d, *c); break;
    case LOCKSTEP_SUMS: draw_sums(d, *c); break;
    case LOCKSTEP_REDUCE_AXES: draw_reduce_axes(d, *c); break;
    case LOCKSTEP_CONVERT: draw_convert(d, *c); break;
    case LOCKSTEP_MAP: draw_map(d, *c); break;
    default: draw_shuffle(d, *c);
  }
  const size_t src_at = 64 + 16 * static_cast<size_t>(d.upto(6)), dst_at = 64 + 16 * static_cast<size_t>(d.upto(6));
  const bool fits = c->src <= static_cast<wide>(room / 2) && c->dst <= static_cast<wide>(room / 2);
  const bool in_place = fits && d.one_in(5);
  const unsigned char* const from = src_bytes + src_at;
  std::string text[2];
  lockstep_status status[2];
  const bool planned = d.one_in(4), queued = d.one_in(6), grouped = !planned && d.one_in(5);
  const size_t cleared =
      fits ? std::min<size_t>(room, dst_at + static_cast<size_t>(std::max(c->dst, in_place ? c->src : 0)) + 4096)
           : 8192;
  for (auto& bytes : dst_bytes) {
    std::memset(bytes, 0xA5, cleared);
    if (in_place) std::memcpy(bytes + dst_at, from, static_cast<size_t>(std::max(c->src, c->dst)));
  }
  for (const int k : {0, 1}) {
    unsigned char* const to = dst_bytes[k] + dst_at;
    lockstep_options o = lockstep_options_defaults();
    if (k == 1) o.variant = "ref";
    if (queued && k == 0) o.flags = LOCKSTEP_ASYNC;
    const void* const source = !fits ? nullptr : in_place ? to : from;
    unsigned char* const twin = dst_bytes[2] + dst_at;
    status[k] = planned && k == 0   ? c->planned(context, source, fits ? to : nullptr, &o)
                : grouped && k == 0 ? c->twins(context, {source, fits && in_place ? twin : source},
                                               {fits ? to : nullptr, fits ? twin : nullptr}, &o)
                                    : c->run(context, source, fits ? to : nullptr, &o);
    text[k] = lockstep_last_error();
    if (queued && k == 0 && lockstep_synchronize(context) != LOCKSTEP_OK) return "an asynchronous call failed late";
  }
  const auto what = [&](const std::string& words) {
    return words + ": " + lockstep_op_name(c->op) + ' ' + lockstep_status_name(status[0]) + " \"" + text[0] +
           "\", ref " + lockstep_status_name(status[1]) + " \"" + text[1] + "\"";
  };
  // A plan takes its workspace before it knows src and dst.
  if (planned && !fits && status[0] == LOCKSTEP_OUT_OF_MEMORY) return "";
  if (status[0] != status[1]) return what("the status is another");
  if (status[0] == LOCKSTEP_INTERNAL) return what("a defect");
  if (!fits && status[0] == LOCKSTEP_OK) return what("NULL taken for more than there is");
  if (status[0] != LOCKSTEP_OK && text[0].empty()) return what("no text");
  if (std::any_of(text[0].begin(), text[0].end(), [](char x) { return static_cast<unsigned char>(x) < 0x20; }))
    return what("a control character");
  if (std::memcmp(dst_bytes[0], dst_bytes[1], room) != 0) return what("dst is another");
  if (grouped && std::memcmp(dst_bytes[2], dst_bytes[1], cleared) != 0)
    return what("the second dst of a group is another");
  return "";
}

TEST(Fuzz, RandomDescriptionsAgainstRef) {
  for (size_t i = 0; i < room; i += 8) {  // all kinds of floats and integers
    const uint64_t bits = cases::mix(i);
    const uint64_t word = bits % 5 == 0 ? bits : (bits & 0x800FFFFFFFFFFFFFu) | (uint64_t{0x3F0 + bits % 31} << 52);
    std::memcpy(src_bytes + i, &word, 8);
  }
  const cases::context_of own("cpu");
  int failures = 0;
  uint64_t ran = 0;
  const auto one = [&](uint64_t number) {
    ++ran;
    if (const std::string wrong = wrong_with(number, own.self); !wrong.empty() && ++failures < 10)
      ADD_FAILURE() << "case " << number << ": " << wrong << "\n  rerun: --gtest_filter=Fuzz.* --seed " << number;
  };
  std::ifstream corpus(CORPUS_FILE);
  ASSERT_TRUE(corpus.good()) << CORPUS_FILE;
  for (std::string line; std::getline(corpus, line);)
    if (!line.empty() && line[0] != '#') one(std::strtoull(line.c_str(), nullptr, 10));
  one(seed);
  const char* const asked = getenv("LOCKSTEP_FUZZ_SECONDS");
  const double seconds = asked != nullptr ? std::atof(asked) : 2;
  // Each run sees other cases, unless LOCKSTEP_FUZZ_FIRST says which; a failure tells its number.
  const char* const first = getenv("LOCKSTEP_FUZZ_FIRST");
  const auto begin = std::chrono::steady_clock::now();
  const auto now = static_cast<uint64_t>(begin.time_since_epoch().count());
  const auto from = first != nullptr ? std::strtoull(first, nullptr, 10) : asked != nullptr ? now : seed;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds && failures < 10)
    one(cases::mix(from + ran));
  std::printf("%llu cases\n", static_cast<unsigned long long>(ran));
  EXPECT_GT(ran, 1000u);
}

// ---- growth --------------------------------------------------------------------------

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Contexts, calls and plans that come and go leave nothing behind.
TEST(Growth, OfNothing) {
  static float src[4096], dst[4096];
  const auto round = [] {
    const cases::context_of own("cpu", 2);
    lockstep_context* const c = own.self;
    const auto t = lockstep_transpose_packed(4, 64, 64);
    const int64_t n = 4096;
    const double taps[] = {1, 2, 1};
    auto s = lockstep_stencil_packed(LOCKSTEP_F32, 1, &n, 1, taps, LOCKSTEP_BOUNDARY_WRAP);
    s.sweeps = 3;
    lockstep_options queued = lockstep_options_defaults();
    queued.flags = LOCKSTEP_ASYNC;
    EXPECT_EQ(lockstep_transpose(c, &t, src, dst, nullptr), LOCKSTEP_OK);
    EXPECT_EQ(lockstep_stencil(c, &s, src, dst, &queued), LOCKSTEP_OK);
    lockstep_plan* plan = nullptr;
    EXPECT_EQ(lockstep_plan_stencil(c, &s, nullptr, &plan), LOCKSTEP_OK);
    EXPECT_EQ(lockstep_plan_execute(plan, src, dst, nullptr), LOCKSTEP_OK);
    EXPECT_NE(lockstep_transpose(c, &t, nullptr, dst, nullptr), LOCKSTEP_OK);  // texts of errors, too
    EXPECT_EQ(lockstep_synchronize(c), LOCKSTEP_OK);
    lockstep_plan_destroy(plan);
  };
  for (int i = 0; i < 300; ++i) round();
  const int64_t before = resident_bytes();
  for (int i = 0; i < 3000; ++i) round();
  EXPECT_LT(resident_bytes() - before, 1 << 20) << "bytes more after 3,000 rounds";
}

// ---- addresses -----------------------------------------------------------------------

// Wherever in a line of the cache src and dst begin.
TEST(Addresses, EveryPlaceInALine) {
  cases::runner run;
  for (const char* name : {"transpose/b1/67x91",
                           "transpose/b4/33x70",
                           "transpose/b16/9x40",
                           "permute/b2/6x35x20/perm2,0,1",
                           "permute/b8/5x7x9/perm1,2,0",
                           "square_sum/ssq/f16/rows/5x301",
                           "square_sum/norm2/f64/full/700",
                           "reduce/sum/f32/full/5003",
                           "reduce/argmin/i32/rows/9x77",
                           "reduce/max/f64/columns/50x37",
                           "stencil/f32/general/mirror/r2/517",
                           "stencil/f64/general/wrap/r1/15x40",
                           "shuffle/b4/down/w16/op3/n160",
                           "shuffle/b8/idx/w32/op7/n96",
                           "normalize/rms/bf16/3x301/weight",
                           "normalize/layer/f32/5x77/to_f16",
                           "normalize/l2/f64/3x2100",
                           "scan/sum/f32/full/5003",
                           "scan/max/f16/rows/5x77/exclusive",
                           "scan/sum/bf16/columns/50x37/to_f32",
                           "sums/dot/f16/full/5003",
                           "reduce_axes/sum/f32/9x4x70/axes0,2",
                           "convert/f32/f16/9x140/perm1,0",
                           "convert/f16/f32/701/perm0",
                           "sums/meanvar/f32/rows/5x301"}) {
    const std::string text = name;
    const size_t element = cases::parse(text).src.element_bytes;
    for (size_t at = 0; at < 64 / element; ++at)
      for (const size_t other : {size_t{0}, at, (at + 1) % (64 / element)}) {
        const cases::subject s(cases::parse(text + "/off" + std::to_string(at) + "," + std::to_string(other)));
        const cases::outcome o = run.run(s, cases::target{});
        ASSERT_EQ(o.what, cases::verdict::equal) << s.c.name << ": " << o.text;
      }
  }
}

}  // namespace
}  // namespace lockstep::check
