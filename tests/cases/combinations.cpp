// combinations.cpp - see combinations.hpp.
#include "combinations.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace lockstep::cases {
namespace {

using visitor = std::function<void(const combination&)>;

const char* const dtype_names[] = {"?",  "f16", "bf16", "f32", "f64", "i32", "i64",
                                   "i8", "i16", "u8",   "u16", "u32", "u64", "bool"};
std::string name_of(lockstep_dtype dtype) { return dtype_names[dtype]; }
template <class Visit>
void each_dtype(const Visit& visit) {
  for (int k = LOCKSTEP_F16; k <= LOCKSTEP_BOOL; ++k) visit(static_cast<lockstep_dtype>(k));
}
const char* const reductions[] = {"sum",   "min", "max", "argmin", "argmax", "ssq",    "norm2",
                                  "count", "any", "all", "prod",   "nansum", "nanmin", "nanmax"};
constexpr int reduction_count = sizeof reductions / sizeof *reductions;

// Where the sequences of reduce, square_sum, scan and sums lie.
struct layout {
  const char* name;
  int64_t count, length, element_stride, sequence_stride;
  bool offsets;
};
constexpr int64_t most_count = 40;
const layout layouts[] = {
    {"full", 1, 3001, 1, 3001, false},   {"one", 1, 1, 1, 1, false},         {"strided", 1, 501, 3, 501, false},
    {"rows", 7, 61, 1, 61, false},       {"short_rows", 40, 9, 1, 9, false}, {"even_rows", 16, 64, 1, 64, false},
    {"apart_rows", 5, 33, 1, 40, false}, {"columns", 33, 17, 33, 1, false},  {"few_columns", 3, 700, 3, 1, false},
    {"spread", 4, 30, 2, 64, false},     {"shared", 6, 50, 1, 0, false},     {"empty_rows", 3, 0, 1, 0, false},
    {"nothing", 0, 5, 1, 5, false},      {"segments", 6, 0, 1, 0, true},     {"spread_segments", 6, 0, 2, 0, true}};

void each_reduction(lockstep_op op, const combination_memory& at, const visitor& visit) {
  for (int r = 0; r < reduction_count; ++r)
    each_dtype([&](lockstep_dtype dtype) {
      each_dtype([&](lockstep_dtype result) {
        for (const layout& l : layouts) {
          const lockstep_reduce_desc d = {
              sizeof d,          static_cast<lockstep_reduction>(r), dtype, result, l.count, l.length, l.element_stride,
              l.sequence_stride, l.offsets ? at.offsets : nullptr};
          visit({op, std::string(reductions[r]) + "/" + name_of(dtype) + "/" + name_of(result) + "/" + l.name, &d});
        }
      });
    });
}

void each_scan(const combination_memory& at, const visitor& visit) {
  for (int r = 0; r <= LOCKSTEP_NORM2; ++r)
    each_dtype([&](lockstep_dtype dtype) {
      each_dtype([&](lockstep_dtype result) {
        for (const layout& l : layouts)
          for (const int32_t exclusive : {0, 1})
            for (const bool in_place : {false, true}) {
              lockstep_scan_desc d = {};
              d.size = sizeof d, d.reduction = static_cast<lockstep_reduction>(r), d.dtype = dtype, d.result = result;
              d.count = l.count, d.length = l.length, d.exclusive = exclusive;
              d.element_stride = d.dst_element_stride = l.element_stride;
              d.sequence_stride = d.dst_sequence_stride = l.sequence_stride;
              d.offsets = l.offsets ? at.offsets : nullptr;
              visit({LOCKSTEP_SCAN,
                     std::string(reductions[r]) + "/" + name_of(dtype) + "/" + name_of(result) + "/" + l.name +
                         (exclusive != 0 ? "/exclusive" : "") + (in_place ? "/inplace" : ""),
                     &d, in_place});
            }
      });
    });
}

void each_sum(const combination_memory& at, const visitor& visit) {
  const char* const kinds[] = {"dot", "squared", "absolute_differences", "absolute", "mean_variance", "digest"};
  for (int k = 0; k <= LOCKSTEP_SUMS_DIGEST; ++k)
    each_dtype([&](lockstep_dtype dtype) {
      each_dtype([&](lockstep_dtype result) {
        for (const layout& l : layouts)
          for (const bool alike : {true, false}) {
            lockstep_sums_desc d = {};
            d.size = sizeof d, d.kind = static_cast<lockstep_sums_kind>(k), d.dtype = dtype, d.result = result;
            d.count = l.count, d.length = l.length;
            d.element_stride = l.element_stride, d.sequence_stride = l.sequence_stride;
            d.offsets = l.offsets ? at.offsets : nullptr;
            const bool two = k <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES;
            if (two) {
              d.other = at.other;
              d.other_element_stride = alike ? d.element_stride : 2;
              d.other_sequence_stride = alike ? d.sequence_stride : 0;
            }
            if (!two) d.correction = alike ? 0 : 1;
            visit({LOCKSTEP_SUMS,
                   std::string(kinds[k]) + "/" + name_of(dtype) + "/" + name_of(result) + "/" + l.name +
                       (alike ? ""
                        : two ? "/other_apart"
                              : "/sample"),
                   &d});
          }
      });
    });
}

void each_reduction_of_axes(const visitor& visit) {
  struct where {
    const char* name;
    std::vector<int64_t> shape;
    std::vector<int32_t> axes;
    std::vector<int64_t> strides;  // none: packed
  };
  const where places[] = {{"all", {5, 6, 7}, {0, 1, 2}, {}},
                          {"rows", {5, 60}, {1}, {}},
                          {"columns", {60, 5}, {0}, {}},
                          {"middle", {5, 9, 8}, {1}, {}},
                          {"outer_and_inner", {5, 6, 70}, {0, 2}, {}},
                          {"alternating", {3, 2, 3, 2, 3, 2, 3, 2}, {0, 2, 4, 6}, {}},
                          {"alternating_inner", {2, 3, 2, 3, 2, 3, 2, 3}, {1, 3, 5, 7}, {}},
                          {"backwards", {6, 7, 8}, {0, 1}, {1, 6, 42}},
                          {"shared", {6, 7, 8}, {0, 2}, {0, 8, 1}},
                          {"spread", {6, 7, 8}, {1, 2}, {120, 17, 2}},
                          {"empty", {4, 0, 5}, {1}, {}},
                          {"nothing", {0, 4}, {1}, {}}};
  for (int r = 0; r < reduction_count; ++r)
    each_dtype([&](lockstep_dtype dtype) {
      each_dtype([&](lockstep_dtype result) {
        for (const where& w : places) {
          lockstep_reduce_axes_desc d = lockstep_reduce_axes_packed(
              static_cast<lockstep_reduction>(r), dtype, static_cast<int32_t>(w.shape.size()), w.shape.data(),
              static_cast<int32_t>(w.axes.size()), w.axes.data());
          d.result = result;
          std::copy(w.strides.begin(), w.strides.end(), d.src_strides);
          visit({LOCKSTEP_REDUCE_AXES,
                 std::string(reductions[r]) + "/" + name_of(dtype) + "/" + name_of(result) + "/" + w.name, &d});
        }
      });
    });
}

void each_normalization(const combination_memory& at, const visitor& visit) {
  const char* const kinds[] = {"l2",        "rms",    "layer",        "softmax",       "log_softmax",
                               "logsumexp", "picked", "rms_backward", "layer_backward"};
  for (int k = 0; k < LOCKSTEP_NORMALIZATION_COUNT; ++k)
    each_dtype([&](lockstep_dtype dtype) {
      each_dtype([&](lockstep_dtype result) {
        each_dtype([&](lockstep_dtype weights) {
          for (const int64_t length : {int64_t{1}, int64_t{32}, int64_t{100}, int64_t{2051}, int64_t{0}})
            for (int beside = 0; beside < 6; ++beside)
              for (const bool in_place : {false, true}) {
                if ((beside == 0 || beside >= 4) && weights != dtype)
                  continue;  // without weight and bias their type means nothing
                const int64_t count = length > 2000 ? 2 : 7;
                lockstep_normalize_desc d =
                    lockstep_normalize_rows(static_cast<lockstep_normalization>(k), dtype, count, length, 1e-6);
                d.result = result, d.weight_dtype = weights;
                if (beside == 1 || beside == 3) d.weight = at.other;
                if (beside == 2 || beside == 3) d.bias = at.bias;
                if (beside >= 4) d.residual = at.residual, d.residual_stride = d.src_stride;
                if (k > LOCKSTEP_NORMALIZE_PICKED) {
                  d.gradient = at.residual;
                  if (beside == 5 || beside == 1) d.weight_gradient = at.sum;
                  if (beside == 4) d.bias_gradient = at.sum;
                } else if (beside == 5) {
                  d.sum = at.sum, d.sum_stride = d.src_stride + 3;
                }
                const char* const names[] = {"", "/weight", "/bias", "/weight/bias", "/residual", "/residual/sum"};
                visit({LOCKSTEP_NORMALIZE,
                       std::string(kinds[k]) + "/" + name_of(dtype) + "/" + name_of(result) + "/" + name_of(weights) +
                           "/" + std::to_string(count) + "x" + std::to_string(length) + names[beside] +
                           (in_place ? "/inplace" : ""),
                       &d, in_place});
              }
        });
      });
    });
}

void each_conversion(const visitor& visit) {
  const int64_t shape[3] = {5, 34, 40}, odd[3] = {7, 3, 11};
  const int32_t perms[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}};
  each_dtype([&](lockstep_dtype dtype) {
    each_dtype([&](lockstep_dtype result) {
      for (const double scale : {1.0, 0.3})
        for (const auto& perm : perms)
          for (const bool apart : {false, true}) {
            lockstep_convert_desc d = lockstep_convert_packed(dtype, result, scale, 3, apart ? odd : shape, perm);
            if (apart) {
              int64_t at = 2;
              for (int k = 2; k >= 0; --k) d.dst_strides[k] = at, at *= d.shape[k] + 1;
            }
            visit({LOCKSTEP_CONVERT,
                   name_of(dtype) + "/" + name_of(result) + "/" + std::to_string(scale) + "/perm" +
                       std::to_string(perm[0]) + std::to_string(perm[1]) + std::to_string(perm[2]) +
                       (apart ? "/apart" : ""),
                   &d});
          }
    });
  });
}

