// classes.cpp - the classes of calls that share a tuned choice (remembered.hpp): the op, its kinds and types, each size
// to a power of two, and how the data lies.
#include "axis_list.hpp"
#include "ops.hpp"
#include "sequences.hpp"

namespace lockstep::lib {
namespace {

constexpr lockstep_dtype bits{};  // moved, never computed with

// "2^8": at least 256, less than 512.
std::string about(int64_t n) {
  return n <= 0 ? "0" : format_text("2^{}", 63 - __builtin_clzll(static_cast<uint64_t>(n)));
}

template <class Sizes>
std::string about(int axes, const Sizes& sizes) {
  std::string text;
  for (int k = 0; k < axes; ++k) text += format_text("{}{}", k == 0 ? "" : "x", about(sizes[k]));
  return text;
}

// Whether rows of so many elements begin at cache lines where the array does.
const char* lines(int64_t elements, size_t element_bytes) {
  return static_cast<uint64_t>(elements) * element_bytes % 64 == 0 ? "lines" : "ragged";
}

// The types, sizes and layout of sequences. The lengths of segments are not part of the class, because a plan does not
// read offsets.
template <class Desc>
std::string of_sequences(const Desc& d) {
  const bool segments = d.offsets != nullptr, contiguous = d.element_stride == 1;
  const char* layout = contiguous ? "rows" : d.sequence_stride == 1 ? "columns" : "strided";
  if (segments) layout = contiguous ? "segments" : "strided segments";
  return format_text("{} {} {} of {} {}", dtype_text(d.dtype), dtype_text(d.result), about(d.count),
                     about(segments ? 0 : d.length), layout);
}

}  // namespace

call_class classify_transpose(const prepared_call& prepared) {
  const lockstep_transpose_desc& d = prepared.call.transpose;
  const bool packed = d.src_ld == d.cols && d.dst_ld == d.rows;
  return {format_text("b{} {}x{} {} {} {} batch {}", d.element_bytes, about(d.rows), about(d.cols),
                      packed ? "packed" : "pitched", lines(d.src_ld, d.element_bytes), lines(d.dst_ld, d.element_bytes),
                      about(d.batch)),
          bits};
}

call_class classify_permute(const prepared_call& prepared) {
  const lockstep_permute_desc& d = prepared.call.permute;
  std::string axes;
  bool packed = true;
  int64_t src = 1, dst = 1;
  for (int k = d.rank - 1; k >= 0; --k) {
    const int64_t in_dst = d.shape[d.perm[k]];
    axes.insert(0, format_text("{}", d.perm[k]));
    packed = packed && (d.shape[k] == 1 || d.src_strides[k] == src) && (in_dst == 1 || d.dst_strides[k] == dst);
    src = saturated_product(src, d.shape[k]), dst = saturated_product(dst, in_dst);
  }
  return {
      format_text("b{} {} to {} {} {} {}", d.element_bytes, about(d.rank, d.shape), axes, packed ? "packed" : "strided",
                  lines(d.shape[d.rank - 1], d.element_bytes), lines(d.shape[d.perm[d.rank - 1]], d.element_bytes)),
      bits};
}

call_class classify_reduce(const prepared_call& prepared) {
  const lockstep_reduce_desc& d = prepared.call.reduce;
  return {format_text("{} {}", reduction_text(d.reduction), of_sequences(d)), d.dtype};
}

call_class classify_scan(const prepared_call& prepared) {
  const lockstep_scan_desc& d = prepared.call.scan;
  return {format_text("{}{} {}", d.exclusive != 0 ? "exclusive " : "", reduction_text(d.reduction), of_sequences(d)),
          d.dtype};
}

call_class classify_sums(const prepared_call& prepared) {
  const lockstep_sums_desc& d = prepared.call.sums;
  return {format_text("kind {} {}", static_cast<int>(d.kind), of_sequences(d)), d.dtype};
}

call_class classify_normalize(const prepared_call& prepared) {
  const lockstep_normalize_desc& d = prepared.call.normalize;
  std::string sides;
  for (int i = 0; i < prepared.side_count; ++i) sides += format_text(" {}", prepared.sides[i].name);
  return {format_text("kind {} {} {} {} of {} {} {}{}", static_cast<int>(d.kind), dtype_text(d.dtype),
                      dtype_text(d.result), about(d.count), about(d.length),
                      d.offsets != nullptr                                   ? "segments"
                      : d.inner > 1                                          ? "along " + about(d.inner)
                      : d.src_stride == d.length && d.dst_stride == d.length ? "packed"
                                                                             : "pitched",
                      lines(d.src_stride, prepared.element_bytes), sides),
          d.dtype};
}

call_class classify_reduce_axes(const prepared_call& prepared) {
  const lockstep_reduce_axes_desc& d = prepared.call.reduce_axes;
  std::string axes;
  for (int k = 0; k < d.axis_count; ++k) axes += format_text("{}", d.axes[k]);
  bool packed = true;
  int64_t stride = 1;
  for (int k = d.rank - 1; k >= 0; --k) {
    packed = packed && (d.shape[k] == 1 || d.src_strides[k] == stride);
    stride = saturated_product(stride, d.shape[k]);
  }
  return {format_text("{} {} {} {} over {} {}", reduction_text(d.reduction), dtype_text(d.dtype), dtype_text(d.result),
                      about(d.rank, d.shape), axes, packed ? "packed" : "strided"),
          d.dtype};
}

call_class classify_convert(const prepared_call& prepared) {
  const lockstep_convert_desc& d = prepared.call.convert;
  // dst's axes by their places in src, its fastest first.
  std::string order;
  bool packed = true;
  int64_t stride = 1;
  for (int k = d.rank - 1; k >= 0; --k) {
    int slower = 0;
    for (int l = 0; l < d.rank; ++l) slower += d.src_strides[l] < d.src_strides[k] ? 1 : 0;
    order += format_text("{}", slower);
    packed = packed && (d.shape[k] == 1 || d.dst_strides[k] == stride);
    stride = saturated_product(stride, d.shape[k]);
  }
  return {format_text("{} {}{} {} from {} {} {}", dtype_text(d.dtype), dtype_text(d.result),
                      d.scale == 1 ? "" : " scaled", about(d.rank, d.shape), order, packed ? "packed" : "strided",
                      lines(d.shape[d.rank - 1], prepared.dst_element_bytes)),
          d.dtype};
}

call_class classify_map(const prepared_call& prepared) {
  call_class as_convert = classify_convert(prepared);
  const lockstep_map_desc& d = prepared.call.map;
  as_convert.text =
      format_text("{}{} {}", lockstep_function_name(d.function), d.times != nullptr ? " times" : "", as_convert.text);
  return as_convert;
}

call_class classify_stencil(const prepared_call& prepared) {
  const lockstep_stencil_desc& d = prepared.call.stencil;
  return {format_text("{} radius {} boundary {} {} sweeps {} batch {}", dtype_text(d.dtype), d.radius,
                      static_cast<int>(d.boundary), about(d.rank, d.shape), about(d.sweeps), about(d.batch)),
          d.dtype};
}

call_class classify_shuffle(const prepared_call& prepared) {
  const lockstep_shuffle_desc& d = prepared.call.shuffle;
  return {format_text("b{} kind {} width {} {}", d.element_bytes, static_cast<int>(d.kind), d.width, about(d.count)),
          bits};
}

}  // namespace lockstep::lib
