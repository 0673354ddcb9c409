// SPDX-License-Identifier: Apache-2.0
#include "bench/machine.h"

#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/child_process.h"

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

std::string Git(const std::string& folder,
                const std::vector<std::string>& command) {
  std::vector<std::string> arguments = {"/usr/bin/git", "-C", folder};
  arguments.insert(arguments.end(), command.begin(), command.end());
  const auto git = ChildProcess::Start(arguments);
  if (!git.ok()) return "";
  const auto text = (*git)->ReadAll(std::chrono::seconds(10));
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : "";
}

std::string Commit(const std::string& folder) {
  const std::string commit = Git(folder, {"rev-parse", "--short=12", "HEAD"});
  if (commit.empty()) return "unknown";
  const bool is_changed =
      !Git(folder, {"status", "--porcelain", "--untracked-files=no"}).empty();
  return is_changed ? absl::StrCat(commit, ", with changes") : commit;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> DescribeMachine(
    const std::string& programs) {
  utsname system = {};
  uname(&system);
  struct sysinfo memory = {};
  sysinfo(&memory);
  const double gib =
      static_cast<double>(memory.totalram) * memory.mem_unit / (1U << 30);
  double load = 0;
  getloadavg(&load, 1);
  return {
      {"machine", absl::StrFormat("%s, %d cores, %.0f GiB, %s %s", CpuName(),
                                  std::thread::hardware_concurrency(), gib,
                                  system.sysname, system.release)},
      {"load of the machine at the start", absl::StrFormat("%.2f", load)},
      {"date", Now()},
      {"commit", Commit(programs)}};
}

}  // namespace outrider::bench
