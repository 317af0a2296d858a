// properties.cpp - properties that do not depend on the order: relations between ops, and
// values compared with exact arithmetic. They find mistakes shared by `ref` and the oracle.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "check.hpp"
#include "context_of.hpp"

namespace lockstep::check {
namespace {
using namespace cases;
__extension__ using exact = __int128;

class Properties : public testing::Test {
 protected:
  // On `ref`, and on what auto picks.
  void on_both(const std::function<void(const lockstep_options*)>& body) {
    lockstep_options o = lockstep_options_defaults();
    for (const char* variant : {"ref", "auto"}) {
      SCOPED_TRACE(variant);
      o.variant = variant;
      body(&o);
    }
  }
  const context_of own{"cpu"};
  lockstep_context* const context = own.self;
  std::mt19937_64 draw{seed};
};

// Multiples of 2^-16 below 2^8 in magnitude: exact as integers, exact in f32.
std::vector<float> grid(std::mt19937_64& draw, size_t n) {
  std::vector<float> x(n);
  for (float& v : x) v = std::ldexp(static_cast<float>(static_cast<int64_t>(draw() % (1u << 24)) - (1 << 23)), -16);
  return x;
}

TEST_F(Properties, TransposeTwiceIsTheIdentity) {
  on_both([&](const lockstep_options* options) {
    for (int repeat = 0; repeat < 30; ++repeat) {
      const auto rows = static_cast<int64_t>(draw() % 200 + 1), cols = static_cast<int64_t>(draw() % 200 + 1);
      std::vector<uint32_t> a(static_cast<size_t>(rows * cols)), b(a.size()), c(a.size());
      for (uint32_t& v : a) v = static_cast<uint32_t>(draw());
      const auto forth = lockstep_transpose_packed(4, rows, cols), back = lockstep_transpose_packed(4, cols, rows);
      ASSERT_EQ(lockstep_transpose(context, &forth, a.data(), b.data(), options), LOCKSTEP_OK);
      ASSERT_EQ(lockstep_transpose(context, &back, b.data(), c.data(), options), LOCKSTEP_OK);
      ASSERT_EQ(a, c);
      ASSERT_EQ(b[static_cast<size_t>((cols - 1) * rows)],
                a[static_cast<size_t>(cols - 1)]);  // not the identity itself
      const int64_t shape[] = {rows, cols};
      const int32_t axes[] = {1, 0};
      const auto permute = lockstep_permute_packed(4, 2, shape, axes);
      ASSERT_EQ(lockstep_permute(context, &permute, a.data(), c.data(), options), LOCKSTEP_OK);
      ASSERT_EQ(b, c);
    }
  });
}

TEST_F(Properties, PermuteAndItsInverseAreTheIdentity) {
  on_both([&](const lockstep_options* options) {
    for (int repeat = 0; repeat < 60; ++repeat) {
      const auto rank = static_cast<int32_t>(draw() % 8 + 1);
      int64_t shape[8], moved[8];
      int32_t perm[8], inverse[8];
      size_t n = 1;
      for (int32_t k = 0; k < rank; ++k) {
        shape[k] = static_cast<int64_t>(draw() % 4 + 1);
        n *= static_cast<size_t>(shape[k]);
      }
      std::iota(perm, perm + rank, 0);
      std::shuffle(perm, perm + rank, draw);
      for (int32_t k = 0; k < rank; ++k) {
        moved[k] = shape[perm[k]];
        inverse[perm[k]] = k;
      }
      std::vector<uint64_t> a(n), b(n), c(n);
      std::iota(a.begin(), a.end(), uint64_t{1});
      const auto forth = lockstep_permute_packed(8, rank, shape, perm),
                 back = lockstep_permute_packed(8, rank, moved, inverse);
      ASSERT_EQ(lockstep_permute(context, &forth, a.data(), b.data(), options), LOCKSTEP_OK);
      ASSERT_EQ(lockstep_permute(context, &back, b.data(), c.data(), options), LOCKSTEP_OK);
      ASSERT_EQ(a, c);
    }
  });
}

TEST_F(Properties, FloatSumsAreWithinTheirBoundOfTheExactSum) {
  on_both([&](const lockstep_options* options) {
    for (const size_t n :
         {size_t{1}, size_t{3}, size_t{127}, size_t{128}, size_t{2049}, size_t{100003}, size_t{1} << 18}) {
      const std::vector<float> x = grid(draw, n);
      exact sum = 0, magnitude = 0, squares = 0;  // in units of 2^-16 and 2^-32
      for (const float v : x) {
        const auto i = static_cast<int64_t>(std::ldexp(v, 16));
        sum += i;
        magnitude += i < 0 ? -i : i;
        squares += static_cast<exact>(i) * i;
      }
      const double roundings = 16 + 7 + (n > 2048 ? std::ceil(std::log2(static_cast<double>(n) / 2048)) : 0);
      double got = -1;
      auto d = lockstep_reduce_full(LOCKSTEP_SUM, LOCKSTEP_F32, static_cast<int64_t>(n), 1);
      ASSERT_EQ(lockstep_reduce(context, &d, x.data(), &got, options), LOCKSTEP_OK);
      // n values of 24 bits and 2^-16 granularity: the double sum is exact below 2^53 units.
      EXPECT_EQ(got, std::ldexp(static_cast<double>(sum), -16)) << n;
      d = lockstep_reduce_full(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, static_cast<int64_t>(n), 1);
      ASSERT_EQ(lockstep_square_sum(context, &d, x.data(), &got, options), LOCKSTEP_OK);
      const long double right = std::ldexp(static_cast<long double>(squares), -32);
      EXPECT_LE(std::fabs(static_cast<long double>(got) - right), roundings * 0x1p-53L * right) << n;
      d.reduction = LOCKSTEP_NORM2;
      double root = -1;
      ASSERT_EQ(lockstep_square_sum(context, &d, x.data(), &root, options), LOCKSTEP_OK);
      EXPECT_EQ(root, std::sqrt(got)) << n;
    }
  });
}

TEST_F(Properties, ReductionsOfColumnsAreThoseOfTransposedRowsAndIgnoreTheBatch) {
  on_both([&](const lockstep_options* options) {
    const int64_t rows = 2100, cols = 37;
    std::vector<double> a(static_cast<size_t>(rows * cols)), b(a.size());
    for (double& v : a)
      v = std::ldexp(static_cast<double>(static_cast<int64_t>(draw()) >> 11), -static_cast<int>(draw() % 60));
    const auto t = lockstep_transpose_packed(8, rows, cols);
    ASSERT_EQ(lockstep_transpose(context, &t, a.data(), b.data(), options), LOCKSTEP_OK);
    for (const lockstep_reduction what :
         {LOCKSTEP_SUM, LOCKSTEP_MIN, LOCKSTEP_ARGMAX, LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_NORM2}) {
      const auto run = what > LOCKSTEP_ARGMAX ? lockstep_square_sum : lockstep_reduce;
      std::vector<uint64_t> by_columns(static_cast<size_t>(cols)), by_rows(by_columns.size());
      const auto c = lockstep_reduce_columns(what, LOCKSTEP_F64, rows, cols, cols),
                 r = lockstep_reduce_rows(what, LOCKSTEP_F64, cols, rows, rows);
      ASSERT_EQ(run(context, &c, a.data(), by_columns.data(), options), LOCKSTEP_OK);
      ASSERT_EQ(run(context, &r, b.data(), by_rows.data(), options), LOCKSTEP_OK);
      EXPECT_EQ(by_columns, by_rows) << what;
      for (const size_t one : {size_t{0}, size_t{17}, size_t{36}}) {
        uint64_t alone = 0;
        const auto f = lockstep_reduce_full(what, LOCKSTEP_F64, rows, 1);
        ASSERT_EQ(run(context, &f, b.data() + one * static_cast<size_t>(rows), &alone, options), LOCKSTEP_OK);
        EXPECT_EQ(alone, by_rows[one]) << what;
      }
    }
  });
}

// Passes over what about fits a cache go there and back.
TEST_F(Properties, LongSequencesGiveTheSameBitsAtEveryCall) {
  constexpr int64_t n = 3 * (1 << 18) + 12345;  // 6 MiB: on up to 7 threads
  std::vector<double> x(n);
  for (double& v : x) v = std::ldexp(static_cast<double>(static_cast<int64_t>(draw())), -static_cast<int>(draw() % 60));
  x[n / 8] = x[n - 2] = std::ldexp(1.0, 70);  // the largest, twice: argmax is the first
  for (const lockstep_reduction what : {LOCKSTEP_SUM, LOCKSTEP_ARGMAX}) {
    const auto d = lockstep_reduce_full(what, LOCKSTEP_F64, n, 1);
    lockstep_options ref = lockstep_options_defaults();
    ref.variant = "ref";
    uint64_t want = 0;
    ASSERT_EQ(lockstep_reduce(context, &d, x.data(), &want, &ref), LOCKSTEP_OK);
    for (const int threads : {1, 2, 3, 7}) {
      const context_of one("cpu", threads);
      for (int call = 0; call < 3; ++call) {
        uint64_t got = 0;
        EXPECT_EQ(lockstep_reduce(one.self, &d, x.data(), &got, nullptr), LOCKSTEP_OK);
        EXPECT_EQ(got, want) << "reduction " << what << ", " << threads << " threads, call " << call;
      }
    }
  }
}

TEST_F(Properties, ExtremesAreElementsAndNoneLiesBeyond) {
  on_both([&](const lockstep_options* options) {
    std::vector<int64_t> x(5000);
    for (int64_t& v : x) v = static_cast<int64_t>(draw()) >> (draw() % 64);
    int64_t least = 0, most = 0, at_least = 0, at_most = 0;
    const std::pair<lockstep_reduction, int64_t*> asked[] = {
        {LOCKSTEP_MIN, &least}, {LOCKSTEP_MAX, &most}, {LOCKSTEP_ARGMIN, &at_least}, {LOCKSTEP_ARGMAX, &at_most}};
    for (const auto& [what, where] : asked) {
      const auto d = lockstep_reduce_full(what, LOCKSTEP_I64, 5000, 1);
      ASSERT_EQ(lockstep_reduce(context, &d, x.data(), where, options), LOCKSTEP_OK);
    }
    EXPECT_EQ(least, *std::min_element(x.begin(), x.end()));
    EXPECT_EQ(most, *std::max_element(x.begin(), x.end()));
    EXPECT_EQ(at_least, std::find(x.begin(), x.end(), least) - x.begin());
    EXPECT_EQ(at_most, std::find(x.begin(), x.end(), most) - x.begin());
  });
}

// scipy.ndimage's own examples of its modes, on a b c d = 1 2 3 4 with the tap at -2.
TEST_F(Properties, BoundariesAreWhatTheirNamesSay) {
  on_both([&](const lockstep_options* options) {
    const float x[] = {1, 2, 3, 4};
    const int64_t shape[] = {4};
    const double left[] = {1, 0, 0, 0, 0}, right[] = {0, 0, 0, 0, 1};
    const float lefts[][4] = {{1, 1, 1, 2}, {3, 2, 1, 2}, {2, 1, 1, 2}, {3, 4, 1, 2}, {9, 9, 1, 2}};
    const float rights[][4] = {{3, 4, 4, 4}, {3, 4, 3, 2}, {3, 4, 4, 3}, {3, 4, 1, 2}, {3, 4, 9, 9}};
    for (int b = 0; b < 5; ++b)
      for (const bool on_left : {true, false}) {
        float y[4] = {};
        auto d = lockstep_stencil_packed(LOCKSTEP_F32, 1, shape, 2, on_left ? left : right,
                                         static_cast<lockstep_boundary>(b));
        d.value = 9;
        ASSERT_EQ(lockstep_stencil(context, &d, x, y, options), LOCKSTEP_OK);
        for (int i = 0; i < 4; ++i)
          EXPECT_EQ(y[i], (on_left ? lefts : rights)[b][i]) << "boundary " << b << " at " << i;
      }
  });
}

// 16-bit results come from floats where these are certain: rows whose results are ties, lie beside one, cancel, vanish
// or leave the range of floats must have the bits of ref, which computes in double.
TEST_F(Properties, NormalizedRowsAtTiesAreThoseOfDoubleArithmetic) {
  lockstep_options ref = lockstep_options_defaults();
  ref.variant = "ref";
  const auto bits_of = [](float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); };
  for (int repeat = 0; repeat < 20000; ++repeat) {
    const auto kind = static_cast<lockstep_normalization>(draw() % 3);
    const auto result = draw() % 2 == 0 ? LOCKSTEP_BF16 : LOCKSTEP_F16;
    const int64_t n = 16 + static_cast<int64_t>(draw() % 100);
    std::vector<uint16_t> x(static_cast<size_t>(n)), y(x.size()), expected(x.size());
    std::vector<float> wide(x.size()), weight(x.size()), bias(x.size());
    // Rows of +-a, whose root mean square is a; or any bf16 of like size, now and then a zero or a tiny one.
    const bool plain = draw() % 2 == 0;
    const float scale = std::ldexp(1.0f, static_cast<int>(draw() % 200) - 100);
    for (size_t i = 0; i < x.size(); ++i) {
      const float any = static_cast<float>(static_cast<int>(draw() % 512) - 256) / 64;
      const float value = plain ? (draw() % 2 == 0 ? scale : -scale) : draw() % 50 == 0 ? 0x1p-130f : any * scale;
      wide[i] = draw() % 40 == 0 ? 0 : value;
      x[i] = bits_of(wide[i]);
      // A number halfway between two of result's, or the next float beside it; at times of another size.
      const uint32_t half = result == LOCKSTEP_BF16 ? 0x8000 : 0x1000;
      const uint32_t random = (static_cast<uint32_t>(draw()) & ~(2 * half - 1)) | half;
      const float at = std::bit_cast<float>(0x3F800000u | (random & 0x7FFFFFu));
      const float beside = draw() % 2 == 0 ? at : std::nextafter(at, draw() % 2 == 0 ? 4.0f : 0.0f);
      weight[i] = std::ldexp(beside, draw() % 4 == 0 ? static_cast<int>(draw() % 260) - 140 : 0);
      bias[i] = draw() % 3 == 0 ? -weight[i] : draw() % 3 == 0 ? 0.0f : any;
    }
    const auto dtype = draw() % 2 == 0 ? LOCKSTEP_BF16 : LOCKSTEP_F32;
    const void* src = dtype == LOCKSTEP_F32 ? static_cast<const void*>(wide.data()) : x.data();
    auto d = lockstep_normalize_rows(kind, dtype, 1, n, draw() % 2 == 0 ? 0.0 : 1e-5);
    d.result = result, d.weight_dtype = LOCKSTEP_F32;
    d.weight = draw() % 4 == 0 ? nullptr : weight.data();
    d.bias = kind == LOCKSTEP_NORMALIZE_LAYER && draw() % 2 == 0 ? bias.data() : nullptr;
    ASSERT_EQ(lockstep_normalize(context, &d, src, expected.data(), &ref), LOCKSTEP_OK) << lockstep_last_error();
    ASSERT_EQ(lockstep_normalize(context, &d, src, y.data(), nullptr), LOCKSTEP_OK);
    ASSERT_EQ(y, expected) << "kind " << kind << ", result " << result << ", row " << repeat;
  }
}

// Rows whose statistics are given: the definition's bits, and no element of them counts for another.
TEST_F(Properties, RowsOfGivenStatistics) {
  lockstep_options ref = lockstep_options_defaults();
  ref.variant = "ref";
  for (int repeat = 0; repeat < 300; ++repeat) {
    const auto kind = static_cast<lockstep_normalization>(draw() % LOCKSTEP_NORMALIZE_RMS_BACKWARD);
    constexpr lockstep_dtype types[] = {LOCKSTEP_F16, LOCKSTEP_BF16, LOCKSTEP_F32, LOCKSTEP_F64};
    const lockstep_dtype dtype = types[draw() % 4];
    const bool exponential = kind >= LOCKSTEP_NORMALIZE_SOFTMAX;
    const int64_t lengths[] = {1, 130, 2049, 9000, 140000}, n = lengths[draw() % (repeat < 20 ? 5 : 4)];
    const int64_t rows = n > 9000 ? 1 : static_cast<int64_t>(1 + draw() % 5);
    lockstep_normalize_desc d = lockstep_normalize_rows(kind, dtype, rows, n, exponential ? -0.5 : 1e-5);
    d.result = draw() % 2 == 0 ? dtype : exponential ? LOCKSTEP_F64 : types[draw() % 3];
    d.weight_dtype = LOCKSTEP_F32;
    std::vector<double> given;
    for (int64_t r = 0; r < rows; ++r) {
      // Of a negative scale the smallest element of the whole row: none is less.
      const double centre = static_cast<double>(draw() % 64) / 16;
      given.push_back(exponential ? -130 - centre : draw() % 20 == 0 ? INFINITY : centre - 2);
      given.push_back(draw() % 20 == 0 ? NAN : static_cast<double>(1 + draw() % 64) / 16);
    }
    d.given = given.data();
    const std::vector<float> x = grid(draw, static_cast<size_t>(rows * n)), weight = grid(draw, static_cast<size_t>(n));
    const size_t bytes = lockstep_dtype_bytes(dtype), result_bytes = lockstep_dtype_bytes(d.result);
    std::vector<unsigned char> src(x.size() * bytes), y(x.size() * result_bytes), expected(y);
    const int64_t count = rows * n;
    const lockstep_convert_desc c = lockstep_convert_packed(LOCKSTEP_F32, dtype, 1, 1, &count, nullptr);
    ASSERT_EQ(lockstep_convert(context, &c, x.data(), src.data(), nullptr), LOCKSTEP_OK);
    std::vector<int64_t> labels(static_cast<size_t>(rows), n - 1);
    if (kind == LOCKSTEP_NORMALIZE_PICKED)
      d.labels = labels.data();
    else if (!exponential && draw() % 2 == 0)
      d.weight = weight.data();
    if (!exponential && draw() % 2 == 0) d.bias = weight.data();
    ASSERT_EQ(lockstep_normalize(context, &d, src.data(), expected.data(), &ref), LOCKSTEP_OK) << lockstep_last_error();
    ASSERT_EQ(lockstep_normalize(context, &d, src.data(), y.data(), nullptr), LOCKSTEP_OK) << lockstep_last_error();
    ASSERT_EQ(y, expected) << "kind " << kind << ", dtype " << dtype << ", result " << d.result << ", row of " << n;
    if (rows != 1 || n < 100 || kind >= LOCKSTEP_NORMALIZE_LOGSUMEXP) continue;
    const int64_t cut = n / 3;  // in two parts
    d.length = d.src_stride = d.dst_stride = cut;
    ASSERT_EQ(lockstep_normalize(context, &d, src.data(), y.data(), nullptr), LOCKSTEP_OK) << lockstep_last_error();
    d.length = d.src_stride = d.dst_stride = n - cut;
    const auto at = static_cast<size_t>(cut);
    if (d.weight != nullptr) d.weight = weight.data() + at;
    if (d.bias != nullptr) d.bias = weight.data() + at;
    ASSERT_EQ(lockstep_normalize(context, &d, src.data() + at * bytes, y.data() + at * result_bytes, nullptr),
              LOCKSTEP_OK);
    ASSERT_EQ(y, expected) << "kind " << kind << ", in parts";
  }
}

// The ends of longer sequences, of any layout: the definition's bits.
TEST_F(Properties, ScansBehindOtherElements) {
  lockstep_options ref = lockstep_options_defaults();
  ref.variant = "ref";
  for (int repeat = 0; repeat < 300; ++repeat) {
    constexpr lockstep_reduction reductions[] = {LOCKSTEP_SUM, LOCKSTEP_MIN, LOCKSTEP_MAX};
    constexpr lockstep_dtype types[] = {LOCKSTEP_F16, LOCKSTEP_F32, LOCKSTEP_F64, LOCKSTEP_I32, LOCKSTEP_I64};
    const lockstep_reduction reduction = reductions[draw() % 3];
    const lockstep_dtype dtype = types[draw() % 5];
    const bool floats = lockstep_dtype_kind(dtype) == 'f', sum = reduction == LOCKSTEP_SUM;
    const int64_t lengths[] = {1, 130, 2049, 9000, 300000}, n = lengths[draw() % (repeat < 20 ? 5 : 4)];
    const int64_t rows = n > 9000 ? 1 : static_cast<int64_t>(1 + draw() % 40);
    lockstep_scan_desc d = draw() % 2 == 0 ? lockstep_scan_rows(reduction, dtype, rows, n, n)
                                           : lockstep_scan_columns(reduction, dtype, n, rows, rows);
    if (sum && !floats) d.result = LOCKSTEP_I64;
    if (sum && floats && draw() % 2 == 0) d.result = LOCKSTEP_F64;
    d.exclusive = static_cast<int32_t>(draw() % 2);
    d.first = static_cast<int64_t>(draw() % 70) * 2048;
    const size_t bytes = lockstep_dtype_bytes(dtype), count = static_cast<size_t>(rows * n);
    const size_t numbers = static_cast<size_t>(rows) * (2 + 8);
    const std::vector<float> x = grid(draw, count + numbers);
    std::vector<unsigned char> src(count * bytes), y(count * lockstep_dtype_bytes(d.result)), expected(y);
    std::vector<double> state(numbers);
    const auto convert = [&](const float* from, int64_t elements, lockstep_dtype to, void* into) {
      const lockstep_convert_desc c = lockstep_convert_packed(LOCKSTEP_F32, to, 1000, 1, &elements, nullptr);
      ASSERT_EQ(lockstep_convert(context, &c, from, into, nullptr), LOCKSTEP_OK);
    };
    convert(x.data(), static_cast<int64_t>(count), dtype, src.data());
    convert(x.data() + count, static_cast<int64_t>(numbers),
            !sum     ? dtype
            : floats ? LOCKSTEP_F64
                     : LOCKSTEP_I32,
            state.data());
    if (sum && !floats)  // numbers of 128 bits
      for (int64_t s = rows; s-- > 0;) {
        const int64_t low = reinterpret_cast<const int32_t*>(state.data())[s], high = low < 0 ? -1 : 0;
        reinterpret_cast<int64_t*>(state.data())[2 * s] = low;
        reinterpret_cast<int64_t*>(state.data())[2 * s + 1] = high;
      }
    d.before = state.data();
    ASSERT_EQ(lockstep_scan(context, &d, src.data(), expected.data(), &ref), LOCKSTEP_OK) << lockstep_last_error();
    ASSERT_EQ(lockstep_scan(context, &d, src.data(), y.data(), nullptr), LOCKSTEP_OK) << lockstep_last_error();
    ASSERT_EQ(y, expected) << "reduction " << reduction << ", dtype " << dtype << ", first " << d.first << ", " << rows
                           << " of " << n << ", exclusive " << d.exclusive;
  }
}

TEST_F(Properties, StencilsAreCloseToDoubleArithmetic) {
  on_both([&](const lockstep_options* options) {
    const int64_t shape[] = {11, 13, 29};
    const int r = 3;
    std::vector<double> c(2 * r * 3 + 1);
    for (double& v : c) v = static_cast<double>(static_cast<float>(static_cast<double>(draw() % 2001) / 1000.0 - 1.0));
    const std::vector<float> x = grid(draw, 11 * 13 * 29);
    std::vector<float> y(5 * 7 * 23);
    const auto d = lockstep_stencil_packed(LOCKSTEP_F32, 3, shape, r, c.data(), LOCKSTEP_BOUNDARY_VALID);
    ASSERT_EQ(lockstep_stencil(context, &d, x.data(), y.data(), options), LOCKSTEP_OK);
    const auto at = [&](int64_t i, int64_t j, int64_t k) {
      return static_cast<double>(x[static_cast<size_t>((i * 13 + j) * 29 + k)]);
    };
    size_t n = 0;
    for (int64_t i = r; i < 11 - r; ++i)
      for (int64_t j = r; j < 13 - r; ++j)
        for (int64_t k = r; k < 29 - r; ++k, ++n) {
          double sum = 0, magnitude = 0;
          const auto add = [&](size_t tap, double v) {
            sum += c[tap] * v;
            magnitude += std::fabs(c[tap] * v);
          };
          for (int o = -r; o < 0; ++o) {  // taps 0-2 axis 0, 3-5 axis 1, 6-12 axis 2, 13-15 axis 1, 16-18 axis 0
            add(static_cast<size_t>(o + 3), at(i + o, j, k));
            add(static_cast<size_t>(o + 6), at(i, j + o, k));
            add(static_cast<size_t>(15 + o + 1), at(i, j + o + r + 1, k));
            add(static_cast<size_t>(18 + o + 1), at(i + o + r + 1, j, k));
          }
          for (int o = -r; o <= r; ++o) add(static_cast<size_t>(9 + o), at(i, j, k + o));
          ASSERT_LE(std::fabs(y[n] - sum), 19 * 0x1p-24 * magnitude) << n;
        }
  });
}

// The programming guide's own examples: width 16 and lane 3; a butterfly twice.
TEST_F(Properties, ShufflesDoWhatTheGuideSays) {
  on_both([&](const lockstep_options* options) {
    int32_t x[32], y[32], z[32];
    std::iota(x, x + 32, 0);
    auto d = lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_IDX, 4, 32, 16, 3);
    ASSERT_EQ(lockstep_shuffle(context, &d, x, y, options), LOCKSTEP_OK);
    for (int i = 0; i < 32; ++i) EXPECT_EQ(y[i], i < 16 ? 3 : 19);
    d = lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_UP, 4, 32, 8, 2);
    ASSERT_EQ(lockstep_shuffle(context, &d, x, y, options), LOCKSTEP_OK);
    for (int i = 0; i < 32; ++i) EXPECT_EQ(y[i], i % 8 < 2 ? i : i - 2);
    d = lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_DOWN, 4, 32, 8, 2);
    ASSERT_EQ(lockstep_shuffle(context, &d, x, y, options), LOCKSTEP_OK);
    for (int i = 0; i < 32; ++i) EXPECT_EQ(y[i], i % 8 > 5 ? i : i + 2);
    d = lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_XOR, 4, 32, 32, 21);
    ASSERT_EQ(lockstep_shuffle(context, &d, x, y, options), LOCKSTEP_OK);
    ASSERT_EQ(lockstep_shuffle(context, &d, y, z, options), LOCKSTEP_OK);
    for (int i = 0; i < 32; ++i) {
      EXPECT_EQ(y[i], i ^ 21);
      EXPECT_EQ(z[i], i);
    }
    // A mask that leaves the segment upwards keeps the own value; downwards it reads.
    d = lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_XOR, 4, 32, 8, 8);
    ASSERT_EQ(lockstep_shuffle(context, &d, x, y, options), LOCKSTEP_OK);
    for (int i = 0; i < 32; ++i) EXPECT_EQ(y[i], (i & 8) != 0 ? i - 8 : i);
  });
}

