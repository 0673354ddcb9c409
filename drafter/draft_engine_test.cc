// SPDX-License-Identifier: Apache-2.0
#include "drafter/draft_engine.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "core/testing/status_matchers.h"
#include "core/testing/table_lm.h"
#include "drafter/model_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/in_process_stubs.h"

namespace outrider {
namespace {

using ::outrider::testing::ContentDigest;
using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::outrider::testing::TableLm;

constexpr int kVocabSize = 8;
constexpr int kContext = 12;

SessionId Id(uint8_t name) { return {.bytes = {name}}; }

class DraftEngineTest : public ::testing::Test {
 protected:
  DraftEngineTest() {
    auto model = std::make_unique<TableLm>(TableLm::Options{
        .table =
            [this](auto context) {
              return std::vector<float>(kVocabSize,
                                        context.back() == poison_ ? NAN : 0.0f);
            },
        .vocab_size = kVocabSize,
        .context_length = kContext});
    model_ = model.get();
    engine_ = std::make_unique<DraftEngine>(
        std::make_unique<ModelStrategy>(std::move(model), kVocabSize),
        DraftEngine::Options{.vocab_size = kVocabSize,
                             .context_length = kContext,
                             .max_draft_tokens = 6,
                             .sessions = {.max_sessions = 2}});
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
    return engine_->Draft(call, ContentDigest(call), now_);
  }
  static Draft DraftOf(const absl::StatusOr<DraftReply>& reply) {
    return std::get<Draft>(reply->outcome);
  }
  void ExpectConsistent() {
    for (const uint8_t name : {1, 2, 3}) {
      const TokenLog* log = engine_->sessions().Tokens(Id(name));
      const TokenSeq known =
          log == nullptr ? TokenSeq()
                         : TokenSeq(log->tokens().begin(), log->tokens().end());
      EXPECT_EQ(model_->Cache(Id(name)), known);
    }
  }

  TokenId poison_ = -1;
  SessionTable::Clock::time_point now_ = {};
  const TableLm* model_;
  std::unique_ptr<DraftEngine> engine_;
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
  EXPECT_EQ(model_->num_tokens_run(), 0);
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
  EXPECT_EQ(engine_->sessions().num_sessions(), 1);
}

TEST_F(DraftEngineTest, AFailureForgetsThatSessionOnly) {
  ASSERT_THAT(Run(Open(5, {1, 2}, 2, Id(1))), IsOk());
  ASSERT_THAT(Run(Open(5, {1, 2}, 2, Id(2))), IsOk());
  poison_ = 4;
  EXPECT_THAT(Run(Open(6, {4}, 2, Id(1))),
              StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(engine_->sessions().num_sessions(), 1);
  EXPECT_EQ(engine_->sessions().CachedLength(Id(2)), 3);
  ExpectConsistent();
}

TEST_F(DraftEngineTest, EvictionExpiryAndReleaseGiveTheModelsCacheBack) {
  ASSERT_THAT(Run(Open(5, {1, 2}, 2, Id(1))), IsOk());
  now_ += std::chrono::seconds(1);
  const auto second = Run(Open(5, {1, 2}, 2, Id(2)));
  now_ += std::chrono::seconds(1);
  ASSERT_THAT(Run(Open(5, {1, 2}, 2, Id(3))), IsOk());
  EXPECT_EQ(engine_->sessions().num_sessions(), 2);
  EXPECT_EQ(model_->num_sessions(), 2);
  ExpectConsistent();

  const RequestHeader release = {
      .session = Id(2), .incarnation = second->header.incarnation, .step = 6};
  EXPECT_FALSE(
      engine_->Release({.session = Id(2), .incarnation = Id(9), .step = 6}));
  EXPECT_TRUE(engine_->Release(release));
  EXPECT_FALSE(engine_->Release(release));
  EXPECT_EQ(model_->num_sessions(), 1);

  engine_->Expire(now_ + std::chrono::minutes(5));
  EXPECT_EQ(model_->num_sessions(), 0);
  ExpectConsistent();
}

// Truncation is advice: the table forgets at once, the model with the next cut.
TEST_F(DraftEngineTest, AfterATruncationTheNextDeltaFillsTheCacheAgain) {
  const auto reply = Run(Open(5, {1, 2, 3}, 2));
  RequestHeader header = {
      .session = Id(1), .incarnation = reply->header.incarnation, .step = 6};
  EXPECT_TRUE(engine_->Truncate(header, 1));
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
