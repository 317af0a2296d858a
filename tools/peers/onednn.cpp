// onednn.cpp - oneDNN's reorder for transposes (batched too) and permutes.
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
}  // namespace

int main(int argc, char** argv) {
  return peers::serve(argc, argv, "cpu", [](const peers::arguments& a) {
    if (a.threads > 0) omp_set_num_threads(a.threads);
    const dnnl_version_t* v = dnnl_version();
    const std::string name = "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + " reorder";
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return [name, engine](peers::subject& s) {
      const layout l = layout_of(s.c);
      if (l.bytes != 1 && l.bytes != 4) return;
      const auto type = l.bytes == 1 ? dnnl::memory::data_type::u8 : dnnl::memory::data_type::s32;
      try {
        dnnl::stream stream(engine);
        dnnl::memory from({l.sizes, type, l.src}, engine, const_cast<unsigned char*>(s.src())),
            to({l.sizes, type, l.dst}, engine, s.dst());
        const dnnl::reorder reorder(from, to);
        const auto body = [&] { reorder.execute(stream, from, to), stream.wait(); };
        s.time(name, body, [&] { return s.bits(s.dst()); });
      } catch (const dnnl::error&) {  // a layout that it does not take
      }
    };
  });
}
