// cpp_test.cpp - lockstep.hpp on the CPU: every template in both forms, with values, and every refusal of its own.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <lockstep/lockstep.hpp>
#include <numeric>
#include <string>
#include <vector>

namespace {
using lockstep::along;
using lockstep::failure;

template <class T>
using list = std::vector<T>;
template <class T>
std::span<const T> in(const list<T>& v) {
  return v;
}
template <class T>
std::span<T> out(list<T>& v) {
  return v;
}

class Cpp : public testing::Test {
 protected:
  lockstep::context c{"cpu"};
  // The status that the plain form throws.
  template <class Body>
  lockstep_status thrown(const Body& body) {
    try {
      body();
    } catch (const lockstep::exception& e) {
      EXPECT_STRNE(e.what(), "");
      return e.status();
    }
    return LOCKSTEP_OK;
  }
};
void expect_refused(const failure& f, lockstep_status status, const char* part) {
  EXPECT_TRUE(f);
  EXPECT_EQ(f.status(), status);
  EXPECT_NE(std::string(f.text()).find(part), std::string::npos) << f.text();
}
constexpr lockstep_status invalid = LOCKSTEP_INVALID_ARGUMENT;

// Nothing that starts with try_ may throw.
static_assert(noexcept(failure(LOCKSTEP_OK)));
using ctx = lockstep::context;
static_assert(noexcept(ctx::try_create(std::declval<const lockstep_context_options&>(), std::declval<ctx&>())));
static_assert(noexcept(std::declval<ctx&>().try_set_backend("")));
static_assert(noexcept(std::declval<ctx&>().try_set_variant(LOCKSTEP_REDUCE, "")));
static_assert(noexcept(std::declval<ctx&>().try_synchronize()));
using store = lockstep::buffer<float>;
static_assert(noexcept(store::try_create(std::declval<ctx&>(), "", LOCKSTEP_HOST, 1, std::declval<store&>())));
static_assert(noexcept(std::declval<store&>().try_assign({})));
static_assert(noexcept(std::declval<store&>().try_copy_to({})));
static_assert(noexcept(lockstep::try_run(std::declval<ctx&>(), lockstep_shuffle_desc{}, nullptr, nullptr)));
static_assert(noexcept(lockstep::plan::try_create(std::declval<ctx&>(), lockstep_permute_desc{},
                                                  std::declval<lockstep::plan&>())));
static_assert(noexcept(std::declval<lockstep::plan&>().try_execute(nullptr, nullptr)));
static_assert(noexcept(std::declval<lockstep::plan&>().try_workspace_bytes(std::declval<size_t&>())));
static_assert(noexcept(lockstep::try_last_run(std::declval<lockstep_run_info&>())));
static_assert(!lockstep::description<int>);

// ---- handles ----------------------------------------------------------------

TEST_F(Cpp, Contexts) {
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = "abacus";
  lockstep::context none{nullptr};
  EXPECT_EQ(none.get(), nullptr);
  expect_refused(lockstep::context::try_create(o, none), LOCKSTEP_NO_BACKEND, "abacus");
  EXPECT_EQ(none.get(), nullptr);
  EXPECT_EQ(thrown([] { lockstep::context{"abacus"}; }), LOCKSTEP_NO_BACKEND);
  EXPECT_EQ(thrown([&] { lockstep::context{o}; }), LOCKSTEP_NO_BACKEND);
  o.backend = "cpu";
  EXPECT_FALSE(lockstep::context::try_create(o, none));
  EXPECT_NE(none.get(), nullptr);
  lockstep::context moved = std::move(none);
  EXPECT_NE(moved.get(), nullptr);

  EXPECT_FALSE(c.try_set_backend("auto"));
  c.set_backend("cpu");
  expect_refused(c.try_set_backend("abacus"), LOCKSTEP_NO_BACKEND, "abacus");
  EXPECT_EQ(thrown([&] { c.set_backend("abacus"); }), LOCKSTEP_NO_BACKEND);
  EXPECT_FALSE(c.try_set_variant(LOCKSTEP_TRANSPOSE, "ref"));
  c.set_variant(LOCKSTEP_TRANSPOSE, "auto");
  expect_refused(c.try_set_variant(LOCKSTEP_TRANSPOSE, "magic"), LOCKSTEP_NO_VARIANT, "magic");
  EXPECT_EQ(thrown([&] { c.set_variant(LOCKSTEP_TRANSPOSE, "magic"); }), LOCKSTEP_NO_VARIANT);
  EXPECT_FALSE(c.try_synchronize());
  c.synchronize();
  lockstep::context empty{nullptr};
  expect_refused(empty.try_synchronize(), invalid, "context is NULL");
}

TEST_F(Cpp, Failures) {
  EXPECT_FALSE(failure());
  failure().raise();
  EXPECT_EQ(thrown([] { failure(LOCKSTEP_OVERFLOW, "too much").raise(); }), LOCKSTEP_OVERFLOW);
  const std::string longer(5000, 'x');
  EXPECT_EQ(std::strlen(failure(LOCKSTEP_EMPTY, longer).text()), 1023u);
  EXPECT_EQ(std::strlen(failure(LOCKSTEP_EMPTY, std::string(1022, 'x') + "\xE2\x82\xAC").text()), 1022u);
}

template <class T>
void round_trip(lockstep::context& c) {
  list<T> from(100), to(100);
  std::memset(from.data(), 0x5a, sizeof(T) * from.size());
  lockstep::buffer<T> one(c, "cpu", LOCKSTEP_HOST, from.size());
  EXPECT_EQ(one.size(), from.size());
  EXPECT_EQ(one.span().data(), one.data());
  one.assign(from);
  lockstep::buffer<T> moved = std::move(one);
  EXPECT_EQ(one.size(), 0u);
  moved.copy_to(to);
  EXPECT_EQ(std::memcmp(from.data(), to.data(), sizeof(T) * from.size()), 0);

  lockstep::buffer<T> two{nullptr};
  EXPECT_EQ(two.size(), 0u);
  EXPECT_FALSE(lockstep::buffer<T>::try_create(c, "cpu", LOCKSTEP_HOST, 50, two));
  EXPECT_FALSE(lockstep::buffer<T>::try_create(c, "cpu", LOCKSTEP_HOST, from.size(), two));  // gives the first back
  EXPECT_EQ(two.size(), from.size());
  EXPECT_FALSE(two.try_assign(from));
  to.assign(to.size(), T{});
  EXPECT_FALSE(two.try_copy_to(to));
  EXPECT_EQ(std::memcmp(from.data(), to.data(), sizeof(T) * from.size()), 0);
  list<T> shorter(99);
  expect_refused(two.try_assign(shorter), invalid, "sizes differ");
  expect_refused(two.try_copy_to(shorter), invalid, "sizes differ");
}

TEST_F(Cpp, Buffers) {
  round_trip<unsigned char>(c);
  round_trip<lockstep::f16>(c);
  round_trip<float>(c);
  round_trip<double>(c);
  round_trip<std::array<double, 2>>(c);
  using bytes = lockstep::buffer<double>;
  bytes none{nullptr};
  expect_refused(bytes::try_create(c, "cpu", LOCKSTEP_HOST, SIZE_MAX / 4, none), invalid, "count");
  expect_refused(bytes::try_create(c, nullptr, LOCKSTEP_HOST, 8, none), invalid, "backend is NULL");
  expect_refused(bytes::try_create(c, "cpu", LOCKSTEP_DEVICE, 8, none), LOCKSTEP_UNSUPPORTED, "LOCKSTEP_HOST");
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(thrown([&] { bytes(c, "cpu", LOCKSTEP_HOST, SIZE_MAX / 4); }), invalid);
  EXPECT_EQ(thrown([&] { bytes(c, "abacus", LOCKSTEP_HOST, 8); }), LOCKSTEP_NO_BACKEND);
  bytes some(c, "cpu", LOCKSTEP_HOST, 8);
  list<double> seven(7);
  EXPECT_EQ(thrown([&] { some.assign(seven); }), invalid);
  EXPECT_EQ(thrown([&] { some.copy_to(seven); }), invalid);
}

// ---- data movement ------------------------------------------------------------

template <class T>
void transposes(lockstep::context& c, const std::function<T(int)>& value) {
  list<T> src, dst(15), again(15);
  for (int i = 0; i < 15; ++i) src.push_back(value(i));
  lockstep::transpose<T>(c, src, dst, 3, 5);
  EXPECT_FALSE(lockstep::try_transpose<T>(c, src, again, 3, 5));
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) {
      const T want = value(i * 5 + j);
      EXPECT_EQ(std::memcmp(&dst[static_cast<size_t>(j * 3 + i)], &want, sizeof(T)), 0);
      EXPECT_EQ(std::memcmp(&again[static_cast<size_t>(j * 3 + i)], &want, sizeof(T)), 0);
    }
}

