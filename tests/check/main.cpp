// main.cpp - the check program: GoogleTest over the cases of tests/cases. Exits 77
// when nothing ran because every test was skipped (a GPU suite without a device).
#include <cstdio>
#include <cstring>

#include "check.hpp"

namespace lockstep::check {
cases::level depth = cases::level::quick;
uint64_t seed = 1;
std::string required;
uint64_t part = 0, parts = 1;
std::string only;
}  // namespace lockstep::check

int main(int argc, char** argv) {
  using namespace lockstep;
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--level") == 0)
      check::depth = std::strcmp(argv[i + 1], "full") == 0 ? cases::level::full : cases::level::quick;
    if (std::strcmp(argv[i], "--seed") == 0) check::seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--require") == 0) check::required = argv[i + 1];
    if (std::strcmp(argv[i], "--case") == 0) check::only = argv[i + 1];
    if (std::strcmp(argv[i], "--part") == 0) {
      char* end = nullptr;
      check::part = std::strtoull(argv[i + 1], &end, 10);
      check::parts = *end == '/' ? std::strtoull(end + 1, nullptr, 10) : 0;
      if (check::parts == 0) return std::fprintf(stderr, "--part %s: give DAY/PARTS, such as 3/8\n", argv[i + 1]), 2;
      check::part %= check::parts;
    }
  }
  if (check::parts > 1)
    std::printf("part %llu of %llu of the cases\n", static_cast<unsigned long long>(check::part),
                static_cast<unsigned long long>(check::parts));
  std::printf("level %s, seed %llu\n", check::depth == cases::level::full ? "full" : "quick",
              static_cast<unsigned long long>(check::seed));
  cases::report_crashes();
  const int code = RUN_ALL_TESTS();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const bool all_skipped = all.skipped_test_count() > 0 && all.skipped_test_count() == all.test_to_run_count();
  return code == 0 && all_skipped ? 77 : code;
}
