// SPDX-License-Identifier: Apache-2.0
// What a request may ask for, over real gRPC: lossy acceptance, log-
// probabilities, rules.
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hash_model.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

using ::testing::HasSubstr;

// Lossy or not, the text of a seed depends on which rounds drafted, and so on
// how soon the drafter has taken the prompt in: only at temperature 0, and
// exact, is it one text. tests/exactness sees that the formats agree.
TEST(RequestOptionsTest, ALossyGenerationSaysSoAndAcceptsMoreInEveryFormat) {
  InProcessCluster::Options options = SmallCluster();
  // The verifier takes so long that no drafter is left alone for being slow.
  options.target.table =
      [table = options.target.table](absl::Span<const TokenId> context) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return table(context);
      };
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  for (const double temperature : {0.0, 1.0}) {
    client::GenerationRequest request = Greedy({1, 2, 3}, 150, /*k=*/4);
    request.temperature = temperature;
    request.seed = 7;
    const Result exact = Generate(cluster, request);
    EXPECT_FALSE(exact.start->is_lossy);
    request.lossy_lenience = 1.0;
    const Result one = Generate(cluster, request);
    EXPECT_FALSE(one.start->is_lossy);
    if (temperature == 0) {
      EXPECT_EQ(one.tokens, exact.tokens);
    }
    request.lossy_lenience = 0.05;
    for (const ReplyFormat format :
         {ReplyFormat::kFull, ReplyFormat::kSparse, ReplyFormat::kTokens}) {
      request.reply_format = format;
      const Result result =
          GenerateWithDrafts(cluster, request, exact.num_accepted);
      EXPECT_THAT(result.status, IsOk());
      EXPECT_TRUE(result.start->is_lossy);
      EXPECT_GT(result.num_accepted, exact.num_accepted);
      EXPECT_NE(result.tokens, exact.tokens);
    }
  }
}

TEST(RequestOptionsTest, LogprobsAreTheSameForEveryKAndBelongToTheirTokens) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  for (const int k : {0, 4}) {
    client::GenerationRequest request = Greedy({1, 2, 3}, 30, k);
    request.logprobs = 3;
    const Result result = Generate(cluster, request);
    ASSERT_THAT(result.status, IsOk());
    TokenSeq text = {1, 2, 3};
    ASSERT_EQ(result.scored.size(), 30u);
    for (const GeneratedToken& token : result.scored) {
      const std::vector<float> logits = HashTarget(text, kVocab);
      double sum = 0;
      for (const float logit : logits) sum += std::exp(double{logit});
      ASSERT_TRUE(token.logprob.has_value());
      EXPECT_NEAR(*token.logprob, logits[token.id] - std::log(sum), 1e-9);
      // Greedy: the token is its row's most probable one.
      ASSERT_EQ(token.top_logprobs.size(), 3u);
      EXPECT_EQ(token.top_logprobs[0].id, token.id);
      EXPECT_EQ(token.top_logprobs[0].logprob, *token.logprob);
      text.push_back(token.id);
    }
    request.logprobs_mode = LogprobsMode::kProcessed;
    for (const auto& token : Generate(cluster, request).scored) {
      EXPECT_EQ(token.logprob, 0.0);
    }
  }
}

TEST(RequestOptionsTest, SampledTokensHaveTheirLogprobsInEveryReplyFormat) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  client::GenerationRequest request = Greedy({1, 2, 3}, 200, /*k=*/4);
  request.temperature = 0.8;
  request.draft_options.support_size = 8;  // replacements from off it as well
  request.logprobs = 0;
  for (const ReplyFormat format :
       {ReplyFormat::kFull, ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    request.reply_format = format;
    const Result result = Generate(cluster, request);
    ASSERT_EQ(result.scored.size(), 200u);
    TokenSeq text = {1, 2, 3};
    for (const GeneratedToken& token : result.scored) {
      const std::vector<float> logits = HashTarget(text, kVocab);
      double sum = 0;
      for (const float logit : logits) sum += std::exp(double{logit});
      ASSERT_TRUE(token.logprob.has_value());
      EXPECT_NEAR(*token.logprob, logits[token.id] - std::log(sum), 1e-9);
      text.push_back(token.id);
    }
  }
}

TEST(RequestOptionsTest, LogprobsAreTheSameInEveryReplyFormat) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  for (const auto mode : {LogprobsMode::kRaw, LogprobsMode::kProcessed}) {
    for (const double temperature : {0.0, 0.8}) {
      client::GenerationRequest request = Greedy({1, 2, 3}, 60, /*k=*/4);
      request.temperature = temperature;
      request.top_p = 0.95;
      request.presence_penalty = 0.4;
      request.seed = 11;
      request.draft_options.support_size =
          8;  // replacements from off it as well
      request.logprobs = 3;
      request.logprobs_mode = mode;
      // Whichever rounds have drafts, these give one text.
      const bool is_coupled = temperature > 0;
      if (is_coupled) {
        request.acceptance_rule = RuleKind::kCoupled;
      }
      request.reply_format = ReplyFormat::kFull;
      const Result full = Generate(cluster, request);
      ASSERT_THAT(full.status, IsOk());
      ASSERT_EQ(full.scored.size(), 60u);
      for (const ReplyFormat format :
           {ReplyFormat::kSparse, ReplyFormat::kTokens}) {
        if (is_coupled && format == ReplyFormat::kSparse) continue;
        request.reply_format = format;
        const Result result = Generate(cluster, request);
        ASSERT_THAT(result.status, IsOk());
        ASSERT_EQ(result.tokens, full.tokens);
        for (size_t i = 0; i < full.scored.size(); ++i) {
          EXPECT_EQ(result.scored[i].logprob, full.scored[i].logprob);
          EXPECT_EQ(result.scored[i].top_logprobs, full.scored[i].top_logprobs);
          EXPECT_TRUE(std::isfinite(*full.scored[i].logprob));
        }
      }
      // Nobody has to ask for a format.
      request.reply_format.reset();
      EXPECT_EQ(Generate(cluster, request).scored[59].logprob,
                full.scored[59].logprob);
    }
  }
}

