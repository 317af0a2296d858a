// memory.cpp - every kind of memory in any mix gives the CPU's bits; the caller's
// device stays current.
#include <algorithm>
#include <array>

#include "gpu.hpp"

namespace lockstep::gpu_test {
namespace {

struct place {
  const char* name;
  const char* backend;
  lockstep_memory kind;
};
constexpr place places[] = {{"pageable", "cpu", LOCKSTEP_HOST},
                            {"pinned", "cuda", LOCKSTEP_PINNED},
                            {"managed", "cuda", LOCKSTEP_MANAGED},
                            {"device", "cuda", LOCKSTEP_DEVICE}};

class memory : public gpu {};

TEST_F(memory, any_mix_of_kinds_on_both_backends) {
  context c("auto");
  constexpr int64_t rows = 517, cols = 1031;
  const auto src = data<float>(rows * cols);
  std::vector<float> want(src.size());
  const lockstep_options cpu = on("cpu");
  transpose<float>(c, src, want, rows, cols, &cpu);
  const double want_sum = reduce<double, float>(c, LOCKSTEP_SUM, src, &cpu);
  for (const place& from : places)
    for (const place& to : places)
      for (const char* backend : {"cuda", "cpu", "auto"}) {
        SCOPED_TRACE(std::string(from.name) + " to " + to.name + " on " + backend);
        buffer<float> in(c, from.backend, from.kind, src.size()), out(c, to.backend, to.kind, src.size());
        buffer<double> sum(c, to.backend, to.kind, 1);
        failure(lockstep_copy(c.get(), "cuda", src.data(), in.data(), src.size() * 4)).raise();
        const lockstep_options o = on(backend);
        run(c, lockstep_transpose_packed(4, rows, cols), in.data(), out.data(), &o);
        std::vector<float> got(src.size());
        failure(lockstep_copy(c.get(), "cuda", out.data(), got.data(), got.size() * 4)).raise();
        EXPECT_TRUE(same_bits(got, want));
        run(c, lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, rows * cols, 1), in.data(), sum.data(), &o);
        double got_sum = 0;
        failure(lockstep_copy(c.get(), "cuda", sum.data(), &got_sum, 8)).raise();
        EXPECT_EQ(got_sum, want_sum);
      }
}

TEST_F(memory, normalize_takes_its_arrays_from_any_kind) {
  context c("auto");
  constexpr int64_t rows = 37, cols = 5000;
  const auto x = data<float>(rows * cols), residual = data<float>(rows * cols, 2), weight = data<float>(cols, 3);
  auto d = lockstep_normalize_rows(LOCKSTEP_NORMALIZE_LAYER, LOCKSTEP_F32, rows, cols, 1e-5);
  d.residual_stride = d.sum_stride = cols;
  std::vector<float> want(x.size()), want_sum(x.size()), got(x.size()), got_sum(x.size());
  d.residual = residual.data(), d.weight = weight.data(), d.sum = want_sum.data();
  const lockstep_options cpu = on("cpu");
  run(c, d, x.data(), want.data(), &cpu);
  const auto fetch = [&](const buffer<float>& from, std::vector<float>& to) {
    failure(lockstep_copy(c.get(), "cuda", from.data(), to.data(), to.size() * 4)).raise();
  };
  const auto filled = [&](const place& at, const std::vector<float>& with) {
    buffer<float> b(c, at.backend, at.kind, with.size());
    failure(lockstep_copy(c.get(), "cuda", with.data(), b.data(), with.size() * 4)).raise();
    return b;
  };
  for (size_t k = 0; k < std::size(places); ++k)
    for (const char* backend : {"cuda", "cpu", "auto"})
      for (const char* sum_in : {"its own", "src", "residual"}) {
        const auto at = [&](size_t i) -> const place& { return places[(k + i) % std::size(places)]; };
        SCOPED_TRACE(std::string("src ") + at(0).name + ", residual " + at(1).name + ", sum in " + sum_in + ", on " +
                     backend);
        const auto src = filled(at(0), x), more = filled(at(1), residual), w = filled(at(2), weight);
        const buffer<float> out(c, at(3).backend, at(3).kind, x.size()), own(c, at(2).backend, at(2).kind, x.size());
        const std::string where = sum_in;
        const buffer<float>& sum = where == "src" ? src : where == "residual" ? more : own;
        d.residual = more.data(), d.weight = w.data(), d.sum = sum.data();
        const lockstep_options o = on(backend);
        run(c, d, src.data(), out.data(), &o);
        fetch(out, got);
        fetch(sum, got_sum);
        EXPECT_TRUE(same_bits(got, want));
        EXPECT_TRUE(same_bits(got_sum, want_sum));
      }
}

TEST_F(memory, auto_follows_the_data_and_says_so) {
  context c("auto");
  const auto src = data<float>(1 << 20);
  buffer<float> in(c, "cuda", LOCKSTEP_DEVICE, src.size());
  in.assign(src);
  double sum = 0;
  run(c, lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, 1 << 20, 1), in.data(), &sum);
  EXPECT_STREQ(last_run().backend, "cuda");
  run(c, lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, 1 << 20, 1), src.data(), &sum);
  EXPECT_STREQ(last_run().backend, "cpu");
  EXPECT_NE(std::string(last_run().why).find("cuda: "), std::string::npos);
}

