// openblas.cpp - OpenBLAS: omatcopy for transposes (a batch matrix by matrix), dot for squares and dot products (in the
// type of the data, which is faster and less exact than double). Not timed: its sum of floats, which is far off for
// numbers of both signs, and its iamax, which compares absolute values.
#include <cblas.h>

#include "peer.hpp"

extern "C" char* openblas_get_corename();

int main(int argc, char** argv) {
  using namespace lockstep;
  // The library reads these while it is loaded, so the program starts itself again. Otherwise its idle threads would
  // spin while lockstep is measured. 2^20 ticks are enough between two calls of its own.
  if (getenv("OPENBLAS_THREAD_TIMEOUT") == nullptr) {
    setenv("OPENBLAS_THREAD_TIMEOUT", "20", 1);
#if defined(__x86_64__)
    // For processors that it does not know, 0.3.21 takes very old kernels.
    if (__builtin_cpu_supports("avx512bw")) setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
#endif
    execv("/proc/self/exe", argv);
  }
  return peers::serve(argc, argv, "cpu", [](const peers::arguments& a) {
    if (a.threads > 0) openblas_set_num_threads(a.threads);
    const std::string version = openblas_get_config();
    const std::string name = version.substr(0, version.find(' ', 9)) + " " + openblas_get_corename();
    return [name](peers::subject& s) {
      const auto& t = s.c.transpose;
      if (s.c.op == LOCKSTEP_TRANSPOSE && !s.c.in_place && (t.element_bytes == 4 || t.element_bytes == 8)) {
        const auto rows = static_cast<blasint>(t.rows), cols = static_cast<blasint>(t.cols),
                   from = static_cast<blasint>(t.src_ld), to = static_cast<blasint>(t.dst_ld);
        const auto check = [&] { return s.bits(s.dst()); };
        const auto each = [&](const auto* x, auto* y, auto* copy) {
          s.time(
              name + " omatcopy",
              [=, &t] {
                for (int64_t k = 0; k < t.batch; ++k)
                  copy(CblasRowMajor, CblasTrans, rows, cols, 1, x + k * t.src_batch_stride, from,
                       y + k * t.dst_batch_stride, to);
              },
              check);
        };
        if (t.element_bytes == 4)
          each(s.src<float>(), s.dst<float>(), cblas_somatcopy);
        else
          each(s.src<double>(), s.dst<double>(), cblas_domatcopy);
      }
      double value = 0;
      const auto& d = s.c.sums;
      if (s.c.op == LOCKSTEP_SUMS && d.kind == LOCKSTEP_SUMS_DOT && d.count == 1 && s.c.offsets.empty() &&
          d.result == LOCKSTEP_F64 && d.length <= INT32_MAX) {
        const auto length = static_cast<blasint>(d.length), x_step = static_cast<blasint>(d.element_stride),
                   y_step = static_cast<blasint>(d.other_element_stride);
        const void* y = s.c.other.data();
        if (d.dtype == LOCKSTEP_F32)
          s.time(
              name + " dot, float",
              [&, x = s.src<float>()] {
                value = static_cast<double>(cblas_sdot(length, x, x_step, static_cast<const float*>(y), y_step));
              },
              [&] { return s.values<double>(&value, 1); });
        if (d.dtype == LOCKSTEP_F64)
          s.time(
              name + " dot",
              [&, x = s.src<double>()] {
                value = cblas_ddot(length, x, x_step, static_cast<const double*>(y), y_step);
              },
              [&] { return s.values<double>(&value, 1); });
      }
      const auto n = static_cast<blasint>(s.c.reduce.length);
      const auto check = [&] { return s.values<double>(&value, 1); };
      if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32))
        s.time(
            name + " dot, float", [&, x = s.src<float>()] { value = static_cast<double>(cblas_sdot(n, x, 1, x, 1)); },
            check);
      if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F64))
        s.time(
            name + " dot", [&, x = s.src<double>()] { value = cblas_ddot(n, x, 1, x, 1); }, check);
    };
  });
}
