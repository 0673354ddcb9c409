// SPDX-License-Identifier: Apache-2.0
#include "core/telemetry/process_metrics.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

namespace outrider {
namespace {

class ProcessMetricsTest : public ::testing::Test {
 protected:
  ProcessMetricsTest() { AddProcessMetrics("1.2.3 abc-dirty", registry_); }

  double Value(const std::string& name) {
    const std::string page = registry_.Serialize();
    const std::string begin = "\n" + name + "{role=\"test\"} ";
    const size_t found = page.find(begin);
    EXPECT_NE(found, std::string::npos) << page;
    return std::atof(page.c_str() + found + begin.size());
  }

  MetricRegistry registry_{{{"role", "test"}}};
};

TEST_F(ProcessMetricsTest, TheBuildIsInLabels) {
  EXPECT_NE(registry_.Serialize().find(
                "\noutrider_build_info{commit=\"abc-dirty\",role=\"test\","
                "version=\"1.2.3\"} 1"),
            std::string::npos)
      << registry_.Serialize();
}

TEST_F(ProcessMetricsTest, TheStartIsWhenTheSystemMadeTheProcess) {
  struct stat own = {};
  ASSERT_EQ(stat("/proc/self/fd", &own), 0);  // made at the first look
  const double start = Value("process_start_time_seconds");
  EXPECT_LE(start, static_cast<double>(own.st_mtime) + 2);
  EXPECT_GT(start, static_cast<double>(own.st_mtime) - 3600);
}

TEST_F(ProcessMetricsTest, MemoryGrowsWithWhatIsUsed) {
  const double before = Value("process_resident_memory_bytes");
  EXPECT_GT(before, 1 << 20);
  const std::string used(64 << 20, 'x');
  EXPECT_GT(Value("process_resident_memory_bytes"), before + (32 << 20));
  EXPECT_EQ(used.back(), 'x');
}

TEST_F(ProcessMetricsTest, OpenFilesAreCounted) {
  const double before = Value("process_open_fds");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(Value("process_open_fds"), before + 2);
  for (const int end : ends) close(end);
  EXPECT_EQ(Value("process_open_fds"), before);
}

}  // namespace
}  // namespace outrider
