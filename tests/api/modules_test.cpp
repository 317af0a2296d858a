// modules_test.cpp - broken and untrusted modules: each is refused with its own reason, and
// the process and the CPU backend go on working. argv[1] is the folder with the modules that
// Meson built, argv[2] a program that uses the library (modules_child.c), argv[3] the library.
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <lockstep/group.hpp>
#include <lockstep/lockstep.hpp>
#include <map>
#include <string>
#include <vector>

namespace fs = std::filesystem;
namespace {

std::string built;           // folder of the modules as built
std::string child, library;  // their files
constexpr uid_t stranger = 12345;

struct backend_state {
  std::string reason;
  bool usable = false;
};
std::map<std::string, backend_state> listed() {
  std::map<std::string, backend_state> all;
  for (int32_t i = 0; i < lockstep_backend_count(); ++i) {
    lockstep_backend_info info{};
    info.size = sizeof info;
    EXPECT_EQ(lockstep_backend_get(i, &info), LOCKSTEP_OK);
    all[info.name] = {info.reason, info.usable != 0};
  }
  return all;
}

// A module, once for each entry of its dynamic section that the loader follows, which then leads nowhere.
std::map<int64_t, std::string> damaged() {
  std::ifstream file(fs::path(built) / "lockstep-noinit.so", std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(file)), {});
  Elf64_Ehdr header;
  std::memcpy(&header, good.data(), sizeof header);
  std::map<int64_t, std::string> all;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, good.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    for (size_t at = segment.p_offset; segment.p_type == PT_DYNAMIC; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      std::memcpy(&entry, good.data() + at, sizeof entry);
      if (entry.d_tag == DT_NULL) break;
      switch (entry.d_tag) {
        case DT_STRTAB:
        case DT_STRSZ:
        case DT_SYMTAB:
        case DT_SYMENT:
        case DT_RELA:
        case DT_RELASZ:
        case DT_RELAENT:
        case DT_NEEDED:
        case DT_INIT:
        case DT_INIT_ARRAY:
        case DT_GNU_HASH: break;
        default: continue;
      }
      entry.d_un.d_val = 0x7F3A11D5E0;
      std::string& bad = all[entry.d_tag] = good;
      std::memcpy(bad.data() + at, &entry, sizeof entry);
    }
  }
  return all;
}

