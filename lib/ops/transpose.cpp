// transpose.cpp - dst[b][j][i] = src[b][i][j]: validation.
#include "checked.hpp"
#include "ops.hpp"

namespace lockstep::lib {
namespace {
// One matrix, its place taken by its transpose.
bool transposes_onto_itself(const lockstep_transpose_desc& d) {
  const bool square = d.rows == d.cols && d.src_ld == d.dst_ld;
  return square || (d.src_ld == d.cols && d.dst_ld == d.rows);
}
}  // namespace

std::string why_not_in_place(const prepared_call& transpose) {
  const lockstep_transpose_desc& d = transpose.call.transpose;
  if (!transposes_onto_itself(d))
    return format_text(
        "in place needs a square matrix with src_ld == dst_ld, or src_ld == cols and dst_ld == rows; rows is {}, cols "
        "{}, src_ld {}, dst_ld {}",
        d.rows, d.cols, d.src_ld, d.dst_ld);
  return format_text(
      "in place needs matrices apart and src_batch_stride == dst_batch_stride; src_batch_stride is {}, "
      "dst_batch_stride {}",
      d.src_batch_stride, d.dst_batch_stride);
}

void prepare_transpose(prepared_call& prepared) {
  lockstep_transpose_desc& d = prepared.call.transpose;
  require_element_bytes(d.element_bytes);
  require_nonnegative("rows", d.rows);
  require_nonnegative("cols", d.cols);
  require_nonnegative("batch", d.batch);
  prepared.element_bytes = prepared.dst_element_bytes = d.element_bytes;
  prepared.empty = d.batch == 0 || d.rows == 0 || d.cols == 0;
  if (prepared.empty) return;
  // The leading dimension of a matrix with at most one row is never read: any number will do.
  if (d.rows == 1) d.src_ld = d.cols;
  if (d.cols == 1) d.dst_ld = d.rows;
  if (d.src_ld < d.cols)
    fail(LOCKSTEP_INVALID_ARGUMENT, "src_ld is {}, less than a row of {} columns; give cols or more", d.src_ld, d.cols);
  if (d.dst_ld < d.rows)
    fail(LOCKSTEP_INVALID_ARGUMENT, "dst_ld is {}, less than a row of {} elements (rows); give rows or more", d.dst_ld,
         d.rows);

  const int64_t counts[] = {d.batch, d.rows, d.cols};
  const int64_t total = product("batch * rows * cols", 3, counts);
  const int64_t src_counts[] = {d.rows, d.cols}, src_strides[] = {d.src_ld, 1};
  const int64_t dst_counts[] = {d.cols, d.rows}, dst_strides[] = {d.dst_ld, 1};
  const size_t src_matrix = span_bytes("src", 2, src_counts, src_strides, d.element_bytes);
  const size_t dst_matrix = span_bytes("dst", 2, dst_counts, dst_strides, d.element_bytes);
  if (d.batch > 1) {
    require_nonnegative("src_batch_stride", d.src_batch_stride);
    const auto dst_elements = static_cast<int64_t>(dst_matrix / d.element_bytes);
    if (d.dst_batch_stride < dst_elements)
      fail(LOCKSTEP_INVALID_ARGUMENT,
           "dst_batch_stride is {}, but a matrix of dst spans {} elements; give that or more", d.dst_batch_stride,
           dst_elements);
  } else {
    d.src_batch_stride = d.dst_batch_stride = 0;
  }
  const int64_t src_all[] = {d.batch, d.rows, d.cols}, src_all_strides[] = {d.src_batch_stride, d.src_ld, 1};
  const int64_t dst_all[] = {d.batch, d.cols, d.rows}, dst_all_strides[] = {d.dst_batch_stride, d.dst_ld, 1};
  prepared.src_span = span_bytes("src", 3, src_all, src_all_strides, d.element_bytes);
  prepared.dst_span = span_bytes("dst", 3, dst_all, dst_all_strides, d.element_bytes);
  prepared.dst_dense = prepared.dst_span == static_cast<size_t>(total) * d.element_bytes;
  prepared.moved_bytes = 2 * static_cast<size_t>(total) * d.element_bytes;
  prepared.may_alias = transposes_onto_itself(d) &&
                       (d.batch == 1 || (d.src_batch_stride == d.dst_batch_stride &&
                                         d.src_batch_stride >= static_cast<int64_t>(src_matrix / d.element_bytes)));
}

}  // namespace lockstep::lib
