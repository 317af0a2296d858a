/* ranks_mpi.c - one array over the processes of an MPI job: its sum, the same bits at any number of them, and its
 * transpose. Build: mpicc ranks_mpi.c $(pkg-config --cflags --libs lockstep-ranks); run: mpirun -n 4 ./a.out */
#include <lockstep/ranks_mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { rows = 1000, cols = 700 };

/* Ends the job: MPI_Finalize might wait for a lost rank for ever. */
static int fail(void) {
  fprintf(stderr, "%s\n", lockstep_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
  return 1;
}
static double element(int64_t i) { return 1.0 / (double)(i + 1); }

static int with_ranks(lockstep_context* context, lockstep_comm* comm) {
  lockstep_comm_info info = {.size = sizeof info};
  if (lockstep_comm_get(comm, &info)) return fail();
  const int64_t shape[] = {rows, cols}, turned[] = {cols, rows}, one[] = {1};
  const lockstep_grid src = lockstep_grid_slabs(sizeof(double), 2, shape, info.ranks);
  const lockstep_grid dst = lockstep_grid_slabs(sizeof(double), 2, turned, info.ranks);
  int64_t low[2], length[2], dst_low[2], dst_length[2];
  if (lockstep_grid_box(&src, info.rank, low, length)) return fail();
  if (lockstep_grid_box(&dst, info.rank, dst_low, dst_length)) return fail();
  double* mine = malloc((size_t)(length[0] * length[1] + 1) * sizeof *mine);
  double* turned_mine = malloc((size_t)(dst_length[0] * dst_length[1] + 1) * sizeof *turned_mine);
  if (!mine || !turned_mine) return 1;
  for (int64_t i = 0; i < length[0] * cols; ++i) mine[i] = element(low[0] * cols + i);

  double sum = 0;
  const lockstep_part in = lockstep_part_packed(mine, 2, length), out = lockstep_part_packed(&sum, 1, one);
  const lockstep_part turned_out = lockstep_part_packed(turned_mine, 2, dst_length);
  lockstep_ranks_plan *reduce, *transpose;
  if (lockstep_ranks_reduce(comm, &src, LOCKSTEP_SUM, LOCKSTEP_F64, LOCKSTEP_F64, 3, NULL, NULL, &reduce))
    return fail();
  if (lockstep_ranks_permute(comm, &src, (const int32_t[]){1, 0}, &dst, NULL, &transpose)) return fail();
  if (lockstep_ranks_execute(reduce, &in, &out, NULL)) return fail();
  if (lockstep_ranks_execute(transpose, &in, &turned_out, NULL)) return fail();

  /* What one process gives. */
  double* whole = malloc((size_t)rows * cols * sizeof *whole);
  if (!whole) return 1;
  for (int64_t i = 0; i < (int64_t)rows * cols; ++i) whole[i] = element(i);
  const lockstep_reduce_desc full = lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F64, (int64_t)rows * cols, 1);
  double alone = 0;
  if (lockstep_reduce(context, &full, whole, &alone, NULL)) return fail();
  int wrong = sum != alone;
  for (int64_t i = 0; i < dst_length[0] * rows; ++i)
    wrong |= turned_mine[i] != whole[i % rows * cols + dst_low[0] + i / rows];
  if (info.rank == 0) printf("%d ranks over %s: %.17g, alone %.17g\n", info.ranks, info.engine, sum, alone);

  free(whole);
  free(mine);
  free(turned_mine);
  lockstep_ranks_plan_destroy(reduce);
  lockstep_ranks_plan_destroy(transpose);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  lockstep_context* context;
  lockstep_comm* comm;
  if (lockstep_context_create(NULL, &context)) return fail();
  if (lockstep_comm_from_mpi(context, MPI_COMM_WORLD, NULL, &comm)) return fail();
  const int code = with_ranks(context, comm);
  lockstep_comm_destroy(comm);
  lockstep_context_destroy(context);
  MPI_Finalize();
  return code;
}