// The search path is read once a process, so one folder holds every case.
class modules : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    char name[] = "/tmp/lockstep-modules-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root = name;
    ASSERT_EQ(chmod(name, 0755), 0);
    const fs::path good = fs::path(root) / "good", open = fs::path(root) / "open";
    fs::create_directory(good);
    fs::create_directory(open);
    const auto copy = [&](const char* from, const fs::path& to) { fs::copy_file(fs::path(built) / from, to); };
    copy("lockstep-wrongabi.so", good / "lockstep-wrongabi.so");
    copy("lockstep-nosymbol.so", good / "lockstep-nosymbol.so");
    copy("lockstep-noinit.so", good / "lockstep-noinit.so");
    copy("lockstep-late.so", good / "lockstep-late.so");
    copy("lockstep-apart.so", good / "lockstep-apart.so");
    copy("lockstep-nodevice.so", good / "lockstep-nodevice.so");
    for (const char* defect :
         {"nomember", "notables", "norows", "toomany", "nameless", "coloured", "answers", "oldpeers", "halfpeers"})
      copy(("lockstep-" + std::string(defect) + ".so").c_str(), good / ("lockstep-" + std::string(defect) + ".so"));
    ASSERT_EQ(mkfifo((good / "lockstep-pipe.so").c_str(), 0600), 0);
    copy("lockstep-noinit.so", good / "lockstep-group.so");
    chmod((good / "lockstep-group.so").c_str(), 0664);
    if (geteuid() == 0) {
      ASSERT_EQ(chown((good / "lockstep-group.so").c_str(), 0, 12345), 0);
    }
    // Folders above a module: anybody may replace what lies in the first, only its owner what lies in the second.
    for (const auto& [name, mode] : {std::pair{"loose", 0777}, std::pair{"shared", 01777}}) {
      fs::create_directories(fs::path(root) / name / "inside");
      fs::create_directories(fs::path(root) / name / "theirs");
      if (geteuid() == 0) {
        ASSERT_EQ(chown((fs::path(root) / name / "theirs").c_str(), stranger, 0), 0);
      }
      copy("lockstep-noinit.so", fs::path(root) / name / "inside" / ("lockstep-" + std::string(name) + ".so"));
      chmod((fs::path(root) / name).c_str(), static_cast<mode_t>(mode));
    }
    fs::create_directory(fs::path(root) / "sticky");
    copy("lockstep-noinit.so", fs::path(root) / "sticky" / "lockstep-insticky.so");
    chmod((fs::path(root) / "sticky").c_str(), 01777);
    fs::create_symlink(fs::path(root) / "loose" / "inside" / "lockstep-loose.so", good / "lockstep-linked.so");
    copy("lockstep-noinit.so", good / "lockstep-truncated.so");
    fs::resize_file(good / "lockstep-truncated.so", fs::file_size(good / "lockstep-truncated.so") / 2);
    copy("lockstep-noinit.so", good / "lockstep-stub.so");
    fs::resize_file(good / "lockstep-stub.so", 100);
    for (const auto& [tag, bytes] : damaged())
      std::ofstream(good / ("lockstep-zz" + std::to_string(tag) + ".so"), std::ios::binary) << bytes;
    copy("lockstep-noinit.so", good / "lockstep-\x1B[31mred.so");
    std::ofstream(good / "lockstep-text.so") << "not a library";
    std::ofstream(good / "lockstep-empty.so");
    copy("lockstep-noinit.so", good / "lockstep-writable.so");
    chmod((good / "lockstep-writable.so").c_str(), 0777);
    fs::create_directory(good / "lockstep-folder.so");
    copy("lockstep-noinit.so", open / "lockstep-elsewhere.so");
    chmod(open.c_str(), 0777);
    const std::string path = good.string() + ":relative/folder:" + open.string() + ":/nonexistent::" + root +
                             "/loose/inside:" + root + "/shared/inside:" + root + "/sticky:" + root + "/shared/theirs";
    setenv("LOCKSTEP_BACKEND_PATH", path.c_str(), 1);
  }
  static void TearDownTestSuite() { fs::remove_all(root); }
  static std::string root;
};
std::string modules::root;

void expect_reason(const char* name, const char* part) {
  const auto all = listed();
  const auto found = all.find(name);
  ASSERT_NE(found, all.end()) << name << " is not listed";
  EXPECT_FALSE(found->second.usable);
  EXPECT_NE(found->second.reason.find(part), std::string::npos) << name << ": " << found->second.reason;
}

TEST_F(modules, wrong_abi) { expect_reason("wrongabi", "speaks backend ABI 3"); }
TEST_F(modules, old_peers) { expect_reason("oldpeers", "its peers speak backend ABI 2 (16 bytes)"); }
TEST_F(modules, half_peers) { expect_reason("halfpeers", "its peers lack a function"); }
TEST_F(modules, missing_symbol) { expect_reason("nosymbol", "does not export lockstep_backend_entry"); }
TEST_F(modules, failing_init) { expect_reason("noinit", "the flux capacitor is missing"); }
TEST_F(modules, no_device) { expect_reason("nodevice", "found no device"); }
TEST_F(modules, truncated) { expect_reason("truncated", "is truncated"); }
TEST_F(modules, truncated_within_headers) { expect_reason("stub", "is truncated"); }
TEST_F(modules, not_elf) { expect_reason("text", "is not an ELF file"); }
TEST_F(modules, empty_file) { expect_reason("empty", "is not an ELF file (0 bytes)"); }
TEST_F(modules, writable_file) { expect_reason("writable", "anybody may write to it"); }
TEST_F(modules, a_folder_with_a_module_name) { expect_reason("folder", "not an ELF file"); }

