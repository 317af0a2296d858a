// sequences.cuh - the sequences of a lockstep_reduce_desc, and how a warp folds one.
#pragma once

#include <algorithm>

#include "norm.cuh"

namespace lockstep::cuda {

struct sequences {
  const void* src;
  // length: with offsets, of all of src, beyond which none may reach; 0: it is not known.
  int64_t count, length, element_stride, sequence_stride;
  const int64_t* offsets;
  // Not 0: runs of so many sequences, run_stride elements apart. Only the kernels of columns.cuh read it.
  int64_t run = 0, run_stride = 0;

  // Where sequence s begins, in elements.
  __device__ __forceinline__ int64_t place(int64_t s) const {
    return run == 0 ? s * sequence_stride : s / run * run_stride + s % run * sequence_stride;
  }
};

template <class T>
struct one_sequence {
  const T* at;
  int64_t length;
};

// Whether a segment may be read: from element `begin` up to `end` of `length`; 0: they are not known.
__device__ __forceinline__ bool are_offsets(int64_t begin, int64_t end, int64_t length) {
  return begin >= 0 && end >= begin && (length == 0 || end <= length);
}

// Sequence s; one whose offsets decrease, or reach beyond src, is reported and has -1 elements.
template <class T>
__device__ __forceinline__ one_sequence<T> sequence_at(const sequences& all, int64_t s, report_word word) {
  const T* src = static_cast<const T*>(all.src);
  if (all.offsets == nullptr) return {src + s * all.sequence_stride, all.length};
  const int64_t begin = all.offsets[s], end = all.offsets[s + 1];
  if (!are_offsets(begin, end, all.length)) {
    report(word, fault::invalid, s);
    return {src, -1};
  }
  return {src + begin * all.element_stride, end - begin};
}

inline dim3 blocks_for(int64_t work, int64_t a_block) {
  return dim3(static_cast<unsigned>(std::min<int64_t>((work + a_block - 1) / a_block, INT32_MAX)));
}

// ---- a sequence by a warp, leaf after leaf ------------------------------------------------
template <class Fold, int V>
__device__ __forceinline__ typename Fold::partial fold_sequence(const Fold& fold, const typename Fold::element* at,
                                                                int64_t stride, int64_t length, int t) {
  using P = typename Fold::partial;
  if constexpr (!Fold::ordered) {
    P mine = fold.none();
    for (int64_t first = 0; first < length; first += order::leaf)
      mine = fold.join(mine, fold_leaf<V>(fold, at + first * stride, stride, length - first, first, t));
    return join_warp(fold, mine);
  } else {
    warp_counter<Fold> tree;
    for (int64_t first = 0; first < length; first += order::leaf)
      tree.push(fold, fold_leaf<V>(fold, at + first * stride, stride, length - first, first, t), t);
    return tree.total(fold);
  }
}

// The same, and stores it.
template <class Fold>
__device__ __forceinline__ void store_sequence(const Fold& fold, const typename Fold::element* at, int64_t stride,
                                               int64_t length, int64_t s, int t) {
  const auto value = fold_sequence<Fold, 1>(fold, at, stride, length, t);
  if constexpr (is_norm<Fold>) {
    if (fold.needs_again(value)) {  // every thread has the value
      const double root = norm_again(value, [&](const auto& by) {
        return fold_sequence<std::remove_cvref_t<decltype(by)>, 1>(by, at, stride, length, t);
      });
      if (t == 0) fold.store_root(root, s);
      return;
    }
  }
  if (t == 0) fold.store(value, s);
}

}  // namespace lockstep::cuda
