// cost.cpp - see cost.hpp.
#include "cost.hpp"

#include <algorithm>

#include "mutant.hpp"

namespace lockstep::lib::cost {
namespace {

// Straight lines between the points: a constant cost plus a constant rate is one. Below
// the first size a call costs what it costs there; beyond the last the rate stays.
double at(const curve& c, double bytes) {
  if (bytes <= sizes.front()) return c.front();
  if (bytes >= sizes.back()) return c.back() * bytes / sizes.back();
  size_t k = 1;
  while (sizes[k] < bytes) ++k;
  return c[k - 1] + (c[k] - c[k - 1]) * (bytes - sizes[k - 1]) / (sizes[k] - sizes[k - 1]);
}

// A star's time grows with its taps where arithmetic is the limit, and is never
// less than a line's.
double sweep_us(const curves& c, const call& asked) {
  const double us = at(c[asked.what], asked.bytes);
  return asked.what == star_stencil ? std::max(us * asked.taps / 25, at(c[line_stencil], asked.bytes)) : us;
}

// The first sweep is given; a later one is no call of its own, and its data may be nearer:
// as much less than a call as a line's.
double sweeps_us(double first, const curves& c, const call& asked) {
  if (asked.sweeps <= 1) return first;
  const double once = at(c[line_stencil], asked.bytes);
  const double later = std::max((at(c[line_sweeps], asked.bytes) - once) / (many_sweeps - 1), 0.0);
  return first + (asked.sweeps - (LOCKSTEP_MUTANT("cost_of_one_more_sweep") ? 0 : 1)) *
                     std::max(sweep_us(c, asked) - once + later, 0.0);
}

const std::array<curves, places>& device_of(const model& m, const std::string& backend) {
  const auto found = m.devices.find(backend);
  return found != m.devices.end() ? found->second : m.devices.at("cuda");
}

// Between two thread counts by Amdahl: one part of the time is shared out, the other is not.
double between(double fewer_us, double fewer, double more_us, double more, double threads) {
  return fewer_us + (more_us - fewer_us) * (1 / fewer - 1 / threads) / (1 / fewer - 1 / more);
}

double first_us(const model& m, const call& c, const std::array<curves, places>& device, place where, int threads) {
  const double us = at(device[where][c.what], c.bytes);
  const int all = m.cpu.rbegin()->first;
  if (where != pageable || threads >= all) return us;
  return between(at(device[alone][c.what], c.bytes), 1, us, all, threads);
}

}  // namespace

double cpu_us(const model& m, const call& c, int threads) {
  const auto us = [&](const curves& all) { return sweeps_us(sweep_us(all, c), all, c); };
  const auto above = m.cpu.lower_bound(threads);
  if (above == m.cpu.end()) return us(std::prev(above)->second);
  if (above->first == threads || above == m.cpu.begin()) return us(above->second);
  const auto below = std::prev(above);
  return between(us(below->second), below->first, us(above->second), above->first, threads);
}

double device_us(const model& m, const call& c, const std::string& backend, place where, int threads) {
  const auto& device = device_of(m, backend);
  return sweeps_us(first_us(m, c, device, where, threads), device[on_device], c);
}

double trips_us(const model& m, const call& c, const std::string& backend) {
  const double here = at(m.cpu.rbegin()->second[c.what], c.bytes);  // by as many threads as the calls away had
  return std::max(at(device_of(m, backend)[away][c.what], c.bytes) - here, 0.0);
}

}  // namespace lockstep::lib::cost
