// host.cpp - rows about the CPU, the counterparts of the ladder's: H1 to H8.
#include "../predict.hpp"
#include "../probe.hpp"

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

void h1(row& out, const readings& all) {
  const double l1 = all.value("host", "l1_bytes"), l2 = all.value("host", "l2_bytes"), l3 = all.value("host", "l3_bytes");
  const double ghz = all.value("host", "clock_ghz");
  out.taught = "A dependent load takes 4 to 5 cycles from L1, 12 to 16 from L2, 30 to 70 from L3, 60 to 200 ns from memory; the steps "
               "stand at the sizes of the caches.";
  out.today = "Large server chips reach past 70 cycles in an L3 that many cores share.";
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
  cycles("latency in L1", l1 / 2, between(3.5, 6));
  cycles("latency in L2", l2 / 2, between(10, 20));
  if (l3 > 2 * l2) cycles("latency in L3", std::min(l3 / 2, 8.0 * l2), between(30, 110), between(30, 70));
  if (!latency.empty() && latency.back()->x >= 2 * l3) {
    measured far = *latency.back();
    far.name = "latency in memory";
    far.x = NAN;
    out.judge(&far, between(60, 250));
  }
  if (const measured* first = at(latency, l1 / 2)) {
    out.judge("working set that falls out of L1", "KiB", knee(latency, 0, first->value) / 1024, exactly(next_power(l1) / 1024));
    if (const measured* second = at(latency, l2 / 2))
      out.judge("working set that falls out of L2", "KiB", knee(latency, l2 / 2, second->value) / 1024,
                between(next_power(l2) / 2 / 1024, 2 * next_power(l2) / 1024));
  }
  const std::vector<mark> caches = {{l1, "L1"}, {l2, "L2"}, {l3, "L3"}};
  series plot{"latency by working set", "bytes", "ns", true, true, {}, caches};
  for (const measured* m : latency) {
    plot.points.push_back({m->x, m->value, {}});
    if (!m->right()) out.judge(m, at_least(0));  // a chase that lost its way is a line of its own
  }
  series speed{"bandwidth by working set", "bytes", "GB/s", true, true, {}, caches};
  for (const measured* m : bandwidth) {
    speed.points.push_back({m->x, m->value, {}});
    if (!m->right()) out.judge(m, at_least(0));
  }
  if (const measured *near = at(bandwidth, l1 / 2), *far = bandwidth.empty() ? nullptr : bandwidth.back(); near != nullptr && far != nullptr)
    out.judge("bandwidth of L1 over that of memory", "times", near->value / far->value, at_least(3));
  out.plots.push_back(std::move(plot));
  out.plots.push_back(std::move(speed));
}

}  // namespace

std::vector<kind> host_kinds() { return {{"H1", "E10", "cpu", "Cache levels by working set", {"H1", "host"}, h1}}; }

}  // namespace lockstep::tool::probe
