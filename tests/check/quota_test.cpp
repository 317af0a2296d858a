// quota_test.cpp - the control groups' limits, read from folders made like the kernel's.
#include "../../backends/cpu/quota.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace fs = std::filesystem;
namespace {

class Quota : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lockstep-quota-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root = name;
  }
  void TearDown() override { fs::remove_all(root); }
  void file(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  double read() const { return lockstep::cpu::cgroup_quota(root); }
  std::string root;
};

TEST_F(Quota, NoneWithoutGroups) { EXPECT_EQ(read(), 0); }

TEST(WithinQuota, APartOfACpuIsAThread) {
  using lockstep::cpu::within_quota;
  EXPECT_EQ(within_quota(16, 0), 16);  // none
  EXPECT_EQ(within_quota(16, 2.5), 3);
  EXPECT_EQ(within_quota(16, 4), 4);
  EXPECT_EQ(within_quota(16, 0.1), 1);
  EXPECT_EQ(within_quota(2, 2.5), 2);
  EXPECT_EQ(within_quota(2, 1e9), 2);
}

TEST_F(Quota, Version2OfTheOwnGroup) {
  file("/proc/self/cgroup", "0::/user/job\n");
  file("/sys/fs/cgroup/user/job/cpu.max", "250000 100000\n");
  EXPECT_EQ(read(), 2.5);
}

TEST_F(Quota, Version2OfAGroupAbove) {
  file("/proc/self/cgroup", "0::/user/job/step\n");
  file("/sys/fs/cgroup/user/job/step/cpu.max", "max 100000\n");
  file("/sys/fs/cgroup/user/job/cpu.max", "400000 100000\n");
  EXPECT_EQ(read(), 4);
  file("/sys/fs/cgroup/user/cpu.max", "150000 100000\n");
  EXPECT_EQ(read(), 1.5);
  file("/sys/fs/cgroup/user/job/step/cpu.max", "50000 100000\n");
  EXPECT_EQ(read(), 0.5);
}

TEST_F(Quota, Version2OfAContainersRoot) {
  file("/proc/self/cgroup", "0::/\n");
  file("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(read(), 3);
  file("/proc/self/cgroup", "0::/host/only/path\n");
  EXPECT_EQ(read(), 3);
}

TEST_F(Quota, Version2WithoutALimit) {
  file("/proc/self/cgroup", "0::/user\n");
  file("/sys/fs/cgroup/user/cpu.max", "max 100000\n");
  EXPECT_EQ(read(), 0);
}

TEST_F(Quota, Version1) {
  file("/proc/self/cgroup", "5:memory:/big\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n0::/x\n");
  file("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "-1\n");
  file("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read(), 0);
  file("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(read(), 2);
  file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");  // within a container: the root alone
  file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read(), 1);
}

TEST_F(Quota, WhatIsNoGroupFile) {
  file("/proc/self/cgroup", "\nnonsense\n0:\n7:cpuset:/a\n0::/\n");
  file("/sys/fs/cgroup/cpu.max", "\n");
  EXPECT_EQ(read(), 0);
}

}  // namespace
