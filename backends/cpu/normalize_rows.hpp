// normalize_rows.hpp - what every kind of normalize has: where a call's rows are, one stride apart or between offsets,
// their leaves with the residual added, and how rows are divided among threads.
#pragma once

#include "bits/order_rows.hpp"
#include "equal_elements.hpp"
#include "normalize_kernels.hpp"
#include "passes.hpp"
#include "terms.hpp"

namespace lockstep::cpu {

struct normalize_call {
  const lockstep_queue& queue;
  const lockstep_normalize_desc& d;
  const char *src, *residual;
  char *dst, *sum;
  const normalize_kernels& kernels = normalizers(queue.kernels);
  int64_t bytes = static_cast<int64_t>(lockstep_dtype_bytes(d.dtype));
  int64_t result_bytes = static_cast<int64_t>(lockstep_dtype_bytes(d.result));
  int64_t leaves = order::leaves(d.length);
  int64_t elements = d.offsets == nullptr ? d.count * d.length : d.offsets[d.count] - d.offsets[0];
  // A row of several MiB is written past the caches, or all of it lies in them: the whole call decides.
  bool stream = elements * (bytes + result_bytes) >= queue.tuned->rows.normalize_stream_bytes;

  const float_kernels& squares_of =
      term_kernels(queue.kernels, static_cast<float_term>(square_f16 + (d.dtype - LOCKSTEP_F16)));

  const auto& of_type() const { return kernels.of[d.dtype - LOCKSTEP_F16]; }
  int64_t length(int64_t row) const { return d.offsets == nullptr ? d.length : d.offsets[row + 1] - d.offsets[row]; }
  int64_t leaf_length(int64_t row, int64_t k) const { return std::min(order::leaf, length(row) - k * order::leaf); }

  // h of a leaf: where it lies, or made in buffer. first: sum is written, later passes read it there.
  const void* leaf(int64_t row, int64_t k, void* buffer, bool first) const {
    const int64_t at = k * order::leaf;
    const char* x = src + ((d.offsets == nullptr ? row * d.src_stride : d.offsets[row]) + at) * bytes;
    if (residual == nullptr) return x;
    char* kept = sum != nullptr ? sum + (row * d.sum_stride + at) * bytes : static_cast<char*>(buffer);
    if (sum == nullptr || first)
      of_type().add(x, residual + (row * d.residual_stride + at) * bytes, kept, leaf_length(row, k));
    return kept;
  }

  // What a leaf's sum of squares, or sum and squares about the mean, joins the tree with.
  void value_of(const void* h, int64_t n, double& squares) const {
    squares_of.rows({h, n, order::leaf, nullptr}, 1, &squares);
  }
  void value_of(const void* h, int64_t n, order::moments& m) const {
    m.count = static_cast<double>(n);
    of_type().moments(h, 0, n, 1, &m.sum, &m.m2);
    m.equal = d.dtype == LOCKSTEP_F64 ? equal_elements(h, n, m.sum) : 0;
  }

  // body(row, first, last) for leaves of every row, about 64 at a time, on all threads.
  template <class Body>
  void over_leaves(const Body& body) const {
    constexpr int64_t together = 64;
    const int64_t parts = (leaves - 1) / together + 1;
    over_parts(queue, d.count * parts, std::max<int64_t>(queue.tuned->rows.normalize_grain / d.length, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t)
                   body(t / parts, t % parts * together, std::min((t % parts + 1) * together, leaves));
               });
  }

  // Whether all threads share each row.
  bool shares_rows() const {
    return queue.threads > 1 && d.count < queue.tuned->reductions.tasks_a_thread * queue.threads &&
           d.length * bytes >= queue.tuned->rows.shared_bytes && !forked();
  }
  // body(first, last) for ranges of rows, on each thread one.
  template <class Body>
  void over_rows(const Body& body) const {
    over_parts(queue, d.count, std::max<int64_t>(queue.tuned->rows.normalize_grain / d.length, 1), body);
  }
};

// Values of the subtrees of a row that all threads share; a value has at most 32 bytes.
inline size_t joins_bytes(const lockstep_queue* queue, const lockstep_normalize_desc& d) {
  const int64_t bytes = d.offsets == nullptr ? d.length * static_cast<int64_t>(lockstep_dtype_bytes(d.dtype))
                                             : INT64_MAX;  // a segment may be as long as that
  return static_cast<size_t>(most_tasks(*queue, bytes)) * 32;
}

// softmax.cpp: the kinds of exponentials. workspace: exponential_bytes().
size_t exponential_bytes(const lockstep_queue* queue, const lockstep_normalize_desc& d);
lockstep_status exponential_rows(const normalize_call& rows, void* workspace);

// normalize.cpp: a call on contiguous rows. workspace: contiguous_bytes().
size_t contiguous_bytes(const lockstep_queue* queue, const lockstep_call* call);
lockstep_status contiguous_rows(lockstep_queue* queue, const lockstep_call* call);

// normalize_columns.cpp: rows side by side.
const char* not_columns(const lockstep_queue* queue, const lockstep_call* call);
const char* not_contiguous(const lockstep_queue* queue, const lockstep_call* call);
size_t columns_bytes(const lockstep_queue* queue, const lockstep_call* call);
lockstep_status launch_columns(lockstep_queue* queue, const lockstep_call* call);

// normalize_backward.cpp: the gradients of RMS and LAYER. workspace: gradient_bytes().
size_t gradient_bytes(const lockstep_queue* queue, const lockstep_normalize_desc& d);
void gradients_of_rows(const normalize_call& rows, void* workspace);

}  // namespace lockstep::cpu
