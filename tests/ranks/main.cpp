// main.cpp - GoogleTest for ranks that are threads; exits 77 (skipped) where a device that is asked for is missing.
#include <cstdio>

#include "world.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::string why;
  if (!lockstep::ranks_test::devices_usable(why)) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  const int failed = RUN_ALL_TESTS();
  lockstep::ranks_test::close_kept();
  return failed;
}
