// tuning_test.cpp - rows chosen by measuring (lib/choose/remembered.hpp): no bit changes, which calls an entry is for,
// and damaged or untrusted files.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

#include "cases.hpp"
#include "lockstep/lockstep.hpp"
#include "runner.hpp"

namespace {
namespace fs = std::filesystem;
using namespace lockstep::cases;
using lockstep::context;

const std::string summed = "reduce/sum/f32/rows/20x3000/seed1";

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}
std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

context cpu(int threads = 0, const char* isa = nullptr) {
  lockstep_context_options o = lockstep_context_defaults();
  o.backend = "cpu";
  o.threads = threads;
  o.cpu_isa = isa;
  return context(o);
}

class tuning : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "lockstep-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ / "tuning";
    setenv("LOCKSTEP_TUNING", path_.c_str(), 1);
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
    unsetenv("LOCKSTEP_TUNING");
  }
  // As a whole, as the library does it.
  void write(const std::string& text) const {
    std::ofstream(path_.string() + ".new") << text;
    fs::rename(path_.string() + ".new", path_);
  }
  std::string read() const { return text_of(path_); }
  std::vector<std::string> entries() const {
    std::vector<std::string> lines;
    for (const std::string& line : split(read(), '\n'))
      if (line.rfind("choice\t", 0) == 0) lines.push_back(line);
    return lines;
  }
  // The only entry with another part in place of one of its own.
  std::string with(size_t part, const std::string& other) const {
    const auto all = entries();
    EXPECT_EQ(all.size(), 1u);
    std::vector<std::string> parts = split(all.at(0), '\t');
    parts.at(part) = other;
    std::string line;
    for (const std::string& p : parts) line += (line.empty() ? "" : "\t") + p;
    return "lockstep-tuning 1\n" + line + "\nend\n";
  }

  struct chosen {
    lockstep_status status = LOCKSTEP_OK;
    std::string variant, why;
    int order = 0;
    bool says(const char* part) const { return why.find(part) != std::string::npos; }
  };
  // Makes a plan of a case, and runs it where the case is given whole: then its result must be the oracle's.
  static chosen plan_of(context& c, const test_case& t, uint32_t flags, const subject* s = nullptr,
                        const char* variant = nullptr) {
    lockstep_options o = lockstep_options_defaults();
    o.flags = flags;
    o.variant = variant;
    lockstep_plan* raw = nullptr;
    chosen made;
    made.status = plan(c.get(), t, t.offsets.data(), &o, &raw);
    if (made.status != LOCKSTEP_OK) {
      made.why = lockstep_last_error();
      return made;
    }
    lockstep_run_info info{};
    info.size = sizeof info;
    EXPECT_EQ(lockstep_plan_get(raw, &info), LOCKSTEP_OK);
    made = {LOCKSTEP_OK, info.variant, info.why, info.order};
    if (s != nullptr) {
      // At a cache line, which some rows need.
      std::vector<unsigned char> memory(s->before.size() + 64);
      unsigned char* const dst = memory.data() + (-reinterpret_cast<uintptr_t>(memory.data()) & 63);
      std::copy(s->before.begin(), s->before.end(), dst);
      EXPECT_EQ(lockstep_plan_execute(raw, t.in_place ? dst : s->src.data(), dst, nullptr), s->want.status)
          << t.name << " by " << made.variant << ": " << lockstep_last_error();
      EXPECT_TRUE(std::equal(s->after.begin(), s->after.end(), dst))
          << t.name << " by " << made.variant << " (" << made.why << ")";
      if (!t.in_place) {
        EXPECT_EQ(lockstep_last_run(&info), LOCKSTEP_OK);
        EXPECT_EQ(info.variant, made.variant);
        EXPECT_EQ(info.why, made.why);
      }
    }
    lockstep_plan_destroy(raw);
    return made;
  }
  static chosen plan_of(uint32_t flags, const std::string& name = summed) {
    context c = cpu();
    return plan_of(c, parse(name), flags);
  }
  struct told {
    std::string path, reason, choices;
    int count;
  };
  static told state() {
    context c = cpu();
    lockstep_tuning_info info{};
    info.size = sizeof info;
    EXPECT_EQ(lockstep_tuning_get(c.get(), &info), LOCKSTEP_OK) << lockstep_last_error();
    return {info.path, info.reason, info.choices, info.count};
  }
  // Nothing of the file is in force, the reason says why, and plans go on as without it.
  static void expect_ignored(const char* part) {
    const told now = state();
    EXPECT_NE(now.reason.find(part), std::string::npos) << now.reason;
    EXPECT_EQ(now.count, 0);
    EXPECT_FALSE(plan_of(0).says("tuned"));
  }
  fs::path folder_, path_;
};