// The row that auto takes; "" where `needed` does not exist here or refuses the call.
template <class Desc>
std::string taken(lockstep_context* context, lockstep_op op, const Desc& d, const char* needed = "auto") {
  lockstep_options options = lockstep_options_defaults();
  std::string name;
  for (const char* variant : {needed, "auto"}) {
    options.variant = variant;
    lockstep_plan* plan = nullptr;
    if (lockstep_plan_create(context, op, &d, &options, &plan) != LOCKSTEP_OK) return "";
    lockstep_run_info info{};
    info.size = sizeof info;
    EXPECT_EQ(lockstep_plan_get(plan, &info), LOCKSTEP_OK);
    name = info.variant;
    lockstep_plan_destroy(plan);
  }
  return name;
}

// The exact product, of 77 bits at most, rounded once to a float of `kept` bits.
double product_by_integers(double y, float b, int kept) {
  int of_y = 0, of_b = 0;
  const double size = std::frexp(std::fabs(y), &of_y);
  const float other = std::frexp(std::fabs(b), &of_b);
  __extension__ unsigned __int128 p = static_cast<uint64_t>(std::ldexp(size, 53));
  p *= static_cast<uint64_t>(std::ldexp(other, 24));
  int dropped = 0;
  while (p >> dropped >> kept != 0) ++dropped;
  const auto rest = p & ((decltype(p){1} << dropped) - 1), half = decltype(p){1} << (dropped - 1);
  p >>= dropped;
  if (rest > half || (rest == half && (p & 1) != 0)) ++p;
  const double value = std::ldexp(static_cast<double>(static_cast<uint64_t>(p)), dropped + of_y + of_b - 77);
  return std::signbit(y) == std::signbit(b) ? value : -value;
}

