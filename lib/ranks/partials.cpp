// partials.cpp - a reduction's arithmetic on one rank: partial results by the calls of lockstep.h, and results from the
// partial results of all members. Every sum made here is one of the fixed order.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "../bits/exact.hpp"
#include "devices.hpp"
#include "reduce.hpp"

namespace lockstep::ranks {

constexpr int64_t leaf = order::leaf;
constexpr int64_t stretch = 64 * leaf;  // elements that the scratch holds
constexpr int32_t no_exponent = INT32_MIN;

namespace {
// An integer of this type (integer_at) as an exact sum, and as an exact product.
order::wide wide_of(lockstep_dtype dtype, int64_t x) {
  const uint64_t sign = dtype == LOCKSTEP_U64 || x >= 0 ? 0 : UINT64_MAX;
  return {{static_cast<uint64_t>(x), sign, sign}};
}
order::exact_factor factor_of(lockstep_dtype dtype, int64_t x) {
  const bool negative = dtype != LOCKSTEP_U64 && x < 0;
  return {negative ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x), false, negative};
}

// The moments of n times x, with the squares that count if other leaves differ: a variance does not tell them.
order::moments moments_of_equal(double x, int64_t n) {
  const auto leaf_of = [x](int64_t length) {
    double sum[order::lanes], m2[order::lanes];
    std::fill_n(sum, order::lanes, -0.0), std::fill_n(m2, order::lanes, -0.0);
    for (int64_t i = 0; i < length; ++i) sum[i % order::lanes] += x;
    const double total = order::join_lanes(sum), off = x - total / static_cast<double>(length);
    for (int64_t i = 0; i < length; ++i) m2[i % order::lanes] = std::fma(off, off, m2[i % order::lanes]);
    return order::moments{static_cast<double>(length), total, order::join_lanes(m2), x};
  };
  const order::moments whole = leaf_of(std::min(leaf, n));
  order::tree<order::moments> all{};
  for (int64_t left = n; left > 0; left -= leaf) all.push(left == n || left >= leaf ? whole : leaf_of(left));
  return all.total();
}
}  // namespace

lockstep_status partial_work::call(const reduce_seat& s, const wanted& w, const strided& x, const strided& other,
                                   int64_t count, int64_t length, void* out) const {
  lockstep_options options = comm.options_of(s.seat);
  lockstep_status status = LOCKSTEP_OK;
  if (w.terms) {
    lockstep_sums_desc d =
        lockstep_sums_rows(*w.terms, plan.dtype, count, length, x.sequence_stride, other.data, other.sequence_stride);
    d.result = w.result;
    d.element_stride = x.element_stride;
    d.other_element_stride = other.element_stride;
    d.correction = w.correction;
    if (plan.how == family::digest) options = lockstep_options_defaults(), options.backend = "cpu";
    status = lockstep_sums(comm.context, &d, x.data, out, &options);
  } else {
    lockstep_reduce_desc d = lockstep_reduce_rows(w.reduction, plan.dtype, count, length, x.sequence_stride);
    d.result = w.result;
    d.element_stride = x.element_stride;
    status = lib::kind_of(w.reduction).op == LOCKSTEP_SQUARE_SUM
                 ? lockstep_square_sum(comm.context, &d, x.data, out, &options)
                 : lockstep_reduce(comm.context, &d, x.data, out, &options);
  }
  if (status != LOCKSTEP_OK && status != LOCKSTEP_OVERFLOW) throw error{status, lockstep_last_error()};
  return status;
}

template <class Visit>
void partial_work::each_array(const reduce_seat& s, const Visit& visit) const {
  visit(s.view, 0);
  if (s.other.data != nullptr) visit(s.other, 1);
}

