// SPDX-License-Identifier: Apache-2.0
#include "bench/load/machine.h"

#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "core/base/build_version.h"

namespace outrider::bench {
namespace {

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (absl::StartsWith(line, "model name")) {
      return std::string(
          absl::StripAsciiWhitespace(line.substr(line.find(':') + 1)));
    }
  }
  return "unknown processor";
}

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  return absl::StrFormat("%04d-%02d-%02d %02d:%02d UTC", utc.tm_year + 1900,
                         utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min);
}

}  // namespace

Origin DescribeOrigin(bool is_simulated) {
  utsname system = {};
  uname(&system);
  struct sysinfo memory = {};
  sysinfo(&memory);
  const double gib =
      static_cast<double>(memory.totalram) * memory.mem_unit / (1U << 30);
  double load = 0;
  getloadavg(&load, 1);
  return {.is_simulated = is_simulated,
          .machine = absl::StrFormat("%s, %d cores, %.0f GiB, %s %s", CpuName(),
                                     std::thread::hardware_concurrency(), gib,
                                     system.sysname, system.release),
          .machine_load = load,
          .date = Now(),
          .commit = kBuildCommit};
}

}  // namespace outrider::bench
