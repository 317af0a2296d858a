// big.cpp - the public calls over more than 2^31 and 2^32 elements, where 32-bit
// indices, products and grid-stride increments break. Inputs are sparse mappings
// (all zero but a few elements); outputs repeat one 64 MiB file over their whole
// range, but for private windows around the elements that are looked at, so that
// 17 GB of address space needs a few hundred MB of memory (VmRSS counts the file
// once a mapping and reads 8 GB).
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>

#include "check.hpp"
#include "context_of.hpp"

namespace lockstep::check {
namespace {

constexpr size_t chunk = size_t{64} << 20;
constexpr int64_t two31 = int64_t{1} << 31, two32 = int64_t{1} << 32;

// Whether memory that is only read shares one huge page of zeros.
bool zeros_are_huge() {
  std::ifstream told("/sys/kernel/mm/transparent_hugepage/use_zero_page");
  int yes = 0;
  return told >> yes && yes == 1;
}

class mapping {
 public:
  explicit mapping(size_t bytes) : bytes_((bytes + chunk - 1) / chunk * chunk) {
    base_ = static_cast<unsigned char*>(
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (base_ == MAP_FAILED) throw std::runtime_error("mmap failed");
    // Faults by 4 KiB take most of the time. A written element costs 2 MiB then, of which there are few.
    madvise(base_, bytes_, zeros_are_huge() ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  }
  ~mapping() { munmap(base_, bytes_); }
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(base_);
  }
  size_t bytes() const { return bytes_; }

 protected:
  unsigned char* base_ = nullptr;
  size_t bytes_ = 0;
};

// An output whose chunks are all the same memory, except those around `seen`.
class folded_output : public mapping {
 public:
  folded_output(size_t bytes, size_t element_bytes, const std::vector<int64_t>& seen) : mapping(bytes) {
    for (const int64_t element : seen) windows_.insert(static_cast<size_t>(element) * element_bytes / window);
    file_ = memfd_create("lockstep-big", MFD_CLOEXEC);
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(chunk)) != 0) throw std::runtime_error("memfd failed");
    for (size_t at = 0; at < bytes_; at += chunk) {
      if (mmap(base_ + at, chunk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, 0) == MAP_FAILED)
        throw std::runtime_error("mmap failed");
    }
    for (const size_t w : windows_)
      if (mmap(base_ + w * window, window, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
          MAP_FAILED)
        throw std::runtime_error("mmap failed");
    shared_ = static_cast<unsigned char*>(mmap(nullptr, chunk, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
    std::memset(shared_, 0xA5, chunk);
    for (const size_t w : windows_) std::memset(base_ + w * window, 0xA5, window);
  }
  ~folded_output() {
    munmap(shared_, chunk);
    close(file_);
  }
  // Every element outside the windows became zero (each place was written by the
  // last of the ranges folded onto it), and inside only those of `seen` did not.
  void expect_zero_but(size_t used, size_t element_bytes, const std::vector<int64_t>& seen) const {
    EXPECT_TRUE(std::all_of(shared_, shared_ + chunk, [](unsigned char b) { return b == 0; }))
        << "some element was never written";
    for (const size_t w : windows_) {
      size_t strange = 0;
      for (size_t at = w * window; at < std::min((w + 1) * window, used); at += element_bytes) {
        const auto element = static_cast<int64_t>(at / element_bytes);
        const bool zero = std::all_of(base_ + at, base_ + at + element_bytes, [](unsigned char b) { return b == 0; });
        if (!zero && std::find(seen.begin(), seen.end(), element) == seen.end()) ++strange;
      }
      EXPECT_EQ(strange, 0u) << "elements that should be zero, in the window at byte " << w * window;
    }
  }

 private:
  static constexpr size_t window = size_t{1} << 20;
  std::set<size_t> windows_;
  int file_ = -1;
  unsigned char* shared_ = nullptr;
};

class Big : public testing::Test {
 protected:
  const cases::context_of own{"cpu"};
  lockstep_context* const context = own.self;
};
#define OK(call) ASSERT_EQ(call, LOCKSTEP_OK) << lockstep_last_error()

TEST_F(Big, TransposeMoreThan2To32Elements) {
  const int64_t rows = 65600, cols = 65700;
  const std::pair<int64_t, int64_t> places[] = {{0, 0},         {0, cols - 1},  {rows - 1, 0}, {rows - 1, cols - 1},
                                                {32768, 65535}, {65535, 32769}, {65536, 65536}};
  const mapping src(static_cast<size_t>(rows * cols));
  std::vector<int64_t> seen;
  for (const auto& [i, j] : places) {
    src.as<uint8_t>()[i * cols + j] = static_cast<uint8_t>(1 + seen.size());
    seen.push_back(j * rows + i);
  }
  const folded_output dst(static_cast<size_t>(rows * cols), 1, seen);
  const auto d = lockstep_transpose_packed(1, rows, cols);
  OK(lockstep_transpose(context, &d, src.as<uint8_t>(), dst.as<uint8_t>(), nullptr));
  for (size_t k = 0; k < seen.size(); ++k) EXPECT_EQ(dst.as<uint8_t>()[seen[k]], k + 1) << seen[k];
  dst.expect_zero_but(static_cast<size_t>(rows * cols), 1, seen);
}

TEST_F(Big, TransposeWithLeadingDimensionsBeyond2To32) {
  for (const size_t bytes : {size_t{1}, size_t{2}, size_t{4}, size_t{8}, size_t{16}}) {
    auto d = lockstep_transpose_packed(bytes, 3, 5);
    d.src_ld = two32 / static_cast<int64_t>(bytes) + 77;
    d.dst_ld = two31 / static_cast<int64_t>(bytes) + 99;
    const mapping src(static_cast<size_t>(3 * d.src_ld) * bytes), dst(static_cast<size_t>(5 * d.dst_ld) * bytes);
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 5; ++j)
        src.as<uint8_t>()[static_cast<size_t>(i * d.src_ld + j) * bytes] = static_cast<uint8_t>(1 + i * 5 + j);
    OK(lockstep_transpose(context, &d, src.as<void>(), dst.as<void>(), nullptr));
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 5; ++j)
        EXPECT_EQ(dst.as<uint8_t>()[static_cast<size_t>(j * d.dst_ld + i) * bytes], 1 + i * 5 + j);
  }
}

TEST_F(Big, PermuteMoreThan2To32Elements) {
  const int64_t shape[] = {3, 36000, 40000};
  const int32_t perm[] = {0, 2, 1};
  const int64_t n = shape[0] * shape[1] * shape[2];
  const mapping src(static_cast<size_t>(n));
  std::vector<int64_t> seen;
  for (const int64_t i : {0, 1, 2})
    for (const int64_t j : {0, 12345, 35999})
      for (const int64_t k : {0, 33333, 39999}) {
        src.as<uint8_t>()[(i * shape[1] + j) * shape[2] + k] = static_cast<uint8_t>(1 + seen.size());
        seen.push_back((i * shape[2] + k) * shape[1] + j);
      }
  const folded_output dst(static_cast<size_t>(n), 1, seen);
  const auto d = lockstep_permute_packed(1, 3, shape, perm);
  OK(lockstep_permute(context, &d, src.as<void>(), dst.as<void>(), nullptr));
  for (size_t k = 0; k < seen.size(); ++k) EXPECT_EQ(dst.as<uint8_t>()[seen[k]], k + 1) << seen[k];
  dst.expect_zero_but(static_cast<size_t>(n), 1, seen);
}

TEST_F(Big, ReduceMoreThan2To32Elements) {
  const int64_t n = two32 + 77;
  const mapping src(static_cast<size_t>(n) * 4);
  int32_t* x = src.as<int32_t>();
  const std::pair<int64_t, int32_t> set[] = {{0, 5},          {two31 - 1, -7},  {two31, 1 << 30},
                                             {two32 - 1, 11}, {two32, 1 << 30}, {n - 1, -(1 << 30) - 1}};
  int64_t sum = 0;
  for (const auto& [at, v] : set) {
    x[at] = v;
    sum += v;
  }
  const auto one = [&](lockstep_reduction what) {
    int64_t got = -1;
    const auto d = lockstep_reduce_full(what, LOCKSTEP_I32, n, 1);
    EXPECT_EQ((what == LOCKSTEP_SUM_OF_SQUARES ? lockstep_square_sum : lockstep_reduce)(context, &d, x, &got, nullptr),
              LOCKSTEP_OK)
        << lockstep_last_error();
    return got;
  };
  EXPECT_EQ(one(LOCKSTEP_SUM), sum);
  EXPECT_EQ(one(LOCKSTEP_ARGMAX), two31);  // the first of two
  EXPECT_EQ(one(LOCKSTEP_ARGMIN), n - 1);
  EXPECT_EQ(one(LOCKSTEP_SUM_OF_SQUARES),
            25 + 49 + (int64_t{1} << 60) * 2 + 121 + ((int64_t{1} << 30) + 1) * ((int64_t{1} << 30) + 1));

  // Segments whose offsets lie beyond 2^32, one empty.
  const int64_t offsets[] = {3, two31 + 5, two31 + 5, two32 - 1, n};
  int64_t by_segment[4];
  const auto segments = lockstep_reduce_segments(LOCKSTEP_SUM, LOCKSTEP_I32, 4, offsets);
  OK(lockstep_reduce(context, &segments, x, by_segment, nullptr));
  EXPECT_EQ(by_segment[0], -7 + (1 << 30));
  EXPECT_EQ(by_segment[1], 0);
  EXPECT_EQ(by_segment[2], 0);
  EXPECT_EQ(by_segment[3], 11 + (int64_t{1} << 30) - (1 << 30) - 1);

  // Two rows, and two columns, of more than 2^31.
  int32_t most[2];
  const auto rows = lockstep_reduce_rows(LOCKSTEP_MAX, LOCKSTEP_I32, 2, two31 + 9, two31 + 20);
  OK(lockstep_reduce(context, &rows, x, most, nullptr));
  EXPECT_EQ(most[0], 1 << 30);
  EXPECT_EQ(most[1], 1 << 30);
  int64_t by_column[2];
  const auto columns = lockstep_reduce_columns(LOCKSTEP_SUM, LOCKSTEP_I32, two31 + 5, 2, 2);
  OK(lockstep_reduce(context, &columns, x, by_column, nullptr));
  EXPECT_EQ(by_column[0], 5 + (int64_t{1} << 31));
  EXPECT_EQ(by_column[1], -7 + 11);
}

TEST_F(Big, SquareSumMoreThan2To32Elements) {
  const int64_t n = two32 + 2049;
  const mapping src(static_cast<size_t>(n) * 2);
  uint16_t* x = src.as<uint16_t>();
  const uint16_t two = 0x4000, half = 0xB800;  // 2.0 and -0.5 as f16
  for (const int64_t at : {int64_t{0}, two31 - 1, two31, two32 - 1, two32, n - 1}) x[at] = two;
  x[two31 + 1000000] = half;
  double got = -1;
  const auto d = lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F16, n, 1);
  OK(lockstep_square_sum(context, &d, x, &got, nullptr));
  EXPECT_EQ(got, 24.25);
  const auto f = lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, two31 + 5, 1);  // the same bytes as f32: 2^-14 ...
  float* y = src.as<float>();
  for (const int64_t at : {int64_t{0}, two31 - 1, two31, two32 - 1, two32, n - 1, two31 + 1000000}) x[at] = 0;
  y[0] = 1.0f, y[two31 - 1] = 3.0f, y[two31] = 0.25f;
  OK(lockstep_reduce(context, &f, y, &got, nullptr));
  EXPECT_EQ(got, 4.25);
}

