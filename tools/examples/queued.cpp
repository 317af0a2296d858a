// queued.cpp - work that is queued while the program goes on, on a GPU's own memory where there is one: plans,
// LOCKSTEP_ASYNC, and one place where failures come out. It needs no CUDA toolkit.
#include <cstdio>
#include <lockstep/lockstep.hpp>
#include <vector>

int main() try {
  lockstep::context context;
  const bool gpu = [] {
    lockstep::context none(nullptr);
    lockstep_context_options options = lockstep_context_defaults();
    options.backend = "cuda";
    return !lockstep::context::try_create(options, none);
  }();
  const char* backend = gpu ? "cuda" : "cpu";
  const lockstep_memory kind = gpu ? LOCKSTEP_DEVICE : LOCKSTEP_HOST;
  context.set_backend(backend);

  const std::int64_t n = 1 << 20;
  std::vector<float> host(n);
  for (std::int64_t i = 0; i < n; ++i) host[static_cast<std::size_t>(i)] = static_cast<float>(i % 7);
  lockstep::buffer<float> x(context, backend, kind, n), y(context, backend, kind, n);
  lockstep::buffer<double> sums(context, backend, kind, 1024);
  x.assign(host);

  lockstep::plan transpose(context, lockstep_transpose_packed(sizeof(float), 1024, 1024));
  lockstep::plan add(context, lockstep_reduce_rows(LOCKSTEP_SUM, LOCKSTEP_F32, 1024, 1024, 1024));
  lockstep_options queued = lockstep_options_defaults();
  queued.flags = LOCKSTEP_ASYNC;
  transpose.execute(x.data(), y.data(), &queued);
  context.synchronize();  // plans have a queue each: the second reads what the first wrote
  add.execute(y.data(), sums.data(), &queued);
  context.synchronize();

  std::vector<double> result(1024);
  sums.copy_to(result);
  double expected = 0;
  for (int row = 0; row < 1024; ++row) expected += host[static_cast<std::size_t>(row) * 1024];
  std::printf("%s: column 0 sums to %g, expected %g\n", backend, result[0], expected);
  return result[0] == expected ? 0 : 1;
} catch (const lockstep::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
