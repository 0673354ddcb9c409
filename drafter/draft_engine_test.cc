// SPDX-License-Identifier: Apache-2.0
#include "drafter/draft_engine.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "core/testing/named_session.h"
#include "core/testing/status_matchers.h"
#include "core/testing/table_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/in_process_stubs.h"
#include "tests/support/toy_nodes.h"

namespace outrider {
namespace {

using ::outrider::testing::ContentDigest;
using ::outrider::testing::DraftNode;
using ::outrider::testing::Id;
using ::outrider::testing::IsOk;
using ::outrider::testing::MakeDraftNode;
using ::outrider::testing::StatusIs;

constexpr int kVocabSize = 8;
constexpr int kContext = 12;

class DraftEngineTest : public ::testing::Test {
 protected:
  DraftEngineTest() {
    node_ = MakeDraftNode({.table =
                               [this](auto context) {
                                 return std::vector<float>(
                                     kVocabSize,
                                     context.back() == poison_ ? NAN : 0.0f);
                               },
                           .vocab_size = kVocabSize,
                           .context_length = kContext},
                          {.max_draft_tokens = 6},
                          {.sessions = {.num_blocks = 16, .max_sessions = 2}});
  }

  static DraftCall Open(uint64_t step, TokenSeq tokens, int k,
                        SessionId session = Id(1)) {
    return {.header = {.session = session,
                       .step = step,
                       .delta = {.append_tokens = std::move(tokens)}},
            .max_draft_tokens = k,
            .options = {.support_size = 4},
            .seed = 3};
  }
  absl::StatusOr<DraftReply> Run(const DraftCall& call) {
    return node_->Run(call, ContentDigest(call), now_);
  }
  static Draft DraftOf(const absl::StatusOr<DraftReply>& reply) {
    return std::get<Draft>(reply->outcome);
  }
  void ExpectConsistent() {
    for (const uint8_t name : {1, 2, 3}) {
      EXPECT_EQ(node_->Cached(Id(name)), node_->Logged(Id(name)));
    }
  }

  TokenId poison_ = -1;
  NodeSessions::Clock::time_point now_ = {};
  std::unique_ptr<DraftNode> node_;
};

TEST_F(DraftEngineTest, EchoesTheHeaderAndSaysWhatItCaches) {
  const auto reply = Run(Open(5, {1, 2, 3}, 4));
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->header.session, Id(1));
  EXPECT_EQ(reply->header.step, 5u);
  EXPECT_FALSE(reply->header.incarnation.is_none());
  EXPECT_EQ(reply->header.cached_length, 3 + 4 - 1);
  EXPECT_EQ(DraftOf(reply).length(), 4);
  ExpectConsistent();
}

TEST_F(DraftEngineTest, TheSameRequestAgainGetsTheSameDraft) {
  const DraftCall open = Open(5, {1, 2, 3}, 4);
  const auto first = Run(open);
  const auto second = Run(open);
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(DraftOf(first).tokens, DraftOf(second).tokens);
  EXPECT_EQ(first->header.incarnation, second->header.incarnation);
  EXPECT_EQ(second->header.cached_length, 6);
  ExpectConsistent();
}

TEST_F(DraftEngineTest, AnotherStepDrawsAnotherDraft) {
  const TokenSeq prompt = {1, 2, 3};
  const auto first = Run(Open(5, prompt, 6));
  const auto second = Run(Open(6, prompt, 6));
  ASSERT_THAT(second, IsOk());
  EXPECT_NE(DraftOf(first).tokens, DraftOf(second).tokens);
}

TEST_F(DraftEngineTest, AMissIsAnAnswerWithTheCallersIncarnation) {
  DraftCall call = Open(5, {1}, 2);
  call.header.incarnation = Id(77);
  const auto reply = Run(call);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(std::get<Miss>(reply->outcome).reason,
            MissReason::kUnknownIncarnation);
  EXPECT_EQ(reply->header.incarnation, Id(77));
  EXPECT_EQ(node_->table().num_tokens_run(), 0);
}

TEST_F(DraftEngineTest, DraftsFewerAtTheContextsEnd) {
  const auto reply = Run(Open(5, TokenSeq(kContext - 2, 1), 6));
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(DraftOf(reply).length(), 2);
  const auto full = Run(Open(6, TokenSeq(kContext, 1), 6));
  ASSERT_THAT(full, IsOk());
  EXPECT_EQ(DraftOf(full).length(), 0);
  EXPECT_EQ(full->header.cached_length, kContext);
  ExpectConsistent();
}

TEST_F(DraftEngineTest, MalformedRequestsNeverReachTheModel) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Run(Open(5, {1}, 7)), StatusIs(kInvalid));
  EXPECT_THAT(Run(Open(5, {1}, -1)), StatusIs(kInvalid));
  EXPECT_THAT(Run(Open(5, {}, 2)), StatusIs(kInvalid));
  EXPECT_THAT(Run(Open(5, {kVocabSize}, 2)), StatusIs(kInvalid));
  EXPECT_THAT(Run(Open(5, {-1}, 2)), StatusIs(kInvalid));
  EXPECT_THAT(Run(Open(5, TokenSeq(kContext + 1, 1), 2)), StatusIs(kInvalid));
  DraftCall call = Open(5, {1}, 2);
  call.sampling.temperature = -1;
  EXPECT_THAT(Run(call), StatusIs(kInvalid));
  call = Open(5, {1}, 2);
  call.options.support_size = 0;
  EXPECT_THAT(Run(call), StatusIs(kInvalid));
  call.options.support_size = kMaxSupportSize + 1;
  EXPECT_THAT(Run(call), StatusIs(kInvalid));
  for (const double mass : {0.0, -0.5, 1.5, std::nan("")}) {
    call = Open(5, {1}, 2);
    call.options.support_mass = mass;
    EXPECT_THAT(Run(call), StatusIs(kInvalid)) << mass;
  }
  call = Open(5, {1}, 2);
  call.prompt_length = 2;  // of one token
  EXPECT_THAT(Run(call), StatusIs(kInvalid));
  call.prompt_length = 1;
  call.sampling.logit_bias = {{kVocabSize, 1}};
  EXPECT_THAT(Run(call), StatusIs(kInvalid));
  call.sampling.logit_bias = {};
  call.options.support_size = kVocabSize;  // whole rows
  EXPECT_THAT(Run(call), IsOk());
  EXPECT_EQ(node_->sessions().num_sessions(), 1);
}

