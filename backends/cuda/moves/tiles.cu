// tiles.cu - permutations by small boxes, whatever the axes and the alignment of their rows.
//
// Idea    A block moves one box: rows of src come in by words into an image in shared memory and leave it by
//         words of dst. Which rows a box has and where a row of dst finds its elements is worked out once a box,
//         into small tables, while src is on its way; after that an element costs a look-up and an addition, for
//         any number of axes. Words of elements below 4 bytes lie in the image where their addresses lie, modulo 4.
// Moves   every element once in, once out, and once through shared memory.
// Limit   DRAM or the L2; the ceiling is a device-to-device copy of the same bytes.
// Watch   A sector of dst that two blocks write costs more than one read twice: where rows of dst begin anywhere,
//         boxes overlap and each writes whole sectors.
// Source  this repository; figures in tests/results.
#include <algorithm>
#include <cstddef>
#include <type_traits>

#include <cuda_pipeline.h>

#include "../element.cuh"
#include "../mutant.cuh"
#include "../queue.hpp"
#include "tiles.hpp"

namespace lockstep::cuda {
namespace {

constexpr int most_threads = 256;

template <int bytes, int hold>
__global__ void __launch_bounds__(most_threads) move_tiles(const __grid_constant__ tiles_plan plan) {
  constexpr bool narrow = bytes < 4;
  constexpr int each = narrow ? 4 / bytes : 1;  // elements of a word
  constexpr int log_each = each == 4 ? 2 : each == 2 ? 1 : 0;
  constexpr int word_bytes = narrow ? 4 : bytes;
  using element = typename element_of<bytes>::type;
  using word = typename element_of<word_bytes>::type;
  extern __shared__ uint4 shared[];
  auto* const image = reinterpret_cast<unsigned char*>(shared);
  auto* const dst_rows = reinterpret_cast<tile_row*>(image + (plan.image + 15 & ~15u));
  auto* const src_rows = dst_rows + plan.to.rows;
  auto* const places = reinterpret_cast<uint16_t*>(src_rows + (plan.from.levels > 1 ? plan.from.rows : 0)) + each;

  const unsigned char* src = plan.src;
  unsigned char* dst = plan.dst;
  unsigned cut = 0;
  bool first = true, last = true;  // of the boxes that overlap
  uint32_t rest = blockIdx.x;
  for (int k = 0; k < plan.axes; ++k) {
    uint32_t index = rest;
    rest = plan.axis[k].boxes.split(index);
    const bool is_last = index == plan.axis[k].boxes.d - 1;
    src += index * plan.axis[k].src_step;
    dst += index * plan.axis[k].dst_step;
    if (is_last) cut |= 1u << k;
    if (k == plan.overlap) first = index == 0, last = is_last;
  }
  const auto run_length = [&](const tile_side& side) {
    return side.cut >= 0 && (cut >> side.cut & 1) != 0 ? side.cut_run : side.run;
  };
  const auto low = [](const void* p) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p)) & 3; };

