// reduce.hpp - a reduction over ranks: the plan and its steps.
#pragma once

#include "forest.hpp"
#include "plan.hpp"

namespace lockstep::ranks {

// How partial results join: by the fixed tree, exactly, or by comparison.
enum class family { tree, exact, extreme };
struct wide_sum {
  uint64_t limb[3];
};
struct winner {
  int64_t key, index;
};

// The rank's part of its sequences as memory: some kept axes, and one stride along the sequence.
struct sequence_view {
  const char* data = nullptr;
  int axes = 0;
  std::array<int64_t, LOCKSTEP_MAX_RANK> length{}, stride{};
  int64_t element_stride = 1;
};

struct reduce_seat {
  int32_t seat = 0, rank = 0;
  bool holds = false;  // has a block
  box block, kept;     // of home; of the results
  int32_t member = 0;  // among the ranks that share its sequences
  int32_t kept_block = 0;
  int64_t sequences = 0;                  // of its kept box
  int64_t first = 0, last = 0;            // elements of each sequence that lie here
  int64_t first_leaf = 0, last_leaf = 0;  // leaves that are summed here
  int64_t shared[2] = {-1, -1};           // those of them with elements of other ranks
  box chunk;                              // results that are joined here
  host_buffer assembled[2];               // the shared leaves, sequence by sequence
  host_buffer partials;                   // exact sums or winners of the own part, one a sequence
  host_buffer gathered;                   // partial results of all members, for the chunk
  std::vector<size_t> gathered_at;        // where each member's begin
  host_buffer results;
  host_buffer scratch;  // a stretch of one sequence, or results of a call
  forest own, joined;
  // NORM2 of f64, second pass.
  bool again = false, spoilt = false;
  host_buffer magnitudes, gathered_magnitudes, exponents, own_exponents, plain;
  sequence_view view;
};

struct reduce_plan {
  grid src;
  grid home;  // src, or what it is redistributed to first
  std::unique_ptr<permute_plan> redistribute;
  std::vector<host_buffer> moved;  // of each seat, its block of home
  std::vector<int> kept_axes, reduced_axes;
  int cut_axis = -1;   // the reduced axis that home cuts; -1: none
  int64_t inner = 1;   // elements of a sequence that one index of the cut axis has
  int64_t length = 1;  // of a sequence
  int32_t members = 1;
  lockstep_reduction reduction{};
  lockstep_dtype dtype{}, result{};
  family how{};
  size_t element_bytes = 0, result_bytes = 0, partial_bytes = 0;
  bool everywhere = true;  // every rank gets all results
  grid kept, dst;          // kept: the kept axes of home; its rank_of is the block's own number
  std::vector<reduce_seat> seats;
  exchange fragments, partials, results, asks, magnitudes, exponents, again;

  void build(lockstep_comm& comm, const lockstep_grid* given, uint32_t axes, const lockstep_grid* to, described& d);
  void execute(lockstep_ranks_plan& plan, const lockstep_part* src_parts, const lockstep_part* dst_parts,
               failure& so_far);

  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const;

  // Which elements of a sequence a member holds, and who sums a leaf.
  std::pair<int64_t, int64_t> range_of(int32_t member) const;
  int32_t owner_of(int64_t leaf) const;
  std::pair<int64_t, int64_t> leaves_of(int32_t member) const;
  box chunk_of(const box& kept_box, int32_t member) const;
  int32_t rank_of(int32_t kept_block, int32_t member) const;
  bool second_pass() const { return reduction == LOCKSTEP_NORM2 && dtype == LOCKSTEP_F64; }

 private:
  int run_axis(const grid& g) const;
  void choose_home(lockstep_comm& comm);
  void add_exchanges(lockstep_comm& comm);
};

// The part that knows arithmetic (partials.cpp): a seat's own partial results, and results from those of all members.
struct partial_work {
  lockstep_comm& comm;
  const reduce_plan& plan;
  void direct(reduce_seat& s) const;            // no other rank has a part
  void compute(reduce_seat& s) const;           // own partial results
  void magnitudes(reduce_seat& s) const;        // of NORM2's elements
  void compute_scaled(reduce_seat& s) const;    // by own_exponents
  int64_t finish(reduce_seat& s) const;         // chunk's results; the first that overflowed, or -1
  bool asks_again(const reduce_seat& s) const;  // NORM2: a plain sum is out of range
  void choose_exponents(reduce_seat& s) const;
  void finish_scaled(reduce_seat& s) const;
  void gather(const reduce_seat& s, int64_t first, int64_t count, void* to, int64_t ld) const;

 private:
  lockstep_status call(const reduce_seat& s, lockstep_reduction r, lockstep_dtype result, const void* data,
                       int64_t count, int64_t length, int64_t element_stride, int64_t sequence_stride, void* out) const;
  lockstep_status over_runs(const reduce_seat& s, lockstep_reduction r, lockstep_dtype result, int64_t first,
                            int64_t length, char* out) const;
  void gather_one(const reduce_seat& s, int64_t sequence, int64_t first, int64_t count, void* to) const;
  void join_members(reduce_seat& s) const;
  wide_sum exact_sum(const reduce_seat& s, int64_t sequence) const;
};

}  // namespace lockstep::ranks