TEST_F(Big, StencilMoreThan2To31Elements) {
  const int64_t n = two31 + 4099;
  const mapping src(static_cast<size_t>(n) * 4);
  float* x = src.as<float>();
  std::vector<int64_t> seen;
  for (const int64_t at : {int64_t{2}, two31 - 1, two31 + 2000, n - 1}) {
    x[at] = 1;
    for (int64_t k = -2; k <= 2; ++k)
      if (at + k < n) seen.push_back(at + k);
  }
  const folded_output dst(static_cast<size_t>(n) * 4, 4, seen);
  const double c[] = {1, 2, 3, 4, 5};
  const auto d = lockstep_stencil_packed(LOCKSTEP_F32, 1, &n, 2, c, LOCKSTEP_BOUNDARY_CONSTANT);
  OK(lockstep_stencil(context, &d, x, dst.as<void>(), nullptr));
  size_t k = 0;
  for (const int64_t at : {int64_t{2}, two31 - 1, two31 + 2000, n - 1})
    for (int64_t o = -2; o <= 2; ++o)
      if (at + o < n) {
        EXPECT_EQ(dst.as<float>()[seen[k++]], static_cast<float>(3 - o)) << at << " " << o;
      }
  dst.expect_zero_but(static_cast<size_t>(n) * 4, 4, seen);
}

