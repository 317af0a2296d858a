// same_bits.cpp - one sum by every backend, every variant that keeps the order, and 1 to 7 threads: the same 64 bits.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <lockstep/lockstep.hpp>
#include <string>
#include <vector>

int main() try {
  std::vector<float> x(1'000'003);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));

  int wrong = 0, runs = 0;
  std::uint64_t first = 0;
  const auto compare = [&](double sum, const std::string& how) {
    const auto bits = std::bit_cast<std::uint64_t>(sum);
    if (runs++ == 0) first = bits;
    if (bits != first) std::printf("%s: %016llx\n", how.c_str(), static_cast<unsigned long long>(bits)), ++wrong;
  };
  for (const int threads : {1, 2, 3, 7}) {
    lockstep_context_options options = lockstep_context_defaults();
    options.backend = "cpu";
    options.threads = threads;
    lockstep::context context(options);
    compare(lockstep::square_sum<float>(context, x), "cpu, " + std::to_string(threads) + " threads");
  }
  for (int b = 0; b < lockstep_backend_count(); ++b) {
    lockstep_backend_info backend{};
    backend.size = sizeof backend;
    if (lockstep_backend_get(b, &backend) != LOCKSTEP_OK || backend.usable == 0) continue;
    lockstep::context context(backend.name);
    for (int v = 0; v < lockstep_variant_count(backend.name, LOCKSTEP_SQUARE_SUM); ++v) {
      lockstep_variant_info row{};
      row.size = sizeof row;
      if (lockstep_variant_get(backend.name, LOCKSTEP_SQUARE_SUM, v, &row) != LOCKSTEP_OK) continue;
      if ((row.flags & LOCKSTEP_OWN_ORDER) != 0) continue;  // its order is its lesson
      lockstep_options options = lockstep_options_defaults();
      options.variant = row.name;
      double sum = 0;
      if (const auto failed = lockstep::try_square_sum<float>(context, x, sum, &options)) {
        if (failed.status() != LOCKSTEP_UNSUPPORTED) failed.raise();
        continue;  // a row that does not take this call
      }
      compare(sum, std::string(backend.name) + "/" + row.name);
    }
  }
  std::printf("%d sums, %d that differ from %.17g\n", runs, wrong, std::bit_cast<double>(first));
  return wrong != 0 || runs < 5;
} catch (const lockstep::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
