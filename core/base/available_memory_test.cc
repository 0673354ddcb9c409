// SPDX-License-Identifier: Apache-2.0
#include "core/base/available_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace outrider {
namespace {

constexpr int64_t kMebibyte = 1 << 20;

// A machine with 1000 MiB available, as far as files say so.
class AvailableMemoryTest : public ::testing::Test {
 protected:
  AvailableMemoryTest() : root_(::testing::TempDir() + "available_memory") {
    std::filesystem::remove_all(root_);
    Write("proc/meminfo",
          "MemTotal:        4096000 kB\nMemFree:           10240 kB\n"
          "MemAvailable:    1024000 kB\n");
  }
  ~AvailableMemoryTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  int64_t Mebibytes() const { return AvailableMemory(root_) / kMebibyte; }

  const std::string root_;
};

std::string Bytes(int64_t mebibytes) {
  return std::to_string(mebibytes * kMebibyte) + "\n";
}

TEST_F(AvailableMemoryTest, IsTheMachinesWhereNoCgroupBoundsIt) {
  EXPECT_EQ(Mebibytes(), 1000);
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "max\n");
  Write("sys/fs/cgroup/memory.current", Bytes(5));
  EXPECT_EQ(Mebibytes(), 1000);
}

TEST_F(AvailableMemoryTest, IsWhatTheTightestCgroupAboveLeaves) {
  Write("proc/self/cgroup", "0::/pod/container\n");
  Write("sys/fs/cgroup/pod/container/memory.max", Bytes(800));
  Write("sys/fs/cgroup/pod/container/memory.current", Bytes(100));
  EXPECT_EQ(Mebibytes(), 700);
  Write("sys/fs/cgroup/pod/memory.max", Bytes(600));
  Write("sys/fs/cgroup/pod/memory.current", Bytes(350));
  EXPECT_EQ(Mebibytes(), 250);
}

TEST_F(AvailableMemoryTest, FilesInThePageCacheCanBeGivenBack) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", Bytes(500));
  Write("sys/fs/cgroup/memory.current", Bytes(490));
  Write("sys/fs/cgroup/memory.stat",
        "anon 1\ninactive_file " + Bytes(300) + "active_file 7\n");
  EXPECT_EQ(Mebibytes(), 310);
}

TEST_F(AvailableMemoryTest, AContainerOfVersionOneSeesItsCgroupAtTheMount) {
  Write("proc/self/cgroup",
        "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n0::/\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", Bytes(300));
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", Bytes(100));
  Write("sys/fs/cgroup/memory/memory.stat", "total_inactive_file " + Bytes(50));
  EXPECT_EQ(Mebibytes(), 250);
}

TEST(AvailableMemoryOfThisProcessTest, IsKnown) {
  EXPECT_GT(AvailableMemory(), kMebibyte);
}

}  // namespace
}  // namespace outrider
