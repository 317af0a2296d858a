// shuffle.cpp - warp shuffles over arrays of 32-lane warps: validation.
#include "checked.hpp"
#include "ops.hpp"

namespace lockstep::lib {

void prepare_shuffle(prepared_call& prepared) {
  lockstep_shuffle_desc& d = prepared.call.shuffle;
  if (d.kind < LOCKSTEP_SHUFFLE_IDX || d.kind > LOCKSTEP_SHUFFLE_XOR)
    fail(LOCKSTEP_INVALID_ARGUMENT, "kind is {}; use IDX, UP, DOWN or XOR", static_cast<int>(d.kind));
  if (d.element_bytes != 4 && d.element_bytes != 8)
    fail(LOCKSTEP_INVALID_ARGUMENT, "element_bytes is {}; shuffles move 4 or 8", d.element_bytes);
  require_nonnegative("count", d.count);
  if (d.count % 32 != 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "count is {}, which is not a multiple of 32; pad src by {} elements", d.count,
         32 - d.count % 32);
  if (d.width < 1 || d.width > 32 || (d.width & (d.width - 1)) != 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "width is {}; use 1, 2, 4, 8, 16 or 32", d.width);
  if ((d.kind == LOCKSTEP_SHUFFLE_UP || d.kind == LOCKSTEP_SHUFFLE_DOWN) && d.operand < 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "operand (delta) is {}; give 0 or more, or use the opposite direction", d.operand);
  if (d.kind == LOCKSTEP_SHUFFLE_XOR && (d.operand < 0 || d.operand > 31))
    fail(LOCKSTEP_INVALID_ARGUMENT, "operand (mask) is {}; give 0 to 31", d.operand);
  prepared.element_bytes = prepared.dst_element_bytes = d.element_bytes;
  prepared.may_alias = true;
  prepared.empty = d.count == 0;
  if (prepared.empty) return;
  const int64_t counts[] = {d.count}, strides[] = {1};
  prepared.src_span = prepared.dst_span = span_bytes("src", 1, counts, strides, d.element_bytes);
  prepared.moved_bytes = 2 * prepared.src_span;
}

}  // namespace lockstep::lib