TEST_F(modules, a_pipe) { expect_reason("pipe", "is not an ELF file"); }
TEST_F(modules, null_member) { expect_reason("nomember", "its copy is NULL"); }
TEST_F(modules, null_tables) { expect_reason("notables", "its tables is NULL"); }
TEST_F(modules, rows_at_null) { expect_reason("norows", "transpose has 3 rows at NULL"); }
TEST_F(modules, impossible_count) { expect_reason("toomany", "rows; 1024 is most"); }
TEST_F(modules, row_without_a_name) { expect_reason("nameless", "row 0 of transpose lacks its name"); }
TEST_F(modules, text_that_is_not_printable) {
  for (const auto& [name, state] : listed()) EXPECT_EQ(name.find('\x1B'), std::string::npos);
  expect_reason("coloured", "its text \"?[31mred\" has control characters");
  expect_reason("noinit", "the flux capacitor is missing?[31m \\xe9");
}
// Texts of a module that may be anything when it runs: a refusal, a device's name.
TEST_F(modules, texts_of_a_running_module) {
  lockstep::context c("answers");
  const float src[4] = {1, 2, 3, 4};
  float dst[4];
  const lockstep_transpose_desc d = lockstep_transpose_packed(4, 2, 2);
  EXPECT_EQ(lockstep_transpose(c.get(), &d, src, dst, nullptr), LOCKSTEP_UNSUPPORTED);
  EXPECT_NE(std::string(lockstep_last_error()).find("?[31mred \\xe9"), std::string::npos) << lockstep_last_error();
  c.set_backend("auto");
  lockstep_options there = lockstep_options_defaults();
  there.flags = LOCKSTEP_DEVICE_DATA;  // or auto would not ask the module at all
  EXPECT_EQ(lockstep_transpose(c.get(), &d, src, dst, &there), LOCKSTEP_OK);
  EXPECT_NE(std::string(lockstep::last_run().why).find("?[31mred \\xe9"), std::string::npos)
      << lockstep::last_run().why;
  lockstep_plan* plan = nullptr;
  ASSERT_EQ(lockstep_plan_transpose(c.get(), &d, &there, &plan), LOCKSTEP_OK);
  lockstep_run_info info{};
  info.size = sizeof info;
  EXPECT_EQ(lockstep_plan_get(plan, &info), LOCKSTEP_OK);
  EXPECT_EQ(std::string(info.why).find('\x1B'), std::string::npos) << info.why;
  lockstep_plan_destroy(plan);
  lockstep_device_info device{};
  device.size = sizeof device;
  ASSERT_EQ(lockstep_device_get("answers:0", 0, &device), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_STREQ(device.name, "?[31mred");
  EXPECT_EQ(std::string(device.detail), std::string(sizeof device.detail - 1, 'x'));
  EXPECT_EQ(lockstep_device_get("answers:x", 0, &device), LOCKSTEP_INVALID_ARGUMENT);
}
// The tables that the loader follows: each of them damaged is refused before it is loaded.
TEST_F(modules, damaged_tables) {
  const auto all = damaged();
  EXPECT_GE(all.size(), 7u);
  for (const auto& [tag, bytes] : all) expect_reason(("zz" + std::to_string(tag)).c_str(), "has a malformed");
}
TEST_F(modules, link_to_where_anybody_may_write) { expect_reason("linked", "loose: anybody may write to it"); }
TEST_F(modules, file_that_a_group_may_write) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another group";
  expect_reason("group", "group 12345 may write to it");
}
TEST_F(modules, folders_above_a_module) {
  const std::string path = lockstep_backend_path();
  EXPECT_NE(path.find("loose/inside (not used: " + root + "/loose: anybody may write to it"), std::string::npos)
      << path;
  EXPECT_NE(path.find("sticky (not used: anybody may write to it"), std::string::npos) << path;
  EXPECT_EQ(listed().count("insticky"), 0u);
  expect_reason("shared", "the flux capacitor is missing");  // loaded
  if (geteuid() == 0) {
    EXPECT_NE(path.find("shared/theirs (not used: it belongs to uid 12345"), std::string::npos) << path;
  }
}

// A program by itself, with a copy of the library that it finds by LD_LIBRARY_PATH, and a module beside the copy.
struct beside : modules {
  const fs::path tree = fs::path(root) / ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const fs::path lib = tree / "lib", copied = lib / "liblockstep.so.1",
                 module = lib / "lockstep" / "lockstep-beside.so";
  static constexpr const char* loaded = "lockstep-beside.so refused to start: the flux capacitor is missing";
  void SetUp() override {
    if (fs::path(library).extension() == ".a") GTEST_SKIP() << "the library is a static one";
    fs::create_directories(module.parent_path());
    fs::copy_file(library, copied);
    fs::copy_file(fs::path(built) / "lockstep-noinit.so", module);
  }
  // What the program prints. settings: more of the environment, and what else is to stand before the program.
  static std::string run(const std::string& settings, const std::string& program, const std::string& arguments = "") {
    const std::string command =
        "env -u LOCKSTEP_BACKEND_PATH -u XDG_CACHE_HOME " + settings + " '" + program + "' " + arguments + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    std::string all;
    for (char part[4096]; pipe != nullptr && fgets(part, sizeof part, pipe) != nullptr;) all += part;
    EXPECT_EQ(pclose(pipe), 0) << command << "\n" << all;
    return all;
  }
  std::string run_copy(const std::string& arguments = "") const {
    return run("LD_LIBRARY_PATH='" + lib.string() + "'", child, arguments);
  }
  void give(uid_t owner, gid_t group, mode_t folders, mode_t files) const {
    for (const fs::path& at : {tree, lib, copied, module.parent_path(), module}) {
      ASSERT_EQ(chown(at.c_str(), owner, group), 0);
      ASSERT_EQ(chmod(at.c_str(), fs::is_directory(at) ? folders : files), 0);
    }
  }
};
#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_LACKS(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)

