// few_columns.hpp - leaves of so few neighbouring columns that visiting the 128 lanes one by one would cost more than
// their sums: lanes l, l + 16, ... are summed side by side in registers, and joined there.
#pragma once

#include "bits/order.hpp"
#include "tuning.hpp"
#include "vectors.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

inline bool are_few_columns(int64_t n, int64_t width) {
  return width <= W * tuned.few_vectors && n * width <= W * tuned.few_vector_loads;
}

// enter(acc, r, c, m): acc with elements c, c + 1, ... of row r, of which m are left.
template <class K, class Enter>
inline void few_columns(int64_t n, int64_t width, const Enter& enter, double* out) {
  constexpr int apart = 16, together = order::lanes / apart;
  for (int64_t c = 0; c < width; c += W) {
    vd lane[apart];
    for (int l = 0; l < apart; ++l) {
      vd acc[together];
      for (int k = 0; k < together; ++k) acc[k] = splat(none<K>);
      for (int64_t first = l; first < n; first += order::lanes)
        for (int k = 0; k < together && first + k * apart < n; ++k)
          acc[k] = enter(acc[k], first + k * apart, c, width - c);
      for (int d = together / 2; d >= 1; d /= 2)
        for (int k = 0; k < d; ++k) acc[k] = joined<K>(acc[k], acc[k + d]);
      lane[l] = acc[0];
    }
    for (int d = apart / 2; d >= 1; d /= 2)
      for (int k = 0; k < d; ++k) lane[k] = joined<K>(lane[k], lane[k + d]);
    memcpy(out + c, &lane[0], sizeof lane[0]);
  }
}

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
