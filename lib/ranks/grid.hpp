// grid.hpp - boxes of an index space, and how a grid of them lies on ranks.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "comm.hpp"

namespace lockstep::ranks {

struct box {
  int rank = 0;
  std::array<int64_t, LOCKSTEP_MAX_RANK> low{}, length{};

  bool empty() const {
    for (int k = 0; k < rank; ++k)
      if (length[static_cast<size_t>(k)] <= 0) return true;
    return false;
  }
  int64_t elements() const {
    int64_t n = 1;
    for (int k = 0; k < rank; ++k) n *= length[static_cast<size_t>(k)];
    return empty() ? 0 : n;
  }
};
box intersection(const box& a, const box& b);

// Pieces of at most so many elements, cut along the outermost axis that is longer than one, again where one index of
// that axis is too much.
void cut_box(const box& b, int64_t most, std::vector<box>& into);

// Boxes that hold elements [low, high) of a box, numbered row-major.
void boxes_of(const box& b, int64_t low, int64_t high, std::vector<box>& into);

// Row-major strides of a packed box.
std::array<int64_t, LOCKSTEP_MAX_RANK> packed_strides(const box& b);
// Where index `low` of an array lies that begins at `origin`, in elements.
int64_t offset_of(const box& inner, const box& outer, const int64_t* strides);

// A grid that has been checked, with storage of its own.
struct grid {
  size_t element_bytes = 0;
  int rank = 0;
  std::array<int64_t, LOCKSTEP_MAX_RANK> shape{};
  std::array<int32_t, LOCKSTEP_MAX_RANK> parts{};
  std::array<std::vector<int64_t>, LOCKSTEP_MAX_RANK> cuts;
  std::vector<int32_t> rank_of;   // of each block
  std::vector<int32_t> block_of;  // of each rank; -1: none

  box whole() const;
  box of(int32_t rank) const;
  box of_block(int32_t block) const;
  // visit(rank, the part of b in its block), block by block, without those that are empty.
  template <class Visit>
  void overlapping(const box& b, const Visit& visit) const {
    if (b.empty()) return;
    std::array<int32_t, LOCKSTEP_MAX_RANK> first{}, last{}, at{};
    for (int k = 0; k < rank; ++k) {
      const auto i = static_cast<size_t>(k);
      const auto piece = [&](int64_t x) {
        return static_cast<int32_t>(std::upper_bound(cuts[i].begin(), cuts[i].end(), x) - cuts[i].begin()) - 1;
      };
      first[i] = at[i] = piece(b.low[i]);
      last[i] = piece(b.low[i] + b.length[i] - 1);
    }
    for (;;) {
      int32_t block = 0;
      for (int k = 0; k < rank; ++k) block = block * parts[static_cast<size_t>(k)] + at[static_cast<size_t>(k)];
      const box both = intersection(b, of_block(block));
      if (!both.empty()) visit(rank_of[static_cast<size_t>(block)], both);
      int k = rank - 1;
      for (; k >= 0; --k) {
        const auto i = static_cast<size_t>(k);
        if (++at[i] <= last[i]) break;
        at[i] = first[i];
      }
      if (k < 0) return;
    }
  }
  void describe(described& d, const std::string& name) const;
};

// Checks a caller's grid; name is the argument's.
grid read_grid(const lockstep_grid* given, const char* name, int32_t ranks);
// parts pieces of n, at multiples of align, the first (or the last) ones the longer.
std::vector<int64_t> even_cuts(int64_t n, int32_t parts, int64_t align = 1, bool rest_last = false);

}  // namespace lockstep::ranks
