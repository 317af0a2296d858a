// slabs.cpp - see slabs.hpp. Every op is cut along its outermost axis: src of a slab is
// one contiguous span, dst one block of rows. Reductions are not cut, because they only
// upload, and copy() is fast for that.
#include "slabs.hpp"

#include <algorithm>

#include "../ops/ops.hpp"

namespace lockstep::lib {
namespace {

struct cutter {
  const prepared_call& prepared;
  int64_t outer = 0;        // length of the axis that is cut
  int64_t outer_bytes = 0;  // src bytes from one index of it to the next
  int64_t grain = 1;        // slabs start at multiples of it
  std::vector<lockstep_slab> slabs;

  // add(first, last) for ranges of about slab_bytes.
  template <class Add>
  std::vector<lockstep_slab> over(size_t slab_bytes, const Add& add) {
    const int64_t per_slab =
        std::max<int64_t>(static_cast<int64_t>(slab_bytes) / std::max<int64_t>(outer_bytes, 1) / grain, 1) * grain;
    if (per_slab >= outer) return {};
    for (int64_t first = 0; first < outer; first += per_slab) add(first, std::min(outer, first + per_slab));
    return std::move(slabs);
  }
  lockstep_slab& fresh() {
    lockstep_slab& s = slabs.emplace_back();
    s.call = prepared.call;
    s.call.src = s.call.dst = s.call.workspace = nullptr;
    s.call.workspace_bytes = 0;
    s.dst_rows = 1;
    return s;
  }
  // dst of the slab is contiguous in the caller's memory as well.
  static void dense(lockstep_slab& s, size_t offset, size_t bytes) {
    s.dst_offset = offset;
    s.dst_width = s.dst_pitch = s.dst_device_bytes = bytes;
  }
};

}  // namespace

std::vector<lockstep_slab> cut_shuffle(const prepared_call& p, size_t slab_bytes) {
  const int64_t warp_bytes = 32 * static_cast<int64_t>(p.element_bytes);
  cutter c{p, p.call.shuffle.count / 32, warp_bytes, 1, {}};
  return c.over(slab_bytes, [&](int64_t first, int64_t last) {
    lockstep_slab& s = c.fresh();
    s.call.shuffle.count = (last - first) * 32;
    s.src_offset = static_cast<size_t>(first * warp_bytes);
    s.src_bytes = static_cast<size_t>((last - first) * warp_bytes);
    cutter::dense(s, s.src_offset, s.src_bytes);
  });
}

std::vector<lockstep_slab> cut_transpose(const prepared_call& p, size_t slab_bytes) {
  const lockstep_transpose_desc& d = p.call.transpose;
  const auto bytes = static_cast<int64_t>(p.element_bytes);
  if (p.call.src == p.call.dst) return {};
  if (d.batch > 1) {
    if (!p.dst_dense || d.src_batch_stride < (d.rows - 1) * d.src_ld + d.cols) return {};
    cutter c{p, d.batch, d.src_batch_stride * bytes, 1, {}};
    return c.over(slab_bytes, [&](int64_t first, int64_t last) {
      lockstep_slab& s = c.fresh();
      s.call.transpose.batch = last - first;
      s.src_offset = static_cast<size_t>(first * d.src_batch_stride * bytes);
      s.src_bytes =
          static_cast<size_t>(((last - first - 1) * d.src_batch_stride + (d.rows - 1) * d.src_ld + d.cols) * bytes);
      cutter::dense(s, static_cast<size_t>(first * d.dst_batch_stride * bytes),
                    static_cast<size_t>((last - first) * d.rows * d.cols * bytes));
    });
  }
  // A band of src's rows becomes a band of dst's columns. The copy engine is slow for
  // rows of less than 1 KiB.
  cutter c{p, d.rows, d.src_ld * bytes, std::max<int64_t>(1024 / bytes, 1), {}};
  return c.over(slab_bytes, [&](int64_t first, int64_t last) {
    lockstep_slab& s = c.fresh();
    const int64_t rows = last - first;
    s.call.transpose.rows = s.call.transpose.dst_ld = rows;
    s.src_offset = static_cast<size_t>(first * d.src_ld * bytes);
    s.src_bytes = static_cast<size_t>(((rows - 1) * d.src_ld + d.cols) * bytes);
    s.dst_offset = static_cast<size_t>(first * bytes);
    s.dst_width = static_cast<size_t>(rows * bytes);
    s.dst_rows = static_cast<size_t>(d.cols);
    s.dst_pitch = static_cast<size_t>(d.dst_ld * bytes);
    s.dst_device_bytes = s.dst_width * s.dst_rows;
  });
}

std::vector<lockstep_slab> cut_permute(const prepared_call& p, size_t slab_bytes) {
  const lockstep_permute_desc& d = p.call.permute;
  const auto bytes = static_cast<int64_t>(p.element_bytes);
  if (!p.dst_dense) return {};
  int64_t inner_span = 1;  // elements that one index of axis 0 spans in src
  for (int k = 1; k < d.rank; ++k) inner_span += (d.shape[k] - 1) * d.src_strides[k];
  if (d.src_strides[0] < inner_span) return {};
  const int at = static_cast<int>(std::find(d.perm, d.perm + d.rank, 0) - d.perm);  // axis 0's place in dst
  int64_t before = 1, after = 1;
  for (int k = 0; k < d.rank; ++k) (k < at ? before : after) *= k == at ? 1 : d.shape[d.perm[k]];
  // Only if dst is packed is a slab's result one block of rows.
  int64_t packed = 1;
  for (int k = d.rank - 1; k >= 0; --k) {
    if (d.shape[d.perm[k]] > 1 && d.dst_strides[k] != packed) return {};
    packed *= d.shape[d.perm[k]];
  }
  cutter c{p, d.shape[0], d.src_strides[0] * bytes, before > 1 ? std::max<int64_t>(1024 / (after * bytes), 1) : 1, {}};
  return c.over(slab_bytes, [&](int64_t first, int64_t last) {
    lockstep_slab& s = c.fresh();
    const int64_t count = last - first;
    s.call.permute.shape[0] = count;
    int64_t stride = 1;
    for (int k = d.rank - 1; k >= 0; --k) {
      s.call.permute.dst_strides[k] = s.call.permute.shape[d.perm[k]] > 1 ? stride : 0;
      stride *= s.call.permute.shape[d.perm[k]];
    }
    if (count == 1) s.call.permute.src_strides[0] = 0;
    s.src_offset = static_cast<size_t>(first * d.src_strides[0] * bytes);
    s.src_bytes = static_cast<size_t>(((count - 1) * d.src_strides[0] + inner_span) * bytes);
    s.dst_offset = static_cast<size_t>(first * after * bytes);
    s.dst_width = static_cast<size_t>(count * after * bytes);
    s.dst_rows = static_cast<size_t>(before);
    s.dst_pitch = static_cast<size_t>(d.shape[0] * after * bytes);
    s.dst_device_bytes = s.dst_width * s.dst_rows;
  });
}

std::vector<lockstep_slab> cut_stencil(const prepared_call& p, size_t slab_bytes) {
  const lockstep_stencil_desc& d = p.call.stencil;
  const auto bytes = static_cast<int64_t>(p.element_bytes);
  if (!p.dst_dense) return {};
  const bool valid = d.boundary == LOCKSTEP_BOUNDARY_VALID;
  const int64_t halo = int64_t{d.radius} * d.sweeps, shrink = valid ? 2 * halo : 0;
  int64_t array_span = 1, dst_inner = 1;
  for (int k = 0; k < d.rank; ++k) array_span += (d.shape[k] - 1) * d.src_strides[k];
  for (int k = 1; k < d.rank; ++k) dst_inner *= d.shape[k] - shrink;
  const int64_t dst_outer = d.shape[0] - shrink;
  if (d.batch > 1) {
    cutter c{p, d.batch, d.src_batch_stride * bytes, 1, {}};
    return c.over(slab_bytes, [&](int64_t first, int64_t last) {
      lockstep_slab& s = c.fresh();
      s.call.stencil.batch = last - first;
      if (last - first == 1) s.call.stencil.src_batch_stride = s.call.stencil.dst_batch_stride = 0;
      s.src_offset = static_cast<size_t>(first * d.src_batch_stride * bytes);
      s.src_bytes = static_cast<size_t>(((last - first - 1) * d.src_batch_stride + array_span) * bytes);
      cutter::dense(s, static_cast<size_t>(first * dst_outer * dst_inner * bytes),
                    static_cast<size_t>((last - first) * dst_outer * dst_inner * bytes));
    });
  }
  // A single array is cut with overlap: a slab also computes rows of its neighbours and
  // drops those that its artificial edges made wrong. WRAP is not cut, because it needs
  // the other end of the array; and folding must not reach across a slab.
  if (d.boundary == LOCKSTEP_BOUNDARY_WRAP) return {};
  const int64_t row_span = array_span - (d.shape[0] - 1) * d.src_strides[0];
  cutter c{p, dst_outer, d.src_strides[0] * bytes, std::max<int64_t>(d.rank == 1 ? 1024 : 1, 8 * halo), {}};
  return c.over(slab_bytes, [&](int64_t first, int64_t last) {
    lockstep_slab& s = c.fresh();
    const int64_t low = valid ? first : std::max<int64_t>(0, first - halo - 1);
    const int64_t high = valid ? last + shrink : std::min(d.shape[0], last + halo + 1);
    const int64_t computed = high - low - shrink;
    s.call.stencil.shape[0] = high - low;
    s.src_offset = static_cast<size_t>(low * d.src_strides[0] * bytes);
    s.src_bytes = static_cast<size_t>(((high - low - 1) * d.src_strides[0] + row_span) * bytes);
    s.dst_offset = static_cast<size_t>(first * dst_inner * bytes);
    s.dst_width = s.dst_pitch = static_cast<size_t>((last - first) * dst_inner * bytes);
    s.dst_skip = valid ? 0 : static_cast<size_t>((first - low) * dst_inner * bytes);
    s.dst_device_bytes = static_cast<size_t>(computed * dst_inner * bytes);
  });
}

std::vector<lockstep_slab> cut(const prepared_call& prepared, size_t slab_bytes) {
  if (prepared.src_span < 2 * slab_bytes) return {};
  const op_row& row = row_of(prepared.call.op);
  return row.cut != nullptr ? row.cut(prepared, slab_bytes) : std::vector<lockstep_slab>{};
}

}  // namespace lockstep::lib
