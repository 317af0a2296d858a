// forks_test.cpp - a backend that forks in each of its functions (modules/forks_module.c), and an allocator that does:
// nothing hangs, and the children can use the library. argv[1] is the module.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <lockstep/group.hpp>
#include <lockstep/lockstep.hpp>
#include <string>
#include <thread>
#include <vector>

namespace fs = std::filesystem;
namespace {

std::string module_path;
constexpr unsigned seconds_until_it_hangs = 400;

// In a child of fork: a context of its own, a call, and what the other threads may have held.
int use_the_library() {
  lockstep_context* context = nullptr;
  lockstep_context_options options = lockstep_context_defaults();
  options.backend = "cpu";
  options.threads = 1;
  if (lockstep_context_create(&options, &context) != LOCKSTEP_OK) return 2;
  const lockstep_transpose_desc d = lockstep_transpose_packed(4, 2, 3);
  const float src[6] = {1, 2, 3, 4, 5, 6};
  float dst[6] = {};
  const lockstep_status status = lockstep_transpose(context, &d, src, dst, nullptr);
  lockstep_backend_info info{};
  info.size = sizeof info;
  const bool told = lockstep_backend_get(0, &info) == LOCKSTEP_OK;
  lockstep_context_destroy(context);
  return status == LOCKSTEP_OK && dst[1] == 4 && told ? 0 : 3;
}

// Forks in this thread, and in another one that is waited for.
int forks_failed = 0;
void fork_twice() {
  const auto one = [](int (*child_does)()) {
    const pid_t child = fork();
    if (child == 0) _exit(child_does != nullptr ? child_does() : 0);
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) ++forks_failed;
  };
  one(use_the_library);
  std::thread([&] { one(nullptr); }).join();
}

struct forks : testing::Test {
  static void SetUpTestSuite() {
    char name[] = "/tmp/lockstep-forks-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    const fs::path module = fs::path(folder) / "lockstep-forks.so";
    fs::copy_file(module_path, module);
    setenv("LOCKSTEP_BACKEND_PATH", name, 1);
    setenv("LOCKSTEP_CALIBRATION", (folder + "/calibration").c_str(), 1);
    setenv("LOCKSTEP_TUNING", (folder + "/tuning").c_str(), 1);
    std::ofstream(folder + "/calibration") << "lockstep-calibration 3\n";  // read, and not used: it is cut short
    handle = dlopen(module.c_str(), RTLD_NOW);
    ASSERT_NE(handle, nullptr) << dlerror();
    *static_cast<int (**)()>(dlsym(handle, "forks_child")) = use_the_library;
    alarm(seconds_until_it_hangs);
  }
  static void TearDownTestSuite() {
    alarm(0);
    fs::remove_all(folder);
  }
  static int& failures() { return *static_cast<int*>(dlsym(handle, "forks_failures")); }
  static std::string folder;
  static void* handle;
};
std::string forks::folder;
void* forks::handle = nullptr;

#define EXPECT_WELL(call) EXPECT_EQ(call, LOCKSTEP_OK) << lockstep_last_error()