TEST_F(Big, StencilPlanesBeyond2To32) {
  const int64_t shape[] = {9, 3, 5}, plane = two31 / 4 + 1234;  // the last plane starts past 2^32 elements
  auto d = lockstep_stencil_packed(LOCKSTEP_F32, 3, shape, 1, nullptr, LOCKSTEP_BOUNDARY_NEAREST);
  const double c[] = {1, 1, 1, 1, 1, 1, 1};
  d.coefficients = c;
  d.src_strides[0] = plane;
  const mapping src(static_cast<size_t>(9 * plane) * 4);
  float dst[9 * 3 * 5];
  src.as<float>()[8 * plane + 7] = 2;
  OK(lockstep_stencil(context, &d, src.as<void>(), dst, nullptr));
  EXPECT_EQ(dst[8 * 15 + 7], 4);  // itself, and the plane behind folds back onto it
  EXPECT_EQ(dst[7 * 15 + 7], 2);
  EXPECT_EQ(dst[8 * 15 + 6], 2);
  EXPECT_EQ(dst[6 * 15 + 7], 0);
}

TEST_F(Big, ShuffleMoreThan2To31Elements) {
  const int64_t n = two31 + 64;
  const mapping src(static_cast<size_t>(n) * 4);
  uint32_t* x = src.as<uint32_t>();
  std::vector<int64_t> seen;
  for (const int64_t at : {int64_t{3}, two31 - 1, two31 + 1, n - 30}) {
    x[at] = 77;
    seen.push_back(at ^ 5);
  }
  const folded_output dst(static_cast<size_t>(n) * 4, 4, seen);
  const auto d = lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_XOR, 4, n, 32, 5);
  OK(lockstep_shuffle(context, &d, x, dst.as<void>(), nullptr));
  for (const int64_t at : seen) EXPECT_EQ(dst.as<uint32_t>()[at], 77u) << at;
  dst.expect_zero_but(static_cast<size_t>(n) * 4, 4, seen);
}

