// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/speculation_model.h"

#include <algorithm>
#include <random>

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
                   .num_outcomes = 4,
                   .longest = 4,
                   .call_seconds = 0.02,
                   .compute_seconds = 0.02};
  } else {
    round.drafter = {.call_seconds = 0.05, .compute_seconds = 0.01};
  }
  round.verifier = kVerify;
  round.round_seconds = round.drafter.call_seconds + kVerify.call_seconds;
  model.Learn(
      round,
      {.asked = {.num_drafts = 4}, .is_ahead = true, .drafts_ahead = is_hit});
}

// The drafter is asked for none; so many come from the text.
void LearnNotAsked(int num_looked_up, SpeculationModel& model) {
  model.Learn({.num_drafted = num_looked_up,
               .num_accepted = num_looked_up / 2,
               .num_looked_up = num_looked_up,
               .round_seconds = kVerify.call_seconds,
               .verifier = kVerify},
              {.is_ahead = true});
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
    const DraftLength length = {.num_drafts = k};
    EXPECT_NEAR(plain.Seconds(length), 0.03, 0.001);
    EXPECT_NEAR(filled_in.Seconds(length), plain.Seconds(length), 0.001);
  }
  EXPECT_DOUBLE_EQ(filled_in.Tokens({.num_drafts = 4}),
                   plain.Tokens({.num_drafts = 4}));
  // What rounds commit that ask it for nothing.
  EXPECT_DOUBLE_EQ(plain.Tokens({}), 1);
  EXPECT_DOUBLE_EQ(filled_in.Tokens({}), 3);
}

// One round of the change tries another number of drafts.
TEST(SpeculationModelTest, ANetworkThatChangesMakesNoDraftDearer) {
  SpeculationModel model;
  const auto learn = [&](int num_drafts, double network) {
    model.Learn(
        {.num_drafted = num_drafts,
         .num_accepted = num_drafts,
         .round_seconds = 0.03 + 2 * network,
         .drafter = {.call_seconds = network},
         .verifier = {.call_seconds = 0.03 + network, .compute_seconds = 0.03}},
        {.asked = {.num_drafts = num_drafts}});
  };
  for (int i = 0; i < 100; ++i) learn(8, 0.04);
  learn(4, 0.001);
  for (int i = 0; i < 100; ++i) learn(8, 0.001);
  EXPECT_NEAR(model.Seconds({.num_drafts = 12}),
              model.Seconds({.num_drafts = 8}), 1e-3);
}

// Users of a verifier draft four tokens each and wait half a pass of others: if
// they drafted fewer, both passes would be shorter.
TEST(SpeculationModelTest, AQueueIsAsMuchShorterAsThePassesAre) {
  constexpr int kNumUsers = 8;
  const auto pass = [](int num_drafts) {
    return 0.02 + 0.002 * kNumUsers * (num_drafts + 1);
  };
  SpeculationModel model;
  const auto learn = [&](int num_drafts) {
    const double computed = pass(num_drafts);
    const double queue = computed / 2;
    model.Learn(
        {.num_drafted = num_drafts,
         .num_accepted = num_drafts,
         .round_seconds = 0.001 + queue + computed,
         .drafter = {.call_seconds = num_drafts > 0 ? 0.001 : 0},
         .verifier = {.call_seconds = queue + computed,
                      .compute_seconds = computed,
                      .own_seconds = computed / kNumUsers,
                      .queue_seconds = queue}},
        {.asked = {.num_drafts = num_drafts}, .num_sessions = kNumUsers});
  };
  for (const int num_drafts : {4, 0, 4}) {
    for (int i = 0; i < 10 * kNumUsers; ++i) learn(num_drafts);
  }
  for (const int k : {0, 4, 8}) {
    const double round = (k > 0 ? 0.001 : 0) + 1.5 * pass(k);
    EXPECT_NEAR(model.Seconds({.num_drafts = k}), round, 0.05 * round) << k;
  }
}

