// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/pass_curve.h"

#include <algorithm>
#include <limits>

#include "coordinator/control/fade.h"

namespace outrider {
namespace {

// The scale is a mean over some so many rounds of each session, and what a
// number of rows takes beside others over so many: numbers that do not pay are
// tried a few times in that.
constexpr double kScaleRounds = 16;
constexpr double kShapeRounds = 1024;
// However often it was seen, it is forgotten in some thousand rounds.
constexpr double kMostWeight = 16;
// What is guessed of a number of rows counts as much as so many passes, and it
// was seen where that many are remembered.
constexpr double kGuessWeight = 1;
constexpr double kSeenWeight = 0.5;
// Rows cost nothing more, as if that had been seen once a row away.
constexpr double kNoSlopeWeight = 1;
// However few rows it has, a pass reads the weights.
constexpr double kLeastOfMean = 0.25;
// A pass that stood still says little of its rows.
constexpr double kMostOfUsual = 2;
// Less is as good as none beside a round.
constexpr double kLeastSeconds = 1e-6;

}  // namespace

void PassCurve::Learn(int num_rows, double sharing, double seconds,
                      int num_sessions) {
  seconds = std::max(seconds, kLeastSeconds);
  LearnShared(num_rows, sharing, seconds, num_sessions);
  seconds /= shared_.Stretch(num_rows, sharing);
  Fade(num_sessions);
  if (!has_learned()) {
    scale_ = seconds;
    scale_weight_ = 1;
    shares_.fill(1);
  }
  Step& step = steps_[At(num_rows)];
  const double usual = Alone(num_rows);
  seconds = std::min(seconds, kMostOfUsual * usual);
  // Passes among their like tell of load, and one among others of its rows; of
  // load, too, as far as its rows are known.
  const double among_like = num_recent_ > 0 ? step.recent / num_recent_ : 0;
  const double known = step.weight / (step.weight + kGuessWeight);
  step.weight = std::min(step.weight + 1, kMostWeight);
  step.sharing += (sharing - step.sharing) / step.weight;
  step.mean += (1 - among_like) * (seconds / scale_ - step.mean) / step.weight;
  scale_weight_ += known;
  scale_ *= 1 + known * (seconds / usual - 1) / scale_weight_;
  ++step.recent;
  ++num_recent_;
  FitShares();
}

// What passes of others' rows took stays what it was, where the cost of these
// turns out to be another.
void PassCurve::LearnShared(int num_rows, double sharing, double seconds,
                            int num_sessions) {
  const SharedPass before = shared_;
  shared_.Learn(num_rows, sharing, seconds, num_sessions);
  for (int i = 0; i < kMostRows; ++i) {
    steps_[i].mean *= before.Stretch(i + 1, steps_[i].sharing) /
                      shared_.Stretch(i + 1, steps_[i].sharing);
  }
}

void PassCurve::Fade(int num_sessions) {
  const double scale_fade = FadeOver(kScaleRounds, num_sessions);
  const double shape_fade = FadeOver(kShapeRounds, num_sessions);
  scale_weight_ *= scale_fade;
  num_recent_ *= scale_fade;
  for (Step& step : steps_) {
    step.recent *= scale_fade;
    step.weight *= shape_fade;
  }
}

void PassCurve::FitShares() {
  double weight = 0, rows = 0, mean = 0;
  int last = 0;  // the most rows that were seen
  for (int i = 0; i < kMostRows; ++i) {
    weight += steps_[i].weight;
    rows += steps_[i].weight * i;
    mean += steps_[i].weight * steps_[i].mean;
    if (steps_[i].weight >= kSeenWeight) last = i;
  }
  rows /= weight;
  mean /= weight;
  double squares = kNoSlopeWeight, products = 0;
  for (int i = 0; i < kMostRows; ++i) {
    const double distance = i - rows;
    squares += steps_[i].weight * distance * distance;
    products += steps_[i].weight * distance * (steps_[i].mean - mean);
  }
  const double slope = std::max(0.0, products / squares);
  double flat = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kMostRows; ++i) {
    const Step& step = steps_[i];
    double guess = std::max(mean + slope * (i - rows), kLeastOfMean * mean);
    // A step that nobody has seen may be anywhere between two numbers that were
    // seen. It is taken to be at the second of them: a guess that is too low is
    // tried and found out, one that is too high is believed.
    if (i < last) guess = std::min(guess, flat);
    shares_[i] = (step.weight * step.mean + kGuessWeight * guess) /
                 (step.weight + kGuessWeight);
    if (step.weight >= kSeenWeight) flat = shares_[i];
  }
}

}  // namespace outrider
