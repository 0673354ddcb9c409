// SPDX-License-Identifier: Apache-2.0
// Drafts for the outcomes of what is being verified, at a node over a table.
#include "drafter/ahead_work.h"

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/testing/answer_on_host.h"
#include "core/testing/named_session.h"
#include "core/testing/status_matchers.h"
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

constexpr int kWords = 24;

// Every token of the text matters to each.
std::vector<float> Logits(absl::Span<const TokenId> text) {
  constexpr uint64_t kFactor = 6364136223846793005u;
  uint64_t hash = 1;
  for (const TokenId token : text) hash = (hash + token) * kFactor + 1;
  std::vector<float> logits;
  for (int word = 0; word < kWords; ++word) {
    hash = hash * kFactor + 1;
    logits.push_back(static_cast<float>(hash >> 40) * 0x1p-22f);  // below 4
  }
  return logits;
}

std::unique_ptr<DraftNode> MakeNode(int num_blocks = 64, int context = 1024) {
  return MakeDraftNode(
      {.table = Logits, .vocab_size = kWords, .context_length = context}, {},
      {.sessions = {.num_blocks = num_blocks}});
}

TokenSeq Text(int length) {
  TokenSeq text;
  for (int i = 0; i < length; ++i) text.push_back((i * 7 + i / 5) % kWords);
  return text;
}

// What the call is about, but for its session and text.
DraftCall Plain(int k) {
  return {.max_draft_tokens = k,
          .options = {.support_size = 6},
          .sampling = {.temperature = 0.8},
          .seed = 11,
          .prompt_length = 3};
}

class AheadWorkTest : public ::testing::Test {
 protected:
  using Reply = absl::StatusOr<DraftReply>;

  // An opening with the text, and drafts in flight after it.
  static DraftCall Opening(DraftCall call, uint8_t name, TokenSeq text,
                           uint64_t step = 5) {
    call.header = {.session = Id(name),
                   .step = step,
                   .delta = {.append_tokens = std::move(text)}};
    return call;
  }
  static DraftCall Ahead(DraftCall call, TokenSeq in_flight, int max_outcomes,
                         double acceptance = 0.6) {
    call.in_flight_tokens = std::move(in_flight);
    call.max_outcomes = max_outcomes;
    call.acceptance = acceptance;
    return call;
  }
  static Reply Run(DraftNode& node, const DraftCall& call) {
    return node.Run(call, ContentDigest(call));
  }
  void Submit(const DraftCall& call) {
    const uint8_t name = call.header.session.bytes[0];
    node_->Submit(call, ContentDigest(call), {}, [this, name](Reply reply) {
      replies_.insert_or_assign(name, std::move(reply));
    });
  }
  // One pass; false where there is none to run.
  bool RunPass() {
    if (node_->BeginPass({}) == 0) return false;
    node_->EndPass({});
    return true;
  }
  const KvBlockPool& pool() const { return node_->sessions().blocks(); }

