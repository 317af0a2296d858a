// streams.cpp - the caller's streams, asynchronous calls, graphs, several threads,
// __constant__ slots; and one pattern of bits whatever runs beside.
#include <atomic>
#include <thread>

#include "gpu.hpp"

namespace lockstep::gpu_test {
namespace {

class streams : public gpu {};

TEST_F(streams, asynchronous_calls_line_up_and_leave_results_on_the_device) {
  context c("cuda");
  constexpr int64_t n = 1 << 20;
  const auto src = data<float>(n);
  buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, n), a(c, "cuda", LOCKSTEP_DEVICE, n), b(c, "cuda", LOCKSTEP_DEVICE, n);
  buffer<double> sum(c, "cuda", LOCKSTEP_DEVICE, 1);
  in.assign(src);
  lockstep_options o = on("cuda");
  o.flags = LOCKSTEP_ASYNC;
  run(c, lockstep_transpose_packed(4, 1024, 1024), in.data(), a.data(), &o);
  run(c, lockstep_transpose_packed(4, 1024, 1024), a.data(), b.data(), &o);
  run(c, lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, n, 1), b.data(), sum.data(), &o);
  c.synchronize();
  std::vector<float> got(n);
  b.copy_to(got);
  EXPECT_TRUE(same_bits(got, src));
  std::vector<double> total(1);
  sum.copy_to(total);
  const lockstep_options cpu = on("cpu");
  EXPECT_EQ(total[0], (reduce<double, float>(c, LOCKSTEP_SUM, src, &cpu)));
}

TEST_F(streams, overflow_is_reported_at_synchronise) {
  context c("cuda");
  const std::vector<int64_t> src = {INT64_MAX, 1};
  buffer<int64_t> in(c, "cuda", LOCKSTEP_DEVICE, 2), out(c, "cuda", LOCKSTEP_DEVICE, 1);
  in.assign(src);
  lockstep_options o = on("cuda");
  o.flags = LOCKSTEP_ASYNC;
  run(c, lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_I64, 2, 1), in.data(), out.data(), &o);
  const failure late = c.try_synchronize();
  EXPECT_EQ(late.status(), LOCKSTEP_OVERFLOW) << late.text();
  EXPECT_FALSE(c.try_synchronize());  // told once
  std::vector<int64_t> got(1);
  out.copy_to(got);
  EXPECT_EQ(got[0], INT64_MAX);
}

