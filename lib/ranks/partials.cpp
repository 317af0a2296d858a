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
constexpr int64_t stretch = scratch_elements;

namespace {
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

// The sums of E of some sequences' elements, which begin at a leaf: exponentials of at most `most` elements wait in
// scratch memory, of the seat's device if the elements are there. assembled: they are in host memory.
void partial_work::exponentials(const reduce_seat& s, const strided& x, bool assembled, int64_t sequence, int64_t count,
                                int64_t length, double* out) const {
  const auto bytes = static_cast<int64_t>(plan.element_bytes);
  const bool there = comm.devices->has(s.seat) && !assembled;
  const int level = there ? reduce_plan::level_there : 6;
  const int64_t most = leaf << level;
  const lockstep_options options = there ? comm.options_of(s.seat) : on_the_cpu();
  char* const scratch = there ? plan.exponentials_there[static_cast<size_t>(s.seat)].data() : s.scratch.data();
  auto* const e = reinterpret_cast<double*>(scratch);
  char* const copy = scratch + most * static_cast<int64_t>(sizeof(double));
  const auto sums = [&](int64_t q, int64_t rows, int64_t at, int64_t n, double* to) {
    const char* from = x.data + (q * x.sequence_stride + at * x.element_stride) * bytes;
    int64_t stride = x.sequence_stride;
    if (x.element_stride != 1 && n > 1) {
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
  if (const int64_t batch = most / length; batch > 0) {
    for (int64_t q = 0; q < count; q += batch) sums(q, std::min(batch, count - q), 0, length, out + q);
    return;
  }
  static_assert(stretch == leaf << 6);  // what the scratch in host memory holds
  for (int64_t q = 0; q < count; ++q) {
    order::tree<double> tree;
    for (int64_t at = 0; at < length; at += most) {
      double sum = 0;
      sums(q, 1, at, std::min(most, length - at), &sum);
      tree.push(sum, level);
    }
    out[q] = tree.total();
  }
}

void partial_work::values(const reduce_seat& s, const piece& p, double* out) const {
  if (plan.scale != 0 && p.assembled != nullptr)
    return exponentials(s, {p.assembled, 1, p.length}, true, 0, s.sequences, p.length, out);
  if (plan.scale != 0)
    return each_run(s, p.first, [&](const strided& x, const strided&, int64_t q, int64_t count) {
      exponentials(s, x, false, q, count, p.length, out + q);
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

}  // namespace lockstep::ranks
