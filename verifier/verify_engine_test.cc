// SPDX-License-Identifier: Apache-2.0
#include "verifier/verify_engine.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "core/session/token_log.h"
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
using ::outrider::testing::FewBlocks;
using ::outrider::testing::Id;
using ::outrider::testing::IsOk;
using ::outrider::testing::MakeVerifyNode;
using ::outrider::testing::StatusIs;
using ::outrider::testing::TableLm;
using ::outrider::testing::VerifyNode;
using ::testing::ElementsAre;

constexpr int kVocabSize = 3;
constexpr int kHeadSize = 4;
constexpr int kContext = 8;

class VerifyEngineTest : public ::testing::Test {
 protected:
  VerifyEngineTest() {
    node_ =
        MakeVerifyNode({.table =
                            [](absl::Span<const TokenId> context) {
                              return std::vector<float>{
                                  static_cast<float>(context.size()),
                                  static_cast<float>(context.back()), 0, 99};
                            },
                        .vocab_size = kHeadSize,
                        .context_length = kContext},
                       {.vocab_size = kVocabSize, .max_draft_tokens = 4},
                       {.sessions = {.num_blocks = 16, .max_sessions = 2}});
  }

  static VerifyCall Open(uint64_t step, TokenSeq tokens, TokenSeq drafts,
                         SessionId session = Id(1)) {
    return {.header = {.session = session,
                       .step = step,
                       .delta = {.append_tokens = std::move(tokens)}},
            .draft_tokens = std::move(drafts)};
  }
  absl::StatusOr<VerifyReply> Run(const VerifyCall& call) {
    return node_->Run(call, ContentDigest(call), now_);
  }

  NodeSessions::Clock::time_point now_ = {};
  std::unique_ptr<VerifyNode> node_;
};

TEST_F(VerifyEngineTest, GivesOneRowMoreThanDraftsWithoutTheHeadsPadding) {
  const auto reply = Run(Open(5, {0, 1}, {2, 1}));
  ASSERT_THAT(reply, IsOk());
  const LogitRows& rows = std::get<LogitRows>(reply->outcome);
  ASSERT_EQ(rows.num_rows(), 3);
  EXPECT_THAT(rows.Row(0), ElementsAre(2, 1, 0));
  EXPECT_THAT(rows.Row(1), ElementsAre(3, 2, 0));
  EXPECT_THAT(rows.Row(2), ElementsAre(4, 1, 0));
  EXPECT_EQ(reply->header.step, 5u);
  EXPECT_EQ(reply->header.cached_length, 4);
  EXPECT_EQ(node_->Cached(Id(1)), (TokenSeq{0, 1, 2, 1}));
}

// Its steps say nothing of that: drafts ahead take several a round.
TEST(VerifyEngineWorkTest, AStreamHasBegunOnceItsTextHasMoreThanItsPrompt) {
  const VerifyEngine engine({.vocab_size = kVocabSize});
  VerifyCall call = {.header = {.session = Id(1),
                                .step = 100,
                                .delta = {.append_tokens = {0, 1}}},
                     .prompt_length = 2};
  EXPECT_FALSE(engine.MakeWork(call, 1, {}, {})->request().holds_up_stream);
  call.header.step = 3;
  call.header.delta.append_tokens.push_back(2);
  EXPECT_TRUE(engine.MakeWork(call, 1, {}, {})->request().holds_up_stream);
}

TEST(VerifyEngineRowsTest, AreRoundedBeforeAnybodyReadsThem) {
  const auto node =
      MakeVerifyNode({.table =
                          [](absl::Span<const TokenId>) {
                            return std::vector<float>{1.001f, -3.14159f, 0.5f};
                          },
                      .vocab_size = kVocabSize});
  VerifyCall call = {
      .header = {.session = Id(1), .step = 1, .delta = {.append_tokens = {0}}},
      .reply_format = ReplyFormat::kFullBFloat16};
  const auto reply = node->Run(call, ContentDigest(call));
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(reply->is_bfloat16);
  EXPECT_THAT(std::get<LogitRows>(reply->outcome).Row(0),
              ElementsAre(1, -3.140625, 0.5));
}

