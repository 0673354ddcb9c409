// SPDX-License-Identifier: Apache-2.0
// What looks like a mutant and is none: each of these must leave the joint law
// alone. The twins of mutants_test and output_law_test's faults.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/sampling/process.h"
#include "gtest/gtest.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"
#include "tests/exactness/sabotage.h"

namespace outrider::testing::stays_exact {
namespace {

constexpr int kLength = 4;

Enumeration ExpectExact(const ClusterConfig& config) {
  Enumeration result = Enumerate(config, FourWords(), kLength);
  ExpectLaw(result, PlainLaw(FourWords(), kFourWordsSampling, {kToyPrompt},
                             kLength, {}));
  return result;
}

ClusterConfig With(Sabotage sabotage, int k = 2) {
  return {.sampling = kFourWordsSampling,
          .draft_lengths = {k},
          .sabotage = std::move(sabotage)};
}

void Keep(int num_tokens, Draft& draft) {
  draft.tokens.resize(num_tokens);
  draft.distributions.erase(draft.distributions.begin() + num_tokens,
                            draft.distributions.end());
}

double LargestProbability(const Distribution& q) {
  return *std::max_element(q.weights().begin(), q.weights().end()) / q.total();
}

// Twin of M7.
TEST(StaysExactTest, ArgmaxDraftsReportedAsOneHotRows) {
  Sabotage sabotage =
      WithWeights([](Purpose purpose, std::vector<double>& weights) {
        if (purpose != Purpose::kDraft) return;
        const auto best = std::max_element(weights.begin(), weights.end());
        for (auto it = weights.begin(); it != weights.end(); ++it) {
          if (it != best) *it = 0;
        }
      });
  sabotage.alter_draft = [](Draft& draft) {
    for (int i = 0; i < draft.length(); ++i) {
      draft.distributions[i] = Distribution::OneHot(draft.tokens[i]);
    }
  };
  ExpectExact(With(sabotage));
}

// Twin of M9.
TEST(StaysExactTest, AcceptIfEqualThatEmitsTheTargetsOwnSample) {
  ExpectExact(With({.judge = [](const JudgeView& view) -> Verdict {
    const int k = view.draft.length();
    for (int i = 0;; ++i) {
      const Distribution p = *Process(view.rows.Row(i), kFourWordsSampling, {});
      const CoinKey coin = {Purpose::kTail, view.draft.start + i};
      const TokenId sample =
          p.support()[view.random.Categorical(coin, p.weights())];
      if (i == k || sample != view.draft.tokens[i]) return {i, sample};
    }
  }}));
}

// Twins of M17.
TEST(StaysExactTest, EarlyStopThatKeepsTheTokenItDrew) {
  ExpectExact(With({.alter_draft = [](Draft& draft) {
    for (int i = 0; i < draft.length(); ++i) {
      if (draft.distributions[i](draft.tokens[i]) < 0.35) Keep(i + 1, draft);
    }
  }}));
}
TEST(StaysExactTest, EarlyStopDecidedBeforeTheDraw) {
  ExpectExact(With({.alter_draft = [](Draft& draft) {
    for (int i = 0; i < draft.length(); ++i) {
      if (LargestProbability(draft.distributions[i]) < 0.6) Keep(i, draft);
    }
  }}));
}

TEST(StaysExactTest, DraftLengthChosenByPastAcceptance) {
  ExpectExact(With({.draft_length = [](const RoundView& view, int k) {
    return view.verdict == nullptr ? k : view.verdict->num_accepted + 1;
  }}));
}

// Twin of M16.
TEST(StaysExactTest, RoundsDrawnAgainForNoReasonOfTheirOwn) {
  ExpectExact(With(WithLostReplies([](const Verdict&) { return true; }, 1)));
}

// Twin of T4.
TEST(StaysExactTest, DraftsDroppedForNoReasonOfTheirOwn) {
  ExpectExact(With({.alter_draft = [](Draft& draft) {
    if (draft.start % 2 == 0) draft = {.start = draft.start};
  }}));
}

// Invisible to the law: the drafter's mistakes cost acceptance alone. The
// acceptance oracle sees them.
TEST(StaysExactTest, DrafterCachesThatAreCutWrongly) {
  ExpectExact(With({.drafter_cut = [](const TableLm::CutView& view) {
    return view.num_entries;
  }}));
  ExpectExact(With({.drafter_cut = [](const TableLm::CutView& view) {
    return std::min(view.num_entries, view.keep_length + 1);
  }}));
}

// A round that failed is run again: same ACCEPT, RESIDUAL and TAIL coins, but
// other drafts, as each request has its own step.
Sabotage UntilItSucceeds(std::function<void(ToyCluster&)> before_round) {
  return {.round = [before_round](ToyCluster& cluster) {
    before_round(cluster);
    absl::StatusOr<Verdict> verdict = cluster.DecoderRound();
    for (int i = 0; i < 3 && !verdict.ok(); ++i) {
      verdict = cluster.DecoderRound();
    }
    return verdict;
  }};
}

TEST(StaysExactTest, RepliesLostAfterTheNodeHasChanged) {
  ExpectExact(
      With(UntilItSucceeds([](ToyCluster& cluster) {
             const int lost_draft = cluster.draft_stub().num_calls() + 1;
             const int lost_verify = cluster.verify_stub().num_calls() + 1;
             cluster.draft_stub().hooks().after =
                 [&cluster, lost_draft](const DraftCall&, DraftReply&) {
                   return cluster.draft_stub().num_calls() == lost_draft
                              ? absl::UnavailableError("lost")
                              : absl::OkStatus();
                 };
             cluster.verify_stub().hooks().after =
                 [&cluster, lost_verify](const VerifyCall&, VerifyReply&) {
                   return cluster.verify_stub().num_calls() == lost_verify
                              ? absl::UnavailableError("lost")
                              : absl::OkStatus();
                 };
           }),
           /*k=*/1));
}

TEST(StaysExactTest, SessionsEvictedBetweenRoundsOnBothNodes) {
  const Enumeration result =
      ExpectExact(With({.round = [](ToyCluster& cluster) {
        Session& session = cluster.session();
        const auto evict = [&session](auto& node, const CacheMirror& cache) {
          // A release that names no incarnation would hit an opening to come.
          if (cache.incarnation().is_none()) return;
          node.Release({.session = session.id(),
                        .incarnation = cache.incarnation(),
                        .step = 1u << 20});
        };
        evict(cluster.drafter(), session.drafter_cache());
        evict(cluster.verifier(), session.verifier_cache());
        return cluster.DecoderRound();
      }}));
  EXPECT_GT(result.num_misses, 0);
}

TEST(StaysExactTest, ADrafterThatRestartsBeforeEveryRound) {
  const Enumeration result =
      ExpectExact(With({.round = [](ToyCluster& cluster) {
        cluster.RestartDrafter();
        return cluster.DecoderRound();
      }}));
  EXPECT_GT(result.num_misses, 0);
}

}  // namespace
}  // namespace outrider::testing::stays_exact