void each_map(const combination_memory& at, const visitor& visit) {
  const int64_t shape[2] = {33, 40};
  const int32_t perms[][2] = {{0, 1}, {1, 0}};
  for (int function = 0; function < 20; ++function)
    each_dtype([&](lockstep_dtype dtype) {
      each_dtype([&](lockstep_dtype result) {
        for (int k = 0; k < 4; ++k) {
          const auto& perm = perms[k % 2];
          const bool times = k >= 2;
          if (times && function != LOCKSTEP_MAP_SILU && function != LOCKSTEP_MAP_GELU) continue;
          lockstep_map_desc d =
              lockstep_map_packed(static_cast<lockstep_function>(function), dtype, result, 2, shape, perm);
          if (times) d.times = at.other;
          visit({LOCKSTEP_MAP,
                 "f" + std::to_string(function) + "/" + name_of(dtype) + "/" + name_of(result) + "/perm" +
                     std::to_string(perm[0]) + std::to_string(perm[1]) + (times ? "/times" : ""),
                 &d});
        }
      });
    });
}

void each_transpose(const visitor& visit) {
  for (const size_t bytes : {1, 2, 4, 8, 16})
    for (const auto& [rows, cols] : {std::pair{33, 40}, {64, 64}, {1, 50}, {50, 1}, {3, 700}, {700, 3}, {0, 4}})
      for (const int64_t gap : {0, 5})
        for (const int64_t batch : {1, 3})
          for (const bool in_place : {false, true}) {
            if (rows * cols * batch > 2200 && batch > 1) continue;
            lockstep_transpose_desc d = lockstep_transpose_packed(bytes, rows, cols);
            d.src_ld += gap, d.dst_ld += gap, d.batch = batch;
            d.src_batch_stride = rows * d.src_ld, d.dst_batch_stride = cols * d.dst_ld;
            const int64_t most = batch * std::max(d.src_batch_stride, d.dst_batch_stride);
            if (most * static_cast<int64_t>(bytes) > static_cast<int64_t>(combination_bytes)) continue;
            visit({LOCKSTEP_TRANSPOSE,
                   "b" + std::to_string(bytes) + "/" + std::to_string(rows) + "x" + std::to_string(cols) +
                       (gap != 0 ? "/apart" : "") + (batch != 1 ? "/batch" : "") + (in_place ? "/inplace" : ""),
                   &d, in_place});
          }
}

