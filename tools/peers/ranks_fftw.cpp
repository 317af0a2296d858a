// ranks_fftw.cpp - FFTW's transpose of a matrix in slabs over the processes of an MPI job, for tools/peers/ranks_speed,
// which lets it and `lockstep ranks bench` take turns: ranks_fftw ROWSxCOLS SAMPLES. Checks the result, then times it.
#include <fftw3-mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {
// Exact in a float, other for neighbours in any direction.
float element(ptrdiff_t row, ptrdiff_t col) { return static_cast<float>((row * 4099 + col * 7) % 8388593); }
}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  fftwf_mpi_init();
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  long long n0 = 0, n1 = 0;
  const int samples = argc == 3 ? std::atoi(argv[2]) : 0;
  if (samples < 1 || std::sscanf(argv[1], "%lldx%lld", &n0, &n1) != 2 || n0 < 1 || n1 < 1) {
    if (rank == 0) std::fprintf(stderr, "usage: ranks_fftw ROWSxCOLS SAMPLES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const ptrdiff_t rows = n0, cols = n1, shape[] = {rows, cols};
  ptrdiff_t mine = 0, low = 0, turned = 0, turned_low = 0;
  const ptrdiff_t size = fftwf_mpi_local_size_many_transposed(
      2, shape, 1, FFTW_MPI_DEFAULT_BLOCK, FFTW_MPI_DEFAULT_BLOCK, MPI_COMM_WORLD, &mine, &low, &turned, &turned_low);
  // Sizes are in complex numbers; the matrix is of floats.
  float *in = fftwf_alloc_real(static_cast<size_t>(size)), *out = fftwf_alloc_real(static_cast<size_t>(size));
  const fftwf_plan plan = fftwf_mpi_plan_many_transpose(rows, cols, 1, FFTW_MPI_DEFAULT_BLOCK, FFTW_MPI_DEFAULT_BLOCK,
                                                        in, out, MPI_COMM_WORLD, FFTW_MEASURE);
  if (plan == nullptr) MPI_Abort(MPI_COMM_WORLD, 3);
  for (ptrdiff_t i = 0; i < mine; ++i)
    for (ptrdiff_t j = 0; j < cols; ++j) in[i * cols + j] = element(low + i, j);
  std::vector<double> ms;
  for (int k = 0; k < samples + 1; ++k) {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    fftwf_execute(plan);
    MPI_Barrier(MPI_COMM_WORLD);
    if (k > 0)
      ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  for (ptrdiff_t j = 0; j < turned; ++j)
    for (ptrdiff_t i = 0; i < rows; ++i)
      if (out[j * rows + i] != element(i, turned_low + j)) {
        std::fprintf(stderr, "rank %d: element %td, %td is wrong\n", rank, turned_low + j, i);
        MPI_Abort(MPI_COMM_WORLD, 4);
      }
  std::sort(ms.begin(), ms.end());
  if (rank == 0)
    std::printf("permute f32 %s over %d ranks (%s): %.3f ms, least %.3f ms\n", argv[1], ranks, fftwf_version,
                ms[ms.size() / 2], ms.front());
  fftwf_destroy_plan(plan);
  fftwf_free(in);
  fftwf_free(out);
  fftwf_mpi_cleanup();
  MPI_Finalize();
  return 0;
}