// 1 / x, a double, times an x of a few bits that makes the product the middle of two f16 but for its last bits: a
// product that is rounded to double first becomes that middle. Random ones beside them.
TEST_F(Properties, MapRoundsProductsWithASecondArrayOnce) {
  std::vector<float> x, b;
  for (int odd = 3; odd < 64; odd += 2)
    for (int k = 0; k < 1024; ++k) {
      x.push_back(static_cast<float>(odd));
      b.push_back(static_cast<float>(odd * (2048 + 2 * k + 1)) / 2048);
    }
  for (int k = 0; k < 100000; ++k) {
    x.push_back(std::ldexp(static_cast<float>(static_cast<int32_t>(draw() % (1u << 24)) + 1), -12));
    b.push_back(std::ldexp(static_cast<float>(static_cast<int32_t>(draw() % (1u << 25)) - (1 << 24)), -20));
  }
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> got(x.size());
  std::vector<uint16_t> halves(x.size());
  for (const lockstep_function function : {LOCKSTEP_MAP_RECIPROCAL, LOCKSTEP_MAP_SQRT, LOCKSTEP_MAP_RSQRT}) {
    auto d = lockstep_map_packed(function, LOCKSTEP_F32, LOCKSTEP_F32, 1, &n, nullptr);
    d.times = b.data();
    ASSERT_EQ(lockstep_map(context, &d, x.data(), got.data(), nullptr), LOCKSTEP_OK) << lockstep_last_error();
    d.result = LOCKSTEP_F16;
    ASSERT_EQ(lockstep_map(context, &d, x.data(), halves.data(), nullptr), LOCKSTEP_OK) << lockstep_last_error();
    int wrong = 0;
    for (size_t i = 0; i < x.size() && wrong < 5; ++i) {
      const double y = function == LOCKSTEP_MAP_RECIPROCAL ? 1 / static_cast<double>(x[i])
                       : function == LOCKSTEP_MAP_SQRT     ? std::sqrt(static_cast<double>(x[i]))
                                                           : 1 / std::sqrt(static_cast<double>(x[i]));
      if (b[i] == 0) continue;
      const double once = product_by_integers(y, b[i], 24), of_half = product_by_integers(y, b[i], 11);
      if (static_cast<double>(got[i]) != once)
        ADD_FAILURE() << lockstep_function_name(function) << " of " << x[i] << " times " << b[i] << " is " << got[i],
            ++wrong;
      if (std::fabs(of_half) < 0x1p-14 || std::fabs(of_half) > 65504) continue;  // fewer bits, or none
      const uint16_t bits = halves[i];
      const double half = std::ldexp(1024 + (bits & 0x3FF), (bits >> 10 & 0x1F) - 25) * (bits >> 15 != 0 ? -1 : 1);
      if (half != of_half)
        ADD_FAILURE() << lockstep_function_name(function) << " of " << x[i] << " times " << b[i] << " is " << half,
            ++wrong;
    }
  }
}

