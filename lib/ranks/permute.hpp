// permute.hpp - moves an array from one grid to another and permutes its axes: pairs of ranks exchange boxes.
#pragma once

#include "plan.hpp"

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
    box part;  // of dst
  };
  std::vector<piece> pieces;  // what item::index names
  std::vector<exchange> rounds;

  void build(lockstep_comm& comm, workspace& memory);
  void place(execution& x, const lockstep_part* src_parts, const lockstep_part* dst_parts) override;
  task run(execution& x) override { return move_all(x, 0, x.from, x.to); }
  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const override;
  // One step for each round, starting with first_step.
  task move_all(execution& x, uint64_t first_step, const std::vector<placed>& from, const std::vector<placed>& to);

 private:
  box in_dst(const box& of_src) const;
  box in_src(const box& of_dst) const;
  box origin_of(int32_t rank) const { return origin ? origin(rank) : dst.of(rank); }
  void move(lockstep_comm& comm, const piece& p, const char* from, const box& from_box, const int64_t* from_strides,
            char* to, const box& to_box, const int64_t* to_strides) const;
};

}  // namespace lockstep::ranks
