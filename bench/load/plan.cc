// SPDX-License-Identifier: Apache-2.0
#include "bench/load/plan.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/load/formula.h"
#include "core/base/status_macros.h"

namespace outrider::bench {

std::string Load::ToString() const {
  if (is_open()) return absl::StrCat(rate, " requests/s");
  return absl::StrCat(concurrency, concurrency == 1 ? " user" : " users");
}

absl::StatusOr<std::vector<double>> ParseNumbers(const std::string& flag,
                                                 const std::string& list,
                                                 double low, double high) {
  std::vector<double> numbers;
  for (const absl::string_view item : absl::StrSplit(list, ',')) {
    double number = 0;
    if (!absl::SimpleAtod(item, &number) || !(number >= low) ||
        !(number <= high)) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " needs numbers from ", low, " to ", high,
                       ", such as \"0,1,5\", not \"", item, "\""));
    }
    if (std::find(numbers.begin(), numbers.end(), number) != numbers.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " names ", item, " twice"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<std::vector<int>> ParseWholeNumbers(const std::string& flag,
                                                   const std::string& list,
                                                   int low, int high) {
  OUTRIDER_ASSIGN_OR_RETURN(const std::vector<double> numbers,
                            ParseNumbers(flag, list, low, high));
  std::vector<int> whole;
  for (const double number : numbers) {
    if (number != std::floor(number)) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " needs whole numbers, not ", number));
    }
    whole.push_back(static_cast<int>(number));
  }
  return whole;
}

absl::StatusOr<std::vector<int>> ParseDraftLengths(const std::string& flag,
                                                   const std::string& list,
                                                   int high) {
  std::vector<std::string> items = absl::StrSplit(list, ',');
  const auto num_auto = std::erase(items, "auto");
  if (num_auto > 1) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " names auto twice"));
  }
  std::vector<int> ks;
  for (const std::string& item : items) {
    if (ParseWholeNumbers(flag, item, 0, high).ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " needs whole numbers from 0 to ", high,
                     " or auto, such as \"0,4,auto\", not \"", item, "\""));
  }
  if (!items.empty()) {
    OUTRIDER_ASSIGN_OR_RETURN(
        ks, ParseWholeNumbers(flag, absl::StrJoin(items, ","), 0, high));
  }
  if (num_auto > 0) ks.push_back(kAutoK);
  return ks;
}

absl::StatusOr<std::vector<Schedule>> ParseSchedules(const std::string& flag,
                                                     const std::string& list) {
  std::vector<Schedule> schedules;
  for (const absl::string_view item : absl::StrSplit(list, ',')) {
    const auto found = ScheduleNames().find(std::string(item));
    if (found == ScheduleNames().end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          flag, " takes sequential, ahead, predraft and auto, not \"", item,
          "\""));
    }
    if (absl::c_linear_search(schedules, found->second)) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " has ", item, " twice"));
    }
    schedules.push_back(found->second);
  }
  return schedules;
}

std::string NameOf(Schedule schedule) {
  for (const auto& [name, one] : ScheduleNames()) {
    if (one == schedule) return name;
  }
  return "unknown";
}

std::string NameOfK(int k) { return k == kAutoK ? "auto" : absl::StrCat(k); }

std::string Drafting::ToString() const {
  return schedule == Schedule::kSequential
             ? NameOfK(k)
             : absl::StrCat(NameOfK(k), " ", NameOf(schedule));
}

int Grid::LargestK() const {
  int largest = 0;
  for (const int k : ks) {
    if (k != kAutoK) largest = std::max(largest, k);
  }
  return largest;
}

std::vector<Point> PlanPoints(const Grid& grid) {
  std::vector<int> ks = grid.ks;
  std::erase(ks, 0);
  std::vector<Load> loads = grid.loads;
  std::stable_partition(loads.begin(), loads.end(),
                        [](const Load& load) { return load == Load{}; });
  std::vector<Point> points;
  for (int repeat = 0; repeat < grid.num_repeats; ++repeat) {
    for (const double rtt_ms : grid.rtts_ms) {
      for (const Load& load : loads) {
        const Cell plain = {.rtt_ms = rtt_ms, .load = load};
        points.push_back({.cell = plain, .repeat = repeat});
        for (const Schedule schedule : grid.schedules) {
          for (const int k : ks) {
            Cell cell = plain;
            cell.schedule = schedule;
            cell.k = k;
            points.push_back({.cell = cell, .repeat = repeat});
          }
        }
      }
    }
  }
  return points;
}

double EstimateSeconds(const Point& point, const PointCosts& costs) {
  constexpr double kLikelyAcceptance = 0.7;
  constexpr double kOverheadMs = 1;
  constexpr int kLikelyK = 4;
  Cell cell = point.cell;
  if (cell.k == kAutoK) cell.k = kLikelyK;
  const double round_ms = PredictRoundMs({.k = cell.k,
                                          .draft_step_ms = costs.draft_ms,
                                          .verify_ms = costs.verify_ms,
                                          .drafter_rtt_ms = cell.rtt_ms,
                                          .verifier_rtt_ms = cell.rtt_ms,
                                          .overhead_ms = kOverheadMs});
  const double token_ms =
      round_ms / ExpectedTokensPerRound(kLikelyAcceptance, cell.k);
  // Users share the nodes, but not the network.
  const double compute_ms = costs.verify_ms + cell.k * costs.draft_ms;
  const double share = std::max(1, cell.load.concurrency) - 1;
  const double seconds_alone = 1e-3 * costs.max_tokens * token_ms;
  const double request_seconds =
      seconds_alone * (1 + share * compute_ms / round_ms);
  // The last requests are on their way when the time is over; the round trip is
  // measured.
  constexpr double kAlwaysSeconds = 0.3;
  return std::max(costs.seconds + request_seconds / 2, request_seconds) +
         costs.num_warm_up * seconds_alone + 20e-3 * cell.rtt_ms / 5 +
         kAlwaysSeconds;
}

}  // namespace outrider::bench
