// check.hpp - what the files of the check program share.
#pragma once

#include <gtest/gtest.h>

#include "runner.hpp"

namespace lockstep::check {

extern cases::level depth;    // --level quick|full
extern uint64_t seed;         // --seed N; printed, and part of every case's name
extern std::string required;  // --require NAME: only this backend, and it must be there
extern uint64_t part, parts;  // --part DAY/PARTS: of an op's cases only every PARTS-th, another one each day
extern std::string only;      // --case NAME: of an op's cases only this one

inline const char* op_name(const testing::TestParamInfo<lockstep_op>& info) { return lockstep_op_name(info.param); }
inline auto every_op() {
  return testing::Values(LOCKSTEP_TRANSPOSE, LOCKSTEP_PERMUTE, LOCKSTEP_SQUARE_SUM, LOCKSTEP_REDUCE, LOCKSTEP_STENCIL,
                         LOCKSTEP_SHUFFLE, LOCKSTEP_NORMALIZE, LOCKSTEP_SCAN, LOCKSTEP_SUMS, LOCKSTEP_REDUCE_AXES,
                         LOCKSTEP_CONVERT, LOCKSTEP_MAP);
}

// Reports a failed case with the command that reruns it; true while the test may
// go on (a broken row is not worth a thousand lines).
inline bool report(const cases::subject& s, const cases::target& t, const cases::outcome& o, int& failures) {
  if (o.what != cases::verdict::differs) return true;
  ADD_FAILURE() << s.c.name << " on " << t.backend << ":" << (t.variant.empty() ? "auto" : t.variant) << ": " << o.text
                << "\n  rerun: lockstep verify --case " << s.c.name << t.text();
  return ++failures < 10;
}

}  // namespace lockstep::check
