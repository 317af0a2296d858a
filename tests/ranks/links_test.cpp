// links_test.cpp - the data plane "nccl" between the processes of a communicator, which are threads here: when it opens
// and why it does not, and what happens when NCCL or a partner fails. fake_nccl.cpp plans the failures.
#include <chrono>
#include <cstdlib>

#include "world.hpp"

namespace lockstep::ranks_test {
namespace {

// The environment of a test, as it was before afterwards.
class setting {
 public:
  setting(const char* name, const std::string& value) : name_(name) {
    if (const char* now = std::getenv(name); now != nullptr) before_ = now, was_there_ = true;
    setenv(name, value.c_str(), 1);
  }
  ~setting() {
    if (was_there_)
      setenv(name_, before_.c_str(), 1);
    else
      unsetenv(name_);
  }
  setting(const setting&) = delete;
  setting& operator=(const setting&) = delete;

 private:
  const char* name_;
  std::string before_;
  bool was_there_ = false;
};

struct Links : testing::Test {
  void SetUp() override {
    if (std::getenv("LOCKSTEP_NCCL") == nullptr) GTEST_SKIP() << "LOCKSTEP_NCCL does not name the module of the tests";
  }
};

changes with(const char* data, int64_t timeout_ms = 0) {
  changes c;
  c.options = [=](int32_t, lockstep_comm_options& o) {
    o.data = data;
    o.timeout_ms = timeout_ms;
    o.message_bytes = 4096;
  };
  return c;
}

// A transpose of a square cut into slabs; its bits are checked where it succeeds.
lockstep_status transpose(const member& m, int64_t n = 90) {
  const int64_t shape[] = {n, n};
  const lockstep_grid slabs = lockstep_grid_slabs(sizeof(float), 2, shape, m.ranks);
  std::vector<float> whole(static_cast<size_t>(n * n)), turned(whole.size());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      whole[static_cast<size_t>(i * n + j)] = turned[static_cast<size_t>(j * n + i)] = static_cast<float>(i * n + j);
  std::vector<block> from, to;
  for (int32_t s = 0; s < m.seats; ++s) {
    from.emplace_back(slabs, m.first + s, false);
    from.back().fill(slabs, reinterpret_cast<const unsigned char*>(whole.data()));
    to.emplace_back(slabs, m.first + s, false);
  }
  const int32_t perm[] = {1, 0};
  lockstep_ranks_plan* plan = nullptr;
  lockstep_status status = lockstep_ranks_permute(m.comm, &slabs, perm, &slabs, nullptr, &plan);
  if (status == LOCKSTEP_OK) status = execute(m, plan, &from, &to, nullptr);
  for (const block& b : to) {
    if (status != LOCKSTEP_OK) break;
    EXPECT_EQ(b.compare({n, n}, reinterpret_cast<const unsigned char*>(turned.data())), "");
  }
  const std::string text = lockstep_last_error();
  lockstep_ranks_plan_destroy(plan);
  lockstep_set_error(text.c_str());
  return status;
}

void expect_planes(const std::string& devices, const std::vector<int32_t>& seats, const char* data,
                   const std::string& why, int64_t timeout_ms = 0) {
  const setting there("LOCKSTEP_TEST_DEVICES", devices);
  run(
      seats,
      [&](member& m) {
        lockstep_comm_info info{};
        info.size = sizeof info;
        ASSERT_EQ(lockstep_comm_get(m.comm, &info), LOCKSTEP_OK);
        EXPECT_STREQ(info.data, data) << devices;
        EXPECT_NE(std::string(info.why).find(why), std::string::npos) << devices << ": " << info.why;
        EXPECT_EQ(transpose(m), LOCKSTEP_OK) << devices << ": " << lockstep_last_error();
      },
      with(nullptr, timeout_ms));
}

// Every process gets the refusal.
void expect_refusal(const std::string& devices, const std::string& word) {
  const setting there("LOCKSTEP_TEST_DEVICES", devices);
  std::vector<lockstep_engine> engines(2);
  ASSERT_EQ(lockstep_engine_local(2, engines.data()), LOCKSTEP_OK);
  std::vector<std::thread> threads;
  for (size_t q = 0; q < 2; ++q)
    threads.emplace_back([&, q] {
      lockstep_context_options co = lockstep_context_defaults();
      co.backend = "cpu";
      lockstep_context* context = nullptr;
      ASSERT_EQ(lockstep_context_create(&co, &context), LOCKSTEP_OK);
      const std::string name = q == 0 ? devices.substr(0, devices.find(',')) : devices.substr(devices.find(',') + 1);
      const char* backend = name.c_str();
      lockstep_comm_options o = lockstep_comm_defaults();
      o.backends = &backend;
      o.data = "nccl";
      lockstep_comm* comm = nullptr;
      const lockstep_status status = lockstep_comm_create(context, &engines[q], &o, &comm);
      EXPECT_TRUE(status == LOCKSTEP_UNSUPPORTED || status == LOCKSTEP_RANK_FAILED) << status;
      EXPECT_NE(std::string(lockstep_last_error()).find(word), std::string::npos) << lockstep_last_error();
      engines[q].close(engines[q].user, 0);
      lockstep_context_destroy(context);
    });
  for (std::thread& t : threads) t.join();
}

TEST_F(Links, PlanesAndReasons) {
  expect_planes("fake:0,fake:1", {1, 1}, "nccl", "staged: all data stays on devices");
  expect_planes("fake:0,fake:1,fake:2,fake:3", {2, 2}, "direct, engine, nccl", "staged: all data stays on devices");
  expect_planes("fake:0,cpu,fake:1", {1, 1, 1}, "nccl, staged", "engine: there are ranks of other processes");
  expect_planes("fake:0,fake:0", {1, 1}, "staged", "nccl: ranks 0 and 1 are on one GPU, which NCCL refuses");
  expect_planes("fake:0,cpu", {1, 1}, "staged", "nccl: fewer than two processes have ranks on GPUs");
  expect_refusal("fake:0,fake:0", "options.data is \"nccl\", but ranks 0 and 1 are on one GPU");
  expect_refusal("fake:0,cpu", "options.data is \"nccl\", but");
}

TEST_F(Links, NcclThatDoesNotOpen) {
  const std::string file = std::getenv("LOCKSTEP_NCCL");
  const size_t slash = file.rfind('/');
  {
    const setting gone("LOCKSTEP_NCCL", file + ".gone");
    expect_planes("fake:0,fake:1", {1, 1}, "staged", "nccl: rank 0: LOCKSTEP_NCCL: " + file + ".gone cannot be opened");
    expect_refusal("fake:0,fake:1", "cannot be opened");
  }
  {
    const setting bare("LOCKSTEP_NCCL", file.substr(slash + 1));
    expect_planes("fake:0,fake:1", {1, 1}, "staged", "nccl: rank 0: LOCKSTEP_NCCL: lockstep-fake.so");
  }
  {
    const setting old("LOCKSTEP_FAKE_NCCL", "old"),
        again("LOCKSTEP_NCCL", file.substr(0, slash) + "/." + file.substr(slash));
    expect_planes("fake:0,fake:1", {1, 1}, "staged", "is NCCL 2.13.4, but 2.14 or later is needed");
  }
  for (const char* how : {"no id", "init fails 1", "init hangs 1"}) {
    const setting plan("LOCKSTEP_FAKE_NCCL", how);
    expect_planes("fake:0,fake:1,fake:2", {1, 1, 1}, "staged", "nccl: rank ", 1000);
  }
  expect_planes("fake:0,fake:1", {1, 1}, "nccl", "");
}

TEST_F(Links, NcclThatFailsLater) {
  const setting there("LOCKSTEP_TEST_DEVICES", "fake:0,fake:1,fake:2");
  for (const char* how : {"group fails 1", "lost 1"}) {
    const setting plan("LOCKSTEP_FAKE_NCCL", how);
    const auto begin = std::chrono::steady_clock::now();
    run(
        {1, 1, 1},
        [&](member& m) {
          // Others may have all of their data by then.
          const lockstep_status status = transpose(m);
          EXPECT_TRUE(status == LOCKSTEP_RANK_LOST || (how[0] == 'l' && m.first != 1 && status == LOCKSTEP_OK))
              << how << ", rank " << m.first << ": " << status;
          EXPECT_EQ(transpose(m), LOCKSTEP_RANK_LOST) << how << ", rank " << m.first;
        },
        with("nccl", 1000));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4)) << how;
  }
}

