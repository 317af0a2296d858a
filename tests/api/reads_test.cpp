// reads_test.cpp - a module gets only calls that it says it can read. Calls that need later additions to the ABI are
// kept from it, by name and under auto, for host memory and for its own. argv[1]: the folder with the modules.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <lockstep/lockstep.hpp>
#include <string>
#include <vector>

namespace {
namespace fs = std::filesystem;

struct made {
  const char* why;
  lockstep_reduction reduction;
  lockstep_dtype dtype, result;
};
const std::vector<made> later = {{"SUM of U8 to I64", LOCKSTEP_SUM, LOCKSTEP_U8, LOCKSTEP_I64},
                                 {"MAX of BOOL to BOOL", LOCKSTEP_MAX, LOCKSTEP_BOOL, LOCKSTEP_BOOL},
                                 {"SUM of U64 to U64", LOCKSTEP_SUM, LOCKSTEP_U64, LOCKSTEP_U64},
                                 {"SUM of F16 to F64", LOCKSTEP_SUM, LOCKSTEP_F16, LOCKSTEP_F64},
                                 {"ARGMIN of BF16 to I64", LOCKSTEP_ARGMIN, LOCKSTEP_BF16, LOCKSTEP_I64},
                                 {"SUM of F32 to BF16", LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_BF16},
                                 {"NORM2 of I32 to F16", LOCKSTEP_NORM2, LOCKSTEP_I32, LOCKSTEP_F16},
                                 {"SUM_OF_SQUARES of I8 to I64", LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_I8, LOCKSTEP_I64}};
const std::vector<made> first = {{"", LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F64},
                                 {"", LOCKSTEP_MAX, LOCKSTEP_I64, LOCKSTEP_I64},
                                 {"", LOCKSTEP_NORM2, LOCKSTEP_F16, LOCKSTEP_F32},
                                 {"", LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_BF16, LOCKSTEP_F64}};

lockstep_status call(lockstep_context* c, const made& m, const void* src, void* dst, const char* backend) {
  lockstep_reduce_desc d = lockstep_reduce_full(m.reduction, m.dtype, 16, 1);
  d.result = m.result;
  lockstep_options o = lockstep_options_defaults();
  o.backend = backend;
  const bool squares = m.reduction == LOCKSTEP_SUM_OF_SQUARES || m.reduction == LOCKSTEP_NORM2;
  return (squares ? lockstep_square_sum : lockstep_reduce)(c, &d, src, dst, &o);
}

TEST(Reads, OldCallsGoToTheModule) {
  lockstep::context context{"auto"};
  alignas(8) unsigned char in[16 * 8] = {};
  for (const made& m : first) {
    alignas(8) unsigned char dst[8] = {};
    EXPECT_EQ(call(context.get(), m, in, dst, "reads"), LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_EQ(dst[0], 0xEE);
  }
}

TEST(Reads, LaterOnesOnlyWhereItSaysSo) {
  lockstep::context context{"auto"};
  const bool newer = std::getenv("EXPECT_NEWER") != nullptr;
  alignas(8) unsigned char in[16 * 8];
  std::fill(std::begin(in), std::end(in), 0x01);
  for (const made& m : later) {
    alignas(8) unsigned char dst[8] = {}, want[8] = {};
    ASSERT_EQ(call(context.get(), m, in, want, "cpu"), LOCKSTEP_OK) << lockstep_last_error();
    const lockstep_status named = call(context.get(), m, in, dst, "reads");
    if (newer) {
      EXPECT_EQ(named, LOCKSTEP_OK) << lockstep_last_error();
      EXPECT_EQ(dst[0], 0xEE) << m.why;
      continue;
    }
    EXPECT_EQ(named, LOCKSTEP_UNSUPPORTED) << m.why;
    EXPECT_NE(std::string(lockstep_last_error()).find("reads: has no kernels for " + std::string(m.why)),
              std::string::npos)
        << lockstep_last_error();
    EXPECT_EQ(dst[0], 0) << "the module saw " << m.why;
    // Auto: the CPU, from host memory and from the module's own.
    ASSERT_EQ(call(context.get(), m, in, dst, "auto"), LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_EQ(std::memcmp(dst, want, sizeof dst), 0) << m.why;
    EXPECT_STREQ(lockstep::last_run().backend, "cpu");
    EXPECT_NE(std::string(lockstep::last_run().why).find("has no kernels for"), std::string::npos)
        << lockstep::last_run().why;
    void* there = nullptr;
    ASSERT_EQ(lockstep_alloc(context.get(), "reads", LOCKSTEP_DEVICE, sizeof in, &there), LOCKSTEP_OK);
    ASSERT_EQ(lockstep_copy(context.get(), "reads", in, there, sizeof in), LOCKSTEP_OK);
    std::fill(std::begin(dst), std::end(dst), 0);
    ASSERT_EQ(call(context.get(), m, there, dst, "auto"), LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_EQ(std::memcmp(dst, want, sizeof dst), 0) << m.why;
    EXPECT_STREQ(lockstep::last_run().backend, "cpu");
    EXPECT_EQ(call(context.get(), m, there, dst, "reads"), LOCKSTEP_UNSUPPORTED);
    ASSERT_EQ(lockstep_free(context.get(), "reads", LOCKSTEP_DEVICE, sizeof in, there), LOCKSTEP_OK);
  }
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) return 2;
  char folder[] = "/tmp/lockstep-reads-XXXXXX";
  if (mkdtemp(folder) == nullptr || chmod(folder, 0755) != 0) return 3;
  fs::copy_file(argv[1], fs::path(folder) / "lockstep-reads.so");
  setenv("LOCKSTEP_BACKEND_PATH", folder, 1);
  const int failed = RUN_ALL_TESTS();
  fs::remove_all(folder);
  return failed;
}
