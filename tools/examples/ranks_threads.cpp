// ranks_threads.cpp - a stencil over ranks that are threads of this program, through ranks.hpp; no MPI. Each rank has
// its slab; the library fetches the elements that it needs from its neighbours.
#include <cstdio>
#include <lockstep/ranks.hpp>
#include <thread>
#include <vector>

int main() try {
  constexpr std::int32_t ranks = 3;
  constexpr std::int64_t n = 200;
  std::vector<float> room(n * n, 20.0f), alone(n * n), together(n * n);
  room[n * n / 2 + n / 2] = 1000.0f;
  const double weights[] = {0.1, 0.1, 0.6, 0.1, 0.1};
  const std::int64_t shape[] = {n, n};
  lockstep_stencil_desc heat = lockstep_stencil_packed(LOCKSTEP_F32, 2, shape, 1, weights, LOCKSTEP_BOUNDARY_NEAREST);
  heat.sweeps = 5;
  lockstep::context context("cpu");
  lockstep::run(context, heat, room.data(), alone.data());

  std::vector<lockstep_engine> engines(ranks);
  lockstep::failure(lockstep_engine_local(ranks, engines.data())).raise();
  std::vector<std::thread> threads;
  for (const lockstep_engine& engine : engines)
    threads.emplace_back([&] {
      lockstep::context own("cpu");
      lockstep::ranks::comm comm(own, engine);
      const lockstep::ranks::grid<float> slabs({n, n}, {ranks, 1});
      const std::int64_t begin = slabs.of(comm.rank()).low[0] * n;
      lockstep::ranks::stencil(comm, slabs, heat)
          .execute(slabs.packed(comm.rank(), room.data() + begin), slabs.packed(comm.rank(), together.data() + begin));
    });
  for (std::thread& t : threads) t.join();
  std::printf("%d ranks, 5 sweeps: %s\n", ranks, together == alone ? "the same bits as alone" : "other bits");
  return together == alone ? 0 : 1;
} catch (const lockstep::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
