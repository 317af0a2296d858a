// reductions.hpp - the one table of the reductions of one array: what an element becomes, how elements are joined, and
// what is made of the whole. The library, the backends, Python and the program read it; no other place compares a
// reduction with a number. A new reduction is a row here. If it has a new term, the compiler names the switches that
// lack it.
#pragma once

#include "lockstep/lockstep.h"

namespace lockstep::lib {

enum class term {
  plain,   // the element
  square,  // its square
  truth,   // 1 if it is not 0, NaN included; else 0
  number   // the element; a NaN does not count
};
enum class join { sum, product, smallest, largest };
enum class finish {
  value,
  root,   // the square root
  index,  // where the element is
  any,    // whether the sum is not 0
  all     // whether the sum is the number of elements
};

struct reduction_kind {
  const char* name;    // LOCKSTEP_<name>
  const char* option;  // its name for the program
  lockstep_op op;      // the operation that takes it; LOCKSTEP_REDUCE_AXES takes all
  term of;
  join by;
  finish to;

  constexpr bool extreme() const { return by == join::smallest || by == join::largest; }
  // Whether elements of this type are added or multiplied in double, so that their order shows in the bits.
  constexpr bool ordered(lockstep_dtype dtype) const {
    return !extreme() && of != term::truth && dtype >= LOCKSTEP_F16 && dtype <= LOCKSTEP_F64;
  }
};

// Indexed by lockstep_reduction.
inline constexpr reduction_kind reductions[] = {
    {"SUM", "sum", LOCKSTEP_REDUCE, term::plain, join::sum, finish::value},
    {"MIN", "min", LOCKSTEP_REDUCE, term::plain, join::smallest, finish::value},
    {"MAX", "max", LOCKSTEP_REDUCE, term::plain, join::largest, finish::value},
    {"ARGMIN", "argmin", LOCKSTEP_REDUCE, term::plain, join::smallest, finish::index},
    {"ARGMAX", "argmax", LOCKSTEP_REDUCE, term::plain, join::largest, finish::index},
    {"SUM_OF_SQUARES", "sum_of_squares", LOCKSTEP_SQUARE_SUM, term::square, join::sum, finish::value},
    {"NORM2", "norm2", LOCKSTEP_SQUARE_SUM, term::square, join::sum, finish::root},
    {"COUNT_NONZERO", "count_nonzero", LOCKSTEP_REDUCE, term::truth, join::sum, finish::value},
    {"ANY", "any", LOCKSTEP_REDUCE, term::truth, join::sum, finish::any},
    {"ALL", "all", LOCKSTEP_REDUCE, term::truth, join::sum, finish::all},
    {"PROD", "prod", LOCKSTEP_REDUCE, term::plain, join::product, finish::value},
    {"NAN_SUM", "nan_sum", LOCKSTEP_REDUCE, term::number, join::sum, finish::value},
    {"NAN_MIN", "nan_min", LOCKSTEP_REDUCE, term::number, join::smallest, finish::value},
    {"NAN_MAX", "nan_max", LOCKSTEP_REDUCE, term::number, join::largest, finish::value},
};
inline constexpr int reduction_count = sizeof reductions / sizeof *reductions;
static_assert(reduction_count == LOCKSTEP_REDUCTION_COUNT);

constexpr bool is_reduction(lockstep_reduction r) { return r >= 0 && r < reduction_count; }
constexpr const reduction_kind& kind_of(lockstep_reduction r) { return reductions[r]; }

// The reduction whose value this one is made of: the smallest element of ARGMIN, the number of truths of ALL.
constexpr lockstep_reduction value_of(lockstep_reduction r) {
  for (int i = 0; i < reduction_count; ++i)
    if (reductions[i].of == kind_of(r).of && reductions[i].by == kind_of(r).by && reductions[i].to == finish::value)
      return static_cast<lockstep_reduction>(i);
  return r;
}

// The same reduction that does not ask for NaNs, for types that have none.
constexpr lockstep_reduction of_numbers(lockstep_reduction r) {
  for (int i = 0; i < reduction_count && kind_of(r).of == term::number; ++i)
    if (reductions[i].of == term::plain && reductions[i].by == kind_of(r).by && reductions[i].to == kind_of(r).to)
      return static_cast<lockstep_reduction>(i);
  return r;
}

}  // namespace lockstep::lib
