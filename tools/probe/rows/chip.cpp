// chip.cpp - rows about a whole SM and the whole chip: E1, E10, E13, E14, E15.

#include "../predict.hpp"
#include "../probe.hpp"
#include "text.hpp"

namespace lockstep::tool::probe {
namespace {
using namespace lockstep::probe;

void e1(row& out, const readings& all) {
  out.taught =
      "A thread's own array lies in registers while the compiler knows every index; an index known at run time, or "
      "too many elements, put it into local memory, which is global memory: 400 to 800 cycles.";
  out.today =
      "The placement rule stands. But local memory is cached in L1 since Fermi: a spilled value that is used again "
      "soon costs an "
      "L1 access, 20 to 60 cycles.";
  out.lesson =
      "Unroll loops over private arrays so that indices are constants; look for a stack frame in the compiler's "
      "report.";
  out.bar("An access to a thread's own array", all, {"known index", "run-time index", "too large"});
  out.judge(all.find("E1", "local bytes, known index"), exactly(0).by("registers need no local memory"));
  out.judge(all.find("E1", "local bytes, run-time index"), exactly(32 * 4).by("32 elements of 4 bytes"));
  out.judge(all.find("E1", "local bytes, too large"),
            at_least((320 - 255) * 4).by("320 elements of 4 bytes, at most 255 of them in registers"));
  out.judge(all.find("E1", "known index"),
            between(3, 9).by("one or two instructions of 4 cycles that wait for each other"));
  out.judge(all.find("E1", "run-time index"), between(20, 60).by("each access waits for the one before, through L1"),
            between(400, 800));
  out.judge(all.find("E1", "too large"),
            between(3, 30).by("less than L1's latency: indices are known, so loads run ahead of their use"),
            between(400, 800));
}

processor_limits limits_of(const readings& all) {
  const auto fact = [&](const char* name) { return static_cast<int>(all.fact(name)); };
  return {fact("registers_a_processor"), fact("shared_bytes_a_processor"), fact("threads_a_processor"),
          fact("blocks_a_processor"), fact("shared_bytes_reserved")};
}

void e13(row& out, const readings& all) {
  out.taught =
      "Registers are shared by all resident threads of a multiprocessor: more a thread, fewer warps, and fewer warps "
      "hide less "
      "latency. Forcing fewer registers spills them to local memory, which costs more than it gains.";
  out.lesson =
      "Occupancy is a means: it matters while each warp waits for one load at a time, not when a thread has several "
      "under way.";
  const auto warps = all.series("E13", "resident warps by live values"),
             loads = all.series("E13", "loads by live values");
  series plot{"Loads by resident warps", "resident warps a multiprocessor", "loads/ns", false, false, {}, {}};
  if (!std::isnan(all.fact("warp")))
    for (const measured* m : warps) {
      const auto registers = static_cast<int>(all.value("E13", "registers by live values", m->x));
      measured named = *m;
      named.name = format_text("resident warps with {} registers", registers);
      named.x = NAN;
      out.judge(&named, exactly(resident_blocks(limits_of(all), registers, 256, 0) * 8)
                            .by("whole blocks of 8 warps that fit: registers x 32 lanes, in units of 256, a warp"));
    }
  const double most_warps = all.value("E13", "resident warps by live values", 8),
               most_loads = all.value("E13", "loads by live values", 8);
  for (const measured* m : loads) {
    const double resident = all.value("E13", "resident warps by live values", m->x);
    const double predicted = most_loads * resident / most_warps;
    plot.points.push_back({resident, m->value, predicted, {}, about(predicted, 0.2)});
    if (m->x == 8) continue;
    measured relative = *m;
    relative.name = format_text("speed of {:g} warps over {:g}", resident, most_warps);
    relative.unit = "times";
    relative.x = NAN;
    for (double* v : {&relative.value, &relative.low, &relative.high}) *v /= most_loads;
    out.judge(&relative,
              about(resident / most_warps, 0.2).by("one load under way a warp: speed goes with their number"));
  }
  out.bar("The same work with and without registers for it", all, {"roomy", "spilling"});
  out.judge(all.find("E13", "registers, spilling"), exactly(32).by("65,536 registers for 2,048 threads"));
  out.judge(all.find("E13", "local bytes, roomy"), exactly(0).by("96 values fit 255 registers"));
  out.judge(all.find("E13", "local bytes, spilling"),
            at_least((96 - 32) * 4).by("96 values of 4 bytes, at most 32 of them in registers"));
  out.judge("time with spills over without", "times", all.value("E13", "spilling") / all.value("E13", "roomy"),
            at_least(1.5).by("what does not fit is loaded and stored again in each round"));
  out.plots.push_back(std::move(plot));
}

void e14(row& out, const readings& all) {
  out.taught =
      "64 KiB of constant memory, 8 KiB of it cached a multiprocessor; parameters up to 4 KiB; 48 KiB of shared memory "
      "a block; 32 "
      "banks; a warp of 32; 255 registers a thread.";
  out.today =
      "Parameters up to 32,764 bytes since CUDA 12.1 (Volta and later); shared memory opts in to far more; banks and "
      "warp are the same.";
  out.lesson = "Ask the device: the limits that grew are the ones that old code designs around.";
  const auto fact = [&](const char* name, const char* unit, double factor, const char* key, const range& now,
                        const std::optional<range>& taught = {}) {
    out.judge(name, unit, all.fact(key) * factor,
              now.by("the programming guide's table of what compute capabilities from 7.0 on have"), taught);
  };
  fact("constant memory", "KiB", 1.0 / 1024, "constant_bytes", exactly(64));
  out.judge(all.find("E14", "parameters as taught"),
            exactly(4096).by("a kernel of that many bytes runs and reads them"));
  out.judge(all.find("E14", "parameters today"),
            exactly(32760).by("32,764 bytes may be passed: a kernel of 4,095 words of 8 bytes runs"), at_most(4096));
  fact("shared memory a block, static", "KiB", 1.0 / 1024, "shared_bytes_a_block", exactly(48));
  fact("shared memory a block, opted in", "KiB", 1.0 / 1024, "shared_bytes_a_block_optin", between(64, 256),
       exactly(48));
  fact("shared memory a multiprocessor", "KiB", 1.0 / 1024, "shared_bytes_a_processor", between(64, 256), exactly(48));
  fact("registers a multiprocessor", "registers", 1, "registers_a_processor", exactly(65536));
  fact("threads a block", "threads", 1, "threads_a_block", exactly(1024));
  fact("warp", "lanes", 1, "warp", exactly(32));
  // There are as many banks as words in the shortest stride with the worst time.
  double banks = NAN, worst = 0;
  for (const measured* m : all.series("E3", "stride"))
    if (m->value > 1.1 * worst) worst = m->value, banks = m->x;
  out.judge("banks, by the worst stride", "banks", banks,
            exactly(32).by("the first stride that is as slow as it gets (E3)"));
  double first = NAN;
  const auto sizes = all.series("E4", "latency by working set");
  for (const measured* m : sizes)
    if (m->value <= 1.15 * sizes.front()->value) first = m->x / 1024;
  out.judge(
      "constant cache, first level", "KiB", first,
      between(1, 4).by("published measurements of Volta to Hopper: 2 KiB; here the largest set that is fast (E4)"),
      exactly(8));
}

struct level {
  const char *name, *latency, *bandwidth;
  double low, high;                // cycles that published measurements of Volta to Hopper span
  double taught_low, taught_high;  // what the textbooks say
};
constexpr level levels[] = {
    {"register", "latency, register", "bandwidth, register", 4, 6, 1, 24},
    {"shuffle", "latency, shuffle", nullptr, 18, 32, 18, 32},
    {"shared", "latency, shared", "bandwidth, shared", 19, 35, 1, 35},
    {"constant", "latency, constant", nullptr, 20, 60, 1, 60},
    {"L1", "latency, L1", "bandwidth, L1", 28, 45, 28, 45},
    {"L2", "latency, L2", "bandwidth, L2", 180, 330, 180, 330},
    {"global", "latency, global", "bandwidth, global", 400, 1000, 400, 800},
    {"host", "latency, host", "bandwidth, host", 1000, 6000, 1000, 6000},
};

void e10(row& out, const readings& all) {
  out.taught =
      "Registers answer at once, shared memory nearly so, global memory after 400 to 800 cycles: shared is about 100 "
      "times faster.";
  out.today =
      "In latency shared memory is 20 to 40 times ahead of global, in bandwidth 5 to 12 times; L1 and shared memory "
      "are one array since Volta and "
      "answer alike; the L2 lies in two halves, and the far one answers later.";
  out.lesson = "Each step out costs a factor of 2 to 10. Reuse pays at every level, not only in shared memory.";
  const double clock = all.fact("clock_ghz"), processors = all.fact("processors");
  for (const level& l : levels)
    out.judge(all.find("E10", l.latency),
              between(l.low, l.high).by("what published measurements of Volta to Hopper span"),
              between(l.taught_low, l.taught_high));
  const auto value = [&](const char* name) { return all.value("E10", name); };
  out.judge("latency of global over shared", "times", value("latency, global") / value("latency, shared"),
            between(15, 45).by("the same measurements: 19 to 35 cycles against 400 to 1000"), between(80, 120));
  const std::string chip = format_text(" x {:g} multiprocessors x {:.3g} GHz", processors, clock);
  // Widths a cycle and SM: 128 lanes of three operands; 128 bytes; 128 bytes.
  out.judge(all.find("E10", "bandwidth, register"),
            about(clock * processors * 128 * 12, 0.15).by("128 lanes x 3 operands x 4 bytes" + chip));
  out.judge(all.find("E10", "bandwidth, shared"), about(clock * processors * 128, 0.15).by("128 bytes" + chip));
  out.judge(all.find("E10", "bandwidth, L1"), about(clock * processors * 128, 0.15).by("128 bytes" + chip));
  // 64 bytes a cycle and SM are what the L1 can take in.
  out.judge(all.find("E10", "bandwidth, L2"),
            between(0.25 * clock * processors * 64, clock * processors * 64)
                .by("a quarter to all of 64 bytes" + chip + ": what the L1s take in"));
  const double pins = all.fact("memory_clock_ghz") * 2 * all.fact("memory_bus_bits") / 8;
  out.judge(all.find("E10", "bandwidth, global"),
            between(0.85 * pins, pins)
                .by(format_text("85 to 100 % of the pins: {:g} bits x 2 x {:.4g} GHz", all.fact("memory_bus_bits"),
                                all.fact("memory_clock_ghz"))));
  out.judge(all.find("E10", "bandwidth, host"), between(10, 70).by("16 lanes of PCIe 3 to 5"));
  out.judge("bandwidth of shared over global", "times", value("bandwidth, shared") / value("bandwidth, global"),
            between(5, 12).by("128 bytes a cycle and multiprocessor over the pins, on Volta to Hopper"),
            between(80, 120));
  series plot{"Latency by working set", "bytes", "cycles", true, true, {}, {}};
  for (const measured* m : all.series("E10", "latency by working set")) {
    plot.points.push_back({m->x, m->value, {}});
  }
  // L1 is what the SM's array has left beside shared memory: none is used here.
  plot.marks = {{all.fact("shared_bytes_a_processor"), "L1"}, {all.fact("l2_bytes"), "L2"}};
  double falls = NAN;
  for (const point& p : plot.points)
    if (!(falls > 0) && p.y > 1.5 * plot.points.front().y) falls = p.x;
  const double array = all.fact("shared_bytes_a_processor");
  out.judge("working set that falls out of L1", "KiB", falls / 1024,
            between(array / 1024 / 2, 2.3 * array / 1024)
                .by("sets double from point to point: half to twice the array that L1 and shared memory are"));
  out.plots.push_back(std::move(plot));
}

// The usual table of memories: where each is, who sees it, for how long, whether it is cached, how large and how fast
// it is here.
void e15(row& out, const readings& all) {
  out.taught =
      "Registers and shared memory on the chip, everything else off it; registers and local belong to a thread, shared "
      "to a block, the rest "
      "to the grid; global is not cached.";
  out.today =
      "Everything is cached: local and global in L1 and L2, constant and texture in their own first level or L1.";
  out.lesson = "Place data by who needs it and how often; then look at this picture for what that costs.";
  struct entry {
    const char *name, *where, *seen_by, *lives, *cached, *size_key;
    double size_factor;
    const char *size_of, *latency, *bandwidth;
  };
  const entry entries[] = {
      {"register", "on chip", "thread", "thread", "-", "registers_a_processor", 4, " a processor", "latency, register",
       "bandwidth, register"},
      {"shared", "on chip", "block", "block", "-", "shared_bytes_a_processor", 1, " a processor", "latency, shared",
       "bandwidth, shared"},
      {"local", "DRAM", "thread", "thread", "L1, L2", nullptr, 0, "", nullptr, nullptr},
      {"constant", "DRAM", "grid, read only", "program", "constant caches", "constant_bytes", 1, "",
       "latency, constant", nullptr},
      {"texture", "DRAM", "grid, read only", "program", "L1, L2", nullptr, 0, "", nullptr, nullptr},
      {"global, in L1", "on chip", "block", "while in use", "-", "shared_bytes_a_processor", 1, " a processor",
       "latency, L1", "bandwidth, L1"},
      {"global, in L2", "on chip", "grid", "while in use", "-", "l2_bytes", 1, "", "latency, L2", "bandwidth, L2"},
      {"global", "DRAM", "grid and host", "program", "L1, L2", "memory_bytes", 1, "", "latency, global",
       "bandwidth, global"},
      {"host", "host", "grid and host", "program", "-", nullptr, 0, "", "latency, host", "bandwidth, host"},
  };
  const auto size_text = [](double bytes) {
    return bytes >= 0x1p30   ? format_text("{:.0f} GiB", bytes / 0x1p30)
           : bytes >= 0x1p20 ? format_text("{:.0f} MiB", bytes / 0x1p20)
                             : format_text("{:.0f} KiB", bytes / 0x1p10);
  };
  for (const entry& e : entries) {
    memory m{e.name, e.where, e.seen_by, e.lives, e.cached, "", NAN, NAN};
    if (e.size_key != nullptr && !std::isnan(all.fact(e.size_key)))
      m.size = size_text(all.fact(e.size_key) * e.size_factor) + e.size_of;
    if (e.latency != nullptr) m.latency_cycles = all.value("E10", e.latency);
    if (e.bandwidth != nullptr) m.gb_s = all.value("E10", e.bandwidth);
    out.picture.push_back(std::move(m));
  }
  const auto value = [&](const char* name) { return all.value("E10", name); };
  // Every step of the picture is slower than the one inside it.
  const char* const inward_out[] = {"latency, register", "latency, shared", "latency, L1",
                                    "latency, L2",       "latency, global", "latency, host"};
  for (size_t i = 1; i < std::size(inward_out); ++i)
    out.judge(format_text("{} over {}", inward_out[i] + 9, inward_out[i - 1] + 9), "times the latency",
              value(inward_out[i]) / value(inward_out[i - 1]),
              at_least(1).by("each memory answers later than the one nearer to the lanes"));
  const char* const narrower[] = {"bandwidth, register", "bandwidth, shared", "bandwidth, L2", "bandwidth, global",
                                  "bandwidth, host"};
  for (size_t i = 1; i < std::size(narrower); ++i)
    out.judge(format_text("{} over {}", narrower[i - 1] + 11, narrower[i] + 11), "times the GB/s",
              value(narrower[i - 1]) / value(narrower[i]),
              at_least(1).by("each memory is narrower than the one nearer to the lanes"));
  // "Global memory is not cached": then L1 would answer no sooner than DRAM.
  out.judge("global found in L1 over global", "times the latency", value("latency, L1") / value("latency, global"),
            at_most(0.2).by("28 to 45 cycles of L1 against 400 and more of DRAM"), about(1, 0.1));
}

}  // namespace

std::vector<kind> chip_kinds() {
  return {{"E1", "", "cuda", "Registers against local memory", {"E1"}, e1},
          {"E10", "", "cuda", "One ladder of all spaces", {"E10", "device"}, e10},
          {"E13", "", "cuda", "Registers, occupancy, spilling", {"E13", "device"}, e13},
          {"E14", "", "cuda", "Limits, as taught and as they are", {"E14", "device", "E3", "E4"}, e14},
          {"E15", "", "cuda", "The summary picture", {"E10", "device"}, e15}};
}

}  // namespace lockstep::tool::probe
