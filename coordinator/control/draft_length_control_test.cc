// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/draft_length_control.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr int kMost = 16;

// What rounds take and give, in virtual time.
struct World {
  double round_trip = 0;  // seconds, to each node
  double acceptance = 0.8;
  double pass = 0.025;
  double row = 0.00025;
  double draft = 0.003;
  int num_users = 1;
  double sure = 1;  // share of drafts after which the drafter does not stop
  // Drafts that the text has for a round that asks for none.
  int num_looked_up = 0;
  double text_acceptance = 0.8;

  double Tokens(int k) const {
    if (k == 0) return TokensOf(num_looked_up, text_acceptance);
    return 1 + acceptance * TokensOf(k - 1, sure * acceptance);
  }
  static double TokensOf(int k, double stands) {
    return (1 - std::pow(stands, k + 1)) / (1 - stands);
  }
  std::string Name() const {
    return absl::StrFormat("%g ms, acceptance %g, %d users, pass %g, draft %g",
                           round_trip * 1e3, acceptance, num_users, pass * 1e3,
                           draft * 1e3);
  }
};

// How many drafts each round asks for, and what is told of it.
class Chooser {
 public:
  virtual ~Chooser() = default;
  virtual DraftLengthControl::Choice Choose() = 0;
  virtual int64_t Learn(const DraftLengthControl::Choice& choice,
                        const RoundStats& round) = 0;
};
class Fixed final : public Chooser {
 public:
  explicit Fixed(int k) : k_(k) {}
  DraftLengthControl::Choice Choose() override { return {.num_drafts = k_}; }
  int64_t Learn(const DraftLengthControl::Choice&, const RoundStats&) override {
    return 0;
  }

 private:
  const int k_;
};
class ByControl final : public Chooser {
 public:
  DraftLengthControl::Choice Choose() override {
    return control_.Choose(kMost, DraftLengthMode::kAuto);
  }
  int64_t Learn(const DraftLengthControl::Choice& choice,
                const RoundStats& round) override {
    last_ = choice.num_drafts;
    tokens_ += round.num_accepted + 1;
    if (choice.is_trial) trial_tokens_ += round.num_accepted + 1;
    return control_.Learn(choice, round);
  }

  int last() const { return last_; }
  double tokens() const { return tokens_; }
  double trial_tokens() const { return trial_tokens_; }

 private:
  DraftLengthControl control_;
  int last_ = 0;
  double tokens_ = 0;
  double trial_tokens_ = 0;
};

// Users who share a drafter, which drafts for all at once, and a verifier,
// whose next pass takes whatever waits.
class Rounds {
 public:
  Rounds(const World& world, Chooser& chooser, uint32_t seed)
      : world_(world), chooser_(chooser), generator_(seed) {
    for (int i = 0; i < world.num_users; ++i) {
      users_.emplace_back();
      Begin(users_.back(), 0.0001 * i);
    }
  }

  // Tokens a second that such choices give on average.
  double Run(int num_rounds) {
    double tokens = 0;
    const double begin = now_;
    for (int num_done = 0; num_done < num_rounds;) {
      // The next pass begins when the verifier is free and somebody waits.
      double first = users_[0].arrives;
      for (const User& user : users_) first = std::min(first, user.arrives);
      const double pass_begins = std::max(first, free_);
      int num_rows = 0;
      for (const User& user : users_) {
        if (user.arrives <= pass_begins) num_rows += user.num_made + 1;
      }
      const double pass = (world_.pass + world_.row * num_rows) * Vary(0.1);
      free_ = pass_begins + pass;
      for (User& user : users_) {
        if (user.arrives > pass_begins) continue;
        tokens += world_.Tokens(user.choice.num_drafts);
        ++num_done;
        End(user, pass, num_rows);
      }
    }
    return tokens / (now_ - begin);
  }

 private:
  struct User {
    DraftLengthControl::Choice choice = {};
    int num_made = 0;  // of those drafts
    double began = 0;
    double draft_round_trip = 0;
    double drafting = 0;
    double verify_round_trip = 0;
    double arrives = 0;      // at the verifier
    int64_t last_round = 0;  // that was learned
  };

