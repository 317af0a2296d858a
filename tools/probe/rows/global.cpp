// global.cpp - rows about global and host memory: E7, E8, E9.
#include "../patterns.hpp"
#include "../predict.hpp"
#include "../probe.hpp"

namespace lockstep::tool::probe {
namespace {
using namespace lockstep::probe;

addresses lanes_of(pattern kind, uint32_t value) {
  addresses lanes;
  for (uint32_t lane = 0; lane < 32; ++lane)
    lanes.push_back(4 * (kind == pattern::scattered ? uint64_t{scattered_word(1, lane, 1u << 17)} : uint64_t{lane_word(kind, value, lane)}));
  return lanes;
}
double percent(pattern kind, uint32_t value, int granule) { return 100 * efficiency(lanes_of(kind, value), 4, granule); }

void e8(row& out, const readings& all) {
  out.taught = "A warp's 32 words are fetched in 128-byte lines when L1 caches them, in 32-byte segments when it does not; "
               "efficiency = bytes asked / bytes moved: aligned 100 %, misaligned 50 % (two lines), scattered 3.1 % or 12.5 %.";
  out.today = "Since Volta a line of L1 holds four sectors of 32 bytes that are fetched one by one: a misaligned request moves 5 "
              "sectors, not 2 lines (80 %), a scattered one 12.5 % with L1 and without; DRAM itself moves 64 bytes.";
  out.lesson = "Neighbouring lanes, neighbouring words. Misalignment is cheap today, strides and scatter are as dear as ever.";
  struct item {
    const char* name;
    pattern kind;
    uint32_t value;
  };
  const item items[] = {{"aligned", pattern::stride, 1},     {"permuted", pattern::permuted, 0}, {"offset 1", pattern::offset, 1},
                        {"offset 8", pattern::offset, 8},    {"stride 2", pattern::stride, 2},   {"scattered", pattern::scattered, 0},
                        {"one address", pattern::broadcast, 0}};
  for (const bool l1 : {false, true}) {
    const std::string how = l1 ? ", L1" : ", no L1";
    const double base = all.value("E8", "aligned" + how);
    for (const item& i : items) {
      const measured* m = all.find("E8", i.name + how);
      if (m == nullptr) continue;
      measured relative = *m;  // the sectors' rate is the aligned pattern's; efficiency is what is left of it
      relative.name = std::string("efficiency ") + i.name + how;
      relative.unit = "%";
      for (double* v : {&relative.value, &relative.low, &relative.high}) *v *= 100 / base;
      const double now = percent(i.kind, i.value, 32);
      if (i.kind == pattern::broadcast) {  // one sector a request: other limits than sectors come first
        out.judge(&relative, at_least(100));
        continue;
      }
      // With L1, the sectors that neighbours share come from it.
      const range today = l1 && i.kind == pattern::offset && now < 100 ? between(0.85 * now, 105) : about(now, 0.15);
      out.judge(&relative, today, l1 ? about(percent(i.kind, i.value, 128), 0.15) : about(now, 0.15));
    }
  }
  series offsets{"bandwidth by offset", "offset in words of 4 bytes", "GB/s asked for", false, false, {}, {{8, "one sector"}, {16, "two"}, {24, "three"}, {32, "one line"}}};
  for (const measured* m : all.series("E8", "offset")) {
    const double aligned = all.value("E8", "offset", 0);
    offsets.points.push_back({m->x, m->value, aligned});
    if (m->x == 1 || m->x == 8 || m->x == 31) out.judge(m, about(aligned, 0.05), about(aligned / 2, 0.1));
  }
  series strides{"bandwidth by stride", "stride in words of 4 bytes", "GB/s asked for", true, true, {}, {{8, "one sector"}, {16, "64 bytes"}, {32, "one line"}}};
  for (const measured* m : all.series("E8", "stride")) {
    const double aligned = all.value("E8", "stride", 1);
    const auto k = static_cast<uint32_t>(m->x);
    const double sectors = percent(pattern::stride, k, 32) / 100, lines = percent(pattern::stride, k, 128) / 100;
    strides.points.push_back({m->x, m->value, aligned * sectors});
    if (k == 2 || k == 8 || k == 32) out.judge(m, about(aligned * sectors, 0.25), about(aligned * lines, 0.25));
  }
  out.plots.push_back(std::move(offsets));
  out.plots.push_back(std::move(strides));
}

}  // namespace

std::vector<kind> global_kinds() { return {{"E8", "", "cuda", "Coalescing: how a warp's addresses become transactions", {"E8"}, e8}}; }

}  // namespace lockstep::tool::probe