// The last sizes whose indices fit 32 bits with a sign, and the first that do not, in the smallest elements of each op.
TEST_F(Big, AroundTwoToThe31) {
  for (const int64_t n : {two31 - 1, two31, two31 + 1}) {
    SCOPED_TRACE(n);
    const mapping bytes(static_cast<size_t>(n));
    for (const int64_t at : {int64_t{0}, n / 2, n - 1}) bytes.as<uint8_t>()[at] = 7;
    // A factor of each: 1 (2^31 - 1 is prime), 2^15, 3.
    const int64_t rows = n % 3 == 0 ? 3 : n % 2 == 0 ? 1 << 15 : 1, cols = n / rows;
    const auto to = [&](int64_t at) { return at % cols * rows + at / cols; };
    const std::vector<int64_t> seen = {to(0), to(n / 2), to(n - 1)};
    const folded_output dst(static_cast<size_t>(n), 1, seen);
    const auto whole = [&](const char* op) {
      SCOPED_TRACE(op);
      for (const int64_t at : seen) EXPECT_EQ(dst.as<uint8_t>()[at], 7) << at;
      dst.expect_zero_but(static_cast<size_t>(n), 1, seen);
    };
    const auto turned = lockstep_transpose_packed(1, rows, cols);
    OK(lockstep_transpose(context, &turned, bytes.as<void>(), dst.as<void>(), nullptr));
    whole("transpose");
    const int64_t shape[] = {rows, cols, 1};
    const int32_t perm[] = {1, 2, 0};
    const auto permuted = lockstep_permute_packed(1, 3, shape, perm);
    OK(lockstep_permute(context, &permuted, bytes.as<void>(), dst.as<void>(), nullptr));
    whole("permute");

    const mapping halves(static_cast<size_t>(n) * 2);
    for (const int64_t at : {int64_t{0}, n / 2, n - 1}) halves.as<uint16_t>()[at] = 0x4000;  // 2.0
    double squares = 0;
    const auto ssq = lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F16, n, 1);
    OK(lockstep_square_sum(context, &ssq, halves.as<void>(), &squares, nullptr));
    EXPECT_EQ(squares, 12);

    const mapping words(static_cast<size_t>(n) * 4);
    for (const int64_t at : {int64_t{0}, n / 2, n - 1}) words.as<int32_t>()[at] = at == n - 1 ? -9 : 5;
    int64_t sum = 0;
    const auto of = [&](lockstep_reduction what) {
      const auto d = lockstep_reduce_full(what, LOCKSTEP_I32, n, 1);
      EXPECT_EQ(lockstep_reduce(context, &d, words.as<void>(), &sum, nullptr), LOCKSTEP_OK) << lockstep_last_error();
      return sum;
    };
    EXPECT_EQ(of(LOCKSTEP_SUM), 1);
    EXPECT_EQ(of(LOCKSTEP_ARGMIN), n - 1);
  }
  for (const int64_t n : {two31 - 1, two31, two31 + 1}) {
    SCOPED_TRACE(n);
    const mapping x(static_cast<size_t>(n) * 4);
    x.as<float>()[n - 1] = 1;
    const std::vector<int64_t> seen = {n - 2, n - 1};
    const folded_output dst(static_cast<size_t>(n) * 4, 4, seen);
    const double c[] = {1, 2, 4};
    const auto d = lockstep_stencil_packed(LOCKSTEP_F32, 1, &n, 1, c, LOCKSTEP_BOUNDARY_CONSTANT);
    OK(lockstep_stencil(context, &d, x.as<void>(), dst.as<void>(), nullptr));
    EXPECT_EQ(dst.as<float>()[n - 2], 4);
    EXPECT_EQ(dst.as<float>()[n - 1], 2);
    dst.expect_zero_but(static_cast<size_t>(n) * 4, 4, seen);
  }
  for (const int64_t n : {two31 - 32, two31, two31 + 32}) {  // whole warps
    SCOPED_TRACE(n);
    const mapping x(static_cast<size_t>(n) * 4);
    x.as<uint32_t>()[n - 1] = 77;
    const std::vector<int64_t> seen = {n - 2};
    const folded_output dst(static_cast<size_t>(n) * 4, 4, seen);
    const auto d = lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_XOR, 4, n, 32, 1);
    OK(lockstep_shuffle(context, &d, x.as<void>(), dst.as<void>(), nullptr));
    EXPECT_EQ(dst.as<uint32_t>()[n - 2], 77u);
    dst.expect_zero_but(static_cast<size_t>(n) * 4, 4, seen);
  }
}

}  // namespace
}  // namespace lockstep::check
