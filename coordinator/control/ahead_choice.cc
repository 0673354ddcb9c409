// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/ahead_choice.h"

#include <algorithm>

#include "coordinator/control/trial_share.h"

namespace outrider {
namespace {

// Rounds of a block, at least and, in a trial, at most: so many, and of each
// session so many. Sessions that have turned fall into a new step first, the
// more so where there are several, who wait for each other.
constexpr int kLeastRounds = 10;
constexpr int kLeastRoundsOfEach = 4;
constexpr int kMostRounds = 20;
constexpr int kMostRoundsOfEach = 8;
constexpr int kUnsettled = 2;
constexpr int kUnsettledOfEach = 3;

// By so much two ways differ, and one way from what it was. A trial that ends
// with the wrong way costs a little until the next one, and one that goes on to
// be sure costs as much each time. A change that is none costs a trial; its
// share is far above what the number of drafts does to a way while that is
// tried.
// Rounds that follow each other are alike, by their text and by what else the
// machine does, so that a few of them are further off than their errors say:
// hence the many errors, and what is no great change has to last for two
// blocks.
constexpr Pace::Margin kDifference = {.share = 0.1, .num_errors = 4};
constexpr Pace::Margin kChange = {.share = 0.5, .num_errors = 3};
constexpr Pace::Margin kGreatChange = {.share = 1, .num_errors = 3};
constexpr int kBlocksOfChange = 2;

// What a model says of both ways wavers by less than this; and where there are
// so many times as many sessions as there were, it is not asked.
constexpr double kLeastForetold = 0.9;
constexpr int kMostGrowth = 2;

constexpr double kShareOfTrials = 0.005;
// A way that a trial has brought into force, and which a model has for the
// slower one, is held against the one before it once more after so many times
// as long as the trial took: the machine may have become another between that
// and the rounds before it.
constexpr int kTimesToConfirm = 3;
// What changes all the time has the other way tried no more often than this, in
// the time of a trial; and no later than that where the model says that
// the other way has not gained, as it does not see what the ways cost each
// other where nodes share processors.
constexpr int kTimesBetweenTrials = 8;
constexpr int kMostTimesScaled = 24;
// What is nearly as fast costs next to nothing to try. What is little known is
// taken to be faster than it seemed by so many errors, of rounds as if each
// were by itself: with more doubt eight users lose a percent to trials.
constexpr double kDoubt = 2.5;
constexpr double kLeastLoss = 0.02;
constexpr double kMostLoss = 1;

// What counts, at most, of the rounds before a block, of those before a trial,
// and of a block in which the way became another.
constexpr double kWeightBefore = 96;
constexpr double kWeightBeforeTrial = 48;
constexpr double kWeightOfMixed = 2;

}  // namespace

void AheadChoice::Learn(Round round) {
  const int num_sessions = round.num_sessions;
  // A round that stood still says little, also where it is a block's first.
  if (block_.weight == 0 && own().weight > 0) {
    round.seconds_per_token =
        std::min(round.seconds_per_token, Pace::kMostOfMean * own().value);
  }
  const Pace& usual = block_.weight > 0 ? block_ : own();
  const double pace =
      usual.weight > 0
          ? std::min(round.seconds_per_token, Pace::kMostOfMean * usual.value)
          : round.seconds_per_token;
  const double seconds = round.tokens * pace;
  seconds_since_trial_ += seconds;
  seconds_since_turn_ += seconds;
  ++num_since_turn_;
  const int num_unsettled =
      num_sessions == 1 ? kUnsettled : kUnsettledOfEach * num_sessions;
  if (num_since_turn_ <= num_unsettled) return;
  block_.Add(round.seconds_per_token);
  block_drafts_ = (block_drafts_ || block_.weight == 1) && round.has_drafts;
  const int least = std::max(kLeastRounds, kLeastRoundsOfEach * num_sessions);
  if (block_.weight < least) return;
  // Once noted, a change is followed by a trial, whatever changes meanwhile.
  const bool may_change = !is_trial_ && !is_other_old_;
  const auto differs = [&](const Pace::Margin& margin) {
    return Pace::AreApart(block_, own(), margin, num_sessions);
  };
  if (may_change && HasBegunToDraft()) reference_ = {};
  if (may_change && (HasBegunToDraft() || differs(kGreatChange))) {
    NoteChange(round);
  } else if (may_change && differs(kChange)) {
    if (block_.weight >= kBlocksOfChange * least) NoteChange(round);
  } else if (IsBlockOver(num_sessions)) {
    Decide(round);
  }
}

// Both ways were seen without drafts alone, which are the same then, and this
// one has them now: that says nothing of what the other would gain. It is so of
// the very first drafts too, whose number has only begun to settle: that block
// counts little, and the other way is tried a block later.
bool AheadChoice::HasBegunToDraft() const {
  return block_drafts_ && !drafts_[0] && !drafts_[1];
}

bool AheadChoice::IsBlockOver(int num_sessions) {
  return !is_trial_ ||
         Pace::AreApart(block_, other(), kDifference, num_sessions) ||
         block_.weight >=
             std::max(kMostRounds, kMostRoundsOfEach * num_sessions);
}

// The other way is taken to have changed alike until it is tried: as soon as it
// is known what this one is now, where it may have become the better one.
void AheadChoice::NoteChange(const Round& round) {
  if (own().value > 0) other().Scale(block_.value / own().value);
  is_other_scaled_ = true;
  if (!IsOtherNoBetter(round)) DoubtOther();
  own() = block_;
  own().KeepAtMost(kWeightOfMixed);
  own_drafts() = block_drafts_;
  block_ = {};
}

bool AheadChoice::IsOtherNoBetter(const Round& round) const {
  if (!reference_.foretold.has_value() || !round.foretold.has_value()) {
    return false;
  }
  // What sessions cost each other is measured, and not foretold: least of all
  // where one gets company.
  const auto [fewer, more] =
      std::minmax(round.num_sessions, reference_.num_sessions);
  return more < kMostGrowth * fewer &&
         *round.foretold >= kLeastForetold * *reference_.foretold;
}

void AheadChoice::DoubtOther() {
  other().KeepAtMost(kWeightOfMixed);
  is_other_old_ = true;
}

void AheadChoice::Decide(const Round& round) {
  own().KeepAtMost(is_trial_ ? kWeightBeforeTrial : kWeightBefore);
  // What a trial clearly shows is not outvoted by what was before it.
  if (is_trial_ &&
      Pace::AreApart(block_, own(), kDifference, round.num_sessions)) {
    own().KeepAtMost(kWeightOfMixed);
  }
  own().Add(block_);
  block_ = {};
  own_drafts() = block_drafts_;
  const bool is_better = own().value <= other().value;
  if (is_trial_) {
    seconds_of_trial_ = seconds_since_turn_;
    seconds_since_trial_ = 0;
    is_trial_ = false;
    // It was in force before the trial, or the model has it for the faster one.
    is_confirmed_ = !is_better || round.foretold.value_or(1) >= 1;
    if (!is_better) Turn();
    return;
  }
  if (!reference_.foretold.has_value()) reference_ = round;
  // The model's means have moved on since the change was noted.
  if (is_other_scaled_ && !is_other_old_ && !IsOtherNoBetter(round)) {
    DoubtOther();
  }
  if (other().weight == 0 || !is_better || IsTimeToTry(round.num_sessions)) {
    is_trial_ = true;
    is_other_old_ = is_other_scaled_ = false;
    Turn();
  }
}

bool AheadChoice::IsTimeToTry(int num_sessions) {
  const auto have_passed = [this](int times) {
    return seconds_since_trial_ >= times * seconds_of_trial_;
  };
  if (!is_confirmed_) return have_passed(kTimesToConfirm);
  if (is_other_old_) return have_passed(kTimesBetweenTrials);
  if (is_other_scaled_ && have_passed(kMostTimesScaled)) return true;
  const double other_at_best = other().value - kDoubt * other().Error();
  const double loss =
      std::clamp(other_at_best / own().value - 1, kLeastLoss, kMostLoss);
  const double share =
      own_drafts() ? TrialShare(kShareOfTrials, num_sessions) : kShareOfTrials;
  // So much of its time the last trial took beyond what its tokens take this
  // way.
  const double lost = seconds_of_trial_ * loss / (1 + loss);
  return share * seconds_since_trial_ >= lost;
}

void AheadChoice::Turn() {
  asks_ = !asks_;
  reference_ = {};
  num_since_turn_ = 0;
  seconds_since_turn_ = 0;
}

}  // namespace outrider
