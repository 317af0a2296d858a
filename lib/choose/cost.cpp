// cost.cpp - see cost.hpp.
#include "cost.hpp"

#include <algorithm>

namespace lockstep::lib::cost {
namespace {

// Linear interpolation, which is exact for a constant cost plus a constant rate. Below the
// first size the cost is constant; beyond the last the rate is.
double at(const curve& c, double bytes) {
  if (bytes <= sizes.front()) return c.front();
  if (bytes >= sizes.back()) return c.back() * bytes / sizes.back();
  size_t k = 1;
  while (sizes[k] < bytes) ++k;
  return c[k - 1] + (c[k] - c[k - 1]) * (bytes - sizes[k - 1]) / (sizes[k] - sizes[k - 1]);
}

// The time of a star stencil is proportional to its taps when arithmetic is the limit, and
// never less than that of a line stencil.
double sweep_us(const curves& c, const call& asked) {
  const double us = at(c[asked.what], asked.bytes);
  return asked.what == star_stencil ? std::max(us * asked.taps / 25, at(c[line_stencil], asked.bytes)) : us;
}

// Later sweeps cost less than the first, because they are part of the same call and find data
// in the cache. How much less was measured with line stencils.
double sweeps_us(double first, const curves& c, const call& asked) {
  if (asked.sweeps <= 1) return first;
  const double once = at(c[line_stencil], asked.bytes);
  const double later = std::max((at(c[line_sweeps], asked.bytes) - once) / (many_sweeps - 1), 0.0);
  return first + (asked.sweeps - 1) * std::max(sweep_us(c, asked) - once + later, 0.0);
}

const std::array<curves, places>& device_of(const model& m, const std::string& backend) {
  const auto found = m.devices.find(backend);
  return found != m.devices.end() ? found->second : m.devices.at("cuda");
}

// Interpolates between two thread counts by Amdahl's law.
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
  const double first = first_us(m, c, device, where, threads);
  if (c.together) return sweeps_us(first, device[on_device], c);
  return first + (c.sweeps - 1) * sweep_us(device[on_device], c);
}

double trips_us(const model& m, const call& c, const std::string& backend) {
  const double here = at(m.cpu.rbegin()->second[c.what], c.bytes);  // with the threads that the device's times used
  return std::max(at(device_of(m, backend)[away][c.what], c.bytes) - here, 0.0);
}

}  // namespace lockstep::lib::cost
