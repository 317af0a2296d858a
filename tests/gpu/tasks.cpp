// tasks.cpp - sequences that many blocks share: how their partial results are joined (mailbox.cuh), for
// numbers of tasks around those at which the joining block changes its method.
#include <cmath>
#include <type_traits>

#include "bits/order.hpp"
#include "gpu.hpp"
#include "index/leaf.hpp"

namespace lockstep::gpu_test {
namespace {

class tasks : public gpu {};

// The least length that so many tasks share, its last leaf short.
int64_t length_of(int64_t wanted) {
  for (int64_t leaves = wanted * 4;; ++leaves) {
    const int64_t each = cuda::leaves_a_task(leaves, 1, 256);
    if ((leaves + each - 1) / each == wanted) return (leaves - 1) * order::leaf + 777;
    if (leaves > wanted * 256) return 0;
  }
}

struct op {
  lockstep_reduction reduction;
  lockstep_dtype dtype;
  int scale;  // floats: times 2^scale
};
constexpr op ops[] = {
    {LOCKSTEP_SUM, LOCKSTEP_F32, 0},
    {LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, 0},
    {LOCKSTEP_ARGMAX, LOCKSTEP_F32, 0},
    {LOCKSTEP_MIN, LOCKSTEP_F32, 0},
    {LOCKSTEP_SUM, LOCKSTEP_F64, 0},
    {LOCKSTEP_NORM2, LOCKSTEP_F64, 0},
    {LOCKSTEP_NORM2, LOCKSTEP_F64, 900},
    {LOCKSTEP_NORM2, LOCKSTEP_F64, -900},
    {LOCKSTEP_SUM, LOCKSTEP_I64, 0},
    {LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_I64, 0},
    {LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_I32, 0},
};

template <class T>
void compare(const op& o, int64_t n) {
  context c("cuda");
  std::vector<T> src(static_cast<size_t>(n));
  uint32_t x = 1;
  for (T& e : src) {  // of many sizes: a sum in another order has other bits
    x = x * 1664525u + 1013904223u;
    const auto random = static_cast<int32_t>(x) >> 8;
    if constexpr (std::is_integral_v<T>)
      e = random >> 4;
    else
      e = static_cast<T>(std::ldexp(random, static_cast<int>(x >> 3 & 31) + o.scale));
  }
  buffer<T> in(c, "cuda", LOCKSTEP_DEVICE, src.size());
  buffer<uint64_t> out(c, "cuda", LOCKSTEP_DEVICE, 1);
  in.assign(src);
  const lockstep_options cpu = on("cpu"), cuda = on("cuda");
  const lockstep_reduce_desc d = lockstep_reduce_full(o.reduction, o.dtype, n, 1);
  std::vector<uint64_t> want(1), got(1);
  run(c, d, src.data(), want.data(), &cpu);
  for (int again = 0; again < 3; ++again) {  // what a call leaves behind would meet the next
    out.assign(std::vector<uint64_t>{0});
    run(c, d, in.data(), out.data(), &cuda);
    out.copy_to(got);
    EXPECT_EQ(got, want) << "reduction " << o.reduction << ", dtype " << o.dtype << ", scale " << o.scale;
  }
}

TEST_F(tasks, of_any_number_meet_in_the_order) {
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  const int64_t apart = properties.multiProcessorCount * 8;  // above, a block of its own joins them
  for (const int64_t wanted : {int64_t{31}, int64_t{33}, int64_t{97}, int64_t{128}, int64_t{129}, int64_t{161},
                               int64_t{257}, int64_t{385}, int64_t{1025}, apart, apart + 1, apart + 35}) {
    const int64_t n = length_of(wanted);
    ASSERT_NE(n, 0) << wanted << " tasks share no length";
    SCOPED_TRACE(std::to_string(wanted) + " tasks, n = " + std::to_string(n));
    for (const op& o : ops) switch (o.dtype) {
        case LOCKSTEP_F32: compare<float>(o, n); break;
        case LOCKSTEP_F64: compare<double>(o, n); break;
        case LOCKSTEP_I32: compare<int32_t>(o, n); break;
        default: compare<int64_t>(o, n); break;
      }
  }
}

}  // namespace
}  // namespace lockstep::gpu_test
