// one_function.cu - a function of F32 as F32, one contiguous run: a kernel for each function.
//
// Idea    Where all four arguments of a thread are usual ones, what the program chooses for others is left out
//         (is_usual in lib/bits/functions.hpp), which leaves few comparisons of doubles; else the whole program runs.
//         A square root and a reciprocal are the chip's own, which are correctly rounded.
// Moves   every element once in, once out
// Limit   DRAM, or operations on doubles: 16 per element for exp, 60 for gelu
// Watch   without a scale: its product would be rounded once more
// Source  lockstep.h
#include <utility>

#include "values.cuh"

namespace lockstep::cuda {
namespace {

// The whole program for one element, kept out of the way of the others.
template <functions::function f>
__device__ __noinline__ double unusual(double x) {
  return functions::programs<functions::scalar>::apply<f>(x);
}

template <functions::function f>
__device__ __forceinline__ quad<float> values_of(const quad<float>& x) {
  quad<float> y{};
  if constexpr (f == functions::sqrt || f == functions::reciprocal) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float v = f == functions::sqrt ? __fsqrt_rn(narrow_value(x, j)) : __frcp_rn(narrow_value(x, j));
      set_element(y, j, v != v ? __uint_as_float(order::nan_f32) : v);
    }
  } else {
    bool usual = true;
#pragma unroll
    for (int j = 0; j < 4; ++j) usual = usual && functions::is_usual<f>(narrow_value(x, j));
    double v[4];
    if (usual) {
#pragma unroll
      for (int j = 0; j < 4; ++j) v[j] = functions::programs<functions::usual_scalar>::apply<f>(value(x, j));
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) v[j] = unusual<f>(value(x, j));
    }
    y = rounded_quad<float>(v);
  }
  return y;
}

template <functions::function f>
__global__ void __launch_bounds__(one_function_threads, 4)
    map_one_function(const float* src, float* dst, uint32_t elements) {
  const uint32_t first = (blockIdx.x * one_function_threads * one_function_quads + threadIdx.x) * 4;
  constexpr uint32_t step = one_function_threads * 4;
  follow_on();
  quad<float> held[one_function_quads];
#pragma unroll
  for (int q = 0; q < one_function_quads; ++q) {
    const uint32_t i = first + q * step;
    held[q] = quad<float>{};
    if (i + 4 <= elements) {
      held[q] = load_whole(src + i);
    } else {
#pragma unroll
      for (int k = 0; k < 3; ++k)
        if (i + k < elements) set_element(held[q], k, src[i + k]);
    }
  }
#pragma unroll
  for (int q = 0; q < one_function_quads; ++q) {
    const uint32_t i = first + q * step;
    const quad<float> y = values_of<f>(held[q]);
    if (i + 4 <= elements) {
      store_whole(dst + i, y);
    } else {
#pragma unroll
      for (int k = 0; k < 3; ++k)
        if (i + k < elements) dst[i + k] = element(y, k);
    }
  }
}

template <size_t... f>
auto kernel_of(int function, std::index_sequence<f...>) {
  using kernel = void (*)(const float*, float*, uint32_t);
  static constexpr kernel all[] = {map_one_function<static_cast<functions::function>(f)>...};
  return all[function];
}

}  // namespace

lockstep_status map_by_its_kernel(lockstep_queue& queue, int function, const void* src, void* dst, uint32_t elements) {
  constexpr uint32_t block = one_function_threads * one_function_quads * 4;
  return launch_soon(queue, "map_one_function", kernel_of(function, std::make_index_sequence<functions::count>{}),
                     dim3((elements - 1) / block + 1), dim3(one_function_threads), 0, static_cast<const float*>(src),
                     static_cast<float*>(dst), elements);
}

}  // namespace lockstep::cuda
