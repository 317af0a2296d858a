// omp_any.cpp - peer_omp for shapes that omp.cpp has no loop for: any permutation, reductions of every type by rows and
// by columns, symmetric stencils of any rank with boundary nearest. lockstep bench --sample draws such shapes, and
// without a peer they could not be judged.
#include <array>

#include "omp_types.hpp"

namespace {
using namespace lockstep;

template <class T>
void moved(peers::subject& s, const lockstep_permute_desc& p) {
  const T* x = s.src<T>();
  T* y = s.dst<T>();
  int64_t n[LOCKSTEP_MAX_RANK], from[LOCKSTEP_MAX_RANK];
  for (int k = 0; k < p.rank; ++k) n[k] = p.shape[p.perm[k]], from[k] = p.src_strides[p.perm[k]];
  s.time(
      "omp loops of any axes", [&] { peers::permute(x, y, p.rank, n, from, p.dst_strides); },
      [&] { return s.bits(y); });
}

// ---- reductions: what an element adds, and how two results become one ----------------
template <class Element, class Total>
struct sum {
  typedef Element element;
  typedef Total total;
  static Total of(Element x) { return static_cast<Total>(x); }
  static Total join(Total a, Total b) { return a + b; }
};
template <class Element>
struct squares {
  typedef Element element;
  typedef double total;
  static double of(Element x) {
    const auto v = static_cast<double>(x);
    return v * v;
  }
  static double join(double a, double b) { return a + b; }
};
template <class Element>
struct largest {
  typedef Element element;
  typedef Element total;
  static Element of(Element x) { return x; }
  static Element join(Element a, Element b) { return a > b ? a : b; }
};

template <class Op>
typename Op::total of_row(const typename Op::element* x, int64_t n) {
  typename Op::total all = Op::of(x[0]);
  for (int64_t i = 1; i < n; ++i) all = Op::join(all, Op::of(x[i]));
  return all;
}
// A row for each thread if there are enough of them, else all threads share each row.
template <class Op>
void of_rows(const typename Op::element* x, typename Op::total* y, int64_t count, int64_t n) {
  const int64_t threads = omp_get_max_threads();
  if (count >= 4 * threads) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; ++i) y[i] = of_row<Op>(x + i * n, n);
    return;
  }
  const int64_t pieces = std::clamp<int64_t>(n / 4096, 1, threads);
  std::vector<typename Op::total> part(static_cast<size_t>(count * pieces));
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < count * pieces; ++k) {
    const int64_t first = n * (k % pieces) / pieces, end = n * (k % pieces + 1) / pieces;
    part[static_cast<size_t>(k)] = of_row<Op>(x + k / pieces * n + first, end - first);
  }
  for (int64_t i = 0; i < count; ++i) {
    y[i] = part[static_cast<size_t>(i * pieces)];
    for (int64_t k = 1; k < pieces; ++k) y[i] = Op::join(y[i], part[static_cast<size_t>(i * pieces + k)]);
  }
}
// A block of columns for each thread if there are enough, else threads share the rows and their results are joined.
template <class Op>
void of_columns(const typename Op::element* x, typename Op::total* y, int64_t rows, int64_t cols) {
  const auto add = [&](typename Op::total* to, int64_t first_row, int64_t end_row, int64_t first, int64_t end) {
    for (int64_t j = first; j < end; ++j) to[j] = Op::of(x[first_row * cols + j]);
    for (int64_t i = first_row + 1; i < end_row; ++i)
      for (int64_t j = first; j < end; ++j) to[j] = Op::join(to[j], Op::of(x[i * cols + j]));
  };
  constexpr int64_t block = 512;
  const int64_t threads = omp_get_max_threads(), blocks = (cols + block - 1) / block;
  if (blocks >= 2 * threads) {
#pragma omp parallel for schedule(static)
    for (int64_t k = 0; k < blocks; ++k) add(y, 0, rows, k * block, std::min(cols, (k + 1) * block));
    return;
  }
  const int64_t pieces = std::clamp<int64_t>(rows * cols / 4096, 1, std::min(threads, rows));
  std::vector<typename Op::total> part(static_cast<size_t>(pieces * cols));
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < pieces; ++k) add(part.data() + k * cols, rows * k / pieces, rows * (k + 1) / pieces, 0, cols);
  for (int64_t j = 0; j < cols; ++j) {
    y[j] = part[static_cast<size_t>(j)];
    for (int64_t k = 1; k < pieces; ++k) y[j] = Op::join(y[j], part[static_cast<size_t>(k * cols + j)]);
  }
}

