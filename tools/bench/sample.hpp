// sample.hpp - random shapes of typical use, drawn by seed. Tuning for a fixed table can miss other shapes; a new draw
// shows how those perform.
//
// Sizes are log-uniform between bounds; three in ten are rounded to a power of two, three to a multiple of 8, four are
// left as they are. Whole arrays hold 64 Ki elements (reductions 8 Ki) to 128 Mi, on the CPU to 32 Mi.
//   22 %  transposes: sides of 3 to 30,000, six in ten single, else batches of 2 to 4,096
//   12 %  attention: batch, tokens, heads, depth in four orders
//   10 %  images: NCHW to NHWC and back
//   11 %  any permutation of rank 3 to 6
//   30 %  sums, squares, norms, maxima and their places: of one sequence, of rows, of columns
//   15 %  stencils, symmetric, nearest: rank 1 to 3, radius 1 to 8, one or four sweeps
// An attention or image shape that is too large or too small is replaced by a new draw of any kind.
//
// A second distribution draws the ops that came later, so that the samples of the first keep their shapes:
//   24 %  normalize: 1 to 64 Ki rows of 64 to 16,384; RMS with weights, layer with weights and bias, L2 plain
//   20 %  scan: sums and maxima of one sequence, of rows, of columns
//   18 %  sums: dot products, means and variances, squared distances, 1-norms, likewise
//   14 %  reduce_axes: one or two axes of an array of rank 3 or 4
//   14 %  convert: f32 to and from f16 and bf16: plain, a transpose, attention, images
//   10 %  groups: 10 to 2,000 small arrays: norms, transposes, rows to normalize
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::tool::bench {

constexpr int64_t most_on_cpu = int64_t{1} << 25, most_on_device = int64_t{1} << 27;

enum class sampled_ops { old_ones, new_ones };

// Draw number `draw` of a seed as a case's name (tests/cases). The same on every platform, and each draw by itself, so
// that a sample may be run in parts.
std::string drawn_case(uint64_t seed, uint64_t draw, int64_t most_elements, sampled_ops of = sampled_ops::old_ones);
// The draws from first up to, not including, count, without repeated shapes.
std::vector<std::string> drawn_cases(uint64_t seed, int64_t first, int64_t count, int64_t most_elements,
                                     sampled_ops of = sampled_ops::old_ones);

}  // namespace lockstep::tool::bench