TEST_F(Cpp, Transpose) {
  transposes<unsigned char>(c, [](int i) { return static_cast<unsigned char>(i); });
  transposes<lockstep::bf16>(c, [](int i) { return lockstep::bf16{static_cast<uint16_t>(i)}; });
  transposes<float>(c, [](int i) { return static_cast<float>(i); });
  transposes<int64_t>(c, [](int i) { return int64_t{i} << 40; });
  transposes<std::array<double, 2>>(c, [](int i) { return std::array<double, 2>{i + 0.5, i - 0.5}; });
  list<float> src(14), dst(15);
  expect_refused(lockstep::try_transpose<float>(c, src, dst, 3, 5), invalid,
                 "src has 14 elements, but the shape needs 15");
  expect_refused(lockstep::try_transpose<float>(c, dst, src, 3, 5), invalid, "dst has 14");
  expect_refused(lockstep::try_transpose<float>(c, dst, src, -3, 5), invalid, "rows is -3");
  expect_refused(lockstep::try_transpose<float>(c, dst, src, INT64_MAX, 5), invalid, "2^63-1");
  EXPECT_EQ(thrown([&] { lockstep::transpose<float>(c, src, dst, 3, 5); }), invalid);
}

TEST_F(Cpp, Permute) {
  list<int32_t> src(24), dst(24), again(24);
  std::iota(src.begin(), src.end(), 0);
  const int64_t shape[] = {2, 3, 4};
  const int32_t perm[] = {2, 0, 1};
  lockstep::permute<int32_t>(c, src, dst, shape, perm);
  EXPECT_FALSE(lockstep::try_permute<int32_t>(c, src, again, shape, perm));
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) EXPECT_EQ(dst[static_cast<size_t>((k * 2 + i) * 3 + j)], (i * 3 + j) * 4 + k);
  EXPECT_EQ(again, dst);
  const int32_t two[] = {1, 0}, twice[] = {0, 0, 1};
  expect_refused(lockstep::try_permute<int32_t>(c, src, dst, shape, two), invalid, "same length");
  expect_refused(lockstep::try_permute<int32_t>(c, src, dst, {}, {}), invalid, "1 to 8");
  expect_refused(lockstep::try_permute<int32_t>(c, src, dst, shape, twice), invalid, "perm[1] is 0");
  list<int32_t> shorter(23);
  expect_refused(lockstep::try_permute<int32_t>(c, shorter, dst, shape, perm), invalid, "src has 23");
  expect_refused(lockstep::try_permute<int32_t>(c, src, shorter, shape, perm), invalid, "dst has 23");
  EXPECT_EQ(thrown([&] { lockstep::permute<int32_t>(c, src, dst, shape, twice); }), invalid);
}

