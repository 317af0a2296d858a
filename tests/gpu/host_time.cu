// host_time.cu - what a call on small device data costs the host: an execution of a plan on a caller's stream beside a
// bare launch, and blocking calls beside a launch that is waited for. Medians of rounds by turns, in microseconds.
//   host_time        prints the table
#include <cuda_runtime.h>
#include <lockstep/lockstep.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr int rounds = 25, calls = 200;

__global__ void nothing() {}

void check(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "host_time: %s\n", cudaGetErrorString(code));
  std::exit(1);
}
void check(lockstep_status status) {
  if (status == LOCKSTEP_OK) return;
  std::fprintf(stderr, "host_time: %s\n", lockstep_last_error());
  std::exit(1);
}

struct timed {
  std::string name;
  std::function<void()> call;
  bool waits;  // the call itself
  std::vector<double> us = {};
};

double once(const timed& t) {
  check(cudaDeviceSynchronize());
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) t.call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / calls;
}
double median(std::vector<double> us) {
  std::nth_element(us.begin(), us.begin() + us.size() / 2, us.end());
  return us[us.size() / 2];
}

}  // namespace

int main() {
  constexpr int64_t n = 4096;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("host_time: no device");
    return 77;
  }
  cudaStream_t stream = nullptr;
  void *src = nullptr, *dst = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaMalloc(&src, n * 8));
  check(cudaMalloc(&dst, n * 8));
  check(cudaMemset(src, 0, n * 8));
  lockstep_context_options made = lockstep_context_defaults();
  made.backend = "cuda";
  lockstep_context* context = nullptr;
  check(lockstep_context_create(&made, &context));

  const int64_t shape[4] = {8, 8, 8, 8};
  const int32_t order[4] = {0, 2, 1, 3};
  const double weights[9] = {0.1, 0.1, 0.1, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1}, cross[5] = {0.1, 0.1, 0.6, 0.1, 0.1};
  const lockstep_transpose_desc transpose = lockstep_transpose_packed(4, 64, 64);
  const lockstep_permute_desc permute = lockstep_permute_packed(4, 4, shape, order);
  const lockstep_reduce_desc sum = lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, n, 1);
  const lockstep_reduce_desc norms = lockstep_reduce_rows(LOCKSTEP_NORM2, LOCKSTEP_F32, 64, 64, 64);
  const int64_t line[1] = {n}, plane[2] = {64, 64};
  const lockstep_stencil_desc wave =
      lockstep_stencil_packed(LOCKSTEP_F32, 1, line, 4, weights, LOCKSTEP_BOUNDARY_NEAREST);
  const lockstep_stencil_desc star =
      lockstep_stencil_packed(LOCKSTEP_F32, 2, plane, 1, cross, LOCKSTEP_BOUNDARY_NEAREST);
  const struct {
    const char* name;
    lockstep_op op;
    const void* description;
  } ops[] = {{"transpose", LOCKSTEP_TRANSPOSE, &transpose},
             {"permute", LOCKSTEP_PERMUTE, &permute},
             {"sum", LOCKSTEP_REDUCE, &sum},
             {"norms of rows", LOCKSTEP_SQUARE_SUM, &norms},
             {"stencil of a line", LOCKSTEP_STENCIL, &wave},
             {"stencil of a plane", LOCKSTEP_STENCIL, &star}};

  lockstep_options queued = lockstep_options_defaults();
  queued.flags = LOCKSTEP_ASYNC;
  queued.stream = stream;
  std::vector<timed> all;
  all.push_back({"bare launch", [&] { nothing<<<1, 32, 0, stream>>>(); }, false});
  all.push_back({"launch and cudaStreamSynchronize",
                 [&] {
                   nothing<<<1, 32, 0, stream>>>();
                   check(cudaStreamSynchronize(stream));
                 },
                 true});
  std::vector<lockstep_plan*> plans;
  for (const auto& op : ops) {
    lockstep_plan* plan = nullptr;
    check(lockstep_plan_create(context, op.op, op.description, nullptr, &plan));
    plans.push_back(plan);
    all.push_back({std::string("plan on a stream: ") + op.name,
                   [=, &queued] { check(lockstep_plan_execute(plan, src, dst, &queued)); }, false});
    all.push_back({std::string("blocking plan: ") + op.name,
                   [=] { check(lockstep_plan_execute(plan, src, dst, nullptr)); }, true});
    all.push_back({std::string("blocking call: ") + op.name,
                   [=] { check(lockstep_execute(context, op.op, op.description, src, dst, nullptr)); }, true});
  }
  for (int round = -1; round < rounds; ++round)
    for (timed& t : all) {
      const double us = once(t);
      if (round >= 0) t.us.push_back(us);
    }
  const double launch = median(all[0].us), waited = median(all[1].us);
  std::printf("| | us | above the launch |\n|---|--:|--:|\n");
  for (const timed& t : all) {
    const double us = median(t.us);
    std::printf("| %s | %.2f | %+.2f |\n", t.name.c_str(), us, us - (t.waits ? waited : launch));
  }
  check(cudaDeviceSynchronize());
  for (lockstep_plan* plan : plans) lockstep_plan_destroy(plan);
  lockstep_context_destroy(context);
  check(cudaFree(src));
  check(cudaFree(dst));
  check(cudaStreamDestroy(stream));
  return 0;
}