  // What a Draft of its own gets for the outcome's text and step, at a node
  // where nothing has happened before.
  static Draft Expected(const DraftCall& call, const TokenSeq& text,
                        const DraftReply& reply, size_t index) {
    const OutcomeDraft& outcome = reply.outcomes[index];
    TokenSeq whole = text;
    const auto accepted = call.in_flight_tokens.begin();
    whole.insert(whole.end(), accepted, accepted + outcome.num_accepted);
    whole.push_back(outcome.next_token);
    DraftCall plain = Opening(call, 9, whole, call.header.step + index);
    plain.in_flight_tokens.clear();
    plain.max_outcomes = 0;
    return std::get<Draft>(Run(*MakeNode(), plain)->outcome);
  }
  static void ExpectAsPlain(const DraftCall& call, const TokenSeq& text,
                            const Reply& reply) {
    ASSERT_THAT(reply, IsOk());
    EXPECT_EQ(std::get<Draft>(reply->outcome).length(), 0);
    for (size_t i = 0; i < reply->outcomes.size(); ++i) {
      SCOPED_TRACE(i);
      const Draft expected = Expected(call, text, *reply, i);
      const Draft& draft = reply->outcomes[i].draft;
      EXPECT_EQ(draft.start, expected.start);
      EXPECT_EQ(draft.tokens, expected.tokens);
      ASSERT_EQ(draft.distributions.size(), expected.distributions.size());
      for (size_t j = 0; j < draft.distributions.size(); ++j) {
        const Distribution& q = draft.distributions[j];
        EXPECT_EQ(q.support(), expected.distributions[j].support());
        EXPECT_EQ(q.weights(), expected.distributions[j].weights());
      }
    }
  }
  // The session's cache is what its log says, and nobody else has a block.
  void ExpectNothingLeft(uint8_t name, int cached_length) {
    const NodeSession* session = node_->sessions().Find(Id(name));
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(session->log.length(), cached_length);
    EXPECT_EQ(node_->Cached(session->id), node_->Logged(session->id));
    EXPECT_TRUE(session->branches.empty());
    EXPECT_EQ(pool().num_total() - pool().num_free(),
              NumKvBlocks(cached_length));
    EXPECT_EQ(pool().num_shared(), 0);
  }

  std::unique_ptr<DraftNode> node_ = MakeNode();
  std::map<uint8_t, Reply> replies_;
};

TEST_F(AheadWorkTest, EachOutcomesDraftIsWhatACallOfItsOwnWouldGet) {
  std::vector<DraftCall> kinds(6, Plain(4));
  kinds[1].rule = RuleKind::kCoupled;
  kinds[2].sampling.temperature = 0;
  kinds[3].sampling.repetition_penalty = 1.4;
  kinds[3].sampling.presence_penalty = 0.5;
  kinds[3].sampling.frequency_penalty = 0.3;
  kinds[4].options = {.support_size = kWords, .round_weights = false};
  kinds[4].sampling.logit_bias = {{.id = 3, .bias = 2}};
  kinds[5].options.min_draft_probability = 0.05;
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    // Branches lie on either side of the boundaries of blocks.
    for (const int length : {3, 13, 15, 16, 17, 31, 40}) {
      SCOPED_TRACE(absl::StrCat(kind, " after ", length));
      node_ = MakeNode();
      const TokenSeq text = Text(length);
      const DraftCall call = Ahead(Opening(kinds[kind], 1, text), {5, 6, 7}, 7);
      const Reply reply = Run(*node_, call);
      ExpectAsPlain(call, text, reply);
      EXPECT_EQ(reply->outcomes.size(), 7u);
      EXPECT_EQ(reply->header.cached_length, length + 3);
      ExpectNothingLeft(1, length + 3);
    }
  }
}

TEST_F(AheadWorkTest, OutcomesAreTheLikeliestOfTheRowsAsTheyAre) {
  const TokenSeq text = Text(10);
  const DraftCall call = Ahead(Opening(Plain(1), 1, text), {5}, kMaxOutcomes);
  const Reply reply = Run(*node_, call);
  ASSERT_THAT(reply, IsOk());
  TokenSeq with_draft = text;
  with_draft.push_back(5);
  std::vector<float> rows = Logits(text);
  for (const float x : Logits(with_draft)) rows.push_back(x);
  const TokenSeq in_flight = {5};
  const auto likely = LikelyOutcomes(
      LogitRows::FromVector(rows, kWords),
      {.tokens = in_flight, .acceptance = 0.6, .max_accepted = 1},
      kMaxOutcomes);
  ASSERT_EQ(reply->outcomes.size(), likely->size());
  for (size_t i = 0; i < likely->size(); ++i) {
    EXPECT_EQ(reply->outcomes[i].num_accepted, (*likely)[i].num_accepted);
    EXPECT_EQ(reply->outcomes[i].next_token, (*likely)[i].next_token);
  }
}