TEST_F(Cpp, Shuffle) {
  list<int32_t> src(64), dst(64);
  list<double> wide(32), wide_out(32);
  std::iota(src.begin(), src.end(), 100);
  std::iota(wide.begin(), wide.end(), 0.25);
  lockstep::shuffle<int32_t>(c, LOCKSTEP_SHUFFLE_IDX, src, dst, 16, 3);
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(dst[i], 100 + static_cast<int32_t>(i / 16 * 16 + 3));
  EXPECT_FALSE(lockstep::try_shuffle<double>(c, LOCKSTEP_SHUFFLE_XOR, wide, wide_out, 32, 1));
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(wide_out[i], static_cast<double>(i ^ 1) + 0.25);
  list<int32_t> shorter(32);
  expect_refused(lockstep::try_shuffle<int32_t>(c, LOCKSTEP_SHUFFLE_UP, src, shorter, 32, 1), invalid, "dst has 32");
  expect_refused(lockstep::try_shuffle<int32_t>(c, LOCKSTEP_SHUFFLE_UP, src, dst, 5, 1), invalid, "width is 5");
  EXPECT_EQ(thrown([&] { lockstep::shuffle<int32_t>(c, LOCKSTEP_SHUFFLE_UP, src, dst, 32, -1); }), invalid);
}

TEST_F(Cpp, Normalize) {
  const list<float> src = {3, 4, 0, 6, 8, 0}, weight = {1, 2, 3}, residual(6, 1.0f);
  list<float> dst(6), sum(6);
  lockstep::normalize<float>(c, LOCKSTEP_NORMALIZE_L2, src, dst, 2, 3, 1e-12);
  EXPECT_EQ(dst, (list<float>{0.6f, 0.8f, 0, 0.6f, 0.8f, 0}));
  const list<float> columns = {3, 6, 4, 8, 0, 0};  // the same rows side by side
  lockstep::normalize_axis<float>(c, LOCKSTEP_NORMALIZE_L2, columns, dst, 1, 3, 2, 1e-12);
  EXPECT_EQ(dst, (list<float>{0.6f, 0.6f, 0.8f, 0.8f, 0, 0}));
  expect_refused(lockstep::try_normalize_axis<float>(c, LOCKSTEP_NORMALIZE_L2, columns, dst, 2, 3, 2, 1), invalid,
                 "src has 6");
  lockstep::normalize<float>(c, LOCKSTEP_NORMALIZE_L2, src, dst, 2, 3, 20, {.weight = weight, .bias = weight});
  EXPECT_EQ(dst, (list<float>{1.15f, 2.4f, 3, 1.3f, 2.8f, 3}));
  lockstep::normalize<float>(c, LOCKSTEP_NORMALIZE_LAYER, src, dst, 2, 3, 1, {.residual = residual, .sum = sum});
  EXPECT_EQ(sum, (list<float>{4, 5, 1, 7, 9, 1}));
  EXPECT_NEAR(dst[0], (4 - 10.0 / 3) / std::sqrt(26.0 / 9 + 1), 1e-6);
  list<lockstep::bf16> half(6);
  lockstep::normalize<float, lockstep::bf16>(c, LOCKSTEP_NORMALIZE_RMS, src, half, 2, 3, 0);
  EXPECT_EQ(half[0].bits, 0x3F85);  // 3 / sqrt(25 / 3) is 1.0392
  list<double> wide(6, 2.0), result(6);
  const list<float> ones(3, 0.5f);
  lockstep::normalize<double, double, float>(c, LOCKSTEP_NORMALIZE_RMS, wide, result, 2, 3, 0, {.weight = ones});
  EXPECT_EQ(result, list<double>(6, 0.5));

  list<float> two(2), five(5);
  const auto refused = [&](const lockstep::normalize_extras<float>& extras, const char* part) {
    expect_refused(lockstep::try_normalize<float>(c, LOCKSTEP_NORMALIZE_RMS, src, dst, 2, 3, 0, extras), invalid, part);
  };
  refused({.weight = two}, "weight has 2");
  refused({.bias = two}, "bias has 2");
  refused({.residual = five}, "residual has 5");
  refused({.residual = residual, .sum = five}, "sum has 5");
  refused({.sum = sum}, "residual is NULL");
  // Both rows point the same way, so t is the same for both.
  const list<double> h = {3, 4, 6, 8}, g = {4, -3, 8, -6};  // at right angles to t
  list<double> of_rows(4), of_weight(2), of_bias(2);
  lockstep::normalize<double>(c, LOCKSTEP_NORMALIZE_RMS_BACKWARD, h, of_rows, 2, 2, 0,
                              {.gradient = g, .weight_gradient = of_weight, .bias_gradient = of_bias});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(of_rows[i], g[i] * std::sqrt(2) / (i < 2 ? 5 : 10), 1e-12);
  EXPECT_NEAR(of_weight[0], 12 * 3 * std::sqrt(2) / 5, 1e-12);
  EXPECT_NEAR(of_weight[1], -9 * 4 * std::sqrt(2) / 5, 1e-12);
  EXPECT_EQ(of_bias, (list<double>{12, -9}));
  refused({.gradient = five}, "gradient has 5");
  refused({.weight_gradient = two}, "weight_gradient has 2");
  refused({.bias_gradient = two}, "bias_gradient has 2");
  const std::vector<float> logits{0, 2000, 0, 1, 1, 1};
  lockstep::normalize<float>(c, LOCKSTEP_NORMALIZE_SOFTMAX, logits, dst, 2, 3, 1);
  EXPECT_EQ(dst, (std::vector<float>{0, 1, 0, 1 / 3.0f, 1 / 3.0f, 1 / 3.0f}));
  const std::vector<int64_t> labels{1, 0};
  std::vector<double> each(2);
  lockstep::normalize<float, double>(c, LOCKSTEP_NORMALIZE_PICKED, logits, each, 2, 3, 1, {.labels = labels});
  EXPECT_EQ(each, (std::vector<double>{0, -std::log(3.0)}));
  lockstep::normalize<float, double>(c, LOCKSTEP_NORMALIZE_LOGSUMEXP, logits, each, 2, 3, 1);
  EXPECT_EQ(each, (std::vector<double>{2000, 1 + std::log(3.0)}));
  expect_refused(lockstep::try_normalize<float, double>(c, LOCKSTEP_NORMALIZE_PICKED, logits, each, 2, 3, 1,
                                                        {.labels = std::span(labels).first(1)}),
                 invalid, "labels has 1");
  const std::vector<int64_t> offsets{0, 2, 2, 6};
  lockstep::normalize_segments<float>(c, LOCKSTEP_NORMALIZE_SOFTMAX, logits, offsets, dst, -1);
  EXPECT_EQ(dst, (std::vector<float>{1, 0, static_cast<float>(1 / (1 + 3 * std::exp(-1.0))), dst[3], dst[3], dst[3]}));
  std::vector<double> three(3);
  lockstep::normalize_segments<float, double>(c, LOCKSTEP_NORMALIZE_LOGSUMEXP, logits, offsets, three);
  EXPECT_EQ(three, (std::vector<double>{2000, -INFINITY, three[2]}));
  const std::vector<int64_t> ends{0, 2, 6};
  lockstep::normalize_segments<float, double>(c, LOCKSTEP_NORMALIZE_PICKED, logits, ends, each, 1, labels);
  EXPECT_EQ(each[0], 0);
  const auto of_segments = [&](std::span<const float> from, std::span<const int64_t> at, std::span<float> to,
                               std::span<const int64_t> names, lockstep_normalization kind, const char* part) {
    expect_refused(lockstep::try_normalize_segments<float>(c, kind, from, at, to, 1, names), invalid, part);
  };
  of_segments(logits, {}, dst, {}, LOCKSTEP_NORMALIZE_SOFTMAX, "offsets is empty");
  of_segments(std::span(logits).first(5), offsets, dst, {}, LOCKSTEP_NORMALIZE_SOFTMAX, "src has 5");
  of_segments(logits, offsets, std::span(dst).first(5), {}, LOCKSTEP_NORMALIZE_SOFTMAX, "dst has 5");
  of_segments(logits, offsets, std::span(dst).first(2), {}, LOCKSTEP_NORMALIZE_LOGSUMEXP, "dst has 2");
  of_segments(logits, offsets, std::span(dst).first(3), labels, LOCKSTEP_NORMALIZE_PICKED, "labels has 2");
  of_segments(logits, offsets, dst, {}, LOCKSTEP_NORMALIZE_RMS, "RMS has none");
  list<float> one(1);
  expect_refused(lockstep::try_normalize<float>(c, LOCKSTEP_NORMALIZE_LOGSUMEXP, logits, one, 2, 3, 1), invalid,
                 "dst has 1");
  expect_refused(lockstep::try_normalize<float>(c, LOCKSTEP_NORMALIZE_L2, five, dst, 2, 3, 0), invalid, "src has 5");
  expect_refused(lockstep::try_normalize<float>(c, LOCKSTEP_NORMALIZE_L2, src, five, 2, 3, 0), invalid, "dst has 5");
  EXPECT_EQ(thrown([&] { lockstep::normalize<float>(c, LOCKSTEP_NORMALIZE_L2, src, dst, 2, 3, -1); }), invalid);
}

