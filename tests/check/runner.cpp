// runner.cpp - tests the test runner: every kind of wrong result must make its comparison fail.
#include "check.hpp"

namespace lockstep::check {
namespace {
using namespace cases;

target on_ref() {
  target t;
  t.variant = "ref";
  return t;
}

TEST(Runner, SeesAWrongBitAWrongGapAndAWrongStatus) {
  runner run;
  const subject good(parse("transpose/b4/17x33/ld40,20/off1,2"));
  ASSERT_EQ(run.run(good, on_ref()).what, verdict::equal);
  for (const size_t at : {size_t{0}, good.after.size() - 1, size_t{17 * 4}}) {  // first, last, the gap behind a row
    subject wrong = good;
    wrong.after[at] ^= 1;
    EXPECT_NE(run.run(wrong, on_ref()).text.find("differ"), std::string::npos) << at;
  }
  subject status = good;
  status.want.status = LOCKSTEP_OVERFLOW;
  EXPECT_NE(run.run(status, on_ref()).text.find("status"), std::string::npos);
}

TEST(Runner, SeesWritesAroundDst) {
  runner run;
  // The call is told of a larger matrix than the buffers were made for.
  subject s(parse("transpose/b4/8x8/ld8,16"));
  s.c.transpose.cols = s.c.transpose.src_ld = 9;
  s.c.transpose.rows = 7;
  target t = on_ref();
  t.where = place::host_front;
  EXPECT_NE(run.run(s, t).text.find("behind its end"), std::string::npos);
  t.where = place::host_back;
  EXPECT_DEATH((void)run.run(s, t), "killed while running case transpose/b4/8x8/ld8,16");
}

TEST(Runner, SeesAMissingSequenceInTheError) {
  runner run;
  subject s(parse("reduce/max/f32/mixed/50x4"));
  ASSERT_EQ(s.want.status, LOCKSTEP_EMPTY);
  s.want.first = 1000003;
  const outcome o = run.run(s, on_ref());
  EXPECT_NE(o.text.find("does not name"), std::string::npos) << o.text;
}

}  // namespace
}  // namespace lockstep::check