// Three of four channels to planes: a block's rows would be too short for a kernel's calls.
TEST_F(Properties, ConvertsShortRowsWithGapsOneByOne) {
  lockstep_convert_desc d{sizeof d, LOCKSTEP_F16, LOCKSTEP_F32, 1, 2, {3, 100000}, {1, 4}, {100000, 1}};
  EXPECT_EQ(taken(context, LOCKSTEP_CONVERT, d), "strided");
  d.src_strides[1] = 3;
  EXPECT_EQ(taken(context, LOCKSTEP_CONVERT, d), "tiled");
}

// Small matrices whose rows of src have gaps, which no program of bytes takes.
TEST_F(Properties, PermutesSmallMatricesWithGapsInRegisters) {
  lockstep_permute_desc d{sizeof d, 8, 3, {0, 1, 2}, {3000, 5, 2}, {15, 3, 1}, {10, 1, 5}};
  const std::string row = taken(context, LOCKSTEP_PERMUTE, d, "registers");
  EXPECT_TRUE(row.empty() || row == "registers") << row;
}

// The channels of an image, which are too few to fill a vector.
TEST_F(Properties, ReducesFewNarrowColumnsOneAfterAnother) {
  const auto wanted = [&](lockstep_dtype dtype, int64_t columns, const char* row) {
    const auto squares = lockstep_reduce_columns(LOCKSTEP_SUM_OF_SQUARES, dtype, 100000, columns, columns);
    EXPECT_EQ(taken(context, LOCKSTEP_SQUARE_SUM, squares), row) << columns;
    const auto largest = lockstep_reduce_columns(LOCKSTEP_MAX, dtype, 100000, columns, columns);
    EXPECT_EQ(taken(context, LOCKSTEP_REDUCE, largest), row) << columns;
  };
  wanted(LOCKSTEP_U8, 4, "lanes");
  wanted(LOCKSTEP_I16, 6, "lanes");
  wanted(LOCKSTEP_U8, 64, "columns");
  wanted(LOCKSTEP_F32, 4, "columns");
}

