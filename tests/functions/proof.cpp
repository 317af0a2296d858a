// proof.cpp - FUNCTION FIRST COUNT [STEP]: whether the double program of a function is on the right side of every
// middle of two f32, f16 or bf16, for COUNT bit patterns of f32 from FIRST on, STEP apart. FIRST 0 and COUNT 4294967296
// is the whole proof: f16 and bf16 arguments are among the f32. Prints each argument that is wrong.
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "bits/functions.hpp"
#include "reference.hpp"

namespace {

namespace programs = lockstep::functions;

// As a vector, so that the compiler computes four arguments at once.
struct four {
  typedef double real __attribute__((vector_size(32)));
  typedef uint64_t bits __attribute__((vector_size(32)));
  static constexpr bool usual = false;
  LOCKSTEP_PROGRAM static real all(double x) { return x - real{}; }
  LOCKSTEP_PROGRAM static real fma(real a, real b, real c) {
    real y;
    for (int i = 0; i < 4; ++i) y[i] = __builtin_fma(a[i], b[i], c[i]);
    return y;
  }
  LOCKSTEP_PROGRAM static real root(real x) {
    for (int i = 0; i < 4; ++i) x[i] = std::sqrt(x[i]);
    return x;
  }
  LOCKSTEP_PROGRAM static bits bits_of(real x) { return reinterpret_cast<bits>(x); }
  LOCKSTEP_PROGRAM static real of_bits(bits x) { return reinterpret_cast<real>(x); }
};

template <int f>
void apply(const double* x, double* y, int n) {
  for (int i = 0; i < n; i += 4) {
    four::real v;
    memcpy(&v, x + i, sizeof v);
    v = programs::programs<four>::apply<static_cast<programs::function>(f)>(v);
    memcpy(y + i, &v, sizeof v);
  }
}
constexpr void (*appliers[])(const double*, double*, int) = {apply<0>,  apply<1>,  apply<2>,  apply<3>, apply<4>,
                                                             apply<5>,  apply<6>,  apply<7>,  apply<8>, apply<9>,
                                                             apply<10>, apply<11>, apply<12>, apply<13>};

int sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

// Where a middle goes when it is rounded: to the neighbour whose last bit is 0. Its own last 1 is half of theirs.
int side_of_a_tie(double middle) {
  const auto bits = std::bit_cast<uint64_t>(middle);
  const bool away = (bits & (bits & -bits) << 1) != 0;
  return away ? sign(middle) : -sign(middle);
}

struct proof {
  int f;
  reference::exact digits{};
  int64_t near = 0, wrong = 0;
  double farthest = 0;

  void report(double x, double y, const char* what) {
    if (++wrong <= 20)
      std::printf("%s(%a, f32 0x%08X) is %a by the program: %s\n", programs::names[f], x,
                  std::bit_cast<uint32_t>(static_cast<float>(x)), y, what);
  }
  void check(double x, double y) {
    const double r = reference::rough(f, x);
    if (r == y && (r == 0 || std::isinf(r))) {
      if (std::signbit(r) != std::signbit(y)) report(x, y, "another sign");
      return;
    }
    if (std::isnan(r) || std::isnan(y)) {
      if (std::isnan(r) != std::isnan(y)) report(x, y, "NaN or not");
      return;
    }
    if (std::signbit(r) != std::signbit(y)) return report(x, y, "another sign");
    // Results that are 0 or infinite in each type.
    if ((std::fabs(r) < 0x1p-151 && std::fabs(y) < 0x1p-151) || (std::fabs(r) > 0x1p129 && std::fabs(y) > 0x1p129))
      return;
    const auto bits = std::bit_cast<int64_t>(r), apart = std::bit_cast<int64_t>(y) - bits;
    if (apart > reference::margin || apart < -reference::margin) return report(x, y, "far from libm's value");
    // Middles of all three types are multiples of 2^28 of a double's last place, down to the least denormal float.
    constexpr int64_t grid = int64_t{1} << 28;
    if (((bits + 2 * reference::margin) & (grid - 1)) >= 4 * reference::margin) return;
    const auto value = std::bit_cast<double>((bits + grid / 2) & ~(grid - 1));
    for (const reference::format& to : reference::formats) {
      if (!reference::middle(to, value)) continue;
      ++near;
      const int exact = digits.against(f, x, value);
      if (exact != (y == value && exact != 0 ? side_of_a_tie(value) : sign(y - value))) report(x, y, to.name);
      break;  // the side is the same for the others
    }
  }
};

}  // namespace

int main(int count, char** words) {
  int f = 0;
  while (count > 3 && f < programs::count && words[1] != std::string_view(programs::names[f])) ++f;
  if (count < 4 || f == programs::count) {
    std::fprintf(stderr, "usage: functions_proof FUNCTION FIRST COUNT [STEP]\n");
    return 2;
  }
  const uint64_t first = std::strtoull(words[2], nullptr, 0), inputs = std::strtoull(words[3], nullptr, 0);
  const uint64_t step = count > 4 ? std::strtoull(words[4], nullptr, 0) : 1;
  proof p{f};
  constexpr int block = 1024;
  static double x[block], y[block];
  for (uint64_t i = 0; i < inputs;) {
    int n = 0;
    for (; n < block && i < inputs; ++n, ++i)
      x[n] = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(first + i * step)));
    for (int k = n; k < block; ++k) x[k] = 1;
    appliers[f](x, y, block);
    for (int k = 0; k < n; ++k) p.check(x[k], y[k]);
  }
  std::printf("%s: %" PRIu64 " arguments, %" PRId64 " near a middle, %" PRId64 " wrong\n", programs::names[f], inputs,
              p.near, p.wrong);
  return p.wrong != 0;
}
