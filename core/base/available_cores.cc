// SPDX-License-Identifier: Apache-2.0
#include "core/base/available_cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

namespace outrider {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The group's own folder where its files are mounted: "" for the root, which is
// what a container sees of itself.
std::string OwnGroup() {
  const std::string line = FirstLine("/proc/self/cgroup");  // "0::/a/b"
  return line.starts_with("0::/") ? line.substr(3) : "";
}

// The tightest quota from the group up to the root: 0 where there is none.
int CoresOfGroups() {
  int cores = 0;
  std::string group = OwnGroup();
  while (true) {
    const int own =
        CoresOfQuota(FirstLine("/sys/fs/cgroup" + group + "/cpu.max"));
    if (own > 0) cores = cores == 0 ? own : std::min(cores, own);
    if (group.empty()) break;
    group.resize(group.rfind('/'));
  }
  if (cores > 0) return cores;
  // Version 1 of control groups.
  const std::string folder = "/sys/fs/cgroup/cpu/";
  return CoresOfQuota(FirstLine(folder + "cpu.cfs_quota_us") + " " +
                      FirstLine(folder + "cpu.cfs_period_us"));
}

int CoresOfAffinity() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    return CPU_COUNT(&cores);
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int AvailableCores() {
  const int cores = std::max(1, CoresOfAffinity());
  const int quota = CoresOfGroups();
  return quota == 0 ? cores : std::min(cores, quota);
}

int CoresOfQuota(const std::string& cpu_max) {
  std::istringstream fields(cpu_max);
  long quota = 0;
  long period = 0;
  if (!(fields >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::max(1L, quota / period));
}

}  // namespace outrider
