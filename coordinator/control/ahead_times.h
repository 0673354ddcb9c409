// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_AHEAD_TIMES_H_
#define OUTRIDER_COORDINATOR_CONTROL_AHEAD_TIMES_H_

#include <array>

#include "coordinator/control/draft_places.h"
#include "coordinator/control/fading_mean.h"
#include "core/wire/round_stats.h"

namespace outrider {

// What drafts that are made while a round is verified take and spare, as far as
// past rounds tell. All of it fades. Thread-compatible.
class AheadTimes {
 public:
  // What a round was part of.
  struct Circumstances {
    bool is_ahead = false;      // drafts are asked for ahead where that can be
    bool drafts_ahead = false;  // those of the next round were
    int num_sessions = 1;       // at work, whose rounds are learned as well
  };

  void Learn(const RoundStats& round, const Circumstances& circumstances);
  // What drafts took counts as so many rounds from now on.
  void KeepTimesAtMost(double rounds) {
    for (FadingMean* mean : {&calls_, &tokens_}) mean->KeepAtMost(rounds);
  }

  // Whether a round that drafts has been seen, and how many of these asked for
  // the next one's drafts.
  bool was_asked() const { return asked_.weight > 0; }
  double asked_share() const { return asked_.value; }

  // How often the verdict over so many drafts, which end as at `places`, is one
  // that was drafted for. The more they are, the fewer verdicts take all; and
  // those that refuse a late one are drafted for more seldom, as the likeliest
  // verdicts come first.
  double HitShare(const DraftPlaces& places, int num_drafts) const;

  // How much later than the verdict, on average, all drafts for it are there,
  // of at most so many tokens each that end as at `places`. The drafter takes
  // in what is being verified, and then drafts until the longest of them is
  // made. That is late by more than a draft of mean length is, as what comes
  // too early spares nothing.
  double LateSeconds(const DraftPlaces& places, int num_drafts,
                     double verify_seconds) const;

 private:
  void LearnHit(const AheadStats& ahead);

  FadingMean asked_ = {};  // share of the rounds that draft
  // Share of those that hit: of all, after verdicts that took all drafts, and
  // after others by how many they took. What is known of one counts beside what
  // is known of the one before it, and of the first ones beside that of all.
  FadingMean hits_ = {};
  FadingMean hits_of_all_ = {};
  std::array<FadingMean, DraftPlaces::kMostDrafts> hits_of_refused_ = {};
  FadingMean calls_ = {};     // less what the drafter computed
  FadingMean tokens_ = {};    // what it computed, a token of all drafts at once
  FadingMean outcomes_ = {};  // that it drafted for
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_AHEAD_TIMES_H_
