// moves.hpp - permutations by tiles (tiles.cu) and by a gather (gather.cu): what their launches are told, made on the
// host by plan.cpp, and what they cost.
#pragma once

#include "../kernel/divide.hpp"
#include "../tuning.hpp"
#include "axes.hpp"

struct lockstep_queue;

namespace lockstep::cuda {

// As divider, but that 1 is no case of its own: code that many blocks run for the first time must be short.
struct quick_divider {
  uint32_t d = 1, multiplier = 0, shift = 0, whole = ~0u;

  quick_divider() = default;
  explicit quick_divider(int64_t by) : d(static_cast<uint32_t>(by)) {
    if (d == 1) return;
    const divider same(by);
    multiplier = same.multiplier, shift = same.shift, whole = 0;
  }
  LOCKSTEP_BOTH uint32_t quotient(uint32_t n) const {
#if defined(__CUDA_ARCH__)
    return (__umulhi(n, multiplier) + (n & whole)) >> shift;
#else
    return (static_cast<uint32_t>((uint64_t{n} * multiplier) >> 32) + (n & whole)) >> shift;
#endif
  }
  LOCKSTEP_BOTH uint32_t split(uint32_t& n) const {
    const uint32_t q = quotient(n);
    n -= q * d;
    return q;
  }
};
// The offset of an element of two axes that follow each other on one side, on the other side.
struct tile_run {
  uint32_t count, multiplier = 0, shift = 0;  // of the first axis; multiplier 0: of all
  uint32_t first = 0, second = 0;             // elements from one to the next

  LOCKSTEP_BOTH uint32_t offset(uint32_t n) const {
#if defined(__CUDA_ARCH__)
    const uint32_t q = __umulhi(n, multiplier) >> shift;
#else
    const uint32_t q = static_cast<uint32_t>((uint64_t{n} * multiplier) >> 32) >> shift;
#endif
    return (n - q * count) * first + q * second;
  }
};
struct quick_axis {
  quick_divider count;
  uint32_t src, dst;  // elements
};
constexpr int tile_levels = 2, tiles_outer = 6;  // axes of a run; others at most

// Elements of a run along i lie side by side in src, along j in dst; both runs are one axis or two joined on that side,
// cut into tiles at any place. Blocks of `inner` elements stay together on both sides, in an order of their own.
struct tiles_plan {
  quick_divider tiles_j, tiles_i;
  uint32_t tile_i, tile_j, count_i, count_j;  // blocks along i and j
  int outer;
  uint32_t groups_i;             // rows of src at a time
  quick_divider inner, lanes_i;  // lanes_i: threads that share a row of src
  tile_run j;
  uint32_t pitch, skew;  // elements of the image from j to the next; more after each word's worth of them
  const unsigned char* src;
  unsigned char* dst;
  quick_divider lanes_j;
  uint32_t groups_j;
  tile_run within, i;
  quick_axis out[tiles_outer];
  uint32_t grid, image;  // blocks of threads; bytes of the image
};

// The axes of a permutation as tiles see them.
struct tiles_shape {
  int inner[tile_levels], i[tile_levels], j[tile_levels], out[LOCKSTEP_MAX_RANK];  // axes::at, fastest first
  int inners, is, js, outs;
  int64_t block, count_i, count_j;  // elements; blocks
  int64_t first_i, first_j;         // of them the first axis of the run
  int word_i, word_j;               // elements of a word that src and dst can be read and written by
  bool sectors_i, sectors_j;        // whether rows of src, of dst begin with a sector
};
struct tiles_choice {
  uint32_t tile_i, tile_j;
  int rounds;  // of loads and stores, at most
  int word_i, word_j;
};

// False where no axis is contiguous, or runs that stay together are too long.
bool shape_tiles(const axes& a, pointers which, tiles_shape& shape);
// False where that tile does not fit a block.
bool plan_tiles(const axes& a, const tiles_shape& shape, const tiles_choice& choice, tiles_plan& plan);
// A share of a run of about so many blocks, of nearly the size of the others, and whole words.
uint32_t tile_share(const tiles_shape& shape, bool along_j, int64_t want, int word);
// The cheapest choice and its cost, an estimate in us to be compared with others; infinity: there is none.
double choose_tiles(const axes& a, const tiles_shape& shape, const move_tuning& tuned, tiles_choice& choice);

struct gather_plan {
  const unsigned char* src;
  unsigned char* dst;
  uint32_t elements;
  quick_axis axis[LOCKSTEP_MAX_RANK];  // dst's fastest first
  int levels;
  uint32_t grid, threads;
};
gather_plan plan_gather(const axes& a, const move_tuning& tuned);
// An estimate, as that of choose_tiles.
double gather_cost(const axes& a, const move_tuning& tuned);

// What the thread has made lately for axes alike, so that a call does not work it out anew (some us).
template <class Value>
class recent {
 public:
  const Value* find(const axes& a, int processors) const {
    for (const entry& e : all_)
      if (e.processors == processors && alike(a, e.of)) return &e.value;
    return nullptr;
  }
  const Value* add(const axes& a, int processors, const Value& value) {
    entry& e = all_[next_++ % entries];
    e.of = a, e.processors = processors, e.value = value;
    return &e.value;
  }

 private:
  static constexpr unsigned entries = 8;
  struct entry {
    axes of;
    int processors;  // 0: empty
    Value value;
  };
  entry all_[entries] = {};
  unsigned next_ = 0;
};

lockstep_status launch_gather(lockstep_queue& queue, const axes& a);
// By gather where tiles do not fit.
lockstep_status launch_tiles(lockstep_queue& queue, const axes& a);

}  // namespace lockstep::cuda
