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

// The first sweep is given; a later one needs no call of its own: of the smallest call's
// time an H200 needed 0.26 for one more sweep, 16 cores 0.21.
constexpr double start_of_call = 0.75;
double sweeps_us(double first, const curves& c, const call& asked) {
  const double later = sweep_us(c, asked) - start_of_call * c[asked.what].front();
  return first + (asked.sweeps - 1) * std::max(later, 0.0);
}

const std::array<curves, places>& device_of(const model& m, const std::string& backend) {
  const auto found = m.devices.find(backend);
  return found != m.devices.end() ? found->second : m.devices.at("cuda");
}

}  // namespace

double cpu_us(const model& m, const call& c, int threads) {
  const auto us = [&](const curves& all) { return sweeps_us(sweep_us(all, c), all, c); };
  const auto above = m.cpu.lower_bound(threads);
  if (above == m.cpu.end()) return us(std::prev(above)->second);
  const double more = us(above->second);
  if (above->first == threads || above == m.cpu.begin()) return more;
  const auto below = std::prev(above);
  const double fewer = us(below->second);
  const double part = std::log(static_cast<double>(threads) / below->first) /
                      std::log(static_cast<double>(above->first) / below->first);
  return fewer * std::pow(more / fewer, part);
}

double device_us(const model& m, const call& c, const std::string& backend, place where) {
  const auto& device = device_of(m, backend);
  return sweeps_us(at(device[where][c.what], c.bytes), device[on_device], c);
}

double trips_us(const model& m, const call& c, const std::string& backend) {
  const auto& device = device_of(m, backend);
  return std::max(at(device[pageable][c.what], c.bytes) - at(device[on_device][c.what], c.bytes), 0.0);
}

}  // namespace lockstep::lib::cost