// What one rank cannot do, the others hear of before they wait for it in NCCL; then all go on.
TEST_F(Links, ARankThatCannotTakePart) {
  const setting there("LOCKSTEP_TEST_DEVICES", "fake:0,fake:1,fake:2");
  run(
      {1, 1, 1},
      [&](member& m) {
        const int64_t shape[] = {30, 30};
        const lockstep_grid slabs = lockstep_grid_slabs(sizeof(float), 2, shape, 3);
        const int32_t perm[] = {1, 0};
        lockstep_ranks_plan* plan = nullptr;
        ASSERT_EQ(lockstep_ranks_permute(m.comm, &slabs, perm, &slabs, nullptr, &plan), LOCKSTEP_OK);
        std::vector<block> from, to;
        from.emplace_back(slabs, m.first, false), to.emplace_back(slabs, m.first, false);
        if (m.first == 1) from[0].part.data = nullptr;
        const lockstep_status status = execute(m, plan, &from, &to, nullptr);
        EXPECT_EQ(status, m.first == 1 ? LOCKSTEP_INVALID_ARGUMENT : LOCKSTEP_RANK_FAILED) << m.first;
        EXPECT_NE(std::string(lockstep_last_error()).find("src[0].data is NULL"), std::string::npos)
            << lockstep_last_error();
        EXPECT_NE(lockstep_ranks_synchronize(m.comm), LOCKSTEP_OK);
        lockstep_ranks_plan_destroy(plan);
        EXPECT_EQ(transpose(m), LOCKSTEP_OK) << lockstep_last_error();
      },
      with("nccl", 5000));
}

// A partner that is gone after it has said that it takes part: the GPU waits, the host does not.
TEST_F(Links, APartnerThatIsGone) {
  const setting there("LOCKSTEP_TEST_DEVICES", "fake:0,fake:1");
  const setting plan("LOCKSTEP_FAKE_NCCL", "gone 1");
  const auto begin = std::chrono::steady_clock::now();
  run(
      {1, 1},
      [&](member& m) { EXPECT_EQ(transpose(m), LOCKSTEP_RANK_LOST) << "rank " << m.first << lockstep_last_error(); },
      with("nccl", 300));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

}  // namespace
}  // namespace lockstep::ranks_test
