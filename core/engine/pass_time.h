// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_PASS_TIME_H_
#define OUTRIDER_CORE_ENGINE_PASS_TIME_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace outrider {

// How long a pass of so many rows takes, from those seen: a straight line,
// fitted by least squares in which a pass weighs less with each that follows.
class PassTime {
 public:
  using Duration = std::chrono::nanoseconds;

  void Observe(int num_rows, Duration time) {
    const double x = num_rows;
    const double y = static_cast<double>(time.count());
    for (double* sum : {&n_, &x_, &y_, &xx_, &xy_}) *sum *= kMemory;
    n_ += 1;
    x_ += x;
    y_ += y;
    xx_ += x * x;
    xy_ += x * y;
    const double variance = xx_ - x_ * x_ / n_;
    // Passes that were as good as always of one size say nothing of a row's
    // time: what others said before stands.
    if (variance < kLeastVariance * n_) return;
    row_time_ = std::max(0.0, (xy_ - x_ * y_ / n_) / variance);
  }

  // So many rows take this share of what a pass takes besides its rows.
  int RowsOf(double share) const {
    // Any number will do before a pass has shown what a row takes.
    constexpr int kManyRows = 1 << 20;
    const double time = share * static_cast<double>(Fixed().count());
    return time >= kManyRows * row_time_ ? kManyRows
                                         : static_cast<int>(time / row_time_);
  }

  // What a pass of so many rows takes. Nothing before the first pass.
  std::optional<Duration> Of(int num_rows) const {
    if (n_ == 0) return std::nullopt;
    return Fixed() + Duration(static_cast<int64_t>(row_time_ * num_rows));
  }

  // What a pass takes besides its rows. Zero before the first pass.
  Duration Fixed() const {
    if (n_ == 0) return Duration::zero();
    const double time = (y_ - row_time_ * x_) / n_;
    return Duration(static_cast<int64_t>(std::max(0.0, time)));
  }

 private:
  static constexpr double kMemory = 0.95;  // about the last twenty passes
  static constexpr double kLeastVariance = 0.1;

  double n_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
  double row_time_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_PASS_TIME_H_