TEST_F(memory, padded_destination_in_host_memory_keeps_its_gaps) {
  context c("cuda");
  constexpr int64_t rows = 33, cols = 65, src_ld = 70, dst_ld = 40;
  const auto src = data<float>(rows * src_ld);
  std::vector<float> got(cols * dst_ld, -7.0f);
  lockstep_transpose_desc d = lockstep_transpose_packed(4, rows, cols);
  d.src_ld = src_ld, d.dst_ld = dst_ld;
  run(c, d, src.data(), got.data());
  for (int64_t j = 0; j < cols; ++j)
    for (int64_t i = 0; i < dst_ld && j * dst_ld + i < (cols - 1) * dst_ld + rows; ++i)
      ASSERT_EQ(got[static_cast<size_t>(j * dst_ld + i)], i < rows ? src[static_cast<size_t>(i * src_ld + j)] : -7.0f);
}

// Host arrays beyond two slabs (32 MiB) are uploaded, computed and downloaded in
// parts at once: the same bits, from pageable and from pinned memory.
TEST_F(memory, large_host_arrays_go_slab_by_slab) {
  context c("cuda");
  constexpr int64_t n = 40000037 / 32 * 32;  // 160 MB
  const auto src = data<float>(n);
  buffer<float> pinned_src(c, "cuda", LOCKSTEP_PINNED, n), pinned_dst(c, "cuda", LOCKSTEP_PINNED, n);
  std::copy(src.begin(), src.end(), pinned_src.data());
  std::vector<float> want(n), got(n);
  const lockstep_options cpu = on("cpu"), cuda = on("cuda");
  const auto both = [&](const std::string& name, const auto& d) {
    SCOPED_TRACE(name);
    std::fill(want.begin(), want.end(), -3.0f);
    std::fill(got.begin(), got.end(), -3.0f);
    std::fill_n(pinned_dst.data(), n, -3.0f);
    run(c, d, src.data(), want.data(), &cpu);
    run(c, d, src.data(), got.data(), &cuda);
    EXPECT_TRUE(same_bits(got, want)) << "pageable";
    EXPECT_GT(last_run().staged_bytes, 0u);
    run(c, d, pinned_src.data(), pinned_dst.data(), &cuda);
    EXPECT_EQ(std::memcmp(pinned_dst.data(), want.data(), static_cast<size_t>(n) * 4), 0) << "pinned";
  };
  both("transpose 8001x4999", lockstep_transpose_packed(4, 8001, 4999));
  both("transpose 8000x5000, rows of whole 16 bytes", lockstep_transpose_packed(4, 8000, 5000));
  lockstep_transpose_desc padded = lockstep_transpose_packed(4, 6000, 5000);
  padded.src_ld = 5003, padded.dst_ld = 6007;
  both("transpose with leading dimensions", padded);
  lockstep_transpose_desc batch = lockstep_transpose_packed(4, 300, 500);
  batch.batch = 250, batch.src_batch_stride = batch.dst_batch_stride = 150000;
  both("transpose in batches", batch);
  const int64_t shape[] = {64, 71, 90, 97};
  for (const auto& perm : {std::array<int32_t, 4>{0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 3, 2}, {2, 3, 0, 1}})
    both("permute", lockstep_permute_packed(4, 4, shape, perm.data()));
  both("shuffle", lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_UP, 4, n, 16, 3));
  const double star[] = {0.5, 0.25, -0.125, 0.0625};
  const int64_t line[] = {n - 5}, plane[] = {6000, 6001}, cube[] = {341, 342, 340};
  for (const lockstep_boundary b : {LOCKSTEP_BOUNDARY_NEAREST, LOCKSTEP_BOUNDARY_MIRROR, LOCKSTEP_BOUNDARY_REFLECT,
                                    LOCKSTEP_BOUNDARY_WRAP, LOCKSTEP_BOUNDARY_CONSTANT, LOCKSTEP_BOUNDARY_VALID})
    for (int rank = 1; rank <= 3; ++rank) {
      const int64_t* sizes = rank == 1 ? line : rank == 2 ? plane : cube;
      const int radius = rank == 1 ? 3 : 1;
      lockstep_stencil_desc d = lockstep_stencil_packed(LOCKSTEP_F32, rank, sizes, radius, star, b);
      d.form = LOCKSTEP_SYMMETRIC;
      d.coefficient_count = radius * rank + 1;
      d.value = 2.5;
      both("stencil rank " + std::to_string(rank) + " boundary " + std::to_string(b), d);
      d.sweeps = 3;
      if (b == LOCKSTEP_BOUNDARY_VALID)
        for (int64_t k = rank - 1, stride = 1; k >= 0; --k)
          d.dst_strides[k] = stride, stride *= sizes[k] - 2 * radius * 3;
      both("three sweeps of it", d);
    }
}