void partial_work::each_run(const reduce_seat& s, int64_t first, const visit_run& visit) const {
  const auto bytes = static_cast<int64_t>(plan.element_bytes);
  const auto other_bytes = s.other_bytes != 0 ? static_cast<int64_t>(s.other_bytes) : bytes;
  // The last axes count as one run if they have a common stride, in both arrays.
  int64_t count = 1, step[2] = {0, 0};
  int k = s.view.axes - 1;
  for (; k >= 0; --k) {
    const auto i = static_cast<size_t>(k);
    if (s.view.length[i] == 1) continue;
    bool continues = true;
    each_array(s, [&](const sequence_view& v, size_t array) {
      if (count == 1)
        step[array] = v.stride[i];
      else
        continues = continues && v.stride[i] == step[array] * count;
    });
    if (!continues) break;
    count *= s.view.length[i];
  }
  for (int64_t q = 0; q < s.sequences; q += count) {
    strided at[2] = {};
    each_array(s, [&](const sequence_view& v, size_t array) {
      int64_t left = q / count, offset = (first - s.first) * v.element_stride;
      for (int j = k; j >= 0; --j) {
        const auto i = static_cast<size_t>(j);
        offset += left % v.length[i] * v.stride[i];
        left /= v.length[i];
      }
      at[array] = {v.data + offset * (array == 0 ? bytes : other_bytes), v.element_stride, step[array]};
    });
    visit(at[0], at[1], q, count);
  }
}

// Elements [first, first + length) of every sequence here.
lockstep_status partial_work::over_runs(const reduce_seat& s, const wanted& w, int64_t first, int64_t length,
                                        char* out) const {
  lockstep_status status = LOCKSTEP_OK;
  each_run(s, first, [&](const strided& x, const strided& other, int64_t q, int64_t count) {
    if (call(s, w, x, other, count, length, out + q * static_cast<int64_t>(w.bytes())) != LOCKSTEP_OK)
      status = LOCKSTEP_OVERFLOW;
  });
  return status;
}

void partial_work::gather(const reduce_seat& s, int64_t first, int64_t count, void* to, int64_t ld) const {
  each_array(s, [&](const sequence_view& v, size_t array) {
    box b;
    b.rank = v.axes + 1;
    std::array<int64_t, LOCKSTEP_MAX_RANK> from{}, into{};
    int64_t stride = ld * plan.arrays();
    for (int k = v.axes - 1; k >= 0; --k) {
      const auto i = static_cast<size_t>(k);
      b.length[i] = v.length[i];
      from[i] = v.stride[i];
      into[i] = stride;
      stride *= v.length[i];
    }
    const auto last = static_cast<size_t>(v.axes);
    b.length[last] = count;
    from[last] = v.element_stride;
    into[last] = plan.arrays();
    copy_box(comm, s.seat, plan.element_bytes, b,
             v.data + (first - s.first) * v.element_stride * static_cast<int64_t>(plan.element_bytes), from.data(),
             static_cast<char*>(to) + array * plan.element_bytes, into.data());
  });
}

void partial_work::gather_one(const reduce_seat& s, int64_t sequence, int64_t first, int64_t count, void* to) const {
  each_array(s, [&](const sequence_view& v, size_t array) {
    int64_t offset = (first - s.first) * v.element_stride, left = sequence;
    for (int k = v.axes - 1; k >= 0; --k) {
      const auto i = static_cast<size_t>(k);
      offset += left % v.length[i] * v.stride[i];
      left /= v.length[i];
    }
    box b;
    b.rank = 1;
    b.length[0] = count;
    const int64_t step = plan.arrays();
    copy_box(comm, s.seat, plan.element_bytes, b, v.data + offset * static_cast<int64_t>(plan.element_bytes),
             &v.element_stride, static_cast<char*>(to) + array * plan.element_bytes, &step);
  });
}

void partial_work::gather_some(const reduce_seat& s, int64_t low, int64_t high, int64_t first, int64_t count, void* to,
                               int64_t ld) const {
  if (low == 0 && high == s.sequences) return gather(s, first, count, to, ld);
  for (int64_t q = low; q < high; ++q)
    gather_one(s, q, first, count, static_cast<char*>(to) + static_cast<size_t>((q - low) * ld) * plan.copied_bytes());
}

void partial_work::direct(const reduce_seat& s, char* results) const {
  over_runs(s, {plan.terms, plan.reduction, plan.result, plan.correction}, s.first, plan.length, results);
}

