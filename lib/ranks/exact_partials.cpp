// exact_partials.cpp - see reduce.hpp: partial results that are the same in any order, exact sums and products, and
// extremes with their indices.
#include <bit>

#include "../bits/exact.hpp"
#include "devices.hpp"
#include "reduce.hpp"

namespace lockstep::ranks {

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
}  // namespace

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
  for (int64_t first = s.first; first < s.last; first += scratch_elements) {
    const int64_t n = std::min(scratch_elements, s.last - first), arrays = plan.arrays();
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

}  // namespace lockstep::ranks
