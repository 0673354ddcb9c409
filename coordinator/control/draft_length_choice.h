// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_DRAFT_LENGTH_CHOICE_H_
#define OUTRIDER_COORDINATOR_CONTROL_DRAFT_LENGTH_CHOICE_H_

#include <cstdint>

#include "coordinator/control/draft_length.h"
#include "coordinator/control/speculation_model.h"
#include "core/wire/round_stats.h"

namespace outrider {

// How many drafts, and which stop for a drafter that is not sure, give the most
// tokens a second where rounds go one way, in turn or ahead, by what past ones
// took and gave. Drafts end only once they have cost some rounds' time more
// than none would have. Other lengths are tried now and then, for at most 2 %
// of the tokens, and of the time at most 1 % beyond what the best would have
// taken; by all sessions together, as a node's pass takes as long as the rows
// of all. Thread-compatible.
class DraftLengthChoice {
 public:
  struct Number {
    DraftLength length = {};
    bool is_trial = false;
  };
  // A round, and what it was part of.
  struct Seen {
    const RoundStats& round;
    Number asked = {};
    bool is_by_control = false;  // it asked for what Choose said
    bool is_ahead = false;       // drafts were made ahead where that can be
    bool drafts_ahead = false;   // those of the next round are
    bool follows_drafts = true;  // the session's last round had some
    int num_sessions = 1;        // at work
    int64_t number = 0;          // of the round, among those of all sessions
    int64_t after = 0;           // that of the session's round before
  };

  // Chooses among so many stops, from the first one on.
  explicit DraftLengthChoice(int num_stops) : model_(num_stops) {}

  // A round asks for at most `most`.
  Number Choose(int most) const;
  // Whether there is reason to ask for any.
  bool Asks() const {
    return best_.num_drafts > 0 || may_try_ || !has_learned();
  }

  // Begins with what is known of rounds that go the other way; what is not
  // known yet is what drafts gain this way.
  void BeginLike(const DraftLengthChoice& other);
  // Rounds go this way to see what it gains: with drafts, until these have cost
  // more than none, as without them both ways are the same.
  void DraftOnTrial();
  // A round that went this way.
  void Learn(const Seen& seen);
  // One that did not: what it took says nothing of this way.
  void LearnAcceptance(const Seen& seen) {
    model_.LearnAcceptance(seen.round, seen.asked.length);
  }

  bool has_learned() const { return model_.has_learned(); }
  // Whether the first rounds are over, which try what is needed to begin with.
  bool has_begun() const { return num_first_ >= kNumFirst; }
  const SpeculationModel& model() const { return model_; }
  // What the best number gives; known once it has learned.
  double tokens_per_second() const { return model_.TokensPerSecond(best_); }

 private:
  static constexpr int kNumFirst = 8;  // numbers that are tried at first

  // Whether the session has gone on like the others for a round: while sessions
  // pass over to another number, a pass has rows of both, and comes at a time
  // that is neither's.
  bool IsInStep(const Seen& seen) const {
    return seen.num_sessions == 1 || seen.after >= last_change_;
  }
  void LearnFirst(const Seen& seen);
  void CountBehindNone(const Seen& seen);
  // None, unless there is reason to go on with drafts for the time being.
  int LeastDrafts(int num_sessions) const;
  // What there may be to learn beside the best.
  DraftLength OtherThan(const DraftLength& best, int most) const;
  // How long a round takes beyond what the best would have for its tokens.
  double LostSeconds(const DraftLength& length) const;
  double LostToFirst(const Seen& seen) const;
  void Pay(const Seen& seen);

  SpeculationModel model_;
  int num_first_ = 0;            // numbers that were tried at first
  int num_rounds_of_first_ = 0;  // with the one that is tried now
  bool knows_rows_ = false;      // from the other way
  DraftLength best_ = {};
  // What the best took beyond the time of none, in rounds of it; less where it
  // was faster.
  double rounds_behind_none_ = 0;
  int num_trials_ = 0;
  bool may_try_ = false;
  int64_t last_change_ = 0;  // the round since which this holds
  // What may still be spent on trials; below 0 where many tried at once.
  double tokens_ = 0;
  double seconds_ = 0;
  double trial_seconds_ = 0;  // on the one that goes on
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_DRAFT_LENGTH_CHOICE_H_
