// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_PASS_TIME_H_
#define OUTRIDER_CORE_ENGINE_PASS_TIME_H_

#include <algorithm>
#include <chrono>

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
  }

  // Zero before the first pass.
  Duration Predict(int num_rows) const {
    if (n_ == 0) return Duration::zero();
    const double variance = xx_ - x_ * x_ / n_;
    // Rows are whole: below this they were as good as always the same.
    const double slope =
        variance < 0.1 ? 0 : std::max(0.0, (xy_ - x_ * y_ / n_) / variance);
    const double time = (y_ - slope * x_) / n_ + slope * num_rows;
    return Duration(static_cast<int64_t>(std::max(0.0, time)));
  }

 private:
  static constexpr double kMemory = 0.95;  // about the last twenty passes

  double n_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_PASS_TIME_H_
