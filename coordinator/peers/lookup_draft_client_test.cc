// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/lookup_draft_client.h"

#include <numeric>
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
    std::vector<TokenId> tokens(num_tokens);
    std::iota(tokens.begin(), tokens.end(), next_);
    next_ += num_tokens;
    co_return ProposedDraft{.draft = Draft::OneHot(session.length(), tokens)};
  }

  absl::Status status;
  std::vector<int> asked;

 private:
  TokenId next_ = 1000;
};

class LookupDraftClientTest : public ::testing::Test {
 protected:
  // A round that accepts the first `num_accepted` drafts and goes on with
  // `next`. The tokens drafted.
  std::vector<TokenId> Round(int num_accepted, TokenId next) {
    const auto proposed = RunTask(client_.Propose(session_, /*num_tokens=*/3));
    EXPECT_THAT(proposed, IsOk());
    const Draft& draft = proposed->draft;
    EXPECT_EQ(draft.start, static_cast<uint64_t>(session_.length()));
    num_looked_up_ = proposed->num_looked_up;
    session_.Commit(draft, {num_accepted, next});
    return draft.tokens;
  }

  FakeDrafter drafter_;
  LookupDraftClient client_{drafter_};
  Session session_{{.prompt = {1, 2, 3, 4, 9, 1, 2}, .max_length = 1000}};
  int num_looked_up_ = 0;
};

TEST_F(LookupDraftClientTest, DraftsWhatFollowedTheSameEndBefore) {
  EXPECT_THAT(Round(2, 70), ElementsAre(3, 4, 9));
  EXPECT_EQ(num_looked_up_, 3);
  EXPECT_TRUE(drafter_.asked.empty());
}

TEST_F(LookupDraftClientTest, AsksTheDrafterWhereNothingIsFound) {
  Round(2, 70);  // never seen: no end is found
  EXPECT_THAT(Round(0, 71), ElementsAre(1000, 1001, 1002));
  EXPECT_EQ(num_looked_up_, 0);
  EXPECT_THAT(drafter_.asked, ElementsAre(3));
}

TEST_F(LookupDraftClientTest, FillsTheDraftersCacheAtTheStart) {
  ASSERT_THAT(RunTask(client_.Propose(session_, 0)), IsOk());
  EXPECT_THAT(drafter_.asked, ElementsAre(0));
}

TEST_F(LookupDraftClientTest, MatchesThatKeepFailingAreLeftToTheDrafter) {
  int num_lookups = 0;
  for (TokenId unseen = 100; unseen < 120; ++unseen) {
    // Behind an unseen token the drafter drafts, and is always right; then
    // comes a 9, which was there before and misleads every time.
    Round(3, 9);
    Round(0, unseen);
    num_lookups += num_looked_up_ > 0 ? 1 : 0;
  }
  EXPECT_GE(num_lookups, 2);
  EXPECT_LE(num_lookups, 5);
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
