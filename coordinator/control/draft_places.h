// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_DRAFT_PLACES_H_
#define OUTRIDER_COORDINATOR_CONTROL_DRAFT_PLACES_H_

#include <algorithm>
#include <array>

#include "coordinator/control/draft_length.h"
#include "coordinator/control/fading_mean.h"

namespace outrider {

// How drafts that end at one stop fare at each place, once those before it
// went well: how often one is made there, and how often it stands. What that
// comes to for K of them follows. All of it fades, as texts change.
// Thread-compatible.
class DraftPlaces {
 public:
  static constexpr int kMostDrafts = DraftLength::kMostDrafts;

  DraftPlaces();

  // What came of a round.
  struct Drafts {
    int num_asked = 0;
    int num_made = 0;
    int num_accepted = 0;
  };
  // A round, whether it asked for drafts or not.
  void Learn(const Drafts& drafts);
  // One that made some and ended at a later stop, so that later places were
  // seen where the drafter was sure alone: whether its first draft stood.
  void LearnFirst(bool stands);

  // Tokens that a round commits on average where it asks for so many.
  double Tokens(int num_asked) const { return tokens_[At(num_asked)]; }
  // How many drafts it gets then, and how often it gets so many at least.
  double Made(int num_asked) const { return made_so_far_[At(num_asked)]; }
  double MakesAtLeast(int num_drafts) const {
    return Made(num_drafts) - Made(num_drafts - 1);
  }
  // How often a round that asks for so many has so many accepted: all that were
  // made, where some were, or fewer.
  struct End {
    double all_stood = 0;
    double refused = 0;
  };
  End EndAt(int num_accepted, int num_asked) const;

 private:
  using Places = std::array<FadingMean, kMostDrafts>;
  using Counts = std::array<double, kMostDrafts + 1>;
  static int At(int num_drafts) { return std::min(num_drafts, kMostDrafts); }
  // How many places in a row go well on average, of 1, 2 and so on, added to
  // the first of `counts`; what is known of the first place where it was never
  // seen.
  static void CountOn(const Places& places, double first, Counts& counts);
  // Makes room for what the last rounds clearly say else of the first place.
  void ForgetWhatChanged(bool first_stands);
  void Count();

  Places accepted_ = {};
  Places made_ = {};
  FadingMean recent_ = {};   // of the first place, over the last rounds alone
  Counts tokens_ = {1};      // follows from accepted_
  Counts made_so_far_ = {};  // follows from made_
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_DRAFT_PLACES_H_