// The pieces of the leaves that are summed here, in their order: shared leaves, and the largest subtrees of the others.
template <class Visit>
void partial_work::each_piece(const reduce_seat& s, const Visit& visit) const {
  const auto elements = [&](const subtree& t) {
    const int64_t begin = (t.index << t.level) * leaf;
    return std::pair{begin, std::min(plan.length, ((t.index + 1) << t.level) * leaf) - begin};
  };
  const auto assembled = [&](int64_t l) { return s.assembled[l == s.shared[0] ? 0 : 1].data(); };
  for (const int64_t l : s.shared) {  // this rank's elements of shared leaves
    if (l < 0) continue;
    const auto [low, n] = elements({0, l});
    const int64_t begin = std::max(s.first, low), end = std::min(s.last, low + n);
    if (begin < end)
      gather(s, begin, end - begin, assembled(l) + static_cast<size_t>(begin - low) * plan.copied_bytes(), n);
  }
  const auto shared_leaf = [&](int64_t l) {
    const auto [low, n] = elements({0, l});
    visit(piece{{0, l}, low, n, assembled(l)});
  };
  int64_t first = s.first_leaf, last = s.last_leaf;
  const auto is_shared = [&](int64_t l) { return l == s.shared[0] || l == s.shared[1]; };
  if (first < last && is_shared(first)) shared_leaf(first++);
  const bool shared_end = first < last && is_shared(last - 1);
  if (shared_end) --last;
  for (const subtree& t : tiling(first, last)) {
    const auto [low, n] = elements(t);
    visit(piece{t, low, n, nullptr});
  }
  if (shared_end) shared_leaf(last);
}

void partial_work::ask(const reduce_seat& s, const wanted& w, const piece& p, char* out) const {
  const int64_t arrays = plan.arrays(), row = arrays * p.length;
  if (p.assembled == nullptr)
    over_runs(s, w, p.first, p.length, out);
  else
    call(s, w, {p.assembled, arrays, row}, {plan.pairs() ? p.assembled + plan.element_bytes : nullptr, arrays, row},
         s.sequences, p.length, out);
}

// The sums of E of some sequences' elements, which begin at a leaf: exponentials of at most a stretch of elements wait
// in the scratch. Always on the CPU, to whose memory elements on a device are copied.
void partial_work::exponentials(const reduce_seat& s, const strided& x, int64_t sequence, int64_t count, int64_t length,
                                double* out) const {
  const auto bytes = static_cast<int64_t>(plan.element_bytes);
  lockstep_options options = lockstep_options_defaults();
  options.backend = "cpu";
  auto* const e = reinterpret_cast<double*>(s.scratch.data());
  char* const copy = s.scratch.data() + stretch * static_cast<int64_t>(sizeof(double));
  const auto sums = [&](int64_t q, int64_t rows, int64_t at, int64_t n, double* to) {
    const char* from = x.data + (q * x.sequence_stride + at * x.element_stride) * bytes;
    int64_t stride = x.sequence_stride;
    if (comm.devices->has(s.seat) || (x.element_stride != 1 && n > 1)) {
      box b;
      b.rank = 2;
      b.length = {rows, n};
      const int64_t in[] = {x.sequence_stride, x.element_stride}, packed[] = {n, 1};
      copy_box(comm, s.seat, plan.element_bytes, b, from, in, copy, packed);
      from = copy, stride = n;
    }
    lockstep_normalize_desc d = lockstep_normalize_rows(LOCKSTEP_NORMALIZE_SOFTMAX, plan.dtype, rows, n, plan.scale);
    d.result = LOCKSTEP_F64;
    d.src_stride = stride;
    d.given = s.given + 2 * (sequence + q);
    require_ok(lockstep_normalize(comm.context, &d, from, e, &options));
    const lockstep_reduce_desc sum = lockstep_reduce_rows(LOCKSTEP_SUM, LOCKSTEP_F64, rows, n, n);
    require_ok(lockstep_reduce(comm.context, &sum, e, to, &options));
  };
  if (const int64_t batch = stretch / length; batch > 0) {
    for (int64_t q = 0; q < count; q += batch) sums(q, std::min(batch, count - q), 0, length, out + q);
    return;
  }
  static_assert(stretch == leaf << 6);
  for (int64_t q = 0; q < count; ++q) {
    order::tree<double> tree;
    for (int64_t at = 0; at < length; at += stretch) {
      double sum = 0;
      sums(q, 1, at, std::min(stretch, length - at), &sum);
      tree.push(sum, 6);
    }
    out[q] = tree.total();
  }
}

