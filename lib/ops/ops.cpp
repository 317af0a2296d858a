// ops.cpp - the table of ops, and the public calls: each takes its row's way.
#include "ops.hpp"

#include <cstddef>
#include <cstring>

#include "../call/slabs.hpp"

namespace lockstep::lib {
template <>
inline constexpr std::array known_sizes<lockstep_normalize_desc> = {offsetof(lockstep_normalize_desc, offsets),
                                                                    sizeof(lockstep_normalize_desc)};
template <>
inline constexpr std::array known_sizes<lockstep_map_desc> = {offsetof(lockstep_map_desc, times),
                                                              sizeof(lockstep_map_desc)};
template <>
inline constexpr std::array known_sizes<lockstep_scan_desc> = {offsetof(lockstep_scan_desc, first),
                                                               sizeof(lockstep_scan_desc)};
namespace {

#define LOCKSTEP_DESCRIPTION(op) "lockstep_" #op "_desc", known_sizes<lockstep_##op##_desc>

// By lockstep_op.
constexpr std::array rows = {
    op_row{"transpose", LOCKSTEP_DESCRIPTION(transpose), prepare_transpose, cut_transpose, classify_transpose,
           weigh_transpose, why_not_in_place},
    op_row{"permute", LOCKSTEP_DESCRIPTION(permute), prepare_permute, cut_permute, classify_permute, weigh_permute},
    op_row{"square_sum", LOCKSTEP_DESCRIPTION(reduce), prepare_reduce, nullptr, classify_reduce, weigh_reduce},
    op_row{"reduce", LOCKSTEP_DESCRIPTION(reduce), prepare_reduce, nullptr, classify_reduce, weigh_reduce},
    op_row{"stencil", LOCKSTEP_DESCRIPTION(stencil), prepare_stencil, cut_stencil, classify_stencil, weigh_stencil},
    op_row{"shuffle", LOCKSTEP_DESCRIPTION(shuffle), prepare_shuffle, cut_shuffle, classify_shuffle, weigh_shuffle},
    op_row{"normalize", LOCKSTEP_DESCRIPTION(normalize), prepare_normalize, nullptr, classify_normalize},
    op_row{"scan", LOCKSTEP_DESCRIPTION(scan), prepare_scan, nullptr, classify_scan},
    op_row{"sums", LOCKSTEP_DESCRIPTION(sums), prepare_sums, nullptr, classify_sums},
    op_row{"reduce_axes", LOCKSTEP_DESCRIPTION(reduce_axes), prepare_reduce_axes, nullptr, classify_reduce_axes},
    op_row{"convert", LOCKSTEP_DESCRIPTION(convert), prepare_convert, nullptr, classify_convert},
    op_row{"map", LOCKSTEP_DESCRIPTION(map), prepare_map, nullptr, classify_map},
};
#undef LOCKSTEP_DESCRIPTION
static_assert(rows.size() == LOCKSTEP_OP_COUNT);

lockstep_status plan_of(lockstep_context* context, lockstep_op op, const void* desc, const lockstep_options* options,
                        lockstep_plan** plan) {
  return guarded([&] { make_plan(context, prepare(op, desc), options, plan); });
}

}  // namespace

prepared_call prepare(lockstep_op op, const void* desc) {
  const op_row& row = row_of(op);
  if (desc == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "desc is NULL; pass the address of a {}", row.description);
  size_t size = 0;
  std::memcpy(&size, desc, sizeof size);  // the first member of each
  require_size(size, row.sizes, "desc", row.description);
  prepared_call prepared;
  prepared.call.op = op;
  void* const ours = &prepared.call.transpose;  // where each member of the union lies
  std::memset(ours, 0, row.sizes.back());
  std::memcpy(ours, desc, size);
  std::memcpy(ours, &row.sizes.back(), sizeof size);
  row.prepare(prepared);
  return prepared;
}

const op_row& row_of(lockstep_op op) {
  if (static_cast<size_t>(op) >= rows.size())
    fail(LOCKSTEP_INVALID_ARGUMENT, "op is {}; use a lockstep_op, 0 to {}", static_cast<int>(op), rows.size() - 1);
  return rows[static_cast<size_t>(op)];
}

}  // namespace lockstep::lib

using namespace lockstep::lib;
extern "C" {
const char* lockstep_op_name(lockstep_op op) {
  return static_cast<size_t>(op) < rows.size() ? rows[static_cast<size_t>(op)].name : nullptr;
}

lockstep_status lockstep_execute(lockstep_context* context, lockstep_op op, const void* desc, const void* src,
                                 void* dst, const lockstep_options* options) {
  return run(context, op, desc, src, dst, options);
}
lockstep_status lockstep_plan_create(lockstep_context* context, lockstep_op op, const void* desc,
                                     const lockstep_options* options, lockstep_plan** plan) {
  return plan_of(context, op, desc, options, plan);
}

// lockstep_transpose and lockstep_plan_transpose, and so on.
#define LOCKSTEP_FUNCTIONS(name, op, described)                                                                        \
  lockstep_status lockstep_##name(lockstep_context* context, const lockstep_##described##_desc* desc, const void* src, \
                                  void* dst, const lockstep_options* options) {                                        \
    return run(context, LOCKSTEP_##op, desc, src, dst, options);                                                       \
  }                                                                                                                    \
  lockstep_status lockstep_plan_##name(lockstep_context* context, const lockstep_##described##_desc* desc,             \
                                       const lockstep_options* options, lockstep_plan** plan) {                        \
    return plan_of(context, LOCKSTEP_##op, desc, options, plan);                                                       \
  }
LOCKSTEP_FUNCTIONS(transpose, TRANSPOSE, transpose)
LOCKSTEP_FUNCTIONS(permute, PERMUTE, permute)
LOCKSTEP_FUNCTIONS(square_sum, SQUARE_SUM, reduce)
LOCKSTEP_FUNCTIONS(reduce, REDUCE, reduce)
LOCKSTEP_FUNCTIONS(stencil, STENCIL, stencil)
LOCKSTEP_FUNCTIONS(shuffle, SHUFFLE, shuffle)
LOCKSTEP_FUNCTIONS(normalize, NORMALIZE, normalize)
LOCKSTEP_FUNCTIONS(scan, SCAN, scan)
LOCKSTEP_FUNCTIONS(sums, SUMS, sums)
LOCKSTEP_FUNCTIONS(reduce_axes, REDUCE_AXES, reduce_axes)
LOCKSTEP_FUNCTIONS(convert, CONVERT, convert)
LOCKSTEP_FUNCTIONS(map, MAP, map)
#undef LOCKSTEP_FUNCTIONS

lockstep_status lockstep_digest(lockstep_context* context, lockstep_dtype dtype, int64_t n, const void* src,
                                uint64_t digest[2]) {
  if (digest == nullptr)
    return guarded([] { fail(LOCKSTEP_INVALID_ARGUMENT, "digest is NULL; pass the address of two uint64_t"); });
  const lockstep_sums_desc desc = lockstep_sums_full(LOCKSTEP_SUMS_DIGEST, dtype, n, nullptr);
  return run(context, LOCKSTEP_SUMS, &desc, src, digest, nullptr);
}
}