TEST_F(forks, in_every_function) {
  lockstep_device_info device{};
  device.size = sizeof device;
  EXPECT_WELL(lockstep_device_get("forks", 0, &device));
  lockstep::context context("auto");
  lockstep_model_info model{};
  model.size = sizeof model;
  EXPECT_WELL(lockstep_model_get(context.get(), &model));
  EXPECT_NE(std::string(model.reason), "") << "the calibration file was not read";

  std::vector<float> src(64), dst(64);
  const lockstep_transpose_desc d = lockstep_transpose_packed(4, 8, 8);
  EXPECT_WELL(lockstep_transpose(context.get(), &d, src.data(), dst.data(), nullptr));  // auto compares
  context.set_backend("forks");
  EXPECT_WELL(lockstep_transpose(context.get(), &d, src.data(), dst.data(), nullptr));
  lockstep_options async = lockstep_options_defaults();
  async.flags = LOCKSTEP_ASYNC;
  void* there = nullptr;
  EXPECT_WELL(lockstep_alloc(context.get(), "forks", LOCKSTEP_DEVICE, 256, &there));
  void* also = nullptr;
  EXPECT_WELL(lockstep_alloc(context.get(), "forks", LOCKSTEP_DEVICE, 256, &also));
  EXPECT_WELL(lockstep_transpose(context.get(), &d, there, also, &async));
  EXPECT_WELL(lockstep_synchronize(context.get()));
  static int stream;
  async.stream = &stream;
  EXPECT_WELL(lockstep_transpose(context.get(), &d, there, also, &async));
  EXPECT_WELL(lockstep_release_stream(context.get(), "forks", &stream));

  lockstep_options tune = lockstep_options_defaults();
  tune.flags = LOCKSTEP_TUNE;
  double ms[2];
  for (const lockstep_options& options : {lockstep_options_defaults(), tune}) {
    lockstep::plan plan(context, d, &options);
    plan.execute(there, also);
    EXPECT_WELL(lockstep_plan_measure(plan.get(), there, also, 0, 2, ms));
  }
  EXPECT_WELL(lockstep_measure_limit(context.get(), "forks", LOCKSTEP_LIMIT_READ, 1024, 0, 2, ms));
  EXPECT_WELL(lockstep_pin(context.get(), "forks", src.data(), 256));
  EXPECT_WELL(lockstep_unpin(context.get(), "forks", src.data()));

  const void* const srcs[] = {there};
  void* const dsts[] = {also};
  EXPECT_WELL(lockstep_execute_group(context.get(), LOCKSTEP_TRANSPOSE, &d, sizeof d, 1, srcs, dsts, nullptr));
  lockstep_plan* group = nullptr;
  EXPECT_WELL(lockstep_plan_group(context.get(), LOCKSTEP_TRANSPOSE, &d, sizeof d, 1, srcs, dsts, nullptr, &group));
  EXPECT_WELL(lockstep_plan_execute(group, nullptr, nullptr, nullptr));
  EXPECT_WELL(lockstep_plan_measure(group, nullptr, nullptr, 0, 2, ms));
  lockstep_plan_destroy(group);
  EXPECT_WELL(lockstep_free(context.get(), "forks", LOCKSTEP_DEVICE, 256, there));
  { const lockstep::context gone = std::move(context); }  // destroys its queues

  EXPECT_EQ(failures(), 0) << "children failed";
  const auto* names = static_cast<const char* const*>(dlsym(handle, "forks_names"));
  const auto* calls = static_cast<const int*>(dlsym(handle, "forks_calls"));
  for (int i = 0; names[i] != nullptr; ++i) EXPECT_GT(calls[i], 0) << names[i] << " was never called";
}

// Threads that want the same stream's queue wait for the one that makes it.
TEST_F(forks, while_other_threads_call) {
  lockstep::context context("forks");
  const lockstep_transpose_desc d = lockstep_transpose_packed(4, 8, 8);
  std::vector<std::thread> threads;
  static int stream;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::vector<float> src(64), dst(64);
      lockstep_options options = lockstep_options_defaults();
      for (int i = 0; i < 5; ++i) {
        options.stream = i % 2 == 0 ? &stream : nullptr;
        EXPECT_WELL(lockstep_transpose(context.get(), &d, src.data(), dst.data(), &options));
        if (i % 2 != 0) continue;
        EXPECT_WELL(lockstep_release_stream(context.get(), "forks", &stream));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(forks, in_an_allocator) {
  const lockstep_allocator forking = {nullptr,
                                      [](void*, size_t bytes, size_t alignment) {
                                        fork_twice();
                                        return std::aligned_alloc(alignment,
                                                                  (bytes + alignment - 1) / alignment * alignment);
                                      },
                                      [](void*, void* pointer, size_t, size_t) {
                                        fork_twice();
                                        std::free(pointer);
                                      }};
  lockstep_context_options options = lockstep_context_defaults();
  options.backend = "cpu";
  options.allocator = &forking;
  {
    lockstep::context context(options);
    const std::vector<float> src(1 << 18, 1.0f);
    EXPECT_EQ(lockstep::square_sum(context, src), 1 << 18);
    const lockstep_transpose_desc d = lockstep_transpose_packed(4, 8, 8);
    lockstep::plan plan(context, d);
    std::vector<float> dst(64);
    plan.execute(src.data(), dst.data());
    void* memory = nullptr;
    EXPECT_WELL(lockstep_alloc(context.get(), "cpu", LOCKSTEP_HOST, 64, &memory));
    EXPECT_WELL(lockstep_free(context.get(), "cpu", LOCKSTEP_HOST, 64, memory));
  }
  EXPECT_EQ(forks_failed, 0);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) return 2;
  module_path = argv[1];
  return RUN_ALL_TESTS();
}