TEST_F(Cpp, Sums) {
  const std::vector<float> x = {1, -2, 3}, y = {4, 5, -6};
  const std::vector<std::uint8_t> a = {200, 100}, b = {3, 250};
  using lockstep::dot;
  EXPECT_EQ((dot<float>(c, x, y)), 4 - 10 - 18);
  EXPECT_EQ((lockstep::sums<float>(c, LOCKSTEP_SUMS_SQUARED_DIFFERENCES, x, y)), 9 + 49 + 81);
  EXPECT_EQ((lockstep::sums<float>(c, LOCKSTEP_SUMS_ABSOLUTE, x)), 6);
  EXPECT_EQ((lockstep::sums<std::uint8_t>(c, LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES, a, b)), 197 + 150);
  const auto both = lockstep::mean_variance<float>(c, y, 1);
  EXPECT_EQ(both.mean, 1);
  EXPECT_EQ(both.variance, (9 + 16 + 49) / 2.0);
  double sum = 0;
  expect_refused(lockstep::try_sums<float>(c, LOCKSTEP_SUMS_DOT, x, std::span(y).first(2), sum), invalid, "y has 2");
  expect_refused(lockstep::try_sums<float>(c, LOCKSTEP_SUMS_MEAN_VARIANCE, x, {}, sum), invalid, "two results");
  EXPECT_EQ(thrown([&] { (void)lockstep::mean_variance<float>(c, x, -1); }), invalid);
}

TEST_F(Cpp, SumsOfRows) {
  const list<float> x = {1, 2, 3, 4}, y = {5, 6, 7, 8};
  list<double> two(2), four(4);
  lockstep::sums_rows<double, float>(c, LOCKSTEP_SUMS_DOT, x, y, two, 2, 2, 2);
  EXPECT_EQ(two, (list<double>{17, 53}));
  lockstep::sums_rows<double, float>(c, LOCKSTEP_SUMS_SQUARED_DIFFERENCES, x, std::span(y).first(2), two, 2, 2, 1);
  EXPECT_EQ(two, (list<double>{32, 8}));
  lockstep::sums_rows<double, float>(c, LOCKSTEP_SUMS_MEAN_VARIANCE, x, {}, four, 2, 2, 0);
  EXPECT_EQ(four, (list<double>{1.5, 0.25, 3.5, 0.25}));
  const auto refused = [&](std::span<const float> of_x, std::span<const float> of_y, std::span<double> dst,
                           std::int64_t other_rows, const char* why) {
    expect_refused(lockstep::try_sums_rows<double, float>(c, LOCKSTEP_SUMS_DOT, of_x, of_y, dst, 2, 2, other_rows),
                   invalid, why);
  };
  refused(x, y, two, 3, "neither rows nor 1");
  refused(std::span(x).first(3), y, two, 2, "x has 3");
  refused(x, std::span(y).first(3), two, 2, "y has 3");
  refused(x, y, std::span(two).first(1), 2, "dst has 1");
  EXPECT_EQ(thrown([&] { lockstep::sums_rows<double, float>(c, LOCKSTEP_SUMS_DOT, x, y, two, -1, 2, 1); }), invalid);
}

