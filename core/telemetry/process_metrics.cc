// SPDX-License-Identifier: Apache-2.0
#include "core/telemetry/process_metrics.h"

#include <dirent.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace outrider {
namespace {

std::string ReadAll(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return std::move(text).str();
}

// The number in that place of a list of words; NaN where there is none.
double NumberAt(absl::string_view words, size_t place) {
  const std::vector<absl::string_view> all =
      absl::StrSplit(words, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  double number = 0;
  if (place < all.size() && absl::SimpleAtod(all[place], &number)) {
    return number;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// The system has it as ticks since it was booted.
double StartTime() {
  const std::string own = ReadAll("/proc/self/stat");
  // The second word is the program's name, in brackets, and may be several.
  const size_t name_end = own.rfind(')');
  if (name_end == std::string::npos) return NumberAt("", 0);
  const double ticks = NumberAt(absl::string_view(own).substr(name_end + 1),
                                /*place=*/19);
  const std::string system = ReadAll("/proc/stat");
  const size_t boot = system.find("btime ");
  if (boot == std::string::npos) return NumberAt("", 0);
  return NumberAt(absl::string_view(system).substr(boot), /*place=*/1) +
         ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double ResidentBytes() {
  return NumberAt(ReadAll("/proc/self/statm"), /*place=*/1) *
         static_cast<double>(sysconf(_SC_PAGESIZE));
}

double NumOpenFiles() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return NumberAt("", 0);
  int num_entries = 0;
  while (readdir(folder) != nullptr) ++num_entries;
  closedir(folder);
  return num_entries - 3;  // ".", ".." and the folder's own
}

}  // namespace

void AddProcessMetrics(absl::string_view build, MetricRegistry& registry) {
  const std::pair<std::string, std::string> version_and_commit =
      absl::StrSplit(build, absl::MaxSplits(' ', 1));
  registry.AddSource({.name = "build_info",
                      .help = "1; the labels say which build this is.",
                      .labels = {{"version", version_and_commit.first},
                                 {"commit", version_and_commit.second}},
                      .read = [] { return 1; }});
  registry.AddSource({.name = "process_start_time_seconds",
                      .help = "Unix time at which this process began.",
                      .read = [start = StartTime()] { return start; }});
  registry.AddSource({.name = "process_resident_memory_bytes",
                      .help = "Memory of this process that is resident.",
                      .read = ResidentBytes});
  registry.AddSource({.name = "process_open_fds",
                      .help = "File descriptors that this process has open.",
                      .read = NumOpenFiles});
}

}  // namespace outrider