void partial_work::values(const reduce_seat& s, const piece& p, double* out) const {
  if (plan.scale != 0 && p.assembled != nullptr)
    return exponentials(s, {p.assembled, 1, p.length}, 0, s.sequences, p.length, out);
  if (plan.scale != 0)
    return each_run(s, p.first, [&](const strided& x, const strided&, int64_t q, int64_t count) {
      exponentials(s, x, q, count, p.length, out + q);
    });
  ask(s, {plan.terms, lib::value_of(plan.reduction), LOCKSTEP_F64}, p, reinterpret_cast<char*>(out));
}

// Divided by 1, a variance is the sum of the squares; a sum cannot be had from a mean, which is rounded.
void partial_work::values(const reduce_seat& s, const piece& p, order::moments* out) const {
  const auto* sums = reinterpret_cast<const double*>(s.scratch.data());
  const auto* pairs = sums + s.sequences;
  ask(s, {{}, LOCKSTEP_SUM, LOCKSTEP_F64}, p, s.scratch.data());
  ask(s, {LOCKSTEP_SUMS_MEAN_VARIANCE, LOCKSTEP_SUM, LOCKSTEP_F64, p.length - 1}, p,
      s.scratch.data() + static_cast<size_t>(s.sequences) * sizeof(double));
  bool any = false;
  for (int64_t q = 0; q < s.sequences; ++q) {
    out[q] = {static_cast<double>(p.length), sums[q], pairs[2 * q + 1], 0};
    if (plan.dtype != LOCKSTEP_F64 || pairs[2 * q + 1] != 0 || !std::isfinite(pairs[2 * q])) continue;
    out[q].equal = pairs[2 * q];  // perhaps: squares of differences may also underflow to 0
    any |= out[q].equal != 0;
  }
  if (!any) return;
  const auto* least = sums;
  const auto* largest = least + s.sequences;
  ask(s, {{}, LOCKSTEP_MIN, LOCKSTEP_F64}, p, s.scratch.data());
  ask(s, {{}, LOCKSTEP_MAX, LOCKSTEP_F64}, p, s.scratch.data() + static_cast<size_t>(s.sequences) * sizeof(double));
  for (int64_t q = 0; q < s.sequences; ++q) {
    const bool equal = out[q].equal != 0 && least[q] == largest[q];
    out[q].equal = 0;
    if (equal) out[q] = moments_of_equal(least[q], p.length);
  }
}

template <class T>
void partial_work::compute_forest(const reduce_seat& s) const {
  forest_of<T> own(s.sequences, reinterpret_cast<T*>(s.partials.data()), plan.kind().by == lib::join::product);
  each_piece(s, [&](const piece& p) {
    values(s, p, own.top());
    own.push(p.tile);
  });
}

// The parts of a digest add up, if each is told where it begins.
void partial_work::compute_digest(const reduce_seat& s) const {
  auto* into = reinterpret_cast<digest_sums*>(s.partials.data());
  std::fill_n(into, s.sequences, digest_sums{});
  const auto add = [&](int64_t q, const digest_sums& part) {
    for (int k = 0; k < 2; ++k) into[q].of[k] += part.of[k];
  };
  each_piece(s, [&](const piece& p) {
    const wanted w{LOCKSTEP_SUMS_DIGEST, LOCKSTEP_SUM, LOCKSTEP_U64, p.first};
    if (p.assembled != nullptr || !comm.devices->has(s.seat)) {
      ask(s, w, p, s.scratch.data());
      for (int64_t q = 0; q < s.sequences; ++q) add(q, reinterpret_cast<const digest_sums*>(s.scratch.data())[q]);
      return;
    }
    for (int64_t q = 0; q < s.sequences; ++q)
      for (int64_t at = 0; at < p.length; at += stretch) {
        const int64_t n = std::min(stretch, p.length - at);
        digest_sums part{};
        gather_one(s, q, p.first + at, n, s.scratch.data());
        call(s, {w.terms, w.reduction, w.result, p.first + at}, {s.scratch.data(), 1, n}, {}, 1, n, &part);
        add(q, part);
      }
  });
}