TEST(RequestOptionsTest, BlockVerificationIsServedInEveryFormat) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  client::GenerationRequest request = Greedy({1, 2, 3}, 60, /*k=*/4);
  request.acceptance_rule = RuleKind::kBlock;
  EXPECT_EQ(Generate(cluster, request).tokens,
            PlainGreedy({1, 2, 3}, 60, kVocab));
  request.temperature = 1;
  request.seed = 7;
  request.max_tokens = 400;
  for (const ReplyFormat format :
       {ReplyFormat::kFull, ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    request.reply_format = format;
    const Result result = GenerateWithDrafts(cluster, request);
    EXPECT_THAT(result.status, IsOk());
    EXPECT_GT(result.num_accepted, 0);
  }
}

// Where nothing is drafted nothing is looked up, and a call brings what a
// verifier draws in a run.
TEST(RequestOptionsTest, WithoutDraftsALookupCostsNothing) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  client::GenerationRequest request = Greedy({1, 2, 3}, 60, /*k=*/0);
  const Result plain = Generate(cluster, request);
  request.prompt_lookup = true;
  const Result looked_up = Generate(cluster, request);
  EXPECT_EQ(looked_up.tokens, plain.tokens);
  EXPECT_GT(looked_up.num_more, 0);
}

// Drafts change nothing there either: with rounded logits as with others.
TEST(RequestOptionsTest, RowsInBFloat16GiveThePlainTextOfRoundedLogits) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  client::GenerationRequest request = Greedy({1, 2, 3}, 60, /*k=*/0);
  request.temperature = 1;
  request.seed = 7;
  request.acceptance_rule = RuleKind::kCoupled;
  request.reply_format = ReplyFormat::kFullBFloat16;
  const Result plain = Generate(cluster, request);
  ASSERT_THAT(plain.status, IsOk());
  request.num_speculative_tokens = 4;
  const Result drafted = GenerateWithDrafts(cluster, request);
  EXPECT_GT(drafted.num_accepted, 0);
  EXPECT_EQ(drafted.tokens, plain.tokens);
}

TEST(RequestOptionsTest, ARequestGoesToAVerifierThatServesWhatItAsksFor) {
  InProcessCluster::Options options = SmallCluster();
  options.other_targets = {options.target};
  options.rules = {RuleKind::kRejection};
  options.other_reply_formats = {ReplyFormat::kFull};
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  {
    const auto seat = SitAt(cluster, cluster.other_verifier(0));
    for (const auto rule : {RuleKind::kCoupled, RuleKind::kBlock}) {
      client::GenerationRequest request = Greedy({1}, 10, /*k=*/2);
      request.acceptance_rule = rule;
      EXPECT_THAT(Generate(cluster, request).status, IsOk());
    }
  }
  const auto seat = SitAt(cluster, cluster.verifier());
  client::GenerationRequest request = Greedy({1}, 10, /*k=*/2);
  request.reply_format = ReplyFormat::kTokens;
  EXPECT_THAT(Generate(cluster, request).status, IsOk());
}

// A round has as many as its verifier takes.
TEST(RequestOptionsTest, KIsRefusedOnlyWhereNoVerifierTakesSoMany) {
  InProcessCluster::Options options = SmallCluster();
  options.other_targets = {options.target};
  options.other_max_draft_tokens = 2;
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  const auto seat = SitAt(cluster, cluster.verifier());
  const Result result = Generate(cluster, Greedy({1}, 30, /*k=*/8));
  EXPECT_THAT(result.status, IsOk());
  EXPECT_EQ(result.tokens, PlainGreedy({1}, 30, kVocab));
  EXPECT_THAT(Generate(cluster, Greedy({1}, 30, /*k=*/9)).status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("between 0 and 8, not 9")));
}

// An older verifier lists no rules, which says the same.
TEST(RequestOptionsTest, ARuleThatTheVerifierDoesNotServeIsRefused) {
  for (const std::vector<RuleKind>& rules :
       {std::vector<RuleKind>{RuleKind::kRejection}, std::vector<RuleKind>()}) {
    InProcessCluster::Options options = SmallCluster();
    options.rules = rules;
    InProcessCluster cluster(options);
    ASSERT_TRUE(cluster.WaitUntilReady());
    client::GenerationRequest request = Greedy({5}, 30, /*k=*/4);
    request.acceptance_rule = RuleKind::kRejection;
    EXPECT_EQ(Generate(cluster, request).tokens, PlainGreedy({5}, 30, kVocab));
    for (const auto rule : {RuleKind::kCoupled, RuleKind::kBlock}) {
      request.acceptance_rule = rule;
      EXPECT_THAT(Generate(cluster, request).status,
                  StatusIs(absl::StatusCode::kFailedPrecondition,
                           HasSubstr("outrider describe")));
    }
    const auto deployment = cluster.client().Describe(std::chrono::seconds(5));
    ASSERT_THAT(deployment, IsOk());
    ASSERT_EQ(deployment->verifiers.size(), 1u);
    EXPECT_EQ(deployment->verifiers[0].rules,
              std::vector<RuleKind>{RuleKind::kRejection});
  }
}

}  // namespace
}  // namespace outrider::testing
