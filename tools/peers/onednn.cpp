// onednn.cpp - oneDNN's reorder for transposes (batched too) and permutes.
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "peer.hpp"

int main(int argc, char** argv) {
  using namespace lockstep;
  const peers::arguments a = peers::parse(argc, argv);
  if (a.backend != "cpu") return 0;
  if (a.threads > 0) omp_set_num_threads(a.threads);
  const dnnl_version_t* v = dnnl_version();
  const std::string name = "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + " reorder";
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  for (const std::string& one : a.cases) {
    const peers::subject s(one);
    dnnl::memory::dims sizes, src_strides, dst_strides;
    size_t bytes = 0;
    if (s.c.op == LOCKSTEP_TRANSPOSE && !s.c.in_place) {
      const auto& t = s.c.transpose;
      bytes = t.element_bytes;
      if (t.batch > 1) sizes.push_back(t.batch), src_strides.push_back(t.src_batch_stride), dst_strides.push_back(t.dst_batch_stride);
      sizes.insert(sizes.end(), {t.rows, t.cols});
      src_strides.insert(src_strides.end(), {t.src_ld, 1});
      dst_strides.insert(dst_strides.end(), {1, t.dst_ld});
    } else if (s.c.op == LOCKSTEP_PERMUTE) {
      const auto& p = s.c.permute;
      bytes = p.element_bytes;
      sizes.assign(p.shape, p.shape + p.rank);
      src_strides.assign(p.src_strides, p.src_strides + p.rank);
      dst_strides.resize(static_cast<size_t>(p.rank));
      for (int k = 0; k < p.rank; ++k) dst_strides[static_cast<size_t>(p.perm[k])] = p.dst_strides[k];
    } else {
      continue;
    }
    if (bytes != 1 && bytes != 4) continue;
    const auto type = bytes == 1 ? dnnl::memory::data_type::u8 : dnnl::memory::data_type::s32;
    try {
      std::vector<unsigned char> dst(s.want.size());
      dnnl::memory from({sizes, type, src_strides}, engine, const_cast<unsigned char*>(s.src.data())), to({sizes, type, dst_strides}, engine, dst.data());
      dnnl::reorder reorder(from, to);
      const auto body = [&] {
        reorder.execute(stream, from, to);
        stream.wait();
      };
      body();
      const std::string checked = s.compare(dst.data());
      peers::print(one, name, peers::time_host(a, body), checked);
    } catch (const dnnl::error&) {  // a layout that it does not take
    }
  }
}
