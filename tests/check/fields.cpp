// fields.cpp - a table of unusual values for every field of lockstep.h: those that are accepted, with their meaning,
// and those that are refused, with the error text. Every field of layout.txt must have a row.
#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <functional>
#include <numeric>
#include <set>
#include <sstream>

#include "check.hpp"

namespace lockstep::check {
namespace {

constexpr int64_t huge = INT64_MAX / 2;
constexpr double taps[33] = {0.25, 0.5, 0.125};
double src[512], dst[512];
int64_t offsets[8];

struct made {
  lockstep_context* context = nullptr;
  lockstep_options options = lockstep_options_defaults();
};
// A row: what a change of a good call leads to. No text: taken, and dst is what want says (NaN: untouched).
struct promise {
  const char* field;
  std::function<lockstep_status(made&)> run;
  const char* text = "";
  std::function<std::vector<double>()> want = nullptr;
};

// ---- good calls, and changes to them ------------------------------------------------

template <class D>
using change = std::function<void(D&)>;
using transpose_desc = lockstep_transpose_desc;
using permute_desc = lockstep_permute_desc;
using reduce_desc = lockstep_reduce_desc;
using stencil_desc = lockstep_stencil_desc;
using shuffle_desc = lockstep_shuffle_desc;
using normalize_desc = lockstep_normalize_desc;
using scan_desc = lockstep_scan_desc;
using sums_desc = lockstep_sums_desc;
using axes_desc = lockstep_reduce_axes_desc;
using convert_desc = lockstep_convert_desc;
using map_desc = lockstep_map_desc;

auto transposed(const change<transpose_desc>& c, const void* from = src, void* to = dst) {
  return [=](made& m) {
    auto d = lockstep_transpose_packed(8, 2, 3);
    c(d);
    return lockstep_transpose(m.context, &d, from, to, &m.options);
  };
}
auto permuted(const change<permute_desc>& c) {
  return [=](made& m) {
    const int64_t shape[] = {2, 3};
    const int32_t perm[] = {1, 0};
    auto d = lockstep_permute_packed(8, 2, shape, perm);
    c(d);
    return lockstep_permute(m.context, &d, src, dst, &m.options);
  };
}
auto reduced(const change<reduce_desc>& c, const void* from = src) {
  return [=](made& m) {
    auto d = lockstep_reduce_rows(LOCKSTEP_SUM, LOCKSTEP_F64, 2, 3, 3);
    c(d);
    return lockstep_reduce(m.context, &d, from, dst, &m.options);
  };
}
auto swept(const change<stencil_desc>& c) {
  return [=](made& m) {
    const int64_t shape[] = {2, 3};
    auto d = lockstep_stencil_packed(LOCKSTEP_F64, 2, shape, 1, taps, LOCKSTEP_BOUNDARY_NEAREST);
    c(d);
    return lockstep_stencil(m.context, &d, src, dst, &m.options);
  };
}
auto shuffled(const change<shuffle_desc>& c) {
  return [=](made& m) {
    auto d = lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_UP, 8, 32, 32, 0);
    c(d);
    return lockstep_shuffle(m.context, &d, src, dst, &m.options);
  };
}
// Rows whose norms are below eps: dst is a 64th of src.
auto normalized(const change<normalize_desc>& c, const void* from = src, void* to = dst) {
  return [=](made& m) {
    auto d = lockstep_normalize_rows(LOCKSTEP_NORMALIZE_L2, LOCKSTEP_F64, 2, 3, 64.0);
    c(d);
    return lockstep_normalize(m.context, &d, from, to, &m.options);
  };
}
// Gradients of nothing, which are 0.
auto backward(const change<normalize_desc>& c) {
  return [=](made& m) {
    static const double none[6] = {};
    auto d = lockstep_normalize_rows(LOCKSTEP_NORMALIZE_RMS_BACKWARD, LOCKSTEP_F64, 2, 3, 1e-5);
    d.gradient = none;
    c(d);
    return lockstep_normalize(m.context, &d, src, dst, &m.options);
  };
}
auto scanned(const change<scan_desc>& c, const void* from = src, void* to = dst) {
  return [=](made& m) {
    auto d = lockstep_scan_rows(LOCKSTEP_SUM, LOCKSTEP_F64, 2, 3, 3);
    c(d);
    return lockstep_scan(m.context, &d, from, to, &m.options);
  };
}
// Products of src and itself from its tenth element on.
auto paired(const change<sums_desc>& c, const void* from = src) {
  return [=](made& m) {
    auto d = lockstep_sums_rows(LOCKSTEP_SUMS_DOT, LOCKSTEP_F64, 2, 3, 3, src + 9, 3);
    c(d);
    return lockstep_sums(m.context, &d, from, dst, &m.options);
  };
}
// Sums of 2 x 3 x 2 elements over the first and the last axis.
auto reduced_axes(const change<axes_desc>& c, const void* from = src) {
  return [=](made& m) {
    const int64_t shape[] = {2, 3, 2};
    const int32_t axes[] = {0, 2};
    auto d = lockstep_reduce_axes_packed(LOCKSTEP_SUM, LOCKSTEP_F64, 3, shape, 2, axes);
    c(d);
    return lockstep_reduce_axes(m.context, &d, from, dst, &m.options);
  };
}
// 2 x 3 elements, doubled and transposed.
auto converted(const change<convert_desc>& c, const void* from = src) {
  return [=](made& m) {
    const int64_t shape[] = {2, 3};
    const int32_t perm[] = {1, 0};
    auto d = lockstep_convert_packed(LOCKSTEP_F64, LOCKSTEP_F64, 2, 2, shape, perm);
    c(d);
    return lockstep_convert(m.context, &d, from, dst, &m.options);
  };
}
// Reciprocals of 2 x 3 floats, transposed: the upper halves of src's doubles, to the upper halves of dst's.
auto mapped(const change<map_desc>& c, const void* from = reinterpret_cast<const char*>(src) + 4) {
  return [=](made& m) {
    const int64_t shape[] = {2, 3};
    const int32_t perm[] = {1, 0};
    auto d = lockstep_map_packed(LOCKSTEP_MAP_RECIPROCAL, LOCKSTEP_F32, LOCKSTEP_F32, 2, shape, perm);
    for (int k = 0; k < 2; ++k) d.src_strides[k] *= 2, d.dst_strides[k] *= 2;
    c(d);
    return lockstep_map(m.context, &d, from, reinterpret_cast<char*>(dst) + 4, &m.options);
  };
}
// A good transpose under changed options.
auto with_options(const change<lockstep_options>& c) {
  return [=](made& m) {
    c(m.options);
    return transposed([](auto&) {})(m);
  };
}
// A good transpose on a context of its own.
auto with_context(const change<lockstep_context_options>& c, const char* variant_wanted = nullptr) {
  return [=](made& m) {
    auto o = lockstep_context_defaults();
    o.backend = "cpu";
    c(o);
    made own;
    lockstep_status status = lockstep_context_create(&o, &own.context);
    if (status == LOCKSTEP_OK) status = transposed([](auto&) {})(own);
    lockstep_run_info info{};
    info.size = sizeof info;
    if (status == LOCKSTEP_OK && variant_wanted != nullptr) {
      EXPECT_EQ(lockstep_last_run(&info), LOCKSTEP_OK);
      EXPECT_EQ(std::string(info.variant) == "ref", std::string(variant_wanted) == "ref") << info.variant;
    }
    const std::string text = lockstep_last_error();
    lockstep_context_destroy(own.context);
    if (status != LOCKSTEP_OK) {  // the text of this failure, for the table
      auto again = lockstep_context_defaults();
      again.backend = "cpu";
      c(again);
      EXPECT_EQ(lockstep_context_create(&again, &own.context), status);
      (void)m;
    }
    return status;
  };
}

// ---- what dst is then --------------------------------------------------------------

auto gathered(std::initializer_list<int> from) {
  return [all = std::vector<int>(from)] {
    std::vector<double> values;
    for (const int i : all) values.push_back(src[i]);
    return values;
  };
}
auto sums(std::vector<std::vector<int>> of) {
  return [=] {
    std::vector<double> values;
    for (const auto& one : of) {
      double sum = 0;
      for (const int i : one) sum += src[i];
      values.push_back(sum);
    }
    return values;
  };
}
// Of elements of src, a 64th of each; NaN stands for what stays as it was.
// Of the upper halves of src's doubles, counted from 1, as floats in the upper halves.
auto upper_halves(std::vector<int> of, float (*function)(float)) {
  return [=] {
    std::vector<double> all;
    for (const int i : of) {
      const auto half = static_cast<uint32_t>(std::bit_cast<uint64_t>(src[i - 1]) >> 32);
      const uint64_t result = std::bit_cast<uint32_t>(function(std::bit_cast<float>(half)));
      all.push_back(std::bit_cast<double>(result << 32));
    }
    return all;
  };
}
auto scaled(std::vector<double> of, double by = 1.0 / 64) {
  return [=] {
    std::vector<double> values;
    for (const double value : of) values.push_back(value != value ? -1.0 : value * by);
    return values;
  };
}
auto zeros(size_t count) {
  return [=] { return std::vector<double>(count, 0.0); };
}
const auto untouched = [] { return std::vector<double>(512, -1.0); };
const auto transposed_2x3 = gathered({0, 3, 1, 4, 2, 5});

const std::vector<promise>& table() {
  using T = transpose_desc;
  using P = permute_desc;
  using R = reduce_desc;
  using S = stencil_desc;
  using W = shuffle_desc;
  using N = normalize_desc;
  using X = scan_desc;
  using Q = sums_desc;
  using A = axes_desc;
  using V = convert_desc;
  using M = map_desc;
  constexpr auto inverse = [](float x) { return 1 / x; };
  constexpr double gap = __builtin_nan("");
  using O = lockstep_options;
  using C = lockstep_context_options;
  static const std::vector<promise> rows = {
      // transpose
      {"lockstep_transpose_desc.size", transposed([](T& d) { d.size = 8; }), "desc->size is 8"},
      {"lockstep_transpose_desc.element_bytes", transposed([](T& d) { d.element_bytes = 3; }), "element_bytes is 3"},
      {"lockstep_transpose_desc.rows", transposed([](T& d) { d.rows = -1; }), "rows is -1"},
      {"lockstep_transpose_desc.rows", transposed([](T& d) { d.rows = 0, d.src_ld = -4, d.dst_batch_stride = -9; }),
       "", untouched},
      {"lockstep_transpose_desc.rows", transposed([](T& d) { d.rows = 0, d.element_bytes = 3; }), "element_bytes is 3"},
      {"lockstep_transpose_desc.cols", transposed([](T& d) { d.cols = 0, d.dst_ld = -4; }, nullptr, nullptr), "",
       untouched},
      {"lockstep_transpose_desc.src_ld", transposed([](T& d) { d.rows = d.dst_ld = 1, d.src_ld = -huge; }), "",
       gathered({0, 1, 2})},
      {"lockstep_transpose_desc.src_ld", transposed([](T& d) { d.src_ld = 2; }), "src_ld is 2"},
      {"lockstep_transpose_desc.src_ld", transposed([](T& d) { d.src_ld = 4, d.cols = 2; }, dst + 2, dst),
       "overlap"},  // in the gaps of src's rows
      {"lockstep_transpose_desc.dst_ld", transposed([](T& d) { d.cols = 1, d.src_ld = 1, d.dst_ld = huge; }), "",
       gathered({0, 1})},
      {"lockstep_transpose_desc.dst_ld", transposed([](T& d) { d.dst_ld = 1; }), "dst_ld is 1"},
      {"lockstep_transpose_desc.dst_ld", transposed([](T& d) { d.dst_ld = 3; }, dst, dst),
       "in place needs a square matrix with src_ld == dst_ld, or src_ld == cols and dst_ld == rows; rows is 2"},
      {"lockstep_transpose_desc.batch", transposed([](T& d) { d.batch = 0; }, nullptr, nullptr), "", untouched},
      {"lockstep_transpose_desc.batch",
       transposed([](T& d) { d.batch = 1, d.src_batch_stride = d.dst_batch_stride = -huge; }), "", transposed_2x3},
      {"lockstep_transpose_desc.src_batch_stride",  // the same matrix twice
       transposed([](T& d) { d.batch = 2, d.src_batch_stride = 0, d.dst_batch_stride = 6; }), "",
       gathered({0, 3, 1, 4, 2, 5, 0, 3, 1, 4, 2, 5})},
      {"lockstep_transpose_desc.src_batch_stride",  // matrices that share elements
       transposed([](T& d) { d.batch = 2, d.src_batch_stride = 1, d.dst_batch_stride = 6; }), "",
       gathered({0, 3, 1, 4, 2, 5, 1, 4, 2, 5, 3, 6})},
      {"lockstep_transpose_desc.src_batch_stride",
       transposed([](T& d) { d.batch = 2, d.src_batch_stride = 8, d.dst_batch_stride = 6; }, dst, dst),
       "src_batch_stride is 8, dst_batch_stride 6"},
      {"lockstep_transpose_desc.dst_batch_stride",
       transposed([](T& d) { d.batch = 2, d.src_batch_stride = 6, d.dst_batch_stride = 5; }), "dst_batch_stride is 5"},
      // permute
      {"lockstep_permute_desc.size", permuted([](P& d) { d.size = 250; }), "desc->size is 250"},
      {"lockstep_permute_desc.element_bytes", permuted([](P& d) { d.element_bytes = 0; }), "element_bytes is 0"},
      {"lockstep_permute_desc.rank", permuted([](P& d) { d.rank = 9; }), "rank is 9"},
      {"lockstep_permute_desc.perm", permuted([](P& d) { d.perm[1] = 1; }), "perm[1] is 1"},
      {"lockstep_permute_desc.perm", permuted([](P& d) { d.shape[0] = 0, d.perm[1] = 7; }), "perm[1] is 7"},
      {"lockstep_permute_desc.shape", permuted([](P& d) { d.shape[1] = -3; }), "shape[1] is -3"},
      {"lockstep_permute_desc.shape", permuted([](P& d) { d.shape[1] = 0, d.src_strides[0] = -7; }), "", untouched},
      {"lockstep_permute_desc.src_strides", permuted([](P& d) { d.src_strides[1] = 0; }), "src_strides[1] is 0"},
      {"lockstep_permute_desc.src_strides",  // column-major src: dst is then its memory in order
       permuted([](P& d) { d.src_strides[0] = 1, d.src_strides[1] = 2; }), "", gathered({0, 1, 2, 3, 4, 5})},
      {"lockstep_permute_desc.src_strides",  // elements of src that are read twice
       permuted([](P& d) { d.src_strides[0] = 1, d.src_strides[1] = 1; }), "", gathered({0, 1, 1, 2, 2, 3})},
      {"lockstep_permute_desc.src_strides", permuted([](P& d) { d.shape[0] = d.dst_strides[0] = 1, d.src_strides[0] = -huge; }), "",
       gathered({0, 1, 2})},
      {"lockstep_permute_desc.dst_strides",  // column-major dst: memory in src's order
       permuted([](P& d) { d.dst_strides[0] = 1, d.dst_strides[1] = 3; }), "", gathered({0, 1, 2, 3, 4, 5})},
      {"lockstep_permute_desc.dst_strides", permuted([](P& d) { d.dst_strides[0] = 1, d.dst_strides[1] = 2; }),
       "dst_strides[1] is 2, but the axes within it span 3"},
      {"lockstep_permute_desc.dst_strides", permuted([](P& d) { d.shape[0] = d.dst_strides[0] = 1, d.dst_strides[1] = huge; }), "",
       gathered({0, 1, 2})},
      // reduce and square_sum
      {"lockstep_reduce_desc.size", reduced([](R& d) { d.size = 0; }), "desc->size is 0"},
      {"lockstep_reduce_desc.reduction", reduced([](R& d) { d.reduction = static_cast<lockstep_reduction>(77); }),
       "reduction is 77"},
      {"lockstep_reduce_desc.dtype", reduced([](R& d) { d.dtype = static_cast<lockstep_dtype>(14); }),
       "dtype is 14; known are F16, BF16, F32, F64, I32, I64, I8, I16, U8, U16, U32, U64, BOOL"},
      {"lockstep_reduce_desc.dtype", reduced([](R& d) { d.count = 0, d.dtype = lockstep_dtype{}; }), "dtype is 0"},
      {"lockstep_reduce_desc.dtype",  // bytes, of which only that of the number's sign and exponent are not 0
       reduced([](R& d) {
         d.dtype = LOCKSTEP_BOOL, d.result = LOCKSTEP_I64, d.count = 1, d.length = 24;
       }),
       "", [] { return std::vector<double>{std::bit_cast<double>(int64_t{5})}; }},  // of 1, 2 and 3
      {"lockstep_reduce_desc.result", reduced([](R& d) { d.result = LOCKSTEP_I32; }), "result is I32"},
      {"lockstep_reduce_desc.result", reduced([](R& d) { d.dtype = LOCKSTEP_U64; }), "SUM of U64 gives U64"},
      {"lockstep_reduce_desc.result", reduced([](R& d) { d.dtype = LOCKSTEP_U32, d.result = LOCKSTEP_U64; }),
       "SUM of U32 gives I64"},
      {"lockstep_reduce_desc.result", reduced([](R& d) { d.result = LOCKSTEP_BOOL; }), "result is BOOL"},
      {"lockstep_reduce_desc.result",
       reduced([](R& d) { d.reduction = LOCKSTEP_MIN, d.result = LOCKSTEP_F16; }), "MIN of F64 gives F64"},
      {"lockstep_reduce_desc.count", reduced([](R& d) { d.count = -2; }), "count is -2"},
      {"lockstep_reduce_desc.count",
       reduced([](R& d) { d.count = 0, d.element_stride = 0, d.sequence_stride = -1; }, nullptr), "", untouched},
      {"lockstep_reduce_desc.length", reduced([](R& d) { d.length = -2; }), "length is -2"},
      {"lockstep_reduce_desc.length", reduced([](R& d) { d.length = 0, d.element_stride = -5; }, nullptr), "",
       [] { return std::vector<double>{0, 0}; }},
      {"lockstep_reduce_desc.element_stride", reduced([](R& d) { d.element_stride = 0; }), "element_stride is 0"},
      {"lockstep_reduce_desc.element_stride", reduced([](R& d) { d.length = 1, d.element_stride = huge; }), "",
       sums({{0}, {3}})},
      {"lockstep_reduce_desc.sequence_stride", reduced([](R& d) { d.sequence_stride = 0; }), "",
       sums({{0, 1, 2}, {0, 1, 2}})},
      {"lockstep_reduce_desc.sequence_stride", reduced([](R& d) { d.sequence_stride = 1; }), "",
       sums({{0, 1, 2}, {1, 2, 3}})},
      {"lockstep_reduce_desc.sequence_stride", reduced([](R& d) { d.sequence_stride = -1; }), "sequence_stride is -1"},
      {"lockstep_reduce_desc.sequence_stride", reduced([](R& d) { d.count = 1, d.sequence_stride = -huge; }), "",
       sums({{0, 1, 2}})},
      {"lockstep_reduce_desc.offsets", reduced([](R& d) {
         offsets[0] = 1, offsets[1] = 3, offsets[2] = 4;
         d.offsets = offsets, d.length = -7, d.sequence_stride = -8;  // which say nothing then
       }),
       "", sums({{1, 2}, {3}})},
      {"lockstep_reduce_desc.offsets", reduced([](R& d) {
         offsets[0] = offsets[1] = offsets[2] = huge;  // nothing of src, wherever it is
         d.offsets = offsets, d.element_stride = huge;
       }, nullptr),
       "", [] { return std::vector<double>{0, 0}; }},
      {"lockstep_reduce_desc.offsets", reduced([](R& d) {
         offsets[0] = 0, offsets[1] = 1, offsets[2] = 9;
         d.offsets = offsets, d.element_stride = int64_t{1} << 60;
       }),
       "offsets[2] is 9: src would span more than 2^63-1 bytes"},
      // stencil
      {"lockstep_stencil_desc.size", swept([](S& d) { d.size = 151; }), "desc->size is 151"},
      {"lockstep_stencil_desc.dtype", swept([](S& d) { d.dtype = LOCKSTEP_F16; }), "dtype is F16"},
      {"lockstep_stencil_desc.form", swept([](S& d) { d.form = static_cast<lockstep_form>(-1); }), "form is -1"},
      {"lockstep_stencil_desc.boundary", swept([](S& d) { d.boundary = static_cast<lockstep_boundary>(9); }),
       "boundary is 9"},
      {"lockstep_stencil_desc.rank", swept([](S& d) { d.rank = 4; }), "rank is 4"},
      {"lockstep_stencil_desc.radius", swept([](S& d) { d.radius = 0; }), "radius is 0"},
      {"lockstep_stencil_desc.coefficient_count", swept([](S& d) { d.coefficient_count = 4; }),
       "coefficient_count is 4"},
      {"lockstep_stencil_desc.sweeps", swept([](S& d) { d.batch = 0, d.sweeps = 0; }), "sweeps is 0"},
      {"lockstep_stencil_desc.coefficients", swept([](S& d) { d.coefficients = nullptr; }), "coefficients is NULL"},
      {"lockstep_stencil_desc.value", swept([](S& d) {  // read under CONSTANT alone
         d.value = __builtin_nan(""), d.rank = 1, d.coefficient_count = 3, d.shape[0] = 3, d.src_strides[0] = 1;
         d.dst_strides[0] = 1;
       }),
       "", [] {
         return std::vector<double>{0.25 * src[0] + 0.5 * src[0] + 0.125 * src[1],
                                    0.25 * src[0] + 0.5 * src[1] + 0.125 * src[2],
                                    0.25 * src[1] + 0.5 * src[2] + 0.125 * src[2]};
       }},
      {"lockstep_stencil_desc.shape", swept([](S& d) { d.shape[0] = 0, d.src_strides[0] = -3; }), "", untouched},
      {"lockstep_stencil_desc.shape", swept([](S& d) { d.boundary = LOCKSTEP_BOUNDARY_VALID; }), "shape[0] is 2"},
      {"lockstep_stencil_desc.src_strides", swept([](S& d) { d.src_strides[0] = 2; }), "src_strides[0] is 2"},
      {"lockstep_stencil_desc.src_strides", swept([](S& d) { d.src_strides[1] = 3; }), "src_strides[1] is 3"},
      {"lockstep_stencil_desc.src_strides", swept([](S& d) {  // of an axis of one element
         d.shape[0] = 1, d.src_strides[0] = d.dst_strides[0] = -huge;
         static constexpr double centre[] = {0, 0, 1, 0, 0};
         d.coefficients = centre;
       }),
       "", gathered({0, 1, 2})},
      {"lockstep_stencil_desc.src_strides", swept([](S& d) {  // nor of the innermost
         d.shape[1] = 1, d.dst_strides[0] = 1, d.src_strides[1] = d.dst_strides[1] = -huge;
         static constexpr double centre[] = {0, 0, 1, 0, 0};
         d.coefficients = centre;
       }),
       "", gathered({0, 3})},
      {"lockstep_stencil_desc.dst_strides", swept([](S& d) { d.dst_strides[0] = 1; }), "dst_strides[0] is 1"},
      {"lockstep_stencil_desc.batch", swept([](S& d) { d.batch = -1; }), "batch is -1"},
      {"lockstep_stencil_desc.src_batch_stride",
       swept([](S& d) { d.batch = 2, d.src_batch_stride = 5, d.dst_batch_stride = 6; }), "src_batch_stride is 5"},
      {"lockstep_stencil_desc.dst_batch_stride",
       swept([](S& d) { d.batch = 2, d.src_batch_stride = 6, d.dst_batch_stride = 5; }), "dst_batch_stride is 5"},
      // shuffle
      {"lockstep_shuffle_desc.size", shuffled([](W& d) { d.size = 39; }), "desc->size is 39"},
      {"lockstep_shuffle_desc.kind", shuffled([](W& d) { d.kind = static_cast<lockstep_shuffle_kind>(4); }),
       "kind is 4"},
      {"lockstep_shuffle_desc.element_bytes", shuffled([](W& d) { d.count = 0, d.element_bytes = 2; }),
       "element_bytes is 2"},
      {"lockstep_shuffle_desc.count", shuffled([](W& d) { d.count = 33; }), "count is 33"},
      {"lockstep_shuffle_desc.count", shuffled([](W& d) { d.count = INT64_MAX; }), "pad src by 1 "},
      {"lockstep_shuffle_desc.count", shuffled([](W& d) { d.count = 0; }), "", untouched},
      {"lockstep_shuffle_desc.width", shuffled([](W& d) { d.width = 5; }), "width is 5"},
      {"lockstep_shuffle_desc.operand", shuffled([](W& d) { d.operand = -1; }), "operand (delta) is -1"},
      // normalize: src is 1, 2, 3 ...
      {"lockstep_normalize_desc.size", normalized([](N& d) { d.size = 111; }), "desc->size is 111"},
      {"lockstep_normalize_desc.size", normalized([](N& d) {  // before there were offsets
         d.size = offsetof(N, offsets), d.offsets = reinterpret_cast<const int64_t*>(1);
       }),
       "", scaled({1, 2, 3, 4, 5, 6})},
      {"lockstep_normalize_desc.kind", normalized([](N& d) { d.kind = static_cast<lockstep_normalization>(9); }),
       "kind is 9"},
      {"lockstep_normalize_desc.inner", normalized([](N& d) { d.inner = -2; }), "inner is -2"},
      {"lockstep_normalize_desc.inner", normalized([](N& d) { d.count = 3, d.inner = 2; }), "inner is 2, but count is 3"},
      {"lockstep_normalize_desc.inner", normalized([](N& d) { d.inner = 2; }), "", scaled({1, 2, 3, 4, 5, 6})},
      {"lockstep_normalize_desc.gradient", normalized([](N& d) { d.gradient = src; }), "L2 has none"},
      {"lockstep_normalize_desc.gradient", normalized([](N& d) { d.kind = LOCKSTEP_NORMALIZE_RMS_BACKWARD; }),
       "gradient is NULL"},
      {"lockstep_normalize_desc.gradient", backward([](N& d) { d.gradient = dst + 5; }), "gradient (0x"},
      {"lockstep_normalize_desc.gradient_stride", backward([](N& d) { d.gradient_stride = -1; }),
       "gradient_stride is -1"},
      {"lockstep_normalize_desc.gradient_stride", backward([](N& d) { d.gradient_stride = 0; }), "",  // of all rows
       zeros(6)},
      {"lockstep_normalize_desc.weight_gradient", normalized([](N& d) { d.weight_gradient = dst + 6; }), "L2 has none"},
      {"lockstep_normalize_desc.weight_gradient", backward([](N& d) { d.weight_gradient = src + 1; }), "src (0x"},
      {"lockstep_normalize_desc.weight_gradient", backward([](N& d) { d.weight_gradient = dst + 5; }), "overlap; give dst"},
      {"lockstep_normalize_desc.weight_gradient", backward([](N& d) { d.weight_gradient = dst + 6; }), "",
       zeros(9)},  // behind dst's rows
      {"lockstep_normalize_desc.bias_gradient", normalized([](N& d) { d.bias_gradient = dst + 6; }), "L2 has none"},
      {"lockstep_normalize_desc.bias_gradient",
       backward([](N& d) { d.weight_gradient = dst + 6, d.bias_gradient = dst + 8; }), "bias_gradient (0x"},
      {"lockstep_normalize_desc.bias_gradient", backward([](N& d) { d.bias_gradient = dst + 6; }), "", zeros(9)},
      {"lockstep_normalize_desc.bias", backward([](N& d) { d.bias = src; }), "RMS_BACKWARD has none"},
      {"lockstep_normalize_desc.result", backward([](N& d) { d.result = LOCKSTEP_F32; }), "result is F32"},
      {"lockstep_normalize_desc.kind", normalized([](N& d) { d.count = 0, d.kind = static_cast<lockstep_normalization>(-1); }),
       "kind is -1"},
      {"lockstep_normalize_desc.dtype", normalized([](N& d) { d.dtype = LOCKSTEP_I32; }), "dtype is I32"},
      {"lockstep_normalize_desc.result", normalized([](N& d) { d.result = LOCKSTEP_I64; }), "result is I64"},
      {"lockstep_normalize_desc.result",
       normalized([](N& d) { d.dtype = d.weight_dtype = LOCKSTEP_F32; }), "result is F64; rows of F32 become F16, BF16 or F32"},
      {"lockstep_normalize_desc.weight_dtype", normalized([](N& d) { d.weight_dtype = LOCKSTEP_BF16; }),
       "weight_dtype is BF16; weight and bias of rows of F64 are F64 or F32"},
      {"lockstep_normalize_desc.count", normalized([](N& d) { d.count = -1; }), "count is -1"},
      {"lockstep_normalize_desc.count",
       normalized([](N& d) { d.count = 0, d.src_stride = -5, d.weight = src + 1; }, nullptr, nullptr), "", untouched},
      {"lockstep_normalize_desc.length", normalized([](N& d) { d.length = -4; }), "length is -4"},
      {"lockstep_normalize_desc.length", normalized([](N& d) { d.length = 0; }, nullptr, nullptr), "", untouched},
      {"lockstep_normalize_desc.length", normalized([](N& d) { d.length = INT64_MAX / 4; }), "2^63-1"},
      {"lockstep_normalize_desc.src_stride", normalized([](N& d) { d.src_stride = -1; }), "src_stride is -1"},
      {"lockstep_normalize_desc.src_stride", normalized([](N& d) { d.src_stride = 0; }), "", scaled({1, 2, 3, 1, 2, 3})},
      {"lockstep_normalize_desc.src_stride", normalized([](N& d) { d.count = 1, d.src_stride = -huge; }), "",
       scaled({1, 2, 3})},
      {"lockstep_normalize_desc.src_stride", normalized([](N& d) { d.src_stride = 5; }, dst, dst), "overlap"},
      {"lockstep_normalize_desc.dst_stride", normalized([](N& d) { d.dst_stride = 2; }), "dst_stride is 2; give 3 or more"},
      {"lockstep_normalize_desc.dst_stride", normalized([](N& d) { d.dst_stride = 4; }), "",
       scaled({1, 2, 3, gap, 4, 5, 6})},
      {"lockstep_normalize_desc.dst_stride", normalized([](N& d) { d.count = 1, d.dst_stride = 0; }), "", scaled({1, 2, 3})},
      {"lockstep_normalize_desc.residual_stride", normalized([](N& d) { d.residual = src, d.residual_stride = -2; }),
       "residual_stride is -2"},
      {"lockstep_normalize_desc.residual_stride",  // the same residual for every row
       normalized([](N& d) { d.residual = src, d.residual_stride = 0; }), "", scaled({2, 4, 6, 5, 7, 9})},
      {"lockstep_normalize_desc.residual_stride", normalized([](N& d) { d.residual_stride = -huge; }), "",
       scaled({1, 2, 3, 4, 5, 6})},  // without residual it says nothing
      {"lockstep_normalize_desc.sum_stride",
       normalized([](N& d) { d.residual = src, d.sum = dst + 100, d.sum_stride = 2; }), "sum_stride is 2"},
      {"lockstep_normalize_desc.eps", normalized([](N& d) { d.eps = -1; }), "eps is -1"},
      {"lockstep_normalize_desc.eps", normalized([](N& d) { d.eps = __builtin_nan(""); }), "eps is nan"},
      {"lockstep_normalize_desc.eps", normalized([](N& d) { d.eps = __builtin_inf(); }), "eps is inf"},
      {"lockstep_normalize_desc.weight", normalized([](N& d) { d.weight = src + 3; }), "", scaled({4, 10, 18, 16, 25, 36})},
      {"lockstep_normalize_desc.weight", normalized([](N& d) { d.weight = reinterpret_cast<char*>(src) + 4; }),
       "weight is 0x"},
      {"lockstep_normalize_desc.weight", normalized([](N& d) { d.weight = dst + 5; }), "weight (0x"},
      {"lockstep_normalize_desc.offsets", normalized([](N& d) { d.offsets = reinterpret_cast<const int64_t*>(src); }),
       "offsets is 0x"},
      {"lockstep_normalize_desc.offsets", normalized([](N& d) {
         static const int64_t ends[] = {0, 2, 6};
         d.kind = LOCKSTEP_NORMALIZE_SOFTMAX, d.scale = 1024, d.offsets = ends, d.length = d.dst_stride = -3;
       }),
       "", scaled({0, 1, 0, 0, 0, 1}, 1)},
      // Elements 1,024 and more below the largest (of a negative scale the smallest) have the exponential 0.
      {"lockstep_normalize_desc.scale", normalized([](N& d) { d.kind = LOCKSTEP_NORMALIZE_SOFTMAX, d.scale = 1024; }), "",
       scaled({0, 0, 1, 0, 0, 1}, 1)},
      {"lockstep_normalize_desc.scale", normalized([](N& d) { d.kind = LOCKSTEP_NORMALIZE_SOFTMAX, d.scale = -1024; }), "",
       scaled({1, 0, 0, 1, 0, 0}, 1)},
      {"lockstep_normalize_desc.scale", normalized([](N& d) { d.kind = LOCKSTEP_NORMALIZE_SOFTMAX, d.scale = 0; }),
       "scale is 0; give a finite number"},
      {"lockstep_normalize_desc.scale",
       normalized([](N& d) { d.kind = LOCKSTEP_NORMALIZE_PICKED, d.scale = __builtin_inf(); }), "scale is inf"},
      {"lockstep_normalize_desc.weight", normalized([](N& d) { d.kind = LOCKSTEP_NORMALIZE_SOFTMAX, d.weight = src; }),
       "SOFTMAX has none"},
      {"lockstep_normalize_desc.bias", normalized([](N& d) { d.kind = LOCKSTEP_NORMALIZE_LOGSUMEXP, d.bias = src; }),
       "LOGSUMEXP has none"},
      {"lockstep_normalize_desc.labels", normalized([](N& d) { d.kind = LOCKSTEP_NORMALIZE_PICKED; }),
       "labels is NULL; PICKED needs count labels"},
      {"lockstep_normalize_desc.labels", normalized([](N& d) {
         static const int64_t labels[] = {2, 0};
         d.kind = LOCKSTEP_NORMALIZE_PICKED, d.scale = 1024, d.dst_stride = 1, d.labels = labels;
       }), "", scaled({0, -2048}, 1)},
      {"lockstep_normalize_desc.labels", normalized([](N& d) {
         static const int64_t labels[] = {2, 3};
         d.kind = LOCKSTEP_NORMALIZE_PICKED, d.dst_stride = 1, d.labels = labels;
       }), "labels[1] is 3; give 0 to 2"},
      {"lockstep_normalize_desc.length", normalized([](N& d) { d.kind = LOCKSTEP_NORMALIZE_LOGSUMEXP, d.length = 0; }),
       "length is 0; LOGSUMEXP needs rows of 1"},
      {"lockstep_normalize_desc.bias", normalized([](N& d) { d.bias = src + 63; }), "",
       scaled({64 * 64 + 1, 64 * 65 + 2, 64 * 66 + 3, 64 * 64 + 4, 64 * 65 + 5, 64 * 66 + 6})},
      {"lockstep_normalize_desc.bias", normalized([](N& d) { d.bias = dst; }), "bias (0x"},
      {"lockstep_scan_desc.before", scanned([](X& d) {
         static const double before[] = {7, 100, 7, 200};  // a leaf's sum each; nothing is exclusive here
         d.first = 2048, d.before = before;
       }), "", scaled({101, 103, 106, 204, 209, 215}, 1)},
      {"lockstep_scan_desc.before", scanned([](X& d) { d.before = dst + 5, d.first = 2048; }), "before (0x"},
      {"lockstep_scan_desc.first", scanned([](X& d) { d.first = 2048; }), "before is NULL; give both"},
      {"lockstep_scan_desc.first", scanned([](X& d) { d.first = 5, d.before = src; }), "give a multiple of 2048"},
      {"lockstep_scan_desc.first", scanned([](X& d) { d.first = -2048, d.before = src; }), "first is -2048"},
      {"lockstep_normalize_desc.given", normalized([](N& d) {
         static const double given[] = {0, 32, 1, 64};
         d.given = given;
       }), "", scaled({2, 4, 6, 3, 4, 5})},
      {"lockstep_normalize_desc.given", normalized([](N& d) {
         static const double given[] = {3, 1, 6, 4};
         d.kind = LOCKSTEP_NORMALIZE_SOFTMAX, d.scale = 1024, d.given = given;
       }), "", scaled({0, 0, 4, 0, 0, 1}, 0.25)},
      {"lockstep_normalize_desc.given", normalized([](N& d) { d.given = src, d.residual = src + 6; }), "set it to NULL"},
      {"lockstep_normalize_desc.given", normalized([](N& d) { d.given = dst + 5; }), "given (0x"},
      {"lockstep_normalize_desc.residual", normalized([](N& d) { d.residual = src + 6; }), "",
       scaled({8, 10, 12, 14, 16, 18})},
      {"lockstep_normalize_desc.residual", normalized([](N& d) { d.residual = dst + 2; }), "residual (0x"},
      {"lockstep_normalize_desc.sum", normalized([](N& d) { d.sum = dst + 100; }), "but residual is NULL"},
      {"lockstep_normalize_desc.sum", normalized([](N& d) { d.residual = src, d.sum = dst + 5; }), "sum (0x"},
      {"lockstep_normalize_desc.sum", normalized([](N& d) { d.residual = src + 6, d.sum = src + 1; }), "overlap; give sum"},
      {"lockstep_normalize_desc.sum", normalized([](N& d) { d.residual = src + 6, d.sum = src + 7; }), "overlap; give sum"},
      {"lockstep_normalize_desc.sum", normalized([](N& d) { d.residual = src + 6, d.weight = src + 20, d.sum = src + 17; }),
       "weight (0x"},
      {"lockstep_normalize_desc.sum", normalized([](N& d) {  // behind dst's rows
         d.residual = src, d.sum = dst + 6;
       }),
       "", [] {
         std::vector<double> all;
         for (int i = 0; i < 12; ++i) all.push_back(i < 6 ? 2 * src[i] / 64 : 2 * src[i - 6]);
         return all;
       }},
      {"lockstep_normalize_desc.sum", normalized([](N& d) { d.residual = src + 6, d.sum = src; }), "",  // becomes src
       [] {
         std::vector<double> all;
         for (int i = 0; i < 6; ++i) all.push_back(src[i] / 64);
         return src[0] == 8 && src[5] == 18 ? all : std::vector<double>{};
       }},
      {"lockstep_normalize_desc.sum", normalized([](N& d) { d.residual = d.sum = src + 6; }), "",
       [] {
         std::vector<double> all;
         for (int i = 6; i < 12; ++i) all.push_back(src[i] / 64);
         return src[6] == 8 && src[0] == 1 ? all : std::vector<double>{};
       }},
      // scan
      {"lockstep_scan_desc.size", scanned([](X& d) { d.size = 80; }), "desc->size is 80"},
      {"lockstep_scan_desc.reduction", scanned([](X& d) { d.reduction = LOCKSTEP_ARGMAX; }), "reduction is ARGMAX"},
      {"lockstep_scan_desc.reduction", scanned([](X& d) { d.count = 0, d.reduction = static_cast<lockstep_reduction>(-3); }),
       "reduction is -3"},
      {"lockstep_scan_desc.dtype", scanned([](X& d) { d.dtype = LOCKSTEP_U8; }), "dtype is U8"},
      {"lockstep_scan_desc.result", scanned([](X& d) { d.result = LOCKSTEP_I64; }), "result is I64"},
      {"lockstep_scan_desc.result", scanned([](X& d) { d.reduction = LOCKSTEP_MAX, d.result = LOCKSTEP_F32; }),
       "result is F32, but a scan by MAX of F64 gives F64"},
      {"lockstep_scan_desc.count", scanned([](X& d) { d.count = -1; }), "count is -1"},
      {"lockstep_scan_desc.count", scanned([](X& d) { d.count = 0, d.element_stride = 0; }, nullptr, nullptr), "", untouched},
      {"lockstep_scan_desc.length", scanned([](X& d) { d.length = -1; }), "length is -1"},
      {"lockstep_scan_desc.length", scanned([](X& d) { d.length = 0, d.dst_element_stride = -1; }, nullptr, nullptr), "",
       untouched},
      {"lockstep_scan_desc.element_stride", scanned([](X& d) { d.element_stride = 0; }), "element_stride is 0"},
      {"lockstep_scan_desc.element_stride", scanned([](X& d) { d.element_stride = 2; }), "", scaled({1, 4, 9, 4, 10, 18}, 1)},
      {"lockstep_scan_desc.sequence_stride", scanned([](X& d) { d.sequence_stride = 0; }), "",
       scaled({1, 3, 6, 1, 3, 6}, 1)},
      {"lockstep_scan_desc.sequence_stride", scanned([](X& d) { d.sequence_stride = -1; }), "sequence_stride is -1"},
      {"lockstep_scan_desc.dst_element_stride", scanned([](X& d) { d.dst_element_stride = 0; }), "dst_element_stride is 0"},
      {"lockstep_scan_desc.dst_element_stride",
       scanned([](X& d) { d.dst_element_stride = 2, d.dst_sequence_stride = 6; }), "",
       scaled({1, gap, 3, gap, 6, gap, 4, gap, 9, gap, 15}, 1)},
      {"lockstep_scan_desc.dst_element_stride",  // two sequences by turns
       scanned([](X& d) { d.dst_element_stride = 2, d.dst_sequence_stride = 1; }), "", scaled({1, 4, 3, 9, 6, 15}, 1)},
      {"lockstep_scan_desc.dst_sequence_stride", scanned([](X& d) { d.dst_sequence_stride = 2; }),
       "dst_sequence_stride is 2, but the results of a sequence span 3"},
      {"lockstep_scan_desc.dst_sequence_stride", scanned([](X& d) { d.dst_sequence_stride = 0; }),
       "dst_sequence_stride is 0"},
      {"lockstep_scan_desc.dst_sequence_stride", scanned([](X& d) { d.count = 1, d.dst_sequence_stride = -huge; }), "",
       scaled({1, 3, 6}, 1)},
      {"lockstep_scan_desc.dst_sequence_stride", scanned([](X& d) { d.dst_sequence_stride = 4; }, dst, dst), "overlap"},
      {"lockstep_scan_desc.offsets", scanned([](X& d) {
         offsets[0] = 1, offsets[1] = 3, offsets[2] = 4;
         d.offsets = offsets, d.length = -7, d.sequence_stride = d.dst_sequence_stride = -8;  // which say nothing then
       }),
       "", scaled({gap, 2, 5, 4}, 1)},
      {"lockstep_scan_desc.offsets", scanned([](X& d) {
         offsets[0] = 0, offsets[1] = 2, offsets[2] = 1;
         d.offsets = offsets;
       }),
       "offsets[2] is 1, less than offsets[1]"},
      {"lockstep_scan_desc.offsets", scanned([](X& d) {
         offsets[0] = 0, offsets[1] = 1, offsets[2] = 9;
         d.offsets = offsets, d.dst_element_stride = int64_t{1} << 60;
       }),
       "offsets[2] is 9: dst would span more than 2^63-1 bytes"},
      {"lockstep_scan_desc.offsets", scanned([](X& d) {  // dst reaches src
         offsets[0] = 0, offsets[1] = 2, offsets[2] = 4;
         d.offsets = offsets;
       }, dst, dst + 3),
       "overlap"},
      {"lockstep_scan_desc.exclusive", scanned([](X& d) { d.exclusive = 1; }), "", scaled({0, 1, 3, 0, 4, 9}, 1)},
      {"lockstep_scan_desc.exclusive", scanned([](X& d) { d.exclusive = 2; }), "exclusive is 2"},
      // sums: (1, 2, 3) by (10, 11, 12), (4, 5, 6) by (13, 14, 15)
      {"lockstep_sums_desc.size", paired([](Q& d) { d.size = 88; }), "desc->size is 88"},
      {"lockstep_sums_desc.kind", paired([](Q& d) { d.count = 0, d.kind = static_cast<lockstep_sums_kind>(-1); }),
       "kind is -1"},
      {"lockstep_sums_desc.kind", paired([](Q& d) { d.kind = LOCKSTEP_SUMS_SQUARED_DIFFERENCES; }), "",
       scaled({243, 243}, 1)},
      {"lockstep_sums_desc.kind", paired([](Q& d) { d.kind = LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES; }), "",
       scaled({27, 27}, 1)},
      {"lockstep_sums_desc.kind", paired([](Q& d) { d.kind = LOCKSTEP_SUMS_ABSOLUTE, d.other = nullptr; }), "",
       scaled({6, 15}, 1)},
      {"lockstep_sums_desc.kind", paired([](Q& d) { d.kind = LOCKSTEP_SUMS_MEAN_VARIANCE, d.other = nullptr; }), "",
       scaled({2, 2.0 / 3, 5, 2.0 / 3}, 1)},
      {"lockstep_sums_desc.dtype", paired([](Q& d) { d.dtype = static_cast<lockstep_dtype>(0); }), "dtype is 0"},
      {"lockstep_sums_desc.result", paired([](Q& d) { d.result = LOCKSTEP_U64; }), "result is U64"},
      {"lockstep_sums_desc.count", paired([](Q& d) { d.count = -1; }), "count is -1"},
      {"lockstep_sums_desc.count", paired([](Q& d) { d.count = 0, d.element_stride = 0, d.other = nullptr; }, nullptr), "",
       untouched},
      {"lockstep_sums_desc.length", paired([](Q& d) { d.length = -1; }), "length is -1"},
      {"lockstep_sums_desc.length", paired([](Q& d) { d.length = 0, d.other_element_stride = -1, d.other = nullptr; }, nullptr),
       "", scaled({0, 0}, 1)},
      {"lockstep_sums_desc.element_stride", paired([](Q& d) { d.element_stride = 0; }), "element_stride is 0"},
      {"lockstep_sums_desc.element_stride", paired([](Q& d) { d.element_stride = 2; }), "", scaled({103, 256}, 1)},
      {"lockstep_sums_desc.sequence_stride", paired([](Q& d) { d.sequence_stride = -1; }), "sequence_stride is -1"},
      {"lockstep_sums_desc.sequence_stride", paired([](Q& d) { d.sequence_stride = 0; }), "", scaled({68, 86}, 1)},
      {"lockstep_sums_desc.offsets", paired([](Q& d) {
         offsets[0] = 1, offsets[1] = 1, offsets[2] = 3;
         d.offsets = offsets;
       }), "", scaled({0, 2 * 11 + 3 * 12}, 1)},
      {"lockstep_sums_desc.other", paired([](Q& d) { d.other = nullptr; }), "other is NULL"},
      {"lockstep_sums_desc.other", paired([](Q& d) { d.other = src; }), "", scaled({14, 77}, 1)},
      {"lockstep_sums_desc.other", paired([](Q& d) { d.other = dst + 1; }), "other (0x"},
      {"lockstep_sums_desc.other_element_stride", paired([](Q& d) { d.other_element_stride = -3; }),
       "other_element_stride is -3"},
      {"lockstep_sums_desc.other_element_stride", paired([](Q& d) { d.other_element_stride = 2; }), "",
       scaled({76, 229}, 1)},
      {"lockstep_sums_desc.other_sequence_stride", paired([](Q& d) { d.other_sequence_stride = -1; }),
       "other_sequence_stride is -1"},
      {"lockstep_sums_desc.other_sequence_stride", paired([](Q& d) { d.other_sequence_stride = 0; }), "",
       scaled({68, 167}, 1)},
      {"lockstep_sums_desc.other_sequence_stride", paired([](Q& d) { d.count = 1, d.other_sequence_stride = -huge; }), "",
       scaled({68}, 1)},
      {"lockstep_sums_desc.correction", paired([](Q& d) { d.correction = 2; }), "correction is 2"},
      {"lockstep_sums_desc.correction",
       paired([](Q& d) { d.kind = LOCKSTEP_SUMS_MEAN_VARIANCE, d.other = nullptr, d.correction = 1; }), "",
       scaled({2, 1, 5, 1}, 1)},
      {"lockstep_sums_desc.correction",
       paired([](Q& d) { d.kind = LOCKSTEP_SUMS_MEAN_VARIANCE, d.other = nullptr, d.correction = -1; }), "correction is -1"},
      // reduce_axes: 18, 26 and 34 are the sums over axes 0 and 2
      {"lockstep_reduce_axes_desc.size", reduced_axes([](A& d) { d.size = 184; }), "desc->size is 184"},
      {"lockstep_reduce_axes_desc.reduction", reduced_axes([](A& d) { d.reduction = static_cast<lockstep_reduction>(LOCKSTEP_REDUCTION_COUNT); }),
       "reduction is 14"},
      {"lockstep_reduce_axes_desc.reduction", reduced_axes([](A& d) { d.reduction = LOCKSTEP_MAX; }), "",
       scaled({8, 10, 12}, 1)},
      {"lockstep_reduce_axes_desc.dtype", reduced_axes([](A& d) { d.dtype = static_cast<lockstep_dtype>(99); }), "dtype is 99"},
      {"lockstep_reduce_axes_desc.result", reduced_axes([](A& d) { d.result = LOCKSTEP_I64; }), "result is I64"},
      {"lockstep_reduce_axes_desc.rank", reduced_axes([](A& d) { d.rank = 0; }), "rank is 0"},
      {"lockstep_reduce_axes_desc.rank", reduced_axes([](A& d) { d.rank = 9; }), "rank is 9"},
      {"lockstep_reduce_axes_desc.axis_count", reduced_axes([](A& d) { d.axis_count = 4; }), "axis_count is 4"},
      {"lockstep_reduce_axes_desc.axis_count", reduced_axes([](A& d) { d.axis_count = 0; }), "axis_count is 0"},
      {"lockstep_reduce_axes_desc.axes", reduced_axes([](A& d) { d.axes[1] = 0; }), "axes[1] is 0 again"},
      {"lockstep_reduce_axes_desc.axes", reduced_axes([](A& d) { d.axes[0] = 3; }), "axes[0] is 3"},
      {"lockstep_reduce_axes_desc.axes", reduced_axes([](A& d) { d.axes[0] = -1; }), "axes[0] is -1"},
      {"lockstep_reduce_axes_desc.axes", reduced_axes([](A& d) { d.axes[0] = 2, d.axes[1] = 0; }), "",
       scaled({18, 26, 34}, 1)},
      {"lockstep_reduce_axes_desc.shape", reduced_axes([](A& d) { d.shape[1] = -2; }), "shape[1] is -2"},
      {"lockstep_reduce_axes_desc.shape", reduced_axes([](A& d) { d.shape[1] = 0, d.shape[0] = huge, d.shape[2] = huge; }, nullptr),
       "2^63-1"},
      {"lockstep_reduce_axes_desc.shape", reduced_axes([](A& d) { d.shape[1] = 0; }, nullptr), "", untouched},
      {"lockstep_reduce_axes_desc.shape", reduced_axes([](A& d) { d.shape[2] = 0; }, nullptr), "", scaled({0, 0, 0}, 1)},
      {"lockstep_reduce_axes_desc.src_strides", reduced_axes([](A& d) { d.src_strides[2] = -1; }), "src_strides[2] is -1"},
      {"lockstep_reduce_axes_desc.src_strides", reduced_axes([](A& d) { d.src_strides[0] = 0; }), "", scaled({6, 14, 22}, 1)},
      {"lockstep_reduce_axes_desc.src_strides", reduced_axes([](A& d) { d.shape[2] = 1, d.src_strides[2] = -huge; }), "",
       scaled({8, 12, 16}, 1)},
      // convert
      {"lockstep_convert_desc.size", converted([](V& d) { d.size = 216; }), "desc->size is 216"},
      {"lockstep_convert_desc.dtype", converted([](V& d) { d.dtype = static_cast<lockstep_dtype>(14); }), "dtype is 14"},
      {"lockstep_convert_desc.dtype", converted([](V& d) { d.shape[0] = 0, d.dtype = static_cast<lockstep_dtype>(0); }), "dtype is 0"},
      {"lockstep_convert_desc.result", converted([](V& d) { d.result = static_cast<lockstep_dtype>(99); }), "result is 99"},
      {"lockstep_convert_desc.scale", converted([](V& d) { d.scale = -0.5; }), "", scaled({1, 4, 2, 5, 3, 6}, -0.5)},
      {"lockstep_convert_desc.rank", converted([](V& d) { d.rank = 0; }), "rank is 0"},
      {"lockstep_convert_desc.rank", converted([](V& d) { d.rank = 9; }), "rank is 9"},
      {"lockstep_convert_desc.shape", converted([](V& d) { d.shape[1] = -3; }), "shape[1] is -3"},
      {"lockstep_convert_desc.shape", converted([](V& d) { d.shape[1] = 0, d.src_strides[0] = -7; }, nullptr), "", untouched},
      {"lockstep_convert_desc.shape", converted([](V& d) { d.shape[0] = d.shape[1] = huge; }), "2^63-1"},
      {"lockstep_convert_desc.src_strides", converted([](V& d) { d.src_strides[1] = 0; }), "src_strides[1] is 0"},
      {"lockstep_convert_desc.src_strides",  // in the other order: no transpose
       converted([](V& d) { d.src_strides[0] = 2, d.src_strides[1] = 1; }), "", scaled({1, 2, 3, 4, 5, 6}, 2)},
      {"lockstep_convert_desc.src_strides",  // elements of src that are read twice
       converted([](V& d) { d.src_strides[0] = 1, d.src_strides[1] = 1; }), "", scaled({1, 2, 2, 3, 3, 4}, 2)},
      {"lockstep_convert_desc.dst_strides", converted([](V& d) { d.dst_strides[0] = 0; }), "dst_strides[0] is 0"},
      {"lockstep_convert_desc.dst_strides", converted([](V& d) { d.dst_strides[0] = d.dst_strides[1] = 1; }), "dst_strides"},
      {"lockstep_convert_desc.dst_strides",  // column-major dst: memory in src's order
       converted([](V& d) { d.dst_strides[0] = 1, d.dst_strides[1] = 3; }), "", scaled({1, 2, 3, 4, 5, 6}, 2)},
      {"lockstep_convert_desc.dst_strides", converted([](V& d) { d.shape[1] = 1, d.dst_strides[0] = 1, d.dst_strides[1] = -huge; }), "",
       scaled({1, 2, 3}, 2)},
      // map
      {"lockstep_map_desc.size", mapped([](M& d) { d.size = 224; }), "desc->size is 224"},
      {"lockstep_map_desc.dtype", mapped([](M& d) { d.dtype = LOCKSTEP_I64; }), "dtype is I64"},
      {"lockstep_map_desc.dtype", mapped([](M& d) { d.dtype = LOCKSTEP_F64; }), "dtype is F64"},
      {"lockstep_map_desc.result", mapped([](M& d) { d.shape[0] = 0, d.result = LOCKSTEP_F64; }), "result is F64"},
      {"lockstep_map_desc.scale", mapped([](M& d) { d.scale = 2; }), "",
       upper_halves({1, 4, 2, 5, 3, 6}, [](float x) { return 2 / x; })},
      {"lockstep_map_desc.rank", mapped([](M& d) { d.rank = 0; }), "rank is 0"},
      {"lockstep_map_desc.shape", mapped([](M& d) { d.shape[1] = -3; }), "shape[1] is -3"},
      {"lockstep_map_desc.shape", mapped([](M& d) { d.shape[1] = 0; }, nullptr), "", untouched},
      {"lockstep_map_desc.src_strides", mapped([](M& d) { d.src_strides[1] = 0; }), "src_strides[1] is 0"},
      {"lockstep_map_desc.src_strides", mapped([](M& d) { d.src_strides[0] = 4, d.src_strides[1] = 2; }), "",
       upper_halves({1, 2, 3, 4, 5, 6}, inverse)},
      {"lockstep_map_desc.dst_strides", mapped([](M& d) { d.dst_strides[0] = 1; }), "dst_strides"},
      {"lockstep_map_desc.dst_strides", mapped([](M& d) { d.dst_strides[0] = 2, d.dst_strides[1] = 6; }), "",
       upper_halves({1, 2, 3, 4, 5, 6}, inverse)},
      {"lockstep_map_desc.function", mapped([](M& d) { d.function = LOCKSTEP_MAP_SQRT; }), "",
       upper_halves({1, 4, 2, 5, 3, 6}, [](float x) { return std::sqrt(x); })},
      {"lockstep_map_desc.function", mapped([](M& d) { d.function = static_cast<lockstep_function>(-1); }), "function is -1"},
      {"lockstep_map_desc.times", mapped([](M& d) { d.times = reinterpret_cast<const char*>(src) + 4; }), "",
       upper_halves({1, 4, 2, 5, 3, 6}, [](float) { return 1.0F; })},
      {"lockstep_map_desc.times", mapped([](M& d) { d.times = dst; }), "times (0x"},
      // options of a call
      {"lockstep_options.size", with_options([](O& o) { o.size = 57; }), "options->size is 57"},
      {"lockstep_options.backend", with_options([](O& o) { o.backend = ""; }), "options.backend is \"\""},
      {"lockstep_options.backend", with_options([](O& o) { o.backend = "a\33[31m\r\302\233b\177"; }),
       "options.backend is \"a?[31m??b?\""},  // no control character reaches a terminal
      {"lockstep_options.variant", with_options([](O& o) { o.variant = "magic"; }), "has no variant \"magic\""},
      {"lockstep_options.variant", with_options([](O& o) { o.variant = "auto"; }), "", transposed_2x3},
      {"lockstep_options.flags", with_options([](O& o) { o.flags = 64; }), "options.flags is 0x40"},
      {"lockstep_options.stream", with_options([](O& o) { o.stream = &offsets; }), "", transposed_2x3},  // the CPU has none
      {"lockstep_options.workspace", with_options([](O& o) { o.workspace = offsets + 1; }), "options.workspace is"},
      {"lockstep_options.workspace_bytes",  // without a workspace it says nothing
       with_options([](O& o) { o.workspace_bytes = SIZE_MAX; }), "", transposed_2x3},
      // options of a context
      {"lockstep_context_options.size", with_context([](C& o) { o.size = 11; }), "options->size is 11"},
      {"lockstep_context_options.backend", with_context([](C& o) { o.backend = ""; }), "options.backend is \"\""},
      {"lockstep_context_options.variants", with_context([](C& o) { o.variants = ""; }, "best"), "", transposed_2x3},
      {"lockstep_context_options.variants", with_context([](C& o) { o.variants = ",transpose=ref,"; }, "ref"), "",
       transposed_2x3},
      {"lockstep_context_options.variants",
       with_context([](C& o) { o.variants = "transpose=auto,transpose=ref"; }, "ref"), "", transposed_2x3},
      {"lockstep_context_options.variants",
       with_context([](C& o) { o.variants = "transpose=ref,reduce=ref,transpose=auto"; }, "best"), "", transposed_2x3},
      {"lockstep_context_options.variants", with_context([](C& o) { o.variants = "transpose=ref,magic"; }),
       "options.variants has \"magic\""},
      {"lockstep_context_options.cpu_isa", with_context([](C& o) { o.cpu_isa = ""; }), "", transposed_2x3},
      {"lockstep_context_options.cpu_isa", with_context([](C& o) { o.cpu_isa = " "; }), "options.cpu_isa"},
      {"lockstep_context_options.threads", with_context([](C& o) { o.threads = 5000; }), "options.threads is 5000"},
      {"lockstep_context_options.flags", with_context([](C& o) { o.flags = 1; }), "options.flags is 0x1"},
      {"lockstep_context_options.allocator", with_context([](C& o) {
         static constexpr lockstep_allocator half = {nullptr, nullptr, nullptr};
         o.allocator = &half;
       }),
       "options.allocator lacks a function"},
  };
  return rows;
}

TEST(Fields, DoWhatTheHeaderSays) {
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = "cpu";
  made good;
  ASSERT_EQ(lockstep_context_create(&o, &good.context), LOCKSTEP_OK);
  int row = 0;
  for (const promise& p : table()) {
    SCOPED_TRACE(testing::Message() << "row " << row++ << ", " << p.field);
    std::iota(src, src + 512, 1.0);
    std::fill(dst, dst + 512, -1.0);
    made m{good.context};
    const lockstep_status status = p.run(m);
    const std::string text = lockstep_last_error();
    if (*p.text != '\0') {
      EXPECT_NE(status, LOCKSTEP_OK);
      EXPECT_NE(text.find(p.text), std::string::npos) << text;
      EXPECT_TRUE(std::all_of(dst, dst + 512, [](double x) { return x == -1.0; })) << "a refused call wrote";
      continue;
    }
    EXPECT_EQ(status, LOCKSTEP_OK) << text;
    std::vector<double> want = p.want();
    want.resize(512, -1.0);
    EXPECT_TRUE(std::equal(dst, dst + 512, want.begin())) << "dst is another than the header says";
  }
  lockstep_context_destroy(good.context);
}

// Wherever the sequence stands that does not fit: it is named, and the others have their results.
TEST(Fields, OverflowOfAnySequence) {
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = "cpu";
  lockstep_context* context = nullptr;
  ASSERT_EQ(lockstep_context_create(&o, &context), LOCKSTEP_OK);
  for (const int64_t width : {2, 70})
    for (const int64_t count : {1, 2, 5, 64})
      for (int64_t bad = 0; bad < count; ++bad)
        for (const bool squares : {false, true}) {
          std::vector<int64_t> numbers(static_cast<size_t>(count * width), 3), results(static_cast<size_t>(count), -1);
          for (int64_t i = 0; i < 2; ++i) numbers[static_cast<size_t>(bad * width + i)] = INT64_MAX;
          const auto d =
              lockstep_reduce_rows(squares ? LOCKSTEP_SUM_OF_SQUARES : LOCKSTEP_SUM, LOCKSTEP_I64, count, width, width);
          const lockstep_status status =
              (squares ? lockstep_square_sum : lockstep_reduce)(context, &d, numbers.data(), results.data(), nullptr);
          ASSERT_EQ(status, LOCKSTEP_OVERFLOW) << count << " of " << width << ", " << bad;
          EXPECT_NE(std::string(lockstep_last_error()).find("sequence " + std::to_string(bad) + " "), std::string::npos)
              << lockstep_last_error();
          for (int64_t s = 0; s < count; ++s)
            EXPECT_EQ(results[static_cast<size_t>(s)], s == bad ? INT64_MAX : width * (squares ? 9 : 3));
        }
  lockstep_context_destroy(context);
}

TEST(Fields, AllHaveARow) {
  std::set<std::string> have;
  for (const promise& p : table()) have.insert(p.field);
  std::ifstream layout(LAYOUT_FILE);
  ASSERT_TRUE(layout.good()) << LAYOUT_FILE;
  int fields = 0;
  for (std::string line; std::getline(layout, line);) {
    std::istringstream words(line);
    std::string field;
    words >> field;
    const std::string of = field.substr(0, field.find('.'));
    const bool ours = of == "lockstep_options" || of == "lockstep_context_options" ||
                      (of.size() > 5 && of.ends_with("_desc") && of != field);
    if (!ours || of == field) continue;
    ++fields;
    EXPECT_TRUE(have.count(field) != 0) << field << " has no row";
  }
  EXPECT_GT(fields, 50);
}

TEST(Fields, NoBytesAreNoMemory) {
  made m;
  ASSERT_EQ(lockstep_context_create(nullptr, &m.context), LOCKSTEP_OK);
  void* pointer = &m;
  EXPECT_EQ(lockstep_alloc(m.context, "cpu", LOCKSTEP_HOST, 0, &pointer), LOCKSTEP_OK);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(lockstep_free(m.context, "cpu", LOCKSTEP_HOST, 0, pointer), LOCKSTEP_OK);
  lockstep_context_destroy(m.context);
}

}  // namespace
}  // namespace lockstep::check
