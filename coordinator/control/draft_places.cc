// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/draft_places.h"

#include <algorithm>
#include <cmath>

#include "coordinator/control/fade.h"

namespace outrider {
namespace {

// Means are over some 100 rounds of all sessions, but where the last dozen say
// clearly something else.
constexpr double kRoundsFade = FadeOver(100);
constexpr double kRecentRounds = 12;
constexpr double kRecentFade = FadeOver(kRecentRounds);
constexpr double kClearly = 3;  // standard deviations
// A dozen rounds are too few to say more of a share that is nearer to none or
// all: by chance alone they would differ from it clearly far too often.
constexpr double kLeastShare = 0.1;
constexpr double kWeightAfterChange = 3;
// What was seen is never quite forgotten, or drafts would look good again by
// themselves.
constexpr double kLeastWeight = 20;
constexpr double kLeastWeightUnseen = 60;
// What is known of a place before it was seen: what is known of the one before
// it, as much as so many rounds say; how often the first one stands this, as
// much as one does.
constexpr double kPlaceBeforeWeight = 8;
constexpr double kFirstPlace = 0.7;

}  // namespace

DraftPlaces::DraftPlaces() { Count(); }

void DraftPlaces::Learn(const Drafts& drafts) {
  const int num_asked = At(drafts.num_asked);
  if (num_asked == 0 && accepted_[0].weight == 0) return;
  for (Places* places : {&accepted_, &made_}) {
    for (FadingMean& place : *places) place.Fade(kRoundsFade, kLeastWeight);
  }
  if (num_asked > 0) ForgetWhatChanged(drafts.num_accepted > 0);
  // A draft that was asked for and not made is one that does not stand.
  for (int i = 0; i < num_asked && i <= drafts.num_accepted; ++i) {
    accepted_[i].Add(i < drafts.num_accepted ? 1 : 0);
  }
  for (int i = 0; i < num_asked && i <= drafts.num_made; ++i) {
    made_[i].Add(i < drafts.num_made ? 1 : 0);
  }
  Count();
}

void DraftPlaces::LearnFirst(bool stands) {
  for (Places* places : {&accepted_, &made_}) {
    for (FadingMean& place : *places) {
      const bool is_seen = &place == &places->front();
      place.Fade(kRoundsFade, is_seen ? kLeastWeight : kLeastWeightUnseen);
    }
  }
  ForgetWhatChanged(stands);
  accepted_[0].Add(stands ? 1 : 0);
  made_[0].Add(1);
  Count();
}

DraftPlaces::End DraftPlaces::EndAt(int num_accepted, int num_asked) const {
  const bool is_first = num_accepted == 0;
  const double made = is_first ? 1 : MakesAtLeast(num_accepted);
  if (made <= 0) return {};  // so seldom that the sums round it off
  const double stand =
      is_first ? 1 : Tokens(num_accepted) - Tokens(num_accepted - 1);
  if (num_accepted >= At(num_asked)) return {.all_stood = stand};
  const double go_on = std::min(1.0, MakesAtLeast(num_accepted + 1) / made);
  const double next_stands = Tokens(num_accepted + 1) - Tokens(num_accepted);
  return {.all_stood = is_first ? 0 : stand * (1 - go_on),
          .refused = std::max(0.0, stand * go_on - next_stands)};
}

void DraftPlaces::Count() {
  CountOn(accepted_, kFirstPlace, tokens_);
  CountOn(made_, /*first=*/1, made_so_far_);
}

void DraftPlaces::CountOn(const Places& places, double first, Counts& counts) {
  double all_went_well = 1;
  double goes_well = first;
  double weight = 1;
  for (int i = 0; i < kMostDrafts; ++i) {
    const FadingMean& seen = places[i];
    if (seen.weight > 0) {
      goes_well = (seen.weight * seen.value + weight * goes_well) /
                  (seen.weight + weight);
    }
    weight = kPlaceBeforeWeight;
    all_went_well *= goes_well;
    counts[i + 1] = counts[i] + all_went_well;
  }
}

void DraftPlaces::ForgetWhatChanged(bool first_stands) {
  recent_.Fade(kRecentFade);
  recent_.Add(first_stands ? 1 : 0);
  FadingMean& first = accepted_[0];
  if (recent_.weight < kRecentRounds / 2 || first.weight < kRecentRounds)
    return;
  const double share = std::clamp(first.value, kLeastShare, 1 - kLeastShare);
  const double deviation = std::sqrt(share * (1 - share) / recent_.weight);
  if (std::abs(recent_.value - first.value) < kClearly * deviation) return;
  first.value = recent_.value;
  for (FadingMean& place : accepted_) {
    place.weight = std::min(place.weight, kWeightAfterChange);
  }
}

}  // namespace outrider