// A verifier that goes on by itself spends the call's own time once.
TEST(SpeculationModelTest, APlainRoundHasAsManyPassesAsTokens) {
  SpeculationModel model;
  LearnAsked(/*is_hit=*/false, model);
  constexpr double kCall = 0.02;
  constexpr double kPass = 0.03;
  for (int i = 0; i < 300; ++i) {
    const RoundStats::Link link = {.call_seconds = kCall + 4 * kPass,
                                   .compute_seconds = 4 * kPass};
    model.Learn({.num_more = 3,
                 .next_run = 4,
                 .round_seconds = link.call_seconds,
                 .verifier = link},
                {.is_ahead = true});
  }
  EXPECT_NEAR(model.Tokens({}), 4, 0.01);
  EXPECT_NEAR(model.Seconds({}), kCall + 4 * kPass, 0.001);
  // A pass over the rows of drafts is one pass.
  EXPECT_LT(model.Seconds({.num_drafts = 1}), 0.1 + kCall + 2 * kPass);
}

// Rounds that draft see the network become far: plain rounds would be longer
// runs now, though none has been tried since.
TEST(SpeculationModelTest, RoundsThatDraftSayHowLongARunWouldBeNow) {
  SpeculationModel model;
  constexpr double kPass = 0.025;
  constexpr double kFar = 0.05;
  const auto learn = [&](int num_drafts, int run, double call) {
    const int num_more = num_drafts == 0 ? run - 1 : 0;
    const RoundStats::Link link = {
        .call_seconds = call + (1 + num_more) * kPass,
        .compute_seconds = (1 + num_more) * kPass};
    model.Learn(
        {.num_drafted = num_drafts,
         .num_more = num_more,
         .next_run = run,
         .round_seconds = call + 0.01 + link.call_seconds,
         .drafter = {.call_seconds = call + 0.01, .compute_seconds = 0.01},
         .verifier = link},
        {.asked = {.num_drafts = num_drafts}});
  };
  for (int i = 0; i < 32; ++i) learn(i % 2 == 0 ? 0 : 4, /*run=*/1, 0);
  EXPECT_NEAR(model.Tokens({}), 1, 0.01);
  for (int i = 0; i < 100; ++i) learn(4, /*run=*/8, kFar);
  EXPECT_NEAR(model.Tokens({}), 8, 0.1);
  EXPECT_NEAR(model.Seconds({}), 0.01 + kFar + 8 * kPass, 0.02);
}

// Lookups that fill in give a pass several tokens, and none when it goes on.
TEST(SpeculationModelTest, PlainRoundsOfLookupsAndOfRunsCountAsTheyAre) {
  SpeculationModel model;
  LearnAsked(/*is_hit=*/false, model);
  constexpr double kPass = 0.03;
  for (int i = 0; i < 300; ++i) {
    RoundStats round = {
        .num_drafted = 3, .num_accepted = 3, .num_looked_up = 3};
    if (i % 2 == 1) round = {.num_more = 7, .next_run = 8};
    const double compute = round.num_passes() * kPass;
    round.verifier = {.call_seconds = compute, .compute_seconds = compute};
    round.round_seconds = compute;
    model.Learn(round, {.is_ahead = true});
  }
  EXPECT_NEAR(model.Tokens({}), 6, 0.3);
  EXPECT_NEAR(model.Seconds({}), 4.5 * kPass, 0.01);
}