TEST_F(Cpp, ReduceAxes) {
  list<std::int32_t> src(24);
  for (int i = 0; i < 24; ++i) src[static_cast<size_t>(i)] = i;
  const std::array<std::int64_t, 3> shape = {2, 3, 4};
  const std::array<std::int32_t, 2> axes = {2, 0};
  list<std::int64_t> sums(3), places(3);
  lockstep::reduce_axes<std::int64_t, std::int32_t>(c, LOCKSTEP_SUM, src, sums, shape, axes);
  EXPECT_EQ(sums, (list<std::int64_t>{60, 92, 124}));
  lockstep::reduce_axes<std::int64_t, std::int32_t>(c, LOCKSTEP_ARGMAX, src, places, shape, axes);
  EXPECT_EQ(places, (list<std::int64_t>{7, 7, 7}));
  list<float> x(24, 0.5f), greatest(1);
  list<float> norms(8);
  lockstep::reduce_axes<float, float>(c, LOCKSTEP_NORM2, x, norms, shape, std::array<std::int32_t, 1>{1});
  EXPECT_EQ(norms[7], std::sqrt(0.75f));
  lockstep::reduce_axes<float, float>(c, LOCKSTEP_MAX, x, greatest, shape, std::array<std::int32_t, 3>{0, 1, 2});
  EXPECT_EQ(greatest[0], 0.5f);
  const auto refused = [&](std::span<const std::int32_t> from, std::span<std::int64_t> to,
                           std::span<const std::int64_t> sizes, std::span<const std::int32_t> which, const char* why) {
    expect_refused(lockstep::try_reduce_axes<std::int64_t, std::int32_t>(c, LOCKSTEP_SUM, from, to, sizes, which),
                   invalid, why);
  };
  refused(std::span(src).first(23), sums, shape, axes, "src has 23");
  refused(src, std::span(sums).first(2), shape, axes, "dst has 2");
  refused(src, sums, {}, axes, "1 to 8 axes");
  refused(src, sums, shape, {}, "1 to 8 axes");
  list<std::int64_t> many(24);
  refused(src, many, shape, std::array<std::int32_t, 2>{0, 0}, "axes");
  refused(src, many, shape, std::array<std::int32_t, 1>{3}, "axes");
  refused(src, many, std::array<std::int64_t, 3>{2, -3, 4}, axes, "shape");
  EXPECT_EQ(thrown([&] { lockstep::reduce_axes<float, float>(c, LOCKSTEP_ARGMIN, x, norms, shape, axes); }), invalid);
}

TEST_F(Cpp, Convert) {
  const list<float> src = {1, 2, 3, 4, 5, 6};
  const std::array<std::int64_t, 2> shape = {2, 3};
  const std::array<std::int32_t, 2> perm = {1, 0};
  list<lockstep::f16> halves(6);
  lockstep::convert<lockstep::f16, float>(c, src, halves, shape, perm, 0.5);
  const std::uint16_t want[] = {0x3800, 0x4000, 0x3C00, 0x4100, 0x3E00, 0x4200};
  for (size_t k = 0; k < 6; ++k) EXPECT_EQ(halves[k].bits, want[k]) << k;
  list<double> wide(6);
  lockstep::convert<double, lockstep::f16>(c, halves, wide);
  EXPECT_EQ(wide, (list<double>{0.5, 2, 1, 2.5, 1.5, 3}));
  lockstep::convert<double, lockstep::f16>(c, halves, wide, -2);
  EXPECT_EQ(wide, (list<double>{-1, -4, -2, -5, -3, -6}));
  expect_refused(lockstep::try_convert<double, float>(c, src, std::span(wide).first(5)), invalid, "dst has 5");
  expect_refused(lockstep::try_convert<double, float>(c, std::span(src).first(5), wide, shape, perm), invalid,
                 "src has 5");
  expect_refused(lockstep::try_convert<double, float>(c, src, wide, shape, std::span(perm).first(1)), invalid,
                 "same length");
  expect_refused(lockstep::try_convert<double, float>(c, src, wide, shape, std::array<std::int32_t, 2>{1, 1}), invalid,
                 "shape");
  list<std::int32_t> whole(6);
  lockstep::convert<std::int32_t, float>(c, src, whole, -1.5);  // without fractions
  EXPECT_EQ(whole, (list<std::int32_t>{-1, -3, -4, -6, -7, -9}));
}

TEST_F(Cpp, Map) {
  const list<float> src = {1, 4, 9, 16, 25, 36};
  const std::array<std::int64_t, 2> shape = {2, 3};
  const std::array<std::int32_t, 2> perm = {1, 0};
  list<float> roots(6);
  lockstep::map<float, float>(c, LOCKSTEP_MAP_SQRT, src, roots);
  EXPECT_EQ(roots, (list<float>{1, 2, 3, 4, 5, 6}));
  lockstep::map<float, float>(c, LOCKSTEP_MAP_SQRT, src, roots, shape, perm);
  EXPECT_EQ(roots, (list<float>{1, 4, 2, 5, 3, 6}));
  expect_refused(lockstep::try_map<float, float>(c, LOCKSTEP_MAP_EXP, src, std::span(roots).first(5)), invalid,
                 "dst has 5");
  expect_refused(lockstep::try_map<float, float>(c, LOCKSTEP_MAP_EXP, src, roots, shape, std::span(perm).first(1)),
                 invalid, "same length");
  const list<float> times = {1, 2, 3, 4, 5, -6};
  lockstep::map<float, float>(c, LOCKSTEP_MAP_SQRT, src, times, roots);
  EXPECT_EQ(roots, (list<float>{1, 4, 9, 16, 25, -36}));
  expect_refused(lockstep::try_map<float, float>(c, LOCKSTEP_MAP_EXP, src, std::span(times).first(5), roots), invalid,
                 "times has 5");
  list<double> wide(6);
  EXPECT_EQ(thrown([&] { lockstep::map<double, float>(c, LOCKSTEP_MAP_EXP, src, wide); }), LOCKSTEP_UNSUPPORTED);
}