// By blocks: the sums of the block's elements.
void partial_work::compute_block(const reduce_seat& s) const {
  auto* total = reinterpret_cast<double*>(s.partials.data());
  std::fill_n(total, s.sequences, plan.kind().by == lib::join::product ? 1.0 : 0.0);
  const int64_t n = plan.block_of(s.rank).elements();
  if (n == 0) return;
  if (plan.several.empty()) {
    over_runs(s, {{}, lib::value_of(plan.reduction), LOCKSTEP_F64}, s.first, n, reinterpret_cast<char*>(total));
    return;
  }
  const int64_t end = s.kept.low[0] + s.sequences;
  auto array = s.views.begin();
  for (int64_t q = 0; q < end; ++q) {
    const lockstep_ranks_term& t = plan.several[static_cast<size_t>(q)];
    reduce_seat one;
    one.seat = s.seat, one.rank = s.rank, one.sequences = 1;
    one.view = *array++;
    wanted w{{}, LOCKSTEP_SUM, LOCKSTEP_F64};
    if (t.op == LOCKSTEP_SUMS) w.terms = static_cast<lockstep_sums_kind>(t.of);
    if (t.op != LOCKSTEP_SUMS) w.reduction = static_cast<lockstep_reduction>(t.of);
    if (is_pair(t)) one.other = *array++;
    if (q >= s.kept.low[0]) over_runs(one, w, 0, n, reinterpret_cast<char*>(total + (q - s.kept.low[0])));
  }
}

void partial_work::compute(reduce_seat& s) const {
  if (plan.by_blocks) return compute_block(s);
  switch (plan.how) {
    case family::tree: return compute_forest<double>(s);
    case family::moments: return compute_forest<order::moments>(s);
    case family::digest: return compute_digest(s);
    case family::extreme: return s.first < s.last ? compute_extremes(s) : void();
    case family::sum:
    case family::product: return s.first < s.last ? compute_exact(s) : void();
  }
}

void partial_work::compute_exact(reduce_seat& s) const {
  const lockstep_reduction value = lib::value_of(plan.reduction);
  const lockstep_dtype result = lockstep_default_result(value, plan.dtype);
  const bool product = plan.how == family::product;
  auto* sums = reinterpret_cast<order::wide*>(s.partials.data());
  auto* products = reinterpret_cast<order::exact_factor*>(s.partials.data());
  auto* values = reinterpret_cast<int64_t*>(s.scratch.data());
  const bool over =
      over_runs(s, {plan.terms, value, result}, s.first, s.last - s.first, s.scratch.data()) != LOCKSTEP_OK;
  for (int64_t q = 0; q < s.sequences; ++q) {
    if (product)
      products[q] = factor_of(result, values[q]);
    else
      sums[q] = wide_of(result, values[q]);
  }
  // A saturated value may stand for one that does not fit; such results are computed here, element by element.
  if (!over) return;
  std::vector<int64_t> again;
  for (int64_t q = 0; q < s.sequences; ++q)
    if (result == LOCKSTEP_U64 ? values[q] == -1 : values[q] == INT64_MAX || values[q] == INT64_MIN) again.push_back(q);
  for (const int64_t q : again) {
    if (product)
      products[q] = exact_product(s, q);
    else
      sums[q] = exact_sum(s, q);
  }
}

// One call gives the values, another their indices.
void partial_work::compute_extremes(reduce_seat& s) const {
  const int64_t n = s.last - s.first;
  auto* into = reinterpret_cast<winner*>(s.partials.data());
  const bool index = plan.kind().to == lib::finish::index;
  for (int64_t q = 0; q < s.sequences; ++q) into[q].index = 0;
  if (index) {
    over_runs(s, {{}, plan.reduction, LOCKSTEP_I64}, s.first, n, s.scratch.data());
    for (int64_t q = 0; q < s.sequences; ++q) into[q].index = reinterpret_cast<const int64_t*>(s.scratch.data())[q];
  }
  if (index && s.sequences <= 64)  // fetching a few elements is faster than reading all again
    for (int64_t q = 0; q < s.sequences; ++q)
      gather_one(s, q, s.first + into[q].index, 1, s.scratch.data() + static_cast<size_t>(q) * plan.element_bytes);
  else
    over_runs(s, {{}, lib::value_of(plan.reduction), plan.dtype}, s.first, n, s.scratch.data());
  // A NaN is beyond all numbers, or, where NaNs do not count, behind them.
  const bool above = (plan.kind().by == lib::join::largest) != (plan.kind().of == lib::term::number);
  for (int64_t q = 0; q < s.sequences; ++q)
    into[q].key = order::key_at(plan.dtype, s.scratch.data(), q, above ? INT64_MAX : INT64_MIN);
  for (int64_t q = 0; index && q < s.sequences; ++q) into[q].index = plan.place_of(s, into[q].index);
  for (int64_t q = 0; plan.picks && q < s.sequences; ++q) {
    into[q].index = INT64_MIN;  // another member has it
    if (s.labels[q] < s.first || s.labels[q] >= s.last) continue;
    gather_one(s, q, s.labels[q], 1, s.scratch.data());
    into[q].index = order::key_at(plan.dtype, s.scratch.data(), 0, INT64_MAX);
  }
}

