// file_test.cpp - the calibration file through the C ABI: where it is searched, whether it
// is trusted, and how auto uses it. The device is the reference rows as a module.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "cases.hpp"
#include "choose/cost.hpp"
#include "lockstep/lockstep.h"

namespace {
namespace fs = std::filesystem;
namespace cost = lockstep::lib::cost;

struct told {
  std::string source, path, reason;
};

class file : public testing::Test {
 protected:
  void SetUp() override {
    // /tmp itself is everybody's: a folder within, as a cache folder is.
    std::string pattern = (fs::temp_directory_path() / "lockstep-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ / "calibration";
    setenv("LOCKSTEP_CALIBRATION", path_.c_str(), 1);
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
    unsetenv("LOCKSTEP_CALIBRATION");
  }

  static std::string name_of(const char* backend) {
    lockstep_device_info info{};
    info.size = sizeof info;
    EXPECT_EQ(lockstep_device_get(backend, 0, &info), LOCKSTEP_OK) << lockstep_last_error();
    return std::string(info.name) + "; " + info.detail;
  }
  static std::string times(const std::string& who, double us) {
    std::string text;
    for (const char* what : cost::work_names) {
      text += "time " + who + " " + what;
      for (size_t k = 0; k < cost::sizes.size(); ++k) text += " " + std::to_string(us);
      text += "\n";
    }
    return text;
  }
  // Any call takes cpu_us on the CPU and module_us on cpuref.
  static std::string text(double cpu_us, double module_us) {
    return "lockstep-calibration 3\ndevice cpu " + name_of("cpu") + "\ndevice cpuref " + name_of("cpuref") +
           "\nbytes 4096 16384 65536 262144 1048576 4194304 16777216 67108864 268435456 1073741824\n" +
           times("cpu 1", cpu_us) + times("cpuref device", module_us) + times("cpuref pinned", module_us) +
           times("cpuref pageable", module_us) + times("cpuref alone", module_us) + times("cpuref away", module_us) +
           "end\n";
  }
  void write(const std::string& content) const { std::ofstream(path_) << content; }

  static told model(lockstep_context* given = nullptr) {
    lockstep_context* c = given;
    EXPECT_TRUE(c != nullptr || lockstep_context_create(nullptr, &c) == LOCKSTEP_OK) << lockstep_last_error();
    lockstep_model_info info{};
    info.size = sizeof info;
    EXPECT_EQ(lockstep_model_get(c, &info), LOCKSTEP_OK) << lockstep_last_error();
    const told all{info.source, info.path, info.reason};
    if (given == nullptr) lockstep_context_destroy(c);
    return all;
  }
  void expect_ignored(const std::string& part) const {
    const told now = model();
    EXPECT_EQ(now.source, "built-in");
    EXPECT_EQ(now.path, path_.string());
    EXPECT_NE(now.reason.find(part), std::string::npos) << now.reason;
    EXPECT_EQ(ran({}).backend, "cpu");  // and calls go on
  }

  struct where {
    std::string backend, why;
  };
  struct how {
    const char *context = nullptr, *call = nullptr, *variant = nullptr;
  };
  // Transposes 64 x 64 floats in host memory, and looks at the result.
  static where ran(const how& h) {
    lockstep_context_options co = lockstep_context_defaults();
    co.backend = h.context;
    co.threads = 1;
    lockstep_context* c = nullptr;
    EXPECT_EQ(lockstep_context_create(&co, &c), LOCKSTEP_OK) << lockstep_last_error();
    std::vector<float> src(64 * 64), dst(64 * 64);
    for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<float>(i);
    const lockstep_transpose_desc d = lockstep_transpose_packed(4, 64, 64);
    lockstep_options o = lockstep_options_defaults();
    o.backend = h.call;
    o.variant = h.variant;
    EXPECT_EQ(lockstep_transpose(c, &d, src.data(), dst.data(), &o), LOCKSTEP_OK) << lockstep_last_error();
    EXPECT_EQ(dst[64 * 3 + 5], src[64 * 5 + 3]);
    lockstep_run_info info{};
    info.size = sizeof info;
    EXPECT_EQ(lockstep_last_run(&info), LOCKSTEP_OK);
    const where w{info.backend, info.why};
    lockstep_context_destroy(c);
    return w;
  }
  fs::path folder_, path_;
};

TEST_F(file, none_is_no_failure) { expect_ignored("no such file"); }

TEST_F(file, where_it_is_looked_for) {
  setenv("LOCKSTEP_CALIBRATION", "off", 1);
  EXPECT_EQ(model().path, "");
  EXPECT_NE(model().reason.find("LOCKSTEP_CALIBRATION is \"off\""), std::string::npos);
  setenv("LOCKSTEP_CALIBRATION", "here/calibration", 1);
  EXPECT_NE(model().reason.find("absolute path"), std::string::npos);
  unsetenv("LOCKSTEP_CALIBRATION");
  setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  EXPECT_EQ(model().path, (folder_ / "lockstep" / "calibration").string());
  setenv("XDG_CACHE_HOME", "relative", 1);  // which its specification has ignored
  setenv("HOME", "/home/somebody", 1);
  EXPECT_EQ(model().path, "/home/somebody/.cache/lockstep/calibration");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "", 1);
  EXPECT_NE(model().reason.find("HOME"), std::string::npos);
}

TEST_F(file, a_good_one_is_in_force) {
  write(text(10, 1000));
  const told now = model();
  EXPECT_EQ(now.source, path_.string());
  EXPECT_EQ(now.reason, "");
}

TEST_F(file, the_faster_side_is_chosen_and_the_why_says_so) {
  write(text(10, 1000));
  where w = ran({});
  EXPECT_EQ(w.backend, "cpu");
  EXPECT_NE(w.why.find("cpuref: the data is in host memory, and one trip over the link costs more than the CPU needs "
                       "(1e+03 us against 10, calibrated)"),
            std::string::npos)
      << w.why;
  write(text(1000, 10));
  w = ran({});
  EXPECT_EQ(w.backend, "cpuref");
  EXPECT_NE(w.why.find("cpu: cpuref needs less time"), std::string::npos) << w.why;
}

TEST_F(file, what_is_forced_wins) {
  write(text(1000, 10));
  EXPECT_EQ(ran({.context = "cpu"}).backend, "cpu");
  EXPECT_EQ(ran({.call = "cpu"}).backend, "cpu");
  EXPECT_EQ(ran({.variant = "blocked"}).backend, "cpu");  // which cpuref does not have
  write(text(10, 1000));
  EXPECT_EQ(ran({.context = "cpuref"}).backend, "cpuref");
  EXPECT_EQ(ran({.context = "cpu", .call = "cpuref"}).backend, "cpuref");
}

// Which curve a call is looked up in: only one is cheap on cpuref, and a call that is
// chosen for it is of that kind.
TEST_F(file, each_call_is_of_its_kind) {
  const std::pair<const char*, cost::work> calls[] = {
      {"shuffle/b4/xor/w32/op1/n1024", cost::shuffle},
      {"transpose/b4/208x300", cost::transpose},
      {"transpose/b2/224x300", cost::transpose_fine},
      {"transpose/b4/200x300", cost::ragged},
      {"transpose/b4/200x100", cost::thin},
      {"transpose/b4/100x200", cost::flat},
      {"transpose/b4/200x3", cost::narrow},
      {"transpose/b1/200x3", cost::narrow_fine},
      {"transpose/b4/64x64/inplace", cost::swap},
      {"transpose/b1/64x64/inplace", cost::swap_fine},
      {"transpose/b16/64x64/inplace", cost::swap_wide},
      {"transpose/b4/17x33/inplace", cost::in_place},
      {"permute/b4/5x6x70/perm1,0,2", cost::rows},
      {"permute/b4/5x6x7x3/perm1,0,2,3", cost::rows},  // 7 x 3 stay together
      {"permute/b4/5x6x3/perm1,0,2", cost::narrow},
      {"permute/b4/4x16x12x12/perm0,2,3,1", cost::flat},
      {"permute/b4/2x208x12x12/perm0,2,3,1", cost::transpose},
      {"permute/b4/144x140/perm1,0", cost::transpose},
      {"permute/b4/130x140/perm1,0", cost::ragged},
      {"permute/b8/1x136x1x140/perm3,2,1,0", cost::transpose_wide},
      {"permute/b4/20x30x40/perm2,1,0", cost::permute},
      {"permute/b2/20x30x40/perm2,1,0", cost::permute_fine},
      {"permute/b4/20x30x4/perm2,1,0", cost::narrow},
      {"permute/b4/4x30x20/perm2,1,0", cost::narrow},
      {"square_sum/norm2/f64/full/5000", cost::square_sum},
      {"square_sum/ssq/f32/rows/100x20", cost::short_rows},
      {"reduce/min/i32/full/5000", cost::reduce},
      {"reduce/argmin/f32/rows/5x1000", cost::arg_reduce},
      {"reduce/sum/f32/rows/100x20", cost::short_rows},
      {"reduce/sum/f32/even/100x20", cost::segments},
      {"reduce/sum/f32/even/4x3000", cost::reduce},
      {"reduce/sum/f32/columns/100x20", cost::columns},
      {"reduce/sum/f32/strided/5000/stride3", cost::columns},
      {"stencil/f32/general/nearest/r2/1000", cost::line_stencil},
      {"stencil/f32/general/nearest/r1/20x30", cost::star_stencil}};
  for (int w = 0; w < cost::works; ++w) {
    std::string one = text(100, 1000);
    const std::string line = std::string("time cpuref pageable ") + cost::work_names[static_cast<size_t>(w)];
    const size_t at = one.find(line + " ") + line.size(), end = one.find('\n', at);
    std::string cheap;
    for (size_t k = 0; k < cost::sizes.size(); ++k) cheap += " 10";
    write(one.replace(at, end - at, cheap));
    lockstep_context_options o = lockstep_context_defaults();
    o.threads = 1;
    lockstep_context* c = nullptr;
    ASSERT_EQ(lockstep_context_create(&o, &c), LOCKSTEP_OK);
    EXPECT_EQ(model(c).reason, "");
    for (const auto& [name, kind] : calls) {
      const lockstep::cases::test_case t = lockstep::cases::parse(name);
      std::vector<unsigned char> src(t.src.span_bytes()), dst(t.dst.span_bytes());
      lockstep_run_info info{};
      info.size = sizeof info;
      ASSERT_EQ(
          lockstep::cases::call(c, t, t.in_place ? dst.data() : src.data(), dst.data(), t.offsets.data(), nullptr),
          LOCKSTEP_OK)
          << name << ": " << lockstep_last_error();
      ASSERT_EQ(lockstep_last_run(&info), LOCKSTEP_OK);
      EXPECT_EQ(std::string(info.backend) == "cpuref", kind == w)
          << name << " as " << cost::work_names[static_cast<size_t>(w)];
    }
    lockstep_context_destroy(c);
  }
}

TEST_F(file, other_hardware) {
  std::string other = text(1000, 10);
  other.replace(other.find("device cpu ") + 11, 3, "XYZ");
  write(other);
  expect_ignored("made for cpu \"XYZ");
  EXPECT_NE(ran({}).why.find(path_.string() + " is not used: line 2"), std::string::npos) << ran({}).why;
}

TEST_F(file, spoilt) {
  write("lockstep-calibration 7\n");
  expect_ignored("version 7");
  write(text(1000, 10).substr(0, 900));
  expect_ignored("");
  write(std::string(1 << 20, '#'));
  expect_ignored("more than");
  write(std::string(100, '\0'));
  expect_ignored("not a calibration file");
}

TEST_F(file, not_to_be_trusted) {
  write(text(1000, 10));
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  expect_ignored("anybody may write to it");
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  EXPECT_EQ(model().reason, "");
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  expect_ignored("anybody may write to it");
  ASSERT_EQ(chmod(folder_.c_str(), 0700), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
    expect_ignored("belongs to uid 12345");
  } else {
    ASSERT_EQ(chmod(path_.c_str(), 0), 0);
    expect_ignored("cannot be opened");
  }
}

TEST_F(file, no_file_at_all) {
  fs::create_directory(path_);
  expect_ignored("not a regular file");
  fs::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);  // nobody writes to it: reading must not wait
  expect_ignored("not a regular file");
}

