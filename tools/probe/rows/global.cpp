// global.cpp - rows about global and host memory: E7, E8, E9.

#include <algorithm>

#include "../patterns.hpp"
#include "../predict.hpp"
#include "../probe.hpp"
#include "text.hpp"

namespace lockstep::tool::probe {
namespace {
using namespace lockstep::probe;

addresses lanes_of(pattern kind, uint32_t value) {
  addresses lanes;
  for (uint32_t lane = 0; lane < 32; ++lane)
    lanes.push_back(4 * (kind == pattern::scattered ? uint64_t{scattered_word(1, lane, 1u << 17, value)}
                                                    : uint64_t{lane_word(kind, value, lane)}));
  return lanes;
}
double percent(pattern kind, uint32_t value, int granule) {
  return 100 * efficiency(lanes_of(kind, value), 4, granule);
}

// Bandwidth by offset and by stride from DRAM, as the L2 fetches by itself, then in pieces
// of 32 and of 128 bytes.
void from_dram(row& out, const readings& all) {
  const double own = all.value("E8", "l2_fetch_bytes");
  const std::string fetches =
      "the L2 fetches from DRAM in pieces, here of 64 bytes (cudaLimitMaxL2FetchGranularity): half of a piece is "
      "unused at strides of 64 bytes and more, and rows that begin inside a piece cost up to a fifth. Asked for pieces "
      "of 128 bytes the same H200 reads misaligned rows at 98 % of aligned ones, and stride 32 at 3.2 %; for pieces of "
      "32, stride 16 at 10.5 %";
  const std::string blocks =
      "with pieces of 32 bytes DRAM reads no byte too many, and its pins are busy 46 % of the time, at stride 64 30 % "
      "(ncu): places cost, not bytes. A block of 256 bytes takes 25 ps, 40 of them a ns, whether 32 or 64 bytes of it "
      "are read; words 512 and 1,024 bytes apart cost the same, a second word in the block (stride 32) 5 ps more. It "
      "is not the L2, which gives 157 lines a ns when it holds them, nor the multiprocessors, half of which reach 90 "
      "%. Opening a row of DRAM for each block would cost about that; no counter shows rows";
  constexpr double blocks_a_ns = 40;
  series offsets{"Bandwidth by offset",
                 "offset in words of 4 bytes",
                 "GB/s asked for",
                 false,
                 false,
                 {},
                 {{8, "one sector"}, {16, "two"}, {24, "three"}, {32, "one line"}}};
  series strides{"Bandwidth by stride",
                 "stride in words of 4 bytes",
                 "GB/s asked for",
                 true,
                 true,
                 {},
                 {{8, "one sector"}, {16, "64 bytes"}, {32, "one line"}, {64, "256 bytes"}}};
  for (const int bytes : {0, 32, 128}) {  // 0: the device's default
    const std::string how = bytes == 0 ? "" : format_text(", fetches of {} bytes", bytes);
    const int piece = bytes > 0 ? bytes : std::isnan(own) ? 64 : static_cast<int>(own);
    const std::string line = format_text(": fetches of {} bytes{}", piece, bytes == 0 ? ", unasked" : "");
    series by_offset = offsets, by_stride = strides;
    by_offset.name += line;
    by_stride.name += line;
    const auto judge = [&](const measured* m, const char* what, const range& now, const range& taught,
                           const range& seen, const std::string& why) {
      measured named = *m;
      named.name = format_text("{} {:g}{}", what, m->x, how);
      named.x = NAN;
      out.judge(&named, now, taught, fit{seen, why});
    };
    const double aligned = all.value("E8", "offset" + how, 0), dense = all.value("E8", "stride" + how, 1);
    for (const measured* m : all.series("E8", "offset" + how)) {
      by_offset.points.push_back({m->x, m->value, bytes == 0 ? std::optional(aligned) : std::nullopt});
      // Each byte leaves DRAM once, because what neighbours share is found in a cache.
      const double again = percent(pattern::offset, static_cast<uint32_t>(m->x), piece) / 100;
      if (m->x == 1 || (bytes == 0 && (m->x == 8 || m->x == 31)))
        judge(m, "offset",
              about(aligned, 0.05).by("what neighbouring warps share is fetched once: as fast as offset 0"),
              about(aligned / 2, 0.1), between(again * aligned, 1.05 * aligned), fetches);
    }
    for (const measured* m : all.series("E8", "stride" + how)) {
      const auto k = static_cast<uint32_t>(m->x);
      const auto part = [&](int granule) { return dense * percent(pattern::stride, k, granule) / 100; };
      const double sparse = k < 64 ? INFINITY : blocks_a_ns * 4;
      by_stride.points.push_back({m->x, m->value, bytes == 0 ? std::optional(part(32)) : std::nullopt,
                                  bytes == 0 ? std::optional(std::min(part(piece), sparse)) : std::nullopt});
      const bool few = piece < 128 && (k >= 64 || (k == 32 && piece == 32));  // of a block
      if (k == 16 || k == 32 || k == 64 || (bytes == 0 && (k == 2 || k == 8)))
        judge(m, "stride",
              about(part(32), 0.25)
                  .by("stride 1 x the part of each 32-byte sector that is asked for (taught: of each line)"),
              about(part(128), 0.25),
              !few      ? about(part(piece), 0.25)
              : k == 32 ? about(2 * 4 / 0.030, 0.15)
                        : about(blocks_a_ns * 4, 0.15),
              few ? blocks : fetches);
    }
    out.plots.push_back(std::move(by_offset));
    out.plots.push_back(std::move(by_stride));
  }
  // Lines of one chart follow each other.
  std::stable_sort(out.plots.begin(), out.plots.end(), [](const series& a, const series& b) {
    return a.name.substr(0, a.name.find(':')) < b.name.substr(0, b.name.find(':'));
  });
}

void e8(row& out, const readings& all) {
  out.taught =
      "A warp's 32 words are fetched in 128-byte lines when L1 caches them, in 32-byte segments when it does not; "
      "efficiency = bytes asked / bytes moved: aligned 100 %, misaligned 50 % (two lines), scattered 3.1 % or 12.5 %.";
  out.today =
      "Since Volta a line of L1 holds four sectors of 32 bytes that are fetched one by one: a misaligned request moves "
      "5 sectors, not 2 lines (80 %), a scattered one 12.5 % with L1 and without. The counters say exactly that; time "
      "does not always follow the sectors (fitted lines).";
  out.lesson =
      "Neighbouring lanes, neighbouring words. Misalignment is cheap today, strides and scatter are as dear as ever.";
  struct item {
    const char* name;
    pattern kind;
    uint32_t value;
  };
  const item items[] = {{"aligned", pattern::stride, 1},
                        {"permuted", pattern::permuted, 0},
                        {"offset 1", pattern::offset, 1},
                        {"offset 8", pattern::offset, 8},
                        {"stride 2", pattern::stride, 2},
                        {"one address", pattern::broadcast, 0},
                        {"scattered", pattern::scattered, 1},
                        {"scattered pairs of sectors", pattern::scattered, 2},
                        {"scattered whole lines", pattern::scattered, 4}};
  out.bar("Patterns from L2, past L1", all,
          {"aligned, no L1", "permuted, no L1", "offset 1, no L1", "offset 8, no L1", "stride 2, no L1",
           "scattered whole lines, no L1", "scattered pairs of sectors, no L1", "scattered, no L1"});
  for (const bool l1 : {false, true}) {
    const std::string how = l1 ? ", L1" : ", no L1";
    const double base = all.value("E8", "aligned" + how);
    for (const item& i : items) {
      const measured* m = all.find("E8", i.name + how);
      if (m == nullptr) continue;
      measured relative = *m;  // the sectors' rate is the aligned pattern's; efficiency is what is left of it
      relative.name = std::string("efficiency ") + i.name + how;
      relative.unit = std::string("%");
      for (double* v : {&relative.value, &relative.low, &relative.high}) *v *= 100 / base;
      const double now = percent(i.kind, i.value, 32);
      if (i.kind == pattern::broadcast) {  // one sector a request: other limits than sectors come first
        out.judge(&relative, at_least(100).by("one sector for all lanes"));
        continue;
      }
      // With L1, the sectors that neighbours share come from it.
      const range today =
          l1 && i.kind == pattern::offset && now < 100
              ? between(0.85 * now, 105).by("5 sectors for 4, unless L1 still has the one that neighbours share")
              : about(now, 0.15).by("bytes asked / bytes of the 32-byte sectors they touch (taught with L1: of lines)");
      std::optional<fit> after;
      if (i.kind == pattern::scattered && i.value == 1)
        after = {
            between(0.85 * now / 2, 1.15 * now),
            "it is 32 sectors, as the rule says, but each in a line of its own, and the L2 of an H200 takes about "
            "150 lines/ns, whether one sector of a line is wanted or two (next to each other or not): lone sectors "
            "leave half of it unused, pairs do not"};
      out.judge(&relative, today, l1 ? about(percent(i.kind, i.value, 128), 0.15) : about(now, 0.15), after);
    }
  }
  from_dram(out, all);
}

void e7(row& out, const readings& all) {
  out.taught =
      "Global memory is static (__device__ arrays, filled by cudaMemcpyToSymbol) or allocated (cudaMalloc); both are "
      "the same DRAM.";
  out.lesson = "A static array is as fast as an allocated one; choose by who knows the size.";
  out.bar("Reading 256 MiB", all, {"static array", "cudaMalloc"});
  const double allocated = all.value("E7", "cudaMalloc");
  // Pins: a transfer on both edges of the memory clock.
  const double pins = all.fact("memory_clock_ghz") * 2 * all.fact("memory_bus_bits") / 8;
  out.judge(all.find("E7", "static array"),
            about(allocated, 0.05).by("the allocated array's speed: it is the same DRAM"));
  out.judge(all.find("E7", "cudaMalloc"),
            between(0.75 * pins, pins)
                .by(format_text("75 to 100 % of the pins: {:g} bits x 2 x {:.4g} GHz", all.fact("memory_bus_bits"),
                                all.fact("memory_clock_ghz"))));
}

void e9(row& out, const readings& all) {
  out.taught =
      "Page-locked host memory is read and written by the device's own engines at the link's speed, about twice that "
      "of pageable "
      "memory, which the driver first copies. Both directions at once double it again.";
  out.today =
      "The link has grown faster than one core copies: pageable memory now reaches a fifth to a third of it. Small "
      "copies pay the call.";
  out.lesson =
      "Page-lock what crosses the link more than once, and in pieces of a MiB or more; else let several threads fill "
      "pinned buffers.";
  constexpr double most = 1u << 28;
  const double up = all.value("E9", "up, page-locked", most), down = all.value("E9", "down, page-locked", most);
  const double link = all.value("E9", "link");
  if (!std::isnan(link)) {
    const range most_of_it = between(0.75 * link, link).by(format_text("75 to 100 % of the link's {:.3g} GB/s", link));
    out.judge("up, page-locked, 256 MiB", "GB/s", up, most_of_it);
    out.judge("down, page-locked, 256 MiB", "GB/s", down, most_of_it);
  } else {
    out.judge("down over up, page-locked", "times", down / up, about(1, 0.1).by("the link has as many wires each way"));
  }
  const range by_a_core = between(0.05, 0.35).by("the driver copies with one core, 3 to 20 GB/s, while the link waits");
  out.judge("pageable over page-locked, up", "times", all.value("E9", "up, pageable", most) / up, by_a_core,
            about(0.5, 0.2));
  out.judge("pageable over page-locked, down", "times", all.value("E9", "down, pageable", most) / down, by_a_core,
            about(0.5, 0.2));
  out.judge("both at once over one direction", "times",
            all.value("E9", "both at once, page-locked", most) / std::max(up, down),
            between(1.6, 2.05).by("each direction has wires of its own; acknowledgements take a part"));
  out.judge("64 KiB over 256 MiB, page-locked up", "times", all.value("E9", "up, page-locked", 1u << 16) / up,
            at_most(0.5).by("64 KiB pass in a microsecond, the call takes several"));
  series plot{"Copies over the link", "bytes", "GB/s", true, false, {}, {}};
  for (const char* name :
       {"up, page-locked", "up, pageable", "down, page-locked", "down, pageable", "both at once, page-locked"}) {
    series one = plot;
    one.name = std::string("Copies over the link: ") + name;
    for (const measured* m : all.series("E9", name)) {
      one.points.push_back({m->x, m->value, {}});
    }
    out.plots.push_back(std::move(one));
  }
}

}  // namespace

std::vector<kind> global_kinds() {
  return {{"E7", "", "cuda", "Global memory, static and allocated", {"E7", "device"}, e7},
          {"E9", "", "cuda", "Host memory: pageable and page-locked", {"E9"}, e9},
          {"E8", "", "cuda", "Coalescing: how a warp's addresses become transactions", {"E8"}, e8}};
}

}  // namespace lockstep::tool::probe
