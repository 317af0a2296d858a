// ranks_gpus.cpp - a transpose and a sum over two GPUs of this process, through ranks.hpp. Each GPU holds half of the
// rows; the bits are those of one GPU, or of the CPU. Exits with 77 where there are fewer than two GPUs.
#include <cstdio>
#include <lockstep/ranks.hpp>
#include <string>
#include <utility>
#include <vector>

namespace {

// Memory of a GPU.
class block {
 public:
  block(lockstep::context& context, std::string gpu, std::int64_t floats)
      : context_(context), gpu_(std::move(gpu)), bytes_(static_cast<std::size_t>(floats) * sizeof(float)) {
    lockstep::failure(lockstep_alloc(context_.get(), gpu_.c_str(), LOCKSTEP_DEVICE, bytes_, &data_)).raise();
  }
  block(block&& other) noexcept
      : context_(other.context_), gpu_(other.gpu_), bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}
  block(const block&) = delete;
  block& operator=(const block&) = delete;
  ~block() { static_cast<void>(lockstep_free(context_.get(), gpu_.c_str(), LOCKSTEP_DEVICE, bytes_, data_)); }

  [[nodiscard]] float* data() const { return static_cast<float*>(data_); }
  void write(const float* from) const {
    lockstep::failure(lockstep_copy(context_.get(), gpu_.c_str(), from, data_, bytes_)).raise();
  }
  void read(float* to) const {
    lockstep::failure(lockstep_copy(context_.get(), gpu_.c_str(), data_, to, bytes_)).raise();
  }

 private:
  lockstep::context& context_;
  std::string gpu_;
  std::size_t bytes_;
  void* data_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) try {
  const std::string gpus[] = {argc > 2 ? argv[1] : "cuda:0", argc > 2 ? argv[2] : "cuda:1"};
  constexpr std::int64_t rows = 3000, columns = 2000;
  std::vector<float> array(rows * columns), turned(array.size()), alone(array.size());
  for (std::size_t i = 0; i < array.size(); ++i) array[i] = 1.0f / static_cast<float>(i + 1);

  lockstep::context context("cpu");
  for (const std::string& gpu : gpus)
    if (lockstep_context_set_backend(context.get(), gpu.c_str()) != LOCKSTEP_OK) {
      std::printf("skipped: %s\n", lockstep_last_error());
      return 77;
    }
  lockstep::failure(lockstep_context_set_backend(context.get(), "cpu")).raise();
  const char* names[] = {gpus[0].c_str(), gpus[1].c_str()};
  lockstep_comm_options options = lockstep_comm_defaults();
  options.seats = 2;
  options.backends = names;
  lockstep::ranks::comm comm(context, options);

  const lockstep::ranks::grid<float> halves({rows, columns}, {2, 1}), turned_halves({columns, rows}, {2, 1});
  std::vector<block> from, to;
  std::vector<lockstep_part> src, dst, sums;
  double sum[2] = {};
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    from.emplace_back(context, gpus[rank], halves.of(rank).elements);
    to.emplace_back(context, gpus[rank], turned_halves.of(rank).elements);
    from.back().write(array.data() + halves.of(rank).low[0] * columns);
    src.push_back(halves.packed(rank, from.back().data()));
    dst.push_back(turned_halves.packed(rank, to.back().data()));
    const std::int64_t one = 1;
    sums.push_back(lockstep_part_packed(&sum[rank], 1, &one));
  }
  lockstep::ranks::permute(comm, halves, {1, 0}, turned_halves).execute(src.data(), dst.data());
  lockstep_ranks_plan* made = nullptr;  // all axes; each rank gets the sum, in host memory
  const lockstep_grid grid = halves.get();
  lockstep::failure(
      lockstep_ranks_reduce(comm.get(), &grid, LOCKSTEP_SUM, LOCKSTEP_F32, LOCKSTEP_F64, 3, nullptr, nullptr, &made))
      .raise();
  lockstep::ranks::plan(made).execute(src.data(), sums.data());
  for (std::int32_t rank = 0; rank < 2; ++rank)
    to[static_cast<std::size_t>(rank)].read(turned.data() + turned_halves.of(rank).low[0] * rows);

  double sum_alone = 0;
  lockstep::run(context, lockstep_transpose_packed(sizeof(float), rows, columns), array.data(), alone.data());
  lockstep_reduce_desc all = lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, rows * columns, 1);
  all.result = LOCKSTEP_F64;
  lockstep::run(context, all, array.data(), &sum_alone);
  const bool same = turned == alone && sum[0] == sum_alone && sum[1] == sum_alone;
  std::printf("%s and %s by %s: %s\n", names[0], names[1], comm.info().data,
              same ? "the same bits as alone" : "other bits");
  return same ? 0 : 1;
} catch (const lockstep::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