// The loader knows the library as "./liblockstep.so.1", which means another file once the folder has changed.
TEST_F(beside, never_in_the_current_directory) {
  const fs::path here = tree / "here";
  for (const fs::path& at : {here, here / "lockstep"}) {
    fs::create_directories(at);
    fs::copy_file(fs::path(built) / "lockstep-noinit.so", at / "lockstep-here.so");
  }
  const std::string all = run("-C '" + lib.string() + "' LD_LIBRARY_PATH=.", child, "cd '" + here.string() + "'");
  EXPECT_HAS(all, "path " + lib.string() + "/lockstep\n");
  EXPECT_HAS(all, loaded);
  EXPECT_LACKS(all, "lockstep-here");
}

TEST_F(beside, a_tree_of_a_group) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to another group";
  give(0, stranger, 02775, 0775);  // as umask 002 makes it
  EXPECT_HAS(run_copy(), loaded);
  ASSERT_EQ(chmod(copied.c_str(), 0755), 0);
  EXPECT_HAS(run_copy(), loaded);  // the group may still put another library there
  for (const fs::path& at : {tree, lib}) ASSERT_EQ(chmod(at.c_str(), 0755), 0);
  EXPECT_HAS(run_copy(), "lockstep (not used: group 12345 may write to it (chmod g-w))");
  ASSERT_EQ(chmod(module.parent_path().c_str(), 0755), 0);
  EXPECT_HAS(run_copy(), "is not trusted: group 12345 may write to it (chmod g-w)");
  ASSERT_EQ(chmod(copied.c_str(), 0775), 0);
  EXPECT_HAS(run_copy(), loaded);
  for (const fs::path& at : {copied, module})
    ASSERT_EQ(chown(at.c_str(), 0, at == copied ? stranger + 1 : stranger), 0);
  EXPECT_HAS(run_copy(), "is not trusted: group 12345 may write to it (chmod g-w)");
}

// An environment that one user installs for all: who uses the library trusts its owner, and nobody else.
TEST_F(beside, a_tree_of_another_user) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to another user";
  give(stranger, stranger, 0755, 0755);
  EXPECT_HAS(run_copy(), loaded);
  ASSERT_EQ(chown(module.c_str(), stranger + 1, stranger), 0);
  EXPECT_HAS(run_copy(), "is not trusted: it belongs to uid 12346");
}

TEST_F(beside, a_library_that_was_deleted) {
  const std::string all = run_copy("rm '" + copied.string() + "'");
  EXPECT_HAS(all, "path " + lib.string() + "/lockstep\n");
  EXPECT_HAS(all, loaded);
}
// Who owns what stands at its path now, or at the name that the kernel makes of it, need not have owned the library.
TEST_F(beside, a_library_that_was_replaced) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to another user";
  const fs::path other = lib / "other";
  for (const fs::path& to : {copied, fs::path(copied.string() + " (deleted)")}) {
    fs::copy_file(library, other);
    for (const fs::path& at : {other, module}) ASSERT_EQ(chown(at.c_str(), stranger, stranger), 0);
    if (to != copied) fs::rename(other, to);
    const std::string all =
        run_copy(to == copied ? "mv '" + other.string() + "' '" + to.string() + "'" : "rm '" + copied.string() + "'");
    EXPECT_HAS(all, "is not trusted: it belongs to uid 12345");
    fs::copy_file(library, copied, fs::copy_options::overwrite_existing);
    ASSERT_EQ(chown(copied.c_str(), 0, 0), 0);
  }
}

