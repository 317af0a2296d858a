// model_test.cpp - the cost model's arithmetic, and its file: valid texts are read, all
// others refused.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "choose/calibration.hpp"

namespace {
using namespace lockstep::lib;

constexpr auto MiB = 1048576.0;

// start + bytes at a rate: what lies between the points is then known.
cost::curves affine(double start_us, double gb_s) {
  cost::curves all;
  for (int w = 0; w < cost::works; ++w)
    for (size_t k = 0; k < cost::sizes.size(); ++k)
      all[static_cast<size_t>(w)][k] =
          start_us + (w == cost::line_sweeps ? cost::many_sweeps : 1) * cost::sizes[k] / gb_s * 1e-3;
  return all;
}
cost::model simple() {
  cost::model m;
  m.cpu[1] = affine(2, 10);
  m.cpu[16] = affine(2, 160);
  m.devices["cuda"] = {affine(10, 1000), affine(20, 50), affine(30, 10), affine(30, 2), affine(42, 5)};
  return m;
}

TEST(arithmetic, between_the_points_and_beyond_them) {
  const cost::model m = simple();
  for (const double bytes : {4096.0, 5000.0, 1e5, 3 * MiB, 1e9})
    EXPECT_NEAR(cost::cpu_us(m, {cost::shuffle, bytes}, 1), 2 + bytes / 10e3, 1e-6 * bytes) << bytes;
  EXPECT_DOUBLE_EQ(cost::cpu_us(m, {cost::shuffle, 1}, 1), cost::cpu_us(m, {cost::shuffle, 4096}, 1));
  EXPECT_NEAR(cost::cpu_us(m, {cost::shuffle, 8e9}, 1), 800e3, 20);
  EXPECT_NEAR(cost::device_us(m, {cost::reduce, 100 * MiB}, "cuda", cost::pinned, 16), 20 + 100 * MiB / 50e3, 0.1);
  EXPECT_NEAR(cost::device_us(m, {cost::reduce, 100 * MiB}, "cuda", cost::pageable, 16), 30 + 100 * MiB / 10e3, 0.1);
  EXPECT_NEAR(cost::trips_us(m, {cost::reduce, MiB}, "cuda"), 40 + MiB / 5e3 - MiB / 160e3, 0.1);
}

TEST(arithmetic, thread_counts) {
  const cost::model m = simple();
  const cost::call c{cost::transpose, 256 * MiB};
  const double sixteen = cost::cpu_us(m, c, 16);
  for (const int threads : {1, 2, 3, 4, 8, 16})  // what is shared out is, the start of a call is not
    EXPECT_NEAR(cost::cpu_us(m, c, threads), 2 + 256 * MiB / 10e3 / threads, 0.01) << threads;
  EXPECT_DOUBLE_EQ(cost::cpu_us(m, c, 64), sixteen);
  cost::model four = m;
  four.cpu.erase(1);
  EXPECT_DOUBLE_EQ(cost::cpu_us(four, c, 1), sixteen);
}

TEST(arithmetic, who_copies_pageable_memory) {
  const cost::model m = simple();
  const cost::call c{cost::reduce, 256 * MiB};
  const double one = 30 + 256 * MiB / 2e3, all = 30 + 256 * MiB / 10e3, shared = (one - all) * 16 / 15;
  for (const int threads : {1, 2, 4, 16})
    EXPECT_NEAR(cost::device_us(m, c, "cuda", cost::pageable, threads), one - shared * (1 - 1.0 / threads), 1)
        << threads;
  EXPECT_DOUBLE_EQ(cost::device_us(m, c, "cuda", cost::pageable, 64),
                   cost::device_us(m, c, "cuda", cost::pageable, 16));
  EXPECT_DOUBLE_EQ(cost::device_us(m, c, "cuda", cost::pinned, 1), cost::device_us(m, c, "cuda", cost::pinned, 16));
}

TEST(arithmetic, sweeps_and_taps) {
  cost::model m = simple();
  const cost::call once{cost::line_stencil, 64 * MiB}, often{cost::line_stencil, 64 * MiB, 100};
  EXPECT_NEAR(cost::cpu_us(m, often, 1) / cost::cpu_us(m, once, 1), 100, 0.1);
  const cost::call star{cost::star_stencil, 64 * MiB}, star_often{cost::star_stencil, 64 * MiB, 100};
  EXPECT_NEAR(cost::cpu_us(m, star_often, 1) / cost::cpu_us(m, star, 1), 100, 0.1);
  // The trips are paid once: an upload of 6.7 ms and 99 more sweeps of 67 us.
  EXPECT_NEAR(cost::device_us(m, often, "cuda", cost::pageable, 16), 30 + 64 * MiB / 10e3 + 99 * 64 * MiB / 1000e3,
              500);
  EXPECT_LT(cost::device_us(m, once, "cuda", cost::pageable, 16),
            cost::device_us(m, often, "cuda", cost::pageable, 16));
  for (cost::curve* c : {&m.cpu[1][cost::star_stencil]})
    for (double& us : *c) us *= 5;
  EXPECT_NEAR(cost::cpu_us(m, {cost::star_stencil, 64 * MiB, 1, 50}, 1), 10 * cost::cpu_us(m, once, 1), 100);
  EXPECT_DOUBLE_EQ(cost::cpu_us(m, {cost::star_stencil, 64 * MiB, 1, 1}, 1),
                   cost::cpu_us(m, once, 1));  // never less than a line
}

// Sweeps that no row of a device joins are paid in full there, however cheap joined ones are.
TEST(arithmetic, sweeps_one_by_one) {
  cost::model m = simple();
  for (auto& [name, device] : m.devices)
    for (double& us : device[cost::on_device][cost::line_sweeps]) us /= cost::many_sweeps;
  cost::call star{cost::star_stencil, 64 * MiB, 100};
  const double once = cost::device_us(m, {cost::star_stencil, 64 * MiB}, "cuda", cost::on_device, 16);
  EXPECT_LT(cost::device_us(m, star, "cuda", cost::on_device, 16), 10 * once);
  star.together = false;
  EXPECT_NEAR(cost::device_us(m, star, "cuda", cost::on_device, 16), 100 * once, once);
  EXPECT_LT(cost::device_us(m, star, "cuda", cost::pinned, 16),
            cost::device_us(m, {cost::star_stencil, 64 * MiB}, "cuda", cost::pinned, 16) + 99.5 * once);
}

TEST(arithmetic, elements) {
  EXPECT_EQ(cost::of_elements(cost::transpose, 4), cost::transpose);
  EXPECT_EQ(cost::of_elements(cost::permute, 1), cost::permute_fine);
  EXPECT_EQ(cost::of_elements(cost::narrow, 2), cost::narrow_fine);
  EXPECT_EQ(cost::of_elements(cost::thin, 8), cost::thin_wide);
  EXPECT_EQ(cost::of_elements(cost::swap, 16), cost::swap_wide);
}

TEST(arithmetic, an_unknown_backend_counts_as_cuda) {
  const cost::model m = simple();
  EXPECT_DOUBLE_EQ(cost::device_us(m, {cost::permute, MiB}, "other", cost::pinned, 16),
                   cost::device_us(m, {cost::permute, MiB}, "cuda", cost::pinned, 16));
}

// What the README says of it.
TEST(built_in, one_pass_over_pageable_memory_is_the_cpus) {
  const cost::model m = built_in_model();
  for (const cost::work what : {cost::shuffle, cost::transpose, cost::square_sum, cost::reduce, cost::line_stencil})
    for (const double bytes : {1e4, 1e6, 1e8})
      EXPECT_LT(cost::cpu_us(m, {what, bytes}, 16), cost::device_us(m, {what, bytes}, "cuda", cost::pageable, 16))
          << cost::work_names[what] << bytes;
  const cost::call often{cost::line_stencil, 256 * MiB, 100};
  EXPECT_GT(cost::cpu_us(m, often, 16), 5 * cost::device_us(m, often, "cuda", cost::pageable, 16));
}

// ---- the text ---------------------------------------------------------------

const device_names here = {{"cpu", "A CPU; 2 threads"}, {"gpu", "A GPU; driver 1"}};

std::string times(const std::string& who, double first) {
  std::string text;
  for (const char* what : cost::work_names) {
    text += "time " + who + " " + what;
    for (size_t k = 0; k < cost::sizes.size(); ++k) text += " " + std::to_string(first * static_cast<double>(k + 1));
    text += "\n";
  }
  return text;
}
std::string whole() {
  return "lockstep-calibration 3\n# a comment\n\ndevice cpu A CPU; 2 threads\ndevice gpu A GPU; driver 1\n"
         "bytes 4096 16384 65536 262144 1048576 4194304 16777216 67108864 268435456 1073741824\n" +
         times("cpu 1", 2) + times("cpu 2", 1) + times("gpu device", 3) + times("gpu pinned", 4) +
         times("gpu pageable", 5) + times("gpu alone", 6) + times("gpu away", 7) + "end\n";
}
std::string with(const std::string& from, const std::string& to) {
  std::string text = whole();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}
bool same(const cost::model& a, const cost::model& b) { return a.cpu == b.cpu && a.devices == b.devices; }

// The reason, and that the model is then as it was.
std::string refused(const std::string& text) {
  cost::model m = simple();
  const std::string why = parse_calibration(text, here, m);
  EXPECT_TRUE(why.empty() || same(m, simple())) << why;
  return why;
}

TEST(text, a_whole_file) {
  cost::model m = simple();
  EXPECT_EQ(parse_calibration(whole(), here, m), "");
  EXPECT_EQ(m.cpu.size(), 2u);
  EXPECT_DOUBLE_EQ(cost::cpu_us(m, {cost::reduce, 4096}, 1), 2);
  EXPECT_DOUBLE_EQ(cost::cpu_us(m, {cost::reduce, 16384}, 2), 2);
  EXPECT_DOUBLE_EQ(cost::device_us(m, {cost::narrow, 65536}, "gpu", cost::pageable, 16), 15);
  EXPECT_EQ(m.devices.count("cuda"), 1u);  // which the file does not have
}

TEST(text, what_is_refused_and_why) {
  const auto says = [](const std::string& text, const std::string& part) {
    const std::string why = refused(text);
    EXPECT_NE(why.find(part), std::string::npos) << "\"" << why << "\", not \"" << part << "\"";
  };
  says("", "empty");
  says("hello\n", "not a calibration file");
  says(with("calibration 3", "calibration 1"), "version 1");
  says(with("A CPU;", "Another CPU;"), "made for cpu \"Another CPU; 2 threads\", this is \"A CPU; 2 threads\"");
  says(with("2 threads", "3 threads"), "this is");
  says(with("driver 1", "driver 2"), "made for gpu");
  says(with("device gpu", "device tpu"), "does not run here");
  says(with("device gpu A GPU; driver 1\n", ""), "without a line that names its device");
  says(with("bytes 4096", "bytes 4095"), "other sizes");
  says(with(" 1073741824\n", "\n"), "other sizes");
  says(with("time cpu 1 permute", "time cpu 1 hashing"), "not a kind of work");
  says(with("time cpu 1 permute", "time cpu 0 permute"), "not a thread count");
  says(with("time cpu 1 permute", "time cpu 99999999999 permute"), "not a thread count");
  says(with("time gpu pinned permute", "time gpu nearby permute"), "not a place");
  says(with("time cpu 2 permute", "time cpu 1 permute"), "twice");
  says(with("time gpu pinned permute", "# time"), "has no permute of gpu pinned");
  says(whole().substr(0, whole().find("time")) + "end\n", "no times of the CPU");
  says(whole().substr(0, whole().find("time gpu")) + "end\n", "no times of gpu");
  says(whole().substr(0, whole().size() - 4), "cut short");
  for (const char* value : {"nan", "inf", "-1", "0", "1e999", "1e-999", "0x10", "1,5", "1.5us", "--1", "1e10"})
    says(with(" 2.000000", std::string(" ") + value), "is not a time");
  says(with(" 2.000000", ""), "not understood");
  says(with(" 2.000000", " 1 1"), "not understood");
  says(whole() + "time\n", "after the end");
  says(with("# a comment", "a comment"), "not understood");
  says(whole() + std::string("\0\0\0", 3), "after the end");
}

TEST(text, cut_short_anywhere_it_is_refused) {
  const std::string text = whole();
  for (size_t n = 0; n < text.size() - 1; n += n < 400 ? 1 : 7) EXPECT_NE(refused(text.substr(0, n)), "") << n;
}

// Whatever stands there: a model of sane numbers, or the old one.
TEST(text, spoilt_at_random_nothing_insane_gets_in) {
  std::mt19937 random(20261121);
  const std::string text = whole();
  const auto draw = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int taken = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    std::string spoilt = text;
    for (size_t edits = 1 + draw(4); edits-- > 0;) {
      const size_t at = draw(spoilt.size());
      switch (draw(4)) {
        case 0: spoilt[at] = static_cast<char>(random()); break;
        case 1: spoilt.erase(at, 1 + draw(40)); break;
        case 2: spoilt.insert(at, spoilt.substr(draw(spoilt.size()), draw(60))); break;
        default: spoilt[at] = "0123456789.e- \n#"[draw(16)];
      }
    }
    cost::model m = simple();
    if (!parse_calibration(spoilt, here, m).empty()) {
      ASSERT_TRUE(same(m, simple()));
      continue;
    }
    ++taken;
    for (const auto& [threads, curves] : m.cpu)
      for (const cost::curve& c : curves)
        for (const double us : c) ASSERT_TRUE(threads >= 1 && threads <= 4096 && us >= 1e-3 && us <= 1e9);
    for (const auto& [name, all] : m.devices)
      for (const cost::curves& curves : all)
        for (const cost::curve& c : curves)
          for (const double us : c) ASSERT_TRUE(us >= 1e-3 && us <= 1e9);
  }
  EXPECT_GT(taken, 100);  // digits of times and comments may change
}

}  // namespace