TEST_F(streams, a_callers_stream_orders_with_its_own_work) {
  context c("cuda");
  constexpr size_t n = 1 << 22;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const auto src = data<float>(n);
  {
    buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, n), out(c, "cuda", LOCKSTEP_DEVICE, n);
    lockstep_options o = on("cuda");
    o.flags = LOCKSTEP_ASYNC;
    o.stream = stream;
    std::vector<float> got(n);
    float *pinned_src = nullptr, *pinned_got = nullptr;
    ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned_src), n * 4), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned_got), n * 4), cudaSuccess);
    std::memcpy(pinned_src, src.data(), n * 4);
    ASSERT_EQ(cudaMemcpyAsync(in.data(), pinned_src, n * 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
    run(c, lockstep_transpose_packed(4, 2048, 2048), in.data(), out.data(), &o);
    ASSERT_EQ(cudaMemcpyAsync(pinned_got, out.data(), n * 4, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    std::memcpy(got.data(), pinned_got, n * 4);
    std::vector<float> want(n);
    const lockstep_options cpu = on("cpu");
    transpose<float>(c, src, want, 2048, 2048, &cpu);
    EXPECT_TRUE(same_bits(got, want));
    c.synchronize();
    cudaFreeHost(pinned_src);
    cudaFreeHost(pinned_got);
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// Every op that needs no host copy can be captured once and replayed.
TEST_F(streams, plans_can_be_captured_in_a_graph) {
  context c("cuda");
  constexpr int64_t n = 1 << 18;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const auto first = data<float>(n, 1), second = data<float>(n, 2);
  const double coefficients[] = {-0.5, 0.25, 0.125, 0.0625, 0.03125};
  const int64_t shape[] = {n};
  lockstep_stencil_desc stencil =
      lockstep_stencil_packed(LOCKSTEP_F32, 1, shape, 4, coefficients, LOCKSTEP_BOUNDARY_MIRROR);
  stencil.form = LOCKSTEP_SYMMETRIC;
  stencil.coefficient_count = 5;
  lockstep_options o = on("cuda");
  o.flags = LOCKSTEP_DEVICE_DATA;
  plan transpose_plan(c, lockstep_transpose_packed(4, 512, 512), &o),
      sum_plan(c, lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, n, 1), &o), stencil_plan(c, stencil, &o),
      shuffle_plan(c, lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_XOR, 4, n, 32, 5), &o);
  {
    buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, n), t(c, "cuda", LOCKSTEP_DEVICE, n), s(c, "cuda", LOCKSTEP_DEVICE, n),
        w(c, "cuda", LOCKSTEP_DEVICE, n);
    buffer<double> sum(c, "cuda", LOCKSTEP_DEVICE, 1);
    in.assign(first);
    lockstep_options run_on = lockstep_options_defaults();
    run_on.flags = LOCKSTEP_ASYNC;
    run_on.stream = stream;
    const auto all = [&] {
      transpose_plan.execute(in.data(), t.data(), &run_on);
      stencil_plan.execute(t.data(), s.data(), &run_on);
      shuffle_plan.execute(s.data(), w.data(), &run_on);
      sum_plan.execute(w.data(), sum.data(), &run_on);
    };
    all();  // the first use of a stream makes its queue and workspace
    c.synchronize();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    all();
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
    for (const auto* src : {&first, &second, &first}) {
      in.assign(*src);
      ASSERT_EQ(cudaGraphLaunch(ready, stream), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      std::vector<double> got(1);
      sum.copy_to(got);
      const lockstep_options cpu = on("cpu");
      std::vector<float> a(n), b(n), d(n);
      run(c, lockstep_transpose_packed(4, 512, 512), src->data(), a.data(), &cpu);
      run(c, stencil, a.data(), b.data(), &cpu);
      run(c, lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_XOR, 4, n, 32, 5), b.data(), d.data(), &cpu);
      EXPECT_EQ(got[0], square_sum<float>(c, d, &cpu));
    }
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    c.synchronize();
  }
  cudaStreamDestroy(stream);
}

// Two plans with different coefficients on two threads and streams at once: a
// __constant__ array that they shared would mix them up.
TEST_F(streams, different_coefficients_at_once) {
  constexpr int64_t n = 1 << 20;  // with six sweeps a call still runs when the next thread's coefficients come
  const auto src = data<float>(n);
  const int64_t shape[] = {n};
  for (int32_t v = 0; v < lockstep_variant_count("cuda", LOCKSTEP_STENCIL); ++v) {
    lockstep_variant_info info{};
    info.size = sizeof info;
    ASSERT_EQ(lockstep_variant_get("cuda", LOCKSTEP_STENCIL, v, &info), LOCKSTEP_OK);
    if ((info.flags & LOCKSTEP_OWN_ORDER) != 0 || (info.flags & LOCKSTEP_LIBRARY) != 0) continue;
    SCOPED_TRACE(info.name);
    std::atomic<int> wrong{0}, ran{0};
    context shared("cuda");
    const auto worker = [&](int id) {
      const double coefficients[] = {0.5 + id, 0.25 * (id + 1), -0.125 * id, 0.0625, 1.0 / (id + 3)};
      lockstep_stencil_desc d =
          lockstep_stencil_packed(LOCKSTEP_F32, 1, shape, 4, coefficients, LOCKSTEP_BOUNDARY_WRAP);
      d.form = LOCKSTEP_SYMMETRIC;
      d.coefficient_count = 5;
      d.sweeps = 6;
      std::vector<float> want(n), got(n);
      const lockstep_options cpu = on("cpu");
      if (try_run(shared, d, src.data(), want.data(), &cpu)) ++wrong;
      lockstep_options o = on("cuda");
      o.variant = info.name;
      buffer<float> in(shared, "cuda", LOCKSTEP_DEVICE, n), out(shared, "cuda", LOCKSTEP_DEVICE, n);
      in.assign(src);
      for (int i = 0; i < 20; ++i) {
        if (const failure f = try_run(shared, d, in.data(), out.data(), &o)) {
          if (f.status() != LOCKSTEP_UNSUPPORTED) ++wrong;
          return;
        }
        ++ran;
        out.copy_to(got);
        if (!same_bits(got, want)) ++wrong;
      }
    };
    std::vector<std::thread> threads;
    for (int id = 0; id < 4; ++id) threads.emplace_back(worker, id);
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
  }
}

// 50 repeats under two streams with noise in between give one pattern.
TEST_F(streams, repeats_give_one_pattern_whatever_runs_beside) {
  context c("cuda");
  constexpr int64_t n = 10000019;
  const auto src = data<float>(n);
  buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, n);
  in.assign(src);
  void* noise = nullptr;
  ASSERT_EQ(cudaMalloc(&noise, size_t{1} << 28), cudaSuccess);
  cudaStream_t a = nullptr, b = nullptr, beside = nullptr;
  for (cudaStream_t* s : {&a, &b, &beside}) ASSERT_EQ(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking), cudaSuccess);
  const lockstep_options cpu = on("cpu");
  for (const lockstep_reduction what : {LOCKSTEP_SUM, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_NORM2}) {
    const double want = reduce<double, float>(c, what, src, &cpu);
    const lockstep_reduce_desc d = lockstep_reduce_full(what, LOCKSTEP_F32, n, 1);
    buffer<double> sums(c, "cuda", LOCKSTEP_DEVICE, 100);
    for (int i = 0; i < 50; ++i) {
      cudaMemsetAsync(noise, i, (size_t{1} << 22) * static_cast<size_t>(1 + i % 60), beside);
      for (int k = 0; k < 2; ++k) {
        lockstep_options o = on("cuda");
        o.flags = LOCKSTEP_ASYNC;
        o.stream = k == 0 ? a : b;
        run(c, d, in.data(), sums.data() + 2 * i + k, &o);
      }
    }
    c.synchronize();
    std::vector<double> got(100);
    sums.copy_to(got);
    for (const double g : got) ASSERT_EQ(g, want);
  }
  cudaStreamSynchronize(beside);
  cudaFree(noise);
  for (cudaStream_t s : {a, b, beside}) cudaStreamDestroy(s);
}

TEST_F(streams, one_context_from_many_threads) {
  context c("cuda");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t id = 0; id < 8; ++id)
    threads.emplace_back([&, id] {
      const auto src = data<float>(40000 + 1000 * id, id + 1);
      const lockstep_options cpu = on("cpu"), cuda = on("cuda");
      double want = 0, got = 0;
      if (try_reduce<double, float>(c, LOCKSTEP_SUM_OF_SQUARES, src, want, &cpu)) ++wrong;
      for (int i = 0; i < 30; ++i) {
        if (try_reduce<double, float>(c, LOCKSTEP_SUM_OF_SQUARES, src, got, &cuda)) ++wrong;
        if (got != want) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace lockstep::gpu_test
