// halide.cpp - Halide, compiled at run time for this processor: transposes and permutes
// by tiles in registers, reductions by lanes in double, 1-D and 3-D star stencils.
#include <Halide.h>

#include <map>

#include "peer.hpp"

namespace {
using namespace lockstep;
using namespace Halide;

const std::string library =
    "Halide " + std::to_string(HALIDE_VERSION_MAJOR) + "." + std::to_string(HALIDE_VERSION_MINOR);

// A pipeline of one input and one output, compiled.
std::function<void()> compiled(Func out, ImageParam in, Buffer<> src, Buffer<> dst) {
  const Target host =
      get_jit_target_from_environment().with_feature(Target::NoAsserts).with_feature(Target::NoBoundsQuery);
#if HALIDE_VERSION_MAJOR >= 15
  Callable call = out.compile_to_callable({in}, host);
  return [=]() mutable { (void)call(src, dst); };
#else
  in.set(src);
  out.compile_jit(host);
  return [=]() mutable { out.realize({dst}); };
#endif
}

// dst's axes are src's in the order perm, both dense, innermost first as Halide counts. Tiles of 16 x 16, whose loads
// are gathered into vectors of dst's rows. in_blocks: tiles within blocks of 256 x 64, which is faster for pitches that
// are powers of two and slower for others. Figures, and other tiles that were tried: tests/results/tries.md.
Func permuted(ImageParam in, const std::vector<int>& dst_sizes, const std::vector<int>& perm, size_t bytes,
              bool in_blocks) {
  const size_t rank = perm.size();
  std::vector<Var> v(rank);
  std::vector<Expr> at(rank);
  for (size_t k = 0; k < rank; ++k) at[static_cast<size_t>(perm[k])] = v[k];
  Func out("out");
  out(v) = in(at);
  size_t inner = 0;  // dst's axis that is innermost in src
  while (perm[inner] != 0) ++inner;
  std::vector<VarOrRVar> order;
  size_t tiled = 1;
  if (inner == 0) {
    out.vectorize(v[0], std::min(64 / static_cast<int>(bytes), dst_sizes[0]));
  } else {
    Var xb("xb"), yb("yb"), x("x"), y("y"), xo("xo"), yo("yo"), xi("xi"), yi("yi");
    const int nx = dst_sizes[0], ny = dst_sizes[inner];
    constexpr auto tail = TailStrategy::ShiftInwards;
    if (in_blocks) {
      out.tile(v[0], v[inner], xb, yb, x, y, std::min(nx, 256), std::min(ny, 64), tail);
      out.tile(x, y, xo, yo, xi, yi, std::min(nx, 16), std::min(ny, 16), tail);
      order = {xi, yi, yo, xo, yb, xb};
    } else {
      out.tile(v[0], v[inner], xo, yo, xi, yi, std::min(nx, 16), std::min(ny, 16), tail);
      order = {xi, yi, yo, xo};
    }
    out.vectorize(xi).unroll(yi);
    tiled = order.size();
  }
  for (size_t k = 1; k < rank; ++k)
    if (k != inner) order.push_back(v[k]);
  if (inner != 0) out.reorder(order);
  // The iterations of the two outermost loops are the tasks.
  Var task("task");
  if (order.size() > tiled)
    out.fuse(Var(order[order.size() - 2].name()), Var(order.back().name()), task).parallel(task);
  else
    out.parallel(Var(order.back().name()));
  return out;
}

void moved(peers::subject& s, size_t bytes, const std::vector<int>& sizes, const std::vector<int>& perm) {
  const auto rank = static_cast<int>(sizes.size());
  std::vector<int> dst_sizes;
  for (const int axis : perm) dst_sizes.push_back(sizes[static_cast<size_t>(axis)]);
  const Type type = UInt(static_cast<int>(bytes) * 8);
  const auto dense = [](const std::vector<int>& n) {
    std::vector<halide_dimension_t> shape;
    int stride = 1;
    for (const int one : n) shape.emplace_back(0, one, stride), stride *= one;
    return shape;
  };
  const auto src_shape = dense(sizes), dst_shape = dense(dst_sizes);
  const auto fix = [](auto&& parameter, const std::vector<halide_dimension_t>& shape) {
    for (size_t k = 0; k < shape.size(); ++k)
      parameter.dim(static_cast<int>(k)).set_min(0).set_extent(shape[k].extent).set_stride(shape[k].stride);
  };
  Buffer<> src(Runtime::Buffer<>(type, const_cast<unsigned char*>(s.src()), rank, src_shape.data()));
  Buffer<> dst(Runtime::Buffer<>(type, s.dst(), rank, dst_shape.data()));
  std::function<void()> best;
  double least = 1e300;
  for (const bool in_blocks : {false, true}) {
    if (in_blocks && perm[0] == 0) continue;
    ImageParam in(type, rank);
    fix(in, src_shape);
    Func out = permuted(in, dst_sizes, perm, bytes, in_blocks);
    fix(out.output_buffer(), dst_shape);
    const auto body = compiled(out, in, src, dst);
    body();
    const double begin = peers::now_ms();
    body();
    if (const double ms = peers::now_ms() - begin; ms < least) least = ms, best = body;
  }
  std::memset(s.dst(), 0xA5, s.c.dst.span_bytes());
  s.time(library, best, [&] { return s.bits(s.dst()); });
}

// ---- reductions ------------------------------------------------------------------------
// Chunks in parallel, lanes within a chunk; then all are joined.
void whole(peers::subject& s, Type type, bool square, bool largest) {
  constexpr int lanes = 64, chunk = 1 << 14;
  const int64_t n = s.c.reduce.length;
  if (n % chunk != 0) return;
  const Type sum = largest ? type : type.is_float() ? Float(64) : Int(64);
  ImageParam in(type, 1);
  Var l("l"), c("c"), o("o");
  RDom r(0, chunk / lanes), all(0, lanes, 0, static_cast<int>(n / chunk));
  Func part("part"), lane("lane"), out("out");
  const Expr x = cast(sum, in(c * chunk + r * lanes + l));
  const Expr least = largest ? type.min() : cast(sum, 0);
  lane(l, c) = least;
  lane(l, c) = largest ? max(lane(l, c), x) : lane(l, c) + (square ? x * x : x);
  part(l, c) = lane(l, c);
  out(o) = least;
  out(o) = largest ? max(out(o), part(all.x, all.y)) : out(o) + part(all.x, all.y);
  lane.compute_at(part, c).vectorize(l).update().reorder(l, r).vectorize(l);
  part.compute_root().vectorize(l).parallel(c, std::max<int>(1, static_cast<int>(n / chunk) / 64));
  in.dim(0).set_min(0).set_extent(static_cast<int>(n));
  Buffer<> src(type, const_cast<unsigned char*>(s.src()), std::vector<int>{static_cast<int>(n)});
  double value = 0;  // 8 bytes of any type
  Buffer<> dst(sum, &value, std::vector<int>{1});
  const auto check = [&] {
    if (sum == Float(64)) return s.values<double>(&value, 1);
    if (sum == Int(64)) return s.values<int64_t>(reinterpret_cast<int64_t*>(&value), 1);
    return s.values<float>(reinterpret_cast<float*>(&value), 1);
  };
  s.time(library + (largest           ? ""
                    : type.is_float() ? ", double"
                                      : ", wrapping i64"),
         compiled(out, in, src, dst), check);
}
void rows(peers::subject& s, bool largest) {
  const int n = static_cast<int>(s.c.reduce.length), count = static_cast<int>(s.c.reduce.count);
  if (n % 16 != 0) return;
  const Type sum = largest ? Float(32) : Float(64);
  ImageParam in(Float(32), 2);
  Var i("i");
  RDom r(0, n);
  Func out("out");
  out(i) = largest ? Expr(Float(32).min()) : cast(sum, 0);
  out(i) = largest ? max(out(i), in(r, i)) : out(i) + cast(sum, in(r, i));
  Func whole_rows("whole_rows");
  whole_rows(i) = out(i);
  out.compute_at(whole_rows, i).update().atomic().vectorize(r, 16);
  whole_rows.parallel(i, 4096);
  in.dim(0).set_min(0).set_extent(n).dim(1).set_min(0).set_extent(count).set_stride(n);
  Buffer<> src(Float(32), const_cast<unsigned char*>(s.src()), std::vector<int>{n, count}),
      dst(sum, s.dst(), std::vector<int>{count});
  s.time(library + (largest ? "" : ", double"), compiled(whole_rows, in, src, dst),
         [&] { return largest ? s.bits(s.dst()) : s.values<double>(s.dst<double>(), count); });
}

// ---- stencils ----------------------------------------------------------------------------
std::vector<Expr> taps(const peers::subject& s) {
  std::vector<Expr> c;
  for (const double one : s.c.coefficients) c.emplace_back(static_cast<float>(one));
  return c;
}
void stencil_1d(peers::subject& s) {
  const int n = static_cast<int>(s.c.stencil.shape[0]);
  const std::vector<Expr> c = taps(s);
  ImageParam in(Float(32), 1);
  Var x("x");
  Func out("out");
  Expr sum = c[0] * in(x);
  for (int k = 1; k <= 4; ++k) sum += c[static_cast<size_t>(k)] * (in(x - k) + in(x + k));
  out(x) = sum;
  Var xo("xo"), xi("xi");
  out.split(x, xo, xi, std::min(n / 4, 1 << 15), TailStrategy::ShiftInwards).vectorize(xi, 16).parallel(xo);
  Buffer<float> src(const_cast<float*>(s.src<float>()), n), dst(s.dst<float>() + 4, n - 8);
  dst.set_min(4);
  s.time(library, compiled(out, in, src, dst), [&] { return s.inside(s.dst<float>()); });
}
void star_3d(peers::subject& s) {
  const auto* shape = s.c.stencil.shape;
  const int nx = static_cast<int>(shape[2]), ny = static_cast<int>(shape[1]), nz = static_cast<int>(shape[0]);
  const std::vector<Expr> c = taps(s);
  ImageParam in(Float(32), 3);
  Var x("x"), y("y"), z("z"), yo("yo"), yi("yi"), zo("zo"), zi("zi");
  Func out("out");
  Expr sum = c[0] * in(x, y, z);
  for (int k = 1; k <= 4; ++k) {
    const auto at = static_cast<size_t>(k);
    sum += c[8 + at] * (in(x - k, y, z) + in(x + k, y, z)) + c[4 + at] * (in(x, y - k, z) + in(x, y + k, z)) +
           c[at] * (in(x, y, z - k) + in(x, y, z + k));
  }
  out(x, y, z) = sum;
  // Planes of 16 rows stay in L2: z runs inside tiles of y.
  out.tile(y, z, yo, zo, yi, zi, 16, 64, TailStrategy::ShiftInwards)
      .reorder(x, yi, zi, yo, zo)
      .vectorize(x, 16, TailStrategy::ShiftInwards);
  Var task("task");
  out.fuse(yo, zo, task).parallel(task);
  Buffer<float> src(const_cast<float*>(s.src<float>()), nx, ny, nz);
  const std::vector<halide_dimension_t> dims = {{4, nx - 8, 1}, {4, ny - 8, nx}, {4, nz - 8, nx * ny}};
  Buffer<> dst(Runtime::Buffer<>(Float(32), s.dst<float>() + (int64_t{4} * ny + 4) * nx + 4, 3, dims.data()));
  s.time(library, compiled(out, in, src, dst), [&] { return s.inside(s.dst<float>()); });
}

void measure(peers::subject& s) {
  const auto& t = s.c.transpose;
  const auto& p = s.c.permute;
  const auto ints = [](const int64_t* n, int rank) {
    return std::vector<int>(std::reverse_iterator(n + rank), std::reverse_iterator(n));
  };
  if (s.c.op == LOCKSTEP_TRANSPOSE && !s.c.in_place && t.src_ld == t.cols && t.dst_ld == t.rows) {
    std::vector<int> sizes = {static_cast<int>(t.cols), static_cast<int>(t.rows)}, perm = {1, 0};
    if (t.batch > 1) sizes.push_back(static_cast<int>(t.batch)), perm.push_back(2);
    if (t.element_bytes <= 8) moved(s, t.element_bytes, sizes, perm);
  } else if (s.c.op == LOCKSTEP_PERMUTE && p.element_bytes <= 8) {
    std::vector<int> perm;
    for (int k = p.rank - 1; k >= 0; --k) perm.push_back(p.rank - 1 - p.perm[k]);
    moved(s, p.element_bytes, ints(p.shape, p.rank), perm);
  }
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32)) whole(s, Float(32), true, false);
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F64)) whole(s, Float(64), true, false);
  if (peers::whole(s.c, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_I32)) whole(s, Int(32), true, false);
  if (peers::whole(s.c, LOCKSTEP_SUM, LOCKSTEP_F32)) whole(s, Float(32), false, false);
  if (peers::whole(s.c, LOCKSTEP_MAX, LOCKSTEP_F32)) whole(s, Float(32), false, true);
  if (peers::rows(s.c, LOCKSTEP_SUM, LOCKSTEP_F32)) rows(s, false);
  if (peers::rows(s.c, LOCKSTEP_MAX, LOCKSTEP_F32)) rows(s, true);
  if (peers::star(s.c, 1)) stencil_1d(s);
  if (peers::star(s.c, 3)) star_3d(s);
}
}  // namespace

int main(int argc, char** argv) {
  return peers::serve(argc, argv, "cpu", [](const peers::arguments& a) {
    if (a.threads > 0) setenv("HL_NUM_THREADS", std::to_string(a.threads).c_str(), 1);
    return [](peers::subject& s) {
      try {
        measure(s);
      } catch (const Halide::Error& e) {
        std::fprintf(stderr, "%s: %s\n", s.c.name.c_str(), e.what());
      }
    };
  });
}
