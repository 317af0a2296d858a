// creation_test.cpp - communicators over MPI that cannot be made: a process that does not come, one that refuses, what
// is no communicator of ranks, and threads that MPI does not allow.
#include "faults.hpp"
#include "lockstep/ranks_mpi.h"

namespace lockstep::ranks_test {
namespace {

struct Creation : testing::Test {
  void SetUp() override {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    ASSERT_EQ(lockstep_context_create(nullptr, &context), LOCKSTEP_OK);
    options.timeout_ms = 20000;
  }
  void TearDown() override { lockstep_context_destroy(context); }
  lockstep_status create(MPI_Comm mpi) { return lockstep_comm_from_mpi(context, mpi, &options, &comm); }
  void expect_works() {
    ASSERT_EQ(create(MPI_COMM_WORLD), LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_EQ(lockstep_ranks_synchronize(comm), LOCKSTEP_OK) << lockstep_last_error();
    lockstep_comm_destroy(comm);
    comm = nullptr;
  }
  int ranks = 0, rank = 0;
  lockstep_context* context = nullptr;
  lockstep_comm* comm = nullptr;
  lockstep_comm_options options = lockstep_comm_defaults();
};

TEST_F(Creation, OfAProcessThatComesLate) {
  if (ranks < 2) return;
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = clock::now();
  const bool late = rank == ranks - 1;
  if (late) std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  options.timeout_ms = 300;
  EXPECT_EQ(create(MPI_COMM_WORLD), LOCKSTEP_RANK_LOST) << lockstep_last_error();
  if (!late) {
    expect_text("call MPI_Abort", "");
    EXPECT_LT(clock::now() - begin, std::chrono::milliseconds(1800));
  }
  EXPECT_EQ(comm, nullptr);
  MPI_Barrier(MPI_COMM_WORLD);
  options.timeout_ms = 20000;
  expect_works();
}

TEST_F(Creation, OfAProcessThatRefuses) {
  if (ranks < 2) return;
  const bool refuses = rank == ranks - 1;
  EXPECT_EQ(
      refuses ? lockstep_comm_refuse_mpi(MPI_COMM_WORLD, &options, "its input is damaged") : create(MPI_COMM_WORLD),
      refuses ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED);
  expect_text("its input is damaged", "");
  if (!refuses) expect_text(format_text("rank {}: ", ranks - 1).c_str(), "");
  expect_works();
}

TEST_F(Creation, OverWhatIsNoCommunicatorOfRanks) {
  EXPECT_EQ(create(MPI_COMM_NULL), LOCKSTEP_INVALID_ARGUMENT);
  expect_text("MPI_COMM_NULL", "");
  if (ranks < 2) return;
  MPI_Comm half, both;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &both);
  EXPECT_EQ(create(both), LOCKSTEP_INVALID_ARGUMENT);
  expect_text("intercommunicator", "");
  EXPECT_EQ(comm, nullptr);
  MPI_Comm_free(&both);
  ASSERT_EQ(create(half), LOCKSTEP_OK) << lockstep_last_error();
  lockstep_comm_destroy(comm);
  MPI_Comm_free(&half);
}

TEST_F(Creation, ByAThreadThatMpiDoesNotAllow) {
  int level = 0;
  MPI_Query_thread(&level);
  if (level >= MPI_THREAD_SERIALIZED) GTEST_SKIP() << "this MPI begins at a level that allows other threads";
  std::thread([&] {
    EXPECT_EQ(create(MPI_COMM_WORLD), LOCKSTEP_INVALID_ARGUMENT);
    expect_text("MPI_THREAD_SERIALIZED", "");
  }).join();
  ASSERT_EQ(create(MPI_COMM_WORLD), LOCKSTEP_OK) << lockstep_last_error();
  if (ranks > 1)
    std::thread([&] {
      EXPECT_EQ(lockstep_ranks_synchronize(comm), LOCKSTEP_RANK_LOST);
      expect_text("MPI_THREAD_SERIALIZED", "");
    }).join();
  lockstep_comm_destroy(comm);
  MPI_Barrier(MPI_COMM_WORLD);
  expect_works();
}

}  // namespace
}  // namespace lockstep::ranks_test
