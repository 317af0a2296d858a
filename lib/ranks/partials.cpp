// partials.cpp - a reduction's arithmetic on one rank: partial results by the calls of lockstep.h, and results from the
// partial results of all members. Every sum made here is one of the fixed order.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "../bits/exact.hpp"
#include "reduce.hpp"

namespace lockstep::ranks {

constexpr int64_t leaf = order::leaf;
constexpr int64_t stretch = 64 * leaf;  // elements that the scratch holds
constexpr int32_t no_exponent = INT32_MIN;

lockstep_status partial_work::call(const reduce_seat& s, lockstep_reduction r, lockstep_dtype result, const void* data,
                                   int64_t count, int64_t length, int64_t element_stride, int64_t sequence_stride,
                                   void* out) const {
  lockstep_reduce_desc d{};
  d.size = sizeof d;
  d.reduction = r;
  d.dtype = plan.dtype;
  d.result = result;
  d.count = count;
  d.length = length;
  d.element_stride = element_stride;
  d.sequence_stride = sequence_stride;
  const lockstep_options options = comm.options_of(s.seat);
  const lockstep_status status = r == LOCKSTEP_SUM_OF_SQUARES || r == LOCKSTEP_NORM2
                                     ? lockstep_square_sum(comm.context, &d, data, out, &options)
                                     : lockstep_reduce(comm.context, &d, data, out, &options);
  if (status != LOCKSTEP_OK && status != LOCKSTEP_OVERFLOW) throw error{status, lockstep_last_error()};
  return status;
}

// Elements [first, first + length) of every sequence here, one call for each run of sequences with one stride.
lockstep_status partial_work::over_runs(const reduce_seat& s, lockstep_reduction r, lockstep_dtype result,
                                        int64_t first, int64_t length, char* out) const {
  const sequence_view& v = s.view;
  const auto result_bytes = static_cast<int64_t>(lockstep_dtype_bytes(result));
  const auto bytes = static_cast<int64_t>(plan.element_bytes);
  const char* data = v.data + (first - s.first) * v.element_stride * bytes;
  // The last axes count as one run if they have a common stride.
  int64_t count = 1, step = 0;
  int k = v.axes - 1;
  for (; k >= 0; --k) {
    const auto i = static_cast<size_t>(k);
    if (v.length[i] == 1) continue;
    if (step == 0)
      step = v.stride[i];
    else if (v.stride[i] != step * count)
      break;
    count *= v.length[i];
  }
  lockstep_status status = LOCKSTEP_OK;
  for (int64_t q = 0; q < s.sequences; q += count) {
    int64_t left = q / count, offset = 0;
    for (int j = k; j >= 0; --j) {
      const auto i = static_cast<size_t>(j);
      offset += left % v.length[i] * v.stride[i];
      left /= v.length[i];
    }
    if (call(s, r, result, data + offset * bytes, count, length, v.element_stride, step, out + q * result_bytes) !=
        LOCKSTEP_OK)
      status = LOCKSTEP_OVERFLOW;
  }
  return status;
}

void partial_work::gather(const reduce_seat& s, int64_t first, int64_t count, void* to, int64_t ld) const {
  const sequence_view& v = s.view;
  box b;
  b.rank = v.axes + 1;
  std::array<int64_t, LOCKSTEP_MAX_RANK> from{}, into{};
  int64_t stride = ld;
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
  into[last] = 1;
  copy_box(comm, s.seat, plan.element_bytes, b,
           v.data + (first - s.first) * v.element_stride * static_cast<int64_t>(plan.element_bytes), from.data(), to,
           into.data());
}

void partial_work::gather_one(const reduce_seat& s, int64_t sequence, int64_t first, int64_t count, void* to) const {
  const sequence_view& v = s.view;
  int64_t offset = (first - s.first) * v.element_stride;
  for (int k = v.axes - 1; k >= 0; --k) {
    const auto i = static_cast<size_t>(k);
    offset += sequence % v.length[i] * v.stride[i];
    sequence /= v.length[i];
  }
  box b;
  b.rank = 1;
  b.length[0] = count;
  const int64_t one = 1;
  copy_box(comm, s.seat, plan.element_bytes, b, v.data + offset * static_cast<int64_t>(plan.element_bytes),
           &v.element_stride, to, &one);
}

void partial_work::direct(const reduce_seat& s, char* results) const {
  over_runs(s, plan.reduction, plan.result, s.first, plan.length, results);
}

void partial_work::compute(reduce_seat& s) const {
  const bool squares = plan.reduction == LOCKSTEP_SUM_OF_SQUARES || plan.reduction == LOCKSTEP_NORM2;
  const lockstep_reduction sum = squares ? LOCKSTEP_SUM_OF_SQUARES : LOCKSTEP_SUM;
  if (plan.by_blocks) {
    auto* total = reinterpret_cast<double*>(s.partials.data());
    *total = 0;
    if (const int64_t n = plan.block_of(s.rank).elements(); n > 0)
      over_runs(s, sum, LOCKSTEP_F64, s.first, n, reinterpret_cast<char*>(total));
    return;
  }
  if (plan.how == family::tree) {
    forest own(s.sequences, reinterpret_cast<double*>(s.partials.data()));
    for (const int64_t l : s.shared) {  // this rank's elements of shared leaves
      if (l < 0) continue;
      const int64_t low = l * leaf, n = std::min(plan.length, low + leaf) - low;
      const int64_t begin = std::max(s.first, low), end = std::min(s.last, low + n);
      const int slot = l == s.shared[0] ? 0 : 1;
      if (begin < end)
        gather(s, begin, end - begin, s.assembled[slot].data() + static_cast<size_t>(begin - low) * plan.element_bytes,
               n);
    }
    const auto shared_leaf = [&](int64_t l) {
      const int slot = l == s.shared[0] ? 0 : 1;
      const int64_t n = std::min(plan.length, (l + 1) * leaf) - l * leaf;
      call(s, sum, LOCKSTEP_F64, s.assembled[slot].data(), s.sequences, n, 1, n, own.top());
      own.push({0, l});
    };
    int64_t first = s.first_leaf, last = s.last_leaf;
    const auto is_shared = [&](int64_t l) { return l == s.shared[0] || l == s.shared[1]; };
    if (first < last && is_shared(first)) shared_leaf(first++);
    const bool shared_end = first < last && is_shared(last - 1);
    if (shared_end) --last;
    for (const subtree& t : tiling(first, last)) {
      const int64_t begin = (t.index << t.level) * leaf, end = std::min(plan.length, ((t.index + 1) << t.level) * leaf);
      over_runs(s, sum, LOCKSTEP_F64, begin, end - begin, reinterpret_cast<char*>(own.top()));
      own.push(t);
    }
    if (shared_end) shared_leaf(last);
    return;
  }
  if (s.first >= s.last) return;
  const int64_t n = s.last - s.first;
  if (plan.how == family::exact) {
    auto* into = reinterpret_cast<wide_sum*>(s.partials.data());
    auto* values = reinterpret_cast<int64_t*>(s.scratch.data());
    const bool over = over_runs(s, sum, LOCKSTEP_I64, s.first, n, s.scratch.data()) != LOCKSTEP_OK;
    for (int64_t q = 0; q < s.sequences; ++q) {
      const auto sign = static_cast<uint64_t>(values[q] >> 63);
      into[q] = {{static_cast<uint64_t>(values[q]), sign, sign}};
    }
    // A saturated value means that the sum does not fit I64; such sums are computed here, element by element.
    if (!over) return;
    std::vector<int64_t> again;
    for (int64_t q = 0; q < s.sequences; ++q)
      if (values[q] == INT64_MAX || values[q] == INT64_MIN) again.push_back(q);
    for (const int64_t q : again) into[q] = exact_sum(s, q);
    return;
  }
  // Extremes: one call gives their values, another their indices.
  auto* into = reinterpret_cast<winner*>(s.partials.data());
  const bool index = plan.reduction == LOCKSTEP_ARGMIN || plan.reduction == LOCKSTEP_ARGMAX;
  const bool largest = plan.reduction == LOCKSTEP_ARGMAX || plan.reduction == LOCKSTEP_MAX;
  if (index) {
    over_runs(s, plan.reduction, LOCKSTEP_I64, s.first, n, s.scratch.data());
    for (int64_t q = 0; q < s.sequences; ++q)
      into[q].index = reinterpret_cast<const int64_t*>(s.scratch.data())[q] + s.first;
  }
  if (index && s.sequences <= 64)  // fetching a few elements is faster than reading all again
    for (int64_t q = 0; q < s.sequences; ++q)
      gather_one(s, q, into[q].index, 1, s.scratch.data() + static_cast<size_t>(q) * plan.element_bytes);
  else
    over_runs(s, largest ? LOCKSTEP_MAX : LOCKSTEP_MIN, plan.dtype, s.first, n, s.scratch.data());
  const int64_t nan = largest ? INT64_MAX : INT64_MIN;
  for (int64_t q = 0; q < s.sequences; ++q) {
    const char* at = s.scratch.data() + static_cast<size_t>(q) * plan.element_bytes;
    switch (plan.dtype) {
      case LOCKSTEP_I32: into[q].key = *reinterpret_cast<const int32_t*>(at); break;
      case LOCKSTEP_F32: {
        const float x = *reinterpret_cast<const float*>(at);
        into[q].key = x != x ? nan : order::key_f32(std::bit_cast<uint32_t>(x));
        break;
      }
      case LOCKSTEP_F64: {
        const double x = *reinterpret_cast<const double*>(at);
        into[q].key = x != x ? nan : order::key_f64(std::bit_cast<uint64_t>(x));
        break;
      }
      default: into[q].key = *reinterpret_cast<const int64_t*>(at);
    }
  }
}

wide_sum partial_work::exact_sum(const reduce_seat& s, int64_t sequence) const {
  const bool squares = plan.reduction != LOCKSTEP_SUM;
  order::int128 low = 0;          // sum of elements: 2^63 of them fit
  order::uint128 square_low = 0;  // sum of squares, with carries
  uint64_t square_high = 0;
  // Reuses the scratch, whose values compute() no longer needs.
  for (int64_t first = s.first; first < s.last; first += stretch) {
    const int64_t n = std::min(stretch, s.last - first);
    gather_one(s, sequence, first, n, s.scratch.data());
    const auto each = [&](const auto* x) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t value = x[i];
        if (!squares) {
          low += value;
          continue;
        }
        const order::uint128 m = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
        const order::uint128 square = m * m;
        square_low += square;
        square_high += square_low < square;
      }
    };
    if (plan.dtype == LOCKSTEP_I32)
      each(reinterpret_cast<const int32_t*>(s.scratch.data()));
    else
      each(reinterpret_cast<const int64_t*>(s.scratch.data()));
  }
  if (squares) return {{static_cast<uint64_t>(square_low), static_cast<uint64_t>(square_low >> 64), square_high}};
  return {{static_cast<uint64_t>(low), static_cast<uint64_t>(low >> 64), low < 0 ? ~uint64_t{0} : 0}};
}

