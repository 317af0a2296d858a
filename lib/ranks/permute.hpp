// permute.hpp - moves an array from one grid to another and permutes its axes: pairs of ranks exchange boxes.
#pragma once

#include "plan.hpp"
#include "relay.hpp"

namespace lockstep::ranks {

// Each pair of ranks shares at most one box of dst's index space. It is sent in dst's order, in rounds of pieces that
// fit a message.
struct permute_plan : operation {
  grid src, dst;
  std::array<int32_t, LOCKSTEP_MAX_RANK> perm{};
  // Where a rank's memory holds not a block of dst but several boxes, at the strides of a larger array: the boxes of a
  // rank, the ranks that have some of a box, and the index of a rank's first element. Empty: dst's blocks.
  std::function<std::vector<box>(int32_t rank)> boxes;
  std::function<std::vector<int32_t>(const box&)> takers;
  std::function<box(int32_t rank)> origin;
  struct piece {
    int32_t seat;
    box part;           // of dst
    int32_t other = 0;  // the rank that has it or gets it
    bool out = false;
  };
  std::vector<piece> pieces;  // what item::index names
  std::vector<exchange> rounds;
  relay by_groups;  // in place of rounds
  // Of a plan that may run in place. square: perm is its own inverse and dst is divided as src is, so what goes to a
  // rank lies where what comes from it belongs. This process then swaps its blocks in pieces, if it can; else it copies
  // them first.
  bool square = false, swaps = false;
  buffer going, coming;             // pieces of what is swapped within this process
  std::vector<host_memory> copies;  // of each seat

  void build(lockstep_comm& comm, workspace& memory);
  // Whether src's blocks can be swapped for dst's, for whose pieces it then takes memory.
  void prepare_swaps(lockstep_ranks_plan& plan);
  void place(execution& x, const lockstep_part* src_parts, const lockstep_part* dst_parts) override;
  task run(execution& x) override;
  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const override;
  // One step for each round, starting with first_step.
  task move_all(execution& x, uint64_t first_step, const std::vector<placed>& from, const std::vector<placed>& to);
  box in_dst(const box& of_src) const;
  box in_src(const box& of_dst) const;

 private:
  bool is_swapped(const placed& from, const placed& to, int32_t rank) const;
  // Swaps the box `part`, of dst's index space, of rank b with what rank a gets for it.
  void swap(lockstep_comm& comm, const box& part, int32_t a, int32_t b, const std::vector<placed>& from,
            const std::vector<placed>& to) const;
  box origin_of(int32_t rank) const { return origin ? origin(rank) : dst.of(rank); }
  void move(lockstep_comm& comm, const piece& p, const char* from, const box& from_box, const int64_t* from_strides,
            char* to, const box& to_box, const int64_t* to_strides) const;
};

}  // namespace lockstep::ranks
