// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/node_verify_client.h"

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "coordinator/round/round_result.h"
#include "core/sampling/rejection.h"
#include "core/testing/run_task.h"
#include "core/testing/status_matchers.h"
#include "core/testing/table_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/in_process_stubs.h"

namespace outrider {
namespace {

using ::outrider::testing::InProcessVerifyStub;
using ::outrider::testing::IsOk;
using ::outrider::testing::MakeVerifyNode;
using ::outrider::testing::RunTask;
using ::outrider::testing::StatusIs;
using ::outrider::testing::VerifyNode;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr int kNumWords = 4;

// Probabilities .1 .2 .3 .4, turned by the last token of the context.
std::vector<float> Turned(absl::Span<const TokenId> context) {
  std::vector<float> row(kNumWords);
  for (int v = 0; v < kNumWords; ++v) {
    row[(v + context.back()) % kNumWords] =
        static_cast<float>(std::log(0.1 * (v + 1)));
  }
  return row;
}

class NodeVerifyClientTest : public ::testing::Test {
 protected:
  NodeVerifyClientTest() : node_(NewNode()), stub_(*node_) {
    stub_.hooks().before = [this](const VerifyCall& call) {
      calls_.push_back(call);
      return absl::OkStatus();
    };
    for (const TokenId token : {3, 1}) {
      draft_.tokens.push_back(token);
      draft_.distributions.push_back(
          Distribution::FromSorted({1, 3}, {0.5, 0.5}));
    }
  }

  static std::unique_ptr<VerifyNode> NewNode() {
    return MakeVerifyNode({.table = Turned, .vocab_size = kNumWords});
  }
  absl::StatusOr<DraftScore> Score(ReplyFormat format = ReplyFormat::kFull) {
    return Score(session_, format);
  }
  absl::StatusOr<DraftScore> Score(Session& session, ReplyFormat format) {
    absl::StatusOr<ScoredDraft> scored =
        RunTask(NodeVerifyClient(stub_, format).Score(session, draft_));
    if (!scored.ok()) return scored.status();
    link_ = scored->link;
    return std::move(scored->score);
  }
  void Forge(std::function<void(VerifyReply&)> forge) {
    stub_.hooks().after = [forge](const VerifyCall&, VerifyReply& reply) {
      forge(reply);
      return absl::OkStatus();
    };
  }

  std::vector<VerifyCall> calls_;
  RoundStats::Link link_;  // of the last score
  std::unique_ptr<VerifyNode> node_;
  InProcessVerifyStub stub_;
  Session session_{{.prompt = {2, 0}, .max_length = 100}};
  Draft draft_ = {.start = 2};
};

TEST_F(NodeVerifyClientTest, EveryRowBelongsToTheContextBeforeItsDraft) {
  for (const ReplyFormat format : {ReplyFormat::kFull, ReplyFormat::kSparse}) {
    const auto score = Score(format);
    ASSERT_THAT(score, IsOk());
    const std::vector<TargetRow>& rows = score->rows;
    ASSERT_EQ(rows.size(), 3u);
    // They come after token 0 and after draft 3: the second is turned by three.
    EXPECT_NEAR(rows[0](1), 0.2, 1e-7);
    EXPECT_NEAR(rows[0](3), 0.4, 1e-7);
    EXPECT_NEAR(rows[0].tail_mass(), 0.4, 1e-7);
    EXPECT_NEAR(rows[1](1), 0.3, 1e-7);
    EXPECT_NEAR(rows[1](3), 0.1, 1e-7);
    // The last row has no draft: its tail is all of p.
    EXPECT_EQ(rows[2].tail_mass(), 1.0);
    EXPECT_EQ(session_.verifier_cache().length(), 4);
  }
}

TEST_F(NodeVerifyClientTest, EveryFormatEndsInTheSameVerdict) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Session session({.prompt = {2, 0}, .seed = seed, .max_length = 100});
    std::vector<Verdict> verdicts;
    for (const ReplyFormat format :
         {ReplyFormat::kFull, ReplyFormat::kSparse, ReplyFormat::kTokens}) {
      const auto score = Score(session, format);
      ASSERT_THAT(score, IsOk());
      EXPECT_EQ(score->verdict.has_value(), format == ReplyFormat::kTokens);
      verdicts.push_back(
          score->verdict.has_value()
              ? *score->verdict
              : RejectionRule().Judge(draft_, score->rows, session.coins()));
    }
    EXPECT_EQ(verdicts[0], verdicts[1]);
    EXPECT_EQ(verdicts[0], verdicts[2]);
    node_->Release(session.AdvisoryHeader(session.verifier_cache()));
  }
}

