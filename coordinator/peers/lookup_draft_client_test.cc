// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/lookup_draft_client.h"

#include <numeric>
#include <optional>
#include <vector>

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

// Never drafts a token twice.
class FakeDrafter final : public DraftClient {
 public:
  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override {
    asked.push_back(num_tokens);
    if (!status.ok()) co_return status;
    if (num_tokens > 0 && plain_reason != PlainReason::kNone) {
      co_return ProposedDraft{.draft = Draft::None(session.length()),
                              .plain_reason = plain_reason};
    }
    std::vector<TokenId> tokens(num_tokens);
    std::iota(tokens.begin(), tokens.end(), next_);
    next_ += num_tokens;
    co_return ProposedDraft{.draft = Draft::OneHot(session.length(), tokens)};
  }
  void DraftAhead(Session&, const Draft&) override { ++num_ahead; }
  void Learn(const RoundStats&) override { ++num_learnt; }

  absl::Status status;
  PlainReason plain_reason = PlainReason::kNone;  // else it has no draft
  std::vector<int> asked;
  int num_ahead = 0;
  int num_learnt = 0;

 private:
  TokenId next_ = 1000;
};

class LookupDraftClientTest : public ::testing::Test {
 protected:
  // A round that accepts the first `num_accepted` drafts, or `of_lookup` where
  // they were looked up, and goes on with `next`. The tokens drafted.
  std::vector<TokenId> Round(int num_accepted, TokenId next,
                             std::optional<int> of_lookup = {}) {
    const auto proposed = RunTask(client_.Propose(session_, /*num_tokens=*/3));
    EXPECT_THAT(proposed, IsOk());
    const Draft& draft = proposed->draft;
    EXPECT_EQ(draft.start, static_cast<uint64_t>(session_.length()));
    num_looked_up_ = proposed->num_looked_up;
    if (num_looked_up_ > 0) num_accepted = of_lookup.value_or(num_accepted);
    client_.DraftAhead(session_, draft);
    session_.Commit(draft, {num_accepted, next});
    client_.Learn({.num_drafted = draft.length(),
                   .num_accepted = num_accepted,
                   .num_looked_up = num_looked_up_});
    return draft.tokens;
  }

  FakeDrafter drafter_;
  LookupDraftClient client_{drafter_, DraftLengthMode::kFixed};
  Session session_{{.prompt = {1, 2, 3, 4, 9, 1, 2}, .max_length = 1000}};
  int num_looked_up_ = 0;
};

TEST_F(LookupDraftClientTest, DraftsWhatFollowedTheSameEndBefore) {
  EXPECT_THAT(Round(2, 70), ElementsAre(3, 4, 9));
  EXPECT_EQ(num_looked_up_, 3);
  // It is asked for nothing, but takes the text in.
  EXPECT_THAT(drafter_.asked, ElementsAre(0));
}

TEST_F(LookupDraftClientTest, AsksTheDrafterWhereNothingIsFound) {
  Round(2, 70);  // never seen: no end is found
  EXPECT_THAT(Round(0, 71), ElementsAre(1000, 1001, 1002));
  EXPECT_EQ(num_looked_up_, 0);
  EXPECT_THAT(drafter_.asked, ElementsAre(0, 3));
  EXPECT_EQ(drafter_.num_learnt, 2);
}

// Lookups come in runs: what the drafter made ahead would be of no use.
TEST_F(LookupDraftClientTest, DraftsAheadOnlyAfterTheDraftersOwnDrafts) {
  Round(2, 70);
  EXPECT_EQ(drafter_.num_ahead, 0);
  Round(0, 71);
  EXPECT_EQ(drafter_.num_ahead, 1);
}

TEST_F(LookupDraftClientTest, PassesOnThatNothingIsAskedFor) {
  ASSERT_THAT(RunTask(client_.Propose(session_, 0)), IsOk());
  EXPECT_THAT(drafter_.asked, ElementsAre(0));
}

TEST_F(LookupDraftClientTest, MatchesThatKeepFailingAreLeftToTheDrafter) {
  int num_lookups = 0;
  for (TokenId unseen = 100; unseen < 120; ++unseen) {
    // After an unseen token the drafter drafts, and is always right; then
    // comes a 9, which was there before and misleads every time.
    Round(3, 9);
    Round(0, unseen);
    num_lookups += num_looked_up_ > 0 ? 1 : 0;
  }
  EXPECT_GE(num_lookups, 2);
  EXPECT_LE(num_lookups, 5);
}

