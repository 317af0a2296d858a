// thousand.cpp - a sum and a stencil over more ranks than GoogleTest can be loaded for, each against the one call that
// every rank makes for itself; a transpose would be a million messages. Prints a line for each and fails the job if a
// bit differs.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "lockstep/ranks_mpi.h"

namespace {

int failed(const char* call) {
  std::printf("%s: %s\n", call, lockstep_last_error());
  return 1;
}

// The same cuts on every rank: uneven, some blocks empty.
std::vector<int64_t> cuts_of(int64_t n, int32_t ranks, uint64_t seed) {
  std::mt19937_64 draw(seed);
  std::vector<int64_t> cuts = {0, n};
  for (int32_t r = 1; r < ranks; ++r) cuts.push_back(static_cast<int64_t>(draw() % static_cast<uint64_t>(n + 1)));
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

int check(lockstep_context* context, lockstep_comm* comm, int64_t n, uint64_t seed) {
  lockstep_comm_info info{};
  info.size = sizeof info;
  if (lockstep_comm_get(comm, &info) != LOCKSTEP_OK) return failed("lockstep_comm_get");
  std::mt19937_64 draw(seed);
  std::vector<float> whole(static_cast<size_t>(n));
  for (float& x : whole) x = static_cast<float>(static_cast<int64_t>(draw() % 2000001) - 1000000) * 1e-3f;
  const std::vector<int64_t> cuts = cuts_of(n, info.ranks, seed + 1);
  lockstep_grid grid = lockstep_grid_slabs(sizeof(float), 1, &n, info.ranks);
  grid.cuts[0] = cuts.data();
  const int64_t low = cuts[static_cast<size_t>(info.rank)], one = 1;
  const int64_t length = cuts[static_cast<size_t>(info.rank) + 1] - low;
  std::vector<float> mine(whole.begin() + low, whole.begin() + low + length), swept(static_cast<size_t>(length) + 1);
  const lockstep_part in = lockstep_part_packed(mine.data(), 1, &length);

  lockstep_ranks_plan* plan = nullptr;
  double sum = 0, want_sum = 0;
  const lockstep_part out = lockstep_part_packed(&sum, 1, &one);
  if (lockstep_ranks_reduce(comm, &grid, LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F64, 1, nullptr, nullptr, &plan) !=
          LOCKSTEP_OK ||
      lockstep_ranks_execute(plan, &in, &out, nullptr) != LOCKSTEP_OK)
    return failed("the sum");
  lockstep_ranks_plan_destroy(plan);
  const lockstep_reduce_desc reduce = lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, n, 1);
  if (lockstep_reduce(context, &reduce, whole.data(), &want_sum, nullptr) != LOCKSTEP_OK)
    return failed("lockstep_reduce");

  const double coefficients[] = {-1.9, 0.7, 0.3, 0.2, 0.1};
  const lockstep_stencil_desc d =
      lockstep_stencil_packed(LOCKSTEP_F32, 1, &n, 2, coefficients, LOCKSTEP_BOUNDARY_MIRROR);
  const lockstep_part swept_part = lockstep_part_packed(swept.data(), 1, &length);
  if (lockstep_ranks_stencil(comm, &grid, &d, nullptr, &plan) != LOCKSTEP_OK ||
      lockstep_ranks_execute(plan, &in, &swept_part, nullptr) != LOCKSTEP_OK)
    return failed("the stencil");
  lockstep_ranks_plan_destroy(plan);
  std::vector<float> want(static_cast<size_t>(n));
  if (lockstep_stencil(context, &d, whole.data(), want.data(), nullptr) != LOCKSTEP_OK)
    return failed("lockstep_stencil");

  const bool good_sum = std::memcmp(&sum, &want_sum, sizeof sum) == 0;
  const bool good_stencil = std::memcmp(swept.data(), want.data() + low, static_cast<size_t>(length) * 4) == 0;
  if (info.rank == 0 || !good_sum || !good_stencil)
    std::printf("rank %d of %d, %lld elements: sum %.17g %s, stencil %s\n", info.rank, info.ranks,
                static_cast<long long>(n), sum, good_sum ? "equal" : "DIFFERS", good_stencil ? "equal" : "DIFFERS");
  return good_sum && good_stencil ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = "cpu";
  o.threads = 1;
  lockstep_context* context = nullptr;
  lockstep_comm* comm = nullptr;
  int wrong = lockstep_context_create(&o, &context) != LOCKSTEP_OK ||
              lockstep_comm_from_mpi(context, MPI_COMM_WORLD, nullptr, &comm) != LOCKSTEP_OK;
  if (wrong) failed("the communicator");
  for (uint64_t k = 0; k < 3 && !wrong; ++k) wrong = check(context, comm, int64_t{1} << (9 + 4 * k), k + 1);
  if (wrong) MPI_Abort(MPI_COMM_WORLD, 1);
  lockstep_comm_destroy(comm);
  lockstep_context_destroy(context);
  int rank = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::puts("passed on all ranks");
  MPI_Finalize();
  return 0;
}
