#include <cstdio>
#include <lockstep/lockstep.hpp>
#include <vector>

int main() try {
  lockstep::context context;  // "auto": the best backend there is
  const std::vector<float> x(1'000'003, 0.5f);
  const double sum = lockstep::square_sum(context, x);
  const auto ran = lockstep::last_run();
  std::printf("%.17g by %s/%s\n", sum, ran.backend, ran.variant);
  return sum == 250000.75 ? 0 : 1;
} catch (const lockstep::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
