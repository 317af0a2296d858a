// streams.cpp - the caller's streams, asynchronous calls, graphs, several threads,
// __constant__ slots; and one pattern of bits whatever runs beside.
#include <algorithm>
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

// Work before, ours, work after, all on one default stream: nothing in between waits on the host. The kernels before
// take long enough that ours would read too early on a stream of its own.
TEST_F(streams, the_default_streams_have_names) {
  constexpr size_t n = 1 << 22;
  const auto src = data<float>(n);
  std::vector<float> want(n), got(n);
  context host("cpu");
  transpose<float>(host, src, want, 2048, 2048);
  for (void* stream : {LOCKSTEP_STREAM_LEGACY, LOCKSTEP_STREAM_PER_THREAD}) {
    const auto cuda = static_cast<cudaStream_t>(stream);
    const auto one_round = [&] {
      context c("cuda");
      lockstep_options o = on("cuda");
      o.flags = LOCKSTEP_ASYNC;
      o.stream = stream;
      buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, n), out(c, "cuda", LOCKSTEP_DEVICE, n);
      float *pinned = nullptr, *back = nullptr;
      ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), n * 4), cudaSuccess);
      ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&back), n * 4), cudaSuccess);
      std::memcpy(pinned, src.data(), n * 4);
      for (int repeat = 0; repeat < 20; ++repeat) {
        ASSERT_EQ(cudaMemsetAsync(in.data(), 0xFF, n * 4, cuda), cudaSuccess);
        ASSERT_EQ(cudaMemcpyAsync(in.data(), pinned, n * 4, cudaMemcpyHostToDevice, cuda), cudaSuccess);
        run(c, lockstep_transpose_packed(4, 2048, 2048), in.data(), out.data(), &o);
        ASSERT_EQ(cudaMemcpyAsync(back, out.data(), n * 4, cudaMemcpyDeviceToHost, cuda), cudaSuccess);
        ASSERT_EQ(cudaStreamSynchronize(cuda), cudaSuccess);
        EXPECT_EQ(std::memcmp(back, want.data(), n * 4), 0) << "stream " << stream << ", repeat " << repeat;
      }
      c.synchronize();
      EXPECT_FALSE(c.try_release_stream("cuda", stream));
      cudaFreeHost(pinned);
      cudaFreeHost(back);
    };
    one_round();
    std::thread(one_round).join();  // whose per-thread stream is another
  }
}

// A queue for each stream that ever called would be device memory lost: 300 streams, given back.
TEST_F(streams, what_is_kept_for_a_stream_is_given_back) {
  context c("cuda");
  constexpr size_t n = 1 << 16;
  buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, n), out(c, "cuda", LOCKSTEP_DEVICE, n);
  in.assign(data<float>(n));
  lockstep_options o = on("cuda");
  o.flags = LOCKSTEP_ASYNC;
  size_t before = 0, after = 0, total = 0;
  for (int i = 0; i < 300; ++i) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    o.stream = stream;
    run(c, lockstep_transpose_packed(4, 256, 256), in.data(), out.data(), &o);
    ASSERT_FALSE(c.try_release_stream("cuda", stream));
    ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    if (i == 100) ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  }
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_LE(before - std::min(before, after), size_t{8} << 20) << "device memory grew";
}

