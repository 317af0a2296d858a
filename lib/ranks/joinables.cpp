// joinables.cpp - joins the partial results of two neighbouring ranges of members (join.hpp): forests by the fixed
// tree, integer sums and products exactly, extremes by comparison. Every sum made here is one of the fixed order.
#include <cmath>
#include <cstring>

#include "reduce.hpp"

namespace lockstep::ranks {

joinable reduce_plan::magnitude_values() const {
  joinable j;
  j.bytes = sizeof(double);
  j.values = [](int32_t, int32_t) -> size_t { return 1; };
  j.join = [](const joinable::part& low, const joinable::part& high, int64_t n, char* out) {
    for (int64_t q = 0; q < n; ++q)
      reinterpret_cast<double*>(out)[q] =
          std::fmax(reinterpret_cast<const double*>(low.data)[q], reinterpret_cast<const double*>(high.data)[q]);
  };
  return j;
}

template <class T>
void reduce_plan::join_forests(const joinable::part& low, const joinable::part& high, int64_t n, char* out) const {
  forest_of<T> f(n, reinterpret_cast<T*>(out), kind().by == lib::join::product);
  for (const joinable::part* p : {&low, &high}) {
    const char* from = p->data;
    for (const subtree& t : tiles_of(p->first, p->last)) {
      std::memcpy(static_cast<void*>(f.top()), from, static_cast<size_t>(n) * sizeof(T));
      from += p->pitch;
      f.push({t.level, t.index});
    }
  }
}

joinable reduce_plan::partial_values() const {
  const auto any = [this](int32_t a, int32_t b) {
    if (cut_axis < 0) return length != 0;
    return range_of(a).first < range_of(b - 1).second;
  };
  joinable j;
  j.bytes = partial_bytes;
  if (by_tree()) {
    j.values = [this](int32_t a, int32_t b) { return tiles_of(a, b).size(); };
    j.join = [this](const joinable::part& low, const joinable::part& high, int64_t n, char* out) {
      how == family::moments ? join_forests<order::moments>(low, high, n, out)
                             : join_forests<double>(low, high, n, out);
    };
    return j;
  }
  j.values = [any](int32_t a, int32_t b) -> size_t { return any(a, b) ? 1 : 0; };
  j.join = [any, this](const joinable::part& low, const joinable::part& high, int64_t n, char* out) {
    const bool left = any(low.first, low.last), right = any(high.first, high.last);
    if (!left || !right) {
      if (left || right) std::memcpy(out, (left ? low : high).data, static_cast<size_t>(n) * partial_bytes);
      return;
    }
    const auto each = [&]<class T>(const T*, const auto& enter) {
      for (int64_t q = 0; q < n; ++q) {
        T a = reinterpret_cast<const T*>(low.data)[q];
        enter(a, reinterpret_cast<const T*>(high.data)[q]);
        reinterpret_cast<T*>(out)[q] = a;
      }
    };
    switch (how) {
      case family::tree:
      case family::moments: return;
      case family::digest:
        return each(static_cast<const digest_sums*>(nullptr), [](digest_sums& a, const digest_sums& b) {
          for (int k = 0; k < 2; ++k) a.of[k] += b.of[k];
        });
      case family::sum: return each(static_cast<const order::wide*>(nullptr), order::add);
      case family::product: return each(static_cast<const order::exact_factor*>(nullptr), order::multiply);
      case family::extreme: {
        const bool largest = kind().by == lib::join::largest;
        if (picks)
          return each(static_cast<const winner*>(nullptr), [largest](winner& a, const winner& b) {
            a = {largest ? std::max(a.key, b.key) : std::min(a.key, b.key), std::max(a.index, b.index)};
          });
        return each(static_cast<const winner*>(nullptr), [largest](winner& a, const winner& b) {
          // In a tie the earlier index stays. That may be a later member's, if blocks are cut on several axes.
          const bool better = a.key == b.key ? b.index < a.index : largest ? b.key > a.key : b.key < a.key;
          if (better) a = b;
        });
      }
    }
  };
  return j;
}

}  // namespace lockstep::ranks