// The session has learned that its matches are worse than the drafter, but
// better than nothing.
class LookupWithoutDrafterTest
    : public LookupDraftClientTest,
      public ::testing::WithParamInterface<PlainReason> {};

TEST_P(LookupWithoutDrafterTest, WhileTheDrafterIsAwayWhatIsFoundFillsIn) {
  Round(2, 70);
  for (TokenId unseen = 100; unseen < 120; ++unseen) {
    Round(3, 9);  // after an unseen token the drafter drafts
    Round(3, unseen, /*of_lookup=*/1);  // the 9 was there before
  }
  Round(3, 9);
  Round(3, 200);
  EXPECT_EQ(num_looked_up_, 0);
  Round(3, 9);
  drafter_.plain_reason = GetParam();
  for (TokenId unseen = 201; unseen < 230; ++unseen) {
    Round(0, unseen, /*of_lookup=*/1);
    EXPECT_EQ(num_looked_up_, 3);
    Round(0, 9);  // nothing is found
    EXPECT_EQ(num_looked_up_, 0);
  }
  // It comes back, no worse than it was.
  drafter_.plain_reason = PlainReason::kNone;
  Round(3, 230);
  EXPECT_EQ(num_looked_up_, 0);
}

INSTANTIATE_TEST_SUITE_P(Reasons, LookupWithoutDrafterTest,
                         ::testing::Values(PlainReason::kDraftFailed,
                                           PlainReason::kDrafterFills,
                                           PlainReason::kDrafterSlow,
                                           PlainReason::kNoDrafter));

TEST_F(LookupDraftClientTest, MatchesThatNeverStandSoonFillInNoMore) {
  Round(2, 70);
  drafter_.plain_reason = PlainReason::kDrafterSlow;
  int num_lookups = 0;
  for (TokenId unseen = 100; unseen < 140; ++unseen) {
    Round(0, 9);  // after an unseen token nothing is found
    EXPECT_EQ(num_looked_up_, 0);
    Round(0, unseen, /*of_lookup=*/0);
    num_lookups += num_looked_up_ > 0 ? 1 : 0;
  }
  EXPECT_GE(num_lookups, 5);
  EXPECT_LE(num_lookups, 20);
}

// What a match is worth is its drafts that stood: the token that every round
// gives, whoever drafted, is nobody's merit. Two of three are too few beside a
// drafter that has three of three; with that token they would pass for enough.
TEST_F(LookupDraftClientTest, NobodyIsCreditedWithTheTargetsOwnToken) {
  Round(2, 70);
  int num_lookups = 0;
  for (TokenId unseen = 100; unseen < 160; ++unseen) {
    Round(3, 9);  // after an unseen token the drafter drafts
    Round(3, unseen, /*of_lookup=*/2);  // the 9 was there before
    num_lookups += num_looked_up_ > 0 ? 1 : 0;
  }
  EXPECT_GE(num_lookups, 5);
  EXPECT_LE(num_lookups, 15);
}

TEST_F(LookupDraftClientTest, WhereKIsChosenItIsByWhatStoodOfLate) {
  LookupDraftClient client(drafter_, DraftLengthMode::kAuto);
  constexpr int kPeriod = 30;
  TokenSeq text;
  for (int i = 0; i < 2 * kPeriod; ++i) text.push_back(i % kPeriod);
  Session session({.prompt = text, .max_length = 1000});
  std::vector<int> lengths;
  for (int i = 0; i < 40; ++i) {
    const auto proposed = RunTask(client.Propose(session, 16));
    ASSERT_THAT(proposed, IsOk());
    const int length = proposed->draft.length();
    lengths.push_back(length);
    const TokenId next = (session.length() + length) % kPeriod;
    session.Commit(proposed->draft, {length, next});
    client.Learn({.num_drafted = length,
                  .num_accepted = length,
                  .num_looked_up = length});
  }
  EXPECT_EQ(lengths.front(), 6);
  EXPECT_EQ(lengths.back(), 16);
}

TEST_F(LookupDraftClientTest, ARoundThatFailedSaysNothing) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT(RunTask(client_.Propose(session_, 3)), IsOk());
  }
  EXPECT_THAT(Round(0, 70), ElementsAre(3, 4, 9));
}

TEST_F(LookupDraftClientTest, PassesTheDraftersFailureOn) {
  Round(2, 70);
  drafter_.status = absl::UnavailableError("gone");
  EXPECT_THAT(RunTask(client_.Propose(session_, 3)),
              StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace outrider
