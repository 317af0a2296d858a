// normalize.cpp - rows divided by their norm, spread or sum of exponentials: validation.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "../bits/normalizations.hpp"
#include "checked.hpp"
#include "ops.hpp"

namespace lockstep::lib {
namespace {

bool is_float(lockstep_dtype dtype) { return dtype >= LOCKSTEP_F16 && dtype <= LOCKSTEP_F64; }

void require_types(const lockstep_normalize_desc& d) {
  if (!is_normalization(d.kind))
    fail(LOCKSTEP_INVALID_ARGUMENT,
         "kind is {}; use LOCKSTEP_NORMALIZE_L2, _RMS, _LAYER, _SOFTMAX, _LOG_SOFTMAX, _LOGSUMEXP, _PICKED, "
         "_RMS_BACKWARD or _LAYER_BACKWARD",
         static_cast<int>(d.kind));
  const normalization_kind& kind = kind_of(d.kind);
  if (!is_float(d.dtype))
    fail(LOCKSTEP_INVALID_ARGUMENT, "dtype is {}; lockstep_normalize takes F16, BF16, F32 and F64",
         dtype_text(d.dtype));
  const bool wide = kind.one_result || (kind.exponential && d.given != nullptr);
  if (d.result != d.dtype && (!is_float(d.result) || (d.result == LOCKSTEP_F64 && !wide)))
    fail(LOCKSTEP_INVALID_ARGUMENT, "result is {}; rows of {} become {}F16, BF16 or F32", dtype_text(d.result),
         dtype_text(d.dtype), d.dtype == LOCKSTEP_F64 || wide ? "F64, " : "");
  if (kind.backward && d.result != d.dtype)
    fail(LOCKSTEP_INVALID_ARGUMENT, "result is {}; the gradients of rows of {} are {} too", dtype_text(d.result),
         dtype_text(d.dtype), dtype_text(d.dtype));
  if (d.weight_dtype != d.dtype && d.weight_dtype != LOCKSTEP_F32)
    fail(LOCKSTEP_INVALID_ARGUMENT, "weight_dtype is {}; weight and bias of rows of {} are {}{}",
         dtype_text(d.weight_dtype), dtype_text(d.dtype), dtype_text(d.dtype),
         d.dtype == LOCKSTEP_F32 ? "" : " or F32");
  if (!kind.exponential && (!(d.eps >= 0) || std::isinf(d.eps)))
    fail(LOCKSTEP_INVALID_ARGUMENT, "eps is {}; give a finite number, 0 or more", d.eps);
  if (kind.exponential && (d.scale == 0 || !std::isfinite(d.scale)))
    fail(LOCKSTEP_INVALID_ARGUMENT, "scale is {}; give a finite number other than 0, 1 for {} alone", d.scale,
         kind.name);
  if (kind.exponential && d.kind != LOCKSTEP_NORMALIZE_PICKED && d.weight != nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "weight is {}, but {} has none; set it to NULL", d.weight, kind.name);
  const auto require_none = [&](bool has, const char* name, const void* pointer) {
    if (!has && pointer != nullptr)
      fail(LOCKSTEP_INVALID_ARGUMENT, "{} is {}, but {} has none; set it to NULL", name, pointer, kind.name);
  };
  require_none(!kind.exponential && !kind.backward, "bias", d.bias);
  require_none(!kind.backward, "sum", d.sum);
  require_none(!kind.backward, "given", d.given);
  require_none(kind.backward, "gradient", d.gradient);
  require_none(kind.backward, "weight_gradient", d.weight_gradient);
  require_none(kind.backward, "bias_gradient", d.bias_gradient);
}

// Bytes of count blocks of elements, whose stride is checked: blocks that are written lie apart.
size_t blocks_span(const char* name, const char* stride_name, int64_t count, int64_t block, int64_t& stride,
                   size_t element_bytes, bool written, const char* what) {
  if (count == 1) stride = block;  // it is never read then
  const int64_t least = written ? block : 0;
  if (stride < least) fail(LOCKSTEP_INVALID_ARGUMENT, "{} is {}; give {} or more{}", stride_name, stride, least, what);
  const int64_t counts[] = {count, block}, strides[] = {stride, 1};
  return span_bytes(name, 2, counts, strides, element_bytes);
}
// Bytes of an array of all rows, of which inner lie side by side.
size_t rows_span(const char* name, const char* stride_name, const lockstep_normalize_desc& d, int64_t& stride,
                 size_t element_bytes, bool written) {
  return blocks_span(name, stride_name, d.count / d.inner, d.length * d.inner, stride, element_bytes, written,
                     !written       ? ""
                     : d.inner == 1 ? ", the length of a row"
                                    : ", length * inner");
}
size_t results_span(lockstep_normalize_desc& d, size_t element_bytes) {
  return blocks_span("dst", "dst_stride", d.count, 1, d.dst_stride, element_bytes, true, "");
}

// Afterwards inner is 1 or more.
void require_inner(lockstep_normalize_desc& d, const normalization_kind& kind) {
  require_nonnegative("inner", d.inner);
  d.inner = std::max<int64_t>(d.inner, 1);
  if (d.inner == 1) return;
  if (d.offsets != nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "inner is {}, but segments are contiguous rows; set it to 0", d.inner);
  if (kind.backward)
    fail(LOCKSTEP_INVALID_ARGUMENT, "inner is {}, but {} takes contiguous rows; permute the arrays and set it to 0",
         d.inner, kind.name);
  if (d.count % d.inner != 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "inner is {}, but count is {}; give a count that is a multiple of inner", d.inner,
         d.count);
}

// member: of the description, which has the address.
void add_side(prepared_call& prepared, size_t member, side_array side) {
  if (side.pointer == nullptr) return;
  side.member = offsetof(lockstep_call, normalize) + member;
  prepared.sides[prepared.side_count++] = side;
}

void add_labels(prepared_call& prepared) {
  const lockstep_normalize_desc& d = prepared.call.normalize;
  if (d.labels == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "labels is NULL; PICKED needs count labels, one per row");
  const int64_t rows[] = {d.count}, packed[] = {1};
  add_side(prepared, offsetof(lockstep_normalize_desc, labels),
           {"labels", d.labels, span_bytes("labels", 1, rows, packed, sizeof *d.labels), alignof(int64_t)});
}

// Rows between offsets. What they reach is known once they have been read (call/offsets.cpp).
void prepare_segments(prepared_call& prepared, const normalization_kind& kind) {
  lockstep_normalize_desc& d = prepared.call.normalize;
  if (!kind.exponential)
    fail(LOCKSTEP_INVALID_ARGUMENT, "offsets is {}, but {} has none; set it to NULL",
         static_cast<const void*>(d.offsets), kind.name);
  if (d.residual != nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "residual is {}, but segments have none; set it to NULL", d.residual);
  prepared.empty = d.count == 0;
  if (prepared.empty) return;
  if (!kind.one_result) d.dst_stride = 0;
  d.length = d.src_stride = d.residual_stride = d.sum_stride = 0;
  const int64_t offset_counts[] = {d.count == INT64_MAX ? d.count : d.count + 1}, packed[] = {1};
  prepared.offsets_bytes = span_bytes("offsets", 1, offset_counts, packed, sizeof(int64_t));
  prepared.src_step = 1;
  if (kind.one_result)
    prepared.dst_span = results_span(d, prepared.dst_element_bytes);
  else
    prepared.dst_step = 1;
  prepared.dst_dense = false;
  prepared.may_alias = d.result == d.dtype && !kind.one_result;
  if (d.kind == LOCKSTEP_NORMALIZE_PICKED) add_labels(prepared);
}

}  // namespace

void prepare_normalize(prepared_call& prepared) {
  lockstep_normalize_desc& d = prepared.call.normalize;
  require_types(d);
  if (d.sum != nullptr && d.residual == nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "sum is {} but residual is NULL; give both, or set sum to NULL",
         static_cast<const void*>(d.sum));
  if (d.given != nullptr && d.residual != nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT,
         "residual is {}, but given has the statistics of rows that include it already; add it to src and set it "
         "to NULL",
         d.residual);
  require_nonnegative("count", d.count);
  prepared.element_bytes = lockstep_dtype_bytes(d.dtype);
  prepared.dst_element_bytes = lockstep_dtype_bytes(d.result);
  const normalization_kind& kind = kind_of(d.kind);
  if (kind.exponential) prepared.reads = 4, prepared.needs = format_text("normalize's {}", kind.name);
  if (d.given != nullptr) prepared.reads = 6, prepared.needs = "normalize's given";
  require_inner(d, kind);
  if (d.given != nullptr && d.offsets != nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "given is {}, but segments are whole rows; set it to NULL",
         static_cast<const void*>(d.given));
  if (d.offsets != nullptr) return prepare_segments(prepared, kind);
  require_nonnegative("length", d.length);
  if (kind.one_result && d.length == 0 && d.count != 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "length is 0; {} needs rows of 1 element or more", kind.name);
  if (kind.backward) prepared.reads = 5, prepared.needs = format_text("normalize's {}", kind.name);
  if (d.inner > 1) prepared.reads = 8, prepared.needs = "normalize's inner";
  prepared.empty = d.count == 0 || d.length == 0;
  if (prepared.empty) return;
  if (kind.backward && d.gradient == nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "gradient is NULL; {} needs the gradient of the results, count rows", kind.name);
  const bool picked = d.kind == LOCKSTEP_NORMALIZE_PICKED;
  const size_t bytes = prepared.element_bytes, weight_bytes = lockstep_dtype_bytes(d.weight_dtype);
  const int64_t all[] = {d.count, d.length}, results = kind.one_result ? 1 : d.length;
  const auto total = static_cast<size_t>(product("count * length", 2, all));
  prepared.src_span = rows_span("src", "src_stride", d, d.src_stride, bytes, false);
  prepared.dst_span = kind.one_result
                          ? results_span(d, prepared.dst_element_bytes)
                          : rows_span("dst", "dst_stride", d, d.dst_stride, prepared.dst_element_bytes, true);
  const size_t written = static_cast<size_t>(d.count * results) * prepared.dst_element_bytes;
  prepared.dst_dense = prepared.dst_span == written;
  prepared.may_alias = d.result == d.dtype && d.src_stride == d.dst_stride && !kind.one_result;
  const int64_t one[] = {d.length}, packed[] = {1};
  const bool weighed = !picked && d.weight != nullptr;
  const bool of_columns = weighed || d.bias != nullptr || d.weight_gradient != nullptr || d.bias_gradient != nullptr;
  const size_t per_column = of_columns ? span_bytes("weight", 1, one, packed, weight_bytes) : 0;
  if (picked) {
    add_labels(prepared);
  } else {
    add_side(prepared, offsetof(lockstep_normalize_desc, weight), {"weight", d.weight, per_column, weight_bytes});
  }
  add_side(prepared, offsetof(lockstep_normalize_desc, bias), {"bias", d.bias, per_column, weight_bytes});
  const int64_t pairs[] = {d.count, 2}, of_pairs[] = {2, 1};
  add_side(prepared, offsetof(lockstep_normalize_desc, given),
           {"given", d.given, span_bytes("given", 2, pairs, of_pairs, sizeof *d.given), alignof(double)});
  size_t arrays = 1;
  const int residual = prepared.side_count;
  if (d.residual != nullptr) {
    ++arrays;
    const size_t span = rows_span("residual", "residual_stride", d, d.residual_stride, bytes, false);
    add_side(prepared, offsetof(lockstep_normalize_desc, residual), {"residual", d.residual, span, bytes});
  }
  if (d.sum != nullptr) {
    ++arrays;
    const size_t span = rows_span("sum", "sum_stride", d, d.sum_stride, bytes, true);
    add_side(prepared, offsetof(lockstep_normalize_desc, sum),
             {"sum", d.sum, span, bytes, 0, true, d.sum_stride == d.src_stride,
              d.sum_stride == d.residual_stride ? residual : -1});
  }
  if (kind.backward) {
    ++arrays;
    const size_t span = rows_span("gradient", "gradient_stride", d, d.gradient_stride, bytes, false);
    add_side(prepared, offsetof(lockstep_normalize_desc, gradient), {"gradient", d.gradient, span, bytes});
    add_side(prepared, offsetof(lockstep_normalize_desc, weight_gradient),
             {"weight_gradient", d.weight_gradient, per_column, weight_bytes, 0, true});
    add_side(prepared, offsetof(lockstep_normalize_desc, bias_gradient),
             {"bias_gradient", d.bias_gradient, per_column, weight_bytes, 0, true});
  }
  if (total > SIZE_MAX / 2 / (arrays * bytes + prepared.dst_element_bytes))
    fail(LOCKSTEP_INVALID_ARGUMENT, "count * length is {} elements, more than can be moved; use smaller sizes", total);
  prepared.moved_bytes = total * arrays * bytes + written + per_column * weighed + per_column * (d.bias != nullptr) +
                         per_column * (d.weight_gradient != nullptr) + per_column * (d.bias_gradient != nullptr);
}

}  // namespace lockstep::lib
