// openmp_program_test.cpp - a program that uses OpenMP: its main thread's calls run on OpenMP's threads.
#include <gtest/gtest.h>
#include <lockstep/lockstep.h>
#include <omp.h>
#include <sys/resource.h>

#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

namespace {

long threads_of_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator{});
}

// The square sum of four million numbers by so many threads, through a context of its own.
double square_sum(int threads) {
  std::vector<float> x(4 << 20);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.001f * static_cast<float>(i % 1777);
  lockstep_context_options options = lockstep_context_defaults();
  options.backend = "cpu";
  options.threads = threads;
  lockstep_context* context = nullptr;
  EXPECT_EQ(lockstep_context_create(&options, &context), LOCKSTEP_OK) << lockstep_last_error();
  const lockstep_reduce_desc d =
      lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, static_cast<int64_t>(x.size()), 1);
  double result = 0;
  EXPECT_EQ(lockstep_square_sum(context, &d, x.data(), &result, nullptr), LOCKSTEP_OK) << lockstep_last_error();
  lockstep_context_destroy(context);
  return result;
}

int threads_of_openmp(int wanted) {
  int made = 0;
#pragma omp parallel num_threads(wanted)
#pragma omp single
  made = omp_get_num_threads();
  return made;
}

TEST(OpenmpProgram, ItsThreadsAreShared) {
  const double expected = square_sum(1);
  ASSERT_EQ(threads_of_openmp(4), 4);
  const long before = threads_of_process();
  EXPECT_EQ(square_sum(4), expected);
  EXPECT_EQ(threads_of_process(), before) << "the call made threads of its own";
}

TEST(OpenmpProgram, OtherThreadsShareTheLibrarys) {
  const double expected = square_sum(1);
  ASSERT_EQ(threads_of_openmp(4), 4);
  const long before = threads_of_process();
  std::thread([&] { EXPECT_EQ(square_sum(4), expected); }).join();
  EXPECT_EQ(threads_of_process(), before + 3) << "OpenMP would have made a set of threads for the new one";
}

TEST(OpenmpProgram, ACallWithinAParallelRegionIsRight) {
  const double expected = square_sum(1);
  double results[3] = {};
#pragma omp parallel num_threads(3)
  results[omp_get_thread_num()] = square_sum(2);
  for (const double result : results) EXPECT_EQ(result, expected);
}

// Last: the limit stays. OpenMP's runtime ends the process where it cannot make a thread.
TEST(OpenmpProgram, ThreadsThatCannotBeMadeEndNothing) {
  const double expected = square_sum(1);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  limit.rlim_cur = rlim_t{1} << 30;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  EXPECT_EQ(square_sum(512), expected);
}

}  // namespace