// A stream that was destroyed with work that lockstep has not waited for: the context goes without touching it.
TEST_F(streams, a_stream_that_is_gone_is_never_waited_for) {
  constexpr size_t n = 1 << 20;
  for (int i = 0; i < 10; ++i) {
    context c("cuda");
    buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, n), out(c, "cuda", LOCKSTEP_DEVICE, n);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    lockstep_options o = on("cuda");
    o.flags = LOCKSTEP_ASYNC;
    o.stream = stream;
    run(c, lockstep_transpose_packed(4, 1024, 1024), in.data(), out.data(), &o);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

// Every op that needs no host copy can be captured once and replayed.
TEST_F(streams, plans_can_be_captured_in_a_graph) {
  context c("cuda");
  constexpr int64_t n = 1 << 18;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const auto first = data<float>(n, 1), second = data<float>(n, 2);
  const double coefficients[] = {-0.5, 0.25, 0.125, 0.0625, 0.03125};
  const int64_t line[] = {n}, cube[] = {64, 32, 128};
  const int32_t perm[] = {2, 1, 0};
  lockstep_stencil_desc stencil =
      lockstep_stencil_packed(LOCKSTEP_F32, 1, line, 4, coefficients, LOCKSTEP_BOUNDARY_MIRROR);
  stencil.form = LOCKSTEP_SYMMETRIC;
  stencil.coefficient_count = 5;
  const lockstep_transpose_desc turned = lockstep_transpose_packed(4, 512, 512);
  const lockstep_permute_desc permuted = lockstep_permute_packed(4, 3, cube, perm);
  const lockstep_shuffle_desc shuffled = lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_XOR, 4, n, 32, 5);
  const std::vector<int64_t> offsets = {0, 3, 3, 100000, 100040, n};
  buffer<int64_t> device_offsets(c, "cuda", LOCKSTEP_DEVICE, offsets.size());
  device_offsets.assign(offsets);
  const lockstep_reduce_desc squares = lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, n, 1),
                             columns = lockstep_reduce_columns(LOCKSTEP_SUM, LOCKSTEP_F32, 4096, 64, 64),
                             of_host = lockstep_reduce_segments(LOCKSTEP_SUM, LOCKSTEP_F32, 5, offsets.data()),
                             segments = lockstep_reduce_segments(LOCKSTEP_SUM, LOCKSTEP_F32, 5, device_offsets.data());
  constexpr int64_t results = 1 + 64 + 5;
  lockstep_options o = on("cuda");
  o.flags = LOCKSTEP_DEVICE_DATA;
  plan transpose_plan(c, turned, &o), permute_plan(c, permuted, &o), stencil_plan(c, stencil, &o),
      shuffle_plan(c, shuffled, &o), squares_plan(c, squares, &o), columns_plan(c, columns, &o),
      segments_plan(c, segments, &o);
  {
    buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, n), a(c, "cuda", LOCKSTEP_DEVICE, n), b(c, "cuda", LOCKSTEP_DEVICE, n);
    buffer<double> out(c, "cuda", LOCKSTEP_DEVICE, results);
    in.assign(first);
    lockstep_options run_on = lockstep_options_defaults();
    run_on.flags = LOCKSTEP_ASYNC;
    run_on.stream = stream;
    const auto all = [&] {
      transpose_plan.execute(in.data(), a.data(), &run_on);
      permute_plan.execute(a.data(), b.data(), &run_on);
      stencil_plan.execute(b.data(), a.data(), &run_on);
      shuffle_plan.execute(a.data(), b.data(), &run_on);
      squares_plan.execute(b.data(), out.data(), &run_on);
      columns_plan.execute(b.data(), out.data() + 1, &run_on);
      segments_plan.execute(b.data(), out.data() + 65, &run_on);
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
      std::vector<double> got(results), want(results);
      out.copy_to(got);
      const lockstep_options cpu = on("cpu");
      std::vector<float> x(n), y(n);
      run(c, turned, src->data(), x.data(), &cpu);
      run(c, permuted, x.data(), y.data(), &cpu);
      run(c, stencil, y.data(), x.data(), &cpu);
      run(c, shuffled, x.data(), y.data(), &cpu);
      run(c, squares, y.data(), want.data(), &cpu);
      run(c, columns, y.data(), want.data() + 1, &cpu);
      run(c, of_host, y.data(), want.data() + 65, &cpu);
      EXPECT_TRUE(same_bits(got, want));
    }
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    c.synchronize();
  }
  cudaStreamDestroy(stream);
}

