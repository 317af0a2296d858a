// axes.cpp - see axes.hpp.
#include "axes.hpp"

#include <lockstep/lockstep.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "cli.hpp"

namespace lockstep::tool {

int64_t product(const int64_t* begin, const int64_t* end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
}

std::vector<int32_t> perm_of(const std::vector<int64_t>& named, const std::vector<int64_t>& shape,
                             std::vector<int64_t> axes) {
  const size_t rank = shape.size();
  if (!named.empty()) axes = named;
  if (axes.size() != rank) refuse("--axes names {} axes, the array {} has {}", axes.size(), shape_text(shape), rank);
  std::vector<int32_t> perm;
  for (size_t k = 0; k < rank; ++k) {
    const int64_t axis = axes[k] < 0 ? axes[k] + static_cast<int64_t>(rank) : axes[k];
    if (axis < 0 || axis >= static_cast<int64_t>(rank) || std::count(perm.begin(), perm.end(), axis) != 0)
      refuse("--axes {} is no permutation of 0..{}", joined(axes, ","), rank - 1);
    perm.push_back(static_cast<int32_t>(axis));
  }
  return perm;
}
int64_t stride_of(const npy::header& h, size_t k) {
  const int64_t* const shape = h.shape.data();
  return h.fortran ? product(shape, shape + k) : product(shape + k + 1, shape + h.shape.size());
}

moved_axes axes_of(const char* op, const npy::header& h, const std::vector<int32_t>& perm) {
  struct run {
    size_t first, last;
    int64_t length;
  };
  const bool join = perm.empty() || perm.size() > LOCKSTEP_MAX_RANK;
  std::vector<run> runs;  // in the result's order
  for (const int32_t axis : perm) {
    const auto k = static_cast<size_t>(axis);
    const int64_t length = h.shape[k];
    if (join && length == 1) continue;
    const auto goes_on = [&](const run& before) {
      return before.last < k &&
             std::all_of(h.shape.data() + before.last + 1, h.shape.data() + k, [](int64_t n) { return n == 1; });
    };
    if (join && !h.fortran && !runs.empty() && goes_on(runs.back()))
      runs.back().last = k, runs.back().length *= length;
    else
      runs.push_back({k, k, length});
  }
  if (runs.empty()) return {{1}, {1}, {0}};
  if (runs.size() > LOCKSTEP_MAX_RANK)
    refuse("{} moves up to {} axes at a time, this array {} has {} that do not merge; do it in two steps", op,
           LOCKSTEP_MAX_RANK, shape_text(h.shape), runs.size());
  std::vector<size_t> order(runs.size());  // of the input
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return runs[a].first < runs[b].first; });
  moved_axes all;
  all.perm.resize(runs.size());
  for (size_t k = 0; k < order.size(); ++k) {
    const run& one = runs[order[k]];
    all.shape.push_back(one.length);
    all.strides.push_back(stride_of(h, one.last));
    all.perm[order[k]] = static_cast<int32_t>(k);
  }
  return all;
}
std::vector<int64_t> shape_of(const std::vector<int64_t>& shape, const std::vector<int32_t>& perm) {
  std::vector<int64_t> moved;
  for (const int32_t axis : perm) moved.push_back(shape[static_cast<size_t>(axis)]);
  return moved;
}

reduced_axes axes_of(const std::vector<int64_t>& shape, const std::vector<bool>& goes,
                     const std::vector<int32_t>& axes) {
  if (shape.size() <= LOCKSTEP_MAX_RANK) return {shape, axes};
  std::vector<int64_t> lengths = {1};  // goes: at least one has to
  std::vector<int32_t> going = {0};
  bool last = true;
  for (size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] == 1) continue;
    if (goes[k] == last) {
      lengths.back() *= shape[k];
      continue;
    }
    last = goes[k];
    if (last) going.push_back(static_cast<int32_t>(lengths.size()));
    lengths.push_back(shape[k]);
  }
  if (lengths.size() > 1 && lengths.front() == 1 && going.size() > 1) {
    lengths.erase(lengths.begin());
    going.erase(going.begin());
    for (int32_t& axis : going) --axis;
  }
  if (lengths.size() > LOCKSTEP_MAX_RANK)
    refuse("reduce_axes takes up to {} axes at a time, this array {} has {} that do not merge; do it in two steps",
           LOCKSTEP_MAX_RANK, shape_text(shape), lengths.size());
  return {lengths, going};
}

}  // namespace lockstep::tool
