// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_OUTCOME_COUNT_H_
#define OUTRIDER_COORDINATOR_CONTROL_OUTCOME_COUNT_H_

#include <algorithm>

#include "coordinator/control/fade.h"
#include "coordinator/control/fading_mean.h"
#include "core/wire/round_stats.h"

namespace outrider {

// The number of verdicts that the drafter drafts for ahead: as many as it gets
// done before the verdict is there. Each costs it a row in each of its passes,
// and what that comes to depends on its load; so there are more after each
// round that did not wait, and clearly fewer after one that did, unless the
// rows are so cheap that fewer would spare less than the hits are worth that
// they cost. Never few: a round that waits for the network alone would lose its
// hits for nothing. Follows from past rounds alone. Thread-compatible.
class OutcomeCount {
 public:
  static constexpr double kFewest = 4;
  static constexpr double kMost = 16;

  int value() const { return static_cast<int>(value_); }

  void Learn(const RoundStats& round) {
    const AheadStats& ahead = round.ahead;
    if (ahead.num_drafted == 0) return;
    const double in_turn = round.drafter.call_seconds - ahead.wait_seconds;
    if (ahead.outcome == AheadStats::Outcome::kMiss && in_turn > 0) {
      in_turn_.Fade(kFade);
      in_turn_.Add(in_turn);
    }
    LearnRows(ahead);
    const bool was_late = ahead.wait_seconds > kPunctual * round.round_seconds;
    if (was_late && !KnowsRows()) {
      // The number changes, as only that shows what a row costs.
      Set(value() > kFewest ? kFewer * value_ : value_ / kFewer);
    } else if (was_late && SparedByFewer(ahead) > LostByFewer()) {
      Set(kFewer * value_);
    } else {
      Set(value_ + kMore);
    }
  }

 private:
  // A wait of so much of the round is none that fewer would spare.
  static constexpr double kPunctual = 0.02;
  static constexpr double kMore = 0.25;
  static constexpr double kFewer = 0.8;
  // How many hits fewer outcomes cost, of all verdicts, times their number: the
  // more there are, the less likely are those that are left out.
  static constexpr double kHitsLost = 0.25;
  // The part of a pass that rows are taken to cost before their number has
  // changed.
  static constexpr double kRowsShare = 0.5;
  static constexpr double kFade = FadeOver(64);

  void Set(double value) { value_ = std::clamp(value, kFewest, kMost); }

  void LearnRows(const AheadStats& ahead) {
    if (ahead.longest == 0) return;
    const double rows = static_cast<double>(ahead.num_drafted) / ahead.longest;
    const double seconds = ahead.compute_seconds / (ahead.longest + 1);
    if (pass_.weight == 0) row_.products = kRowsShare * seconds / rows;
    rows_.Fade(kFade);
    rows_.Add(rows);
    pass_.Fade(kFade);
    pass_.Add(seconds);
    row_.Add(rows - rows_.value, seconds - pass_.value,
             KnowsRows() ? kFade : 1);
  }
  // Whether their number has changed enough of late.
  bool KnowsRows() const { return row_.squares > 1; }
  // How much of the wait: the drafter's time until all is drafted.
  double SparedByFewer(const AheadStats& ahead) const {
    return std::min(ahead.wait_seconds, (1 - kFewer) * value_ * row_.PerUnit() *
                                            (ahead.longest + 1));
  }
  // A verdict that is not drafted for is drafted after in turn.
  double LostByFewer() const { return kHitsLost / value_ * in_turn_.value; }

  double value_ = kMost;
  FadingMean in_turn_ = {};  // a draft's call where there was no hit
  FadingMean rows_ = {};     // of a pass
  FadingMean pass_ = {};
  FadingSlope row_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_OUTCOME_COUNT_H_