TEST_F(AheadWorkTest, AModelThatAnswersBringsNoWholeRow) {
  int num_answers = 0;
  const auto answer = [&](const RowQuestion& question,
                          absl::Span<const float> logits) {
    std::optional<RowAnswer> told =
        outrider::testing::AnswerOnHost(question, logits);
    EXPECT_TRUE(told.has_value());
    ++num_answers;
    return told;
  };
  const TokenSeq text = Text(15);
  for (const double penalty : {0.0, 0.7}) {
    node_ =
        MakeDraftNode({.table = Logits, .vocab_size = kWords, .answer = answer},
                      {}, {.sessions = {.num_blocks = 64}});
    num_answers = 0;
    DraftCall plain = Plain(4);
    plain.sampling.frequency_penalty = penalty;
    const DraftCall call = Ahead(Opening(plain, 1, text), {5, 6, 7}, 6);
    const Reply reply = Run(*node_, call);
    ExpectAsPlain(call, text, reply);
    // A row for each number of drafts that may stand, then one for each token.
    EXPECT_EQ(num_answers, 4 + 6 * 4);
    const Reply whole = Run(*MakeNode(), call);
    ASSERT_EQ(reply->outcomes.size(), whole->outcomes.size());
    for (size_t i = 0; i < whole->outcomes.size(); ++i) {
      EXPECT_EQ(reply->outcomes[i].draft.tokens,
                whole->outcomes[i].draft.tokens);
    }
  }
}

TEST_F(AheadWorkTest, AModelThatAnswersNothingIsNotAsked) {
  const auto answer = [](const RowQuestion& question, absl::Span<const float>) {
    EXPECT_TRUE(std::holds_alternative<std::monostate>(question.what));
    return std::optional<RowAnswer>();
  };
  node_ =
      MakeDraftNode({.table = Logits, .vocab_size = kWords, .answer = answer},
                    {.model_answers = false}, {.sessions = {.num_blocks = 64}});
  const TokenSeq text = Text(15);
  const DraftCall call = Ahead(Opening(Plain(4), 1, text), {5, 6, 7}, 6);
  ExpectAsPlain(call, text, Run(*node_, call));
  EXPECT_THAT(Run(*node_, Opening(Plain(4), 2, text)), IsOk());
}

TEST_F(AheadWorkTest, SessionsDraftAheadInTheSamePassesAsOthersDraft) {
  std::map<uint8_t, DraftCall> calls;
  std::map<uint8_t, TokenSeq> texts;
  for (const uint8_t name : {1, 2, 3}) {
    texts[name] = Text(12 + 3 * name);
    calls[name] = Opening(Plain(2 + name), name, texts[name]);
    if (name != 3) calls[name] = Ahead(calls[name], {4, 8}, 4);
    Submit(calls[name]);
  }
  while (RunPass()) {
  }
  EXPECT_GT(node_->num_shared_passes(), 2);
  for (const uint8_t name : {1, 2}) {
    EXPECT_EQ(replies_.at(name)->outcomes.size(), 4u);
    ExpectAsPlain(calls[name], texts[name], replies_.at(name));
  }
  const Draft plain = std::get<Draft>(replies_.at(3)->outcome);
  EXPECT_EQ(plain.tokens,
            std::get<Draft>(Run(*MakeNode(), calls[3])->outcome).tokens);
}

TEST_F(AheadWorkTest, WithNothingInFlightTheNextTokenIsGuessed) {
  const TokenSeq text = Text(16);
  const DraftCall call = Ahead(Opening(Plain(4), 1, text), {}, 3, 0);
  const Reply reply = Run(*node_, call);
  ExpectAsPlain(call, text, reply);
  EXPECT_EQ(reply->outcomes.size(), 3u);
  ExpectNothingLeft(1, 16);
}

