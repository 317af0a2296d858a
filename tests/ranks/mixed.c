/* mixed.c - a rank in C of a job that has ranks in Python too (tests/python/mixed_worker.py): ranks 0 and 1 are wrong
 * at once, when the communicator is made and when a plan is, and all others hear of rank 0. Then all is well. */
#include <lockstep/ranks_mpi.h>
#include <stdio.h>
#include <string.h>

static int rank;

static void expect(int holds, const char* what) {
  if (holds) return;
  printf("rank %d, in C: %s: %s\n", rank, what, lockstep_last_error());
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void expect_told(lockstep_status status, const char* what) {
  expect(status == (rank < 2 ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED), what);
  expect(rank < 2 || strncmp(lockstep_last_error(), "rank 0: ", 8) == 0, what);
}

static lockstep_status make(lockstep_comm* comm, uint32_t flags, lockstep_ranks_plan** plan) {
  const int64_t shape[] = {6};
  const lockstep_grid grid = lockstep_grid_slabs(sizeof(double), 1, shape, 3);
  lockstep_options options = lockstep_options_defaults();
  options.flags = flags;
  return lockstep_ranks_reduce(comm, &grid, LOCKSTEP_SUM, LOCKSTEP_F64, LOCKSTEP_F64, 1, NULL, &options, plan);
}

int main(int argc, char** argv) {
  if (argc > 1) { /* which MPI this is, for whoever starts the job */
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    return puts(version) < 0;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  lockstep_context* context = NULL;
  lockstep_comm* comm = NULL;
  lockstep_ranks_plan* plan = NULL;
  lockstep_comm_options options = lockstep_comm_defaults();
  options.timeout_ms = 20000;
  expect(lockstep_context_create(NULL, &context) == LOCKSTEP_OK, "a context");
  if (rank < 2) options.seats = -3;
  expect_told(lockstep_comm_from_mpi(context, MPI_COMM_WORLD, &options, &comm), "two wrong communicators");
  options.seats = 1;
  expect(lockstep_comm_from_mpi(context, MPI_COMM_WORLD, &options, &comm) == LOCKSTEP_OK, "a communicator");
  expect_told(make(comm, rank < 2 ? 1u << 20 : 0, &plan), "two wrong plans");
  expect(make(comm, 0, &plan) == LOCKSTEP_OK, "a plan");
  double mine[] = {1, 1}, sum = 0;
  const int64_t length[] = {2};
  const lockstep_part in = lockstep_part_packed(mine, 1, length), out = lockstep_part_scalar(&sum);
  expect(lockstep_ranks_execute(plan, &in, &out, NULL) == LOCKSTEP_OK && sum == 6, "a sum");
  lockstep_ranks_plan_destroy(plan);
  lockstep_comm_destroy(comm);
  lockstep_context_destroy(context);
  printf("rank %d passed\n", rank);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
