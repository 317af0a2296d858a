// heat.cpp - heat spreading over a plate: 2-D stencil, many sweeps in one call, and every step the same bits as steps
// that are made one by one.
#include <cstdio>
#include <lockstep/lockstep.hpp>
#include <vector>

int main() try {
  const std::int64_t shape[] = {200, 300};
  const double weights[] = {0.6, 0.1, 0.1};  // centre, then the neighbours of each axis
  const int steps = 16;
  std::vector<float> start(200 * 300, 20.0f), at_once(start.size()), now(start), next(start.size());
  for (int i = 80; i < 120; ++i)
    for (int j = 100; j < 200; ++j) start[static_cast<std::size_t>(i * 300 + j)] = 90.0f;

  lockstep::context context;
  lockstep::stencil<float>(context, start, at_once, shape, 1, weights, LOCKSTEP_BOUNDARY_REFLECT, steps);
  now = start;
  for (int step = 0; step < steps; ++step) {
    lockstep::stencil<float>(context, now, next, shape, 1, weights, LOCKSTEP_BOUNDARY_REFLECT);
    now.swap(next);
  }
  const double heat = lockstep::sum<float>(context, at_once);
  std::printf("centre %.6f, sum %.3f, %d steps at once %s\n", at_once[100 * 300 + 150], heat, steps,
              at_once == now ? "equal single ones" : "DIFFER");
  return at_once == now ? 0 : 1;
} catch (const lockstep::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