TEST_F(beside, a_set_user_id_program_has_no_settings) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a program of root's";
  const std::string program = (tree / "set_user_id").string(), trace = (tree / "trace").string();
  fs::copy_file(child, program);
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  const auto elevated = [&](const std::string& settings) {
    return run(settings + " setpriv --reuid 65534 --regid 65534 --clear-groups", program);
  };
  const std::string plain = run("", child), bare = elevated("");
  if (bare.find("uid 65534, effective 0\n") == std::string::npos)
    GTEST_SKIP() << "no set-user-id programs here: " << bare;
  EXPECT_HAS(bare, "transpose: OK");
  for (const std::string& setting :
       {"LOCKSTEP_BACKEND_PATH='" + root + "/good'", std::string("LOCKSTEP_BACKEND=nonsense"),
        std::string("LOCKSTEP_VARIANT=nonsense"), std::string("LOCKSTEP_CPU_ISA=nonsense"),
        std::string("LOCKSTEP_NUM_THREADS=nonsense"), "LOCKSTEP_CALIBRATION='" + root + "/file'",
        "XDG_CACHE_HOME='" + root + "'", "HOME='" + root + "/home'"}) {
    EXPECT_NE(run(setting, child), plain) << setting << " changes nothing, so the next line shows nothing";
    EXPECT_EQ(elevated(setting), bare) << setting;
  }
  elevated("LOCKSTEP_TRACE='" + trace + "'");
  EXPECT_FALSE(fs::exists(trace)) << "LOCKSTEP_TRACE is honoured";
  run("LOCKSTEP_TRACE='" + trace + "'", child);
  EXPECT_TRUE(fs::exists(trace));
}

TEST_F(modules, untrusted_folders_are_named_with_their_reason) {
  const std::string path = lockstep_backend_path();
  EXPECT_EQ(listed().count("elsewhere"), 0u);
  EXPECT_NE(path.find("open (not used: anybody may write to it"), std::string::npos) << path;
  EXPECT_NE(path.find("relative/folder (not used: it is not an absolute path"), std::string::npos) << path;
  EXPECT_NE(path.find("/nonexistent (not used: No such file"), std::string::npos) << path;
}

TEST_F(modules, naming_a_broken_backend_is_an_error_with_the_reason) {
  lockstep_context_options options = lockstep_context_defaults();
  options.backend = "noinit";
  lockstep_context* context = nullptr;
  EXPECT_EQ(lockstep_context_create(&options, &context), LOCKSTEP_NO_BACKEND);
  EXPECT_EQ(context, nullptr);
  EXPECT_NE(std::string(lockstep_last_error()).find("flux capacitor"), std::string::npos) << lockstep_last_error();
}

TEST_F(modules, auto_uses_the_cpu_and_says_why) {
  lockstep::context context("auto");
  const std::vector<float> src = {1, 2, 3, 4, 5, 6};
  std::vector<float> dst(6);
  lockstep::transpose<float>(context, src, dst, 2, 3);
  EXPECT_EQ(dst, (std::vector<float>{1, 4, 2, 5, 3, 6}));
  const auto ran = lockstep::last_run();
  EXPECT_STREQ(ran.backend, "cpu");
  EXPECT_NE(std::string(ran.why).find("flux capacitor"), std::string::npos) << ran.why;
}

// Calls of the module "late": a transpose overflows when it is waited for.
struct late : modules {
  lockstep::context context{"late"};
  std::vector<float> src = std::vector<float>(64, 1.0f), dst = src;
  lockstep_options async = lockstep_options_defaults();
  const lockstep_transpose_desc overflows = lockstep_transpose_packed(4, 8, 8);
  const int64_t shape[1] = {64};
  const int32_t perm[1] = {0};
  const lockstep_permute_desc succeeds = lockstep_permute_packed(4, 1, shape, perm);
  late() { async.flags = LOCKSTEP_ASYNC; }
  void overflow_later() { lockstep::run(context, overflows, src.data(), dst.data(), &async); }
  // Told once, by synchronize.
  void expect_overflow() {
    const lockstep::failure told = context.try_synchronize();
    EXPECT_EQ(told.status(), LOCKSTEP_OVERFLOW);
    EXPECT_STREQ(told.text(), "late: it overflowed late");
    EXPECT_FALSE(context.try_synchronize());
  }
};

