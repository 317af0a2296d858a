// onednn.cpp - oneDNN's reorder for transposes, batches of them and permutes, of 1 and 4 bytes (it has no type of 8
// bytes); its reduction for sums (in float) and maxima, of arrays and of rows. Left out: its norms, which are a plain
// slow loop, and stencils, for which it has only convolutions of whole boxes. It has no argmax.
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "peer.hpp"

namespace {
using namespace lockstep;

struct layout {
  dnnl::memory::dims sizes, src, dst;
  size_t bytes = 0;
};
layout layout_of(const cases::test_case& c) {
  layout l;
  if (c.op == LOCKSTEP_TRANSPOSE && !c.in_place) {
    const auto& t = c.transpose;
    l.bytes = t.element_bytes;
    if (t.batch > 1)
      l.sizes.push_back(t.batch), l.src.push_back(t.src_batch_stride), l.dst.push_back(t.dst_batch_stride);
    l.sizes.insert(l.sizes.end(), {t.rows, t.cols});
    l.src.insert(l.src.end(), {t.src_ld, 1});
    l.dst.insert(l.dst.end(), {1, t.dst_ld});
  } else if (c.op == LOCKSTEP_PERMUTE) {
    const auto& p = c.permute;
    l.bytes = p.element_bytes;
    l.sizes.assign(p.shape, p.shape + p.rank);
    l.src.assign(p.src_strides, p.src_strides + p.rank);
    l.dst.resize(static_cast<size_t>(p.rank));
    for (int k = 0; k < p.rank; ++k) l.dst[static_cast<size_t>(p.perm[k])] = p.dst_strides[k];
  }
  return l;
}
// Rows of f32, or one row.
void reduce(const std::string& name, const dnnl::engine& engine, peers::subject& s) {
  const auto& r = s.c.reduce;
  const bool largest = r.reduction == LOCKSTEP_MAX;
  if (!(peers::whole(s.c, r.reduction, LOCKSTEP_F32) || peers::rows(s.c, r.reduction, LOCKSTEP_F32)) ||
      !(largest || (r.reduction == LOCKSTEP_SUM && r.result != LOCKSTEP_F32)))
    return;
  using how = dnnl::algorithm;
  const auto f32 = dnnl::memory::data_type::f32;
  const dnnl::memory::desc rows({r.count, r.length}, f32, dnnl::memory::format_tag::ab),
      one({r.count, 1}, f32, dnnl::memory::format_tag::ab);
  const auto what = largest ? how::reduction_max : how::reduction_sum;
  const dnnl::reduction::primitive_desc plan(dnnl::reduction::desc(what, rows, one, 0.0f, 0.0f), engine);
  const dnnl::reduction reduction(plan);
  std::vector<float> results(static_cast<size_t>(r.count));
  dnnl::stream stream(engine);
  dnnl::memory from(rows, engine, const_cast<float*>(s.src<float>())), to(one, engine, results.data());
  const auto body = [&] { reduction.execute(stream, {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}}), stream.wait(); };
  s.time(name + (largest ? " reduction" : " reduction, float"), body, [&] {
    return largest ? s.values<float>(results.data(), r.count) : s.values<double>(results.data(), r.count);
  });
}
}  // namespace

int main(int argc, char** argv) {
  return peers::serve(argc, argv, "cpu", [](const peers::arguments& a) {
    if (a.threads > 0) omp_set_num_threads(a.threads);
    const dnnl_version_t* v = dnnl_version();
    const std::string name = "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor);
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return [name, engine](peers::subject& s) {
      try {
        reduce(name, engine, s);
      } catch (const dnnl::error&) {  // it does not take this length
      }
      const layout l = layout_of(s.c);
      if (l.bytes != 1 && l.bytes != 4) return;
      const auto type = l.bytes == 1 ? dnnl::memory::data_type::u8 : dnnl::memory::data_type::s32;
      try {
        dnnl::stream stream(engine);
        dnnl::memory from({l.sizes, type, l.src}, engine, const_cast<unsigned char*>(s.src())),
            to({l.sizes, type, l.dst}, engine, s.dst());
        const dnnl::reorder reorder(from, to);
        const auto body = [&] { reorder.execute(stream, from, to), stream.wait(); };
        s.time(name + " reorder", body, [&] { return s.bits(s.dst()); });
      } catch (const dnnl::error&) {  // it does not take this layout
      }
    };
  });
}
