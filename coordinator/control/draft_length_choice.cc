// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/draft_length_choice.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "coordinator/control/trial_share.h"

namespace outrider {
namespace {

constexpr int kMostDrafts = SpeculationModel::kMostDrafts;

// What the first rounds draft, so many of them each: enough to know what a row
// and a draft cost, and that few drafts stood for more than bad luck.
constexpr int kFirstLengths[] = {4, 4, 0, 4, 2, 4, 0, 4};
// So many sessions see enough of that while they try a length once.
constexpr int kManySessions = 4;
// These are for where a row's and a draft's cost is known from the other way.
constexpr int kFirstLength = 4;
constexpr int kNumFirstOfOther = 2;
constexpr int kRoundsOfFirst = 3;
constexpr int kFirstOfEach = 2;  // of each session

// The number stays until another is better by this much: estimates waver, and
// users who draft alike meet in the verifier's passes.
constexpr double kWorthAChange = 1.02;
// Rounds without drafts tell nothing of what drafts would give by now, and
// trials tell it slowly: so drafts go on until they have cost the time of so
// many rounds of each session more than none would have. Where they take so
// large a part more, they end at once: such a drafter stumbles.
constexpr double kRoundsBehindNone = 2;
constexpr double kFarBehindNone = 0.5;

constexpr double kTrialShareOfTokens = 0.02;
constexpr double kTrialShareOfTime = 0.01;
// A trial begins when so many rounds of each session are saved up, and ends
// when that is spent, and what several may owe for changes: a drafter that was
// left alone has to take in the text first.
constexpr double kRoundsOfATrial = 3;
// How much further than most rounds a trial goes that looks past a stop.
constexpr int kPastTheStop = 2;
// What is saved or owed beyond this, for each session, is forgotten, so that a
// drafter which hung once is tried again within minutes.
constexpr double kMostTokensSaved = 100;
constexpr double kMostSecondsSaved = 1;
// Several users pass over to another number for a trial, but also because it is
// better: that puts trials off for no longer than it takes to save this for
// each.
constexpr double kMostSecondsOwedForChanges = 0.05;

// A draft of one token ends with it anyway.
DraftLength WithoutNeedlessStop(DraftLength length) {
  if (length.num_drafts <= 1) length.stop = 0;
  return length;
}

}  // namespace

DraftLengthChoice::Number DraftLengthChoice::Choose(int most) const {
  most = std::min(most, kMostDrafts);
  if (!has_begun() || !has_learned()) {
    const int first =
        knows_rows_ ? kFirstLength : kFirstLengths[num_first_ % kNumFirst];
    return {.length = {.num_drafts = std::min(most, first)}};
  }
  const DraftLength best =
      WithoutNeedlessStop({std::min(best_.num_drafts, most), best_.stop});
  const DraftLength other =
      may_try_ ? WithoutNeedlessStop(OtherThan(best, most)) : best;
  return {.length = other, .is_trial = other != best};
}

void DraftLengthChoice::BeginLike(const DraftLengthChoice& other) {
  // What is known, and not what the other has saved up for trials.
  *this = other;
  tokens_ = seconds_ = rounds_behind_none_ = 0;
  may_try_ = false;
  num_rounds_of_first_ = 0;
  num_first_ = kNumFirst - kNumFirstOfOther;
  knows_rows_ = true;
}

void DraftLengthChoice::DraftOnTrial() {
  if (best_.num_drafts > 0) return;
  model_.DoubtDrafts();
  best_ = model_.Best(1, kMostDrafts);
  rounds_behind_none_ = 0;
}

void DraftLengthChoice::Learn(const Seen& seen) {
  if (IsInStep(seen)) {
    model_.Learn(seen.round, {.asked = seen.asked.length,
                              .num_sessions = seen.num_sessions,
                              .is_ahead = seen.is_ahead,
                              .drafts_ahead = seen.drafts_ahead,
                              .follows_drafts = seen.follows_drafts});
  } else {
    LearnAcceptance(seen);
  }
  if (seen.is_by_control && !has_begun()) LearnFirst(seen);
  if (!has_learned()) return;
  CountBehindNone(seen);
  const DraftLength better =
      model_.Best(LeastDrafts(seen.num_sessions), kMostDrafts);
  if (model_.TokensPerSecond(better) >
      kWorthAChange * model_.TokensPerSecond(best_)) {
    best_ = better;
    if (better.num_drafts == 0) rounds_behind_none_ = 0;
    last_change_ = seen.number;
  }
  Pay(seen);
}

void DraftLengthChoice::CountBehindNone(const Seen& seen) {
  const bool is_best = seen.is_by_control && has_begun() &&
                       !seen.asked.is_trial && seen.asked.length.num_drafts > 0;
  if (!is_best) return;
  const double most = kRoundsBehindNone * seen.num_sessions;
  const double lost =
      1 - model_.TokensPerSecond(best_) / model_.TokensPerSecond({});
  rounds_behind_none_ = lost > kFarBehindNone
                            ? most
                            : std::clamp(rounds_behind_none_ + lost, 0.0, most);
}

int DraftLengthChoice::LeastDrafts(int num_sessions) const {
  const bool goes_on = has_begun() && best_.num_drafts > 0 &&
                       rounds_behind_none_ < kRoundsBehindNone * num_sessions;
  return goes_on ? 1 : 0;
}

void DraftLengthChoice::LearnFirst(const Seen& seen) {
  const int most = std::max(kRoundsOfFirst, kFirstOfEach * seen.num_sessions);
  if (++num_rounds_of_first_ < most) return;
  num_rounds_of_first_ = 0;
  ++num_first_;
  const auto was_tried = [&] {
    const int* next = kFirstLengths + num_first_;
    return std::find(kFirstLengths, next, *next) != next;
  };
  const bool see_enough = !knows_rows_ && seen.num_sessions >= kManySessions;
  while (see_enough && !has_begun() && was_tried()) ++num_first_;
  last_change_ = seen.number;
}

void DraftLengthChoice::Pay(const Seen& seen) {
  const int num_tokens = seen.round.num_committed();
  tokens_ += kTrialShareOfTokens * num_tokens;
  const double share = best_.num_drafts > 0
                           ? TrialShare(kTrialShareOfTime, seen.num_sessions)
                           : kTrialShareOfTime;
  double seconds = share * seen.round.round_seconds;
  if (seen.asked.is_trial) {
    tokens_ -= num_tokens;
    seconds -= LostSeconds(seen.asked.length);
    // It puts the next trial off, and does not end this one, which has yet to
    // see what drafts usually take.
    if (!seen.follows_drafts) seconds_ -= LostToFirst(seen);
  }
  seconds_ += seconds;
  trial_seconds_ += seconds;
  const double owed_for_changes =
      seen.num_sessions == 1 ? 0
                             : seen.num_sessions * kMostSecondsOwedForChanges;
  if (!IsInStep(seen)) {
    // What it takes to pass over to another number and back puts the next trial
    // off. It does not end one, which would have told nothing yet.
    seconds_ -= std::clamp(seen.round.round_seconds - model_.Seconds(best_),
                           0.0, std::max(0.0, owed_for_changes + seconds_));
  }
  const double most_seconds = seen.num_sessions * kMostSecondsSaved;
  tokens_ = std::min(tokens_, seen.num_sessions * kMostTokensSaved);
  seconds_ = std::clamp(seconds_, -most_seconds, most_seconds);
  const bool might_try = may_try_;
  const DraftLength other = OtherThan(best_, kMostDrafts);
  const double num_rounds = seen.num_sessions * kRoundsOfATrial;
  if (tokens_ < 0 || trial_seconds_ < 0) may_try_ = false;
  if (tokens_ >= num_rounds * model_.Tokens(other) &&
      seconds_ >= std::min(most_seconds, num_rounds * LostSeconds(other))) {
    may_try_ = true;
  }
  if (may_try_ == might_try) return;
  if (may_try_) trial_seconds_ = seconds_ + owed_for_changes;
  last_change_ = seen.number;
  if (might_try) ++num_trials_;
}

DraftLength DraftLengthChoice::OtherThan(const DraftLength& best,
                                         int most) const {
  const int k = best.num_drafts;
  if (k == 0) return most == 0 ? DraftLength{} : model_.Best(1, most);
  // What ends at a stop says of earlier ones how their first draft fares, and
  // no more: so it is tried what would come after most of those ends.
  const int past_stop =
      static_cast<int>(std::lround(model_.Made(best))) + kPastTheStop;
  const DraftLength others[] = {
      {},
      {.num_drafts = best.stop > 0 ? std::min(past_stop, most) : k / 2},
      {.num_drafts = k < most ? std::min(k + 2, most) : k - 1,
       .stop = best.stop}};
  return others[num_trials_ % std::size(others)];
}

// The first drafts of a drafter that was left alone take longer than what is
// known says: what such a round took beyond that, as far as they did.
double DraftLengthChoice::LostToFirst(const Seen& seen) const {
  const RoundStats& round = seen.round;
  const double lost = round.round_seconds -
                      round.num_committed() / model_.TokensPerSecond(best_);
  return std::max(0.0, std::min(lost, round.drafter.call_seconds) -
                           LostSeconds(seen.asked.length));
}

double DraftLengthChoice::LostSeconds(const DraftLength& length) const {
  return std::max(0.0,
                  model_.Seconds(length) -
                      model_.Tokens(length) / model_.TokensPerSecond(best_));
}

}  // namespace outrider
