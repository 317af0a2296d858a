// scaled_partials.cpp - see reduce.hpp: NORM2 of f64 where plain squares leave the range of a double. Elements are
// scaled by a power of 2 that all members choose from the largest magnitude.
#include <cmath>
#include <limits>

#include "devices.hpp"
#include "reduce.hpp"

namespace lockstep::ranks {

constexpr int64_t leaf = order::leaf;
constexpr int32_t no_exponent = INT32_MIN;

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
  const lockstep_options options = on_the_cpu();
  auto* x = reinterpret_cast<double*>(s.scratch.data());
  const int64_t n = plan.block_of(s.rank).elements();
  double values[128];
  forest all(1, values);
  for (int64_t l = 0; l < order::leaves(n); l += scratch_elements / leaf) {
    const int64_t low = l * leaf, count = std::min(scratch_elements, n - low);
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
  const lockstep_options options = on_the_cpu();  // the scratch is host memory
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
        leaves = std::min(end - l, scratch_elements / leaf);
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
