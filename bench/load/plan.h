// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_PLAN_H_
#define OUTRIDER_BENCH_LOAD_PLAN_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/wire/schedule.h"

namespace outrider::bench {

// How requests come: from a number of users who each wait for their answer
// (closed loop), or at random times, whatever the answers do (open loop).
struct Load {
  int concurrency = 1;  // users; 0: open loop
  double rate = 0;      // open loop: requests a second, Poisson

  bool is_open() const { return concurrency == 0; }
  // Users who fill each other's waits.
  bool is_crowd() const { return concurrency > 1; }
  // "1 user", "8 users", "2.5 requests/s".
  std::string ToString() const;
  auto operator<=>(const Load&) const = default;
};

// Stands for a K that the coordinator chooses for each round; larger than any
// other, so that it comes last.
inline constexpr int kAutoK = 1 << 20;
// "4", "auto".
std::string NameOfK(int k);

// How rounds draft, in one cell.
struct Drafting {
  Schedule schedule = Schedule::kSequential;  // this one where k is 0
  int k = 0;

  // "4", "4 predraft": the schedule where it is not sequential.
  std::string ToString() const;
  auto operator<=>(const Drafting&) const = default;
};

// Where a cell lies in the sweep.
struct Cell {
  double rtt_ms = 0;  // nominal, coordinator to verifier and to drafter
  Load load = {};
  Schedule schedule = Schedule::kSequential;  // as Drafting has them
  int k = 0;
  Drafting drafting() const { return {.schedule = schedule, .k = k}; }
  auto operator<=>(const Cell&) const = default;
};

// One measurement: a cell, some time.
struct Point {
  Cell cell = {};
  int repeat = 0;  // from 0
  auto operator<=>(const Point&) const = default;
};

// What is swept over.
struct Grid {
  std::vector<double> rtts_ms = {0};
  std::vector<Schedule> schedules = {Schedule::kSequential};
  std::vector<int> ks = {0};
  std::vector<Load> loads = {{}};
  int num_repeats = 1;

  // The largest K that is named; 0 where none is.
  int LargestK() const;
  // Whether any cell may draft.
  bool HasDrafts() const { return *std::max_element(ks.begin(), ks.end()) > 0; }
};

// Parses "0,1,5". INVALID_ARGUMENT names the flag and what is wrong with the
// list: no numbers, out of [low, high], one twice.
absl::StatusOr<std::vector<double>> ParseNumbers(const std::string& flag,
                                                 const std::string& list,
                                                 double low, double high);
absl::StatusOr<std::vector<int>> ParseWholeNumbers(const std::string& flag,
                                                   const std::string& list,
                                                   int low, int high);
// Likewise, and "auto" may be among them.
absl::StatusOr<std::vector<int>> ParseDraftLengths(const std::string& flag,
                                                   const std::string& list,
                                                   int high);
// Likewise, of names.
absl::StatusOr<std::vector<Schedule>> ParseSchedules(const std::string& flag,
                                                     const std::string& list);
std::string NameOf(Schedule schedule);

// All points in the order of measuring. K = 0 is always among them, first of
// its row, and one user comes before crowds: the others are compared with
// these. Repeats are the outermost loop, so
// that a busy minute of the machine hits one repeat of a cell and not all.
std::vector<Point> PlanPoints(const Grid& grid);

// What a point is likely to take: seconds.
struct PointCosts {
  double seconds = 0;  // as long as requests are begun
  int max_tokens = 0;
  int num_warm_up = 0;
  double verify_ms = 2;  // guesses, where nothing is known
  double draft_ms = 0.3;
};
double EstimateSeconds(const Point& point, const PointCosts& costs);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_PLAN_H_