// What a thread keeps of one narrow transpose must not serve the next one, which differs in dst's leading dimension.
TEST_F(Properties, NarrowTransposesOneAfterAnother) {
  constexpr int64_t rows = 1000;
  for (const int64_t cols : {2, 3, 4, 5})
    for (const int64_t ld : {rows, rows + 7, rows + 1, rows}) {
      std::vector<unsigned char> src(static_cast<size_t>(rows * cols)), dst(static_cast<size_t>(cols * ld), 0xEE),
          want = dst;
      for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<unsigned char>(i * 7 + i / 251);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j)
          want[static_cast<size_t>(j * ld + i)] = src[static_cast<size_t>(i * cols + j)];
      lockstep_transpose_desc d = lockstep_transpose_packed(1, rows, cols);
      d.dst_ld = ld;
      lockstep_options options = lockstep_options_defaults();
      options.variant = taken(context, LOCKSTEP_TRANSPOSE, d, "byte_programs").empty() ? "auto" : "byte_programs";
      ASSERT_EQ(lockstep_transpose(context, &d, src.data(), dst.data(), &options), LOCKSTEP_OK)
          << lockstep_last_error();
      EXPECT_EQ(dst, want) << cols << " columns to rows " << ld << " apart";
    }
}

// Matrices of a few bytes follow each other in src, but not in dst.
TEST_F(Properties, TinyTransposesApartInDst) {
  constexpr int64_t count = 3000, apart = 9;
  std::vector<unsigned char> src(6 * count), dst(apart * count, 0xEE), want = dst;
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<unsigned char>(i * 7 + i / 251);
  for (int64_t b = 0; b < count; ++b)
    for (int64_t k = 0; k < 6; ++k)
      want[static_cast<size_t>(b * apart + k % 3 * 2 + k / 3)] = src[static_cast<size_t>(b * 6 + k)];
  lockstep_transpose_desc d = lockstep_transpose_packed(1, 2, 3);
  d.batch = count;
  d.src_batch_stride = 6;
  d.dst_batch_stride = apart;
  for (const char* row : {"auto", "byte_programs"}) {
    lockstep_options options = lockstep_options_defaults();
    options.variant = taken(context, LOCKSTEP_TRANSPOSE, d, row).empty() ? "auto" : row;
    std::fill(dst.begin(), dst.end(), static_cast<unsigned char>(0xEE));
    ASSERT_EQ(lockstep_transpose(context, &d, src.data(), dst.data(), &options), LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_EQ(dst, want) << options.variant;
  }
}

// Each part of a long product fits, but not all of them together, unless a 0 is among them.
TEST_F(Properties, ProductsThatFitInParts) {
  constexpr int64_t part = 10'000, parts = 3;
  const auto product = [&](int64_t factor, int64_t other) {
    std::vector<int64_t> src(part * parts, 1);
    for (int64_t k = 0; k < parts; ++k) src[static_cast<size_t>(k * part + 77)] = factor;
    src[5] = other;
    const auto d = lockstep_reduce_full(LOCKSTEP_PROD, LOCKSTEP_I64, part * parts, 1);
    int64_t got = -1;
    const lockstep_status status = lockstep_reduce(context, &d, src.data(), &got, nullptr);
    return std::pair{status, got};
  };
  const int64_t large = int64_t{1} << 40, most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(product(1 << 20, 1), (std::pair{LOCKSTEP_OK, int64_t{1} << 60}));
  EXPECT_EQ(product(1 << 20, -1), (std::pair{LOCKSTEP_OK, -(int64_t{1} << 60)}));
  EXPECT_EQ(product(large, 1), (std::pair{LOCKSTEP_OVERFLOW, most}));
  EXPECT_EQ(product(large, -1), (std::pair{LOCKSTEP_OVERFLOW, -most - 1}));
  EXPECT_EQ(product(large, 0), (std::pair{LOCKSTEP_OK, int64_t{0}}));
}

// A call's "auto" lifts the variant that its context forces.
TEST_F(Properties, AutoOfACallLiftsTheContextsVariant) {
  const auto squares = lockstep_reduce_rows(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, 50, 300, 300);
  const std::vector<float> src(50 * 300, 1);
  std::vector<double> dst(50);
  const auto row = [&](const char* variant) {
    lockstep_options options = lockstep_options_defaults();
    options.variant = variant;
    EXPECT_EQ(lockstep_square_sum(context, &squares, src.data(), dst.data(), &options), LOCKSTEP_OK);
    lockstep_run_info info{};
    info.size = sizeof info;
    EXPECT_EQ(lockstep_last_run(&info), LOCKSTEP_OK);
    return std::string(info.variant);
  };
  const std::string usual = row(nullptr);
  EXPECT_NE(usual, "ref");
  ASSERT_EQ(lockstep_context_set_variant(context, LOCKSTEP_SQUARE_SUM, "ref"), LOCKSTEP_OK);
  EXPECT_EQ(row(nullptr), "ref");
  EXPECT_EQ(row("auto"), usual);
  ASSERT_EQ(lockstep_context_set_variant(context, LOCKSTEP_SQUARE_SUM, "auto"), LOCKSTEP_OK);
}

}  // namespace
}  // namespace lockstep::check