namespace {
void store_float(lockstep_dtype result, char* to, int64_t q, double value) {
  const bool nan = value != value;
  if (result == LOCKSTEP_F32)
    reinterpret_cast<uint32_t*>(to)[q] = nan ? order::nan_f32 : std::bit_cast<uint32_t>(static_cast<float>(value));
  else
    reinterpret_cast<uint64_t*>(to)[q] = nan ? order::nan_f64 : std::bit_cast<uint64_t>(value);
}

void store_key(lockstep_dtype dtype, char* to, int64_t q, int64_t key) {
  const bool nan = key == INT64_MAX || key == INT64_MIN;
  switch (dtype) {
    case LOCKSTEP_I32: reinterpret_cast<int32_t*>(to)[q] = static_cast<int32_t>(key); break;
    case LOCKSTEP_F32:  // key_f32 is its own inverse
      reinterpret_cast<uint32_t*>(to)[q] =
          nan ? order::nan_f32 : static_cast<uint32_t>(order::key_f32(static_cast<uint32_t>(key)));
      break;
    case LOCKSTEP_F64:
      reinterpret_cast<uint64_t*>(to)[q] =
          nan ? order::nan_f64 : static_cast<uint64_t>(order::key_f64(static_cast<uint64_t>(key)));
      break;
    default: reinterpret_cast<int64_t*>(to)[q] = key;
  }
}
}  // namespace

