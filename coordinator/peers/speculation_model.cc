// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/speculation_model.h"

#include <algorithm>
#include <cmath>

#include "coordinator/peers/fade.h"

namespace outrider {
namespace {

// What is left of an observation's weight a round later. A mean of times is
// over some 16 rounds of each session then, one of acceptance over some 100 of
// all, but where the last dozen say clearly something else.
constexpr double kTimesRounds = 16;
constexpr double kAcceptanceFade = FadeOver(100);
constexpr double kRecentRounds = 12;
constexpr double kRecentFade = FadeOver(kRecentRounds);
constexpr double kClearly = 3;  // standard deviations
constexpr double kWeightAfterChange = 3;
constexpr double kTrialsFade = FadeOver(64);
constexpr double kAheadRounds = 64;
// Acceptance is never quite forgotten, or it would look good again by itself.
constexpr double kLeastAcceptanceWeight = 20;
// What is known of a place before it was seen: what is known of the one before
// it, as much as so many rounds say; how often the first one stands this, as
// much as one does.
constexpr double kPlaceBeforeWeight = 8;
constexpr double kFirstPlace = 0.7;

}  // namespace

void SpeculationModel::Learn(const RoundStats& round,
                             const Circumstances& circumstances) {
  LearnAcceptance(round, circumstances.num_asked);
  LearnAhead(round, circumstances);
  if (circumstances.is_trial && round.num_by_drafter() > 0) LearnWait(round);
  LearnTimes(round, circumstances);
}

void SpeculationModel::LearnAcceptance(const RoundStats& round, int num_asked) {
  num_asked = std::min(num_asked, kMostDrafts);
  for (Mean& place : accepted_) {
    place.Fade(kAcceptanceFade, kLeastAcceptanceWeight);
  }
  if (num_asked > 0) {
    ForgetWhatChanged(round.num_accepted > 0);
  } else {
    plain_tokens_.Fade(kAcceptanceFade);
    plain_tokens_.Add(round.num_accepted + 1);
    plain_drafts_.Fade(kAcceptanceFade);
    plain_drafts_.Add(round.num_drafted);
  }
  // A draft that was asked for and not made is one that does not stand.
  for (int i = 0; i < num_asked && i <= round.num_accepted; ++i) {
    accepted_[i].Add(i < round.num_accepted ? 1 : 0);
  }
  CountOn(accepted_, kFirstPlace, tokens_);
  for (Mean& place : made_) place.Fade(kAcceptanceFade);
  for (int i = 0; i < num_asked && i <= round.num_drafted; ++i) {
    made_[i].Add(i < round.num_drafted ? 1 : 0);
  }
  CountOn(made_, /*first=*/1, num_made_);
}

void SpeculationModel::CountOn(const Places& places, double first,
                               Counts& counts) {
  double all_went_well = 1;
  double goes_well = first;
  double weight = 1;
  for (int i = 0; i < kMostDrafts; ++i) {
    const Mean& seen = places[i];
    goes_well = (seen.weight * seen.value + weight * goes_well) /
                (seen.weight + weight);
    weight = kPlaceBeforeWeight;
    all_went_well *= goes_well;
    counts[i + 1] = counts[i] + all_went_well;
  }
}

void SpeculationModel::ForgetWhatChanged(bool first_stands) {
  recent_.Fade(kRecentFade);
  recent_.Add(first_stands ? 1 : 0);
  Mean& first = accepted_[0];
  if (recent_.weight < kRecentRounds / 2 || first.weight < kRecentRounds)
    return;
  const double share = std::clamp(first.value, 0.05, 0.95);
  const double deviation = std::sqrt(share * (1 - share) / recent_.weight);
  if (std::abs(recent_.value - first.value) < kClearly * deviation) return;
  first.value = recent_.value;
  for (Mean& place : accepted_) {
    place.weight = std::min(place.weight, kWeightAfterChange);
  }
}

void SpeculationModel::LearnTimes(const RoundStats& round,
                                  const Circumstances& circumstances) {
  const double fade = FadeOver(kTimesRounds, circumstances.num_sessions);
  for (Mean* time : {&draft_calls_, &draft_tokens_, &verify_calls_,
                     &plain_calls_, &drafts_, &rest_}) {
    time->Fade(fade);
  }
  const RoundStats::Link& draft = round.drafter;
  if (circumstances.num_asked > 0 &&
      round.ahead.outcome != AheadStats::Outcome::kHit) {
    draft_calls_.Add(draft.call_seconds - draft.compute_seconds -
                     round.ahead.wait_seconds);
    // Where it stopped it has computed what it was not sure of, too.
    const bool has_stopped = round.num_drafted < circumstances.num_asked;
    draft_tokens_.Add(draft.compute_seconds /
                      (round.num_drafted + (has_stopped ? 1 : 0)));
  }
  if (round.num_by_drafter() > 0) drafts_.Add(round.num_drafted);
  const RoundStats::Link& verify = round.verifier;
  LearnVerifyCall(round.num_by_drafter() > 0,
                  verify.call_seconds - verify.compute_seconds);
  passes_.Learn(round.num_drafted + 1, verify.compute_seconds,
                circumstances.num_sessions);
  rest_.Add(round.round_seconds - draft.call_seconds - verify.call_seconds);
}

void SpeculationModel::LearnAhead(const RoundStats& round,
                                  const Circumstances& circumstances) {
  const double fade = FadeOver(kAheadRounds, circumstances.num_sessions);
  for (Mean* mean : {&asked_, &hits_, &ahead_calls_, &ahead_tokens_}) {
    mean->Fade(fade);
  }
  const AheadStats& ahead = round.ahead;
  const bool was_asked = ahead.outcome != AheadStats::Outcome::kNotAsked;
  if (circumstances.is_ahead && round.num_by_drafter() > 0) {
    asked_.Add(was_asked ? 1 : 0);
  }
  if (was_asked) {
    hits_.Add(ahead.outcome == AheadStats::Outcome::kHit ? 1 : 0);
  }
  if (ahead.num_drafted > 0) {
    ahead_calls_.Add(ahead.call_seconds - ahead.compute_seconds);
    ahead_tokens_.Add(ahead.compute_seconds / (ahead.longest + 1));
  }
}

void SpeculationModel::LearnVerifyCall(bool has_drafts, double seconds) {
  Mean& own = has_drafts ? verify_calls_ : plain_calls_;
  Mean& other = has_drafts ? plain_calls_ : verify_calls_;
  const double before = own.value;
  own.Add(seconds);
  // A network that changes, changes for both: the one that is seen often tells
  // the one that is not.
  if (own.weight > 1 && own.weight > other.weight)
    other.value += own.value - before;
}

void SpeculationModel::LearnWait(const RoundStats& round) {
  const RoundStats::Link& verify = round.verifier;
  wait_.Add(round.num_drafted - drafts_.value,
            verify.call_seconds - verify.compute_seconds - verify_calls_.value,
            kTrialsFade);
}

double SpeculationModel::Seconds(int num_drafts) const {
  const double calls = rest_.value + VerifySeconds(num_drafts);
  if (num_drafts == 0) return std::max(1e-9, calls);
  const double in_turns = DraftSeconds(num_drafts);
  const double ahead = asked_.weight == 0 ? in_turns
                                          : LateSeconds(num_drafts) +
                                                (1 - hits_.value) * in_turns;
  return std::max(1e-9, calls + in_turns + asked_.value * (ahead - in_turns));
}

double SpeculationModel::Acceptance() const {
  return tokens_[1] > tokens_[0] ? tokens_[1] - tokens_[0] : kFirstPlace;
}

double SpeculationModel::DraftSeconds(int num_drafts) const {
  const double num_passes = num_drafts == 0 ? 0 : 1 + Made(num_drafts - 1);
  return draft_calls_.value + num_passes * draft_tokens_.value;
}

double SpeculationModel::VerifySeconds(int num_drafts) const {
  const double num_made =
      num_drafts == 0 ? plain_drafts_.value : Made(num_drafts);
  const int whole = static_cast<int>(num_made);
  const double pass = passes_.Seconds(whole + 1) +
                      (num_made - whole) * (passes_.Seconds(whole + 2) -
                                            passes_.Seconds(whole + 1));
  if (num_drafts > 0) {
    return pass +
           std::max(0.0, verify_calls_.value +
                             wait_.PerUnit() * (num_made - drafts_.value));
  }
  return pass +
         (plain_calls_.weight > 0 ? plain_calls_.value : verify_calls_.value);
}

double SpeculationModel::LateSeconds(int num_drafts) const {
  // It takes in the drafts that are being verified, and then drafts.
  const double seconds =
      ahead_calls_.value + (Made(num_drafts) + 1) * ahead_tokens_.value;
  return std::max(0.0, seconds - VerifySeconds(num_drafts));
}

int SpeculationModel::Best(int least, int most) const {
  int best = least;
  double rate = TokensPerSecond(least);
  for (int k = least + 1; k <= std::min(most, kMostDrafts); ++k) {
    const double other = TokensPerSecond(k);
    if (other > rate) {
      best = k;
      rate = other;
    }
  }
  return best;
}

}  // namespace outrider
