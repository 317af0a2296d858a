// openblas.cpp - OpenBLAS: omatcopy for transposes, dot and nrm2 for squares (single
// precision accumulation: faster and less exact than ours).
#include <cblas.h>

#include "peer.hpp"

int main(int argc, char** argv) {
  using namespace lockstep;
  const peers::arguments a = peers::parse(argc, argv);
  if (a.backend != "cpu") return 0;
  if (a.threads > 0) openblas_set_num_threads(a.threads);
  const std::string version = std::string(openblas_get_config());
  const std::string name = version.substr(0, version.find(' ', 9));
  for (const std::string& one : a.cases) {
    const peers::subject s(one);
    const auto& t = s.c.transpose;
    if (s.c.op == LOCKSTEP_TRANSPOSE && t.batch == 1 && (t.element_bytes == 4 || t.element_bytes == 8) && !s.c.in_place) {
      std::vector<unsigned char> dst(s.want.size());
      const auto rows = static_cast<blasint>(t.rows), cols = static_cast<blasint>(t.cols);
      const auto body = [&] {
        if (t.element_bytes == 4)
          cblas_somatcopy(CblasRowMajor, CblasTrans, rows, cols, 1.0f, reinterpret_cast<const float*>(s.src.data()), static_cast<blasint>(t.src_ld),
                          reinterpret_cast<float*>(dst.data()), static_cast<blasint>(t.dst_ld));
        else
          cblas_domatcopy(CblasRowMajor, CblasTrans, rows, cols, 1.0, reinterpret_cast<const double*>(s.src.data()), static_cast<blasint>(t.src_ld),
                          reinterpret_cast<double*>(dst.data()), static_cast<blasint>(t.dst_ld));
      };
      body();
      const std::string checked = s.compare(dst.data());
      peers::print(one, name + " omatcopy", peers::time_host(a, body), checked);
    }
    const auto& r = s.c.reduce;
    if (s.c.op == LOCKSTEP_SQUARE_SUM && r.count == 1 && r.element_stride == 1 && r.offsets == nullptr && r.reduction == LOCKSTEP_SUM_OF_SQUARES &&
        (r.dtype == LOCKSTEP_F32 || r.dtype == LOCKSTEP_F64)) {
      double value = 0, want = 0;
      std::memcpy(&want, s.want.data(), 8);
      const auto n = static_cast<blasint>(r.length);
      const auto body = [&] {
        value = r.dtype == LOCKSTEP_F32 ? cblas_sdot(n, reinterpret_cast<const float*>(s.src.data()), 1, reinterpret_cast<const float*>(s.src.data()), 1)
                                        : cblas_ddot(n, reinterpret_cast<const double*>(s.src.data()), 1, reinterpret_cast<const double*>(s.src.data()), 1);
      };
      body();
      const std::string checked = s.compare_value(value, want);
      peers::print(one, name + " dot", peers::time_host(a, body), checked);
    }
  }
}
