// eigen.cpp - Eigen's expressions, on one thread: transposes, sums, extremes, rows, stencils.
#include <Eigen/Dense>

#include "peer.hpp"

namespace {
using namespace lockstep;

template <class T>
using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using vector = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

template <class T>
void transpose(const std::string& name, peers::subject& s) {
  const auto& t = s.c.transpose;
  const Eigen::Map<const matrix<T>> from(s.src<T>(), t.rows, t.cols);
  Eigen::Map<matrix<T>> to(s.dst<T>(), t.cols, t.rows);
  s.time(name, [&] { to.noalias() = from.transpose(); }, [&] { return s.bits(s.dst()); });
}

void reductions(const std::string& name, peers::subject& s) {
  const int64_t n = s.c.reduce.length, count = s.c.reduce.count;
  double value = 0;
  Eigen::Index at = 0;
  const auto check = [&] { return s.values<double>(&value, 1); };
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32))
    s.time(
        name + " squares, double",
        [&, x = vector<float>(s.src<float>(), n)] { value = x.cast<double>().square().sum(); }, check);
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F64))
    s.time(name + " squares", [&, x = vector<double>(s.src<double>(), n)] { value = x.square().sum(); }, check);
  if (peers::whole(s.c, LOCKSTEP_SUM, LOCKSTEP_F32))
    s.time(name + " sum, double", [&, x = vector<float>(s.src<float>(), n)] { value = x.cast<double>().sum(); }, check);
  if (peers::whole(s.c, LOCKSTEP_MAX, LOCKSTEP_F32))
    s.time(
        name + " maxCoeff", [&, x = vector<float>(s.src<float>(), n)] { value = static_cast<double>(x.maxCoeff()); },
        [&] { return s.values<float>(&value, 1); });
  if (peers::whole(s.c, LOCKSTEP_ARGMAX, LOCKSTEP_F32))
    s.time(
        name + " maxCoeff(&i)",
        [&, x = vector<float>(s.src<float>(), n)] { value = static_cast<double>(x.maxCoeff(&at)); },
        [&] { return s.values<int64_t>(&at, 1); });
  if (count == 1) return;
  const auto x = [&] { return Eigen::Map<const matrix<float>>(s.src<float>(), count, n); };
  Eigen::VectorXf y(count);
  if (peers::rows(s.c, LOCKSTEP_SUM, LOCKSTEP_F32))
    s.time(
        name + " rowwise, float", [&, m = x()] { y = m.rowwise().sum(); },
        [&] { return s.values<double>(y.data(), count); });
  if (peers::rows(s.c, LOCKSTEP_MAX, LOCKSTEP_F32))
    s.time(
        name + " rowwise", [&, m = x()] { y = m.rowwise().maxCoeff(); },
        [&] { return s.values<float>(y.data(), count); });
}

void stencil_1d(const std::string& name, peers::subject& s) {
  const int64_t n = s.c.stencil.shape[0];
  const std::vector<float> c(s.c.coefficients.begin(), s.c.coefficients.end());
  const vector<float> x(s.src<float>(), n);
  Eigen::Map<Eigen::ArrayXf> y(s.dst<float>(), n);
  const auto at = [&](int64_t k) { return x.segment(4 + k, n - 8); };
  const auto body = [&] {
    y.segment(4, n - 8) = c[0] * at(0) + c[1] * (at(-1) + at(1)) + c[2] * (at(-2) + at(2)) + c[3] * (at(-3) + at(3)) +
                          c[4] * (at(-4) + at(4));
  };
  s.time(name + " segments", body, [&] { return s.inside(s.dst<float>()); });
}
}  // namespace

int main(int argc, char** argv) {
  return peers::serve(argc, argv, "cpu", [](const peers::arguments& a) {
    if (a.threads > 1) std::exit(0);  // these run on one thread
    const std::string name = "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." +
                             std::to_string(EIGEN_MAJOR_VERSION) + "." + std::to_string(EIGEN_MINOR_VERSION);
    return [name](peers::subject& s) {
      if (peers::plain_transpose(s.c)) switch (s.c.transpose.element_bytes) {
          case 1: transpose<uint8_t>(name, s); break;
          case 4: transpose<float>(name, s); break;
          case 8: transpose<double>(name, s); break;
          default: break;
        }
      if (peers::reduction(s.c)) reductions(name, s);
      if (peers::star(s.c, 1)) stencil_1d(name, s);
    };
  });
}
