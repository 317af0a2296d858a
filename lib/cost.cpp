// cost.cpp - see cost.hpp.
#include "cost.hpp"

#include <algorithm>
#include <cmath>

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

}  // namespace

double cpu_us(const model& m, const call& c, int threads) {
  const auto above = m.cpu.lower_bound(threads);
  if (above == m.cpu.end()) return c.sweeps * sweep_us(std::prev(above)->second, c);
  const double more = sweep_us(above->second, c);
  if (above->first == threads || above == m.cpu.begin()) return c.sweeps * more;
  const auto below = std::prev(above);
  const double fewer = sweep_us(below->second, c);
  const double part = std::log(static_cast<double>(threads) / below->first) / std::log(static_cast<double>(above->first) / below->first);
  return c.sweeps * fewer * std::pow(more / fewer, part);
}

double device_us(const model& m, const call& c, const std::string& backend, place where) {
  const auto found = m.devices.find(backend);
  const auto& device = found != m.devices.end() ? found->second : m.devices.at("cuda");
  // The trips are paid once; later sweeps find their data there.
  return at(device[where][c.what], c.bytes) + (c.sweeps - 1) * sweep_us(device[on_device], c);
}

}  // namespace lockstep::lib::cost
