// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/draft_length_control.h"

#include <algorithm>
#include <iterator>

namespace outrider {
namespace {

constexpr int kMostDrafts = SpeculationModel::kMostDrafts;

// What the first rounds draft, again and again: enough to know what a row and a
// draft cost, and that few drafts stood for more than bad luck.
constexpr int kFirstLengths[] = {4, 4, 0, 4, 2, 4, 0, 4};
constexpr int kFirstRounds = 24;
// A fixed number is kept down to this share of the speed of none, and below it
// until that has cost so much time: whoever names one has reasons, but a
// drafter that hangs is none.
constexpr double kLeastOfFixed = 0.5;
constexpr double kMostSecondsBehind = 0.25;

// The number stays until another is better by this much: estimates waver, and
// users who draft alike meet in the verifier's passes.
constexpr double kWorthAChange = 1.02;

constexpr double kTrialShareOfTokens = 0.02;
constexpr double kTrialShareOfTime = 0.01;
// A trial begins when so many rounds of it are saved up, and ends when that is
// spent: a drafter that was left alone has to take in the text first.
constexpr double kRoundsOfATrial = 3;
// One kind of trial after the other, for so many rounds.
constexpr int kTrialsOfAKind = 4;
// What is saved or owed beyond this is forgotten, so that a drafter which hung
// once is tried again within minutes.
constexpr double kMostTokensSaved = 100;
constexpr double kMostSecondsSaved = 1;

}  // namespace

DraftLengthControl::Choice DraftLengthControl::Choose(
    int num_drafts, DraftLengthMode mode) const {
  MutexLock lock(mu_);
  Choice choice = {.num_drafts = num_drafts, .mode = mode};
  if (mode == DraftLengthMode::kFixed) {
    const bool is_too_slow = IsTooSlow(num_drafts);
    choice.is_trial = is_too_slow && may_try_;
    if (is_too_slow && !may_try_) choice.num_drafts = 0;
    return choice;
  }
  const int most = std::min(num_drafts, kMostDrafts);
  if (num_chosen_ < kFirstRounds || !model_.has_learned()) {
    choice.num_drafts =
        std::min(most, kFirstLengths[num_chosen_ % std::ssize(kFirstLengths)]);
    return choice;
  }
  const int best = std::min(best_, most);
  const int other = may_try_ ? OtherThan(best, most) : best;
  choice.num_drafts = other;
  choice.is_trial = other != best;
  return choice;
}

DraftLengthControl::Choice DraftLengthControl::ChooseAhead(
    int num_drafts, DraftLengthMode mode, Schedule schedule) const {
  Choice choice = Choose(num_drafts, mode);
  MutexLock lock(mu_);
  if (schedule == Schedule::kAuto && !ahead_.asks()) choice.num_drafts = 0;
  return choice;
}

int DraftLengthControl::NumOutcomes() const {
  MutexLock lock(mu_);
  return outcomes_.value();
}

double DraftLengthControl::Acceptance() const {
  MutexLock lock(mu_);
  return model_.Acceptance();
}

bool DraftLengthControl::Asks() const {
  MutexLock lock(mu_);
  return best_ > 0 || may_try_ || !model_.has_learned();
}

void DraftLengthControl::Learn(const Choice& choice, const RoundStats& round) {
  MutexLock lock(mu_);
  model_.Learn(round, choice.num_drafts, choice.is_trial);
  outcomes_.Learn(round);
  if (choice.mode == DraftLengthMode::kAuto) ++num_chosen_;
  if (!model_.has_learned()) return;
  LearnAhead(choice, round);
  if (choice.mode == DraftLengthMode::kFixed && choice.num_drafts > 0) {
    const double granted =
        (round.num_accepted + 1) / (kLeastOfFixed * model_.TokensPerSecond(0));
    seconds_behind_ =
        std::clamp(seconds_behind_ + round.round_seconds - granted, 0.0,
                   kMostSecondsSaved);
  }
  const int better = model_.Best(0, kMostDrafts);
  if (model_.TokensPerSecond(better) >
      kWorthAChange * model_.TokensPerSecond(best_)) {
    best_ = better;
  }
  Pay(choice, round);
}

void DraftLengthControl::LearnAhead(const Choice& choice,
                                    const RoundStats& round) {
  const bool is_first =
      choice.mode == DraftLengthMode::kAuto && num_chosen_ <= kFirstRounds;
  if (is_first || choice.is_trial || round.num_drafted == 0) return;
  ahead_.Learn(round.ahead.outcome != AheadStats::Outcome::kNotAsked,
               choice.drafts_ahead,
               round.round_seconds / model_.Tokens(choice.num_drafts));
}

void DraftLengthControl::Pay(const Choice& choice, const RoundStats& round) {
  const int num_tokens = round.num_accepted + 1;
  tokens_ += kTrialShareOfTokens * num_tokens;
  seconds_ += kTrialShareOfTime * round.round_seconds;
  if (choice.is_trial) {
    ++num_trials_;
    tokens_ -= num_tokens;
    seconds_ -= LostSeconds(choice.num_drafts);
  }
  tokens_ = std::min(tokens_, kMostTokensSaved);
  seconds_ = std::clamp(seconds_, -kMostSecondsSaved, kMostSecondsSaved);
  const int other = OtherThan(best_, kMostDrafts);
  if (tokens_ < 0 || seconds_ < 0) may_try_ = false;
  if (tokens_ >= kRoundsOfATrial * model_.Tokens(other) &&
      seconds_ >=
          std::min(kMostSecondsSaved, kRoundsOfATrial * LostSeconds(other))) {
    may_try_ = true;
  }
}

bool DraftLengthControl::IsTooSlow(int num_drafts) const {
  if (seconds_behind_ < kMostSecondsBehind) return false;
  return model_.TokensPerSecond(std::min(num_drafts, kMostDrafts)) <
         kLeastOfFixed * model_.TokensPerSecond(0);
}

int DraftLengthControl::OtherThan(int best, int most) const {
  if (best == 0) return most == 0 ? 0 : model_.Best(1, most);
  const int more = best < most ? std::min(best + 2, most) : best - 1;
  const int others[] = {0, best / 2, more};
  return others[num_trials_ / kTrialsOfAKind % std::size(others)];
}

double DraftLengthControl::LostSeconds(int num_drafts) const {
  return std::max(
      0.0, model_.Seconds(num_drafts) -
               model_.Tokens(num_drafts) / model_.TokensPerSecond(best_));
}

}  // namespace outrider