void each_permute(const visitor& visit) {
  const std::vector<std::vector<int64_t>> shapes = {
      {60}, {30, 17}, {5, 12, 14}, {3, 4, 5, 6}, {2, 3, 1, 3, 2, 2, 3, 2}};
  for (const size_t bytes : {1, 2, 4, 8, 16})
    for (const auto& shape : shapes) {
      const auto rank = static_cast<int32_t>(shape.size());
      std::vector<int32_t> perm(shape.size());
      std::iota(perm.begin(), perm.end(), 0);
      for (int turn = 0; turn < 4; ++turn) {
        if (turn == 1) std::reverse(perm.begin(), perm.end());
        if (turn == 2) std::rotate(perm.begin(), perm.begin() + 1, perm.end());
        if (turn == 3) std::swap(perm.front(), perm.back());
        for (const bool apart : {false, true}) {
          lockstep_permute_desc d = lockstep_permute_packed(bytes, rank, shape.data(), perm.data());
          if (apart)
            for (int k = 0; k < rank; ++k) d.src_strides[k] *= 2, d.dst_strides[k] *= 2;
          std::string name = "b" + std::to_string(bytes) + "/perm";
          for (const int32_t p : perm) name += std::to_string(p);
          visit({LOCKSTEP_PERMUTE, name + (apart ? "/apart" : ""), &d});
        }
      }
    }
}

