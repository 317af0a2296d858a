// matrix.cpp - what must work on every backend that offers an op: op x dtype x
// layout x boundary. A backend whose tables do less fails the tests.
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
};

const words bytes = {"b1", "b2", "b4", "b8", "b16"};
const words sequences = {"full", "strided", "rows", "columns", "segments"};
const words boundaries = {"nearest", "mirror", "reflect", "wrap", "constant", "valid"};
const words forms = {"general", "symmetric", "antisymmetric"};
const words to_f32 = {"full to_f32", "rows to_f32", "columns to_f32", "segments to_f32"};

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
      {LOCKSTEP_STENCIL, {{"f32", "f64"}, {"rank1", "rank2", "rank3"}, boundaries, forms}},
      {LOCKSTEP_SHUFFLE, {{"b4", "b8"}, {"idx", "up", "down", "xor"}, {"w1", "w2", "w4", "w8", "w16", "w32"}}},
  };
  return all;
}

}  // namespace

std::vector<std::string> matrix(lockstep_op op) {
  words cells;
  for (const block& b : blocks())
    if (b.op == op) cross(lockstep_op_name(op), b.lists, 0, cells);
  return cells;
}

}  // namespace lockstep::cases
