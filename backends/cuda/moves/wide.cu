// wide.cu - the launches of wide.cuh. wide_shape.cpp chooses among the tile shapes.
#include <algorithm>

#include "share.hpp"
#include "thin.hpp"
#include "wide.cuh"

namespace lockstep::cuda {
namespace {

template <int bytes, int tall, int broad, int threads, tile_reads how, bool kept>
lockstep_status launch_kernel(lockstep_queue& queue, const wide_plan& plan) {
  constexpr size_t tile = size_t{tall} * broad / bytes;
  static_assert(tile <= static_cast<size_t>(bytes_under_way));
  const auto kernel = transpose_wide<bytes, tall, broad, threads, how, kept>;
  size_t shared = wide_shared_bytes<bytes, tall, broad, how>;
  // Fewer tiles than SMs are under way at once in any case.
  const bool few = plan.tiles <= static_cast<uint32_t>(queue.facts->processors);
  if (const lockstep_status status = few ? allow_shared(queue, kernel, shared)
                                         : share_memory(queue, kernel, how == tile_reads::units, tile, &shared);
      status != LOCKSTEP_OK)
    return status;
  return launch_early(queue, "transpose_wide", kernel, dim3(plan.tiles), dim3(threads), shared, plan);
}

template <int bytes, int tall, int broad, int threads, bool kept>
lockstep_status launch_any(lockstep_queue& queue, const wide_plan& plan) {
  constexpr int V = 16 / bytes;
  if (plan.rows % V == 0 && plan.cols % V == 0 && plan.src_vector && plan.dst_vector)
    return launch_kernel<bytes, tall, broad, threads, tile_reads::units, kept>(queue, plan);
  if constexpr (bytes >= 4)
    if (!plan.src_vector && plan.dst_vector)
      return launch_kernel<bytes, tall, broad, threads, tile_reads::elements, kept>(queue, plan);
  return launch_kernel<bytes, tall, broad, threads, tile_reads::any, kept>(queue, plan);
}

using launcher = lockstep_status (*)(lockstep_queue&, const wide_job&);

template <int bytes, int number>
lockstep_status launch_shape(lockstep_queue& queue, const wide_job& job) {
  constexpr wide_shape s = wide_shapes<bytes>[number];
  const int64_t all_rows = (job.rows - 1) / (s.tall / bytes) + 1;
  wide_plan plan = make_wide_plan(job, s.tall / bytes, s.broad / bytes, s.across ? 1 : all_rows);
  // Tiles that the matrix cuts short are counted as whole: of such a matrix a little stays kept.
  plan.last_tiles = std::min(plan.tiles, static_cast<uint32_t>(kept_at_end(queue) / (s.tall * s.broad / bytes) + 1));
  return keeps_reads(queue, wide_bytes(job)) ? launch_any<bytes, s.tall, s.broad, s.threads, true>(queue, plan)
                                             : launch_any<bytes, s.tall, s.broad, s.threads, false>(queue, plan);
}

template <int bytes>
launcher launcher_of(int number) {
  static_assert(wide_shape_count == 6);
  constexpr launcher all[] = {launch_shape<bytes, 0>, launch_shape<bytes, 1>, launch_shape<bytes, 2>,
                              launch_shape<bytes, 3>, launch_shape<bytes, 4>, launch_shape<bytes, 5>};
  return all[number];
}
launcher launcher_of(size_t element_bytes, int number) {
  switch (element_bytes) {
    case 1: return launcher_of<1>(number);
    case 2: return launcher_of<2>(number);
    case 4: return launcher_of<4>(number);
    case 8: return launcher_of<8>(number);
    default: return launcher_of<16>(number);
  }
}

}  // namespace

lockstep_status launch_wide(lockstep_queue& queue, const wide_job& job) {
  if (is_thin(job)) return launch_thin(queue, job);
  const int number = best_wide_shape(job);
  const launcher launch_best = launcher_of(job.element_bytes, number);
  // A grid has at most 2^31-1 blocks: that many tiny matrices go in several launches.
  constexpr int64_t most = (int64_t{1} << 31) - 1;
  int longest = 0;
  for (int k = 1; k < job.outer_axes; ++k)
    if (job.outer[k].count > job.outer[longest].count) longest = k;
  const int64_t tiles = wide_tiles(job);
  if (tiles <= most) return launch_best(queue, job);
  if (job.outer_axes == 0 || tiles / job.outer[longest].count > most)
    return failed(LOCKSTEP_UNSUPPORTED, "%lld tiles are more than a launch takes", static_cast<long long>(tiles));
  const axis whole = job.outer[longest];
  const int64_t step = most / (tiles / whole.count);
  for (int64_t at = 0; at < whole.count; at += step) {
    wide_job part = job;
    part.outer[longest].count = std::min(step, whole.count - at);
    part.src += at * whole.src * static_cast<int64_t>(job.element_bytes);
    part.dst += at * whole.dst * static_cast<int64_t>(job.element_bytes);
    if (const lockstep_status status = launch_best(queue, part); status != LOCKSTEP_OK) return status;
  }
  return LOCKSTEP_OK;
}

}  // namespace lockstep::cuda