TEST_F(Cpp, Scan) {
  const list<float> src = {1, -2, 3, 4};
  list<float> dst(4);
  list<double> wide(4);
  lockstep::scan<float, float>(c, LOCKSTEP_SUM, src, dst);
  EXPECT_EQ(dst, (list<float>{1, -1, 2, 6}));
  lockstep::scan<double, float>(c, LOCKSTEP_SUM, src, wide, true);
  EXPECT_EQ(wide, (list<double>{0, 1, -1, 2}));
  lockstep::scan<float, float>(c, LOCKSTEP_MAX, src, dst);
  EXPECT_EQ(dst, (list<float>{1, 1, 3, 4}));
  list<float> two(2);
  expect_refused(lockstep::try_scan<float, float>(c, LOCKSTEP_SUM, src, two), invalid, "dst has 2");
  EXPECT_EQ(thrown([&] { lockstep::scan<double, float>(c, LOCKSTEP_MIN, src, wide); }), invalid);
}

// ---- reductions ---------------------------------------------------------------

// 3, -1, 4, 1, -5 in any type: sum 2, squares 52.
template <class T>
list<T> five() {
  if constexpr (std::is_same_v<T, lockstep::f16>)
    return {{0x4200}, {0xBC00}, {0x4400}, {0x3C00}, {0xC500}};
  else if constexpr (std::is_same_v<T, lockstep::bf16>)
    return {{0x4040}, {0xBF80}, {0x4080}, {0x3F80}, {0xC0A0}};
  else
    return {3, -1, 4, 1, -5};
}

template <class T>
void squares(lockstep::context& c) {
  const list<T> x = five<T>();
  EXPECT_EQ(lockstep::square_sum<T>(c, x), 52);
  EXPECT_EQ(lockstep::norm2<T>(c, x), std::sqrt(52.0));
  lockstep::sum_of<T> sum{};
  EXPECT_FALSE(lockstep::try_square_sum<T>(c, x, sum));
  EXPECT_EQ(sum, 52);
  double norm = 0;
  EXPECT_FALSE(lockstep::try_norm2<T>(c, x, norm));
  EXPECT_EQ(norm, std::sqrt(52.0));
  EXPECT_EQ((lockstep::reduce<float, T>(c, LOCKSTEP_NORM2, x)), static_cast<float>(std::sqrt(52.0)));
}

template <class T>
void comparisons(lockstep::context& c) {
  const list<T> x = five<T>();
  EXPECT_EQ(lockstep::sum<T>(c, x), 2);
  EXPECT_EQ(lockstep::min<T>(c, x), -5);
  EXPECT_EQ(lockstep::max<T>(c, x), 4);
  EXPECT_EQ(lockstep::argmin<T>(c, x), 4);
  EXPECT_EQ(lockstep::argmax<T>(c, x), 2);
  EXPECT_EQ((lockstep::reduce<T, T>(c, LOCKSTEP_MAX, x)), 4);
  lockstep::sum_of<T> sum{};
  T least{}, most{};
  int64_t first = -1, second = -1;
  EXPECT_FALSE(lockstep::try_sum<T>(c, x, sum));
  EXPECT_FALSE(lockstep::try_min<T>(c, x, least));
  EXPECT_FALSE(lockstep::try_max<T>(c, x, most));
  EXPECT_FALSE(lockstep::try_argmin<T>(c, x, first));
  EXPECT_FALSE(lockstep::try_argmax<T>(c, x, second));
  EXPECT_EQ(sum, 2);
  EXPECT_EQ(least, -5);
  EXPECT_EQ(most, 4);
  EXPECT_EQ(first, 4);
  EXPECT_EQ(second, 2);

  // 2 x 3, and its segments {3, -1}, {}, {4, 1, -5, 9}.
  const list<T> m = {3, -1, 4, 1, -5, 9};
  list<lockstep::sum_of<T>> rows(2), cols(3), parts(3);
  list<int64_t> where(3);
  const int64_t offsets[] = {0, 2, 2, 6};
  using S = lockstep::sum_of<T>;
  lockstep::reduce_matrix<S, T>(c, LOCKSTEP_SUM, along::rows, m, rows, 2, 3);
  EXPECT_EQ(rows, (list<S>{6, 5}));
  EXPECT_FALSE((lockstep::try_reduce_matrix<S, T>(c, LOCKSTEP_SUM, along::columns, m, cols, 2, 3)));
  EXPECT_EQ(cols, (list<S>{4, -6, 13}));
  EXPECT_FALSE((lockstep::try_reduce_matrix<int64_t, T>(c, LOCKSTEP_ARGMAX, along::columns, m, where, 2, 3)));
  EXPECT_EQ(where, (list<int64_t>{0, 0, 1}));
  lockstep::reduce_segments<S, T>(c, LOCKSTEP_SUM, m, offsets, parts);
  EXPECT_EQ(parts, (list<S>{2, 0, 9}));
  parts.assign(3, 7);
  EXPECT_FALSE((lockstep::try_reduce_segments<S, T>(c, LOCKSTEP_SUM_OF_SQUARES, m, offsets, parts)));
  EXPECT_EQ(parts, (list<S>{10, 0, 123}));
}

TEST_F(Cpp, Reductions) {
  squares<lockstep::f16>(c);
  squares<lockstep::bf16>(c);
  squares<float>(c);
  squares<double>(c);
  squares<int32_t>(c);
  squares<int64_t>(c);
  comparisons<float>(c);
  comparisons<double>(c);
  comparisons<int32_t>(c);
  comparisons<int64_t>(c);
}

