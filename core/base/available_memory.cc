// SPDX-License-Identifier: Apache-2.0
#include "core/base/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace outrider {
namespace {

// What a file says of its cgroup's memory, and where.
struct CgroupFiles {
  const char* limit;
  const char* usage;
  const char* reclaimable;  // the key in memory.stat
};
constexpr CgroupFiles kVersion1 = {
    "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr CgroupFiles kVersion2 = {"memory.max", "memory.current",
                                   "inactive_file"};

// None where there is no such file, or no number in it ("max").
std::optional<int64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  int64_t number = 0;
  if (!(file >> text) || !absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

// The number after a key of a file of such lines.
std::optional<int64_t> ReadKey(const std::string& path,
                               const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const std::vector<std::string> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t number = 0;
    if (words.size() >= 2 && words[0] == key &&
        absl::SimpleAtoi(words[1], &number)) {
      return number;
    }
  }
  return std::nullopt;
}

// What the cgroup at `path` below `mount` and those above it leave. In a
// container the path may be one that it cannot see: then the mount itself is
// the innermost one that answers.
int64_t LeftByCgroups(const std::string& mount, std::string path,
                      const CgroupFiles& files) {
  int64_t left = std::numeric_limits<int64_t>::max();
  while (true) {
    const std::string directory = absl::StrCat(mount, path, "/");
    const auto limit = ReadNumber(directory + files.limit);
    const auto usage = ReadNumber(directory + files.usage);
    if (limit.has_value() && usage.has_value()) {
      const int64_t reclaimable =
          ReadKey(directory + "memory.stat", files.reclaimable).value_or(0);
      left = std::min(left, std::max<int64_t>(0, *limit - *usage) +
                                std::min(reclaimable, *usage));
    }
    if (path.find('/') == std::string::npos) return left;
    path.resize(path.rfind('/'));
  }
}

}  // namespace

int64_t AvailableMemory(const std::string& root) {
  constexpr int64_t kKibibyte = 1024;
  int64_t available =
      ReadKey(root + "/proc/meminfo", "MemAvailable:").value_or(0) * kKibibyte;
  std::ifstream cgroups(root + "/proc/self/cgroup");
  std::string line;  // "4:memory:/path", or "0::/path" of version 2
  while (std::getline(cgroups, line)) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::string path = parts[2] == "/" ? "" : parts[2];
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    const std::string mount = root + "/sys/fs/cgroup";
    if (parts[1].empty()) {
      available = std::min(available, LeftByCgroups(mount, path, kVersion2));
    } else if (absl::c_linear_search(controllers, "memory")) {
      available = std::min(available,
                           LeftByCgroups(mount + "/memory", path, kVersion1));
    }
  }
  return available;
}

}  // namespace outrider