template <class Op>
void reduced(peers::subject& s, const char* name) {
  typedef typename Op::total total;
  const auto& d = s.c.reduce;
  const auto* x = s.src<typename Op::element>();
  total* y = s.dst<total>();
  const bool rows = d.element_stride == 1;
  s.time(
      name,
      [&] {
        if (rows)
          of_rows<Op>(x, y, d.count, d.length);
        else
          of_columns<Op>(x, y, d.length, d.count);
        if constexpr (std::is_same_v<total, double>)
          if (d.reduction == LOCKSTEP_NORM2)
            for (int64_t i = 0; i < d.count; ++i) y[i] = std::sqrt(y[i]);
      },
      [&] { return s.values<total>(y, d.count); });
}

// The largest first, then where it is.
template <class T>
void places(peers::subject& s) {
  const auto& d = s.c.reduce;
  const T* x = s.src<T>();
  int64_t* y = s.dst<int64_t>();
  std::vector<T> top(static_cast<size_t>(d.count));
  s.time(
      "omp loops of any sizes, two passes",
      [&] {
        of_rows<largest<T>>(x, top.data(), d.count, d.length);
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < d.count; ++i)
          y[i] = std::find(x + i * d.length, x + (i + 1) * d.length, top[i]) - x - i * d.length;
      },
      [&] { return s.bits(y); });
}

void reductions(peers::subject& s) {
  const auto& d = s.c.reduce;
  const auto squares_of = [&] {
    if (d.dtype == LOCKSTEP_F32) reduced<squares<float>>(s, "omp loops of any sizes, double");
    if (d.dtype == LOCKSTEP_F64) reduced<squares<double>>(s, "omp loops of any sizes");
    if (d.dtype == LOCKSTEP_F16) reduced<squares<peers::f16>>(s, "omp loops of any sizes, double");
    if (d.dtype == LOCKSTEP_BF16) reduced<squares<peers::bf16>>(s, "omp loops of any sizes, double");
  };
  if (d.reduction == LOCKSTEP_SUM_OF_SQUARES || d.reduction == LOCKSTEP_NORM2) squares_of();
  if (d.reduction == LOCKSTEP_SUM) {
    if (d.dtype == LOCKSTEP_F32) reduced<sum<float, double>>(s, "omp loops of any sizes, double");
    if (d.dtype == LOCKSTEP_F64) reduced<sum<double, double>>(s, "omp loops of any sizes");
    if (d.dtype == LOCKSTEP_I32) reduced<sum<int32_t, int64_t>>(s, "omp loops of any sizes");
  }
  if (d.reduction == LOCKSTEP_MAX) {
    if (d.dtype == LOCKSTEP_F32) reduced<largest<float>>(s, "omp loops of any sizes");
    if (d.dtype == LOCKSTEP_F64) reduced<largest<double>>(s, "omp loops of any sizes");
    if (d.dtype == LOCKSTEP_I32) reduced<largest<int32_t>>(s, "omp loops of any sizes");
  }
  if (d.reduction == LOCKSTEP_ARGMAX && d.element_stride == 1) {
    if (d.dtype == LOCKSTEP_F64) places<double>(s);
    if (d.dtype == LOCKSTEP_I32) places<int32_t>(s);
  }
}

// ---- stencils ------------------------------------------------------------------------
// n: planes, rows, elements; 1 for an axis that there is not. c: the centre, then each axis, the outermost first.
template <class T, int rank, int r>
void star(const T* src, T* dst, const std::array<int64_t, 3>& n, const T* c) {
  const auto [nz, ny, nx] = n;
  const int64_t block = rank == 1 ? 16384 : nx, blocks = (nx + block - 1) / block;
  const T *cx = c + (rank - 1) * r, *cy = c + (rank - 2) * r, *cz = c;
#pragma omp parallel for schedule(static)
  for (int64_t task = 0; task < nz * ny * blocks; ++task) {
    const int64_t z = task / blocks / ny, y = task / blocks % ny, first = task % blocks * block,
                  end = std::min(nx, first + block);
    const auto row = [&](int64_t at_z, int64_t at_y) {
      return src + (std::clamp<int64_t>(at_z, 0, nz - 1) * ny + std::clamp<int64_t>(at_y, 0, ny - 1)) * nx;
    };
    const T *p = row(z, y), *above[r + 1], *below[r + 1], *before[r + 1], *behind[r + 1];
    for (int k = 1; k <= r; ++k)
      above[k] = row(z, y - k), below[k] = row(z, y + k), before[k] = row(z - k, y), behind[k] = row(z + k, y);
    T* to = dst + (z * ny + y) * nx;
    const auto other_axes = [&](int64_t x) {
      T total = c[0] * p[x];
      for (int k = 1; k <= r; ++k) {
        if constexpr (rank > 1) total += cy[k] * (above[k][x] + below[k][x]);
        if constexpr (rank > 2) total += cz[k] * (before[k][x] + behind[k][x]);
      }
      return total;
    };
    const auto edge = [&](int64_t x) {
      T total = other_axes(x);
      for (int64_t k = 1; k <= r; ++k) total += cx[k] * (p[std::max<int64_t>(x - k, 0)] + p[std::min(x + k, nx - 1)]);
      to[x] = total;
    };
    const int64_t low = std::clamp<int64_t>(r, first, end), high = std::clamp(nx - r, low, end);
    for (int64_t x = first; x < low; ++x) edge(x);
#pragma omp simd
    for (int64_t x = low; x < high; ++x) {
      T total = other_axes(x);
      for (int k = 1; k <= r; ++k) total += cx[k] * (p[x - k] + p[x + k]);
      to[x] = total;
    }
    for (int64_t x = high; x < end; ++x) edge(x);
  }
}

