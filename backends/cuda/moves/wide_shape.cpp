// wide_shape.cpp - which of the tile shapes in tuning.hpp wide tiles have: the one that wastes the least.
#include "../tuning.hpp"
#include "wide.hpp"

namespace lockstep::cuda {
namespace {

using shapes = const wide_shape (&)[wide_shape_count];

shapes shapes_of(size_t element_bytes) {
  switch (element_bytes) {
    case 1: return wide_shapes<1>;
    case 2: return wide_shapes<2>;
    case 4: return wide_shapes<4>;
    case 8: return wide_shapes<8>;
    default: return wide_shapes<16>;
  }
}

int64_t up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

int64_t tiles_of(const wide_job& job, const wide_shape& s) {
  const auto bytes = static_cast<int64_t>(job.element_bytes);
  int64_t tiles = up(job.rows, s.tall / bytes) * up(job.cols, s.broad / bytes);
  for (int axis = 0; axis < job.outer_axes; ++axis) tiles *= job.outer[axis].count;
  return tiles;
}

bool odd_dst(const wide_job& job) {
  return reinterpret_cast<uintptr_t>(job.dst) % 16 != 0 ||
         (job.cols > 1 && job.dst_ld * static_cast<int64_t>(job.element_bytes) % 16 != 0);
}
double cost_of(const wide_job& job, const wide_shape& s) {
  return static_cast<double>(tiles_of(job, s)) * s.tall * s.broad * (odd_dst(job) ? s.odd_weight : s.weight);
}

}  // namespace

int best_wide_shape(const wide_job& job) {
  const shapes all = shapes_of(job.element_bytes);
  int best = 0;
  for (int number = 1; number < wide_shape_count; ++number)
    if (cost_of(job, all[number]) < cost_of(job, all[best])) best = number;
  return best;
}

int64_t wide_tiles(const wide_job& job) { return tiles_of(job, shapes_of(job.element_bytes)[best_wide_shape(job)]); }

double wide_bytes(const wide_job& job) {
  double moved = static_cast<double>(job.rows) * static_cast<double>(job.cols);
  for (int axis = 0; axis < job.outer_axes; ++axis) moved *= static_cast<double>(job.outer[axis].count);
  return moved * static_cast<double>(job.element_bytes);
}

double wide_padding(const wide_job& job) {
  return cost_of(job, shapes_of(job.element_bytes)[best_wide_shape(job)]) /
         (wide_bytes(job) * static_cast<double>(job.element_bytes));
}

}  // namespace lockstep::cuda
