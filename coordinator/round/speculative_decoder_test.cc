// SPDX-License-Identifier: Apache-2.0
#include "coordinator/round/speculative_decoder.h"

#include <optional>
#include <utility>
#include <vector>

#include "coordinator/round/shorten_draft.h"
#include "core/sampling/rejection.h"
#include "core/testing/run_task.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::RunTask;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;

// Proposes token 1 as often as asked.
class FakeDrafter final : public DraftClient {
 public:
  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override {
    asked.push_back(num_tokens);
    if (!status.ok()) co_return status;
    Draft draft = {.start = static_cast<uint64_t>(session.length())};
    draft.tokens.assign(num_tokens, 1);
    draft.distributions.assign(num_tokens, Distribution::OneHot(1));
    co_return ProposedDraft{.draft = std::move(draft)};
  }
  void DraftAhead(Session&, const Draft& in_flight) override {
    lengths_in_flight.push_back(in_flight.length());
  }
  void Learn(const RoundStats& round) override {
    accepted.push_back(round.num_accepted);
  }

  absl::Status status;
  std::vector<int> asked;
  std::vector<int> lengths_in_flight;
  std::vector<int> accepted;  // as it learns
};

// A target that is sure of token 1, `num_sure` times, and then of token 2.
class FakeVerifier final : public VerifyClient {
 public:
  int MostDrafts(const Session&) const override { return most; }
  Task<absl::StatusOr<ScoredDraft>> Score(Session& session,
                                          Draft& draft) override {
    Shorten(most_when_asked, draft);
    if (!status.ok()) co_return status;
    if (verdict.has_value()) {
      co_return ScoredDraft{.score = {.verdict = verdict}};
    }
    std::vector<TargetRow> rows;
    for (int i = 0; i <= draft.length(); ++i) {
      rows.push_back(TargetRow::FromDense(
          Distribution::OneHot(i < num_sure ? 1 : 2),
          i < draft.length() ? draft.distributions[i].support()
                             : absl::Span<const TokenId>(),
          draft.start + i, session.coins()));
    }
    co_return ScoredDraft{.score = {.rows = std::move(rows)}};
  }

  absl::Status status;
  std::optional<Verdict> verdict;
  int num_sure = 100;
  int most = 100;             // drafts, that it takes
  int most_when_asked = 100;  // by then
};

// Answers 0, 2, 0, 2, ...: a policy that is asked twice for a round answers the
// second time for another.
class AlternatingDraftLength final : public DraftLengthPolicy {
 public:
  int NextDraftLength(const Session&) override {
    return num_asked++ % 2 == 0 ? 0 : 2;
  }

  int num_asked = 0;
};

class SpeculativeDecoderTest : public ::testing::Test {
 protected:
  FakeDrafter drafter_;
  FakeVerifier verifier_;
  RejectionRule rule_;
  FixedDraftLength policy_{3};
  SpeculativeDecoder decoder_{{.drafter = drafter_,
                               .verifier = verifier_,
                               .rule = rule_,
                               .policy = policy_}};
  Session session_{{.prompt = {0}, .max_length = 10}};
};

TEST_F(SpeculativeDecoderTest, TakesTheVerdictOfAVerifierThatJudges) {
  verifier_.verdict = Verdict{1, 7, /*lost_residual=*/true};
  const auto round = RunTask(decoder_.Round(session_));
  ASSERT_THAT(round, IsOk());
  EXPECT_EQ(round->verdict, *verifier_.verdict);
  EXPECT_TRUE(round->stats.lost_residual);
  EXPECT_THAT(session_.committed().tokens(), ElementsAre(0, 1, 7));
}

TEST_F(SpeculativeDecoderTest, CommitsOneTokenMoreThanItAccepts) {
  verifier_.num_sure = 2;
  const auto round = RunTask(decoder_.Round(session_));
  ASSERT_THAT(round, IsOk());
  EXPECT_EQ(round->verdict, (Verdict{2, 2}));
  EXPECT_THAT(session_.committed().tokens(), ElementsAre(0, 1, 1, 2));
  EXPECT_EQ(round->stats.num_drafted, 3);
  EXPECT_EQ(round->stats.num_accepted, 2);
}

