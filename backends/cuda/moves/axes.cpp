// axes.cpp - see axes.hpp.
#include "axes.hpp"

#include <algorithm>
#include <utility>

#include "../dtypes.hpp"

namespace lockstep::cuda {
namespace {

void sort_by_dst(axes& a) {
  for (int k = 1; k < a.rank; ++k)
    for (int m = k; m > 0 && a.at[m - 1].dst < a.at[m].dst; --m) std::swap(a.at[m - 1], a.at[m]);
}

void remove(axes& a, int k) {
  for (; k + 1 < a.rank; ++k) a.at[k] = a.at[k + 1];
  --a.rank;
}

// outer runs on where inner ends, on both sides.
bool fuse_one(axes& a) {
  for (int outer = 0; outer < a.rank; ++outer)
    for (int inner = 0; inner < a.rank; ++inner) {
      const axis x = a.at[outer], y = a.at[inner];
      if (outer == inner || x.src != y.count * y.src || x.dst != y.count * y.dst) continue;
      a.at[inner].count *= x.count;
      remove(a, outer);
      return true;
    }
  return false;
}

// Pairs of neighbours become one element when every address is even in units of it.
bool widen(axes& a, pointers which) {
  if (a.rank == 0 || a.element_bytes == 16) return false;
  const int k = a.fastest_dst();
  const auto twice = static_cast<uintptr_t>(2 * a.element_bytes);
  if (a.at[k].src != 1 || a.at[k].dst != 1 || a.at[k].count % 2 != 0) return false;
  if (which == pointers::as_given &&
      (reinterpret_cast<uintptr_t>(a.src) % twice != 0 || reinterpret_cast<uintptr_t>(a.dst) % twice != 0))
    return false;
  for (int other = 0; other < a.rank; ++other)
    if (other != k && (a.at[other].src % 2 != 0 || a.at[other].dst % 2 != 0)) return false;
  a.element_bytes *= 2;
  for (int other = 0; other < a.rank; ++other)
    if (other != k) a.at[other].src /= 2, a.at[other].dst /= 2;
  a.at[k].count /= 2;
  if (a.at[k].count == 1) remove(a, k);
  sort_by_dst(a);
  return true;
}

}  // namespace

bool whole_chunks(const axes& a, int64_t V) {
  if (V < 1 || !a.is_matrix()) return false;
  const int along = a.fastest_src(), across = a.fastest_dst();
  if (a.at[along].count % V != 0 || a.at[across].count % V != 0) return false;
  for (int k = 0; k < a.rank; ++k)
    if ((k != along && a.at[k].src % V != 0) || (k != across && a.at[k].dst % V != 0)) return false;
  return true;
}

bool alike(const axes& a, const axes& b) {
  const auto at = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 32; };
  return a.element_bytes == b.element_bytes && a.rank == b.rank && at(a.src) == at(b.src) && at(a.dst) == at(b.dst) &&
         std::equal(a.at, a.at + a.rank, b.at, [](const axis& x, const axis& y) {
           return x.count == y.count && x.src == y.src && x.dst == y.dst;
         });
}

int64_t axes::elements() const {
  int64_t all = 1;
  for (int k = 0; k < rank; ++k) all *= at[k].count;
  return all;
}

int64_t axes::span() const {
  int64_t of_src = 0, of_dst = 0;
  for (int k = 0; k < rank; ++k) of_src += (at[k].count - 1) * at[k].src, of_dst += (at[k].count - 1) * at[k].dst;
  return std::max(of_src, of_dst);
}

bool axes::is_matrix() const {
  if (rank < 2) return false;
  const int along = fastest_src(), across = fastest_dst();
  return along != across && at[along].src == 1 && at[across].dst == 1;
}

int axes::fastest_src() const {
  int best = 0;
  for (int k = 1; k < rank; ++k)
    if (at[k].src < at[best].src) best = k;
  return best;
}

axes axes_of(const lockstep_call& call) {
  axes a{static_cast<const unsigned char*>(call.src), static_cast<unsigned char*>(call.dst), 0, 0, {}};
  const auto add = [&](int64_t count, int64_t src, int64_t dst) {
    if (count > 1) a.at[a.rank++] = {count, src, dst};
  };
  if (call.op == LOCKSTEP_TRANSPOSE) {
    const lockstep_transpose_desc& d = call.transpose;
    a.element_bytes = static_cast<int>(d.element_bytes);
    add(d.batch, d.src_batch_stride, d.dst_batch_stride), add(d.cols, 1, d.dst_ld), add(d.rows, d.src_ld, 1);
  } else if (call.op == LOCKSTEP_PERMUTE) {
    const lockstep_permute_desc& d = call.permute;
    a.element_bytes = static_cast<int>(d.element_bytes);
    for (int k = 0; k < d.rank; ++k) add(d.shape[d.perm[k]], d.src_strides[d.perm[k]], d.dst_strides[k]);
  } else {
    const lockstep_convert_desc& d = call.convert;
    a.element_bytes = static_cast<int>(dtype_bytes(d.dtype));
    for (int k = 0; k < d.rank; ++k) add(d.shape[k], d.src_strides[k], d.dst_strides[k]);
  }
  sort_by_dst(a);
  return a;
}

axes fused(axes a) {
  sort_by_dst(a);
  while (fuse_one(a)) {
  }
  sort_by_dst(a);
  return a;
}

axes simplified(axes a, pointers which) {
  a = fused(a);
  while (widen(a, which)) {
  }
  return fused(a);
}

}  // namespace lockstep::cuda