TEST(VerifyEngineRowsTest, AModelThatAnswersNothingIsNotAsked) {
  for (const bool model_answers : {false, true}) {
    int num_asked = 0;
    const auto answer = [&](const RowQuestion& question, auto) {
      const bool asks = !std::holds_alternative<std::monostate>(question.what);
      num_asked += asks ? 1 : 0;
      return std::optional<RowAnswer>();
    };
    const auto node = MakeVerifyNode(
        {.table = [](auto) { return std::vector<float>(kVocabSize); },
         .vocab_size = kVocabSize,
         .answer = answer},
        {.model_answers = model_answers});
    VerifyCall call = {
        .header = {.session = Id(1), .delta = {.append_tokens = {0, 1}}},
        .reply_format = ReplyFormat::kTokens,
        .sampling = {.frequency_penalty = 0.5}};
    EXPECT_THAT(node->Run(call, ContentDigest(call)), IsOk());
    EXPECT_EQ(num_asked, model_answers ? 1 : 0);
  }
}

TEST_F(VerifyEngineTest, TheNextRoundCutsTheRefusedDrafts) {
  const auto open = Run(Open(5, {0, 1}, {2, 1}));
  VerifyCall call = Open(6, {0}, {1});
  call.header.incarnation = open->header.incarnation;
  call.header.delta.keep_length = 3;
  for (int delivery = 0; delivery < 2; ++delivery) {
    const auto reply = Run(call);
    ASSERT_THAT(reply, IsOk());
    EXPECT_EQ(std::get<LogitRows>(reply->outcome).num_rows(), 2);
    EXPECT_EQ(reply->header.cached_length, 5);
    EXPECT_EQ(node_->Cached(Id(1)), (TokenSeq{0, 1, 2, 0, 1}));
  }
}

TEST_F(VerifyEngineTest, AMissRunsNothing) {
  VerifyCall call = Open(5, {1}, {2});
  call.header.incarnation = Id(9);
  const auto reply = Run(call);
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(std::holds_alternative<Miss>(reply->outcome));
  EXPECT_EQ(node_->table().num_tokens_run(), 0);
}

TEST_F(VerifyEngineTest, MalformedRequestsChangeNothing) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const auto open = Run(Open(5, {0, 1}, {2}));
  ASSERT_THAT(open, IsOk());
  const auto next = [&](TokenSeq drafts) {
    VerifyCall call = Open(6, {1}, std::move(drafts));
    call.header.incarnation = open->header.incarnation;
    call.header.delta.keep_length = 3;
    return call;
  };
  EXPECT_THAT(Run(next({0, 0, 0, 0, 0})), StatusIs(kInvalid));
  EXPECT_THAT(Run(next({kVocabSize})), StatusIs(kInvalid));  // padding
  EXPECT_THAT(Run(next({-1})), StatusIs(kInvalid));
  // The delta fits into the context, the drafts after it do not.
  EXPECT_THAT(Run(Open(6, TokenSeq(kContext - 1, 0), {0, 0})),
              StatusIs(kInvalid));
  EXPECT_THAT(Run(Open(6, TokenSeq(kContext + 1, 0), {})), StatusIs(kInvalid));
  EXPECT_THAT(Run(Open(6, {}, {})), StatusIs(kInvalid));

  EXPECT_EQ(node_->Logged(Id(1)).size(), 3u);
  ASSERT_THAT(Run(next({0})), IsOk());
}

// It is greedy, and its table's logits are the length, the last token and 0: so
// token 0 comes after all of these texts.
class PlainRunTest : public VerifyEngineTest {
 protected:
  // A call without drafts that lets the verifier go on.
  static VerifyCall Going(uint64_t step, TokenSeq tokens, int num_more,
                          TokenSeq ends = {}) {
    VerifyCall call = Open(step, std::move(tokens), {});
    call.reply_format = ReplyFormat::kTokens;
    call.sampling = {.temperature = 0};
    call.max_more_tokens = num_more;
    call.end_tokens = std::move(ends);
    return call;
  }
};

TEST_F(PlainRunTest, EachTokenIsThatOfACallOfItsOwn) {
  for (int delivery = 0; delivery < 2; ++delivery) {  // a retry is the same
    const auto reply = Run(Going(5, {0, 1}, 3));
    ASSERT_THAT(reply, IsOk());
    EXPECT_EQ(std::get<Verdict>(reply->outcome), (Verdict{.next_token = 0}));
    EXPECT_THAT(reply->more_tokens, ElementsAre(0, 0, 0));
    // All but the last token are cached.
    EXPECT_EQ(reply->header.cached_length, 5);
    EXPECT_EQ(node_->Cached(Id(1)), (TokenSeq{0, 1, 0, 0, 0}));
  }
}

