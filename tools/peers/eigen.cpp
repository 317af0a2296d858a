// eigen.cpp - Eigen on one thread: transposes and batches of them, permutes by its tensors, sums, extremes, rows, 1-D
// stencils. No 3-D stars: its matrices have two axes, and a convolution of its tensors reads a whole box.
#include <Eigen/Dense>
#include <unsupported/Eigen/CXX11/Tensor>

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
  const auto body = [&, x = s.src<T>(), y = s.dst<T>()] {
    for (int64_t k = 0; k < t.batch; ++k) {
      const Eigen::Map<const matrix<T>> from(x + k * t.src_batch_stride, t.rows, t.cols);
      Eigen::Map<matrix<T>>(y + k * t.dst_batch_stride, t.cols, t.rows).noalias() = from.transpose();
    }
  };
  s.time(name, body, [&] { return s.bits(s.dst()); });
}

template <int rank>
void permute(const std::string& name, peers::subject& s) {
  const auto& p = s.c.permute;
  if (p.rank != rank) return;
  Eigen::array<Eigen::Index, rank> from, to;
  Eigen::array<int, rank> axes;
  for (size_t k = 0; k < rank; ++k) from[k] = p.shape[k], axes[k] = p.perm[k], to[k] = p.shape[p.perm[k]];
  const Eigen::TensorMap<const Eigen::Tensor<float, rank, Eigen::RowMajor>> x(s.src<float>(), from);
  Eigen::TensorMap<Eigen::Tensor<float, rank, Eigen::RowMajor>> y(s.dst<float>(), to);
  s.time(
      name + " shuffle", [&] { y = x.shuffle(axes); }, [&] { return s.bits(s.dst()); });
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
    s.time(
        name + " squares", [&, x = vector<double>(s.src<double>(), n)] { value = x.square().sum(); }, check);
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_I32))
    s.time(
        name + " squares, wrapping i64",
        [&, x = vector<int32_t>(s.src<int32_t>(), n)] { at = x.cast<Eigen::Index>().square().sum(); },
        [&] { return s.values<int64_t>(&at, 1); });
  if (peers::whole(s.c, LOCKSTEP_SUM, LOCKSTEP_F32))
    s.time(
        name + " sum, double", [&, x = vector<float>(s.src<float>(), n)] { value = x.cast<double>().sum(); }, check);
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
  if (peers::rows(s.c, LOCKSTEP_ARGMAX, LOCKSTEP_F32)) {
    const auto body = [&, m = x(), z = s.dst<int64_t>()] {
      for (int64_t i = 0; i < count; ++i) m.row(i).maxCoeff(&z[i]);
    };
    s.time(name + " maxCoeff(&i) a row", body, [&] { return s.values<int64_t>(s.dst<int64_t>(), count); });
  }
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
    if (a.threads > 1) std::exit(0);  // Eigen's expressions use one
    const std::string name = "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." +
                             std::to_string(EIGEN_MAJOR_VERSION) + "." + std::to_string(EIGEN_MINOR_VERSION);
    return [name](peers::subject& s) {
      if (peers::packed_transposes(s.c)) switch (s.c.transpose.element_bytes) {
          case 1: transpose<uint8_t>(name, s); break;
          case 4: transpose<float>(name, s); break;
          case 8: transpose<double>(name, s); break;
          default: break;
        }
      if (peers::packed_permute(s.c) && s.c.permute.element_bytes == 4) {
        permute<3>(name, s);
        permute<4>(name, s);
        permute<5>(name, s);
        permute<6>(name, s);
      }
      if (peers::reduction(s.c)) reductions(name, s);
      if (peers::star(s.c, 1)) stencil_1d(name, s);
    };
  });
}