// What is drafted ahead always hits, and spares the 50 ms of drafts in turn.
TEST(SpeculationModelTest, ForetellsTheOtherWayByWhatTheNetworkHasBecome) {
  SpeculationModel ahead;
  for (int i = 0; i < 400; ++i) LearnAsked(/*is_hit=*/i % 2 == 0, ahead);
  SpeculationModel in_turn;
  const auto learn_in_turn = [&](double far) {
    const RoundStats::Link verify = {.call_seconds = 0.03 + far,
                                     .compute_seconds = 0.03};
    in_turn.Learn({.num_drafted = 4,
                   .num_accepted = 3,
                   .round_seconds = 0.08 + far,
                   .drafter = {.call_seconds = 0.05, .compute_seconds = 0.01},
                   .verifier = verify},
                  {.asked = {.num_drafts = 4}});
  };
  for (int i = 0; i < 100; ++i) learn_in_turn(0);
  const DraftLength length = {.num_drafts = 4};
  const auto of_in_turn = [&] {
    return in_turn.OtherWay(length, /*is_ahead=*/false, ahead).value();
  };
  const double of_ahead =
      ahead.OtherWay(length, /*is_ahead=*/true, in_turn).value();
  EXPECT_NEAR(of_ahead, 0.08 / 0.03, 0.1);
  EXPECT_NEAR(of_in_turn(), 1 / of_ahead, 0.02);
  for (int i = 0; i < 100; ++i) learn_in_turn(0.1);
  EXPECT_NEAR(of_in_turn(), 0.13 / 0.18, 0.03);
  // Nobody knows what was never seen, and rounds without drafts are alike.
  EXPECT_FALSE(in_turn.OtherWay(length, false, in_turn).has_value());
  EXPECT_FALSE(ahead.OtherWay({}, true, in_turn).has_value());
}

// Half of the rounds are sure of all that they draft, and right; the others are
// not sure of the second draft, and wrong there.
void LearnSureOrNot(int num_rounds, const DraftLength& asked,
                    SpeculationModel& model) {
  for (int i = 0; i < num_rounds; ++i) {
    const bool is_sure = i % 2 == 0;
    RoundStats round = {
        .num_drafted = asked.num_drafts,
        .num_accepted = is_sure ? asked.num_drafts : 1,
        .confidences = {0.9F, is_sure ? 0.9F : 0.3F},
        .round_seconds = 0.1,
        .drafter = {.call_seconds = 0.04, .compute_seconds = 0.04},
        .verifier = kVerify};
    round.confidences.resize(asked.num_drafts, 0.9F);
    if (!is_sure && DraftLength::kStops[asked.stop] > 0.27) {
      round.num_drafted = 2;
      round.confidences.resize(2);
    }
    model.Learn(round, {.asked = asked});
  }
}

constexpr int kLatestStop = DraftLength::kNumStops - 1;

TEST(SpeculationModelTest, WhatARoundGivesWithAnotherStopIsSeenFromAny) {
  SpeculationModel model;
  LearnSureOrNot(200, {.num_drafts = 4}, model);
  const DraftLength whole = {.num_drafts = 4};
  const DraftLength stopped = {.num_drafts = 4, .stop = kLatestStop};
  // 5 tokens or 2 either way; 4 passes of the drafter, or 3 on average.
  EXPECT_NEAR(model.Tokens(whole), 3.5, 0.1);
  EXPECT_NEAR(model.Tokens(stopped), 3.5, 0.1);
  EXPECT_NEAR(model.Seconds(whole) - model.Seconds(stopped), 0.01, 0.002);
  EXPECT_EQ(model.Best(4, 4), stopped);
  // What is sure is worth going on from.
  EXPECT_GT(model.Best(1, 8).num_drafts, 4);
}

TEST(SpeculationModelTest, AStopHidesFromEarlierOnesWhatWouldFollow) {
  SpeculationModel model;
  LearnSureOrNot(200, {.num_drafts = 4}, model);
  const double before = model.Tokens({.num_drafts = 4});
  LearnSureOrNot(200, {.num_drafts = 4, .stop = kLatestStop}, model);
  EXPECT_NEAR(model.Tokens({.num_drafts = 4}), before, 0.15);
  EXPECT_NEAR(model.Tokens({.num_drafts = 4, .stop = kLatestStop}), 3.5, 0.1);
  EXPECT_EQ(model.Best(4, 4).stop, kLatestStop);
}

TEST(SpeculationModelTest, WithoutConfidencesNoStopIsChosen) {
  SpeculationModel model;
  for (int i = 0; i < 100; ++i) LearnAsked(/*is_hit=*/false, model);
  EXPECT_EQ(model.Best(1, 8).stop, 0);
  SpeculationModel one_stop(/*num_stops=*/1);
  LearnSureOrNot(200, {.num_drafts = 4}, one_stop);
  EXPECT_EQ(one_stop.Best(1, 8).stop, 0);
}

