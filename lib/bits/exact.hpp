// exact.hpp - results of an exact 192-bit integer sum (least significant limb first, two's complement).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace lockstep::order {

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

// The correctly rounded square root. The sum is shifted by an even number of bits to
// [2^110, 2^112), so that its integer root has 56 bits, two more than rounding needs. A
// sticky bit says whether anything lies below them. The floating-point estimate is
// corrected by the integer remainder until r^2 <= shifted < (r+1)^2.
inline double rounded_root(const uint64_t (&limb)[3]) {
  int bits = 0;
  for (int k = 2; k >= 0 && bits == 0; --k)
    if (limb[k] != 0) bits = 64 * k + static_cast<int>(std::bit_width(limb[k]));
  if (bits == 0) return 0.0;
  const int shift = (bits + 1) / 2 * 2 - 112;  // positive: to the right
  const uint128 low = static_cast<uint128>(limb[1]) << 64 | limb[0];
  uint128 shifted = 0;
  bool sticky = false;
  if (shift <= 0) {
    shifted = low << -shift;
  } else {
    shifted = (low >> shift) | static_cast<uint128>(limb[2]) << (128 - shift);
    sticky = (low & ((uint128{1} << shift) - 1)) != 0;
  }
  auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(shifted)));
  const auto remainder = [&] {
    return static_cast<int128>(shifted) - static_cast<int128>(static_cast<uint128>(root) * root);
  };
  root += static_cast<uint64_t>(static_cast<int64_t>(remainder()) / static_cast<int64_t>(2 * root));
  while (remainder() < 0) --root;
  while (remainder() > 2 * static_cast<int128>(root)) ++root;
  sticky = sticky || remainder() != 0;
  return std::ldexp(static_cast<double>(root << 1 | (sticky ? 1 : 0)), shift / 2 - 1);
}

}  // namespace lockstep::order