TEST_F(file, read_once_by_whoever_comes_first) {
  write(text(1000, 10));
  lockstep_context* c = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &c), LOCKSTEP_OK);
  std::vector<std::thread> crew;
  std::vector<std::string> sources(8);
  for (size_t i = 0; i < sources.size(); ++i) crew.emplace_back([&, i] { sources[i] = model(c).source; });
  for (std::thread& one : crew) one.join();
  for (const std::string& source : sources) EXPECT_EQ(source, path_.string());
  fs::remove(path_);
  EXPECT_EQ(model(c).source, path_.string());  // a context keeps what it has read
  lockstep_context_destroy(c);
  EXPECT_EQ(model().source, "built-in");
}

TEST_F(file, bad_arguments) {
  lockstep_model_info info{};
  info.size = sizeof info;
  EXPECT_EQ(lockstep_model_get(nullptr, &info), LOCKSTEP_INVALID_ARGUMENT);
  lockstep_context* c = nullptr;
  ASSERT_EQ(lockstep_context_create(nullptr, &c), LOCKSTEP_OK);
  EXPECT_EQ(lockstep_model_get(c, nullptr), LOCKSTEP_INVALID_ARGUMENT);
  info.size = 3;
  EXPECT_EQ(lockstep_model_get(c, &info), LOCKSTEP_INVALID_ARGUMENT);
  lockstep_context_destroy(c);
}

}  // namespace