TEST_F(PlainRunTest, EachTokenHasItsLogprob) {
  VerifyCall call = Going(5, {0, 1}, 2);
  call.logprobs = LogprobsOptions{.num_top = 1};
  const auto reply = Run(call);
  ASSERT_THAT(reply, IsOk());
  ASSERT_EQ(reply->logprobs.size(), 3u);
  // The greatest logit is the length of the text before it.
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(reply->logprobs[i].tokens, ElementsAre(2 + i));
    EXPECT_THAT(reply->logprobs[i].top_ids, ElementsAre(0));
  }
}

TEST_F(PlainRunTest, NothingComesAfterAnEnd) {
  const auto reply = Run(Going(5, {0, 1}, 3, /*ends=*/{2, 0}));
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(reply->more_tokens.empty());
  EXPECT_EQ(reply->header.cached_length, 2);
  EXPECT_EQ(node_->table().num_passes(), 1);
}

TEST_F(PlainRunTest, WhatIsNoPlainDecodingIsRefused) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  VerifyCall drafts = Going(5, {0, 1}, 1);
  drafts.draft_tokens = {2};
  EXPECT_THAT(Run(drafts), StatusIs(kInvalid));
  VerifyCall rows = Going(5, {0, 1}, 1);
  rows.reply_format = ReplyFormat::kFull;
  EXPECT_THAT(Run(rows), StatusIs(kInvalid));
  for (const int num_more : {-1, 5}) {
    EXPECT_THAT(Run(Going(5, {0, 1}, num_more)), StatusIs(kInvalid));
  }
  EXPECT_THAT(Run(Going(5, {0, 1}, 1, TokenSeq(kMaxEndTokens + 1, 0))),
              StatusIs(kInvalid));
  // The delta fits into the context, and what is to come after it does not.
  EXPECT_THAT(Run(Going(5, TokenSeq(kContext - 1, 0), 2)), StatusIs(kInvalid));
  EXPECT_THAT(Run(Going(5, TokenSeq(kContext - 1, 0), 1)), IsOk());
}

TEST_F(VerifyEngineTest, WhatWasDrawnBeforeARowThatIsNoneStands) {
  const auto node = MakeVerifyNode({.table =
                                        [](absl::Span<const TokenId> text) {
                                          const float a =
                                              text.size() < 4 ? 1 : NAN;
                                          return std::vector<float>{a, 0, 0};
                                        },
                                    .vocab_size = kVocabSize});
  VerifyCall call = Open(5, {0, 1}, {});
  call.reply_format = ReplyFormat::kTokens;
  call.sampling = {.temperature = 0};
  call.max_more_tokens = 3;
  const auto reply = node->Run(call, ContentDigest(call));
  ASSERT_THAT(reply, IsOk());
  EXPECT_THAT(reply->more_tokens, ElementsAre(0));
  call.header.step = 6;
  call.header.incarnation = reply->header.incarnation;
  TokenLog log(call.header.session);
  log.Append({0, 1, 0});
  call.header.prefix_hash = log.PrefixHash(3);
  call.header.delta = {.keep_length = 3, .append_tokens = {0}};
  EXPECT_THAT(node->Run(call, ContentDigest(call)),
              StatusIs(absl::StatusCode::kInternal));
}

TEST_F(VerifyEngineTest, WhatEndsWithARowThatIsNoneIsNotReused) {
  const auto node = MakeVerifyNode({.table =
                                        [](absl::Span<const TokenId> text) {
                                          const float a =
                                              text.size() < 32 ? 1 : NAN;
                                          return std::vector<float>{a, 0, 0};
                                        },
                                    .vocab_size = kVocabSize});
  VerifyCall call = Open(5, TokenSeq(30, 0), {});
  call.header.cache_salt = "s";
  call.reply_format = ReplyFormat::kTokens;
  call.sampling = {.temperature = 0};
  call.max_more_tokens = 4;
  const auto reply = node->Run(call, ContentDigest(call));
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->header.cached_length, 32);
  EXPECT_TRUE(node->Release(
      {.session = Id(1), .incarnation = reply->header.incarnation, .step = 6}));
  VerifyCall other = Open(7, TokenSeq(33, 0), {}, Id(2));
  other.header.cache_salt = "s";
  other.reply_format = ReplyFormat::kTokens;
  other.sampling = {.temperature = 0};
  EXPECT_THAT(node->Run(other, ContentDigest(other)),
              StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(node->table().num_tokens_run(), 32 + 33);
}