TEST_F(Cpp, RefusedReductions) {
  const list<int64_t> large = {INT64_MAX, 1}, none;
  int64_t sum = 0, where = 5, value = 6;
  expect_refused(lockstep::try_sum<int64_t>(c, large, sum), LOCKSTEP_OVERFLOW, "sequence 0");
  EXPECT_EQ(sum, INT64_MAX);
  EXPECT_EQ(thrown([&] { (void)lockstep::sum<int64_t>(c, large); }), LOCKSTEP_OVERFLOW);
  expect_refused(lockstep::try_square_sum<int64_t>(c, large, sum), LOCKSTEP_OVERFLOW, "sequence 0");
  EXPECT_EQ(thrown([&] { (void)lockstep::square_sum<int64_t>(c, large); }), LOCKSTEP_OVERFLOW);
  expect_refused(lockstep::try_min<int64_t>(c, none, value), LOCKSTEP_EMPTY, "sequence 0");
  expect_refused(lockstep::try_max<int64_t>(c, none, value), LOCKSTEP_EMPTY, "sequence 0");
  expect_refused(lockstep::try_argmin<int64_t>(c, none, where), LOCKSTEP_EMPTY, "sequence 0");
  expect_refused(lockstep::try_argmax<int64_t>(c, none, where), LOCKSTEP_EMPTY, "sequence 0");
  EXPECT_EQ(value, 6);
  EXPECT_EQ(where, 5);
  EXPECT_EQ(thrown([&] { (void)lockstep::min<int64_t>(c, none); }), LOCKSTEP_EMPTY);
  EXPECT_EQ(thrown([&] { (void)lockstep::max<int64_t>(c, none); }), LOCKSTEP_EMPTY);
  EXPECT_EQ(thrown([&] { (void)lockstep::argmin<int64_t>(c, none); }), LOCKSTEP_EMPTY);
  EXPECT_EQ(thrown([&] { (void)lockstep::argmax<int64_t>(c, none); }), LOCKSTEP_EMPTY);
  EXPECT_EQ(lockstep::sum<int64_t>(c, none), 0);
  EXPECT_EQ(lockstep::norm2<int64_t>(c, none), 0.0);
  EXPECT_EQ(thrown([&] { (void)lockstep::reduce<float, int64_t>(c, LOCKSTEP_SUM, large); }), invalid);
  list<int64_t> dst(2);
  using lockstep::try_reduce_matrix;
  expect_refused(try_reduce_matrix<int64_t, int64_t>(c, LOCKSTEP_SUM, along::rows, large, dst, 2, 2), invalid,
                 "src has 2 elements, but the shape needs 4");
  expect_refused(try_reduce_matrix<int64_t, int64_t>(c, LOCKSTEP_SUM, along::rows, large, out(dst).first(1), 2, 1),
                 invalid, "dst has 1");
  EXPECT_EQ(
      thrown([&] { lockstep::reduce_matrix<int64_t, int64_t>(c, LOCKSTEP_SUM, along::columns, large, dst, -1, 2); }),
      invalid);
  const int64_t falls[] = {0, 2, 1};
  expect_refused(lockstep::try_reduce_segments<int64_t, int64_t>(c, LOCKSTEP_SUM, large, {}, dst), invalid, "offsets");
  expect_refused(lockstep::try_reduce_segments<int64_t, int64_t>(c, LOCKSTEP_SUM, large, falls, out(dst).first(1)),
                 invalid, "dst has 1");
  EXPECT_EQ(thrown([&] { lockstep::reduce_segments<int64_t, int64_t>(c, LOCKSTEP_SUM, large, falls, dst); }), invalid);
  // A value is there when the call returns, whatever the options say.
  lockstep_options queued = lockstep_options_defaults();
  queued.flags = LOCKSTEP_ASYNC;
  EXPECT_EQ(lockstep::sum<float>(c, five<float>(), &queued), 2.0);
}

// ---- stencils -----------------------------------------------------------------

template <class T>
void stencils(lockstep::context& c) {
  const list<T> x = {1, 2, 4, 8, 16, 32};
  list<T> y(6);
  const int64_t shape[] = {6};
  const list<double> general = {1, 10, 100}, halves = {10, 1}, slope = {0, 0.5};
  lockstep::stencil<T>(c, x, y, shape, 1, general, LOCKSTEP_BOUNDARY_WRAP);
  EXPECT_EQ(y, (list<T>{32 + 10 + 200, 1 + 20 + 400, 2 + 40 + 800, 4 + 80 + 1600, 8 + 160 + 3200, 16 + 320 + 100}));
  EXPECT_FALSE(lockstep::try_stencil<T>(c, x, y, shape, 1, halves, LOCKSTEP_BOUNDARY_CONSTANT, 1, 7.0));
  EXPECT_EQ(y, (list<T>{7 + 10 + 2, 1 + 20 + 4, 2 + 40 + 8, 4 + 80 + 16, 8 + 160 + 32, 16 + 320 + 7}));
  lockstep::stencil<T>(c, x, y, shape, 1, lockstep::antisymmetric(slope), LOCKSTEP_BOUNDARY_NEAREST);
  EXPECT_EQ(y, (list<T>{T(0.5), T(1.5), 3, 6, 12, 8}));
  EXPECT_FALSE(lockstep::try_stencil<T>(c, x, y, shape, 1, lockstep::antisymmetric(slope), LOCKSTEP_BOUNDARY_WRAP));
  EXPECT_EQ(y, (list<T>{-15, T(1.5), 3, 6, 12, T(-7.5)}));
  y.assign(6, -1);
  EXPECT_FALSE(lockstep::try_stencil<T>(c, x, out(y).first(2), shape, 1, halves, LOCKSTEP_BOUNDARY_VALID, 2));
  EXPECT_EQ(y, (list<T>{25 + 500 + 100, 50 + 1000 + 200, -1, -1, -1, -1}));  // 25, 50, 100, 200 after the first sweep
  // 3 x 3, a star: general in 2-D is -row, -column, centre, column, row.
  const list<T> m = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const int64_t square[] = {3, 3};
  const list<double> star = {1, 10, 100, 1000, 10000};
  list<T> one(1);
  lockstep::stencil<T>(c, m, one, square, 1, star, LOCKSTEP_BOUNDARY_VALID);
  EXPECT_EQ(one[0], T(2 + 40 + 500 + 6000 + 80000));
}

