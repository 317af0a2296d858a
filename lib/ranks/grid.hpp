// grid.hpp - boxes of an index space, and how a grid assigns them to ranks.
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

// Cuts a box into pieces of at most that many elements, along the outermost axis longer than one; if a single index of
// that axis is too large, along the next.
void cut_box(const box& b, int64_t most, std::vector<box>& into);

// Boxes that together hold the elements [low, high) of a box, numbered row-major.
void boxes_of(const box& b, int64_t low, int64_t high, std::vector<box>& into);

// Row-major strides of a packed box.
std::array<int64_t, LOCKSTEP_MAX_RANK> packed_strides(const box& b);
// The offset, in elements, of index `low` in an array that starts at index `origin`.
int64_t offset_of(const box& inner, const box& outer, const int64_t* strides);

// A checked grid that owns its storage.
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
  // Calls visit(rank, the part of b in its block) for every block whose part is not empty.
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
  // Begins to count the pieces of a plan for it; an error names its shape, and fix as what to give instead.
  void limit_pieces(lockstep_comm& comm, const char* name, const char* fix) const;
};

// Where the number of ranks is unknown: more than there will be, and few enough to list.
constexpr int32_t any_ranks = 1 << 24;
// Checks a caller's grid; name is the argument's.
grid read_grid(const lockstep_grid* given, const char* name, int32_t ranks);
// The same, described. of: if given, the dtype of its elements.
grid read_grid(const lockstep_grid* given, const char* name, int32_t ranks, described& d, lockstep_dtype of = {});
// Cuts n into `parts` pieces at multiples of align; the longer pieces are the first ones, or the last ones.
std::vector<int64_t> even_cuts(int64_t n, int32_t parts, int64_t align = 1, bool rest_last = false);

}  // namespace lockstep::ranks