  double Vary(double by) {
    return std::uniform_real_distribution(1 - by, 1 + by)(generator_);
  }
  // How many of so many come before the first that does not go well.
  int CountIn(int most, double share) {
    if (share == 1) return most;
    std::bernoulli_distribution goes_well(share);
    int count = 0;
    while (count < most && goes_well(generator_)) ++count;
    return count;
  }
  double RoundTrip() { return world_.round_trip * Vary(0.1); }
  void Begin(User& user, double now) {
    user.choice = chooser_.Choose();
    user.began = now;
    const int k = user.choice.num_drafts;
    user.draft_round_trip = k == 0 ? 0 : RoundTrip();
    user.verify_round_trip = RoundTrip();
    user.num_made =
        k == 0 ? world_.num_looked_up : 1 + CountIn(k - 1, world_.sure);
    user.drafting = k == 0 ? 0 : user.num_made * world_.draft * Vary(0.3);
    user.arrives = now + user.draft_round_trip + user.drafting +
                   user.verify_round_trip / 2;
  }
  void End(User& user, double pass, int num_rows) {
    const bool is_by_drafter = user.choice.num_drafts > 0;
    RoundStats round = {
        .num_drafted = user.num_made,
        .num_accepted =
            CountIn(user.num_made,
                    is_by_drafter ? world_.acceptance : world_.text_acceptance),
        .num_looked_up = is_by_drafter ? 0 : user.num_made};
    if (is_by_drafter) {
      round.drafter = {.call_seconds = user.draft_round_trip + user.drafting,
                       .compute_seconds = user.drafting};
    }
    const double now = free_ + user.verify_round_trip / 2;
    now_ = std::max(now_, now);
    const double at_node = free_ - user.arrives;
    round.verifier = {.call_seconds = at_node + user.verify_round_trip,
                      .compute_seconds = pass,
                      .own_seconds = pass * (user.num_made + 1) / num_rows,
                      .queue_seconds = at_node - pass};
    round.round_seconds = now - user.began;
    user.choice.after = user.last_round;
    user.last_round = chooser_.Learn(user.choice, round);
    Begin(user, now);
  }

  const World world_;
  Chooser& chooser_;
  std::mt19937 generator_;
  std::vector<User> users_;
  double free_ = 0;  // when the verifier is
  double now_ = 0;
};

double RateOf(const World& world, int k) {
  Fixed fixed(k);
  Rounds rounds(world, fixed, 1);
  rounds.Run(20 * world.num_users);
  return rounds.Run(150 * world.num_users);
}

double BestRate(const World& world) {
  double best = 0;
  for (int k = 0; k <= kMost; ++k) best = std::max(best, RateOf(world, k));
  return best;
}

// This is a mean of four streams, as some have bad luck in their first rounds.
// One of two misses the 0.95 below by 0.015 at most, in one cell of a hundred,
// with other seeds.
double RateByControl(const World& world, int num_seeds = 4) {
  double rates = 0;
  for (int i = 0; i < num_seeds; ++i) {
    ByControl chooser;
    Rounds rounds(world, chooser, /*seed=*/static_cast<uint32_t>(i + 2));
    rounds.Run(50 * world.num_users);
    rates += rounds.Run(2000 * world.num_users);
  }
  return rates / num_seeds;
}

// Slow nodes, those of a small pair, and a drafter that is no quicker than its
// verifier.
constexpr World kPairs[] = {
    {.pass = 0.025, .row = 0.00025, .draft = 0.003},
    {.pass = 0.003, .row = 0.0003, .draft = 0.0008},
    {.pass = 0.003, .row = 0.0003, .draft = 0.003},
};

// The rounds are those of one user; tests/simulation has users who share nodes,
// and schedules.
TEST(DraftLengthControlTest, IsNearlyAsFastAsTheBestKAndNeverMuchSlowerThan0) {
  for (World world : kPairs) {
    for (const double round_trip_ms : {0.2, 1.0, 5.0, 20.0, 50.0, 160.0}) {
      for (const double acceptance : {0.5, 0.7, 0.8, 0.9, 0.95}) {
        world.round_trip = round_trip_ms / 1000;
        world.acceptance = acceptance;
        const double rate = RateByControl(world);
        EXPECT_GE(rate, 0.95 * BestRate(world)) << world.Name();
        EXPECT_GE(rate, 0.97 * RateOf(world, 0)) << world.Name();
      }
    }
  }
}

