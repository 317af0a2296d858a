// convert.cpp - dst = src * scale as another type, or a function of src, axes in any order: validation.
#include <algorithm>
#include <cstddef>

#include "../bits/functions.hpp"
#include "checked.hpp"
#include "ops.hpp"

namespace lockstep::lib {
namespace {

void require_type(const char* name, lockstep_dtype dtype) {
  if (lockstep_dtype_bytes(dtype) == 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "{} is {}; convert takes every lockstep_dtype, 1 to 13", name, dtype_text(dtype));
}

void require_narrow_float(const char* name, lockstep_dtype dtype) {
  if (dtype == LOCKSTEP_F64)
    fail(LOCKSTEP_UNSUPPORTED, "{} is F64; map takes F16, BF16 and F32, whose results it rounds correctly", name);
  if (lockstep_dtype_kind(dtype) != 'f')
    fail(LOCKSTEP_INVALID_ARGUMENT, "{} is {}; map takes F16, BF16 and F32", name, dtype_text(dtype));
}

// The axes of convert and of map, whose descriptions begin alike.
void prepare_axes(prepared_call& prepared) {
  lockstep_convert_desc& d = prepared.call.convert;
  if (d.rank < 1 || d.rank > LOCKSTEP_MAX_RANK)
    fail(LOCKSTEP_INVALID_ARGUMENT, "rank is {}; use 1 to {}", d.rank, LOCKSTEP_MAX_RANK);
  for (int k = 0; k < d.rank; ++k) {
    if (d.shape[k] < 0) fail(LOCKSTEP_INVALID_ARGUMENT, "shape[{}] is {}; give 0 or more", k, d.shape[k]);
    prepared.empty = prepared.empty || d.shape[k] == 0;
  }
  prepared.element_bytes = lockstep_dtype_bytes(d.dtype);
  prepared.dst_element_bytes = lockstep_dtype_bytes(d.result);
  if (prepared.empty) return;
  prepare_move(prepared, d.rank, d.shape, d.src_strides, d.shape, d.dst_strides);
}

}  // namespace

void prepare_convert(prepared_call& prepared) {
  require_type("dtype", prepared.call.convert.dtype);
  require_type("result", prepared.call.convert.result);
  prepare_axes(prepared);
}

void prepare_map(prepared_call& prepared) {
  const lockstep_map_desc& d = prepared.call.map;
  if (lockstep_function_name(d.function) == nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "function is {}; use a lockstep_function, 0 to {}", static_cast<int>(d.function),
         LOCKSTEP_FUNCTION_COUNT - 1);
  require_narrow_float("dtype", d.dtype);
  require_narrow_float("result", d.result);
  prepare_axes(prepared);
  prepared.may_alias = d.dtype == d.result && std::equal(d.src_strides, d.src_strides + d.rank, d.dst_strides);
  if (d.times == nullptr) return;
  prepared.reads = 4, prepared.needs = "map's times";
  if (prepared.empty) return;
  prepared.sides[0] = {"times", d.times, prepared.src_span, prepared.element_bytes,
                       offsetof(lockstep_call, map) + offsetof(lockstep_map_desc, times)};
  prepared.side_count = 1;
  prepared.moved_bytes +=
      prepared.moved_bytes / (prepared.element_bytes + prepared.dst_element_bytes) * prepared.element_bytes;
}

}  // namespace lockstep::lib

static_assert(lockstep::functions::softplus == int{LOCKSTEP_MAP_SOFTPLUS} &&
              lockstep::functions::count == int{LOCKSTEP_FUNCTION_COUNT});
extern "C" const char* lockstep_function_name(lockstep_function function) {
  using namespace lockstep::functions;
  return static_cast<size_t>(function) < count ? names[function] : nullptr;
}