TEST_F(AheadWorkTest, BranchesGoOnFromBlocksThatSessionsShare) {
  const TokenSeq text = Text(37);
  for (const uint8_t name : {1, 2}) {
    DraftCall call = Ahead(Opening(Plain(4), name, text), {5, 6, 7}, 6);
    call.header.cache_salt = "s";
    const Reply reply = Run(*node_, call);
    ExpectAsPlain(call, text, reply);
    EXPECT_EQ(reply->header.reused_length, name == 1 ? 0 : 32);
  }
  EXPECT_EQ(pool().num_shared(), 2);
  EXPECT_EQ(pool().num_total() - pool().num_free(), 4);
}

TEST_F(AheadWorkTest, WhatIsInFlightStaysCachedForWhatComesNext) {
  const TokenSeq text = Text(14);
  const Reply ahead =
      Run(*node_, Ahead(Opening(Plain(3), 1, text), {5, 6, 7}, 2));
  ASSERT_THAT(ahead, IsOk());
  const int num_run = node_->table().num_tokens_run();
  DraftCall next = Plain(3);
  next.header = {.session = Id(1),
                 .incarnation = ahead->header.incarnation,
                 .step = 7,
                 .delta = {.keep_length = 16, .append_tokens = {9}}};
  const Reply reply = Run(*node_, next);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(node_->table().num_tokens_run() - num_run, 3);
  TokenSeq whole = text;
  whole.insert(whole.end(), {5, 6, 9});
  EXPECT_EQ(
      std::get<Draft>(reply->outcome).tokens,
      std::get<Draft>(Run(*MakeNode(), Opening(Plain(3), 1, whole, 7))->outcome)
          .tokens);
  ExpectNothingLeft(1, 19);
}

TEST_F(AheadWorkTest, TheSameCallAgainGetsTheSameDrafts) {
  const DraftCall call = Ahead(Opening(Plain(3), 1, Text(20)), {5, 6}, 5);
  const Reply first = Run(*node_, call);
  const Reply second = Run(*node_, call);
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(first->header.incarnation, second->header.incarnation);
  ASSERT_EQ(second->outcomes.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(first->outcomes[i].draft.tokens,
              second->outcomes[i].draft.tokens);
  }
}

TEST_F(AheadWorkTest, WhereThereIsRoomForFewerTheLikeliestAreDraftedFor) {
  const TokenSeq text = Text(15);
  const DraftCall call = Ahead(Opening(Plain(4), 1, text), {5, 6}, 6);
  const Reply all = Run(*node_, call);
  ASSERT_EQ(all->outcomes.size(), 6u);
  // The session has two blocks, each branch one or two of its own, and one
  // stays free for whoever comes.
  for (const int num_blocks : {2, 4, 5, 6, 8}) {
    SCOPED_TRACE(num_blocks);
    node_ = MakeNode(num_blocks);
    const Reply some = Run(*node_, call);
    ExpectAsPlain(call, text, some);
    EXPECT_LT(some->outcomes.size(), 6u);
    EXPECT_EQ(some->outcomes.empty(), num_blocks <= 4);
    for (size_t i = 0; i < some->outcomes.size(); ++i) {
      EXPECT_EQ(some->outcomes[i].next_token, all->outcomes[i].next_token);
    }
    EXPECT_EQ(some->header.cached_length, 17);
    ExpectNothingLeft(1, 17);
  }
}

TEST_F(AheadWorkTest, DraftsAreShorterAtTheContextsEndAndThenNone) {
  for (const auto& [length, most, longest] :
       std::vector<std::tuple<int, int, int>>{
           {20, 2, 3}, {26, 2, 3}, {28, 1, 2}, {29, 0, 1}}) {
    SCOPED_TRACE(length);
    node_ = MakeNode(/*num_blocks=*/64, /*context=*/31);
    const DraftCall call =
        Ahead(Opening(Plain(3), 1, Text(length)), {5, 6}, 16);
    const Reply reply = Run(*node_, call);
    ASSERT_THAT(reply, IsOk());
    ASSERT_FALSE(reply->outcomes.empty());
    for (const OutcomeDraft& outcome : reply->outcomes) {
      EXPECT_LE(outcome.num_accepted, most);
      EXPECT_EQ(outcome.draft.length(),
                std::min(3, 31 - length - outcome.num_accepted - 1));
      EXPECT_LE(outcome.draft.length(), longest);
    }
  }
}

