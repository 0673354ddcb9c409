// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_DRAFT_LENGTH_CONTROL_H_
#define OUTRIDER_COORDINATOR_CONTROL_DRAFT_LENGTH_CONTROL_H_

#include <cstdint>

#include "coordinator/control/ahead_choice.h"
#include "coordinator/control/draft_length_choice.h"
#include "coordinator/control/outcome_count.h"
#include "core/base/mutex.h"
#include "core/wire/schedule.h"

namespace outrider {

// Who says how many drafts a round asks for.
enum class DraftLengthMode {
  kFixed,  // the request
  kAuto,   // DraftLengthControl
};

// Chooses how many drafts a round asks for, where a drafter that is not sure
// ends them early, and by the schedule kAuto when: as gives the most tokens a
// second, by what past rounds of all who share it took and gave; none where
// drafts do not pay. A fixed number stays, but where it has long taken more
// than twice the time of none; it is tried again for 2 % of the time.
//
// Rounds in turn and rounds whose drafts are made ahead have times of their
// own, and each of these ways its own best number; which way is taken is
// measured, and not foretold.
//
// It chooses before a round asks, and from past rounds alone, so it may look at
// how long drafts took and which of them stood: a round's own drafts are not
// drawn yet, and coins are never used again (docs/algorithm.md). Thread-safe.
class DraftLengthControl {
 public:
  struct Choice {
    int num_drafts = 0;
    int stop = 0;  // of DraftLength's, where it chooses one
    bool is_trial = false;
    DraftLengthMode mode = DraftLengthMode::kFixed;
    bool is_ahead = false;       // the way in force
    bool drafts_ahead = false;   // while the round is verified
    bool follows_drafts = true;  // the session's last round had some
    int64_t after = 0;           // what Learn said of the session's last round
    bool chooses_stop = false;   // else as the request says
  };

  // `chooses_stop`: with the number of drafts, by kAuto.
  explicit DraftLengthControl(Schedule schedule = Schedule::kSequential,
                              bool chooses_stop = true)
      : schedule_(schedule),
        chooses_stop_(chooses_stop),
        in_turn_(chooses_stop ? DraftLength::kNumStops : 1),
        ahead_way_(chooses_stop ? DraftLength::kNumStops : 1) {}

  // What a round does that asks for at most so many, or for just as many.
  Choice Choose(int num_drafts, DraftLengthMode mode) const;

  // The same for a round whose drafts are asked for while the one before it is
  // verified: none where that is not worth it, by the schedule kAuto.
  Choice ChooseAhead(int num_drafts, DraftLengthMode mode) const;
  // The most verdicts to draft for then.
  int NumOutcomes() const;
  // How often drafts stand once those before them do.
  double Acceptance() const;

  // Whether it has reason to ask for any drafts now; for a number that is fixed
  // it has.
  bool Asks(DraftLengthMode mode) const;
  // Whether several share it that are at work, or may, as none has come back.
  bool MayHaveCompany() const;

  // Takes in a round that such a choice was made for and that went its ordinary
  // way; see SpeculationModel. The round's number, from 1 on.
  int64_t Learn(const Choice& choice, const RoundStats& round);

 private:
  bool IsAhead() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  const DraftLengthChoice& Way() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return IsAhead() ? ahead_way_ : in_turn_;
  }
  void CountSessions(int64_t after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int num_sessions() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void LearnWay(const Choice& choice, const RoundStats& round)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PayForTrial(const RoundStats& round, const DraftLengthChoice& other)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LearnFixed(const DraftLengthChoice& way, bool has_asked,
                  const RoundStats& round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsTooSlow(int num_drafts) const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const Schedule schedule_;
  const bool chooses_stop_;
  mutable Mutex mu_;
  DraftLengthChoice in_turn_ ABSL_GUARDED_BY(mu_);
  DraftLengthChoice ahead_way_ ABSL_GUARDED_BY(mu_);
  OutcomeCount outcomes_ ABSL_GUARDED_BY(mu_);
  AheadChoice ahead_ ABSL_GUARDED_BY(mu_);
  int64_t num_rounds_ ABSL_GUARDED_BY(mu_) = 0;
  // How many rounds one of each session takes, its own included.
  double num_sessions_ ABSL_GUARDED_BY(mu_) = 1;
  double sessions_weight_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t last_turn_ ABSL_GUARDED_BY(mu_) = 0;  // the round before it
  // What drafts of a way that was tried took beyond what that is worth.
  double owed_for_trials_ ABSL_GUARDED_BY(mu_) = 0;
  // What rounds with a fixed number took beyond what is granted to them.
  double seconds_behind_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_DRAFT_LENGTH_CONTROL_H_