// Plans with different coefficients on four threads and streams at once: a
// __constant__ array that they shared would mix them up. Every variant for one axis runs;
// one of an order of its own is held against itself alone.
TEST_F(streams, different_coefficients_at_once) {
  constexpr int64_t n = 1 << 20;  // with six sweeps a call still runs when the next thread's coefficients come
  constexpr int threads = 4, repeats = 20;
  const auto src = data<float>(n);
  double coefficients[threads][5];
  const auto described = [&](int id) {
    lockstep_stencil_desc d = lockstep_stencil_packed(LOCKSTEP_F32, 1, &n, 4, coefficients[id], LOCKSTEP_BOUNDARY_WRAP);
    d.form = LOCKSTEP_SYMMETRIC;
    d.coefficient_count = 5;
    d.sweeps = 6;
    return d;
  };
  for (int id = 0; id < threads; ++id) {
    const double own[] = {0.5 + id, 0.25 * (id + 1), -0.125 * id, 0.0625, 1.0 / (id + 3)};
    std::copy(std::begin(own), std::end(own), coefficients[id]);
  }
  for (int32_t v = 0; v < lockstep_variant_count("cuda", LOCKSTEP_STENCIL); ++v) {
    lockstep_variant_info info{};
    info.size = sizeof info;
    ASSERT_EQ(lockstep_variant_get("cuda", LOCKSTEP_STENCIL, v, &info), LOCKSTEP_OK);
    SCOPED_TRACE(info.name);
    const std::string name = info.name;
    // For short rows; for two axes and three; for three.
    const bool takes_it = name != "planes" && name != "streamed" && name != "sweeps_streamed" &&
                          name != "sweeps_planes" && name != "marched";
    std::atomic<int> wrong{0}, ran{0};
    context shared("cuda");
    const lockstep_options cpu = on("cpu");
    lockstep_options forced = on("cuda");
    forced.variant = info.name;
    if (!takes_it) {
      std::vector<float> got(n);
      EXPECT_EQ(try_run(shared, described(0), src.data(), got.data(), &forced).status(), LOCKSTEP_UNSUPPORTED);
      continue;
    }
    std::vector<std::vector<float>> want(threads, std::vector<float>(n));
    for (int id = 0; id < threads; ++id)
      run(shared, described(id), src.data(), want[static_cast<size_t>(id)].data(),
          (info.flags & LOCKSTEP_OWN_ORDER) != 0 ? &forced : &cpu);
    const auto worker = [&](int id) {
      const lockstep_stencil_desc d = described(id);
      std::vector<float> got(n);
      buffer<float> in(shared, "cuda", LOCKSTEP_DEVICE, n), out(shared, "cuda", LOCKSTEP_DEVICE, n);
      in.assign(src);
      for (int i = 0; i < repeats; ++i) {
        if (!try_run(shared, d, in.data(), out.data(), &forced)) ++ran;
        out.copy_to(got);
        if (!same_bits(got, want[static_cast<size_t>(id)])) ++wrong;
      }
    };
    std::vector<std::thread> all;
    for (int id = 0; id < threads; ++id) all.emplace_back(worker, id);
    for (std::thread& t : all) t.join();
    EXPECT_EQ(ran, threads * repeats);
    EXPECT_EQ(wrong, 0);
  }
}

