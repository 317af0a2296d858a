// memory.cpp - every kind of memory in any mix gives the CPU's bits; the caller's
// device stays current.
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