TEST_F(tuning, measures_once_and_remembers) {
  EXPECT_FALSE(plan_of(0).says("tuned"));
  EXPECT_FALSE(fs::exists(path_));
  const chosen first = plan_of(LOCKSTEP_TUNE);
  EXPECT_TRUE(first.says("tuned now: ")) << first.why;
  EXPECT_TRUE(first.says(" us")) << first.why;
  EXPECT_FALSE(first.says("not written")) << first.why;
  const auto parts = split(entries().at(0), '\t');
  ASSERT_EQ(parts.size(), 10u);
  EXPECT_EQ(parts[1], lockstep_version());
  EXPECT_EQ(parts[2], "cpu");
  EXPECT_EQ(parts[6], first.variant);
  struct stat before {
  }, after{};
  ASSERT_EQ(stat(path_.c_str(), &before), 0);
  for (const uint32_t flags : {0u, unsigned{LOCKSTEP_TUNE}}) {  // in other contexts
    const chosen again = plan_of(flags);
    EXPECT_TRUE(again.says("tuned before")) << again.why;
    EXPECT_EQ(again.variant, first.variant);
  }
  ASSERT_EQ(stat(path_.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_TRUE(plan_of(LOCKSTEP_RETUNE).says("tuned now"));
  EXPECT_EQ(entries().size(), 1u);
  const told now = state();
  EXPECT_EQ(now.path, path_.string());
  EXPECT_EQ(now.reason, "");
  EXPECT_EQ(now.count, 1);
  EXPECT_NE(now.choices.find("reduce SUM F32 F64 2^4 of 2^11 rows: "), std::string::npos) << now.choices;
}

// Sizes between the same powers of two share a choice; another type, layout, size, thread count or ISA has its own.
TEST_F(tuning, classes_of_calls) {
  (void)plan_of(LOCKSTEP_TUNE);
  for (const char* same : {"reduce/sum/f32/rows/20x3000", "reduce/sum/f32/rows/31x2048", "reduce/sum/f32/rows/16x4095"})
    EXPECT_TRUE(plan_of(0, same).says("tuned before")) << same;
  for (const char* other :
       {"reduce/sum/f64/rows/20x3000", "reduce/max/f32/rows/20x3000", "square_sum/ssq/f32/rows/20x3000",
        "reduce/sum/f32/rows/15x3000", "reduce/sum/f32/rows/20x4096", "reduce/sum/f32/columns/20x3000",
        "reduce/sum/f32/even/20x3000", "transpose/b4/20x3000"})
    EXPECT_FALSE(plan_of(0, other).says("tuned")) << other;
  context other_threads = cpu(3), other_isa = cpu(0, "baseline");
  EXPECT_FALSE(plan_of(other_threads, parse(summed), 0).says("tuned"));
  EXPECT_FALSE(plan_of(other_isa, parse(summed), 0).says("tuned"));
  // A rectangle is tuned for two arrays and in place.
  const chosen in_place = plan_of(LOCKSTEP_TUNE, "transpose/b4/200x300/inplace");
  EXPECT_TRUE(in_place.says("tuned now: ") && in_place.says("; in place tuned now: in_place_copied ")) << in_place.why;
  EXPECT_EQ(entries().size(), 3u);
  EXPECT_NE(read().find("ragged batch 2^0 in place\t"), std::string::npos) << read();
}

// Whatever row a file names, the bits are the oracle's, and the order is the fixed one.
TEST_F(tuning, same_bits) {
  context c = cpu(2);
  int tuned = 0, forced = 0;
  for (int op = 0; op < LOCKSTEP_OP_COUNT; ++op) {
    const auto names = list(static_cast<lockstep_op>(op), level::quick, 1);
    const size_t step = names.size() / 25 + 1;
    for (size_t k = 0; k < names.size(); k += step) {
      const subject s(parse(names[k]));
      fs::remove(path_);
      const chosen plain = plan_of(c, s.c, 0, &s);
      const chosen now = plan_of(c, s.c, LOCKSTEP_TUNE, &s);
      if (!now.says("tuned now")) continue;  // an empty call, or one that one row takes
      ++tuned;
      const std::string kept = read();
      if (entries().size() != 1) continue;  // and in place
      for (const row& r : rows_of("cpu", static_cast<lockstep_op>(op))) {
        write(with(6, r.name));
        const chosen by_file = plan_of(c, s.c, 0, &s);
        EXPECT_EQ(by_file.order, LOCKSTEP_ORDER_1) << names[k] << " by " << r.name;
        const bool for_auto =
            (r.flags & (LOCKSTEP_OWN_ORDER | LOCKSTEP_LIBRARY | LOCKSTEP_LESSON | LOCKSTEP_REFERENCE)) == 0;
        if (by_file.variant == r.name && for_auto && by_file.variant != plain.variant) ++forced;
        if (!for_auto) {
          EXPECT_EQ(by_file.variant, plain.variant) << names[k];
          EXPECT_TRUE(by_file.says("auto has no variant")) << by_file.why;
        }
        write(kept);
      }
    }
  }
  std::printf("%d plans tuned, %d by another row than auto's\n", tuned, forced);
  EXPECT_GT(tuned, 40);
  EXPECT_GT(forced, 20);
}

TEST_F(tuning, rows_that_cannot_be_taken) {
  const std::string swept = "stencil/f32/general/nearest/r1/40x300/sweeps3", plain = plan_of(0, swept).variant;
  (void)plan_of(LOCKSTEP_TUNE, swept);
  write(with(6, "magic"));
  chosen now = plan_of(0, swept);
  EXPECT_EQ(now.variant, plain);
  EXPECT_TRUE(now.says("auto has no variant magic on cpu")) << now.why;
  write(with(6, "sweeps_registers"));
  const subject s(parse(swept));
  context c = cpu();
  now = plan_of(c, s.c, 0, &s);
  EXPECT_EQ(now.variant, plain);
  EXPECT_TRUE(now.says("sweeps_registers refuses this call: needs rank 1")) << now.why;
  EXPECT_TRUE(plan_of(LOCKSTEP_TUNE, swept).says("tuned now"));  // in its place
  EXPECT_TRUE(plan_of(0, swept).says("tuned before: "));
  EXPECT_FALSE(plan_of(0, swept).says("refuses this call"));
}

// A backend whose second row is the faster one, where dst is aligned (two_module.c).
TEST_F(tuning, the_fastest_is_taken_where_it_can_be) {
  context c("two");
  const auto d = lockstep_transpose_packed(4, 20, 30);
  std::vector<float> src(600), memory(600 + 32);
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<float>(i);
  float* const aligned = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  const auto ran = [&](lockstep::plan& p, float* dst) {
    std::fill(memory.begin(), memory.end(), -1.0f);
    p.execute(src.data(), dst);
    for (size_t i = 0; i < 600; ++i) EXPECT_EQ(dst[i % 30 * 20 + i / 30], src[i]);
    return std::string(lockstep::last_run().variant);
  };
  lockstep::plan plain(c, d);
  EXPECT_EQ(ran(plain, aligned), "slow");
  lockstep_options o = lockstep_options_defaults();
  o.flags = LOCKSTEP_TUNE;
  lockstep::plan now(c, d, &o), later(c, d);
  for (lockstep::plan* p : {&now, &later}) {
    EXPECT_STREQ(p->info().variant, "fast");
    EXPECT_EQ(ran(*p, aligned), "fast");
    EXPECT_NE(std::string(lockstep::last_run().why).find("fast"), std::string::npos) << lockstep::last_run().why;
    EXPECT_EQ(ran(*p, aligned + 1), "slow");
    EXPECT_EQ(ran(*p, aligned), "fast");
  }
  o.flags = 0;
  o.variant = "fast";
  lockstep::plan named(c, d, &o);
  EXPECT_EQ(named.try_execute(src.data(), aligned + 1).status(), LOCKSTEP_UNSUPPORTED);
}

// The rows are timed on memory of the library's: what the description names is neither read nor written.
TEST_F(tuning, arrays_beside_src_and_dst) {
  context c("two");
  std::vector<float> src(600, 2), weight(30, 3), residual(600, 1), sum(600, -1), memory(600 + 32);
  float* const dst = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  lockstep_normalize_desc d = lockstep_normalize_rows(LOCKSTEP_NORMALIZE_RMS, LOCKSTEP_F32, 20, 30, 1e-5);
  d.weight = weight.data(), d.residual = residual.data(), d.sum = sum.data();
  d.residual_stride = d.sum_stride = 30;
  lockstep_options o = lockstep_options_defaults();
  o.flags = LOCKSTEP_TUNE;
  lockstep::plan p(c, d, &o);
  EXPECT_STREQ(p.info().variant, "fast");
  EXPECT_NE(std::string(p.info().why).find("tuned now"), std::string::npos) << p.info().why;
  EXPECT_EQ(sum, std::vector<float>(600, -1));
  p.execute(src.data(), dst);
  EXPECT_EQ(sum, std::vector<float>(600, 3));
  EXPECT_EQ(dst[599], 9.0f);
  EXPECT_NE(read().find("normalize kind 1 F32 F32 2^4 of 2^4 packed ragged weight residual sum\t"), std::string::npos)
      << read();
}

// Every op's calls have classes, and another of a class's kinds is another class.
TEST_F(tuning, classes_of_the_other_ops) {
  const auto same = [&](const char* one, const char* other) {
    fs::remove(path_);
    context c = cpu();
    (void)plan_of(c, parse(one), LOCKSTEP_TUNE);
    return plan_of(c, parse(other), 0).says("tuned before");
  };
  EXPECT_TRUE(same("reduce_axes/sum/f32/50x60x70/axes1", "reduce_axes/sum/f32/51x61x71/axes1"));
  for (const char* other : {"reduce_axes/sum/f32/50x60x70/axes0", "reduce_axes/sum/f32/50x60x70/axes1,2",
                            "reduce_axes/sum/f64/50x60x70/axes1", "reduce_axes/max/f32/50x60x70/axes1",
                            "reduce_axes/sum/f32/50x60x170/axes1", "reduce/sum/f32/rows/3500x60"})
    EXPECT_FALSE(same("reduce_axes/sum/f32/50x60x70/axes1", other)) << other;
  EXPECT_TRUE(same("convert/f32/f16/50x60x70/perm2,0,1", "convert/f32/f16/51x61x71/perm2,0,1"));
  for (const char* other : {"convert/f32/f16/50x60x70/perm2,1,0", "convert/f32/bf16/50x60x70/perm2,0,1",
                            "convert/f64/f16/50x60x70/perm2,0,1", "convert/f32/f16/50x60x70/perm2,0,1/by_half",
                            "convert/f32/f16/50x60x170/perm2,0,1", "convert/f32/f16/50x60x70/perm2,0,1/pad1,1"})
    EXPECT_FALSE(same("convert/f32/f16/50x60x70/perm2,0,1", other)) << other;
  for (int op = 0; op < LOCKSTEP_OP_COUNT; ++op)
    for (const std::string& name : list(static_cast<lockstep_op>(op), level::quick, 1)) {
      context c = cpu();
      const chosen made = plan_of(c, parse(name), LOCKSTEP_TUNE);
      if (made.variant.empty()) continue;  // an empty call
      EXPECT_TRUE(made.says("tuned now") || made.says("no other variant takes the call")) << name << ": " << made.why;
      break;
    }
}

TEST_F(tuning, what_is_forced_wins) {
  (void)plan_of(LOCKSTEP_TUNE);
  context c = cpu();
  for (const uint32_t flags : {0u, unsigned{LOCKSTEP_TUNE}, unsigned{LOCKSTEP_RETUNE}}) {
    const chosen named = plan_of(c, parse(summed), flags, nullptr, "ref");
    EXPECT_EQ(named.variant, "ref");
    EXPECT_EQ(named.says("not tuned: the variant is named"), flags != 0) << named.why;
  }
  c.set_variant(LOCKSTEP_REDUCE, "ref");
  EXPECT_EQ(plan_of(c, parse(summed), 0).variant, "ref");
}

TEST_F(tuning, refused) {
  context c = cpu();
  const auto d = lockstep_transpose_packed(4, 20, 30);
  std::vector<float> src(600), dst(600);
  for (const uint32_t flag : {unsigned{LOCKSTEP_TUNE}, unsigned{LOCKSTEP_RETUNE}}) {
    lockstep_options o = lockstep_options_defaults();
    o.flags = flag;
    EXPECT_EQ(lockstep_transpose(c.get(), &d, src.data(), dst.data(), &o), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(lockstep_last_error()).find("where a plan is made, LOCKSTEP_TUNE"), std::string::npos);
    lockstep_plan* plan = nullptr;
    int stream = 0;
    o.stream = &stream;
    EXPECT_EQ(lockstep_plan_transpose(c.get(), &d, &o, &plan), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(lockstep_last_error()).find("name the stream when you execute"), std::string::npos)
        << lockstep_last_error();
    ASSERT_EQ(lockstep_plan_transpose(c.get(), &d, nullptr, &plan), LOCKSTEP_OK);
    o.stream = nullptr;
    EXPECT_EQ(lockstep_plan_execute(plan, src.data(), dst.data(), &o), LOCKSTEP_INVALID_ARGUMENT);
    lockstep_plan_destroy(plan);
  }
  EXPECT_FALSE(fs::exists(path_));
  lockstep_tuning_info info{};
  info.size = 3;
  EXPECT_EQ(lockstep_tuning_get(c.get(), &info), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_tuning_get(c.get(), nullptr), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_tuning_get(nullptr, &info), LOCKSTEP_INVALID_ARGUMENT);
  lockstep_run_info run{};
  run.size = sizeof run;
  EXPECT_EQ(lockstep_plan_get(nullptr, &run), LOCKSTEP_INVALID_ARGUMENT);
}

// The offsets' own contents are read; results that are EMPTY or overflow do not end the measuring.
TEST_F(tuning, calls_that_fail_when_they_run) {
  for (const char* name : {"reduce/min/f32/mixed/100x20", "reduce/sum/i64/full/50000/over"}) {
    const subject s(parse(name));
    EXPECT_NE(s.want.status, LOCKSTEP_OK) << name;
    context c = cpu();
    const chosen now = plan_of(c, s.c, LOCKSTEP_TUNE, &s);
    EXPECT_TRUE(now.says("tuned now") || now.says("no other variant takes the call")) << name << ": " << now.why;
  }
  EXPECT_NE(read().find("reduce SUM I64"), std::string::npos) << "no call that overflows was measured";
}

TEST_F(tuning, where_it_is_looked_for) {
  setenv("LOCKSTEP_TUNING", "off", 1);
  EXPECT_EQ(state().path, "");
  const chosen off = plan_of(LOCKSTEP_TUNE);
  EXPECT_TRUE(off.says("tuned now") && off.says("not written down: LOCKSTEP_TUNING is \"off\"")) << off.why;
  setenv("LOCKSTEP_TUNING", "here/tuning", 1);
  EXPECT_NE(state().reason.find("absolute path"), std::string::npos);
  unsetenv("LOCKSTEP_TUNING");
  setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  EXPECT_EQ(state().path, (folder_ / "lockstep" / "tuning").string());
  EXPECT_FALSE(plan_of(LOCKSTEP_TUNE).says("not written"));  // the folder is made
  EXPECT_TRUE(fs::exists(folder_ / "lockstep" / "tuning"));
  unsetenv("XDG_CACHE_HOME");
}

// A context knows its own choices where they cannot be written down, and learns of other processes' at once.
TEST_F(tuning, unwritable_folder_and_fresh_files) {
  std::ofstream(folder_ / "file") << "no folder";
  setenv("LOCKSTEP_TUNING", (folder_ / "file" / "tuning").c_str(), 1);
  context alone = cpu();
  const chosen now = plan_of(alone, parse(summed), LOCKSTEP_TUNE);
  EXPECT_TRUE(now.says("tuned now") && now.says("not written down")) << now.why;
  EXPECT_TRUE(plan_of(alone, parse(summed), 0).says("tuned before"));
  EXPECT_FALSE(plan_of(0).says("tuned"));
  if (geteuid() != 0) {
    setenv("LOCKSTEP_TUNING", path_.c_str(), 1);
    fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_TRUE(plan_of(LOCKSTEP_TUNE).says("cannot be written"));
    fs::permissions(folder_, fs::perms::owner_all);
  }
  setenv("LOCKSTEP_TUNING", path_.c_str(), 1);
  context early = cpu();
  EXPECT_FALSE(plan_of(early, parse(summed), 0).says("tuned"));
  (void)plan_of(LOCKSTEP_TUNE);
  EXPECT_TRUE(plan_of(early, parse(summed), 0).says("tuned before"));
  fs::remove(path_);
  EXPECT_FALSE(plan_of(early, parse(summed), 0).says("tuned"));
}

// The name of another file of the same size is known by more than its size.
TEST_F(tuning, another_file_of_the_same_size) {
  context c = cpu();
  const chosen first = plan_of(LOCKSTEP_TUNE);
  EXPECT_TRUE(plan_of(c, parse(summed), 0).says("tuned before"));
  write(with(6, std::string(first.variant.size(), 'x')));
  const chosen now = plan_of(c, parse(summed), 0);
  EXPECT_TRUE(now.says("auto has no variant xx")) << now.why;
}

// A file that may not grow, a full disk, and a process killed while it wrote: nothing is left beside the file.
TEST_F(tuning, no_room_for_the_file) {
  (void)plan_of(LOCKSTEP_TUNE);
  const std::string before = text_of(path_);
  const auto expect_alone = [&] {
    EXPECT_EQ(text_of(path_), before);
    for (const auto& item : fs::directory_iterator(folder_)) EXPECT_EQ(item.path(), path_);
  };
  std::ofstream(path_.string() + ".new") << "of a process that was killed";
  (void)plan_of(LOCKSTEP_RETUNE | LOCKSTEP_TUNE);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  write(before);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit most = {20, 20};
    signal(SIGXFSZ, SIG_DFL);
    if (setrlimit(RLIMIT_FSIZE, &most) != 0) _exit(2);
    _exit(plan_of(LOCKSTEP_RETUNE | LOCKSTEP_TUNE).says("cannot be written: File too large") ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  expect_alone();
}
// The same on a disk without room, where one can be mounted.
TEST_F(tuning, a_full_disk) {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", folder_.c_str(), "tmpfs", 0, "size=4k,mode=0700") != 0)
    GTEST_SKIP() << "no disk can be mounted here";
  std::ofstream(folder_ / "filling") << std::string(4096, 'x');
  EXPECT_TRUE(plan_of(LOCKSTEP_TUNE).says("cannot be written: No space left on device"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  (void)umount(folder_.c_str());
}
// And where the new file cannot take the old one's name, because something is mounted there.
TEST_F(tuning, a_file_that_cannot_be_replaced) {
  (void)plan_of(LOCKSTEP_TUNE);
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount(path_.c_str(), path_.c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "no file can be mounted here";
  const std::string before = read();
  EXPECT_TRUE(plan_of(LOCKSTEP_RETUNE | LOCKSTEP_TUNE).says("cannot be written: Device or resource busy"));
  EXPECT_EQ(read(), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  (void)umount(path_.c_str());
}

TEST_F(tuning, other_hardware_and_other_releases) {
  (void)plan_of(LOCKSTEP_TUNE);
  for (const auto& [part, other] : {std::pair<size_t, const char*>{1, "0.0.9"}, {2, "cuda"}, {3, "XYZ; 3 threads"}}) {
    write(with(part, other));
    EXPECT_EQ(state().count, 0) << other;
    EXPECT_EQ(state().reason, "");
    EXPECT_FALSE(plan_of(0).says("tuned")) << other;
    EXPECT_TRUE(plan_of(LOCKSTEP_TUNE).says("tuned now")) << other;
    EXPECT_EQ(entries().size(), 2u) << "the other's entry is kept";
    EXPECT_EQ(state().count, 1);
    fs::remove(path_);
    (void)plan_of(LOCKSTEP_TUNE);
  }
}

TEST_F(tuning, spoilt) {
  (void)plan_of(LOCKSTEP_TUNE);
  const std::string good = read(), entry = entries().at(0);
  const std::string first = "lockstep-tuning 1\n";
  const std::pair<std::string, const char*> files[] = {{"", "it is empty"},
                                                       {first, "cut short"},
                                                       {good.substr(0, good.size() - 4), "cut short"},
                                                       {good.substr(0, good.size() / 2), "line 2"},
                                                       {good + "more\n", "line 4: there is text after the end"},
                                                       {first + entry + "\tmore\nend\n", "is not understood"},
                                                       {with(7, "fast"), "is not a time"},
                                                       {with(7, "nan"), "is not a time"},
                                                       {with(9, "-1"), "is not a time"},
                                                       {with(6, ""), "is not understood"},
                                                       {"lockstep-calibration 3\nend\n", "not a file of tuned choices"},
                                                       {std::string(100, '\0'), "not a file of tuned choices"},
                                                       {std::string(2 << 20, '#'), "more than"}};
  for (const auto& [text, reason] : files) {
    write(text);
    expect_ignored(reason);
    if (text.size() > (1 << 20)) continue;  // not read, so not replaced
    EXPECT_FALSE(plan_of(LOCKSTEP_TUNE).says("not written")) << reason;
    EXPECT_EQ(entries().size(), 1u) << "nobody's file is replaced";
    EXPECT_TRUE(plan_of(0).says("tuned before"));
  }
}

// Whatever stands there: the same bits, by the choice of a file that is whole or as without one.
TEST_F(tuning, spoilt_at_random) {
  (void)plan_of(LOCKSTEP_TUNE);
  const std::string good = read(), line = entries().at(0) + "\n", pieces = "\t\n0123456789.e-x\x1b\xff";
  const subject s(parse(summed));
  std::mt19937 random(20261126);
  const auto draw = [&](size_t n) { return static_cast<size_t>(random() % n); };
  context c = cpu();  // reads each file anew
  int taken = 0, refused = 0;
  for (int turn = 0; turn < 1500; ++turn) {
    std::string spoilt = good;
    for (size_t edits = 1 + draw(3); edits-- > 0;) {
      const size_t at = draw(spoilt.size());
      switch (draw(5)) {
        case 0: spoilt[at] = static_cast<char>(random()); break;
        case 1: spoilt.erase(at, 1 + draw(40)); break;
        case 2: spoilt.insert(at, spoilt.substr(draw(spoilt.size()), draw(60))); break;
        case 3: spoilt.insert(good.find('\n') + 1, line); break;
        default: spoilt[at] = pieces[draw(pieces.size())];
      }
      if (spoilt.empty()) spoilt = "\n";
    }
    write(spoilt);
    lockstep_tuning_info info{};
    info.size = sizeof info;
    ASSERT_EQ(lockstep_tuning_get(c.get(), &info), LOCKSTEP_OK) << lockstep_last_error();
    const std::string reason = info.reason;
    if (spoilt != good && !reason.empty()) {
      ++refused;
      ASSERT_EQ(info.count, 0) << reason;
    }
    const chosen made = plan_of(c, s.c, 0, turn % 16 == 0 ? &s : nullptr);
    ASSERT_EQ(made.status, LOCKSTEP_OK) << made.why << "\n" << spoilt;
    ASSERT_TRUE(reason.empty() || !made.says("tuned")) << made.why << "\n" << spoilt;
    taken += made.says("tuned") ? 1 : 0;
    if (HasFailure()) FAIL() << spoilt;
  }
  EXPECT_GT(taken, 50);
  EXPECT_GT(refused, 300);
}

TEST_F(tuning, a_later_versions_file_stays) {
  const std::string later = "lockstep-tuning 2\nsomething new\nend\n";
  write(later);
  expect_ignored("this library reads version 1");
  const chosen now = plan_of(LOCKSTEP_TUNE);
  EXPECT_TRUE(now.says("tuned now") && now.says("not written down: line 1")) << now.why;
  EXPECT_EQ(read(), later);
}

TEST_F(tuning, not_to_be_trusted) {
  (void)plan_of(LOCKSTEP_TUNE);
  const std::string good = read();
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  expect_ignored("anybody may write to it");
  EXPECT_TRUE(plan_of(LOCKSTEP_TUNE).says("not trusted"));
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  EXPECT_EQ(state().reason, "");
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  write(good);
  expect_ignored("anybody may write to it");
  EXPECT_TRUE(plan_of(LOCKSTEP_TUNE).says("not trusted"));
  ASSERT_EQ(chmod(folder_.c_str(), 0700), 0);
  if (geteuid() == 0) {
    write(good);
    ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
    expect_ignored("belongs to uid 12345");
    EXPECT_TRUE(plan_of(LOCKSTEP_TUNE).says("belongs to uid 12345"));
    EXPECT_EQ(read(), good);
  }
  fs::remove(path_);
  fs::create_directory(path_);
  expect_ignored("not a regular file");
  fs::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);  // nobody writes to it: reading must not wait
  expect_ignored("not a regular file");
  EXPECT_TRUE(plan_of(LOCKSTEP_TUNE).says("not a regular file"));
}

// Each process writes classes of its own; none may lose another's.
TEST_F(tuning, several_processes_at_once) {
  constexpr int processes = 4, classes = 8;
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool good = true;
      for (int k = 0; k < classes; ++k) {
        const std::string name = "transpose/b4/" + std::to_string(1 << p) + "x" + std::to_string(2 << k);
        context c("two");
        good = good && plan_of(c, parse(name), LOCKSTEP_TUNE).says("tuned now");
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(entries().size(), size_t{2} * processes * classes);  // of two arrays and in place
  EXPECT_EQ(state().reason, "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "something was left beside the file";
}

}  // namespace
