// shared.cpp - rows about shared memory and exchange within a block: E2, E3, E11, E12.
#include "../patterns.hpp"
#include "../predict.hpp"
#include "../probe.hpp"

namespace lockstep::tool::probe {
namespace {
using namespace lockstep::probe;

addresses lanes_of(pattern kind, uint32_t value, int bytes) {
  addresses lanes;
  for (uint32_t lane = 0; lane < 32; ++lane) lanes.push_back(uint64_t{lane_word(kind, value, lane)} * static_cast<uint64_t>(bytes));
  return lanes;
}

void e3(row& out, const readings& all) {
  out.taught = "32 banks of 4 bytes, next words in next banks. A request takes as many cycles as the most distinct words that its "
               "lanes want of one bank; lanes that want the same word get it at once.";
  out.lesson = "Odd strides are free, a stride of 32 costs 32: pad a tile's rows by one word and its columns are free too.";
  const auto ways = [](pattern kind, uint32_t value) { return bank_cycles(lanes_of(kind, value, 4), 4); };
  const auto one = [&](const char* name, pattern kind, uint32_t value) { out.judge(all.find("E3", name), about(ways(kind, value), 0.1)); };
  for (const uint32_t s : {1u, 2u, 8u, 32u, 33u}) out.judge(all.find("E3", "stride", s), about(ways(pattern::stride, s), 0.1));
  one("permuted in a row", pattern::permuted, 0);
  one("all lanes one word", pattern::broadcast, 0);
  one("groups of 4 lanes one word", pattern::multicast, 4);
  series plot{"conflict ways by stride", "stride in words", "cycles a request", false, false, {}, {}};
  bool right = true;
  for (const measured* m : all.series("E3", "stride")) {
    plot.points.push_back({m->x, m->value, ways(pattern::stride, static_cast<uint32_t>(m->x))});
    right = right && m->right();
  }
  int off = 0;
  for (const point& p : plot.points) off += std::abs(p.y / *p.predicted - 1) > 0.1;
  if (!plot.points.empty()) out.judge("strides 1 to 34 off by more than 10%", "strides", right ? off : NAN, exactly(0));
  out.plots.push_back(std::move(plot));
}

}  // namespace

std::vector<kind> shared_kinds() { return {{"E3", "", "cuda", "Bank conflicts of shared memory", {"E3"}, e3}}; }

}  // namespace lockstep::tool::probe
