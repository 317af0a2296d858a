// faults.hpp - operations that one rank gets wrong in one way or another.
#pragma once

#include <chrono>

#include "world.hpp"

namespace lockstep::ranks_test {

using clock = std::chrono::steady_clock;
constexpr int64_t timeout_ms = 400;

enum class op { permute, reduce, columns, stencil, halo, count };
inline const char* const op_names[] = {"permute", "reduce", "columns", "stencil", "halo"};

// What one rank does otherwise.
enum class twist {
  none,
  // Wrong in itself.
  null_grid,
  no_axes,
  too_many_parts,
  cuts_that_decrease,
  two_blocks_on_a_rank,
  bad_element_bytes,
  bad_operation,  // a perm that is none, a dtype that is none
  bad_flags,
  a_struct_of_another_size,
  // Fine in itself, but not what the others say.
  other_shape,
  other_cuts,
  other_order,
  other_operation,
  other_dtype,
  other_call,
  // At execution.
  null_data,
  null_parts,
  misaligned,
  no_stride,
  bad_options
};

struct world_of_one {
  bool in_place = false;
  std::vector<int64_t> cuts;
  std::vector<int32_t> order;
  lockstep_grid src{}, dst{};
  std::vector<std::vector<double>> memory;
  std::vector<lockstep_part> src_parts, dst_parts;
};

constexpr int64_t rows = 240, cols = 50;

inline lockstep_status make(op what, const member& m, twist t, world_of_one& w, lockstep_ranks_plan** plan) {
  const int64_t shape[] = {rows, t == twist::other_shape ? cols + 1 : cols};
  w.src = lockstep_grid_slabs(8, 2, shape, m.ranks);
  const int64_t turned[] = {shape[1], shape[0]};
  w.dst = lockstep_grid_slabs(8, 2, turned, m.ranks);
  w.order.clear();
  for (int32_t r = 0; r < m.ranks; ++r) w.order.push_back(r);
  if (t == twist::other_order) std::swap(w.order.front(), w.order.back());
  if (t == twist::two_blocks_on_a_rank) w.order.back() = w.order.front();
  w.src.order = w.order.data();
  w.cuts.clear();
  for (int32_t r = 0; r <= m.ranks; ++r) w.cuts.push_back(rows * r / m.ranks);
  if (t == twist::other_cuts) ++w.cuts[1];
  if (t == twist::cuts_that_decrease) w.cuts[1] = rows + 1;
  w.src.cuts[0] = w.cuts.data();
  if (t == twist::too_many_parts) w.src.parts[1] = m.ranks + 1;
  if (t == twist::bad_element_bytes) w.src.element_bytes = 3;
  if (t == twist::other_dtype) w.src.element_bytes = w.dst.element_bytes = 4;
  if (t == twist::a_struct_of_another_size) w.src.size = 12;
  w.in_place = what == op::halo;
  w.memory.clear(), w.src_parts.clear(), w.dst_parts.clear();
  for (int32_t s = 0; s < 2 * m.seats; ++s) w.memory.emplace_back(static_cast<size_t>((rows + 9) * (cols + 9)), 1.0);
  for (int32_t s = 0; s < m.seats; ++s) {
    int64_t low[2], length[2];
    const int64_t part[] = {rows, cols + 2};
    EXPECT_EQ(lockstep_grid_box(&w.dst, m.first + s, low, length), LOCKSTEP_OK);
    w.src_parts.push_back(lockstep_part_packed(w.memory[static_cast<size_t>(2 * s)].data(), 2, part));
    w.dst_parts.push_back(lockstep_part_packed(w.memory[static_cast<size_t>(2 * s + 1)].data(), 2, length));
  }
  lockstep_options o = lockstep_options_defaults();
  if (t == twist::bad_flags) o.flags = 1u << 20;
  const lockstep_grid* src = t == twist::null_grid ? nullptr : &w.src;
  const bool as_permute = (what == op::permute) != (t == twist::other_call);
  if (as_permute) {
    int32_t perm[] = {1, 0};
    if (t == twist::other_operation) perm[0] = 0, perm[1] = 1, w.dst = w.src;
    if (t == twist::bad_operation) perm[0] = 0;
    if (t == twist::no_axes) w.src.rank = 0;
    return lockstep_ranks_permute(m.comm, src, perm, &w.dst, &o, plan);
  }
  if (what == op::halo) {
    const int64_t width[] = {2, 0};
    for (int32_t s = 0; s < m.seats; ++s) {  // the ghosts lie around what begins four rows on
      const auto i = static_cast<size_t>(s);
      w.src_parts[i].strides[0] = w.dst_parts[i].strides[0] = cols;
      w.dst_parts[i].strides[1] = 1;
      w.dst_parts[i].data = w.memory[static_cast<size_t>(2 * s + 1)].data() + 4 * cols;
    }
    if (t == twist::bad_operation)
      return lockstep_ranks_halo(m.comm, src, nullptr, LOCKSTEP_BOUNDARY_WRAP, 0, &o, plan);
    if (t == twist::no_axes) w.src.rank = 0;
    return lockstep_ranks_halo(m.comm, src, width, LOCKSTEP_BOUNDARY_WRAP, t == twist::other_operation ? 1.0 : 0.0, &o,
                               plan);
  }
  if (what == op::stencil) {
    double coefficients[] = {-1, 0.5, 0.25, 0.125, 0.0625};
    if (t == twist::other_operation) coefficients[2] = 0.3;
    const int64_t none[] = {1, 1};
    lockstep_stencil_desc d =
        lockstep_stencil_packed(t == twist::other_dtype ? LOCKSTEP_F32 : LOCKSTEP_F64, 2, none,
                                t == twist::no_axes ? 0 : 2, coefficients, LOCKSTEP_BOUNDARY_WRAP);
    d.form = t == twist::bad_operation ? static_cast<lockstep_form>(77) : LOCKSTEP_SYMMETRIC;
    d.coefficient_count = 5;
    for (int32_t s = 0; s < m.seats; ++s) w.dst_parts[static_cast<size_t>(s)].strides[0] = cols;
    return lockstep_ranks_stencil(m.comm, src, &d, &o, plan);
  }
  lockstep_dtype dtype = t == twist::other_dtype ? LOCKSTEP_F32 : LOCKSTEP_F64;
  if (t == twist::bad_operation) dtype = static_cast<lockstep_dtype>(77);
  const uint32_t axes = t == twist::no_axes ? 0u : what == op::columns ? 1u : 3u;
  return lockstep_ranks_reduce(m.comm, src, t == twist::other_operation ? LOCKSTEP_MAX : LOCKSTEP_SUM, dtype,
                               LOCKSTEP_F64, axes, nullptr, &o, plan);
}

inline lockstep_status execute(const member& m, twist t, int32_t seat, const world_of_one& w, lockstep_ranks_plan* plan,
                               uint32_t flags = 0) {
  static_cast<void>(m);
  std::vector<lockstep_part> src = w.src_parts, dst = w.dst_parts;
  const bool in_place = w.in_place;  // a halo has dst alone
  lockstep_part& p = (in_place ? dst : src)[static_cast<size_t>(seat)];
  if (t == twist::null_data) p.data = nullptr;
  if (t == twist::misaligned) p.data = static_cast<char*>(p.data) + 1;
  if (t == twist::no_stride) p.strides[0] = 0;
  lockstep_options o = lockstep_options_defaults();
  o.flags = flags;
  if (t == twist::bad_options) o.backend = "cpu";
  const bool none = t == twist::null_parts;
  return lockstep_ranks_execute(plan, none && !in_place ? nullptr : src.data(), none && in_place ? nullptr : dst.data(),
                                &o);
}

inline changes in_time(int64_t ms = timeout_ms) {
  changes c;
  c.options = [ms](int32_t, lockstep_comm_options& o) { o.timeout_ms = ms; };
  return c;
}

// The communicator still works.
inline void expect_health(op what, const member& m, const std::string& about) {
  world_of_one w;
  lockstep_ranks_plan* plan = nullptr;
  EXPECT_EQ(make(what, m, twist::none, w, &plan), LOCKSTEP_OK) << about << ": " << lockstep_last_error();
  if (plan == nullptr) return;
  EXPECT_EQ(execute(m, twist::none, 0, w, plan), LOCKSTEP_OK) << about << ": " << lockstep_last_error();
  lockstep_ranks_plan_destroy(plan);
}

inline void expect_text(const char* word, const std::string& about) {
  EXPECT_NE(std::string(lockstep_last_error()).find(word), std::string::npos)
      << about << ": the text lacks \"" << word << "\": " << lockstep_last_error();
}

inline std::vector<std::vector<int32_t>> worlds() {
  if (over_mpi()) return {one_each(rank_counts()[0])};
  return {one_each(2), one_each(4), one_each(7), {2, 2}, {1, 3}};
}
inline int32_t total(const std::vector<int32_t>& seats) {
  int32_t n = 0;
  for (const int32_t s : seats) n += s;
  return n;
}

}  // namespace lockstep::ranks_test
