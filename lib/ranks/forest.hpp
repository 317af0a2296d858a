// forest.hpp - the fixed order's sums (order.hpp) of a range of leaves, for many sequences at once.
//
// The forest of leaves [a, b) holds the values of the largest aligned subtrees that tile it, in order. To join the
// forest of [a, m) with that of [m, b), append, and add the last two while they are siblings: each such addition is one
// that the fixed tree makes, and the result is the forest of [a, b) whatever m was. So joining is associative to the
// bit, and ranks may join in any grouping, as long as neighbours keep their order.
#pragma once

#include <cstring>
#include <vector>

#include "../mutant.hpp"
#include "../order.hpp"

namespace lockstep::ranks {

// An aligned subtree: leaves [index << level, (index + 1) << level).
struct subtree {
  int level;
  int64_t index;
};

// The tiling of leaves [first, last).
inline std::vector<subtree> tiling(int64_t first, int64_t last) {
  std::vector<subtree> tiles;
  while (first < last) {
    int level = 0;
    while ((first >> level & 1) == 0 && first + (int64_t{2} << level) <= last && level < 61) ++level;
    tiles.push_back({level, first >> level});
    first += int64_t{1} << level;
  }
  return tiles;
}

class forest {
 public:
  explicit forest(int64_t sequences = 0) : sequences_(sequences) {}
  void clear() { tiles_.clear(); }
  // Room for the next subtree's values, one a sequence; they count with push.
  double* top() {
    const size_t need = (tiles_.size() + 1) * static_cast<size_t>(sequences_);
    if (values_.size() < need) values_.resize(need);
    return values_.data() + tiles_.size() * static_cast<size_t>(sequences_);
  }
  void push(subtree t) {
    tiles_.push_back(t);
    while (tiles_.size() > 1) {
      subtree &a = tiles_[tiles_.size() - 2], &b = tiles_.back();
      if (a.level != b.level || (a.index & 1) != 0 || b.index != a.index + 1) return;
      add(tiles_.size() - 2);
      a = {a.level + 1, a.index >> 1};
      tiles_.pop_back();
    }
  }
  // The whole tree's values: the odd ones out join from the smallest up. An empty sum is +0.0.
  const double* total() {
    if (tiles_.empty()) {
      double* zero = top();
      for (int64_t s = 0; s < sequences_; ++s) zero[s] = 0.0;
      return zero;
    }
    for (size_t i = tiles_.size() - 1; i-- > 0;) add(i);
    tiles_.clear();
    return values_.data();
  }
  const std::vector<subtree>& tiles() const { return tiles_; }
  const double* values() const { return values_.data(); }
  void reserve(size_t tiles) { values_.resize(tiles * static_cast<size_t>(sequences_)); }

 private:
  void add(size_t i) {
    double* left = values_.data() + i * static_cast<size_t>(sequences_);
    const double* right = left + sequences_;
    for (int64_t s = 0; s < sequences_; ++s) left[s] = left[s] + right[s];
  }
  int64_t sequences_;
  std::vector<subtree> tiles_;
  std::vector<double> values_;
};

}  // namespace lockstep::ranks