// The sums of the whole sequences, computed in place from the forest of all leaves.
const double* partial_work::totals(const reduce_seat& s, char* joined) const {
  const int64_t n = s.joined.size();
  auto* values = reinterpret_cast<double*>(joined);
  forest all(n, values);
  for (const subtree& t : tiling(0, order::leaves(plan.length))) all.push(t);  // the tiles are already in order
  if (all.tiles().empty()) return nullptr;
  all.join_all();
  return values;
}

int64_t partial_work::finish(const reduce_seat& s, char* joined, char* out) const {
  const int64_t count = s.joined.size();
  if (plan.how == family::tree) {
    const double* sums = totals(s, joined);
    for (int64_t q = 0; q < count; ++q) {
      const double sum = sums != nullptr ? sums[q] : 0.0;
      if (plan.second_pass()) reinterpret_cast<double*>(s.plain.data())[q] = sum;
      store_float(plan.result, out, q, plan.reduction == LOCKSTEP_NORM2 ? std::sqrt(sum) : sum);
    }
    return -1;
  }
  int64_t overflow = -1;
  for (int64_t q = 0; q < count; ++q) {
    const wide_sum sum =
        plan.how == family::exact && plan.length != 0 ? reinterpret_cast<const wide_sum*>(joined)[q] : wide_sum{};
    const winner best = plan.how == family::extreme ? reinterpret_cast<const winner*>(joined)[q] : winner{};
    if (plan.how == family::extreme) {
      if (plan.reduction == LOCKSTEP_MIN || plan.reduction == LOCKSTEP_MAX)
        store_key(plan.dtype, out, q, best.key);
      else
        reinterpret_cast<int64_t*>(out)[q] = best.index;
    } else if (plan.reduction == LOCKSTEP_NORM2) {
      store_float(plan.result, out, q, order::rounded_root(sum.limb));
    } else {
      const uint64_t sign = 0 - (sum.limb[2] >> 63);
      const bool fits = sum.limb[2] == sign && sum.limb[1] == sign && (0 - (sum.limb[0] >> 63)) == sign;
      reinterpret_cast<int64_t*>(out)[q] = fits ? static_cast<int64_t>(sum.limb[0]) : sign != 0 ? INT64_MIN : INT64_MAX;
      if (!fits && overflow < 0) overflow = q;
    }
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
    over_runs(s, r, LOCKSTEP_F64, s.first, n, s.scratch.data());
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
  const double* sums = totals(s, joined);
  const auto* e = reinterpret_cast<const int32_t*>(s.exponents.data()) + s.joined.low;
  for (int64_t q = 0; q < s.joined.size(); ++q)
    if (e[q] != no_exponent) store_float(plan.result, out, q, std::sqrt(sums[q]) * std::ldexp(1.0, e[q]));
}

}  // namespace lockstep::ranks