TEST_F(memory, the_callers_memory_page_locked) {
  context c("auto");
  constexpr int64_t rows = 4099, cols = 3001;  // slabs of it begin within pages
  const auto src = data<float>(rows * cols);
  std::vector<float> in(src.begin(), src.end()), got(src.size()), want(src.size());
  const lockstep_options cpu = on("cpu"), gpu = on("cuda");
  transpose<float>(c, src, want, rows, cols, &cpu);
  const auto kind_of = [](const void* p) {
    cudaPointerAttributes attributes{};
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, p), cudaSuccess);
    return attributes.type;
  };
  {
    const page_lock from(c, "cuda", std::span(in)), to(c, "cuda", std::span(got).subspan(1));
    EXPECT_EQ(kind_of(in.data()), cudaMemoryTypeHost);
    EXPECT_EQ(kind_of(got.data() + 1), cudaMemoryTypeHost);
    transpose<float>(c, std::span<const float>(in), std::span<float>(got), rows, cols, &gpu);
    EXPECT_TRUE(same_bits(got, want));
    EXPECT_EQ(lockstep_pin(c.get(), "cuda", in.data(), in.size() * 4), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_EQ(lockstep_unpin(c.get(), "cuda", in.data() + 1), LOCKSTEP_INVALID_ARGUMENT);
  }
  EXPECT_EQ(kind_of(in.data()), cudaMemoryTypeUnregistered);
  std::fill(got.begin(), got.end(), 0.0F);
  transpose<float>(c, std::span<const float>(in), std::span<float>(got), rows, cols, &gpu);  // works as before
  EXPECT_TRUE(same_bits(got, want));
}

TEST_F(memory, callers_device_stays_current) {
  int before = -1, after = -1;
  ASSERT_EQ(cudaGetDevice(&before), cudaSuccess);
  context c("cuda");
  const auto src = data<double>(5000);
  (void)square_sum<double>(c, src);
  ASSERT_EQ(cudaGetDevice(&after), cudaSuccess);
  EXPECT_EQ(before, after);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

}  // namespace
}  // namespace lockstep::gpu_test