// visit(x), or visit(x, y) of two arrays.
template <class Visit>
void partial_work::each_integer(const reduce_seat& s, int64_t sequence, const Visit& visit) const {
  // Reuses the scratch, whose values compute_exact() no longer needs.
  for (int64_t first = s.first; first < s.last; first += stretch) {
    const int64_t n = std::min(stretch, s.last - first), arrays = plan.arrays();
    gather_one(s, sequence, first, n, s.scratch.data());
    for (int64_t i = 0; i < n; ++i)
      visit(order::integer_at(plan.dtype, s.scratch.data(), arrays * i),
            arrays == 2 ? order::integer_at(plan.dtype, s.scratch.data(), arrays * i + 1) : 0);
  }
}

// The term of an exact sum: its size, and whether it is subtracted.
std::pair<order::uint128, bool> partial_work::exact_term(int64_t x, int64_t y) const {
  const order::exact_factor a = factor_of(plan.dtype, x), b = factor_of(plan.dtype, y);
  const order::uint128 u = a.size, v = b.size;
  if (!plan.terms)
    return {plan.kind().of == lib::term::square ? u * u : u, a.negative && plan.kind().of != lib::term::square};
  const order::uint128 apart = a.negative != b.negative ? u + v : u > v ? u - v : v - u;
  switch (*plan.terms) {
    case LOCKSTEP_SUMS_DOT: return {u * v, a.negative != b.negative};
    case LOCKSTEP_SUMS_SQUARED_DIFFERENCES: return {apart * apart, false};
    case LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES: return {apart, false};
    case LOCKSTEP_SUMS_ABSOLUTE:
    case LOCKSTEP_SUMS_MEAN_VARIANCE:
    case LOCKSTEP_SUMS_DIGEST: break;
  }
  return {u, false};
}

order::wide partial_work::exact_sum(const reduce_seat& s, int64_t sequence) const {
  order::wide sum{};
  each_integer(s, sequence, [&](int64_t x, int64_t y) {
    const auto [size, negative] = exact_term(x, y);
    const order::wide term = {{static_cast<uint64_t>(size), static_cast<uint64_t>(size >> 64), 0}};
    negative ? order::subtract(sum, term) : order::add(sum, term);
  });
  return sum;
}

order::exact_factor partial_work::exact_product(const reduce_seat& s, int64_t sequence) const {
  order::exact_factor product{1, false, false};
  each_integer(s, sequence, [&](int64_t x, int64_t) { order::multiply(product, factor_of(plan.dtype, x)); });
  return product;
}

// The sums of the whole sequences, computed in place from the forest of all leaves.
template <class T>
const T* partial_work::totals(const reduce_seat& s, char* joined) const {
  const int64_t n = s.joined.size();
  auto* values = reinterpret_cast<T*>(joined);
  forest_of<T> all(n, values, plan.kind().by == lib::join::product);
  for (const subtree& t : tiling(0, order::leaves(plan.length))) all.push(t);  // the tiles are already in order
  if (all.tiles().empty()) return nullptr;
  all.join_all();
  return values;
}

