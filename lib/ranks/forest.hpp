// forest.hpp - partial sums, or moments, of a range of leaves in the fixed order (order.hpp, order_rows.hpp), for
// many sequences at once.
//
// The forest of leaves [a, b) holds the sums of the largest aligned subtrees that tile it, in order. To join the forest
// of [a, m) with that of [m, b), append it, and add the last two subtrees while they are siblings. The fixed tree makes
// the same additions, so the result is the forest of [a, b) for any m. Joining is therefore associative to the bit, and
// ranks may join in any grouping, as long as neighbours stay in order.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "../bits/order_rows.hpp"

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

// T: double, or order::moments.
template <class T>
class forest_of {
 public:
  // values: room for rooms() arrays, each with one value for every sequence. products: siblings are multiplied.
  forest_of(int64_t sequences, T* values, bool products = false)
      : sequences_(sequences), products_(products), values_(values) {}
  // The most arrays that exist at once while tiles are pushed, before siblings are added.
  static size_t rooms(const std::vector<subtree>& tiles) {
    forest_of f(0, nullptr);
    size_t most = 0;
    for (const subtree& t : tiles) {
      most = std::max(most, f.tiles_.size() + 1);
      f.push(t);
    }
    return most;
  }
  // Room for the next subtree's values, one for every sequence; push makes them part of the forest.
  T* top() { return values_ + tiles_.size() * static_cast<size_t>(sequences_); }
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
  // The sums of the whole tree: the remaining subtrees join from the smallest up. The forest must not be empty.
  void join_all() {
    for (size_t i = tiles_.size(); i-- > 1;) add(i - 1);
  }
  const std::vector<subtree>& tiles() const { return tiles_; }

 private:
  void add(size_t i) {
    T* left = values_ + i * static_cast<size_t>(sequences_);
    const T* right = left + sequences_;
    if constexpr (std::is_same_v<T, double>)
      if (products_) {
        for (int64_t s = 0; s < sequences_; ++s) left[s] = left[s] * right[s];
        return;
      }
    for (int64_t s = 0; s < sequences_; ++s) left[s] = left[s] + right[s];
  }
  int64_t sequences_;
  bool products_;
  std::vector<subtree> tiles_;
  T* values_;
};
using forest = forest_of<double>;

}  // namespace lockstep::ranks
