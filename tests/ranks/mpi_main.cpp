// mpi_main.cpp - GoogleTest under mpirun: rank 0 prints the progress, the others only failures. The first failure ends
// the job, because the ranks would no longer be in the same test.
#include <gtest/gtest.h>

#include <cstdio>

#include "lockstep/ranks_mpi.h"
#include "world.hpp"

namespace {
class end_of_the_job : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& r) override {
    if (!r.failed()) return;
    std::printf("%s:%d: %s\n", r.file_name(), r.line_number(), r.summary());
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
};
}  // namespace

int main(int argc, char** argv) {
  int rank = 0, failed = 0, any = 0;
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  if (std::string why; !lockstep::ranks_test::devices_usable(why)) {
    std::printf("SKIP: %s\n", why.c_str());
    MPI_Finalize();
    return 77;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new end_of_the_job);
  failed = RUN_ALL_TESTS();
  lockstep::ranks_test::close_kept();
  std::fflush(nullptr);
  MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && any == 0) std::puts("passed on all ranks");
  std::fflush(nullptr);
  MPI_Finalize();
  return any;
}
