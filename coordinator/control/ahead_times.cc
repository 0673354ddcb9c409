// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/ahead_times.h"

#include <algorithm>
#include <cmath>

#include "coordinator/control/fade.h"

namespace outrider {
namespace {

// What is drafted ahead changes with the number of outcomes, which wavers, and
// hits are a matter of chance: means are over so many rounds of each session.
constexpr double kRounds = 64;
constexpr double kCallsRounds = 16;
// One verdict of a kind that is seldom seen does not decide alone.
constexpr double kLeastHitsWeight = 8;
// Drafts for outcomes of one text are like each other: so large a part of their
// number would have as long a longest one, were each made by itself (the demo
// pair, 4 to 5 outcomes, stops at 0.4).
constexpr double kUnlikeOutcomes = 2.0 / 3;

}  // namespace

void AheadTimes::Learn(const RoundStats& round,
                       const Circumstances& circumstances) {
  const double fade = FadeOver(kRounds, circumstances.num_sessions);
  for (FadingMean* mean : {&asked_, &tokens_, &outcomes_}) mean->Fade(fade);
  for (FadingMean* mean : {&hits_, &hits_of_all_}) {
    mean->Fade(fade, kLeastHitsWeight);
  }
  for (FadingMean& hits : hits_of_refused_) hits.Fade(fade, kLeastHitsWeight);
  calls_.Fade(FadeOver(kCallsRounds, circumstances.num_sessions));
  const AheadStats& ahead = round.ahead;
  if (circumstances.is_ahead && round.num_by_drafter() > 0) {
    asked_.Add(circumstances.drafts_ahead ? 1 : 0);
  }
  if (ahead.outcome != AheadStats::Outcome::kNotAsked) LearnHit(ahead);
  if (ahead.num_drafted > 0) {
    calls_.Add(ahead.call_seconds - ahead.compute_seconds);
    tokens_.Add(ahead.compute_seconds / (ahead.longest + 1));
    outcomes_.Add(ahead.num_outcomes);
  }
}

void AheadTimes::LearnHit(const AheadStats& ahead) {
  const double hit = ahead.outcome == AheadStats::Outcome::kHit ? 1 : 0;
  const auto last = static_cast<int>(hits_of_refused_.size()) - 1;
  FadingMean& own = ahead.all_stood
                        ? hits_of_all_
                        : hits_of_refused_[std::min(ahead.num_accepted, last)];
  own.Add(hit);
  hits_.Add(hit);
}

double AheadTimes::HitShare(const DraftPlaces& places, int num_drafts) const {
  const auto beside = [](double known, const FadingMean& seen) {
    return known + (seen.value - known) * seen.weight /
                       (seen.weight + kLeastHitsWeight);
  };
  const double hits_of_all = beside(hits_.value, hits_of_all_);
  double hits = hits_.value;
  double share = 0;
  for (int i = 0; i <= num_drafts; ++i) {
    const DraftPlaces::End end = places.EndAt(i, num_drafts);
    share += end.all_stood * hits_of_all;
    if (i == num_drafts) break;
    hits = beside(hits, hits_of_refused_[i]);
    share += end.refused * hits;
  }
  return share;
}

double AheadTimes::LateSeconds(const DraftPlaces& places, int num_drafts,
                               double verify_seconds) const {
  const auto late = [&](int longest) {
    return std::max(
        0.0, calls_.value + (longest + 1) * tokens_.value - verify_seconds);
  };
  if (late(num_drafts) == 0) return 0;
  const double num_unlike = std::max(1.0, kUnlikeOutcomes * outcomes_.value);
  double seconds = late(0);
  for (int k = 1; k <= num_drafts; ++k) {
    const double more = late(k) - late(k - 1);
    if (more == 0) continue;
    // None of them gets so far.
    const double ends = std::max(0.0, 1 - places.MakesAtLeast(k));
    seconds += more * (1 - std::pow(ends, num_unlike));
  }
  return seconds;
}

}  // namespace outrider