TEST_F(late, a_blocking_call_does_not_report_the_failure_of_an_asynchronous_one) {
  overflow_later();
  const lockstep::failure other = lockstep::try_run(context, succeeds, src.data(), dst.data());
  EXPECT_FALSE(other) << other.text();
  EXPECT_STREQ(lockstep_last_error(), "");
  expect_overflow();
  const lockstep::failure own = lockstep::try_run(context, overflows, src.data(), dst.data());
  EXPECT_EQ(own.status(), LOCKSTEP_OVERFLOW);
  EXPECT_FALSE(context.try_synchronize());
}

TEST_F(late, a_plan_leaves_the_asynchronous_queue_to_the_calls) {
  overflow_later();
  {
    lockstep::plan planned(context, succeeds);
    const lockstep::failure other = planned.try_execute(src.data(), dst.data());
    EXPECT_FALSE(other) << other.text();
  }
  expect_overflow();
}

TEST_F(late, what_a_destroyed_plan_left_behind_is_told) {
  {
    lockstep::plan planned(context, overflows);
    planned.execute(src.data(), dst.data(), &async);
  }
  expect_overflow();
}

TEST_F(late, the_cpu_takes_over_unless_src_is_spoilt) {
  context.set_backend("auto");
  const auto shuffle = lockstep_shuffle_warps(LOCKSTEP_SHUFFLE_XOR, 4, 64, 32, 1);
  lockstep_options here = lockstep_options_defaults();
  here.flags = LOCKSTEP_DEVICE_DATA;  // or auto would not ask the module at all
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<float>(i);
  const lockstep::failure apart = lockstep::try_run(context, shuffle, src.data(), dst.data(), &here);
  EXPECT_FALSE(apart) << apart.text();
  EXPECT_EQ(dst[0], 1.0f);
  EXPECT_STREQ(lockstep::last_run().backend, "cpu");
  EXPECT_NE(std::string(lockstep::last_run().why).find("it spoilt dst"), std::string::npos) << lockstep::last_run().why;
  const lockstep::failure in_place = lockstep::try_run(context, shuffle, src.data(), src.data(), &here);
  EXPECT_EQ(in_place.status(), LOCKSTEP_BACKEND_FAILED);
  here.flags |= LOCKSTEP_NO_FALLBACK;
  EXPECT_EQ(lockstep::try_run(context, shuffle, src.data(), dst.data(), &here).status(), LOCKSTEP_BACKEND_FAILED);
}

