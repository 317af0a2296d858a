// graph.cpp - a GPU's own memory, a stream of the caller and a CUDA graph: two plans are captured once and replayed on
// new data. It needs the CUDA runtime (cuda_runtime.h, libcudart), but no nvcc. Returns 77 where there is no GPU.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <lockstep/lockstep.hpp>
#include <stdexcept>
#include <vector>

static void require(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}
template <class T>
static T* device_memory(std::size_t count) {
  void* pointer = nullptr;
  if (count != 0) require(cudaMalloc(&pointer, count * sizeof(T)));
  return static_cast<T*>(pointer);
}

int main() try {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return std::puts("no GPU here"), 77;
  constexpr std::int64_t rows = 1000, cols = 2000;
  const lockstep_transpose_desc turn = lockstep_transpose_packed(sizeof(float), rows, cols);
  const lockstep_reduce_desc add = lockstep_reduce_rows(LOCKSTEP_SUM, LOCKSTEP_F32, cols, rows, rows);

  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  auto* src = device_memory<float>(rows * cols);
  auto* turned = device_memory<float>(rows * cols);
  auto* sums = device_memory<double>(cols);

  lockstep::context context("cuda");
  // Naming the stream here promises stream and workspace at each execution, so the plans allocate nothing.
  lockstep_options options = lockstep_options_defaults();
  options.stream = stream;
  options.flags = LOCKSTEP_ASYNC | LOCKSTEP_DEVICE_DATA;
  lockstep::plan transpose(context, turn, &options), reduce(context, add, &options);
  // One workspace is enough for both, because the stream runs them one after the other.
  options.workspace_bytes = std::max(transpose.workspace_bytes(), reduce.workspace_bytes());
  options.workspace = device_memory<char>(options.workspace_bytes);
  const auto run = [&] {
    transpose.execute(src, turned, &options);
    reduce.execute(turned, sums, &options);
  };
  run();  // once outside of the graph: the first execution on a stream makes its queue
  require(cudaStreamSynchronize(stream));
  context.synchronize();

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  run();
  require(cudaStreamEndCapture(stream, &graph));
  require(cudaGraphInstantiate(&ready, graph, 0));

  lockstep::context cpu("cpu");
  std::vector<float> data(rows * cols), turned_here(rows * cols);
  std::vector<double> got(cols), want(cols);
  for (int replay = 0; replay < 3; ++replay) {
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>((i * 7 + replay) % 1013) / 3;
    require(cudaMemcpyAsync(src, data.data(), data.size() * sizeof(float), cudaMemcpyHostToDevice, stream));
    require(cudaGraphLaunch(ready, stream));
    require(cudaMemcpyAsync(got.data(), sums, got.size() * sizeof(double), cudaMemcpyDeviceToHost, stream));
    require(cudaStreamSynchronize(stream));
    lockstep::run(cpu, turn, data.data(), turned_here.data());
    lockstep::run(cpu, add, turned_here.data(), want.data());
    if (got != want) throw std::runtime_error("the GPU and the CPU disagree");
  }
  std::printf("%d columns, 3 replays: the graph gives the CPU's bits\n", static_cast<int>(cols));

  require(cudaGraphExecDestroy(ready));
  require(cudaGraphDestroy(graph));
  context.release_stream("cuda", stream);
  for (void* pointer :
       {static_cast<void*>(src), static_cast<void*>(turned), static_cast<void*>(sums), options.workspace})
    require(cudaFree(pointer));
  require(cudaStreamDestroy(stream));
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
