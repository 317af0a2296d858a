// square_sum.cpp - replays of backends/cuda/square_sum/lessons.cu (B1 to B9).
#include "index/square_sum.hpp"

#include "lessons.hpp"
#include "rules.hpp"
#include "text.hpp"

namespace lockstep::tool::explain {
namespace {

using cuda::share;

enum class reads { serial, slices, strided };
enum class ends { nothing, thread, block };  // who writes a partial sum

// The addresses of a thread's accesses to shared memory (walk_share).
template <share how>
struct hand {
  trace& t;
  int row;
  int round = 0;

  void touch(site where, int i) { t.access(where, round, cuda::share_place<how>(i, row)); }
  void put(int i) { touch(site::put_value, i), ++round; }
  void join(int i, int k) {
    touch(site::read_own, i), touch(site::read_other, k), touch(site::write_joined, i), ++round;
  }
  void begin(int i, int k) { touch(site::read_own, i), touch(site::read_other, k), ++round; }
  void add(int k) { touch(site::read_other, k), ++round; }
  void barrier() { t.barrier(), round = 0; }
  void warp_barrier() {}
};

void fill_in(settings& s, reads how) {
  if (s.element_bytes == 0) s.element_bytes = 4;
  if (s.partial_bytes == 0) s.partial_bytes = s.classic ? 4 : 8;
  if (s.partial_bytes != 4 && s.partial_bytes != 8 && s.partial_bytes != 16)
    refuse_value("--partial-bytes", s.partial_bytes, "must be 4, 8 or 16");
  if (s.element_bytes != 4 && s.element_bytes != 8)
    refuse_value("--element-bytes", s.element_bytes, "square_sum takes 4 or 8");
  if (s.block == 0) s.block = how == reads::serial ? 1 : s.classic ? 8 : 256;
  if (s.blocks == 0) s.blocks = s.classic ? 2 : 32;
  if (how != reads::serial) {
    require_power_of_two("--block", s.block);
    require_range("--block", s.block, 2 * s.warp, 1024);
  }
  require_range("--blocks", s.blocks, 1, 4096);
}

template <reads from, ends to, share how>
trace replay(settings& s) {
  fill_in(s, from);
  const int blocks = to == ends::block || (to == ends::thread && from == reads::strided && s.blocks > 1) ? s.blocks : 1;
  if (s.n == 0)
    s.n = from == reads::serial ? 16
          : s.classic           ? 2 * s.block * blocks
                                : std::max<int64_t>(2048, 2 * int64_t{s.block} * blocks);
  require_range("--n", s.n, 1, 1 << 20);
  const int64_t partials = to == ends::thread ? int64_t{blocks} * s.block : blocks;

  trace t;
  t.chip = {s.warp, s.segment * s.element_bytes, s.banks};
  const machine chip = t.chip;
  const int row = std::max(1, s.banks * 4 / s.partial_bytes), segment = s.segment, bytes = s.element_bytes,
            warp = s.warp;
  t.arrays = {
      {"src", space::global, bytes, s.n, 4 * segment},
      {"value", space::shared, s.partial_bytes, cuda::share_place<how>(s.block - 1, row) + 1, row},
      {"partials", space::global, s.partial_bytes, partials, std::max(1, 4 * chip.segment_bytes / s.partial_bytes)}};
  const auto full = [warp](const request& r) { return static_cast<int>(r.lanes.size()) == warp; };
  if constexpr (from == reads::serial) {
    t.places = {
        {site::read_src, 0, false, "one lane, one element: a segment a load", [](const request&) { return 1.0; }}};
    t.notes = {
        "The other lanes do not exist. Each load waits for the one before; the L1 cache serves those that stay within "
        "a segment, "
        "so the price is latency, not bytes."};
  } else if constexpr (from == reads::slices) {
    const int64_t slice = (s.n + s.block - 1) / s.block;
    t.places = {{site::read_src, 0, false,
                 format_text("lanes a slice apart ({} bytes): {:.0f} segments for {} lanes", slice * bytes,
                             strided(warp, slice * bytes, chip), warp),
                 [=](const request& r) { return full(r) ? strided(warp, slice * bytes, chip) : -1; }}};
  } else {
    t.places = {{site::read_src, 0, false,
                 format_text("lanes on neighbours: {} x {} bytes fill {:.0f} x {} bytes", warp, bytes,
                             coalesced(warp, bytes, chip), chip.segment_bytes),
                 [=](const request& r) { return full(r) ? coalesced(warp, bytes, chip) : -1; }}};
  }
  if (to != ends::nothing)
    t.places.push_back(
        {site::read_partial, 2, false, "the finishing block reads neighbours",
         [=, pb = s.partial_bytes](const request& r) { return full(r) ? coalesced(warp, pb, chip) : -1; }});
  // A level of the tree is a phase; d doubles from phase 1 on. Kernel 1, the finish, has the unrolled tree.
  const auto ways = [=, pb = s.partial_bytes](const request& r) -> double {
    if (how == share::conflicting && r.kernel == 0 && r.phase > 0)
      return conflict_ways(static_cast<int64_t>(r.lanes.size()), int64_t{1} << r.phase, pb, chip);
    if (how == share::conflict_free && r.kernel == 0 && int64_t{1} << r.phase >= int64_t{row} * row) return -1;
    return 1;
  };
  std::string rule;
  if (to != ends::block) rule = "the finishing block's tree, that of shared_tree_unrolled: no conflict";
  if constexpr (how == share::serial)
    rule = format_text("thread 0 alone: no conflict, and {} threads wait", s.block - 1);
  if constexpr (how == share::masked) rule = "lanes keep their own places: many idle, but no two in a bank";
  if constexpr (how == share::unrolled && to == ends::block)
    rule = "lanes on neighbours, then on permuted neighbours: no conflict";
  if constexpr (how == share::conflicting)
    rule = format_text(
        "after barrier k lanes stand 2^k values apart, and a row of banks holds {}: 2^k-way, until few lanes are left",
        row);
  if constexpr (how == share::conflict_free)
    rule = format_text(
        "2^k values apart, but a value of padding after every {} moves them on: no conflict while 2^k < {} x {}", row,
        row, row);
  if (to != ends::nothing) {
    t.places.push_back({site::put_value, 1, true, "a value a thread: a row of banks at a time", ways});
    t.places.push_back({site::read_own, 1, false, rule, ways, "own"});
    t.places.push_back({site::read_other, 1, false, rule, ways, "other"});
    t.places.push_back({site::write_joined, 1, true, rule, ways, "sum"});
    t.places.push_back({site::write_partial, 2, true,
                        to == ends::block ? "a partial sum a block: one lane" : "a partial sum a thread: neighbours",
                        [=, pb = s.partial_bytes](const request& r) {
                          return to == ends::block ? 1 : full(r) ? coalesced(warp, pb, chip) : -1;
                        }});
  }
  if constexpr (how == share::masked)
    t.notes = {
        "Textbooks warn of interleaved addressing for two reasons: divergence and bank conflicts. The bit mask has the "
        "first only: thread t "
        "works on places t and t + d, so the lanes of a warp never share a bank. The conflicts belong to the form that "
        "packs the working "
        "threads together (variant conflicting)."};
  if constexpr (how == share::serial)
    t.notes = {format_text("{} joins one after another by one thread of {}.", s.block - 1, s.block)};
  if (how == share::conflict_free && s.block > row * row)
    t.notes = {
        format_text("The pad holds for blocks of up to {} x {} threads: here the last levels of {} collide again. "
                    "The kernel's 256 threads and 16 doubles a row of banks just fit.",
                    row, row, s.block)};
  if (to == ends::block)
    t.notes.push_back("A join reads a thread's own value and another's and writes their sum in place of its own.");

  t.start({from == reads::serial   ? "square_sum_serial"
           : from == reads::slices ? "square_sum_slices"
           : to == ends::block     ? "square_sum_shared"
                                   : "square_sum_strided",
           blocks, s.block, 1});
  for (int block = 0; block < blocks; ++block)
    for (int thread = 0; thread < s.block; ++thread) {
      t.thread(block, thread);
      int round = 0;
      const auto read = [&](int64_t i) { t.access(site::read_src, round++, i); };
      if constexpr (from == reads::serial)
        cuda::walk_serial(s.n, read);
      else if constexpr (from == reads::slices)
        cuda::walk_slice(s.n, s.block, static_cast<unsigned>(thread), read);
      else
        cuda::walk_strided<int64_t>(s.n, blocks, s.block, block, static_cast<unsigned>(thread), read);
      hand<how> in_shared{t, row, to == ends::block ? 1 << 20 : 0};  // after all reads of its phase
      if constexpr (to == ends::block) cuda::walk_share<how>(s.block, s.warp, thread, in_shared);
      if (to == ends::thread) t.access(site::write_partial, 1 << 20, int64_t{block} * s.block + thread);
      if (to == ends::block && thread == 0) t.access(site::write_partial, 1 << 20, block);
    }
  if constexpr (to != ends::nothing) {  // the finishing step: one block
    t.start({"square_sum_finish", 1, s.block, 1});
    for (int thread = 0; thread < s.block; ++thread) {
      t.thread(0, thread);
      int round = 0;
      cuda::walk_strided<int>(static_cast<int>(partials), 1, s.block, 0, static_cast<unsigned>(thread),
                              [&](int i) { t.access(site::read_partial, round++, i); });
      hand<share::unrolled> in_shared{t, row, 1 << 20};
      cuda::walk_share<share::unrolled>(s.block, s.warp, thread, in_shared);
    }
  }
  return t;
}

// B3: the strided kernel in one block.
trace one_block_interleaved(settings& s) {
  s.blocks = 1;
  return replay<reads::strided, ends::thread, share::unrolled>(s);
}

}  // namespace

const std::vector<lesson>& square_sum_lessons() {
  constexpr auto serial = replay<reads::serial, ends::nothing, share::unrolled>;
  constexpr auto slices = replay<reads::slices, ends::thread, share::unrolled>;
  constexpr auto grid = replay<reads::strided, ends::thread, share::unrolled>;
  constexpr auto shared_serial = replay<reads::strided, ends::block, share::serial>;
  constexpr auto masked = replay<reads::strided, ends::block, share::masked>;
  constexpr auto unrolled = replay<reads::strided, ends::block, share::unrolled>;
  constexpr auto conflicting = replay<reads::strided, ends::block, share::conflicting>;
  constexpr auto conflict_free = replay<reads::strided, ends::block, share::conflict_free>;
  static const std::vector<lesson> all = {
      {"square_sum", "serial", "B1", "One thread reads everything: one load in flight, one lane of a warp at work.",
       serial},
      {"square_sum", "one_block_slices", "B2",
       "A block, each thread a contiguous slice. Every thread walks along memory nicely, but the lanes of a warp stand "
       "a slice apart: "
       "a load touches a segment for every lane.",
       slices},
      {"square_sum", "one_block_interleaved", "B3",
       "A block, neighbouring threads on neighbouring elements: the lanes of a load share segments.",
       one_block_interleaved},
      {"square_sum", "grid_stride", "B4",
       "B3 over many blocks: several multiprocessors at last. Each thread leaves a partial sum.", grid},
      {"square_sum", "grid_stride_full", "B4", "B4 on a grid that fills the chip (--blocks).", grid},
      {"square_sum", "shared_serial", "B5",
       "The block's sums meet in shared memory and thread 0 adds them one by one, while all others wait. The published "
       "verdict, slower than B4, holds for 32 blocks: 1 Mi ints took an H200 12.4 us for B4's 10.2 (339 GB/s for 409).",
       shared_serial},
      {"square_sum", "shared_serial_full", "B5",
       "B5 on a grid that fills the chip (--blocks). There the published verdict does not hold: 14.5 us for B4's 64.6, "
       "whose 270,336 partial sums one block has to add.",
       shared_serial},
      {"square_sum", "shared_tree_masked", "B6",
       "A tree by bit mask: at each level half of the working threads drop out, scattered over all warps, which "
       "diverge.",
       masked},
      {"square_sum", "shared_tree_masked_full", "B6", "B6 on a grid that fills the chip (--blocks).", masked},
      {"square_sum", "shared_tree_unrolled", "B7",
       "Sequential addressing: the working threads stay together, whole warps retire, the last warp needs no block "
       "barrier.",
       unrolled},
      {"square_sum", "shared_tree_unrolled_full", "B7", "B7 on a grid that fills the chip (--blocks).", unrolled},
      {"square_sum", "conflicting", "B8",
       "The working threads packed together, but on places 2, 4, 8 ... apart: bank conflicts on purpose.", conflicting},
      {"square_sum", "conflict_free", "B8",
       "The same tree on padded shared memory: the pad alone removes the conflicts.", conflict_free},
      {"square_sum", "compiler_fma", "B9",
       "B7's accesses; the lesson is the multiply-add, as the compiler writes it: __fma_rn(x, x, sum) becomes one "
       "instruction, DFMA, which rounds once.",
       unrolled},
      {"square_sum", "ptx_fma", "B9",
       "B7's accesses; the lesson is the multiply-add, as inline PTX. f32 and f64, sum = x * x + sum with one "
       "rounding: "
       "\"fma.rn.f64 %0, %1, %1, %0;\" (DFMA again). i32, a square of 64 bits added to 128 with its carry: "
       "\"mad.wide.s32 square, %2, %2, 0;\" \"add.cc.u64 %0, %0, square;\" \"addc.u64 %1, %1, 0;\". Around asm the "
       "compiler does not unroll the loop, so this takes 1.8 times as long as compiler_fma.",
       unrolled},
      {"square_sum", "shuffle", "B10",
       "A warp a leaf: 16 bytes a lane, the lanes joined by shuffles in place of a tree in shared memory, one launch: "
       "the last block joins the blocks.",
       shuffled_square_sum},
  };
  return all;
}

}  // namespace lockstep::tool::explain