int64_t partial_work::finish(const reduce_seat& s, char* joined, char* out) const {
  const int64_t count = s.joined.size();
  const lib::finish to = plan.kind().to;
  int64_t overflow = -1;
  const auto fits = [&](int64_t q, bool it_does) {
    if (!it_does && overflow < 0) overflow = q;
  };
  const bool none = plan.length == 0;
  switch (plan.how) {
    case family::tree: {
      const double* sums = totals<double>(s, joined);
      const double empty = plan.kind().by == lib::join::product ? 1 : 0;
      for (int64_t q = 0; q < count; ++q) {
        const double sum = sums != nullptr ? sums[q] : empty;
        if (plan.second_pass()) reinterpret_cast<double*>(s.plain.data())[q] = sum;
        order::store_float(plan.result, out, q, to == lib::finish::root ? std::sqrt(sum) : sum);
      }
      break;
    }
    case family::sum:
      for (int64_t q = 0; q < count; ++q) {
        const order::wide sum = none ? order::wide{} : reinterpret_cast<const order::wide*>(joined)[q];
        switch (to) {
          case lib::finish::root: order::store_float(plan.result, out, q, order::rounded_root(sum.limb)); break;
          case lib::finish::any: out[q] = sum.limb[0] != 0 ? 1 : 0; break;
          case lib::finish::all: out[q] = sum.limb[0] == static_cast<uint64_t>(plan.length) ? 1 : 0; break;
          case lib::finish::value:
          case lib::finish::index: fits(q, order::store_exact(plan.result, out, q, sum));
        }
      }
      break;
    case family::product:
      for (int64_t q = 0; q < count; ++q) {
        const auto one = order::exact_factor{1, false, false};
        fits(q, order::store_exact(plan.result, out, q,
                                   none ? one : reinterpret_cast<const order::exact_factor*>(joined)[q]));
      }
      break;
    case family::extreme:
      for (int64_t q = 0; q < count; ++q) {
        const winner& best = reinterpret_cast<const winner*>(joined)[q];
        if (plan.gives_keys())
          reinterpret_cast<winner*>(out)[q] = best;
        else if (to == lib::finish::index)
          reinterpret_cast<int64_t*>(out)[q] = best.index;
        else
          order::store_key(plan.dtype, out, q, best.key);
      }
      break;
    case family::moments: {
      const order::moments* all = totals<order::moments>(s, joined);
      constexpr double nan = std::numeric_limits<double>::quiet_NaN();
      const double divisor = static_cast<double>(plan.length - plan.correction);
      for (int64_t q = 0; q < count; ++q) {
        order::store_float(plan.result, out, 2 * q, all != nullptr ? all[q].mean() : nan);
        order::store_float(plan.result, out, 2 * q + 1,
                           all != nullptr && divisor > 0 ? all[q].squares() / divisor : nan);
      }
      break;
    }
    case family::digest:
      for (int64_t q = 0; q < count; ++q)
        reinterpret_cast<digest_sums*>(out)[q] = none ? digest_sums{} : reinterpret_cast<digest_sums*>(joined)[q];
  }
  return overflow;
}

// ---- NORM2 of f64, where plain squares leave the range of a double -----------------

bool partial_work::asks_again(const reduce_seat& s) const {
  const auto* plain = reinterpret_cast<const double*>(s.plain.data());
  return std::any_of(plain, plain + s.joined.size(),
                     [](double x) { return x < order::rescale_below || x > std::numeric_limits<double>::max(); });
}

void partial_work::magnitudes(reduce_seat& s) const {
  auto* into = reinterpret_cast<double*>(s.magnitudes.data());
  std::fill_n(into, s.sequences, 0.0);
  const int64_t n = plan.by_blocks ? plan.block_of(s.rank).elements() : s.last - s.first;
  if (n <= 0) return;
  for (const lockstep_reduction r : {LOCKSTEP_MIN, LOCKSTEP_MAX}) {
    over_runs(s, {{}, r, LOCKSTEP_F64}, s.first, n, s.scratch.data());
    for (int64_t q = 0; q < s.sequences; ++q)
      into[q] = std::fmax(into[q], std::fabs(reinterpret_cast<const double*>(s.scratch.data())[q]));
  }
}

void partial_work::choose_exponents(const reduce_seat& s, const char* magnitudes) const {
  const auto* plain = reinterpret_cast<const double*>(s.plain.data());
  const auto* largest = reinterpret_cast<const double*>(magnitudes);
  auto* into = reinterpret_cast<int32_t*>(s.exponents.data()) + s.joined.low;
  for (int64_t q = 0; q < s.joined.size(); ++q)
    into[q] = plain[q] == plain[q] && order::needs_rescale(plain[q], largest[q])
                  ? order::rescale_exponent(std::bit_cast<uint64_t>(largest[q]))
                  : no_exponent;
}