// A verifier whose passes are a staircase: what it takes on average is not what
// it takes for the average.
TEST(SpeculationModelTest, PassesAreThoseOfEachNumberOfDrafts) {
  SpeculationModel model;
  for (int i = 0; i < 400; ++i) {
    const bool is_long = i % 2 == 0;
    const double pass = is_long ? 0.05 : 0.01;
    model.Learn({.num_drafted = is_long ? 4 : 1,
                 .num_accepted = 1,
                 .round_seconds = pass,
                 .verifier = {.call_seconds = pass, .compute_seconds = pass}},
                {.asked = {.num_drafts = 4}});
  }
  EXPECT_NEAR(model.Seconds({.num_drafts = 4}), 0.03, 0.003);
}

// Rounds of four drafts, half of which take them all, and half of which hit:
// after either kind of verdict alike, or after those that take all.
TEST(SpeculationModelTest, MoreDraftsHitLessOftenWhereRefusalsAreNotForetold) {
  SpeculationModel same;
  SpeculationModel by_verdict;
  const DraftLength asked = {.num_drafts = 4};
  bool stood_before = false;
  for (int i = 0; i < 500; ++i) {
    const int num_accepted = std::min(i % 10 * 4 / 5, 4);
    for (SpeculationModel* model : {&same, &by_verdict}) {
      const bool is_hit = model == &same ? i / 10 % 2 == 0 : stood_before;
      model->Learn({.num_drafted = 4,
                    .num_accepted = num_accepted,
                    .ahead = {.outcome = is_hit ? AheadStats::Outcome::kHit
                                                : AheadStats::Outcome::kMiss,
                              .all_stood = stood_before,
                              .num_drafted = 16,
                              .num_outcomes = 4,
                              .longest = 4,
                              .call_seconds = 0.02,
                              .compute_seconds = 0.02},
                    .round_seconds = is_hit ? 0.03 : 0.07,
                    .drafter = {.call_seconds = is_hit ? 0 : 0.04,
                                .compute_seconds = is_hit ? 0 : 0.04},
                    .verifier = kVerify},
                   {.asked = asked, .is_ahead = true, .drafts_ahead = true});
    }
    stood_before = num_accepted == 4;
  }
  EXPECT_NEAR(same.Seconds(asked), by_verdict.Seconds(asked), 0.004);
  const DraftLength longer = {.num_drafts = 10};
  EXPECT_GT(by_verdict.Seconds(longer), same.Seconds(longer) + 0.01);
}

// Rounds of eight drafts, of which as many are refused at each place as take
// all. Those that are refused at a late place never hit, or as often as others
// do; of a verifier whose queue is as long as its pass, or that has none.
SpeculationModel RefusedAnywhere(bool never_hits_late, bool has_queue) {
  SpeculationModel model;
  RoundStats::Link verify = kVerify;
  if (has_queue) {
    verify.queue_seconds = verify.compute_seconds;
    verify.call_seconds += verify.queue_seconds;
  }
  int accepted_before = 0;
  for (int i = 0; i < 900; ++i) {
    const bool is_hit = never_hits_late
                            ? accepted_before < 4 || accepted_before == 8
                            : (i / 9 + i) % 9 < 5;
    const int num_accepted = i % 9;
    model.Learn({.num_drafted = 8,
                 .num_accepted = num_accepted,
                 .ahead = {.outcome = is_hit ? AheadStats::Outcome::kHit
                                             : AheadStats::Outcome::kMiss,
                           .num_accepted = accepted_before,
                           .all_stood = accepted_before == 8,
                           .num_drafted = 32,
                           .num_outcomes = 4,
                           .longest = 8,
                           .call_seconds = 0.01,
                           .compute_seconds = 0.01},
                 .round_seconds = verify.call_seconds + (is_hit ? 0 : 0.04),
                 .drafter = {.call_seconds = is_hit ? 0 : 0.04,
                             .compute_seconds = is_hit ? 0 : 0.04},
                 .verifier = verify},
                {.asked = {.num_drafts = 8},
                 .num_sessions = 4,
                 .is_ahead = true,
                 .drafts_ahead = true});
    accepted_before = num_accepted;
  }
  return model;
}

