// stencil.hpp - what a rank needs of its neighbours: halos in the caller's memory, and stencils.
#pragma once

#include "plan.hpp"

namespace lockstep::ranks {

// Elements that a place of memory needs from wherever they lie: any distance, any number of ranks. All ranks find who
// sends what to whom from the grid alone.
struct ghosts {
  // The box of a target in the array's index space, which may reach beyond it: there the boundary says which elements
  // are meant.
  struct target {
    int32_t rank;
    box wanted, without;  // without: what is there already
  };
  struct piece {
    size_t target;
    box source, place;  // in the array; in the target's space
  };
  std::vector<target> targets;  // of the own seats
  std::vector<piece> pieces;    // what item::index names
  exchange all;

  // targets_of(rank, list) lists a rank's targets, alike on every rank.
  void build(lockstep_comm& comm, workspace& memory, const grid& g, lockstep_boundary boundary,
             const std::function<void(int32_t, std::vector<target>&)>& targets_of);
  // to: the memory of each own target, and its strides.
  task run(execution& x, const grid& g, const std::vector<placed>& from, const std::vector<placed>& to,
           const std::function<void()>& meanwhile);
};

struct halo_plan : operation {
  grid g;
  lockstep_boundary boundary{};
  double value = 0;
  std::array<int64_t, LOCKSTEP_MAX_RANK> width{};
  ghosts around;
  void place(execution& x, const lockstep_part* src, const lockstep_part* dst) override;
  task run(execution& x) override;
  void tell(const lockstep_ranks_link& link, lockstep_ranks_cost& cost) const override { around.all.tell(link, cost); }
};

// A rank's results are computed from its own block, as if that were all. What this spoils, along the sides where the
// array goes on, is then made anew from a border: those results' elements with their neighbours around.
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
  std::vector<char> whole;  // of each seat: there are results that no border makes
  ghosts around;

  void build(lockstep_comm& comm, workspace& memory, described& described);
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
