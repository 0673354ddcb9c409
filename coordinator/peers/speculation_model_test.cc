// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/speculation_model.h"

#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr RoundStats::Link kVerify = {.call_seconds = 0.03,
                                      .compute_seconds = 0.03};

// Its drafts were there with the verdict, or take 50 ms in turn.
void LearnAsked(bool is_hit, SpeculationModel& model) {
  RoundStats round = {.num_drafted = 4, .num_accepted = 3};
  if (is_hit) {
    round.ahead = {.outcome = AheadStats::Outcome::kHit,
                   .num_drafted = 16,
                   .longest = 4,
                   .call_seconds = 0.02,
                   .compute_seconds = 0.02};
  } else {
    round.drafter = {.call_seconds = 0.05, .compute_seconds = 0.01};
  }
  round.verifier = kVerify;
  round.round_seconds = round.drafter.call_seconds + kVerify.call_seconds;
  model.Learn(round, {.num_asked = 4, .is_ahead = true});
}

// The drafter is asked for none; so many come from the text.
void LearnNotAsked(int num_looked_up, SpeculationModel& model) {
  model.Learn({.num_drafted = num_looked_up,
               .num_accepted = num_looked_up / 2,
               .num_looked_up = num_looked_up,
               .round_seconds = kVerify.call_seconds,
               .verifier = kVerify},
              {.num_asked = 0, .is_ahead = true});
}

TEST(SpeculationModelTest, LookupsThatFillInSayNothingOfTheDrafter) {
  SpeculationModel plain;
  SpeculationModel filled_in;
  for (SpeculationModel* model : {&plain, &filled_in}) {
    LearnAsked(/*is_hit=*/false, *model);
    for (int i = 0; i < 300; ++i) LearnAsked(/*is_hit=*/true, *model);
    for (int i = 0; i < 300; ++i) {
      LearnNotAsked(model == &plain ? 0 : 4, *model);
    }
  }
  for (const int k : {0, 4}) {
    EXPECT_NEAR(plain.Seconds(k), 0.03, 0.001);
    EXPECT_NEAR(filled_in.Seconds(k), plain.Seconds(k), 0.001);
  }
  EXPECT_DOUBLE_EQ(filled_in.Tokens(4), plain.Tokens(4));
  // What rounds commit that ask it for nothing.
  EXPECT_DOUBLE_EQ(plain.Tokens(0), 1);
  EXPECT_DOUBLE_EQ(filled_in.Tokens(0), 3);
}

}  // namespace
}  // namespace outrider