// A block's scaled squares, summed as one sequence.
void partial_work::scaled_block(const reduce_seat& s, double down) const {
  lockstep_options options = lockstep_options_defaults();
  options.backend = "cpu";
  auto* x = reinterpret_cast<double*>(s.scratch.data());
  const int64_t n = plan.block_of(s.rank).elements();
  double values[128];
  forest all(1, values);
  for (int64_t l = 0; l < order::leaves(n); l += stretch / leaf) {
    const int64_t low = l * leaf, count = std::min(stretch, n - low);
    gather_one(s, 0, s.first + low, count, x);
    for (int64_t i = 0; i < count; ++i) x[i] *= down;
    for (int64_t at = 0; at < count; at += leaf) {
      const lockstep_reduce_desc d =
          lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F64, std::min(leaf, count - at), 1);
      require_ok(lockstep_square_sum(comm.context, &d, x + at, all.top(), &options));
      all.push({0, l + at / leaf});
    }
  }
  if (n > 0) all.join_all();
  *reinterpret_cast<double*>(s.partials.data()) = n > 0 ? values[0] : 0.0;
}

void partial_work::compute_scaled(reduce_seat& s) const {
  if (const auto e = *reinterpret_cast<const int32_t*>(s.exponents.data()); plan.by_blocks) {
    if (e != no_exponent) scaled_block(s, std::ldexp(1.0, -e));
    return;
  }
  const auto* e = reinterpret_cast<const int32_t*>(s.exponents.data());
  lockstep_options options = lockstep_options_defaults();
  options.backend = "cpu";  // the scratch is host memory
  auto* x = reinterpret_cast<double*>(s.scratch.data());
  // The same tiles as for the plain sums. One sequence at a time, because each has its own scale.
  const std::vector<subtree> tiles = tiling(s.first_leaf, s.last_leaf);
  double values[128];  // at most two for each level
  static_assert(sizeof values / sizeof *values >= 2 * 62);
  for (int64_t q = 0; q < s.sequences; ++q) {
    if (e[q] == no_exponent) continue;
    const double down = std::ldexp(1.0, -e[q]);
    forest one(1, values);
    for (int64_t l = s.first_leaf; l < s.last_leaf;) {
      const int64_t low = l * leaf;
      int64_t leaves = 1, n = std::min(plan.length, low + leaf) - low;
      if (l == s.shared[0] || l == s.shared[1]) {
        const int slot = l == s.shared[0] ? 0 : 1;
        std::memcpy(x, s.assembled[slot].data() + static_cast<size_t>(q * n) * sizeof *x,
                    static_cast<size_t>(n) * sizeof *x);
      } else {
        // As many whole leaves as the scratch holds, up to a shared leaf at the end.
        int64_t end = s.last_leaf;
        for (const int64_t shared : s.shared)
          if (shared > l) end = std::min(end, shared);
        leaves = std::min(end - l, stretch / leaf);
        n = std::min(plan.length, low + leaves * leaf) - low;
        gather_one(s, q, low, n, x);
      }
      for (int64_t i = 0; i < n; ++i) x[i] *= down;
      for (const subtree& t : tiling(l, l + leaves)) {
        const int64_t begin = (t.index << t.level) * leaf - low;
        const int64_t end = std::min(n, ((t.index + 1) << t.level) * leaf - low);
        const lockstep_reduce_desc d = lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F64, end - begin, 1);
        require_ok(lockstep_square_sum(comm.context, &d, x + begin, one.top(), &options));
        one.push(t);
      }
      l += leaves;
    }
    for (size_t t = 0; t < tiles.size(); ++t)
      reinterpret_cast<double*>(s.partials.data())[t * static_cast<size_t>(s.sequences) + static_cast<size_t>(q)] =
          values[t];
  }
}

void partial_work::finish_scaled(const reduce_seat& s, char* joined, char* out) const {
  const double* sums = totals<double>(s, joined);
  const auto* e = reinterpret_cast<const int32_t*>(s.exponents.data()) + s.joined.low;
  for (int64_t q = 0; q < s.joined.size(); ++q)
    if (e[q] != no_exponent) order::store_float(plan.result, out, q, std::sqrt(sums[q]) * std::ldexp(1.0, e[q]));
}

}  // namespace lockstep::ranks
