// digest.cpp - a number by which two machines can be compared: FNV-1a (64 bits) over the
// names, statuses and result bytes of a fixed list of cases. Adding a case changes the
// number and so needs a new golden value.

#include <memory>
#include <span>
#include <stdexcept>

#include "runner.hpp"
#include "text.hpp"

namespace lockstep::cases {
namespace {
constexpr const char* fixed[] = {
    "transpose/b1/129x257/seed11",
    "transpose/b2/100x127/ld130,101/seed11",
    "transpose/b4/333x77/batch2,3,1/seed11",
    "transpose/b8/64x65/special/seed11",
    "transpose/b16/40x50/seed11",
    "transpose/b4/67x67/inplace/seed11",
    "transpose/b8/17x33/inplace/seed11",
    "permute/b4/6x5x4x3/perm3,2,1,0/seed11",
    "permute/b8/3x2x4x5x3x2/perm5,1,3,0,4,2/pad1,2/seed11",
    "permute/b2/33x2x35/perm2,1,0/seed11",
    "square_sum/ssq/f16/full/70001/seed11",
    "square_sum/ssq/bf16/rows/33x2100/seed11",
    "square_sum/ssq/f32/full/1000003/seed11",
    "square_sum/norm2/f32/columns/3000x50/seed11",
    "square_sum/ssq/f64/full/200001/wide/seed11",
    "square_sum/norm2/f64/full/5000/huge/seed11",
    "square_sum/norm2/f64/rows/20x300/tiny/seed11",
    "square_sum/norm2/i64/full/30000/seed11",
    "square_sum/norm2/i32/mixed/30x500/seed11",
    "square_sum/ssq/i32/full/1000/small/seed11",
    "square_sum/ssq/i64/full/1000/seed11",
    "square_sum/norm2/f64/full/9000/to_f32/seed11",
    "reduce/sum/f32/full/1000003/seed11",
    "reduce/sum/f64/rows/77x4099/seed11",
    "reduce/sum/f32/columns/5000x33/finite/seed11",
    "reduce/sum/f64/lopsided/300x30000/seed11",
    "reduce/sum/f32/mixed/100x50/special/seed11",
    "reduce/sum/i64/full/1001/cross/seed11",
    "reduce/sum/i64/rows/5x100/over/seed11",
    "reduce/sum/i32/columns/999x77/seed11",
    "reduce/min/f32/rows/100x333/special/seed11",
    "reduce/max/f64/full/10000/ties/seed11",
    "reduce/argmin/f32/full/30000/ties/seed11",
    "reduce/argmax/f64/columns/300x40/special/seed11",
    "reduce/argmax/i32/nonempty/50x60/seed11",
    "reduce/min/i64/mixed/40x2/seed11",
    "stencil/f32/general/nearest/r4/10007/seed11",
    "stencil/f32/symmetric/mirror/r4/10007/sweeps3/seed11",
    "stencil/f64/antisymmetric/reflect/r3/5000/seed11",
    "stencil/f32/general/wrap/r2/70x90/seed11",
    "stencil/f64/symmetric/constant/r8/60x61/seed11",
    "stencil/f32/general/valid/r4/20x21x40/seed11",
    "stencil/f64/general/mirror/r2/9x10x35/sweeps2/seed11",
    "stencil/f32/general/reflect/r16/5/seed11",
    "stencil/f32/symmetric/wrap/r1/500/special/seed11",
    "shuffle/b4/idx/w16/op3/n96/seed11",
    "shuffle/b8/up/w8/op3/n96/seed11",
    "shuffle/b4/down/w32/op5/n1056/seed11",
    "shuffle/b8/xor/w4/op6/n64/seed11",
};
constexpr const char* more_types[] = {
    "reduce/sum/f16/full/70001/seed11",
    "reduce/sum/bf16/rows/33x2100/seed11",
    "reduce/sum/f16/columns/3000x50/finite/seed11",
    "reduce/sum/bf16/mixed/100x50/special/seed11",
    "reduce/sum/f32/rows/20x300/to_f16/seed11",
    "reduce/sum/f64/full/9000/wide/to_bf16/seed11",
    "reduce/min/f16/rows/100x333/special/seed11",
    "reduce/argmax/bf16/columns/300x40/special/seed11",
    "reduce/sum/i8/full/100001/seed11",
    "reduce/sum/u8/columns/999x77/seed11",
    "reduce/sum/i16/rows/77x4099/seed11",
    "reduce/sum/u16/nonempty/50x60/seed11",
    "reduce/sum/u32/full/100001/seed11",
    "reduce/sum/u64/full/1001/small/seed11",
    "reduce/sum/u64/rows/5x100/over/seed11",
    "reduce/sum/bool/full/100001/special/seed11",
    "reduce/max/u8/rows/300x77/seed11",
    "reduce/argmin/i8/full/30000/ties/seed11",
    "reduce/argmax/u16/columns/9000x40/ties/seed11",
    "reduce/min/i16/mixed/40x200/seed11",
    "reduce/max/u32/full/10000/special/seed11",
    "reduce/argmax/u64/rows/30x300/special/seed11",
    "reduce/max/bool/columns/50x60/special/seed11",
    "square_sum/ssq/i8/full/100001/seed11",
    "square_sum/ssq/u16/rows/30x9001/seed11",
    "square_sum/norm2/u32/full/10000/seed11",
    "square_sum/norm2/u64/rows/30x300/seed11",
    "square_sum/norm2/i16/mixed/30x500/to_f16/seed11",
    "square_sum/ssq/u64/full/1000/seed11",
};

constexpr const char* normalizations[] = {
    "normalize/l2/f16/33x700/special/seed11",
    "normalize/l2/f32/5x70001/seed11",
    "normalize/l2/f64/7x3000/huge/seed11",
    "normalize/l2/f64/7x300/tiny/eps300/seed11",
    "normalize/rms/bf16/40x4096/weight/seed11",
    "normalize/rms/f16/9x5000/residual/weight/f32weight/seed11",
    "normalize/rms/f32/12x6145/wide/to_bf16/seed11",
    "normalize/rms/f64/3x4097/bias/seed11",
    "normalize/layer/f16/20x770/weight/bias/seed11",
    "normalize/layer/bf16/3x10241/residual/bias/to_f32/seed11",
    "normalize/layer/f32/2x300001/weight/bias/seed11",
    "normalize/layer/f64/30x129/inplace/seed11",
};

constexpr const char* exponentials[] = {
    "normalize/softmax/f16/33x700/special/seed11",
    "normalize/softmax/bf16/5x9001/by_third/seed11",
    "normalize/softmax/f32/3x70001/seed11",
    "normalize/softmax/f64/7x3000/seed11",
    "normalize/softmax/f32/40x33/to_bf16/seed11",
    "normalize/log_softmax/f16/9x5000/residual/seed11",
    "normalize/log_softmax/bf16/20x300/to_f32/seed11",
    "normalize/log_softmax/f32/9x1000/inplace/by_minus_7/seed11",
    "normalize/log_softmax/f64/30x129/special/seed11",
    "normalize/logsumexp/f32/50x700/special/to_f64/seed11",
    "normalize/logsumexp/f64/5x3000/by_third/seed11",
    "normalize/picked/f32/50x700/seed11",
    "normalize/picked/f16/5x4100/residual/to_f64/seed11",
};

constexpr const char* digests[] = {
    "sums/digest/f16/full/5001/seed11",   "sums/digest/bf16/rows/9x333/seed11",
    "sums/digest/f32/full/70001/seed11",  "sums/digest/f64/columns/300x20/seed11",
    "sums/digest/u8/mixed/100x50/seed11", "sums/digest/i16/full/9001/stride1,4/seed11",
    "sums/digest/bool/full/777/seed11",   "sums/digest/i64/full/5000/correction8/seed11",
};

constexpr const char* scans[] = {
    "scan/sum/f16/full/70001/seed11",
    "scan/sum/bf16/rows/33x2100/to_f32/seed11",
    "scan/sum/f32/full/300001/seed11",
    "scan/sum/f32/full/70001/exclusive/inplace/seed11",
    "scan/sum/f64/columns/5000x33/finite/seed11",
    "scan/sum/f32/mixed/100x500/special/to_f64/seed11",
    "scan/sum/i32/rows/77x4099/exclusive/seed11",
    "scan/sum/i64/full/1001/cross/seed11",
    "scan/max/f32/full/10000/special/seed11",
    "scan/min/bf16/columns/300x40/exclusive/special/seed11",
    "scan/max/i64/lopsided/30x3000/seed11",
};

constexpr const char* sums[] = {
    "sums/dot/f16/full/70001/seed11",
    "sums/dot/bf16/rows/33x2100/shared/seed11",
    "sums/dot/f32/full/1000003/seed11",
    "sums/dot/f64/mixed/100x500/special/seed11",
    "sums/dot/i8/full/100001/seed11",
    "sums/dot/i32/rows/30x9001/seed11",
    "sums/dot/u32/full/10000/seed11",
    "sums/dot/i64/full/1000/special/seed11",
    "sums/sqdiff/f32/rows/77x4099/to_f32/seed11",
    "sums/sqdiff/f64/full/200001/wide/seed11",
    "sums/sqdiff/u8/full/100001/seed11",
    "sums/sqdiff/i16/mixed/30x500/seed11",
    "sums/sqdiff/u64/full/5000/small/seed11",
    "sums/absdiff/bf16/full/70001/seed11",
    "sums/absdiff/f64/rows/5x5000/stride2,3/seed11",
    "sums/absdiff/i64/full/9000/small/seed11",
    "sums/abs/f16/mixed/100x50/special/seed11",
    "sums/abs/f32/full/300001/seed11",
    "sums/abs/i32/lopsided/30x30000/seed11",
    "sums/abs/bool/full/100001/special/seed11",
    "sums/meanvar/f16/rows/20x770/seed11",
    "sums/meanvar/bf16/full/10241/to_f16/seed11",
    "sums/meanvar/f32/full/1000003/positive/correction1/seed11",
    "sums/meanvar/f64/mixed/30x5000/finite/seed11",
};

constexpr const char* axes[] = {
    "reduce_axes/sum/f32/31x3x700/axes0,2/seed11",
    "reduce_axes/sum/bf16/40x33x9/axes1/seed11",
    "reduce_axes/sum/f64/4x5x60x7/axes1,3/pad1/wide/seed11",
    "reduce_axes/ssq/f16/6x2100x3/axes0,2/seed11",
    "reduce_axes/norm2/f64/5x6x300/axes0,2/huge/seed11",
    "reduce_axes/argmax/f32/9x8x300/axes2,0/ties/seed11",
    "reduce_axes/max/f64/20x30x40/axes0,1/backwards/special/seed11",
    "reduce_axes/sum/i64/7x30x20/axes0,2/over/seed11",
    "reduce_axes/sum/u8/300x4x500/axes0,2/seed11",
    "reduce_axes/norm2/i32/2x3x1x5x3x1x2x3/axes0,2,5,6/backwards/pad2/to_f32/seed11",
};

constexpr const char* conversions[] = {
    "convert/f32/f16/300x131/perm1,0/special/seed11",
    "convert/f32/bf16/5x67x101/perm2,0,1/wide/seed11",
    "convert/f16/f32/1000/perm0/special/seed11",
    "convert/bf16/f64/70x90/perm1,0/special/by_tenth/seed11",
    "convert/f64/f16/4001/perm0/special/seed11",
    "convert/f64/bf16/40x33x9/perm2,1,0/wide/by_minus3/seed11",
    "convert/f64/f32/2x3x4x50/perm3,1,2,0/pad1,2/wide/by_2m140/seed11",
    "convert/f32/f64/33x70/perm1,0/special/by_1e300/seed11",
    "convert/f16/bf16/9x20x21/perm1,0,2/special/by_255th/seed11",
    "convert/bf16/f16/3x1000/perm1,0/wide/by_2p20/seed11",
    "convert/f32/f32/501/perm0/special/seed11",
};

constexpr const char* more_reductions[] = {
    "reduce/count/f16/full/70001/special/seed11",
    "reduce/count/u64/rows/30x900/sparse/seed11",
    "reduce/any/f32/mixed/100x50/sparse/seed11",
    "reduce/all/i16/columns/300x40/units/seed11",
    "reduce/all/bool/rows/50x3/special/seed11",
    "reduce/prod/f16/full/5000/units/seed11",
    "reduce/prod/f32/rows/77x4099/units/seed11",
    "reduce/prod/f64/columns/5000x33/units/seed11",
    "reduce/prod/bf16/mixed/100x50/special/to_f32/seed11",
    "reduce/prod/i32/rows/60x70/units/seed11",
    "reduce/prod/i64/lopsided/30x300/units/seed11",
    "reduce/prod/u8/columns/50x30/units/seed11",
    "reduce/nan_sum/f32/full/70001/special/seed11",
    "reduce/nan_sum/bf16/rows/33x2100/one_nan/seed11",
    "reduce/nan_sum/f64/mixed/30x700/special/seed11",
    "reduce/nan_min/f16/rows/100x33/special/seed11",
    "reduce/nan_max/f32/columns/300x40/special/seed11",
    "reduce/nan_max/f64/full/7000/one_nan/seed11",
    "reduce_axes/prod/f32/31x3x70/axes0,2/units/seed11",
    "reduce_axes/count/u16/40x33x9/axes1/special/seed11",
    "reduce_axes/nan_min/bf16/20x30x40/axes0,1/special/seed11",
};

constexpr const char* functions[] = {
    "map/exp/f32/f32/10000/perm0/seed11",
    "map/exp/f16/bf16/300x131/perm1,0/special/seed11",
    "map/expm1/f32/f16/2003/perm0/special/seed11",
    "map/log/f32/f32/10000/perm0/positive/seed11",
    "map/log/bf16/f32/40x33x9/perm2,1,0/special/seed11",
    "map/log1p/f32/f32/5000/perm0/special/seed11",
    "map/sqrt/f32/f32/5000/perm0/positive/seed11",
    "map/rsqrt/f16/f16/5000/perm0/special/seed11",
    "map/reciprocal/f32/bf16/70x90/perm1,0/wide/seed11",
    "map/tanh/f32/f32/10000/perm0/seed11",
    "map/sigmoid/f32/f32/10000/perm0/special/seed11",
    "map/silu/bf16/bf16/3x1000/perm1,0/seed11",
    "map/silu/f32/f32/10000/perm0/by_half/seed11",
    "map/gelu/f32/f32/10000/perm0/seed11",
    "map/gelu/f16/f16/4001/perm0/inplace/seed11",
    "map/gelu_tanh/f32/f32/10000/perm0/seed11",
    "map/erf/f32/f32/10000/perm0/wide/seed11",
    "map/softplus/f32/f16/9x20x21/perm1,0,2/special/seed11",
};

constexpr const char* gradients[] = {
    "normalize/rms_backward/f16/300x700/weight/of_weight/seed11",
    "normalize/rms_backward/bf16/2100x64/weight/f32weight/of_weight/seed11",
    "normalize/rms_backward/f32/5x20481/of_weight/of_bias/seed11",
    "normalize/rms_backward/f64/130x129/weight/of_weight/of_bias/inplace/seed11",
    "normalize/layer_backward/f16/70x2100/special/of_weight/of_bias/seed11",
    "normalize/layer_backward/bf16/4100x33/weight/of_weight/of_bias/seed11",
    "normalize/layer_backward/f32/200x1000/residual/weight/of_weight/of_bias/seed11",
    "normalize/layer_backward/f64/40x9001/weight/of_bias/seed11",
};

constexpr const char* products[] = {
    "map/silu/f32/f32/10000/perm0/times/seed11",           "map/silu/bf16/bf16/70x90/perm1,0/times/special/seed11",
    "map/gelu/f16/f32/4001/perm0/times/special/seed11",    "map/gelu_tanh/f32/bf16/9x20x21/perm1,0,2/times/seed11",
    "map/sigmoid/f32/f16/5000/perm0/times/by_half/seed11", "map/tanh/f32/f32/5000/perm0/times/inplace/seed11",
};

std::span<const char* const> names_of(cases_of list) {
  switch (list) {
    case cases_of::more_types: return more_types;
    case cases_of::normalize: return normalizations;
    case cases_of::softmax: return exponentials;
    case cases_of::digest: return digests;
    case cases_of::scan: return scans;
    case cases_of::sums: return sums;
    case cases_of::reduce_axes: return axes;
    case cases_of::convert: return conversions;
    case cases_of::more_reductions: return more_reductions;
    case cases_of::map: return functions;
    case cases_of::times: return products;
    case cases_of::gradients: return gradients;
    default: return fixed;
  }
}

class fnv {
 public:
  void add(const void* data, size_t bytes) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < bytes; ++i) sum_ = (sum_ ^ p[i]) * 0x100000001B3u;
  }
  uint64_t sum() const { return sum_; }

