// eigen.cpp - Eigen: transposes, row reductions, squared norms.
#include <Eigen/Dense>

#include "peer.hpp"

namespace {
template <class T>
using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
}

int main(int argc, char** argv) {
  using namespace lockstep;
  const peers::arguments a = peers::parse(argc, argv);
  if (a.backend != "cpu" || a.threads > 1) return 0;  // these run on one thread
  const std::string name = "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." + std::to_string(EIGEN_MINOR_VERSION);
  for (const std::string& one : a.cases) {
    const peers::subject s(one);
    const auto& t = s.c.transpose;
    const auto& r = s.c.reduce;
    if (s.c.op == LOCKSTEP_TRANSPOSE && t.batch == 1 && t.src_ld == t.cols && t.dst_ld == t.rows && t.element_bytes == 4 && !s.c.in_place) {
      std::vector<unsigned char> dst(s.want.size());
      const Eigen::Map<const matrix<float>> from(reinterpret_cast<const float*>(s.src.data()), t.rows, t.cols);
      Eigen::Map<matrix<float>> to(reinterpret_cast<float*>(dst.data()), t.cols, t.rows);
      const auto body = [&] { to.noalias() = from.transpose(); };
      body();
      const std::string checked = s.compare(dst.data());
      peers::print(one, name, peers::time_host(a, body), checked);
    }
    if (s.c.op == LOCKSTEP_SQUARE_SUM && r.count == 1 && r.element_stride == 1 && r.dtype == LOCKSTEP_F64 && r.reduction == LOCKSTEP_SUM_OF_SQUARES) {
      const Eigen::Map<const Eigen::VectorXd> x(reinterpret_cast<const double*>(s.src.data()), r.length);
      double value = 0, want = 0;
      std::memcpy(&want, s.want.data(), 8);
      const auto body = [&] { value = x.squaredNorm(); };
      body();
      const std::string checked = s.compare_value(value, want);
      peers::print(one, name + " squaredNorm", peers::time_host(a, body), checked);
    }
    if (s.c.op == LOCKSTEP_REDUCE && r.count > 1 && r.element_stride == 1 && r.sequence_stride == r.length && r.dtype == LOCKSTEP_F32 &&
        (r.reduction == LOCKSTEP_SUM || r.reduction == LOCKSTEP_MAX)) {
      const Eigen::Map<const matrix<float>> x(reinterpret_cast<const float*>(s.src.data()), r.count, r.length);
      Eigen::VectorXf y(r.count);
      const auto body = [&] {
        if (r.reduction == LOCKSTEP_SUM) y = x.rowwise().sum();
        else y = x.rowwise().maxCoeff();
      };
      peers::print(one, name + " rowwise (float)", peers::time_host(a, body), "not checked: float accumulation");
    }
  }
}
