// choices.cpp - who may compute: what there is, what auto took and why, a backend or variant by name, and the errors
// of names that do not fit.
#include <cstdio>
#include <lockstep/lockstep.hpp>
#include <vector>

int main() try {
  for (int b = 0; b < lockstep_backend_count(); ++b) {
    lockstep_backend_info backend{};
    backend.size = sizeof backend;
    if (lockstep_backend_get(b, &backend) != LOCKSTEP_OK) continue;
    std::printf("backend %s: %s\n", backend.name, backend.usable != 0 ? backend.description : backend.reason);
  }
  lockstep::context context;  // auto: LOCKSTEP_BACKEND, else the best there is
  const std::vector<double> x(5000, 0.25);
  const double by_auto = lockstep::sum<double>(context, x);
  const auto ran = lockstep::last_run();
  std::printf("auto took %s/%s%s%s\n", ran.backend, ran.variant, *ran.why != '\0' ? ": " : "", ran.why);

  lockstep_options options = lockstep_options_defaults();
  options.backend = "cpu";
  options.variant = "ref";  // plain loops: the definition in code
  const double by_ref = lockstep::sum<double>(context, x, &options);
  std::printf("cpu/ref %s\n", by_ref == by_auto ? "gives the same bits" : "DIFFERS");

  double none = 0;
  options.variant = "fastest";
  const auto failed = lockstep::try_sum<double>(context, x, none, &options);
  std::printf("%s: %s\n", lockstep_status_name(failed.status()), failed.text());
  return by_ref == by_auto && failed.status() == LOCKSTEP_NO_VARIANT ? 0 : 1;
} catch (const lockstep::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
