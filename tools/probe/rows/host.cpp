// host.cpp - rows about the CPU, the counterparts of the ladder's: H1 to H8.
// Idea    sizes, widths and the vendor come from the machine; what they lead to, from the vendor's manuals.
// Source  Intel 248966: Intel 64 and IA-32 Architectures Optimization Reference Manual. AMD 57647 and 58455: Software
//         Optimization Guides for the Zen 4 and Zen 5 microarchitectures. Where no manual has it, the rule's text says
//         who measured it, and on which processor.

#include "../predict.hpp"
#include "../probe.hpp"
#include "text.hpp"

namespace lockstep::tool::probe {
namespace {

// The smallest working set of a series that misses a cache: 1.5 times slower than the
// level was.
double knee(const std::vector<const measured*>& points, double from, double level) {
  for (const measured* m : points)
    if (m->x > from && m->value > 1.5 * level) return m->x;
  return NAN;
}
double next_power(double bytes) { return std::exp2(std::floor(std::log2(bytes)) + 1); }

double vendor_of(const readings& all) { return all.value("host", "vendor"); }  // NAN in older files

// Intel's servers have had an L2 of 1 MiB or more, and an L3 that a mesh shares out among all cores, since Skylake-SP.
// A client's L2 is smaller or its L3 is on a ring.
bool is_server(const readings& all) { return vendor_of(all) == intel && all.value("host", "l2_bytes") >= (1 << 20); }

// An L3 beside a few cores answers within a pipeline's time; one on a mesh later.
range l3_latency(const readings& all) {
  if (is_server(all))
    return between(55, 150).by(
        "Intel's servers: 70 cycles on Skylake-SP (Intel 248966), 125 on Sapphire Rapids at 3.8 GHz (Chips and Cheese, "
        "\"A Peek at Sapphire Rapids\")");
  if (vendor_of(all) == amd)
    return between(39, 75).by("about 50 cycles on average (AMD 57647, 58455), half as much again where it is large");
  return between(30, 110).by("30 to 70 cycles; shared by many cores, up to 110");
}

void h1(row& out, const readings& all) {
  const double l1 = all.value("host", "l1_bytes"), l2 = all.value("host", "l2_bytes"),
               l3 = all.value("host", "l3_bytes");
  const double ghz = all.value("host", "clock_ghz");
  out.taught =
      "A dependent load takes 4 to 5 cycles from L1, 12 to 16 from L2, 30 to 70 from L3, 60 to 200 ns from memory; "
      "the steps stand at the sizes of the caches.";
  out.today =
      "Large server chips reach past 70 cycles in an L3 that many cores share. On a shared machine neighbours may fill "
      "the L3: it then answers as slowly as memory, and its line differs. It is read at twice the size of L2: "
      "16 MiB of a virtual machine on a Xeon with an L3 of 300 MiB were as slow as memory, 4 MiB took 105 cycles.";
  out.lesson = "Working sets decide speed: the same loop is 10 to 100 times slower when its data fall out of a cache.";
  const auto latency = all.series("H1", "latency"), bandwidth = all.series("H1", "bandwidth");
  const auto at = [](const std::vector<const measured*>& points, double bytes) -> const measured* {
    const measured* best = nullptr;  // the largest set of at most so many bytes
    for (const measured* m : points)
      if (m->x <= bytes) best = m;
    return best;
  };
  const auto cycles = [&](const char* name, double bytes, const range& now, const std::optional<range>& taught = {}) {
    const measured* m = at(latency, bytes);
    if (m == nullptr || bytes <= 0) return;
    measured in_cycles = *m;
    in_cycles.name = name;
    in_cycles.unit = "cycles";
    in_cycles.x = NAN;
    for (double* v : {&in_cycles.value, &in_cycles.low, &in_cycles.high}) *v *= ghz;
    out.judge(&in_cycles, now, taught);
  };
  cycles("latency in L1", l1 / 2,
         between(3.5, 6).by("4 to 5 cycles (Intel 248966; AMD 57647, 58455), and what the measuring adds"));
  cycles("latency in L2", l2 / 2,
         between(10, 20).by("14 to 16 cycles (Intel 248966; AMD 57647, 58455), on other cores 10 or 20"));
  // Not more: a virtual machine is told its host's L3, and may have a small part of it.
  if (l3 > 2 * l2) cycles("latency in L3", 2 * l2, l3_latency(all), between(30, 70));
  if (!latency.empty() && latency.back()->x >= 2 * l3) {
    measured far = *latency.back();
    far.name = "latency in memory";
    far.x = NAN;
    out.judge(&far, between(60, 250).by("60 to 200 ns, more on large machines"));
  }
  if (const measured* first = at(latency, l1 / 2)) {
    out.judge(
        "working set that falls out of L1", "KiB", knee(latency, 0, first->value) / 1024,
        exactly(next_power(l1) / 1024).by(format_text("sets are powers of two: the first above {:g} KiB", l1 / 1024)));
    if (const measured* second = at(latency, l2 / 2))
      out.judge(
          "working set that falls out of L2", "KiB", knee(latency, l2 / 2, second->value) / 1024,
          between(next_power(l2) / 2 / 1024, next_power(l2) / 1024)
              .by(format_text("the first above {:g} KiB, or the one before: L2 holds other things too", l2 / 1024)));
  }
  const std::vector<mark> caches = {{l1, "L1"}, {l2, "L2"}, {l3, "L3"}};
  series plot{"Latency by working set", "bytes", "ns", true, true, {}, caches};
  for (const measured* m : latency) {
    plot.points.push_back({m->x, m->value, {}});
  }
  series speed{"Bandwidth by working set", "bytes", "GB/s", true, true, {}, caches};
  for (const measured* m : bandwidth) {
    speed.points.push_back({m->x, m->value, {}});
  }
  if (const measured* near = at(bandwidth, l1 / 2), *far = bandwidth.empty() ? nullptr : bandwidth.back();
      near != nullptr && far != nullptr)
    out.judge("bandwidth of L1 over that of memory", "times", near->value / far->value,
              at_least(3).by("two loads a cycle against a share of the memory's channels"));
  out.plots.push_back(std::move(plot));
  out.plots.push_back(std::move(speed));
}

// A reading under another name, in another unit.
void judge_as(row& out, const measured* m, const std::string& name, const std::string& unit, double factor,
              const range& now, const std::optional<range>& taught = {}, const std::optional<fit>& after = {}) {
  if (m == nullptr) return;
  measured renamed = *m;
  renamed.name = name;
  renamed.unit = unit;
  renamed.x = NAN;
  for (double* v : {&renamed.value, &renamed.low, &renamed.high}) *v *= factor;
  out.judge(&renamed, now, taught, after);
}
series plot_of(const readings& all, const char* id, const char* points, series empty) {
  for (const measured* m : all.series(id, points)) {
    empty.points.push_back({m->x, m->value, {}});
  }
  return empty;
}

void h2(row& out, const readings& all) {
  out.taught = "Memory moves whole lines of 64 bytes: words `stride` bytes apart use 8 bytes of every min(stride, 64).";
  out.today = "Still so. Beyond a line's length the hardware's prefetchers decide: they follow strides within a page.";
  out.lesson = "Walk arrays along their lines: a column walk pays for eight words and uses one.";
  const double line = all.value("host", "line_bytes") > 0 ? all.value("host", "line_bytes") : 64,
               one = all.value("H2", "stride", 8);
  series plot{"CPU bandwidth by stride", "stride in bytes", "GB/s asked for", true, true, {}, {{line, "one line"}}};
  for (const measured* m : all.series("H2", "stride")) {
    const double predicted = one * lockstep::probe::line_efficiency(static_cast<int>(m->x), 8, static_cast<int>(line));
    const bool told = m->x == 16 || m->x == 64 || m->x == 128;
    const bool pairs = m->x >= 2 * line;
    const range expected = pairs ? between(0.7 * predicted / 2, 1.3 * predicted) : about(predicted, 0.3);
    plot.points.push_back({m->x, m->value, predicted, {}, told ? std::optional(expected) : std::nullopt});
    if (!told) continue;
    const std::string name = format_text("efficiency at stride {:g}", m->x);
    if (pairs)
      judge_as(
          out, m, name, "%", 100 / one,
          between(100 * 0.7 * predicted / 2 / one, 100 * 1.3 * predicted / one)
              .by("8 bytes of every line, or of every pair of lines: prefetchers fetch a line's neighbour too (Intel "
                  "248966, spatial prefetcher; AMD 57647, L2 up/down prefetcher)"),
          about(100 * predicted / one, 0.3));
    else
      judge_as(out, m, name, "%", 100 / one,
               about(100 * predicted / one, 0.3).by(format_text("8 bytes of every min(stride, {:g})", line)));
  }
  out.plots.push_back(std::move(plot));
}

// What a load of two pages that the TLB holds takes, from what one of two lines takes.
range page_cycles(const readings& all, double split_cycles) {
  if (vendor_of(all) == intel)
    return between(0.85 * split_cycles, split_cycles + 6)
        .by("5 cycles more than within a page since Skylake (Intel 248966), where it was 100");
  return between(0.85 * split_cycles, 2 * split_cycles)
      .by("that across a line, or twice it: the TLB holds both pages, and may answer for one at a time");
}

void h3(row& out, const readings& all) {
  out.taught =
      "A load inside a line costs the same at any offset; one that crosses a line costs two; one that crosses a page "
      "costs tens of cycles.";
  out.today = "Crossing a page costs little more than crossing a line on recent cores, once both pages are in the TLB.";
  out.lesson = "Align what wide vectors stream over to a line: at 64 bytes a load, every misaligned load is two.";
  const double ghz = all.value("host", "clock_ghz"), aligned = all.value("H3", "8 bytes, aligned");
  out.bar("A load of 8 bytes", all,
          {"8 bytes, aligned", "8 bytes, misaligned in a line", "8 bytes, across a line", "8 bytes, across a page"});
  judge_as(out, all.find("H3", "8 bytes, misaligned in a line"), "8 bytes, misaligned in a line, over aligned", "times",
           1 / aligned, about(1, 0.15).by("one line, one access"));
  judge_as(out, all.find("H3", "8 bytes, across a line"), "8 bytes, across a line, over aligned", "times", 1 / aligned,
           between(1.0, 2.5).by("two lines: two accesses, or half that where loads are not the limit"), about(2, 0.25));
  const double split_cycles = all.value("H3", "8 bytes, across a line") * ghz;
  judge_as(out, all.find("H3", "8 bytes, across a page"), "8 bytes, across a page", "cycles", ghz,
           page_cycles(all, split_cycles), between(20, 150),
           vendor_of(all) == amd
               ? std::optional(fit{between(0.85 * split_cycles, split_cycles + 10),
                                   "8.7 cycles were seen on a Zen 4; AMD's guides say nothing of pages"})
               : std::nullopt);
  const int bytes = static_cast<int>(all.value("host", "vector_bytes"));
  const double fast = all.value("H3", "vectors, offset", 0), told = all.value("host", "path_bytes"),
               line = all.value("host", "line_bytes") > 0 ? all.value("host", "line_bytes") : 64;
  const int path = told > 0 ? static_cast<int>(told) : bytes;
  for (const measured* m : all.series("H3", "vectors, offset")) {
    if (m->x == 0) continue;
    const double split = lockstep::probe::split_fraction(static_cast<uint64_t>(m->x), path, static_cast<int>(line));
    measured slower = *m;
    slower.name = format_text("{}-byte vectors, time over aligned, offset", bytes);
    slower.unit = "times";
    slower.value = fast / m->value;
    slower.low = fast / m->high;
    slower.high = fast / m->low;
    out.judge(&slower,
              about(1 + split, 0.2)
                  .by(format_text("1 + the part of loads of {} bytes, which the core's path is wide, that cross "
                                  "a line: {:.3g} (Intel 248966; AMD64 manual, volume 3, CPUID Fn8000_001A)",
                                  path, split)));
  }
}

void h4(row& out, const readings& all) {
  out.taught =
      "The TLB holds tens of pages in its first level and one to four thousand in its second; beyond, every access "
      "walks the page table. "
      "Huge pages of 2 MiB make 512 times as much reachable.";
  out.today = "Still so; in a virtual machine a walk goes through two page tables and costs more.";
  out.lesson = "Data reached at random want huge pages (madvise, MADV_HUGEPAGE): same caches, no walks.";
  const auto ratio = [&](double pages) {
    return all.value("H4", "4 KiB pages", pages) / all.value("H4", "huge pages", pages);
  };
  out.judge("4 KiB over huge pages, 16 pages", "times", ratio(16),
            about(1, 0.15).by("the first TLB holds 16 pages of any size"));
  out.judge("4 KiB over huge pages, 512 pages", "times", ratio(512),
            between(0.85, 3).by("the second TLB holds them, for a few cycles each"));
  out.judge("4 KiB over huge pages, 32768 pages", "times", ratio(32768),
            at_least(1.3).by("128 MiB: no TLB holds as many pages of 4 KiB, but 64 huge ones"));
  const std::vector<mark> levels = {{64, "64 pages"}, {2048, "2048"}};
  for (const char* name : {"4 KiB pages", "huge pages"})
    out.plots.push_back(plot_of(
        all, "H4", name,
        {format_text("Latency of a line a page: {}", name), "4 KiB pages touched", "ns", true, true, {}, levels}));
}

void h5(row& out, const readings& all) {
  out.taught =
      "A plain store first reads its line: writing moves twice the bytes. Streaming stores do not, so they write "
      "memory twice as fast; "
      "in a cache they are slower, since they leave it.";
  out.today = "Some cores notice lines that are overwritten whole and skip the read; the gain is then less than two.";
  out.lesson = "Stream what will not be read soon and does not fit the cache; nothing else.";
  const auto value = [&](const char* name) { return all.value("H5", name); };
  out.bar("Writing", all,
          {"plain stores, L2", "streaming stores, L2", "plain stores, memory", "streaming stores, memory"});
  out.judge(
      "streaming over plain, memory", "times", value("streaming stores, memory") / value("plain stores, memory"),
      vendor_of(all) == intel
          ? between(0.5, 2.4).by(
                "one transfer a line instead of two, but a core's fill buffers hold each line until "
                "memory has it (McCalpin, \"Notes on non-temporal stores\", 2018), and whole lines are "
                "not read since Ice Lake")
          : between(1.05, 2.4).by("one transfer a line instead of two, less where cores skip the read (AMD 57647, "
                                  "write combining)"),
      about(2, 0.2));
  out.judge("streaming over plain, L2", "times", value("streaming stores, L2") / value("plain stores, L2"),
            at_most(0.8).by("lines go to memory that could have stayed"));
}

void h6(row& out, const readings& all) {
  out.taught =
      "A load is compared with the stores before it by the low 12 bits of the address: a target a whole number of "
      "pages behind its source "
      "makes loads wait for stores that they have nothing to do with.";
  out.today =
      "Cores that predict the dependence, or compare the whole address soon, lose little. Intel tells what is compared "
      "(248966, 4-KByte aliasing) and no cost, so that its processors' curve stands without a verdict. An Emerald "
      "Rapids lost nothing.";
  out.lesson = "Do not place arrays that are walked together at multiples of 4 KiB; offset one of them by a few lines.";
  const double apart = all.value("H6", "copy, target behind by pages and bytes", 2048);
  series plot{
      "CPU copies between arrays 4 KiB apart", "bytes beyond a multiple of 4 KiB", "ns a word", false, false, {}, {}};
  const measured* slowest = nullptr;
  for (const measured* m : all.series("H6", "copy, target behind by pages and bytes")) {
    plot.points.push_back({m->x, m->value, apart});
    // The target is ahead of the loads by `x` bytes: within a few lines the stores are still under way.
    if (m->x > 0 && m->x <= 64 && (slowest == nullptr || m->value > slowest->value)) slowest = m;
  }
  if (vendor_of(all) != intel)
    judge_as(out, slowest, "slowest of 1 to 64 bytes beyond whole pages, over 2048", "times", 1 / apart,
             at_least(1.2).by("loads wait for the stores a few lines before them, of the same bits 11 to 0 (AMD 57647, "
                              "store-to-load forwarding)"));
  out.plots.push_back(std::move(plot));
}

void h7(row& out, const readings& all) {
  out.taught =
      "Two threads that write different words of one line hand the line back and forth: many times slower than on "
      "lines of their own.";
  out.today =
      "Hardware threads of one core share its L1, so that the line stays there and sharing it costs less; H8 tells "
      "whether threads have caches of their own.";
  out.lesson = "Give each thread's counters a line of their own, better two: prefetchers fetch pairs.";
  out.bar("Two threads count", all, {"two counters in two lines", "two counters in a line"});
  out.judge(all.find("H7", "two counters in two lines"),
            between(0.5, 15).by("an addition that stays in L1: a few cycles"));
  out.judge("a line shared over a line each", "times the time",
            all.value("H7", "two counters in a line") / all.value("H7", "two counters in two lines"),
            at_least(3).by("a line that changes owner costs tens of cycles against a few"));
}

void h8(row& out, const readings& all) {
  out.taught =
      "Threads on cores of their own multiply the bandwidth of their own caches; memory is shared, and a few cores use "
      "it up.";
  out.lesson =
      "Memory-bound loops stop scaling when the memory is busy; more threads than that only get in each other's way.";
  for (const char* where : {"L1", "memory"}) {
    const double one = all.value("H8", where, 1);
    series plot{format_text("CPU read bandwidth by threads: {}", where), "threads", "GB/s", true, true, {}, {}};
    for (const measured* m : all.series("H8", where)) {
      plot.points.push_back({m->x, m->value, one * m->x});
      const bool last = m->x == all.value("host", "threads");
      if (last && m->x > 1)
        judge_as(out, m, format_text("speedup of {:g} threads, {}", m->x, where), "times", 1 / one,
                 where[0] == 'L' ? about(m->x, 0.25).by("a cache for each thread")
                                 : between(0.85, 0.75 * m->x)
                                       .by("memory is shared: no loss, and less than three "
                                           "quarters of a share a thread"),
                 {},
                 where[0] == 'L'
                     ? std::optional(fit{between(0.4 * m->x, 1.1 * m->x),
                                         "hardware threads of one core share its caches, and virtual machines do not "
                                         "say which of their processors do"})
                     : std::nullopt);
    }
    out.plots.push_back(std::move(plot));
  }
}

}  // namespace

std::vector<kind> host_kinds() {
  return {{"H1", "E10", "cpu", "Cache levels by working set", {"H1", "host"}, h1},
          {"H2", "E8", "cpu", "Lines and strides", {"H2", "host"}, h2},
          {"H3", "E8", "cpu", "Misaligned loads, across lines and pages", {"H3", "host"}, h3},
          {"H4", "E10", "cpu", "The TLB: pages of 4 KiB and huge ones", {"H4"}, h4},
          {"H5", "E7", "cpu", "Streaming stores", {"H5", "host"}, h5},
          {"H6", "E3", "cpu", "Addresses 4 KiB apart", {"H6", "host"}, h6},
          {"H7", "E12", "cpu", "False sharing", {"H7"}, h7},
          {"H8", "E13", "cpu", "Bandwidth by threads", {"H8", "host"}, h8}};
}

}  // namespace lockstep::tool::probe