#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  // src's rows on their way to the image.
  const uint32_t skew = narrow ? low(src) : 0;
  {
    uint32_t lane = threadIdx.x;
    const uint32_t group = plan.from.lanes.split(lane);
    const uint32_t here = run_length(plan.from) * bytes;
    const auto fetch = [&](const auto& row_at) {
      if (group >= plan.from.groups) return;
      for (uint32_t at = lane * word_bytes; at < here + (narrow ? 3 : 0); at += plan.from.lanes.d * word_bytes) {
        const auto one = [&](const tile_row& r, auto* held) {
          const unsigned char* from = src + r.memory;
          const uint32_t before = narrow ? low(from) : 0;
          if (r.there == 0 || at >= before + here) return;
          from += at, from -= before;
          unsigned char* to = image + (skew + r.place + at - before);
          if constexpr (!std::is_same_v<decltype(held), std::nullptr_t*>) {
            *held = *reinterpret_cast<const word*>(from);
          } else if (!narrow || (from >= plan.src && from + 4 <= plan.src_end)) {
            __pipeline_memcpy_async(to, from, word_bytes);
          } else {
            for (int b = 0; b < 4; b += bytes)
              if (from + b >= plan.src && from + b < plan.src_end)
                *reinterpret_cast<element*>(to + b) = *reinterpret_cast<const element*>(from + b);
          }
        };
        if constexpr (hold == 0) {
#pragma unroll 4
          for (uint32_t row = group; row < plan.from.rows; row += plan.from.groups)
            one(row_at(row), static_cast<std::nullptr_t*>(nullptr));
        } else {
          for (uint32_t row0 = group; row0 < plan.from.rows; row0 += hold * plan.from.groups) {
            word held[hold];
#pragma unroll
            for (int p = 0; p < hold; ++p)
              if (const uint32_t row = row0 + p * plan.from.groups; row < plan.from.rows) one(row_at(row), &held[p]);
#pragma unroll
            for (int p = 0; p < hold; ++p)
              if (const uint32_t row = row0 + p * plan.from.groups; row < plan.from.rows) {
                const tile_row r = row_at(row);
                const uint32_t before = narrow ? low(src + r.memory) : 0;
                if (r.there != 0 && at < before + here)
                  *reinterpret_cast<word*>(image + (skew + r.place + at - before)) = held[p];
              }
          }
        }
      }
    };
    if (plan.from.levels > 1) {
      for (uint32_t row = threadIdx.x; row < plan.from.rows; row += blockDim.x)
        src_rows[row] = row_of<log_each>(plan.from.at, plan.from.levels, row, cut);
      __syncthreads();  // the table is complete before any row is looked up
      fetch([&](uint32_t row) { return src_rows[row]; });
    } else {
      const tile_level& only = plan.from.at[0];
      const uint32_t rows = only.cut >= 0 && (cut >> only.cut & 1) != 0 ? only.last : plan.from.rows;
      fetch([&](uint32_t row) {
        return tile_row{row * only.memory, row * only.place + (row >> log_each) * only.pad, row < rows};
      });
    }
    __pipeline_commit();
  }
  for (uint32_t row = threadIdx.x; row < plan.to.rows; row += blockDim.x)
    dst_rows[row] = row_of<log_each>(plan.to.at, plan.to.levels, row, cut);
  for (uint32_t n = threadIdx.x; n < plan.to.run + 2 * each; n += blockDim.x) {
    const uint32_t column = n - each;  // those beyond the row are looked up by words that it shares with others
    places[static_cast<int>(column)] = static_cast<uint16_t>(
        column < plan.to.run ? row_of<log_each>(plan.run, plan.run_levels, column, 0).place : 0);
  }
  __pipeline_wait_prior(0);
  if (!LOCKSTEP_DEVICE_MUTANT("tiles_barrier_dropped"))
    __syncthreads();  // every thread's words and the tables are in place before dst's rows are put together

  uint32_t lane = threadIdx.x;
  const uint32_t group = plan.to.lanes.split(lane), lanes = plan.to.lanes.d;
  if (group >= plan.to.groups) return;
  const uint32_t valid = run_length(plan.to);
  const unsigned char* const origin = image + skew;
  // Elements [begin, end) of a row are this box's to write.
  struct share {
    uint32_t begin, end;
  };
  const auto share_of = [&](const unsigned char* to) {
    share s{0, valid};
    if (plan.overlap >= 0) {
      const auto base = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(to));
      if (!first) s.begin = (-base & (tile_sector - 1)) / bytes;
      if (!last) {
        const uint32_t step = plan.overlap_step;
        s.end = step + (-(base + step * bytes) & (tile_sector - 1)) / bytes;
      }
    }
    return s;
  };
  if constexpr (!narrow) {
    for (uint32_t column = lane; column < valid; column += lanes) {
      const unsigned char* const from = origin + places[column];
#pragma unroll 4
      for (uint32_t row = group; row < plan.to.rows; row += plan.to.groups) {
        const tile_row r = dst_rows[row];
        unsigned char* const to = dst + r.memory;
        const share s = share_of(to);
        if (r.there != 0 && column >= s.begin && column < s.end)
          *reinterpret_cast<element*>(to + column * bytes) = *reinterpret_cast<const element*>(from + r.place);
      }
    }
  } else {
    for (uint32_t column = lane; column * each < valid + each - 1; column += lanes) {
      uint32_t at[each] = {}, known = ~0u;
#pragma unroll 4
      for (uint32_t row = group; row < plan.to.rows; row += plan.to.groups) {
        const tile_row r = dst_rows[row];
        unsigned char* const to = dst + r.memory;
        const share s = share_of(to);
        const uint32_t before = low(to) / bytes;
        const int number = static_cast<int>(column * each - before);  // of the word's first element
        if (before != known) {
          known = before;
#pragma unroll
          for (int k = 0; k < each; ++k) at[k] = places[min(number + k, static_cast<int>(plan.to.run))];
        }
        if (r.there == 0 || number + each <= static_cast<int>(s.begin) || number >= static_cast<int>(s.end)) continue;
        uint32_t x = 0;
#pragma unroll
        for (int k = 0; k < each; ++k)
          x |= static_cast<uint32_t>(*reinterpret_cast<const element*>(origin + at[k] + r.place)) << 8 * bytes * k;
        unsigned char* const here = to + number * bytes;
        if (number >= static_cast<int>(s.begin) && number + each <= static_cast<int>(s.end)) {
          *reinterpret_cast<word*>(here) = x;
        } else {
#pragma unroll
          for (int k = 0; k < each; ++k)
            if (number + k >= static_cast<int>(s.begin) && number + k < static_cast<int>(s.end))
              *reinterpret_cast<element*>(here + k * bytes) = static_cast<element>(x >> 8 * bytes * k);
        }
      }
    }
  }
}

template <int hold>
lockstep_status launch_hold(lockstep_queue& queue, int element_bytes, const tiles_plan& plan, bool early) {
  const size_t shared = tiles_shared(plan, element_bytes);
  const auto go = [&](auto kernel) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(plan.boxes), config.blockDim = dim3(plan.threads);
    config.dynamicSmemBytes = shared, config.stream = queue.stream;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute, config.numAttrs = early ? 1 : 0;
    LOCKSTEP_CUDA(cudaLaunchKernelEx(&config, kernel, plan));
    return LOCKSTEP_OK;
  };
  switch (element_bytes) {
    case 1: return go(move_tiles<1, hold>);
    case 2: return go(move_tiles<2, hold>);
    case 4: return go(move_tiles<4, hold>);
    case 8: return go(move_tiles<8, hold>);
    default: return go(move_tiles<16, hold>);
  }
}

}  // namespace

lockstep_status launch_tiles_plan(lockstep_queue& queue, int element_bytes, const tiles_plan& plan, int hold, bool early) {
  return hold == 0 ? launch_hold<0>(queue, element_bytes, plan, early) : launch_hold<8>(queue, element_bytes, plan, early);
}

}  // namespace lockstep::cuda
