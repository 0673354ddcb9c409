// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_TIMED_ROUNDS_H_
#define OUTRIDER_TESTS_SIMULATION_TIMED_ROUNDS_H_

#include <cstdint>
#include <deque>
#include <random>
#include <string>

#include "coordinator/control/draft_length_control.h"
#include "coordinator/control/run_length.h"
#include "tests/simulation/timed_node.h"

namespace outrider {

// What rounds take and give.
struct TimedWorld {
  double round_trip = 0;  // seconds, to each node
  double acceptance = 0.8;
  // Verdicts that enough outcomes are drafted for: of those that take all
  // drafts, and of those that refuse one.
  double hits_of_all = 0.9;
  double hits_of_refused = 0.8;
  double pass = 0.025;
  double row = 0.00025;
  double tile = 0;  // each tile of rows after the first
  int tile_rows = 1;
  double draft = 0.003;
  double draft_row = 0.00003;
  double first_draft = 0;  // more, after a round without drafts
  int num_users = 1;

  double Tokens(int k) const;
  std::string Name() const;
};

// How rounds draft: as the control says, or a number of drafts one way.
struct TimedWay {
  bool is_by_control = false;
  Schedule schedule = Schedule::kAuto;  // the control's
  int k = 0;
  bool is_ahead = false;
};

// Users of one drafter and one verifier, who ask as OptionalDraftClient and
// AheadDraftClient do, in virtual time.
class TimedRounds {
 public:
  TimedRounds(const TimedWorld& world, const TimedWay& way, uint32_t seed);

  // From now on the round trip, acceptance and hits are those; the nodes stay
  // as they are.
  void Become(const TimedWorld& world) { world_ = world; }

  // So many more users come.
  void Join(int num_users);

  // Tokens a second that such choices give on average.
  double Run(int num_rounds);

 private:
  using Choice = DraftLengthControl::Choice;

  struct User {
    int number = 0;
    Choice choice = {};
    int64_t last_round = 0;
    bool follows_drafts = false;  // the last round had some
    MeasuredRunLength run;
    RoundStats round = {};
    double began = 0;
    double verify_began = 0;
    // What is asked for ahead of the verdict.
    bool was_asked = false;
    bool is_done = false;
    bool waits = false;  // the round, for that
    Choice ahead_choice = {};
    int ahead_outcomes = 0;
    int ahead_in_flight = 0;  // drafts
    AheadStats ahead = {};
  };

  Choice Choose() const;
  Choice ChooseAhead() const;
  void Begin(User& user);
  void TakeAhead(User& user);
  void DraftInTurn(User& user);
  void Verify(User& user);
  void AskAhead(User& user);
  void End(User& user, const TimedNode::Time& computed);

  TimedWorld world_;
  const TimedWay way_;
  std::mt19937 generator_;
  Agenda agenda_;
  TimedNode drafter_;
  TimedNode verifier_;
  DraftLengthControl control_;
  OutcomeCount outcomes_;  // as the control has it, for all ways
  std::deque<User> users_;
  double tokens_ = 0;
  int num_rounds_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_TESTS_SIMULATION_TIMED_ROUNDS_H_
