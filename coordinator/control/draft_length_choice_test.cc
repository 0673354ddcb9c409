// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/draft_length_choice.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr int kMostInVain = 16;
constexpr int kNumUsers = 8;
constexpr double kPassOfUsers = 0.025;
constexpr double kDearDraft = 0.02;  // each: more than it saves

// Rounds of users who draft in vain, with so many seconds of waiting each.
class InVain {
 public:
  // How many of them were trials.
  int Run(int num_rounds, bool is_in_step, double waits = 0) {
    int num_trials = 0;
    for (int i = 0; i < num_rounds; ++i) {
      const DraftLengthChoice::Number asked = choice_.Choose(kMostInVain);
      const int k = asked.length.num_drafts;
      const double drafting = k * kDearDraft;
      const RoundStats round = {
          .num_drafted = k,
          .round_seconds = drafting + kPassOfUsers + waits,
          .drafter = {.call_seconds = drafting, .compute_seconds = drafting},
          .verifier = {.call_seconds = kPassOfUsers + waits,
                       .compute_seconds = kPassOfUsers}};
      ++number_;
      choice_.Learn({.round = round,
                     .asked = asked,
                     .is_by_control = true,
                     .num_sessions = kNumUsers,
                     .number = number_,
                     .after = is_in_step ? number_ - 1 : 0});
      num_trials += asked.is_trial ? 1 : 0;
    }
    return num_trials;
  }

 private:
  DraftLengthChoice choice_{/*num_stops=*/1};
  int64_t number_ = 0;
};

// Sessions wait for each other while they pass over to another number. It is
// not a trial's fault alone, and a second of it would put the next one off for
// 4000 rounds.
TEST(DraftLengthChoiceTest, WhatChangesCostPutsTrialsOffForAWhileOnly) {
  InVain rounds;
  rounds.Run(1000, /*is_in_step=*/true);
  rounds.Run(16, /*is_in_step=*/false, /*waits=*/0.1);
  EXPECT_GT(rounds.Run(4000, /*is_in_step=*/true), 0);
}

}  // namespace
}  // namespace outrider
