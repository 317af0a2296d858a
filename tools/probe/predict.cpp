// predict.cpp - see predict.hpp.
#include "predict.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace lockstep::probe {

int granules(const addresses& lanes, int bytes, int granule) {
  std::set<uint64_t> touched;
  const auto size = static_cast<uint64_t>(granule);
  for (const uint64_t at : lanes)
    for (uint64_t g = at / size; g <= (at + static_cast<uint64_t>(bytes) - 1) / size; ++g) touched.insert(g);
  return static_cast<int>(touched.size());
}

double efficiency(const addresses& lanes, int bytes, int granule) {
  const int moved = granules(lanes, bytes, granule) * granule;
  return moved == 0 ? 0 : static_cast<double>(lanes.size()) * bytes / moved;
}

int bank_cycles(const addresses& lanes, int bytes) {
  const size_t phases = static_cast<size_t>(std::max(1, bytes / 4)),
               lanes_a_phase = std::max<size_t>(1, lanes.size() / phases);
  int cycles = 0;
  for (size_t first = 0; first < lanes.size(); first += lanes_a_phase) {
    std::array<std::set<uint64_t>, 32> words;  // of each bank
    for (size_t l = first; l < std::min(lanes.size(), first + lanes_a_phase); ++l)
      for (uint64_t w = lanes[l] / 4; w <= (lanes[l] + static_cast<uint64_t>(bytes) - 1) / 4; ++w)
        words[w % 32].insert(w);
    size_t most = 0;
    for (const auto& bank : words) most = std::max(most, bank.size());
    cycles += static_cast<int>(most);
  }
  return cycles;
}

int constant_cycles(const addresses& lanes) {
  std::set<uint64_t> words;
  for (const uint64_t at : lanes) words.insert(at / 4);
  return static_cast<int>(words.size());
}

std::array<int, 8> filter_weights(double fx, double fy, double fz) {
  const auto steps = [](double f) { return static_cast<int>(std::floor(f * 256 + 0.5)); };
  const auto up = [](int product) { return (product + 128) / 256; };    // a half goes up
  const auto down = [](int product) { return (product + 127) / 256; };  // a half goes down
  const int x = steps(fx), y = steps(fy), z = steps(fz);
  std::array<int, 8> w{};
  for (const int slice : {0, 1}) {
    const int all = slice == 1 ? z : 256 - z, right = up(x * all), left = all - right;
    int* of = &w[static_cast<size_t>(4 * slice)];
    of[3] = up(right * y);
    of[1] = right - of[3];
    of[2] = down(left * y);
    of[0] = left - of[2];
  }
  return w;
}

int resident_blocks(const processor_limits& limits, int registers_a_thread, int threads_a_block,
                    int shared_bytes_a_block) {
  const int warps = (threads_a_block + 31) / 32;
  const int registers_a_warp = (registers_a_thread * 32 + 255) / 256 * 256;
  int blocks = std::min(limits.blocks, limits.threads / (warps * 32));
  if (registers_a_warp > 0) {
    // Each of the four partitions hands out its own quarter of the registers.
    const int warps_a_partition = limits.registers / 4 / registers_a_warp;
    blocks = std::min(blocks, warps_a_partition * 4 / warps);
  }
  const int shared = shared_bytes_a_block + limits.shared_reserved;
  if (shared > 0) blocks = std::min(blocks, limits.shared_bytes / shared);
  return blocks;
}

double split_fraction(uint64_t offset, int bytes, int line) {
  int splits = 0, count = 0;
  // Offsets repeat after line accesses at the latest.
  for (uint64_t at = offset; count < line; at += static_cast<uint64_t>(bytes), ++count)
    splits += at / static_cast<uint64_t>(line) != (at + static_cast<uint64_t>(bytes) - 1) / static_cast<uint64_t>(line);
  return static_cast<double>(splits) / count;
}

double line_efficiency(int stride, int bytes, int line) {
  return stride >= line ? static_cast<double>(bytes) / line : static_cast<double>(bytes) / std::max(stride, bytes);
}

}  // namespace lockstep::probe
