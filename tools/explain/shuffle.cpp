// shuffle.cpp - replays of backends/cuda/shuffle/shuffle.cu (D1 to D4).
#include "index/shuffle.hpp"

#include "bits/order.hpp"
#include "lessons.hpp"
#include "rules.hpp"
#include "text.hpp"

namespace lockstep::tool::explain {
namespace {

using order::shuffle;

struct exchange {
  shuffle kind;
  std::string says;
  double kept;  // lanes that keep their own value, by the CUDA C++ Programming Guide; negative: depends
};

exchange exchange_of(const settings& s) {
  const int segments = s.warp / s.width, delta = std::min(s.operand, s.width);
  const std::string within = s.width < s.warp ? format_text(", each {} lanes for themselves", s.width) : "";
  const std::string kept = delta == 1 ? "keeps its own" : format_text("{} keep their own", delta);
  if (s.kind == "idx")
    return {shuffle::idx, format_text("all receive from lane {}{}: a broadcast", s.operand & (s.width - 1), within),
            1.0 * segments};
  if (s.kind == "up")
    return {shuffle::up, format_text("lane i receives from i - {}{}; the lowest {}", s.operand, within, kept),
            1.0 * segments * delta};
  if (s.kind == "down")
    return {shuffle::down, format_text("lane i receives from i + {}{}; the highest {}", s.operand, within, kept),
            1.0 * segments * delta};
  return {shuffle::exclusive_or, format_text("lane i receives from i ^ {}{}: pairs change places", s.operand, within),
          s.operand == 0        ? s.warp
          : s.operand < s.width ? 0.0
                                : -1.0};
}

template <bool through_shared>
trace replay(settings& s) {
  if (s.element_bytes == 0) s.element_bytes = 4;
  if (s.element_bytes != 4 && s.element_bytes != 8)
    refuse_value("--element-bytes", s.element_bytes, "shuffles take 4 or 8");
  const int groups = through_shared ? 1 : 4;  // in flight a warp
  if (s.width == 0) s.width = s.warp;
  require_power_of_two("--width", s.width);
  require_range("--width", s.width, 1, s.warp);
  if (s.kind != "idx") require_range("--operand", s.operand, 0, 31);
  if (s.block == 0) s.block = 4 * s.warp;
  require_range("--block", s.block, s.warp, 1024);
  if (s.block % s.warp != 0) refuse_value("--block", s.block, "must be whole warps");
  const int warps = s.block / s.warp;
  if (s.n == 0) s.n = int64_t{s.block} * groups;
  require_range("--n", s.n, 1, 1 << 20);
  if (s.n % s.warp != 0) refuse_value("--n", s.n, "a shuffle takes whole warps: give a multiple of --warp");
  const int64_t all = s.n / s.warp, blocks = (all + warps * groups - 1) / (warps * groups);
  const exchange how = exchange_of(s);

  trace t;
  t.chip = {s.warp, s.segment * s.element_bytes, s.banks};
  const machine chip = t.chip;
  const int warp = s.warp, bytes = s.element_bytes;
  const auto whole = [=](const request&) { return coalesced(warp, bytes, chip); };
  const std::string neighbours = format_text("lanes on neighbours: {} x {} bytes fill {:.0f} x {} bytes", warp, bytes,
                                             coalesced(warp, bytes, chip), chip.segment_bytes);
  const int64_t columns = std::max(s.warp, 4);
  t.arrays = {{"src", space::global, bytes, s.n, columns},
              {"dst", space::global, bytes, s.n, columns},
              {"lane", space::lanes, bytes, s.warp, s.warp},
              {"held", space::shared, bytes, s.block, std::max(1, s.banks * 4 / bytes)}};
  t.places = {{site::read_src, 0, false, neighbours, whole}};
  if constexpr (through_shared) {
    const auto once = [](const request&) { return 1.0; };
    t.places.push_back({site::write_tile, 3, true, "a word a lane, all banks once", once});
    t.places.push_back(
        {site::read_tile, 3, false, how.says + ": one word for several lanes is one wavefront too", once});
  } else {
    t.places.push_back({site::exchange, 2, false, how.says, [kept = how.kept](const request&) { return kept; }});
  }
  t.places.push_back({site::write_dst, 1, true, neighbours, whole});
  if (!through_shared)
    t.notes = {"Four groups are loaded before the first is exchanged: the exchange itself touches no memory."};
  t.start({through_shared ? "shuffle_shared" : "shuffle_shfl", static_cast<int>(blocks), s.block, 1});
  for (int64_t block = 0; block < blocks; ++block)
    for (int thread = 0; thread < s.block; ++thread) {
      t.thread(static_cast<int>(block), thread);
      const int lane = thread % s.warp, source = order::source_lane(how.kind, lane, s.width, s.operand);
      const int64_t first = cuda::first_group(block, warps, groups, static_cast<unsigned>(thread), s.warp);
      const int64_t own = thread - lane;
      const int64_t own_element = cuda::group_element(first, lane, s.warp);
      const auto give = [&](int g, int64_t offset) {
        if constexpr (through_shared)
          t.access(site::write_tile, g, own + lane), t.access(site::read_tile, g, own + source);
        else
          t.access(site::exchange, g, source);
        t.access(site::write_dst, g, own_element + offset);
      };
      if (cuda::has_all(first, groups, all)) {
        cuda::walk_groups(groups, s.warp,
                          [&](int g, int offset) { t.access(site::read_src, g, own_element + offset); });
        cuda::walk_groups(groups, s.warp, give);
      } else {
        int g = 0;
        cuda::walk_last_groups(first, all, s.warp, [&](int64_t offset) {
          t.access(site::read_src, g, own_element + offset);
          give(g++, offset);
        });
      }
    }
  return t;
}

}  // namespace

const std::vector<lesson>& shuffle_lessons() {
  static const std::vector<lesson> all = {
      {"shuffle", "shfl", "D1-D4",
       "The lanes of a warp hand each other register values: --kind idx, up, down or xor, within segments of --width "
       "lanes. No shared memory, no barrier.",
       replay<false>},
      {"shuffle", "shared", "E11",
       "The same exchange through shared memory: a store, a fence and a load for what a shuffle does in one "
       "instruction.",
       replay<true>},
  };
  return all;
}

}  // namespace lockstep::tool::explain
