// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_DRAFT_LENGTH_CONTROL_H_
#define OUTRIDER_COORDINATOR_PEERS_DRAFT_LENGTH_CONTROL_H_

#include <cstdint>

#include "coordinator/peers/ahead_choice.h"
#include "coordinator/peers/outcome_count.h"
#include "coordinator/peers/speculation_model.h"
#include "core/base/mutex.h"
#include "core/wire/schedule.h"

namespace outrider {

// Who says how many drafts a round asks for.
enum class DraftLengthMode {
  kFixed,  // the request
  kAuto,   // DraftLengthControl
};

// Chooses how many drafts a round asks for: as many as give the most tokens a
// second, by what past rounds of all who share it took and gave; none where
// drafts do not pay. Other numbers are tried now and then, for at most 2 % of
// the tokens, and of the time at most 1 % beyond what the best would have
// taken. A fixed number stays, but where it has long taken more than twice the
// time of none.
//
// It chooses before a round asks, and from past rounds alone, so it may look at
// how long drafts took and which of them stood: a round's own drafts are not
// drawn yet, and coins are never used again (docs/algorithm.md). Thread-safe.
class DraftLengthControl {
 public:
  struct Choice {
    int num_drafts = 0;
    bool is_trial = false;
    DraftLengthMode mode = DraftLengthMode::kFixed;
    bool drafts_ahead = false;  // while the round is verified
  };

  // For a round that asks for at most so many, or for just as many.
  Choice Choose(int num_drafts, DraftLengthMode mode) const;

  // The same for a round whose drafts are asked for while the one before it is
  // verified: none where that is not worth it, by the schedule kAuto.
  Choice ChooseAhead(int num_drafts, DraftLengthMode mode,
                     Schedule schedule) const;
  // The most verdicts to draft for then.
  int NumOutcomes() const;
  // How often drafts stand once those before them do.
  double Acceptance() const;

  // Whether it has reason to ask for any drafts now.
  bool Asks() const;

  // Takes in a round that such a choice was made for and that went its ordinary
  // way; see SpeculationModel.
  void Learn(const Choice& choice, const RoundStats& round);

 private:
  void LearnAhead(const Choice& choice, const RoundStats& round)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsTooSlow(int num_drafts) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // What there may be to learn beside the best.
  int OtherThan(int best, int most) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // How long a round takes beyond what the best would have for its tokens.
  double LostSeconds(int num_drafts) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void Pay(const Choice& choice, const RoundStats& round)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  SpeculationModel model_ ABSL_GUARDED_BY(mu_);
  OutcomeCount outcomes_ ABSL_GUARDED_BY(mu_);
  AheadChoice ahead_ ABSL_GUARDED_BY(mu_);
  int64_t num_chosen_ ABSL_GUARDED_BY(mu_) = 0;  // rounds
  int best_ ABSL_GUARDED_BY(mu_) = 0;
  int num_trials_ ABSL_GUARDED_BY(mu_) = 0;
  bool may_try_ ABSL_GUARDED_BY(mu_) = false;
  // That may still be spent on trials; below 0 where many tried at once.
  double tokens_ ABSL_GUARDED_BY(mu_) = 0;
  double seconds_ ABSL_GUARDED_BY(mu_) = 0;
  // That rounds with a fixed number took beyond what is granted to them.
  double seconds_behind_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_DRAFT_LENGTH_CONTROL_H_