// A module built before an op was there has fewer tables: the CPU does the op, says why, and never touches memory that
// only the module can.
TEST_F(modules, an_op_that_a_module_does_not_have) {
  lockstep::context c("auto");
  ASSERT_TRUE(listed()["apart"].usable);
  float src[8] = {1, 2, 3, 4, 5, 6, 7, 8}, dst[8] = {};
  lockstep_normalize_desc d = lockstep_normalize_rows(LOCKSTEP_NORMALIZE_L2, LOCKSTEP_F32, 2, 4, 16);
  ASSERT_EQ(lockstep_normalize(c.get(), &d, src, dst, nullptr), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_EQ(dst[3], 0.25f);
  EXPECT_STREQ(lockstep::last_run().backend, "cpu");
  EXPECT_NE(std::string(lockstep::last_run().why).find("apart: "), std::string::npos) << lockstep::last_run().why;
  EXPECT_EQ(lockstep_variant_count("apart", LOCKSTEP_NORMALIZE), 0);

  const auto unsupported = [](lockstep_status status, const char* part) {
    EXPECT_EQ(status, LOCKSTEP_UNSUPPORTED) << lockstep_status_name(status);
    EXPECT_NE(std::string(lockstep_last_error()).find(part), std::string::npos) << lockstep_last_error();
  };
  lockstep_options forced = lockstep_options_defaults();
  forced.backend = "apart";
  unsupported(lockstep_normalize(c.get(), &d, src, dst, &forced), "apart: does not have this op");
  const lockstep::buffer<float> there(c, "apart", LOCKSTEP_DEVICE, 8);
  // The module's memory is copied to the CPU and back.
  float ones[8], got[8] = {};
  std::fill(std::begin(ones), std::end(ones), 1.0f);
  const auto to_module = [&](const float* from) {
    return lockstep_copy(c.get(), "apart", from, there.data(), sizeof got);
  };
  ASSERT_EQ(to_module(src), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_EQ(lockstep_normalize(c.get(), &d, there.data(), got, nullptr), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_TRUE(std::equal(got, got + 8, dst));
  EXPECT_EQ(lockstep_normalize(c.get(), &d, src, there.data(), nullptr), LOCKSTEP_OK) << lockstep_last_error();
  ASSERT_EQ(lockstep_copy(c.get(), "apart", there.data(), got, sizeof got), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_TRUE(std::equal(got, got + 8, dst));
  ASSERT_EQ(to_module(ones), LOCKSTEP_OK) << lockstep_last_error();
  d.weight = there.data();
  std::fill(std::begin(got), std::end(got), 0.0f);
  EXPECT_EQ(lockstep_normalize(c.get(), &d, src, got, nullptr), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_TRUE(std::equal(got, got + 8, dst));
  // residual becomes the sum, where it lies: by the call, a plan, and its measuring.
  d.weight = nullptr, d.residual = d.sum = there.data();
  d.residual_stride = d.sum_stride = 4;
  EXPECT_EQ(lockstep_normalize(c.get(), &d, src, got, nullptr), LOCKSTEP_OK) << lockstep_last_error();
  ASSERT_EQ(lockstep_copy(c.get(), "apart", there.data(), got, sizeof got), LOCKSTEP_OK) << lockstep_last_error();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(got[i], src[i] + 1);
  double ms = 0;
  lockstep::plan plan(c, d);
  EXPECT_EQ(lockstep_plan_execute(plan.get(), src, dst, nullptr), LOCKSTEP_OK) << lockstep_last_error();
  EXPECT_EQ(lockstep_plan_measure(plan.get(), src, dst, 0, 1, &ms), LOCKSTEP_OK) << lockstep_last_error();
}

// A queued group tells its first failure once: by the call where an array has to be copied, else by synchronize.
TEST_F(modules, a_queued_group_tells_its_first_failure_in_one_place) {
  lockstep::context c("apart");
  constexpr size_t count = 3, bytes = 17 * 2;
  const lockstep::buffer<unsigned char> there(c, "apart", LOCKSTEP_DEVICE, 2 * count * 256);
  std::vector<unsigned char> here(2 * count * bytes);
  lockstep_options async = lockstep_options_defaults();
  async.flags = LOCKSTEP_ASYNC;
  for (int drawn = 0; drawn < 27 * 8; ++drawn) {
    std::vector<lockstep_transpose_desc> descs;
    std::vector<const void*> srcs;
    std::vector<void*> dsts;
    lockstep_status first = LOCKSTEP_OK;
    std::string named;
    for (size_t i = 0, kinds = static_cast<size_t>(drawn) / 8; i < count; ++i, kinds /= 3) {
      const lockstep_status status = std::array{LOCKSTEP_OK, LOCKSTEP_OVERFLOW, LOCKSTEP_EMPTY}[kinds % 3];
      descs.push_back(lockstep_transpose_packed(1, std::array{12, 13, 17}[kinds % 3], 2));
      const bool host = (drawn >> i & 1) != 0;
      srcs.push_back(host ? here.data() + 2 * i * bytes : there.data() + 2 * i * 256);
      dsts.push_back(host ? here.data() + (2 * i + 1) * bytes : there.data() + (2 * i + 1) * 256);
      if (first == LOCKSTEP_OK && status != LOCKSTEP_OK) first = status, named = "descs[" + std::to_string(i) + "]: ";
    }
    const lockstep_status called = lockstep_execute_group(c.get(), LOCKSTEP_TRANSPOSE, descs.data(), sizeof descs[0],
                                                          count, srcs.data(), dsts.data(), &async);
    const std::string text = lockstep_last_error();
    const lockstep_status waited = lockstep_synchronize(c.get());
    const std::string late = lockstep_last_error();
    const bool blocks = drawn % 8 != 0;
    EXPECT_EQ(called, blocks ? first : LOCKSTEP_OK) << drawn << ": " << text;
    EXPECT_EQ(waited, blocks ? LOCKSTEP_OK : first) << drawn << ": " << late;
    EXPECT_NE((blocks ? text : late).find(named), std::string::npos) << drawn << ": " << text << " | " << late;
  }
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 4) return 2;
  built = argv[1], child = argv[2], library = argv[3];
  return RUN_ALL_TESTS();
}