// A round's drafts vary more than their number that is asked for, hence 0.88.
TEST(DraftLengthControlTest, WhoStopsWhereItIsNotSureIsPaidForWhatItMakes) {
  for (World world : kPairs) {
    world.acceptance = 0.97;
    for (const double round_trip_ms : {0.2, 5.0, 20.0, 50.0}) {
      for (const double sure : {0.5, 0.7, 0.9}) {
        world.round_trip = round_trip_ms / 1000;
        world.sure = sure;
        const double rate = RateByControl(world);
        EXPECT_GE(rate, 0.88 * BestRate(world)) << world.Name() << sure;
        EXPECT_GE(rate, 0.97 * RateOf(world, 0)) << world.Name() << sure;
      }
    }
  }
}

// Where it asks for none, the text has two drafts or eight: by time alone, most
// of these drafters are worth asking, and most are not beside such a text. What
// it gives varies from round to round: where the first rounds have bad luck it
// takes a thousand more to see what it is worth, hence the bounds, of ten
// streams.
TEST(DraftLengthControlTest, WhatTheTextGivesForNothingCountsForNone) {
  for (World world : kPairs) {
    for (const double round_trip_ms : {0.2, 5.0, 20.0}) {
      for (const double acceptance : {0.5, 0.8, 0.95}) {
        for (const int num_looked_up : {2, 8}) {
          world.round_trip = round_trip_ms / 1000;
          world.acceptance = acceptance;
          world.num_looked_up = num_looked_up;
          const double rate = RateByControl(world, /*num_seeds=*/10);
          EXPECT_GE(rate, 0.92 * BestRate(world))
              << world.Name() << ", " << num_looked_up << " looked up";
          EXPECT_GE(rate, 0.93 * RateOf(world, 0))
              << world.Name() << ", " << num_looked_up << " looked up";
        }
      }
    }
  }
}

TEST(DraftLengthControlTest, SettlesWithin50RoundsOfAChange) {
  const World near = {.round_trip = 0.001};
  const World far = {.round_trip = 0.04};
  const World busy = {.round_trip = 0.001, .pass = 0.05, .row = 0.0005};
  const World near_small = {
      .round_trip = 0.001, .pass = 0.003, .row = 0.0003, .draft = 0.0008};
  World far_small = near_small;
  far_small.round_trip = 0.04;
  const World easy = {.round_trip = 0.005, .acceptance = 0.9};
  const World hard = {.round_trip = 0.005, .acceptance = 0.3};
  for (const auto& [before, after] : {std::pair(near, far),
                                      {far, near},
                                      {near_small, far_small},
                                      {far_small, near_small},
                                      {near, busy},
                                      {busy, near},
                                      {easy, hard}}) {
    for (uint32_t seed = 1; seed <= 10; ++seed) {
      ByControl chooser;
      Rounds(before, chooser, seed).Run(1000);
      Rounds(after, chooser, seed + 10).Run(50);
      EXPECT_GE(Rounds(after, chooser, seed + 20).Run(300),
                0.95 * BestRate(after))
          << after.Name() << ", seed " << seed;
    }
  }
}

TEST(DraftLengthControlTest, ANumberThatItHasNotGivenCountsNoSessions) {
  DraftLengthControl control;
  const RoundStats round = {.num_drafted = 2,
                            .num_accepted = 1,
                            .round_seconds = 0.01,
                            .verifier = {.call_seconds = 0.005}};
  control.Learn({.num_drafts = 2, .after = 2000}, round);
  EXPECT_TRUE(control.MayHaveCompany());  // as nothing is known yet
}

// A part of the text that is hard to draft is no reason to stop for long.
TEST(DraftLengthControlTest, GoesOnAfterAPartThatIsHardToDraft) {
  const World easy = {.pass = 0.002, .row = 0.0002, .draft = 0.001};
  World hard = easy;
  hard.acceptance = 0.3;
  constexpr uint32_t kNumParts = 40;
  constexpr uint32_t kNumSeeds = 5;
  const auto run = [&](Chooser& chooser, uint32_t seed) {
    double seconds = 0;
    for (uint32_t i = 0; i < kNumParts; ++i) {
      seconds += 80 / Rounds(easy, chooser, seed + 2 * i).Run(80);
      seconds += 15 / Rounds(hard, chooser, seed + 2 * i + 1).Run(15);
    }
    return seconds;
  };
  double by_control = 0;
  for (uint32_t seed = 1; seed <= kNumSeeds; ++seed) {
    ByControl chooser;
    by_control += run(chooser, 100 * seed) / kNumSeeds;
  }
  double least = 1e9;
  for (int k = 0; k <= 6; ++k) {
    Fixed fixed(k);
    least = std::min(least, run(fixed, /*seed=*/1));
  }
  EXPECT_LE(by_control, 1.015 * least);
}

