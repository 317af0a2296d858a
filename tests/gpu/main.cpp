// main.cpp - exits 77 (skipped) where there is no device.
#include "gpu.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int code = RUN_ALL_TESTS();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const bool all_skipped = all.skipped_test_count() > 0 && all.skipped_test_count() == all.test_to_run_count();
  return code == 0 && all_skipped ? 77 : code;
}