TEST_F(DraftEngineTest, RowsThatFitIntoNoMessageAreNotDrafted) {
  constexpr int kLarge = 1 << 20;
  const DraftEngine engine(
      std::make_unique<ModelStrategy>(kLarge),
      {.vocab_size = kLarge, .context_length = 100, .max_draft_tokens = 32});
  DraftCall call = Open(5, {1}, 16);
  call.options.support_size = kLarge;  // whole rows
  EXPECT_THAT(engine.Check(call), IsOk());
  call.max_draft_tokens = 17;
  EXPECT_THAT(engine.Check(call), StatusIs(absl::StatusCode::kInvalidArgument));
  call.rule = RuleKind::kCoupled;  // sends none
  EXPECT_THAT(engine.Check(call), IsOk());
  call.rule = RuleKind::kRejection;
  call.sampling.temperature = 0;  // the same
  EXPECT_THAT(engine.Check(call), IsOk());
}

TEST_F(DraftEngineTest, AFailureForgetsThatSessionOnly) {
  ASSERT_THAT(Run(Open(5, {1, 2}, 2, Id(1))), IsOk());
  ASSERT_THAT(Run(Open(5, {1, 2}, 2, Id(2))), IsOk());
  poison_ = 4;
  EXPECT_THAT(Run(Open(6, {4}, 2, Id(1))),
              StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(node_->sessions().num_sessions(), 1);
  EXPECT_EQ(node_->Logged(Id(2)).size(), 3u);
  ExpectConsistent();
}

TEST_F(DraftEngineTest, ReleaseAndExpiryMakeRoomForOthers) {
  ASSERT_THAT(Run(Open(5, {1, 2}, 2, Id(1))), IsOk());
  now_ += std::chrono::seconds(1);
  const auto second = Run(Open(5, {1, 2}, 2, Id(2)));
  EXPECT_THAT(Run(Open(5, {1, 2}, 2, Id(3))),
              StatusIs(absl::StatusCode::kResourceExhausted));

  const RequestHeader release = {
      .session = Id(2), .incarnation = second->header.incarnation, .step = 6};
  EXPECT_FALSE(
      node_->Release({.session = Id(2), .incarnation = Id(9), .step = 6}));
  EXPECT_TRUE(node_->Release(release));
  EXPECT_FALSE(node_->Release(release));
  ASSERT_THAT(Run(Open(5, {1, 2}, 2, Id(3))), IsOk());
  ExpectConsistent();

  node_->Expire(now_ + std::chrono::minutes(5));
  EXPECT_EQ(node_->sessions().num_sessions(), 0);
}

TEST_F(DraftEngineTest, AfterATruncationTheNextDeltaFillsTheCacheAgain) {
  const auto reply = Run(Open(5, {1, 2, 3}, 2));
  RequestHeader header = {
      .session = Id(1), .incarnation = reply->header.incarnation, .step = 6};
  EXPECT_TRUE(node_->Truncate(header, 1));
  DraftCall call = Open(7, {3}, 2);
  call.header.incarnation = reply->header.incarnation;
  call.header.delta.keep_length = 2;
  EXPECT_EQ(std::get<Miss>(Run(call)->outcome).reason, MissReason::kLength);
  call.header.delta = {1, {2, 3}};
  ASSERT_THAT(Run(call), IsOk());
  ExpectConsistent();
}

}  // namespace
}  // namespace outrider
