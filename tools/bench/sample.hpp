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
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::tool::bench {

constexpr int64_t most_on_cpu = int64_t{1} << 25, most_on_device = int64_t{1} << 27;

// Draw number `draw` of a seed as a case's name (tests/cases). The same on every platform, and each draw by itself, so
// that a sample may be run in parts.
std::string drawn_case(uint64_t seed, uint64_t draw, int64_t most_elements);
// The draws from first up to, not including, count, without repeated shapes.
std::vector<std::string> drawn_cases(uint64_t seed, int64_t first, int64_t count, int64_t most_elements);

}  // namespace lockstep::tool::bench
