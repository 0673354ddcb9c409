// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_COMMAND_PROGRESS_H_
#define OUTRIDER_BENCH_COMMAND_PROGRESS_H_

#include <chrono>
#include <string>

#include "bench/load/measurement.h"
#include "client/command.h"

namespace outrider::bench {

// "1 h 5 min", "12 min", "40 s".
std::string Duration(double seconds);

// Tells on standard error how a run goes: a line a point, and on a terminal a
// bar below them. Thread-compatible.
class Progress {
 public:
  Progress(const client::CommandIo& io, int num_points, double seconds);

  void Begin(const Point& point);
  void End(const Measurement& measurement);
  void Skip(const Point& point, const std::string& why);
  // Takes the bar away.
  void Finish();

 private:
  std::string Color(const char* code) const;
  void Print(const std::string& line);

  const client::CommandIo& io_;
  const int num_points_;
  const double estimated_seconds_;
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
  int num_done_ = 0;
};

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_COMMAND_PROGRESS_H_
