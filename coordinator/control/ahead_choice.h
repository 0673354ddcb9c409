// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_AHEAD_CHOICE_H_
#define OUTRIDER_COORDINATOR_CONTROL_AHEAD_CHOICE_H_

#include <array>
#include <optional>

#include "coordinator/control/pace.h"

namespace outrider {

// Whether drafts are asked for ahead of the verdict: as rounds have been
// faster, by the time for a token of those that they commit on average. The
// other way is tried for a block of rounds, which ends as soon as it is clear
// which is faster: now and then, for half a percent of the time by what is
// known and more where that is little, and once the way in force has become
// another and stays so, as another network or text changes both; later where a
// model of rounds says that this made the other way no better than it was
// beside this one, as where the machine is slow for a while. All sessions go
// one way together, as what they cost each other shows only so: nodes may share
// processors, sessions that hit come back at other times than those that do
// not, and a drafter that is busy with guesses drafts later for those who wait.
// Follows from past rounds alone. Thread-compatible.
class AheadChoice {
 public:
  bool asks() const { return asks_; }
  // Whether the way in force is tried.
  bool is_trial() const { return is_trial_; }

  // A round that went the way in force from its beginning to its end.
  struct Round {
    double seconds_per_token = 0;
    double tokens = 1;       // that it commits on average
    int num_sessions = 1;    // at work
    bool has_drafts = true;  // it asked for some
    // How many times as long the other way would take, by the model of this
    // one; nothing where that is not known.
    std::optional<double> foretold = {};
  };
  void Learn(Round round);

 private:
  Pace& own() { return ways_[asks_ ? 1 : 0]; }
  Pace& other() { return ways_[asks_ ? 0 : 1]; }
  bool& own_drafts() { return drafts_[asks_ ? 1 : 0]; }

  bool HasBegunToDraft() const;
  bool IsBlockOver(int num_sessions);
  void NoteChange(const Round& round);
  bool IsOtherNoBetter(const Round& round) const;
  void DoubtOther();
  void Decide(const Round& round);
  bool IsTimeToTry(int num_sessions);
  void Turn();

  std::array<Pace, 2> ways_ = {};    // in turn, ahead
  Pace block_ = {};                  // rounds that are not in them yet
  std::array<bool, 2> drafts_ = {};  // of these ways' last blocks, all rounds
  bool block_drafts_ = false;
  bool asks_ = false;
  bool is_trial_ = false;      // of the way in force
  bool is_confirmed_ = true;   // that way, where a trial chose it
  bool is_other_old_ = false;  // what is known of it
  // It was taken to have changed as this way did since it was tried.
  bool is_other_scaled_ = false;
  // What was foretold when this way's first block after a trial had ended.
  Round reference_ = {};
  int num_since_turn_ = 0;  // rounds
  double seconds_since_turn_ = 0;
  double seconds_since_trial_ = 0;
  double seconds_of_trial_ = 0;  // that the last one took
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_AHEAD_CHOICE_H_