TEST_F(NodeVerifyClientTest, AtTemperatureZeroTheDraftsRowsStayAtHome) {
  Session session(
      {.prompt = {2, 0}, .sampling = {.temperature = 0}, .max_length = 100});
  const auto score = Score(session, ReplyFormat::kTokens);
  ASSERT_THAT(score, IsOk());
  EXPECT_TRUE(calls_[0].draft_rows.empty());
  // The most probable token after 0 is 3, after 3 it is 2.
  EXPECT_EQ(*score->verdict, (Verdict{1, 2}));
}

// Presence and frequency penalties count what was generated. Whether the rows
// come here (FULL) or stay there (SPARSE, TOKENS), after a resume a delivered
// token is penalised as it was in the stream that broke.
TEST_F(NodeVerifyClientTest, AfterAResumeTheDeliveredTokensArePenalised) {
  const SamplingParams sampling = {.presence_penalty = 2};
  for (const ReplyFormat format :
       {ReplyFormat::kFull, ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    Session resumed({.prompt = {2},
                     .delivered = {3, 0},
                     .sampling = sampling,
                     .max_length = 100});
    draft_.start = 3;
    ASSERT_THAT(Score(resumed, format), IsOk());
    EXPECT_EQ(calls_.back().prompt_length, 1);
  }
  Session resumed({.prompt = {2},
                   .delivered = {3, 0},
                   .sampling = sampling,
                   .max_length = 100});
  const auto score = Score(resumed, ReplyFormat::kFull);
  ASSERT_THAT(score, IsOk());
  // In the row after 0, tokens 3 and 0 were generated, 1 and 2 were not.
  const double penalty = std::exp(-2.0);
  const double total = 0.1 * penalty + 0.2 + 0.3 + 0.4 * penalty;
  EXPECT_NEAR(score->rows[0](3), 0.4 * penalty / total, 1e-6);
  EXPECT_NEAR(score->rows[0](1), 0.2 / total, 1e-6);
}

TEST_F(NodeVerifyClientTest, EachTokenThatMayComeHasItsLogprobInEveryFormat) {
  for (const LogprobsMode mode :
       {LogprobsMode::kRaw, LogprobsMode::kProcessed}) {
    Session session({.prompt = {2, 0},
                     .sampling = {.temperature = 0.5},
                     .logprobs = LogprobsOptions{.num_top = 2, .mode = mode},
                     .max_length = 100});
    const auto full = Score(session, ReplyFormat::kFull);
    ASSERT_THAT(full, IsOk());
    const auto sparse = Score(session, ReplyFormat::kSparse);
    ASSERT_THAT(sparse, IsOk());
    // These are the support of the first row, then its tail token.
    for (const TokenId token : {1, 3, sparse->rows[0].drawn_token()}) {
      const Verdict verdict = {0, token};
      const auto right = LogprobsOf(*full, draft_, verdict, session);
      const auto got = LogprobsOf(*sparse, draft_, verdict, session);
      ASSERT_THAT(got, IsOk());
      ASSERT_EQ(got->size(), 1u);
      EXPECT_EQ((*got)[0].tokens, (*right)[0].tokens);
      EXPECT_EQ((*got)[0].top, (*right)[0].top);
      EXPECT_EQ((*got)[0].top.size(), 2u);
    }
  }
  EXPECT_FALSE(calls_[0].logprobs.has_value()) << "FULL has the rows";
}

TEST_F(NodeVerifyClientTest, WhatStandsByLenienceIsCertainInEveryFormat) {
  for (const ReplyFormat format :
       {ReplyFormat::kFull, ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    Session session(
        {.prompt = {2, 0},
         .sampling = {.temperature = 0, .lossy_lenience = 0.5},
         .logprobs =
             LogprobsOptions{.num_top = 1, .mode = LogprobsMode::kProcessed},
         .max_length = 100});
    const auto score = Score(session, format);
    ASSERT_THAT(score, IsOk());
    // Draft 1 has three quarters of its row's greatest probability.
    const Verdict verdict = {2, 0};
    EXPECT_EQ(score->verdict.value_or(verdict).num_accepted, 2);
    const auto got = LogprobsOf(*score, draft_, verdict, session);
    ASSERT_THAT(got, IsOk());
    ASSERT_EQ(got->size(), 3u);
    for (const RowLogprobs& row : *got) EXPECT_THAT(row.tokens, ElementsAre(0));
    EXPECT_THAT((*got)[1].top, ElementsAre(TokenLogprob{1, 0}));
  }
}

TEST_F(NodeVerifyClientTest, LogprobsThatDoNotFitTheRowsFailTheSession) {
  const std::vector<std::function<void(VerifyReply&)>> forgeries = {
      [](VerifyReply& reply) { reply.logprobs.clear(); },
      [](VerifyReply& reply) { reply.logprobs.pop_back(); },
      [](VerifyReply& reply) { reply.logprobs[0].tokens.push_back(0); },
      [](VerifyReply& reply) {
        reply.logprobs[0].top_ids = {1, 2};
      }};
  for (const ReplyFormat format :
       {ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    for (const auto& forgery : forgeries) {
      Session session({.prompt = {2, 0},
                       .logprobs = LogprobsOptions{.num_top = 1},
                       .max_length = 100});
      stub_.hooks().after = {};
      ASSERT_THAT(Score(session, format), IsOk());
      Forge(forgery);
      EXPECT_THAT(Score(session, format),
                  StatusIs(absl::StatusCode::kInternal));
    }
  }
}

TEST_F(NodeVerifyClientTest, AReplyInAnotherFormatFailsTheSession) {
  Forge([](VerifyReply& reply) { reply.outcome = Verdict{2, 0}; });
  EXPECT_THAT(Score(ReplyFormat::kFull), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(Score(ReplyFormat::kSparse),
              StatusIs(absl::StatusCode::kInternal));
}

TEST_F(NodeVerifyClientTest, NoVerdictAcceptsMoreThanWasDrafted) {
  for (const int num_accepted : {-1, 3}) {
    Forge([num_accepted](VerifyReply& reply) {
      reply.outcome = Verdict{num_accepted, 0};
    });
    EXPECT_THAT(Score(ReplyFormat::kTokens),
                StatusIs(absl::StatusCode::kInternal));
  }
}

TEST_F(NodeVerifyClientTest, NoDraftGivesTheOneRowOfPlainDecoding) {
  draft_ = {.start = 2};
  const auto score = Score();
  ASSERT_THAT(score, IsOk());
  ASSERT_EQ(score->rows.size(), 1u);
  EXPECT_EQ(score->rows[0].tail_mass(), 1.0);
}

// Three tokens a call, but for an opening, and what is left of the text.
TEST_F(NodeVerifyClientTest, WithoutDraftsTheVerifierGoesOn) {
  FixedRunLength run(3);
  NodeVerifyClient client(stub_, ReplyFormat::kTokens, &run);
  Session session({.prompt = {2, 0}, .seed = 1, .max_length = 8});
  std::vector<int> lengths;
  while (!session.is_complete()) {
    Draft none = Draft::None(session.length());
    const auto scored = RunTask(client.Score(session, none));
    ASSERT_THAT(scored.status(), IsOk());
    session.Commit(none, *scored->score.verdict, scored->score.more_tokens);
    lengths.push_back(session.length());
  }
  EXPECT_THAT(lengths, ElementsAre(3, 6, 8));
  EXPECT_EQ(calls_.back().header.delta.keep_length, 5);
  EXPECT_THAT(calls_.back().header.delta.append_tokens, SizeIs(1));
}

TEST_F(NodeVerifyClientTest, NoVerifierGoesOnFurtherThanItMay) {
  draft_ = {.start = 2};
  Forge([](VerifyReply& reply) { reply.more_tokens = {1}; });
  EXPECT_THAT(Score(ReplyFormat::kTokens),
              StatusIs(absl::StatusCode::kInternal));
}

TEST_F(NodeVerifyClientTest, ALostSessionGetsTheSameDraftsAgain) {
  ASSERT_THAT(Score(), IsOk());
  const auto restarted = NewNode();
  stub_.Restart(*restarted);
  ASSERT_THAT(Score(), IsOk());
  ASSERT_EQ(calls_.size(), 3u);
  EXPECT_EQ(calls_[1].draft_tokens, calls_[2].draft_tokens);
  EXPECT_GT(calls_[2].header.step, calls_[1].header.step);
  EXPECT_THAT(calls_[2].header.delta.append_tokens, ElementsAre(2, 0));
  EXPECT_EQ(link_.num_misses(), 1);
}

// It may have held for minutes, whichever verifier answers it then.
TEST_F(NodeVerifyClientTest, ACallThatWasSentAgainIsNoOrdinaryOne) {
  struct CountingRun final : public RunLength {
    int Next() const override { return 1; }
    void Learn(const Call&) override { ++num_learned; }
    int num_learned = 0;
  };
  CountingRun run;
  NodeVerifyClient client(stub_, ReplyFormat::kTokens, &run);
  ASSERT_THAT(Score(), IsOk());  // opens it
  for (const int num_retries : {0, 2}) {
    Forge([&](VerifyReply& reply) { reply.num_retries = num_retries; });
    const auto scored = RunTask(client.Score(session_, draft_));
    ASSERT_THAT(scored.status(), IsOk());
    EXPECT_EQ(scored->link.num_failures, num_retries);
  }
  EXPECT_EQ(run.num_learned, 1);
}

TEST_F(NodeVerifyClientTest, AVerifierThatOnlyMissesHasFailed) {
  Forge([](VerifyReply& reply) { reply.outcome = Miss(); });
  EXPECT_THAT(Score(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(calls_.size(), 3u);
}

// Each comes of a verifier that takes fewer drafts than the one before.
TEST_F(NodeVerifyClientTest, MissesThatShortenTheDraftAreNoFailures) {
  Forge([this](VerifyReply& reply) {
    if (calls_.size() == 4) return;
    reply.outcome = Miss();
    stub_.set_most_drafts(calls_.size() == 1 ? 1 : 0);
  });
  EXPECT_THAT(Score(), IsOk());
  ASSERT_EQ(calls_.size(), 4u);
  EXPECT_THAT(calls_[1].draft_tokens, ElementsAre(3));
  EXPECT_THAT(calls_[3].draft_tokens, ElementsAre());
}

TEST_F(NodeVerifyClientTest, AReplyToAnotherRequestIsNotTakenForThisOne) {
  Forge([](VerifyReply& reply) { ++reply.header.step; });
  EXPECT_THAT(Score(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(session_.verifier_cache().length(), 0);
}

TEST_F(NodeVerifyClientTest, TooFewRowsFailTheSession) {
  Forge([](VerifyReply& reply) {
    reply.outcome = LogitRows::FromVector(
        std::vector<float>(size_t{2} * kNumWords), kNumWords);
  });
  EXPECT_THAT(Score(), StatusIs(absl::StatusCode::kInternal));
}

TEST_F(NodeVerifyClientTest, ARowThatIsNotANumberFailsTheSessionInAnyPlace) {
  for (int place = 0; place < 3 * kNumWords; ++place) {
    Forge([place](VerifyReply& reply) {
      std::vector<float> values(size_t{3} * kNumWords, 1.0F);
      values[place] = std::numeric_limits<float>::quiet_NaN();
      reply.outcome = LogitRows::FromVector(std::move(values), kNumWords);
    });
    EXPECT_THAT(Score(), StatusIs(absl::StatusCode::kInternal));
  }
}

}  // namespace
}  // namespace outrider
