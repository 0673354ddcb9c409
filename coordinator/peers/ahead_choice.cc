// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/ahead_choice.h"

#include <algorithm>

namespace outrider {
namespace {

// Rounds of a block, at least and, in a trial, at most: so many, and of each
// session so many. Sessions that have turned fall into a new step first.
constexpr int kLeastRounds = 10;
constexpr int kLeastRoundsOfEach = 4;
constexpr int kMostRounds = 32;
constexpr int kMostRoundsOfEach = 8;
constexpr int kUnsettledOfEach = 2;

// By such shares two ways differ, and one way from what it was. The second is
// far above what the number of drafts does to it while that is tried.
constexpr double kDifference = 0.1;
constexpr double kChange = 0.35;

constexpr double kShareOfTrials = 0.005;
// What is nearly as fast costs next to nothing to try.
constexpr double kLeastLoss = 0.02;
constexpr double kMostLoss = 1;

// What counts, at most, of the rounds before a block, of those before a trial,
// and of a block in which the way became another.
constexpr double kWeightBefore = 96;
constexpr double kWeightBeforeTrial = 16;
constexpr double kWeightOfMixed = 2;

}  // namespace

void AheadChoice::Learn(double seconds_per_token, int num_sessions) {
  ++num_since_trial_;
  ++num_since_turn_;
  if (num_since_turn_ <= kUnsettledOfEach * num_sessions) return;
  block_.Add(seconds_per_token);
  if (block_.weight < std::max(kLeastRounds, kLeastRoundsOfEach * num_sessions))
    return;
  if (!is_trial_ && Pace::AreApart(block_, own(), kChange)) {
    NoteChange();
  } else if (IsBlockOver(num_sessions)) {
    Decide();
  }
}

bool AheadChoice::IsBlockOver(int num_sessions) {
  return !is_trial_ || Pace::AreApart(block_, other(), kDifference) ||
         block_.weight >=
             std::max(kMostRounds, kMostRoundsOfEach * num_sessions);
}

// The other way is taken to have changed alike until it is tried: as soon as it
// is known what this one is now.
void AheadChoice::NoteChange() {
  other().Scale(block_.value / own().value);
  is_other_old_ = true;
  own() = block_;
  own().KeepAtMost(kWeightOfMixed);
  block_ = {};
}

void AheadChoice::Decide() {
  own().KeepAtMost(is_trial_ ? kWeightBeforeTrial : kWeightBefore);
  own().Add(block_);
  block_ = {};
  const bool is_better = own().value <= other().value;
  if (is_trial_) {
    rounds_of_trial_ = num_since_turn_;
    num_since_trial_ = 0;
    is_trial_ = false;
    if (!is_better) Turn();
  } else if (other().weight == 0 || !is_better || is_other_old_ ||
             IsTimeToTry()) {
    is_trial_ = true;
    is_other_old_ = false;
    Turn();
  }
}

bool AheadChoice::IsTimeToTry() {
  const double loss =
      std::clamp(other().value / own().value - 1, kLeastLoss, kMostLoss);
  return kShareOfTrials * num_since_trial_ >= rounds_of_trial_ * loss;
}

void AheadChoice::Turn() {
  asks_ = !asks_;
  num_since_turn_ = 0;
}

}  // namespace outrider
