// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_SHARED_PASS_H_
#define OUTRIDER_COORDINATOR_CONTROL_SHARED_PASS_H_

#include <algorithm>

#include "coordinator/control/fading_mean.h"

namespace outrider {

// How much longer a pass takes by the rows of the other sessions in it. It
// reads the weights once, and takes a little more for each row, whoever that is
// of. So what passes of few rows take beside those of many tells what all
// sessions would gain if each had fewer, as they draft alike, and what a crowd
// costs as soon as it is there. Thread-compatible.
class SharedPass {
 public:
  // A pass had so many of the session's rows, and `sharing` times as many of
  // all; so many sessions are at work.
  void Learn(int num_rows, double sharing, double seconds, int num_sessions);

  // How many times as long a pass takes as one of a session by itself, where
  // `sharing` sessions have so many rows each.
  double Stretch(int num_rows, double sharing) const {
    return (1 + row_ * sharing * num_rows) / (1 + row_ * num_rows);
  }
  // The same where it is shared as passes of late were.
  double Stretch(int num_rows) const {
    return Stretch(num_rows, std::max(1.0, sharing_.value));
  }

 private:
  // Whether it has clearly more rows than passes of late, or fewer: that tells
  // what a row takes.
  bool LearnRow(double rows, double seconds, int num_sessions);

  FadingMean sharing_ = {};
  FadingMean rows_ = {};  // of all sessions in a pass
  FadingMean seconds_ = {};
  FadingMean per_row_ = {};  // seconds, as the machine is of late
  double row_ = 0;  // what each takes, as a share of a pass without any
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_SHARED_PASS_H_
