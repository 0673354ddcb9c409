// SPDX-License-Identifier: Apache-2.0
// A drafter that is the target: p = q passes for every coin, so every round
// must accept all K. What the law cannot show shows here: a drafter's cache
// that is not the committed text, positions that are off by one.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/sampling/process.h"
#include "gtest/gtest.h"
#include "tests/exactness/sabotage.h"
#include "tests/exactness/toy_cluster.h"

namespace outrider::testing::acceptance_oracle {
namespace {

constexpr int kNumSeeds = 20;
constexpr int kNumRounds = 30;
// Both ways, 0 included, two and more full acceptances in a row.
const std::vector<int> kChangingLengths = {3, 3, 0, 5, 1, 4, 0, 0, 2, 5, 5, 1};

const ToyModel& Twins() {
  static const ToyModel model(5, DrafterKind::kSame);
  return model;
}

ClusterConfig Config(Sabotage sabotage = {}) {
  return {.sampling = {.temperature = 0.9, .top_k = 4},
          .draft_lengths = kChangingLengths,
          .has_first_round = true,
          .max_length = 1 << 16,
          .sabotage = std::move(sabotage)};
}

struct Tally {
  int num_drafted = 0;
  int num_refused = 0;
  int num_misses = 0;
  int num_rounds_failed = 0;
};

// Runs sessions; `before_round` may do harm between two rounds.
Tally RunSessions(const ClusterConfig& config,
                  const std::function<void(ToyCluster&)>& before_round = {}) {
  Tally tally;
  for (uint64_t seed = 0; seed < kNumSeeds; ++seed) {
    ToyCluster cluster(config, Twins(), seed);
    for (int i = 0; i < kNumRounds; ++i) {
      if (before_round) before_round(cluster);
      if (!cluster.Round().ok()) ++tally.num_rounds_failed;
      const RoundStats& stats = cluster.stats();
      tally.num_drafted += stats.num_drafted;
      tally.num_refused += stats.num_drafted - stats.num_accepted;
      tally.num_misses +=
          stats.drafter.num_misses() + stats.verifier.num_misses();
    }
  }
  return tally;
}

int NumDraftsPlanned() {
  int sum = 0;
  // The first round is plain: it takes in the prompt on both sides.
  for (int i = 1; i < kNumRounds; ++i) {
    sum += kChangingLengths[i % kChangingLengths.size()];
  }
  return sum * kNumSeeds;
}

TEST(AcceptanceOracleTest, EveryRoundAcceptsAllWhileDraftLengthsChange) {
  const Tally tally = RunSessions(Config());
  EXPECT_EQ(tally.num_drafted, NumDraftsPlanned());
  EXPECT_EQ(tally.num_refused, 0);
  EXPECT_EQ(tally.num_misses, 0);
  EXPECT_EQ(tally.num_rounds_failed, 0);
}

TEST(AcceptanceOracleTest, EveryConstantDraftLengthAcceptsAll) {
  for (int k = 0; k <= 8; ++k) {
    ClusterConfig config = Config();
    config.draft_lengths = {k};
    const Tally tally = RunSessions(config);
    EXPECT_EQ(tally.num_drafted, kNumSeeds * (kNumRounds - 1) * k);
    EXPECT_EQ(tally.num_refused, 0) << "K " << k;
    EXPECT_EQ(tally.num_misses, 0) << "K " << k;
  }
}

TEST(AcceptanceOracleTest, EveryCallDeliveredTwiceChangesNothing) {
  ClusterConfig config = Config();
  config.num_deliveries = 2;
  const Tally tally = RunSessions(config);
  EXPECT_EQ(tally.num_drafted, NumDraftsPlanned());
  EXPECT_EQ(tally.num_refused, 0);
  EXPECT_EQ(tally.num_misses, 0);
}

// A token outside the target's top-k, at a place that moves: everything before
// it must stand, and the rounds after the refusal must accept all again.
TEST(AcceptanceOracleTest, AForcedRefusalCutsBothCachesAtTheRightPlace) {
  int num_corrupted = 0;
  const Tally tally =
      RunSessions(Config({.alter_draft = [&num_corrupted](Draft& draft) {
        if (draft.length() == 0 || draft.start % 3 == 0) return;
        const int place = static_cast<int>(draft.start) % draft.length();
        TokenId excluded = 0;
        while (draft.distributions[place](excluded) > 0) ++excluded;
        draft.tokens[place] = excluded;
        draft.distributions[place] = Distribution::OneHot(excluded);
        // What a refusal at `place` leaves over was never accepted.
        draft.tokens.resize(place + 1);
        draft.distributions.erase(draft.distributions.begin() + place + 1,
                                  draft.distributions.end());
        ++num_corrupted;
      }}));
  EXPECT_GT(num_corrupted, kNumSeeds);
  EXPECT_EQ(tally.num_refused, num_corrupted);
  EXPECT_EQ(tally.num_misses, 0);
  EXPECT_EQ(tally.num_rounds_failed, 0);
}

TEST(AcceptanceOracleTest, EarlyStopsLeaveNoHole) {
  const Tally tally = RunSessions(Config({.alter_draft = [](Draft& draft) {
    const int kept = draft.length() / 2;
    draft.tokens.resize(kept);
    draft.distributions.erase(draft.distributions.begin() + kept,
                              draft.distributions.end());
  }}));
  EXPECT_GT(tally.num_drafted, 0);
  EXPECT_EQ(tally.num_refused, 0);
  EXPECT_EQ(tally.num_misses, 0);
}

TEST(AcceptanceOracleTest, ADrafterThatRestartsIsFilledAgain) {
  const Tally tally = RunSessions(Config(), [](ToyCluster& cluster) {
    if (cluster.num_rounds() % 4 == 2) cluster.RestartDrafter();
  });
  // A round that finds the drafter empty does not wait for it to be filled.
  EXPECT_GT(tally.num_drafted, NumDraftsPlanned() / 2);
  EXPECT_LT(tally.num_drafted, NumDraftsPlanned());
  EXPECT_EQ(tally.num_refused, 0);
  EXPECT_GT(tally.num_misses, 0);
  EXPECT_EQ(tally.num_rounds_failed, 0);
}

TEST(AcceptanceOracleTest, EvictionFromEitherNodeIsHealed) {
  const Tally tally = RunSessions(Config(), [](ToyCluster& cluster) {
    Session& session = cluster.session();
    const RequestHeader header = {.session = session.id(), .step = 1u << 30};
    RequestHeader to_drafter = header;
    to_drafter.incarnation = session.drafter_cache().incarnation();
    RequestHeader to_verifier = header;
    to_verifier.incarnation = session.verifier_cache().incarnation();
    if (cluster.num_rounds() % 3 == 1) {
      EXPECT_TRUE(cluster.verifier().Release(to_verifier));
    }
    if (cluster.num_rounds() % 5 == 3) {
      EXPECT_TRUE(cluster.drafter().Release(to_drafter));
    }
  });
  // A round that finds the drafter empty does not wait for it to be filled.
  EXPECT_GT(tally.num_drafted, NumDraftsPlanned() / 2);
  EXPECT_LT(tally.num_drafted, NumDraftsPlanned());
  EXPECT_EQ(tally.num_refused, 0);
  EXPECT_GT(tally.num_misses, 0);
  EXPECT_EQ(tally.num_rounds_failed, 0);
}

TEST(AcceptanceOracleTest, RepliesLostOnEitherLinkAreHealed) {
  int num_calls = 0;
  const auto lose_some = [&num_calls](const auto&, auto&) {
    return ++num_calls % 5 == 0 ? absl::UnavailableError("lost")
                                : absl::OkStatus();
  };
  Tally tally = RunSessions(Config(), [&](ToyCluster& cluster) {
    cluster.draft_stub().hooks().after = lose_some;
    cluster.verify_stub().hooks().before = [&num_calls](const VerifyCall&) {
      return ++num_calls % 7 == 0 ? absl::UnavailableError("lost")
                                  : absl::OkStatus();
    };
  });
  EXPECT_GT(tally.num_rounds_failed, kNumSeeds);
  EXPECT_EQ(tally.num_refused, 0);
  // The caches held more than the mirrors knew, never anything else.
  EXPECT_EQ(tally.num_misses, 0);
}

// The oracle itself: mistakes that leave the law alone must not pass it.
TEST(AcceptanceOracleTest, SeesADrafterCacheThatIsCutWrongly) {
  const TableLm::Cut never = [](const TableLm::CutView& view) {
    return view.num_entries;
  };
  const TableLm::Cut too_long = [](const TableLm::CutView& view) {
    return std::min(view.num_entries, view.keep_length + 1);
  };
  const TableLm::Cut too_short = [](const TableLm::CutView& view) {
    return view.cached_length > 0 ? std::max(1, view.keep_length - 1) : 0;
  };
  for (const TableLm::Cut& cut : {never, too_long, too_short}) {
    Sabotage sabotage = WithRule({}, Config().sampling);
    sabotage.drafter_cut = cut;
    // Refuses all drafts now and then, or nothing would ever be cut.
    sabotage.judge = [judge = sabotage.judge](const JudgeView& view) {
      if (view.draft.start % 7 != 0) return judge(view);
      return Verdict{0, Process(view.rows.Row(0), {}, {})->support()[0]};
    };
    ClusterConfig config = Config(sabotage);
    int num_wrong = 0;
    for (uint64_t seed = 0; seed < kNumSeeds; ++seed) {
      ToyCluster cluster(config, Twins(), seed);
      for (int i = 0; i < kNumRounds; ++i) {
        const bool refuses = cluster.session().length() % 7 == 0;
        ASSERT_TRUE(cluster.Round().ok());
        const RoundStats& stats = cluster.stats();
        if (!refuses) num_wrong += stats.num_drafted - stats.num_accepted;
      }
    }
    EXPECT_GT(num_wrong, 0);
  }
}

}  // namespace
}  // namespace outrider::testing::acceptance_oracle
