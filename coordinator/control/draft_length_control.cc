// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/draft_length_control.h"

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

// A fixed number is kept down to this share of the speed of none, a token a
// call, and below it until that has cost so much time: whoever names one has
// reasons, but a drafter that hangs is none.
constexpr double kLeastOfFixed = 0.5;
constexpr double kMostSecondsBehind = 0.25;
// Rounds without drafts pay for that with so much of their time: then it is
// tried again, seconds after a drafter has stumbled and minutes after it hung.
constexpr double kShareOfFixed = 0.02;
// More is forgotten.
constexpr double kMostSecondsKept = 4;

// A way that is tried drafts for so much of the time, beyond what its tokens
// take the other way; what is owed beyond this is forgotten.
constexpr double kShareOfTrialDrafts = 0.01;
constexpr double kMostSecondsOwed = 10;

// The number of sessions is a mean over some so many rounds.
constexpr double kSessionsRounds = 32;
// A session that comes back after a pause has seen the rounds of the others go
// by, and counts no more than so much of the mean, and so many.
constexpr double kMostOfSessions = 4;

}  // namespace

DraftLengthControl::Choice DraftLengthControl::Choose(
    int num_drafts, DraftLengthMode mode) const {
  MutexLock lock(mu_);
  Choice choice = {.num_drafts = num_drafts,
                   .mode = mode,
                   .is_ahead = IsAhead(),
                   .chooses_stop = chooses_stop_};
  if (mode == DraftLengthMode::kFixed) {
    if (IsTooSlow(num_drafts)) choice.num_drafts = 0;
    return choice;
  }
  const DraftLengthChoice::Number number = Way().Choose(num_drafts);
  choice.num_drafts = number.length.num_drafts;
  choice.stop = number.length.stop;
  choice.is_trial = number.is_trial;
  return choice;
}

DraftLengthControl::Choice DraftLengthControl::ChooseAhead(
    int num_drafts, DraftLengthMode mode) const {
  Choice choice = Choose(num_drafts, mode);
  if (schedule_ == Schedule::kAuto && !choice.is_ahead) choice.num_drafts = 0;
  return choice;
}

int DraftLengthControl::NumOutcomes() const {
  MutexLock lock(mu_);
  return outcomes_.value();
}

double DraftLengthControl::Acceptance() const {
  MutexLock lock(mu_);
  return Way().model().Acceptance();
}

bool DraftLengthControl::Asks(DraftLengthMode mode) const {
  if (mode == DraftLengthMode::kFixed) return true;
  MutexLock lock(mu_);
  return Way().Asks();
}

bool DraftLengthControl::MayHaveCompany() const {
  MutexLock lock(mu_);
  return num_sessions() > 1 || sessions_weight_ == 0;
}

int64_t DraftLengthControl::Learn(const Choice& choice,
                                  const RoundStats& round) {
  MutexLock lock(mu_);
  ++num_rounds_;
  CountSessions(choice.after);
  outcomes_.Learn(round);
  LearnWay(choice, round);
  return num_rounds_;
}

