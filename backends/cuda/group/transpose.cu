// transpose.cu - many small matrices transposed in one launch for each size of element.
// Idea    a block a square tile through padded shared memory, as transpose/transpose.cu's tiled_padded: rows of src in,
//         rows of dst out
// Moves   every element once in and once out, 104 bytes of the table for each call and 8 for each tile
// Limit   latencies; memory where there are enough tiles
// Watch   tiles of narrow elements are wider, so that their rows fill a line
// Source  index/transpose.hpp
#include "../index/transpose.hpp"
#include "../kernel/element.cuh"
#include "transpose.hpp"

namespace lockstep::cuda {
namespace {

// 256 threads.
template <size_t bytes>
struct tile_shape {
  static constexpr int side = bytes <= 2 ? 64 : 32, block_rows = 256 / side;
};
constexpr int64_t side_of(size_t element_bytes) { return element_bytes <= 2 ? 64 : 32; }

struct transpose_call {
  square_extent extent;
  const void* src;
  void* dst;
  uint64_t bytes;
  uint32_t blocks, unused;
};

template <class T>
__global__ __launch_bounds__(256) void grouped_transpose(const group_view<transpose_call> all) {
  constexpr tile_shape<sizeof(T)> shape;
  constexpr layout how = layout::padded;
  __shared__ T tile[shape.side * (shape.side + 1)];
  follow_on();
  const group_block mine = block_of(all);
  const transpose_call& call = all.calls[mine.call];
  const square_extent extent = call.extent;
  const square_tile at(shape, extent, mine.number);
  const T* src = static_cast<const T*>(call.src) + at.matrix * extent.src_batch;
  T* dst = static_cast<T*>(call.dst) + at.matrix * extent.dst_batch;
  const int x = threadIdx.x % shape.side, y = threadIdx.x / shape.side;
  walk_tile_in<how>(shape, extent, at, x, y, [&](int, int64_t from, int place) { tile[place] = src[from]; });
  __syncthreads();  // all rows of the tile are in place before any thread reads a column
  walk_tile_out<how>(shape, extent, at, x, y, [&](int, int place, int64_t to) { dst[to] = tile[place]; });
}

// Tiles of all matrices; more than a group takes where the product would not fit.
int64_t tiles_of(const lockstep_transpose_desc& d) {
  const int64_t side = side_of(d.element_bytes), most = most_group_blocks + 1;
  const int64_t down = (d.rows - 1) / side + 1, across = (d.cols - 1) / side + 1;
  if (down >= most || across >= most || d.batch >= most) return most;
  return down * across * d.batch;
}

const char* refuses(const lockstep_queue*, const lockstep_call* call) {
  if (call->src == call->dst) return "src == dst: it writes where it has still to read";
  return tiles_of(call->transpose) > most_group_blocks
             ? "needs at most 1,024 tiles of 32 x 32 (64 x 64 of 1 and 2 bytes)"
             : nullptr;
}
int takes(const lockstep_queue* queue, const lockstep_call* call, size_t bytes) {
  return bytes <= most_group_bytes && refuses(queue, call) == nullptr;
}

uint32_t kind_of(const lockstep_call& call) {
  switch (call.transpose.element_bytes) {
    case 1: return 0;
    case 2: return 1;
    case 4: return 2;
    case 8: return 3;
    default: return 4;
  }
}
transpose_call call_of(const lockstep_call& call) {
  const lockstep_transpose_desc& d = call.transpose;
  const int64_t side = side_of(d.element_bytes);
  transpose_call made{};
  square_extent& e = made.extent;
  e.rows = d.rows, e.cols = d.cols, e.src_ld = d.src_ld, e.dst_ld = d.dst_ld;
  e.src_batch = d.src_batch_stride, e.dst_batch = d.dst_batch_stride;
  e.tiles_j = (d.cols - 1) / side + 1;
  e.tiles_of_matrix = ((d.rows - 1) / side + 1) * e.tiles_j;
  e.tiles = tiles_of(d);
  made.src = call.src, made.dst = call.dst;
  made.blocks = static_cast<uint32_t>(e.tiles);
  return made;  // all blocks are alike: no order by bytes
}
size_t describe(const lockstep_queue*, const lockstep_group* group, void* to) {
  return describe_group<transpose_call>(*group, to, kind_of, call_of);
}

lockstep_status launch_group(lockstep_queue* queue, const lockstep_group* group, size_t*) {
  return launch_parts(*queue, *group, [&](const group_part& part, const void* table) {
    return by_element(size_t{1} << part.kind, [&](auto element) {
      return launch_soon(*queue, "grouped_transpose", grouped_transpose<decltype(element)>, dim3(part.blocks),
                         dim3(256), 0, view_of<transpose_call>(part, table));
    });
  });
}

int yields(const lockstep_queue*, const lockstep_call*) { return 1; }

}  // namespace

const lockstep_group_row transpose_group = {"grouped", takes, describe, workspace_of_group<describe>, launch_group};
const lockstep_variant grouped_transpose_row = {
    "grouped",
    "the kernel of groups (group.h): a block finds its call in a table; a block a padded tile",
    0,
    refuses,
    yields,
    workspace_of_one<describe>,
    launch_one<describe, launch_group>};

}  // namespace lockstep::cuda