TEST_F(Cpp, Stencil) {
  stencils<float>(c);
  stencils<double>(c);
  list<float> x(6), y(6);
  const int64_t shape[] = {6}, four[] = {1, 1, 1, 1};
  const list<double> w = {1, 2}, bent = {3, 1}, wrong = {1, 2, 3, 4};
  const auto refused = [&](std::span<const float> from, std::span<float> to, std::span<const int64_t> sizes,
                           lockstep::weights taps, const char* part) {
    expect_refused(lockstep::try_stencil<float>(c, from, to, sizes, 1, taps, LOCKSTEP_BOUNDARY_MIRROR), invalid, part);
  };
  refused(x, y, four, w, "1 to 3 axes");
  refused(x, y, {}, w, "1 to 3 axes");
  refused(in(x).first(5), y, shape, w, "src has 5");
  refused(x, out(y).first(5), shape, w, "dst has 5");
  refused(x, y, shape, wrong, "coefficient_count is 4");
  refused(x, y, shape, lockstep::antisymmetric(bent), "coefficients[0] is 3");
  refused(x, y, shape, lockstep::antisymmetric(wrong), "coefficient_count is 4");
  EXPECT_EQ(thrown([&] { lockstep::stencil<float>(c, x, y, shape, 1, wrong, LOCKSTEP_BOUNDARY_WRAP); }), invalid);
}

// ---- descriptions and plans ----------------------------------------------------

template <class Desc, class T, class R>
void described(lockstep::context& c, const Desc& d, const list<T>& src, const list<R>& want) {
  const auto fresh = [&] { return list<R>(want.size()); };
  list<R> a = fresh(), b = fresh(), p = fresh(), q = fresh();
  lockstep::run(c, d, src.data(), a.data());
  EXPECT_FALSE(lockstep::try_run(c, d, src.data(), b.data()));
  lockstep::plan made(c, d);
  made.execute(src.data(), p.data());
  lockstep::plan other{nullptr};
  EXPECT_FALSE(lockstep::plan::try_create(c, d, other));
  EXPECT_FALSE(other.try_execute(src.data(), q.data()));
  for (const list<R>& got : {a, b, p, q}) EXPECT_EQ(got, want);
  size_t bytes = 1;
  EXPECT_FALSE(made.try_workspace_bytes(bytes));
  EXPECT_EQ(bytes, made.workspace_bytes());
  EXPECT_EQ(lockstep::last_run().order, LOCKSTEP_ORDER_1);

  Desc none = d;
  none.size = 1;
  expect_refused(lockstep::try_run(c, none, src.data(), a.data()), invalid, "desc->size is 1");
  EXPECT_EQ(a, want);
  expect_refused(lockstep::plan::try_create(c, none, other), invalid, "desc->size is 1");
  EXPECT_EQ(other.get(), nullptr);
  expect_refused(other.try_execute(src.data(), q.data()), invalid, "plan is NULL");
  expect_refused(other.try_workspace_bytes(bytes), invalid, "plan is NULL");
}

TEST_F(Cpp, DescriptionsAndPlans) {
  const list<float> x = {3, -1, 4, 1, -5, 9};
  described(c, lockstep_transpose_packed(4, 2, 3), x, list<float>{3, 1, -1, -5, 4, 9});
  const int64_t shape[] = {2, 3};
  const int32_t perm[] = {1, 0};
  described(c, lockstep_permute_packed(4, 2, shape, perm), x, list<float>{3, 1, -1, -5, 4, 9});
  described(c, lockstep_reduce_rows(LOCKSTEP_MAX, LOCKSTEP_F32, 2, 3, 3), x, list<float>{4, 9});
  described(c, lockstep_reduce_columns(LOCKSTEP_SUM_OF_SQUARES, LOCKSTEP_F32, 2, 3, 3), x, list<double>{10, 26, 97});
  described(c, lockstep_reduce_full(LOCKSTEP_NORM2, LOCKSTEP_F32, 3, 2), x, list<double>{std::sqrt(50.0)});
  const int64_t line[] = {6};
  const double taps[] = {0, 1, 0};
  described(c, lockstep_stencil_packed(LOCKSTEP_F32, 1, line, 1, taps, LOCKSTEP_BOUNDARY_NEAREST), x, x);
  list<int32_t> warp(32), swapped(32);
  std::iota(warp.begin(), warp.end(), 0);
  for (int i = 0; i < 32; ++i) swapped[static_cast<size_t>(i)] = i ^ 2;
  described(c, lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_XOR, 4, 32, 32, 2), warp, swapped);
  described(c, lockstep_normalize_rows(LOCKSTEP_NORMALIZE_L2, LOCKSTEP_F32, 2, 3, 16), x,
            list<float>{3 / 16.0f, -1 / 16.0f, 0.25f, 1 / 16.0f, -5 / 16.0f, 9 / 16.0f});

  EXPECT_EQ(thrown([&] { lockstep::run(c, lockstep_transpose_packed(3, 1, 1), x.data(), warp.data()); }), invalid);
  EXPECT_EQ(thrown([&] { lockstep::plan(c, lockstep_transpose_packed(3, 1, 1)); }), invalid);
  lockstep::plan made(c, lockstep_transpose_packed(4, 2, 3));
  EXPECT_EQ(thrown([&] { made.execute(nullptr, warp.data()); }), invalid);
  lockstep::plan moved = std::move(made);
  EXPECT_EQ(thrown([&] { (void)made.workspace_bytes(); }), invalid);
  list<float> turned(6);
  moved.execute(x.data(), turned.data());
  EXPECT_EQ(turned, (list<float>{3, 1, -1, -5, 4, 9}));
}

TEST_F(Cpp, LastRun) {
  const list<float> x = {1, 2};
  (void)lockstep::sum<float>(c, x);
  const lockstep_run_info info = lockstep::last_run();
  EXPECT_STREQ(info.backend, "cpu");
  lockstep_run_info again{};
  EXPECT_FALSE(lockstep::try_last_run(again));
  EXPECT_STREQ(again.variant, info.variant);
}

}  // namespace
