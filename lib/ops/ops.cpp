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

lockstep_status lockstep_transpose(lockstep_context* context, const lockstep_transpose_desc* desc, const void* src,
                                   void* dst, const lockstep_options* options) {
  return run(context, LOCKSTEP_TRANSPOSE, desc, src, dst, options);
}
lockstep_status lockstep_plan_transpose(lockstep_context* context, const lockstep_transpose_desc* desc,
                                        const lockstep_options* options, lockstep_plan** plan) {
  return plan_of(context, LOCKSTEP_TRANSPOSE, desc, options, plan);
}
lockstep_status lockstep_permute(lockstep_context* context, const lockstep_permute_desc* desc, const void* src,
                                 void* dst, const lockstep_options* options) {
  return run(context, LOCKSTEP_PERMUTE, desc, src, dst, options);
}
lockstep_status lockstep_plan_permute(lockstep_context* context, const lockstep_permute_desc* desc,
                                      const lockstep_options* options, lockstep_plan** plan) {
  return plan_of(context, LOCKSTEP_PERMUTE, desc, options, plan);
}
lockstep_status lockstep_square_sum(lockstep_context* context, const lockstep_reduce_desc* desc, const void* src,
                                    void* dst, const lockstep_options* options) {
  return run(context, LOCKSTEP_SQUARE_SUM, desc, src, dst, options);
}
lockstep_status lockstep_plan_square_sum(lockstep_context* context, const lockstep_reduce_desc* desc,
                                         const lockstep_options* options, lockstep_plan** plan) {
  return plan_of(context, LOCKSTEP_SQUARE_SUM, desc, options, plan);
}
lockstep_status lockstep_reduce(lockstep_context* context, const lockstep_reduce_desc* desc, const void* src, void* dst,
                                const lockstep_options* options) {
  return run(context, LOCKSTEP_REDUCE, desc, src, dst, options);
}
lockstep_status lockstep_plan_reduce(lockstep_context* context, const lockstep_reduce_desc* desc,
                                     const lockstep_options* options, lockstep_plan** plan) {
  return plan_of(context, LOCKSTEP_REDUCE, desc, options, plan);
}
lockstep_status lockstep_stencil(lockstep_context* context, const lockstep_stencil_desc* desc, const void* src,
                                 void* dst, const lockstep_options* options) {
  return run(context, LOCKSTEP_STENCIL, desc, src, dst, options);
}
lockstep_status lockstep_plan_stencil(lockstep_context* context, const lockstep_stencil_desc* desc,
                                      const lockstep_options* options, lockstep_plan** plan) {
  return plan_of(context, LOCKSTEP_STENCIL, desc, options, plan);
}
lockstep_status lockstep_shuffle(lockstep_context* context, const lockstep_shuffle_desc* desc, const void* src,
                                 void* dst, const lockstep_options* options) {
  return run(context, LOCKSTEP_SHUFFLE, desc, src, dst, options);
}
lockstep_status lockstep_plan_shuffle(lockstep_context* context, const lockstep_shuffle_desc* desc,
                                      const lockstep_options* options, lockstep_plan** plan) {
  return plan_of(context, LOCKSTEP_SHUFFLE, desc, options, plan);
}
lockstep_status lockstep_normalize(lockstep_context* context, const lockstep_normalize_desc* desc, const void* src,
                                   void* dst, const lockstep_options* options) {
  return run(context, LOCKSTEP_NORMALIZE, desc, src, dst, options);
}
lockstep_status lockstep_plan_normalize(lockstep_context* context, const lockstep_normalize_desc* desc,
                                        const lockstep_options* options, lockstep_plan** plan) {
  return plan_of(context, LOCKSTEP_NORMALIZE, desc, options, plan);
}
lockstep_status lockstep_scan(lockstep_context* context, const lockstep_scan_desc* desc, const void* src, void* dst,
                              const lockstep_options* options) {
  return run(context, LOCKSTEP_SCAN, desc, src, dst, options);
}
lockstep_status lockstep_plan_scan(lockstep_context* context, const lockstep_scan_desc* desc,
                                   const lockstep_options* options, lockstep_plan** plan) {
  return plan_of(context, LOCKSTEP_SCAN, desc, options, plan);
}
lockstep_status lockstep_sums(lockstep_context* context, const lockstep_sums_desc* desc, const void* src, void* dst,
                              const lockstep_options* options) {
  return run(context, LOCKSTEP_SUMS, desc, src, dst, options);
}
lockstep_status lockstep_digest(lockstep_context* context, lockstep_dtype dtype, int64_t n, const void* src,
                                uint64_t digest[2]) {
  if (digest == nullptr)
    return guarded([] { fail(LOCKSTEP_INVALID_ARGUMENT, "digest is NULL; pass the address of two uint64_t"); });
  const lockstep_sums_desc desc = lockstep_sums_full(LOCKSTEP_SUMS_DIGEST, dtype, n, nullptr);
  return run(context, LOCKSTEP_SUMS, &desc, src, digest, nullptr);
}
lockstep_status lockstep_plan_sums(lockstep_context* context, const lockstep_sums_desc* desc,
                                   const lockstep_options* options, lockstep_plan** plan) {
  return plan_of(context, LOCKSTEP_SUMS, desc, options, plan);
}
lockstep_status lockstep_reduce_axes(lockstep_context* context, const lockstep_reduce_axes_desc* desc, const void* src,
                                     void* dst, const lockstep_options* options) {
  return run(context, LOCKSTEP_REDUCE_AXES, desc, src, dst, options);
}
lockstep_status lockstep_plan_reduce_axes(lockstep_context* context, const lockstep_reduce_axes_desc* desc,
                                          const lockstep_options* options, lockstep_plan** plan) {
  return plan_of(context, LOCKSTEP_REDUCE_AXES, desc, options, plan);
}
lockstep_status lockstep_convert(lockstep_context* context, const lockstep_convert_desc* desc, const void* src,
                                 void* dst, const lockstep_options* options) {
  return run(context, LOCKSTEP_CONVERT, desc, src, dst, options);
}
lockstep_status lockstep_plan_convert(lockstep_context* context, const lockstep_convert_desc* desc,
                                      const lockstep_options* options, lockstep_plan** plan) {
  return plan_of(context, LOCKSTEP_CONVERT, desc, options, plan);
}
lockstep_status lockstep_map(lockstep_context* context, const lockstep_map_desc* desc, const void* src, void* dst,
                             const lockstep_options* options) {
  return run(context, LOCKSTEP_MAP, desc, src, dst, options);
}
lockstep_status lockstep_plan_map(lockstep_context* context, const lockstep_map_desc* desc,
                                  const lockstep_options* options, lockstep_plan** plan) {
  return plan_of(context, LOCKSTEP_MAP, desc, options, plan);
}
}
