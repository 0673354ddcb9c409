// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_OUTCOME_COUNT_H_
#define OUTRIDER_COORDINATOR_PEERS_OUTCOME_COUNT_H_

#include <algorithm>

#include "core/wire/round_stats.h"

namespace outrider {

// The number of verdicts that the drafter drafts for ahead: as many as it gets
// done before the verdict is there. Each costs it a row in each of its passes,
// and what that comes to depends on its load; so there are more after each
// round that did not wait, and clearly fewer after one that did. Never few: a
// round that waits for the network alone would lose its hits for nothing.
// Follows from past rounds alone. Thread-compatible.
class OutcomeCount {
 public:
  static constexpr double kFewest = 4;
  static constexpr double kMost = 16;

  int value() const { return static_cast<int>(value_); }

  void Learn(const RoundStats& round) {
    if (round.ahead.num_drafted == 0) return;
    const bool was_late =
        round.ahead.wait_seconds > kPunctual * round.round_seconds;
    value_ =
        std::clamp(was_late ? kFewer * value_ : value_ + kMore, kFewest, kMost);
  }

 private:
  // A wait of so much of the round is none that fewer would spare.
  static constexpr double kPunctual = 0.02;
  static constexpr double kMore = 0.25;
  static constexpr double kFewer = 0.8;

  double value_ = 8;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_OUTCOME_COUNT_H_
