// stencil.hpp - operations that need elements of neighbouring ranks: halos in the caller's memory, and stencils.
#pragma once

#include "plan.hpp"

namespace lockstep::ranks {

// Fetches the elements of a target box from the ranks that hold them, at any distance and from any number of ranks.
// Every rank computes the list of messages from the grid alone.
struct ghosts {
  // A target's box in the array's index space. It may reach beyond the array; the boundary then says which elements are
  // used there.
  struct target {
    int32_t rank;
    box wanted, without;  // without: the part that is already there
    size_t field = 0;     // of several arrays on one grid
  };
  struct piece {
    size_t target;
    box source, place;  // in the array; in the target's space
    size_t field;
  };
  std::vector<target> targets;  // of this process's seats
  std::vector<piece> pieces;    // indexed by item::index
  exchange all;

  // targets_of(rank, list) lists a rank's targets; it gives the same list on every rank.
  void build(lockstep_comm& comm, workspace& memory, const grid& g, lockstep_boundary boundary,
             const std::array<int64_t, LOCKSTEP_MAX_RANK>& reach,
             const std::function<void(int32_t, std::vector<target>&)>& targets_of);
  // from: of each seat its blocks, field by field. to: the memory of each target of this process, and its strides.
  task run(execution& x, const grid& g, const std::vector<placed>& from, const std::vector<placed>& to,
           const std::function<void()>& meanwhile);
};

struct halo_plan : operation {
  grid g;
  lockstep_boundary boundary{};
  double value = 0;
  int32_t fields = 1;
  std::array<int64_t, LOCKSTEP_MAX_RANK> width{};
  ghosts around;
  void place(execution& x, const lockstep_part* src, const lockstep_part* dst) override;
  task run(execution& x) override;
  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const override { around.all.tell(link, cost); }
};

// A rank first computes its results as if its block were the whole array. Results near the sides where the array
// continues are then wrong, and are computed again from a border: their elements with all neighbours.
struct stencil_plan : operation {
  grid g;
  lockstep_stencil_desc d{};
  std::vector<double> coefficients;
  int64_t reach = 0;  // radius * sweeps
  int batch_axes = 0;
  struct border {
    int32_t seat;
    box out, in;  // in the array's space
    buffer elements, results;
  };
  std::vector<border> borders;
  std::vector<char> whole;  // for each seat: whether some results are not made from a border
  ghosts around;

  void build(lockstep_comm& comm, lockstep_ranks_plan& plan, described& described);
  box results_of(int32_t rank) const;  // in the array's space
  void place(execution& x, const lockstep_part* src, const lockstep_part* dst) override;
  task run(execution& x) override;
  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const override { around.all.tell(link, cost); }

 private:
  void list_borders(int32_t rank, std::vector<border>& into) const;
  void call(lockstep_comm& comm, int32_t seat, const box& in, const void* src, const int64_t* src_strides, void* dst,
            const int64_t* dst_strides) const;
};

}  // namespace lockstep::ranks