void each_stencil(const visitor& visit) {
  static const std::vector<double> coefficients(256, 0.25);
  const int64_t shapes[3][3] = {{901}, {30, 41}, {11, 14, 15}};
  for (const int boundary : {0, 1, 2, 3, 4, 5})
    for (const int form : {0, 1, 2})
      for (int32_t rank = 1; rank <= 3; ++rank)
        for (int32_t radius = 1; radius <= 17; ++radius)
          for (const int32_t sweeps : {1, 3})
            for (const int64_t batch : {1, 2})
              each_dtype([&](lockstep_dtype dtype) {
                lockstep_stencil_desc d =
                    lockstep_stencil_packed(dtype, rank, shapes[rank - 1], radius, coefficients.data(),
                                            static_cast<lockstep_boundary>(boundary));
                d.form = static_cast<lockstep_form>(form);
                static std::vector<double> odd(256, 0.25);
                odd[0] = 0;
                if (d.form == LOCKSTEP_ANTISYMMETRIC) d.coefficients = odd.data();
                const int taps = d.form == LOCKSTEP_GENERAL ? 2 * radius : radius;
                d.coefficient_count = 1 + taps * rank;
                d.sweeps = sweeps;
                if (batch > 1) {
                  d.batch = batch;
                  d.src_batch_stride = d.dst_batch_stride =
                      std::accumulate(d.shape, d.shape + rank, int64_t{1}, std::multiplies<>());
                }
                visit({LOCKSTEP_STENCIL,
                       name_of(dtype) + "/form" + std::to_string(form) + "/boundary" + std::to_string(boundary) +
                           "/rank" + std::to_string(rank) + "/r" + std::to_string(radius) + "/sweeps" +
                           std::to_string(sweeps) + (batch != 1 ? "/batch" : ""),
                       &d});
              });
}

void each_shuffle(const visitor& visit) {
  for (const int kind : {0, 1, 2, 3})
    for (const size_t bytes : {1, 2, 4, 8, 16})
      for (const int32_t width : {1, 2, 4, 8, 16, 32})
        for (const int32_t operand : {-3, 0, 1, 5, 31, 40})
          for (const int64_t count : {0, 32, 992})
            for (const bool in_place : {false, true}) {
              const lockstep_shuffle_desc d =
                  lockstep_shuffle_warps(static_cast<lockstep_shuffle_kind>(kind), bytes, count, width, operand);
              visit({LOCKSTEP_SHUFFLE,
                     "kind" + std::to_string(kind) + "/b" + std::to_string(bytes) + "/w" + std::to_string(width) +
                         "/op" + std::to_string(operand) + "/n" + std::to_string(count) + (in_place ? "/inplace" : ""),
                     &d, in_place});
            }
}

}  // namespace

const std::vector<int64_t>& combination_offsets() {
  static const std::vector<int64_t> all = {0, 5, 6, 100, 140, 600, 607};
  return all;
}

void each_combination(lockstep_op op, const combination_memory& at, const visitor& visit) {
  switch (op) {
    case LOCKSTEP_TRANSPOSE: return each_transpose(visit);
    case LOCKSTEP_PERMUTE: return each_permute(visit);
    case LOCKSTEP_SQUARE_SUM:
    case LOCKSTEP_REDUCE: return each_reduction(op, at, visit);
    case LOCKSTEP_STENCIL: return each_stencil(visit);
    case LOCKSTEP_SHUFFLE: return each_shuffle(visit);
    case LOCKSTEP_NORMALIZE: return each_normalization(at, visit);
    case LOCKSTEP_SCAN: return each_scan(at, visit);
    case LOCKSTEP_SUMS: return each_sum(at, visit);
    case LOCKSTEP_REDUCE_AXES: return each_reduction_of_axes(visit);
    case LOCKSTEP_CONVERT: return each_conversion(visit);
    case LOCKSTEP_MAP: return each_map(at, visit);
    case LOCKSTEP_OP_COUNT: break;
  }
}

}  // namespace lockstep::cases