void DraftLengthControl::LearnWay(const Choice& choice,
                                  const RoundStats& round) {
  const bool is_fixed = choice.mode == DraftLengthMode::kFixed;
  const DraftLengthChoice::Seen seen = {
      .round = round,
      .asked = {.length = {choice.num_drafts, choice.stop},
                .is_trial = choice.is_trial},
      .is_by_control = !is_fixed,
      .is_ahead = choice.is_ahead,
      .drafts_ahead = choice.drafts_ahead,
      .follows_drafts = choice.follows_drafts,
      .num_sessions = num_sessions(),
      .number = num_rounds_,
      .after = choice.after};
  DraftLengthChoice& own = choice.is_ahead ? ahead_way_ : in_turn_;
  DraftLengthChoice& other = choice.is_ahead ? in_turn_ : ahead_way_;
  other.LearnAcceptance(seen);
  PayForTrial(round, other);
  // It went from one way to the other.
  const bool was_ahead = round.ahead.outcome != AheadStats::Outcome::kNotAsked;
  const bool has_turned =
      schedule_ == Schedule::kAuto &&
      (choice.is_ahead != ahead_.asks() || (was_ahead && !choice.is_ahead));
  if (has_turned) {
    own.LearnAcceptance(seen);
    return;
  }
  own.Learn(seen);
  if (!own.has_learned()) return;
  if (is_fixed) LearnFixed(own, choice.num_drafts > 0, round);
  if (schedule_ != Schedule::kAuto || choice.is_trial) return;
  if (!is_fixed && !own.has_begun()) return;
  // Where a round drafts, it is of this way if its drafts and those of the next
  // one are.
  const bool is_of_way =
      round.num_by_drafter() == 0 ||
      (was_ahead == choice.is_ahead && choice.drafts_ahead == choice.is_ahead);
  if (!is_of_way || choice.after < last_turn_) return;
  const DraftLength length = {choice.num_drafts, choice.stop};
  const double tokens = own.model().Tokens(length);
  ahead_.Learn({.seconds_per_token = round.round_seconds / tokens,
                .tokens = tokens,
                .num_sessions = num_sessions(),
                .has_drafts = choice.num_drafts > 0,
                .foretold = own.model().OtherWay(length, choice.is_ahead,
                                                 other.model())});
  if (ahead_.asks() == choice.is_ahead) return;
  last_turn_ = num_rounds_;
  if (!other.has_learned()) other.BeginLike(own);
  if (ahead_.is_trial() && owed_for_trials_ <= 0) other.DraftOnTrial();
}

void DraftLengthControl::PayForTrial(const RoundStats& round,
                                     const DraftLengthChoice& other) {
  owed_for_trials_ -= kShareOfTrialDrafts * round.round_seconds;
  if (ahead_.is_trial() && other.has_learned()) {
    // What the verifier stood still is not the drafts' fault.
    owed_for_trials_ += std::min(
        round.round_seconds - round.num_committed() / other.tokens_per_second(),
        round.drafter.call_seconds);
  }
  owed_for_trials_ = std::clamp(owed_for_trials_, 0.0, kMostSecondsOwed);
}

void DraftLengthControl::LearnFixed(const DraftLengthChoice& way,
                                    bool has_asked, const RoundStats& round) {
  const double granted =
      round.num_committed() /
      (kLeastOfFixed * way.model().TokensPerSecondOfPasses());
  seconds_behind_ += has_asked ? round.round_seconds - granted
                               : -kShareOfFixed * round.round_seconds;
  seconds_behind_ = std::clamp(seconds_behind_, 0.0, kMostSecondsKept);
}

bool DraftLengthControl::IsAhead() const {
  return schedule_ == Schedule::kAuto ? ahead_.asks()
                                      : schedule_ != Schedule::kSequential;
}

void DraftLengthControl::CountSessions(int64_t after) {
  // A number that it has not given yet is another control's.
  if (after == 0 || after >= num_rounds_) return;
  const double seen = std::min(static_cast<double>(num_rounds_ - after),
                               kMostOfSessions * (num_sessions_ + 1));
  sessions_weight_ = std::min(sessions_weight_ + 1, kSessionsRounds);
  num_sessions_ += (seen - num_sessions_) / sessions_weight_;
}

int DraftLengthControl::num_sessions() const {
  return static_cast<int>(std::lround(num_sessions_));
}

bool DraftLengthControl::IsTooSlow(int num_drafts) const {
  if (seconds_behind_ < kMostSecondsBehind) return false;
  const SpeculationModel& model = Way().model();
  return model.TokensPerSecond({.num_drafts = num_drafts}) <
         kLeastOfFixed * model.TokensPerSecondOfPasses();
}

}  // namespace outrider
