// names.cpp - the cases themselves: names parse back, cells and lists agree.
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "check.hpp"
#include "legend.hpp"

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

// What parse says; "" where it takes the name.
std::string refusal(const std::string& name) {
  try {
    (void)parse(name);
    return "";
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

TEST(Names, LegendIsTrue) {
  for (const legend_line& line : legend()) {
    const std::string written = line.written;
    if (written[0] != '/') {
      EXPECT_EQ(refusal(written), "");
      continue;
    }
    bool fits_one = false;
    for (const legend_line& other : legend())
      fits_one = fits_one || (other.written[0] != '/' && refusal(other.written + written).empty());
    EXPECT_TRUE(fits_one) << written;
  }
}

TEST(Names, RefusesWhatItDoesNotKnow) {
  for (const char* name :
       {"", "transpose", "transpose/b4/17", "transpose/b4/17x33/backwards", "reduce/sum/f32/full/ten",
        "shuffle/b4/sideways/w2", "stencil/f32/general/nowhere/r1/5", "permute/b4/3x4/perm0", "frobnicate/3",
        "transpose/b4/8x8x", "transpose/b4/8x8/batch", "transpose/b4/+8x8", "reduce/sum/f32/full/0x10"})
    EXPECT_NE(refusal(name), "") << name;
}

// Numbers that no int64_t, no operation or no memory holds; the word at fault is named.
TEST(Names, RefusesNumbersOutOfRange) {
  const std::pair<const char*, const char*> wrong[] = {
      {"reduce/sum/f32/full/-4", "-4 is not within 0 to"},
      {"reduce/sum/f32/full/99999999999999999999", "99999999999999999999 is not within"},
      {"transpose/b4/99999999999999999999x9", "99999999999999999999 is not within"},
      {"transpose/b4/8x8/batch99999999999999999999", "99999999999999999999 is not within"},
      {"transpose/b4/8x8/batch-2", "-2 is not within"},
      {"transpose/b4/8x8/seed-1", "-1 is not within"},
      {"transpose/b4/8x8/off-1", "-1 is not within"},
      {"transpose/b4/8x8/off99999999999999", "is not within 0 to 1048576"},
      {"transpose/b0/3x3", "\"b0\""},
      {"permute/b3/3x3/perm1,0", "1, 2, 4, 8 or 16"},
      {"permute/b4/3x4/perm0,7", "perm must name each"},
      {"permute/b4/3x4/perm0,0", "perm must name each"},
      {"reduce/sum/f32/nonempty/5x0", "1 or more"},
      {"reduce/sum/f32/full/5/stride0", "0 is not within 1 to"},
      {"stencil/f32/general/nearest/r99999999999/5", "r99999999999"},
      {"stencil/f32/general/nearest/r4/5/sweeps99999999999", "sweeps99999999999"},
      {"stencil/f32/general/valid/r4/3", "-5"},
      {"shuffle/b4/idx/w99999999999/op1/n32", "w99999999999"},
      {"shuffle/b4/idx/w32/op99999999999/n32", "op99999999999"},
  };
  for (const auto& [name, text] : wrong) EXPECT_NE(refusal(name).find(text), std::string::npos) << refusal(name);
  // Each number fits, their products and sums do not.
  for (const char* name :
       {"reduce/sum/f32/full/9223372036854775807", "transpose/b4/4294967296x4294967296",
        "transpose/b1/3037000500x3037000500", "transpose/b4/8x8/batch9223372036854775807",
        "transpose/b4/8x8/ld9223372036854775807,9/batch2", "permute/b16/2097152x2097152x2097152/perm0,2,1",
        "permute/b4/2x2/perm0,1/pad9223372036854775807,1", "reduce/sum/f32/strided/9/stride9223372036854775807",
        "reduce/sum/f32/rows/9x9/stride9223372036854775807", "reduce/sum/f32/even/9223372036854775807x0",
        "reduce/sum/f32/mixed/4x4611686018427387904", "reduce/sum/f32/even/3x4/first9223372036854775807",
        "stencil/f32/general/nearest/r4/4294967296x4294967296",
        "stencil/f32/general/wrap/r4/9/batch9223372036854775807", "shuffle/b8/idx/w32/op1/n9223372036854775807"})
    EXPECT_NE(refusal(name).find("more than a process can address"), std::string::npos) << refusal(name);
  for (const char* name : {"shuffle/b4/idx/w32/op-2147483648/n32", "transpose/b16/2097152x2097152", "transpose/b4/0x5",
                           "stencil/f32/general/valid/r2/5x0", "transpose/b4/8x8/seed9223372036854775807"})
    EXPECT_EQ(refusal(name), "");
}

INSTANTIATE_TEST_SUITE_P(Ops, Names, every_op(), op_name);

}  // namespace
}  // namespace lockstep::check
