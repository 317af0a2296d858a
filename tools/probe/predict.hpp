// predict.hpp - the rules that are taught, as pure functions of the addresses that a warp
// reads, so that they are tested without a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace lockstep::probe {

// Byte addresses of the lanes of one request, in lane order.
using addresses = std::vector<uint64_t>;

// How many granules of `granule` bytes (32: sectors, 128: lines) accesses of `bytes`
// bytes each touch.
int granules(const addresses& lanes, int bytes, int granule);
// Bytes read divided by bytes moved, if whole granules are moved. Lanes that read the same
// bytes each count, as in the textbooks (so a broadcast gives more than 1).
double efficiency(const addresses& lanes, int bytes, int granule);

// Cycles of a shared-memory request: the maximum over the banks (32 of 4 bytes) of the
// number of distinct words that lanes of one phase read from that bank. Wide elements are
// served in phases of 128 bytes: half-warps for 8 bytes, quarter-warps for 16.
int bank_cycles(const addresses& lanes, int bytes);

// A constant cache serves one word in each cycle, to all lanes that read it.
int constant_cycles(const addresses& lanes);

// Weights, in 256ths, of the eight cells around a place that a texture filters: cell c is
// the upper one along x, y, z where bit 0, 1, 2 of c is set. fx, fy, fz: fractions of the
// way to it, 0 along an axis that the texture lacks. What an H200 does, found by filtering
// single cells: every weight has 8 bits, and all add up to 256.
std::array<int, 8> filter_weights(double fx, double fy, double fz);

// Blocks that fit an SM. Registers are given out to warps in units of 256.
struct processor_limits {
  int registers, shared_bytes, threads, blocks, shared_reserved;
};
int resident_blocks(const processor_limits& limits, int registers_a_thread, int threads_a_block,
                    int shared_bytes_a_block);

// ---- CPU ------------------------------------------------------------------

// Part of accesses of `bytes` bytes at offset, offset + bytes, ... that cross a
// boundary of `line` bytes.
double split_fraction(uint64_t offset, int bytes, int line);
// Part of each fetched line that is used by elements of `bytes` bytes `stride` apart.
double line_efficiency(int stride, int bytes, int line);

}  // namespace lockstep::probe
