// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/optional_draft_client.h"

#include <utility>

#include "core/testing/run_task.h"
#include "core/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::RunTask;
using ::outrider::testing::StatusIs;

class FakeDrafter final : public DraftClient {
 public:
  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override {
    ++num_calls;
    if (!status.ok()) co_return status;
    Draft draft = {.start = static_cast<uint64_t>(session.length())};
    draft.tokens.assign(num_tokens, 1);
    draft.distributions.assign(num_tokens, Distribution::OneHot(1));
    co_return ProposedDraft{.draft = std::move(draft)};
  }

  absl::Status status;
  int num_calls = 0;
};

class OptionalDraftClientTest : public ::testing::Test {
 protected:
  absl::StatusOr<ProposedDraft> Propose() {
    return RunTask(client_.Propose(session_, /*num_tokens=*/2));
  }

  FakeDrafter drafter_;
  CircuitBreaker breaker_;
  OptionalDraftClient client_{&drafter_, breaker_};
  Session session_{{.prompt = {1, 2}, .max_length = 100}};
};

TEST_F(OptionalDraftClientTest, PassesADraftOn) {
  const auto proposed = Propose();
  ASSERT_THAT(proposed, IsOk());
  EXPECT_EQ(proposed->draft.length(), 2);
  EXPECT_EQ(proposed->link.num_failures, 0);
}

TEST_F(OptionalDraftClientTest, AFailureBecomesACountedPlainRound) {
  drafter_.status = absl::DeadlineExceededError("late");
  const auto proposed = Propose();
  ASSERT_THAT(proposed, IsOk());
  EXPECT_EQ(proposed->draft.length(), 0);
  EXPECT_EQ(proposed->draft.start, 2u);
  EXPECT_EQ(proposed->link.num_failures, 1);
}

TEST_F(OptionalDraftClientTest, ADrafterThatKeepsFailingIsLeftAlone) {
  drafter_.status = absl::UnavailableError("gone");
  for (int i = 0; i < 10; ++i) {
    const auto proposed = Propose();
    ASSERT_THAT(proposed, IsOk());
    EXPECT_EQ(proposed->link.num_failures, 1);
  }
  EXPECT_EQ(drafter_.num_calls, 3);
}

TEST_F(OptionalDraftClientTest, NoDrafterIsPlainDecodingAndNoFailure) {
  OptionalDraftClient client(nullptr, breaker_);
  const auto proposed = RunTask(client.Propose(session_, 2));
  ASSERT_THAT(proposed, IsOk());
  EXPECT_EQ(proposed->draft.length(), 0);
  EXPECT_EQ(proposed->link.num_failures, 0);
}

TEST_F(OptionalDraftClientTest, ACancelledCallSaysNothingOfTheDrafter) {
  drafter_.status = absl::CancelledError("nobody waits");
  session_.cancellation().Cancel();
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(Propose(), StatusIs(absl::StatusCode::kCancelled));
  }
  EXPECT_EQ(drafter_.num_calls, 5);
}

}  // namespace
}  // namespace outrider
