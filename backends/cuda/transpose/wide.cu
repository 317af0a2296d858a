// wide.cu - the tile shapes of wide.cuh and the choice among them.
#include <algorithm>

#include "share.hpp"
#include "thin.hpp"
#include "wide.cuh"

namespace lockstep::cuda {
namespace {

enum class walk { down, across };  // neighbouring tiles share dst rows, or src rows

// Bytes of a tile along i and j, and what a wasted byte costs beside the best shape.
struct shape {
  int tall, broad;
  walk order;
  double weight, odd_weight;  // odd: where dst is not aligned to 16 bytes
  lockstep_status (*launch)(lockstep_queue&, const wide_job&, const shape&);
};

int64_t up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

int64_t tiles_of(const wide_job& job, const shape& s) {
  const auto bytes = static_cast<int64_t>(job.element_bytes);
  int64_t tiles = up(job.rows, s.tall / bytes) * up(job.cols, s.broad / bytes);
  for (int axis = 0; axis < job.outer_axes; ++axis) tiles *= job.outer[axis].count;
  return tiles;
}

double moved_bytes(const wide_job& job) {  // each way
  double moved = static_cast<double>(job.rows) * static_cast<double>(job.cols);
  for (int axis = 0; axis < job.outer_axes; ++axis) moved *= static_cast<double>(job.outer[axis].count);
  return moved * static_cast<double>(job.element_bytes);
}

template <int bytes, int tall, int broad, int threads, tile_reads how, bool kept>
lockstep_status launch_kernel(lockstep_queue& queue, const wide_plan& plan) {
  constexpr size_t tile = size_t{tall} * broad / bytes;
  static_assert(tile <= static_cast<size_t>(bytes_under_way));
  const auto kernel = transpose_wide<bytes, tall, broad, threads, how, kept>;
  size_t shared = wide_shared_bytes<bytes, tall, broad, how>;
  // Fewer tiles than multiprocessors are under way at once in any case.
  const bool few = plan.tiles <= static_cast<uint32_t>(queue.facts->processors);
  if (const lockstep_status status =
          few ? allow_shared(kernel, shared) : share_memory(queue, kernel, how == tile_reads::exact, tile, &shared);
      status != LOCKSTEP_OK)
    return status;
  return launch_early(queue, "transpose_wide", kernel, dim3(plan.tiles), dim3(threads), shared, plan);
}

template <int bytes, int tall, int broad, int threads, bool kept>
lockstep_status launch_any(lockstep_queue& queue, const wide_plan& plan) {
  const bool full = plan.rows % (tall / bytes) == 0 && plan.cols % (broad / bytes) == 0;
  if (full && plan.src_vector && plan.dst_vector)
    return launch_kernel<bytes, tall, broad, threads, tile_reads::exact, kept>(queue, plan);
  if constexpr (bytes >= 4)
    if (!plan.src_vector && plan.dst_vector)
      return launch_kernel<bytes, tall, broad, threads, tile_reads::elements, kept>(queue, plan);
  return launch_kernel<bytes, tall, broad, threads, tile_reads::any, kept>(queue, plan);
}

template <int bytes, int tall, int broad, int threads>
lockstep_status launch_shape(lockstep_queue& queue, const wide_job& job, const shape& s) {
  const int64_t all_rows = up(job.rows, tall / bytes);
  wide_plan plan = make_wide_plan(job, tall / bytes, broad / bytes, s.order == walk::down ? all_rows : 1);
  // Tiles that the matrix cuts short are counted as whole: of such a matrix a little stays kept.
  plan.last_tiles = std::min(plan.tiles, static_cast<uint32_t>(kept_at_end(queue) / (tall * broad / bytes) + 1));
  return keeps_reads(queue, moved_bytes(job)) ? launch_any<bytes, tall, broad, threads, true>(queue, plan)
                                              : launch_any<bytes, tall, broad, threads, false>(queue, plan);
}

template <int bytes, int tall, int broad, int threads>
constexpr shape row(walk order, double weight, double odd_weight) {
  return {tall, broad, order, weight, odd_weight, launch_shape<bytes, tall, broad, threads>};
}
// Best shape first, found on an H200 (16384 square; fractions of a copy, which runs at
// 4.2 TB/s), lines kept. 4 bytes: 256x256 1.002, 512x256 of 512 threads 1.002, of 256 0.895, 512x128 0.971 (of 128
// threads 0.916), 256x128 0.967, 128x128 0.958; 8: 256x256 1.002, 256x128 0.968; 16: 512x256 0.952; 2: 256x256 0.997,
// 512x128 0.967; 1: 128x256 0.980 (32768 square), 256x128 0.940. (64,96,128,160) -> 0132: 512x128 1.016, 256x128 1.012.
// Walking across instead of down costs 2-8 %; bands of 4 to 128 tile rows are no better than across. Bulk tensor copies
// (TMA, 2-4 stages, 256x256) reached 0.93: not kept. 32 bytes of columns: 4 bytes 256x32 1.007, 512x32 1.011, of 64
// threads and 1024x32 0.980; 2 bytes 512x32 0.967, 1024x32 0.962; 8 bytes 1.019. 8x20000000: 32x1024 1.02.
// Narrow shapes cost more where a wider one would do: (64,96,128,160) -> 0132 has
// 0.965 from 128x128 and 0.845 from 512x32.
// Not aligned in dst, 16383x16381: 1 byte 256x128 0.30, 128x256 0.20; 2 bytes 512x128
// 0.46, 256x256 0.37; 8 bytes 256x256 0.85, 512x128 0.74; 4 bytes (7001x10000) 512x128 0.88, 256x256 0.85, 128x256
// 0.77.
template <int bytes>
constexpr shape shapes[6] = {
    row<bytes, 256, 256, 256>(walk::down, 1.0, 1.0),
    row<bytes, 512, 128, 256>(walk::down, 1.025, 0.97),
    row<bytes, 256, 128, 128>(walk::down, 1.03, 1.03),
    row<bytes, 128, 128, 64>(walk::down, 1.05, 1.15),
    row<bytes, bytes == 4 ? 256 : 512, 32, bytes == 4 ? 32 : 64>(walk::across, 1.24, 1.24),
    row<bytes, 32, 1024, 128>(walk::down, 1.2, 1.2),
};
template <>
constexpr shape shapes<1>[6] = {
    row<1, 128, 256, 128>(walk::down, 1.0, 1.4),   row<1, 256, 128, 128>(walk::down, 1.03, 1.0),
    row<1, 128, 128, 64>(walk::down, 1.03, 1.4),   row<1, 256, 64, 64>(walk::down, 1.2, 1.1),
    row<1, 512, 32, 64>(walk::across, 1.25, 1.25), row<1, 32, 1024, 128>(walk::down, 1.2, 1.4),
};
template <>
constexpr shape shapes<8>[6] = {
    row<8, 256, 256, 256>(walk::down, 1.0, 1.0),   row<8, 512, 128, 256>(walk::down, 1.04, 1.2),
    row<8, 256, 128, 128>(walk::down, 1.03, 1.03), row<8, 128, 128, 64>(walk::down, 1.05, 1.15),
    row<8, 512, 32, 64>(walk::across, 1.25, 1.25), row<8, 64, 512, 128>(walk::down, 1.2, 1.2),
};
template <>
constexpr shape shapes<16>[6] = {
    row<16, 512, 256, 256>(walk::down, 1.0, 1.0),   row<16, 256, 256, 256>(walk::down, 1.1, 1.1),
    row<16, 512, 128, 256>(walk::down, 1.1, 1.1),   row<16, 128, 128, 64>(walk::down, 1.1, 1.1),
    row<16, 512, 32, 64>(walk::across, 1.25, 1.25), row<16, 128, 256, 128>(walk::down, 1.1, 1.1),
};

template <int bytes>
constexpr bool first_is_told = shapes<bytes>[0].tall == first_wide_shape(bytes).tall&& shapes<bytes>[0].broad ==
                               first_wide_shape(bytes).broad;
static_assert(first_is_told<1> && first_is_told<2> && first_is_told<4> && first_is_told<8> && first_is_told<16>);

bool odd_dst(const wide_job& job) {
  return reinterpret_cast<uintptr_t>(job.dst) % 16 != 0 ||
         (job.cols > 1 && job.dst_ld * static_cast<int64_t>(job.element_bytes) % 16 != 0);
}
double cost_of(const wide_job& job, const shape& s) {
  return static_cast<double>(tiles_of(job, s)) * s.tall * s.broad * (odd_dst(job) ? s.odd_weight : s.weight);
}

template <int bytes>
const shape* best_of(const wide_job& job) {
  const shape* best = shapes<bytes>;
  for (const shape& s : shapes<bytes>)
    if (cost_of(job, s) < cost_of(job, *best)) best = &s;
  return best;
}
const shape* best_of(const wide_job& job) {
  switch (job.element_bytes) {
    case 1: return best_of<1>(job);
    case 2: return best_of<2>(job);
    case 4: return best_of<4>(job);
    case 8: return best_of<8>(job);
    default: return best_of<16>(job);
  }
}

}  // namespace

double wide_padding(const wide_job& job) {
  return cost_of(job, *best_of(job)) / (moved_bytes(job) * static_cast<double>(job.element_bytes));
}

int64_t wide_tiles(const wide_job& job) { return tiles_of(job, *best_of(job)); }

lockstep_status launch_wide(lockstep_queue& queue, const wide_job& job) {
  if (is_thin(job)) return launch_thin(queue, job);
  const shape* best = best_of(job);
  // A grid has at most 2^31-1 blocks: that many tiny matrices go in several launches.
  constexpr int64_t most = (int64_t{1} << 31) - 1;
  int longest = 0;
  for (int axis = 1; axis < job.outer_axes; ++axis)
    if (job.outer[axis].count > job.outer[longest].count) longest = axis;
  const int64_t tiles = tiles_of(job, *best);
  if (tiles <= most) return best->launch(queue, job, *best);
  if (job.outer_axes == 0 || tiles / job.outer[longest].count > most)
    return failed(LOCKSTEP_UNSUPPORTED, "%lld tiles are more than a launch takes", static_cast<long long>(tiles));
  const wide_axis whole = job.outer[longest];
  const int64_t step = most / (tiles / whole.count);
  for (int64_t at = 0; at < whole.count; at += step) {
    wide_job part = job;
    part.outer[longest].count = std::min(step, whole.count - at);
    part.src += at * whole.src_stride * static_cast<int64_t>(job.element_bytes);
    part.dst += at * whole.dst_stride * static_cast<int64_t>(job.element_bytes);
    if (const lockstep_status status = best->launch(queue, part, *best); status != LOCKSTEP_OK) return status;
  }
  return LOCKSTEP_OK;
}

}  // namespace lockstep::cuda