template <class T, int rank, int r>
void stencil(peers::subject& s) {
  const auto& d = s.c.stencil;
  std::array<int64_t, 3> n = {1, 1, 1};
  for (int k = 0; k < rank; ++k) n[static_cast<size_t>(3 - rank + k)] = d.shape[k];
  const std::vector<T> c(s.c.coefficients.begin(), s.c.coefficients.end());
  const T* x = s.src<T>();
  T* y = s.dst<T>();
  const int64_t all = n[0] * n[1] * n[2];
  std::vector<T> between(d.sweeps > 1 ? static_cast<size_t>(all) : 0);
  s.time(
      "omp loops of any stencil",
      [&] {
        for (int k = 0; k < d.sweeps; ++k) {
          const bool into_dst = (d.sweeps - k) % 2 == 1;
          star<T, rank, r>(k == 0 ? x : into_dst ? between.data() : y, into_dst ? y : between.data(), n, c.data());
        }
      },
      [&] { return s.values<T>(y, all); });
}
template <class T, int rank>
void stencil_of_radius(peers::subject& s) {
  switch (s.c.stencil.radius) {
    case 1: return stencil<T, rank, 1>(s);
    case 2: return stencil<T, rank, 2>(s);
    case 3: return stencil<T, rank, 3>(s);
    case 4: return stencil<T, rank, 4>(s);
    case 8: return stencil<T, rank, 8>(s);
    default: return;
  }
}
template <class T>
void stencil_of_rank(peers::subject& s) {
  switch (s.c.stencil.rank) {
    case 1: return stencil_of_radius<T, 1>(s);
    case 2: return stencil_of_radius<T, 2>(s);
    case 3: return stencil_of_radius<T, 3>(s);
    default: return;
  }
}
}  // namespace

void measure_any(peers::subject& s) {
  const auto& d = s.c.stencil;
  const auto move = [&](const lockstep_permute_desc& p) {
    switch (p.element_bytes) {
      case 1: return moved<uint8_t>(s, p);
      case 2: return moved<uint16_t>(s, p);
      case 4: return moved<uint32_t>(s, p);
      case 8: return moved<uint64_t>(s, p);
      default: return;
    }
  };
  if (peers::packed_permute(s.c)) move(s.c.permute);
  if (peers::packed_transposes(s.c)) {
    const int64_t shape[] = {s.c.transpose.batch, s.c.transpose.rows, s.c.transpose.cols};
    const int32_t perm[] = {0, 2, 1};
    move(lockstep_permute_packed(s.c.transpose.element_bytes, 3, shape, perm));
  }
  const auto& r = s.c.reduce;
  const bool reduces = (s.c.op == LOCKSTEP_SQUARE_SUM || s.c.op == LOCKSTEP_REDUCE) && s.c.offsets.empty();
  const bool rows = r.element_stride == 1 && (r.count == 1 || r.sequence_stride == r.length);
  const bool columns = r.sequence_stride == 1 && r.element_stride == r.count;
  if (reduces && (rows || columns) && r.result == lockstep_default_result(r.reduction, r.dtype) && r.length > 0)
    reductions(s);
  if (s.c.op == LOCKSTEP_STENCIL && d.form == LOCKSTEP_SYMMETRIC && d.boundary == LOCKSTEP_BOUNDARY_NEAREST &&
      d.batch == 1 && d.sweeps > 0)
    d.dtype == LOCKSTEP_F32 ? stencil_of_rank<float>(s) : stencil_of_rank<double>(s);
}
