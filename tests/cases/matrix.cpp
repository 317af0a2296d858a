// matrix.cpp - the calls that must work on every backend that offers an op: op x dtype x
// layout x boundary. A backend that supports less fails the tests.
#include "runner.hpp"

namespace lockstep::cases {
namespace {

using words = std::vector<std::string>;

// All choices of one word a list.
void cross(const std::string& head, const std::vector<words>& lists, size_t at, words& out) {
  if (at == lists.size()) {
    out.push_back(head);
    return;
  }
  for (const std::string& word : lists[at]) cross(head + " " + word, lists, at + 1, out);
}

struct block {
  lockstep_op op;
  std::vector<words> lists;
  bool later = false;  // the CUDA module does not have it yet
};

const words bytes = {"b1", "b2", "b4", "b8", "b16"};
const words sequences = {"full", "strided", "rows", "columns", "segments"};
const words boundaries = {"nearest", "mirror", "reflect", "wrap", "constant", "valid"};
const words forms = {"general", "symmetric", "antisymmetric"};
const words to_f32 = {"full to_f32", "rows to_f32", "columns to_f32", "segments to_f32"};
const words to_half = {"full to_f16",  "rows to_f16",  "columns to_f16",  "segments to_f16",
                       "full to_bf16", "rows to_bf16", "columns to_bf16", "segments to_bf16"};
const words floats = {"f16", "bf16", "f32", "f64"}, later = {"i8", "i16", "u8", "u16", "u32", "u64", "bool"};
const words integers = {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"};

const words narrow = {"f16", "bf16", "f32"};
const words functions = {"exp",  "expm1",   "log",  "log1p", "sqrt",      "rsqrt", "reciprocal",
                         "tanh", "sigmoid", "silu", "gelu",  "gelu_tanh", "erf",   "softplus"};

const std::vector<block>& blocks() {
  static const std::vector<block> all = {
      {LOCKSTEP_TRANSPOSE, {bytes, {"packed", "ld", "batch", "in_place_square", "in_place_packed"}}},
      {LOCKSTEP_PERMUTE, {bytes, {"rank1", "rank2", "rank3", "rank4", "rank5", "rank6", "rank7", "rank8"}, {"packed"}}},
      {LOCKSTEP_PERMUTE, {bytes, {"rank1", "rank2", "rank3", "rank4", "rank5", "rank6", "rank7", "rank8"}, {"padded"}}},
      {LOCKSTEP_SQUARE_SUM, {{"ssq", "norm2"}, {"f16", "bf16", "f32", "f64", "i32", "i64"}, sequences}},
      {LOCKSTEP_SQUARE_SUM, {{"ssq", "norm2"}, {"f16", "bf16", "f32", "f64"}, to_f32}},
      {LOCKSTEP_SQUARE_SUM, {{"norm2"}, {"i32", "i64"}, to_f32}},
      {LOCKSTEP_REDUCE, {{"sum", "min", "max", "argmin", "argmax"}, {"i32", "i64", "f32", "f64"}, sequences}},
      {LOCKSTEP_REDUCE, {{"sum"}, {"f32", "f64"}, to_f32}},
      {LOCKSTEP_SQUARE_SUM, {{"ssq", "norm2"}, later, sequences}, true},
      {LOCKSTEP_SQUARE_SUM, {{"ssq", "norm2"}, floats, to_half}, true},
      {LOCKSTEP_SQUARE_SUM, {{"norm2"}, {"i32", "i64"}, to_half}, true},
      {LOCKSTEP_SQUARE_SUM, {{"norm2"}, later, to_f32}, true},
      {LOCKSTEP_SQUARE_SUM, {{"norm2"}, later, to_half}, true},
      {LOCKSTEP_REDUCE, {{"sum", "min", "max", "argmin", "argmax"}, {"f16", "bf16"}, sequences}, true},
      {LOCKSTEP_REDUCE, {{"sum", "min", "max", "argmin", "argmax"}, later, sequences}, true},
      {LOCKSTEP_REDUCE, {{"sum"}, {"f16", "bf16"}, to_f32}, true},
      {LOCKSTEP_REDUCE, {{"sum"}, floats, to_half}, true},
      {LOCKSTEP_REDUCE, {{"count", "any", "all", "prod"}, floats, sequences}, true},
      {LOCKSTEP_REDUCE, {{"count", "any", "all", "prod"}, {"i32", "i64"}, sequences}, true},
      {LOCKSTEP_REDUCE, {{"count", "any", "all", "prod"}, later, sequences}, true},
      {LOCKSTEP_REDUCE, {{"nan_sum", "nan_min", "nan_max"}, floats, sequences}, true},
      {LOCKSTEP_REDUCE, {{"nan_sum", "nan_min", "nan_max"}, {"i32", "i64"}, sequences}, true},
      {LOCKSTEP_REDUCE, {{"nan_sum", "nan_min", "nan_max"}, later, sequences}, true},
      {LOCKSTEP_REDUCE, {{"prod", "nan_sum"}, floats, to_f32}, true},
      {LOCKSTEP_REDUCE, {{"prod", "nan_sum"}, floats, to_half}, true},
      {LOCKSTEP_STENCIL, {{"f32", "f64"}, {"rank1", "rank2", "rank3"}, boundaries, forms}},
      {LOCKSTEP_SHUFFLE, {{"b4", "b8"}, {"idx", "up", "down", "xor"}, {"w1", "w2", "w4", "w8", "w16", "w32"}}},
      {LOCKSTEP_SCAN,
       {{"sum", "min", "max"},
        {"f16", "bf16", "f32", "f64", "i32", "i64"},
        {"full", "rows", "columns", "segments"},
        {"inclusive", "exclusive"}}},
      {LOCKSTEP_SCAN, {{"sum"}, {"f16", "bf16", "f32", "f64"}, {"full", "rows", "columns", "segments"}, {"to_f32"}}},
      {LOCKSTEP_SCAN, {{"sum"}, {"f16", "bf16", "f32", "f64"}, {"full"}, {"to_f64"}}},
      {LOCKSTEP_SCAN,
       {{"sum", "min", "max"}, {"f16", "bf16", "f32", "f64", "i32", "i64"}, {"full", "rows", "columns"}, {"behind"}}},
      {LOCKSTEP_SCAN,
       {{"sum"}, {"f16", "bf16", "f32", "f64", "i64"}, {"full", "rows", "columns", "segments"}, {"in_place"}}},
      {LOCKSTEP_SCAN,
       {{"min", "max"},
        {"f16", "bf16", "f32", "f64", "i32", "i64"},
        {"full", "rows", "columns", "segments"},
        {"in_place"}}},
      {LOCKSTEP_REDUCE_AXES, {{"sum", "min", "max", "argmin", "argmax", "ssq", "norm2"}, floats, {"one", "many"}}},
      {LOCKSTEP_REDUCE_AXES, {{"sum", "min", "max", "argmin", "argmax", "ssq", "norm2"}, later, {"one", "many"}}},
      {LOCKSTEP_REDUCE_AXES,
       {{"sum", "min", "max", "argmin", "argmax", "ssq", "norm2"}, {"i32", "i64"}, {"one", "many"}}},
      {LOCKSTEP_REDUCE_AXES, {{"count", "any", "all", "prod"}, floats, {"one", "many"}}},
      {LOCKSTEP_REDUCE_AXES, {{"count", "any", "all", "prod"}, {"i32", "i64"}, {"one", "many"}}},
      {LOCKSTEP_REDUCE_AXES, {{"count", "any", "all", "prod"}, later, {"one", "many"}}},
      {LOCKSTEP_REDUCE_AXES, {{"nan_sum", "nan_min", "nan_max"}, floats, {"one", "many"}}},
      {LOCKSTEP_REDUCE_AXES, {{"nan_sum", "nan_min", "nan_max"}, {"i32", "i64"}, {"one", "many"}}},
      {LOCKSTEP_REDUCE_AXES, {{"nan_sum", "nan_min", "nan_max"}, later, {"one", "many"}}},
      {LOCKSTEP_REDUCE_AXES, {{"sum", "ssq", "norm2"}, floats, {"one", "many"}, {"to_f32", "to_f16", "to_bf16"}}},
      {LOCKSTEP_REDUCE_AXES, {{"norm2"}, {"i32", "i64"}, {"one", "many"}, {"to_f32", "to_f16", "to_bf16"}}},
      {LOCKSTEP_REDUCE_AXES, {{"norm2"}, later, {"one", "many"}, {"to_f32", "to_f16", "to_bf16"}}},
      {LOCKSTEP_SUMS, {{"dot", "sqdiff", "absdiff", "abs"}, later, {"full", "rows", "columns", "segments"}}},
      {LOCKSTEP_SUMS, {{"dot", "sqdiff", "absdiff", "abs"}, {"i32", "i64"}, {"full", "rows", "columns", "segments"}}},
      {LOCKSTEP_SUMS,
       {{"dot", "sqdiff", "absdiff", "abs", "meanvar"}, floats, {"full", "rows", "columns", "segments"}}},
      {LOCKSTEP_SUMS,
       {{"dot", "sqdiff", "absdiff", "abs", "meanvar"},
        floats,
        {"full", "rows", "columns", "segments"},
        {"to_f32", "to_f16", "to_bf16"}}},
      {LOCKSTEP_SUMS, {{"digest"}, floats, {"full", "rows", "columns", "segments"}}},
      {LOCKSTEP_SUMS, {{"digest"}, {"i32", "i64"}, {"full", "rows", "columns", "segments"}}},
      {LOCKSTEP_SUMS, {{"digest"}, later, {"full", "rows", "columns", "segments"}}},
      {LOCKSTEP_MAP, {functions, narrow, narrow, {"plain"}}},
      {LOCKSTEP_MAP, {functions, {"f32"}, {"f32"}, {"scaled", "in_place", "times"}}},
      {LOCKSTEP_MAP, {functions, {"f32"}, {"f16", "bf16"}, {"times"}}},
      {LOCKSTEP_MAP, {functions, {"bf16"}, {"bf16"}, {"times"}}},
      {LOCKSTEP_MAP, {functions, {"f16"}, {"f32"}, {"times"}}},
      {LOCKSTEP_CONVERT, {floats, floats, {"plain", "scaled"}}},
      {LOCKSTEP_CONVERT, {floats, integers, {"plain", "scaled"}}},
      {LOCKSTEP_CONVERT, {integers, floats, {"plain", "scaled"}}},
      {LOCKSTEP_CONVERT, {integers, integers, {"plain", "scaled"}}},
      {LOCKSTEP_NORMALIZE, {{"l2", "rms", "layer"}, {"f16", "bf16", "f32", "f64"}, {"plain", "in_place"}}},
      {LOCKSTEP_NORMALIZE,
       {{"l2", "rms", "layer"},
        {"f16", "bf16", "f32", "f64"},
        {"weight", "bias", "weight_bias", "residual", "weight_residual", "weight_bias_residual"}}},
      {LOCKSTEP_NORMALIZE, {{"l2", "rms", "layer"}, {"f16", "bf16", "f32", "f64"}, {"to_f16", "to_bf16", "to_f32"}}},
      {LOCKSTEP_NORMALIZE,
       {{"rms_backward", "layer_backward"},
        floats,
        {"plain", "in_place", "weight", "residual", "weight_residual", "of_weight", "of_bias", "of_both"}}},
      {LOCKSTEP_NORMALIZE,
       {{"softmax", "log_softmax"}, floats, {"plain", "in_place", "residual", "scaled", "segments"}}},
      {LOCKSTEP_NORMALIZE, {{"softmax", "log_softmax"}, floats, {"to_f16", "to_bf16", "to_f32"}}},
      {LOCKSTEP_NORMALIZE,
       {{"l2", "rms", "layer", "softmax", "log_softmax", "logsumexp", "picked"},
        floats,
        {"given", "along", "along_given", "along_residual"}}},
      {LOCKSTEP_NORMALIZE,
       {{"logsumexp", "picked"},
        floats,
        {"plain", "residual", "scaled", "segments", "to_f16", "to_bf16", "to_f32", "to_f64"}}},
  };
  return all;
}

}  // namespace

std::vector<std::string> matrix(lockstep_op op, const std::string& backend) {
  words cells;
  for (const block& b : blocks())
    if (b.op == op && !(b.later && backend == "cuda")) cross(lockstep_op_name(op), b.lists, 0, cells);
  return cells;
}

}  // namespace lockstep::cases
