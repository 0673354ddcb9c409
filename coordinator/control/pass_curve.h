// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_PASS_CURVE_H_
#define OUTRIDER_COORDINATOR_CONTROL_PASS_CURVE_H_

#include <algorithm>
#include <array>

#include "coordinator/control/shared_pass.h"

namespace outrider {

// How long a pass of the verifier takes, by the rows that a session has in it.
// That is a staircase and no line, as kernels take rows by the tile; so each
// number of rows has a share of its own, times a scale that all have in common
// and that follows load within some rounds. Where a number was hardly seen, or
// long ago, a straight line through the others stands in for it, or the nearest
// of fewer rows that takes less. All that is as if the session had been alone;
// the rows of others stretch it (SharedPass). Thread-compatible.
class PassCurve {
 public:
  static constexpr int kMostRows = 33;  // those of more are as of so many

  // A pass in a round that had this many times the session's rows with those of
  // others, where so many sessions are at work.
  void Learn(int num_rows, double sharing, double seconds, int num_sessions);

  bool has_learned() const { return scale_weight_ > 0; }
  // That is where as many others share it as of late; known once it has
  // learned.
  double Seconds(int num_rows) const {
    return Alone(num_rows) * shared_.Stretch(num_rows);
  }

 private:
  // What passes of one number of rows took, over the scale.
  struct Step {
    double weight = 0;  // of what the mean is made from
    double mean = 0;
    double sharing = 1;  // on average
    double recent = 0;   // passes, of those that the scale was made from
  };

  static int At(int num_rows) { return std::clamp(num_rows, 1, kMostRows) - 1; }
  double Alone(int num_rows) const { return scale_ * shares_[At(num_rows)]; }
  void LearnShared(int num_rows, double sharing, double seconds,
                   int num_sessions);
  void Fade(int num_sessions);
  void FitShares();

  SharedPass shared_ = {};
  double scale_ = 0;  // seconds
  double scale_weight_ = 0;
  double num_recent_ = 0;
  std::array<Step, kMostRows> steps_ = {};
  std::array<double, kMostRows> shares_ = {};  // follow from steps_
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_PASS_CURVE_H_