 private:
  uint64_t sum_ = 0xCBF29CE484222325u;
};
}  // namespace

std::string digest_by(const caller& make, cases_of list) {
  fnv sum;
  for (const char* name : names_of(list)) {
    const test_case c = parse(name);
    std::vector<unsigned char> src(c.src.span_bytes()), dst(c.dst.span_bytes());
    fill_src(c, src.data());
    if (c.in_place)
      dst = src;
    else
      poison(dst.data(), dst.size(), c.dst.element_bytes, c.seed);
    const lockstep_status status = make(c, c.in_place ? dst.data() : src.data(), dst.data());
    if (status != LOCKSTEP_OK && status != LOCKSTEP_OVERFLOW && status != LOCKSTEP_EMPTY)
      throw std::runtime_error(format_text("{}: {}", name, lockstep_last_error()));
    const auto number = static_cast<unsigned char>(status);
    sum.add(name, std::char_traits<char>::length(name));
    sum.add(&number, 1);
    sum.add(dst.data(), dst.size());
    for (const auto* written : {&c.weight_gradient, &c.bias_gradient}) sum.add(written->data(), written->size());
  }
  return format_text("lockstep-digest order{} {:016x}", LOCKSTEP_ORDER_1, sum.sum());
}

std::string digest(const std::string& backend, const std::string& isa, int threads, cases_of list) {
  if (backend == "oracle")
    return digest_by(
        [](const test_case& c, const unsigned char* src, unsigned char* dst) {
          const std::vector<unsigned char> apart(src, src + c.src.span_bytes());  // in place src is dst
          return oracle(c, apart.data(), dst).status;
        },
        list);
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = backend.c_str();
  if (!isa.empty()) o.cpu_isa = isa.c_str();
  o.threads = threads;
  lockstep_context* context = nullptr;
  if (lockstep_context_create(&o, &context) != LOCKSTEP_OK) throw std::runtime_error(lockstep_last_error());
  const std::unique_ptr<lockstep_context, decltype(&lockstep_context_destroy)> owner(context,
                                                                                     &lockstep_context_destroy);
  return digest_by([&](const test_case& c, const unsigned char* src,
                       unsigned char* dst) { return call(context, c, src, dst, c.offsets.data(), nullptr); },
                   list);
}

}  // namespace lockstep::cases
