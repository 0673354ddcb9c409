// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_DRAFT_PACE_H_
#define OUTRIDER_COORDINATOR_PEERS_DRAFT_PACE_H_

#include <chrono>

#include "core/base/monotonic_clock.h"
#include "core/base/mutex.h"
#include "core/sampling/rule_kind.h"

namespace outrider {

// Keeps a drafter that is slower than what it saves from holding rounds up. A
// draft costs the time of its call and saves a verification for each token that
// stands. Where a drafter has lost a quarter of a second on balance it is left
// alone: for 20 times what it lost, at least for a second, and twice as long as
// before up to a minute; then it is tried again.
//
// It decides before a round asks, and from past rounds alone, so it may look at
// how long drafts took although that depends on the tokens drawn: a round's own
// drafts are not drawn yet, and coins are never used again (docs/algorithm.md).
// Thread-safe; shared by a drafter's sessions.
class DraftPace {
 public:
  using Clock = MonotonicClock;

  // Whether a round that begins now should ask for drafts.
  bool IsWorthAsking(Clock::time_point now) const;

  // Records a round that asked: how long the drafter took, and how long the
  // verifications took that its accepted drafts have spared.
  void Took(double draft_seconds, double saved_seconds, Clock::time_point now);

 private:
  static constexpr double kPatience = 0.25;   // seconds lost, or credit
  static constexpr double kPauseToLoss = 20;  // so that trying costs 5 %
  static constexpr double kFirstPause = 1;    // seconds
  static constexpr double kLongestDoubled = 60;

  mutable Mutex mu_;
  // In [-kPatience, kPatience].
  double lost_seconds_ ABSL_GUARDED_BY(mu_) = 0;
  double pause_seconds_ ABSL_GUARDED_BY(mu_) = kFirstPause;
  Clock::time_point paused_until_ ABSL_GUARDED_BY(mu_) = {};
};

// The paces of one drafter: what it saves depends on how its drafts are judged.
class DraftPaces {
 public:
  DraftPace& Of(RuleKind rule, bool is_greedy) {
    if (is_greedy) return greedy_;
    switch (rule) {
      case RuleKind::kRejection:
        return rejection_;
      case RuleKind::kCoupled:
        return coupled_;
      case RuleKind::kBlock:
        return block_;
    }
    return rejection_;
  }

 private:
  DraftPace greedy_;
  DraftPace rejection_;
  DraftPace coupled_;
  DraftPace block_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_DRAFT_PACE_H_