// 50 repeats on two streams, with kernels of a third one beside them, give one pattern.
TEST_F(streams, repeats_give_one_pattern_whatever_runs_beside) {
  context c("cuda");
  constexpr int64_t n = 10000019, side = 3162, noise_side = 3000;
  const auto src = data<float>(n);
  // Short segments and long ones: atomics make a list of these, in any order.
  std::vector<int64_t> offsets = {0};
  for (int64_t s = 0; offsets.back() < n; ++s)
    offsets.push_back(std::min(n, offsets.back() + (s % 8 == 0 ? 70000 + s : 11 * (s % 8))));
  const auto segments = static_cast<int64_t>(offsets.size()) - 1;
  buffer<int64_t> device_offsets(c, "cuda", LOCKSTEP_DEVICE, offsets.size());
  device_offsets.assign(offsets);
  buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, n), noise(c, "cuda", LOCKSTEP_DEVICE, noise_side * noise_side);
  buffer<double> noise_sums(c, "cuda", LOCKSTEP_DEVICE, noise_side);
  in.assign(src);
  cudaStream_t a = nullptr, b = nullptr, beside = nullptr;
  for (cudaStream_t* s : {&a, &b, &beside}) ASSERT_EQ(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking), cudaSuccess);
  const auto asynchronous = [](cudaStream_t stream) {
    lockstep_options o = on("cuda");
    o.flags = LOCKSTEP_ASYNC;
    o.stream = stream;
    return o;
  };
  const auto make_noise = [&](int i) {
    const lockstep_options o = asynchronous(beside);
    for (int k = 0; k <= i % 3; ++k) {
      run(c, lockstep_transpose_packed(4, noise_side, noise_side), in.data(), noise.data(), &o);
      run(c, lockstep_reduce_columns(LOCKSTEP_SUM, LOCKSTEP_F32, noise_side - i, noise_side, noise_side), noise.data(),
          noise_sums.data(), &o);
    }
  };
  const lockstep_dtype f32 = LOCKSTEP_F32;
  const std::pair<const char*, lockstep_reduce_desc> all[] = {
      {"sum", lockstep_reduce_full(LOCKSTEP_SUM, f32, n, 1)},
      {"squares", lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, f32, n, 1)},
      {"norm", lockstep_reduce_full(LOCKSTEP_NORM2, f32, n, 1)},
      {"argmax", lockstep_reduce_full(LOCKSTEP_ARGMAX, f32, n, 1)},
      {"rows", lockstep_reduce_rows(LOCKSTEP_SUM, f32, side, side, side)},
      {"few long rows", lockstep_reduce_rows(LOCKSTEP_SUM, f32, 5, n / 5, n / 5)},
      {"short rows", lockstep_reduce_rows(LOCKSTEP_SUM, f32, n / 32, 32, 32)},
      {"argmax of rows", lockstep_reduce_rows(LOCKSTEP_ARGMAX, f32, side, side, side)},
      {"argmax of short rows", lockstep_reduce_rows(LOCKSTEP_ARGMAX, f32, n / 31, 31, 31)},
      {"columns", lockstep_reduce_columns(LOCKSTEP_SUM, f32, side, side, side)},
      {"few columns", lockstep_reduce_columns(LOCKSTEP_SUM_OF_SQUARES, f32, n / 4, 4, 4)},
      {"segments", lockstep_reduce_segments(LOCKSTEP_SUM, f32, segments, offsets.data())},
      {"argmax of segments", lockstep_reduce_segments(LOCKSTEP_ARGMAX, f32, segments, offsets.data())},
  };
  const lockstep_options cpu = on("cpu");
  for (const auto& [name, of_host] : all) {
    SCOPED_TRACE(name);
    lockstep_reduce_desc d = of_host;
    if (d.offsets != nullptr) d.offsets = device_offsets.data();
    const auto results = static_cast<size_t>(d.count);
    std::vector<int64_t> want(results), got(100 * results);  // results have 8 bytes
    run(c, of_host, src.data(), want.data(), &cpu);
    buffer<int64_t> out(c, "cuda", LOCKSTEP_DEVICE, got.size());
    for (int i = 0; i < 50; ++i) {
      make_noise(i);
      for (size_t k = 0; k < 2; ++k) {
        const lockstep_options o = asynchronous(k == 0 ? a : b);
        run(c, d, in.data(), out.data() + (2 * static_cast<size_t>(i) + k) * results, &o);
      }
    }
    c.synchronize();
    out.copy_to(got);
    for (size_t i = 0; i < 100; ++i)
      ASSERT_EQ(std::memcmp(got.data() + i * results, want.data(), results * 8), 0) << "repeat " << i;
  }
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
