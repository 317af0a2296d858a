// names.cpp - the cases themselves: names parse back, cells and lists agree.
#include <set>
#include <stdexcept>

#include "check.hpp"

namespace lockstep::check {
namespace {
using namespace cases;

class Names : public testing::TestWithParam<lockstep_op> {};

TEST_P(Names, EveryCellOfTheMatrixHasACaseAndEveryCaseACell) {
  std::set<std::string> listed;
  for (const std::string& name : list(GetParam(), level::quick, seed)) {
    const test_case c = parse(name);
    ASSERT_EQ(c.op, GetParam());
    if (c.dst.elements() != 0) listed.insert(c.cell);
  }
  const std::vector<std::string> cells = matrix(GetParam());
  const std::set<std::string> known(cells.begin(), cells.end());
  for (const std::string& cell : known) EXPECT_EQ(listed.count(cell), 1u) << "no quick case stands for " << cell;
  for (const std::string& cell : listed) EXPECT_EQ(known.count(cell), 1u) << "the matrix lacks " << cell;
}

TEST(Names, RefusesWhatItDoesNotKnow) {
  for (const char* name :
       {"", "transpose", "transpose/b4/17", "transpose/b4/17x33/backwards", "reduce/sum/f32/full/ten",
        "shuffle/b4/sideways/w2", "stencil/f32/general/nowhere/r1/5", "permute/b4/3x4/perm0", "frobnicate/3"})
    EXPECT_THROW(parse(name), std::invalid_argument) << name;
}

INSTANTIATE_TEST_SUITE_P(Ops, Names, every_op(), op_name);

}  // namespace
}  // namespace lockstep::check
