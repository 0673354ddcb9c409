// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/choose_level.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/kernels/bfloat16.h"
#include "core/kernels/linear.h"

namespace outrider::kernels {
namespace {

constexpr double kClearlyFaster = 0.85;

// A linear layer of 2 MiB, little enough to measure quickly and too much for
// the nearest cache, and rows for it.
class Probe {
 public:
  Probe()
      : ones_(static_cast<size_t>(kSize) * kSize, ToBFloat16(1.0f)),
        weight_({{ones_.data(), kSize}}, kSize),
        x_(static_cast<size_t>(kMostRows) * kSize, 1.0f),
        y_(x_.size()) {}

  // Plain decoding and the passes of speculation, one after the other.
  double Seconds(Level level) {
    const auto start = std::chrono::steady_clock::now();
    for (const int num_rows : {1, 5, kMostRows}) {
      Linear({.x = x_.data(),
              .num_rows = num_rows,
              .weight = &weight_,
              .y = y_.data()},
             level);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  }

 private:
  static constexpr int kSize = 1024;
  static constexpr int kMostRows = 9;

  std::vector<BFloat16> ones_;
  PackedWeight weight_;
  std::vector<float> x_;
  std::vector<float> y_;
};

// Plain C++ is never the fastest where there is anything else.
std::vector<Level> Candidates() {
  std::vector<Level> levels = SupportedLevels();
  if (levels.size() > 1) levels.erase(levels.begin());
  return levels;
}

}  // namespace

Level PreferredLevel(const std::vector<LevelTime>& times) {
  OUTRIDER_CHECK(!times.empty()) << "no level";
  LevelTime highest = times.front();
  LevelTime fastest = times.front();
  for (const LevelTime& one : times) {
    if (one.level > highest.level) highest = one;
    if (one.time < fastest.time) fastest = one;
  }
  return fastest.time < kClearlyFaster * highest.time ? fastest.level
                                                      : highest.level;
}

namespace {

Level MeasureLevels() {
  const std::vector<Level> candidates = Candidates();
  if (candidates.size() == 1) return candidates.front();
  std::vector<LevelTime> times;
  for (const Level level : candidates) {
    times.push_back({level, std::numeric_limits<double>::infinity()});
  }
  // Turn by turn, and the least of all turns: whatever else the machine does
  // then, it does not only to one level.
  constexpr int kNumTurns = 8;
  Probe probe;
  for (int turn = 0; turn < kNumTurns; ++turn) {
    for (LevelTime& one : times) {
      one.time = std::min(one.time, probe.Seconds(one.level));
    }
  }
  return PreferredLevel(times);
}

}  // namespace

Level ChooseLevel() {
  static const Level chosen = MeasureLevels();
  return chosen;
}

absl::StatusOr<Level> LevelByName(absl::string_view name) {
  if (name == "auto") return ChooseLevel();
  std::vector<std::string> names = {"auto"};
  for (const Level level : SupportedLevels()) {
    if (name == LevelName(level)) return level;
    names.push_back(LevelName(level));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "kernels \"", name, "\": this CPU has ", absl::StrJoin(names, ", ")));
}

}  // namespace outrider::kernels