// What drafts cost beyond none is granted to a drafter that nearly pays.
TEST(DraftLengthControlTest, ADrafterThatBecomesMuchTooSlowIsLeftAtOnce) {
  const World quick = {.pass = 0.003, .draft = 0.0003};
  World slow = quick;
  slow.draft = 0.3;
  ByControl chooser;
  Rounds(quick, chooser, 1).Run(1000);
  EXPECT_GT(chooser.last(), 0);
  Rounds(slow, chooser, 2).Run(3);
  EXPECT_EQ(chooser.last(), 0);
}

TEST(DraftLengthControlTest, TriesAtMostAFiftiethOfTheTokens) {
  const World slow = {.acceptance = 0.3, .pass = 0.003, .draft = 0.005};
  const World good = {.round_trip = 0.005};
  for (const World& world : {slow, good}) {
    ByControl chooser;
    Rounds(world, chooser, 3).Run(10000);
    EXPECT_GT(chooser.trial_tokens(), 0) << world.Name();
    EXPECT_LE(chooser.trial_tokens(), 0.02 * chooser.tokens()) << world.Name();
  }
}

TEST(DraftLengthControlTest, ADrafterThatPaysAgainIsUsedAgain) {
  ByControl chooser;
  const World slow = {.pass = 0.003, .draft = 0.05};
  Rounds(slow, chooser, 4).Run(1000);
  EXPECT_EQ(chooser.last(), 0);
  const World quick = {.pass = 0.003, .draft = 0.0003};
  Rounds(quick, chooser, 5).Run(3000);
  EXPECT_GE(Rounds(quick, chooser, 6).Run(300), 0.95 * BestRate(quick));
}

TEST(DraftLengthControlTest, NeverAsksForMoreThanIsAllowed) {
  DraftLengthControl control;
  for (int i = 0; i < 200; ++i) {
    const auto choice = control.Choose(i % 4, DraftLengthMode::kAuto);
    EXPECT_LE(choice.num_drafts, i % 4);
    control.Learn(choice, {.num_drafted = choice.num_drafts,
                           .num_accepted = choice.num_drafts,
                           .round_seconds = 1,
                           .verifier = {.call_seconds = 1}});
  }
}

// One that is always unsure, or finds nothing to draft from.
TEST(DraftLengthControlTest, ADrafterThatDraftsNothingIsAskedNoMore) {
  DraftLengthControl control;
  int num_asked = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto choice = control.Choose(kMost, DraftLengthMode::kAuto);
    const bool is_asked = choice.num_drafts > 0;
    num_asked += is_asked ? 1 : 0;
    const double drafting = is_asked ? 0.002 : 0;
    control.Learn(choice, {.round_seconds = 0.003 + drafting,
                           .drafter = {.call_seconds = drafting},
                           .verifier = {.call_seconds = 0.003,
                                        .compute_seconds = 0.003}});
  }
  EXPECT_LE(num_asked, 0.03 * 5000);
}

// It has seen the rounds of the others go by, not those of so many sessions.
TEST(DraftLengthControlTest, ASessionThatComesBackIsNotTakenForMany) {
  DraftLengthControl control;
  const RoundStats round = {
      .num_drafted = 4,
      .num_accepted = 3,
      .round_seconds = 0.03,
      .drafter = {.call_seconds = 0.005, .compute_seconds = 0.005},
      .verifier = {.call_seconds = 0.025, .compute_seconds = 0.025}};
  int64_t last = 0;
  const auto learn = [&](DraftLengthMode mode, int64_t after) {
    DraftLengthControl::Choice choice = control.Choose(4, mode);
    choice.after = after;
    last = control.Learn(choice, round);
  };
  for (int i = 0; i < 1000; ++i) learn(DraftLengthMode::kFixed, last);
  learn(DraftLengthMode::kFixed, /*after=*/1);
  // One session tries each of the first numbers, 4 and 4 again, three times.
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(control.Choose(4, DraftLengthMode::kAuto).num_drafts, 4);
    learn(DraftLengthMode::kAuto, last);
  }
  EXPECT_EQ(control.Choose(4, DraftLengthMode::kAuto).num_drafts, 0);
}

}  // namespace
}  // namespace outrider