TEST_F(AheadWorkTest, ANewerStepEndsItAndFindsItsCacheAsTheLogSays) {
  const TokenSeq text = Text(14);
  const Reply opened = Run(*node_, Opening(Plain(0), 1, text));
  ASSERT_THAT(opened, IsOk());
  // Its passes: one for what is in flight, then one a token drafted.
  for (int num_passes = 0; num_passes <= 3; ++num_passes) {
    SCOPED_TRACE(num_passes);
    const auto step = static_cast<uint64_t>(10 * num_passes + 10);
    DraftCall ahead = Ahead(Plain(4), {5, 6, 7}, 3);
    ahead.header = {.session = Id(1),
                    .incarnation = opened->header.incarnation,
                    .step = step,
                    .delta = {.keep_length = 13, .append_tokens = {text[13]}}};
    Submit(ahead);
    for (int i = 0; i < num_passes; ++i) ASSERT_TRUE(RunPass());
    DraftCall next = Plain(2);
    next.header = ahead.header;
    next.header.step = step + 3;
    replies_.clear();
    std::optional<Reply> reply;
    node_->Submit(next, ContentDigest(next), {},
                  [&](Reply r) { reply = std::move(r); });
    ASSERT_TRUE(RunPass());
    EXPECT_THAT(replies_.at(1).status(),
                StatusIs(absl::StatusCode::kCancelled));
    while (RunPass()) {
    }
    ASSERT_THAT(*reply, IsOk());
    DraftCall alone = Opening(Plain(2), 9, text, step + 3);
    EXPECT_EQ(std::get<Draft>((*reply)->outcome).tokens,
              std::get<Draft>(Run(*MakeNode(), alone)->outcome).tokens);
    ExpectNothingLeft(1, 15);
  }
}

TEST_F(AheadWorkTest, WhoComesMeanwhileWaitsForItsBlocksAndIsNotRefused) {
  // Two blocks of the session's, four of two branches, one for who comes.
  node_ = MakeNode(/*num_blocks=*/7);
  const TokenSeq text = Text(15);
  const DraftCall ahead = Ahead(Opening(Plain(4), 1, text), {5, 6}, 2, 1);
  Submit(ahead);
  ASSERT_TRUE(RunPass());
  ASSERT_TRUE(RunPass());
  ASSERT_FALSE(node_->sessions().Find(Id(1))->branches.empty());
  Submit(Opening(Plain(1), 2, Text(40)));
  EXPECT_FALSE(replies_.contains(2));
  while (RunPass()) {
  }
  ExpectAsPlain(ahead, text, replies_.at(1));
  EXPECT_EQ(replies_.at(1)->outcomes.size(), 2u);
  EXPECT_THAT(replies_.at(2), IsOk());
  EXPECT_EQ(node_->sessions().num_preempted(), 0);
}

TEST_F(AheadWorkTest, MalformedOnesNeverReachTheModel) {
  const DraftCall good = Ahead(Opening(Plain(2), 1, Text(5)), {5}, 2);
  std::vector<DraftCall> wrong(5, good);
  wrong[0].max_outcomes = kMaxOutcomes + 1;
  wrong[1].max_outcomes = -1;
  wrong[2].in_flight_tokens = {kWords};
  wrong[3].in_flight_tokens = TokenSeq(kDefaultMaxDraftTokens + 1, 5);
  wrong[4] = Ahead(Opening(Plain(2), 1, Text(1020)), {1, 2, 3, 4, 5}, 2);
  for (const DraftCall& call : wrong) {
    EXPECT_THAT(Run(*node_, call),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_EQ(node_->table().num_tokens_run(), 0);
}

}  // namespace
}  // namespace outrider