TEST_F(SpeculativeDecoderTest, TheDrafterLearnsWhatEachRoundGained) {
  ASSERT_THAT(RunTask(decoder_.Round(session_)), IsOk());
  verifier_.status = absl::UnavailableError("gone");
  EXPECT_FALSE(RunTask(decoder_.Round(session_)).ok());
  verifier_.status = absl::OkStatus();
  verifier_.num_sure = 1;
  ASSERT_THAT(RunTask(decoder_.Round(session_)), IsOk());
  EXPECT_THAT(drafter_.accepted, ElementsAre(3, 1));
}

TEST_F(SpeculativeDecoderTest, TheDrafterMayGoOnFromWhatIsVerified) {
  ASSERT_THAT(RunTask(decoder_.Round(session_)), IsOk());
  verifier_.status = absl::UnavailableError("gone");
  EXPECT_FALSE(RunTask(decoder_.Round(session_)).ok());
  EXPECT_THAT(drafter_.lengths_in_flight, ElementsAre(3, 3));
}

TEST_F(SpeculativeDecoderTest, PlainDecodingNeverAsksTheDrafter) {
  FixedDraftLength none(0);
  SpeculativeDecoder decoder({.drafter = drafter_,
                              .verifier = verifier_,
                              .rule = rule_,
                              .policy = none});
  ASSERT_THAT(RunTask(decoder.Round(session_)), IsOk());
  ASSERT_THAT(RunTask(decoder.Round(session_)), IsOk());
  EXPECT_TRUE(drafter_.asked.empty());
  EXPECT_EQ(session_.length(), 3);
}

TEST_F(SpeculativeDecoderTest, AsksThePolicyOnceForEachRound) {
  AlternatingDraftLength policy;
  SpeculativeDecoder decoder({.drafter = drafter_,
                              .verifier = verifier_,
                              .rule = rule_,
                              .policy = policy});
  ASSERT_THAT(RunTask(decoder.Round(session_)), IsOk());
  EXPECT_EQ(policy.num_asked, 1);
  EXPECT_TRUE(drafter_.asked.empty());
  ASSERT_THAT(RunTask(decoder.Round(session_)), IsOk());
  EXPECT_EQ(policy.num_asked, 2);
  EXPECT_THAT(drafter_.asked, ElementsAre(2));
}

TEST_F(SpeculativeDecoderTest, DraftsLessNearTheEndAndFillsItExactly) {
  while (!session_.is_complete()) {
    ASSERT_THAT(RunTask(decoder_.Round(session_)), IsOk());
  }
  EXPECT_EQ(session_.length(), 10);
  // 1 + 4 + 4 = 9, and one plain token.
  EXPECT_THAT(drafter_.asked, ElementsAre(3, 3));
}

TEST_F(SpeculativeDecoderTest, DraftsNoMoreThanTheVerifierTakes) {
  verifier_.most = 2;
  ASSERT_THAT(RunTask(decoder_.Round(session_)), IsOk());
  verifier_.most = 0;
  ASSERT_THAT(RunTask(decoder_.Round(session_)), IsOk());
  EXPECT_THAT(drafter_.asked, ElementsAre(2));
  EXPECT_EQ(session_.length(), 5);
}

TEST_F(SpeculativeDecoderTest, JudgesWhatTheVerifierLeavesOfADraft) {
  verifier_.most_when_asked = 1;
  const auto round = RunTask(decoder_.Round(session_));
  ASSERT_THAT(round, IsOk());
  EXPECT_EQ(round->stats.num_drafted, 1);
  EXPECT_THAT(session_.committed().tokens(), ElementsAre(0, 1, 1));
}

TEST_F(SpeculativeDecoderTest, AFailureCommitsNothingAndTheSessionMayGoOn) {
  for (const bool is_drafter : {true, false}) {
    absl::Status& status = is_drafter ? drafter_.status : verifier_.status;
    status = absl::UnavailableError("gone");
    const int length = session_.length();
    EXPECT_THAT(RunTask(decoder_.Round(session_)),
                StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_EQ(session_.length(), length);
    status = absl::OkStatus();
    ASSERT_THAT(RunTask(decoder_.Round(session_)), IsOk());
    EXPECT_GT(session_.length(), length);
  }
}

}  // namespace
}  // namespace outrider