TEST(SpeculationModelTest, FewerDraftsHitMoreOftenWhereLateRefusalsDoNot) {
  const SpeculationModel early = RefusedAnywhere(true, /*has_queue=*/false);
  const SpeculationModel alike = RefusedAnywhere(false, /*has_queue=*/false);
  const DraftLength asked = {.num_drafts = 8};
  EXPECT_NEAR(early.Seconds(asked), alike.Seconds(asked), 0.002);
  const DraftLength fewer = {.num_drafts = 4};
  EXPECT_LT(early.Seconds(fewer), alike.Seconds(fewer) - 0.005);
}

TEST(SpeculationModelTest, AQueueIsAsLongAsMissesAreMany) {
  const auto queue_of = [](bool never_hits_late, int num_drafts) {
    const DraftLength length = {.num_drafts = num_drafts};
    return RefusedAnywhere(never_hits_late, true).Seconds(length) -
           RefusedAnywhere(never_hits_late, false).Seconds(length);
  };
  EXPECT_NEAR(queue_of(true, 8), kVerify.compute_seconds, 0.003);
  EXPECT_LT(queue_of(true, 4), 0.8 * queue_of(false, 4));
}

// A drafter that is never sure of a second draft, asked for many: the later
// ones are made so seldom that the shares of two places cannot be told apart.
TEST(SpeculationModelTest, DraftsThatAreNeverMadeDoNotMakeALongRequestCheap) {
  SpeculationModel model;
  const DraftLength asked = {.num_drafts = 16};
  for (int i = 0; i < 500; ++i) {
    model.Learn({.num_drafted = 1,
                 .num_accepted = i % 2,
                 .ahead = {.outcome = AheadStats::Outcome::kMiss,
                           .all_stood = i % 2 == 0,
                           .num_drafted = 4,
                           .num_outcomes = 4,
                           .longest = 1,
                           .call_seconds = 0.02,
                           .compute_seconds = 0.02},
                 .round_seconds = 0.07,
                 .drafter = {.call_seconds = 0.04, .compute_seconds = 0.04},
                 .verifier = kVerify},
                {.asked = asked, .is_ahead = true, .drafts_ahead = true});
  }
  EXPECT_NEAR(model.Seconds(asked), 0.07, 0.01);
}

// An unsure drafter ends anywhere, and all its drafts are awaited: that takes
// longer than drafts of mean length would.
TEST(SpeculationModelTest, DraftsThatVaryAreLateMoreThanTheirMeanIs) {
  constexpr double kPass = 0.005;
  const DraftLength asked = {.num_drafts = 16};
  SpeculationModel model;
  std::mt19937 random(1);
  std::geometric_distribution<int> rest(0.4);
  const auto make = [&] { return std::min(16, 1 + rest(random)); };
  double taken = 0;
  constexpr int kNumRounds = 2000;
  for (int i = 0; i < kNumRounds; ++i) {
    int longest = 0;
    int num_drafted = 0;
    for (int outcome = 0; outcome < 3; ++outcome) {
      const int made = make();
      longest = std::max(longest, made);
      num_drafted += made;
    }
    const double drafting = (longest + 1) * kPass;
    const double wait = std::max(0.0, drafting - kVerify.call_seconds);
    const double round = kVerify.call_seconds + wait;
    taken += round;
    model.Learn({.num_drafted = make(),
                 .ahead = {.outcome = AheadStats::Outcome::kHit,
                           .num_drafted = num_drafted,
                           // Three of them are unlike each other.
                           .num_outcomes = 5,
                           .longest = longest,
                           .wait_seconds = wait,
                           .call_seconds = drafting,
                           .compute_seconds = drafting},
                 .round_seconds = round,
                 .drafter = {.call_seconds = wait},
                 .verifier = kVerify},
                {.asked = asked, .is_ahead = true, .drafts_ahead = true});
  }
  EXPECT_NEAR(model.Seconds(asked) / (taken / kNumRounds), 1, 0.03);
}

}  // namespace
}  // namespace outrider
