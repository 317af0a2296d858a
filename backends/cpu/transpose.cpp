// transpose.cpp
#include "ops.hpp"
#include "parallel.hpp"
#include "tiles.hpp"

namespace lockstep::cpu {
namespace {

const char* refuses_in_place(const lockstep_queue*, const lockstep_call* call) {
  return call->src == call->dst ? "does not transpose in place" : nullptr;
}

lockstep_status launch_tiled(lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_transpose_desc& d = call->transpose;
  const auto bytes = static_cast<int64_t>(d.element_bytes);
  tiles t;
  t.log2_bytes = log2_of(d.element_bytes);
  t.rows = d.rows;
  t.cols = d.cols;
  t.src_ld = d.src_ld * bytes;
  t.dst_ld = d.dst_ld * bytes;
  t.axes = 1;
  t.outer[0] = {d.batch, d.src_batch_stride * bytes, d.dst_batch_stride * bytes};
  run_tiles(*queue, t, static_cast<const char*>(call->src), static_cast<char*>(call->dst));
  return LOCKSTEP_OK;
}

const lockstep_variant rows[] = {
    {"tiled", "SIMD register tiles, strips walked along the columns, stores around the cache where it pays", 0,
     refuses_in_place, nullptr, nullptr, launch_tiled},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_transpose},
};
}
const lockstep_table transpose_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
