// plan.hpp - a call over ranks, made ready: what each step sends, and the memory for it.
#pragma once

#include <memory>

#include "exchange.hpp"
#include "grid.hpp"

namespace lockstep::ranks {

// A seat's memory, checked.
struct placed {
  char* data = nullptr;
  std::array<int64_t, LOCKSTEP_MAX_RANK> strides{};
};

struct permute_plan;
struct reduce_plan;
struct stencil_plan;
struct halo_plan;

// Throws what a lockstep call failed with.
inline void require_ok(lockstep_status status) {
  if (status != LOCKSTEP_OK) throw error{status, lockstep_last_error()};
}

// The caller's memory for a seat's block; name is "src" or "dst".
placed read_part(const lockstep_part* parts, int32_t seat, const char* name, const box& b);
// The same for all seats; what is wrong with one goes to so_far.
std::vector<placed> read_parts(const lockstep_comm& comm, const lockstep_part* parts, const char* name, const grid& g,
                               failure& so_far);
// Copies a box of elements between two places, axes as they are.
void copy_box(lockstep_comm& comm, int32_t seat, size_t element_bytes, const box& lengths, const void* src,
              const int64_t* src_strides, void* dst, const int64_t* dst_strides);

// Makes a plan on all ranks or on none: build(described&) checks, describes and builds; what it throws is told to the
// other ranks.
lockstep_status make_plan(lockstep_comm* comm, kind k, const lockstep_options* options, lockstep_ranks_plan** out,
                          const std::function<void(lockstep_ranks_plan&, described&)>& build);

}  // namespace lockstep::ranks

struct lockstep_ranks_plan {
  lockstep_comm* comm = nullptr;
  lockstep::ranks::kind what{};
  uint64_t number = 0, executions = 0;
  // One of them.
  std::unique_ptr<lockstep::ranks::reduce_plan> reduce;
  std::unique_ptr<lockstep::ranks::permute_plan> permute;
  std::unique_ptr<lockstep::ranks::stencil_plan> stencil;
  std::unique_ptr<lockstep::ranks::halo_plan> halo;

  uint64_t step(uint64_t k) const { return lockstep::ranks::what_of(what, number, executions, k); }
  lockstep_ranks_plan();
  ~lockstep_ranks_plan();
};