TEST_F(VerifyEngineTest, RunsToTheContextsEnd) {
  const auto reply = Run(Open(5, TokenSeq(kContext - 2, 0), {1, 2}));
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->header.cached_length, kContext);
}

TEST_F(VerifyEngineTest, ReleaseAndExpiryMakeRoomForOthers) {
  ASSERT_THAT(Run(Open(5, {0}, {}, Id(1))), IsOk());
  const auto second = Run(Open(5, {0}, {}, Id(2)));
  EXPECT_THAT(Run(Open(5, {0}, {}, Id(3))),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(node_->Release({.session = Id(2),
                              .incarnation = second->header.incarnation,
                              .step = 6}));
  ASSERT_THAT(Run(Open(5, {0}, {}, Id(3))), IsOk());
  node_->Expire(now_ + std::chrono::minutes(5));
  EXPECT_EQ(node_->sessions().num_sessions(), 0);
  EXPECT_EQ(node_->sessions().blocks().num_free(), 16);
}

// A model that runs out of memory once.
class FailingLm final : public CausalLm {
 public:
  explicit FailingLm(bool& fails) : fails_(fails) {}
  const ModelInfo& info() const override { return model_.info(); }
  int64_t AvailableKvBytes() const override { return 0; }
  absl::Status AllocateKvBlocks(int num_blocks) override {
    return model_.AllocateKvBlocks(num_blocks);
  }
  std::unique_ptr<PendingPass> Launch(
      absl::Span<const Extension> batch) override {
    if (!fails_) return model_.Launch(batch);
    return std::make_unique<PassThatRan>(
        PassResults{absl::ResourceExhaustedError("no memory")});
  }

 private:
  bool& fails_;
  TableLm model_{{.table = [](auto) { return std::vector<float>(kVocabSize); },
                  .vocab_size = kVocabSize,
                  .context_length = kContext}};
};

TEST_F(VerifyEngineTest, AFailedPassForgetsTheSessionAndTheNextOpenServesIt) {
  bool fails = true;
  VerifyNode node(std::make_unique<FailingLm>(fails),
                  std::make_unique<VerifyEngine>(VerifyEngine::Options{
                      .vocab_size = kVocabSize, .context_length = kContext}),
                  FewBlocks());
  VerifyCall call = Open(5, {0, 1}, {2});
  EXPECT_THAT(node.Run(call, ContentDigest(call)),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(node.sessions().num_sessions(), 0);
  fails = false;
  EXPECT_THAT(node.Run(call, ContentDigest(call)), IsOk());
}

// The prompt is run in chunks, and the drafts' rows come with the last.
TEST(VerifyEngineChunksTest, ALongDeltaGivesTheSameRowsInManyPasses) {
  const auto table = [](absl::Span<const TokenId> context) {
    return std::vector<float>{static_cast<float>(context.size()),
                              static_cast<float>(context.back()),
                              static_cast<float>(context.front())};
  };
  TokenSeq prompt(70, 0);
  prompt.back() = 1;
  VerifyCall call = {.header = {.session = Id(1),
                                .step = 1,
                                .delta = {.append_tokens = prompt}},
                     .draft_tokens = {2, 1}};
  for (const int chunk : {16, 17, 32, 69, 70, 128}) {
    const auto node = MakeVerifyNode(
        {.table = table, .vocab_size = kVocabSize}, {},
        {.prefill_chunk = chunk, .sessions = {.num_blocks = 16}});
    const auto reply = node->Run(call, ContentDigest(call));
    ASSERT_THAT(reply, IsOk());
    const LogitRows& rows = std::get<LogitRows>(reply->outcome);
    ASSERT_EQ(rows.num_rows(), 3);
    EXPECT_THAT(rows.Row(0), ElementsAre(70, 1, 0));
    EXPECT_THAT(rows.Row(1), ElementsAre(71, 2, 0));
    EXPECT_THAT(rows.Row(2), ElementsAre(72, 1, 0));
    EXPECT_EQ(reply->header.cached_length, 72);
    EXPECT_EQ(node->table().num_tokens_run(), 72);
    EXPECT_EQ(node->table().num_passes() > 1, chunk < 72) << chunk;
  }
}

}  // namespace
}  // namespace outrider
